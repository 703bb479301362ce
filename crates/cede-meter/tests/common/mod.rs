//! Frames made by hand, and what a meter makes of them.
#![allow(dead_code, reason = "each test file uses its own part")]

use cede_meter::{Config, Estimator, FlowReport, Meter, QueueSample, Report, Visitor};
use cede_units::{Seq16, Stream};
use cede_wire::link::LinkType;
use cede_wire::utp::{Header, Kind};
use core::ops::Range;

/// The host whose queue is of interest, and the one beside the observer.
pub const B: ([u8; 4], u16) = ([10, 0, 1, 2], 6881);
pub const A: ([u8; 4], u16) = ([10, 0, 3, 2], 6882);

/// An IPv4 packet.
pub fn ipv4(protocol: u8, from: [u8; 4], to: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len()) as u16;
    let mut out = vec![0x45, 0];
    out.extend(len.to_be_bytes());
    out.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    out.extend(from);
    out.extend(to);
    out.extend(payload);
    out
}

/// An IPv6 packet between hosts of 2001:db8::, by their last octets.
pub fn ipv6(next: u8, (from, to): (u8, u8), payload: &[u8]) -> Vec<u8> {
    let end = |last: u8| [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[last]].concat();
    let len = (payload.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0][..], &len, &[next, 64], &end(from), &end(to), payload].concat()
}

pub fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &ether_type.to_be_bytes(), payload].concat()
}

pub fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    [&from.to_be_bytes()[..], &to.to_be_bytes(), &len.to_be_bytes(), &[0, 0], payload].concat()
}

/// A TCP segment with timestamps and `len` octets of payload.
#[derive(Clone)]
pub struct Tcp {
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub clock: u32,
    pub echo: u32,
    pub len: usize,
}

impl Tcp {
    pub fn octets(&self, from: u16, to: u16) -> Vec<u8> {
        let mut out = [from.to_be_bytes(), to.to_be_bytes()].concat();
        out.extend(self.seq.to_be_bytes());
        out.extend(self.ack.to_be_bytes());
        out.extend([0x80, self.flags, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
        out.extend(self.clock.to_be_bytes());
        out.extend(self.echo.to_be_bytes());
        out.extend(vec![0; self.len]);
        out
    }
}

/// A uTP packet.
pub fn utp(
    kind: Kind,
    id: u16,
    (seq, ack): (u16, u16),
    (stamp_us, difference_us): (u32, u32),
    len: usize,
) -> Vec<u8> {
    let header = Header {
        kind,
        connection_id: id,
        timestamp_us: stamp_us,
        timestamp_difference_us: difference_us,
        window_bytes: 1 << 20,
        seq: Seq16(seq),
        ack: Seq16(ack),
    };
    let mut out = Vec::new();
    header.encode_into(&[], &vec![7; len], &mut out).expect("room");
    out
}

/// What a host's TCP stamps its segments with.
#[derive(Clone, Copy)]
pub struct Clock {
    pub hz: u64,
    pub ppm: f64,
    /// Ticks that it began with.
    pub ahead: u32,
}

impl Clock {
    fn shows(&self, at_us: u64) -> u32 {
        let ticks = (at_us as f64 * (1.0 + self.ppm / 1e6)) as u64 * self.hz / 1_000_000;
        (ticks as u32).wrapping_add(self.ahead)
    }
}

/// A connection from a port of B's between two times in seconds: a segment each 20 ms through a queue that grows to 15 ms and
/// empties every two seconds.
pub fn connection(tap: &mut Tap, port: u16, clock: &Clock, seconds: Range<u64>, noise: &mut Stream) {
    for k in seconds.start * 50..seconds.end * 50 {
        let (sent, queue) = (1_000_000 + k * 20_000, k % 100 * 150 + noise.below(30));
        let of_a = |at: u64| (at / 1000) as u32;
        let (arrives, seq) = (sent + 20_000 + queue, k as u32 * 100);
        let (stamp, echo) = (clock.shows(sent), of_a(sent - 1_000));
        let data = Tcp { seq, ack: 1, flags: 0x10, clock: stamp, echo, len: 100 };
        let ack = Tcp { seq: 1, ack: seq + 100, flags: 0x10, clock: of_a(arrives), echo: stamp, len: 0 };
        tap.tcp(arrives, (B.0, port), A, &data);
        tap.tcp(arrives + 10, A, (B.0, port), &ack);
    }
}

/// A meter and the frames between A and B.
pub struct Tap(pub Meter);

impl Tap {
    pub fn new(config: Config) -> Self {
        Self(Meter::new(config))
    }

    pub fn frame(&mut self, time_us: u64, frame: &[u8]) {
        self.0.packet(time_us * 1000, LinkType::ETHERNET, frame, frame.len() as u32);
    }

    pub fn utp(&mut self, time_us: u64, from: ([u8; 4], u16), to: ([u8; 4], u16), packet: &[u8]) {
        self.frame(time_us, &ethernet(0x0800, &ipv4(17, from.0, to.0, &udp(from.1, to.1, packet))));
    }

    pub fn tcp(&mut self, time_us: u64, from: ([u8; 4], u16), to: ([u8; 4], u16), segment: &Tcp) {
        self.frame(time_us, &ethernet(0x0800, &ipv4(6, from.0, to.0, &segment.octets(from.1, to.1))));
    }

    pub fn found(&self) -> Found {
        let mut found = Found::default();
        found.report = Some(self.0.report_to(&mut found.seen));
        found
    }
}

#[derive(Default)]
pub struct Seen {
    pub samples: Vec<QueueSample>,
    pub flows: Vec<FlowReport>,
}

impl Visitor for Seen {
    fn sample(&mut self, sample: &QueueSample) {
        self.samples.push(*sample);
    }

    fn flow(&mut self, flow: &FlowReport) {
        self.flows.push(flow.clone());
    }
}

#[derive(Default)]
pub struct Found {
    pub seen: Seen,
    pub report: Option<Report>,
}

impl Found {
    pub fn report(&self) -> &Report {
        self.report.as_ref().expect("a report")
    }

    /// Delays in microseconds of what a host sent.
    pub fn queue_us(&self, host: [u8; 4], estimator: Estimator) -> Vec<f64> {
        let of = |sample: &&QueueSample| {
            sample.source.address == core::net::IpAddr::from(host) && sample.estimator == estimator
        };
        self.seen.samples.iter().filter(of).map(|sample| sample.delay.queue_us).collect()
    }

    pub fn flow(&self, host: [u8; 4]) -> &FlowReport {
        self.seen
            .flows
            .iter()
            .find(|flow| flow.source.address == core::net::IpAddr::from(host))
            .expect("a flow of the host")
    }
}

/// A flow's packet of a number: of each second flow TCP, else uTP; data and acknowledgements by turns.
pub fn packet_of(time_us: u64, flow: u32, step: u32, hosts: u32) -> Vec<u8> {
    let (port, last) = (1024 + (flow / hosts) as u16, flow % hosts);
    let from = [10, (last >> 16) as u8, (last >> 8) as u8, last as u8];
    if flow.is_multiple_of(2) {
        let clock = (time_us / 1000) as u32;
        let (seq, ack) = if step.is_multiple_of(2) { (step * 100, 1) } else { (1, (step - 1) * 100 + 100) };
        let segment =
            Tcp { seq, ack, flags: 0x10, clock, echo: 9, len: if step.is_multiple_of(2) { 100 } else { 0 } };
        if step.is_multiple_of(2) {
            ipv4(6, from, A.0, &segment.octets(port, 80))
        } else {
            ipv4(6, A.0, from, &segment.octets(80, port))
        }
    } else if step.is_multiple_of(2) {
        let data = utp(Kind::Data, 8, (step as u16, 4), (time_us as u32, 5), 20);
        ipv4(17, from, A.0, &udp(port, 80, &data))
    } else {
        let state = utp(Kind::State, 7, (5, step as u16 - 1), (time_us as u32, 500 + step), 0);
        ipv4(17, A.0, from, &udp(80, port, &state))
    }
}
