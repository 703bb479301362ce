//! A router's own captures of all its interfaces, which show each packet before its queue and behind it.

mod common;

use cede_meter::{Config, Estimator, Flags};
use cede_wire::link::LinkType;
use cede_wire::utp::Kind;
use common::{A, B, Tap, Tcp, ipv4, udp, utp};

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

/// Up to 600 ms within twelve seconds, and down again as packets stay in order.
fn queue_us(k: u64) -> u64 {
    let step = k % 631;
    1_000 * if step <= 600 { step } else { 600 - (step - 600) * 20 }
}

/// B's packets each 20 ms come from inside, wait for up to 600 ms, and leave; A's answers come 20 ms later and leave at once.
fn play(link_type: LinkType, is_tcp: bool) -> Tap {
    let mut frames = Vec::new();
    for k in 0..3_000_u64 {
        // The capture begins while there is a queue.
        let (sent, queue) = (10_000_000 + k * 20_000, queue_us(k + 500));
        let (leaves, seq) = (sent + queue, k as u32 * 100);
        let ms = |at: u64| (at / 1_000) as u32;
        let (data, answer) = if is_tcp {
            let data = Tcp { seq, ack: 1, flags: 0x10, clock: ms(sent), echo: 9, len: 100 };
            let answer =
                Tcp { seq: 1, ack: seq + 100, flags: 0x10, clock: ms(leaves), echo: ms(sent), len: 0 };
            (data.octets(B.1, A.1), answer.octets(A.1, B.1))
        } else {
            let data = utp(Kind::Data, 8, (k as u16, 4), (sent as u32, 5), 100);
            let state = utp(Kind::State, 7, (5, k as u16), (leaves as u32, 500), 0);
            (udp(B.1, A.1, &data), udp(A.1, B.1, &state))
        };
        let protocol = if is_tcp { 6 } else { 17 };
        let [data, answer] = [ipv4(protocol, B.0, A.0, &data), ipv4(protocol, A.0, B.0, &answer)];
        frames.push((sent, cooked(link_type, INSIDE, false, &data)));
        frames.push((leaves, cooked(link_type, OUTSIDE, true, &data)));
        frames.push((leaves + 20_000, cooked(link_type, OUTSIDE, false, &answer)));
        frames.push((leaves + 20_020, cooked(link_type, INSIDE, true, &answer)));
    }
    frames.sort_by_key(|frame| frame.0);
    let mut tap = Tap::new(Config::default());
    for (time_us, frame) in &frames {
        tap.0.packet(time_us * 1_000, link_type, frame, frame.len() as u32);
    }
    tap
}

#[test]
fn of_each_packet_the_view_behind_the_queue_counts() {
    for link_type in [LinkType::LINUX_SLL, LinkType::LINUX_SLL2] {
        for is_tcp in [true, false] {
            let tap = play(link_type, is_tcp);
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
            assert!((5_900..6_000).contains(&twice), "{twice}");
        }
    }
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
