//! Whether files still are where they were put.
//!
//! Others may remove, replace or cut a file while it is written. Whoever has it open hears nothing of that, and would write on to
//! what nobody can find.
//!
//! What it leaves out: what others write into a file in place. How it was validated: `tests/storage.rs`, and a whole session in
//! `tests/safety.rs`.

use super::{Storage, StorageError, files};
use std::io;

impl Storage {
    /// Whether the files with a place of their own that a piece reaches into are there, the same that are open, and as long as they
    /// are to be. Everything of the piece has been written.
    ///
    /// # Errors
    /// Which is not, and why.
    pub fn find_files_of(&self, piece: u32) -> Result<(), StorageError> {
        let range = self.layout.piece_range(piece);
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        self.layout.slices(range.start, len).try_for_each(|slice| self.find_file(slice.file))
    }

    /// The same for all files that have content, once all of it has been written.
    ///
    /// # Errors
    /// Which is not there, and why.
    pub fn find_files(&self) -> Result<(), StorageError> {
        (0..self.layout.files().len()).try_for_each(|index| self.find_file(index))
    }

    fn find_file(&self, index: usize) -> Result<(), StorageError> {
        let entry = &self.layout.files()[index];
        if !self.is_wanted(index) || entry.is_padding || entry.length == 0 {
            return Ok(());
        }
        let lost = |error| self.failed(index, "find", error);
        let there = self.open_file(index, false).map_err(|error| lost(named(error)))?;
        let length = there.metadata().map_err(lost)?.len();
        if length < entry.length {
            let text = format!("it has {length} octets of {} now; {ADVICE}", entry.length);
            return Err(self.failed(index, "find all of", io::Error::other(text)));
        }
        let open = self.lock().files.get(&index).map(|open| open.file.clone());
        if open.is_some_and(|open| !files::is_same(&open, &there)) {
            return Err(lost(io::Error::other(format!("another file has taken its place; {ADVICE}"))));
        }
        Ok(())
    }
}

const ADVICE: &str = "start again, and what is missing is fetched";

fn named(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let text = format!("it was moved or removed after it had been written to; {ADVICE}");
            io::Error::new(io::ErrorKind::NotFound, text)
        }
        _ => error,
    }
}
