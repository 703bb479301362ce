//! Whoever says without end what is of no use is let go, and nobody else.

mod common;

use cede_bt::engine::{Action, Chunk, CloseReason, ConnId};
use cede_bt::wire::{BlockRef, Decoder, Handshake, Item, Message, Reserved, WireLimits, piece_header};
use cede_bt::{Disposition, Engine, Profile, Transport};
use cede_units::{Duration, Instant};
use cede_wire::Payload;
use common::{geometry, setup};

const START: Instant = Instant::from_secs(1);
/// What one read brings.
const READ: usize = 4 << 10;

/// An engine that has everything or nothing.
fn engine(seed: bool, profile: Profile) -> Engine<usize> {
    let mut engine = Engine::new(setup(0, seed, profile, Disposition::ALL));
    engine.start(START);
    engine
}

/// A peer calls and greets.
fn call(engine: &mut Engine<usize>, now: Instant, number: usize) -> ConnId {
    let conn = engine.accept(now, number, Transport::Tcp).unwrap();
    let reserved = Reserved::default().with(Reserved::FAST).with(Reserved::EXTENDED);
    let handshake = Handshake { reserved, info_hash: [7; 20], peer_id: [number as u8; 20] };
    engine.received(now, conn, Payload::copy_from(&handshake.encode()));
    conn
}

/// Why the engine has let go of a connection.
fn end_of(engine: &mut Engine<usize>, conn: ConnId) -> Option<CloseReason> {
    let actions = std::iter::from_fn(|| engine.poll_action());
    actions
        .filter_map(|act| matches!(act, Action::Close { conn: it, .. } if it == conn).then_some(act))
        .find_map(|action| if let Action::Close { reason, .. } = action { Some(reason) } else { None })
}

/// Says the same again and again, a read each millisecond, until it is let go; how many octets that took, at most 4 MiB.
fn flood(
    engine: &mut Engine<usize>,
    mut now: Instant,
    conn: ConnId,
    words: &[u8],
) -> (Option<CloseReason>, usize) {
    let read: Vec<u8> = words.iter().copied().cycle().take(READ.next_multiple_of(words.len())).collect();
    let mut said = 0;
    while said < 4 << 20 {
        engine.set_room(conn, u32::MAX);
        while engine.poll_transmit(now).is_some() {
            engine.set_room(conn, u32::MAX);
        }
        engine.received(now, conn, Payload::copy_from(&read));
        said += read.len();
        let end = end_of(engine, conn);
        if end.is_some() {
            return (end, said);
        }
        now += Duration::from_millis(1);
        engine.handle_timeout(now);
    }
    (None, said)
}

#[test]
fn who_says_without_end_what_changes_nothing_is_let_go() {
    let block = BlockRef { piece: 0, begin: 0, len: 16_384 };
    let both = |one: Message, other: Message| [one.to_vec(), other.to_vec()].concat();
    let floods = [
        Message::KeepAlive.to_vec(),
        Message::Choke.to_vec(),
        Message::Unchoke.to_vec(),
        both(Message::Unchoke, Message::Choke),
        Message::NotInterested.to_vec(),
        both(Message::Interested, Message::NotInterested),
        Message::Have(3).to_vec(),
        Message::Bitfield(vec![0x80, 0, 0, 0, 0, 0]).to_vec(),
        Message::HaveAll.to_vec(),
        Message::Suggest(1).to_vec(),
        Message::AllowedFast(1).to_vec(),
        Message::Port(6881).to_vec(),
        Message::Cancel(block).to_vec(),
        Message::Reject(block).to_vec(),
        Message::Request(block).to_vec(),
        Message::Extended(0, b"de".to_vec()).to_vec(),
        Message::Extended(77, b"anything".to_vec()).to_vec(),
        vec![0, 0, 0, 3, 99, 1, 2],
    ];
    for profile in Profile::ALL {
        for words in &floods {
            let mut engine = engine(false, profile);
            let conn = call(&mut engine, START, 1);
            let (end, said) = flood(&mut engine, START, conn, words);
            assert!(end.is_some() && said < 512 << 10, "{}: {words:?}: {end:?} after {said}", profile.name);
        }
    }
}

#[test]
fn blocks_that_nobody_asked_for_are_no_excuse() {
    let mut engine = engine(false, Profile::LIBTORRENT);
    let conn = engine.accept(START, 1, Transport::Tcp).unwrap();
    let handshake = Handshake { reserved: Reserved::default(), info_hash: [7; 20], peer_id: [1; 20] };
    let words = [
        handshake.encode().to_vec(),
        Message::Bitfield(vec![0xff, 0xff, 0xff, 0xff, 0xff, 0x80]).to_vec(),
        Message::Unchoke.to_vec(),
    ];
    engine.received(START, conn, Payload::copy_from(&words.concat()));
    let asked = blocks_asked(&mut engine, START, conn);
    let first = *asked.first().expect("something is asked for");
    let mut again = piece_header(first).to_vec();
    again.resize(again.len() + first.len as usize, 0);
    let (end, said) = flood(&mut engine, START, conn, &again);
    let owed: usize = asked.iter().map(|block| block.len as usize).sum();
    assert_eq!(end, Some(CloseReason::Misbehaved));
    assert!(said < owed + (512 << 10), "{said} octets where {owed} were asked for");
}

/// What the engine asks a peer for.
fn blocks_asked(engine: &mut Engine<usize>, now: Instant, conn: ConnId) -> Vec<BlockRef> {
    let mut ear = Decoder::new(WireLimits::of(geometry().pieces()));
    let mut asked = Vec::new();
    engine.set_room(conn, u32::MAX);
    while let Some((_, Chunk::Octets(mut octets))) = engine.poll_transmit(now) {
        engine.set_room(conn, u32::MAX);
        while let Some(item) = ear.next(&mut octets).unwrap() {
            if let Item::Message(Message::Request(block)) = item {
                asked.push(block);
            }
        }
    }
    asked
}

#[test]
fn who_calls_again_does_not_begin_anew_for_a_while() {
    let mut engine = engine(true, Profile::LIBTORRENT);
    let mut said_in = |now: Instant| {
        let conn = call(&mut engine, now, 1);
        let (end, said) = flood(&mut engine, now, conn, &Message::KeepAlive.to_vec());
        assert_eq!(end, Some(CloseReason::Misbehaved));
        said
    };
    let first = said_in(START);
    let again = said_in(START + Duration::from_secs(2));
    let later = said_in(START + Duration::from_secs(120));
    assert!(again < first / 4, "{again} octets after {first}");
    assert!(later.abs_diff(first) <= 2 * READ, "{later} octets after {first}");
}

#[test]
fn a_keep_alive_each_second_and_pieces_told_one_by_one_are_nothing_to_be_let_go_for() {
    let mut engine = engine(false, Profile::LIBTORRENT);
    let conn = call(&mut engine, START, 1);
    let mut now = START;
    for _ in 0..3_600 {
        now += Duration::from_secs(1);
        engine.received(now, conn, Payload::copy_from(&Message::KeepAlive.to_vec().repeat(100)));
        engine.handle_timeout(now);
    }
    for piece in 0..geometry().pieces() {
        engine.received(now, conn, Payload::copy_from(&Message::Have(piece).to_vec()));
    }
    assert_eq!(end_of(&mut engine, conn), None);
}
