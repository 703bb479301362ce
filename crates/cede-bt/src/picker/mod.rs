//! Which blocks to ask a peer for.
//!
//! Sources: mainline 4.0.2: pieces that have been begun come first, the rarest of them, for a seed only those begun with
//! seeds; then random pieces until four are complete, and the rarest, ties at random. libtorrent 2.0.8: a begun piece
//! comes first among equally rare ones only, unless there are more than one and a half for each peer; which of them stays the
//! same until it is asked for whole, and is the one with the lowest number while a peer has fewer than four pieces. End game:
//! mainline asks everybody for what is outstanding; libtorrent, once every missing piece has been begun, asks a peer that has
//! nothing else to do for any block of a piece of which all have been asked for.
//!
//! **What it leaves out.** libtorrent's sorting of peers by speed.
//! **How it was validated.** Orders of choice in `tests.rs`; the bookkeeping against a naive count there.

mod begun;
mod claim;
mod partial;
mod rarity;
mod suspect;
#[cfg(test)]
mod tests;
mod turns;
mod whole;

use crate::bitfield::Bitfield;
use crate::geometry::Geometry;
use crate::wire::BlockRef;
use alloc::vec;
use alloc::vec::Vec;
pub use begun::Begun;
use cede_units::{Duration, Stream};
use partial::{Block, Partial};
use rarity::Rarity;
use suspect::Suspect;
pub use turns::Turns;

/// When a piece that has been begun comes before others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartialRule {
    /// Always (mainline).
    Strict,
    /// Among equally rare ones.
    EquallyRare,
    /// Among equally rare ones, which stand in one order throughout; in the order of their numbers while rarity does not
    /// matter yet (libtorrent).
    Listed,
}

/// What may be asked for twice, once everything has been asked for or begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndGame {
    /// Every block, of everybody (mainline).
    Everyone,
    /// Every block of a second peer that has no other request.
    Strict,
    /// Once every missing piece has been begun: a peer that has no other request is asked for any block of a piece of which
    /// all have been asked for (libtorrent).
    AllBegun,
}

/// Which of two pieces that are alike otherwise is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The rarer one.
    RarestFirst,
    /// The commoner one: of a peer that is late, so that all of those work on the same pieces (libtorrent).
    CommonestFirst,
    /// The one with the lower number.
    InOrder,
}

/// Which pieces are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PickerRule {
    /// The order is random until so many pieces are complete.
    pub random_first: u32,
    /// Pieces that have been begun.
    pub partials: PartialRule,
    /// The end.
    pub end_game: EndGame,
    /// A peer that brings a piece within this time is asked for whole ones.
    pub whole_within: Option<Duration>,
}

/// What a piece came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// How many other peers have been asked for the same block.
    pub others: u32,
    /// The piece is whole and wants to be checked.
    pub whole: bool,
}

/// Who sent a piece.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// Whose blocks were taken.
    pub peers: Vec<u32>,
    /// Some blocks came from several, so that one may have spoilt what another gets the blame for.
    pub shared: bool,
}

/// The piece that a peer is asked for next.
enum Next {
    /// One that has been begun, by its place.
    Begun(usize),
    /// One that has not.
    Fresh(u32),
}

const NOT_BEGUN: u32 = u32::MAX;
/// libtorrent: more begun pieces than one and a half for each peer come first whatever their rarity.
const PARTIALS_PER_PEER: f64 = 1.5;

/// What we have, what has been begun, and what to ask for next.
#[derive(Clone, Debug)]
pub struct Picker {
    geometry: Geometry,
    rule: PickerRule,
    have: Bitfield,
    wanted: Bitfield,
    /// Wanted pieces that we have not.
    missing: u32,
    rarity: Rarity,
    partials: Vec<Partial>,
    /// Pieces that are asked of one peer each.
    suspects: Vec<Suspect>,
    /// What the order of equally rare pieces is made of, where it is not drawn each time.
    listing: Option<u32>,
    turns: Turns,
    /// Where a piece stands in `partials`.
    begun: Vec<u32>,
    /// Blocks of begun pieces that nobody has been asked for.
    free: u32,
    random: Stream,
}

impl Picker {
    /// A picker for a torrent of which `have` is here.
    #[must_use]
    pub fn new(geometry: Geometry, rule: PickerRule, have: Bitfield, random: Stream) -> Self {
        let pieces = geometry.pieces();
        let mut picker = Self {
            geometry,
            rule,
            have,
            wanted: Bitfield::all(pieces),
            missing: 0,
            rarity: Rarity::new(pieces),
            partials: Vec::new(),
            suspects: Vec::new(),
            listing: None,
            turns: Turns::default(),
            begun: vec![NOT_BEGUN; pieces as usize],
            free: 0,
            random,
        };
        if rule.partials == PartialRule::Listed {
            picker.listing = Some(picker.random.next_u32());
        }
        picker.list_missing();
        picker
    }

    /// What is here and has been checked.
    #[must_use]
    pub const fn have(&self) -> &Bitfield {
        &self.have
    }

    /// What is wanted, here or not.
    #[must_use]
    pub const fn wanted(&self) -> &Bitfield {
        &self.wanted
    }

    /// Whether a piece is wanted and not here.
    #[must_use]
    pub fn lacks(&self, piece: u32) -> bool {
        !self.have.has(piece) && self.wanted.has(piece)
    }

    /// How many wanted pieces are not here.
    #[must_use]
    pub const fn missing(&self) -> u32 {
        self.missing
    }

    /// Whether everything wanted is here.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Something is outstanding, and every block that is wanted has been asked for; or every piece begun, where the rule says
    /// so.
    #[must_use]
    pub fn is_end_game(&self) -> bool {
        let enough = self.free == 0 || self.rule.end_game == EndGame::AllBegun;
        enough && self.rarity.len() == 0 && !self.partials.is_empty()
    }

    /// Whether a block of a piece may be asked for that nobody has been asked for.
    #[must_use]
    pub fn has_free(&self, piece: u32) -> bool {
        match self.begun.get(piece as usize) {
            Some(&NOT_BEGUN) | None => false,
            Some(&index) => self.partials[index as usize].free > 0,
        }
    }

    /// How many peers have been asked for a block that is not here.
    #[must_use]
    pub fn copies(&self, block: BlockRef) -> u8 {
        let state = self.find(block).map(|(index, number)| self.partials[index].blocks[number as usize]);
        if let Some(Block::Requested(count)) = state { count } else { 0 }
    }

    /// How many peers have a piece.
    #[must_use]
    pub fn availability(&self, piece: u32) -> u32 {
        u32::from(self.rarity.availability(piece))
    }

    /// Pieces that have been begun.
    #[must_use]
    pub const fn begun(&self) -> usize {
        self.partials.len()
    }

    /// Wants these pieces and no others; what has been begun is finished.
    pub fn want(&mut self, wanted: Bitfield) {
        for piece in 0..self.geometry.pieces() {
            self.rarity.remove(piece);
        }
        self.wanted = wanted;
        self.list_missing();
        self.leave_finished_tiers();
    }

    /// A peer has this piece.
    pub fn gain(&mut self, piece: u32) {
        if piece < self.geometry.pieces() {
            self.rarity.gain(piece);
        }
    }

    /// A peer that had these pieces is gone.
    pub fn lose_all(&mut self, pieces: &Bitfield) {
        pieces.iter().for_each(|piece| self.rarity.lose(piece));
    }

    /// Asks a peer that has `theirs` for blocks, until there are `wanted`; they are all of one piece. `peers` is the
    /// number of connections. Pieces are taken in this `order`.
    pub fn pick(
        &mut self,
        theirs: &Bitfield,
        (peers, order): (usize, Order),
        wanted: u32,
        out: &mut Vec<BlockRef>,
    ) {
        let Some(index) = self.choose(theirs, peers, order) else { return };
        let partial = &mut self.partials[index];
        for _ in 0..wanted {
            let Some(block) = partial.take_free(&self.geometry) else { break };
            self.free -= 1;
            out.push(block);
        }
    }

    /// Asks for blocks of one piece, whatever its rarity: one that may be requested while choked.
    pub fn pick_of(&mut self, piece: u32, wanted: u32, out: &mut Vec<BlockRef>) {
        if !self.lacks(piece) {
            return;
        }
        let index = match self.begun[piece as usize] {
            NOT_BEGUN => self.begin(piece, false),
            index => index as usize,
        };
        for _ in 0..wanted {
            let Some(block) = self.partials[index].take_free(&self.geometry) else { break };
            self.free -= 1;
            out.push(block);
        }
    }

    /// Asks a peer once more for blocks that others have been asked for, but not for those that it owes already
    /// (`owes`).
    pub fn pick_again(&mut self, theirs: &Bitfield, owes: &[BlockRef], wanted: u32, out: &mut Vec<BlockRef>) {
        let (limit, wanted) = match self.rule.end_game {
            EndGame::Everyone => (u8::MAX, wanted),
            EndGame::Strict if owes.is_empty() => (2, 1),
            EndGame::AllBegun if owes.is_empty() => (u8::MAX, 1),
            EndGame::Strict | EndGame::AllBegun => return,
        };
        let mut outstanding = self.outstanding(theirs, owes, limit);
        for _ in 0..wanted.min(outstanding.len() as u32) {
            let drawn = self.random.below(outstanding.len() as u64) as usize;
            let (index, number) = outstanding.swap_remove(drawn);
            let partial = &mut self.partials[index];
            if let Block::Requested(count) = &mut partial.blocks[number] {
                *count = count.saturating_add(1);
            }
            partial.shared = true;
            out.push(self.geometry.block(partial.piece, number as u32));
        }
    }

    /// Requests for these blocks have come to nothing.
    pub fn release(&mut self, blocks: &[BlockRef]) {
        for &block in blocks {
            let Some((index, number)) = self.find(block) else { continue };
            let free = self.partials[index].free;
            self.partials[index].release(number);
            self.free += self.partials[index].free - free;
        }
    }

    /// Pieces of which nothing is here, and nothing asked for, have not been begun: they would be as good as those of which much is.
    pub fn leave_untouched(&mut self) {
        let untouched = |partial: &&Partial| partial.free as usize == partial.blocks.len();
        let pieces: Vec<u32> = self.partials.iter().filter(untouched).map(|partial| partial.piece).collect();
        pieces.into_iter().for_each(|piece| self.begin_anew(piece));
    }

    /// Whether a block is still waited for, and may come from `peer`.
    #[must_use]
    pub fn awaits(&self, block: BlockRef, peer: u32) -> bool {
        let is_due = self.find(block).is_some_and(|(index, number)| {
            !matches!(self.partials[index].blocks[number as usize], Block::Here(_))
        });
        is_due && self.may_come_from(block.piece, peer)
    }

    /// Somebody sends what he has not been asked for, or not alone: nobody is to blame by himself, unless it comes from one peer
    /// only.
    pub fn note_shared(&mut self, block: BlockRef) {
        if let Some((index, _)) = self.find(block).filter(|_| !self.is_suspect(block.piece)) {
            self.partials[index].shared = true;
        }
    }

    /// A block has come from `peer`. `None` where nobody waits for it.
    pub fn arrive(&mut self, block: BlockRef, peer: u32) -> Option<Arrival> {
        let (index, number) = self.find(block).filter(|_| self.may_come_from(block.piece, peer))?;
        let partial = &mut self.partials[index];
        let free = partial.free;
        let others = u32::from(partial.arrive(number, peer)?);
        self.free -= free - partial.free;
        Some(Arrival { others, whole: partial.missing == 0 })
    }

    /// A whole piece has been checked. Where it is bad, it is wanted again. Names those who sent it.
    pub fn checked(&mut self, piece: u32, good: bool) -> Origin {
        let Some(&index) = self.begun.get(piece as usize).filter(|&&index| index != NOT_BEGUN) else {
            return Origin::default();
        };
        let partial = self.remove_partial(index as usize);
        self.free -= partial.free;
        if good {
            self.suspects.retain(|suspect| suspect.piece != piece);
            self.missing -= u32::from(self.have.insert(piece) && self.wanted.has(piece));
            self.leave_finished_tiers();
        } else {
            self.forget_owner(piece);
            if self.lacks(piece) {
                self.rarity.insert(piece);
            }
        }
        Origin { peers: partial.contributors(), shared: partial.shared }
    }

    fn list_missing(&mut self) {
        let lacking: Vec<u32> = (0..self.geometry.pieces()).filter(|&piece| self.lacks(piece)).collect();
        self.missing = lacking.len() as u32;
        for piece in lacking.into_iter().filter(|&piece| self.begun[piece as usize] == NOT_BEGUN) {
            self.rarity.insert(piece);
        }
    }

    fn find(&self, block: BlockRef) -> Option<(usize, u32)> {
        let number = self.geometry.number_of(block)?;
        let index = self.begun[block.piece as usize];
        (index != NOT_BEGUN).then_some((index as usize, number))
    }

    /// The begun piece that a peer is asked for next, begun now if need be.
    fn choose(&mut self, theirs: &Bitfield, peers: usize, order: Order) -> Option<usize> {
        let seeds_only = self.rule.partials == PartialRule::Strict && theirs.is_full();
        let of_seeds = |partial: &Partial| partial.from_seed || !seeds_only;
        let partial = if self.free > 0 { self.best_partial(theirs, order, of_seeds) } else { None };
        let strict =
            self.rule.partials == PartialRule::Strict || self.is_random_first() || self.has_many_begun(peers);
        if strict && partial.is_some() {
            return partial;
        }
        let fresh = self.best_fresh(theirs, order);
        match self.better(partial, fresh, order) {
            Some(Next::Begun(index)) => Some(index),
            Some(Next::Fresh(piece)) => Some(self.begin(piece, theirs.is_full())),
            // What was begun with others is asked of a seed where nothing else is left.
            None if seeds_only && self.free > 0 => self.best_partial(theirs, order, |_| true),
            None => None,
        }
    }

    /// More pieces have been begun than there should be with so many peers.
    fn has_many_begun(&self, peers: usize) -> bool {
        self.partials.len() as f64 > PARTIALS_PER_PEER * peers as f64
    }

    /// Pieces with the lowest rank come first.
    fn rank(&self, piece: u32, order: Order) -> u32 {
        let availability = || self.rarity.availability(piece);
        match order {
            Order::RarestFirst => u32::from(availability()),
            Order::CommonestFirst => u32::from(u16::MAX - availability()),
            Order::InOrder => piece,
        }
    }

    /// Which of the two comes first: the begun one among equally rare ones.
    fn better(&self, begun: Option<usize>, fresh: Option<u32>, order: Order) -> Option<Next> {
        match (begun, fresh) {
            (Some(index), Some(piece))
                if self.rank(piece, order) < self.rank(self.partials[index].piece, order) =>
            {
                Some(Next::Fresh(piece))
            }
            (Some(index), _) => Some(Next::Begun(index)),
            (None, fresh) => fresh.map(Next::Fresh),
        }
    }

    /// The first begun piece in this order that has something to ask for.
    fn best_partial(
        &mut self,
        theirs: &Bitfield,
        order: Order,
        fits: impl Fn(&Partial) -> bool,
    ) -> Option<usize> {
        let by_number = self.rule.partials == PartialRule::Listed && self.is_random_first();
        let (mut best, mut lowest, mut ties) = (None, (u32::MAX, u32::MAX), 0);
        for (index, partial) in self.partials.iter().enumerate() {
            if partial.free == 0 || !theirs.has(partial.piece) || !fits(partial) {
                continue;
            }
            let rank = if by_number { partial.piece } else { self.rank(partial.piece, order) };
            let key = (rank, self.listing.map_or(0, |listing| scattered(partial.piece ^ listing)));
            if key > lowest {
                continue;
            }
            ties = if key < lowest { 1 } else { ties + 1 };
            lowest = key;
            if ties == 1 || self.random.below(ties) == 0 {
                best = Some(index);
            }
        }
        best
    }

    /// There is too little to offer yet for rarity to matter.
    fn is_random_first(&self) -> bool {
        self.have.count() < self.rule.random_first
    }

    /// A piece that has not been begun: the first in this order that the peer has, or any while there is little to offer.
    fn best_fresh(&mut self, theirs: &Bitfield, order: Order) -> Option<u32> {
        match order {
            Order::InOrder => theirs.iter_beyond(&self.have).find(|&piece| self.rarity.has(piece)),
            _ if self.is_random_first() => self.any_fresh(theirs),
            Order::RarestFirst => {
                self.rarity.buckets().find_map(|bucket| first_from(bucket, theirs, &mut self.random))
            }
            Order::CommonestFirst => {
                self.rarity.buckets().filter_map(|bucket| first_from(bucket, theirs, &mut self.random)).last()
            }
        }
    }

    fn any_fresh(&mut self, theirs: &Bitfield) -> Option<u32> {
        let everything = self.rarity.buckets().map(<[u32]>::len).sum::<usize>() as u64;
        if everything == 0 {
            return None;
        }
        let start = self.random.below(everything) as usize;
        let all = || self.rarity.buckets().flatten().copied();
        all().skip(start).chain(all().take(start)).find(|&piece| theirs.has(piece))
    }

    fn begin(&mut self, piece: u32, from_seed: bool) -> usize {
        self.rarity.remove(piece);
        let partial = Partial::new(&self.geometry, piece, from_seed);
        self.free += partial.free;
        self.begun[piece as usize] = self.partials.len() as u32;
        self.partials.push(partial);
        self.partials.len() - 1
    }

    fn remove_partial(&mut self, index: usize) -> Partial {
        let partial = self.partials.swap_remove(index);
        self.begun[partial.piece as usize] = NOT_BEGUN;
        if let Some(moved) = self.partials.get(index) {
            self.begun[moved.piece as usize] = index as u32;
        }
        partial
    }

    fn outstanding(&self, theirs: &Bitfield, owes: &[BlockRef], limit: u8) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let full = self.rule.end_game == EndGame::AllBegun;
        let fits = |partial: &Partial| theirs.has(partial.piece) && !(full && partial.free > 0);
        for (index, partial) in self.partials.iter().enumerate().filter(|(_, partial)| fits(partial)) {
            for (number, block) in partial.blocks.iter().enumerate() {
                let asked = matches!(block, Block::Requested(count) if *count < limit);
                if asked && !owes.contains(&self.geometry.block(partial.piece, number as u32)) {
                    found.push((index, number));
                }
            }
        }
        found
    }
}

/// A number for a number, in no visible order (Knuth's multiplicative hash).
const fn scattered(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b1).rotate_left(16).wrapping_mul(0x9e37_79b1)
}

/// The first piece of a bucket that a peer has, from a random place on.
fn first_from(bucket: &[u32], theirs: &Bitfield, random: &mut Stream) -> Option<u32> {
    if bucket.is_empty() {
        return None;
    }
    let start = random.below(bucket.len() as u64) as usize;
    let (before, after) = bucket.split_at(start);
    after.iter().chain(before).copied().find(|&piece| theirs.has(piece))
}
