//! What it costs to read and write a packet, in nanoseconds, the best of several runs: `cargo bench -p cede-wire`.

use cede_units::Seq16;
use cede_wire::ip::{self, Addresses, Envelope};
use cede_wire::link::LinkType;
use cede_wire::pcap::Reader;
use cede_wire::pcapng::{Captured, Interface, Section, Writer};
use cede_wire::utp::{EXT_SELECTIVE_ACK, Header, Kind, Packet};
use cede_wire::{Payload, link};
use core::hint::black_box;
use core::net::Ipv4Addr;
use std::time::Instant;

const RUNS: u32 = 15;

/// Prints the time of one of `per_run` operations in the fastest run.
fn measure<T>(name: &str, per_run: u32, mut run: impl FnMut(u32) -> T) {
    let best = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            black_box(run(per_run));
            start.elapsed()
        })
        .min()
        .unwrap_or_default();
    println!("{name:<44} {:>8.2} ns", best.as_nanos() as f64 / f64::from(per_run));
}

fn header() -> Header {
    Header {
        kind: Kind::State,
        connection_id: 17_768,
        timestamp_us: 1_469_955_277,
        timestamp_difference_us: 102,
        window_bytes: 1 << 20,
        seq: Seq16(9159),
        ack: Seq16(17_766),
    }
}

/// Asks for every field, so that none is left unread.
fn sum_of(packet: &Packet<'_>) -> u64 {
    let h = &packet.header;
    let long = u64::from(h.timestamp_us) + u64::from(h.timestamp_difference_us) + u64::from(h.window_bytes);
    let short = [h.kind as u16, h.connection_id, h.seq.0, h.ack.0, packet.payload.len() as u16];
    short.into_iter().map(u64::from).sum::<u64>() + long
}

fn decode(name: &str, extensions: &[(u8, &[u8])]) {
    let Some(head) = header().encode(extensions) else { return };
    measure(name, 2_000_000, |times| {
        (0..times).filter_map(|_| Packet::decode(black_box(&head)).ok()).map(|p| sum_of(&p)).sum::<u64>()
    });
}

fn encode(name: &str, extensions: &[(u8, &[u8])]) {
    let header = header();
    measure(name, 2_000_000, |times| {
        (0..times).filter(|_| black_box(black_box(&header).encode(black_box(extensions))).is_some()).count()
    });
}

fn walk_mask(name: &str, mask: &[u8]) {
    let Some(head) = header().encode(&[(EXT_SELECTIVE_ACK, mask)]) else { return };
    measure(name, 500_000, |times| {
        let bits = |_| {
            let packet = Packet::decode(black_box(&head)).ok()?;
            Some(packet.extensions.selective_ack()?.bits().map(u64::from).sum::<u64>())
        };
        (0..times).filter_map(bits).sum::<u64>()
    });
}

fn captures() {
    let file = include_bytes!("../tests/captures/lt1.pcap");
    let records = Reader::new(file).into_iter().flatten().count() as u32;
    measure("pcap record to uTP packet", records, |_| {
        let utp = |record: cede_wire::pcap::Record<'_>| {
            let packet = ip::Packet::parse(link::ip_packet(record.link_type, record.captured).ok()?).ok()?;
            Packet::decode(ip::Datagram::parse(packet.payload).ok()?.payload).ok().map(|p| p.header.seq)
        };
        Reader::new(black_box(file)).into_iter().flatten().flatten().filter_map(utp).count()
    });
}

fn write_packets() {
    let Some(head) = header().encode(&[]) else { return };
    let addresses = Addresses::V4 { source: Ipv4Addr::LOCALHOST, destination: Ipv4Addr::LOCALHOST };
    let payload = Payload::Pattern { start: 0, len: 1400 };
    let mut octets = Vec::new();
    measure("IPv4 + UDP with checksums, 1400 octets", 100_000, |times| {
        for _ in 0..times {
            octets.clear();
            let _ = Envelope::new(addresses).put_udp(1, 2, black_box(&head), &payload, &mut octets);
        }
    });
    let Ok(mut writer) = Writer::new(Vec::new(), &Section::default());
    let interface = Interface { name: "a", description: "", link_type: LinkType::RAW };
    let Ok(interface) = writer.add_interface(&interface);
    let original_len = octets.len() as u32;
    measure("pcapng packet of 1448 octets", 10_000, |times| {
        writer.sink_mut().clear();
        for time_ns in 0..u64::from(times) {
            let _ = writer.write_packet(&Captured {
                interface,
                time_ns,
                octets: &octets,
                original_len,
                comment: "",
            });
        }
    });
}

fn main() {
    decode("uTP decode", &[]);
    decode("uTP decode, selective ack of 4 octets", &[(EXT_SELECTIVE_ACK, &[1, 2, 3, 4])]);
    encode("uTP encode", &[]);
    encode("uTP encode, selective ack of 4 octets", &[(EXT_SELECTIVE_ACK, &[1, 2, 3, 4])]);
    walk_mask("uTP decode and 64 of 256 bits walked", &[0x88; 32]);
    walk_mask("uTP decode and 1 of 256 bits walked", &[&[0; 31][..], &[0x80]].concat());
    captures();
    write_packets();
}
