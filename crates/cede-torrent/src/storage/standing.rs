//! Whether files still are where they were put.
//!
//! Others may remove, replace or cut a file while it is written. Whoever has it open hears nothing of that, and would write on to
//! what nobody can find. And they may write to a file that is given to peers, who would ban whoever sends them something else.
//!
//! What it leaves out: what others write into files in place where anything is written here, too. How it was validated: `tests/storage.rs`,
//! and whole sessions in `tests/safety.rs`.

use super::files::Near;
use super::opened::Opened;
use super::{PARTS, Stamp, Storage, StorageError, files};
use cede_bt::Geometry;
use cede_bt::picker::Begun;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Files that are waited for at a time until they are on the disk: file systems write them out together.
const SETTLE_THREADS: usize = 8;
/// So many, which are mostly in one folder, are one thread's at a time.
const TURN: usize = 16;
/// Whether who has a file open to be read may wait until what others wrote is on the disk.
const TO_BE_READ_IS_ENOUGH: bool = cfg!(unix);

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
        self.layout
            .slices(range.start, len)
            .try_for_each(|slice| self.find_file(slice.file, &mut near).map(drop))
    }

    /// What of a piece that an earlier run began may still be there: blocks that are beyond the end of a file, or that the system
    /// knows nothing was ever written to, are not.
    #[must_use]
    pub fn remains(&self, geometry: &Geometry, begun: &Begun) -> Begun {
        let mut blocks = begun.blocks.clone();
        for number in begun.blocks.iter() {
            let block = geometry.block(begun.piece, number);
            let start = geometry.offset(begun.piece, block.begin);
            let range = start..start + u64::from(block.len);
            if !self.reaches(&range) || self.is_hole(&range) {
                blocks.remove(number);
            }
        }
        Begun { piece: begun.piece, blocks }
    }

    /// Whether the files that have a run of the content are there, and long enough for it.
    fn reaches(&self, range: &Range<u64>) -> bool {
        let Ok(len) = usize::try_from(range.end - range.start) else { return false };
        self.layout.slices(range.start, len).filter(|slice| !slice.is_padding).all(|slice| {
            let (index, at) = self.place(&slice, range.start);
            let found = self.file(index, false).ok().and_then(|file| file.metadata().ok());
            found.is_some_and(|found| found.len() >= at + slice.range.len() as u64)
        })
    }

    /// Waits until what was written is on the disk, and looks whether all files that have content are where they belong, once all of
    /// it has been written. Of each file one look serves both. Nothing more is to be written then.
    ///
    /// # Errors
    /// Which is not there, and why; what the system says.
    pub fn settle(&self) -> Result<(), StorageError> {
        let due = self.lock().take_due();
        let settled = self.settle_files(&due);
        if settled.is_err() {
            self.lock().closed.extend(due);
        } else {
            self.rest();
        }
        settled
    }

    /// Several at a time.
    fn settle_files(&self, due: &BTreeSet<usize>) -> Result<(), StorageError> {
        let count = self.layout.files().len();
        let next = AtomicUsize::new(0);
        let run = || -> Result<(), StorageError> {
            let mut near = Near::default();
            loop {
                let some = next.fetch_add(TURN, Relaxed);
                if some >= count {
                    return Ok(());
                }
                for index in some..count.min(some + TURN) {
                    self.settle_file(index, due.contains(&index), &mut near)?;
                }
            }
        };
        std::thread::scope(|scope| {
            let others = (1..SETTLE_THREADS.min(count.div_ceil(TURN)))
                .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, run).ok());
            let others: Vec<_> = others.collect();
            let parts = if due.contains(&PARTS) { self.sync_in_place(PARTS) } else { Ok(()) };
            let first = parts.and_then(|()| run());
            let rest =
                others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            rest.fold(first, Result::and)
        })
    }

    /// Looks for one file, and waits for what was written to it.
    fn settle_file(&self, index: usize, is_due: bool, near: &mut Near) -> Result<(), StorageError> {
        let Some(there) = self.find_file(index, near)? else { return Ok(()) };
        if is_due && TO_BE_READ_IS_ENOUGH {
            self.sync_it(index, &there)?;
        } else if is_due {
            self.sync_in_place(index)?;
        }
        let mut opened = self.lock();
        if is_due {
            // Some file systems tell of the last change only once it is written out.
            opened.seen.remove(&index);
        }
        self.recognize(&mut opened, index, &there)
    }

    /// Waits for what was written to a file. One that is not there has nothing to wait for.
    fn sync_in_place(&self, index: usize) -> Result<(), StorageError> {
        match self.file(index, !TO_BE_READ_IS_ENOUGH) {
            Err(StorageError { error, .. }) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            file => self.sync_it(index, &*file?),
        }
    }

    fn sync_it(&self, index: usize, file: &File) -> Result<(), StorageError> {
        file.sync_data().map_err(|error| self.failed(index, "write out", error))
    }

    /// Nothing more is written: from now on it is looked whether others do.
    pub fn rest(&self) {
        self.lock().is_written = false;
    }

    /// Whether a file stands as it did when it was first opened, where nothing is written. Its length and the time of its last change
    /// tell.
    pub(super) fn recognize(
        &self,
        opened: &mut Opened,
        index: usize,
        file: &File,
    ) -> Result<(), StorageError> {
        if index == PARTS {
            return Ok(());
        }
        let failed = |error| self.failed(index, "read", error);
        let metadata = file.metadata().map_err(failed)?;
        let Some(stamp) = Stamp::from_metadata(&metadata) else { return Ok(()) };
        let before = *opened.seen.entry(index).or_insert(stamp);
        if opened.is_written || before == stamp {
            return Ok(());
        }
        Err(failed(if stamp.is_shorter_than(before) {
            io::ErrorKind::UnexpectedEof.into()
        } else {
            let text = "others have written to it since it was checked; start again, and what is still right is given";
            io::Error::other(text)
        }))
    }

    /// Looks for a file that has content and a place of its own. `None` where it is no such file.
    fn find_file(&self, index: usize, near: &mut Near) -> Result<Option<File>, StorageError> {
        let entry = &self.layout.files()[index];
        if !self.is_wanted(index) || entry.is_padding || entry.length == 0 {
            return Ok(None);
        }
        let spoilt = |error| self.failed(index, "go on with", error);
        let opened = self.open_in_turn(index, false, near, || self.lock().make_room());
        let (there, found) = opened.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.failed(index, "find", gone()),
            _ => spoilt(error),
        })?;
        self.expect_length(index, found.len())?;
        let open = self.lock().files.get(&index).map(|open| open.file.clone());
        if open.is_some_and(|open| !files::is_same(&open, &there)) {
            return Err(spoilt(io::Error::other(format!("another file has taken its place; {ADVICE}"))));
        }
        Ok(Some(there))
    }

    /// Whether a file that was opened to be written, and so made as long as it is to be, still is so long.
    pub(super) fn expect_length(&self, index: usize, found: u64) -> Result<(), StorageError> {
        let length = self.layout.files()[index].length;
        if found >= length {
            return Ok(());
        }
        let text = format!("it has {found} octets of {length} now; {ADVICE}");
        Err(self.failed(index, "go on with", io::Error::other(text)))
    }
}

const ADVICE: &str = "start again, and what is missing is fetched";

fn gone() -> io::Error {
    let text = format!("it was moved or removed after it had been written to; {ADVICE}");
    io::Error::new(io::ErrorKind::NotFound, text)
}

#[cfg(test)]
mod tests {
    use super::super::opened::MAX_OPEN;
    use super::*;
    use cede_bt::metainfo::{self, Info, Writer, sha1};
    use std::fs;

    const FILES: usize = MAX_OPEN + 40;
    const BYTES: usize = 10;

    /// Many files of a few octets, and the octets.
    fn torrent() -> (Info, Vec<u8>) {
        let content: Vec<u8> = (0..FILES * BYTES).map(|at| at as u8).collect();
        let file = |at: usize| metainfo::File {
            path: vec!["t".to_owned(), format!("f{at}")],
            length: BYTES as u64,
            offset: (at * BYTES) as u64,
            is_padding: false,
            is_executable: false,
        };
        let (files, pieces) = ((0..FILES).map(file).collect(), sha1(&content).to_vec());
        let writer =
            Writer { name: "t".to_owned(), piece_length: 1 << 14, pieces, files, ..Writer::default() };
        (Info::parse(&writer.info().encode()).unwrap(), content)
    }

    #[test]
    fn what_is_on_the_disk_is_not_waited_for_again_and_what_may_not_be_is() {
        let folder = std::env::temp_dir().join(format!("cede-settle-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (info, content) = torrent();
        let storage = Storage::new(&folder, &info, &[]).unwrap();
        let closed = || storage.lock().closed.len();
        storage.write(0, &content).unwrap();
        assert_eq!(closed(), FILES - MAX_OPEN);
        storage.settle().unwrap();
        assert_eq!(closed(), 0);
        storage.write(0, &content).unwrap();
        fs::remove_file(storage.path_of(0)).unwrap();
        assert!(storage.settle().is_err());
        assert_eq!(closed(), FILES, "they are waited for the next time");
        fs::remove_dir_all(&folder).unwrap();
    }
}
