//! What TCP timestamps say about queues.
//!
//! Source: RFC 7323 (timestamps); "Passive bufferbloat measurement exploiting transport layer information" (GLOBECOM
//! 2013), section III, equations 3 and 4, for the echoed estimate: the clock of an acknowledgement less the clock of the
//! last segment that it acknowledges. That segment must be found among those seen: with holes in the sequence "the last
//! one" is off by the whole recovery, so segments above a hole, those that fill one and repetitions are left out.
//!
//! **What it leaves out.** TSecr is not used for the echoed estimate: with delayed acknowledgements it names the first
//! segment, not the last. An odd segment acknowledged late by the delayed-acknowledgement timer says nothing.
//!
//! **How it was validated.** The sheets' vectors (`tests/vectors.rs`), recorded captures beside the queue's own log
//! (`tests/ground_truth.rs`).

use crate::flow::{Direction, Protocol, Rtt};
use crate::frame::Tcp;
use crate::pool::Pool;
use crate::samples::{Length, Sample};
use std::collections::VecDeque;

const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
const ACK: u8 = 0x10;
/// Those that count.
pub(crate) const FLAGS: u8 = FIN | SYN | RST | ACK;

/// What a segment with timestamps says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    /// TSval and TSecr.
    pub clock: u32,
    pub echo: u32,
    pub payload_len: u32,
}

impl Said {
    /// Segments without timestamps say nothing, nor do those that end a connection at once.
    #[inline]
    pub(crate) fn of(tcp: &Tcp<'_>) -> Option<Self> {
        let (clock, echo) = tcp.timestamps.filter(|_| tcp.flags & RST == 0)?;
        let Tcp { seq, ack, flags, payload_len, .. } = *tcp;
        Some(Self { seq, ack, flags, clock, echo, payload_len })
    }
}

/// Segments whose acknowledgement is awaited, and runs beyond a hole, that are kept at most.
const PENDING_MAX: usize = 4096;
const RUNS_MAX: usize = 4096;
/// An acknowledgement of a single segment that comes later than this after it was waiting for a second one.
const LONE_ACK_US_MAX: u32 = 30_000;
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

fn is_before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
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

/// Takes in what a segment says of the other direction; whether the bookkeeping overflowed, and by how many octets (modulo 2^64) it grew.
// Beside the look-up of flows there is no room for it.
#[inline(never)]
pub(crate) fn take(
    from: &mut Direction,
    to: &mut Direction,
    time_us: u64,
    tcp: &Said,
    pool: &mut Pool,
) -> (bool, usize) {
    let Said { clock, echo, .. } = *tcp;
    let (Protocol::Tcp(mine), Protocol::Tcp(theirs)) = (&mut from.protocol, &mut to.protocol) else {
        return (false, 0);
    };
    let (mut overflows, before) = (false, mine.heap_bytes() + theirs.heap_bytes());
    if tcp.payload_len > 0 && tcp.flags & (SYN | FIN) == 0 {
        let end = tcp.seq.wrapping_add(tcp.payload_len);
        overflows = mine.data(Segment { begin: tcp.seq, end, clock, time: time_us as u32 });
    }
    if tcp.flags & ACK != 0 && tcp.flags & SYN == 0 && theirs.is_begun {
        report(theirs, &mut to.echo, time_us, tcp.ack, clock, pool);
    }
    if echo != 0
        && let Some(least) = least_difference(mine, time_us, clock.wrapping_sub(echo))
    {
        pool.push(&mut from.reverse, least);
    }
    (overflows, (mine.heap_bytes() + theirs.heap_bytes()).wrapping_sub(before))
}

/// Equations 3 and 4: two entries, the clock of the acknowledgement and that of the segment.
fn report(
    theirs: &mut TcpSide,
    echo: &mut crate::samples::Series,
    time_us: u64,
    ack: u32,
    clock: u32,
    pool: &mut Pool,
) {
    let Some((segment, is_alone)) = theirs.acknowledged(ack) else { return };
    let waited = (time_us as u32).wrapping_sub(segment.time);
    if is_alone && waited > LONE_ACK_US_MAX {
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

/// A packet's clock waits for the first packet back that echoes it or a later one: a round trip that ends with this packet.
#[inline]
pub(crate) fn answer(to: &mut Rtt, now: u32, said: &Said) -> Option<u32> {
    let Said { clock, echo, .. } = *said;
    let (wanted, since) = to.pending.filter(|&(wanted, _)| echo != 0 && !is_before(echo, wanted))?;
    to.pending = None;
    // Only the very clock that was waited for tells a round trip; a later one came with another packet.
    if echo != wanted {
        return None;
    }
    let trip = to.add(now.wrapping_sub(since));
    to.lead.note(since, clock);
    trip
}

/// As [`answer`]: one that begins with it.
#[inline]
pub(crate) const fn ask(from: &mut Rtt, now: u32, said: &Said) {
    let Said { clock, .. } = *said;
    // What echoes a reading that two packets share may answer the earlier one.
    if from.pending.is_none() && from.clock != clock {
        from.pending = Some((clock, now));
    }
    from.clock = clock;
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
