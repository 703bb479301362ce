//! Captures of libtorrent 2.1.1, three peers on one machine, over TCP and uTP, in the clear and encrypted; and Wireshark as
//! the judge of what was said over TCP. Without `tshark` that test says that it was skipped.

mod common;

use cede_bt::wire::id;
use cede_inspect::{Config, Cover, Inspector, Kind, Report, Speech};
use cede_meter::Protocol;
use cede_wire::pcap::Reader;
use common::{Heard, vector};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::process::Command;

fn read(name: &str) -> (Report, Heard) {
    let octets = vector(name);
    let (mut inspector, mut heard) = (Inspector::new(Config::default()), Heard::default());
    for record in Reader::new(&octets).expect("a capture") {
        inspector.record(&record.expect("sound"), &mut heard);
    }
    (inspector.finish(&mut heard), heard)
}

/// Each of two leechers has all blocks in the end, each of them once.
fn check_swarm(report: &Report, heard: &Heard, bytes: u64, transport: Protocol) {
    assert_eq!(report.connections.len(), 3);
    let mut received = 0;
    for connection in &report.connections {
        assert_eq!((connection.transport, connection.speech), (transport, Speech::Plain));
        for sent in &connection.sides {
            received += sent.block_bytes - sent.duplicate_bytes;
            assert!(sent.client.as_deref().is_some_and(|client| client.starts_with("libtorrent/2.1")));
            assert_eq!((sent.holes, sent.losses, sent.broken_blocks), (0, 0, 0));
        }
    }
    assert_eq!(received, 2 * bytes);
    assert!(heard.blocks.iter().all(|block| block.latency_ns().is_some() && block.first_ns <= block.last_ns));
}

#[test]
fn a_swarm_over_tcp_is_read() {
    let (report, heard) = read("tcp.pcapng.gz");
    check_swarm(&report, &heard, 3_000_000, Protocol::Tcp);
}

#[test]
fn a_swarm_over_utp_is_read() {
    let (report, heard) = read("utp.pcapng.gz");
    check_swarm(&report, &heard, 1_000_000, Protocol::Utp);
}

#[test]
fn encrypted_connections_are_counted_with_their_octets() {
    for (name, transport) in
        [("tcp_encrypted.pcapng.gz", Protocol::Tcp), ("utp_encrypted.pcapng.gz", Protocol::Utp)]
    {
        let (report, heard) = read(name);
        let [one] = &report.connections[..] else { panic!("{name}") };
        assert_eq!((one.transport, one.speech), (transport, Speech::Covered(Cover::Encrypted)));
        assert!(one.sides[1].carried.stream_bytes > 30_000 && one.span_ns.1 > one.span_ns.0);
        assert!(heard.blocks.is_empty());
    }
}

/// How often Wireshark finds each message.
fn by_tshark(path: &std::path::Path) -> Option<BTreeMap<u8, u64>> {
    let run = Command::new("tshark")
        .arg("-r")
        .arg(path)
        .args(["-Y", "bittorrent", "-T", "fields", "-e", "bittorrent.msg.type"])
        .output();
    let output = match run {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        other => other.expect("tshark runs"),
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut counts = BTreeMap::new();
    for number in text.split([',', '\n', '\t']).filter(|field| !field.is_empty()) {
        *counts.entry(number.trim().parse().expect("a number")).or_default() += 1;
    }
    Some(counts)
}

#[test]
fn wireshark_counts_the_same_messages() {
    let path = std::env::temp_dir().join(format!("cede-inspect-{}.pcapng", std::process::id()));
    std::fs::write(&path, vector("tcp.pcapng.gz")).expect("written");
    let theirs = by_tshark(&path);
    let _ = std::fs::remove_file(&path);
    let Some(theirs) = theirs else { return println!("SKIPPED: there is no tshark here") };
    let (report, _) = read("tcp.pcapng.gz");
    let numbers = [
        (Kind::Choke, id::CHOKE),
        (Kind::Unchoke, id::UNCHOKE),
        (Kind::Interested, id::INTERESTED),
        (Kind::NotInterested, id::NOT_INTERESTED),
        (Kind::Have, id::HAVE),
        (Kind::Bitfield, id::BITFIELD),
        (Kind::Request, id::REQUEST),
        (Kind::Piece, id::PIECE),
        (Kind::Cancel, id::CANCEL),
        (Kind::Port, id::PORT),
        (Kind::HaveAll, id::HAVE_ALL),
        (Kind::HaveNone, id::HAVE_NONE),
        (Kind::Reject, id::REJECT),
        (Kind::AllowedFast, id::ALLOWED_FAST),
        (Kind::Extended, id::EXTENDED),
    ];
    let count = |kind: Kind| {
        report.connections.iter().flat_map(|one| &one.sides).map(|side| side.count(kind)).sum::<u64>()
    };
    let ours: BTreeMap<u8, u64> = numbers
        .into_iter()
        .map(|(kind, number)| (number, count(kind)))
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(ours, theirs);
}
