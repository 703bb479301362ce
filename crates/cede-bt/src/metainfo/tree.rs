//! The file tree of BEP 52, and the hashes of its pieces.

use super::path::{MAX_PARTS, of_octets};
use super::{Attributes, Error, File, MAX_FILES, PathError};
use crate::bencode::Node;
use crate::geometry::BLOCK_BYTES;
use crate::merkle::{Hash, Tree, levels_above};
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

/// The tree of hashes over one file of a v2 torrent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileTree {
    /// Its root.
    pub root: Hash,
    /// Octets of the file; not zero.
    pub length: u64,
    /// The first of its pieces.
    pub first_piece: u32,
    /// How many pieces it has.
    pub pieces: u32,
}

impl FileTree {
    /// The levels above the blocks of a piece. A file of one piece has no more than its own blocks ask for.
    #[must_use]
    pub fn piece_levels(&self, piece_length: u32) -> u32 {
        let bytes = if self.pieces > 1 { piece_length.into() } else { self.length };
        levels_above(bytes.div_ceil(BLOCK_BYTES.into()))
    }

    /// The levels above its pieces.
    #[must_use]
    pub const fn levels(&self) -> u32 {
        levels_above(self.pieces as u64)
    }

    /// The root above the hashes of its pieces.
    #[must_use]
    pub(super) fn root_of(&self, layer: &[Hash], piece_length: u32) -> Hash {
        let mut above = Tree::new(self.piece_levels(piece_length));
        layer.iter().for_each(|hash| above.push(*hash));
        above.root(self.levels())
    }
}

/// The trees of files of these lengths, but for empty ones, and the hashes of their pieces out of those of all. Where those are
/// missing, the roots are zeros.
pub(super) fn trees(
    lengths: impl Iterator<Item = u64>,
    piece_length: u32,
    hashes: &[Hash],
) -> impl Iterator<Item = (FileTree, &[Hash])> {
    let mut rest = hashes;
    lengths.filter(|length| *length > 0).map(move |length| {
        let pieces = length.div_ceil(piece_length.into());
        let first_piece = (hashes.len() - rest.len()) as u32;
        let mut tree = FileTree { root: Hash::default(), length, first_piece, pieces: pieces as u32 };
        let Some((layer, behind)) =
            usize::try_from(pieces).ok().and_then(|pieces| rest.split_at_checked(pieces))
        else {
            return (tree, &[][..]);
        };
        rest = behind;
        tree.root = tree.root_of(layer, piece_length);
        (tree, layer)
    })
}

/// What a v2 dictionary says of files.
pub(super) struct Files {
    /// With padding, where files do not end as pieces do, the last one included.
    pub files: Vec<File>,
    /// Of those that are not empty.
    pub trees: Vec<FileTree>,
}

/// The files of a v2 dictionary. A torrent of one file at the top is that file, and a folder otherwise.
pub(super) fn files(info: Node<'_, '_>, name: &str, piece_length: u32) -> Result<Files, Error> {
    // Pieces are whole branches of their trees.
    if !piece_length.is_power_of_two() || piece_length < BLOCK_BYTES {
        return Err(Error::Key("piece length"));
    }
    let tree = info.get(b"file tree").filter(|tree| tree.is_dict()).ok_or(Error::Key("file tree"))?;
    let found = Files { files: Vec::new(), trees: Vec::new() };
    let mut walk = Walk { found, count: 0, offset: 0, piece_length: piece_length.into() };
    walk.folder(tree, &[name.to_string()], 0)?;
    if let [only] = &mut walk.found.files[..]
        && only.path.len() == 2
        && only.path[1] == name
    {
        only.path.remove(0);
    }
    walk.pad(name)?;
    Ok(walk.found)
}

struct Walk {
    found: Files,
    /// Files without padding.
    count: usize,
    offset: u64,
    piece_length: u64,
}

impl Walk {
    fn folder(&mut self, folder: Node<'_, '_>, path: &[String], depth: usize) -> Result<(), Error> {
        if depth >= MAX_PARTS {
            return Err(PathError::Deep.into());
        }
        for (name, entry) in folder.entries() {
            let mut path = path.to_vec();
            path.push(of_octets(name)?);
            match entry.get(b"") {
                Some(file) if entry.entries().count() == 1 => self.file(file, path)?,
                // What is beside it would be in a folder of a file's name.
                Some(_) => return Err(Error::Key("file tree")),
                None if entry.is_dict() => self.folder(entry, &path, depth + 1)?,
                None => return Err(Error::Key("file tree")),
            }
        }
        Ok(())
    }

    fn file(&mut self, file: Node<'_, '_>, path: Vec<String>) -> Result<(), Error> {
        if self.count >= MAX_FILES {
            return Err(Error::Limit("number of files"));
        }
        let attributes = Attributes::of(file)?;
        let length = file.get(b"length").and_then(Node::uint).ok_or(Error::Key("length"))?;
        if length > 0 {
            let root = file.get(b"pieces root").and_then(Node::bytes).and_then(|root| root.try_into().ok());
            self.pad(&path[0])?;
            self.plant(root.ok_or(Error::Key("pieces root"))?, length)?;
        }
        let is_executable = attributes.is_executable;
        self.found.files.push(File { path, length, offset: self.offset, is_padding: false, is_executable });
        self.count += 1;
        self.offset = self.offset.checked_add(length).ok_or(Error::Limit("length"))?;
        Ok(())
    }

    /// Each file begins with a piece of its own: the rest of the piece before it is padding.
    fn pad(&mut self, name: &str) -> Result<(), Error> {
        let begin = self.offset.checked_next_multiple_of(self.piece_length).ok_or(Error::Limit("length"))?;
        if begin > self.offset {
            let (length, offset) = (begin - self.offset, self.offset);
            // Named as in torrents that say it (BEP 47).
            let path = vec![name.to_string(), ".pad".to_string(), length.to_string()];
            self.found.files.push(File { path, length, offset, is_padding: true, is_executable: false });
            self.offset = begin;
        }
        Ok(())
    }

    fn plant(&mut self, root: Hash, length: u64) -> Result<(), Error> {
        let number = |pieces: u64| u32::try_from(pieces).map_err(|_| Error::Limit("number of pieces"));
        self.found.trees.push(FileTree {
            root,
            length,
            first_piece: number(self.offset / self.piece_length)?,
            pieces: number(length.div_ceil(self.piece_length))?,
        });
        Ok(())
    }
}
