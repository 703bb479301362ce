//! Packets that are looked up several at a time come to the same as one by one.

mod common;

use cede_meter::Meter;
use cede_units::Stream;
use cede_wire::link::LinkType;
use cede_wire::pcap::Record;
use common::{ipv4, packet_of, udp};

/// More flows than those from which on they are looked up together.
const FLOWS: u64 = 20_000;
const PACKETS: u64 = 400_000;

/// The packets of many flows in any order, some without a time and some that are none.
fn play(mut take: impl FnMut(&Record<'_>)) {
    let mut stream = Stream::named(5, "batch");
    let mut steps = vec![0; FLOWS as usize];
    for k in 0..PACKETS {
        // A twentieth of the flows has half of the packets, so that some are long.
        let few = if stream.below(2) == 0 { FLOWS / 20 } else { FLOWS };
        let flow = stream.below(few) as u32;
        let step = &mut steps[flow as usize];
        let octets = match stream.below(100) {
            0 => vec![0x45; 3],
            1..5 => joined(&packet_of(1_000_000 + k * 50, flow, *step, 3_000), stream.below(12) as usize),
            _ => packet_of(1_000_000 + k * 50, flow, *step, 3_000),
        };
        *step += 1;
        let time_ns = (stream.below(200) > 0).then_some((1_000_000 + k * 50) * 1000);
        let original_len = octets.len() as u32;
        take(&Record { time_ns, original_len, captured: &octets, link_type: LinkType::RAW, interface: 0 });
    }
}

/// A packet of uTP with so many acknowledgements in front of it in one datagram; of TCP itself.
fn joined(packet: &[u8], fronts: usize) -> Vec<u8> {
    const UDP: u8 = 17;
    let (ip, payload) = (&packet[..20], &packet[28..]);
    if ip[9] != UDP {
        return packet.to_vec();
    }
    let number = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let mut front = [0; 20];
    front[0] = 0x21;
    front[2..12].copy_from_slice(&payload[2..12]);
    let ends = [ip[12..16].try_into(), ip[16..20].try_into()].map(|end| end.expect("an address"));
    let all = [&front.repeat(fronts)[..], payload].concat();
    ipv4(UDP, ends[0], ends[1], &udp(number(20), number(22), &all))
}

#[test]
fn all_that_is_found_out_is_the_same() {
    let (mut one, mut many) = (Meter::default(), Meter::default());
    play(|record| one.record(record));
    let mut batch = many.batch();
    play(|record| batch.record(record));
    drop(batch);
    assert_eq!(one.flows(), many.flows());
    let [one, many] = [one, many].map(|meter| meter.report());
    assert!(one.hosts.len() > 1_000 && one.counters.evicted == 0, "{:?}", one.counters);
    assert!(one.counters.timeless > 1_000 && one.counters.cut + one.counters.other > 1_000);
    assert_eq!(format!("{one:?}"), format!("{many:?}"));
}
