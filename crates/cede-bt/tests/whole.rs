//! A peer that brings a piece within the time which makes it a fast one is asked for whole pieces, and others are not asked for those.

mod common;

use cede_bt::engine::{Action, Chunk, ConnId, Setup};
use cede_bt::picker::PickerRule;
use cede_bt::wire::{BlockRef, Decoder, Handshake, Item, Message, Reserved, WireLimits, piece_header};
use cede_bt::{Disposition, Engine, Profile, Transport};
use cede_units::{Duration, Instant};
use cede_wire::Payload;
use common::{geometry, setup};
use std::collections::{BTreeSet, VecDeque};

/// One that has nothing, and peers that have everything and are asked.
struct Leecher {
    engine: Engine<usize>,
    now: Instant,
    peers: Vec<(ConnId, Decoder, VecDeque<BlockRef>)>,
}

impl Leecher {
    fn new(whole_within: Option<Duration>) -> Self {
        let picker = PickerRule { whole_within, ..Profile::LIBTORRENT.picker };
        let profile = Profile { picker, allowed_fast: 0, ..Profile::LIBTORRENT };
        let mut engine = Engine::new(Setup { ..setup(0, false, profile, Disposition::ALL) });
        let now = Instant::from_secs(1);
        engine.start(now);
        Self { engine, now, peers: Vec::new() }
    }

    /// A peer calls that has everything, and unchokes us.
    fn meet(&mut self) -> usize {
        let number = self.peers.len();
        let conn = self.engine.accept(self.now, number + 1, Transport::Tcp).unwrap();
        self.peers.push((conn, Decoder::new(WireLimits::of(geometry().pieces())), VecDeque::new()));
        let reserved = Reserved::default().with(Reserved::FAST);
        let handshake = Handshake { reserved, info_hash: [7; 20], peer_id: [number as u8 + 9; 20] };
        self.tell(number, &handshake.encode());
        self.tell(number, &[Message::HaveAll.to_vec(), Message::Unchoke.to_vec()].concat());
        number
    }

    fn tell(&mut self, number: usize, octets: &[u8]) {
        self.engine.received(self.now, self.peers[number].0, Payload::copy_from(octets));
        self.hear();
    }

    fn hear(&mut self) {
        while let Some(action) = self.engine.poll_action() {
            if let Action::Check { piece } = action {
                self.engine.checked(self.now, piece, true);
            }
        }
        for (conn, ..) in &self.peers {
            self.engine.set_room(*conn, u32::MAX);
        }
        while let Some((to, Chunk::Octets(mut octets))) = self.engine.poll_transmit(self.now) {
            self.engine.set_room(to, u32::MAX);
            let (_, ear, asked) = self.peers.iter_mut().find(|(conn, ..)| *conn == to).unwrap();
            while let Some(item) = ear.next(&mut octets).unwrap() {
                if let Item::Message(Message::Request(block)) = item {
                    asked.push_back(block);
                }
            }
        }
    }

    /// A peer answers the first of what it is asked for. Says which piece that was of.
    fn answer(&mut self, number: usize) -> u32 {
        let block = self.peers[number].2.pop_front().expect("it is asked for something");
        let mut octets = piece_header(block).to_vec();
        octets.resize(octets.len() + block.len as usize, 0);
        self.tell(number, &octets);
        block.piece
    }

    fn second(&mut self) {
        self.now += Duration::from_secs(1);
        self.engine.handle_timeout(self.now);
        self.hear();
    }

    fn asked(&self, number: usize) -> BTreeSet<u32> {
        self.peers[number].2.iter().map(|block| block.piece).collect()
    }
}

/// The first has given a block a second for twenty seconds when the second comes; ten seconds later.
fn pieces_of_both(whole_within: Option<Duration>) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let mut leecher = Leecher::new(whole_within);
    let fast = leecher.meet();
    for _ in 0..21 {
        leecher.answer(fast);
        leecher.second();
    }
    let slow = leecher.meet();
    let of_slow = leecher.asked(slow);
    let mut of_fast = leecher.asked(fast);
    for _ in 0..4 {
        of_fast.insert(leecher.answer(fast));
        leecher.second();
    }
    (of_fast, of_slow)
}

#[test]
fn what_a_fast_peer_has_begun_is_left_to_it() {
    let (of_fast, of_slow) = pieces_of_both(Some(Duration::from_secs(20)));
    assert!(of_fast.is_disjoint(&of_slow), "{of_fast:?}, {of_slow:?}");
    // Where nobody is fast, the piece that has been begun comes first among equally rare ones.
    let (of_fast, of_slow) = pieces_of_both(None);
    assert!(!of_fast.is_disjoint(&of_slow), "{of_fast:?}, {of_slow:?}");
}

#[test]
fn what_was_taken_for_a_peer_that_chokes_is_anybodys() {
    let mut leecher = Leecher::new(Some(Duration::from_secs(20)));
    let fast = leecher.meet();
    let mut begun = BTreeSet::new();
    for _ in 0..21 {
        begun.insert(leecher.answer(fast));
        leecher.second();
    }
    begun.extend(leecher.asked(fast));
    let slow = leecher.meet();
    assert!(leecher.asked(slow).is_disjoint(&begun));
    leecher.tell(fast, &Message::Choke.to_vec());
    let owed: Vec<BlockRef> = leecher.peers[fast].2.drain(..).collect();
    for block in owed {
        leecher.tell(fast, &Message::Reject(block).to_vec());
    }
    for _ in 0..6 {
        leecher.answer(slow);
    }
    let then = leecher.asked(slow);
    assert!(!then.is_disjoint(&begun), "{then:?} of {begun:?}");
    // And nothing is asked for twice before the end: as many answers as there are blocks missing.
    let mut left = geometry().total_bytes().div_ceil(16 << 10) - 21 - 6;
    while left > 8 {
        leecher.answer(slow);
        left -= 1;
        leecher.second();
    }
    assert!(!leecher.engine.is_complete());
    while !leecher.engine.is_complete() {
        leecher.answer(slow);
        left -= 1;
    }
    assert_eq!(left, 0);
}
