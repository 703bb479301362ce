//! What is looked at, and made, before anything of a torrent is fetched.

use super::files::{Access, Near};
use super::names::Taken;
use super::{Allocation, Storage, StorageError, files, names};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Files with several names, the first of each that was met, and whether something of it is missing.
type Linked = HashMap<(u64, u64), (usize, bool)>;

/// What is read at once of a file that may be somebody else's.
const CHUNK_BYTES: usize = 256 << 10;

impl Storage {
    /// Refuses at the beginning what would be refused when the first octets of a file come. Nothing is made. From now on something is
    /// to be written here.
    ///
    /// # Errors
    /// What is at a file's place cannot be it: it is longer, behind a link, or another file's.
    pub fn claim(&self) -> Result<(), StorageError> {
        self.lock().is_written = true;
        self.try_names();
        let mut made = Vec::new();
        let told = self.tell_apart(&mut made);
        self.unmake(made);
        told.and_then(|()| self.in_the_way(1).pop().map_or(Ok(()), Err))
    }

    /// What is at the places of wanted files and cannot be they, being longer or behind a link, or cannot be opened: so many at most.
    #[must_use]
    pub fn in_the_way(&self, most: usize) -> Vec<StorageError> {
        let mut near = Near::default();
        let look = |index: usize| {
            let error = self.open_file(index, false, &mut near).err()?;
            (error.kind() != io::ErrorKind::NotFound).then(|| self.failed(index, "open", error))
        };
        self.own_files().filter_map(look).take(most).collect()
    }

    /// The files that have a place of their own.
    pub(super) fn own_files(&self) -> impl Iterator<Item = usize> + '_ {
        let files = self.layout.files();
        (0..files.len()).filter(|index| self.is_wanted(*index) && !files[*index].is_padding)
    }

    /// The wanted files of whose names some file systems do not take all.
    fn odd_files(&self) -> impl Iterator<Item = usize> + '_ {
        self.own_files().filter(|index| names::odd(&self.layout.files()[*index].path).next().is_some())
    }

    /// What is there of odd files tells what the file system takes in their names. A substitute counts that is as long as the file, and no
    /// other file's name.
    pub(super) fn see_names(&self) {
        let files = self.layout.files();
        let is_there = |index: usize, taken| {
            let path = names::kept_path(&files[index].path, taken);
            let found = self.folder.file(&path, Access::Read).ok();
            found.is_some_and(|(_, found)| {
                taken == Taken::All
                    || found.len() == files[index].length && files.iter().all(|file| file.path != path)
            })
        };
        let seen = self
            .odd_files()
            .find_map(|index| [Taken::All, Taken::Plain].into_iter().find(|taken| is_there(index, *taken)));
        if let Some(taken) = seen {
            self.taken.get_or_init(|| taken);
        }
    }

    /// Where nothing of odd files is there: whether a file can have all of their odd characters in its name. Those that cannot be made
    /// otherwise either are told of by who uses them.
    fn try_names(&self) {
        let odd: BTreeSet<char> =
            self.odd_files().flat_map(|index| names::odd(&self.layout.files()[index].path)).collect();
        if odd.is_empty() || self.taken.get().is_some() {
            return;
        }
        let name = format!("{}-{}", self.parts_name(), odd.into_iter().collect::<String>());
        let is_taken = |taken| {
            let path = [names::kept(&name, taken).into_owned()];
            let is_made = self.folder.file(&path, Access::Write).is_ok();
            is_made && self.folder.remove(&path).is_ok()
        };
        let taken = if !is_taken(Taken::All) && is_taken(Taken::Plain) { Taken::Plain } else { Taken::All };
        self.taken.get_or_init(|| taken);
    }

    /// Refuses files that are one to the file system, and would be written over each other. Where names are alike, that is seen once one
    /// of them is there.
    fn tell_apart(&self, made: &mut Vec<usize>) -> Result<(), StorageError> {
        let taken = self.taken.get().copied().unwrap_or_default();
        for (index, other) in names::alike(self.layout.files(), taken, |index| self.is_wanted(index)) {
            let find = |file: usize| self.folder.file(&self.kept_path(file), Access::Read);
            let is_missing =
                |file: usize| find(file).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            let was_missing = is_missing(other);
            let is_made = is_missing(index);
            if is_made {
                made.push(index);
                self.open_file(index, true, &mut Near::default())
                    .map_err(|error| self.failed(index, "make", error))?;
            }
            // Where one has come with the other it is the same, whatever number each has: in user space some file systems give them two. What
            // is wrong with either is told by who uses it.
            let is_one = is_made && was_missing && !is_missing(other)
                || matches!((find(index), find(other)), (Ok((one, _)), Ok((two, _))) if files::is_same(&one, &two));
            if is_one {
                let text = format!(
                    "in this folder it is the same file as {}; take another folder, or one of both by --files",
                    self.path_of(index).display()
                );
                return Err(self.failed(other, "make", io::Error::new(io::ErrorKind::InvalidInput, text)));
            }
        }
        Ok(())
    }

    /// The first file in which something is that is not zeros, as whoever begins a torrent may have set aside. Where no piece
    /// was found and nothing tells of an earlier run, that is somebody else's. What cannot be read is told by who uses it.
    #[must_use]
    pub fn stranger(&self, is_ended: &AtomicBool) -> Option<PathBuf> {
        let mut near = Near::default();
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut has_content = |index: &usize| {
            let opened = self.open_file(*index, false, &mut near);
            opened.is_ok_and(|(file, found)| {
                is_blank(&file, found.len(), &mut buffer, is_ended).is_ok_and(|is_blank| !is_blank)
            })
        };
        self.own_files().find(|index| has_content(index)).map(|index| self.path_of(index))
    }

    /// Makes the files that have no content, and with [`Allocation::Full`] room for those of which something is missing: pieces that
    /// `whole` does not tell of; looks whether such files may be written to where they are there.
    ///
    /// # Errors
    /// A file cannot be made or written to, or is another one, too, or there is no room. Files that were not there before are removed
    /// again; folders stay.
    pub fn make_room(&self, allocation: Allocation, whole: &[bool]) -> Result<(), StorageError> {
        let (mut made, mut linked) = (Vec::new(), Linked::new());
        let is_whole = |piece: u32| whole.get(piece as usize).copied().unwrap_or(false);
        let mut near = Near::default();
        let outcome = self.own_files().try_for_each(|index| {
            let length = self.layout.files()[index].length;
            let is_due = !self.layout.pieces_of(index).all(is_whole);
            let there = self.path_of(index).symlink_metadata().ok();
            let number = there.as_ref().and_then(files::linked);
            number.map_or(Ok(()), |number| self.tell_from_linked(&mut linked, number, (index, is_due)))?;
            if length == 0 || is_due && allocation == Allocation::Full {
                made.extend(there.is_none().then_some(index));
                let open = self.file(index, true)?;
                let room = if length == 0 { Ok(()) } else { files::set_aside(&open, length) };
                room.map_err(|error| self.failed(index, "make", error))
            } else if is_due && there.is_some() {
                let opened = self.open_in_turn(index, true, &mut near, || self.lock().make_room());
                opened.map(drop).map_err(|error| self.failed(index, "write to", error))
            } else {
                Ok(())
            }
        });
        if outcome.is_err() {
            self.unmake(made);
        }
        outcome
    }

    /// Refuses two files that are one by a hard link, where something is to be written to either: what is right of one would be lost with
    /// the other. Those that are alike stay one as long as nothing is missing.
    fn tell_from_linked(
        &self,
        linked: &mut Linked,
        number: (u64, u64),
        (index, is_due): (usize, bool),
    ) -> Result<(), StorageError> {
        let (other, other_is_due) = *linked.entry(number).or_insert((index, is_due));
        if other == index || !is_due && !other_is_due {
            return Ok(());
        }
        let other = self.path_of(other);
        let text = format!("it is the same file as {} (a hard link): remove one of both", other.display());
        Err(self.failed(index, "write to", io::Error::new(io::ErrorKind::InvalidInput, text)))
    }

    fn unmake(&self, made: Vec<usize>) {
        for index in made {
            self.lock().forget(index);
            let _ = self.folder.remove(&self.kept_path(index));
        }
    }
}

/// Whether a file has nothing but zeros. Holes are not read; once somebody wants an end, the rest is not either.
fn is_blank(file: &File, length: u64, buffer: &mut [u8], is_ended: &AtomicBool) -> io::Result<bool> {
    let mut at = 0;
    while at < length && !is_ended.load(Relaxed) && !files::is_hole(file, &(at..length)) {
        let len = usize::try_from(length - at).unwrap_or(usize::MAX).min(buffer.len());
        files::read_at(file, &mut buffer[..len], at)?;
        if buffer[..len].iter().any(|octet| *octet != 0) {
            return Ok(false);
        }
        at += len as u64;
    }
    Ok(true)
}
