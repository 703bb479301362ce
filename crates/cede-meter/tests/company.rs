//! Flows of one host that tell each other of the queue in which some of them begin.

mod common;

use cede_meter::{Config, Estimator, Flags};
use cede_wire::utp::Kind;
use common::{A, B, Tap, Tcp, ethernet, ipv4, udp, utp};
use std::collections::VecDeque;

/// What others of B's send, beside a connection that was there before.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Others {
    Tcp,
    Utp,
    UtpOfOneSocket,
}

/// What is seen of a queue that stands.
#[derive(Clone, Copy, Debug)]
struct Scene {
    /// Of the first connection there is a packet as often once the queue is there.
    each_us: u64,
    others: Others,
    /// Of each of the others there are some ten packets, or a hundred and more.
    are_brief: bool,
    /// The others are in the same queue, or in none.
    is_one_queue: bool,
    /// What A sends queues for as long from the third second on.
    other_way_us: u64,
    /// Both ends were captured, and are read together.
    are_both_ends: bool,
}

/// A packet of B's, and what had come back to it when it was sent.
struct Sent {
    seen: u64,
    flow: u16,
    sent: u64,
    number: u64,
    /// A's clock and the number of the packet that it answered.
    heard: Option<(u64, u64)>,
}

const PORT: u16 = 7_000;

impl Scene {
    /// A minute of a connection that begins while the queue is empty, which then holds 400 ms and up to 50 more or less, and of
    /// twelve short flows that begin later.
    fn packets(&self) -> (Vec<Sent>, Vec<(u64, u16, u64)>) {
        let (mut packets, mut truth) = (Vec::new(), Vec::new());
        for flow in 0..13_u16 {
            let is_first = flow == 0;
            let begins = if is_first { 0 } else { 4_000_000 * u64::from(flow) + 1_300_000 };
            let (each_us, count) = if is_first {
                (self.each_us, 200 + 58_000_000 / self.each_us)
            } else if self.are_brief {
                (100_000, 8 + u64::from(flow))
            } else {
                (10_000, 100 + u64::from(flow) * 10)
            };
            let (mut answers, mut heard) = (VecDeque::new(), None);
            for number in 0..count {
                // While the queue is empty the first one's packets are close to each other.
                let close = if is_first { number.min(200) } else { 0 };
                let sent = 10_000_000 + begins + close * 10_000 + (number - close) * each_us;
                let is_full = sent > 12_000_000 && (is_first || self.is_one_queue);
                let wave = (sent as f64 / 3e6).sin() * 50_000.0;
                let queue = if is_full { (400_000.0 + wave) as u64 } else { 0 };
                let seen = sent + 20_000 + queue;
                while answers.front().is_some_and(|&(arrives, _)| arrives <= sent) {
                    heard = answers.pop_front().map(|(_, said)| said);
                }
                answers.push_back((seen + 10 + self.other_way_us(sent), (seen + 10, number)));
                truth.push((seen, flow, queue));
                packets.push(Sent { seen, flow, sent, number, heard });
            }
        }
        packets.sort_by_key(|packet| packet.seen);
        (packets, truth)
    }

    fn seen(&self) -> (Tap, Vec<(u64, u16, u64)>) {
        let mut tap = Tap::new(Config::default());
        let (packets, truth) = self.packets();
        let mut shown = Vec::new();
        for packet in packets {
            let [data, answer] = if packet.flow > 0 && self.others != Others::Tcp {
                self.in_utp(&packet)
            } else {
                in_tcp(&packet)
            };
            let other_way = self.other_way_us(packet.sent);
            shown.extend([(packet.seen, 1, data.clone()), (packet.seen + 10, 1, answer.clone())]);
            if self.are_both_ends {
                shown.extend([(packet.sent, 0, data), (packet.seen + 10 + other_way, 0, answer)]);
            }
        }
        shown.sort_by_key(|(time_us, ..)| *time_us);
        for (time_us, capture, packet) in &shown {
            if self.are_both_ends {
                tap.0.go_to_capture(*capture);
            }
            tap.frame(*time_us, &ethernet(0x0800, packet));
        }
        (tap, truth)
    }

    /// How long what A sends is on its way.
    const fn other_way_us(&self, at: u64) -> u64 {
        20_000 + if at > 13_000_000 { self.other_way_us } else { 0 }
    }

    /// The ports of a flow's ends.
    const fn ports(&self, flow: u16) -> (u16, u16) {
        match self.others {
            Others::UtpOfOneSocket if flow > 0 => (PORT, A.1 + flow),
            Others::Tcp | Others::Utp | Others::UtpOfOneSocket => (PORT + flow, A.1),
        }
    }

    /// Data of either side, and its answer; a socket has one clock.
    fn in_utp(&self, packet: &Sent) -> [Vec<u8>; 2] {
        let Sent { seen, flow, sent, number, heard } = *packet;
        let (port, to) = self.ports(flow);
        let id = 4 * flow;
        let of_b = |at: u64| at as u32 + u32::from(port) * 77_777;
        let of_a = |at: u64| at as u32 + 5_000_000;
        let (acked, said) =
            heard.map_or((0, 0), |(at, answered)| (answered as u16 + 1, of_b(sent).wrapping_sub(of_a(at))));
        let data = utp(Kind::Data, id, (number as u16 + 1, acked), (of_b(sent), said), 100);
        let said = of_a(seen).wrapping_sub(of_b(sent));
        let answer =
            utp(Kind::Data, id + 1, (number as u16 + 1, number as u16 + 1), (of_a(seen + 10), said), 1);
        [ipv4(17, B.0, A.0, &udp(port, to, &data)), ipv4(17, A.0, B.0, &udp(to, port, &answer))]
    }
}

fn in_tcp(packet: &Sent) -> [Vec<u8>; 2] {
    let Sent { seen, flow, sent, number, heard } = *packet;
    let port = PORT + flow;
    let stamp = (sent / 1_000) as u32 + u32::from(flow) * 77_777;
    let of_a = |at: u64| (at / 1_000) as u32 + 5_000;
    let (seq, echo) = (number as u32 * 100, heard.map_or(0, |(at, _)| of_a(at)));
    let data = Tcp { seq, ack: 1, flags: 0x10, clock: stamp, echo, len: 100 };
    let ack = Tcp { seq: 1, ack: seq + 100, flags: 0x10, clock: of_a(seen + 10), echo: stamp, len: 0 };
    [ipv4(6, B.0, A.0, &data.octets(port, A.1)), ipv4(6, A.0, B.0, &ack.octets(A.1, port))]
}

#[test]
fn flows_that_begin_in_a_queue_are_told_of_it_by_those_that_were_there_before() {
    for others in [Others::Tcp, Others::Utp, Others::UtpOfOneSocket] {
        for (each_us, are_brief, is_one_queue, other_way_us) in [
            (10_000, false, true, 0),
            (10_000, false, true, 300_000),
            (10_000, false, false, 0),
            (10_000, false, false, 300_000),
            (10_000, true, true, 0),
            (10_000, true, true, 300_000),
            // More rarely than that the first one tells what was between two of its packets.
            (300_000, false, true, 0),
            (300_000, false, false, 300_000),
        ] {
            let are_both_ends = false;
            are_told(Scene { each_us, others, are_brief, is_one_queue, other_way_us, are_both_ends });
        }
    }
}

fn are_told(scene: Scene) {
    let (tap, truth) = scene.seen();
    let found = tap.found();
    let mut compared = 0;
    let is_of_b = |source: cede_meter::Socket| source.address == core::net::IpAddr::from(B.0);
    let is_told =
        |sample: &&cede_meter::QueueSample| is_of_b(sample.source) && sample.estimator == Estimator::Direct;
    for sample in found.seen.samples.iter().filter(is_told) {
        let is_it = |row: &&(u64, u16, u64)| {
            row.0 == sample.delay.time_us
                && scene.ports(row.1) == (sample.source.port, sample.destination.port)
        };
        let queue_us = truth.iter().find(is_it).unwrap().2 as f64;
        let off_us = sample.delay.queue_us - queue_us;
        // Within half a tick: what is told is where it begins, with what is known of ticks.
        assert!(off_us.abs() < 500.0, "{scene:?}: {off_us} of {sample:?}");
        compared += 1;
    }
    assert!(compared * 10 > truth.len() * 9, "{compared} of {}", truth.len());
    let is_first =
        |flow: &cede_meter::FlowReport| (flow.source.port, flow.destination.port) == scene.ports(0);
    for flow in found
        .seen
        .flows
        .iter()
        .filter(|flow| is_of_b(flow.source) && !is_first(flow) && flow.direct.is_some())
    {
        assert_eq!(flow.flags.has(Flags::BASE_TOLD), scene.is_one_queue, "{scene:?}: {flow:?}");
    }
    assert_eq!(tap.0.report().hosts, found.report().hosts, "whatever else is asked for");
}

/// What A sends waits before B's capture shows it for the last time. Until it is known that it does, A's capture shows answers that have not
/// waited yet: a round trip that ends with one is no reason to believe that there is no queue.
#[test]
fn flows_that_both_ends_show_are_told_of_a_queue_in_either_direction() {
    for (others, are_brief) in [(Others::Tcp, false), (Others::Utp, false), (Others::Utp, true)] {
        let (each_us, other_way_us) = (10_000, 300_000);
        let (is_one_queue, are_both_ends) = (true, true);
        let scene = Scene { each_us, others, are_brief, is_one_queue, other_way_us, are_both_ends };
        let found = scene.seen().0.found();
        // Both estimates count from where it is empty, where five echoes are all that there is, too.
        let disagree = |flow: &&cede_meter::FlowReport| flow.flags.has(Flags::ESTIMATORS_DISAGREE);
        assert_eq!(found.seen.flows.iter().find(disagree), None, "{scene:?}");
        let is_of_a = |flow: &&cede_meter::FlowReport| flow.source.address == core::net::IpAddr::from(A.0);
        let later: Vec<_> =
            found.seen.flows.iter().filter(is_of_a).filter(|flow| flow.destination.port > PORT).collect();
        assert_eq!(later.len(), 12);
        for flow in later {
            let mean_ms = flow.direct.map_or(0.0, |direct| direct.sample_mean_ms);
            assert!(flow.flags.has(Flags::BASE_TOLD) && (mean_ms - 300.0).abs() < 1.0, "{flow:?}");
            assert!(flow.round_trip.is_none_or(|trip| trip.min_ms > 300.0), "{flow:?}");
        }
    }
}

/// A connection for so many seconds while nobody queues, and six short ones behind it in a queue of 400 ms and a wave that others have filled; B's
/// clock runs slower by so many parts in a million, and stamps each connection from an offset of its own, or all from one. With
/// each packet's port and true delay by the time at which it was seen.
fn one_after_the_other(seconds: u64, ppm: f64, has_one_offset: bool) -> (Tap, Vec<(u64, u16, u64)>) {
    let (mut tap, mut truth) = (Tap::new(Config::default()), Vec::new());
    for flow in 0..7_u16 {
        let is_first = flow == 0;
        let (begins_s, count) =
            if is_first { (0, seconds * 50) } else { (seconds + 2 * u64::from(flow), 90) };
        let mut packets = Vec::new();
        for number in 0..count {
            let sent = 10_000_000 + begins_s * 1_000_000 + number * 20_000;
            let wave = (sent as f64 / 0.3e6).sin() * 50_000.0;
            let queue = if is_first { 0 } else { (400_000.0 + wave) as u64 };
            truth.push((sent + 20_000 + queue, flow, queue));
            packets.push((sent, sent + 20_000 + queue));
        }
        let offset = if has_one_offset { 0 } else { u32::from(flow) * 77_777_777 };
        let of_b = |at: u64| ((at as f64 * (1.0 - ppm / 1e6)) / 1e3) as u32 + offset;
        let of_a = |at: u64| (at / 1_000) as u32 + 5_000;
        for (number, &(sent, seen)) in packets.iter().enumerate() {
            let heard = packets[..number].iter().rfind(|other| other.1 + 20_000 <= sent);
            let echo = heard.map_or(0, |other| of_a(other.1 + 10));
            let (seq, flags) = (number as u32 * 100, if number == 0 { 0x12 } else { 0x10 });
            let b = (B.0, PORT + flow);
            tap.tcp(seen, b, A, &Tcp { seq, ack: 1, flags, clock: of_b(sent), echo, len: 100 });
            let ack =
                Tcp { seq: 1, ack: seq + 100, flags: 0x10, clock: of_a(seen + 10), echo: of_b(sent), len: 0 };
            tap.tcp(seen + 10, A, b, &ack);
        }
    }
    (tap, truth)
}

#[test]
fn connections_that_stamp_by_one_clock_are_told_of_an_empty_queue_by_those_that_have_gone() {
    for (seconds, ppm, has_one_offset) in
        [(20, 0.0, true), (20, 0.0, false), (80, 60.0, true), (80, -60.0, true)]
    {
        let (tap, truth) = one_after_the_other(seconds, ppm, has_one_offset);
        let found = tap.found();
        for flow in found.seen.flows.iter().filter(|flow| flow.source.port > PORT && flow.direct.is_some()) {
            assert_eq!(flow.flags.has(Flags::BASE_TOLD), has_one_offset, "{ppm}: {flow:?}");
            let own = || truth.iter().filter(|row| PORT + row.1 == flow.source.port);
            let mean_ms = own().map(|row| row.2 as f64 / 1e3).sum::<f64>() / own().count() as f64;
            let off_ms = flow.direct.unwrap().sample_mean_ms - mean_ms;
            assert_eq!(off_ms.abs() < 0.6, has_one_offset, "{ppm}: {off_ms} of {mean_ms} ms");
        }
        assert_eq!(tap.0.report().hosts, found.report().hosts, "whatever else is asked for");
    }
}

/// Through a token bucket of 1 Mbit/s, for half a minute: heartbeats, from the second second on others' full packets, eight of which are
/// always there, and from the fifth second on a connection whose twenty packets follow each other likewise, each as soon as one has left. A
/// packet of either: its port, when it was sent, and when it left.
fn through_one_bucket() -> Vec<(u16, u64, u64)> {
    const FULL_US: u64 = 12_000;
    const WAY_BACK_US: u64 = 20_000;
    let heartbeats = (0..700).map(|k| (k * 43_210, 7_001));
    let full = |from_us: u64, port: u16, count: u64| (0..count).map(move |k| (from_us + k * 1_000, port));
    let mut waiting: std::collections::BTreeSet<(u64, u16)> =
        heartbeats.chain(full(2_000_000, 0, 8)).chain(full(5_000_000, 7_002, 20)).collect();
    let (mut free_us, mut packets) = (0, Vec::new());
    while let Some((sent, port)) = waiting.pop_first().filter(|packet| packet.0 < 30_000_000) {
        let left = sent.max(free_us);
        free_us = left + if port == 7_001 { 800 } else { FULL_US };
        if port != 7_001 {
            waiting.insert((left + WAY_BACK_US, port));
        }
        packets.push((port, sent, left));
    }
    packets.retain(|packet| packet.0 > 0);
    packets
}

/// Through the same bucket: six full packets at once each 72 ms, as of a sender that paces whole bursts, and from the fifth second on, when as
/// many wait behind what came at first, a heartbeat.
fn bursts_through_one_bucket() -> Vec<(u16, u64, u64)> {
    let bursts = (0..400_u64).flat_map(|k| (0..6).map(move |_| (1_000_000 + k * 72_000, 7_001, 12_000)));
    // Each as soon as the one before is acknowledged.
    let at_first =
        (1..9_u64).map(|k| (k * 20_000, 7_001, 800)).chain((0..8).map(|_| (2_000_000, 7_001, 12_000)));
    let heartbeats = (0..240_u64).map(|k| (5_000_000 + k * 101_300, 7_002, 800));
    let mut waiting: Vec<(u64, u16, u64)> = bursts.chain(at_first).chain(heartbeats).collect();
    waiting.sort_by_key(|packet| packet.0);
    let mut free_us = 0;
    let leave = |(sent, port, takes_us): (u64, u16, u64)| {
        let left = sent.max(free_us);
        free_us = left + takes_us;
        (port, sent, left)
    };
    waiting.into_iter().map(leave).collect()
}

/// A packet whose way into the queue opens when one of its flow has left it meets half a packet more than who comes at any time; and between
/// two packets of bursts it may meet anything.
#[test]
fn a_connection_is_told_of_its_queue_by_the_order_in_which_packets_leave_it() {
    for packets in [through_one_bucket(), bursts_through_one_bucket()] {
        is_told_by_order(&packets);
    }
}

fn is_told_by_order(packets: &[(u16, u64, u64)]) {
    let mut tap = Tap::new(Config::default());
    for (number, &(port, sent, left)) in packets.iter().enumerate() {
        let stamp = (sent / 1_000) as u32 + u32::from(port) * 77_777;
        let clock = (left / 1_000) as u32 + 5_000;
        // What had come back when it was sent.
        let echo = packets[..number].iter().rfind(|other| other.0 == port && other.2 + 20_000 <= sent);
        let echo = echo.map_or(0, |other| (other.2 / 1_000) as u32 + 5_000);
        let seq = number as u32 * 100;
        let at = 1_000_000_000 + left;
        tap.tcp(at, (B.0, port), A, &Tcp { seq, ack: 1, flags: 0x10, clock: stamp, echo, len: 100 });
        let ack = Tcp { seq: 1, ack: seq + 100, flags: 0x10, clock, echo: stamp, len: 0 };
        tap.tcp(at + 1, A, (B.0, port), &ack);
    }
    let found = tap.found();
    let flow = found.seen.flows.iter().find(|flow| flow.source.port == 7_002).unwrap();
    assert!(flow.flags.has(Flags::BASE_TOLD), "{flow:?}");
    let of_it =
        packets.iter().filter(|packet| packet.0 == 7_002).map(|packet| (packet.2 - packet.1) as f64 / 1e3);
    let mean_ms = of_it.clone().sum::<f64>() / of_it.count() as f64;
    let said_ms = flow.direct.unwrap().sample_mean_ms;
    assert!((said_ms - mean_ms).abs() < 1.0, "{said_ms} of {mean_ms}");
}
