//! How a torrent's octets are cut into pieces and blocks.

use crate::wire::BlockRef;
use alloc::sync::Arc;

/// Octets of a block, the unit of requests: what every client asks for (BEP 3 as deployed).
pub const BLOCK_BYTES: u32 = 16 << 10;

/// Pieces that are shorter than the room they have: behind the end of a file nothing follows in them but zeros that nobody has to
/// send (BEP 47). In a v2 torrent each file begins with a piece of its own (BEP 52).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ShortPieces(Option<Arc<[(u32, u32)]>>);

impl ShortPieces {
    /// Pieces and their lengths, in the order of pieces.
    pub(crate) fn new(pieces: &[(u32, u32)]) -> Self {
        Self((!pieces.is_empty()).then(|| pieces.into()))
    }

    /// The length of a piece where it is one of them.
    #[inline]
    fn len_of(&self, piece: u32) -> Option<u32> {
        self.0.as_ref().and_then(|pieces| find(pieces, piece))
    }
}

/// Out of line: simulated swarms ask for the length of a piece all the time, and have none.
#[cold]
fn find(pieces: &[(u32, u32)], piece: u32) -> Option<u32> {
    pieces.binary_search_by_key(&piece, |(piece, _)| *piece).ok().map(|at| pieces[at].1)
}

/// How a torrent's octets are cut into pieces and blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    total_bytes: u64,
    piece_bytes: u32,
    pieces: u32,
    short: ShortPieces,
}

impl Geometry {
    /// The most pieces that a torrent may have here: what a bitfield's default limit holds.
    pub const PIECES_MAX: u32 = 1 << 20;

    /// `total_bytes` in pieces of `piece_bytes`, the last one perhaps shorter. `None` where either is zero or there
    /// are more pieces than [`Geometry::PIECES_MAX`].
    #[must_use]
    pub fn new(total_bytes: u64, piece_bytes: u32) -> Option<Self> {
        if total_bytes == 0 || piece_bytes == 0 || piece_bytes > 1 << 30 {
            return None;
        }
        if total_bytes.div_ceil(piece_bytes.into()) > Self::PIECES_MAX.into() {
            return None;
        }
        Some(Self::unbounded(total_bytes, piece_bytes, ShortPieces::default()))
    }

    /// That of a torrent whose bounds have been checked, and are others.
    pub(crate) fn unbounded(total_bytes: u64, piece_bytes: u32, short: ShortPieces) -> Self {
        let pieces = total_bytes.div_ceil(piece_bytes.into()) as u32;
        Self { total_bytes, piece_bytes, pieces, short }
    }

    /// Octets of the whole, what short pieces lack included.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Octets of every piece but the last, and those that are short.
    #[must_use]
    pub const fn piece_bytes(&self) -> u32 {
        self.piece_bytes
    }

    /// How many pieces.
    #[must_use]
    pub const fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Octets of a piece, without the zeros at its end that nobody has to send; 0 for one that there is not.
    #[must_use]
    pub fn piece_len(&self, piece: u32) -> u32 {
        self.short.len_of(piece).unwrap_or_else(|| self.room(piece))
    }

    /// Octets from the beginning of a piece to that of the next, or to the end of the whole; 0 for one that there is not.
    #[must_use]
    pub const fn room(&self, piece: u32) -> u32 {
        let left = self.total_bytes.saturating_sub(self.offset(piece, 0));
        if left < self.piece_bytes as u64 { left as u32 } else { self.piece_bytes }
    }

    /// How many blocks a piece has.
    #[must_use]
    pub fn blocks(&self, piece: u32) -> u32 {
        self.piece_len(piece).div_ceil(BLOCK_BYTES)
    }

    /// A block of a piece by its number.
    #[must_use]
    pub fn block(&self, piece: u32, number: u32) -> BlockRef {
        let begin = number * BLOCK_BYTES;
        let left = self.piece_len(piece).saturating_sub(begin);
        BlockRef { piece, begin, len: if left < BLOCK_BYTES { left } else { BLOCK_BYTES } }
    }

    /// The number of a block that is one of ours: whole, and at a block's place.
    #[must_use]
    pub fn number_of(&self, block: BlockRef) -> Option<u32> {
        let number = block.begin / BLOCK_BYTES;
        (block.piece < self.pieces && block.len > 0 && self.block(block.piece, number) == block)
            .then_some(number)
    }

    /// Where a run of a piece begins in the whole.
    #[must_use]
    pub const fn offset(&self, piece: u32, begin: u32) -> u64 {
        piece as u64 * self.piece_bytes as u64 + begin as u64
    }

    /// Whether a run of octets that somebody asks for lies within a piece, or in the room behind a short one: other clients ask
    /// for whole blocks, and take the zeros that are between files.
    #[must_use]
    pub const fn holds(&self, block: BlockRef) -> bool {
        block.piece < self.pieces
            && block.len > 0
            && block.begin as u64 + block.len as u64 <= self.room(block.piece) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_and_the_last_block_may_be_short() {
        let geometry = Geometry::new(100_000, 65_536).unwrap();
        assert_eq!((geometry.pieces(), geometry.piece_len(1), geometry.blocks(1)), (2, 34_464, 3));
        assert_eq!(geometry.block(1, 2), BlockRef { piece: 1, begin: 32_768, len: 1_696 });
        assert_eq!(geometry.number_of(geometry.block(1, 2)), Some(2));
        assert_eq!(geometry.number_of(BlockRef { piece: 1, begin: 32_768, len: 1_697 }), None);
        assert_eq!(geometry.number_of(BlockRef { piece: 0, begin: 100, len: 16_384 }), None);
        assert!(geometry.holds(BlockRef { piece: 0, begin: 100, len: 16_384 }));
        assert!(!geometry.holds(BlockRef { piece: 1, begin: u32::MAX, len: u32::MAX }));
        assert_eq!(geometry.piece_len(7), 0);
        let geometry = Geometry::unbounded(100_000, 65_536, ShortPieces::new(&[(0, 20_000)]));
        assert_eq!((geometry.piece_len(0), geometry.blocks(0), geometry.piece_len(1)), (20_000, 2, 34_464));
        assert_eq!(geometry.block(0, 1), BlockRef { piece: 0, begin: 16_384, len: 3_616 });
        assert!(geometry.holds(BlockRef { piece: 0, begin: 16_384, len: 16_384 }));
        assert!(!geometry.holds(BlockRef { piece: 0, begin: 65_536, len: 1 }));
        assert_eq!(geometry.number_of(BlockRef { piece: 0, begin: 16_384, len: 16_384 }), None);
        assert_eq!(geometry.offset(1, 0), 65_536);
        assert_eq!(Geometry::new(1 << 40, 1), None);
    }
}
