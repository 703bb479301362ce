//! The file tree of BEP 52.

use super::path::of_octets;
use super::{Attributes, Error, File, MAX_FILES, PathError};
use crate::bencode::Node;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Folders inside each other.
const MAX_DEPTH: usize = 40;

/// The files of a v2 dictionary. A torrent of one file at the top is that file, and a folder otherwise.
pub(super) fn files(info: Node<'_, '_>, name: &str, piece_length: u32) -> Result<Vec<File>, Error> {
    let tree = info.get(b"file tree").filter(|tree| tree.is_dict()).ok_or(Error::Key("file tree"))?;
    let mut walk = Walk { files: Vec::new(), offset: 0, piece_length: piece_length.into() };
    walk.folder(tree, &[name.to_string()], 0)?;
    let mut files = walk.files;
    if let [only] = &mut files[..]
        && only.path.len() == 2
        && only.path[1] == name
    {
        only.path.remove(0);
    }
    Ok(files)
}

struct Walk {
    files: Vec<File>,
    offset: u64,
    piece_length: u64,
}

impl Walk {
    fn folder(&mut self, folder: Node<'_, '_>, path: &[String], depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(PathError::Long.into());
        }
        for (name, entry) in folder.entries() {
            let mut path = path.to_vec();
            path.push(of_octets(name)?);
            match entry.get(b"") {
                Some(file) => self.file(file, path)?,
                None if entry.is_dict() => self.folder(entry, &path, depth + 1)?,
                None => return Err(Error::Key("file tree")),
            }
        }
        Ok(())
    }

    fn file(&mut self, file: Node<'_, '_>, path: Vec<String>) -> Result<(), Error> {
        if self.files.len() >= MAX_FILES {
            return Err(Error::Limit("number of files"));
        }
        let attributes = Attributes::of(file)?;
        let length = file.get(b"length").and_then(Node::uint).ok_or(Error::Key("length"))?;
        let root = file.get(b"pieces root").and_then(Node::bytes);
        if length > 0 && root.is_none_or(|root| root.len() != 32) {
            return Err(Error::Key("pieces root"));
        }
        let is_executable = attributes.is_executable;
        self.files.push(File { path, length, offset: self.offset, is_padding: false, is_executable });
        // Each file begins with a piece of its own.
        let pieces = length.div_ceil(self.piece_length);
        let span = pieces.checked_mul(self.piece_length).ok_or(Error::Limit("length"))?;
        self.offset = self.offset.checked_add(span).ok_or(Error::Limit("length"))?;
        Ok(())
    }
}
