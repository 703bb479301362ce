//! What captures of the world bring: IPv6 and odd link types, snapshots that end anywhere, every byte order and
//! resolution, fragments, coalesced frames, clocks that drift.

mod common;

use cede_meter::{Base, Config, Estimator, Feed, Flags, Meter, QueueSample};
use cede_units::Stream;
use cede_wire::link::LinkType;
use cede_wire::utp::Kind;
use common::{A, B, Clock, Found, Tap, Tcp, connection, ethernet, ipv4, ipv6, udp, utp};

/// An IPv6 packet with hop-by-hop and destination options before its payload.
fn ipv6_with_options(protocol: u8, ends: (u8, u8), payload: &[u8]) -> Vec<u8> {
    let options = [&[60, 0, 1, 4, 0, 0, 0, 0][..], &[protocol, 0, 1, 4, 0, 0, 0, 0]].concat();
    ipv6(0, ends, &[&options, payload].concat())
}

/// A segment with selective acknowledgements before its timestamps, the longest way to them.
fn sack_first(tcp: &Tcp, from: u16, to: u16) -> Vec<u8> {
    let plain = tcp.octets(from, to);
    let sack = [&[1, 1, 5, 26][..], &[9; 24]].concat();
    let mut out = [&plain[..20], &sack, &plain[20..]].concat();
    out[12] = (15 << 4) as u8;
    out
}

/// A minute of B's packets through a queue that grows to 50 ms and empties, every 20 ms one, with A's answers.
fn play(mut take: impl FnMut(u64, bool, Vec<u8>, Vec<u8>)) {
    for k in 0..3_000_u64 {
        let (sent, queue) = (1_000_000 + k * 20_000, k % 100 * 500);
        let arrives = sent + 20_000 + queue;
        let seq = k as u32 * 100;
        let data = Tcp { seq, ack: 1, flags: 0x10, clock: (sent / 1000) as u32, echo: 9, len: 100 };
        let ack =
            Tcp { seq: 1, ack: seq + 100, flags: 0x10, clock: (arrives / 1000) as u32, echo: 9, len: 0 };
        let utp_data = utp(Kind::Data, 8, (k as u16, 4), (sent as u32, 5), 100);
        let state = utp(Kind::State, 7, (5, k as u16), (arrives as u32, (arrives - sent) as u32), 0);
        take(arrives, true, sack_first(&data, 80, 5000), udp(B.1, A.1, &utp_data));
        take(arrives + 10, false, sack_first(&ack, 5000, 80), udp(A.1, B.1, &state));
    }
}

fn seen_over(link_type: LinkType, snapshot: usize, wrap: impl Fn(Vec<u8>) -> Vec<u8>) -> Meter {
    let mut meter = Meter::default();
    play(|time_us, is_data, tcp, udp| {
        let ends = if is_data { (2, 1) } else { (1, 2) };
        for (protocol, octets) in [(6, tcp), (17, udp)] {
            let frame = wrap(ipv6_with_options(protocol, ends, &octets));
            let captured = &frame[..frame.len().min(snapshot)];
            meter.packet(time_us * 1000, link_type, captured, frame.len() as u32);
        }
    });
    meter
}

/// Samples of uTP and of TCP that the worst host sent, and the longest delay.
fn of_worst(meter: &Meter) -> (u64, u64, f64) {
    let report = meter.report();
    let Some(host) = report.hosts.first() else { return (0, 0, 0.0) };
    (host.utp.map_or(0, |utp| utp.samples), host.tcp.map_or(0, |tcp| tcp.samples), host.all.max_ms)
}

#[test]
fn ipv6_with_extensions_is_read_on_every_link() {
    let tagged = |ip: Vec<u8>| [&[2; 12][..], &[0x81, 0, 0, 7, 0x86, 0xdd], &ip].concat();
    type Wrap<'a> = &'a dyn Fn(Vec<u8>) -> Vec<u8>;
    let links: [(LinkType, Wrap<'_>); 8] = [
        (LinkType::ETHERNET, &|ip| ethernet(0x86dd, &ip)),
        (LinkType::ETHERNET, &tagged),
        (LinkType::LINUX_SLL, &|ip| [&[0; 14][..], &[0x86, 0xdd], &ip].concat()),
        (LinkType::LINUX_SLL2, &|ip| [&[0x86, 0xdd][..], &[0; 18], &ip].concat()),
        (LinkType::RAW, &|ip| ip),
        (LinkType::NULL, &|ip| [&[30, 0, 0, 0][..], &ip].concat()),
        (LinkType(108), &|ip| [&[0, 0, 0, 24][..], &ip].concat()),
        (LinkType::ETHERNET, &|ip| {
            [&[2; 12][..], &[0x88, 0x64, 0x11, 0, 0, 9, 0, 99, 0, 0x57], &ip].concat()
        }),
    ];
    for (k, (link_type, wrap)) in links.into_iter().enumerate() {
        let (of_utp, of_tcp, most_ms) = of_worst(&seen_over(link_type, usize::MAX, wrap));
        assert_eq!((of_utp, of_tcp), (3_000, 3_000), "link {k}");
        assert!((most_ms - 49.5).abs() < 1.5, "link {k}: {most_ms}");
    }
}

#[test]
fn a_snapshot_that_ends_before_the_stamp_yields_no_sample_and_never_a_false_one() {
    // Tagged Ethernet, IPv6 with two extension headers, TCP with SACK first: 18 + 56 + 20 + 28 + 12.
    let tagged = |ip: Vec<u8>| [&[2; 12][..], &[0x81, 0, 0, 7, 0x86, 0xdd], &ip].concat();
    for (snapshot, has_utp, has_tcp) in [
        (66, false, false),
        (90, false, false),
        (101, false, false),
        (102, true, false),
        (133, true, false),
        (134, true, true),
    ] {
        let (of_utp, of_tcp, most_ms) = of_worst(&seen_over(LinkType::ETHERNET, snapshot, tagged));
        assert_eq!((of_utp == 3_000, of_tcp == 3_000), (has_utp, has_tcp), "{snapshot}");
        assert!(of_utp % 3_000 == 0 && of_tcp % 3_000 == 0 && most_ms < 51.5, "{snapshot}: {most_ms}");
    }
}

#[test]
fn fragments_give_no_false_samples() {
    let (mut tap, mut rest) = (Tap::new(Config::default()), 0);
    let mut whole = Tap::new(Config::default());
    play(|time_us, is_data, _, udp| {
        let (from, to) = if is_data { (B.0, A.0) } else { (A.0, B.0) };
        let packet = ipv4(17, from, to, &udp);
        whole.frame(time_us, &ethernet(0x0800, &packet));
        if !is_data {
            return tap.frame(time_us, &ethernet(0x0800, &packet));
        }
        let mut first = ipv4(17, from, to, &udp[..64]);
        first[6] = 0x20;
        // What follows looks like a uTP packet with a wild stamp.
        let mut later = ipv4(17, from, to, &utp(Kind::Data, 8, (3, 4), (time_us as u32 ^ 0x55aa, 5), 60));
        (later[6], later[7]) = (0, 8);
        tap.frame(time_us, &ethernet(0x0800, &first));
        tap.frame(time_us + 1, &ethernet(0x0800, &later));
        rest += 1;
    });
    assert_eq!(tap.0.counters().fragments, rest);
    assert_eq!(tap.found().queue_us(B.0, Estimator::Direct), whole.found().queue_us(B.0, Estimator::Direct));
}

#[test]
fn ipv4_with_options_is_read() {
    let mut tap = Tap::new(Config::default());
    play(|time_us, is_data, tcp, _| {
        let (from, to) = if is_data { (B.0, A.0) } else { (A.0, B.0) };
        let plain = ipv4(6, from, to, &tcp);
        let mut packet = [&plain[..20], &[1; 12], &plain[20..]].concat();
        packet[0] = 0x48;
        let len = packet.len() as u16;
        packet[2..4].copy_from_slice(&len.to_be_bytes());
        tap.frame(time_us, &ethernet(0x0800, &packet));
    });
    assert_eq!(tap.found().queue_us(B.0, Estimator::Direct).len(), 3_000);
    assert!(tap.found().queue_us(B.0, Estimator::Echoed).len() > 2_900);
}

/// The frames of `play`, with their times in nanoseconds.
fn frames() -> Vec<(u64, Vec<u8>)> {
    let mut frames = Vec::new();
    play(|time_us, is_data, _, udp| {
        let (from, to) = if is_data { (B.0, A.0) } else { (A.0, B.0) };
        frames.push((time_us * 1000, ethernet(0x0800, &ipv4(17, from, to, &udp))));
    });
    frames
}

fn read(capture: &[u8]) -> Found {
    let mut tap = Tap::new(Config::default());
    let mut feed = Feed::new(capture);
    while feed.step(&mut tap.0).unwrap() {}
    tap.found()
}

#[test]
fn captures_of_both_byte_orders_and_resolutions_say_the_same() {
    let frames = frames();
    let mut said = Vec::new();
    for is_big in [false, true] {
        let word = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let half = |value: u16| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        for (magic, unit_ns) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let mut file = [&word(magic)[..], &half(2), &half(4), &[0; 8], &word(65_535), &word(1)].concat();
            for (time_ns, frame) in &frames {
                let (seconds, rest) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000 / unit_ns);
                let len = word(frame.len() as u32);
                file.extend([word(seconds as u32), word(rest as u32), len, len].concat());
                file.extend(frame);
            }
            said.push(read(&file));
        }
        said.push(read(&pcapng(&frames, &word, &half)));
    }
    let wanted = said[0].queue_us(B.0, Estimator::Direct);
    assert_eq!(wanted.len(), 3_000);
    for found in &said {
        assert_eq!(found.queue_us(B.0, Estimator::Direct), wanted);
        assert_eq!(found.report().hosts, said[0].report().hosts);
    }
}

/// Two interfaces: Ethernet by microseconds, raw IP by nanoseconds; packets by turns.
fn pcapng(
    frames: &[(u64, Vec<u8>)],
    word: &dyn Fn(u32) -> [u8; 4],
    half: &dyn Fn(u16) -> [u8; 2],
) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let padded = [body, &vec![0; body.len().next_multiple_of(4) - body.len()]].concat();
        let len = word(padded.len() as u32 + 12);
        [&word(kind)[..], &len, &padded, &len].concat()
    };
    let mut file = block(0x0a0d_0d0a, &[&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat());
    file.extend(block(1, &[&half(1)[..], &half(0), &word(0)].concat()));
    let by_nanoseconds = [&half(9)[..], &half(1), &[9, 0, 0, 0], &half(0), &half(0)].concat();
    file.extend(block(1, &[&half(101)[..], &half(0), &word(0), &by_nanoseconds].concat()));
    for (k, (time_ns, frame)) in frames.iter().enumerate() {
        let (interface, time, octets) =
            if k % 2 == 0 { (0, time_ns / 1000, &frame[..]) } else { (1, *time_ns, &frame[14..]) };
        let len = word(octets.len() as u32);
        let head = [word(interface), word((time >> 32) as u32), word(time as u32), len, len].concat();
        file.extend(block(6, &[&head, octets].concat()));
    }
    file
}

#[test]
fn a_queue_on_the_receivers_side_makes_the_estimates_differ() {
    // The observer sits before a downlink with a queue, so only the receiver's own clock knows of it.
    let mut tap = Tap::new(Config::default());
    for k in 0..3_000_u64 {
        let (sent, behind) = (1_000_000 + k * 20_000, if k < 100 { 0 } else { 60_000 });
        let data = utp(Kind::Data, 8, (k as u16, 4), (sent as u32, 5), 100);
        let state = utp(Kind::State, 7, (5, k as u16), (sent as u32, (20_000 + behind) as u32), 0);
        tap.utp(sent + 20_000, B, A, &data);
        tap.utp(sent + 20_010, A, B, &state);
    }
    let found = tap.found();
    let flow = found.flow(B.0);
    assert!(flow.flags.has(Flags::ESTIMATORS_DISAGREE), "{flow:?}");
    assert!(flow.direct.unwrap().max_ms < 1.0 && flow.echoed.unwrap().p50_ms > 59.0);
}

#[test]
fn coalesced_frames_are_flagged_and_count_once() {
    let mut tap = Tap::new(Config::default());
    for k in 0..100_u64 {
        let time_us = 1_000_000 + k * 20_000;
        let len = if k % 10 == 0 { 2_896 } else { 1_448 };
        let segment =
            Tcp { seq: k as u32 * 3_000, ack: 1, flags: 0x10, clock: (time_us / 1000) as u32, echo: 9, len };
        tap.tcp(time_us, B, A, &segment);
    }
    let found = tap.found();
    assert!(found.flow(B.0).flags.has(Flags::OFFLOADED) && !found.flow(B.0).flags.has(Flags::CLOCK_STEP));
    assert_eq!(found.queue_us(B.0, Estimator::Direct).len(), 100);
}

#[test]
fn datagrams_that_were_put_together_are_still_utp() {
    // Twenty packets as one datagram, as UDP segmentation offload has it, acknowledged four at a time.
    let mut tap = Tap::new(Config::default());
    for k in 0..100_u16 {
        let time_us = 1_000_000 + u64::from(k) * 20_000;
        tap.utp(time_us, B, A, &utp(Kind::Data, 8, (k * 20, 4), (time_us as u32, 5), 20 * 1_420));
        for ack in (k * 20 + 3..).step_by(4).take(5) {
            tap.utp(time_us + 10, A, B, &utp(Kind::State, 7, (5, ack), (time_us as u32, 500), 0));
        }
    }
    let found = tap.found();
    assert!(found.report().other_udp_flows == 0 && found.flow(B.0).flags.has(Flags::OFFLOADED));
    assert_eq!(found.queue_us(B.0, Estimator::Direct).len(), 100);
}

/// What was measured of a packet that the capture lost is of no other one: taken for the packet's before, it would be told to have come
/// sooner than it was seen, and all of them to have waited longer.
#[test]
fn what_is_said_of_packets_that_a_capture_lost_is_left_out() {
    let mut tap = Tap::new(Config::default());
    let lost = |k: u16| k.is_multiple_of(7);
    for k in 1..1_000_u16 {
        let sent_us = 1_000_000 + u64::from(k) * 20_000;
        let queue_us = u64::from((k % 40).min(40 - k % 40)) * 3_000;
        let (time_us, stamp) = (sent_us + queue_us, sent_us as u32);
        if k.is_multiple_of(14) {
            // What only acknowledges has the number of the next one. It waited 4 ms longer.
            tap.utp(time_us - 6_000, B, A, &utp(Kind::State, 8, (k, 4), (stamp - 10_000, 5), 0));
        }
        if !lost(k) {
            tap.utp(time_us, B, A, &utp(Kind::Data, 8, (k, 4), (stamp, 5), 1_000));
        }
        let said = (time_us as u32, queue_us as u32 + 500);
        tap.utp(time_us + 30, A, B, &utp(Kind::State, 7, (5, k), said, 0));
    }
    let echoed = tap.found().queue_us(B.0, Estimator::Echoed);
    let most_us = echoed.iter().copied().fold(0.0, f64::max);
    assert!(echoed.len() > 800 && (59_000.0..61_000.0).contains(&most_us), "{most_us} of {}", echoed.len());
}

#[test]
fn the_drift_of_a_tcp_clock_is_taken_out() {
    for ppm in [-100.0, 100.0] {
        let mut tap = Tap::new(Config::default());
        let clock = Clock { hz: 1000, ppm, ahead: 0 };
        connection(&mut tap, 80, &clock, 0..120, &mut Stream::named(1, "noise"));
        let found = tap.found();
        let flow = found.flow(B.0);
        assert!(flow.flags.has(Flags::DRIFT_CORRECTED), "{ppm}: {flow:?}");
        assert!((flow.drift_ppm.unwrap() + ppm).abs() < 10.0, "{ppm}: {:?}", flow.drift_ppm);
        for (k, queue_us) in found.queue_us(B.0, Estimator::Direct).into_iter().enumerate() {
            let truth = (k % 100) as f64 * 150.0;
            assert!((queue_us - truth).abs() < 2_500.0, "{ppm} ppm, packet {k}: {queue_us} for {truth}");
        }
        // The ticks of both clocks lie evenly around it.
        let echoed = found.queue_us(B.0, Estimator::Echoed);
        let truth = (1..).take(echoed.len()).map(|k: u32| f64::from(k % 100) * 150.0).sum::<f64>();
        let above_us = (echoed.iter().sum::<f64>() - truth) / echoed.len() as f64;
        assert!(echoed.len() > 5_900 && above_us.abs() < 250.0, "{ppm} ppm: {above_us}");
    }
}

/// Heartbeats of 100 ms whose echoes are up to as old, so that they tell no drift, and whose queue is mostly empty. Both ends' clocks
/// run alike, and the observer's is another one.
#[test]
fn the_echoed_estimate_drifts_as_its_two_clocks_do() {
    for observer_ppm in [100.0, 0.0, -60.0] {
        let (mut tap, mut stream) = (Tap::new(Config::default()), Stream::named(8, "echoes"));
        let seen = |us: u64| (us as f64 * (1.0 + observer_ppm / 1e6)) as u64;
        let mut truth = Vec::new();
        for k in 0..2_000_u64 {
            let (sent, fills) = (9_000_000 + k * 100_000 + stream.below(1_000), (k % 50).saturating_sub(40));
            let queue = fills.min(10 - fills) * 60_000;
            let (seq, arrives) = (k as u32 * 40, sent + 20_000 + queue);
            let echo = ((sent - 1_000 - stream.below(90_000)) / 1_000) as u32;
            let data = Tcp { seq, ack: 1, flags: 0x10, clock: (sent / 1_000) as u32, echo, len: 40 };
            let (clock, echo) = ((arrives / 1_000) as u32, data.clock);
            let ack = Tcp { seq: 1, ack: seq + 40, flags: 0x10, clock, echo, len: 0 };
            tap.tcp(seen(arrives), (B.0, 80), A, &data);
            tap.tcp(seen(arrives + 10), A, (B.0, 80), &ack);
            truth.push(queue as f64);
        }
        let found = tap.found();
        for estimator in [Estimator::Direct, Estimator::Echoed] {
            let told = found.queue_us(B.0, estimator);
            assert_eq!(told.len(), truth.len());
            let wrong = told.iter().zip(&truth).filter(|(told, truth)| (*told - *truth).abs() > 2_000.0);
            assert!(wrong.count() < 40, "{estimator:?}, {observer_ppm} ppm");
        }
    }
}

/// Heartbeats through a queue that grows to half a second and empties, of which one in five is acknowledged 4 to 20 ms late.
#[test]
fn acknowledgements_that_come_late_say_nothing() {
    let (mut tap, mut stream) = (Tap::new(Config::default()), Stream::named(9, "late"));
    let mut truth = Vec::new();
    for k in 0..1_000_u64 {
        let (sent, queue) =
            (9_000_000 + k * 100_000 + stream.below(1_000), (k % 100).min(100 - k % 100) * 10_000);
        let late = if k % 5 == 3 { 4_000 + stream.below(16_000) } else { 0 };
        let (seq, arrives) = (k as u32 * 40, sent + 20_000 + queue);
        let data = Tcp { seq, ack: 1, flags: 0x10, clock: (sent / 1_000) as u32, echo: 0, len: 40 };
        let answered = arrives + late;
        let (clock, echo) = ((answered / 1_000) as u32, data.clock);
        tap.tcp(arrives, (B.0, 80), A, &data);
        tap.tcp(
            answered + 10,
            A,
            (B.0, 80),
            &Tcp { seq: 1, ack: seq + 40, flags: 0x10, clock, echo, len: 0 },
        );
        if late == 0 {
            truth.push(queue as f64);
        }
    }
    let told = tap.found().queue_us(B.0, Estimator::Echoed);
    assert_eq!(told.len(), truth.len());
    let wrong = told.iter().zip(&truth).filter(|(told, truth)| (*told - *truth).abs() > 1_500.0).count();
    assert_eq!(wrong, 0, "{told:?}");
}

/// A's uplink is never empty, as a seed's; B does nothing but acknowledge.
#[test]
fn the_drift_of_a_clock_is_taken_out_beside_a_queue_that_never_empties() {
    for ppm in [-50.0, 0.0, 30.0] {
        let (mut tap, mut stream) = (Tap::new(Config::default()), Stream::named(4, "answers"));
        let of_b = |at: u64| (at as f64 * (1.0 + ppm / 1e6)) as u64 as u32 + 12_345;
        let mut heard = 500;
        for k in 0..6_000_u64 {
            let sent = 5_000_000 + k * 100_000;
            let queue = 80_000 + ((k as f64 / 30.0).sin() * 50_000.0) as u64 + stream.below(10_000);
            let (seen, seq) = (sent + queue, k as u16);
            tap.utp(seen, A, B, &utp(Kind::Data, 8, (seq, 4), (sent as u32, heard), 100));
            let answered = seen + 20_000 + stream.below(300);
            let difference = of_b(answered).wrapping_sub(sent as u32);
            tap.utp(answered + 20_000, B, A, &utp(Kind::State, 7, (5, seq), (of_b(answered), difference), 0));
            heard = ((answered + 25_000) as u32).wrapping_sub(of_b(answered));
        }
        let found = tap.found();
        assert_eq!(found.flow(B.0).flags.has(Flags::DRIFT_CORRECTED), ppm != 0.0, "{ppm}");
        let most = found.queue_us(B.0, Estimator::Direct).into_iter().fold(0.0, f64::max);
        assert!(most < 1_000.0, "{ppm} ppm: {most}");
        // What A's queue was is not touched by it.
        assert!(!found.flow(A.0).flags.has(Flags::DRIFT_CORRECTED), "{:?}", found.flow(A.0).drift_ppm);
    }
}

/// Both ends send each 50 ms for two minutes; B's packets queue for up to 100 ms. After 30 s the observer's clock is set by so many
/// microseconds, and B's by so many.
fn set(observer_us: i64, b_us: i64) -> Tap {
    let mut tap = Tap::new(Config::default());
    let mut packets = Vec::new();
    for k in 0..2_400_u64 {
        let at = 100_000_000 + k * 50_000;
        let queue = (k % 400) * 250;
        let seen =
            |true_us: u64| (true_us as i64 + if true_us > 130_000_000 { observer_us } else { 0 }) as u64;
        let stamp = (at as i64 + if at > 130_000_000 { b_us } else { 0 }) as u32;
        let seq = k as u16;
        packets.push((
            at,
            seen(at),
            A,
            B,
            utp(Kind::Data, 7, (seq, seq.wrapping_sub(2)), (at as u32, 9), 100),
        ));
        let leaves = at + 25_000 + queue;
        packets.push((leaves, seen(leaves), B, A, utp(Kind::Data, 8, (seq, seq), (stamp, 9), 100)));
    }
    packets.sort_by_key(|packet| packet.0);
    for (_, seen, from, to, packet) in &packets {
        tap.utp(*seen, *from, *to, packet);
    }
    tap
}

#[test]
fn a_clock_that_was_set_begins_anew_whosever_it_is() {
    for (observer_us, b_us) in
        [(0, 0), (20_000_000, 0), (3_000_000, 0), (-3_000_000, 0), (0, 3_000_000), (0, -3_000_000)]
    {
        let found = set(observer_us, b_us).found();
        let flow = found.flow(B.0);
        let is_set = (observer_us, b_us) != (0, 0);
        assert_eq!(flow.flags.has(Flags::CLOCK_STEP), is_set, "{observer_us} {b_us}: {flow:?}");
        assert!(!flow.flags.has(Flags::BEYOND_ROUND_TRIPS));
        let most = found.queue_us(B.0, Estimator::Direct).into_iter().fold(0.0, f64::max);
        assert!((most - 99_750.0).abs() < 1_000.0, "{observer_us} {b_us}: {most}");
        let other = found.queue_us(A.0, Estimator::Direct).into_iter().fold(0.0, f64::max);
        assert!(other < 1_000.0, "{observer_us} {b_us}: {other}");
    }
}

#[test]
fn a_heartbeat_whose_period_is_whole_ticks_is_as_slow_every_time() {
    let mut tap = Tap::new(Config::default());
    for k in 0..300_u32 {
        // 0.45 ms into a tick each time; a queue of 40 ms in the middle.
        let sent_us = 5_000_450 + u64::from(k) * 200_000;
        let queue_us = if (100..200).contains(&k) { 40_000 } else { 0 };
        let clock = (sent_us / 1000) as u32;
        tap.tcp(
            sent_us + 20_000 + queue_us,
            B,
            A,
            &Tcp { seq: k * 100, ack: 1, flags: 0x18, clock, echo: 1, len: 100 },
        );
    }
    let delays = tap.found().queue_us(B.0, Estimator::Direct);
    assert_eq!((delays.len(), delays[50], delays[150]), (300, 0.0, 40_000.0));
}

#[test]
fn what_begins_in_the_middle_says_so() {
    let flags = |starts: bool| {
        let mut tap = Tap::new(Config::default());
        if starts {
            let syn = Tcp { seq: u32::MAX, ack: 0, flags: 0x02, clock: 980, echo: 0, len: 0 };
            tap.tcp(1_000_000, B, A, &syn);
        }
        for k in 0..500_u64 {
            let (sent, queue) = (1_000_000 + k * 20_000, 500_000 + k * 100);
            let clock = (sent / 1000) as u32;
            tap.tcp(
                sent + 20_000 + queue,
                B,
                A,
                &Tcp { seq: k as u32, ack: 1, flags: 0x10, clock, echo: 9, len: 1 },
            );
        }
        tap.found().flow(B.0).flags
    };
    assert!(flags(false).has(Flags::START_NOT_SEEN.with(Flags::BASE_NOT_REVISITED)));
    assert!(!flags(true).has(Flags::START_NOT_SEEN));
}

#[test]
fn flows_of_one_utp_socket_share_its_shortest_delay() {
    let mut tap = Tap::new(Config::default());
    let other = ([10, 0, 3, 9], 7000);
    for k in 0..1_000_u64 {
        let sent = 1_000_000 + k * 20_000;
        let queue = if k < 50 { 0 } else { 80_000 };
        tap.utp(sent + 20_000 + queue, B, A, &utp(Kind::Data, 8, (k as u16, 4), (sent as u32, 5), 100));
        // The second connection begins once the queue stands.
        if k >= 100 {
            let packet = utp(Kind::Data, 9, (k as u16, 4), (sent as u32, 5), 100);
            tap.utp(sent + 20_100 + queue, B, other, &packet);
        }
    }
    let found = tap.found();
    let later = found.seen.flows.iter().find(|flow| flow.destination.port == 7000).unwrap();
    assert!((later.direct.unwrap().p50_ms - 80.1).abs() < 0.2, "{later:?}");
}

/// Two minutes in which the queue is empty for the first second of ten, and two more by a path that is 70 ms longer.
#[test]
fn a_base_that_slides_follows_a_path_that_becomes_longer() {
    const WINDOW_US: u64 = 20_000_000;
    let bases = [Base::Whole, Base::Sliding(WINDOW_US)];
    let mut taps = bases.map(|base| Tap::new(Config { base, ..Config::default() }));
    let other = ([10, 0, 3, 9], 7000);
    for k in 0..12_000_u64 {
        let sent = 1_000_000 + k * 20_000;
        let (path, is_full) = (if k < 6_000 { 20_000 } else { 90_000 }, k % 500 >= 50);
        let seen = sent + path + if is_full { 30_000 } else { 0 };
        let packet = |id| utp(Kind::Data, id, (k as u16, 4), (sent as u32, 5), 100);
        let segment =
            Tcp { seq: k as u32, ack: 1, flags: 0x10, clock: (sent / 1_000) as u32, echo: 9, len: 1 };
        for tap in &mut taps {
            tap.utp(seen, B, A, &packet(8));
            // Of the same socket, and silent whenever the queue is empty.
            if is_full {
                tap.utp(seen, B, other, &packet(9));
            }
            tap.tcp(seen, (B.0, 99), A, &segment);
        }
    }
    let [whole, sliding] = taps.map(|tap| tap.found());
    let settled_us = 121_000_000 + WINDOW_US / 10 * 11;
    let told = |found: &Found, ports: (u16, u16), times: core::ops::Range<u64>| {
        let is_asked = |sample: &&QueueSample| {
            (sample.source.port, sample.destination.port) == ports && times.contains(&sample.delay.time_us)
        };
        let asked = found.seen.samples.iter().filter(is_asked).map(|sample| sample.delay.queue_us / 1e3);
        asked.fold(0.0, f64::max)
    };
    for ports in [(B.1, A.1), (B.1, other.1), (99, A.1)] {
        // A TCP clock of milliseconds is within a tick.
        let near = |found: &Found, times, ms: f64| (told(found, ports, times) - ms).abs() < 1.1;
        assert!(near(&whole, 0..121_000_000, 30.0) && near(&sliding, 0..121_000_000, 30.0), "{ports:?}");
        assert!(near(&sliding, 121_000_000..settled_us, 100.0), "{ports:?}");
        assert!(near(&whole, settled_us..u64::MAX, 100.0), "{ports:?}: counted from the shorter path");
        assert!(near(&sliding, settled_us..u64::MAX, 30.0), "{ports:?}: as long as the window is");
    }
}

#[test]
fn a_window_forgets_what_is_older_and_flows_that_are_silent() {
    let mut tap = Tap::new(Config::default());
    let mut longest = 0;
    for k in 0..200_000_u64 {
        let time_us = 1_000_000 + k * 10_000;
        // A new flow each minute, and one that goes on; the queue of the first quarter of an hour is long ago.
        let queue = if (1_000..=90_000).contains(&k) { 50_000 } else { 0 };
        let packet = utp(Kind::Data, 8, (k as u16, 4), ((time_us - queue) as u32, 5), 100);
        tap.utp(time_us, B, A, &packet);
        tap.utp(time_us, ([10, 0, 4, (k / 6_000) as u8], 1), A, &packet);
        if k % 1_000 == 0 {
            tap.0.forget_before(time_us.saturating_sub(60_000_000));
            longest = longest.max(tap.0.memory_bytes());
        }
    }
    assert!(tap.0.flows() <= 4 && longest < 600_000, "{} flows, {longest} octets", tap.0.flows());
    let found = tap.found();
    let delays = found.queue_us(B.0, Estimator::Direct);
    // A minute, and the ten seconds since it was asked to forget.
    assert!((6_990..7_030).contains(&delays.len()), "{}", delays.len());
    assert!(delays.iter().all(|&queue_us| queue_us < 1.0));
    assert_eq!(tap.0.counters().evicted, 0);
}

#[test]
fn samples_that_come_too_soon_are_left_out_and_counted() {
    let mut tap = Tap::new(Config::default());
    tap.0.set_spacing_us(10_240);
    play(|time_us, is_data, tcp, udp| {
        let (from, to) = if is_data { (B.0, A.0) } else { (A.0, B.0) };
        for again in 0..4 {
            tap.frame(time_us + again * 1_000, &ethernet(0x0800, &ipv4(17, from, to, &udp)));
        }
        tap.frame(time_us, &ethernet(0x0800, &ipv4(6, from, to, &tcp)));
    });
    let thinned = tap.0.counters().thinned;
    assert!((17_900..=18_100).contains(&thinned), "{thinned}");
    assert!((2_900..=3_000).contains(&tap.found().report().hosts[0].tcp.unwrap().samples));
}
