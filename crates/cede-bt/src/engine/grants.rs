//! Pieces that a peer is sent although it is choked (BEP 6; see `fast.rs`).

use crate::geometry::Geometry;
use alloc::vec::Vec;

/// How often a block is sent to a choked peer (libtorrent).
const SENDS_PER_BLOCK: u32 = 3;

/// What a peer was told.
#[derive(Debug, Default)]
pub(super) struct Grants {
    pieces: Vec<u32>,
    /// Blocks of them that are still sent.
    blocks_left: u32,
}

impl Grants {
    pub(super) fn new(pieces: Vec<u32>, geometry: &Geometry) -> Self {
        let blocks: u32 = pieces.iter().map(|&piece| geometry.blocks(piece)).sum();
        Self { pieces, blocks_left: blocks * SENDS_PER_BLOCK }
    }

    /// Is a block of this piece sent to a choked peer? It counts.
    pub(super) fn allow(&mut self, piece: u32) -> bool {
        let allowed = self.blocks_left > 0 && self.has(piece);
        self.blocks_left -= u32::from(allowed);
        allowed
    }

    /// Whether it was told of none.
    pub(super) const fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn has(&self, piece: u32) -> bool {
        self.pieces.contains(&piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_is_sent_three_times() {
        let geometry = Geometry::new(64 << 10, 32 << 10).unwrap();
        let mut grants = Grants::new(alloc::vec![1], &geometry);
        assert!(!grants.allow(0));
        assert_eq!((0..9).filter(|_| grants.allow(1)).count(), 6);
    }
}
