//! Making a torrent of a file or folder.

use cede_bt::metainfo::{self, MAX_FILES, MAX_PIECES, check_component, piece_length_for};
use sha1::{Digest, Sha1};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const CHUNK_BYTES: usize = 256 << 10;
/// Folders inside each other.
const MAX_DEPTH: usize = 64;

/// Why no torrent can be made.
#[derive(Debug)]
pub enum CreateError {
    /// The system does not let us read.
    Io(PathBuf, io::Error),
    /// A name that no torrent can have, and why.
    Name(PathBuf, String),
    /// There is nothing to share.
    Empty(PathBuf),
    /// There are too many files, or too many pieces of this length.
    Many(&'static str),
    /// A file changed while it was read.
    Changed(PathBuf),
    /// It was ended.
    Ended,
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Self::Name(path, why) => write!(f, "{}: {why}", path.display()),
            Self::Empty(path) => write!(f, "there is nothing to share in {}", path.display()),
            Self::Many(what) => write!(f, "there are too many {what}"),
            Self::Changed(path) => write!(f, "{} changed while it was read", path.display()),
            Self::Ended => f.write_str("the torrent was not made"),
        }
    }
}

impl std::error::Error for CreateError {}

/// What goes into a torrent.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The name of the file or folder.
    pub name: String,
    /// The files as they stand in the torrent.
    pub files: Vec<metainfo::File>,
    /// Where each is.
    pub places: Vec<PathBuf>,
    /// Octets of the whole.
    pub total_bytes: u64,
    /// Octets of each piece but the last.
    pub piece_length: u32,
    /// What was passed over: links, pipes, devices, and what was to be left out.
    pub passed_over: Vec<PathBuf>,
}

impl Plan {
    /// Looks at a file, or at a folder and all that is in it but `not`, such as the torrent itself, in the order of names.
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn scan(path: &Path, piece_length: Option<u32>, not: Option<&Path>) -> Result<Self, CreateError> {
        let unreadable = |error| CreateError::Io(path.to_path_buf(), error);
        let whole = fs::canonicalize(path).map_err(unreadable)?;
        let mut plan = Self {
            name: name_of(&whole)?,
            files: Vec::new(),
            places: Vec::new(),
            total_bytes: 0,
            piece_length: 0,
            passed_over: Vec::new(),
        };
        let metadata = fs::metadata(&whole).map_err(unreadable)?;
        let top = vec![plan.name.clone()];
        if metadata.is_dir() {
            plan.folder(&whole, &top, not)?;
        } else {
            plan.add(whole, top, metadata.len())?;
        }
        if plan.total_bytes == 0 {
            return Err(CreateError::Empty(path.to_path_buf()));
        }
        plan.piece_length = piece_length.unwrap_or_else(|| piece_length_for(plan.total_bytes));
        if plan.total_bytes.div_ceil(plan.piece_length.max(1).into()) > MAX_PIECES.into() {
            return Err(CreateError::Many("pieces of that length"));
        }
        Ok(plan)
    }

    fn folder(&mut self, folder: &Path, path: &[String], not: Option<&Path>) -> Result<(), CreateError> {
        if path.len() > MAX_DEPTH {
            return Err(CreateError::Many("folders inside each other"));
        }
        let unreadable = |error| CreateError::Io(folder.to_path_buf(), error);
        let entries = fs::read_dir(folder).map_err(unreadable)?;
        let mut places =
            entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().map_err(unreadable)?;
        places.sort_unstable();
        for place in places {
            let metadata =
                fs::symlink_metadata(&place).map_err(|error| CreateError::Io(place.clone(), error))?;
            let path = [path, &[name_of(&place)?]].concat();
            if metadata.is_dir() {
                self.folder(&place, &path, not)?;
            } else if not == Some(&place) {
                self.passed_over.push(place);
            } else if metadata.is_file() {
                self.add(place, path, metadata.len())?;
            } else {
                self.passed_over.push(place);
            }
        }
        Ok(())
    }

    fn add(&mut self, place: PathBuf, path: Vec<String>, length: u64) -> Result<(), CreateError> {
        if self.files.len() >= MAX_FILES {
            return Err(CreateError::Many("files"));
        }
        self.files.push(metainfo::File { path, length, offset: self.total_bytes, is_padding: false });
        self.places.push(place);
        self.total_bytes += length;
        Ok(())
    }

    /// Hashes the pieces. `watch` is told of the octets done, and says whether to go on.
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn hash(&self, watch: &mut dyn FnMut(u64) -> bool) -> Result<Vec<u8>, CreateError> {
        let mut pieces =
            Pieces { length: self.piece_length as usize, held: 0, digest: Sha1::new(), out: Vec::new() };
        let (mut buffer, mut done) = (vec![0; CHUNK_BYTES], 0);
        for (file, place) in self.files.iter().zip(&self.places) {
            let unreadable = |error| CreateError::Io(place.clone(), error);
            let mut input = File::open(place).map_err(unreadable)?;
            let mut left = file.length;
            loop {
                let n = input.read(&mut buffer).map_err(unreadable)?;
                if n as u64 > left || (n == 0 && left > 0) {
                    return Err(CreateError::Changed(place.clone()));
                }
                if n == 0 {
                    break;
                }
                pieces.add(&buffer[..n]);
                left -= n as u64;
                done += n as u64;
                if !watch(done) {
                    return Err(CreateError::Ended);
                }
            }
        }
        Ok(pieces.end())
    }
}

/// The name that a file or folder has in a torrent.
fn name_of(path: &Path) -> Result<String, CreateError> {
    let wrong = |why: String| CreateError::Name(path.to_path_buf(), why);
    let name =
        path.file_name().ok_or_else(|| wrong("it has no name; choose a folder inside it".to_owned()))?;
    let name =
        name.to_str().ok_or_else(|| wrong("its name is not UTF-8, as names in torrents are".to_owned()))?;
    check_component(name).map_err(|error| wrong(error.to_string()))?;
    Ok(name.to_owned())
}

/// Digests of pieces, from octets in any portions.
struct Pieces {
    length: usize,
    held: usize,
    digest: Sha1,
    out: Vec<u8>,
}

impl Pieces {
    fn add(&mut self, mut octets: &[u8]) {
        while !octets.is_empty() {
            let (part, rest) = octets.split_at(octets.len().min(self.length - self.held));
            self.digest.update(part);
            self.held += part.len();
            octets = rest;
            if self.held == self.length {
                self.finish();
            }
        }
    }

    fn finish(&mut self) {
        self.out.extend_from_slice(&self.digest.finalize_reset());
        self.held = 0;
    }

    fn end(mut self) -> Vec<u8> {
        if self.held > 0 {
            self.finish();
        }
        self.out
    }
}
