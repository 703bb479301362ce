//! Arbitrary octets as packets and streams: no panic, and figures that fit together.
//! `cargo bolero test arbitrary_streams` fuzzes with coverage; `cargo test` draws at random.

mod common;

use bolero::ValueGenerator;
use cede_bt::wire::{Message, piece_header};
use cede_inspect::{Config, Inspector, Report};
use cede_wire::link::LinkType;
use common::{Packet, block, handshake, inspect, tcp, udp, utp};
use std::time::Duration;

fn check(report: &Report) {
    for connection in &report.connections {
        for side in &connection.sides {
            assert!(side.block_bytes >= side.duplicate_bytes && side.blocks >= side.unrequested_blocks);
            let told = side.block_bytes + side.broken_bytes + side.unread_bytes;
            assert!(told <= side.ordered_bytes, "{told} of {}", side.ordered_bytes);
            assert!(side.choking_s.0.is_finite() && side.carried.wire_bytes >= side.carried.packets);
        }
    }
}

/// Octets alone (`&[u8]`) are never more than 64, whatever their greatest length is said to be: too few for several packets.
fn octets_up_to(most: usize) -> impl ValueGenerator<Output = Vec<u8>> {
    bolero::produce::<Vec<u8>>().with().len(0..=most)
}

#[test]
fn arbitrary_frames_are_counted() {
    bolero::check!().with_generator(octets_up_to(400)).with_test_time(Duration::from_secs(2)).for_each(
        |octets| {
            let mut inspector = Inspector::new(Config { memory_bytes: 1 << 16, ..Config::default() });
            for (k, frame) in
                octets.chunks(usize::from(octets.first().copied().unwrap_or(1)).max(1)).enumerate()
            {
                let link = [0_u16, 1, 12, 101, 113, 276][k % 6];
                inspector.packet(k as u64, LinkType(link), frame, frame.len() as u32, &mut ());
            }
            check(&inspector.finish(&mut ()));
        },
    );
}

/// Segments and datagrams with fields, and beginnings, that the fuzzer chooses.
fn packets(octets: &[u8]) -> Vec<Packet> {
    let mut out = Vec::new();
    let mut time_ns = 0_u64;
    for fields in octets.chunks(12) {
        let at = |k: usize| fields.get(k).copied().unwrap_or(0);
        time_ns += u64::from(at(0)) << 22;
        let ports = if at(1) & 1 == 0 { (50_001, 6_882) } else { (6_882, 50_001) };
        let payload: Vec<u8> = match at(2) % 8 {
            0 => handshake(b'-'),
            1 => Message::Request(block(at(3).into())).to_vec(),
            2 => [&piece_header(block(at(3).into()))[..], &vec![at(4); usize::from(at(5)) * 80]].concat(),
            3 => Message::Have(at(3).into()).to_vec(),
            4 => [
                Message::Unchoke.to_vec(),
                Message::Extended(at(3) % 4, b"d1:md6:ut_pexi2eee".to_vec()).to_vec(),
            ]
            .concat(),
            5 => vec![at(4); usize::from(at(5)) * 64],
            6 => fields.to_vec(),
            _ => Vec::new(),
        };
        let seq = u32::from(at(6)) << (at(7) % 24);
        out.push(if at(1) & 2 == 0 {
            tcp(time_ns, ports, (seq, u32::from(at(8)) << (at(9) % 24), at(10) & 0x17), &payload)
        } else {
            let id = 100 + u16::from(at(1) >> 2 & 3);
            let (first, second) = (utp(at(10) % 5, id, (at(6).into(), at(8).into()), &payload), fields);
            udp(time_ns, ports, if at(11) < 200 { &first } else { second })
        });
        if at(11) & 7 == 7
            && let Some(packet) = out.last_mut()
        {
            packet.octets.truncate(usize::from(at(7)).max(40));
        }
    }
    out
}

#[test]
fn arbitrary_streams_are_read_or_given_up() {
    bolero::check!().with_generator(octets_up_to(3_000)).with_test_time(Duration::from_secs(4)).for_each(
        |octets| {
            let (report, heard) = inspect(&packets(octets));
            check(&report);
            let blocks: u64 =
                report.connections.iter().flat_map(|one| &one.sides).map(|side| side.blocks).sum();
            assert_eq!(blocks, heard.blocks.len() as u64);
        },
    );
}
