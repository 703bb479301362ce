//! A download with an honest seed ends, whoever else takes requests and does not answer them.

mod common;

use cede_bt::engine::{Action, Chunk, ConnId};
use cede_bt::wire::{BlockRef, Decoder, Handshake, Item, Message, Reserved, WireLimits, piece_header};
use cede_bt::{Disposition, Engine, Profile, Transport};
use cede_units::{Duration, Instant};
use cede_wire::Payload;
use common::{geometry, setup};
use std::collections::VecDeque;

/// The time between looks at everybody.
const STEP: Duration = Duration::from_millis(200);

/// What a peer does with requests.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Manner {
    /// Answers some in each step.
    Honest,
    /// Nothing.
    Mute,
    /// Answers the first of them, and then no more.
    MuteAfterOne,
    /// Sends ten octets in each step.
    Trickling,
    /// Answers at once, with the first 100 octets of the block.
    Short,
}

struct Peer {
    conn: ConnId,
    manner: Manner,
    ear: Decoder,
    asked: VecDeque<BlockRef>,
    answered: usize,
    /// What is on its way, for the one that trickles.
    pending: VecDeque<u8>,
}

fn piece(block: BlockRef, len: u32) -> Vec<u8> {
    let mut octets = piece_header(BlockRef { len, ..block }).to_vec();
    octets.resize(octets.len() + len as usize, 0);
    octets
}

impl Peer {
    /// A peer that has everything, has no fast extension, and chokes nobody.
    fn new(engine: &mut Engine<usize>, now: Instant, number: usize, manner: Manner) -> Self {
        let conn = engine.accept(now, number, Transport::Tcp).unwrap();
        let peer_id = [number as u8; 20];
        let handshake = Handshake { reserved: Reserved::default(), info_hash: [7; 20], peer_id };
        let mut words = handshake.encode().to_vec();
        words.extend(Message::Bitfield(vec![0xff, 0xff, 0xff, 0xff, 0xff, 0x80]).to_vec());
        words.extend(Message::Unchoke.to_vec());
        engine.received(now, conn, Payload::copy_from(&words));
        let ear = Decoder::new(WireLimits::of(41));
        Self { conn, manner, ear, asked: VecDeque::new(), answered: 0, pending: VecDeque::new() }
    }

    fn hear(&mut self, mut octets: Payload) {
        while let Some(item) = self.ear.next(&mut octets).unwrap() {
            match item {
                Item::Message(Message::Request(block)) => self.asked.push_back(block),
                Item::Message(Message::Cancel(block)) => self.asked.retain(|&asked| asked != block),
                _ => {}
            }
        }
    }

    /// What it says in one step.
    fn answer(&mut self) -> Vec<u8> {
        let most = match self.manner {
            Manner::Honest => 10,
            Manner::MuteAfterOne => 1_usize.saturating_sub(self.answered),
            Manner::Short => usize::MAX,
            Manner::Mute | Manner::Trickling => 0,
        };
        if self.manner == Manner::Trickling && self.pending.is_empty() {
            self.pending.extend(self.asked.pop_front().into_iter().flat_map(|block| piece(block, block.len)));
        }
        let blocks: Vec<BlockRef> = self.asked.drain(..most.min(self.asked.len())).collect();
        self.answered += blocks.len();
        let short = self.manner == Manner::Short;
        let answers = blocks.into_iter().flat_map(|block| piece(block, if short { 100 } else { block.len }));
        answers.chain(self.pending.drain(..self.pending.len().min(10))).collect()
    }
}

/// Seconds until everything is there from an honest seed, with such neighbours; at most ten minutes are waited for.
fn seconds(profile: Profile, neighbours: &[Manner]) -> Option<f64> {
    let mut engine = Engine::new(setup(0, false, profile, Disposition::ALL));
    let start = Instant::from_secs(1);
    let mut now = start;
    engine.start(now);
    let manners = neighbours.iter().copied().chain([Manner::Honest]);
    let mut peers: Vec<Peer> =
        manners.enumerate().map(|(at, manner)| Peer::new(&mut engine, now, at + 1, manner)).collect();
    while now < start + Duration::from_secs(600) {
        for peer in &mut peers {
            engine.set_room(peer.conn, u32::MAX);
        }
        while let Some((conn, Chunk::Octets(octets))) = engine.poll_transmit(now) {
            engine.set_room(conn, u32::MAX);
            peers.iter_mut().filter(|peer| peer.conn == conn).for_each(|peer| peer.hear(octets.clone()));
        }
        for peer in &mut peers {
            let answer = peer.answer();
            engine.received(now, peer.conn, Payload::copy_from(&answer));
        }
        while let Some(action) = engine.poll_action() {
            if let Action::Check { piece } = action {
                engine.checked(now, piece, true);
            }
        }
        if engine.is_complete() {
            let totals = engine.totals();
            assert_eq!(totals.downloaded[0] - totals.redundant - totals.cut, geometry().total_bytes());
            return Some(now.since(start).as_secs_f64());
        }
        now += STEP;
        engine.handle_timeout(now);
    }
    None
}

#[test]
fn who_takes_requests_and_does_not_answer_keeps_no_download_from_its_end() {
    use Manner::{Mute, MuteAfterOne, Short, Trickling};
    for profile in Profile::ALL {
        let alone_s = seconds(profile, &[]).unwrap();
        for manner in [Mute, MuteAfterOne, Trickling, Short] {
            for count in [1, 2, 3, 8] {
                let took_s = seconds(profile, &vec![manner; count]);
                let most_s = alone_s + 30.0;
                assert!(
                    took_s.is_some_and(|took_s| took_s < most_s),
                    "{}: {count} {manner:?}: {took_s:?} s, {alone_s} s without them",
                    profile.name
                );
            }
        }
    }
}
