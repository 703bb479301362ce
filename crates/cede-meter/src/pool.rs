//! Memory in blocks of one size, which series of samples and logs of short flows are chains of: what one of them gives
//! back the other can take.

use crate::pages::Pages;

/// Words of a block that are for what is kept.
pub(crate) const WORDS: usize = 15;
pub(crate) const NONE: u32 = u32::MAX;
const PAGE_BLOCKS: usize = 1 << 12;

/// 64 octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub words: [u32; WORDS],
    /// The block behind it in its chain.
    pub next: u32,
}

/// All blocks.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    blocks: Pages<Block, PAGE_BLOCKS>,
    /// The first of a chain of free ones.
    free: Option<u32>,
    in_use: usize,
    /// The least time between two samples of a series that are kept, in units of 256 us.
    pub(crate) spacing: u32,
    /// Samples that were left out for coming sooner.
    pub(crate) thinned: u64,
}

impl Pool {
    /// Octets of blocks in use.
    pub(crate) const fn bytes(&self) -> usize {
        self.in_use * size_of::<Block>()
    }

    /// Octets of all blocks, used and free: what was taken from the system is not given back.
    pub(crate) fn bytes_taken(&self) -> usize {
        self.blocks.len() * size_of::<Block>()
    }

    #[inline]
    pub(crate) fn block(&self, index: u32) -> &Block {
        self.blocks.get(index)
    }

    #[inline]
    pub(crate) fn block_mut(&mut self, index: u32) -> &mut Block {
        self.blocks.get_mut(index)
    }

    /// A block with this in it, at the end of a chain.
    pub(crate) fn take(&mut self, words: [u32; WORDS]) -> u32 {
        let block = Block { words, next: NONE };
        self.in_use += 1;
        let Some(index) = self.free else { return self.blocks.push(block) };
        let next = core::mem::replace(self.block_mut(index), block).next;
        self.free = (next != NONE).then_some(next);
        index
    }

    /// As [`Self::take`], with up to `len - 1` empty blocks linked behind it. They lie next to each other where none is free, so that
    /// whoever reads the chain does not wait for each of its blocks.
    pub(crate) fn take_run(&mut self, words: [u32; WORDS], len: u32) -> u32 {
        if self.free.is_some() {
            return self.take(words);
        }
        let first = self.blocks.len() as u32;
        for k in 1..=len {
            let words = if k == 1 { words } else { [0; WORDS] };
            self.blocks.push(Block { words, next: if k == len { NONE } else { first + k } });
        }
        self.in_use += len as usize;
        first
    }

    /// Puts a chain of blocks on the list of free ones.
    pub(crate) fn release(&mut self, first: u32, last: u32) {
        let mut index = first;
        loop {
            let free = self.free.replace(index).unwrap_or(NONE);
            let next = core::mem::replace(&mut self.block_mut(index).next, free);
            self.in_use -= 1;
            if index == last {
                return;
            }
            index = next;
        }
    }

    /// As [`Self::release`], to the end of the chain.
    pub(crate) fn release_all(&mut self, mut first: u32) {
        while first != NONE {
            let next = self.block(first).next;
            self.release(first, first);
            first = next;
        }
    }

    /// Forgets everything; the first page stays.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        (self.free, self.in_use) = (None, 0);
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
