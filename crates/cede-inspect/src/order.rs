//! One direction of a connection in its order: what comes early waits, what comes again is counted, and what never comes
//! is given up once the capture shows that it will not.
//!
//! A place is an octet's number in TCP (RFC 9293, section 3.4) and a packet's in uTP (BEP 29), both unwrapped to 64 bits.
//!
//! **When a hole is given up.** The receiver has acknowledged beyond it, and a little later the capture still has not got
//! it, or the connection is over: the capture lost it, not the network. Or more waits behind it than may
//! ([`WAITING_BYTES_MAX`]), or nothing at all was acknowledged, as where one direction was captured. What waits in the end
//! behind a hole that the receiver has not acknowledged either was lost on the way and never sent again, as the
//! connection was over: nobody has read it.
//!
//! **What it leaves out.** Selective acknowledgements, which would tell some holes a round trip earlier. Two copies of the
//! same octets that differ: the first one counts.
//!
//! **How it was validated.** Streams cut, shuffled, repeated and torn at random against what was written (`tests/streams.rs`),
//! arbitrary segments (`tests/fuzz.rs`).

use std::collections::VecDeque;

/// Octets of one direction that may wait behind a hole.
pub(crate) const WAITING_BYTES_MAX: usize = 4 << 20;
/// What one waiting packet takes besides its octets.
const WAITING_OVERHEAD_BYTES: usize = size_of::<Waiting>() + 16;
/// Captures put packets of several queues out of order by no more than this.
const GRACE_NS: u64 = 200_000_000;
/// A packet further ahead than this belongs to something else: no window is that large.
const AHEAD_MAX: u64 = 1 << 30;

/// Octets as they came in one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    /// The place of the first octet (TCP), or of the packet (uTP).
    pub at: u64,
    /// The first place behind it.
    pub end: u64,
    /// What was captured of it.
    pub octets: &'a [u8],
    /// Octets that it had on the wire.
    pub len: u32,
    /// When it was captured.
    pub time_ns: u64,
}

/// What comes next in order.
#[derive(Debug)]
pub(crate) enum Run<'a> {
    /// Octets, and how they came.
    Octets(&'a [u8], Arrival),
    /// Octets that the capture does not have, and how many they are where that can be told.
    Missing(Option<u64>),
}

/// How octets came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// When they were captured.
    pub time_ns: u64,
    /// Packets that brought them again, or late.
    pub repairs: u32,
    /// The packet's place.
    pub at: u64,
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It is news.
    New,
    /// So many of its octets were seen before.
    Repeated(u32),
    /// It belongs to something else.
    Foreign,
}

#[derive(Debug)]
struct Waiting {
    at: u64,
    end: u64,
    octets: Box<[u8]>,
    len: u32,
    time_ns: u64,
    repairs: u32,
}

/// The order of one direction.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The place that comes next; `None` before anything came.
    next: Option<u64>,
    /// What came early, by place; neighbours may overlap.
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// What the receiver has acknowledged, and since when it has been beyond `next`.
    acked: u64,
    beyond_since_ns: Option<u64>,
    /// Places are octets, and not packets.
    counts_octets: bool,
    /// What was taken for news as it came, and turned out to be there already.
    again: Again,
}

/// What came again in packets that brought something new besides, as where what is sent again is cut anew.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Again {
    pub packets: u64,
    pub octets: u64,
}

impl Again {
    const fn add(&mut self, octets: u64) {
        self.packets += (octets > 0) as u64;
        self.octets += octets;
    }
}

impl Order {
    pub(crate) fn new(counts_octets: bool) -> Self {
        Self { counts_octets, ..Self::default() }
    }

    /// The stream begins here.
    pub(crate) fn begin(&mut self, at: u64) {
        self.next = Some(at);
    }

    pub(crate) const fn has_begun(&self) -> bool {
        self.next.is_some()
    }

    /// The place nearest to where the stream is that ends in these bits.
    pub(crate) fn unwrap(&self, low: u32, bits: u32) -> u64 {
        let reference = self.next.unwrap_or(1 << 40);
        let shift = 64 - bits;
        let difference = (u64::from(low).wrapping_sub(reference) << shift).cast_signed() >> shift;
        reference.wrapping_add_signed(difference)
    }

    /// Octets that wait.
    pub(crate) const fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Takes a packet in. What can be read then is fetched with [`Self::pop`], after its own octets where
    /// [`Self::is_next`] says so.
    pub(crate) fn keep(&mut self, segment: &Segment<'_>) -> Fate {
        let next = *self.next.get_or_insert(segment.at);
        if segment.end <= next {
            return self.repeat(segment);
        }
        if segment.at > next + AHEAD_MAX {
            return Fate::Foreign;
        }
        let place = self.waiting.partition_point(|kept| kept.at <= segment.at);
        let before = place.checked_sub(1).and_then(|before| self.waiting.get_mut(before));
        if let Some(same) = before.filter(|kept| kept.end >= segment.end) {
            same.repairs += 1;
            return Fate::Repeated(segment.len);
        }
        // What fills a hole was sent again, or overtaken.
        let repairs = u32::from(segment.at <= next && !self.waiting.is_empty());
        self.waiting_bytes += segment.octets.len() + WAITING_OVERHEAD_BYTES;
        let (octets, len, time_ns) = (segment.octets.into(), segment.len, segment.time_ns);
        self.waiting
            .insert(place, Waiting { at: segment.at, end: segment.end, octets, len, time_ns, repairs });
        Fate::New
    }

    fn repeat(&self, segment: &Segment<'_>) -> Fate {
        match self.next {
            // Far behind: something else goes by the same numbers.
            Some(next) if segment.at + AHEAD_MAX < next => Fate::Foreign,
            _ => Fate::Repeated(segment.len),
        }
    }

    /// Whether a packet is the next one and nothing waits, so that its octets need not be kept.
    pub(crate) fn is_next(&self, segment: &Segment<'_>) -> bool {
        self.waiting.is_empty() && self.next.is_none_or(|next| next == segment.at)
    }

    /// Everything before `end` has been read.
    pub(crate) const fn advance(&mut self, end: u64) {
        self.next = Some(end);
        self.beyond_since_ns = None;
    }

    /// The receiver has everything before `to`.
    pub(crate) fn acknowledge(&mut self, to: u64, now_ns: u64) {
        let Some(next) = self.next else { return };
        if to > self.acked && to <= next + AHEAD_MAX {
            self.acked = to;
        }
        if self.acked > next && !self.waiting.is_empty() {
            self.beyond_since_ns.get_or_insert(now_ns);
        }
    }

    /// What waits behind what the receiver never got: how many octets that are, each once. Nothing more comes.
    pub(crate) fn abandon(&mut self) -> u64 {
        self.waiting_bytes = 0;
        let (mut reached, mut octets) = (0, 0);
        for waiting in core::mem::take(&mut self.waiting) {
            let again = self.overlap(&waiting, reached);
            self.again.add(again);
            octets += u64::from(waiting.len) - again;
            reached = waiting.end.max(reached);
        }
        octets
    }

    /// What was found since the last time to have come again.
    pub(crate) const fn take_again(&mut self) -> Again {
        core::mem::replace(&mut self.again, Again { packets: 0, octets: 0 })
    }

    /// Octets of a packet before a place; packets of uTP are whole.
    fn overlap(&self, waiting: &Waiting, place: u64) -> u64 {
        let before = place.saturating_sub(waiting.at).min(waiting.len.into());
        if self.counts_octets { before } else { 0 }
    }

    /// Whether the receiver may have what was not captured at a place.
    const fn may_be_there(&self, place: u64) -> bool {
        self.acked == 0 || self.acked > place
    }

    /// Hands over what comes next, if there is anything to hand over. `gives_up` in the end: nothing more comes.
    pub(crate) fn pop(&mut self, now_ns: u64, gives_up: bool, take: &mut dyn FnMut(Run<'_>)) -> bool {
        let Some((next, front)) = self.next.zip(self.waiting.front()) else {
            return self.pop_end(gives_up, take);
        };
        if front.at > next {
            let is_lost = self.beyond_since_ns.is_some_and(|since| now_ns.saturating_sub(since) > GRACE_NS);
            let is_over = gives_up && self.may_be_there(next);
            let is_full = self.waiting_bytes > WAITING_BYTES_MAX;
            if !(is_lost || is_over || is_full) {
                return false;
            }
            // What the receiver has not acknowledged of it may come yet.
            let is_known = !is_full && self.acked > next;
            let end = if is_known { front.at.min(self.acked) } else { front.at };
            let missing = end - next;
            self.advance(end);
            take(Run::Missing(self.counts_octets.then_some(missing)));
            return true;
        }
        let Some(front) = self.waiting.pop_front() else { return false };
        self.waiting_bytes -= front.octets.len() + WAITING_OVERHEAD_BYTES;
        let skipped = self.overlap(&front, next);
        self.again.add(skipped);
        if front.end > next {
            self.advance(front.end);
            let arrival = Arrival { time_ns: front.time_ns, repairs: front.repairs, at: front.at };
            hand_over(&front.octets, front.len, skipped as usize, arrival, take);
        }
        true
    }

    /// In the end: what was acknowledged and never captured. A FIN takes a place of its own.
    fn pop_end(&mut self, gives_up: bool, take: &mut dyn FnMut(Run<'_>)) -> bool {
        let Some(next) = self.next.filter(|next| gives_up && self.acked > next + 1) else { return false };
        let missing = self.acked - next;
        self.advance(self.acked);
        take(Run::Missing(self.counts_octets.then_some(missing)));
        true
    }
}

/// Hands octets over, and says how many behind them were not captured.
pub(crate) fn hand_over(
    octets: &[u8],
    len: u32,
    skipped: usize,
    arrival: Arrival,
    take: &mut dyn FnMut(Run<'_>),
) {
    let captured = octets.get(skipped..).unwrap_or_default();
    let missing = (len as usize).saturating_sub(octets.len().max(skipped)) as u64;
    if !captured.is_empty() {
        take(Run::Octets(captured, arrival));
    }
    if missing > 0 {
        take(Run::Missing(Some(missing)));
    }
}
