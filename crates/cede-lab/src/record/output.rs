//! A file that is written to until something goes wrong.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What could not be done with which file or folder.
#[derive(Debug)]
pub struct RecordError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl RecordError {
    pub(super) fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self { action, path: path.to_path_buf(), source }
    }

    /// What kind of error the system gave.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.action, self.path.display(), self.source)
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Octets gathered before they go to the system.
const BUFFER_BYTES: usize = 1 << 16;

/// A file being written. After the first error nothing more is tried; [`Output::finish`] tells of it.
#[derive(Debug)]
pub(super) struct Output {
    name: String,
    path: PathBuf,
    writer: BufWriter<File>,
    error: Option<io::Error>,
}

impl Output {
    pub fn create(folder: &Path, name: &str) -> Result<Self, RecordError> {
        let path = folder.join(name);
        let file = File::create(&path).map_err(|error| RecordError::new("create", &path, error))?;
        let writer = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Self { name: name.to_string(), path, writer, error: None })
    }

    pub fn write(&mut self, octets: &[u8]) {
        if self.error.is_none() {
            self.error = self.writer.write_all(octets).err();
        }
    }

    pub const fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Writes out the rest; gives the file's name.
    pub fn finish(&mut self) -> Result<String, RecordError> {
        let outcome = match self.error.take() {
            Some(error) => Err(error),
            None => self.writer.flush(),
        };
        match outcome {
            Ok(()) => Ok(self.name.clone()),
            Err(error) => Err(RecordError::new("write", &self.path, error)),
        }
    }
}
