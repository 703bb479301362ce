//! Packets that arrive in parts, each kept until it is whole.
//!
//! Each part names its place and the length of the whole. What does not fit what came before is dropped: the sender
//! repeats all parts of a packet that is not acknowledged.

use alloc::vec;
use alloc::vec::Vec;
use cede_units::Seq16;

/// Packets that wait for parts: parts of one leave in a row, so few are open at a time.
const MAX_OPEN: usize = 32;
/// Gaps between the parts of one packet. Those of a sound sender come in order, or a few late.
const MAX_GAPS: usize = 32;

/// What waits for parts.
#[derive(Debug, Default)]
pub(crate) struct Arriving(Vec<Opened>);

/// One packet. Ranges are octets of its payload.
#[derive(Debug)]
struct Opened {
    seq: Seq16,
    octets: Vec<u8>,
    /// What is missing, rising: start and end.
    gaps: Vec<(usize, usize)>,
}

impl Arriving {
    /// Octets that are held, and room for those that are missing.
    pub fn len_bytes(&self) -> u64 {
        self.0.iter().map(|opened| opened.octets.len() as u64).sum()
    }

    /// True where some part of this packet has come.
    pub fn has(&self, seq: Seq16) -> bool {
        self.0.iter().any(|opened| opened.seq == seq)
    }

    /// Takes in the octets from `start` on of the packet numbered `seq`, whose payload has `whole_bytes`; the payload once
    /// it is whole.
    pub fn take_in(&mut self, seq: Seq16, start: u16, whole_bytes: u16, part: &[u8]) -> Option<Vec<u8>> {
        let (start, whole_bytes) = (usize::from(start), usize::from(whole_bytes));
        let end = start + part.len();
        if part.is_empty() || end > whole_bytes {
            return None;
        }
        let place = self.place(seq, whole_bytes);
        let opened = &mut self.0[place];
        opened.octets[start..end].copy_from_slice(part);
        opened.fill(start, end);
        match opened.gaps.len() {
            0 => Some(self.0.remove(place).octets),
            1..=MAX_GAPS => None,
            _ => {
                self.0.remove(place);
                None
            }
        }
    }

    /// Where the packet is; one whose length has changed begins anew, and the oldest makes room for another.
    fn place(&mut self, seq: Seq16, whole_bytes: usize) -> usize {
        let known = |opened: &Opened| opened.seq == seq;
        if let Some(place) = self.0.iter().position(known) {
            if self.0[place].octets.len() == whole_bytes {
                return place;
            }
            self.0.remove(place);
        } else if self.0.len() == MAX_OPEN {
            self.0.remove(0);
        }
        self.0.push(Opened { seq, octets: vec![0; whole_bytes], gaps: vec![(0, whole_bytes)] });
        self.0.len() - 1
    }
}

impl Opened {
    /// What lies between `start` and `end` is missing no more.
    fn fill(&mut self, start: usize, end: usize) {
        let left = |&(from, to): &(usize, usize)| [(from, to.min(start)), (from.max(end), to)];
        self.gaps = self.gaps.iter().flat_map(left).filter(|(from, to)| from < to).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEQ: Seq16 = Seq16(7);

    #[test]
    fn a_packet_is_whole_once_each_of_its_octets_has_come_in_whatever_order_and_however_often() {
        let whole: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let part = |start: u16, end: u16| &whole[usize::from(start)..usize::from(end)];
        let mut arriving = Arriving::default();
        for (start, end) in [(500, 1000), (0, 200), (0, 200), (300, 600)] {
            assert_eq!(arriving.take_in(SEQ, start, 1000, part(start, end)), None);
        }
        assert!(arriving.has(SEQ) && arriving.len_bytes() == 1000);
        assert_eq!(arriving.take_in(SEQ, 150, 1000, part(150, 300)), Some(whole.clone()));
        assert!(!arriving.has(SEQ) && arriving.len_bytes() == 0);
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_little_is_kept() {
        let mut arriving = Arriving::default();
        assert_eq!(arriving.take_in(SEQ, 990, 1000, &[0; 11]), None);
        assert_eq!(arriving.take_in(SEQ, 0, 1000, &[]), None);
        assert!(!arriving.has(SEQ));
        assert_eq!(arriving.take_in(SEQ, 0, 1000, &[1; 999]), None);
        // Another length: what was there belongs to something else.
        assert_eq!(arriving.take_in(SEQ, 999, 1001, &[1; 1]), None);
        assert_eq!(arriving.take_in(SEQ, 0, 1001, &[2; 999]), None);
        assert!(arriving.take_in(SEQ, 1000, 1001, &[3]).is_some());
        for seq in 0..1000 {
            arriving.take_in(Seq16(seq), 0, u16::MAX, &[0]);
        }
        assert_eq!(arriving.len_bytes(), MAX_OPEN as u64 * u64::from(u16::MAX));
        for octet in 0..1000 {
            arriving.take_in(Seq16(2000), 2 * octet, 5000, &[0]);
            assert!(arriving.0.iter().all(|opened| opened.gaps.len() <= MAX_GAPS));
        }
    }
}
