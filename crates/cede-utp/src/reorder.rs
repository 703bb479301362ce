//! Packets that arrived ahead of a gap: a ring indexed by sequence number.

use alloc::boxed::Box;
use alloc::vec::Vec;
use cede_units::Seq16;
use cede_wire::Payload;

/// A quarter of the sequence space.
pub(crate) const MAX_PACKETS: u16 = 1 << 14;
/// As many as a word of the map has bits.
const INITIAL_SLOTS: usize = WORD_BITS;
const WORD_BITS: usize = u64::BITS as usize;
/// Octets of the longest mask that is sent: 256 packets, and a head still has room for a close reason.
pub(crate) const MAX_MASK_BYTES: usize = 32;

/// What waits beyond a gap; a word of memory while nothing ever has.
#[derive(Debug, Default)]
pub(crate) struct Reorder(Option<Box<Ring>>);

impl Reorder {
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Packets held.
    pub fn len(&self) -> u32 {
        self.0.as_ref().map_or(0, |ring| ring.held)
    }

    pub fn len_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |ring| ring.held_bytes)
    }

    /// True where the packet `ahead` places beyond the next expected one, numbered `seq`, is held.
    pub fn holds(&self, seq: Seq16, ahead: u16) -> bool {
        self.0.as_ref().is_some_and(|ring| ring.holds(seq, ahead))
    }

    /// Keeps a packet `ahead` places beyond the next expected one; both are in the caller's sequence window.
    pub fn insert(&mut self, seq: Seq16, ahead: u16, payload: Payload) {
        self.0.get_or_insert_default().insert(seq, ahead, payload);
    }

    /// Takes the packet with this number, where it is held.
    pub fn take(&mut self, seq: Seq16) -> Option<Payload> {
        self.0.as_mut()?.take(seq)
    }

    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// Gives the memory back where nothing is in it.
    pub fn release(&mut self) {
        if self.is_empty() {
            self.clear();
        }
    }

    /// Octets of the mask of what is held beyond `ack`: as many multiples of four as it needs, at most
    /// [`MAX_MASK_BYTES`].
    pub fn mask_len_bytes(&self, ack: Seq16) -> usize {
        self.0.as_ref().map_or(0, |ring| ring.mask_len_bytes(ack))
    }

    /// Writes the mask of what is held beyond `ack` (bit i, least significant first, is packet `ack + 2 + i`), and
    /// returns [`Reorder::mask_len_bytes`].
    pub fn write_mask(&self, ack: Seq16, mask: &mut [u8; MAX_MASK_BYTES]) -> usize {
        self.0.as_ref().map_or(0, |ring| ring.write_mask(ack, mask))
    }
}

/// A ring indexed by sequence number, and what it holds.
#[derive(Debug, Default)]
struct Ring {
    ring: Vec<Payload>,
    /// A bit for each place of the ring: a packet is in it. Masks are read from here 64 packets at a time.
    map: Vec<u64>,
    held: u32,
    held_bytes: u64,
    /// The farthest packet held; means something only while any is.
    farthest: Seq16,
}

impl Ring {
    fn index(&self, seq: Seq16) -> usize {
        usize::from(seq.0) & (self.ring.len().max(1) - 1)
    }

    fn holds(&self, seq: Seq16, ahead: u16) -> bool {
        // Farther ahead than the ring is long, the place would be that of another packet.
        usize::from(ahead) < self.ring.len() && self.is_set(self.index(seq))
    }

    fn is_set(&self, index: usize) -> bool {
        self.map.get(index / WORD_BITS).is_some_and(|word| word >> (index % WORD_BITS) & 1 == 1)
    }

    fn insert(&mut self, seq: Seq16, ahead: u16, payload: Payload) {
        if usize::from(ahead) + 2 > self.ring.len() {
            self.grow(seq.sub(ahead), usize::from(ahead) + 2);
        }
        if self.held == 0 || self.farthest.before(seq) {
            self.farthest = seq;
        }
        self.held += 1;
        self.held_bytes += u64::from(payload.len());
        let index = self.index(seq);
        self.map[index / WORD_BITS] |= 1 << (index % WORD_BITS);
        self.ring[index] = payload;
    }

    fn take(&mut self, seq: Seq16) -> Option<Payload> {
        let index = self.index(seq);
        if self.held == 0 || !self.is_set(index) {
            return None;
        }
        let payload = core::mem::take(&mut self.ring[index]);
        self.map[index / WORD_BITS] &= !(1 << (index % WORD_BITS));
        self.held -= 1;
        self.held_bytes -= u64::from(payload.len());
        Some(payload)
    }

    /// Makes room for `needed` packets from `first` on.
    fn grow(&mut self, first: Seq16, needed: usize) {
        let slots = needed.next_power_of_two().max(INITIAL_SLOTS);
        let mut larger = Self::default();
        larger.ring.resize_with(slots, Payload::default);
        larger.map.resize(slots / WORD_BITS, 0);
        for ahead in 0..self.ring.len() as u16 {
            let seq = first.add(ahead);
            if let Some(payload) = self.take(seq) {
                larger.insert(seq, ahead, payload);
            }
        }
        *self = larger;
    }

    /// The places of 64 packets from `first` on as the bits of a word.
    fn word_from(&self, first: Seq16) -> u64 {
        let index = self.index(first);
        let (word, shift) = (index / WORD_BITS, index % WORD_BITS);
        let low = self.map[word] >> shift;
        let high = self.map[(word + 1) & (self.map.len() - 1)];
        // Shifted in two steps, since one of 64 is none.
        low | high << 1 << (WORD_BITS - 1 - shift)
    }

    fn mask_len_bytes(&self, ack: Seq16) -> usize {
        if self.held == 0 {
            return 0;
        }
        let span = usize::from(self.farthest.distance_from(ack.add(2))) + 1;
        span.min(MAX_MASK_BYTES * 8).div_ceil(32) * 4
    }

    fn write_mask(&self, ack: Seq16, mask: &mut [u8; MAX_MASK_BYTES]) -> usize {
        let len = self.mask_len_bytes(ack);
        let mut first = ack.add(2);
        for octets in mask[..len].chunks_mut(8) {
            // Nothing is held beyond the farthest, so where the ring ends before the word does, what follows in it
            // would be told twice: it is cut off.
            let left = usize::from(self.farthest.distance_from(first)) + 1;
            let keep = u64::MAX >> WORD_BITS.saturating_sub(left);
            let word = (self.word_from(first) & keep).to_le_bytes();
            octets.copy_from_slice(&word[..octets.len()]);
            first = first.add(WORD_BITS as u16);
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_held_across_growth_and_wrap() {
        let mut reorder = Reorder::default();
        let expected = Seq16(0xfffa);
        for ahead in [1_u16, 3, 15, 14, 40, 1023] {
            reorder.insert(expected.add(ahead), ahead, Payload::Pattern { start: u64::from(ahead), len: 10 });
        }
        assert_eq!((reorder.len(), reorder.len_bytes()), (6, 60));
        for ahead in 0..1024_u16 {
            let held = [1, 3, 15, 14, 40, 1023].contains(&ahead);
            assert_eq!(reorder.holds(expected.add(ahead), ahead), held, "{ahead}");
            match reorder.take(expected.add(ahead)) {
                Some(Payload::Pattern { start, .. }) => assert_eq!(start, u64::from(ahead)),
                other => assert!(other.is_none() && !held),
            }
        }
        assert!(reorder.is_empty());
    }

    #[test]
    fn the_mask_is_as_long_as_needed_in_steps_of_four() {
        let mut reorder = Reorder::default();
        let mut mask = [0; MAX_MASK_BYTES];
        assert_eq!(reorder.write_mask(Seq16(9), &mut mask), 0);
        reorder.insert(Seq16(11), 1, Payload::Empty);
        assert_eq!((reorder.write_mask(Seq16(9), &mut mask), mask[0]), (4, 1));
        reorder.insert(Seq16(11 + 32), 33, Payload::Empty);
        let mut mask = [0; MAX_MASK_BYTES];
        assert_eq!((reorder.write_mask(Seq16(9), &mut mask), mask[4]), (8, 1));
        reorder.insert(Seq16(11 + 300), 301, Payload::Empty);
        assert_eq!(reorder.write_mask(Seq16(9), &mut [0; MAX_MASK_BYTES]), 32);
    }

    #[test]
    fn masks_agree_with_what_is_held_wherever_the_ring_begins() {
        let mut random = cede_units::Stream::named(1, "masks");
        for _ in 0..2000 {
            let mut reorder = Reorder::default();
            let ack = Seq16(random.next_u16());
            let reach = 1 + random.below(400) as u16;
            for _ in 0..1 + random.below(40) {
                let ahead = 1 + random.below(u64::from(reach)) as u16;
                if !reorder.holds(ack.add(1 + ahead), ahead) {
                    reorder.insert(ack.add(1 + ahead), ahead, Payload::Empty);
                }
            }
            // The missing packet comes, in half of the rounds, and what follows it is delivered.
            let mut ack = ack;
            if random.chance(0.5) {
                ack = ack.add(1);
                while reorder.take(ack.add(1)).is_some() {
                    ack = ack.add(1);
                }
            }
            let mut mask = [0; MAX_MASK_BYTES];
            let len = reorder.write_mask(ack, &mut mask);
            for bit in 0..256_u16 {
                let told = mask[usize::from(bit / 8)] >> (bit % 8) & 1 == 1;
                assert_eq!(told, reorder.holds(ack.add(2 + bit), 1 + bit), "bit {bit} of {len} octets");
            }
        }
    }
}
