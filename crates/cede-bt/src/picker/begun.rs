//! What is here of pieces that are not whole: told to whoever goes on with them later, and taken up from there.

use super::partial::{Block, Partial};
use super::{NOT_BEGUN, Picker};
use crate::bitfield::Bitfield;
use alloc::vec::Vec;

/// Who sent the blocks of an earlier run: no peer and no source is known by this number. So nobody is charged alone with a piece
/// that has some of them.
pub(super) const EARLIER_RUN: u32 = 0;

/// A piece that has been begun and is not whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Begun {
    /// Which.
    pub piece: u32,
    /// A bit for each block of it: whether it is here. Nobody has checked it.
    pub blocks: Bitfield,
}

impl Picker {
    /// Takes up a piece where an earlier run ended; whether it did. It does nothing where the piece is here or begun already, or has
    /// another number of blocks, or where none of them is here, or all are.
    pub fn resume(&mut self, begun: &Begun) -> bool {
        let Begun { piece, ref blocks } = *begun;
        let is_fresh = self.begun.get(piece as usize) == Some(&NOT_BEGUN) && !self.have.has(piece);
        let is_part = blocks.len() == self.geometry.blocks(piece) && !blocks.is_empty() && !blocks.is_full();
        if !is_fresh || !is_part {
            return false;
        }
        let index = self.begin(piece, false);
        let partial = &mut self.partials[index];
        for number in blocks.iter() {
            partial.arrive(number, EARLIER_RUN);
        }
        self.free -= blocks.count();
        true
    }

    /// What is here of pieces that are not known to be whole, where anything is; in the order of pieces.
    #[must_use]
    pub fn unfinished(&self) -> Vec<Begun> {
        let here = self.partials.iter().map(Partial::here);
        let mut unfinished: Vec<Begun> = here.filter(|begun| !begun.blocks.is_empty()).collect();
        unfinished.sort_unstable_by_key(|begun| begun.piece);
        unfinished
    }

    /// Octets of blocks that are here of pieces that are not whole.
    #[must_use]
    pub fn unfinished_bytes(&self) -> u64 {
        let bytes = |begun: Begun| {
            let lens = begun.blocks.iter().map(|number| self.geometry.block(begun.piece, number).len);
            lens.map(u64::from).sum::<u64>()
        };
        self.partials.iter().map(Partial::here).map(bytes).sum()
    }
}

impl Partial {
    fn here(&self) -> Begun {
        let mut blocks = Bitfield::none(self.blocks.len() as u32);
        for (number, _) in (0..).zip(&self.blocks).filter(|(_, block)| matches!(block, Block::Here(_))) {
            blocks.insert(number);
        }
        Begun { piece: self.piece, blocks }
    }
}
