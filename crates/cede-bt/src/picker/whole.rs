//! Whole pieces for fast peers.
//!
//! Source: libtorrent 2.0.8. A peer that brings a piece within so many seconds is asked for whole ones, so that what is begun with it
//! is finished with it: pieces of which others owe blocks are left to them, but where a run of free blocks is long enough. They are
//! taken as ever, rarest first; where it brings several in that time, those beside the first that nobody has begun come along.
//!
//! **What it leaves out.** Runs that go on over pieces of which something is here.
//! **How it was validated.** Below, and beside real swarms (docs/swarms.md).

use super::partial::{Block, Partial};
use super::{Next, Order, Picker};
use crate::bitfield::Bitfield;
use crate::wire::BlockRef;
use alloc::vec::Vec;
use core::ops::Range;

impl Picker {
    /// Takes blocks for a fast peer that has `theirs`: of the first piece in this `order` that is its own, all that is free, where
    /// it is to have so many `blocks` in a row. `outstanding` says how many blocks of a piece it has been asked for and not sent.
    /// Nothing, where there is no such piece, or more have been begun than there should be with so many `peers`.
    pub fn pick_whole(
        &mut self,
        theirs: &Bitfield,
        (peers, order): (usize, Order),
        blocks: u32,
        outstanding: impl Fn(u32) -> u32,
        out: &mut Vec<BlockRef>,
    ) {
        if self.has_many_begun(peers) {
            return;
        }
        let is_own = |partial: &Partial| {
            partial.outstanding() == outstanding(partial.piece)
                || partial.longest_run().len() as u32 >= blocks
        };
        let begun = self.best_partial(theirs, order, is_own);
        match self.next_whole(theirs, begun, order) {
            Some(Next::Begun(index)) => self.take_run(index, out),
            Some(Next::Fresh(piece)) => {
                for piece in self.around(piece, theirs, blocks) {
                    let index = self.begin(piece, theirs.is_full());
                    self.take_run(index, out);
                }
            }
            None => {}
        }
    }

    /// What is taken whole, of its `own` begun piece and a fresh one. While there is little to offer, whatever has been begun comes
    /// before what has not: where that is others', nothing is taken whole.
    fn next_whole(&mut self, theirs: &Bitfield, own: Option<usize>, order: Order) -> Option<Next> {
        if !self.is_random_first() {
            let fresh = self.best_fresh(theirs, order);
            return self.better(own, fresh, order);
        }
        if own.is_some() || self.best_partial(theirs, order, |_| true).is_some() {
            return own.map(Next::Begun);
        }
        self.best_fresh(theirs, order).map(Next::Fresh)
    }

    /// Pieces that nobody has begun on either side of one, together so many blocks.
    fn around(&self, piece: u32, theirs: &Bitfield, blocks: u32) -> Range<u32> {
        let pieces = blocks.div_ceil(self.geometry.blocks(0)).max(1);
        let lowest = (piece + 1).saturating_sub(pieces);
        let is_fresh = |piece: u32| self.is_fresh(theirs, piece) && !self.is_suspect(piece);
        let first = (lowest..piece).rev().take_while(|&piece| is_fresh(piece)).last().unwrap_or(piece);
        let most = (first + pieces).min(self.geometry.pieces());
        let last = (piece + 1..most).take_while(|&piece| is_fresh(piece)).last().unwrap_or(piece);
        first..last + 1
    }

    /// Everything free of a begun piece, from its longest run on.
    fn take_run(&mut self, index: usize, out: &mut Vec<BlockRef>) {
        let partial = &mut self.partials[index];
        self.free -= partial.free;
        let (start, count) = (partial.longest_run().start as usize, partial.blocks.len());
        for number in (start..count).chain(0..start) {
            if partial.blocks[number] == Block::Free {
                out.push(partial.request(&self.geometry, number));
            }
        }
    }
}
