//! What a source that has everything is asked for: runs of pieces.
//!
//! Source: BEP 19. One request of many octets costs a server hardly more than one of few, and peers take pieces here and there: so a
//! source takes whole pieces that lie one behind the other, from the largest gap among those that are here or begun, and goes on
//! where it ended. The first run begins at a random place, lest everybody who begins at the same time has the same pieces. What is
//! taken is taken: others are asked for it at the very end alone, and so is the source for what others owe.
//!
//! **What it leaves out.** Rarity: what peers lack most.
//! **How it was validated.** `tests/sources.rs`; transfers from servers in `cede-torrent`.

use super::partial::{Block, Partial, longest_run};
use super::{NOT_BEGUN, Picker};
use crate::bitfield::Bitfield;
use crate::wire::BlockRef;
use alloc::vec::Vec;

/// How many may be asked for a block at the end, a source among them.
const COPIES_MAX: u8 = 2;

impl Picker {
    /// Takes a run of blocks that lie one behind the other, of the pieces in `open`: the rest of a piece that the source has begun
    /// (`own` is what its blocks are known by), whole pieces of so many octets, one at least, best from the piece `near` on; or else what is free of a piece that has been begun; or at the end what others have been
    /// asked for.
    pub fn claim(
        &mut self,
        open: &Bitfield,
        (own, near): (u32, Option<u32>),
        bytes_max: u64,
        out: &mut Vec<BlockRef>,
    ) {
        let free = |partial: &Partial| partial.free > 0 && open.has(partial.piece);
        let begun = |partial: &Partial| free(partial) && partial.has_part(own);
        if let Some(index) = self.partials.iter().position(begun) {
            return self.claim_rest(index, out);
        }
        let start = self.start_of_run(open, near, bytes_max);
        if let Some(index) = self.begun_before(start, open) {
            return self.claim_rest(index, out);
        }
        if let Some(first) = start {
            let (mut bytes, mut piece) = (0, first);
            while self.is_fresh(open, piece) && (piece == first || bytes < bytes_max) {
                bytes += u64::from(self.geometry.piece_len(piece));
                self.claim_piece(piece, out);
                piece += 1;
            }
            return;
        }
        match self.partials.iter().position(free) {
            Some(index) => self.claim_rest(index, out),
            None if self.is_end_game() => self.claim_again(open, out),
            None => {}
        }
    }

    /// Takes those pieces of a range that nobody has begun.
    pub fn claim_all(&mut self, open: &Bitfield, pieces: core::ops::Range<u32>, out: &mut Vec<BlockRef>) {
        for piece in pieces {
            if self.is_fresh(open, piece) {
                self.claim_piece(piece, out);
            }
        }
    }

    /// A piece that was taken is given back: where nothing of it has come and nobody is asked for it, nothing has begun.
    pub fn unclaim(&mut self, piece: u32) {
        let begun = self.begun.get(piece as usize).copied().unwrap_or(NOT_BEGUN);
        let partial = self.partials.get(begun as usize);
        if partial.is_some_and(|partial| partial.free as usize == partial.blocks.len()) {
            self.begin_anew(piece);
        }
    }

    pub(super) fn is_fresh(&self, open: &Bitfield, piece: u32) -> bool {
        open.has(piece) && self.lacks(piece) && self.begun[piece as usize] == NOT_BEGUN
    }

    /// In order, what has been begun and is owed by nobody comes before what lies behind it: where somebody reads from the beginning on,
    /// what an earlier run or a peer that is gone has left of a piece would be missing until all else is here.
    fn begun_before(&self, start: Option<u32>, open: &Bitfield) -> Option<usize> {
        let start = start.filter(|_| self.is_in_order())?;
        let is_open = |partial: &Partial| partial.free > 0 && open.has(partial.piece);
        let is_before = |partial: &Partial| partial.piece < start && is_open(partial);
        let before = self.partials.iter().enumerate().filter(|(_, partial)| is_before(partial));
        before.min_by_key(|(_, partial)| partial.piece).map(|(index, _)| index)
    }

    fn start_of_run(&mut self, open: &Bitfield, near: Option<u32>, bytes_max: u64) -> Option<u32> {
        if let Some(near) = near.filter(|&near| self.is_fresh(open, near)) {
            return Some(near);
        }
        if self.is_in_order() {
            return open.iter_beyond(&self.have).find(|&piece| self.is_fresh(open, piece));
        }
        let largest = longest_run((0..self.geometry.pieces()).filter(|&piece| self.is_fresh(open, piece)));
        let run = bytes_max.div_ceil(self.geometry.piece_bytes().into()).max(1);
        let spare = (largest.len() as u64).saturating_sub(run);
        let skipped = if near.is_none() && spare > 0 { self.random.below(spare + 1) as u32 } else { 0 };
        (!largest.is_empty()).then_some(largest.start + skipped)
    }

    fn claim_piece(&mut self, piece: u32, out: &mut Vec<BlockRef>) {
        let index = self.begin(piece, true);
        self.claim_rest(index, out);
    }

    /// The first run of free blocks of a piece.
    fn claim_rest(&mut self, index: usize, out: &mut Vec<BlockRef>) {
        let partial = &mut self.partials[index];
        let Some(first) = partial.blocks.iter().position(|&block| block == Block::Free) else { return };
        let run = partial.blocks[first..].iter().take_while(|&&block| block == Block::Free).count();
        out.extend((first..first + run).map(|number| partial.request(&self.geometry, number)));
        self.free -= run as u32;
    }

    /// A run of blocks that others owe, of the piece that was begun last: others are nearer to their end.
    fn claim_again(&mut self, open: &Bitfield, out: &mut Vec<BlockRef>) {
        let owed = self.outstanding(open, &[], COPIES_MAX);
        let Some(&(index, _)) = owed.last() else { return };
        let numbers: Vec<usize> =
            owed.into_iter().filter(|(of, _)| *of == index).map(|(_, number)| number).collect();
        let first = numbers[0];
        let run = (first..).zip(&numbers).take_while(|(number, owed)| *number == **owed).count();
        let partial = &mut self.partials[index];
        partial.shared = true;
        for number in first..first + run {
            if let Block::Requested(count) = &mut partial.blocks[number] {
                *count += 1;
            }
            out.push(self.geometry.block(partial.piece, number as u32));
        }
    }
}
