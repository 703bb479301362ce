//! Sequence numbers that wrap. They have no `Ord`: order on a circle is a question with two answers, so each
//! comparison is a method that says which one it gives.

macro_rules! sequence_number {
    ($(#[$doc:meta])* $name:ident, $int:ty, $signed:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub struct $name(pub $int);

        impl $name {
            /// `self + n`, wrapping.
            #[must_use]
            pub const fn add(self, n: $int) -> Self {
                Self(self.0.wrapping_add(n))
            }

            /// `self - n`, wrapping.
            #[must_use]
            pub const fn sub(self, n: $int) -> Self {
                Self(self.0.wrapping_sub(n))
            }

            /// How far one must count upwards from `earlier` to reach `self`.
            #[must_use]
            pub const fn distance_from(self, earlier: Self) -> $int {
                self.0.wrapping_sub(earlier.0)
            }

            /// The signed distance the shorter way round, positive where `self` is ahead of `other`; numbers
            /// exactly half the circle apart count as behind.
            #[must_use]
            pub const fn offset_from(self, other: Self) -> $signed {
                self.0.wrapping_sub(other.0) as $signed
            }

            /// Serial comparison: less than half the circle lies between `self` and the later `other`.
            #[must_use]
            pub const fn before(self, other: Self) -> bool {
                let ahead = other.0.wrapping_sub(self.0);
                ahead != 0 && ahead < (1 << (<$int>::BITS - 1))
            }

            /// `before` or equal.
            #[must_use]
            pub const fn at_or_before(self, other: Self) -> bool {
                self.0 == other.0 || self.before(other)
            }
        }
    };
}

sequence_number!(
    /// A 16-bit sequence number, as uTP counts packets (BEP 29).
    Seq16,
    u16,
    i16
);
sequence_number!(
    /// A 32-bit sequence number, as TCP counts octets (RFC 9293, section 3.4).
    Seq32,
    u32,
    i32
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        assert!(Seq16(0xffff).before(Seq16(0)));
        assert!(!Seq16(0).before(Seq16(0xffff)));
        assert_eq!(Seq16(3).distance_from(Seq16(0xfffe)), 5);
        assert_eq!(Seq16(0xfffe).offset_from(Seq16(3)), -5);
        assert!(Seq32(u32::MAX).before(Seq32(7)));
    }

    #[test]
    fn opposite_points_are_not_ordered() {
        assert!(!Seq16(0).before(Seq16(0x8000)));
        assert!(!Seq16(0x8000).before(Seq16(0)));
    }

    #[test]
    fn equality_counts_as_at_or_before() {
        assert!(Seq16(9).at_or_before(Seq16(9)));
        assert!(!Seq16(9).before(Seq16(9)));
    }
}
