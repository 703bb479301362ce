//! A peer is asked for no more at a time than it answers, whether it says how much that is or refuses the rest.

mod common;

use cede_bt::engine::{Action, Chunk, ConnId};
use cede_bt::extension::{Extension, Hearsay};
use cede_bt::wire::{BlockRef, Decoder, Handshake, Item, Message, Reserved, WireLimits, piece_header};
use cede_bt::{Disposition, Engine, PerFamily, Profile, Transport};
use cede_units::{Duration, Instant};
use cede_wire::Payload;
use common::{geometry, setup};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// One that has nothing and speaks the extension protocol, and a peer that has everything.
struct Pair {
    engine: Engine<usize>,
    conn: ConnId,
    ear: Decoder,
    now: Instant,
}

impl Pair {
    fn new(profile: Profile) -> Self {
        let extended = Some(Extension::ours("cede test", None, None, Hearsay::default(), None));
        let mut engine =
            Engine::new(cede_bt::engine::Setup { extended, ..setup(0, false, profile, Disposition::ALL) });
        let now = Instant::from_secs(1);
        engine.start(now);
        let conn = engine.accept(now, 1, Transport::Tcp).unwrap();
        let ear = Decoder::new(WireLimits::of(geometry().pieces()));
        Self { engine, conn, ear, now }
    }

    /// Tells our side octets, all at once, and hears what it asks for and then waits for.
    fn tell(&mut self, octets: &[u8]) -> Vec<BlockRef> {
        self.engine.received(self.now, self.conn, Payload::copy_from(octets));
        while let Some(action) = self.engine.poll_action() {
            if let Action::Check { piece } = action {
                self.engine.checked(self.now, piece, true);
            }
        }
        self.engine.set_room(self.conn, u32::MAX);
        let mut asked = Vec::new();
        while let Some((_, Chunk::Octets(mut octets))) = self.engine.poll_transmit(self.now) {
            self.engine.set_room(self.conn, u32::MAX);
            while let Some(item) = self.ear.next(&mut octets).unwrap() {
                asked.extend(if let Item::Message(Message::Request(block)) = item {
                    Some(block)
                } else {
                    None
                });
            }
        }
        asked
    }
}

/// The handshake of a peer that has everything.
fn greeting() -> Vec<u8> {
    greeting_of(9)
}

fn greeting_of(id: u8) -> Vec<u8> {
    let reserved = Reserved::default().with(Reserved::FAST).with(Reserved::EXTENDED);
    let handshake = Handshake { reserved, info_hash: [7; 20], peer_id: [id; 20] };
    [handshake.encode().to_vec(), Message::HaveAll.to_vec()].concat()
}

fn introduction(dictionary: &[u8]) -> Vec<u8> {
    Message::Extended(0, dictionary.to_vec()).to_vec()
}

fn data(block: BlockRef) -> Vec<u8> {
    let mut octets = piece_header(block).to_vec();
    octets.resize(octets.len() + block.len as usize, 0);
    octets
}

/// libtorrent introduces itself and unchokes within one read.
#[test]
fn what_a_peer_says_of_itself_counts_for_what_comes_with_it() {
    for profile in [Profile::LIBTORRENT, Profile::UTORRENT3] {
        for requests in 1..=4 {
            let words = format!("d1:mde4:reqqi{requests}ee");
            let all = [greeting(), introduction(words.as_bytes()), Message::Unchoke.to_vec()].concat();
            assert_eq!(Pair::new(profile).tell(&all).len(), requests, "{}", profile.name);
        }
    }
}

#[test]
fn one_block_is_asked_for_until_it_is_known_how_many_may_be() {
    let unchoked = [greeting(), Message::Unchoke.to_vec()].concat();
    for (words, then) in [("d1:mde4:reqqi3ee", 2), ("d1:mde4:reqqi9ee", 3), ("d1:mdee", 3)] {
        let mut pair = Pair::new(Profile::UTORRENT3);
        assert_eq!(pair.tell(&unchoked).len(), 1);
        assert_eq!(pair.tell(&introduction(words.as_bytes())).len(), then, "{words}");
    }
    // Who does not say so after all has answered one, and is asked as others are.
    let mut pair = Pair::new(Profile::UTORRENT3);
    let block = pair.tell(&unchoked)[0];
    assert!(pair.tell(&data(block)).len() > 3);
}

/// A peer that holds so many requests at a time and refuses all others gives a block each 50 ms. Seconds until everything is there,
/// and how much was refused.
fn download(profile: Profile, holds: usize) -> (f64, usize) {
    let mut pair = Pair::new(profile);
    let all = [greeting(), introduction(b"d1:mdee"), Message::Unchoke.to_vec()].concat();
    let (start, mut asked, mut refused) = (pair.now, pair.tell(&all), 0);
    let mut held = VecDeque::new();
    while !pair.engine.is_complete() && pair.now < start + Duration::from_secs(1000) {
        for _ in 0..1000 {
            let mut answer = Vec::new();
            for block in asked.drain(..) {
                if held.len() < holds {
                    held.push_back(block);
                } else {
                    refused += 1;
                    answer.extend(Message::Reject(block).to_vec());
                }
            }
            if answer.is_empty() {
                break;
            }
            asked = pair.tell(&answer);
        }
        pair.now += Duration::from_millis(50);
        pair.engine.handle_timeout(pair.now);
        let answer = held.pop_front().map(data).unwrap_or_default();
        asked.extend(pair.tell(&answer));
    }
    assert_eq!(pair.engine.connections().count() + usize::from(pair.engine.is_complete()), 1);
    (pair.now.since(start).as_secs_f64(), refused)
}

/// One that refuses everything has been asked for a block of each piece. Who gives is not asked for a block here and one there of
/// all that was begun so, of which nothing would be whole before the end.
#[test]
fn who_refuses_everything_does_not_keep_pieces_from_becoming_whole() {
    for profile in [Profile::LIBTORRENT, Profile::UTORRENT3] {
        let all = [greeting(), introduction(b"d1:mdee"), Message::Unchoke.to_vec()].concat();
        let mut pair = Pair::new(profile);
        let mut asked = pair.tell(&all);
        for _ in 0..1000 {
            let refused: Vec<u8> = asked.iter().flat_map(|block| Message::Reject(*block).to_vec()).collect();
            asked = pair.tell(&refused);
        }
        assert_eq!(asked, [], "{}", profile.name);
        pair.conn = pair.engine.accept(pair.now, 2, Transport::Tcp).unwrap();
        pair.ear = Decoder::new(WireLimits::of(geometry().pieces()));
        let mut asked = VecDeque::from(pair.tell(&[greeting_of(8), Message::Unchoke.to_vec()].concat()));
        let blocks = 10 * geometry().blocks(0);
        for _ in 0..blocks {
            let block = asked.pop_front().expect("something is missing");
            asked.extend(pair.tell(&data(block)));
        }
        assert!(pair.engine.have().count() >= 8, "{}: {}", profile.name, pair.engine.have().count());
    }
}

/// Asked again a minute later, each piece would take a minute longer.
#[test]
fn who_refuses_what_it_cannot_hold_is_asked_again_soon_and_for_less() {
    let blocks = geometry().total_bytes().div_ceil(16 << 10) as usize;
    for profile in [Profile::LIBTORRENT, Profile::UTORRENT3] {
        for holds in 1..=4 {
            let (seconds, refused) = download(profile, holds);
            let case = format!("{}, {holds}: {seconds} s, {refused} refused", profile.name);
            assert!(seconds < blocks as f64 * 0.05 + 1.0, "{case}");
            assert!(refused < 8, "{case}");
        }
    }
}

/// Where a peer's node of the hash table listens is heard a few times.
#[test]
fn a_peer_names_its_node_a_few_times() {
    let mut pair = Pair::new(Profile::LIBTORRENT);
    pair.tell(&greeting());
    let mut octets = Vec::new();
    (1..=100).for_each(|port| Message::Port(port).encode(&mut octets));
    pair.engine.received(pair.now, pair.conn, Payload::copy_from(&octets));
    let actions = std::iter::from_fn(|| pair.engine.poll_action());
    let named = actions.filter_map(|action| match action {
        Action::DhtPort { port, .. } => Some(port),
        _ => None,
    });
    assert_eq!(named.collect::<Vec<_>>(), [1, 2, 3, 4]);
}

/// A peer hears where our node of its own family listens, and of none where there is none (BEP 32).
#[test]
fn a_peer_hears_of_our_node_of_its_family() {
    let six = SocketAddr::from((Ipv6Addr::LOCALHOST, 7000));
    let four = SocketAddr::from((Ipv4Addr::LOCALHOST, 7000));
    for (peer, ports, heard) in [
        (four, PerFamily { v4: Some(4), v6: Some(6) }, Some(4)),
        (six, PerFamily { v4: Some(4), v6: Some(6) }, Some(6)),
        (six, PerFamily { v4: Some(4), v6: None }, None),
    ] {
        let mut engine = Engine::new(setup(0, false, Profile::LIBTORRENT, Disposition::ALL));
        let now = Instant::from_secs(1);
        engine.start(now);
        engine.set_dht_ports(now, ports);
        let conn = engine.accept(now, peer, Transport::Tcp).unwrap();
        let reserved = Reserved::default().with(Reserved::DHT);
        let greeting = Handshake { reserved, info_hash: [7; 20], peer_id: [9; 20] }.encode();
        engine.received(now, conn, Payload::copy_from(&greeting));
        engine.set_room(conn, u32::MAX);
        let mut ear = Decoder::new(WireLimits::of(geometry().pieces()));
        let (mut has_node, mut told) = (false, None);
        while let Some((_, Chunk::Octets(mut octets))) = engine.poll_transmit(now) {
            engine.set_room(conn, u32::MAX);
            while let Some(item) = ear.next(&mut octets).unwrap() {
                match item {
                    Item::Handshake(theirs) => has_node = theirs.reserved.has(Reserved::DHT),
                    Item::Message(Message::Port(port)) => told = Some(port),
                    _ => {}
                }
            }
        }
        assert_eq!((has_node, told), (heard.is_some(), heard), "{peer}");
    }
}
