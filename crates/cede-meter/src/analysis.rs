//! From flows to hosts: whose queue it was.
//!
//! A host's delay is its uplink's, whoever caused it, so the samples of all flows that an address sent are put together
//! in the order of time. uTP flows from one socket share a clock, and with it the base: what one of them saw when the
//! queue was empty holds for the others. TCP's connections each have an offset of their own.

use crate::clock::Rate;
use crate::flow::{Flow, Marks, Rtt};
use crate::frame::Socket;
use crate::intake::Counters;
use crate::key::Side;
use crate::meter::{Config, SHARES, SHARES_OF_ANALYSIS};
use crate::report::{Estimator, Flags, FlowReport, HostReport, Protocol, Report, RoundTrip};
use crate::samples::Pool;
use crate::summary::{Delay, Summary};
use crate::track::{self, Reading};
use crate::utp;
use core::net::IpAddr;

const SHORT_SAMPLES: u64 = 50;
const SHORT_S: f64 = 10.0;
const COARSE_TICK_HZ: f64 = 250.0;
/// Octets that a sample takes while its host is analysed: as a point, as a delay of its flow and of its host, and as a
/// value whose rank is sought. Its length is gone before the last one comes.
const ANALYSIS_BYTES_DIRECT: usize = 64;
const ANALYSIS_BYTES_ECHOED: usize = 16;
/// Clocks of one host differ by less than this in what is measured of them.
const SAME_CLOCK_PPM: f64 = 30.0;

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

/// What is handed out on the way to a report.
pub trait Visitor {
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
impl Visitor for () {}

/// A direction that is to be analysed.
struct Direction<'a> {
    flow: &'a Flow,
    side: Side,
    source: Socket,
    reading: Reading,
}

/// Where directions are read from: of so many samples one.
struct Source<'a> {
    flows: &'a [&'a Flow],
    pool: &'a Pool,
    stride: usize,
}

/// What the host needs to know of a direction once its samples were handed out.
struct Facts {
    protocol: Protocol,
    samples: u64,
    flags: Flags,
    clock_hz: Option<f64>,
    drift_ppm: Option<f64>,
    round_trip: Option<RoundTrip>,
    /// A rate that systems have.
    rate_hz: Option<f64>,
    hop_limit: u8,
}

/// Makes the report.
pub(crate) fn report(
    flows: &[&Flow],
    pool: &Pool,
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
    let senders = senders(flows, pool, config.protocol, &mut report);
    for host in senders.chunk_by(|a, b| a.0 == b.0) {
        let stride = stride(host, flows, config);
        report.counters.thinned += left_out(host, flows, stride);
        let source = Source { flows, pool, stride };
        match analyse(&source, host, config, visitor) {
            Some(host) => report.hosts.push(host),
            None => report.hosts_with_too_little += 1,
        }
    }
    report
        .hosts
        .sort_by(|a, b| b.all.time_mean_ms.total_cmp(&a.all.time_mean_ms).then(a.address.cmp(&b.address)));
    report
}

/// Of how many samples one is looked at, so that what a host's analysis takes stays within its share of the memory.
fn stride(host: &[(IpAddr, u32, Side)], flows: &[&Flow], config: &Config) -> usize {
    let bytes_of = |&(_, index, side): &(IpAddr, u32, Side)| {
        let side = &flows[index as usize].sides[side];
        side.direct.len() * ANALYSIS_BYTES_DIRECT + side.echo.len() * ANALYSIS_BYTES_ECHOED
    };
    let needed: usize = host.iter().map(bytes_of).sum();
    needed.div_ceil((config.memory_bytes / SHARES * SHARES_OF_ANALYSIS).max(1)).max(1)
}

fn left_out(host: &[(IpAddr, u32, Side)], flows: &[&Flow], stride: usize) -> u64 {
    let samples = |&(_, index, side): &(IpAddr, u32, Side)| flows[index as usize].sides[side].direct.len();
    host.iter().map(|direction| samples(direction) - samples(direction).div_ceil(stride)).sum::<usize>()
        as u64
}

/// Who sent what can be analysed: address, number of the flow, side; in order.
fn senders(
    flows: &[&Flow],
    pool: &Pool,
    only: Option<Protocol>,
    report: &mut Report,
) -> Vec<(IpAddr, u32, Side)> {
    let mut senders = Vec::new();
    for (index, flow) in flows.iter().enumerate() {
        let is_wanted = only.is_none_or(|only| (only == Protocol::Tcp) == flow.key.is_tcp());
        if is_wanted && tells_something(flow, pool, report) {
            let sides = [0, 1].into_iter().filter(|&side| flow.sides[side].direct.len() > 0);
            senders.extend(sides.map(|side| (flow.key.socket(side).address, index as u32, side)));
        }
    }
    senders.sort_unstable();
    senders
}

fn tells_something(flow: &Flow, pool: &Pool, report: &mut Report) -> bool {
    let has_samples = flow.sides.iter().any(|side| side.direct.len() > 0);
    if flow.key.is_tcp() {
        report.timeless_tcp_flows += u64::from(!has_samples);
        return has_samples;
    }
    let is_utp = has_samples && utp::is_utp(flow, |side| track::stamps_follow_time(&flow.sides[side], pool));
    report.other_udp_flows += u64::from(!is_utp);
    is_utp
}

impl<'a> Direction<'a> {
    fn read(source: &Source<'a>, index: u32, side: Side) -> Self {
        let Source { flows, pool, stride } = *source;
        let flow = flows[index as usize];
        let reading = if flow.key.is_tcp() {
            track::read_tcp(flow, side, pool, stride)
        } else {
            track::read_utp(flow, side, pool, stride)
        };
        Self { flow, side, source: flow.key.socket(side), reading }
    }

    const fn protocol(&self) -> Protocol {
        if self.flow.key.is_tcp() { Protocol::Tcp } else { Protocol::Utp }
    }

    fn flags(&self, direct: &Summary, echoed: Option<&Summary>) -> Flags {
        let mut flags = Flags::default();
        let (marks, reading) = (self.flow.marks, &self.reading);
        flags.set_if(!marks.has(Marks::START), Flags::START_NOT_SEEN);
        flags.set_if(marks.has(Marks::OFFLOADED), Flags::OFFLOADED);
        flags.set_if(marks.has(Marks::LOST_TRACK), Flags::LOST_TRACK);
        flags.set_if(marks.has(Marks::EVICTED), Flags::EVICTED);
        flags.set_if(reading.direct.is_unconfirmed(), Flags::BASE_NOT_REVISITED);
        flags.set_if(reading.direct.pieces.len() > 1, Flags::CLOCK_STEP);
        flags.set_if(reading.drift_ppm.is_some(), Flags::DRIFT_CORRECTED);
        flags.set_if(reading.without_transmission, Flags::TRANSMISSION_REMOVED);
        flags.set_if(self.flow.sides[1 - self.side].packets == 0, Flags::ONE_DIRECTION);
        flags.set_if(direct.samples < SHORT_SAMPLES || direct.covered_s < SHORT_S, Flags::SHORT);
        match reading.rate {
            Some(Rate::Unknown) => flags.set_if(true, Flags::RATE_ASSUMED),
            Some(Rate::Snapped(hz)) => flags.set_if(hz <= COARSE_TICK_HZ, Flags::COARSE_CLOCK),
            Some(Rate::Odd(_)) | None => {}
        }
        flags.set_if(echoed.is_some_and(|echoed| disagree(direct, echoed)), Flags::ESTIMATORS_DISAGREE);
        flags
    }

    fn report(&self, direct: Option<Summary>, echoed: Option<Summary>) -> FlowReport {
        let side = &self.flow.sides[self.side];
        let mut flags = Flags::default();
        flags.set_if(matches!(self.reading.rate, Some(Rate::Odd(_))), Flags::RATE_ODD);
        FlowReport {
            source: self.source,
            destination: self.flow.key.socket(1 - self.side),
            protocol: self.protocol(),
            packets: side.packets,
            bytes: side.bytes,
            span_us: (self.flow.first_us, side.last_us),
            flags: direct.map_or(flags, |direct| flags.with(self.flags(&direct, echoed.as_ref()))),
            direct,
            echoed,
            clock_hz: self.reading.rate.and_then(track::hz),
            drift_ppm: self.reading.drift_ppm,
            // What the other side asked, this side answered.
            round_trip: round_trip(&self.flow.sides[1 - self.side].rtt),
        }
    }
}

impl Facts {
    fn of(direction: &Direction<'_>, report: &FlowReport) -> Self {
        let rate_hz = match direction.reading.rate {
            Some(Rate::Snapped(hz)) => Some(hz),
            _ => None,
        };
        Self {
            protocol: report.protocol,
            samples: report.direct.map_or(0, |direct| direct.samples),
            flags: report.flags,
            clock_hz: report.clock_hz,
            drift_ppm: report.drift_ppm,
            round_trip: report.round_trip,
            rate_hz,
            hop_limit: direction.flow.sides[direction.side].hop_limit,
        }
    }
}

fn round_trip(rtt: &Rtt) -> Option<RoundTrip> {
    (rtt.count > 0).then(|| RoundTrip {
        samples: rtt.count,
        min_ms: f64::from(rtt.min_us) / 1e3,
        mean_ms: rtt.sum_us as f64 / f64::from(rtt.count) / 1e3,
    })
}

/// By more than 10 ms and a fifth in the middle.
fn disagree(a: &Summary, b: &Summary) -> bool {
    let difference = (a.p50_ms - b.p50_ms).abs();
    b.samples >= SHORT_SAMPLES && difference > 10.0 && difference > 0.2 * a.p50_ms.max(b.p50_ms)
}

/// One base for all uTP flows of one socket.
fn pool_bases(group: &mut [Direction<'_>]) {
    // Offsets that were straightened from different beginnings cannot be compared.
    if group.len() < 2 || group.iter().any(|direction| direction.reading.drift_ppm.is_some()) {
        return;
    }
    let base = group.iter().filter_map(|d| d.reading.direct.only_base()).fold(f64::INFINITY, f64::min);
    let is_near = |own: f64| (own - base).abs() <= 10e6;
    for direction in group.iter_mut().filter(|d| d.reading.direct.only_base().is_some_and(is_near)) {
        direction.reading.direct.lower_base(base);
    }
}

/// What one host's flows say together; `None` where that is too little. Flows are read one by one, but those of one uTP
/// socket, which share their base, together.
fn analyse(
    source: &Source<'_>,
    host: &[(IpAddr, u32, Side)],
    config: &Config,
    visitor: &mut impl Visitor,
) -> Option<HostReport> {
    let mut by_protocol: [Vec<Delay>; 2] = Default::default();
    let mut facts = Vec::with_capacity(host.len());
    for group in by_socket(source, host).chunk_by(|&a, &b| share_base(source, a, b)) {
        let mut group: Vec<Direction<'_>> =
            group.iter().map(|&(index, side)| Direction::read(source, index, side)).collect();
        pool_bases(&mut group);
        for direction in &mut group {
            let delays = &mut by_protocol[direction.protocol() as usize];
            facts.push(hand_out_all(direction, config, delays, visitor));
        }
    }
    let [all, utp, tcp] = summaries(by_protocol, config.samples_min)?;
    Some(HostReport {
        address: host[0].0,
        flows: facts.len() as u32,
        all: all?,
        utp,
        tcp,
        clock_hz: facts
            .iter()
            .filter(|facts| facts.protocol == Protocol::Tcp)
            .find_map(|facts| facts.clock_hz),
        round_trip: shortest(&facts),
        flags: host_flags(&facts),
    })
}

fn socket_of(source: &Source<'_>, (index, side): (u32, Side)) -> (Protocol, Socket) {
    let key = &source.flows[index as usize].key;
    (if key.is_tcp() { Protocol::Tcp } else { Protocol::Utp }, key.socket(side))
}

fn share_base(source: &Source<'_>, a: (u32, Side), b: (u32, Side)) -> bool {
    let socket = socket_of(source, a);
    socket.0 == Protocol::Utp && socket == socket_of(source, b)
}

/// A host's directions, number of the flow and side, by protocol and socket.
fn by_socket(source: &Source<'_>, host: &[(IpAddr, u32, Side)]) -> Vec<(u32, Side)> {
    let mut order: Vec<(u32, Side)> = host.iter().map(|&(_, index, side)| (index, side)).collect();
    order.sort_unstable_by_key(|&direction| (socket_of(source, direction), direction));
    order
}

/// Hands out samples and report of a direction, and adds to the host's delays.
fn hand_out_all(
    direction: &mut Direction<'_>,
    config: &Config,
    delays: &mut Vec<Delay>,
    visitor: &mut impl Visitor,
) -> Facts {
    let direct = in_order(direction.reading.direct.take_delays(config.base));
    let echoed = in_order(direction.reading.echoed.take_delays(config.base));
    let direction = &*direction;
    hand_out(direction, Estimator::Direct, &direct, visitor);
    hand_out(direction, Estimator::Echoed, &echoed, visitor);
    let report = direction.report(Summary::of(&direct), Summary::of(&echoed));
    visitor.flow(&report);
    let chosen = match config.estimator {
        Estimator::Direct => direct,
        Estimator::Echoed => echoed,
    };
    if delays.is_empty() {
        *delays = chosen;
    } else {
        delays.extend(chosen);
    }
    Facts::of(direction, &report)
}

/// All samples of a host together, those of uTP and those of TCP; `None` for too few.
fn summaries(by_protocol: [Vec<Delay>; 2], samples_min: u64) -> Option<[Option<Summary>; 3]> {
    if (by_protocol.iter().map(Vec::len).sum::<usize>() as u64) < samples_min {
        return None;
    }
    let [utp, tcp] = by_protocol.map(in_order);
    Some(match (Summary::of(&utp), Summary::of(&tcp)) {
        (of_utp @ Some(_), of_tcp @ Some(_)) => [Summary::of(&in_order([utp, tcp].concat())), of_utp, of_tcp],
        (of_utp, of_tcp) => [of_utp.or(of_tcp), of_utp, of_tcp],
    })
}

fn in_order(mut delays: Vec<Delay>) -> Vec<Delay> {
    delays.sort_by_key(|delay| delay.time_us);
    delays
}

fn hand_out(direction: &Direction<'_>, estimator: Estimator, delays: &[Delay], visitor: &mut impl Visitor) {
    let destination = direction.flow.key.socket(1 - direction.side);
    for &delay in delays {
        let (source, protocol) = (direction.source, direction.protocol());
        visitor.sample(&QueueSample { source, destination, protocol, estimator, delay });
    }
}

fn shortest(facts: &[Facts]) -> Option<RoundTrip> {
    let trips = || facts.iter().filter_map(|facts| facts.round_trip);
    let samples: u32 = trips().map(|trip| trip.samples).sum();
    let mean =
        trips().map(|trip| trip.mean_ms * f64::from(trip.samples)).sum::<f64>() / f64::from(samples.max(1));
    let min_ms = trips().map(|trip| trip.min_ms).reduce(f64::min)?;
    Some(RoundTrip { samples, min_ms, mean_ms: mean })
}

/// What holds of a flow with a tenth of the host's samples or more holds of the host.
fn host_flags(facts: &[Facts]) -> Flags {
    let total: u64 = facts.iter().map(|facts| facts.samples).sum();
    let counts = |facts: &&Facts| facts.samples * 10 >= total;
    let mut flags =
        facts.iter().filter(counts).fold(Flags::default(), |flags, facts| flags.with(facts.flags));
    flags.set_if(has_several_clocks(facts), Flags::SEVERAL_CLOCKS);
    flags
}

fn has_several_clocks(facts: &[Facts]) -> bool {
    let drifts = || facts.iter().filter_map(|facts| facts.drift_ppm);
    let (low, high) = (drifts().fold(f64::INFINITY, f64::min), drifts().fold(f64::NEG_INFINITY, f64::max));
    let rates = facts.iter().filter_map(|facts| facts.rate_hz.map(f64::to_bits));
    let hops = facts.iter().map(|facts| u64::from(facts.hop_limit));
    high - low > SAME_CLOCK_PPM || are_several(rates) || are_several(hops)
}

fn are_several(mut values: impl Iterator<Item = u64>) -> bool {
    let first = values.next();
    values.any(|value| Some(value) != first)
}
