//! The hop limit that most packets of a direction come with.
//!
//! Source: the majority vote of Boyer and Moore (1981), where nearly all votes are alike and only the others are counted. Who is on the
//! way and sends packets in another one's name, as those do that end connections of others, is as far away as it is: its packets have
//! another hop limit than those in whose place they come. Packets that say nothing of a clock have no vote.

/// A hop limit, and how many of a direction's packets had another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct HopLimit {
    /// Zero while there is none: no such packet comes.
    pub value: u8,
    others: u32,
}

impl HopLimit {
    /// That of so many packets, if it is that of all.
    pub(crate) const fn of(value: u8, packets: u32, are_alike: bool) -> Self {
        Self { value, others: if are_alike { 0 } else { packets.div_ceil(2) } }
    }

    /// Counts a packet, with which there are so many.
    #[inline]
    pub(crate) const fn note(&mut self, value: u8, packets: u32) {
        if self.value != value {
            self.note_other(value, packets);
        }
    }

    #[cold]
    const fn note_other(&mut self, value: u8, packets: u32) {
        self.others = self.others.saturating_add(1);
        if self.value == 0 || self.others > packets / 2 {
            // Those before it, of which half had another one.
            *self = Self { value, others: if self.value == 0 { 0 } else { packets / 2 } };
        }
    }

    /// How many more of these packets had it than had another one.
    pub(crate) const fn ahead(&self, packets: u32) -> u32 {
        packets.saturating_sub(self.others.saturating_mul(2))
    }

    /// Counts those that another one stands for.
    pub(crate) const fn join(&mut self, packets: u32, other: &Self, others: u32) {
        if self.value == other.value {
            self.others = self.others.saturating_add(other.others);
            return;
        }
        let (mine, theirs) = (self.ahead(packets), other.ahead(others));
        let value = if mine < theirs { other.value } else { self.value };
        *self =
            Self { value, others: packets.saturating_add(others).saturating_sub(mine.abs_diff(theirs)) / 2 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_most_packets_have_counts() {
        let of = |values: &[u8]| {
            let mut limit = HopLimit::default();
            (1..).zip(values).for_each(|(packets, &value)| limit.note(value, packets));
            (limit.value, limit.ahead(values.len() as u32))
        };
        assert_eq!(of(&[]), (0, 0));
        assert_eq!(of(&[60, 60, 99, 60, 99]), (60, 1));
        assert_eq!(of(&[99, 60, 60, 60]), (60, 2));
        assert_eq!(of(&[60; 1_000]), (60, 1_000));
        assert_eq!(HopLimit::of(60, 9, true).ahead(9), 9);
        assert_eq!(HopLimit::of(60, 9, false).ahead(9), 0);
        let mut both = HopLimit::of(99, 2, true);
        both.join(2, &HopLimit::of(60, 5, true), 5);
        assert_eq!((both.value, both.ahead(7)), (60, 3));
        both.join(7, &HopLimit::of(60, 5, true), 5);
        assert_eq!((both.value, both.ahead(12)), (60, 8));
    }
}
