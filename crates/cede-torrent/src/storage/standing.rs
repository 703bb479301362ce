//! Whether files still are where they were put.
//!
//! Others may remove, replace or cut a file while it is written. Whoever has it open hears nothing of that, and would write on to
//! what nobody can find. And they may write to a file that is given to peers, who would ban whoever sends them something else.
//!
//! What it leaves out: what others write into files in place where anything is written here, too. How it was validated: `tests/storage.rs`,
//! and whole sessions in `tests/safety.rs`.

use super::files::Near;
use super::{Opened, PARTS, Stamp, Storage, StorageError, files};
use std::fs::File;
use std::io;
use std::time::Duration;

/// How often it is looked whether a file that is only read stands as it did.
pub(super) const LOOK: Duration = Duration::from_secs(1);

impl Storage {
    /// Whether the files with a place of their own that a piece reaches into are there, the same that are open, and as long as they
    /// are to be. Everything of the piece has been written.
    ///
    /// # Errors
    /// Which is not, and why.
    pub fn find_files_of(&self, piece: u32) -> Result<(), StorageError> {
        let range = self.layout.piece_range(piece);
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut near = Near::default();
        self.layout.slices(range.start, len).try_for_each(|slice| self.find_file(slice.file, &mut near))
    }

    /// The same for all files that have content, once all of it has been written.
    ///
    /// # Errors
    /// Which is not there, and why.
    pub fn find_files(&self) -> Result<(), StorageError> {
        let mut near = Near::default();
        (0..self.layout.files().len()).try_for_each(|index| self.find_file(index, &mut near))
    }

    /// Whether a file stands as it did when it was first opened, where nothing is written. Its length and the time of its last change
    /// tell.
    pub(super) fn recognize(
        &self,
        opened: &mut Opened,
        index: usize,
        file: &File,
    ) -> Result<(), StorageError> {
        if opened.is_written || index == PARTS {
            return Ok(());
        }
        let failed = |error| self.failed(index, "read", error);
        let metadata = file.metadata().map_err(failed)?;
        let Some(stamp) = Stamp::from_metadata(&metadata) else { return Ok(()) };
        let before = *opened.seen.entry(index).or_insert(stamp);
        if before == stamp {
            return Ok(());
        }
        Err(failed(if stamp.is_shorter_than(before) {
            io::ErrorKind::UnexpectedEof.into()
        } else {
            let text = "others have written to it since it was checked; start again, and what is still right is given";
            io::Error::other(text)
        }))
    }

    fn find_file(&self, index: usize, near: &mut Near) -> Result<(), StorageError> {
        let entry = &self.layout.files()[index];
        if !self.is_wanted(index) || entry.is_padding || entry.length == 0 {
            return Ok(());
        }
        let spoilt = |error| self.failed(index, "go on with", error);
        let there = self.open_file(index, false, near).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.failed(index, "find", gone()),
            _ => spoilt(error),
        })?;
        let length = there.metadata().map_err(spoilt)?.len();
        if length < entry.length {
            let text = format!("it has {length} octets of {} now; {ADVICE}", entry.length);
            return Err(spoilt(io::Error::other(text)));
        }
        let open = self.lock().files.get(&index).map(|open| open.file.clone());
        if open.is_some_and(|open| !files::is_same(&open, &there)) {
            return Err(spoilt(io::Error::other(format!("another file has taken its place; {ADVICE}"))));
        }
        Ok(())
    }
}

const ADVICE: &str = "start again, and what is missing is fetched";

fn gone() -> io::Error {
    let text = format!("it was moved or removed after it had been written to; {ADVICE}");
    io::Error::new(io::ErrorKind::NotFound, text)
}
