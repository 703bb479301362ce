//! Connections of one host through a token bucket, as those of most uplinks are that somebody shapes.

mod common;

use cede_meter::{Config, Estimator, Flags, FlowReport};
use common::{A, B, Found, Tap, Tcp};
use std::collections::BTreeSet;

const WAY_BACK_US: u64 = 20_000;
/// Time of a full packet.
const FULL_US: u64 = 6_000;
const FULL_BYTES: usize = 1_400;

/// A packet: of which port, when it was sent, when it left, and how many octets it has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Packet {
    sent: u64,
    port: u16,
    len: usize,
    left: u64,
}

/// What is sent to begin with, through a bucket, or a wire, on which a packet takes its own time before it has left. Of the bulk's port each packet that leaves
/// lets another one in until the end.
fn through(first: &[(u64, u16, usize)], bulk: u16, is_wire: bool, end: u64) -> Vec<Packet> {
    let mut waiting: BTreeSet<(u64, u16, usize)> = first.iter().copied().collect();
    let (mut free, mut packets) = (0, Vec::new());
    while let Some((sent, port, len)) = waiting.pop_first().filter(|packet| packet.0 < end) {
        let begins = sent.max(free);
        free = begins + FULL_US * (len as u64 + 52) / (FULL_BYTES as u64 + 52);
        let left = if is_wire { free } else { begins };
        packets.push(Packet { sent, port, len, left });
        if port == bulk && len > 0 {
            waiting.insert((left + WAY_BACK_US, port, len));
        }
    }
    packets
}

/// What the observer makes of these, but for those of no port: A opens each connection, and acknowledges the packets whose numbers it does.
fn seen(packets: &[Packet], is_acknowledged: impl Fn(usize) -> bool) -> Found {
    let mut frames = Vec::new();
    let of_a = |at: u64| (at / 1_000) as u32 + 5_000;
    let mut numbers = std::collections::BTreeMap::<u16, usize>::new();
    for packet in packets.iter().filter(|packet| packet.port > 0) {
        let &Packet { sent, port, len, left } = packet;
        let number = numbers.entry(port).or_default();
        let (stamp, seq) = ((sent / 1_000) as u32 + u32::from(port) * 77_777, (*number * FULL_BYTES) as u32);
        // What had come back when it was sent.
        let known = |other: &&Packet| other.port == port && other.left + WAY_BACK_US <= sent;
        let echo = packets.iter().rfind(known).map_or(of_a(sent), |other| of_a(other.left));
        let at = 1_000_000_000 + left;
        let flags = if len == 0 { 0x12 } else { 0x10 };
        frames.push((at, true, port, Tcp { seq, ack: 1, flags, clock: stamp, echo, len }));
        let answer =
            Tcp { seq: 1, ack: seq + len as u32, flags: 0x10, clock: of_a(left), echo: stamp, len: 0 };
        if len == 0 {
            let opens = Tcp { seq: 0, ack: 0, flags: 0x02, clock: of_a(sent), echo: 0, len: 0 };
            frames.push((1_000_000_000 + sent - WAY_BACK_US, false, port, opens));
        } else if is_acknowledged(*number) {
            frames.push((at + 1, false, port, answer));
        }
        *number += 1;
    }
    frames.sort_by_key(|frame| frame.0);
    let mut tap = Tap::new(Config { samples_min: 1, ..Config::default() });
    for (at, is_of_b, port, segment) in frames {
        let b = (B.0, port);
        let (from, to) = if is_of_b { (b, A) } else { (A, b) };
        tap.tcp(at, from, to, &segment);
    }
    tap.found()
}

fn flow(found: &Found, port: u16) -> &FlowReport {
    found.seen.flows.iter().find(|flow| flow.source.port == port && flow.direct.is_some()).expect("it sent")
}

/// The worst error in milliseconds of what is said of a port's packets.
fn worst_ms(found: &Found, packets: &[Packet], port: u16, estimator: Estimator) -> f64 {
    let of_it = found.seen.samples.iter().filter(|it| it.source.port == port && it.estimator == estimator);
    let error = |it: &cede_meter::QueueSample| {
        let is_it = |packet: &&Packet| packet.port == port && 1_000_000_000 + packet.left == it.delay.time_us;
        let packet = packets.iter().find(is_it).expect("a packet");
        (it.delay.queue_us - (packet.left - packet.sent) as f64).abs() / 1e3
    };
    of_it.map(error).reduce(f64::max).expect("samples")
}

/// Two connections open at the same time; the first packet of one is behind that of the other, and its queue is never empty again.
#[test]
fn a_packet_behind_anothers_does_not_take_that_time_by_itself() {
    let begins = |first: u64| {
        let mut packets = vec![(0, 7_001, 0), (500, 7_002, 0), (40_000, 7_001, FULL_BYTES)];
        packets.extend((0..10).map(|k| (first + k, 7_002, FULL_BYTES)));
        // A burst of the other one's every two seconds.
        packets.extend((1..10).flat_map(|k| (0..8).map(move |n| (k * 2_000_000 + n, 7_001, FULL_BYTES))));
        packets
    };
    let bucket = through(&begins(40_100), 7_002, false, 20_000_000);
    let found = seen(&bucket, |_| true);
    assert!(!flow(&found, 7_002).flags.has(Flags::TRANSMISSION_REMOVED), "{:?}", flow(&found, 7_002));
    let worst = worst_ms(&found, &bucket, 7_002, Estimator::Direct);
    assert!(worst < 1.1, "{worst}");
    // Of what is not seen nothing is known.
    let hidden: Vec<Packet> =
        bucket.iter().map(|it| if it.port == 7_001 { Packet { port: 0, ..*it } } else { *it }).collect();
    assert!(flow(&seen(&hidden, |_| true), 7_002).flags.has(Flags::TRANSMISSION_REMOVED));
    // On a wire each takes its time, whoever else is asked.
    let found = seen(&through(&begins(60_000), 7_002, true, 20_000_000), |_| true);
    assert!(flow(&found, 7_002).flags.has(Flags::TRANSMISSION_REMOVED), "{:?}", flow(&found, 7_002));
}

/// Heartbeats from an empty queue on; from the second second on others keep a second and a half in it, in bursts of ten; and from the fifth on a
/// connection, of whose packets one follows each burst, and few are acknowledged.
#[test]
fn a_connection_whose_packets_follow_bursts_is_told_where_it_begins_of_both_estimates() {
    let end = 20_000_000;
    let mut first: Vec<(u64, u16, usize)> = (0..460).map(|k| (k * 43_210, 7_001, 40)).collect();
    first.extend((0..250).map(|k| (2_000_000 + k, 0, FULL_BYTES)));
    let bursts = (0..).map(|k| 2_060_000 + k * 60_000).take_while(|at| *at < end);
    first.extend(bursts.clone().flat_map(|at| (0..9).map(move |n| (at + n, 0, FULL_BYTES))));
    let all = bursts.enumerate().skip(50);
    first.extend(all.map(|(k, at)| (at + if k % 2 == 0 { 10 } else { 59_000 }, 7_002, FULL_BYTES)));
    let packets = through(&first, u16::MAX, false, end);
    let found = seen(&packets, |number| number % 15 == 0);
    let of_it = flow(&found, 7_002);
    assert!(of_it.flags.has(Flags::BASE_TOLD) && !of_it.flags.has(Flags::ESTIMATORS_DISAGREE), "{of_it:?}");
    assert!(of_it.echoed.is_some_and(|echoed| (10..24).contains(&echoed.samples)), "{of_it:?}");
    for estimator in [Estimator::Direct, Estimator::Echoed] {
        let worst = worst_ms(&found, &packets, 7_002, estimator);
        assert!(worst < 60.0, "{worst}");
    }
}

/// As of whoever reads pages: each two seconds a connection opens in an empty queue, and a moment later one in the queue of that.
#[test]
fn each_of_many_short_connections_is_told_by_those_of_its_own_time() {
    const ROUNDS: u16 = 40;
    let round = |k: u16| {
        let begins = u64::from(k) * 2_000_000;
        let opens = [(begins, 7_100 + k, 0), (begins + 100_000, 8_100 + k, 0)];
        let burst = (0..60).map(move |n| (begins + 40_000 + n, 7_100 + k, FULL_BYTES));
        let slowly = (0..40).map(move |n| (begins + 60_000 + n * 10_000, 7_100 + k, FULL_BYTES));
        let later = (0..55).map(move |n| (begins + 140_000 + n * 7_000, 8_100 + k, FULL_BYTES));
        opens.into_iter().chain(burst).chain(slowly).chain(later)
    };
    let first: Vec<(u64, u16, usize)> = (0..ROUNDS).flat_map(round).collect();
    let packets = through(&first, u16::MAX, false, u64::MAX);
    let found = seen(&packets, |_| true);
    for port in 8_100..8_100 + ROUNDS {
        assert!(flow(&found, port).flags.has(Flags::BASE_TOLD), "{port}: {:?}", flow(&found, port).flags);
        let worst = worst_ms(&found, &packets, port, Estimator::Direct);
        assert!(worst < 7.0, "{port}: {worst}");
    }
}
