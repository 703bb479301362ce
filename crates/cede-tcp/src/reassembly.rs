//! Received data on its way to the reader: put in order, and what lies beyond a gap reported by SACK blocks.
//!
//! Source: RFC 9293 section 3.10.7.4; RFC 2018 section 4 (first the block with the newest segment, then those most
//! recently reported); RFC 2883 section 4 (what arrived twice).
//!
//! **What it leaves out.** Data once acknowledged selectively is never dropped again.
//!
//! **How it was validated.** The tests below, and whole connections over channels that lose, duplicate and reorder.

use crate::payloads::Payloads;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use cede_wire::Payload;

/// Blocks remembered, and at most reported.
const BLOCKS_MAX: usize = 4;
/// Pieces that may be held out of order, or wait for the reader: a peer that sends one octet at a time must not turn
/// a window's worth of octets into as many entries.
const PIECES_MAX: usize = 1 << 15;

/// A piece of the stream beyond a gap.
#[derive(Clone, Debug)]
struct Piece {
    start: u64,
    payload: Payload,
}

impl Piece {
    const fn end(&self) -> u64 {
        self.start + self.payload.len() as u64
    }
}

/// What became of a segment's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// It continued the stream, and nothing is held beyond it.
    InOrder,
    /// It continued the stream in front of held data: filled a gap wholly or in part.
    FilledGap,
    /// It lies beyond a gap.
    OutOfOrder,
    /// Nothing of it was new, or there was no room.
    Nothing,
}

/// The receiver's buffer. Offsets count the stream's octets from 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    /// RCV.NXT as a stream offset, FIN not counted.
    next: u64,
    /// In order, for the reader.
    ready: Payloads,
    unread_bytes: u64,
    /// Beyond a gap, by rising offset, without overlap; neighbours joined where that costs no copy.
    held: VecDeque<Piece>,
    /// The runs that `held` makes, by rising offset, never touching.
    runs: VecDeque<(u64, u64)>,
    /// Runs as last reported, the newest first.
    recent: Vec<(u64, u64)>,
    /// What of the last arrival had been there before.
    twice: Option<(u64, u64)>,
}

impl Reassembly {
    pub(crate) fn new() -> Self {
        Self { recent: Vec::with_capacity(BLOCKS_MAX + 1), ..Self::default() }
    }

    /// The offset of the next octet expected.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Octets in order that the reader has not taken.
    pub(crate) const fn unread_bytes(&self) -> u64 {
        self.unread_bytes
    }

    /// Something is held beyond a gap.
    pub(crate) fn has_gap(&self) -> bool {
        !self.held.is_empty()
    }

    /// The next run of octets in order.
    pub(crate) fn read(&mut self) -> Option<Payload> {
        let payload = self.ready.pop()?;
        self.unread_bytes -= u64::from(payload.len());
        Some(payload)
    }

    /// Takes the next octets in order off, at most `n`.
    pub(crate) fn read_up_to(&mut self, n: u32) -> Option<Payload> {
        let payload = self.ready.pop_up_to(n)?;
        self.unread_bytes -= u64::from(payload.len());
        Some(payload)
    }

    /// Takes in `payload`, whose first octet has the offset `start`; octets from `limit` on do not fit the window.
    pub(crate) fn insert(&mut self, start: i64, mut payload: Payload, limit: u64) -> Arrival {
        // What lies below the stream's next octet is old.
        let next = self.next as i64;
        if start < next {
            self.note_old(start, payload.len());
            payload.skip(next.saturating_sub(start).min(i64::from(payload.len())) as u32);
        }
        let start = start.max(next) as u64;
        let room = limit.saturating_sub(start).min(u64::from(payload.len())) as u32;
        let payload = payload.split_to(room);
        if payload.is_empty() {
            return Arrival::Nothing;
        }
        if start == self.next { self.insert_next(payload) } else { self.insert_beyond(start, payload) }
    }

    /// A segment of `len` octets from `start` on, which is old or begins with what is.
    pub(crate) fn note_old(&mut self, start: i64, len: u32) {
        let end = start.saturating_add(i64::from(len)).min(self.next as i64);
        if (0..end).contains(&start) {
            self.twice = Some((start as u64, end as u64));
        }
    }

    /// Whether something of the last arrival had been there before, and nobody has taken it.
    pub(crate) const fn has_twice(&self) -> bool {
        self.twice.is_some()
    }

    /// What of the last arrival had been there before, once.
    pub(crate) const fn take_twice(&mut self) -> Option<(u64, u64)> {
        self.twice.take()
    }

    fn insert_next(&mut self, payload: Payload) -> Arrival {
        if self.ready.len() >= PIECES_MAX {
            return Arrival::Nothing;
        }
        let had_gap = self.has_gap();
        self.deliver(payload);
        if had_gap {
            self.release();
            return Arrival::FilledGap;
        }
        Arrival::InOrder
    }

    /// Hands octets to the reader.
    fn deliver(&mut self, payload: Payload) {
        let len = u64::from(payload.len());
        self.next += len;
        self.unread_bytes += len;
        self.ready.push(payload);
    }

    /// Hands on what the stream has reached of the held pieces.
    fn release(&mut self) {
        while self.held.front().is_some_and(|piece| piece.start <= self.next) {
            let Some(mut piece) = self.held.pop_front() else { break };
            let old = (self.next - piece.start).min(u64::from(piece.payload.len())) as u32;
            piece.payload.skip(old);
            if !piece.payload.is_empty() {
                self.deliver(piece.payload);
            }
        }
        while self.runs.front().is_some_and(|&(_, end)| end <= self.next) {
            self.runs.pop_front();
        }
        let next = self.next;
        self.recent.retain(|&(_, end)| end > next);
        self.refill_recent();
    }

    /// Where gaps closed, older runs take the vacant places: as many blocks as possible (RFC 2018, section 4).
    fn refill_recent(&mut self) {
        let wanted = self.runs.len().min(BLOCKS_MAX);
        for &run in self.runs.iter().rev() {
            if self.recent.len() >= wanted {
                return;
            }
            if !self.recent.iter().any(|&(start, end)| start >= run.0 && end <= run.1) {
                self.recent.push(run);
            }
        }
    }

    /// Holds what is new of a payload beyond a gap.
    fn insert_beyond(&mut self, start: u64, mut payload: Payload) -> Arrival {
        if self.held.len() >= PIECES_MAX {
            return Arrival::Nothing;
        }
        let end = start + u64::from(payload.len());
        let mut at = self.held.partition_point(|piece| piece.end() <= start);
        let (mut from, mut fresh) = (start, false);
        while from < end {
            let (piece_start, piece_end) =
                self.held.get(at).map_or((end, end), |piece| (piece.start, piece.end()));
            let held = piece_start <= from;
            let until = if held { piece_end } else { piece_start }.min(end);
            let part = payload.split_to((until - from) as u32);
            at = if held { at + 1 } else { self.hold(at, Piece { start: from, payload: part }) };
            if held {
                let first = self.twice.filter(|&(_, end)| end == from).map_or(from, |(start, _)| start);
                self.twice = Some((first, until));
            }
            fresh |= !held;
            from = until;
        }
        self.note_run(start, end);
        if fresh { Arrival::OutOfOrder } else { Arrival::Nothing }
    }

    /// Enters a piece in front of index `at`, joined to its predecessor where they touch and can be; answers the
    /// index of the piece that follows it.
    fn hold(&mut self, at: usize, piece: Piece) -> usize {
        let payload = match at.checked_sub(1).and_then(|before| self.held.get_mut(before)) {
            Some(before) if before.end() == piece.start => match before.payload.try_extend(piece.payload) {
                Ok(()) => return at,
                Err(payload) => payload,
            },
            _ => piece.payload,
        };
        self.held.insert(at, Piece { start: piece.start, payload });
        at + 1
    }

    /// Enters [start, end) among the runs, joined with those that it touches, and as the newest.
    fn note_run(&mut self, start: u64, end: u64) {
        let first = self.runs.partition_point(|run| run.1 < start);
        let mut joined = (start, end);
        while let Some(&run) = self.runs.get(first).filter(|run| run.0 <= end) {
            joined = (joined.0.min(run.0), joined.1.max(run.1));
            self.runs.remove(first);
        }
        self.runs.insert(first, joined);
        self.recent.retain(|&(start, end)| start < joined.0 || end > joined.1);
        self.recent.truncate(BLOCKS_MAX - 1);
        self.recent.insert(0, joined);
    }

    /// The runs beyond the gap as an acknowledgement reports them, the newest first.
    pub(crate) fn blocks(&self) -> &[(u64, u64)] {
        &self.recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use cede_units::Stream;
    use cede_wire::pattern_octet;

    const OPEN: u64 = u64::MAX;

    fn pattern(start: u64, len: u32) -> (i64, Payload) {
        (start as i64, Payload::Pattern { start, len })
    }

    fn insert(reassembly: &mut Reassembly, start: u64, len: u32) -> Arrival {
        let (start, payload) = pattern(start, len);
        reassembly.insert(start, payload, OPEN)
    }

    #[test]
    fn data_in_order_goes_straight_to_the_reader() {
        let mut reassembly = Reassembly::new();
        assert_eq!(insert(&mut reassembly, 0, 100), Arrival::InOrder);
        assert_eq!(insert(&mut reassembly, 100, 100), Arrival::InOrder);
        assert_eq!(insert(&mut reassembly, 50, 100), Arrival::Nothing);
        assert_eq!(insert(&mut reassembly, 150, 100), Arrival::InOrder);
        assert_eq!((reassembly.next(), reassembly.unread_bytes()), (250, 250));
        assert_eq!(reassembly.read_up_to(7).map(|payload| payload.len()), Some(7));
        assert_eq!(reassembly.read().map(|payload| payload.len()), Some(243));
        assert!(reassembly.read().is_none());
    }

    #[test]
    fn blocks_name_the_newest_run_first_and_then_the_recent_ones() {
        let mut reassembly = Reassembly::new();
        for start in [200, 600, 400, 800, 1000] {
            assert_eq!(insert(&mut reassembly, start, 100), Arrival::OutOfOrder);
        }
        assert_eq!(reassembly.blocks(), [(1000, 1100), (800, 900), (400, 500), (600, 700)]);
        // Joins two runs into one, which is now the newest.
        insert(&mut reassembly, 500, 100);
        assert_eq!(reassembly.blocks(), [(400, 700), (1000, 1100), (800, 900)]);
        // The first gap closes; the run at 200 was never in the last report, and is gone.
        assert_eq!(insert(&mut reassembly, 0, 200), Arrival::FilledGap);
        assert_eq!(reassembly.next(), 300);
        assert_eq!(insert(&mut reassembly, 300, 100), Arrival::FilledGap);
        assert_eq!(
            (reassembly.next(), reassembly.blocks()),
            (700, vec![(1000, 1100), (800, 900)].as_slice())
        );
    }

    #[test]
    fn places_that_closed_gaps_leave_go_to_older_runs() {
        let mut reassembly = Reassembly::new();
        for start in [900, 700, 500, 300, 100] {
            insert(&mut reassembly, start, 100);
        }
        assert_eq!(reassembly.blocks(), [(100, 200), (300, 400), (500, 600), (700, 800)]);
        insert(&mut reassembly, 0, 100);
        assert_eq!(reassembly.blocks(), [(300, 400), (500, 600), (700, 800), (900, 1000)]);
    }

    #[test]
    fn what_arrived_twice_is_told_once() {
        let mut reassembly = Reassembly::new();
        let mut twice = |start, len| {
            insert(&mut reassembly, start, len);
            (reassembly.take_twice(), reassembly.take_twice())
        };
        assert_eq!(twice(0, 100), (None, None));
        assert_eq!(twice(20, 30), (Some((20, 50)), None), "wholly");
        assert_eq!(twice(50, 100), (Some((50, 100)), None), "in part");
        assert_eq!(twice(200, 100), (None, None));
        assert_eq!(twice(300, 100), (None, None));
        assert_eq!(twice(190, 60), (Some((200, 250)), None), "of what is held beyond a gap");
        assert_eq!(twice(250, 200), (Some((250, 400)), None), "pieces that touch");
        reassembly.note_old(-5, 3);
        reassembly.note_old(400, 10);
        assert_eq!(reassembly.take_twice(), None, "below the stream, and what is not old");
    }

    #[test]
    fn octets_beyond_the_window_are_cut_off() {
        let mut reassembly = Reassembly::new();
        let (start, payload) = pattern(0, 100);
        assert_eq!(reassembly.insert(start, payload, 60), Arrival::InOrder);
        assert_eq!(reassembly.next(), 60);
        let (start, payload) = pattern(60, 1);
        assert_eq!(reassembly.insert(start, payload, 60), Arrival::Nothing);
    }

    #[test]
    fn single_octets_beyond_a_gap_are_bounded() {
        let mut reassembly = Reassembly::new();
        for i in 0..3 * PIECES_MAX as u64 {
            reassembly.insert(2 + 2 * i as i64, Payload::copy_from(&[0]), OPEN);
        }
        assert_eq!((reassembly.held.len(), reassembly.runs.len()), (PIECES_MAX, PIECES_MAX));
    }

    #[test]
    fn overlapping_pieces_in_any_order_make_the_stream_once() {
        let mut random = Stream::named(3, "reassembly");
        for shared in [false, true] {
            for _ in 0..200 {
                one_shuffled_stream(&mut random, shared);
            }
        }
    }

    fn one_shuffled_stream(random: &mut Stream, shared: bool) {
        let mut reassembly = Reassembly::new();
        let mut octets = Vec::new();
        while reassembly.next() < 300 {
            let (start, payload) = pattern(random.below(300), 1 + random.below(40) as u32);
            let payload = if shared { Payload::copy_from(&payload.to_vec()) } else { payload };
            reassembly.insert(start, payload, 300);
            assert_runs_match_pieces(&reassembly);
            while let Some(payload) = reassembly.read() {
                octets.extend(payload.to_vec());
            }
        }
        assert_eq!(octets, (0..300).map(pattern_octet).collect::<Vec<_>>());
        assert!(!reassembly.has_gap() && reassembly.runs.is_empty() && reassembly.blocks().is_empty());
    }

    fn assert_runs_match_pieces(reassembly: &Reassembly) {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for piece in &reassembly.held {
            assert!(piece.start > reassembly.next() && !piece.payload.is_empty());
            match runs.last_mut() {
                Some(run) if run.1 == piece.start => run.1 = piece.end(),
                last => {
                    assert!(last.is_none_or(|run| run.1 < piece.start), "overlap");
                    runs.push((piece.start, piece.end()));
                }
            }
        }
        assert!(runs.iter().eq(reassembly.runs.iter()), "{runs:?} {:?}", reassembly.runs);
        assert!(reassembly.recent.iter().all(|run| runs.contains(run)));
    }
}
