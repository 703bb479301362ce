//! Hostile peers: whatever octets come, in whatever cuts, nothing panics and nothing grows without a limit.
//! `cargo bolero test hostile_neighbour` fuzzes with coverage; `cargo test` draws at random.

mod common;

use bolero::ValueGenerator;
use cede_bt::Family;
use cede_bt::dht::message::{Answer, Asker, Query};
use cede_bt::dht::{self, Event};
use cede_bt::engine::{Action, ConnId};
use cede_bt::extension::OUR_REQUESTS;
use cede_bt::holepunch::Puncher;
use cede_bt::wire::{BlockRef, Decoder, Handshake, Message, Reserved, WireLimits, piece_header};
use cede_bt::{Disposition, Engine, Profile, Transport};
use cede_units::{Duration, Instant};
use cede_wire::Payload;
use common::{geometry, setup};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Requests that one peer may have waiting, and the one that is being answered.
const WAITING_MAX: usize = OUR_REQUESTS as usize + 1;

/// Numbers drawn from the fuzzer's octets; zero after their end.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Mostly small, sometimes anything.
    fn number(&mut self) -> u32 {
        match self.byte() {
            n @ 0..=199 => u32::from(n % 48),
            _ => u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()]),
        }
    }

    fn block(&mut self) -> BlockRef {
        let (piece, begin) = (self.number(), self.number().wrapping_mul(16_384));
        let len = if self.byte() < 200 { 16_384 } else { self.number() };
        BlockRef { piece, begin, len }
    }
}

#[test]
fn any_octets_are_read_or_refused() {
    bolero::check!().with_iterations(2_000).for_each(|octets| {
        let mut decoder = Decoder::new(WireLimits { extended_bytes: 4_096, ..WireLimits::of(41) });
        let handshake = Handshake { reserved: Reserved::default(), info_hash: [0; 20], peer_id: [1; 20] };
        let mut stream = handshake.encode().to_vec();
        stream.extend_from_slice(octets);
        let cut = usize::from(octets.first().copied().unwrap_or(0)) + 1;
        for part in stream.chunks(cut) {
            let mut input = Payload::copy_from(part);
            loop {
                match decoder.next(&mut input) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            assert!(input.is_empty());
        }
    });
}

/// A message that a hostile peer might send.
fn message(source: &mut Source<'_>) -> Vec<u8> {
    let message = match source.byte() % 18 {
        0 => Message::Choke,
        1 => Message::Unchoke,
        2 => Message::Interested,
        3 => Message::NotInterested,
        4 | 5 => Message::Have(source.number()),
        6 => Message::Bitfield((0..6).map(|_| source.byte()).collect()),
        7 | 8 => Message::Request(source.block()),
        9 => Message::Cancel(source.block()),
        10 => Message::HaveAll,
        11 => Message::HaveNone,
        12 => Message::Reject(source.block()),
        13 => Message::AllowedFast(source.number()),
        14 => Message::Extended(source.byte(), vec![0; usize::from(source.byte())]),
        15 => return (0..source.byte() % 32).map(|_| source.byte()).collect(),
        _ => {
            let block = BlockRef { len: source.number().min(20_000), ..source.block() };
            let mut octets = piece_header(block).to_vec();
            octets.resize(octets.len() + block.len as usize, 7);
            return octets;
        }
    };
    message.to_vec()
}

struct Target {
    engine: Engine<usize>,
    now: Instant,
    conns: Vec<ConnId>,
    stored: u64,
}

impl Target {
    fn new(seed: bool, profile: Profile) -> Self {
        let mut engine = Engine::new(setup(1, seed, profile, Disposition::ALL));
        let now = Instant::from_secs(1);
        engine.start(now);
        Self { engine, now, conns: Vec::new(), stored: 0 }
    }

    fn join(&mut self, fast: bool) {
        let (peer, transport) = (self.conns.len(), Transport::ALL[self.conns.len() % 2]);
        let Some(conn) = self.engine.accept(self.now, peer, transport) else { return };
        self.engine.set_room(conn, 1 << 20);
        let reserved = if fast { Reserved::default().with(Reserved::FAST) } else { Reserved::default() };
        let handshake = Handshake { reserved, info_hash: [7; 20], peer_id: [(100 + peer) as u8; 20] };
        self.engine.received(self.now, conn, Payload::copy_from(&handshake.encode()));
        self.conns.push(conn);
    }

    /// Bounded work after each step.
    fn drain(&mut self) {
        for _ in 0..100_000 {
            let Some(action) = self.engine.poll_action() else { break };
            match action {
                Action::Store { payload, block, at, .. } => {
                    assert!(at + payload.len() <= block.len && geometry().holds(block));
                    self.stored += u64::from(payload.len());
                }
                // Nothing that such a peer sends is the torrent's.
                Action::Check { piece } => self.engine.checked(self.now, piece, false),
                _ => {}
            }
        }
        assert!(self.engine.poll_action().is_none());
        let mut left = 0_u64;
        while let Some((conn, _)) = self.engine.poll_transmit(self.now) {
            self.engine.set_room(conn, 1 << 20);
            left += 1;
            assert!(left < 100_000, "it never stops sending");
        }
    }
}

/// Octets alone (`&[u8]`) are never more than 64, whatever their greatest length is said to be: too few for several packets.
fn octets_up_to(most: usize) -> impl ValueGenerator<Output = Vec<u8>> {
    bolero::produce::<Vec<u8>>().with().len(0..=most)
}

#[test]
fn hostile_neighbour() {
    bolero::check!().with_iterations(1_000).with_generator(octets_up_to(1_024)).for_each(|octets| {
        let mut source = Source(octets);
        let profile = Profile::ALL[usize::from(source.byte() % 3)];
        let mut target = Target::new(source.byte() % 2 == 0, profile);
        while !source.0.is_empty() {
            match source.byte() {
                0..=30 => target.join(source.byte() % 2 == 0),
                31..=50 => target.now += Duration::from_millis(100 * u64::from(source.byte())),
                choice => {
                    let text = message(&mut source);
                    if let Some(&conn) = target.conns.get(usize::from(choice) % target.conns.len().max(1)) {
                        target.engine.received(target.now, conn, Payload::copy_from(&text));
                    }
                }
            }
            target.engine.handle_timeout(target.now);
            target.drain();
        }
        for view in target.engine.connections() {
            assert!(
                view.uploads <= WAITING_MAX && view.requests <= 600 && view.pieces <= geometry().pieces()
            );
        }
        assert_eq!(target.engine.have().count() > 0, target.engine.is_complete());
    });
}

#[test]
fn a_flood_of_requests_is_bounded() {
    for profile in Profile::ALL {
        let mut target = Target::new(true, profile);
        target.join(true);
        let conn = target.conns[0];
        let mut text = Message::Interested.to_vec();
        target.engine.received(target.now, conn, Payload::copy_from(&text));
        target.now += Duration::from_secs(30);
        target.engine.handle_timeout(target.now);
        // The transport takes nothing, and the peer goes on asking.
        target.engine.set_room(conn, 0);
        text.clear();
        for n in 0..20_000 {
            let block = BlockRef { piece: n % 40, begin: n / 40 % 4 * 16_384, len: 16_384 - n / 160 };
            Message::Request(block).encode(&mut text);
        }
        target.engine.received(target.now, conn, Payload::copy_from(&text));
        let most = target.engine.connections().map(|view| view.uploads).max().unwrap_or(0);
        assert!(most <= WAITING_MAX, "{}: {most}", profile.name);
    }
}

/// Relays that say whatever they like, at whatever times, have us call few that we have not asked for.
#[test]
fn hostile_relays() {
    bolero::check!().with_iterations(1_000).with_generator(octets_up_to(1_024)).for_each(|octets| {
        let mut source = Source(octets);
        let began = Instant::from_secs(1);
        let (mut puncher, mut now) = (Puncher::new(began), began);
        let (mut asked, mut called, mut introduced) = (0, 0, 0);
        while !source.0.is_empty() {
            let (choice, relay, number) = (source.byte(), source.byte() % 8, source.byte());
            let host =
                [Ipv4Addr::new(11, 0, 0, relay), Ipv4Addr::new(10, 0, 0, relay)][usize::from(relay % 2)];
            let target = SocketAddr::from(([11, 1, 1, number], u16::from(source.byte())));
            match choice % 8 {
                0 => now += Duration::from_millis(100 * u64::from(number)),
                1 => puncher.leave(relay),
                2 => puncher.learn(now, (relay, host.into()), target),
                3 => asked += u64::from(puncher.unreached(now, target).is_some()),
                4 => asked += u64::from(puncher.refused(now, relay, target).is_some()),
                5 => introduced += u64::from(puncher.may_ask(now, relay) && puncher.may_introduce(now, 9)),
                _ => {
                    let is_called = puncher.introduced(now, (relay, host.into()), target);
                    assert!(!is_called || target.port() != 0);
                    called += u64::from(is_called);
                }
            }
        }
        let minutes = now.since(began).as_secs_f64() / 60.0 + 1.0;
        assert!(called <= asked + (20.0 * minutes) as u64, "{called} {asked}");
        assert!(asked <= (20.0 * minutes) as u64 && introduced <= (10.0 * minutes) as u64);
    });
}

fn node_at(family: Family, host: u8) -> SocketAddr {
    match family {
        Family::V4 => (Ipv4Addr::new(203, 0, 113, host), 6881).into(),
        Family::V6 => (Ipv6Addr::new(0x2001, 0xdb8, 0, host.into(), 0, 0, 0, 1), 6881).into(),
    }
}

/// Our nodes of both families, which look for a torrent.
fn our_nodes(now: Instant) -> [dht::Node; 2] {
    Family::ALL.map(|family| {
        let mut node = dht::Node::new(family, [7; 20], [9; 20]).beside_another();
        node.enter(now, &[0, 1, 2, 3].map(|host| node_at(family, host)));
        node.search(now, [8; 20], Some(6881));
        node
    })
}

/// Neighbours in the hash table: octets of any kind, questions and answers that were altered, answers with nodes and peers that there are not,
/// of either family, silence, and nodes that others tell of. Nobody is sent more than one datagram for one, or one and a question whether it
/// is there.
#[test]
fn hostile_nodes_of_the_hash_table() {
    let (happened, renamed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    bolero::check!().with_iterations(4_000).with_generator(octets_up_to(1_024)).for_each(|octets| {
        let mut source = Source(octets);
        let mut now = Instant::ZERO + Duration::from_secs(1);
        let mut nodes = our_nodes(now);
        let mut open: Vec<(SocketAddr, Vec<u8>)> = Vec::new();
        while !source.0.is_empty() {
            let drawn = node_at(Family::ALL[usize::from(source.byte() % 2)], source.byte() % 24);
            // Whoever was asked last, or anybody.
            let from = open.last().filter(|_| source.byte() < 160).map_or(drawn, |(to, _)| *to);
            let family = Family::of(from.ip());
            now += Duration::from_millis(u64::from(source.number()) % 1_000);
            let [four, six] = &mut nodes;
            let (node, other) = if family == Family::V4 { (four, six) } else { (six, four) };
            node.tick(now, Some(other));
            open.extend(node.outgoing());
            let datagram = altered(&mut source, &mut open, from);
            node.receive(now, from, &datagram, Some(other));
            if source.byte() < 30 {
                node.meet(SocketAddr::new(drawn.ip(), source.number() as u16));
            }
            let sent = node.outgoing();
            let to_asker = sent.iter().filter(|(to, _)| *to == from).count();
            // A search may have the asker among those it asks next, and tells at its end.
            assert!(to_asker <= 4 && sent.len() <= 24, "{} of {}", to_asker, sent.len());
            assert!(sent.iter().all(|(to, octets)| Family::of(to.ip()) == family && octets.len() <= 1_024));
            open.extend(sent);
            open.drain(..open.len().saturating_sub(64));
            let events = node.events();
            assert!(node.told(now, &[8; 20]).len() <= 50 && events.len() <= 8);
            happened.fetch_add(events.len(), Relaxed);
            for event in events {
                if let Event::Others(others) = event {
                    others.into_iter().for_each(|address| other.meet(address));
                }
            }
        }
        renamed.fetch_add(nodes.iter().filter(|node| node.id() != [7; 20]).count(), Relaxed);
    });
    assert!(happened.load(Relaxed) > 100, "searches go on: {happened:?}");
    assert!(
        renamed.load(Relaxed) > 10,
        "{renamed:?}: neighbours say where we are, and are believed in the end"
    );
}

/// What a node says, or something like it.
fn altered(source: &mut Source<'_>, open: &mut Vec<(SocketAddr, Vec<u8>)>, from: SocketAddr) -> Vec<u8> {
    let mut datagram = datagram_of(source, open, from);
    if source.byte() < 60 && !datagram.is_empty() {
        let place = source.number() as usize % datagram.len();
        datagram[place] = source.byte();
    }
    datagram
}

/// What a node may say: anything, a question, or an answer to one of ours with nodes and peers that are drawn.
fn datagram_of(source: &mut Source<'_>, open: &mut Vec<(SocketAddr, Vec<u8>)>, from: SocketAddr) -> Vec<u8> {
    let mut id = [0; 20];
    id.iter_mut().take(2).for_each(|octet| *octet = source.byte());
    match source.byte() % 4 {
        0 => (0..source.byte() % 80).map(|_| source.byte()).collect(),
        1 => {
            let query = match source.byte() % 4 {
                0 => Query::Ping,
                1 => Query::FindNode(id),
                2 => Query::GetPeers([8; 20]),
                _ => Query::Announce { info_hash: [8; 20], port: Some(1), token: vec![source.byte(); 8] },
            };
            let wants = Family::ALL[..usize::from(source.byte() % 3)].to_vec();
            let asker = Asker { wants, ..Asker::new(id) };
            dht::message::ask(&id[..usize::from(source.byte() % 20)], &asker, &query)
        }
        _ => {
            let Some(place) = open.iter().rposition(|(to, _)| *to == from) else { return Vec::new() };
            let (_, asked) = open.remove(place);
            let Some((transaction, _)) = dht::message::read(&asked) else { return Vec::new() };
            dht::message::reply(&transaction, &answer_of(source, id, from))
        }
    }
}

fn answer_of(source: &mut Source<'_>, id: dht::Id, from: SocketAddr) -> Answer {
    let mut nodes = Vec::new();
    for _ in 0..source.byte() % 12 {
        let mut name = [0; 20];
        name.iter_mut().take(3).for_each(|octet| *octet = source.byte());
        let family = Family::ALL[usize::from(source.byte() % 2)];
        nodes.push((name, node_at(family, source.byte())));
    }
    let peers = (0..source.byte() % 9).map(|host| node_at(Family::of(from.ip()), host)).collect();
    let asker = Some(node_at(Family::of(from.ip()), 200 + source.byte() % 4 / 3));
    Answer { id, nodes, peers, token: Some(vec![1; 8]), asker }
}
