//! A flow: both directions between two sockets, and what was read of each.

use crate::frame::{Content, Seen};
use crate::hops::HopLimit;
use crate::key::{Key, Side};
use crate::low::Low;
use crate::pool::Pool;
use crate::samples::{Length, Sample, Series};
use crate::tcp::{self, TcpSide};
use crate::utp::{self, Evidence, UtpSide};

/// No frame on a path of 1500 octets is larger: Ethernet with two tags takes 1522, with a tunnel's headers some 60 more. Two
/// full segments put together are far larger.
const FRAME_BYTES_MAX: u32 = 1600;
/// Round trips are kept no closer than this.
pub(crate) const TRIP_SPACING_US: u64 = 200_000;

/// What counts of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub side: Side,
    pub time_us: u64,
    /// On the wire, whole and to eight octets.
    pub bytes: u32,
    pub length: Length,
    pub hop_limit: u8,
    /// It opens a connection.
    pub opens: bool,
    pub said: Said,
}

/// What it says of queues.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said {
    Utp(utp::Said),
    Tcp(tcp::Said),
    /// TCP, but nothing.
    Silent,
    /// UDP, but no uTP.
    Foreign,
}

impl Said {
    /// The reading of the sender's clock: of uTP, how far the observer's is ahead of it.
    #[inline]
    pub(crate) const fn reading(&self, time_us: u64) -> Option<u32> {
        match self {
            Self::Utp(said) => said.reading(time_us),
            Self::Tcp(said) => Some(said.clock),
            Self::Silent | Self::Foreign => None,
        }
    }

    /// Times round trips: in microseconds the one that ends here.
    #[inline]
    pub(crate) fn time_round_trip(&self, from: &mut Rtt, to: &mut Rtt, now: u32) -> Option<u32> {
        let trip = self.answer(to, now);
        self.ask(from, now);
        trip
    }

    /// As [`Self::time_round_trip`], where the other side's packets began.
    #[inline]
    pub(crate) fn answer(&self, to: &mut Rtt, now: u32) -> Option<u32> {
        match self {
            Self::Utp(said) => utp::answer(to, now, said),
            Self::Tcp(said) => tcp::answer(to, now, said),
            Self::Silent | Self::Foreign => None,
        }
    }

    /// Begins one, where none is under way.
    #[inline]
    pub(crate) const fn ask(&self, from: &mut Rtt, now: u32) {
        match self {
            Self::Utp(said) => utp::ask(from, now, said),
            Self::Tcp(said) => tcp::ask(from, now, said),
            Self::Silent | Self::Foreign => {}
        }
    }
}

impl Packet {
    /// One that says nothing.
    pub(crate) const SILENT: Self = Self {
        side: 0,
        time_us: 0,
        bytes: 0,
        length: Length::from_units(0),
        hop_limit: 0,
        opens: false,
        said: Said::Silent,
    };

    #[inline]
    pub(crate) fn of(seen: &Seen<'_>, side: Side, time_us: u64, bytes: u32) -> Self {
        let (said, opens) = match &seen.content {
            Content::Tcp(segment) => {
                (tcp::Said::of(segment).map_or(Said::Silent, Said::Tcp), segment.flags & tcp::SYN != 0)
            }
            Content::Udp { payload, payload_len } => match utp::Said::of(payload, *payload_len) {
                Some(said) => (Said::Utp(said), said.opens()),
                None => (Said::Foreign, false),
            },
        };
        Self { side, time_us, bytes, length: Length::of(bytes), hop_limit: seen.hop_limit, opens, said }
    }

    /// What is worth knowing of its flow from now on.
    #[inline]
    pub(crate) const fn marks(&self) -> Marks {
        let opens = if self.opens { Marks::START.0 } else { 0 };
        let is_large = if self.bytes > FRAME_BYTES_MAX { Marks::OFFLOADED.0 } else { 0 };
        Marks(opens | is_large)
    }
}

/// Things worth knowing about a flow, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marks(pub u8);

impl Marks {
    pub(crate) const NONE: Self = Self(0);
    /// The packet that opens the flow was seen.
    pub(crate) const START: Self = Self(1);
    /// A frame was larger than any packet on a path of 1500 octets: it was captured before it was cut up, or after it
    /// was put together.
    pub(crate) const OFFLOADED: Self = Self(2);
    /// Samples were given up for want of memory.
    pub(crate) const EVICTED: Self = Self(8);
    /// More out-of-order data or data under way than is kept track of.
    pub(crate) const LOST_TRACK: Self = Self(16);

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// What a direction's packets come to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub packets: u32,
    pub bytes: u64,
    /// Time of the last packet.
    pub last_us: u64,
    pub hop_limit: HopLimit,
}

/// One direction: what one socket sent.
#[derive(Debug)]
pub(crate) struct Direction {
    pub totals: Totals,
    /// Readings of the sender's clock against the observer's, one for each packet.
    pub direct: Series,
    /// The shortest of them, while some are left out.
    pub low: Low,
    /// What the receiver of this direction measured of it and said in its own packets.
    pub echo: Series,
    /// TCP: the sender's clock less the receiver's as the sender knows it, the least of each second. In uTP the other
    /// direction's `echo` says the same.
    pub reverse: Series,
    /// Round trips by when they ended, one in [`TRIP_SPACING_US`] at most: which jumps of delays are a queue's they tell.
    pub trips: Series,
    pub rtt: Rtt,
    pub protocol: Protocol,
}

/// What only one of the protocols needs.
#[derive(Debug)]
pub(crate) enum Protocol {
    Utp(UtpSide),
    Tcp(TcpSide),
}

/// Round trips between the observer and the other end, one at a time: the time from a packet of this direction to
/// the first packet back that answers it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rtt {
    /// What an answer must reach, and when the question was seen (lower 32 bits); `None` where none is pending.
    pub pending: Option<(u32, u32)>,
    pub count: u32,
    pub min_us: u32,
    pub sum_us: u64,
    /// Sum of squares, in units of 1024 us.
    pub squares: u64,
    /// TCP: the latest clock reading of this direction.
    pub clock: u32,
    /// TCP: where the ticks begin.
    pub lead: Lead,
}

/// The greatest difference between the time of a question and the stamp of its answer, in microseconds modulo 2^32 for a
/// clock of [`clock::RATE_ASSUMED_HZ`](crate::clock::RATE_ASSUMED_HZ). An answer given at once, at the end of a tick, has it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lead {
    pub us: u32,
    /// Answers within a tick of it.
    pub count: u32,
}

impl Lead {
    const TICK_US: i32 = 1_000;

    /// Notes the stamp of an answer to a question that was seen at a time.
    pub(crate) fn note(&mut self, since_us: u32, clock: u32) {
        let us = since_us.wrapping_sub(clock.wrapping_mul(Self::TICK_US.unsigned_abs()));
        self.join(Self { us, count: 1 });
    }

    fn join(&mut self, other: Self) {
        let above = other.us.wrapping_sub(self.us).cast_signed();
        let (greater, less) = if self.count == 0 || above > 0 { (other, *self) } else { (*self, other) };
        let counts = less.count > 0 && above.unsigned_abs() <= Self::TICK_US.unsigned_abs();
        *self = Self { us: greater.us, count: greater.count + if counts { less.count } else { 0 } };
    }
}

impl Rtt {
    /// Adds a round trip, unless it is none: the observer's clock was set back meanwhile.
    pub(crate) fn add(&mut self, us: u32) -> Option<u32> {
        if us.cast_signed() < 0 {
            return None;
        }
        self.min_us = if self.count == 0 { us } else { self.min_us.min(us) };
        self.count += 1;
        self.sum_us += u64::from(us);
        self.squares += u64::from(us >> 10).pow(2);
        Some(us)
    }

    /// The mean over time, in microseconds: of one trip at a time, long ones are as rare as they are long. `None` for few.
    pub(crate) fn over_time_us(&self) -> Option<f64> {
        const FEW: u32 = 20;
        let mean = self.sum_us as f64 / f64::from(self.count.max(1));
        let weighted = self.squares as f64 * 1024.0 * 1024.0 / self.sum_us.max(1) as f64;
        (self.count >= FEW).then(|| mean.max(weighted))
    }
}

impl Totals {
    #[inline]
    fn add(&mut self, packet: &Packet) {
        self.packets = self.packets.saturating_add(1);
        self.bytes += u64::from(packet.bytes);
        self.last_us = packet.time_us;
    }

    /// How many more packets had its hop limit than had another one.
    pub(crate) const fn hop_limit_ahead(&self) -> u32 {
        self.hop_limit.ahead(self.packets)
    }

    const fn append(&mut self, later: &Self) {
        self.hop_limit.join(self.packets, &later.hop_limit, later.packets);
        self.packets = self.packets.saturating_add(later.packets);
        self.bytes += later.bytes;
        self.last_us = if later.last_us > self.last_us { later.last_us } else { self.last_us };
    }
}

impl Direction {
    fn new(is_tcp: bool) -> Self {
        let protocol =
            if is_tcp { Protocol::Tcp(TcpSide::default()) } else { Protocol::Utp(UtpSide::default()) };
        Self {
            totals: Totals::default(),
            direct: Series::EMPTY,
            low: Low::default(),
            echo: Series::EMPTY,
            reverse: Series::EMPTY,
            trips: Series::EMPTY,
            rtt: Rtt::default(),
            protocol,
        }
    }

    /// Octets on the heap beside the samples.
    fn heap_bytes(&self) -> usize {
        match &self.protocol {
            Protocol::Utp(_) => 0,
            Protocol::Tcp(side) => side.heap_bytes(),
        }
    }
}

/// A flow.
#[derive(Debug)]
pub(crate) struct Flow {
    pub key: Key,
    pub first_us: u64,
    pub marks: Marks,
    /// Whether this is uTP.
    pub evidence: Evidence,
    /// Datagrams on these ports that are no uTP.
    pub foreign: u32,
    pub sides: [Direction; 2],
}

impl Flow {
    pub(crate) fn new(key: Key, first_us: u64) -> Self {
        Self {
            key,
            first_us,
            marks: Marks::default(),
            evidence: Evidence::default(),
            foreign: 0,
            sides: [Direction::new(key.is_tcp()), Direction::new(key.is_tcp())],
        }
    }

    /// Takes a packet in; by how many octets (modulo 2^64) [`Self::heap_bytes`] grew.
    // Into the look-up of flows: on the way of nearly every packet.
    #[inline(always)]
    pub(crate) fn take(&mut self, packet: &Packet, pool: &mut Pool) -> usize {
        let Packet { side, time_us, length, .. } = *packet;
        self.marks.set(packet.marks());
        let is_tcp = self.key.is_tcp();
        let (from, to) = self.split(side);
        from.totals.add(packet);
        if let Some(us) = packet.said.time_round_trip(&mut from.rtt, &mut to.rtt, time_us as u32)
            && to.trips.is_silent_for(time_us, TRIP_SPACING_US)
        {
            pool.push(&mut to.trips, Sample { time_us, raw: us, length: Length::default() });
        }
        if let Some(raw) = packet.said.reading(time_us) {
            from.totals.hop_limit.note(packet.hop_limit, from.totals.packets);
            let sample = Sample { time_us, raw, length };
            if pool.wants_or_is_low(&from.direct, &sample, &mut from.low, is_tcp) {
                pool.push(&mut from.direct, sample);
            }
        }
        match &packet.said {
            Said::Tcp(said) => {
                let (overflows, grown) = tcp::take(from, to, time_us, said, pool);
                self.marks.set(if overflows { Marks::LOST_TRACK } else { Marks::NONE });
                return grown;
            }
            Said::Utp(said) => utp::take(self, side, time_us, said, pool),
            Said::Silent => {}
            Said::Foreign => self.foreign = self.foreign.saturating_add(1),
        }
        0
    }

    /// The direction of a packet, and the other one.
    #[inline]
    pub(crate) fn split(&mut self, side: Side) -> (&mut Direction, &mut Direction) {
        let [low, high] = &mut self.sides;
        if side == 0 { (low, high) } else { (high, low) }
    }

    pub(crate) fn last_us(&self) -> u64 {
        self.sides[0].totals.last_us.max(self.sides[1].totals.last_us)
    }

    pub(crate) fn has_samples(&self) -> bool {
        self.sides.iter().any(|side| side.direct.len() > 0)
    }

    /// Leaves out samples that come sooner after each other than they may now.
    pub(crate) fn thin(&mut self, pool: &mut Pool) {
        let is_tcp = self.key.is_tcp();
        for side in &mut self.sides {
            side.low = pool.thin_direct(&mut side.direct, is_tcp);
            pool.thin(&mut side.echo, is_tcp);
        }
    }

    /// Which sides have samples of their own.
    pub(crate) fn sampled(&self) -> [bool; 2] {
        [0, 1].map(|side: Side| self.sides[side].direct.len() > 0)
    }

    /// The first and the last block of what was kept of the direction that was heard last; [`NONE`](crate::pool::NONE) where there is none.
    pub(crate) const fn ends(&self) -> [u32; 2] {
        let [low, high] = &self.sides;
        let last = if low.totals.last_us > high.totals.last_us { low } else { high };
        last.direct.ends()
    }

    /// Octets of samples.
    pub(crate) fn bytes_of_samples(&self) -> usize {
        let of = |side: &Direction| {
            side.direct.bytes() + side.echo.bytes() + side.reverse.bytes() + side.trips.bytes()
        };
        self.sides.iter().map(of).sum()
    }

    /// Gives up samples from before a time.
    pub(crate) fn trim(&mut self, pool: &mut Pool, before_us: u64) {
        for side in &mut self.sides {
            pool.trim(&mut side.direct, before_us);
            pool.trim(&mut side.echo, before_us);
            pool.trim(&mut side.reverse, before_us);
            pool.trim(&mut side.trips, before_us);
        }
    }

    /// Forgets what packets said so far, and whatever waits for others: from now on they are seen elsewhere.
    pub(crate) fn begin_again(&mut self, pool: &mut Pool) {
        for side in &mut self.sides {
            for series in [&mut side.direct, &mut side.echo, &mut side.reverse, &mut side.trips] {
                pool.free(series);
            }
            let totals = side.totals;
            *side = Direction { totals, ..Direction::new(self.key.is_tcp()) };
        }
    }

    /// Gives up all samples.
    pub(crate) fn forget_samples(&mut self, pool: &mut Pool) {
        for side in &mut self.sides {
            pool.free(&mut side.direct);
            pool.free(&mut side.echo);
            pool.free(&mut side.reverse);
            pool.free(&mut side.trips);
        }
        self.marks.set(Marks::EVICTED);
    }

    /// Octets that the flow takes beside its samples.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.heap_bytes()
    }

    /// Those that it takes elsewhere.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.sides[0].heap_bytes() + self.sides[1].heap_bytes()
    }
}

impl Flow {
    /// Puts what was seen later behind what is here.
    pub(crate) fn append(&mut self, later: &Self, theirs: &Pool, pool: &mut Pool) {
        self.marks.0 |= later.marks.0;
        self.evidence.append(later.evidence);
        self.foreign = self.foreign.saturating_add(later.foreign);
        self.first_us = self.first_us.min(later.first_us);
        for (mine, other) in self.sides.iter_mut().zip(&later.sides) {
            mine.append(other, theirs, pool);
        }
    }
}

impl Direction {
    fn append(&mut self, later: &Self, theirs: &Pool, pool: &mut Pool) {
        self.totals.append(&later.totals);
        self.rtt.append(&later.rtt);
        let pairs = [
            (&mut self.direct, &later.direct),
            (&mut self.echo, &later.echo),
            (&mut self.reverse, &later.reverse),
            (&mut self.trips, &later.trips),
        ];
        for (mine, other) in pairs {
            theirs.each(other, 1, |sample| pool.push(mine, sample));
        }
    }
}

impl Rtt {
    fn append(&mut self, later: &Self) {
        self.min_us = match (self.count, later.count) {
            (_, 0) => self.min_us,
            (0, _) => later.min_us,
            _ => self.min_us.min(later.min_us),
        };
        self.lead.join(later.lead);
        self.count += later.count;
        self.sum_us += later.sum_us;
        self.squares += later.squares;
    }
}
