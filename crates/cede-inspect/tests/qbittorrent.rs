//! Captures of qBittorrent 4.5.2 (libtorrent 2.0.8) at one of two leechers beside a seed, each in a network namespace of its
//! own behind a bottleneck that loses packets, over TCP and uTP: what is read is all that was said, and is what the client
//! itself tells of it (its web interface's `total_downloaded` and `total_uploaded`). The capture lost nothing.

mod common;

use cede_bt::wire::Message;
use cede_inspect::{Aside, Block, Config, Event, Inspector, Kind, Report, Sink, Speech, What};
use cede_meter::{Protocol, Socket};
use cede_wire::pcap::Reader;
use common::vector;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// Where the capture was made.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 12));
const PIECES: u32 = 62;
const PIECE: u64 = 32_768;
const BYTES: u64 = 1_999_548;

/// Who had said what of which piece, by connection and when.
#[derive(Default)]
struct Ledger {
    /// Pieces that are announced to others, one by one or as a bitfield, by connection.
    haves: BTreeMap<u32, Vec<(u32, u64)>>,
    blocks: Vec<Block>,
    requests: BTreeMap<(u32, Socket), u64>,
}

impl Sink for Ledger {
    fn event(&mut self, event: &Event<'_>) {
        match event.what {
            What::Block(block) if block.to.address == HERE => self.blocks.push(*block),
            What::Message { message: Message::Have(piece), .. } if event.from.address == HERE => {
                self.haves.entry(event.connection).or_default().push((*piece, event.time_ns));
            }
            What::Message { message: Message::Bitfield(bits), .. } if event.from.address == HERE => {
                let is_set = |piece: &u32| bits[*piece as usize / 8] << (piece % 8) & 0x80 != 0;
                let pieces = (0..PIECES).filter(is_set).map(|piece| (piece, event.time_ns));
                self.haves.entry(event.connection).or_default().extend(pieces);
            }
            What::Message { message: Message::Request(_), .. } => {
                *self.requests.entry((event.connection, event.from)).or_default() += 1;
            }
            _ => {}
        }
    }

    fn aside(&mut self, _: &Aside) {}
}

fn read(name: &str) -> (Report, Ledger) {
    let octets = vector(name);
    let (mut inspector, mut ledger) = (Inspector::new(Config::default()), Ledger::default());
    for record in Reader::new(&octets).expect("a capture") {
        inspector.record(&record.expect("sound"), &mut ledger);
    }
    (inspector.finish(&mut ledger), ledger)
}

/// The same of every capture; and the octets of blocks that came and went.
fn check(name: &str, transport: Protocol) -> (u64, u64, Report) {
    let (report, ledger) = read(name);
    assert_eq!(report.connections.len(), 2);
    let (mut down, mut up) = (0, 0);
    for one in &report.connections {
        assert_eq!((one.transport, one.speech), (transport, Speech::Plain));
        for (side, end) in one.sides.iter().zip(one.ends) {
            assert_eq!((side.holes, side.losses, side.missing_bytes, side.unread_bytes), (0, 0, 0, 0));
            assert_eq!((side.unrequested_blocks, side.carried.cut_packets), (0, 0));
            assert_eq!(side.client.as_deref(), Some("qBittorrent/4.5.2"));
            *(if end.address == HERE { &mut up } else { &mut down }) += side.block_bytes;
        }
        // What was asked for was sent, refused, or was still open as the connection ended.
        for (asks, gives) in [(0, 1), (1, 0)] {
            let asked = one.sides[asks].count(Kind::Request);
            let answered = one.sides[gives].count(Kind::Piece) + one.sides[gives].count(Kind::Reject);
            assert!(answered <= asked, "{answered} {asked}");
            let heard = ledger.requests.get(&(one.number, one.ends[asks])).copied().unwrap_or(0);
            assert_eq!(heard, asked);
        }
        check_haves(&ledger, one.number);
    }
    let news: u64 =
        ledger.blocks.iter().filter(|it| !it.is_duplicate).map(|it| u64::from(it.block.len)).sum();
    assert_eq!(news, BYTES, "every block has come");
    (down, up, report)
}

/// Every piece is announced once, and not before all of it has come.
fn check_haves(ledger: &Ledger, connection: u32) {
    let haves = ledger.haves.get(&connection).map(Vec::as_slice).unwrap_or_default();
    let pieces: BTreeSet<u32> = haves.iter().map(|(piece, _)| *piece).collect();
    assert_eq!((haves.len(), pieces.len()), (PIECES as usize, PIECES as usize), "connection {connection}");
    for (piece, said_ns) in haves {
        let blocks = ledger.blocks.iter().filter(|it| it.block.piece == *piece && it.last_ns <= *said_ns);
        let begins: BTreeMap<u32, u32> = blocks.map(|it| (it.block.begin, it.block.len)).collect();
        let bytes: u64 = begins.values().map(|len| u64::from(*len)).sum();
        assert_eq!(bytes, PIECE.min(BYTES - u64::from(*piece) * PIECE), "piece {piece}");
    }
}

#[test]
fn qbittorrent_over_tcp_is_read_to_the_octet() {
    let (down, up, _) = check("qbittorrent_tcp.pcap.gz", Protocol::Tcp);
    assert_eq!((down, up), (2_081_468, 458_752));
}

#[test]
fn qbittorrent_over_utp_is_read_to_the_octet() {
    let (down, up, report) = check("qbittorrent_utp.pcap.gz", Protocol::Utp);
    assert_eq!(up, 81_920);
    // The connection ended within a block, which the client counts as far as it came; and behind a packet that the network
    // had lost and nobody sent again.
    let sides = report.connections.iter().flat_map(|one| &one.sides);
    let (broken, undelivered) = sides.fold((0, 0), |(broken, undelivered), side| {
        (broken + side.broken_blocks, undelivered + side.undelivered_bytes)
    });
    assert_eq!((down, broken), (BYTES, 1));
    assert!(undelivered > 0);
    assert_eq!(2_014_821 - down, 15_273);
}
