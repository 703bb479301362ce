//! From flows to hosts: whose queue it was.
//!
//! A host's delay is its uplink's, whoever caused it, so the samples of all flows that an address sent are put together
//! in the order of time. uTP flows from one socket share a clock, and with it the base: what one of them saw when the
//! queue was empty holds for the others. TCP's connections each have an offset of their own.

use crate::clock::Rate;
use crate::flow::{Flow, Marks, Rtt};
use crate::frame::Socket;
use crate::host::Together;
use crate::intake::Counters;
use crate::key::{Key, Side};
use crate::meter::Config;
use crate::pool::Pool;
use crate::report::{Estimator, Flags, FlowReport, HostReport, Protocol, Report, RoundTrip};
use crate::several::{Likeness, SAME_CLOCK_US};
use crate::stock::{Place, Reader, Sender};
use crate::summary::{Delay, Summary};
use crate::track::{self, Reading};
use crate::utp;

const SHORT_SAMPLES: u64 = 50;
const SHORT_S: f64 = 10.0;
const COARSE_TICK_HZ: f64 = 250.0;
/// Octets that a sample takes while its host is analysed: as a point, as a delay of its flow and of its host, and as a
/// value whose rank is sought. Its length is gone before the last one comes.
const ANALYSIS_BYTES_DIRECT: usize = 64;
const ANALYSIS_BYTES_ECHOED: usize = 16;
/// Clocks of 32 bits begin anew after so many ticks.
const WRAP_TICKS: f64 = (1_u64 << 32) as f64;
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
    for host in senders.chunk_by(|a, b| a.0 == b.0) {
        let stride = stride(host, flows, room);
        report.counters.thinned += left_out(host, flows, stride);
        let source = Source { flows, stride };
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

/// Of how many samples one is looked at, so that a host's analysis has the room that it takes. Of each direction at least one
/// is.
fn stride(host: &[Sender], flows: &Reader<'_>, room: usize) -> usize {
    let bytes = |stride: usize| -> usize {
        let bytes_of = |&(_, place, side): &Sender| {
            let (direct, echoed) = flows.samples(place, side);
            direct.div_ceil(stride) * ANALYSIS_BYTES_DIRECT + echoed.div_ceil(stride) * ANALYSIS_BYTES_ECHOED
        };
        host.iter().map(bytes_of).sum()
    };
    let mut stride = bytes(1).div_ceil(room.max(1)).max(1);
    while stride < STRIDE_MAX && bytes(stride) > room {
        stride += stride.div_ceil(4);
    }
    stride
}

fn left_out(host: &[Sender], flows: &Reader<'_>, stride: usize) -> u64 {
    if stride == 1 {
        return 0;
    }
    let samples = |&(_, place, side): &Sender| flows.samples(place, side).0;
    host.iter().map(samples).map(|samples| samples - samples.div_ceil(stride)).sum::<usize>() as u64
}

/// Who sent what can be analysed, in order.
fn senders(flows: &Reader<'_>, only: Option<Protocol>, report: &mut Report) -> Vec<Sender> {
    let mut senders = Vec::with_capacity(2 * flows.stock.len());
    for place in flows.stock.places() {
        let key = flows.stock.key(place);
        if only.is_none_or(|only| (only == Protocol::Tcp) == key.is_tcp()) {
            let tells = match flows.has_samples(place) {
                Some(has_samples) => has_samples,
                None => flows.with(place, |flow, pool| tells_something(flow, pool, report)),
            };
            report.timeless_tcp_flows += u64::from(key.is_tcp() && tells == [false; 2]);
            let sides = [0, 1].into_iter().filter(|&side| tells[side]);
            senders.extend(sides.map(|side| (key.address(side), place, side as u8)));
        }
    }
    senders.sort_unstable();
    senders
}

/// Which sides do.
fn tells_something(flow: &Flow, pool: &Pool, report: &mut Report) -> [bool; 2] {
    let has_samples = [0, 1].map(|side: Side| flow.sides[side].direct.len() > 0);
    let tells = has_samples.contains(&true);
    if flow.key.is_tcp() {
        return has_samples;
    }
    let is_utp = tells && utp::is_utp(flow, |side| track::stamps_follow_time(&flow.sides[side], pool));
    report.other_udp_flows += u64::from(!is_utp);
    if is_utp { has_samples } else { [false; 2] }
}

impl About {
    fn of(flow: &Flow, side: Side) -> Self {
        let (direction, other) = (&flow.sides[side], &flow.sides[1 - side]);
        Self {
            key: flow.key,
            side,
            marks: flow.marks,
            packets: direction.packets,
            bytes: direction.bytes,
            span_us: (flow.first_us, direction.last_us),
            hop_limit: direction.hop_limit,
            is_alone: other.packets == 0,
            // What the other side asked, this side answered.
            round_trip: round_trip(&other.rtt),
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
    fn read(source: &Source<'_>, (place, side): (Place, u8)) -> Self {
        let side = usize::from(side);
        source.flows.with(place, |flow, pool| {
            let read = if flow.key.is_tcp() { track::read_tcp } else { track::read_utp };
            Self { about: About::of(flow, side), reading: read(flow, side, pool, source.stride) }
        })
    }

    fn flags(&self, direct: &Summary, echoed: Option<&Summary>) -> Flags {
        let mut flags = Flags::default();
        let (marks, reading) = (self.about.marks, &self.reading);
        flags.set_if(!marks.has(Marks::START), Flags::START_NOT_SEEN);
        flags.set_if(marks.has(Marks::OFFLOADED), Flags::OFFLOADED);
        flags.set_if(marks.has(Marks::LOST_TRACK), Flags::LOST_TRACK);
        flags.set_if(marks.has(Marks::EVICTED), Flags::EVICTED);
        flags.set_if(reading.direct.is_unconfirmed(), Flags::BASE_NOT_REVISITED);
        flags.set_if(reading.direct.pieces.len() > 1, Flags::CLOCK_STEP);
        flags.set_if(reading.drift_ppm.is_some(), Flags::DRIFT_CORRECTED);
        flags.set_if(reading.without_transmission, Flags::TRANSMISSION_REMOVED);
        flags.set_if(self.about.is_alone, Flags::ONE_DIRECTION);
        flags.set_if(direct.samples < SHORT_SAMPLES || direct.covered_s < SHORT_S, Flags::SHORT);
        match reading.rate {
            Some(Rate::Unknown) => flags.set_if(true, Flags::RATE_ASSUMED),
            Some(Rate::Snapped(hz)) => flags.set_if(hz <= COARSE_TICK_HZ, Flags::COARSE_CLOCK),
            Some(Rate::Odd(_)) | None => {}
        }
        flags.set_if(echoed.is_some_and(|echoed| disagree(direct, echoed)), Flags::ESTIMATORS_DISAGREE);
        flags
    }

    /// Takes what other flows of the socket told of an empty queue.
    fn lower_base(&mut self, base: Option<f64>) {
        let own = self.reading.direct.only_base();
        if let Some((own, base)) = own.zip(base)
            && (own - base).abs() <= SAME_CLOCK_US
        {
            self.reading.direct.lower_base(base);
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

    fn report(&self, direct: Option<Summary>, echoed: Option<Summary>) -> FlowReport {
        let about = &self.about;
        let mut flags = Flags::default();
        flags.set_if(matches!(self.reading.rate, Some(Rate::Odd(_))), Flags::RATE_ODD);
        FlowReport {
            source: about.source(),
            destination: about.destination(),
            protocol: about.protocol(),
            packets: about.packets,
            bytes: about.bytes,
            span_us: about.span_us,
            flags: direct.map_or(flags, |direct| flags.with(self.flags(&direct, echoed.as_ref()))),
            direct,
            echoed,
            clock_hz: self.reading.rate.and_then(track::hz),
            drift_ppm: self.reading.drift_ppm,
            round_trip: about.round_trip,
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

/// What one host's flows say together; `None` where that is too little.
fn analyse(
    source: &Source<'_>,
    host: &[Sender],
    config: &Config,
    visitor: &mut impl Visitor,
) -> Option<HostReport> {
    let mut by_protocol: [Vec<Delay>; 2] = Default::default();
    let mut together = Together::default();
    for group in by_socket(source, host).chunk_by(|&a, &b| share_base(source, a, b)) {
        let base = shared_base(source, group);
        for &direction in group {
            let mut direction = Direction::read(source, direction);
            let clock = direction.clock();
            direction.lower_base(base);
            let delays = &mut by_protocol[direction.about.protocol() as usize];
            let report = hand_out_all(&mut direction, config, delays, visitor);
            together.add(&report, &clock);
        }
    }
    let [all, utp, tcp] = summaries(by_protocol, config.samples_min)?;
    Some(HostReport {
        address: host[0].0.ip(),
        flows: together.flows,
        all: all?,
        utp,
        tcp,
        clock_hz: together.clock_hz,
        round_trip: together.round_trip(),
        flags: together.flags(),
    })
}

/// The base of all uTP flows of one socket, where they can be compared. Each is read for itself, as they may be many.
fn shared_base(source: &Source<'_>, group: &[(Place, u8)]) -> Option<f64> {
    if group.len() < 2 {
        return None;
    }
    let mut base = f64::INFINITY;
    for &direction in group {
        let reading = Direction::read(source, direction).reading;
        // Offsets that were straightened from different beginnings cannot be compared.
        if reading.drift_ppm.is_some() {
            return None;
        }
        base = reading.direct.only_base().map_or(base, |own| own.min(base));
    }
    Some(base)
}

fn socket_of(source: &Source<'_>, (place, side): (Place, u8)) -> (Protocol, Socket) {
    let key = source.flows.stock.key(place);
    (protocol(key), key.socket(side.into()))
}

fn share_base(source: &Source<'_>, a: (Place, u8), b: (Place, u8)) -> bool {
    let socket = socket_of(source, a);
    socket.0 == Protocol::Utp && socket == socket_of(source, b)
}

/// A host's directions by protocol and socket.
fn by_socket(source: &Source<'_>, host: &[Sender]) -> Vec<(Place, u8)> {
    let mut order: Vec<(Place, u8)> = host.iter().map(|&(_, place, side)| (place, side)).collect();
    order.sort_unstable_by_key(|&direction| (socket_of(source, direction), direction));
    order
}

/// Hands out samples and report of a direction, and adds to the host's delays.
fn hand_out_all(
    direction: &mut Direction,
    config: &Config,
    delays: &mut Vec<Delay>,
    visitor: &mut impl Visitor,
) -> FlowReport {
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
    report
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

fn hand_out(direction: &Direction, estimator: Estimator, delays: &[Delay], visitor: &mut impl Visitor) {
    let about = &direction.about;
    let (source, destination, protocol) = (about.source(), about.destination(), about.protocol());
    for &delay in delays {
        visitor.sample(&QueueSample { source, destination, protocol, estimator, delay });
    }
}
