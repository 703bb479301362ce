//! Files below a folder, and nowhere else.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

#[cfg(unix)]
mod system {
    use super::{Access, File, Metadata, Range, io};
    use rustix::fs::{FallocateFlags, Mode, OFlags};
    use std::io::{IoSlice, IoSliceMut};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    /// What systems take in one call, and more than ever comes together.
    const MAX_PARTS: usize = 512;

    pub type Handle = OwnedFd;

    pub fn open_folder(path: &Path) -> io::Result<Handle> {
        Ok(rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// A folder inside another; never one behind a link.
    pub fn enter(folder: &Handle, name: &str, may_make: bool) -> io::Result<Handle> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(folder, name, flags, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) if may_make => {
                match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?)
            }
            Err(rustix::io::Errno::NOTDIR) if is_link(folder, name) => Err(told(rustix::io::Errno::LOOP)),
            other => other.map_err(told),
        }
    }

    /// What is no folder may be a link to one.
    fn is_link(folder: &Handle, name: &str) -> bool {
        rustix::fs::readlinkat(folder, name, Vec::new()).is_ok()
    }

    pub fn open(folder: &Handle, name: &str, access: Access) -> io::Result<(File, Metadata)> {
        // What the process's mask takes away is not there; what is there already keeps its mode.
        let mode = Mode::from_raw_mode(if access == Access::WriteProgram { 0o777 } else { 0o666 });
        let access = if access == Access::Read { OFlags::RDONLY } else { OFlags::RDWR | OFlags::CREATE };
        // A pipe of that name would keep us waiting.
        let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(folder, name, flags, mode).map_err(told)?;
        let file = File::from(file);
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
        }
        Ok((file, found))
    }

    /// The system speaks of levels of links where there is one, and it was not to be followed.
    fn told(error: rustix::io::Errno) -> io::Error {
        match error {
            rustix::io::Errno::LOOP => {
                io::Error::new(io::ErrorKind::InvalidInput, "it is a link, and links are not followed")
            }
            other => other.into(),
        }
    }

    pub fn remove(folder: &Handle, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(folder, name, rustix::fs::AtFlags::empty())?)
    }

    /// A folder, if there is nothing in it.
    pub fn remove_folder(folder: &Handle, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(folder, name, rustix::fs::AtFlags::REMOVEDIR)?)
    }

    pub fn write_at(file: &File, octets: &[u8], at: u64) -> io::Result<()> {
        file.write_all_at(octets, at)
    }

    pub fn read_at(file: &File, octets: &mut [u8], at: u64) -> io::Result<()> {
        file.read_exact_at(octets, at)
    }

    /// Writes parts one behind the other.
    pub fn write_parts(file: &File, parts: &[&[u8]], mut at: u64) -> io::Result<()> {
        for some in parts.chunks(MAX_PARTS) {
            let slices: Vec<IoSlice<'_>> = some.iter().map(|part| IoSlice::new(part)).collect();
            // What is left of it, all where the call was interrupted, is written part by part, as are errors told.
            let mut done = rustix::io::pwritev(file, &slices, at).unwrap_or(0);
            for part in some {
                let n = done.min(part.len());
                file.write_all_at(&part[n..], at + n as u64)?;
                (done, at) = (done - n, at + part.len() as u64);
            }
        }
        Ok(())
    }

    /// Fills parts with what lies one behind the other.
    pub fn read_parts(file: &File, parts: &mut [&mut [u8]], mut at: u64) -> io::Result<()> {
        for some in parts.chunks_mut(MAX_PARTS) {
            let mut slices: Vec<IoSliceMut<'_>> = some.iter_mut().map(|part| IoSliceMut::new(part)).collect();
            let mut done = rustix::io::preadv(file, &mut slices, at).unwrap_or(0);
            for part in some {
                let n = done.min(part.len());
                file.read_exact_at(&mut part[n..], at + n as u64)?;
                (done, at) = (done - n, at + part.len() as u64);
            }
        }
        Ok(())
    }

    /// Whether the system knows that nothing was ever written to a range, so that it reads as zeros.
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "macos", target_os = "freebsd"))]
    pub fn is_hole(file: &File, range: &Range<u64>) -> bool {
        match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(range.start)) {
            Ok(data) => data >= range.end,
            // Nothing up to the end of the file, which may come before the range's.
            Err(rustix::io::Errno::NXIO) => file.metadata().is_ok_and(|file| file.len() >= range.end),
            Err(_) => false,
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "macos", target_os = "freebsd")))]
    pub fn is_hole(_: &File, _: &Range<u64>) -> bool {
        false
    }

    /// Whether both are one file. What cannot be told apart is.
    pub fn is_same(a: &File, b: &File) -> bool {
        are_one([a.metadata(), b.metadata()]).unwrap_or(true)
    }

    /// Whether there is something at both places, and it is one thing.
    pub fn is_same_place(a: &Path, b: &Path) -> bool {
        are_one([a.symlink_metadata(), b.symlink_metadata()]).unwrap_or(false)
    }

    /// `None` where either is not known.
    fn are_one(both: [io::Result<Metadata>; 2]) -> Option<bool> {
        use std::os::unix::fs::MetadataExt;
        let [a, b] = both.map(|known| known.map(|it| (it.dev(), it.ino())).ok());
        Some(a? == b?)
    }

    /// What is the same of all names of a file that has several.
    pub fn linked(found: &Metadata) -> Option<(u64, u64)> {
        use std::os::unix::fs::MetadataExt;
        (found.nlink() > 1).then(|| (found.dev(), found.ino()))
    }

    pub fn set_aside(file: &File, length: u64) -> io::Result<()> {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, length) {
            // A file system that cannot.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            other => Ok(other?),
        }
    }
}

#[cfg(not(unix))]
mod system {
    use super::{Access, File, Metadata, Range, io};
    use std::fs::{self, OpenOptions};
    use std::io::{Read, Seek, SeekFrom, Write};
    use std::path::{Component, Path, PathBuf};
    use std::sync::{Mutex, PoisonError};

    pub type Handle = PathBuf;

    pub fn open_folder(path: &Path) -> io::Result<Handle> {
        fs::canonicalize(path)
    }

    /// Joins one name, and refuses whatever the system takes for more than a name, or for a link.
    fn joined(folder: &Handle, name: &str) -> io::Result<PathBuf> {
        let parts: Vec<Component<'_>> = Path::new(name).components().collect();
        if !matches!(parts[..], [Component::Normal(_)]) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the system takes it for no name"));
        }
        let path = folder.join(name);
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a link"))
            }
            _ => Ok(path),
        }
    }

    pub fn enter(folder: &Handle, name: &str, may_make: bool) -> io::Result<Handle> {
        let path = joined(folder, name)?;
        if may_make && !path.is_dir() {
            fs::create_dir(&path)?;
        }
        Ok(path)
    }

    pub fn open(folder: &Handle, name: &str, access: Access) -> io::Result<(File, Metadata)> {
        let (path, to_write) = (joined(folder, name)?, access != Access::Read);
        let file =
            OpenOptions::new().read(true).write(to_write).create(to_write).truncate(false).open(path)?;
        let found = file.metadata()?;
        Ok((file, found))
    }

    pub fn remove(folder: &Handle, name: &str) -> io::Result<()> {
        fs::remove_file(joined(folder, name)?)
    }

    pub fn remove_folder(folder: &Handle, name: &str) -> io::Result<()> {
        fs::remove_dir(joined(folder, name)?)
    }

    /// A file has one place where it is read or written next, whichever thread asks.
    static TURN: Mutex<()> = Mutex::new(());

    pub fn write_at(mut file: &File, octets: &[u8], at: u64) -> io::Result<()> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(at))?;
        file.write_all(octets)
    }

    pub fn read_at(mut file: &File, octets: &mut [u8], at: u64) -> io::Result<()> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(octets)
    }

    pub fn write_parts(file: &File, parts: &[&[u8]], mut at: u64) -> io::Result<()> {
        parts.iter().try_for_each(|part| {
            write_at(file, part, at)?;
            at += part.len() as u64;
            Ok(())
        })
    }

    pub fn read_parts(file: &File, parts: &mut [&mut [u8]], mut at: u64) -> io::Result<()> {
        parts.iter_mut().try_for_each(|part| {
            read_at(file, part, at)?;
            at += part.len() as u64;
            Ok(())
        })
    }

    pub fn is_hole(_: &File, _: &Range<u64>) -> bool {
        false
    }

    /// Whether both are one file, which is not known here: a file that is open cannot be replaced.
    pub fn is_same(_: &File, _: &File) -> bool {
        true
    }

    /// Whether there is something at both places; names that are alike lead to one thing here.
    pub fn is_same_place(a: &Path, b: &Path) -> bool {
        [a, b].iter().all(|path| path.symlink_metadata().is_ok())
    }

    /// Other names of a file are not known here.
    pub fn linked(_: &Metadata) -> Option<(u64, u64)> {
        None
    }

    pub fn set_aside(file: &File, length: u64) -> io::Result<()> {
        file.set_len(length)
    }
}

pub use system::{
    is_hole, is_same, is_same_place, linked, read_at, read_parts, set_aside, write_at, write_parts,
};

/// What a file is opened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// It has to be there.
    Read,
    /// It is made where it is not there.
    Write,
    /// It is made, where it is not there, as one that may be run.
    WriteProgram,
}

/// The folder of a file that was opened before, and how it was reached.
#[derive(Default)]
pub struct Near(Option<(Vec<String>, system::Handle)>);

/// The name of a file at a path, of which all parts are plain names.
fn checked(path: &[String]) -> io::Result<&String> {
    for part in path {
        cede_bt::metainfo::check_component(part).map_err(io::Error::other)?;
    }
    path.last().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a file without a name"))
}

/// A folder that was chosen.
pub struct Folder {
    path: PathBuf,
    handle: system::Handle,
}

impl Folder {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_path_buf(), handle: system::open_folder(path)? })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file at a path of plain names below the folder, which is reached without following any link, and says how it
    /// was found. To be written, it is made with the folders that lead to it.
    pub fn file(&self, path: &[String], access: Access) -> io::Result<(File, Metadata)> {
        let (inside, name) = self.reach(path, access != Access::Read)?;
        system::open(inside.as_ref().unwrap_or(&self.handle), name, access)
    }

    /// The same where files of one folder come one after the other: the folder of the one before is not looked for again. Where
    /// it has been moved meanwhile, it is the moved one; where it has been removed, it is made anew.
    pub fn file_near(
        &self,
        near: &mut Near,
        path: &[String],
        access: Access,
    ) -> io::Result<(File, Metadata)> {
        let folders = path.split_last().map_or(&[][..], |(_, folders)| folders);
        match &mut near.0 {
            Some((known, inside)) if known == folders && !folders.is_empty() => {
                let opened = checked(path).and_then(|name| system::open(inside, name, access));
                if !opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                    return opened;
                }
            }
            _ => {}
        }
        let (inside, name) = self.reach(path, access != Access::Read)?;
        let opened = system::open(inside.as_ref().unwrap_or(&self.handle), name, access);
        near.0 = inside.map(|inside| (folders.to_vec(), inside));
        opened
    }

    /// The folder that a file is in, where it is not this one, and its name there.
    fn reach<'a>(
        &self,
        path: &'a [String],
        may_make: bool,
    ) -> io::Result<(Option<system::Handle>, &'a String)> {
        let name = checked(path)?;
        let mut inside = None;
        for folder in &path[..path.len() - 1] {
            inside = Some(system::enter(inside.as_ref().unwrap_or(&self.handle), folder, may_make)?);
        }
        Ok((inside, name))
    }

    /// Makes the folder at a path of plain names below this one, and those that lead to it.
    pub fn make_folder(&self, path: &[String]) -> io::Result<()> {
        checked(path)?;
        let mut inside = None;
        for name in path {
            inside = Some(system::enter(inside.as_ref().unwrap_or(&self.handle), name, true)?);
        }
        Ok(())
    }

    /// Removes a file at a path of plain names below the folder.
    pub fn remove(&self, path: &[String]) -> io::Result<()> {
        let (inside, name) = self.reach(path, false)?;
        system::remove(inside.as_ref().unwrap_or(&self.handle), name)
    }

    /// The same of a folder that is empty.
    pub fn remove_folder(&self, path: &[String]) -> io::Result<()> {
        let (inside, name) = self.reach(path, false)?;
        system::remove_folder(inside.as_ref().unwrap_or(&self.handle), name)
    }
}
