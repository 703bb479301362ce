//! A torrent's content in files.
//!
//! Files are sparse unless space is to be set aside. What is written is written in place, so nothing is lost when the
//! process is killed; which pieces are whole is told by their hashes alone ([`crate::check`]), and [`Notes`] only say
//! which need not be looked at. Files that are not wanted get no place of their own: the ends of pieces that reach into
//! them are kept in one hidden sparse file, where each octet has the place that it has in the torrent. Once other files are
//! wanted, [`crate::mend`] brings what is in the one place into the other.
//!
//! What it leaves out: what others write into files in place is noticed when a hash is next computed, not before; where nothing is
//! written at all, when such a file is read a second later. How it was validated: tests of reading, writing, resuming and of names
//! that are links (`tests/storage.rs`), of a disk that is full and of files that are taken away (`tests/safety.rs`), and of a process
//! that is killed (`cede`'s `tests/torrent.rs`).

mod claims;
mod error;
pub(crate) mod files;
mod layout;
mod names;
mod notes;
mod opened;
mod prepare;
mod standing;

pub use claims::{Claims, Clash};
pub use error::StorageError;
pub use layout::{Layout, Slice};
pub use notes::{Notes, Stamp};

use cede_bt::metainfo::Info;
use files::Folder;
use names::Taken;
use opened::Opened;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// The index of the hidden file among the open ones.
const PARTS: usize = usize::MAX;

/// How room is made for files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Allocation {
    /// A file takes the room of what has been written to it.
    #[default]
    Sparse,
    /// All of it is set aside at the beginning, so that a full disk is noticed then.
    Full,
}

/// Which of two places the octets of a file are kept in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    /// The file itself.
    Own,
    /// The hidden file with the ends of pieces.
    Parts,
}

/// Why a file has another name than its torrent says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Renamed {
    /// No file system takes one so long.
    Long,
    /// This one does not take all characters of it.
    Odd,
}

/// A torrent's content.
pub struct Storage {
    folder: Folder,
    layout: Layout,
    hash: [u8; 20],
    wanted: Vec<bool>,
    /// What is taken there in names, as far as that is known.
    taken: OnceLock<Taken>,
    opened: Mutex<Opened>,
}

impl Storage {
    /// The content of a torrent below a folder, which must exist. Nothing is made yet. `wanted` tells for each file
    /// whether it gets a place; beyond its end all do. What is there already tells under which names it is kept.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub fn new(folder: &Path, info: &Info, wanted: &[bool]) -> Result<Self, StorageError> {
        let layout = Layout::new(info);
        if let Some(path) = names::clash(layout.files()) {
            let path = path.iter().fold(folder.to_path_buf(), |path, part| path.join(part));
            let error = io::Error::new(io::ErrorKind::InvalidInput, "two files would be kept there");
            return Err(StorageError { path, action: "make", error });
        }
        let wanted = (0..layout.files().len()).map(|file| wanted.get(file).copied().unwrap_or(true));
        let storage = Self {
            folder: Folder::open(folder).map_err(|error| StorageError {
                path: folder.to_path_buf(),
                action: "open",
                error,
            })?,
            wanted: wanted.collect(),
            layout,
            hash: info.info_hash(),
            taken: OnceLock::new(),
            opened: Mutex::default(),
        };
        storage.see_names();
        Ok(storage)
    }

    /// Where in the content which file lies.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether a file has a place of its own.
    #[must_use]
    pub fn is_wanted(&self, file: usize) -> bool {
        self.wanted.get(file).copied().unwrap_or(false)
    }

    /// Whether every file has a place of its own; padding needs none.
    #[must_use]
    pub fn wants_everything(&self) -> bool {
        self.layout.files().iter().zip(&self.wanted).all(|(file, is_wanted)| *is_wanted || file.is_padding)
    }

    /// The pieces with octets of files that have a place, a flag for each piece.
    #[must_use]
    pub fn wanted_pieces(&self) -> Vec<bool> {
        let mut wanted = vec![false; self.layout.piece_count() as usize];
        let files = (0..self.layout.files().len()).filter(|file| self.is_wanted(*file));
        for piece in files.flat_map(|file| self.layout.pieces_of(file)) {
            wanted[piece as usize] = true;
        }
        wanted
    }

    /// Where the octets of a file are kept.
    pub(crate) fn home(&self, file: usize) -> Home {
        if self.is_wanted(file) { Home::Own } else { Home::Parts }
    }

    /// Whether there is a hidden file with the ends of pieces.
    #[must_use]
    pub fn has_parts(&self) -> bool {
        self.file(PARTS, false).is_ok()
    }

    /// Where a file is, or would be.
    #[must_use]
    pub fn path_of(&self, file: usize) -> PathBuf {
        let kept = self.kept_path(file).into_iter();
        kept.fold(self.folder.path().to_path_buf(), |path, part| path.join(part))
    }

    /// The same below the folder.
    fn kept_path(&self, file: usize) -> Vec<String> {
        let parts = self.layout.files().get(file).map(|file| &file.path[..]).unwrap_or_default();
        names::kept_path(parts, self.taken.get().copied().unwrap_or_default())
    }

    /// Whether all wanted files are there, as long as they are to be.
    #[must_use]
    pub fn has_all_files(&self) -> bool {
        self.own_files().all(|at| {
            let found = self.path_of(at).symlink_metadata();
            found.is_ok_and(|found| found.is_file() && found.len() == self.layout.files()[at].length)
        })
    }

    /// Why a file is kept under another name than the torrent has for it, if it is.
    #[must_use]
    pub fn renamed(&self, file: usize) -> Option<Renamed> {
        let parts = self.layout.files().get(file).map(|file| &file.path[..]).unwrap_or_default();
        if self.taken.get() == Some(&Taken::Plain) && names::odd(parts).next().is_some() {
            return Some(Renamed::Odd);
        }
        parts.iter().any(|part| names::kept(part, Taken::All) != *part).then_some(Renamed::Long)
    }

    /// The name of the hidden file with the ends of pieces.
    fn parts_name(&self) -> String {
        format!(".{}.cede-parts", hex(&self.hash))
    }

    /// Writes octets at a place of the content, which must not reach beyond its end.
    ///
    /// # Errors
    /// What the system says. Part of the octets may be there.
    pub fn write(&self, offset: u64, octets: &[u8]) -> Result<(), StorageError> {
        for slice in self.layout.slices(offset, octets.len()) {
            let octets = &octets[slice.range.clone()];
            if slice.is_padding {
                continue;
            }
            let (index, at) = self.place(&slice, offset);
            let file = self.file_to_write(index)?;
            files::write_at(&file, octets, at).map_err(|error| self.failed(index, "write to", error))?;
        }
        Ok(())
    }

    /// Reads octets from a place of the content, which must not reach beyond its end.
    ///
    /// # Errors
    /// What the system says; `UnexpectedEof` or `NotFound` where nothing has been written yet.
    pub fn read(&self, offset: u64, octets: &mut [u8]) -> Result<(), StorageError> {
        self.read_by(offset, octets, |file| self.home(file))
    }

    /// The same from wherever `home` says that the octets of a file are.
    pub(crate) fn read_by(
        &self,
        offset: u64,
        octets: &mut [u8],
        home: impl Fn(usize) -> Home,
    ) -> Result<(), StorageError> {
        for slice in self.layout.slices(offset, octets.len()) {
            let octets = &mut octets[slice.range.clone()];
            if slice.is_padding {
                octets.fill(0);
                continue;
            }
            let (index, at) = place_in(home(slice.file), &slice, offset);
            let file = self.file(index, false)?;
            files::read_at(&file, octets, at).map_err(|error| self.failed(index, "read", error))?;
        }
        Ok(())
    }

    /// Whether the system knows that nothing was ever written to a run of the content, so that it reads as zeros. Where it
    /// cannot tell, it is no hole.
    #[must_use]
    pub fn is_hole(&self, range: &Range<u64>) -> bool {
        let Ok(len) = usize::try_from(range.end - range.start) else { return false };
        self.layout.slices(range.start, len).all(|slice| {
            let (index, at) = self.place(&slice, range.start);
            slice.is_padding
                || self
                    .file(index, false)
                    .is_ok_and(|file| files::is_hole(&file, &(at..at + slice.range.len() as u64)))
        })
    }

    /// Writes parts that lie one behind the other in the content, in as few calls as that takes.
    ///
    /// # Errors
    /// As [`Storage::write`].
    pub fn write_parts(&self, offset: u64, parts: &[&[u8]]) -> Result<(), StorageError> {
        if let Some((index, at)) = self.one_place(offset, parts.iter().map(|part| part.len()).sum()) {
            let file = self.file_to_write(index)?;
            return files::write_parts(&file, parts, at)
                .map_err(|error| self.failed(index, "write to", error));
        }
        let mut at = offset;
        parts.iter().try_for_each(|part| {
            self.write(at, part)?;
            at += part.len() as u64;
            Ok(())
        })
    }

    /// Reads parts that lie one behind the other in the content, in as few calls as that takes.
    ///
    /// # Errors
    /// As [`Storage::read`].
    pub fn read_parts(&self, offset: u64, parts: &mut [&mut [u8]]) -> Result<(), StorageError> {
        if let Some((index, at)) = self.one_place(offset, parts.iter().map(|part| part.len()).sum()) {
            let file = self.file(index, false)?;
            return files::read_parts(&file, parts, at).map_err(|error| self.failed(index, "read", error));
        }
        let mut at = offset;
        parts.iter_mut().try_for_each(|part| {
            self.read(at, part)?;
            at += part.len() as u64;
            Ok(())
        })
    }

    /// The file that a run of the content is in, and where; `None` where it is in several, or nowhere.
    fn one_place(&self, offset: u64, len: usize) -> Option<(usize, u64)> {
        let slice = self.layout.slices(offset, len).next()?;
        (slice.range == (0..len) && !slice.is_padding).then(|| self.place(&slice, offset))
    }

    /// Which file a slice is in, and where.
    fn place(&self, slice: &Slice, offset: u64) -> (usize, u64) {
        place_in(self.home(slice.file), slice, offset)
    }

    /// Removes the hidden file with the ends of pieces, once nobody is to be served from it.
    pub fn discard_parts(&self) {
        self.lock().forget(PARTS);
        let _ = self.folder.remove(&[self.parts_name()]);
    }

    /// Removes the torrent's files, those that are not wanted among them, what an unfinished download has beside them, and the folders that
    /// are empty then. None is reached through a link. What is at places of others stays.
    ///
    /// # Errors
    /// The first file that is there and stays; the others are gone.
    pub fn remove_files(&self, is_others: impl Fn(&Path) -> bool) -> Result<(), StorageError> {
        self.discard_parts();
        let _ = self.folder.remove(&[notes::name(&self.hash)]);
        let (mut first, mut folders) = (Ok(()), BTreeSet::new());
        for (file, about) in self.layout.files().iter().enumerate() {
            if about.is_padding || is_others(&self.path_of(file)) {
                continue;
            }
            let path = self.kept_path(file);
            self.lock().forget(file);
            match self.folder.remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound && first.is_ok() => {
                    first = Err(self.failed(file, "remove", error));
                }
                _ => {}
            }
            folders.extend((1..path.len()).map(|depth| path[..depth].to_vec()));
        }
        // Those within others come first.
        folders.iter().rev().for_each(|path| drop(self.folder.remove_folder(path)));
        first
    }

    fn failed(&self, index: usize, action: &'static str, error: io::Error) -> StorageError {
        let path =
            if index == PARTS { self.folder.path().join(self.parts_name()) } else { self.path_of(index) };
        StorageError { path, action, error }
    }
}

/// The same, with that home.
const fn place_in(home: Home, slice: &Slice, offset: u64) -> (usize, u64) {
    match home {
        Home::Own => (slice.file, slice.offset),
        Home::Parts => (PARTS, offset + slice.range.start as u64),
    }
}

/// Hexadecimal digits.
pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
