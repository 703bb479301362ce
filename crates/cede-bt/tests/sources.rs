//! Servers beside peers: what a source has taken is asked of nobody else until the end, all of it is checked, and every octet is
//! accounted for.

mod common;

use cede_bt::engine::{Action, Chunk, ConnId, SourceId};
use cede_bt::wire::{BlockRef, Decoder, Handshake, Item, Message, Reserved, WireLimits, piece_header};
use cede_bt::{Disposition, Engine, Profile, Transport};
use cede_units::{Duration, Instant};
use cede_wire::Payload;
use common::{geometry, setup};
use std::collections::HashSet;
use std::ops::Range;

/// One that downloads, from a source and perhaps from a peer that has everything.
struct Leech {
    engine: Engine<usize>,
    now: Instant,
    peer: Option<(ConnId, Decoder)>,
    /// What the peer has been asked for and has not sent.
    asked: Vec<BlockRef>,
    checked: Vec<u32>,
    is_banned: bool,
    /// A piece that is bad when it is checked first.
    bad: Option<u32>,
}

impl Leech {
    fn new(profile: Profile) -> Self {
        let mut engine = Engine::new(setup(1, false, profile, Disposition::ALL));
        let now = Instant::from_secs(1);
        engine.start(now);
        Self { engine, now, peer: None, asked: Vec::new(), checked: Vec::new(), is_banned: false, bad: None }
    }

    fn with_peer(profile: Profile) -> Self {
        let mut leech = Self::new(profile);
        let conn = leech.engine.accept(leech.now, 7, Transport::Tcp).unwrap();
        let reserved = Reserved::default().with(Reserved::FAST);
        let reserved = if profile.fast { reserved } else { Reserved::default() };
        let handshake = Handshake { reserved, info_hash: [7; 20], peer_id: [9; 20] };
        leech.peer = Some((conn, Decoder::new(WireLimits::of(geometry().pieces()))));
        leech.hear(&handshake.encode());
        let have = cede_bt::Bitfield::all(geometry().pieces()).to_octets();
        leech.hear(&Message::Bitfield(have).to_vec());
        leech.hear(&Message::Unchoke.to_vec());
        leech
    }

    fn hear(&mut self, octets: &[u8]) {
        let Some((conn, _)) = &self.peer else { return };
        self.engine.received(self.now, *conn, Payload::copy_from(octets));
        self.settle();
    }

    /// The peer sends what it was asked for first.
    fn peer_sends(&mut self) {
        if self.asked.is_empty() {
            return;
        }
        let block = self.asked.remove(0);
        let content = vec![0; block.len as usize];
        self.hear(&[&piece_header(block)[..], &content].concat());
    }

    fn settle(&mut self) {
        loop {
            while let Some(action) = self.engine.poll_action() {
                match action {
                    Action::Check { piece } => {
                        self.checked.push(piece);
                        let is_bad = self.bad.take_if(|bad| *bad == piece).is_some();
                        self.engine.checked(self.now, piece, !is_bad);
                    }
                    Action::Store { block, at, payload, .. } => {
                        assert!(geometry().number_of(block).is_some() && at + payload.len() <= block.len);
                    }
                    Action::Close { .. } => self.peer = None,
                    Action::Banned { .. } => self.is_banned = true,
                    _ => {}
                }
            }
            if let Some((conn, _)) = &self.peer {
                self.engine.set_room(*conn, u32::MAX);
            }
            let Some((_, chunk)) = self.engine.poll_transmit(self.now) else { return };
            let Chunk::Octets(mut octets) = chunk else { continue };
            let Some((_, ear)) = &mut self.peer else { continue };
            while let Some(item) = ear.next(&mut octets).unwrap() {
                match item {
                    Item::Message(Message::Request(block)) => self.asked.push(block),
                    Item::Message(Message::Cancel(block)) => self.asked.retain(|other| *other != block),
                    _ => {}
                }
            }
        }
    }

    fn deliver(&mut self, source: SourceId, range: Range<u64>) {
        let payload = Payload::Pattern { start: range.start, len: (range.end - range.start) as u32 };
        self.engine.delivered(self.now, source, range.start, payload);
        self.settle();
    }

    fn have_bytes(&self) -> u64 {
        self.engine.have().iter().map(|piece| u64::from(geometry().piece_len(piece))).sum()
    }

    /// What came is here, or came twice, or to nothing.
    fn assert_balanced(&self) {
        let totals = self.engine.totals();
        let came = totals.downloaded.iter().sum::<u64>() + totals.downloaded_web;
        let kept = self.have_bytes() + self.engine.unfinished_bytes();
        assert_eq!(came, kept + totals.redundant + totals.cut);
    }
}

fn blocks_of(range: &Range<u64>) -> Vec<(u32, u32)> {
    let length = u64::from(geometry().piece_bytes());
    range.clone().step_by(1 << 14).map(|at| ((at / length) as u32, (at % length) as u32)).collect()
}

fn piece_of(range: &Range<u64>) -> u32 {
    blocks_of(range)[0].0
}

#[test]
fn a_source_alone_gives_everything_in_runs() {
    for profile in Profile::ALL {
        let mut leech = Leech::new(profile);
        let source = leech.engine.add_source();
        let mut runs = Vec::new();
        while let Some(range) = leech.engine.claim(source, 4 * u64::from(geometry().piece_bytes())) {
            assert_eq!(leech.engine.owed_by_source(source), range.end - range.start);
            leech.deliver(source, range.clone());
            runs.push(range);
        }
        assert!(leech.engine.is_complete());
        assert!(runs.len() < geometry().pieces() as usize, "{runs:?}");
        assert_eq!(runs.iter().map(|run| run.end - run.start).sum::<u64>(), geometry().total_bytes());
        // Each goes on where the one before ended, but for the turn at the end of the content.
        let turns = runs.windows(2).filter(|pair| pair[0].end != pair[1].start).count();
        assert!(turns <= 1, "{runs:?}");
        assert_eq!(leech.engine.totals().downloaded_web, geometry().total_bytes());
        leech.assert_balanced();
    }
}

#[test]
fn nobody_is_asked_for_what_a_source_has_taken_before_the_end() {
    for profile in Profile::ALL {
        let mut leech = Leech::with_peer(profile);
        let source = leech.engine.add_source();
        let mut twice = 0;
        while let Some(range) = leech.engine.claim(source, 1) {
            let taken: HashSet<_> = blocks_of(&range).into_iter().collect();
            // All that is missing has been asked for.
            let asked: HashSet<_> = leech.asked.iter().map(|block| (block.piece, block.begin)).collect();
            let under_way = asked.union(&taken).count() as u64 * (1 << 14);
            let known = leech.have_bytes() + leech.engine.unfinished_bytes();
            let is_end = || under_way + known >= geometry().total_bytes();
            let both = leech.asked.iter().filter(|block| taken.contains(&(block.piece, block.begin))).count();
            assert!(both == 0 || is_end(), "{}: {both} of {range:?}", profile.name);
            twice += both;
            leech.deliver(source, range);
            leech.peer_sends();
        }
        for _ in 0..10_000 {
            leech.peer_sends();
        }
        assert!(leech.engine.is_complete(), "{} {twice}", profile.name);
        let totals = leech.engine.totals();
        assert!(totals.downloaded_web > 0 && totals.downloaded[0] > 0);
        leech.assert_balanced();
    }
}

#[test]
fn what_a_source_does_not_give_is_asked_of_peers() {
    let mut leech = Leech::with_peer(Profile::UTORRENT3);
    let source = leech.engine.add_source();
    let range = leech.engine.claim(source, u64::MAX).unwrap();
    // It falls silent in the middle of a block.
    leech.deliver(source, range.start..range.start + 20_000);
    for _ in 0..10_000 {
        leech.peer_sends();
    }
    leech.engine.give_back(leech.now, source);
    leech.settle();
    for _ in 0..10_000 {
        leech.peer_sends();
    }
    assert!(leech.engine.is_complete());
    leech.assert_balanced();
    assert_eq!(leech.engine.claim(source, 1), None);
}

#[test]
fn a_source_that_sends_a_bad_piece_is_one_no_longer() {
    let mut leech = Leech::new(Profile::UTORRENT3);
    let (source, other) = (leech.engine.add_source(), leech.engine.add_source());
    let range = leech.engine.claim(source, 1).unwrap();
    leech.bad = Some(piece_of(&range));
    leech.deliver(source, range);
    assert!(!leech.engine.has_source(source) && leech.engine.has_source(other));
    assert_eq!((leech.engine.claim(source, 1), leech.engine.totals().bad_pieces), (None, 1));
    while let Some(range) = leech.engine.claim(other, 1 << 20) {
        leech.deliver(other, range);
    }
    assert!(leech.engine.is_complete());
}

/// What it has begun and was interrupted in it goes on with first.
#[test]
fn a_source_ends_what_it_has_begun() {
    let mut leech = Leech::new(Profile::UTORRENT3);
    let source = leech.engine.add_source();
    let range = leech.engine.claim(source, 1 << 20).unwrap();
    let here = range.start + u64::from(geometry().piece_bytes()) + (1 << 14);
    leech.deliver(source, range.start..here);
    leech.engine.give_back(leech.now, source);
    let rest = leech.engine.claim(source, 1 << 20).unwrap();
    assert_eq!(rest, here..range.start + 2 * u64::from(geometry().piece_bytes()));
    leech.deliver(source, rest.clone());
    // What was given back untouched is a run as before.
    let next = leech.engine.claim(source, 1 << 20).unwrap();
    assert!(
        next.start == rest.end && next.end - next.start > u64::from(geometry().piece_bytes()),
        "{next:?}"
    );
}

/// A bad piece in which a source and a peer had a part is no proof against either: it is fetched again from one of them.
#[test]
fn who_had_a_part_in_a_bad_piece_is_not_blamed_alone() {
    let mut leech = Leech::with_peer(Profile::UTORRENT3);
    let source = leech.engine.add_source();
    let range = leech.engine.claim(source, 1).unwrap();
    leech.deliver(source, range.start..range.start + (1 << 14));
    leech.engine.give_back(leech.now, source);
    leech.settle();
    leech.bad = Some(piece_of(&range));
    for _ in 0..10_000 {
        leech.peer_sends();
    }
    assert!(leech.engine.has_source(source) && !leech.is_banned);
    assert!(leech.engine.is_complete() && leech.engine.totals().bad_pieces == 1);
}

#[test]
fn what_a_source_lacks_is_not_asked_of_it() {
    let mut leech = Leech::new(Profile::UTORRENT3);
    let source = leech.engine.add_source();
    let half = geometry().pieces() / 2;
    assert!(leech.engine.source_lacks(source, 0..half));
    while let Some(range) = leech.engine.claim(source, 1) {
        assert!(range.start >= geometry().offset(half, 0));
        leech.deliver(source, range);
    }
    assert_eq!(leech.engine.have().count(), geometry().pieces() - half);
    assert!(!leech.engine.source_lacks(source, 0..0));
}

/// Whatever sources and a peer do by turns, everything arrives and is accounted for.
#[test]
fn any_order_of_what_comes_leads_to_the_end() {
    bolero::check!().with_iterations(300).for_each(|steps: &[u8]| {
        let profile = Profile::ALL[steps.first().map_or(0, |step| usize::from(step % 3))];
        let mut leech = Leech::with_peer(profile);
        let sources = [leech.engine.add_source(), leech.engine.add_source()];
        let mut runs: [Option<Range<u64>>; 2] = [None, None];
        for step in steps {
            let (at, amount) = (usize::from(step & 1), u64::from(step >> 4));
            let source = sources[at];
            match step >> 1 & 7 {
                0 | 1 if runs[at].is_none() => runs[at] = leech.engine.claim(source, amount << 15),
                0..=3 => {
                    let Some(run) = &mut runs[at] else { continue };
                    let end = run.end.min(run.start + 1 + amount * 5_000);
                    let part = run.start..end;
                    run.start = end;
                    runs[at].take_if(|run| run.is_empty());
                    leech.deliver(source, part);
                }
                4 => {
                    leech.engine.give_back(leech.now, source);
                    runs[at] = None;
                }
                5 => leech.deliver(source, amount * 40_000..amount * 41_000),
                _ => leech.peer_sends(),
            }
            leech.settle();
            leech.assert_balanced();
        }
        sources.into_iter().for_each(|source| leech.engine.remove_source(leech.now, source));
        leech.settle();
        for _ in 0..5_000 {
            leech.now += Duration::from_millis(100);
            leech.engine.handle_timeout(leech.now);
            leech.settle();
            leech.peer_sends();
            if leech.engine.is_complete() {
                break;
            }
        }
        assert!(leech.engine.is_complete());
        leech.assert_balanced();
    });
}
