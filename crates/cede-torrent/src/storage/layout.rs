//! Which file holds which octets of the content.

use cede_bt::Geometry;
use cede_bt::metainfo::{self, Info, Version};
use std::ops::Range;

/// A torrent's files, one behind the other, and its pieces.
#[derive(Clone, Debug)]
pub struct Layout {
    files: Vec<metainfo::File>,
    geometry: Geometry,
    /// The hash of a piece is that of its padding, too.
    hashes_padding: bool,
}

/// A run of octets inside one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice {
    /// Which file.
    pub file: usize,
    /// Where in the file.
    pub offset: u64,
    /// Which of the octets that were asked for.
    pub range: Range<usize>,
    /// The file is padding: these octets are zeros and stored nowhere.
    pub is_padding: bool,
}

impl Layout {
    /// That of a torrent.
    #[must_use]
    pub fn new(info: &Info) -> Self {
        Self {
            files: info.files.clone(),
            geometry: info.geometry.clone(),
            hashes_padding: info.version != Version::V2,
        }
    }

    /// The same with other files at the same places: those that are not said to be padding, say.
    pub(crate) fn with_files(self, files: Vec<metainfo::File>) -> Self {
        Self { files, ..self }
    }

    /// The files in the order of the content.
    #[must_use]
    pub fn files(&self) -> &[metainfo::File] {
        &self.files
    }

    /// Octets of the whole.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.geometry.total_bytes()
    }

    /// How many pieces there are.
    #[must_use]
    pub const fn piece_count(&self) -> u32 {
        self.geometry.pieces()
    }

    /// Where the octets lie in the content that the hash of a piece is of.
    #[must_use]
    pub fn piece_range(&self, piece: u32) -> Range<u64> {
        let start = self.geometry.offset(piece, 0).min(self.total_bytes());
        let len =
            if self.hashes_padding { self.geometry.room(piece) } else { self.geometry.piece_len(piece) };
        start..start + u64::from(len)
    }

    /// The pieces with octets of a file. None where the file is empty.
    #[must_use]
    pub fn pieces_of(&self, file: usize) -> Range<u32> {
        let Some(file) = self.files.get(file).filter(|file| file.length > 0) else { return 0..0 };
        let length = u64::from(self.geometry.piece_bytes());
        (file.offset / length) as u32..(file.offset + file.length).div_ceil(length) as u32
    }

    /// The pieces with octets of several files, in order.
    #[must_use]
    pub fn shared_pieces(&self) -> Vec<u32> {
        let length = u64::from(self.geometry.piece_bytes());
        let ends = self.files.iter().filter(|file| !file.is_padding && file.length > 0);
        let cut = ends.map(|file| file.offset + file.length).filter(|end| !end.is_multiple_of(length));
        let mut pieces: Vec<u32> = cut.map(|end| (end / length) as u32).collect();
        pieces.dedup();
        pieces
    }

    /// The files that a run of the content reaches into, in order. What lies beyond the end of the content is left out.
    pub fn slices(&self, offset: u64, len: usize) -> impl Iterator<Item = Slice> + '_ {
        let end = offset.saturating_add(len as u64).min(self.total_bytes());
        let first = self.files.partition_point(|file| file.offset + file.length <= offset);
        let files = self.files.iter().enumerate().skip(first);
        files.take_while(move |(_, file)| file.offset < end).filter(|(_, file)| file.length > 0).map(
            move |(index, file)| {
                let (from, to) = (file.offset.max(offset), (file.offset + file.length).min(end));
                Slice {
                    file: index,
                    offset: from - file.offset,
                    range: (from - offset) as usize..(to - offset) as usize,
                    is_padding: file.is_padding,
                }
            },
        )
    }
}
