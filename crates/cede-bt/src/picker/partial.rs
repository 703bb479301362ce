//! A piece that has been begun.

use crate::geometry::Geometry;
use crate::wire::BlockRef;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Where a block stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Block {
    /// Nobody has been asked for it.
    Free,
    /// So many peers have been asked for it.
    Requested(u8),
    /// It is here; this peer sent it.
    Here(u32),
}

/// A piece that has been begun.
#[derive(Clone, Debug)]
pub(super) struct Partial {
    pub(super) piece: u32,
    pub(super) blocks: Vec<Block>,
    /// Blocks that nobody has been asked for.
    pub(super) free: u32,
    /// Blocks that are not here.
    pub(super) missing: u32,
    /// It was begun with a peer that has everything.
    pub(super) from_seed: bool,
    /// Several peers may have sent the same block.
    pub(super) shared: bool,
}

impl Partial {
    pub(super) fn new(geometry: &Geometry, piece: u32, from_seed: bool) -> Self {
        let blocks = geometry.blocks(piece);
        let free = vec![Block::Free; blocks as usize];
        Self { piece, blocks: free, free: blocks, missing: blocks, from_seed, shared: false }
    }

    /// Takes the first block that nobody has been asked for.
    pub(super) fn take_free(&mut self, geometry: &Geometry) -> Option<BlockRef> {
        let number = self.blocks.iter().position(|&block| block == Block::Free)?;
        Some(self.request(geometry, number))
    }

    /// Takes a block that nobody has been asked for.
    pub(super) fn request(&mut self, geometry: &Geometry, number: usize) -> BlockRef {
        self.blocks[number] = Block::Requested(1);
        self.free -= 1;
        geometry.block(self.piece, number as u32)
    }

    /// Blocks that somebody has been asked for.
    pub(super) const fn outstanding(&self) -> u32 {
        self.missing - self.free
    }

    /// The first of the longest runs of blocks that nobody has been asked for.
    pub(super) fn longest_run(&self) -> Range<u32> {
        let free = (0..).zip(&self.blocks).filter(|(_, block)| **block == Block::Free);
        longest_run(free.map(|(number, _)| number))
    }

    /// A request for this block has come to nothing.
    pub(super) fn release(&mut self, number: u32) {
        match self.blocks.get_mut(number as usize) {
            Some(block @ Block::Requested(..=1)) => {
                *block = Block::Free;
                self.free += 1;
            }
            Some(Block::Requested(count)) => *count -= 1,
            _ => {}
        }
    }

    /// A block has come from `peer`. Says how many others had been asked for it, or `None` where it is no news.
    pub(super) fn arrive(&mut self, number: u32, peer: u32) -> Option<u8> {
        let block = self.blocks.get_mut(number as usize)?;
        let others = match *block {
            Block::Here(_) => return None,
            Block::Free => {
                self.free -= 1;
                0
            }
            Block::Requested(count) => count.saturating_sub(1),
        };
        *block = Block::Here(peer);
        self.missing -= 1;
        Some(others)
    }

    pub(super) fn has_part(&self, peer: u32) -> bool {
        self.blocks.contains(&Block::Here(peer))
    }

    /// Whoever sent something of it, each once.
    pub(super) fn contributors(&self) -> Vec<u32> {
        let mut peers: Vec<u32> = self
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Here(peer) => Some(*peer),
                _ => None,
            })
            .collect();
        peers.sort_unstable();
        peers.dedup();
        peers
    }
}

/// Of numbers that rise, the first of the longest runs of those that follow each other.
pub(super) fn longest_run(numbers: impl Iterator<Item = u32>) -> Range<u32> {
    let (mut run, mut longest) = (0..0, 0..0);
    for number in numbers {
        if run.end != number {
            run.start = number;
        }
        run.end = number + 1;
        if run.len() > longest.len() {
            longest = run.clone();
        }
    }
    longest
}
