//! Captures that are to be read: files, opened when it is their turn, and pipes.

use super::order::{Front, front, limits, sort_known};
use crate::failure::Failure;
use crate::screen;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A capture that is to be read.
pub(super) struct Source {
    pub path: PathBuf,
    /// A file is opened when it is its turn: there may be more of them than a process may have open.
    pub pipe: Option<Box<dyn Read + Send>>,
    /// Of the file; zero where nobody knows.
    pub bytes: u64,
    /// When it begins, where that is known beforehand.
    pub front: Front,
    /// When the next one does, and a bit: what it shows from then on, both do.
    pub limit_ns: u64,
}

impl Source {
    pub(super) const fn is_pipe(&self) -> bool {
        self.pipe.is_some()
    }

    /// The same to be read once more, where that is possible.
    pub(super) fn again(&self) -> Option<Self> {
        let Self { path, pipe, bytes, front, limit_ns } = self;
        let is_file = pipe.is_none();
        let again =
            || Self { path: path.clone(), pipe: None, bytes: *bytes, front: *front, limit_ns: *limit_ns };
        is_file.then(again)
    }

    pub(super) fn octets(self) -> io::Result<Box<dyn Read + Send>> {
        self.pipe.map_or_else(|| Ok(Box::new(File::open(self.path)?) as Box<dyn Read + Send>), Ok)
    }
}

/// One alone is read as it comes; where there are several, those that begin earlier come first.
pub(super) fn open_in_order(files: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let source = |path: &PathBuf| {
        let pipe = open(path)?;
        let front = if files.len() > 1 && pipe.is_none() { front(path) } else { Front::default() };
        Ok(Source { path: path.clone(), pipe, bytes: file_bytes(path), front, limit_ns: u64::MAX })
    };
    let mut sources = files.iter().map(source).collect::<Result<Vec<_>, Failure>>()?;
    sort_known(&mut sources, |source| source.front.first_ns);
    let limits = limits(sources.iter().map(|source| source.front));
    sources.iter_mut().zip(limits).for_each(|(source, limit_ns)| source.limit_ns = limit_ns);
    Ok(sources)
}

/// Zero where nobody knows.
pub(super) fn file_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |meta| meta.len())
}

/// What can be read once alone; whether a file can be read at all.
fn open(path: &Path) -> Result<Option<Box<dyn Read + Send>>, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Some(Box::new(io::stdin())));
    }
    let told = |error: io::Error| {
        Failure::of_system(format!("cannot read {}: {error}", screen::named(path)), error.kind())
    };
    if is_fifo(path) {
        return Ok(Some(Box::new(Fifo::Named(path.to_path_buf()))));
    }
    let file = File::open(path).map_err(told)?;
    let meta = file.metadata().map_err(told)?;
    if meta.is_dir() {
        return Err(Failure::Usage(format!("{} is a folder; name the captures in it", screen::named(path))));
    }
    Ok(if meta.is_file() { None } else { Some(Box::new(file)) })
}

/// A pipe with a name: to open it is to wait for whoever writes into it, so that is left to the thread that reads it, while signals are
/// still heeded.
enum Fifo {
    Named(PathBuf),
    Open(File),
}

impl Read for Fifo {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let file = match self {
            Self::Open(file) => return file.read(out),
            Self::Named(path) => File::open(path)?,
        };
        *self = Self::Open(file);
        self.read(out)
    }
}

#[cfg(unix)]
fn is_fifo(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_fifo(_: &Path) -> bool {
    false
}
