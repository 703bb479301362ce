//! A router's own captures of all its interfaces, which show each packet before its queue and behind it.

mod common;

use cede_meter::{Config, Counters, Estimator, Flags};
use cede_wire::link::LinkType;
use cede_wire::pcap::Record;
use cede_wire::utp::Kind;
use common::{A, B, Tap, Tcp, ethernet, ipv4, udp, utp};

/// How a capture tells where it saw a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Capture {
    /// By the header of each frame.
    Cooked(LinkType),
    /// By the numbers of its interfaces (pcapng).
    Apart,
}

const CAPTURES: [Capture; 3] =
    [Capture::Cooked(LinkType::LINUX_SLL), Capture::Cooked(LinkType::LINUX_SLL2), Capture::Apart];

impl Capture {
    /// A packet as it is captured: by which interface, and whether it leaves the machine.
    fn frame(self, interface: u32, leaves: bool, packet: &[u8]) -> (u32, Vec<u8>) {
        match self {
            Self::Cooked(link_type) => (0, cooked(link_type, interface, leaves, packet)),
            Self::Apart => (interface, ethernet(0x0800, packet)),
        }
    }

    fn hand(self, tap: &mut Tap, time_us: u64, (interface, captured): &(u32, Vec<u8>)) {
        let link_type = if let Self::Cooked(link_type) = self { link_type } else { LinkType::ETHERNET };
        let (time_ns, original_len) = (Some(time_us * 1_000), captured.len() as u32);
        tap.0.record(&Record { time_ns, interface: *interface, link_type, captured, original_len });
    }
}

/// A cooked capture's frame: by which interface, and whether it leaves the machine.
fn cooked(link_type: LinkType, interface: u32, leaves: bool, packet: &[u8]) -> Vec<u8> {
    let kind = if leaves { 4 } else { 0 };
    if link_type == LinkType::LINUX_SLL {
        return [&[0, kind, 0, 1, 0, 6][..], &[2; 8], &[8, 0], packet].concat();
    }
    [&[8, 0, 0, 0][..], &interface.to_be_bytes(), &[0, 1, kind, 6], &[2; 8], packet].concat()
}

const INSIDE: u32 = 2;
const OUTSIDE: u32 = 3;

/// The router's own address, under which it shows a host that is behind it.
const ROUTER: ([u8; 4], u16) = ([10, 0, 2, 1], 40_001);

/// Whose address the router translates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Translated {
    Nobody,
    Sender,
    Receiver,
}

/// Up to 600 ms within twelve seconds, and down again as packets stay in order.
fn queue_us(k: u64) -> u64 {
    let step = k % 631;
    1_000 * if step <= 600 { step } else { 600 - (step - 600) * 20 }
}

/// B's packets each 20 ms come from inside, wait for up to 600 ms, and leave; A's answers come 20 ms later and leave at once.
fn play(capture: Capture, is_tcp: bool, translated: Translated) -> Tap {
    let mut frames = Vec::new();
    // Names on the side of the other host.
    let sender = if translated == Translated::Sender { ROUTER } else { B };
    let receiver = if translated == Translated::Receiver { ROUTER } else { A };
    for k in 0..3_000_u64 {
        // The capture begins while there is a queue.
        let (sent, queue) = (10_000_000 + k * 20_000, queue_us(k + 500));
        let (leaves, seq) = (sent + queue, k as u32 * 100);
        let ms = |at: u64| (at / 1_000) as u32;
        let segments = [
            Tcp { seq, ack: 1, flags: 0x10, clock: ms(sent), echo: 9, len: 100 },
            Tcp { seq: 1, ack: seq + 100, flags: 0x10, clock: ms(leaves), echo: ms(sent), len: 0 },
        ];
        let datagrams = [
            utp(Kind::Data, 8, (k as u16, 4), (sent as u32, 5), 100),
            utp(Kind::State, 7, (5, k as u16), (leaves as u32, 500), 0),
        ];
        let packet = |what: usize, from: ([u8; 4], u16), to: ([u8; 4], u16)| {
            if is_tcp {
                ipv4(6, from.0, to.0, &segments[what].octets(from.1, to.1))
            } else {
                ipv4(17, from.0, to.0, &udp(from.1, to.1, &datagrams[what]))
            }
        };
        frames.push((sent, capture.frame(INSIDE, false, &packet(0, B, receiver))));
        frames.push((leaves, capture.frame(OUTSIDE, true, &packet(0, sender, A))));
        frames.push((leaves + 20_000, capture.frame(OUTSIDE, false, &packet(1, A, sender))));
        frames.push((leaves + 20_020, capture.frame(INSIDE, true, &packet(1, receiver, B))));
    }
    frames.sort_by_key(|frame| frame.0);
    let mut tap = Tap::new(Config::default());
    for (time_us, frame) in &frames {
        capture.hand(&mut tap, *time_us, frame);
    }
    tap
}

/// Holds one view of each packet against the queue.
fn check(tap: &Tap) {
    let found = tap.found();
    let flow = found.flow(B.0);
    assert!(!flow.flags.has(Flags::CLOCK_STEP), "{flow:?}");
    // Some came before it was known that they are seen again.
    assert!((2_940..=3_060).contains(&flow.packets), "{}", flow.packets);
    let delays = found.queue_us(B.0, Estimator::Direct);
    let truth = (0..3_000).map(|k| queue_us(k + 500)).sum::<u64>() as f64 / 3_000.0;
    let most = delays.iter().copied().fold(0.0, f64::max);
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    assert!((most - 600_000.0).abs() < 2_000.0 && (mean - truth).abs() < 2_000.0, "{most} {mean}");
    assert!(found.queue_us(A.0, Estimator::Direct).iter().all(|queue_us| *queue_us < 2_000.0));
    let twice = tap.0.counters().seen_twice;
    assert!((5_850..6_000).contains(&twice), "{twice}");
}

#[test]
fn of_each_packet_the_view_behind_the_queue_counts() {
    for capture in CAPTURES {
        for is_tcp in [true, false] {
            check(&play(capture, is_tcp, Translated::Nobody));
        }
    }
}

#[test]
fn a_flow_has_the_name_of_whoever_is_translated() {
    for translated in [Translated::Sender, Translated::Receiver] {
        for capture in CAPTURES {
            for is_tcp in [true, false] {
                let tap = play(capture, is_tcp, translated);
                check(&tap);
                let found = tap.found();
                let hosts =
                    found.report().hosts.iter().map(|host| (host.address, host.flags)).collect::<Vec<_>>();
                let is_one = |name: [u8; 4]| hosts.iter().any(|host| host.0 == core::net::IpAddr::from(name));
                assert!(is_one(A.0) && is_one(B.0) && hosts.len() == 2, "{translated:?} {hosts:?}");
                assert!(hosts.iter().all(|host| !host.1.has(Flags::SEVERAL_CLOCKS)), "{hosts:?}");
                assert_eq!((tap.0.flows(), tap.0.counters().flows), (1, 1));
            }
        }
    }
}

/// Of a connection that B answers at once, and then queues for at least 300 ms, seen at A's router: that its way out is a better view of
/// what A sends takes nothing away from what B sent before, the only packet that met no queue.
#[test]
fn a_better_view_of_one_side_takes_nothing_from_the_other() {
    let mut tap = Tap::new(Config::default());
    let mut take = |time_us: u64, interface: u32, leaves: bool, packet: &[u8]| {
        let frame = cooked(LinkType::LINUX_SLL2, interface, leaves, packet);
        tap.0.packet(time_us * 1_000, LinkType::LINUX_SLL2, &frame, frame.len() as u32);
    };
    let queue_us = |k: u64| if k == 0 { 0 } else { 300_000 + k.min(100) * 1_000 };
    for k in 0..500_u64 {
        let (sent, ms) = (10_000_000 + k * 20_000, |at: u64| (at / 1_000) as u32);
        let arrives = sent + queue_us(k);
        let flags = if k == 0 { 0x12 } else { 0x10 };
        let data = Tcp { seq: k as u32 * 100, ack: 1, flags, clock: ms(sent), echo: 9, len: 100 };
        let ack =
            Tcp { seq: 1, ack: data.seq + 100, flags: 0x10, clock: ms(arrives), echo: data.clock, len: 0 };
        let of = |segment: &Tcp, from: ([u8; 4], u16), to: ([u8; 4], u16)| {
            ipv4(6, from.0, to.0, &segment.octets(from.1, to.1))
        };
        take(arrives, OUTSIDE, false, &of(&data, B, ROUTER));
        take(arrives + 20, INSIDE, true, &of(&data, B, A));
        take(arrives + 40, INSIDE, false, &of(&ack, A, B));
        take(arrives + 60, OUTSIDE, true, &of(&ack, ROUTER, B));
    }
    let delays = tap.found().queue_us(B.0, Estimator::Direct);
    let (late, most) = (&delays[1..], delays.iter().copied().fold(0.0, f64::max));
    assert!(late.iter().all(|queue_us| *queue_us > 298_000.0) && most < 401_000.0, "{:?}", &delays[..5]);
}

/// A router that sends by a bridge, or a tunnel's interface, and by the port below it, which has the queue: packets leave by both.
#[test]
fn of_two_ways_out_the_last_one_counts() {
    let capture = Capture::Cooked(LinkType::LINUX_SLL2);
    let truth = (0..3_000).map(|k| queue_us(k + 500)).sum::<u64>() as f64 / 3_000.0;
    for sender in [B, ROUTER] {
        let mut shown = Vec::new();
        for k in 0..3_000_u64 {
            // It pauses: behind that a packet which is still to leave comes first.
            let sent = 10_000_000 + k * 20_000 + k / 1_000 * 12_000_000;
            // The first of all meets no queue.
            let leaves = sent + if k == 0 { 0 } else { queue_us(k + 500) };
            let data = |from: ([u8; 4], u16)| {
                let said = Tcp {
                    seq: k as u32 * 100,
                    ack: 1,
                    flags: 0x10,
                    clock: (sent / 1_000) as u32,
                    echo: 9,
                    len: 100,
                };
                ipv4(6, from.0, A.0, &said.octets(from.1, A.1))
            };
            shown.push((sent, capture.frame(INSIDE, false, &data(B))));
            shown.push((sent + 5, capture.frame(OUTSIDE, true, &data(sender))));
            shown.push((leaves + 10, capture.frame(OUTSIDE + 1, true, &data(sender))));
        }
        shown.sort_by_key(|frame| frame.0);
        let mut tap = Tap::new(Config::default());
        shown.iter().for_each(|(time_us, frame)| capture.hand(&mut tap, *time_us, frame));
        let (mean, most) = mean_and_most(&tap);
        assert!(
            (most - 600_000.0).abs() < 2_000.0 && (mean - truth).abs() < 2_000.0,
            "{sender:?} {most} {mean}"
        );
        let found = tap.found();
        let none =
            found.queue_us(B.0, Estimator::Direct).iter().filter(|queue_us| **queue_us < 500.0).count();
        let truly_none = (1..3_000).filter(|k| queue_us(k + 500) == 0).count() + 1;
        // Of two names it takes more than a packet to learn that they are one's.
        assert_eq!(none, truly_none - usize::from(sender == ROUTER), "{sender:?}");
        // Some came before it was known that they are seen again.
        let packets = found.flow(B.0).packets;
        assert!((2_997..=3_030).contains(&packets), "{sender:?} {packets}");
    }
}

/// Two connections, one after the other, of a router that has another way out since: the second one is not held against the way of the first.
#[test]
fn what_leaves_by_another_way_is_found() {
    for capture in [Capture::Cooked(LinkType::LINUX_SLL2), Capture::Apart] {
        let mut shown = Vec::new();
        for k in 0..4_000_u64 {
            let (sent, is_first) = (10_000_000 + k * 20_000, k < 1_000);
            let leaves = sent + if is_first { 10 } else { 300_000 + k % 100 * 1_000 };
            let data = utp(Kind::Data, 8, (k as u16, 4), (sent as u32, 5), 100);
            let packet = ipv4(17, B.0, A.0, &udp(B.1 + u16::from(is_first), A.1, &data));
            let bridge = is_first.then_some((sent + 5, OUTSIDE, true));
            let out = (leaves, OUTSIDE + if is_first { 1 } else { 2 }, true);
            let seen = [Some((sent, INSIDE, false)), bridge, Some(out)];
            let frames = seen.into_iter().flatten();
            shown.extend(
                frames.map(|(at, interface, leaves)| (at, capture.frame(interface, leaves, &packet))),
            );
        }
        shown.sort_by_key(|frame| frame.0);
        let mut tap = Tap::new(Config::default());
        shown.iter().for_each(|(time_us, frame)| capture.hand(&mut tap, *time_us, frame));
        let found = tap.found();
        let second = found.seen.flows.iter().find(|flow| flow.source.port == B.1).unwrap();
        // What came before its way was found, ten seconds after its first packet, does not count.
        let samples = found.seen.samples.iter().filter(|sample| sample.source == second.source);
        let delays: Vec<f64> = samples.map(|sample| sample.delay.queue_us).collect();
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        assert!((2_400..=2_600).contains(&delays.len()), "{capture:?} {}", delays.len());
        assert!((47_000.0..51_000.0).contains(&mean), "{capture:?} {mean}");
    }
}

/// A host that speaks to the router itself, and through it to others: what goes on from there has one hop less left.
#[test]
fn one_host_on_both_sides_of_a_hop_is_one() {
    for capture in CAPTURES {
        let mut tap = Tap::new(Config::default());
        for k in 0..1_000_u64 {
            let sent = 10_000_000 + k * 20_000;
            let data = |id: u16| utp(Kind::Data, id, (k as u16, 4), (sent as u32, 5), 100);
            let to_it = ipv4(17, B.0, ROUTER.0, &udp(B.1, A.1, &data(8)));
            let through = ipv4(17, B.0, A.0, &udp(B.1, A.1, &data(9)));
            let mut gone_on = through.clone();
            gone_on[8] -= 1;
            for (at, interface, leaves, packet) in
                [(0, INSIDE, false, &to_it), (5, INSIDE, false, &through), (90, OUTSIDE, true, &gone_on)]
            {
                capture.hand(&mut tap, sent + at, &capture.frame(interface, leaves, packet));
            }
        }
        let found = tap.found();
        let host =
            found.report().hosts.iter().find(|host| host.address == core::net::IpAddr::from(B.0)).unwrap();
        assert!(host.flows == 2 && !host.flags.has(Flags::SEVERAL_CLOCKS), "{capture:?} {host:?}");
    }
}

/// Three hosts behind one router send as much at the same times, by clocks that are a tick apart.
#[test]
fn hosts_behind_one_router_stay_apart() {
    let mut tap = Tap::new(Config::default());
    let hosts = [1, 2, 3_u8].map(|k| ([10, 0, 3, k], 5_000 + u16::from(k)));
    let outside = [1, 2, 3_u16].map(|k| (ROUTER.0, ROUTER.1 + k));
    for k in 0..1_000_u64 {
        let at = 10_000_000 + k * 20_000;
        let segment = |which: usize| Tcp {
            seq: k as u32 * 100,
            ack: 1,
            flags: 0x10,
            clock: (at / 1_000) as u32 + which as u32,
            echo: 9,
            len: 100,
        };
        for which in 0..3 {
            let octets = |from: ([u8; 4], u16)| ipv4(6, from.0, B.0, &segment(which).octets(from.1, B.1));
            for (interface, leaves, from) in [(INSIDE, false, hosts[which]), (OUTSIDE, true, outside[which])]
            {
                let frame = cooked(LinkType::LINUX_SLL2, interface, leaves, &octets(from));
                let time_us = at + which as u64 * 10 + u64::from(leaves) * 100;
                tap.0.packet(time_us * 1_000, LinkType::LINUX_SLL2, &frame, frame.len() as u32);
            }
        }
    }
    let found = tap.found();
    let sent = hosts.map(|host| found.flow(host.0).packets);
    assert!(sent.iter().all(|packets| (998..=1_002).contains(packets)), "{sent:?}");
    assert_eq!((found.seen.flows.len(), tap.0.flows()), (3, 3));
}

#[test]
fn what_is_seen_once_counts_whichever_way_it_goes() {
    // A host's own: what it sends leaves it, what it gets does not. It changes its interface in the middle.
    let mut tap = Tap::new(Config::default());
    for k in 0..1_000_u64 {
        let (at, interface) =
            (1_000_000 + k * 20_000 + if k < 500 { 0 } else { 10_000_000 }, if k < 500 { 2 } else { 3 });
        let data = utp(Kind::Data, 8, (k as u16, 4), (at as u32, 5), 100);
        let state = utp(Kind::State, 7, (5, k as u16), (at as u32, 500), 0);
        let frames = [
            cooked(LinkType::LINUX_SLL2, interface, true, &ipv4(17, B.0, A.0, &udp(B.1, A.1, &data))),
            cooked(LinkType::LINUX_SLL2, interface, false, &ipv4(17, A.0, B.0, &udp(A.1, B.1, &state))),
        ];
        for frame in frames {
            tap.0.packet(at * 1_000, LinkType::LINUX_SLL2, &frame, frame.len() as u32);
        }
    }
    let found = tap.found();
    assert_eq!((found.flow(B.0).packets, found.flow(A.0).packets), (1_000, 1_000));
    assert_eq!(tap.0.counters().seen_twice, 0);
}

/// Two wires to one other end, over which packets go by turns: each was seen once.
#[test]
fn packets_that_go_by_turns_over_two_interfaces_all_count() {
    for is_tcp in [true, false] {
        let mut tap = Tap::new(Config::default());
        for k in 0..1_000_u64 {
            let (at, ms) = (1_000_000 + k * 20_000, (1_000 + k * 20) as u32);
            let data = Tcp { seq: k as u32 * 100, ack: 1, flags: 0x10, clock: ms, echo: 9, len: 100 };
            let packet = if is_tcp {
                ipv4(6, B.0, A.0, &data.octets(B.1, A.1))
            } else {
                let data = utp(Kind::Data, 8, (k as u16, 4), (at as u32, 5), 100);
                ipv4(17, B.0, A.0, &udp(B.1, A.1, &data))
            };
            let frame = Capture::Apart.frame(INSIDE + k as u32 % 2, false, &packet);
            Capture::Apart.hand(&mut tap, at, &frame);
        }
        assert_eq!((tap.found().flow(B.0).packets, tap.0.counters().seen_twice), (1_000, 0));
    }
}

/// A router whose way out changes in the middle, of which its interfaces tell.
#[test]
fn a_way_out_that_changes_is_found_again() {
    let mut tap = Tap::new(Config::default());
    for k in 0..2_000_u64 {
        let at = 1_000_000 + k * 20_000;
        let data = utp(Kind::Data, 8, (k as u16, 4), (at as u32, 5), 100);
        let packet = ipv4(17, B.0, A.0, &udp(B.1, A.1, &data));
        let out = if k < 1_000 { OUTSIDE } else { OUTSIDE + 1 };
        for (interface, time_us) in [(INSIDE, at), (out, at + 5_000)] {
            let frame = Capture::Apart.frame(interface, false, &packet);
            Capture::Apart.hand(&mut tap, time_us, &frame);
        }
    }
    // For five seconds the other way out may be one that is not kept.
    let packets = tap.found().flow(B.0).packets;
    assert!((1_700..=2_010).contains(&packets), "{packets}");
    assert!(tap.0.counters().seen_twice < 2_300);
}

/// A connection that pauses, as one that only tells of the beginning and the end of another: behind the pause others' queue is there.
#[test]
fn behind_a_pause_the_same_view_counts() {
    for (are_apart, queue_us) in [(false, 270_000), (true, 270_000), (false, 6_000_000), (true, 6_000_000)] {
        let mut shown = Vec::new();
        for k in 0..300_u64 {
            let (sent, queue) =
                (1_000_000 + k * 80_000 + k / 100 * 12_000_000, if k < 100 { 0 } else { queue_us });
            let data = utp(Kind::Data, 8, (k as u16, 4), (sent as u32, 5), 100);
            let packet = ipv4(17, B.0, A.0, &udp(B.1, A.1, &data));
            shown.extend([(sent, INSIDE, packet.clone()), (sent + queue + 50, OUTSIDE, packet)]);
        }
        let tap = if are_apart {
            let framed = |(time_us, capture, packet): (u64, u32, Vec<u8>)| {
                (time_us, capture as u16, ethernet(0x0800, &packet))
            };
            together(shown.into_iter().map(framed).collect())
        } else {
            shown.sort_by_key(|(time_us, ..)| *time_us);
            let mut tap = Tap::new(Config::default());
            for (time_us, interface, packet) in &shown {
                Capture::Apart.hand(&mut tap, *time_us, &Capture::Apart.frame(*interface, false, packet));
            }
            tap
        };
        let delays = tap.found().queue_us(B.0, Estimator::Direct);
        let queued = delays.iter().filter(|delay_us| **delay_us > queue_us as f64 - 1_000.0).count();
        let behind = delays.len() - queued;
        assert!((95..=102).contains(&behind) && queued == 200, "{are_apart} {queue_us} {delays:?}");
    }
}

/// Frames of captures that were taken at the same time: when, which, and what.
type Shown = (u64, u16, Vec<u8>);

/// A meter that was handed captures of the same time, together in its order.
fn together(mut shown: Vec<Shown>) -> Tap {
    shown.sort_by_key(|(time_us, ..)| *time_us);
    let mut tap = Tap::new(Config::default());
    for (time_us, capture, frame) in &shown {
        tap.0.go_to_capture(*capture);
        tap.frame(*time_us, frame);
    }
    tap
}

/// B's packets, and A's answers, as two machines captured them, before the queue and behind it; the other machine's clock is `ahead_us` ahead.
fn by_two_machines(is_tcp: bool, ahead_us: u64) -> Vec<Shown> {
    let mut shown = Vec::new();
    for k in 0..3_000_u64 {
        let (sent, queue) = (10_000_000 + k * 20_000, queue_us(k + 500));
        let leaves = sent + queue;
        let ms = |at: u64| (at / 1_000) as u32;
        let seq = k as u32 * 100;
        let [data, ack] = if is_tcp {
            let data = Tcp { seq, ack: 1, flags: 0x10, clock: ms(sent), echo: 9, len: 100 };
            let ack = Tcp { seq: 1, ack: seq + 100, flags: 0x10, clock: ms(leaves), echo: ms(sent), len: 0 };
            [ipv4(6, B.0, A.0, &data.octets(B.1, A.1)), ipv4(6, A.0, B.0, &ack.octets(A.1, B.1))]
        } else {
            let data = utp(Kind::Data, 8, (k as u16, 4), (sent as u32, 5), 100);
            let ack = utp(Kind::State, 7, (5, k as u16), (leaves as u32, queue as u32), 0);
            [ipv4(17, B.0, A.0, &udp(B.1, A.1, &data)), ipv4(17, A.0, B.0, &udp(A.1, B.1, &ack))]
        };
        let mut see = |time_us: u64, capture: u16, packet: &[u8]| {
            let by = time_us + u64::from(capture) * ahead_us;
            shown.push((by, capture, ethernet(0x0800, packet)));
        };
        see(sent, 0, &data);
        see(leaves + 5_000, 1, &data);
        see(leaves + 6_000, 1, &ack);
        see(leaves + 11_000, 0, &ack);
    }
    shown
}

/// Whether delays are those of the queue, or nothing.
fn mean_and_most(tap: &Tap) -> (f64, f64) {
    let delays = tap.found().queue_us(B.0, Estimator::Direct);
    let most = delays.iter().copied().fold(0.0, f64::max);
    (delays.iter().sum::<f64>() / delays.len() as f64, most)
}

#[test]
fn of_two_captures_of_one_time_the_one_behind_the_queue_counts() {
    let truth = (0..3_000).map(|k| queue_us(k + 500)).sum::<u64>() as f64 / 3_000.0;
    for is_tcp in [true, false] {
        // By clocks that agree, or a second apart.
        for ahead_us in [0, 1_000_000] {
            let tap = together(by_two_machines(is_tcp, ahead_us));
            let (mean, most) = mean_and_most(&tap);
            assert!((most - 600_000.0).abs() < 2_000.0 && (mean - truth).abs() < 2_000.0, "{most} {mean}");
            let found = tap.found();
            assert!(!found.flow(B.0).flags.has(Flags::CLOCK_STEP), "{ahead_us}");
            // Some came before it was known that they are seen again.
            assert!((2_940..=3_120).contains(&found.flow(B.0).packets), "{}", found.flow(B.0).packets);
            assert_eq!(tap.0.flows_apart(), usize::from(ahead_us > 0));
        }
    }
}

/// Both ends and both sides of the router between them, whose queue stands before the first packet comes.
#[test]
fn of_four_captures_of_one_time_the_last_one_counts() {
    for pause_us in [20_000_u64, 2_000] {
        let mut shown = Vec::new();
        let queued = |k: u64| 300_000 + queue_us(k * pause_us / 20_000);
        for k in 0..3_000_u64 {
            let sent = 10_000_000 + k * pause_us;
            let leaves = sent + queued(k);
            let ms = |at: u64| (at / 1_000) as u32;
            let data = Tcp { seq: k as u32 * 100, ack: 1, flags: 0x10, clock: ms(sent), echo: 9, len: 100 };
            let ack =
                Tcp { seq: 1, ack: data.seq + 100, flags: 0x10, clock: ms(leaves), echo: ms(sent), len: 0 };
            let data = ethernet(0x0800, &ipv4(6, B.0, A.0, &data.octets(B.1, A.1)));
            let ack = ethernet(0x0800, &ipv4(6, A.0, B.0, &ack.octets(A.1, B.1)));
            let times = [(sent, 3), (sent + 4, 1), (leaves, 2), (leaves + 5, 0)];
            shown.extend(times.map(|(at, capture)| (at, capture, data.clone())));
            let times = [(leaves + 20, 0), (leaves + 28, 1), (leaves + 32, 3)];
            shown.extend(times.map(|(at, capture)| (at, capture, ack.clone())));
        }
        // Until the first two have left nobody can know, and those do not count.
        let (mean, _) = mean_and_most(&together(shown));
        let truth: Vec<u64> = (2..3_000).map(queued).collect();
        let shortest = truth.iter().copied().min().unwrap_or_default();
        let true_mean =
            truth.iter().map(|queue_us| queue_us - shortest).sum::<u64>() as f64 / truth.len() as f64;
        assert!((mean - true_mean).abs() < 1_000.0, "{pause_us} {mean} {true_mean}");
    }
}

/// Clocks of two machines that differ by minutes: no packet is found in both. What one of them saw counts, and is not mixed with the other's.
#[test]
fn of_two_captures_by_clocks_far_apart_one_counts() {
    for is_tcp in [true, false] {
        for ahead_us in [20_000_000, 45_000_000, 300_000_000] {
            let tap = together(by_two_machines(is_tcp, ahead_us));
            let (mean, most) = mean_and_most(&tap);
            // It was captured before the queue.
            assert!(mean < 1_000.0 && most < 1_000.0, "{is_tcp} {ahead_us}: {most} {mean}");
            let found = tap.found();
            let flow = found.flow(B.0);
            assert!(flow.packets == 3_000 && !flow.flags.has(Flags::CLOCK_STEP), "{ahead_us} {flow:?}");
            let are_told = ahead_us < 60_000_000;
            assert!(tap.0.flows_apart() == 1 || !are_told, "{ahead_us}");
        }
    }
}

/// One ends, and the other one goes on.
#[test]
fn where_one_capture_ends_another_goes_on() {
    let mut tap = Tap::new(Config::default());
    for k in 0..1_000_u64 {
        let at = 1_000_000 + k * 20_000;
        let data = utp(Kind::Data, 8, (k as u16, 4), (at as u32, 5), 100);
        let frame = ethernet(0x0800, &ipv4(17, B.0, A.0, &udp(B.1, A.1, &data)));
        for capture in 0..2_u16 {
            tap.0.go_to_capture(capture);
            if capture == 1 || k < 500 {
                tap.frame(at, &frame);
            } else if k == 500 {
                tap.0.end_capture(0);
            }
        }
    }
    assert_eq!((tap.found().flow(B.0).packets, tap.0.counters().seen_twice), (1_000, 500));
}

/// As [`together`]; one capture has no more behind its last packet.
fn together_until_one_ends(mut shown: Vec<Shown>, ends: u16) -> Tap {
    shown.sort_by_key(|(time_us, ..)| *time_us);
    let last = shown.iter().rposition(|(_, capture, _)| *capture == ends);
    let mut tap = Tap::new(Config::default());
    for (index, (time_us, capture, frame)) in shown.iter().enumerate() {
        tap.0.go_to_capture(*capture);
        tap.frame(*time_us, frame);
        if Some(index) == last {
            tap.0.end_capture(ends);
        }
    }
    tap
}

/// What was captured behind the queue ends before the rest does.
#[test]
fn packets_that_are_yet_to_wait_tell_of_no_empty_queue() {
    const END_US: u64 = 40_000_000;
    for is_tcp in [true, false] {
        for ahead_us in [0, 1_000_000] {
            // Every other answer, so that each is of two packets: one that comes so late for one alone says nothing.
            let all = by_two_machines(is_tcp, ahead_us);
            let seen = all.chunks(4).zip(0..).flat_map(|(seen, k)| &seen[..if k % 2 == 0 { 2 } else { 4 }]);
            let shown: Vec<Shown> = seen.cloned().collect();
            let cut = |captures: &[u16]| {
                let stays = |seen: &&Shown| seen.0 < END_US || !captures.contains(&seen.1);
                together_until_one_ends(shown.iter().filter(stays).cloned().collect(), 1)
            };
            let taps = [cut(&[1]), cut(&[0, 1])];
            let [direct, shorter] =
                [&taps[0], &taps[1]].map(|tap| tap.found().queue_us(B.0, Estimator::Direct));
            assert!(direct.len() > 1_400 && direct == shorter, "{is_tcp} {ahead_us}");
            let early = taps[0].0.counters().early;
            assert!((1_400..1_600).contains(&early) && taps[1].0.counters().early == 0, "{early}");
            let found = taps[0].found();
            assert!(!found.flow(B.0).flags.has(Flags::CLOCK_STEP), "{is_tcp} {ahead_us}");
            assert!((2_900..=3_120).contains(&found.flow(B.0).packets), "{}", found.flow(B.0).packets);
            // What TCP's receiver says of those that came later counts, as where nothing ended; uTP's would have to be held against when they came.
            let echoed = |tap: &Tap| tap.found().queue_us(B.0, Estimator::Echoed);
            let [after, until, all] = [&taps[0], &taps[1], &together(shown.clone())].map(echoed);
            assert!(after.len() > until.len() + 700 || !is_tcp, "{ahead_us} {} {}", after.len(), until.len());
            let most = |delays: &[f64]| delays.iter().copied().fold(0.0, f64::max);
            assert!((most(&after) - most(&all)).abs() < 5_000.0, "{is_tcp} {ahead_us}");
        }
    }
}

/// Both are on the same side of the queue: it is of no matter which one ends.
#[test]
fn of_two_captures_without_a_queue_between_the_first_goes_on_alone() {
    let again = |seen: &Shown| (seen.0 + 40, 2, seen.2.clone());
    let behind: Vec<Shown> = by_two_machines(false, 0).into_iter().filter(|seen| seen.1 == 1).collect();
    let shown = behind.iter().filter(|seen| seen.0 < 40_000_000).map(again).chain(behind.clone());
    let delays = [together_until_one_ends(shown.collect(), 2), together(behind)];
    let delays = delays.map(|tap| tap.found().queue_us(B.0, Estimator::Direct).len());
    assert!(delays[1] == 3_000 && (2_950..=3_000).contains(&delays[0]), "{delays:?}");
}

/// Two machines that have nothing to do with each other.
#[test]
fn captures_of_strangers_take_nothing_from_each_other() {
    let mut shown = Vec::new();
    for (capture, seen) in [(0, B.0), (1, [10, 9, 9, 9])] {
        for k in 0..1_000_u64 {
            let at = 1_000_000 + k * 20_000 + queue_us(k);
            let data = utp(Kind::Data, 8, (k as u16, 4), ((k * 20_000) as u32, 5), 100);
            let packet = ipv4(17, seen, A.0, &udp(B.1, A.1, &data));
            shown.push((at, capture, ethernet(0x0800, &packet)));
        }
    }
    let tap = together(shown);
    let found = tap.found();
    assert_eq!([found.flow(B.0).packets, found.flow([10, 9, 9, 9]).packets], [1_000; 2]);
    assert_eq!((tap.0.counters().seen_twice, tap.0.flows_apart()), (0, 0));
}

/// More flows than there is room to remember the views of, and one that was there before them and comes back.
#[test]
fn of_more_flows_than_are_remembered_each_packet_still_counts_once() {
    let mut tap = Tap::new(Config { memory_bytes: 32 << 20, samples_min: 1, ..Config::default() });
    let (capture, mut now) = (Capture::Cooked(LinkType::LINUX_SLL2), 1_000_000);
    let mut show = |host: [u8; 4], packets: std::ops::Range<u16>| {
        for k in packets {
            now += 500;
            let data = udp(B.1, A.1, &utp(Kind::Data, 8, (k, 4), (now as u32, 5), 100));
            let packet = ipv4(17, host, A.0, &data);
            capture.hand(&mut tap, now, &capture.frame(INSIDE, false, &packet));
            capture.hand(&mut tap, now + 40, &capture.frame(OUTSIDE, true, &packet));
        }
    };
    show(B.0, 0..20);
    (0..4_000_u16).for_each(|k| show([10, 8, (k >> 8) as u8, k as u8], 0..2));
    show(B.0, 20..40);
    let found = tap.found();
    let Counters { seen_twice, taken_again, .. } = tap.0.counters();
    // Once it counts in front of the queue and behind it; what was known of it before stays.
    assert_eq!(
        (found.queue_us(B.0, Estimator::Direct).len(), seen_twice, taken_again),
        (41, 4_000 + 19 + 19, 1)
    );
}
