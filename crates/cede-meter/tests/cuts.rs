//! Packets cut up by the network or by the capture, at every octet: what says nothing is counted, and no sample is false.

mod common;

use cede_meter::{Config, Estimator};
use cede_wire::utp::Kind;
use common::{A, B, Tap, Tcp, ethernet, ipv4, udp, utp};

const PACKETS: u32 = 60;
const OCTETS: usize = 64;

/// What B sends, at which time it arrives, and how long it queued.
struct Sent {
    arrives: u64,
    queue_us: u64,
    tcp: Vec<u8>,
    udp: Vec<u8>,
}

fn sent() -> impl Iterator<Item = Sent> {
    (0..PACKETS).map(|k| {
        let (at, queue_us) =
            (1_000_000 + u64::from(k) * 20_000, u64::from((k % 20).min(20 - k % 20)) * 4_000);
        let (clock, stamp) = ((at / 1000) as u32, at as u32);
        let segment = Tcp { seq: k * OCTETS as u32, ack: 1, flags: 0x10, clock, echo: 9, len: OCTETS };
        let packet = utp(Kind::Data, 8, (k as u16, 4), (stamp, 5), OCTETS);
        Sent { arrives: at + queue_us, queue_us, tcp: segment.octets(80, A.1), udp: udp(B.1, A.1, &packet) }
    })
}

/// An IPv4 fragment: from which octet on, and whether there are more.
fn v4(protocol: u8, payload: &[u8], from: usize, more: bool) -> Vec<u8> {
    let mut packet = ipv4(protocol, B.0, A.0, payload);
    let field = (from / 8) as u16 | if more { 0x2000 } else { 0 };
    packet[6..8].copy_from_slice(&field.to_be_bytes());
    ethernet(0x0800, &packet)
}

/// An IPv6 fragment behind hop-by-hop options.
fn v6(protocol: u8, payload: &[u8], from: usize, more: bool) -> Vec<u8> {
    let end = |last: u8| [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[last]].concat();
    let field = from as u16 & 0xfff8 | u16::from(more);
    let fragment = [&[protocol, 0][..], &field.to_be_bytes(), &[0, 0, 0, 7]].concat();
    let rest = [&[44, 0, 1, 4, 0, 0, 0, 0][..], &fragment, payload].concat();
    let head =
        [&[0x60, 0, 0, 0][..], &(rest.len() as u16).to_be_bytes(), &[0, 64], &end(2), &end(1)].concat();
    ethernet(0x86dd, &[head, rest].concat())
}

type Wrap = fn(u8, &[u8], usize, bool) -> Vec<u8>;

/// Every packet in parts of so many octets, each captured up to `snapshot`; samples are true, and say how many there are.
fn samples(wrap: Wrap, protocol: u8, part: usize, snapshot: usize) -> (usize, [u64; 4]) {
    let mut tap = Tap::new(Config { samples_min: 1, ..Config::default() });
    for packet in sent() {
        let octets = if protocol == 6 { packet.tcp } else { packet.udp };
        for from in (0..octets.len()).step_by(part) {
            let to = octets.len().min(from + part);
            let frame = wrap(protocol, &octets[from..to], from, to < octets.len());
            let link = cede_wire::link::LinkType::ETHERNET;
            let captured = &frame[..frame.len().min(snapshot)];
            tap.0.packet((packet.arrives + from as u64) * 1000, link, captured, frame.len() as u32);
        }
    }
    let found = tap.found();
    let direct = |sample: &&cede_meter::QueueSample| sample.estimator == Estimator::Direct;
    let mut truths = sent().map(|packet| packet.queue_us);
    let mut all = 0;
    for sample in found.seen.samples.iter().filter(direct) {
        let truth = truths.next().expect("no more samples than packets") as f64;
        assert!((sample.delay.queue_us - truth).abs() < 1_000.0, "{truth}: {sample:?}");
        all += 1;
    }
    let counters = tap.0.counters();
    let silent = found.report().timeless_tcp_flows + found.report().other_udp_flows;
    (all, [counters.packets, counters.fragments, counters.cut, silent])
}

#[test]
fn first_fragments_say_what_they_hold_and_later_ones_are_counted() {
    for wrap in [v4 as Wrap, v6] {
        for protocol in [6, 17] {
            let [whole, most] = [1_000, 48].map(|part| samples(wrap, protocol, part, usize::MAX));
            assert_eq!(whole, (PACKETS as usize, [u64::from(PACKETS), 0, 0, 0]));
            let (all, [packets, fragments, cut, _]) = most;
            assert_eq!((all, cut), (PACKETS as usize, 0));
            assert_eq!(packets - fragments, u64::from(PACKETS), "one first fragment each");
            // A first fragment without the stamp.
            let (all, [packets, fragments, cut, _]) = samples(wrap, protocol, 16, usize::MAX);
            assert_eq!((all, packets - fragments, cut), (0, u64::from(PACKETS), u64::from(PACKETS)));
        }
    }
}

#[test]
fn whatever_octet_a_capture_ends_at_no_sample_is_false_and_what_is_cut_is_counted() {
    // Ethernet, the internet's headers, and TCP's with its timestamps or UDP's with uTP's.
    for (wrap, internet) in [(v4 as Wrap, 14 + 20), (v6, 14 + 40 + 8 + 8)] {
        for (protocol, transport) in [(6, 20 + 12), (17, 8 + 20)] {
            for snapshot in 0..internet + transport + 12 {
                let (all, [packets, _, cut, _]) = samples(wrap, protocol, 1_000, snapshot);
                let is_enough = snapshot >= internet + transport;
                let wanted = if is_enough { (PACKETS as usize, 0) } else { (0, packets) };
                assert_eq!((all, cut), wanted, "{protocol}: {snapshot} octets");
            }
        }
    }
}
