//! Hosts of many flows, none of which says much by itself.

mod common;

use cede_meter::{Config, Estimator, Flags, Selection};
use cede_units::Stream;
use cede_wire::link::LinkType;
use cede_wire::utp::Kind;
use common::{A, B, Clock, Tap, Tcp, connection, ethernet, ipv4, utp};

/// What a host of so many connections is flagged with, each of which sends from when the capture begins, or from a second later
/// than the one before it, for so many seconds into a queue that grows by 10 ms each second.
fn flags(connections: u16, begins_in_the_middle: bool, seconds: u64) -> Flags {
    let mut tap = Tap::new(Config::default());
    let mut packets = Vec::new();
    for flow in 0..connections {
        let begins = if begins_in_the_middle { 0 } else { u64::from(flow) } * 1_000_000 + 10_000_000;
        for k in 0..seconds * 10 {
            let sent = begins + k * 100_000 + u64::from(flow) * 700;
            let opens = k == 0 && !begins_in_the_middle;
            packets.push((
                sent + 300_000 + sent / 100,
                flow,
                sent,
                k as u32,
                if opens { 0x02 } else { 0x18 },
            ));
        }
    }
    packets.sort_unstable();
    for (seen, flow, sent, k, flags) in packets {
        let clock = (sent / 1_000) as u32 + u32::from(flow) * 77_777;
        tap.tcp(seen, (B.0, 7_000 + flow), A, &Tcp { seq: k, ack: 1, flags, clock, echo: 9, len: 1 });
    }
    let (plainly, found) = (tap.0.report(), tap.found());
    assert_eq!(plainly.hosts[0].flags, found.report().hosts[0].flags, "whatever else is asked for");
    assert_eq!(plainly.hosts[0].flows, u32::from(connections));
    plainly.hosts[0].flags
}

#[test]
fn what_holds_of_many_flows_together_holds_of_the_host() {
    let in_the_middle = Flags::START_NOT_SEEN.with(Flags::BASE_NOT_REVISITED);
    for connections in [3, 13, 60] {
        let flagged = flags(connections, true, 20);
        assert!(flagged.has(in_the_middle) && !flagged.has(Flags::SHORT), "{connections}: {flagged:?}");
        // Too few packets each for the clock's rate as well.
        let flagged = flags(connections, false, 1);
        assert!(flagged.has(Flags::SHORT.with(Flags::RATE_ASSUMED)), "{connections}: {flagged:?}");
        assert!(!flagged.has(Flags::START_NOT_SEEN), "{connections}: {flagged:?}");
    }
}

/// A seed's socket for 90 s: the queue is empty for two seconds and then holds 80 ms and a few, for a while three more; its second and third flow begin after
/// twenty seconds. Its clock, of so many parts in a million more than the observer's, begins anew on the way, and so may the receiver's run.
/// With the delay of each packet in milliseconds, by flow.
fn seed(ppm: f64, receiver_ppm: f64) -> (Tap, [Vec<f64>; 3]) {
    let of_b = |at: u64| ((1_u64 << 32) as f64 - 30e6 + at as f64 * (1.0 + ppm / 1e6)) as u64 as u32;
    let of_a = |at: u64| (at as f64 * (1.0 + receiver_ppm / 1e6)) as u64 as u32;
    let (mut packets, mut delays_ms) = (Vec::new(), [const { Vec::new() }; 3]);
    for k in 0..9_000_u64 {
        let sent = 1_000_000 + k * 10_000;
        let flow = if k < 2_000 { 0 } else { k % 3 };
        let more = if (4_000..8_000).contains(&k) { 3_000 } else { 0 };
        let queue = if k < 200 { 0 } else { 80_000 + more + k * 37 % 4_000 };
        delays_ms[flow as usize].push(queue as f64 / 1e3);
        packets.push((sent + 20_000 + queue, flow, sent, (k % 65_000) as u16));
    }
    packets.sort_unstable();
    let (mut tap, mut heard) = (Tap::new(Config::default()), [0; 3]);
    for (seen, flow, sent, seq) in packets {
        let (to, id) = ((A.0, 6_900 + flow as u16), 8 + 2 * flow as u16);
        let stamp = of_b(sent);
        tap.utp(seen, B, to, &utp(Kind::Data, id, (seq, 4), (stamp, heard[flow as usize]), 100));
        let said = of_a(seen).wrapping_sub(stamp);
        tap.utp(seen + 10, to, B, &utp(Kind::State, id - 1, (5, seq), (of_a(seen), said), 0));
        // It reads a few of the answers at once, and the others later.
        let waits =
            if seq % 1_000 == 500 { u64::from(seq) * 7 / 1_000 % 13 } else { 40 + u64::from(seq) * 37 % 400 };
        heard[flow as usize] = of_b(seen + 20_000 + waits).wrapping_sub(of_a(seen));
    }
    (tap, delays_ms)
}

#[test]
fn flows_of_one_socket_share_a_base_however_its_clock_drifts() {
    // Of the last three the receiver's clock runs as the sender's does, or nearly so: the observer's is the one that does not.
    let with_the_observer = [0.0, 5.5, 20.0, -40.0, 100.0].map(|ppm| (ppm, 0.0));
    for (ppm, receiver_ppm) in
        with_the_observer.into_iter().chain([(100.0, 100.0), (-40.0, -40.0), (60.0, 57.0)])
    {
        let (tap, mut delays_ms) = seed(ppm, receiver_ppm);
        let found = tap.found();
        let flows: Vec<_> = found.seen.flows.iter().filter(|flow| flow.source.port == B.1).collect();
        assert_eq!(flows.len(), 3);
        for flow in flows {
            let [direct, echoed] = [flow.direct.unwrap(), flow.echoed.unwrap()];
            let delays_ms = &mut delays_ms[usize::from(flow.destination.port - 6_900)];
            delays_ms.sort_by(f64::total_cmp);
            let middle_ms = delays_ms[delays_ms.len() / 2];
            assert!((direct.p50_ms - middle_ms).abs() < 0.5, "{ppm}: {direct:?}");
            assert!((echoed.p50_ms - middle_ms).abs() < 0.6, "{ppm}: {echoed:?}");
            assert!(!flow.flags.has(Flags::ESTIMATORS_DISAGREE), "{ppm}: {:?}", flow.flags);
            assert_eq!(flow.flags.has(Flags::DRIFT_CORRECTED), ppm != 0.0, "{ppm}: {:?}", flow.drift_ppm);
        }
        assert_eq!(tap.0.report().hosts, found.report().hosts, "whatever else is asked for");
    }
}

#[test]
fn a_connection_too_short_to_tell_a_drift_is_told_by_another() {
    let errors_us = |ppm: f64, has_other: bool| {
        let (mut tap, mut noise) = (Tap::new(Config::default()), Stream::named(9, "borrowed"));
        if has_other {
            connection(&mut tap, 5_000, &Clock { hz: 1_000, ppm, ahead: 99 }, 0..120, &mut noise);
        }
        connection(&mut tap, 5_001, &Clock { hz: 1_000, ppm, ahead: 7_777 }, 30..85, &mut noise);
        let found = tap.found();
        let samples = found
            .seen
            .samples
            .iter()
            .filter(|sample| (sample.source.port, sample.estimator) == (5_001, Estimator::Direct));
        let error = |(k, queue_us): (usize, f64)| (queue_us - (k % 100 * 150) as f64).abs();
        let mut errors: Vec<f64> =
            samples.map(|sample| sample.delay.queue_us).enumerate().map(error).collect();
        assert!(errors.len() > 2_700);
        errors.sort_by(f64::total_cmp);
        errors[errors.len() * 95 / 100]
    };
    for ppm in [100.0, -100.0] {
        let (alone, told) = (errors_us(ppm, false), errors_us(ppm, true));
        assert!(alone > 4_000.0 && told < 1_000.0, "{ppm}: {alone} alone, {told} told");
    }
}

/// A minute of a connection that begins while the queue is empty, which then holds 400 ms and up to 50 more or less, and of twelve short ones
/// that begin later: each packet's port, and its true delay, by the time at which it was seen. Of the first one there is a packet as often as is said
/// once the queue is there, and the others are in the same queue or in none, and what A sends queues for as long as is said from the third second on.
fn beside_a_standing_queue(
    each_us: u64,
    is_one_queue: bool,
    other_way_us: u64,
) -> (Tap, Vec<(u64, u16, u64)>) {
    let mut packets = Vec::new();
    let mut truth = Vec::new();
    for flow in 0..13_u16 {
        let is_first = flow == 0;
        let begins = if is_first { 0 } else { 4_000_000 * u64::from(flow) + 1_300_000 };
        let (each_us, count) = if is_first {
            (each_us, 200 + 58_000_000 / each_us)
        } else {
            (10_000, 100 + u64::from(flow) * 10)
        };
        let mut answers = std::collections::VecDeque::new();
        let mut echo = 0;
        for k in 0..count {
            let sent = 10_000_000 + begins + k.min(200) * 10_000 + k.saturating_sub(200) * each_us;
            let is_full = sent > 12_000_000 && (is_first || is_one_queue);
            let wave = (sent as f64 / 3e6).sin() * 50_000.0;
            let queue = if is_full { (400_000.0 + wave) as u64 } else { 0 };
            let seen = sent + 20_000 + queue;
            while let Some(&(arrives, clock)) = answers.front().filter(|(arrives, _)| *arrives <= sent) {
                (_, echo) = (answers.pop_front(), clock);
                let _ = arrives;
            }
            let other_way = 20_000 + if sent > 13_000_000 { other_way_us } else { 0 };
            answers.push_back((seen + 10 + other_way, ((seen + 10) / 1_000) as u32 + 5_000));
            truth.push((seen, 7_000 + flow, queue));
            packets.push((seen, true, flow, sent, k as u32 * 100, echo));
            packets.push((seen + 10, false, flow, sent, k as u32 * 100 + 100, 0));
        }
    }
    packets.sort_unstable();
    let mut tap = Tap::new(Config::default());
    for (seen, is_of_b, flow, sent, number, echo) in packets {
        let stamp = (sent / 1_000) as u32 + u32::from(flow) * 77_777;
        let b = (B.0, 7_000 + flow);
        if is_of_b {
            tap.tcp(seen, b, A, &Tcp { seq: number, ack: 1, flags: 0x10, clock: stamp, echo, len: 100 });
        } else {
            let clock = (seen / 1_000) as u32 + 5_000;
            tap.tcp(seen, A, b, &Tcp { seq: 1, ack: number, flags: 0x10, clock, echo: stamp, len: 0 });
        }
    }
    (tap, truth)
}

#[test]
fn connections_that_begin_in_a_queue_are_told_of_it_by_those_that_were_there_before() {
    for (each_us, is_one_queue, other_way_us) in [
        (10_000, true, 0),
        (10_000, true, 300_000),
        (10_000, false, 0),
        (10_000, false, 300_000),
        // More rarely than that the first one tells what was between two of its packets.
        (300_000, true, 0),
        (300_000, false, 300_000),
    ] {
        let (tap, truth) = beside_a_standing_queue(each_us, is_one_queue, other_way_us);
        let found = tap.found();
        let mut compared = 0;
        let is_told = |sample: &&cede_meter::QueueSample| {
            sample.source.address == core::net::IpAddr::from(B.0) && sample.estimator == Estimator::Direct
        };
        for sample in found.seen.samples.iter().filter(is_told) {
            let is_it = |row: &&(u64, u16, u64)| (row.0, row.1) == (sample.delay.time_us, sample.source.port);
            let queue_us = truth.iter().find(is_it).unwrap().2 as f64;
            let off_us = sample.delay.queue_us - queue_us;
            // Within half a tick: what is told is where it begins, with what is known of ticks.
            assert!(off_us.abs() < 500.0, "{each_us} {is_one_queue} {other_way_us}: {off_us} of {sample:?}");
            compared += 1;
        }
        assert!(compared > 2_100, "{compared}");
        for flow in found.seen.flows.iter().filter(|flow| flow.source.port > 7_000 && flow.direct.is_some()) {
            assert_eq!(flow.flags.has(Flags::BASE_TOLD), is_one_queue, "{flow:?}");
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

/// A packet whose way into the queue opens when one of its flow has left it meets half a packet more than who comes at any time.
#[test]
fn a_connection_is_told_of_its_queue_by_the_order_in_which_packets_leave_it() {
    let mut tap = Tap::new(Config::default());
    let packets = through_one_bucket();
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

/// Captures have nanoseconds, samples microseconds.
#[test]
fn a_time_begins_with_the_packet_that_comes_with_it() {
    let samples = |since_ns: u64, until_ns: u64| {
        let selection = Selection { since_ns, until_ns, ..Selection::default() };
        let mut tap = Tap::new(Config { selection, samples_min: 1, ..Config::default() });
        for k in 0..100_u64 {
            let clock = 7 + 10 * k as u32;
            let segment = Tcp { seq: k as u32, ack: 1, flags: 0x18, clock, echo: 9, len: 1 };
            let frame = ethernet(0x0800, &ipv4(6, B.0, A.0, &segment.octets(B.1, A.1)));
            let at_ns = 1_000_000_999 + k * 10_000_000;
            tap.0.packet(at_ns, LinkType::ETHERNET, &frame, frame.len() as u32);
        }
        tap.found().report().hosts[0].all.samples
    };
    assert_eq!([samples(0, u64::MAX), samples(0, 3_600_000_000_000)], [100; 2]);
    assert_eq!([samples(0, 500_000_000), samples(500_000_000, u64::MAX)], [50; 2]);
}

#[test]
fn a_part_of_a_capture_is_counted_from_the_shortest_of_all() {
    let selection = Selection { since_ns: 30_000_000_000, until_ns: 40_000_000_000, ..Selection::default() };
    let mut tap = Tap::new(Config { selection, ..Config::default() });
    for k in 0..6_000_u64 {
        let (sent, queue) = (1_000_000 + k * 10_000, if k < 200 { 0 } else { 98_000 });
        let flags = if k == 0 { 0x02 } else { 0x18 };
        let clock = (sent / 1_000) as u32;
        let segment = Tcp { seq: k as u32, ack: 1, flags, clock, echo: 9, len: 1 };
        tap.tcp(sent + 20_000 + queue, B, A, &segment);
        // One that is over by then.
        if k < 1_000 {
            tap.tcp(sent + 20_100 + queue, (B.0, 99), A, &segment);
        }
    }
    let found = tap.found();
    let host = &found.report().hosts[0];
    assert!((host.all.time_mean_ms - 98.0).abs() < 1.0 && host.flows == 1, "{host:?}");
    assert!((995..1_005).contains(&host.all.samples) && (host.all.covered_s - 10.0).abs() < 0.1, "{host:?}");
    assert!(!host.flags.has(Flags::START_NOT_SEEN) && found.seen.flows.len() == 1, "{host:?}");
    // The queue was seen empty, if at another time; and no acknowledgement was missed where none was to be seen.
    let is_said = |flag| host.flags.has(flag);
    assert!(
        !is_said(Flags::SHORT) && !is_said(Flags::LOST_TRACK) && is_said(Flags::ONE_DIRECTION),
        "{host:?}"
    );
    assert!((5_990..6_010).contains(&tap.0.counters().outside), "{}", tap.0.counters().outside);
    assert_eq!(tap.0.report().hosts, found.report().hosts, "whatever else is asked for");
}

/// libutp's receivers acknowledge data after a tenth of a second, and what opens a connection at once.
#[test]
fn the_shortest_round_trip_may_be_that_of_the_packet_that_opens_a_connection() {
    const TRIP_US: u64 = 40_000;
    let shortest_ms = |repeated_after_us: &[u64]| {
        let mut tap = Tap::new(Config { samples_min: 1, ..Config::default() });
        let opens = utp(Kind::Syn, 7, (1, 0), (5, 0), 0);
        for since_us in core::iter::once(&0).chain(repeated_after_us) {
            tap.utp(1_000_000 + since_us, A, B, &opens);
        }
        let opened = 1_000_000 + repeated_after_us.last().unwrap_or(&0) + TRIP_US;
        tap.utp(opened, B, A, &utp(Kind::State, 7, (500, 1), (opened as u32, 9), 0));
        for k in 0..100_u64 {
            let (at, seq) = (opened + 1_000_000 + k * 200_000, k as u16 + 2);
            tap.utp(at, A, B, &utp(Kind::Data, 8, (seq, 499), (at as u32, 9), 100));
            let answered = at + TRIP_US + 100_000;
            tap.utp(answered, B, A, &utp(Kind::State, 7, (500, seq), (answered as u32, 9), 0));
        }
        tap.found().flow(B.0).round_trip.expect("round trips").min_ms
    };
    assert_eq!(shortest_ms(&[]), 40.0);
    // Which of several is answered is not known: it is timed from the first.
    assert_eq!(shortest_ms(&[30_000]), 70.0);
    assert_eq!(shortest_ms(&[100_000, 300_000]), 140.0, "that of the data");
}
