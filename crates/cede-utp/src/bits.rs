//! A ring of bits, of which 64 at a time are read from any place.

use alloc::vec;
use alloc::vec::Vec;

/// Bits of a word.
pub(crate) const WORD_BITS: usize = u64::BITS as usize;

/// A power of two of bits, at least one word of them; places beyond the last are those of the first again.
#[derive(Debug, Default)]
pub(crate) struct BitRing {
    words: Vec<u64>,
}

impl BitRing {
    /// `bits` bits, none of which is set; rounded up to a power of two and a whole word.
    pub fn new(bits: usize) -> Self {
        Self { words: vec![0; bits.next_power_of_two().div_ceil(WORD_BITS)] }
    }

    /// True for a ring without room.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    fn place(&self, index: usize) -> (usize, usize) {
        ((index / WORD_BITS) & self.words.len().wrapping_sub(1), index % WORD_BITS)
    }

    pub fn is_set(&self, index: usize) -> bool {
        let (word, bit) = self.place(index);
        self.words.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    pub fn set(&mut self, index: usize) {
        let (word, bit) = self.place(index);
        if let Some(word) = self.words.get_mut(word) {
            *word |= 1 << bit;
        }
    }

    pub fn clear(&mut self, index: usize) {
        let (word, bit) = self.place(index);
        if let Some(word) = self.words.get_mut(word) {
            *word &= !(1 << bit);
        }
    }

    /// The 64 places from `index` on as the bits of a word, the first of them the least significant.
    pub fn word_from(&self, index: usize) -> u64 {
        if self.words.is_empty() {
            return 0;
        }
        let (word, shift) = self.place(index);
        let low = self.words[word] >> shift;
        let high = self.words[(word + 1) & (self.words.len() - 1)];
        // Shifted in two steps, since one of 64 is none.
        low | high << 1 << (WORD_BITS - 1 - shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_agree_with_single_bits_wherever_they_begin() {
        let mut random = cede_units::Stream::named(1, "bits");
        for bits in [64, 128, 4096] {
            let mut ring = BitRing::new(bits);
            for _ in 0..bits {
                let index = random.below(1 << 40) as usize;
                if random.chance(0.6) { ring.set(index) } else { ring.clear(index) }
            }
            for first in (0..2 * bits).step_by(7) {
                let slow = (0..WORD_BITS).fold(0, |word, k| word | u64::from(ring.is_set(first + k)) << k);
                assert_eq!(ring.word_from(first), slow, "{bits} bits, from {first}");
            }
        }
    }

    #[test]
    fn a_ring_without_room_holds_nothing() {
        let mut ring = BitRing::default();
        ring.set(3);
        assert_eq!((ring.is_set(3), ring.word_from(0)), (false, 0));
    }
}
