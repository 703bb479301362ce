//! The hashes of a v2 torrent's pieces: they stand beside the info dictionary, which has but the root above them (BEP 52).

use super::{Error, FileTree, Info, Version};
use crate::merkle::{HASH_BYTES, Hash};
use alloc::vec::Vec;

/// The hashes of a layer's octets; `None` where they are not `pieces`, or do not lead to the root.
fn checked<'a>(layer: &'a [u8], tree: &FileTree, piece_length: u32) -> Option<&'a [u8]> {
    let (hashes, rest) = layer.as_chunks::<HASH_BYTES>();
    let is_whole = rest.is_empty() && hashes.len() == tree.pieces as usize;
    (is_whole && tree.root_of(hashes, piece_length) == tree.root).then_some(layer)
}

impl Info {
    /// Whether the hashes of pieces are still to come: those of a v2 torrent with files of several pieces are not in its info
    /// dictionary.
    #[must_use]
    pub fn lacks_hashes(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Sets the hashes of a v2 torrent's pieces. `layer_of` tells, by the root of a file's tree, those of its pieces one behind the
    /// other; it is not asked of files of one piece, whose hash is the root.
    ///
    /// # Errors
    /// [`Error::Layers`]: they are missing, or do not lead to the root. Nothing is set then.
    pub fn set_layers<'a>(&mut self, layer_of: impl Fn(&Hash) -> Option<&'a [u8]>) -> Result<(), Error> {
        let mut pieces = Vec::with_capacity(self.piece_count() as usize * HASH_BYTES);
        for tree in &self.trees {
            let layer = match tree.pieces {
                1 => Some(&tree.root[..]),
                _ => layer_of(&tree.root).and_then(|layer| checked(layer, tree, self.piece_length)),
            };
            pieces.extend_from_slice(layer.ok_or(Error::Layers)?);
        }
        self.pieces = pieces;
        Ok(())
    }

    /// The hashes of the pieces of one of [`Info::trees`]; none as long as they are not known.
    #[must_use]
    pub fn layer(&self, tree: &FileTree) -> &[Hash] {
        let range = tree.first_piece as usize..(tree.first_piece + tree.pieces) as usize;
        let hashes = if self.version == Version::V2 { self.pieces.as_chunks().0 } else { &[] };
        hashes.get(range).unwrap_or_default()
    }
}
