//! Hashes pieces as their octets come, as long as they come in order, two pieces side by side where there are two.
//!
//! Two take little more time than one ([`cede_bt::abreast`]), but pieces come one behind the other, most of all from a seed.
//! So the octets of one piece are held, [`MAX_HELD_BYTES`] at most, until those of another come, and are hashed with them; but
//! only where they come by the dozen, since what comes slowly would fill few octets of each buffer that it keeps from
//! other use. Octets that come twice or out of order are not hashed here: the piece is read back.

use cede_bt::digest::{Digest, Hasher};
use cede_bt::metainfo::Info;
use cede_wire::Payload;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Octets of the piece that waits for another: no more than a processor's cache holds beside what waits to be written.
const MAX_HELD_BYTES: u64 = 4 << 20;
/// Buffers that they may be in.
const MAX_HELD_BUFFERS: usize = 16;

/// How far a piece has been hashed.
pub struct Partial {
    hasher: Hasher,
    /// Octets from its beginning that have come in order.
    at: u32,
    /// Something came where there had been something already.
    is_stale: bool,
}

impl Partial {
    /// How many octets from the beginning of the piece have been hashed.
    pub const fn at(&self) -> u32 {
        self.at
    }

    /// The octets behind those, read back.
    pub fn update(&mut self, octets: &[u8]) {
        self.hasher.update(octets);
        self.at += octets.len() as u32;
    }

    /// The hash.
    pub fn finish(self) -> Digest {
        self.hasher.finish()
    }
}

/// What waits for the octets of another piece.
#[derive(Default)]
struct Held {
    piece: u32,
    parts: VecDeque<Payload>,
    bytes: u64,
    buffers: usize,
}

impl Held {
    fn push(&mut self, payload: Payload) {
        self.buffers += usize::from(!shares_buffer(self.parts.back(), &payload));
        self.bytes += u64::from(payload.len());
        self.parts.push_back(payload);
    }

    /// The first octets, no more than so many.
    fn pop(&mut self, most: u32) -> Option<Payload> {
        let front = self.parts.front_mut()?;
        let payload = front.split_to(most);
        if front.is_empty() {
            self.parts.pop_front();
            self.buffers -= usize::from(!shares_buffer(self.parts.front(), &payload));
        }
        self.bytes -= u64::from(payload.len());
        Some(payload)
    }

    fn is_too_much(&self) -> bool {
        self.bytes > MAX_HELD_BYTES || self.buffers > MAX_HELD_BUFFERS
    }
}

fn shares_buffer(neighbour: Option<&Payload>, payload: &Payload) -> bool {
    match (neighbour, payload) {
        (Some(Payload::Shared { buffer, .. }), Payload::Shared { buffer: other, .. }) => {
            Arc::ptr_eq(buffer, other)
        }
        _ => false,
    }
}

/// The pieces of which something has come.
pub struct Hashing {
    info: Arc<Info>,
    partial: HashMap<u32, Partial>,
    held: Held,
}

fn octets(payload: &Payload) -> &[u8] {
    payload.as_slice().unwrap_or_default()
}

impl Hashing {
    pub fn new(info: Arc<Info>) -> Self {
        Self { info, partial: HashMap::new(), held: Held::default() }
    }

    /// Octets of a piece have come, and may wait for those of another.
    pub fn take(&mut self, piece: u32, begin: u32, payload: &Payload, may_wait: bool) {
        let fresh = || Partial { hasher: self.info.hasher(piece), at: 0, is_stale: false };
        let partial = self.partial.entry(piece).or_insert_with(fresh);
        if begin == partial.at {
            partial.at += payload.len();
            self.hash(piece, payload.clone());
            while (self.held.is_too_much() || !may_wait) && self.hash_alone() {}
        } else if begin < partial.at {
            partial.is_stale = true;
        }
    }

    /// Hashes octets with those of the piece that waits for others, as far as there are as many; the rest waits in its place.
    fn hash(&mut self, piece: u32, mut payload: Payload) {
        while self.held.piece != piece && !payload.is_empty() {
            let Some(waited) = self.held.pop(payload.len()) else { break };
            let came = payload.split_to(waited.len());
            if let [Some(a), Some(b)] = self.partial.get_disjoint_mut([&self.held.piece, &piece]) {
                Hasher::update_both(&mut a.hasher, octets(&waited), &mut b.hasher, octets(&came));
            }
        }
        if !payload.is_empty() {
            self.held.piece = piece;
            self.held.push(payload);
        }
    }

    /// Hashes what was held first; false where nothing is.
    fn hash_alone(&mut self) -> bool {
        let Some(payload) = self.held.pop(u32::MAX) else { return false };
        if let Some(partial) = self.partial.get_mut(&self.held.piece) {
            partial.hasher.update(octets(&payload));
        }
        true
    }

    /// Whether octets of a piece wait for those of another, and may be hashed for less if that is waited for.
    pub fn is_waiting(&self, piece: u32) -> bool {
        self.held.piece == piece && self.held.bytes > 0
    }

    /// How far a piece has come in order, everything of that hashed; none where it has to be read back as a whole. It begins anew after this.
    pub fn remove(&mut self, piece: u32) -> Option<Partial> {
        let is_stale = self.partial.get(&piece).is_none_or(|partial| partial.is_stale);
        if self.held.piece == piece {
            while !is_stale && self.hash_alone() {}
            self.held = Held::default();
        }
        self.partial.remove(&piece).filter(|partial| !partial.is_stale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_bt::metainfo::{File, Writer, sha1};
    use cede_units::Stream as Random;

    const PIECE: usize = 64 << 10;

    /// A torrent of so many pieces, and its content.
    fn subject(pieces: usize) -> (Hashing, Vec<u8>) {
        let octets: Vec<u8> =
            (0..(pieces * PIECE) as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let file = File {
            path: vec!["t".to_owned()],
            length: octets.len() as u64,
            offset: 0,
            is_padding: false,
            is_executable: false,
        };
        let hashes = octets.chunks(PIECE).flat_map(sha1).collect();
        let writer = Writer {
            name: "t".into(),
            piece_length: PIECE as u32,
            pieces: hashes,
            files: vec![file],
            ..Writer::default()
        };
        (Hashing::new(Arc::new(Info::parse(&writer.info().encode()).unwrap())), octets)
    }

    fn part(octets: &[u8], piece: usize, begin: usize, len: usize) -> Payload {
        Payload::copy_from(&octets[piece * PIECE + begin..][..len])
    }

    #[test]
    fn pieces_have_their_hashes_in_whatever_turns_their_octets_come() {
        const PIECES: usize = 6;
        for seed in 0..50 {
            let mut random = Random::named(seed, "turns");
            let (mut hashing, octets) = subject(PIECES);
            let (mut at, mut good) = ([0; PIECES], 0);
            while good < PIECES {
                let piece = random.below(PIECES as u64) as usize;
                let len = (1 + random.below(20_000) as usize).min(PIECE - at[piece]);
                if len == 0 {
                    continue;
                }
                let payload = part(&octets, piece, at[piece], len);
                hashing.take(piece as u32, at[piece] as u32, &payload, random.below(4) > 0);
                at[piece] += len;
                if at[piece] == PIECE {
                    let partial = hashing.remove(piece as u32).unwrap();
                    assert_eq!(partial.at() as usize, PIECE);
                    let expected = sha1(&octets[piece * PIECE..(piece + 1) * PIECE]);
                    assert_eq!(partial.finish(), Digest::V1(expected), "{seed} {piece}");
                    good += 1;
                }
            }
            assert!(hashing.partial.is_empty() && hashing.held.bytes == 0);
        }
    }

    #[test]
    fn what_came_twice_is_read_back_and_what_is_missing_is_not_hashed() {
        let (mut hashing, octets) = subject(2);
        for begin in [0, 1_000, 500] {
            hashing.take(0, begin, &part(&octets, 0, begin as usize, 1_000), true);
        }
        assert!(hashing.is_waiting(0) && hashing.remove(0).is_none() && !hashing.is_waiting(0));
        hashing.take(1, 0, &part(&octets, 1, 0, 1_000), true);
        hashing.take(1, 3_000, &part(&octets, 1, 3_000, 1_000), true);
        let mut partial = hashing.remove(1).unwrap();
        assert_eq!(partial.at(), 1_000);
        partial.update(&octets[PIECE + 1_000..]);
        assert_eq!(partial.finish(), Digest::V1(sha1(&octets[PIECE..])));
    }

    #[test]
    fn a_piece_does_not_wait_beyond_the_octets_of_another() {
        let (mut hashing, octets) = subject(2);
        hashing.take(0, 0, &part(&octets, 0, 0, PIECE), true);
        hashing.take(1, 0, &part(&octets, 1, 0, PIECE - 1), true);
        assert!(hashing.is_waiting(0) && !hashing.is_waiting(1));
        hashing.take(1, PIECE as u32 - 1, &part(&octets, 1, PIECE - 1, 1), true);
        assert!(!hashing.is_waiting(0) && !hashing.is_waiting(1));
        hashing.take(0, 0, &part(&octets, 0, 0, 1), false);
        assert!(!hashing.is_waiting(0));
    }

    #[test]
    fn what_waits_keeps_few_buffers_and_octets() {
        let (mut hashing, octets) = subject(2);
        let buffer: Vec<u8> = octets[..PIECE].to_vec();
        for at in 0..200_u32 {
            let shared: Arc<[u8]> = Arc::from(&buffer[..]);
            hashing.take(0, at * 100, &Payload::from_part(&shared, at * 100, 100), true);
            assert!(hashing.held.buffers <= MAX_HELD_BUFFERS);
            assert!(hashing.held.parts.len() <= MAX_HELD_BUFFERS);
        }
        assert_eq!(hashing.held.buffers, MAX_HELD_BUFFERS);
        let (mut hashing, octets) = subject((6 << 20) / PIECE);
        let shared: Arc<[u8]> = Arc::from(&octets[..]);
        for begin in (0..6 << 20).step_by(PIECE) {
            hashing.take(0, begin, &Payload::from_part(&shared, begin, PIECE as u32), true);
            assert!(hashing.held.bytes <= MAX_HELD_BYTES && hashing.held.buffers == 1);
        }
        assert_eq!(hashing.remove(0).unwrap().finish(), Digest::V1(sha1(&octets)));
    }
}
