//! Sources that are no peers: servers that have the content and give runs of it (BEP 19).
//!
//! The driver asks what to fetch ([`Engine::claim`]), hands in what comes ([`Engine::delivered`]), and gives back what does not
//! ([`Engine::give_back`]). Nobody else is asked for what a source has taken, until the very end. Its pieces are checked as
//! all others are, and a source that has sent a bad one alone is one no longer ([`Engine::has_source`]).

use super::{Action, Engine, PeerAddress};
use crate::bitfield::Bitfield;
use crate::geometry::BLOCK_BYTES;
use crate::wire::BlockRef;
use alloc::vec::Vec;
use cede_units::Instant;
use cede_wire::Payload;
use core::ops::Range;

/// A source takes one of so many parts of its share of what is missing at a time, lest one that is slow keeps the last of it from
/// others, where there are any.
const SHARES: u64 = 4;
/// Zeros that stand for padding.
const ZEROS: [u8; 4096] = [0; 4096];

/// The name of a source; never given twice, and no connection's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SourceId(u32);

/// A source.
#[derive(Debug)]
pub(super) struct Source {
    id: SourceId,
    /// What may be asked of it.
    have: Bitfield,
    /// What it has taken and has not come.
    owed: Vec<BlockRef>,
    /// The block that is coming, and how much of it has.
    coming: Option<(BlockRef, u32)>,
    /// The piece behind the last that it has taken.
    next: Option<u32>,
}

/// The source of that name. Of a part of the engine, whose other parts are at hand meanwhile.
fn named(sources: &mut [Source], id: SourceId) -> Option<&mut Source> {
    sources.iter_mut().find(|source| source.id == id)
}

impl Source {
    pub(super) fn leave_piece(&mut self, piece: u32) {
        self.owed.retain(|block| block.piece != piece);
    }

    /// What is under way of a block has come from elsewhere, or comes to nothing.
    pub(super) fn drop_part(&mut self) -> u64 {
        self.coming.take().map_or(0, |(_, came)| came.into())
    }

    /// Octets that came of a block that is not whole.
    pub(super) fn part(&self) -> u64 {
        self.coming.map_or(0, |(_, came)| came.into())
    }
}

impl<A: PeerAddress> Engine<A> {
    /// One more source, which has everything.
    pub fn add_source(&mut self) -> SourceId {
        self.generation += 1;
        let (id, have) = (SourceId(self.generation), Bitfield::all(self.geometry.pieces()));
        self.sources.push(Source { id, have, owed: Vec::new(), coming: None, next: None });
        id
    }

    fn source(&self, id: SourceId) -> Option<&Source> {
        self.sources.iter().find(|source| source.id == id)
    }

    /// Whether it still is one: it has not sent a bad piece, and has not been removed.
    #[must_use]
    pub fn has_source(&self, id: SourceId) -> bool {
        self.source(id).is_some()
    }

    /// It does not have these pieces. Says whether it has others that are missing.
    pub fn source_lacks(&mut self, id: SourceId, pieces: Range<u32>) -> bool {
        let Some(source) = named(&mut self.sources, id) else { return false };
        for piece in pieces {
            source.have.remove(piece);
        }
        source.have.iter().any(|piece| self.picker.lacks(piece))
    }

    /// It is one no longer.
    pub fn remove_source(&mut self, now: Instant, id: SourceId) {
        self.give_back(now, id);
        self.sources.retain(|source| source.id != id);
    }

    /// Takes a run of the content for a source, of about so many octets, one piece at least; where it begins and ends. None where
    /// there is nothing to take at present.
    pub fn claim(&mut self, id: SourceId, bytes_max: u64) -> Option<Range<u64>> {
        let others = (self.list.len() + self.sources.len()).saturating_sub(1) as u64;
        let missing = u64::from(self.picker.missing()) * u64::from(self.geometry.piece_bytes());
        let share = if others == 0 { missing } else { missing / (SHARES * self.sources.len() as u64) };
        let bytes_max = bytes_max.min(share);
        let (open, next) = self.open_to_source(id)?;
        let mut blocks = Vec::new();
        for open in self.picker.before_others(&open).iter().chain([&open]) {
            if blocks.is_empty() {
                self.picker.claim(open, (id.0, next), bytes_max, &mut blocks);
            }
        }
        let (first, last) = (*blocks.first()?, *blocks.last()?);
        self.note_claim(id, blocks);
        let end = self.geometry.offset(last.piece, last.begin) + u64::from(last.len);
        Some(self.geometry.offset(first.piece, first.begin)..end)
    }

    /// Takes those of some pieces that nobody else has: what a server that only gives whole files will send.
    pub fn claim_all(&mut self, id: SourceId, pieces: Range<u32>) {
        let Some((open, _)) = self.open_to_source(id) else { return };
        let mut blocks = Vec::new();
        self.picker.claim_all(&open, pieces, &mut blocks);
        self.note_claim(id, blocks);
    }

    /// What may be asked of a source, and where it is to go on.
    fn open_to_source(&self, id: SourceId) -> Option<(Bitfield, Option<u32>)> {
        let source = self.source(id)?;
        let mut open = source.have.clone();
        for piece in self.picker.closed_to(id.0) {
            open.remove(piece);
        }
        Some((open, source.next))
    }

    fn note_claim(&mut self, id: SourceId, blocks: Vec<BlockRef>) {
        blocks.iter().for_each(|block| self.picker.assign(block.piece, id.0));
        let Some(source) = named(&mut self.sources, id) else { return };
        source.next = blocks.last().map(|block| block.piece + 1).or(source.next);
        source.owed.extend(blocks);
    }

    /// Octets that a source has taken and that have neither come, from it or from others, nor been given back.
    #[must_use]
    pub fn owed_by_source(&self, id: SourceId) -> u64 {
        self.source(id).map_or(0, |source| source.owed.iter().map(|block| u64::from(block.len)).sum())
    }

    /// Octets of the content have come from a source, from this place on. What it has not taken is of no use.
    pub fn delivered(&mut self, now: Instant, id: SourceId, offset: u64, payload: Payload) {
        self.totals.downloaded_web += u64::from(payload.len());
        self.take(now, id, offset, payload);
    }

    /// The content is zeros there, as everybody knows: nothing has to come.
    pub fn pass_padding(&mut self, now: Instant, id: SourceId, range: Range<u64>) {
        for from in range.clone().step_by(ZEROS.len()) {
            let len = (range.end - from).min(ZEROS.len() as u64) as usize;
            self.take(now, id, from, Payload::copy_from(&ZEROS[..len]));
        }
    }

    fn take(&mut self, now: Instant, id: SourceId, mut offset: u64, mut payload: Payload) {
        let piece_bytes = u64::from(self.geometry.piece_bytes());
        while !payload.is_empty() && offset < self.geometry.total_bytes() {
            let (piece, within) = ((offset / piece_bytes) as u32, (offset % piece_bytes) as u32);
            let block = self.geometry.block(piece, within / BLOCK_BYTES);
            let at = within - block.begin;
            // Behind a short piece is nothing that is stored.
            let is_content = at < block.len;
            let room = if is_content { block.len - at } else { self.geometry.piece_bytes() - within };
            let part = payload.split_to(room.min(payload.len()));
            offset += u64::from(part.len());
            if is_content {
                self.take_part(now, id, (block, at), part);
            }
        }
    }

    fn take_part(&mut self, now: Instant, id: SourceId, (block, at): (BlockRef, u32), payload: Payload) {
        let len = payload.len();
        let is_awaited = self.picker.awaits(block, id.0);
        let Some(source) = named(&mut self.sources, id) else { return };
        if at == 0 && is_awaited && source.owed.contains(&block) {
            self.totals.cut += source.drop_part();
            source.coming = Some((block, 0));
        }
        if source.coming != Some((block, at)) || !is_awaited {
            self.totals.redundant += u64::from(len);
            return;
        }
        source.coming = Some((block, at + len));
        self.act(Action::Store { conn: None, block, at, payload });
        if at + len == block.len {
            self.on_source_block(now, id, block);
        }
    }

    fn on_source_block(&mut self, now: Instant, id: SourceId, block: BlockRef) {
        let Some(source) = named(&mut self.sources, id) else { return };
        source.coming = None;
        source.owed.retain(|&owed| owed != block);
        match self.picker.arrive(block, id.0) {
            None => self.totals.cut += u64::from(block.len),
            Some(arrival) => {
                if arrival.others > 0 {
                    self.cancel_elsewhere(now, u32::MAX, block);
                }
                if arrival.whole {
                    self.act(Action::Check { piece: block.piece });
                }
            }
        }
    }

    /// What a source has taken and has not come is free again: others are asked.
    pub fn give_back(&mut self, now: Instant, id: SourceId) {
        let Some(source) = named(&mut self.sources, id) else { return };
        self.totals.cut += source.drop_part();
        let owed = core::mem::take(&mut source.owed);
        source.next = owed.first().map(|block| block.piece).or(source.next);
        self.picker.release(&owed);
        self.picker.disown(id.0);
        owed.iter().for_each(|block| self.picker.unclaim(block.piece));
        if !owed.is_empty() {
            self.ask_everybody(now);
        }
    }

    /// A source that has begun this piece alone has taken too long.
    pub(super) fn leave_to_others(&mut self, piece: u32, peer: u32) {
        if let Some(source) = named(&mut self.sources, SourceId(peer)) {
            source.leave_piece(piece);
        }
    }

    /// A block has come from elsewhere.
    pub(super) fn excuse_sources(&mut self, block: BlockRef) {
        self.sources.iter_mut().for_each(|source| source.owed.retain(|&owed| owed != block));
    }

    /// Who has sent a bad piece alone, if it is a source, is one no longer. Says whether it is.
    pub(super) fn ban_source(&mut self, now: Instant, peer: u32) -> bool {
        let id = SourceId(peer);
        let is_source = self.has_source(id);
        if is_source {
            self.remove_source(now, id);
        }
        is_source
    }
}
