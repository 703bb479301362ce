//! Link types, tunnels, cut and strange frames: what can be had is had, and the rest is counted.

mod common;

use cede_meter::{Config, Counters, Estimator, Flags, Meter};
use cede_wire::link::LinkType;
use cede_wire::utp::Kind;
use common::{A, B, Tap, Tcp, ethernet, ipv4, ipv6, udp, utp};

/// Sixty packets of B and as many answers, each in a frame of the caller's making.
fn wrapped(link_type: LinkType, wrap: impl Fn(Vec<u8>) -> Vec<u8>) -> Meter {
    let mut meter = Meter::default();
    for k in 0..60_u16 {
        let time_us = 1_000_000 + u64::from(k) * 20_000;
        let data = utp(Kind::Data, 8, (10 + k, 4), (time_us as u32, 5), 100);
        let state = utp(Kind::State, 7, (5, 10 + k), (time_us as u32, 500), 0);
        for (from, to, packet) in [(B, A, data), (A, B, state)] {
            let frame = wrap(ipv4(17, from.0, to.0, &udp(from.1, to.1, &packet)));
            meter.packet(time_us * 1000, link_type, &frame, frame.len() as u32);
        }
    }
    meter
}

fn is_seen(meter: &Meter) -> bool {
    let report = meter.report();
    report.hosts.len() == 2 && report.hosts.iter().all(|host| host.all.samples == 60)
}

#[test]
fn frames_of_every_kind_yield_the_same_flow() {
    let tagged = |tag: &[u8], ip: Vec<u8>| [&[2; 12][..], tag, &ip].concat();
    assert!(is_seen(&wrapped(LinkType::ETHERNET, |ip| ethernet(0x0800, &ip))));
    assert!(is_seen(&wrapped(LinkType::ETHERNET, |ip| tagged(&[0x81, 0, 0, 7, 8, 0], ip))));
    assert!(is_seen(&wrapped(LinkType::ETHERNET, |ip| tagged(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 7, 8, 0], ip))));
    assert!(is_seen(&wrapped(LinkType::ETHERNET, |ip| tagged(
        &[0x88, 0x64, 0x11, 0, 0, 9, 0, 99, 0, 0x21],
        ip
    ))));
    let labels = [0x88, 0x47, 0, 1, 0x20, 64, 0, 2, 0x21, 64];
    assert!(is_seen(&wrapped(LinkType::ETHERNET, |ip| tagged(&labels, ip))), "MPLS");
    let snap = [0, 200, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    assert!(is_seen(&wrapped(LinkType::ETHERNET, |ip| tagged(&snap, ip))), "IEEE 802.3");
    assert!(is_seen(&wrapped(LinkType::PPP, |ip| [&[0xff, 3, 0, 0x21][..], &ip].concat())));
    assert!(is_seen(&wrapped(LinkType::RAW, |ip| ip)));
    assert!(is_seen(&wrapped(LinkType::LINUX_SLL, |ip| [&[0; 14][..], &[8, 0], &ip].concat())));
    assert!(is_seen(&wrapped(LinkType::LINUX_SLL2, |ip| [&[8, 0][..], &[0; 18], &ip].concat())));
    assert!(is_seen(&wrapped(LinkType::NULL, |ip| [&[2, 0, 0, 0][..], &ip].concat())));
}

#[test]
fn packets_with_a_header_of_authentication_are_read() {
    let header = [17, 4, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7];
    let signed = |ip: Vec<u8>| {
        let end = |at: usize| [ip[at], ip[at + 1], ip[at + 2], ip[at + 3]];
        ipv4(51, end(12), end(16), &[&header[..], &ip[20..]].concat())
    };
    assert!(is_seen(&wrapped(LinkType::RAW, signed)));
    assert!(is_seen(&wrapped(LinkType::ETHERNET, |ip| ethernet(0x0800, &signed(ip)))));
    let cut = wrapped(LinkType::RAW, |ip| signed(ip)[..43].to_vec());
    assert_eq!(cut.counters().cut, 120);
}

/// A tunnel's packet.
fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4(protocol, [192, 0, 2, 1], [192, 0, 2, 2], payload)
}

fn vxlan(port: u16, ip: &[u8]) -> Vec<u8> {
    udp(50_000, port, &[&[8, 0, 0, 0, 0, 0, 42, 0][..], &ethernet(0x0800, ip)].concat())
}

fn gtp(ip: &[u8]) -> Vec<u8> {
    udp(2152, 2152, &[&[0x30, 255, 0, 0, 0, 0, 0, 1][..], ip].concat())
}

/// With so many words of options.
fn geneve(words: u8, ether_type: u16, inner: &[u8]) -> Vec<u8> {
    let [high, low] = ether_type.to_be_bytes();
    let options = vec![7; usize::from(words) * 4];
    udp(50_000, 6081, &[&[words, 0, high, low, 0, 0, 42, 0][..], &options, inner].concat())
}

/// With an extension header of so many words.
fn gtp_extended(words: u8, ip: &[u8]) -> Vec<u8> {
    let extension = [&[words][..], &vec![9; usize::from(words) * 4 - 2], &[0]].concat();
    udp(2152, 2152, &[&[0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85][..], &extension, ip].concat())
}

#[test]
fn tunnels_are_opened_one_level_deep() {
    let gre = |ip: Vec<u8>| [&[0, 0, 8, 0][..], &ip].concat();
    let keyed = |ip: Vec<u8>| [&[0xb0, 0, 8, 0][..], &[0; 12], &ip].concat();
    assert!(is_seen(&wrapped(LinkType::RAW, |ip| outer(47, &gre(ip)))));
    let bridged = |ip: Vec<u8>| [&[0x20, 0, 0x65, 0x58, 0, 0, 0, 7][..], &ethernet(0x0800, &ip)].concat();
    assert!(is_seen(&wrapped(LinkType::RAW, |ip| outer(47, &bridged(ip)))), "Ethernet, under a key");
    assert!(is_seen(&wrapped(LinkType::RAW, |ip| outer(47, &keyed(ip)))));
    assert!(is_seen(&wrapped(LinkType::RAW, |ip| outer(17, &vxlan(4789, &ip)))));
    assert!(is_seen(&wrapped(LinkType::RAW, |ip| outer(17, &gtp(&ip)))));
    assert!(is_seen(&wrapped(LinkType::RAW, |ip| outer(17, &gtp_extended(1, &ip)))));
    assert!(is_seen(&wrapped(LinkType::RAW, |ip| outer(17, &vxlan(8472, &ip)))), "the port that Linux takes");
    assert!(is_seen(&wrapped(LinkType::RAW, |ip| outer(17, &geneve(0, 0x0800, &ip)))));
    let framed = |ip: Vec<u8>| outer(17, &geneve(3, 0x6558, &ethernet(0x0800, &ip)));
    assert!(is_seen(&wrapped(LinkType::RAW, framed)), "Ethernet, behind options");
    assert!(is_seen(&wrapped(LinkType::RAW, |ip| outer(4, &ip))), "IPv4 within IPv4");
    assert!(is_seen(&wrapped(LinkType::RAW, |ip| ipv6(4, (1, 2), &ip))), "IPv4 within IPv6, as of DS-Lite");
    let six = wrapped(LinkType::RAW, |ip| outer(41, &ipv6(17, (ip[14], ip[18]), &ip[20..])));
    assert!(is_seen(&six), "IPv6 within IPv4");
    let twice = wrapped(LinkType::RAW, |ip| outer(47, &gre(outer(47, &gre(ip)))));
    assert!(twice.report().hosts.is_empty() && twice.counters().other == 120);
    let thrice = wrapped(LinkType::RAW, |ip| outer(4, &outer(4, &ip)));
    assert!(thrice.report().hosts.is_empty() && thrice.counters().other == 120);
}

#[test]
fn who_has_the_port_of_a_tunnel_is_heard_like_others() {
    for port in [4789_u16, 8472, 6081, 2152] {
        let moved = wrapped(LinkType::RAW, |mut ip| {
            let [high, low] = port.to_be_bytes();
            ip[20..24].copy_from_slice(&[high, low, high, low]);
            // Connections whose number is IPv4's in Geneve.
            let number = if ip[31] == 8 { 0x0800_u16 } else { 0x07ff };
            ip[30..32].copy_from_slice(&number.to_be_bytes());
            ip
        });
        assert!(is_seen(&moved), "port {port}: {:?}", moved.counters());
    }
}

#[test]
fn what_is_cut_within_a_tunnel_is_told_to_be_cut() {
    type Datagram<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;
    let datagrams: [Datagram<'_>; 4] =
        [&|ip| vxlan(4789, ip), &gtp, &|ip| gtp_extended(4, ip), &|ip| geneve(2, 0x0800, ip)];
    for (k, datagram) in datagrams.iter().enumerate() {
        let tunnel = |ip: &[u8]| ethernet(0x0800, &outer(17, &datagram(ip)));
        let needed = tunnel(&ipv4(17, A.0, B.0, &[0; 28])).len();
        for len in 0..=needed {
            let mut meter = Meter::default();
            let data = utp(Kind::Data, 8, (1, 4), (7, 5), 100);
            let frame = tunnel(&ipv4(17, B.0, A.0, &udp(B.1, A.1, &data)));
            meter.packet(7_000, LinkType::ETHERNET, &frame[..len], frame.len() as u32);
            let Counters { cut, other, .. } = meter.counters();
            assert_eq!((cut, other), (u64::from(len < needed), 0), "{k}: {len} of {needed}");
        }
        // Nobody's packet is cut where it is another protocol's.
        let mut meter = Meter::default();
        let frame = tunnel(&ipv4(1, A.0, B.0, &[8, 0, 0, 0]));
        meter.packet(7_000, LinkType::ETHERNET, &frame, frame.len() as u32);
        assert_eq!((meter.counters().cut, meter.counters().other, meter.flows()), (0, 1, 0), "{k}");
    }
    let arp = [&[0, 0, 0x65, 0x58][..], &ethernet(0x0806, &[0; 28])].concat();
    let mut meter = Meter::default();
    let frame = ethernet(0x0800, &outer(47, &arp));
    meter.packet(7_000, LinkType::ETHERNET, &frame, frame.len() as u32);
    assert_eq!((meter.counters().cut, meter.counters().other), (0, 1));
}

#[test]
fn a_packet_whose_header_leaves_its_length_open_is_as_long_as_it_was_on_the_wire() {
    // Of each so many octets were captured.
    let answers = |version: u8, has_length: bool| {
        let mut meter = Meter::default();
        let mut send = |time_us: u64, protocol, from: ([u8; 4], u16), to: ([u8; 4], u16), segment: &Tcp| {
            let segment = segment.octets(from.1, to.1);
            let mut frame = match version {
                4 => ethernet(0x0800, &ipv4(protocol, from.0, to.0, &segment)),
                _ => ethernet(0x86dd, &ipv6(protocol, (from.0[2], to.0[2]), &segment)),
            };
            if !has_length {
                let at = if version == 4 { 16 } else { 18 };
                frame[at..at + 2].copy_from_slice(&[0, 0]);
            }
            let captured = &frame[..frame.len().min(118)];
            meter.packet(time_us * 1000, LinkType::ETHERNET, captured, frame.len() as u32);
        };
        for k in 0..100_u32 {
            let time_us = 1_000_000 + u64::from(k) * 20_000;
            let (clock, seq) = (1_000 + 20 * k, 14_480 * k);
            let data = Tcp { seq, ack: 1, flags: 0x10, clock, echo: 9, len: 14_480 };
            let ack = Tcp { seq: 1, ack: seq + 14_480, flags: 0x10, clock: clock + 7, echo: clock, len: 0 };
            send(time_us, 6, B, A, &data);
            send(time_us + 10, 6, A, B, &ack);
        }
        let mut seen = common::Seen::default();
        let _ = meter.report_to(&mut seen);
        seen.samples.iter().filter(|sample| sample.estimator == Estimator::Echoed).count()
    };
    for version in [4, 6] {
        assert_eq!((answers(version, true), answers(version, false)), (100, 100), "IPv{version}");
    }
}

#[test]
fn a_snapshot_that_holds_the_header_is_enough() {
    // Ethernet, IPv4, UDP and uTP's fixed header.
    let cut =
        |len: usize| wrapped(LinkType::ETHERNET, move |ip| ethernet(0x0800, &ip)[..len.min(62)].to_vec());
    assert!(is_seen(&cut(62)));
    for len in 0..62 {
        let meter = cut(len);
        assert!(meter.report().hosts.is_empty(), "{len}");
        assert_eq!(meter.counters().packets, 120);
    }
}

#[test]
fn what_says_nothing_is_counted_for_what_it_is() {
    let mut meter = Meter::default();
    let mut frame = |link: LinkType, octets: &[u8]| meter.packet(7_000, link, octets, octets.len() as u32);
    frame(LinkType::ETHERNET, &ethernet(0x0806, &[0; 28]));
    frame(LinkType::ETHERNET, &ethernet(0x0800, &ipv4(1, A.0, B.0, &[8, 0, 0, 0])));
    frame(LinkType::ETHERNET, &ethernet(0x0800, &ipv4(6, A.0, B.0, &[0; 19])));
    frame(LinkType(147), &[0; 60]);
    let mut fragment = ipv4(17, A.0, B.0, &[0; 40]);
    fragment[7] = 9;
    frame(LinkType::RAW, &fragment);
    let Counters { other, fragments, cut, unread, unknown_link_type, .. } = meter.counters();
    assert_eq!((other, fragments, cut, unread, unknown_link_type), (2, 1, 1, 1, Some(147)));
}

/// Two connections between the same sockets: what one sends has up to three acknowledgements of the other in front of it, in the same
/// datagram or in others; of each so many octets are captured.
fn with_acknowledgements(are_joined: bool, captured: usize) -> Meter {
    let mut meter = Meter::default();
    let mut send = |time_us: u64, from: ([u8; 4], u16), to: ([u8; 4], u16), packets: &[Vec<u8>]| {
        let payloads = if are_joined { vec![packets.concat()] } else { packets.to_vec() };
        for payload in payloads {
            let frame = ethernet(0x0800, &ipv4(17, from.0, to.0, &udp(from.1, to.1, &payload)));
            let octets = &frame[..captured.min(frame.len())];
            meter.packet(time_us * 1000, LinkType::ETHERNET, octets, frame.len() as u32);
        }
    };
    for k in 0..300_u16 {
        // A queue that grows and empties.
        let queue_us = u64::from(k % 50) * 1_000;
        let (sent_us, number) = (1_000_000 + u64::from(k) * 20_000, 10 + k);
        let (stamp, seen_us) = (sent_us as u32, sent_us + queue_us);
        let state = |id, seq, difference| utp(Kind::State, id, (seq, number - 1), (stamp, difference), 0);
        let data = utp(Kind::Data, 8, (number, number - 1), (stamp + 9, 5), 100);
        let fronts = (0..k % 4).map(|_| state(501, 7, 9));
        send(seen_us, B, A, &fronts.chain([data]).collect::<Vec<_>>());
        let (stamp, took) = ((seen_us + 10) as u32, queue_us as u32 + 500);
        let answer = utp(Kind::State, 7, (5, number), (stamp, took), 0);
        let question = utp(Kind::Data, 500, (number, 7), (stamp + 3, took), 30);
        send(seen_us + 20, A, B, &[answer, question]);
    }
    meter
}

#[test]
fn a_packet_behind_acknowledgements_in_one_datagram_is_read() {
    let found = |meter: &Meter| {
        let mut seen = common::Seen::default();
        let report = meter.report_to(&mut seen);
        let flows = seen
            .flows
            .iter()
            .map(|flow| (flow.source, flow.packets, flow.flags, flow.direct))
            .collect::<Vec<_>>();
        (report.hosts.len(), report.other_udp_flows, flows, seen.samples)
    };
    let apart = found(&with_acknowledgements(false, usize::MAX));
    assert_eq!((apart.0, apart.2[0].1.min(apart.2[1].1)), (2, 600));
    let longest_us = apart.3.iter().map(|sample| sample.delay.queue_us).fold(0.0, f64::max);
    assert!((48_000.0..51_000.0).contains(&longest_us), "{longest_us}");
    // Enough for the heads of four.
    for captured in [usize::MAX, 122] {
        let meter = with_acknowledgements(true, captured);
        assert_eq!(found(&meter), apart, "{captured}");
        assert_eq!(meter.counters().packets, 600);
    }
}

#[test]
fn what_stands_behind_an_acknowledgement_is_told_by_its_form_and_time() {
    let is_utp = |packets: &[Vec<u8>]| {
        let payload = packets.concat();
        cede_meter::has_utp_form(&payload, payload.len())
    };
    let state = |stamp| utp(Kind::State, 7, (5, 6), (stamp, 9), 0);
    let data = |stamp| utp(Kind::Data, 8, (5, 6), (stamp, 9), 10);
    assert!(is_utp(&[state(7), data(7)]) && is_utp(&[state(7), state(3), state(7)]));
    assert!(is_utp(&[state(u32::MAX), data(70)]), "its clock wraps between");
    assert!(!is_utp(&[state(7), vec![7; 40]]) && !is_utp(&[state(7), data(2_000_000)]));
    assert!(!is_utp(&[state(7), state(7), vec![0x21; 19]]));
    // Selective acknowledgements belong to the head.
    let mut sack = state(7);
    sack[1] = 1;
    sack.extend([0, 4, 1, 0, 0, 0]);
    assert!(is_utp(&[sack.clone(), data(7)]) && !is_utp(&[sack[..24].to_vec(), data(7)]));
}

#[test]
fn other_protocols_on_shared_ports_are_told_apart() {
    let mut tap = Tap::new(Config::default());
    for k in 0..200_u16 {
        let time_us = 1_000_000 + u64::from(k) * 20_000;
        tap.utp(time_us, B, A, &utp(Kind::Data, 8, (10 + k, 4), (time_us as u32, 5), 100));
        tap.utp(time_us + 10, A, B, &utp(Kind::State, 7, (5, 10 + k), (time_us as u32, 500), 0));
        // DHT between the same sockets, and a name server whose every answer has the form of uTP.
        tap.utp(time_us + 20, B, A, b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe");
        let name_server = ([10, 0, 1, 2], 53);
        let like_utp = [&[0x01, 0, k as u8, 3, 1, 2, 3][..], &[k as u8; 60]].concat();
        tap.utp(time_us + 30, name_server, A, &like_utp);
        tap.utp(time_us + 40, A, name_server, &like_utp);
    }
    let found = tap.found();
    assert_eq!(found.report().other_udp_flows, 1);
    assert_eq!(found.queue_us(B.0, Estimator::Direct).len(), 200, "only what is uTP");
}

#[test]
fn questions_and_answers_in_the_form_of_utp_are_none_where_nothing_in_them_is_a_clock() {
    let mut tap = Tap::new(Config::default());
    // What stands in the place of the stamp: always the same, by turns, a count of packets, dice.
    let stamps: [fn(u32) -> u32; 4] =
        [|_| 0x0100_0000, |k| 7 + ((k % 2) << 24), |k| 1 + k, |k| 1 + k.wrapping_mul(2_654_435_761)];
    for k in 0..400_u16 {
        let time_us = 1_000_000 + u64::from(k) * 20_000;
        for (port, stamp) in (1_000..).zip(stamps) {
            let number = k / 5;
            let (question, answer) = (([10, 0, 1, 2], port), A);
            let says = |seq, ack| utp(Kind::Data, 0, (seq, ack), (stamp(k.into()), 0), 100);
            tap.utp(time_us, question, answer, &says(number, number));
            tap.utp(time_us + 10, answer, question, &says(number, number));
        }
        // And uTP, whose clock is set by two hours under way.
        let stamp = (time_us as u32).wrapping_add(if k < 100 { 0 } else { 7_200_000_000_u64 as u32 });
        tap.utp(time_us + 20_000, B, A, &utp(Kind::Data, 8, (10 + k, 4), (stamp, 5), 100));
        tap.utp(time_us + 20_010, A, B, &utp(Kind::State, 7, (5, 10 + k), (time_us as u32, 500), 0));
    }
    let found = tap.found();
    assert_eq!(found.report().other_udp_flows, stamps.len() as u64);
    assert_eq!(found.queue_us(B.0, Estimator::Direct).len(), 400);
}

#[test]
fn connections_between_the_same_sockets_are_told_apart() {
    for connections in [1, 3, 8] {
        let mut tap = Tap::new(Config::default());
        for k in 0..240_u16 {
            let time_us = 1_000_000 + u64::from(k) * 20_000;
            // By turns, each with ids and numbers of its own; the answers come a turn later.
            let of = |k: u16| (1_000 * (k % connections), 9_000 * (k % connections) + k / connections);
            let (id, seq) = of(k);
            tap.utp(time_us, B, A, &utp(Kind::Data, id + 1, (seq, 4), (time_us as u32, 5), 100));
            if let Some(before) = k.checked_sub(connections / 2) {
                let (id, ack) = of(before);
                tap.utp(time_us + 10, A, B, &utp(Kind::State, id, (5, ack), (time_us as u32, 500), 0));
            }
        }
        let found = tap.found();
        assert_eq!(found.report().other_udp_flows, 0, "{connections}");
        assert_eq!(found.queue_us(B.0, Estimator::Direct).len(), 240, "{connections}");
    }
}

#[test]
fn one_direction_alone_is_enough_if_its_stamps_follow_time() {
    let mut tap = Tap::new(Config::default());
    for k in 0..100_u16 {
        let time_us = 1_000_000 + u64::from(k) * 20_000;
        let queue = u64::from(k % 10) * 1_000;
        tap.utp(time_us + queue, B, A, &utp(Kind::Data, 8, (10 + k, 4), (time_us as u32, 5), 100));
        // Stamps like dice on another port.
        let dice = u32::from(k).wrapping_mul(2_654_435_761);
        tap.utp(time_us, ([10, 0, 1, 9], 5), A, &utp(Kind::Data, 8, (10 + k, 4), (dice, 5), 100));
    }
    let found = tap.found();
    assert_eq!(found.report().other_udp_flows, 1);
    assert!(found.flow(B.0).flags.has(Flags::ONE_DIRECTION));
    assert_eq!(found.queue_us(B.0, Estimator::Direct).into_iter().fold(0.0, f64::max), 9_000.0);
}

#[test]
fn what_stands_in_the_place_of_the_stamp_must_run_as_time_does() {
    let mut tap = Tap::new(Config::default());
    // A constant, counts of packets, and clocks of other units, from 1 to 10^7 a second.
    let per_second = [0, 10, 1_000, 90_000, 10_000_000_u64];
    for k in 0..600_u64 {
        let time_us = 1_000_000 + k * 100_000;
        for (host, hz) in (20..).zip(per_second) {
            let number = (0x0400_0007 + k * hz / 10) as u32;
            tap.utp(time_us, ([10, 0, 1, host], 5), A, &utp(Kind::Data, 8, (10, 4), (number, 5), 100));
        }
        // Two numbers by turns, less than the range of a queue apart.
        let by_turns = 0x5100_8000 + (k as u32 % 2) * 0x0100_0000;
        tap.utp(time_us, ([10, 0, 1, 30], 5), A, &utp(Kind::Data, 8, (10, 4), (by_turns, 5), 100));
        // Data that a clock of microseconds stamps, ahead of a queue that fills and drains.
        let queue = (k % 40) * 20_000;
        tap.utp(time_us + queue, B, A, &utp(Kind::Data, 8, (k as u16, 4), (time_us as u32, 5), 100));
    }
    let found = tap.found();
    assert_eq!(found.report().other_udp_flows, per_second.len() as u64 + 1);
    assert_eq!(found.report().hosts.len(), 1);
    assert_eq!(found.queue_us(B.0, Estimator::Direct).len(), 600);
}

/// RFC 8489: the answer to a binding request, with the address that was seen and a check of integrity.
fn stun_answer(id: [u8; 12]) -> Vec<u8> {
    let address = [0, 0x20, 0, 8, 0, 1, 1, 2, 3, 4, 5, 6];
    let integrity = [&[0, 8, 0, 20][..], &[7; 20]].concat();
    let attributes = [&address[..], &integrity, &[0x80, 0x28, 0, 4, 1, 2, 3, 4]].concat();
    [&[1, 1, 0, attributes.len() as u8, 0x21, 0x12, 0xa4, 0x42], &id[..], &attributes].concat()
}

#[test]
fn answers_of_stun_are_no_utp() {
    let mut tap = Tap::new(Config::default());
    let mut stream = cede_units::Stream::named(9, "stun");
    let mut answer = || stun_answer(core::array::from_fn(|_| stream.below(256) as u8));
    for k in 0..400_u64 {
        let time_us = 1_000_000 + k * 300_000;
        // A conference's server answers each second on its one port; two peers that both ask try many ports, thrice each.
        tap.utp(time_us, B, A, &answer());
        tap.utp(time_us + 50_000, A, B, b"\x80\x6f and what is no answer, as both send media there");
        let (near, far) = ((A.0, 40_000 + (k / 3) as u16), ([10, 0, 1, 9], 5_000));
        tap.utp(time_us + 1, far, near, &answer());
        tap.utp(time_us + 2, near, far, &answer());
    }
    let report = tap.0.report();
    assert_eq!((report.hosts.len(), report.hosts_with_too_little), (0, 0));
    assert_eq!(report.other_udp_flows, 135);
}

#[test]
fn clocks_of_every_rate_are_recognised_and_steps_begin_anew() {
    let rates = [100, 250, 1000, 1_000_000_u64];
    // Set forward by a minute, and back by a second: an order of stamps that no queue makes.
    for (hz, after_s) in rates.into_iter().flat_map(|hz| [(hz, 70), (hz, 9)]) {
        let mut tap = Tap::new(Config::default());
        for k in 0..2_000_u64 {
            let (time_us, ahead) = (1_000_000 + k * 10_000, hz * if k < 1_000 { 10 } else { after_s });
            let clock = (time_us * hz / 1_000_000 + ahead) as u32;
            tap.tcp(time_us, B, A, &Tcp { seq: 1, ack: 1, flags: 0x10, clock, echo: 9, len: 0 });
        }
        let found = tap.found();
        let flow = found.flow(B.0);
        assert!(flow.flags.has(Flags::CLOCK_STEP), "{hz} {after_s}");
        assert!(flow.direct.unwrap().max_ms <= 1e3 / hz as f64, "{hz} {after_s}: {:?}", flow.direct);
        assert_eq!(
            (flow.flags.has(Flags::COARSE_CLOCK), flow.flags.has(Flags::RATE_ODD)),
            (hz <= 250, false),
            "{hz}"
        );
    }
}

#[test]
fn segments_above_a_hole_that_fill_one_or_come_again_say_nothing() {
    let mut tap = Tap::new(Config::default());
    let data = |seq: u32, clock: u32| Tcp { seq, ack: 1, flags: 0x10, clock, echo: 9, len: 100 };
    let ack = |ack: u32, clock: u32| Tcp { seq: 1, ack, flags: 0x10, clock, echo: 9, len: 0 };
    // In order; a hole at 200, 300 and 400 above it; 200 again; then in order.
    let script = [(0, 10), (100, 20), (300, 40), (400, 50), (200, 90), (500, 100), (100, 110), (600, 120)];
    let acks = [100, 200, 200, 200, 500, 600, 600, 700];
    for (k, (&(seq, clock), acked)) in script.iter().zip(acks).enumerate() {
        let time_us = 1_000_000 + k as u64 * 10_000;
        tap.tcp(time_us, B, A, &data(seq, clock));
        tap.tcp(time_us + 100, A, B, &ack(acked, 1000 + clock));
    }
    assert_eq!(tap.found().queue_us(B.0, Estimator::Echoed).len(), 4, "0, 100, 500 and 600");
}

#[test]
fn memory_stays_within_what_is_allowed_and_what_is_given_up_is_counted() {
    let config = Config { memory_bytes: 1 << 20, ..Config::default() };
    let mut tap = Tap::new(config);
    for k in 0..30_000_u32 {
        let time_us = 1_000_000 + u64::from(k) * 1_000;
        let source = ([10, (k >> 16) as u8, (k >> 8) as u8, k as u8], 6881);
        tap.utp(time_us, source, A, &utp(Kind::Data, 8, (1, 1), (time_us as u32, 5), 100));
        assert!(tap.0.memory_bytes() <= (1 << 20) + (1 << 17), "{}", tap.0.memory_bytes());
    }
    assert!(tap.0.counters().evicted > 10_000);
    // One flow alone that goes on for ever.
    let mut tap = Tap::new(Config { memory_bytes: 1 << 16, ..Config::default() });
    for k in 0..52_000_u32 {
        let time_us = 1_000_000 + u64::from(k) * 1_000;
        tap.utp(time_us, B, A, &utp(Kind::Data, 8, (k as u16, 1), (time_us as u32, 5), 100));
    }
    assert!(tap.0.memory_bytes() < 1 << 17);
    // Its samples become sparser, and still tell of all of the time.
    let found = tap.found();
    let times = found.seen.samples.iter().map(|sample| sample.delay.time_us);
    assert!(tap.0.counters().thinned > 40_000 && !found.flow(B.0).flags.has(Flags::EVICTED));
    assert_eq!(times.min(), Some(1_000_000));
}

#[test]
fn two_halves_of_a_capture_make_the_whole() {
    let play = |meter: &mut Meter, range: core::ops::Range<u16>| {
        for k in range {
            let time_us = 1_000_000 + u64::from(k) * 20_000;
            let packet =
                utp(Kind::Data, 8, (10 + k, 4), ((time_us - u64::from(k % 7) * 1_000) as u32, 5), 100);
            let frame = ipv4(17, B.0, A.0, &udp(B.1, A.1, &packet));
            meter.packet(time_us * 1000, LinkType::RAW, &frame, frame.len() as u32);
        }
    };
    let (mut whole, mut first, mut second) = (Meter::default(), Meter::default(), Meter::default());
    play(&mut whole, 0..200);
    play(&mut first, 0..90);
    play(&mut second, 90..200);
    first.append(&second);
    assert_eq!(first.report(), whole.report());
}
