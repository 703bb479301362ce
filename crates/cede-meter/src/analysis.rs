//! From flows to hosts: whose queue it was.
//!
//! A host's delay is its uplink's, whoever caused it, so the samples of all flows that an address sent are put together
//! in the order of time. uTP flows from one socket share a clock, and with it the base: what one of them saw when the
//! queue was empty holds for the others. TCP's connections each have an offset of their own.

use crate::clock::Rate;
use crate::config::{Base, Config};
use crate::flow::{Marks, Rtt, Totals};
use crate::glance::Glance;
use crate::host::{PART_THAT_COUNTS, Together};
use crate::intake::Counters;
use crate::key::{Key, Side, Socket};
use crate::order;
use crate::reading::{self, Around, Own, Reading};
use crate::report::{Estimator, Flags, FlowReport, HostReport, Protocol, Report, RoundTrip};
use crate::senders::{Sender, senders};
use crate::several::{Likeness, SAME_CLOCK_US};
use crate::sliding::Slots;
use crate::stock::Reader;
use crate::summary::{self, Delay, Scratch, Summary};
use crate::track::Track;

const SHORT_SAMPLES: u64 = 50;
const SHORT_US: f64 = 10e6;
const COARSE_TICK_HZ: f64 = 250.0;
/// Octets that a sample takes while its host is analysed: as a point, as a delay, and as a value whose rank is sought, which its
/// length has made room for.
const ANALYSIS_BYTES_DIRECT: usize = 40;
const ANALYSIS_BYTES_ECHOED: usize = 16;
/// Clocks of 32 bits begin anew after so many ticks.
const WRAP_TICKS: f64 = (1_u64 << 32) as f64;
/// So many of a direction's samples there are for each that turns out to be one.
const SAMPLES_LOST_MAX: u64 = 4;
/// With this there is hardly anything left.
const STRIDE_MAX: usize = 1 << 16;

/// A sample of queueing delay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QueueSample {
    /// Who sent the packet.
    pub source: Socket,
    /// Who it was for.
    pub destination: Socket,
    /// What carried it.
    pub protocol: Protocol,
    /// How the delay was inferred.
    pub estimator: Estimator,
    /// When, and how long.
    pub delay: Delay,
}

/// What is made beside the report.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wants {
    /// Nothing, which is faster: of most directions no more is looked at than their hosts' figures need.
    Nothing,
    /// Flows' reports.
    Flows,
    /// These, and samples.
    Samples,
}

/// What is handed out on the way to a report.
pub trait Visitor {
    /// What this one looks at; asked once.
    fn wants(&self) -> Wants {
        Wants::Samples
    }

    /// A sample; those of one direction and estimator follow each other in the order of time.
    fn sample(&mut self, sample: &QueueSample) {
        let _ = sample;
    }

    /// A direction of a flow, after its samples.
    fn flow(&mut self, flow: &FlowReport) {
        let _ = flow;
    }
}

/// Wants nothing but the report.
impl Visitor for () {
    fn wants(&self) -> Wants {
        Wants::Nothing
    }
}

/// A direction that is to be analysed.
struct Direction {
    about: About,
    reading: Reading,
}

/// What is known of it beside its samples.
struct About {
    key: Key,
    side: Side,
    marks: Marks,
    packets: u32,
    bytes: u64,
    span_us: (u64, u64),
    hop_limit: u8,
    is_alone: bool,
    round_trip: Option<RoundTrip>,
}

/// Where directions are read from: of so many samples one.
struct Source<'a> {
    flows: &'a Reader<'a>,
    stride: usize,
}

/// How much of a direction is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Depth {
    /// What its packets say of their own way, and round trips.
    Direct,
    /// Also what their receiver says.
    Whole,
}

/// What is to be found out.
struct Asked<'a> {
    config: &'a Config,
    wants: Wants,
}

/// Memory that one host leaves to the next: what the system gives anew it clears first.
#[derive(Default)]
struct Desk {
    delays: Vec<Delay>,
    scratch: Scratch,
}

impl Desk {
    /// All samples of a host together, those of uTP and those of TCP; `None` for too few.
    fn sum_up(&mut self, [utp, tcp]: [Vec<Delay>; 2], samples_min: u64) -> Option<[Option<Summary>; 3]> {
        let is_enough = (utp.len() + tcp.len()) as u64 >= samples_min;
        let summaries = is_enough.then(|| self.scratch.sum_up([&utp, &tcp]));
        self.delays = if utp.capacity() > tcp.capacity() { utp } else { tcp };
        self.delays.clear();
        summaries
    }
}

/// Makes the report, in so many octets beside what is there.
pub(crate) fn report(
    flows: &Reader<'_>,
    room: usize,
    config: &Config,
    counters: Counters,
    visitor: &mut impl Visitor,
) -> Report {
    let mut report = Report {
        counters,
        hosts: Vec::new(),
        hosts_with_too_little: 0,
        other_udp_flows: 0,
        timeless_tcp_flows: 0,
    };
    let senders = senders(flows, config.protocol, &mut report);
    let asked = Asked { config, wants: visitor.wants() };
    let mut desk = Desk::default();
    for host in senders.chunk_by(Sender::is_beside) {
        let source = Source { flows, stride: stride(host, flows, room) };
        report.counters.thinned += left_out(host, &source);
        match analyse(&source, host, &asked, &mut desk, visitor) {
            Some(host) => report.hosts.push(host),
            None => report.hosts_with_too_little += 1,
        }
    }
    report
        .hosts
        .sort_by(|a, b| b.all.time_mean_ms.total_cmp(&a.all.time_mean_ms).then(a.address.cmp(&b.address)));
    report
}

/// Of how many samples one is looked at, so that a host's analysis has the room that it takes. Of each direction at least one
/// is.
fn stride(host: &[Sender], flows: &Reader<'_>, room: usize) -> usize {
    let bytes = |stride: usize| -> usize {
        let bytes_of = |sender: &Sender| {
            let (direct, echoed) = flows.samples(sender.place(), sender.side());
            direct.div_ceil(stride) * ANALYSIS_BYTES_DIRECT + echoed.div_ceil(stride) * ANALYSIS_BYTES_ECHOED
        };
        host.iter().map(bytes_of).sum()
    };
    let mut stride = bytes(1).div_ceil(room.max(1)).max(1);
    while stride > 1 && stride < STRIDE_MAX && bytes(stride) > room {
        stride += stride.div_ceil(4);
    }
    stride
}

fn left_out(host: &[Sender], source: &Source<'_>) -> u64 {
    if source.stride == 1 {
        return 0;
    }
    let of = |sender: &Sender| source.flows.samples(sender.place(), sender.side()).0 - source.samples(sender);
    host.iter().map(of).sum::<usize>() as u64
}

impl Source<'_> {
    /// How many samples of a direction are looked at; of a short flow the most that there may be.
    fn samples(&self, sender: &Sender) -> usize {
        self.flows.samples(sender.place(), sender.side()).0.div_ceil(self.stride)
    }
}

impl About {
    /// What each side sent, the one in question first, and how long the other one's packets took to it and back.
    fn new((key, marks, first_us): (Key, Marks, u64), side: Side, totals: [Totals; 2], rtt: &Rtt) -> Self {
        let [totals, other] = totals;
        Self {
            key,
            side,
            marks,
            packets: totals.packets,
            bytes: totals.bytes,
            span_us: (first_us, totals.last_us),
            hop_limit: totals.hop_limit,
            is_alone: other.packets == 0,
            // What the other side asked, this side answered.
            round_trip: round_trip(rtt),
        }
    }

    const fn protocol(&self) -> Protocol {
        protocol(&self.key)
    }

    fn source(&self) -> Socket {
        self.key.socket(self.side)
    }

    fn destination(&self) -> Socket {
        self.key.socket(1 - self.side)
    }
}

const fn protocol(key: &Key) -> Protocol {
    if key.is_tcp() { Protocol::Tcp } else { Protocol::Utp }
}

impl Direction {
    fn read(source: &Source<'_>, sender: Sender, depth: Depth) -> Self {
        let (side, stride) = (sender.side(), source.stride);
        let read = |own: Own, rtt: &Rtt, around: Option<&Around<'_>>| match sender.protocol() {
            Protocol::Utp => reading::read_utp(own, rtt, around),
            Protocol::Tcp => reading::read_tcp(own, rtt, around),
        };
        if depth == Depth::Direct
            && let Some((embryo, pool)) = source.flows.short(sender.place())
        {
            let Glance { own, rtt } = Glance::of(embryo, side, pool, stride);
            let totals = [side, 1 - side].map(|side| embryo.totals(side));
            let about = About::new((embryo.key, embryo.marks, embryo.first_us), side, totals, &rtt);
            return Self { about, reading: read(own, &rtt, None) };
        }
        source.flows.with(sender.place(), |flow, pool| {
            let around = Around { flow, side, pool, stride, with_echoed: depth == Depth::Whole };
            let (own, rtt) = (Own::read(flow, side, pool, stride), &flow.sides[1 - side].rtt);
            let totals = [side, 1 - side].map(|side| flow.sides[side].totals);
            let about = About::new((flow.key, flow.marks, flow.first_us), side, totals, rtt);
            Self { about, reading: read(own, rtt, Some(&around)) }
        })
    }

    /// Of a direction with direct samples.
    fn flags(&self, is_short: bool) -> Flags {
        let mut flags = Flags::default();
        let (marks, reading) = (self.about.marks, &self.reading);
        flags.set_if(!marks.has(Marks::START), Flags::START_NOT_SEEN);
        flags.set_if(marks.has(Marks::OFFLOADED), Flags::OFFLOADED);
        flags.set_if(marks.has(Marks::LOST_TRACK), Flags::LOST_TRACK);
        flags.set_if(marks.has(Marks::EVICTED), Flags::EVICTED);
        flags.set_if(reading.direct.is_unconfirmed(), Flags::BASE_NOT_REVISITED);
        flags.set_if(reading.direct.pieces.len() > 1, Flags::CLOCK_STEP);
        flags.set_if(reading.direct.is_beyond_round_trips, Flags::BEYOND_ROUND_TRIPS);
        flags.set_if(reading.drift_ppm.is_some(), Flags::DRIFT_CORRECTED);
        flags.set_if(reading.without_transmission, Flags::TRANSMISSION_REMOVED);
        flags.set_if(self.about.is_alone, Flags::ONE_DIRECTION);
        flags.set_if(is_short, Flags::SHORT);
        match reading.rate {
            Some(Rate::Unknown) => flags.set_if(true, Flags::RATE_ASSUMED),
            Some(Rate::Snapped(hz)) => flags.set_if(hz <= COARSE_TICK_HZ, Flags::COARSE_CLOCK),
            Some(Rate::Odd(_)) | None => {}
        }
        flags
    }

    /// The lower of a base and this one's; `None` where they cannot be compared: offsets that were straightened from different
    /// beginnings.
    fn lowest_base(&self, base: f64) -> Option<f64> {
        let own = self.reading.direct.only_base();
        self.reading.drift_ppm.is_none().then(|| own.map_or(base, |own| own.min(base)))
    }

    /// Takes what other flows of the socket told of an empty queue.
    fn lower_base(&mut self, shared: Option<&Shared>) {
        let own = self.reading.direct.only_base();
        if let Some((own, shared)) = own.zip(shared)
            && is_of_one_clock(own, shared.base)
        {
            self.reading.direct.lower_base(shared.base);
            self.reading.direct.shared.clone_from(&shared.slots);
        }
    }

    /// The sender's clock, as far as it was found.
    fn clock(&self) -> Likeness {
        let (rate_hz, tick_us) = match self.reading.rate {
            Some(Rate::Snapped(hz)) => (Some(hz), Some(1e6 / hz)),
            Some(Rate::Unknown | Rate::Odd(_)) => (None, None),
            None => (None, Some(1.0)),
        };
        let offset = self.reading.direct.only_base().zip(tick_us.map(|tick_us| tick_us * WRAP_TICKS));
        Likeness { rate_hz, offset, hop_limit: self.about.hop_limit }
    }

    /// What was found, of direct samples in the order of time.
    fn report(&self, direct: &[Delay]) -> FlowReport {
        let about = &self.about;
        let mut flags = if direct.is_empty() { Flags::default() } else { self.flags(is_short(direct)) };
        flags.set_if(matches!(self.reading.rate, Some(Rate::Odd(_))), Flags::RATE_ODD);
        FlowReport {
            source: about.source(),
            destination: about.destination(),
            protocol: about.protocol(),
            packets: about.packets,
            bytes: about.bytes,
            span_us: about.span_us,
            flags,
            direct: None,
            echoed: None,
            clock_hz: self.reading.rate.and_then(reading::hz),
            drift_ppm: self.reading.drift_ppm,
            round_trip: about.round_trip,
        }
    }
}

fn is_short(direct: &[Delay]) -> bool {
    (direct.len() as u64) < SHORT_SAMPLES || !summary::cover(direct, SHORT_US)
}

fn round_trip(rtt: &Rtt) -> Option<RoundTrip> {
    (rtt.count > 0).then(|| RoundTrip {
        samples: rtt.count,
        min_ms: f64::from(rtt.min_us) / 1e3,
        mean_ms: rtt.sum_us as f64 / f64::from(rtt.count) / 1e3,
    })
}

/// By more than 10 ms and a fifth in the middle, of each echoed delay and the direct one at its time or before.
fn disagree(direct: &[Delay], echoed: &[Delay]) -> bool {
    if (echoed.len() as u64) < SHORT_SAMPLES {
        return false;
    }
    let mut known = direct.iter().peekable();
    let (mut last, mut pairs) = (None, Vec::with_capacity(echoed.len()));
    for delay in echoed {
        while let Some(next) = known.next_if(|next| next.time_us <= delay.time_us) {
            last = Some(next.queue_us);
        }
        pairs.extend(last.map(|direct_us| (direct_us, delay.queue_us)));
    }
    if pairs.is_empty() {
        return false;
    }
    let middle = pairs.len() / 2;
    let mut median = |of: fn(&(f64, f64)) -> f64| {
        of(pairs.select_nth_unstable_by(middle, |a, b| of(a).total_cmp(&of(b))).1)
    };
    let apart_us = median(|(direct, echoed)| echoed - direct).abs();
    apart_us > 10_000.0 && apart_us > 0.2 * median(|(direct, echoed)| direct.max(*echoed))
}

/// What one host's flows say together; `None` where that is too little.
fn analyse(
    source: &Source<'_>,
    host: &[Sender],
    asked: &Asked<'_>,
    desk: &mut Desk,
    visitor: &mut impl Visitor,
) -> Option<HostReport> {
    let mut by_protocol: [Vec<Delay>; 2] = Default::default();
    by_protocol[host[0].protocol() as usize] = core::mem::take(&mut desk.delays);
    let mut together = Together::default();
    let samples = |sender: &Sender| source.samples(sender) as u64;
    let all = host.iter().map(samples).sum::<u64>();
    let may_count = |sender: &Sender| samples(sender) * PART_THAT_COUNTS * SAMPLES_LOST_MAX >= all;
    for group in host.chunk_by(Sender::shares_base_with) {
        let delays = &mut by_protocol[group[0].protocol() as usize];
        // What a window's base is all have to be read for first.
        let is_one_pass = group.len() < 2 || !matches!(asked.config.base, Base::Sliding(_));
        if is_one_pass && group.iter().all(|sender| asked.depth(may_count(sender)) == Depth::Direct) {
            add_group(source, group, asked, delays, &mut together);
        } else {
            hand_out_group(source, group, (asked, &may_count), delays, (&mut together, visitor));
        }
    }
    let [all, utp, tcp] = desk.sum_up(by_protocol, asked.config.samples_min)?;
    Some(HostReport {
        address: source.flows.stock.key(host[0].place()).address(host[0].side()).ip(),
        flows: together.flows,
        all: all?,
        utp,
        tcp,
        clock_hz: together.clock_hz,
        round_trip: together.round_trip(),
        flags: together.flags(),
    })
}

impl Asked<'_> {
    /// How much of a direction is looked at: all, where that is handed out, or may flag the host.
    fn depth(&self, may_count: bool) -> Depth {
        let is_whole = self.wants > Wants::Nothing || may_count || self.config.estimator == Estimator::Echoed;
        if is_whole { Depth::Whole } else { Depth::Direct }
    }
}

/// Hands out directions that may share their base, and adds their delays.
fn hand_out_group(
    source: &Source<'_>,
    group: &[Sender],
    (asked, may_count): (&Asked<'_>, &impl Fn(&Sender) -> bool),
    delays: &mut Vec<Delay>,
    (together, visitor): (&mut Together, &mut impl Visitor),
) {
    let shared = Shared::of(source, group, asked.config.base);
    for &sender in group {
        let mut direction = Direction::read(source, sender, Depth::Whole);
        let clock = direction.clock();
        direction.lower_base(shared.as_ref());
        let (mut report, samples) = hand_out_all(&mut direction, asked, delays, visitor);
        // Whether estimates agree is not asked of small ones where nothing is handed out.
        if !may_count(&sender) {
            report.flags = report.flags.without(Flags::ESTIMATORS_DISAGREE);
        }
        together.add(&report, samples as u64, &clock);
    }
}

/// As [`hand_out_group`], where nothing is handed out: each direction is read once.
fn add_group(
    source: &Source<'_>,
    group: &[Sender],
    asked: &Asked<'_>,
    delays: &mut Vec<Delay>,
    together: &mut Together,
) {
    let mut shared = Some(f64::INFINITY);
    // Where each one's delays end, and its own base.
    let mut ends = Vec::with_capacity(group.len());
    let mut at = delays.len();
    for &sender in group {
        let mut direction = Direction::read(source, sender, Depth::Direct);
        let (clock, own) = (direction.clock(), direction.reading.direct.only_base());
        shared = shared.and_then(|base| direction.lowest_base(base));
        let before = delays.len();
        direction.reading.direct.take_delays(asked.config.base, delays);
        ends.push((delays.len(), own));
        let report = direction.report(&delays[before..]);
        together.add(&report, (delays.len() - before) as u64, &clock);
    }
    for (end, own) in ends {
        if let (Base::Whole, Some(own), Some(base)) = (asked.config.base, own, shared)
            && is_of_one_clock(own, base)
        {
            delays[at..end].iter_mut().for_each(|delay| delay.queue_us += own - base);
        }
        at = end;
    }
}

/// Whether two bases differ by no more than queues explain.
fn is_of_one_clock(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME_CLOCK_US
}

/// What all uTP flows of one socket saw of one clock.
struct Shared {
    base: f64,
    /// For a base that slides.
    slots: Option<Slots>,
}

impl Shared {
    /// `None` where they cannot be compared. Each is read for itself, as they may be many.
    fn of(source: &Source<'_>, group: &[Sender], base: Base) -> Option<Self> {
        if group.len() < 2 {
            return None;
        }
        let read = |&sender| Direction::read(source, sender, Depth::Direct);
        let lowest = |base, direction: Direction| direction.lowest_base(base);
        let lowest = group.iter().map(read).try_fold(f64::INFINITY, lowest)?;
        let Base::Sliding(window_us) = base else { return Some(Self { base: lowest, slots: None }) };
        let mut slots = Slots::default();
        for Direction { reading, .. } in group.iter().map(read) {
            let own = reading.direct.only_base().filter(|own| is_of_one_clock(*own, lowest));
            let seen = own.and_then(|_| reading.direct.only_slots(window_us));
            seen.iter().for_each(|seen| slots.add(seen));
        }
        Some(Self { base: lowest, slots: Some(slots) })
    }
}

/// Hands out samples and report of a direction, and adds to the host's delays; the report, and how many direct samples it is of.
fn hand_out_all(
    direction: &mut Direction,
    asked: &Asked<'_>,
    delays: &mut Vec<Delay>,
    visitor: &mut impl Visitor,
) -> (FlowReport, usize) {
    let take = |track: &mut Track| {
        let mut delays = Vec::new();
        track.take_delays(asked.config.base, &mut delays);
        order::put_in_order(&mut delays);
        delays
    };
    let (direct, echoed) = (take(&mut direction.reading.direct), take(&mut direction.reading.echoed));
    let direction = &*direction;
    if asked.wants == Wants::Samples {
        hand_out(direction, Estimator::Direct, &direct, visitor);
        hand_out(direction, Estimator::Echoed, &echoed, visitor);
    }
    let mut report = direction.report(&direct);
    (report.direct, report.echoed) = (Summary::of(&direct), Summary::of(&echoed));
    report.flags.set_if(disagree(&direct, &echoed), Flags::ESTIMATORS_DISAGREE);
    visitor.flow(&report);
    let samples = direct.len();
    delays.extend(match asked.config.estimator {
        Estimator::Direct => direct,
        Estimator::Echoed => echoed,
    });
    (report, samples)
}

fn hand_out(direction: &Direction, estimator: Estimator, delays: &[Delay], visitor: &mut impl Visitor) {
    let about = &direction.about;
    let (source, destination, protocol) = (about.source(), about.destination(), about.protocol());
    for &delay in delays {
        visitor.sample(&QueueSample { source, destination, protocol, estimator, delay });
    }
}
