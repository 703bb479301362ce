//! Files that are open: a bounded number of them, each opened, and made, when it is first needed.

use super::error::StorageError;
use super::files::{Access, Near};
use super::{PARTS, Stamp, Storage};
use crate::open_files::is_too_many;
use std::collections::{BTreeSet, HashMap};
use std::fs::{File, Metadata};
use std::io;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Files that are open at once.
pub(super) const MAX_OPEN: usize = 64;
/// How often it is looked whether a file that is read, and not written to, stands as it did.
const LOOK: Duration = Duration::from_secs(1);

/// Files that are open, and those that were.
#[derive(Default)]
pub(super) struct Opened {
    pub files: HashMap<usize, Open>,
    /// Those that were open to be written, and may not be on the disk.
    pub closed: BTreeSet<usize>,
    /// How files stood when they were first opened to be read, or when the last that was written to them was on the disk.
    pub seen: HashMap<usize, Stamp>,
    /// Something is written here, or is to be: how files stand tells nothing of others.
    pub is_written: bool,
    /// Where the file that was opened last to be written is.
    pub near: Near,
}

impl Opened {
    /// Closes one for the sake of another, where one is open.
    pub fn make_room(&mut self) -> bool {
        let oldest = self.files.iter().min_by_key(|(_, open)| open.used).map(|(index, _)| *index);
        let closed = oldest.and_then(|index| Some((index, self.files.remove(&index)?)));
        let is_closed = closed.is_some();
        self.closed.extend(closed.filter(|(_, open)| open.is_writable).map(|(index, _)| index));
        is_closed
    }

    /// Those that may not be on the disk. What is closed meanwhile is for the next time.
    pub fn take_due(&mut self) -> BTreeSet<usize> {
        let mut due = std::mem::take(&mut self.closed);
        due.extend(self.files.iter().filter(|(_, open)| open.is_writable).map(|(index, _)| *index));
        due
    }

    /// A file is to be used; where it is written to it will stand in another way.
    fn expect(&mut self, index: usize, to_write: bool) {
        if to_write {
            self.is_written = true;
            self.seen.remove(&index);
        }
    }

    /// The file is no more.
    pub fn forget(&mut self, index: usize) {
        self.files.remove(&index);
        self.closed.remove(&index);
    }
}

pub(super) struct Open {
    pub file: Arc<File>,
    pub is_writable: bool,
    /// Grows with each use.
    pub used: u64,
    /// When it was last looked whether it still stands as it did.
    pub looked: Instant,
}

impl Storage {
    pub(super) fn lock(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An open file. Where it is to be written and is not there, it is made.
    pub(super) fn file(&self, index: usize, to_write: bool) -> Result<Arc<File>, StorageError> {
        let mut opened = self.lock();
        opened.expect(index, to_write);
        let open = &mut opened.files;
        let newest = open.values().map(|open| open.used).max().unwrap_or(0);
        if let Some(known) = open.get_mut(&index).filter(|open| open.is_writable || !to_write) {
            known.used = newest + 1;
            let file = known.file.clone();
            if !to_write && known.looked.elapsed() >= LOOK {
                known.looked = Instant::now();
                self.recognize(&mut opened, index, &file)?;
            }
            return Ok(file);
        }
        let file = Arc::new(self.open_anew(&mut opened, index, to_write)?);
        if opened.files.len() >= MAX_OPEN {
            opened.make_room();
        }
        if !to_write {
            self.recognize(&mut opened, index, &file)?;
        }
        let (file_too, looked) = (file.clone(), Instant::now());
        let open = Open { file: file_too, is_writable: to_write, used: newest + 1, looked };
        opened.files.insert(index, open);
        Ok(file)
    }

    /// One that is not open.
    fn open_anew(&self, opened: &mut Opened, index: usize, to_write: bool) -> Result<File, StorageError> {
        // What is only read is looked for where it belongs.
        let mut near = if to_write { core::mem::take(&mut opened.near) } else { Near::default() };
        let made = self.open_in_turn(index, to_write, &mut near, || opened.make_room());
        if to_write {
            opened.near = near;
        }
        let action = if to_write { "make or open" } else { "open" };
        let (file, found) = made.map_err(|error| self.failed(index, action, error))?;
        if to_write && index != PARTS && opened.closed.contains(&index) {
            self.expect_length(index, found.len())?;
        }
        Ok(file)
    }

    /// The same to be written. What others have cut is as long again once something is written behind the cut, and nobody would see
    /// what is lost before it.
    pub(super) fn file_to_write(&self, index: usize) -> Result<Arc<File>, StorageError> {
        let is_open = |open: &&Open| open.is_writable;
        let known = self.lock().files.get(&index).filter(is_open).map(|open| open.file.clone());
        // One that is opened now is made as long as it is to be.
        let Some(file) = known.filter(|_| index != PARTS) else { return self.file(index, true) };
        let found = file.metadata().map_err(|error| self.failed(index, "write to", error))?;
        self.expect_length(index, found.len())?;
        self.file(index, true)
    }

    /// As [`Self::open_file`], where the process may have no more open in place of others.
    pub(super) fn open_in_turn(
        &self,
        index: usize,
        to_write: bool,
        near: &mut Near,
        mut make_room: impl FnMut() -> bool,
    ) -> io::Result<(File, Metadata)> {
        loop {
            match self.open_file(index, to_write, near) {
                Err(error) if is_too_many(&error) && make_room() => {}
                made => return made,
            }
        }
    }

    /// Opens a file, and says how it was found.
    pub(super) fn open_file(
        &self,
        index: usize,
        to_write: bool,
        near: &mut Near,
    ) -> io::Result<(File, Metadata)> {
        if index == PARTS {
            let access = if to_write { Access::Write } else { Access::Read };
            return self.folder.file(&[self.parts_name()], access);
        }
        let entry = &self.layout.files()[index];
        let access = match (to_write, entry.is_executable) {
            (false, _) => Access::Read,
            (true, false) => Access::Write,
            (true, true) => Access::WriteProgram,
        };
        let (file, found) = self.folder.file_near(near, &self.kept_path(index), access)?;
        let length = found.len();
        if length > entry.length {
            let text = format!("it has {length} octets, and the torrent says {}; move it away", entry.length);
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        if to_write && length < entry.length {
            file.set_len(entry.length)?;
        }
        Ok((file, found))
    }
}
