//! What is kept of TCP's segments: which of them an acknowledgement is about, and how both clocks differ.
//!
//! The segment that equations 3 and 4 ask for ([`crate::packet::tcp`]) must be found among those seen: with holes in the sequence "the last
//! one" is off by the whole recovery, so segments above a hole, those that fill one and repetitions are left out.
//!
//! **How it was validated.** As [`crate::packet::tcp`].

use crate::packet::length::Length;
use crate::packet::tcp::{ACK, FIN, SYN, Said, is_before};
use crate::store::pool::Pool;
use crate::store::sample::Sample;
use crate::store::samples::Series;
use std::collections::VecDeque;

/// Segments whose acknowledgement is awaited, and runs beyond a hole, that are kept at most.
const PENDING_MAX: usize = 4096;
const RUNS_MAX: usize = 4096;
/// An acknowledgement of a single segment that comes later than this after it was waiting for a second one.
const LONE_ACK_US_MAX: u32 = 30_000;
/// And one of several that comes later than this is not of when these came: one that was is missing. No queue of the receiver's makes it so late.
const ACK_US_MAX: u32 = 10_000_000;
/// One reading in this time is kept of what tells the drift of two clocks.
const DRIFT_BUCKET_US: u64 = 1_000_000;

/// What is kept of one direction.
#[derive(Debug, Default)]
pub(crate) struct TcpSide {
    /// The octet that comes next in order.
    next: u32,
    /// The last acknowledgement of this direction's data.
    acked: u32,
    is_begun: bool,
    has_acks: bool,
    /// The lower half of the number that the last SYN had.
    opened: u16,
    /// The newest segment in order, where it is the only one awaited.
    newest: Option<Segment>,
    /// More than that.
    more: Option<Box<More>>,
    /// The least difference of both clocks in the current second.
    reverse: Option<Sample>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    begin: u32,
    end: u32,
    clock: u32,
    time: u32,
}

#[derive(Debug, Default)]
struct More {
    pending: VecDeque<Segment>,
    /// Octets received beyond the next one, as ranges in order.
    runs: Vec<(u32, u32)>,
}

impl TcpSide {
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        let of = |more: &More| {
            size_of::<More>() + more.pending.capacity() * size_of::<Segment>() + more.runs.capacity() * 8
        };
        self.more.as_deref().map_or(0, of)
    }

    /// The least difference of both clocks in the second that is not over.
    pub(crate) const fn latest_difference(&self) -> Option<Sample> {
        self.reverse
    }

    /// A SYN: what it opens is counted from another number, unless it repeats the one before it. Ports come back, and what is new then
    /// would look like repetitions of what was acknowledged long ago.
    fn open(&mut self, seq: u32) {
        let opened = seq as u16;
        if opened != self.opened {
            *self = Self { opened, reverse: self.reverse, ..Self::default() };
        }
    }

    /// Data of this direction; true where the bookkeeping overflowed.
    fn data(&mut self, segment: Segment) -> bool {
        if !self.is_begun {
            (self.is_begun, self.next) = (true, segment.begin);
        }
        let has_holes = self.more.as_ref().is_some_and(|more| !more.runs.is_empty());
        if segment.begin == self.next && !has_holes {
            self.next = segment.end;
            return self.await_ack(segment);
        }
        if is_before(self.next, segment.begin) {
            return self.more.get_or_insert_default().add_run(segment.begin, segment.end);
        }
        self.reach(segment.end);
        false
    }

    /// Everything before `end` has arrived.
    fn reach(&mut self, end: u32) {
        if is_before(self.next, end) {
            self.next = end;
            if let Some(more) = &mut self.more {
                self.next = more.close_gaps(self.next);
            }
        }
    }

    fn await_ack(&mut self, segment: Segment) -> bool {
        if self.newest.is_none() && self.more.is_none() {
            self.newest = Some(segment);
            return false;
        }
        let newest = self.newest.take();
        let pending = &mut self.more.get_or_insert_default().pending;
        pending.extend(newest);
        pending.push_back(segment);
        let overflows = pending.len() > PENDING_MAX;
        if overflows {
            pending.pop_front();
        }
        overflows
    }

    /// The segment that ends where an acknowledgement of this direction's data points, and whether that is all that it
    /// acknowledges; `None` where nothing new is acknowledged or no such segment was seen in order.
    fn acknowledged(&mut self, ack: u32) -> Option<(Segment, bool)> {
        let before = self.has_acks.then_some(self.acked);
        if before.is_some_and(|before| !is_before(before, ack)) {
            return None;
        }
        (self.acked, self.has_acks) = (ack, true);
        // Data beyond a hole is answered at once, with what came before it and still waited to be acknowledged.
        let is_prompted = self.more.as_ref().is_some_and(|more| !more.runs.is_empty());
        // The receiver has what the capture may have missed.
        self.reach(ack);
        let segment = self.pop_until(ack).filter(|segment| segment.end == ack && !is_prompted)?;
        Some((segment, before == Some(segment.begin)))
    }

    fn pop_until(&mut self, ack: u32) -> Option<Segment> {
        if let Some(newest) = self.newest {
            if !is_before(ack, newest.end) {
                self.newest = None;
            }
            return Some(newest);
        }
        let more = self.more.as_mut()?;
        let mut found = None;
        while more.pending.front().is_some_and(|segment| !is_before(ack, segment.end)) {
            found = more.pending.pop_front();
        }
        if more.pending.is_empty() && more.runs.is_empty() && more.pending.capacity() > 64 {
            self.more = None;
        }
        found
    }
}

impl More {
    /// Keeps a run beyond a hole; true where there are too many, and all are forgotten: the next acknowledgement tells
    /// anew what has arrived.
    fn add_run(&mut self, begin: u32, end: u32) -> bool {
        let first = self.runs.partition_point(|run| is_before(run.1, begin));
        let touching = self.runs[first..].iter().take_while(|run| !is_before(end, run.0)).count();
        let joined = self.runs[first..first + touching].iter().fold((begin, end), |(begin, end), run| {
            (
                if is_before(run.0, begin) { run.0 } else { begin },
                if is_before(end, run.1) { run.1 } else { end },
            )
        });
        self.runs.splice(first..first + touching, [joined]);
        let overflows = self.runs.len() > RUNS_MAX;
        if overflows {
            self.runs.clear();
        }
        overflows
    }

    /// The octet that comes next once everything up to `next` is there.
    fn close_gaps(&mut self, mut next: u32) -> u32 {
        let reached = |run: &(u32, u32)| !is_before(next, run.0);
        // Runs do not touch each other, so that at most the last one that is reached goes on beyond `next`.
        let count = self.runs.partition_point(reached);
        if let Some(&(_, end)) = self.runs[..count].last()
            && is_before(next, end)
        {
            next = end;
        }
        self.runs.drain(..count);
        next
    }
}

/// Where a segment's samples go: what it says of the other direction's segments, and of both clocks.
pub(crate) struct Into<'a> {
    pub echo: &'a mut Series,
    pub reverse: &'a mut Series,
    pub pool: &'a mut Pool,
}

/// Takes in what a segment says of the other direction; whether the bookkeeping overflowed, and by how many octets (modulo 2^64) it grew.
#[inline]
pub(crate) fn take(
    mine: &mut TcpSide,
    theirs: &mut TcpSide,
    time_us: u64,
    tcp: &Said,
    into: &mut Into<'_>,
) -> (bool, usize) {
    let Said { clock, echo, .. } = *tcp;
    let (mut overflows, before) = (false, mine.heap_bytes() + theirs.heap_bytes());
    if tcp.flags & SYN != 0 {
        mine.open(tcp.seq);
    }
    if tcp.payload_len > 0 && tcp.flags & (SYN | FIN) == 0 {
        let end = tcp.seq.wrapping_add(tcp.payload_len);
        overflows = mine.data(Segment { begin: tcp.seq, end, clock, time: time_us as u32 });
    }
    if tcp.flags & ACK != 0 && tcp.flags & SYN == 0 && theirs.is_begun {
        report(theirs, into.echo, time_us, tcp.ack, clock, into.pool);
    }
    if echo != 0
        && let Some(least) = least_difference(mine, time_us, clock.wrapping_sub(echo))
    {
        into.pool.push(into.reverse, least);
    }
    (overflows, (mine.heap_bytes() + theirs.heap_bytes()).wrapping_sub(before))
}

/// Equations 3 and 4: two entries, the clock of the acknowledgement and that of the segment.
fn report(theirs: &mut TcpSide, echo: &mut Series, time_us: u64, ack: u32, clock: u32, pool: &mut Pool) {
    let Some((segment, is_alone)) = theirs.acknowledged(ack) else { return };
    let waited = (time_us as u32).wrapping_sub(segment.time);
    if waited > if is_alone { LONE_ACK_US_MAX } else { ACK_US_MAX } {
        return;
    }
    let time_us = time_us.wrapping_sub(u64::from(waited));
    if !pool.wants(echo, time_us) {
        return;
    }
    for raw in [clock, segment.clock] {
        pool.push(echo, Sample { time_us, raw, length: Length::default() });
    }
}

/// Keeps the least difference of both clocks for each second, whose slope is their drift: the one of the second that is
/// over.
fn least_difference(mine: &mut TcpSide, time_us: u64, difference: u32) -> Option<Sample> {
    let sample = Sample { time_us, raw: difference, length: Length::default() };
    match &mut mine.reverse {
        Some(least) if least.time_us / DRIFT_BUCKET_US == time_us / DRIFT_BUCKET_US => {
            if is_before(difference, least.raw) {
                *least = sample;
            }
            None
        }
        slot => slot.replace(sample),
    }
}
