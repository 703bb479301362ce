//! A flow: both directions between two sockets, and what was read of each.

use crate::packet::key::{Key, Side};
use crate::packet::length::Length;
use crate::packet::rtt::Rtt;
use crate::packet::{self, Marks, Packet, Said};
use crate::store::hops::HopLimit;
use crate::store::low::Low;
use crate::store::place::ENTRIES_MAX;
use crate::store::pool::Pool;
use crate::store::sample::Sample;
use crate::store::samples::Series;
use crate::store::tcp::{self, TcpSide};
use crate::store::utp::{self, Evidence, UtpSide};

/// Round trips are kept no closer than this.
pub(crate) const TRIP_SPACING_US: u64 = 200_000;

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
        self.marks.set(packet.marks(|| self.utp_last_us()));
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
        self.hear(packet, pool)
    }

    /// As [`Self::take`], of a packet of which nobody saw how long it waited: neither its own clock nor a round trip is to be read from when it was seen.
    pub(crate) fn take_early(&mut self, packet: &Packet, pool: &mut Pool) -> usize {
        self.marks.set(packet.marks(|| self.utp_last_us()));
        self.split(packet.side).0.totals.add(packet);
        self.hear(packet, pool)
    }

    /// Takes in what a packet says of the other direction; as [`Self::take`].
    #[inline(always)]
    fn hear(&mut self, packet: &Packet, pool: &mut Pool) -> usize {
        let Packet { side, time_us, .. } = *packet;
        match &packet.said {
            Said::Tcp(said) => {
                let (from, to) = self.split(side);
                let (overflows, grown) = take_tcp(from, to, time_us, said, pool);
                self.marks.set(if overflows { Marks::LOST_TRACK } else { Marks::NONE });
                return grown;
            }
            Said::Utp(said) => self.take_utp(side, time_us, said, pool),
            Said::Silent => {}
            Said::Foreign => self.foreign = self.foreign.saturating_add(1),
        }
        0
    }

    // Beside the look-up of flows there is no room for it.
    #[inline(never)]
    fn take_utp(&mut self, side: Side, time_us: u64, said: &packet::utp::Said, pool: &mut Pool) {
        let [low, high] = &mut self.sides;
        let (from, to) = if side == 0 { (low, high) } else { (high, low) };
        if let (Protocol::Utp(mine), Protocol::Utp(theirs)) = (&mut from.protocol, &mut to.protocol) {
            let is_joined = self.marks.has(Marks::OFFLOADED);
            utp::take((mine, theirs), time_us, said, &mut self.evidence, (&mut to.echo, pool, is_joined));
        }
    }

    /// Whether it was uTP, now that it was seen; `advances` says whether a direction's stamps run as time does, `may_advance` whether they may.
    pub(crate) fn is_utp(
        &self,
        advances: impl Fn(&Direction) -> bool,
        may_advance: impl Fn(&Direction) -> bool,
    ) -> bool {
        let counts = [0, 1].map(|side: Side| self.sides[side].direct.len());
        if !counts.contains(&0) {
            // Questions and answers may have uTP's form, too, with what stands in it always the same.
            let is_short = counts.iter().any(|&count| count <= ENTRIES_MAX);
            return self.evidence.is_enough() && (is_short || self.sides.iter().any(may_advance));
        }
        // One direction alone: its stamps must run as fast as time does.
        let side = usize::from(counts[1] > 0);
        counts[side] >= 10 && advances(&self.sides[side])
    }

    /// When uTP was last seen.
    #[cold]
    fn utp_last_us(&self) -> Option<u64> {
        let last_us = |side: &Direction| match &side.protocol {
            Protocol::Utp(side) => side.last_us(),
            Protocol::Tcp(_) => None,
        };
        self.sides.iter().filter_map(last_us).max()
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

    /// The first and the last block of what was kept of the direction that was heard last; [`NONE`](crate::store::pool::NONE) where there is none.
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

    /// Forgets what a side's packets said so far, and whatever waits for others: from now on they are seen elsewhere. Round trips that
    /// began with them were at most longer by what they had waited between; those that ended with them had still to wait, and tell of no
    /// empty queue.
    pub(crate) fn begin_again(&mut self, side: Side, pool: &mut Pool) {
        let is_tcp = self.key.is_tcp();
        let (side, other) = self.split(side);
        for series in [&mut side.direct, &mut side.echo, &mut side.reverse, &mut side.trips, &mut other.trips]
        {
            pool.free(series);
        }
        other.rtt = other.rtt.without_trips();
        let (totals, rtt) = (side.totals, side.rtt.without_question());
        *side = Direction { totals, rtt, ..Direction::new(is_tcp) };
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

/// Takes in what a segment says of the other direction: see [`tcp::take`].
// As [`Flow::take_utp`].
#[inline(never)]
fn take_tcp(
    from: &mut Direction,
    to: &mut Direction,
    time_us: u64,
    said: &packet::tcp::Said,
    pool: &mut Pool,
) -> (bool, usize) {
    let (Protocol::Tcp(mine), Protocol::Tcp(theirs)) = (&mut from.protocol, &mut to.protocol) else {
        return (false, 0);
    };
    let mut into = tcp::Into { echo: &mut to.echo, reverse: &mut from.reverse, pool };
    tcp::take(mine, theirs, time_us, said, &mut into)
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
