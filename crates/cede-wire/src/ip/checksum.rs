//! The Internet checksum (RFC 1071).

use core::net::IpAddr;

/// A ones' complement sum in the making. Every run of octets but the last must have an even length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checksum {
    sum: u64,
}

impl Checksum {
    /// The sum of nothing.
    pub const ZERO: Self = Self { sum: 0 };

    /// The sum with `octets` too, an odd last one as the high half of a 16-bit word (RFC 1071, section 4.1).
    #[must_use]
    pub fn with(mut self, octets: &[u8]) -> Self {
        // The sum does not care how wide the words are, as long as the carries are folded in at the end (section 2C).
        let mut words = octets.chunks_exact(4);
        for word in &mut words {
            self.sum += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        }
        for (place, &octet) in words.remainder().iter().enumerate() {
            self.sum += u64::from(octet) << if place % 2 == 0 { 8 } else { 0 };
        }
        self
    }

    /// The sum with the pseudo-header of a transport protocol too: addresses, protocol and length.
    #[must_use]
    pub fn with_pseudo_header(self, source: IpAddr, destination: IpAddr, protocol: u8, len: u32) -> Self {
        let sum = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.with(&source.octets()).with(&destination.octets())
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                self.with(&source.octets()).with(&destination.octets())
            }
            // No packet has both; the sum of neither matches nothing.
            _ => self,
        };
        sum.with(&len.to_be_bytes()).with(&[0, protocol])
    }

    /// The field's value: the complement of the sum. Over octets that hold a right checksum it is zero.
    #[must_use]
    pub const fn finish(self) -> u16 {
        let mut sum = self.sum;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071, section 3: the octets 00 01 f2 03 f4 f5 f6 f7 sum to ddf2.
    #[test]
    fn the_example_of_rfc_1071_sums_as_printed() {
        let octets = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(!Checksum::ZERO.with(&octets).finish(), 0xddf2);
        assert_eq!(!Checksum::ZERO.with(&octets[..2]).with(&octets[2..]).finish(), 0xddf2);
    }

    #[test]
    fn an_odd_octet_is_the_high_half_of_its_word() {
        assert_eq!(!Checksum::ZERO.with(&[0, 1, 2, 3, 0xab]).finish(), 0x0204 + 0xab00);
        assert_eq!(!Checksum::ZERO.with(&[0, 1, 2]).finish(), 0x0201);
    }
}
