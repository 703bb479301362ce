//! Packets by hand, and what is heard of them.
#![allow(dead_code, reason = "each test takes its own part")]

use cede_bt::wire::{BlockRef, Handshake, Message, Reserved, piece_header};
use cede_inspect::{Aside, Block, Config, Event, Inspector, Report, Sink, What};
use cede_wire::link::LinkType;
use std::io::Read;

pub const MS: u64 = 1_000_000;
pub const BLOCK: u32 = 16_384;

/// What was heard, as text.
#[derive(Default)]
pub struct Heard {
    /// Who said it, and what.
    pub said: Vec<(u16, String)>,
    pub times_ns: Vec<u64>,
    pub blocks: Vec<Block>,
    pub asides: Vec<Aside>,
}

impl Sink for Heard {
    fn event(&mut self, event: &Event<'_>) {
        if let What::Block(block) = event.what {
            self.blocks.push(*block);
        }
        self.said.push((event.from.port, text(&event.what)));
        self.times_ns.push(event.time_ns);
    }

    fn aside(&mut self, aside: &Aside) {
        self.asides.push(aside.clone());
    }
}

impl Heard {
    /// What one port said in messages.
    pub fn messages(&self, port: u16) -> Vec<&str> {
        let is_message = |text: &&str| text.starts_with("say ");
        self.said
            .iter()
            .filter(|(from, _)| *from == port)
            .map(|(_, text)| text.as_str())
            .filter(is_message)
            .collect()
    }
}

fn text(what: &What<'_>) -> String {
    match what {
        What::Handshake(handshake) => format!("say handshake {:?}", handshake.peer_id[0]),
        What::Message { is_cut: true, .. } => "say cut".to_string(),
        What::Message { message, .. } => format!("say {message:?}"),
        What::Block(block) => format!("say Piece({:?})", block.block),
        other => format!("{other:?}"),
    }
}

/// A captured packet.
#[derive(Clone, Debug)]
pub struct Packet {
    pub time_ns: u64,
    pub octets: Vec<u8>,
    /// Octets that it had on the wire.
    pub len: u32,
}

/// Hands packets to an inspector.
pub fn inspect(packets: &[Packet]) -> (Report, Heard) {
    let (mut inspector, mut heard) = (Inspector::new(Config::default()), Heard::default());
    for packet in packets {
        inspector.packet(packet.time_ns, LinkType::RAW, &packet.octets, packet.len, &mut heard);
    }
    (inspector.finish(&mut heard), heard)
}

fn ip(protocol: u8, ends: [u8; 2], transport: &[u8]) -> Vec<u8> {
    let len = (20 + transport.len()) as u16;
    let mut out = vec![0x45, 0];
    out.extend(len.to_be_bytes());
    out.extend([0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, ends[0], 10, 0, 0, ends[1]]);
    out.extend(transport);
    out
}

/// A segment from port `from` to port `to`; hosts are named by the ports' last octet.
pub fn tcp(
    time_ns: u64,
    (from, to): (u16, u16),
    (seq, ack, flags): (u32, u32, u8),
    payload: &[u8],
) -> Packet {
    let mut out = [from.to_be_bytes(), to.to_be_bytes()].concat();
    out.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
    out.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    out.extend(payload);
    packet(time_ns, ip(6, [from as u8, to as u8], &out))
}

pub fn udp(time_ns: u64, (from, to): (u16, u16), payload: &[u8]) -> Packet {
    let len = (8 + payload.len()) as u16;
    let mut out = [from.to_be_bytes(), to.to_be_bytes(), len.to_be_bytes(), [0, 0]].concat();
    out.extend(payload);
    packet(time_ns, ip(17, [from as u8, to as u8], &out))
}

fn packet(time_ns: u64, octets: Vec<u8>) -> Packet {
    Packet { time_ns, len: octets.len() as u32, octets }
}

/// A uTP packet as a datagram's payload.
pub fn utp(kind: u8, id: u16, (seq, ack): (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut out = vec![kind << 4 | 1, 0];
    out.extend(id.to_be_bytes());
    out.extend([0, 0, 3, 232, 0, 0, 0, 9, 0, 16, 0, 0]);
    out.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
    out.extend(payload);
    out
}

pub fn handshake(first: u8) -> Vec<u8> {
    let mut peer_id = *b"-XX1000-abcdefghijkl";
    peer_id[0] = first;
    let reserved = Reserved::default().with(Reserved::FAST).with(Reserved::EXTENDED);
    Handshake { reserved, info_hash: [7; 20], peer_id }.encode().to_vec()
}

pub fn block(k: u32) -> BlockRef {
    BlockRef { piece: k / 16, begin: k % 16 * BLOCK, len: BLOCK }
}

/// A block with data that are no messages, and now and then look a little like some.
pub fn piece(block: BlockRef) -> Vec<u8> {
    let mut out = piece_header(block).to_vec();
    out.extend((0..block.len).map(|k| if k % 97 < 4 { 0 } else { (k * 31 + block.piece) as u8 | 0x80 }));
    out
}

/// Two streams: a leecher that asks for blocks and a seed that sends them; and the messages of both.
pub fn streams(blocks: u32) -> [Vec<u8>; 2] {
    let mut leecher = handshake(b'-');
    Message::HaveNone.encode(&mut leecher);
    Message::Interested.encode(&mut leecher);
    let mut seed = handshake(b'+');
    Message::Bitfield(vec![0xff; 40]).encode(&mut seed);
    Message::Unchoke.encode(&mut seed);
    for k in 0..blocks {
        Message::Request(block(k)).encode(&mut leecher);
        seed.extend(piece(block(k)));
        if k % 16 == 15 {
            Message::Have(k / 16).encode(&mut leecher);
        }
        if k % 7 == 0 {
            Message::KeepAlive.encode(&mut seed);
        }
    }
    [leecher, seed]
}

pub const PORTS: (u16, u16) = (40_001, 6_882);
const ACK: u8 = 0x10;
const SYN: u8 = 0x02;

/// Both streams over TCP in segments of so many octets, with numbers from these on; each is acknowledged.
pub fn over_tcp(streams: &[Vec<u8>; 2], first: [u32; 2], mss: usize) -> Vec<Packet> {
    let back = (PORTS.1, PORTS.0);
    let [a, b] = first;
    let mut out = vec![
        tcp(0, PORTS, (a, 0, SYN), &[]),
        tcp(MS, back, (b, a.wrapping_add(1), SYN | ACK), &[]),
        tcp(2 * MS, PORTS, (a.wrapping_add(1), b.wrapping_add(1), ACK), &[]),
    ];
    let starts = first.map(|first| first.wrapping_add(1));
    let mut reached = [0, 0];
    // The one that asks is ahead of the one that answers.
    while reached[0] < streams[0].len() || reached[1] < streams[1].len() {
        let side = usize::from(reached[0] >= streams[0].len());
        let part = (streams[side].len() - reached[side]).min(mss);
        let payload = &streams[side][reached[side]..reached[side] + part];
        let ports = if side == 0 { PORTS } else { back };
        let number = |side: usize, reached: &[usize; 2]| starts[side].wrapping_add(reached[side] as u32);
        let time_ns = out.len() as u64 * MS;
        out.push(tcp(time_ns, ports, (number(side, &reached), number(1 - side, &reached), ACK), payload));
        reached[side] += part;
        let answer = (number(1 - side, &reached), number(side, &reached), ACK);
        out.push(tcp(time_ns + MS, (ports.1, ports.0), answer, &[]));
    }
    out
}

/// The same over uTP, with numbers from these on.
pub fn over_utp(streams: &[Vec<u8>; 2], first: [u16; 2], mss: usize) -> Vec<Packet> {
    const ID: u16 = 0xffff;
    let back = (PORTS.1, PORTS.0);
    let [mut a, mut b] = [first[0].wrapping_add(1), first[1]];
    let mut out =
        vec![udp(0, PORTS, &utp(4, ID, (first[0], 0), &[])), udp(MS, back, &utp(2, ID, (b, first[0]), &[]))];
    for (side, stream) in streams.iter().enumerate() {
        for part in stream.chunks(mss) {
            let time_ns = out.len() as u64 * MS;
            let (ports, id) = if side == 0 { (PORTS, ID.wrapping_add(1)) } else { (back, ID) };
            let other = if side == 0 { ID } else { ID.wrapping_add(1) };
            let (seq, ack) = if side == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
            out.push(udp(time_ns, ports, &utp(0, id, (*seq, ack.wrapping_sub(1)), part)));
            out.push(udp(time_ns + MS, (ports.1, ports.0), &utp(2, other, (*ack, *seq), &[])));
            *seq = seq.wrapping_add(1);
        }
    }
    out
}

/// A capture from `tests/vectors`.
pub fn vector(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    let mut octets = Vec::new();
    let file = std::fs::File::open(path).expect("a vector");
    flate2::read::GzDecoder::new(file).read_to_end(&mut octets).expect("compressed");
    octets
}
