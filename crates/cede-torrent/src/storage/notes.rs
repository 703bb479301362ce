//! Notes about a download that is not over: a small hidden file beside it.
//!
//! They only ever save work: a piece that they call missing is not looked at if no file has changed since. A piece that they
//! call whole is hashed like any other before it is offered to anybody, and so is one that they call begun once the rest of it
//! has come. While a download runs the file is locked, so that no
//! two processes write to the same.

use super::files::{Access, Folder};
use super::{Layout, StorageError, files, hex};
use cede_bt::bencode::{Document, Form, Limits, Node};
use cede_bt::metainfo::sha1;
use cede_bt::picker::Begun;
use cede_bt::{Bitfield, Geometry};
use std::cell::Cell;
use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// A million pieces take an eighth of that.
const MAX_BYTES: u64 = 64 << 20;

/// The hidden file, open and locked.
pub struct Notes {
    folder: Folder,
    name: String,
    file: File,
    is_new: bool,
    /// The digest of what was written last: what has not changed is not written again, which would keep a disk awake.
    written: Cell<Option<[u8; 20]>>,
}

impl Notes {
    /// Opens or makes the notes of a torrent in the folder of its download.
    ///
    /// # Errors
    /// What the system says; `ResourceBusy` where another process has the same download open.
    pub fn open(folder: &Path, hash: &[u8; 20]) -> Result<Self, StorageError> {
        let name = name(hash);
        let path = folder.join(&name);
        let failed = |error| StorageError { path: path.clone(), action: "open", error };
        let folder = Folder::open(folder).map_err(failed)?;
        let own = std::slice::from_ref(&name);
        let is_new =
            folder.file(own, Access::Read).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let (file, _) = folder.file(own, Access::Write).map_err(failed)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let text = "another process is at the same download";
            return Err(failed(io::Error::new(io::ErrorKind::ResourceBusy, text)));
        }
        Ok(Self { folder, name, file, is_new, written: Cell::default() })
    }

    /// Nothing tells of an earlier run: not even one that was ended before it wrote anything down.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// The pieces that are missing for certain, one flag each: all others are to be hashed. Without usable notes, or where a
    /// file has changed since they were written, none is.
    #[must_use]
    pub fn missing(&self, layout: &Layout, files: &[Option<Stamp>]) -> Vec<bool> {
        let count = layout.piece_count() as usize;
        let missing = self.read(|root| {
            let written: Vec<Option<Stamp>> = root.get(b"files")?.items().map(Stamp::read).collect();
            let pieces = root.get(b"pieces")?.bytes().filter(|bits| bits.len() == count.div_ceil(8))?;
            (written == files).then(|| (0..count).map(|at| pieces[at / 8] << (at % 8) & 0x80 == 0).collect())
        });
        missing.unwrap_or_else(|| vec![false; count])
    }

    /// Pieces of which blocks were there. That holds as well where files have changed since: a process that was killed has written
    /// more to them, and nothing else. Whether the blocks can be read is for others to find out.
    #[must_use]
    pub fn begun(&self, geometry: &Geometry) -> Vec<Begun> {
        let part = |item: Node<'_, '_>| {
            let piece = u32::try_from(item.get(b"piece")?.uint()?).ok()?;
            let blocks = Bitfield::from_octets(item.get(b"blocks")?.bytes()?, geometry.blocks(piece))?;
            (piece < geometry.pieces()).then_some(Begun { piece, blocks })
        };
        let begun = self.read(|root| Some(root.get(b"begun")?.items().filter_map(part).collect()));
        begun.unwrap_or_default()
    }

    /// What is taken of that which is written down, where it can be read.
    fn read<T>(&self, take: impl FnOnce(Node<'_, '_>) -> Option<T>) -> Option<T> {
        let length = self.file.metadata().ok()?.len();
        let mut octets = vec![0; usize::try_from(length.min(MAX_BYTES)).ok()?];
        files::read_at(&self.file, &mut octets, 0).ok()?;
        let (document, _) = Document::parse_prefix(&octets, Limits::CANONICAL).ok()?;
        take(document.root())
    }

    /// Writes down which pieces are there, what is there of others, and how the files stand, unless nothing of that has changed since the last time.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(
        &self,
        whole: &[bool],
        begun: &[Begun],
        files: &[Option<Stamp>],
    ) -> Result<(), StorageError> {
        let mut bits = vec![0_u8; whole.len().div_ceil(8)];
        for (at, _) in whole.iter().enumerate().filter(|(_, is_whole)| **is_whole) {
            bits[at / 8] |= 0x80 >> (at % 8);
        }
        let stamps = files.iter().map(|stamp| stamp.map_or_else(Form::dict, Stamp::form)).collect::<Vec<_>>();
        let begun = begun.iter().map(|Begun { piece, blocks }| {
            Form::dict().with("blocks", blocks.to_octets()).with("piece", i64::from(*piece))
        });
        let begun = begun.collect::<Vec<_>>();
        let octets = Form::dict().with("begun", begun).with("files", stamps).with("pieces", bits).encode();
        let digest = sha1(&octets);
        if self.written.replace(None) == Some(digest) {
            self.written.set(Some(digest));
            return Ok(());
        }
        let written =
            files::write_at(&self.file, &octets, 0).and_then(|()| self.file.set_len(octets.len() as u64));
        written.map(|()| self.written.set(Some(digest))).map_err(|error| StorageError {
            path: self.folder.path().join(&self.name),
            action: "write to",
            error,
        })
    }

    /// Removes notes of a download that has not begun. Those of an earlier run are kept, even where nothing stands in them: that
    /// there was one is what they say.
    pub fn discard_if_new(self) {
        if self.is_new {
            self.discard();
        }
    }

    /// Removes the notes: there is nothing left to resume.
    pub fn discard(self) {
        let _ = self.folder.remove(&[self.name]);
    }
}

/// What the notes of a torrent are called.
pub(super) fn name(hash: &[u8; 20]) -> String {
    format!(".{}.cede-resume", hex(hash))
}

/// How a file stood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    length: u64,
    modified_ns: i64,
}

impl Stamp {
    /// That of the file at a path, where there is one.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        Self::from_metadata(&std::fs::symlink_metadata(path).ok()?)
    }

    /// The same from what the system says; none where that is no plain file.
    pub(crate) fn from_metadata(metadata: &Metadata) -> Option<Self> {
        if !metadata.is_file() {
            return None;
        }
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self { length: metadata.len(), modified_ns: i64::try_from(modified.as_nanos()).ok()? })
    }

    /// As numbers, for others to write down: octets, and nanoseconds since 1970 when it was written to last.
    #[must_use]
    pub const fn numbers(self) -> (u64, i64) {
        (self.length, self.modified_ns)
    }

    /// The same from these.
    #[must_use]
    pub const fn of_numbers((length, modified_ns): (u64, i64)) -> Self {
        Self { length, modified_ns }
    }

    /// Whether it had fewer octets.
    pub(crate) const fn is_shorter_than(self, other: Self) -> bool {
        self.length < other.length
    }

    fn form(self) -> Form {
        Form::dict().with("length", self.length).with("modified", self.modified_ns)
    }

    fn read(node: Node<'_, '_>) -> Option<Self> {
        Some(Self { length: node.get(b"length")?.uint()?, modified_ns: node.get(b"modified")?.int()? })
    }
}
