//! Whole swarms without a network.

mod common;

use cede_bt::engine::{Action, Chunk, CloseReason, ConnId, PeerAddress, Setup};
use cede_bt::wire::{BlockRef, Decoder, Handshake, Item, Message, Reserved, WireLimits};
use cede_bt::{Bitfield, Disposition, Geometry, Profile, Transport};
use cede_units::{Duration, Instant, Stream};
use cede_wire::Payload;
use common::{Member, Swarm, geometry, setup};
use std::collections::{BTreeSet, VecDeque};

fn swarm(profile: Profile, disposition: Disposition, leechers: u8) -> Swarm {
    Swarm::new((0..=leechers).map(|number| setup(number, number == 0, profile, disposition)).collect())
}

#[test]
fn every_profile_finishes() {
    for profile in Profile::ALL {
        let mut swarm = swarm(profile, Disposition::ALL, 8);
        assert!(swarm.run(Duration::from_secs(600)), "{}", profile.name);
        for member in &swarm.members[1..] {
            let stored: u64 = member.stored.values().sum();
            assert!(stored >= geometry().total_bytes(), "{} {stored}", profile.name);
            assert_eq!(member.engine.totals().bad_pieces, 0);
        }
        let seed = swarm.members[0].engine.totals();
        assert!(seed.uploaded[0] + seed.uploaded[1] > 0);
    }
}

#[test]
fn an_upload_limit_is_kept() {
    for profile in Profile::ALL {
        let limit = 100 << 10;
        let limited = |number: u8| {
            let mut setup = setup(number, number == 0, profile, Disposition::ALL);
            setup.upload_limit = Some(limit);
            setup
        };
        let mut swarm = Swarm::new((0..2).map(limited).collect());
        let start = swarm.now;
        assert!(swarm.run(Duration::from_secs(600)), "{}", profile.name);
        let bound_s = geometry().total_bytes() as f64 / limit as f64;
        let took_s = swarm.now.since(start).as_secs_f64();
        assert!((bound_s * 0.97..bound_s * 1.5 + 15.0).contains(&took_s), "{}: {took_s}", profile.name);
    }
}

/// Nobody has a slot, but five pieces may be asked for all the same, the same ones of everybody.
#[test]
fn a_choked_peer_gets_the_pieces_that_it_was_told_of_and_no_others() {
    let profile = Profile { slots: Some(0), spares_neighbours: false, ..Profile::LIBTORRENT };
    let setups = (0..3).map(|number| setup(number, number < 2, profile, Disposition::ALL));
    let mut swarm = Swarm::new(setups.collect());
    // The first round of the choker, which tries somebody, comes after 15 s.
    assert!(!swarm.run(Duration::from_secs(10)));
    let got: Vec<u32> = swarm.members[2].stored.keys().copied().collect();
    assert_eq!(got.len(), 5, "{got:?}");
    let sent: u64 =
        swarm.members[..2].iter().map(|seed| seed.engine.totals().uploaded.iter().sum::<u64>()).sum();
    // Once each, whichever they are: the last piece is short.
    assert_eq!(sent, got.iter().map(|&piece| u64::from(geometry().piece_len(piece))).sum::<u64>());
}

/// In one private network nobody needs a slot.
#[test]
fn neighbours_are_served_beside_the_slots() {
    let profile = Profile { slots: Some(0), ..Profile::LIBTORRENT };
    let setups = (0..6).map(|number| setup(number, number == 0, profile, Disposition::ALL));
    assert!(Swarm::new(setups.collect()).run(Duration::from_secs(10)));
    let host = |text: &str| text.parse::<std::net::SocketAddr>().unwrap();
    let near = ["10.1.2.3:1", "192.168.0.9:1", "172.31.0.1:1", "127.0.0.1:1", "[::1]:1", "[fe80::1]:1"];
    assert!(near.into_iter().all(|text| host(text).is_neighbour()));
    let far = ["11.1.2.3:1", "172.32.0.1:1", "203.0.113.7:1", "[2001:db8::1]:1"];
    assert!(!far.into_iter().any(|text| host(text).is_neighbour()));
}

/// A member, two peers that have the last piece alone, and what is asked of them.
struct Late {
    engine: cede_bt::Engine<usize>,
    peers: Vec<(ConnId, Decoder)>,
    now: Instant,
}

impl Late {
    fn new() -> Self {
        let mut engine = cede_bt::Engine::new(setup(0, false, Profile::LIBTORRENT, Disposition::ALL));
        let now = Instant::from_secs(1);
        engine.start(now);
        let mut peers = Vec::new();
        for number in [1, 2] {
            let conn = engine.accept(now, number, Transport::Tcp).unwrap();
            let reserved = Reserved::default().with(Reserved::FAST);
            let handshake = Handshake { reserved, info_hash: [7; 20], peer_id: [number as u8; 20] };
            engine.received(now, conn, Payload::copy_from(&handshake.encode()));
            peers.push((conn, Decoder::new(WireLimits::of(41))));
        }
        let mut late = Self { engine, peers, now };
        for peer in 0..2 {
            late.tell(peer, &Message::Have(40));
            late.tell(peer, &Message::Unchoke);
        }
        late
    }

    fn tell(&mut self, peer: usize, message: &Message) {
        self.engine.received(self.now, self.peers[peer].0, Payload::copy_from(&message.to_vec()));
    }

    /// What is said to each peer within so many seconds.
    fn wait(&mut self, seconds: u64) -> [Vec<Message>; 2] {
        let mut heard = [Vec::new(), Vec::new()];
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.engine.handle_timeout(self.now);
            let said = self.said();
            heard.iter_mut().zip(said).for_each(|(heard, said)| heard.extend(said));
        }
        heard
    }

    /// What is said to each peer now.
    fn said(&mut self) -> [Vec<Message>; 2] {
        let mut heard = [Vec::new(), Vec::new()];
        for (conn, _) in &self.peers {
            self.engine.set_room(*conn, u32::MAX);
        }
        while let Some((conn, Chunk::Octets(mut octets))) = self.engine.poll_transmit(self.now) {
            let peer = usize::from(conn == self.peers[1].0);
            self.engine.set_room(conn, u32::MAX);
            while let Some(item) = self.peers[peer].1.next(&mut octets).unwrap() {
                heard[peer].extend(if let Item::Message(message) = item { Some(message) } else { None });
            }
        }
        heard
    }
}

/// libtorrent: what a peer that sends nothing owes is asked of another after 20 s; if it comes in the end it counts.
#[test]
fn what_a_late_peer_owes_is_asked_of_another() {
    let mut late = Late::new();
    let block = BlockRef { piece: 40, begin: 0, len: 1_000 };
    let asks = |heard: &[Message]| heard.contains(&Message::Request(block));
    let heard = late.wait(20);
    assert_eq!(heard.each_ref().map(|heard| asks(heard)), [true, false]);
    let heard = late.wait(4);
    assert_eq!(heard.each_ref().map(|heard| asks(heard)), [false, true]);
    let mut piece = cede_bt::wire::piece_header(block).to_vec();
    piece.extend([0; 1_000]);
    late.engine.received(late.now, late.peers[0].0, Payload::copy_from(&piece));
    let heard = late.wait(1);
    assert!(heard[1].contains(&Message::Cancel(block)), "{heard:?}");
    assert_eq!((late.engine.totals().redundant, late.engine.connections().count()), (0, 2));
    // The other's answer was on its way: it is not needed, and nobody's fault.
    late.engine.received(late.now, late.peers[1].0, Payload::copy_from(&piece));
    assert_eq!((late.engine.totals().redundant, late.engine.connections().count()), (1_000, 2));
}

impl Late {
    /// Tells a peer what `answer` has for each request, for so many seconds; says how many requests there were.
    fn answer(&mut self, seconds: u64, answer: impl Fn(BlockRef) -> Vec<u8>) -> usize {
        let mut requests = 0;
        for _ in 0..seconds {
            let mut heard = self.wait(1)[0].clone();
            self.tell(0, &Message::KeepAlive);
            // Within one second, as often as it goes on.
            for _ in 0..1_000 {
                let asked = heard.iter().filter_map(|message| match message {
                    Message::Request(block) => Some(*block),
                    _ => None,
                });
                let asked: Vec<BlockRef> = asked.collect();
                requests += asked.len();
                let answers: Vec<u8> = asked.into_iter().flat_map(&answer).collect();
                self.engine.received(self.now, self.peers[0].0, Payload::copy_from(&answers));
                heard = self.said()[0].clone();
            }
        }
        requests
    }
}

/// BEP 6 lets a peer refuse a request at any time. Asked again at once, it would be asked for ever.
#[test]
fn who_refuses_everything_is_asked_little_and_let_go() {
    for is_choking_between in [false, true] {
        let mut late = Late::new();
        late.tell(0, &Message::HaveAll);
        let requests = late.answer(600, |block| {
            let mut answer = Message::Reject(block).to_vec();
            if is_choking_between {
                answer.extend([Message::Choke.to_vec(), Message::Unchoke.to_vec()].concat());
            }
            answer
        });
        assert!((30..1_200).contains(&requests), "{requests}");
        assert_eq!(late.engine.connections().filter(|view| view.address == 1).count(), 0);
    }
}

/// Without the fast extension a choke takes back what was asked.
#[test]
fn who_chokes_and_unchokes_for_each_request_is_let_go() {
    for profile in Profile::ALL {
        let mut engine = cede_bt::Engine::new(setup(0, false, profile, Disposition::ALL));
        let now = Instant::from_secs(1);
        engine.start(now);
        let conn = engine.accept(now, 9_usize, Transport::Tcp).unwrap();
        let handshake = Handshake { reserved: Reserved::default(), info_hash: [7; 20], peer_id: [9; 20] };
        engine.received(now, conn, Payload::copy_from(&handshake.encode()));
        engine.received(
            now,
            conn,
            Payload::copy_from(&Message::Bitfield(vec![0xff, 0xff, 0xff, 0xff, 0xff, 0x80]).to_vec()),
        );
        for second in 0..100 {
            let words = [Message::Unchoke.to_vec(), Message::Choke.to_vec()].concat();
            engine.received(now + Duration::from_secs(second), conn, Payload::copy_from(&words));
        }
        assert_eq!(engine.connections().count(), 0, "{}", profile.name);
        assert!(engine.totals().requests_sent < 64 * 64, "{}", engine.totals().requests_sent);
    }
}

/// Transmission refuses all that waits, and then chokes.
#[test]
fn who_refuses_what_waits_before_it_chokes_stays() {
    let mut late = Late::new();
    late.tell(0, &Message::HaveAll);
    let asked = std::cell::Cell::new(0);
    late.answer(20, |block| {
        asked.set(asked.get() + 1);
        if asked.get() > 4 {
            return Message::Reject(block).to_vec();
        }
        let mut data = cede_bt::wire::piece_header(block).to_vec();
        data.resize(data.len() + block.len as usize, 0);
        data
    });
    assert!(asked.get() > 80, "{}", asked.get());
    assert_eq!(late.engine.connections().filter(|view| view.address == 1).count(), 1);
}

/// A piece that a peer refuses is asked of it again after a while, and the others at once.
#[test]
fn who_refuses_one_piece_is_asked_for_the_others() {
    let mut late = Late::new();
    late.tell(0, &Message::HaveAll);
    let refused = std::cell::Cell::new(0);
    let requests = late.answer(130, |block| {
        if block.piece == 7 {
            refused.set(refused.get() + 1);
            return Message::Reject(block).to_vec();
        }
        let mut data = cede_bt::wire::piece_header(block).to_vec();
        data.resize(data.len() + block.len as usize, 0);
        data
    });
    // Its four blocks and one of them again, at first, after a minute and after another; all others once.
    assert!((3..=15).contains(&refused.get()), "{}", refused.get());
    assert_eq!(requests - refused.get(), 39 * 4 + 1);
    assert_eq!(late.engine.connections().filter(|view| view.address == 1).count(), 1);
}

/// What a seed says to a peer, from now on.
fn said(engine: &mut cede_bt::Engine<usize>, conn: ConnId, ear: &mut Decoder) -> Vec<Message> {
    let now = Instant::from_secs(1);
    engine.set_room(conn, u32::MAX);
    let mut items = Vec::new();
    while let Some((_, chunk)) = engine.poll_transmit(now) {
        let mut payload = match chunk {
            Chunk::Octets(payload) => payload,
            Chunk::Content { offset, len } => Payload::Pattern { start: offset, len },
        };
        while let Some(item) = ear.next(&mut payload).unwrap() {
            items.push(item);
        }
        engine.set_room(conn, u32::MAX);
    }
    items
        .into_iter()
        .filter_map(|item| if let Item::Message(message) = item { Some(message) } else { None })
        .collect()
}

/// BEP 6: a choke takes back no request; each is answered, with its block or a rejection, and granted ones with the block.
#[test]
fn a_choke_rejects_what_was_not_granted() {
    let profile = Profile { slots: Some(1), spares_neighbours: false, ..Profile::LIBTORRENT };
    let mut engine = cede_bt::Engine::new(setup(0, true, profile, Disposition::ALL));
    let now = Instant::from_secs(1);
    engine.start(now);
    let conn = engine.accept(now, 9_usize, Transport::Tcp).unwrap();
    let tell = |engine: &mut cede_bt::Engine<usize>, messages: &[Message]| {
        let mut octets = Vec::new();
        messages.iter().for_each(|message| message.encode(&mut octets));
        engine.received(now, conn, Payload::copy_from(&octets));
    };
    let reserved = Reserved::default().with(Reserved::FAST);
    let handshake = Handshake { reserved, info_hash: [7; 20], peer_id: [9; 20] };
    engine.received(now, conn, Payload::copy_from(&handshake.encode()));
    tell(&mut engine, &[Message::HaveNone, Message::Interested]);
    let mut ear = Decoder::new(WireLimits::of(41));
    let heard = said(&mut engine, conn, &mut ear);
    let granted: Vec<u32> = heard
        .iter()
        .filter_map(|message| if let Message::AllowedFast(piece) = message { Some(*piece) } else { None })
        .collect();
    assert!(granted.len() == 5 && heard.contains(&Message::Unchoke), "{heard:?}");
    let block = |piece| BlockRef { piece, begin: 0, len: 16 << 10 };
    let other = (0..40).find(|piece| !granted.contains(piece)).unwrap();
    engine.set_room(conn, 0);
    tell(&mut engine, &[Message::Request(block(other)), Message::Request(block(granted[0]))]);
    // Who wants nothing any more is choked.
    tell(
        &mut engine,
        &[Message::NotInterested, Message::Request(block(granted[1])), Message::Request(block(other))],
    );
    let rejected = Message::Reject(block(other));
    assert_eq!(said(&mut engine, conn, &mut ear), [Message::Choke, rejected.clone(), rejected]);
    assert_eq!(engine.totals().uploaded, [2 * (16 << 10), 0]);
}

#[test]
fn two_complete_peers_part() {
    let setups = (0..2).map(|number| setup(number, true, Profile::LIBTORRENT, Disposition::ALL));
    let mut swarm = Swarm::new(setups.collect());
    swarm.run(Duration::from_secs(60));
    assert!(swarm.members.iter().any(|member| member.closed.contains(&CloseReason::BothComplete)));
    assert!(swarm.wires.is_empty());
}

#[test]
fn who_sends_bad_pieces_is_banned_and_the_download_still_ends() {
    for profile in Profile::ALL {
        let seeds = (0..3).map(|number| setup(number, number < 2, profile, Disposition::ALL));
        let mut swarm = Swarm::new(seeds.collect());
        swarm.members[1].lies = true;
        assert!(swarm.run(Duration::from_secs(3_600)), "{}", profile.name);
        assert_eq!(swarm.members[2].banned, [1], "{}", profile.name);
        assert!(swarm.members[2].engine.totals().bad_pieces > 0);
    }
}

/// One downloads from a seed and from liars, all of them as fast as each other, with other random numbers each time.
fn among_liars(profile: Profile, number: u64, spoil: impl Fn(&mut Swarm)) -> Swarm {
    let member = |peer: u8| {
        // All call each other at once: drawn, both connections to a liar might be closed.
        let profile = Profile { duplicates: cede_bt::Duplicates::ByPeerId, ..profile };
        let mut setup = setup(peer, peer > 0, profile, Disposition::ALL);
        setup.upload_limit = (peer > 0).then_some(200 << 10);
        setup.random = Stream::named(number, &format!("peer {peer}"));
        setup
    };
    let mut swarm = Swarm::new((0..4).map(member).collect());
    spoil(&mut swarm);
    let what = format!("{} {number}", profile.name);
    assert!(swarm.run(Duration::from_secs(1_800)), "{what}: {:?}", swarm.members[0].engine.have());
    swarm
}

/// Blocks of all of them are in most pieces: whoever sent something of a bad one is not to blame for it.
#[test]
fn liars_alone_are_banned_whoever_else_had_a_part_in_their_pieces() {
    for profile in Profile::ALL {
        for number in 0..20 {
            for (liars, lies_in) in [(1, 1), (1, 3), (2, 1), (2, 2), (2, 5)] {
                let swarm = among_liars(profile, number, |swarm| {
                    for liar in &mut swarm.members[1..=liars] {
                        (liar.lies, liar.lies_in) = (true, lies_in);
                    }
                });
                let (banned, totals) = (&swarm.members[0].banned, swarm.members[0].engine.totals());
                let what = format!("{} {number}: {liars} that lie in 1 of {lies_in}", profile.name);
                assert!(banned.iter().all(|address| (1..=liars).contains(address)), "{what}: {banned:?}");
                assert!(totals.bad_pieces > 0, "{what}");
                assert!(lies_in > 1 || banned.len() == liars, "{what}: {banned:?}");
            }
        }
    }
}

/// A bad piece is asked for again at once, of one peer: a liar is known by the first that it sends alone, before it spoils most of
/// the others.
#[test]
fn a_liar_is_known_before_it_has_spoilt_much() {
    for profile in Profile::ALL {
        for number in 0..5 {
            let setups = (0..4).map(|peer| {
                let mut setup = setup(peer, peer > 0, profile, Disposition(5));
                setup.geometry = Geometry::new(60 << 20, 1 << 20).unwrap();
                setup.have = if peer > 0 { Bitfield::all(60) } else { Bitfield::none(60) };
                setup.upload_limit = (peer > 0).then_some(1 << 20);
                setup.random = Stream::named(number, &format!("peer {peer}"));
                setup
            });
            let mut swarm = Swarm::new(setups.collect());
            swarm.members[1].lies = true;
            assert!(swarm.run(Duration::from_secs(600)), "{}", profile.name);
            let spoilt = swarm.members[0].engine.totals().bad_pieces;
            assert!(spoilt < 10, "{} {number}: {spoilt} of 60", profile.name);
        }
    }
}

/// A liar that falls silent as soon as it is asked for pieces alone keeps nobody waiting.
#[test]
fn a_liar_that_falls_silent_does_not_keep_the_download_from_its_end() {
    for profile in Profile::ALL {
        for number in 0..10 {
            let swarm = among_liars(profile, number, |swarm| {
                (swarm.members[1].lies, swarm.members[1].content_max) = (true, (300 + 40 * number) << 10);
            });
            assert!(swarm.members[0].banned.iter().all(|&address| address == 1), "{} {number}", profile.name);
        }
    }
}

/// The transport on which two peers end up, and whether they do.
fn meets(a: u8, b: u8) -> Option<Transport> {
    let profile = Profile::UTORRENT3;
    let setups = [setup(0, true, profile, Disposition(a)), setup(1, false, profile, Disposition(b))];
    let mut swarm = Swarm::new(setups.into());
    swarm.run(Duration::from_secs(300));
    let moved = swarm.members[1].engine.totals().downloaded;
    assert_eq!(swarm.wires.len() % 2, 0);
    match moved {
        [0, 0] => None,
        [_, 0] => Some(Transport::Tcp),
        [0, _] => Some(Transport::Utp),
        _ => panic!("{a} and {b} used both: {moved:?}"),
    }
}

#[test]
fn every_pair_of_dispositions_settles_on_one_transport() {
    let masks = [5, 10, 13, 14, 31, 9];
    for a in masks {
        for b in masks {
            let opens = |from: u8, to: u8, out: u8, take: u8| from & out != 0 && to & take != 0;
            let either = |out, take| opens(a, b, out, take) || opens(b, a, out, take);
            let expected = match (either(2, 8), either(1, 4)) {
                (true, _) => Some(Transport::Utp),
                (false, true) => Some(Transport::Tcp),
                (false, false) => None,
            };
            assert_eq!(meets(a, b), expected, "{a} and {b}");
            assert_eq!(meets(b, a), expected, "{b} and {a}");
        }
    }
}

#[test]
fn one_way_connections_carry_their_openers_data_alone() {
    let mut profile = Profile::UTORRENT3;
    profile.duplicates = cede_bt::Duplicates::KeepBoth;
    let mut swarm = swarm(profile, Disposition(13), 3);
    assert!(swarm.run(Duration::from_secs(600)));
    for member in &swarm.members {
        let totals = member.engine.totals();
        assert_eq!((totals.uploaded[1], totals.downloaded[1]), (0, 0));
    }
}

/// aria2 tells of its last pieces by "have all", in the middle of the conversation.
#[test]
fn have_all_may_come_at_any_time() {
    let mut engine = cede_bt::Engine::new(setup(1, false, Profile::LIBTORRENT, Disposition::ALL));
    let now = Instant::from_secs(1);
    engine.start(now);
    let conn = engine.accept(now, 9_usize, Transport::Tcp).unwrap();
    let reserved = Reserved::default().with(Reserved::FAST);
    let mut heard = Handshake { reserved, info_hash: [7; 20], peer_id: [9; 20] }.encode().to_vec();
    for message in [Message::HaveNone, Message::Have(3), Message::HaveAll] {
        message.encode(&mut heard);
    }
    engine.received(now, conn, Payload::copy_from(&heard));
    assert_eq!(engine.connections().next().map(|view| view.pieces), Some(41));
    assert_eq!(engine.availability(3), 1);
}

/// aria2 tells of several pieces at a time by a bitfield in the middle of the conversation.
#[test]
fn a_bitfield_may_come_at_any_time() {
    for profile in Profile::ALL {
        let mut engine = cede_bt::Engine::new(setup(1, false, profile, Disposition::ALL));
        let now = cede_units::Instant::from_secs(1);
        engine.start(now);
        let conn = engine.accept(now, 9_usize, Transport::Tcp).unwrap();
        let handshake = Handshake { reserved: Reserved::default(), info_hash: [7; 20], peer_id: [9; 20] };
        let mut heard = handshake.encode().to_vec();
        let bits = |octets: [u8; 6]| Message::Bitfield(octets.to_vec());
        for message in [bits([0x80, 0, 0, 0, 0, 0]), Message::Unchoke, bits([0xc0, 0, 0, 0, 0, 0x80])] {
            message.encode(&mut heard);
        }
        engine.received(now, conn, Payload::copy_from(&heard));
        let view = engine.connections().next().expect("the connection stays");
        assert_eq!((view.pieces, view.interested), (3, true), "{}", profile.name);
        let availability: Vec<u32> = (0..41).map(|piece| engine.availability(piece)).collect();
        assert_eq!((availability.iter().sum::<u32>(), availability[40]), (3, 1));
        // One that is too long is no bitfield of this torrent.
        engine.received(now, conn, Payload::copy_from(&Message::Bitfield(vec![0; 7]).to_vec()));
        assert_eq!(engine.connections().count(), 0);
    }
}

/// Of a large torrent each time used to cost as much as the first, for five octets: a flood kept everybody else waiting for hours.
#[test]
fn who_says_without_end_that_it_has_everything_costs_little() {
    const PIECES: u32 = 1_000_000;
    let geometry = Geometry::new(u64::from(PIECES) << 14, 1 << 14).unwrap();
    let setup = Setup {
        geometry,
        have: Bitfield::none(PIECES),
        ..setup(1, false, Profile::LIBTORRENT, Disposition::ALL)
    };
    let mut engine = cede_bt::Engine::new(setup);
    let now = Instant::from_secs(1);
    engine.start(now);
    let conn = engine.accept(now, 9_usize, Transport::Tcp).unwrap();
    let reserved = Reserved::default().with(Reserved::FAST);
    let greeting = Handshake { reserved, info_hash: [7; 20], peer_id: [9; 20] }.encode();
    engine.received(now, conn, Payload::copy_from(&greeting));
    engine.received(now, conn, Payload::copy_from(&Message::HaveAll.to_vec().repeat(100_000)));
    // Nor does it take back what it has said.
    let nothing = Message::Bitfield(vec![0; PIECES as usize / 8]);
    engine.received(now, conn, Payload::copy_from(&nothing.to_vec()));
    assert_eq!(engine.connections().next().map(|view| view.pieces), Some(PIECES));
    assert_eq!((engine.availability(0), engine.availability(PIECES - 1)), (1, 1));
}

/// Over TCP a peer calls from a port that nobody waits at.
#[test]
fn who_has_called_is_not_called_back_unless_somebody_has_told_of_it() {
    for is_told in [false, true] {
        let mut engine = cede_bt::Engine::new(setup(1, false, Profile::LIBTORRENT, Disposition::ALL));
        let mut now = Instant::from_secs(1);
        engine.start(now);
        let conn = engine.accept(now, 9_usize, Transport::Tcp).unwrap();
        if is_told {
            engine.add_peers(now, &[9]);
        }
        // Nothing happens as long as there is a connection.
        engine.forget_caller(9);
        engine.closed(now, conn);
        engine.forget_caller(9);
        let mut is_called = false;
        while now < Instant::from_secs(200) {
            now = engine.poll_timeout().expect("there is always something due").max(now);
            engine.handle_timeout(now);
            while let Some(action) = engine.poll_action() {
                is_called |= matches!(action, Action::Connect { .. });
            }
        }
        assert_eq!(is_called, is_told);
    }
}

/// A seed of ten places, of which one host may have five.
struct Crowd {
    engine: cede_bt::Engine<std::net::SocketAddr>,
    now: Instant,
}

impl Crowd {
    fn new() -> Self {
        Self::with(Profile { connections_max: 10, ..Profile::UTORRENT3 })
    }

    fn with(profile: Profile) -> Self {
        Self::of(true, profile)
    }

    fn of(is_seed: bool, profile: Profile) -> Self {
        let mut engine = cede_bt::Engine::new(setup(1, is_seed, profile, Disposition::TCP));
        engine.start(Instant::from_secs(1));
        Self { engine, now: Instant::from_secs(1) }
    }

    /// Somebody calls and greets; whether he is taken up.
    fn call(&mut self, from: &str, wants: bool) -> bool {
        let address: std::net::SocketAddr = from.parse().unwrap();
        if !self.engine.make_room(self.now, address.ip()) {
            return false;
        }
        let conn = self.engine.accept(self.now, address, Transport::Tcp).expect("there is room");
        let number = [address.port() as u8; 20];
        let mut words = Handshake { reserved: Reserved::default(), info_hash: [7; 20], peer_id: number };
        words.peer_id[..16].copy_from_slice(&match address.ip() {
            std::net::IpAddr::V4(host) => host.to_ipv6_mapped().octets(),
            std::net::IpAddr::V6(host) => host.octets(),
        });
        self.engine.received(self.now, conn, Payload::copy_from(&words.encode()));
        if wants {
            self.engine.received(self.now, conn, Payload::copy_from(&Message::Interested.to_vec()));
        }
        true
    }

    /// Time passes, in which everybody keeps the connection alive.
    fn wait(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.engine.handle_timeout(self.now);
            let open: Vec<ConnId> = self.engine.connections().map(|view| view.id).collect();
            for conn in open {
                self.engine.received(self.now, conn, Payload::copy_from(&Message::KeepAlive.to_vec()));
            }
        }
    }

    /// Those of 192.0.2 that may ask for something do.
    fn ask_where_it_may(&mut self) {
        let is_honest = |view: &cede_bt::engine::ConnView<std::net::SocketAddr>| {
            view.address.ip().to_string().starts_with("192.0.2.")
        };
        let may: Vec<ConnId> = self
            .engine
            .connections()
            .filter(|view| is_honest(view) && !view.choking && view.uploads == 0)
            .map(|view| view.id)
            .collect();
        let block = cede_bt::wire::BlockRef { piece: 3, begin: 0, len: 16 << 10 };
        for conn in may {
            self.engine.received(self.now, conn, Payload::copy_from(&Message::Request(block).to_vec()));
        }
    }

    fn from(&self, host: &str) -> usize {
        let host: std::net::IpAddr = host.parse().unwrap();
        self.engine.connections().filter(|view| view.address.ip() == host).count()
    }
}

#[test]
fn one_host_has_half_of_the_places() {
    let mut crowd = Crowd::new();
    let taken = (1..=9).filter(|port| crowd.call(&format!("192.0.2.1:{port}"), false)).count();
    assert_eq!(taken, 5);
    // The addresses of one network of 64 bits count as one.
    let taken = (1..=9).filter(|n| crowd.call(&format!("[2001:db8::{n}]:{n}"), false)).count();
    assert_eq!(taken, 5);
    // All places are taken: one of those who have the most is given up for somebody else, as long as that is fairer.
    let taken = (1..=9).filter(|n| crowd.call(&format!("[2001:db8:0:1::{n}]:{n}"), false)).count();
    assert_eq!((taken, crowd.from("192.0.2.1"), crowd.engine.connections().count()), (3, 3, 10));
}

#[test]
fn whoever_is_good_for_nothing_makes_room() {
    let mut crowd = Crowd::new();
    for host in 1..=2 {
        crowd.wait(1);
        assert!((1..=5).all(|port| crowd.call(&format!("192.0.2.{host}:{port}"), host == 1)));
    }
    assert!(!crowd.call("192.0.2.1:6", false) && !crowd.call("192.0.2.2:6", false), "they have half each");
    crowd.wait(20);
    // Those who want nothing go, one for each; those who wait for a place among the served stay.
    for port in 1..=5 {
        assert!(crowd.call(&format!("192.0.2.9:{port}"), true));
    }
    assert_eq!(["192.0.2.1", "192.0.2.2", "192.0.2.9"].map(|host| crowd.from(host)), [5, 0, 5]);
    // Who says that he wants something and takes nothing does not keep several places either.
    assert!(crowd.call("192.0.2.10:1", true));
    assert_eq!(["192.0.2.1", "192.0.2.9"].map(|host| crowd.from(host)), [4, 5]);
}

#[test]
fn who_has_never_been_good_for_anything_makes_room_soon() {
    let mut crowd = Crowd::new();
    let idle = |host| format!("192.0.2.{host}:1");
    assert!((1..=9).all(|host| crowd.call(&idle(host), false)));
    assert!(crowd.call("192.0.2.10:1", false));
    assert!(!crowd.call("192.0.2.20:1", true), "they may still say that they want something");
    // Whoever is given metadata is there for something.
    let taker = crowd.engine.connections().find(|view| view.address.ip().to_string() == "192.0.2.10");
    let taker = taker.expect("it was taken up").id;
    for newcomer in 20..=28 {
        crowd.wait(2);
        crowd.engine.note_service(crowd.now, taker);
        assert!(crowd.call(&format!("192.0.2.{newcomer}:1"), true), "{newcomer}");
    }
    assert_eq!(crowd.from("192.0.2.10"), 1);
    assert!((1..=9).all(|host| crowd.from(&format!("192.0.2.{host}")) == 0));
    crowd.wait(2);
    assert!(!crowd.call("192.0.2.29:1", true), "the others wait for their turn");
}

/// Somebody calls again and again from everywhere, each time for nothing: others are taken up all the same.
#[test]
fn a_rush_of_callers_keeps_nobody_out() {
    let mut crowd = Crowd::new();
    for call in 0..400 {
        crowd.now += Duration::from_millis(30);
        crowd.call(&format!("198.51.100.{}:1", call % 200), false);
    }
    crowd.now += Duration::from_millis(30);
    assert!(crowd.call("192.0.2.20:1", true));
    for call in 0..400 {
        crowd.now += Duration::from_millis(30);
        crowd.call(&format!("198.51.100.{}:1", call % 200), false);
    }
    assert_eq!(crowd.from("192.0.2.20"), 1, "it wants something");
    // Where most are honest, a newcomer has time to say what it wants.
    let mut crowd = Crowd::new();
    assert!((1..=9).all(|host| crowd.call(&format!("192.0.2.{host}:1"), true)));
    assert!(crowd.call("192.0.2.20:1", false));
    crowd.wait(1);
    assert!(!crowd.call("192.0.2.21:1", false));
}

/// Whoever wants something calls others, however many call.
#[test]
fn callers_do_not_keep_a_leecher_from_calling() {
    for wants in [false, true] {
        let mut crowd = Crowd::of(false, Profile { connections_max: 10, ..Profile::UTORRENT3 });
        let taken = (1..=30).filter(|host| crowd.call(&format!("198.51.100.{host}:1"), wants)).count();
        assert!(taken >= 8, "{taken} of them are taken up");
        while crowd.engine.poll_action().is_some() {}
        let seed: std::net::SocketAddr = "192.0.2.20:1".parse().unwrap();
        crowd.engine.add_peers(crowd.now, &[seed]);
        let is_call = |action| matches!(action, Action::Connect { address, .. } if address == seed);
        assert!(core::iter::from_fn(|| crowd.engine.poll_action()).any(is_call), "wants: {wants}");
    }
}

/// All places are taken by those who say that they are interested, from as many hosts, and ask for nothing.
#[test]
fn who_lets_a_slot_go_by_makes_room() {
    let in_the_open = Profile { slot_patience: Some(Duration::from_secs(10)), ..Profile::UTORRENT3 };
    let mut crowd = Crowd::with(Profile { connections_max: 10, ..in_the_open });
    assert!((1..=10).all(|host| crowd.call(&format!("192.0.2.{host}:1"), true)));
    let waited = (0..60).find(|_| {
        crowd.wait(1);
        crowd.call("192.0.2.20:1", true)
    });
    assert!(waited.is_some_and(|seconds| seconds < 6), "{waited:?}");
    let is_served = |crowd: &Crowd| {
        let newcomer = |view: &cede_bt::engine::ConnView<std::net::SocketAddr>| {
            view.address.ip().to_string() == "192.0.2.20" && !view.choking
        };
        crowd.engine.connections().any(|view| newcomer(&view))
    };
    let waited = (0..60).find(|_| {
        crowd.wait(1);
        is_served(&crowd)
    });
    assert!(waited.is_some_and(|seconds| seconds < 15), "{waited:?}");
}

/// The same, who come again at once whenever they are dropped: the second time they are behind those who have not been here before.
#[test]
fn who_lets_a_slot_go_by_and_comes_again_keeps_nobody_out() {
    let in_the_open = Profile { slot_patience: Some(Duration::from_secs(10)), ..Profile::UTORRENT3 };
    let mut crowd = Crowd::with(Profile { connections_max: 10, ..in_the_open });
    let rush = |crowd: &mut Crowd| {
        for host in (1..=20).filter(|host| crowd.from(&format!("198.51.100.{host}")) == 0).collect::<Vec<_>>()
        {
            crowd.call(&format!("198.51.100.{host}:1"), true);
        }
    };
    for _ in 0..120 {
        rush(&mut crowd);
        crowd.wait(1);
    }
    let refused: Vec<u8> = (1..=8)
        .filter(|newcomer| {
            let is_refused = !crowd.call(&format!("192.0.2.{newcomer}:1"), true);
            for _ in 0..4 {
                rush(&mut crowd);
                crowd.wait(1);
                crowd.ask_where_it_may();
            }
            is_refused
        })
        .collect();
    assert_eq!(refused, [0_u8; 0]);
    for _ in 0..60 {
        rush(&mut crowd);
        crowd.wait(1);
        crowd.ask_where_it_may();
    }
    assert!((1..=8).all(|host| crowd.from(&format!("192.0.2.{host}")) == 1), "nobody has been put out");
    // Where there is room they are taken up, as somebody honest may have been slow.
    assert_eq!(crowd.engine.connections().count(), 10);
}

/// Nobody answers at most of the addresses that are known: who does is reached soon, and not only once those are given up.
#[test]
fn calls_that_nobody_answers_keep_others_from_being_called_for_a_moment() {
    for (unanswered_max, expected) in [(0, None), (100, Some(2))] {
        let in_the_open = Profile { unanswered_max, ..Profile::UTORRENT3 };
        let mut crowd = Crowd::of(false, in_the_open);
        let known: Vec<std::net::SocketAddr> =
            (0..130).map(|host| format!("198.51.100.{host}:1").parse().unwrap()).collect();
        crowd.engine.add_peers(crowd.now, &known);
        let mut called = 0;
        let found = (0..5).find(|_| {
            let calls = core::iter::from_fn(|| crowd.engine.poll_action());
            called += calls.filter(|action| matches!(action, Action::Connect { .. })).count();
            crowd.wait(1);
            called >= 130
        });
        assert_eq!(found, expected, "{called} have been called");
        // Whoever calls finds a place, and nobody is called beyond the profile's bound once there is a connection.
        if unanswered_max > 0 {
            assert!(crowd.call("192.0.2.1:1", true));
            crowd.engine.add_peers(crowd.now, &["192.0.2.2:1".parse().unwrap()]);
            crowd.wait(2);
            let is_call = |action| matches!(action, Action::Connect { .. });
            assert!(!core::iter::from_fn(|| crowd.engine.poll_action()).any(is_call));
        }
    }
}

/// Peers that say that they are interested and ask for nothing, and somebody who does ask, half a second later.
#[test]
fn a_slot_that_is_not_used_goes_to_the_next() {
    for (patience, within) in [(None, 30..600), (Some(Duration::from_secs(10)), 1..4)] {
        let profile = Profile { slot_patience: patience, ..Profile::UTORRENT3 };
        let mut crowd = Crowd::with(profile);
        for port in 1..=15 {
            for host in 1..=3 {
                assert!(crowd.call(&format!("192.0.2.{host}:{port}"), true));
            }
        }
        assert!(crowd.call("192.0.2.9:1", true));
        let is_served = |crowd: &Crowd| {
            crowd.engine.connections().any(|view| {
                view.address.port() == 1 && view.address.ip().to_string() == "192.0.2.9" && !view.choking
            })
        };
        let waited = (0..600).find(|_| {
            crowd.wait(1);
            is_served(&crowd)
        });
        assert!(waited.is_some_and(|seconds| within.contains(&seconds)), "{patience:?}: {waited:?}");
    }
}

/// All slots are held by peers that have asked for much and of which nothing is heard any more: who waits has one at once, and keeps it.
#[test]
fn a_slot_of_whom_nothing_is_heard_goes_to_the_next() {
    for (patience, is_unheard, within) in [
        (Some(Duration::from_secs(10)), true, 0..2),
        (Some(Duration::from_secs(10)), false, 8..600),
        (None, true, 8..600),
    ] {
        let mut crowd = Crowd::with(Profile { slot_patience: patience, ..Profile::UTORRENT3 });
        assert!((1..=8).all(|host| crowd.call(&format!("192.0.2.{host}:1"), true)));
        crowd.wait(1);
        crowd.ask_where_it_may();
        assert!(crowd.call("198.51.100.1:1", true));
        let is_newcomer = |view: &cede_bt::engine::ConnView<std::net::SocketAddr>| {
            view.address.to_string() == "198.51.100.1:1"
        };
        let views = || crowd.engine.connections().filter(|view| !is_newcomer(view));
        let held: Vec<ConnId> = views().filter(|view| !view.choking).map(|view| view.id).collect();
        let open: Vec<ConnId> = views().map(|view| view.id).collect();
        assert!(!held.is_empty() && held.len() < open.len());
        open.iter().for_each(|&conn| crowd.engine.set_unheard(conn, is_unheard));
        let served =
            |crowd: &Crowd| crowd.engine.connections().any(|view| is_newcomer(&view) && !view.choking);
        let waited = (0..600).find(|_| {
            crowd.wait(1);
            served(&crowd)
        });
        assert!(
            waited.is_some_and(|seconds| within.contains(&seconds)),
            "{patience:?} {is_unheard}: {waited:?}"
        );
    }
}

/// A seed lets go of who has been unchoked for a minute and has asked for nothing, by libtorrent's rules, and of nobody else.
#[test]
fn who_asks_a_seed_for_nothing_is_let_go() {
    let with = |patience| Crowd::with(Profile { seed_patience: patience, ..Profile::LIBTORRENT });
    let minute = Duration::from_secs(60);
    for (patience, wants, after, stays) in [
        (Some(minute), true, 59, true),
        (Some(minute), true, 62, false),
        (Some(minute), false, 90, true),
        (None, true, 90, true),
    ] {
        let mut crowd = with(patience);
        assert!(crowd.call("10.0.0.1:1", wants));
        crowd.wait(after);
        assert_eq!(crowd.from("10.0.0.1") == 1, stays, "{patience:?}, wants {wants}, after {after} s");
    }
    // Who is still owed something, or was sent something a moment ago, stays.
    let mut crowd = with(Some(minute));
    assert!(crowd.call("10.0.0.1:1", true));
    crowd.wait(30);
    let conn = crowd.engine.connections().next().expect("somebody has called").id;
    assert!(crowd.engine.connections().all(|view| !view.choking), "the seed has a place for it");
    let block = cede_bt::wire::BlockRef { piece: 3, begin: 0, len: 16 << 10 };
    crowd.engine.received(crowd.now, conn, Payload::copy_from(&Message::Request(block).to_vec()));
    crowd.wait(90);
    assert_eq!(crowd.from("10.0.0.1"), 1, "its block has not been sent");
    crowd.engine.set_room(conn, 1 << 20);
    while crowd.engine.poll_transmit(crowd.now).is_some() {}
    crowd.wait(58);
    assert_eq!(crowd.from("10.0.0.1"), 1);
    crowd.wait(4);
    assert_eq!(crowd.from("10.0.0.1"), 0);
}

/// A peer that is being called calls as well, and greets first: of the two connections one is closed at once, which is drawn.
#[test]
fn of_two_calls_at_a_time_one_is_drawn() {
    let theirs_stay = |number: u8| {
        let mut engine =
            cede_bt::Engine::<usize>::new(setup(number, true, Profile::LIBTORRENT, Disposition::TCP));
        let now = Instant::from_secs(1);
        engine.start(now);
        engine.add_peers(now, &[9]);
        let theirs = engine.accept(now, 9, Transport::Tcp).expect("there is room");
        while engine.poll_action().is_some() {}
        let words = Handshake { reserved: Reserved::default(), info_hash: [7; 20], peer_id: [9; 20] };
        engine.received(now, theirs, Payload::copy_from(&words.encode()));
        let closed: Vec<ConnId> = core::iter::from_fn(|| engine.poll_action())
            .filter_map(|action| match action {
                Action::Close { conn, reason: CloseReason::Duplicate } => Some(conn),
                _ => None,
            })
            .collect();
        assert_eq!(closed.len(), 1);
        closed != [theirs]
    };
    let stay = (20..84).filter(|&number| theirs_stay(number)).count();
    assert!((20..=44).contains(&stay), "{stay} of 64");
}

/// What becomes of calls to a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Unreached,
    /// The peer greets, says something wrong and is hung up on.
    Wrong,
    /// It greets and hangs up after so many seconds.
    HangsUp(u64),
}

/// The seconds at which a peer is called. It is told of at the first second, and again at others.
fn calls(fate: Fate, told_again: &[u64]) -> Vec<u64> {
    calls_of(Profile::LIBTORRENT, fate, told_again)
}

fn calls_of(profile: Profile, fate: Fate, told_again: &[u64]) -> Vec<u64> {
    let mut engine = cede_bt::Engine::new(setup(1, false, profile, Disposition::TCP));
    let (mut now, mut calls, mut lives) = (Instant::from_secs(1), Vec::new(), None);
    engine.start(now);
    engine.add_peers(now, &[9_usize]);
    let mut told = told_again.iter().map(|&second| Instant::from_secs(second)).peekable();
    while now < Instant::from_secs(3_000) {
        while let Some(action) = engine.poll_action() {
            let Action::Connect { conn, .. } = action else { continue };
            calls.push(now.as_nanos() / 1_000_000_000);
            if fate == Fate::Unreached {
                engine.closed(now, conn);
                continue;
            }
            engine.connected(now, conn);
            let greeting = Handshake { reserved: Reserved::default(), info_hash: [7; 20], peer_id: [9; 20] };
            engine.received(now, conn, Payload::copy_from(&greeting.encode()));
            match fate {
                Fate::HangsUp(seconds) => lives = Some((now + Duration::from_secs(seconds), conn)),
                _ => engine.received(now, conn, Payload::copy_from(&Message::Have(1 << 30).to_vec())),
            }
        }
        let due = engine.poll_timeout().expect("there is always something due").max(now);
        now = [lives.map(|(end, _)| end), told.peek().copied()].into_iter().flatten().fold(due, Instant::min);
        if let Some((_, conn)) = lives.take_if(|(end, _)| *end <= now) {
            engine.closed(now, conn);
        }
        if told.next_if(|at| *at <= now).is_some() {
            engine.add_peers(now, &[9]);
        }
        engine.handle_timeout(now);
    }
    calls
}

#[test]
fn a_peer_that_fails_is_called_ever_later_and_at_last_only_when_it_is_told_of_again() {
    // What is due is looked for every ten seconds.
    let near = |calls: &[u64], expected: &[u64]| {
        assert_eq!(calls.len(), expected.len(), "{calls:?}");
        for (at, call) in expected.iter().zip(calls) {
            assert!((0..=20).contains(&(*call as i64 - *at as i64)), "{calls:?}");
        }
    };
    for fate in [Fate::Unreached, Fate::Wrong] {
        near(&calls(fate, &[]), &[1, 61, 181]);
        near(&calls(fate, &[30]), &[1, 61, 181]);
        near(&calls(fate, &[1_000, 2_000]), &[1, 61, 181, 1_000, 2_000]);
    }
}

/// Fifty calls at a time are twenty-five peers'; then a place is free for one call, of two that a peer is to have at once.
#[test]
fn of_many_who_cannot_be_reached_each_is_called_over_both_transports() {
    let mut engine = cede_bt::Engine::new(setup(1, false, Profile::UTORRENT3, Disposition::ALL));
    let now = Instant::from_secs(1);
    engine.start(now);
    engine.add_peers(now, &(100..220_usize).collect::<Vec<_>>());
    let (mut waiting, mut calls, mut unreached) = (VecDeque::new(), BTreeSet::new(), Vec::new());
    loop {
        while let Some(action) = engine.poll_action() {
            match action {
                Action::Connect { conn, address, transport } => {
                    waiting.push_back(conn);
                    assert!(
                        calls.insert((address, transport == Transport::Tcp)),
                        "{address} was called twice"
                    );
                }
                Action::Unreached { address } => unreached.push(address),
                _ => {}
            }
        }
        assert!(waiting.len() <= 50);
        let Some(conn) = waiting.pop_front() else { break };
        engine.closed(now, conn);
    }
    assert_eq!((calls.len(), unreached.len()), (240, 120));
}

#[test]
fn who_hangs_up_is_called_again_no_more_often_than_once_a_minute() {
    let at_once = calls(Fate::HangsUp(0), &[]);
    assert!(at_once.len() > 40 && at_once.windows(2).all(|two| two[1] - two[0] >= 60), "{at_once:?}");
    // A minute after the call, or after its end.
    for (rests_after_end, pause) in [(false, 90..=101), (true, 150..=161)] {
        let profile = Profile { rests_after_end, ..Profile::LIBTORRENT };
        let later = calls_of(profile, Fate::HangsUp(90), &[]);
        assert!(later.windows(2).all(|two| pause.contains(&(two[1] - two[0]))), "{later:?}");
    }
}

/// libtorrent answers by a hybrid torrent's v2 hash to whoever has asked it for the dictionary by that one.
#[test]
fn a_hybrid_may_be_called_by_its_other_hash_and_nothing_else() {
    for (we_call, hash, is_kept) in
        [(true, 8, true), (true, 9, false), (false, 8, true), (false, 7, true), (false, 9, false)]
    {
        let mut engine = cede_bt::Engine::new(setup(1, false, Profile::LIBTORRENT, Disposition::TCP));
        engine.set_hybrid([8; 20]);
        let now = Instant::from_secs(1);
        engine.start(now);
        let conn = if we_call {
            engine.add_peers(now, &[9_usize]);
            let actions = std::iter::from_fn(|| engine.poll_action()).collect::<Vec<_>>();
            let called = actions.iter().find_map(|action| match action {
                Action::Connect { conn, .. } => Some(*conn),
                _ => None,
            });
            engine.connected(now, called.unwrap());
            called.unwrap()
        } else {
            engine.accept(now, 9, Transport::Tcp).unwrap()
        };
        let answer = Handshake { reserved: Reserved::default(), info_hash: [hash; 20], peer_id: [9; 20] };
        engine.received(now, conn, Payload::copy_from(&answer.encode()));
        assert_eq!(engine.connections().count(), usize::from(is_kept), "{we_call} {hash}");
        if is_kept && !we_call {
            engine.set_room(conn, 1 << 16);
            let Some((_, Chunk::Octets(said))) = engine.poll_transmit(now) else { panic!("nothing is said") };
            assert_eq!(said.to_vec()[28..48], [hash; 20], "the answer is by the name that was called");
        }
    }
}

/// As many as are called at once have been called: of those that wait, a peer in the local network is the next.
#[test]
fn who_is_near_is_called_before_those_who_were_told_of_earlier() {
    let mut engine = cede_bt::Engine::new(setup(0, false, Profile::MAINLINE4, Disposition::TCP));
    let now = Instant::from_secs(1);
    let called = |engine: &mut cede_bt::Engine<usize>| {
        let mut called = Vec::new();
        while let Some(action) = engine.poll_action() {
            if let Action::Connect { conn, address, .. } = action {
                called.push((conn, address));
            }
        }
        called
    };
    let far: Vec<usize> = (1..=200).collect();
    engine.add_peers(now, &far);
    let first = called(&mut engine);
    assert!(first.len() < far.len() && first.iter().all(|(_, address)| far.contains(address)));
    // One of them waits in the queue already.
    engine.add_near_peers(now, &[500, 199]);
    for (at, next) in [500, 199, first.len() + 1].into_iter().enumerate() {
        engine.closed(now, first[at].0);
        let called: Vec<usize> = called(&mut engine).into_iter().map(|(_, address)| address).collect();
        assert_eq!(called, [next]);
    }
}

/// What a seed has sent when the others have a copy among them, and when they have all, in copies of the content.
fn copies_sent(profile: Profile, is_super: bool) -> (f64, f64) {
    let limited = |number: u8| {
        let profile = Profile { spares_neighbours: false, ..profile };
        Setup { upload_limit: Some(100_000), ..setup(number, number == 0, profile, Disposition::TCP) }
    };
    let mut swarm = Swarm::new((0..13).map(limited).collect());
    if is_super {
        swarm.members[0].engine.super_seed();
    }
    let sent = |members: &[Member]| members[0].engine.totals().uploaded.iter().sum::<u64>();
    let copies = |octets: u64| octets as f64 / geometry().total_bytes() as f64;
    let mut first = None;
    let is_whole = swarm.run_until(Duration::from_secs(3_600), |members| {
        let is_somewhere = |piece| members[1..].iter().any(|member| member.engine.have().has(piece));
        if first.is_none() && (0..geometry().pieces()).all(is_somewhere) {
            first = Some(sent(members));
        }
        members.iter().all(|member| member.engine.is_complete())
    });
    assert!(is_whole, "{} {is_super}", profile.name);
    (copies(first.unwrap()), copies(sent(&swarm.members)))
}

/// A seed that seems to have nothing has sent less of everything twice by the time that the swarm has a copy.
#[test]
fn super_seeding_sends_fewer_copies_before_the_swarm_has_one() {
    for profile in Profile::ALL {
        let (plain, hidden) = (copies_sent(profile, false), copies_sent(profile, true));
        println!("{}: {plain:.2?} copies, {hidden:.2?} super-seeding", profile.name);
        assert!(hidden.0 < plain.0 && hidden.0 < 1.3, "{}: {plain:?} {hidden:?}", profile.name);
    }
}

/// One that is alone gets everything, and one that nobody can reach besides the seed.
#[test]
fn whoever_has_nobody_to_pass_pieces_on_to_gets_them_all_the_same() {
    for profile in Profile::ALL {
        let mut swarm = swarm(profile, Disposition::ALL, 1);
        swarm.members[0].engine.super_seed();
        assert!(swarm.run(Duration::from_secs(600)), "{}", profile.name);
    }
}

/// A peer that does not tell of its pieces to who has them is told of others once it wants nothing.
#[test]
fn who_says_nothing_of_its_pieces_is_told_of_others_all_the_same() {
    let mut seed = cede_bt::Engine::<usize>::new(setup(0, true, Profile::UTORRENT3, Disposition::TCP));
    seed.super_seed();
    let mut now = Instant::from_secs(1);
    seed.start(now);
    let conn = seed.accept(now, 5, Transport::Tcp).unwrap();
    let reserved = Reserved::default().with(Reserved::FAST);
    let hello = Handshake { reserved, info_hash: [7; 20], peer_id: [9; 20] }.encode().to_vec();
    seed.received(now, conn, Payload::copy_from(&[hello, Message::HaveNone.to_vec()].concat()));
    let mut decoder = Decoder::new(WireLimits::of(geometry().pieces()));
    let mut told = Vec::new();
    for second in 0..20 {
        seed.set_room(conn, u32::MAX);
        while let Some((_, Chunk::Octets(mut octets))) = seed.poll_transmit(now) {
            seed.set_room(conn, u32::MAX);
            while let Some(item) = decoder.next(&mut octets).unwrap() {
                match item {
                    Item::Message(Message::Have(piece)) => told.push((second, piece)),
                    Item::Message(Message::HaveAll | Message::Bitfield(_)) => panic!("{item:?}"),
                    _ => {}
                }
            }
        }
        now += Duration::from_secs(1);
        seed.handle_timeout(now);
    }
    let at: Vec<u32> = told.iter().map(|(second, _)| *second).collect();
    assert_eq!(at[..4], [0, 0, 5, 5], "{told:?}");
    told.sort_by_key(|(_, piece)| *piece);
    told.dedup_by_key(|(_, piece)| *piece);
    assert_eq!(told.len(), at.len(), "nothing is told twice");
}
