//! Packets that arrived ahead of a gap: a ring indexed by sequence number.

use crate::bits::{BitRing, WORD_BITS};
use crate::mask::{FAR_HEAD_BYTES, MAX_MASK_BYTES, MaskBuffers};
use crate::parts::Arriving;
use alloc::boxed::Box;
use alloc::vec::Vec;
use cede_units::Seq16;
use cede_wire::Payload;

/// A quarter of the sequence space.
pub(crate) const MAX_PACKETS: u16 = 1 << 14;
/// As many as a word of the map has bits.
const INITIAL_SLOTS: usize = WORD_BITS;

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
        self.0.as_ref().map_or(0, |ring| ring.held_bytes + ring.parts.len_bytes())
    }

    /// True where some part of this packet has arrived.
    pub fn has_part(&self, seq: Seq16) -> bool {
        self.0.as_ref().is_some_and(|ring| ring.parts.has(seq))
    }

    /// Takes in a part of a packet, see [`Arriving::take_in`]; the packet's payload once it is whole.
    pub fn take_in_part(&mut self, seq: Seq16, start: u16, whole_bytes: u16, part: &[u8]) -> Option<Vec<u8>> {
        self.0.get_or_insert_default().parts.take_in(seq, start, whole_bytes, part)
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

    /// Gives the memory back where nothing is in it but parts of packets, of which all parts will be sent again.
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

    /// Writes the mask of what is held beyond `ack` (bit i, least significant first, is packet `ack + 2 + i`) as far as
    /// there is room for it, and returns its length: [`Reorder::mask_len_bytes`], or all of `mask`, whose length is a
    /// multiple of four.
    pub fn write_mask(&self, ack: Seq16, mask: &mut [u8]) -> usize {
        self.0.as_ref().map_or(0, |ring| ring.write_mask(ack, mask))
    }

    /// The mask of what is held beyond `ack`, in a buffer that is used again once nobody holds it any more; and behind it,
    /// where `tells_far` and there is any, an extension that tells of what has arrived lately beyond the mask.
    pub fn shared_mask(&mut self, ack: Seq16, tells_far: bool) -> SharedMask {
        let Some(ring) = &mut self.0 else { return SharedMask::default() };
        let mut buffers = core::mem::take(&mut ring.masks);
        let mut mask = SharedMask::default();
        mask.octets = buffers.write(|octets| {
            mask.mask_bytes = ring.write_mask(ack, &mut octets[..MAX_MASK_BYTES]);
            let far = &mut octets[mask.mask_bytes..];
            let far_bytes = if tells_far { ring.write_far(ack, far) } else { 0 };
            mask.has_far = far_bytes > 0;
            mask.mask_bytes + far_bytes
        });
        ring.masks = buffers;
        mask
    }

    /// A mask leaves: what has arrived so far is told.
    pub fn note_told(&mut self) {
        if let Some(ring) = &mut self.0 {
            ring.untold = None;
        }
    }
}

/// A mask too long for a head, see [`Reorder::shared_mask`].
#[derive(Debug, Default)]
pub(crate) struct SharedMask {
    /// The mask, and the extension behind it if there is one.
    pub octets: Payload,
    pub mask_bytes: usize,
    pub has_far: bool,
}

/// A ring indexed by sequence number, and what it holds.
#[derive(Debug, Default)]
struct Ring {
    ring: Vec<Payload>,
    /// A bit for each place of the ring: a packet is in it. Masks are read from here 64 packets at a time.
    map: BitRing,
    held: u32,
    held_bytes: u64,
    /// The farthest packet held; means something only while any is.
    farthest: Seq16,
    /// The nearest and the farthest packet that no mask has told yet.
    untold: Option<(Seq16, Seq16)>,
    masks: MaskBuffers,
    /// Packets of which some parts are missing, beyond a gap or not.
    parts: Arriving,
}

impl Ring {
    fn index(&self, seq: Seq16) -> usize {
        usize::from(seq.0) & (self.ring.len().max(1) - 1)
    }

    fn holds(&self, seq: Seq16, ahead: u16) -> bool {
        // Farther ahead than the ring is long, the place would be that of another packet.
        usize::from(ahead) < self.ring.len() && self.map.is_set(self.index(seq))
    }

    fn insert(&mut self, seq: Seq16, ahead: u16, payload: Payload) {
        if usize::from(ahead) + 2 > self.ring.len() {
            self.grow(seq.sub(ahead), usize::from(ahead) + 2);
        }
        if self.held == 0 || self.farthest.before(seq) {
            self.farthest = seq;
        }
        let (nearest, farthest) = self.untold.unwrap_or((seq, seq));
        self.untold = Some((
            if seq.before(nearest) { seq } else { nearest },
            if farthest.before(seq) { seq } else { farthest },
        ));
        self.held += 1;
        self.held_bytes += u64::from(payload.len());
        let index = self.index(seq);
        self.map.set(index);
        self.ring[index] = payload;
    }

    fn take(&mut self, seq: Seq16) -> Option<Payload> {
        let index = self.index(seq);
        if self.held == 0 || !self.map.is_set(index) {
            return None;
        }
        let payload = core::mem::take(&mut self.ring[index]);
        self.map.clear(index);
        self.held -= 1;
        self.held_bytes -= u64::from(payload.len());
        Some(payload)
    }

    /// Makes room for `needed` packets from `first` on.
    fn grow(&mut self, first: Seq16, needed: usize) {
        let slots = needed.next_power_of_two().max(INITIAL_SLOTS);
        let (masks, untold) = (core::mem::take(&mut self.masks), self.untold);
        let mut larger = Self { map: BitRing::new(slots), masks, ..Self::default() };
        larger.ring.resize_with(slots, Payload::default);
        for ahead in 0..self.ring.len() as u16 {
            let seq = first.add(ahead);
            if let Some(payload) = self.take(seq) {
                larger.insert(seq, ahead, payload);
            }
        }
        *self = Self { untold, ..larger };
    }

    fn mask_len_bytes(&self, ack: Seq16) -> usize {
        if self.held == 0 {
            return 0;
        }
        let span = usize::from(self.farthest.distance_from(ack.add(2))) + 1;
        span.min(MAX_MASK_BYTES * 8).div_ceil(32) * 4
    }

    fn write_mask(&self, ack: Seq16, mask: &mut [u8]) -> usize {
        let len = self.mask_len_bytes(ack).min(mask.len());
        self.write_bits(ack.add(2), &mut mask[..len]);
        len
    }

    /// Writes the extension, header included, that tells what has arrived lately beyond the longest mask; returns its length,
    /// zero where there is nothing to tell.
    fn write_far(&self, ack: Seq16, octets: &mut [u8]) -> usize {
        let Some((nearest, farthest)) = self.untold else { return 0 };
        let beyond = ack.add(2);
        let end = i32::from(farthest.distance_from(beyond) as i16) + 1;
        let start = i32::from(nearest.distance_from(beyond) as i16) - FAR_REPEATED;
        let longest = 8 * (octets.len() - FAR_HEAD_BYTES).min(MAX_MASK_BYTES) as i32;
        let start = start.max(end - longest).max(8 * MAX_MASK_BYTES as i32);
        if end <= start {
            return 0;
        }
        let len = (end - start).cast_unsigned().div_ceil(32) as usize * 4;
        octets[..FAR_HEAD_BYTES].copy_from_slice(&far_head(start as u16, len));
        self.write_bits(beyond.add(start as u16), &mut octets[FAR_HEAD_BYTES..FAR_HEAD_BYTES + len]);
        FAR_HEAD_BYTES + len
    }

    /// The places from `first` on as bits, none of which is beyond the farthest packet.
    fn write_bits(&self, mut first: Seq16, octets: &mut [u8]) {
        for octets in octets.chunks_mut(8) {
            // Nothing is held beyond the farthest, so where the ring ends before the word does, what follows in it
            // would be told twice: it is cut off.
            let left = usize::from(self.farthest.distance_from(first)) + 1;
            let keep = u64::MAX >> WORD_BITS.saturating_sub(left);
            let word = (self.map.word_from(self.index(first)) & keep).to_le_bytes();
            octets.copy_from_slice(&word[..octets.len()]);
            first = first.add(WORD_BITS as u16);
        }
    }
}

/// Packets below the news that a far mask tells again, in case that an acknowledgement before was lost.
const FAR_REPEATED: i32 = 256;

/// How the extension begins: as the last of its chain, with its length and the place of its first bit.
fn far_head(start: u16, mask_bytes: usize) -> [u8; FAR_HEAD_BYTES] {
    let [high, low] = start.to_be_bytes();
    [0, (FAR_HEAD_BYTES - 2 + mask_bytes) as u8, high, low]
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
        assert_eq!(reorder.write_mask(Seq16(9), &mut mask), 40);
        assert_eq!(reorder.write_mask(Seq16(9), &mut [0; 32]), 32, "what does not fit is left out");
        for (bit, bytes) in [(2015, 252), (2016, 252), (9000, 252)] {
            reorder.insert(Seq16(11 + bit), 1 + bit, Payload::Empty);
            assert_eq!(reorder.write_mask(Seq16(9), &mut mask), bytes, "bit {bit}");
        }
        assert_eq!(mask[251], 0x80, "the last packet that a mask can tell of");
    }

    #[test]
    fn masks_outlive_what_they_were_written_from_and_their_buffers_are_used_again() {
        let mut reorder = Reorder::default();
        let mask = |reorder: &mut Reorder| reorder.shared_mask(Seq16(9), false).octets;
        assert!(mask(&mut reorder).is_empty());
        reorder.insert(Seq16(11 + 500), 501, Payload::Empty);
        let first = mask(&mut reorder);
        reorder.insert(Seq16(11), 1, Payload::Empty);
        let second = mask(&mut reorder).to_vec();
        assert_eq!((first.len(), second.len()), (64, 64));
        assert_eq!((first.to_vec()[0], second[0]), (0, 1));
        let place = first.as_slice().map(<[u8]>::as_ptr);
        drop(first);
        let again: Vec<_> = (0..8).map(|_| mask(&mut reorder).as_slice().map(<[u8]>::as_ptr)).collect();
        assert!(again.contains(&place), "the buffer is one of few");
    }

    #[test]
    fn far_masks_tell_the_news_beyond_the_mask_and_a_little_before_it() {
        let mut random = cede_units::Stream::named(1, "far");
        for _ in 0..300 {
            let (ack, mut reorder) = (Seq16(random.next_u16()), Reorder::default());
            let mut held = Vec::new();
            for _ in 0..6 {
                let base = 1 + random.below(9000) as u16;
                let news: Vec<u16> = (0..40).map(|_| base + random.below(1500) as u16).collect();
                let news: Vec<u16> = news.into_iter().filter(|ahead| !held.contains(ahead)).collect();
                for &ahead in &news {
                    if !reorder.holds(ack.add(1 + ahead), ahead) {
                        reorder.insert(ack.add(1 + ahead), ahead, Payload::Empty);
                        held.push(ahead);
                    }
                }
                let mask = reorder.shared_mask(ack, true);
                reorder.note_told();
                let octets = mask.octets.to_vec();
                assert_eq!(mask.has_far, octets.len() > mask.mask_bytes);
                if let Some([0, len, high, low, far @ ..]) = octets.get(mask.mask_bytes..) {
                    assert_eq!(usize::from(*len), far.len() + 2);
                    let start = u16::from_be_bytes([*high, *low]);
                    for bit in 0..8 * far.len() as u16 {
                        let told = far[usize::from(bit / 8)] >> (bit % 8) & 1 == 1;
                        assert_eq!(told, held.contains(&(1 + start + bit)), "{start} {bit}");
                    }
                    assert!(news.iter().all(|&ahead| ahead - 1 < start + 8 * far.len() as u16));
                } else {
                    assert!(news.iter().all(|&ahead| ahead <= 2016));
                }
            }
        }
    }

    #[test]
    fn masks_agree_with_what_is_held_wherever_the_ring_begins() {
        let mut random = cede_units::Stream::named(1, "masks");
        for _ in 0..2000 {
            let mut reorder = Reorder::default();
            let ack = Seq16(random.next_u16());
            let farthest = if random.chance(0.5) { 400 } else { 4000 };
            let reach = 1 + random.below(farthest) as u16;
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
            for bit in 0..8 * MAX_MASK_BYTES as u16 {
                let told = mask[usize::from(bit / 8)] >> (bit % 8) & 1 == 1;
                assert_eq!(told, reorder.holds(ack.add(2 + bit), 1 + bit), "bit {bit} of {len} octets");
            }
        }
    }
}
