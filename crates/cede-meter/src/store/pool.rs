//! Memory in blocks of one size, which series of samples and logs of short flows are made of: what one of them gives
//! back the other can take.

use crate::store::pages::Pages;

/// Words of a block that are for what is kept.
pub(crate) const WORDS: usize = 15;
pub(crate) const NONE: u32 = u32::MAX;
const PAGE_BLOCKS: usize = 1 << 12;

/// 64 octets, one line of memory: what is kept, and the number of the block behind it, where it is one of a chain.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Block {
    pub words: [u32; WORDS],
    pub next: u32,
}

impl Block {
    const EMPTY: Self = Self { words: [0; WORDS], next: NONE };
}

/// All blocks.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    blocks: Pages<Block, PAGE_BLOCKS>,
    /// The first of a chain of free ones.
    free: Option<u32>,
    in_use: usize,
    /// Octets of lists that say where blocks are.
    pub(crate) beside_bytes: usize,
    /// The least time between two samples of a series that are kept, in units of 256 us.
    pub(crate) spacing: u32,
    /// Samples that were left out for coming sooner.
    pub(crate) thinned: u64,
}

impl Pool {
    /// Octets of blocks in use, and of what says where they are.
    pub(crate) const fn bytes(&self) -> usize {
        self.in_use * size_of::<Block>() + self.beside_bytes
    }

    /// Octets as well of blocks that are free: what was taken from the system is not given back.
    pub(crate) fn bytes_taken(&self) -> usize {
        self.blocks.len() * size_of::<Block>() + self.beside_bytes
    }

    #[inline]
    pub(crate) fn block(&self, index: u32) -> &Block {
        self.blocks.get(index)
    }

    #[inline]
    pub(crate) fn block_mut(&mut self, index: u32) -> &mut Block {
        self.blocks.get_mut(index)
    }

    /// An empty block, the last of its chain.
    pub(crate) fn take(&mut self) -> u32 {
        self.in_use += 1;
        let Some(index) = self.free else { return self.blocks.push(Block::EMPTY) };
        let next = core::mem::replace(self.block_mut(index), Block::EMPTY).next;
        self.free = (next != NONE).then_some(next);
        index
    }

    /// Puts a block on the list of free ones.
    pub(crate) fn release(&mut self, index: u32) {
        let free = self.free.replace(index).unwrap_or(NONE);
        self.block_mut(index).next = free;
        self.in_use -= 1;
    }

    /// As [`Self::release`], of all blocks of a chain.
    pub(crate) fn release_chain(&mut self, mut first: u32) {
        while first != NONE {
            let next = self.block(first).next;
            self.release(first);
            first = next;
        }
    }

    /// Forgets everything; the memory of the first page stays.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        (self.free, self.in_use, self.beside_bytes) = (None, 0, 0);
    }

    /// The blocks of a chain.
    pub(crate) fn chain(&self, first: u32) -> impl Iterator<Item = &Block> {
        let mut index = first;
        core::iter::from_fn(move || {
            let block = (index != NONE).then(|| self.block(index))?;
            index = block.next;
            Some(block)
        })
    }
}
