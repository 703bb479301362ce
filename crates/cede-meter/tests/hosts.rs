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

/// Kernels of 1,024 ticks a second look as those of 1,000 do, until minutes have passed.
#[test]
fn a_clock_that_is_near_the_usual_rate_is_told_by_minutes() {
    let (mut tap, mut noise) = (Tap::new(Config::default()), Stream::named(9, "rare"));
    connection(&mut tap, 5_000, &Clock { hz: 1_024, ppm: 0.0, ahead: 99 }, 0..500, &mut noise);
    let found = tap.found();
    let flow = found.flow(B.0);
    assert_eq!((flow.clock_hz, flow.flags.has(Flags::CLOCK_STEP)), (Some(1_024.0), false), "{flow:?}");
    for (k, queue_us) in found.queue_us(B.0, Estimator::Direct).into_iter().enumerate() {
        assert!((queue_us - (k % 100 * 150) as f64).abs() < 1_500.0, "{k}: {queue_us}");
    }
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
