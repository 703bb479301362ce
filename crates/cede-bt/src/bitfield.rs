//! A set of pieces.

use alloc::vec;
use alloc::vec::Vec;

/// A set of pieces.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bitfield {
    words: Vec<u64>,
    len: u32,
    count: u32,
}

impl Bitfield {
    /// None of `len` pieces.
    #[must_use]
    pub fn none(len: u32) -> Self {
        Self { words: vec![0; len.div_ceil(64) as usize], len, count: 0 }
    }

    /// All of `len` pieces.
    #[must_use]
    pub fn all(len: u32) -> Self {
        let mut full = Self::none(len);
        (0..len).for_each(|piece| {
            full.insert(piece);
        });
        full
    }

    /// Reads the octets of a bitfield message; `None` where there are too many or too few, or a spare bit is set.
    #[must_use]
    pub fn from_octets(octets: &[u8], len: u32) -> Option<Self> {
        if octets.len() != len.div_ceil(8) as usize {
            return None;
        }
        let mut read = Self::none(len);
        for (octet, at) in octets.iter().zip((0..).step_by(8)) {
            for bit in (0..8).filter(|bit| octet & (0x80 >> bit) != 0) {
                if at + bit >= len {
                    return None;
                }
                read.insert(at + bit);
            }
        }
        Some(read)
    }

    /// The octets of a bitfield message.
    #[must_use]
    pub fn to_octets(&self) -> Vec<u8> {
        let mut octets = vec![0; self.len.div_ceil(8) as usize];
        for piece in self.iter() {
            octets[piece as usize / 8] |= 0x80 >> (piece % 8);
        }
        octets
    }

    /// Of how many pieces it tells.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// How many are in it.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// None is in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All are in it.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.count == self.len
    }

    /// Whether a piece is in it.
    #[must_use]
    pub fn has(&self, piece: u32) -> bool {
        self.words.get(piece as usize / 64).is_some_and(|word| word >> (piece % 64) & 1 != 0)
    }

    /// Puts a piece in, and says whether it was not there before. One that there is not is ignored.
    pub fn insert(&mut self, piece: u32) -> bool {
        let new = piece < self.len && !self.has(piece);
        if new {
            self.words[piece as usize / 64] |= 1 << (piece % 64);
            self.count += 1;
        }
        new
    }

    /// Takes a piece out, and says whether it was there.
    pub fn remove(&mut self, piece: u32) -> bool {
        let there = self.has(piece);
        if there {
            self.words[piece as usize / 64] &= !(1 << (piece % 64));
            self.count -= 1;
        }
        there
    }

    /// The pieces in it, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        ones(self.words.iter().copied())
    }

    /// Those that are in `other` as well.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        let words: Vec<u64> =
            self.words.iter().zip(&other.words).map(|(mine, theirs)| mine & theirs).collect();
        let count = words.iter().map(|word| word.count_ones()).sum();
        Self { words, len: self.len.min(other.len), count }
    }

    /// Those that are not in `other`, in order.
    pub fn iter_beyond<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = u32> + 'a {
        ones(self.words.iter().zip(&other.words).map(|(mine, theirs)| mine & !theirs))
    }

    /// How many are in this and not in `other`.
    #[must_use]
    pub fn count_beyond(&self, other: &Self) -> u32 {
        self.words.iter().zip(&other.words).map(|(mine, theirs)| (mine & !theirs).count_ones()).sum()
    }
}

/// The places of the set bits of words.
fn ones(words: impl Iterator<Item = u64>) -> impl Iterator<Item = u32> {
    words.zip((0..).step_by(64)).flat_map(|(word, base)| Ones(word).map(move |bit| base + bit))
}

/// The places of a word's set bits.
struct Ones(u64);

impl Iterator for Ones {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let at = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (at < 64).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bitfield_is_the_same_after_the_wire() {
        let mut set = Bitfield::none(70);
        for piece in [0, 7, 8, 63, 64, 69] {
            assert!(set.insert(piece) && !set.insert(piece));
        }
        assert!(!set.insert(70));
        let octets = set.to_octets();
        assert_eq!((octets[0], octets[1], octets.len()), (0x81, 0x80, 9));
        assert_eq!(Bitfield::from_octets(&octets, 70).unwrap(), set);
        assert!(set.iter().eq([0, 7, 8, 63, 64, 69]));
        assert!(set.remove(63) && !set.has(63) && set.count() == 5);
        assert_eq!(Bitfield::all(70).count_beyond(&set), 65);
        let both = set.within(&Bitfield::from_octets(&[0x80, 0xff, 0, 0, 0, 0, 0, 0, 4], 70).unwrap());
        assert!(set.iter_beyond(&both).eq([7, 64]));
        assert!(both.iter().eq([0, 8, 69]) && both.count() == 3 && both.len() == 70);
        assert!(Bitfield::all(70).is_full());
    }

    #[test]
    fn spare_bits_and_wrong_lengths_are_refused() {
        assert!(Bitfield::from_octets(&[0xff], 7).is_none());
        assert!(Bitfield::from_octets(&[0xfe], 7).is_some());
        assert!(Bitfield::from_octets(&[0xfe, 0], 7).is_none());
    }
}
