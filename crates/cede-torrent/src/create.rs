//! Making a torrent of a file or folder.

use crate::pieces::{Blank, Buffers, Content, Watch, digests, on_all_cores};
use crate::storage::{Layout, Stamp, files};
use cede_bt::metainfo::{self, Info, MAX_FILES, MAX_PIECES, Writer, check_component, piece_length_for};
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Range;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How often whoever waits is told how far it is.
const PACE: Duration = Duration::from_millis(50);
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
    /// A file came while others were read.
    Appeared(PathBuf),
    /// A file in a folder of its own name, without any other: v2 has no way to say so.
    Alone(PathBuf),
    /// It would be no torrent.
    Torrent(metainfo::Error),
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
            Self::Appeared(path) => write!(f, "{} came while others were read", path.display()),
            Self::Alone(path) => {
                let path = path.display();
                write!(
                    f,
                    "{path} is alone in a folder of its own name, which v2 does not tell from the file by itself: make the torrent of {path}"
                )
            }
            Self::Torrent(error) => error.fmt(f),
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
    /// How each stood when it was looked at.
    pub stamps: Vec<Option<Stamp>>,
    /// Octets of all files.
    pub total_bytes: u64,
    /// Octets of each piece but the last.
    pub piece_length: u32,
    /// The torrent is to be of v2 (BEP 52).
    pub is_v2: bool,
    /// What was passed over: links, pipes, devices, and what was to be left out.
    pub passed_over: Vec<PathBuf>,
    /// Where all of it is, and what was to be left out.
    root: PathBuf,
    not: Option<PathBuf>,
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
            stamps: Vec::new(),
            total_bytes: 0,
            piece_length: 0,
            is_v2: false,
            passed_over: Vec::new(),
            root: whole.clone(),
            not: not.map(Path::to_path_buf),
        };
        let metadata = fs::metadata(&whole).map_err(unreadable)?;
        let top = vec![plan.name.clone()];
        if metadata.is_dir() {
            plan.folder(&whole, &top, not)?;
        } else {
            plan.add(whole, top, &metadata)?;
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

    /// Makes it a torrent of v2, in which each file begins with a piece of its own.
    ///
    /// # Errors
    /// [`CreateError::Many`], [`CreateError::Alone`].
    pub fn make_v2(&mut self) -> Result<(), CreateError> {
        if let [only] = &self.files[..]
            && let [folder, name] = &only.path[..]
            && folder == name
        {
            return Err(CreateError::Alone(self.places[0].clone()));
        }
        let mut pieces = 0;
        for file in &mut self.files {
            file.offset = pieces * u64::from(self.piece_length);
            pieces += file.length.div_ceil(self.piece_length.into());
        }
        self.is_v2 = true;
        if pieces > MAX_PIECES.into() { Err(CreateError::Many("pieces of that length")) } else { Ok(()) }
    }

    /// What a torrent needs of this, but for trackers and what its maker says of it. `pieces` is the answer of [`Plan::hash`].
    #[must_use]
    pub fn writer(&self, pieces: Vec<u8>) -> Writer {
        Writer {
            name: self.name.clone(),
            piece_length: self.piece_length,
            is_v2: self.is_v2,
            pieces,
            files: self.files.clone(),
            ..Writer::default()
        }
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
                self.add(place, path, &metadata)?;
            } else {
                self.passed_over.push(place);
            }
        }
        Ok(())
    }

    fn add(&mut self, place: PathBuf, path: Vec<String>, metadata: &Metadata) -> Result<(), CreateError> {
        if self.files.len() >= MAX_FILES {
            return Err(CreateError::Many("files"));
        }
        let length = metadata.len();
        self.stamps.push(Stamp::from_metadata(metadata));
        let (offset, is_executable) = (self.total_bytes, is_executable(metadata));
        self.files.push(metainfo::File { path, length, offset, is_padding: false, is_executable });
        self.places.push(place);
        self.total_bytes += length;
        Ok(())
    }

    /// Opens a file that is as it was when it was looked at.
    fn open(&self, index: usize) -> Result<File, CreateError> {
        let place = &self.places[index];
        let unreadable = |error| CreateError::Io(place.clone(), error);
        let file = File::open(place).map_err(unreadable)?;
        let stamp = Stamp::from_metadata(&file.metadata().map_err(unreadable)?);
        if stamp == self.stamps[index] { Ok(file) } else { Err(CreateError::Changed(place.clone())) }
    }

    /// Hashes the pieces, on all cores. `watch` is told of the octets done, and says whether to go on.
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn hash(&self, watch: &mut dyn FnMut(u64) -> bool) -> Result<Vec<u8>, CreateError> {
        let state = Watch::default();
        let mut is_wanted = true;
        let digests = thread::scope(|scope| {
            let (alive, over) = mpsc::channel::<()>();
            let state = &state;
            let hashing = scope.spawn(move || {
                let _alive = alive;
                self.hash_pieces(state)
            });
            while is_wanted && over.recv_timeout(PACE) == Err(RecvTimeoutError::Timeout) {
                is_wanted = watch(state.done.load(Relaxed));
                state.is_ended.fetch_or(!is_wanted, Relaxed);
            }
            hashing.join().unwrap_or_else(|panic| resume_unwind(panic))
        });
        if !is_wanted {
            return Err(CreateError::Ended);
        }
        let digests = digests?;
        self.check_unchanged()?;
        if watch(state.done.load(Relaxed)) { Ok(digests) } else { Err(CreateError::Ended) }
    }

    /// The torrent without its hashes, which says how its pieces lie and how each is hashed.
    fn skeleton(&self) -> Result<(Info, Layout), CreateError> {
        let count = self.total_bytes.div_ceil(self.piece_length.into()) as usize;
        let none = if self.is_v2 { Vec::new() } else { vec![0; count * 20] };
        let info = Info::parse(&self.writer(none).info().encode()).map_err(CreateError::Torrent)?;
        let layout = Layout::new(&info).with_files(self.files.clone());
        Ok((info, layout))
    }

    /// The digests in the order of pieces.
    fn hash_pieces(&self, watch: &Watch) -> Result<Vec<u8>, CreateError> {
        let (info, layout) = self.skeleton()?;
        let (blank, failure) = (Blank::new(self.piece_length, info.whole_hasher()), OnceLock::new());
        let digests = on_all_cores(layout.piece_count(), watch, || {
            let mut reader = Reader { plan: self, layout: &layout, watch, open: None };
            let (mut buffers, blank, failure, info) = (Buffers::default(), &blank, &failure, &info);
            let task = |piece| (info.hasher(piece), layout.piece_range(piece));
            move |first, second| {
                let tasks = [Some(first), second].map(|piece| piece.map(task));
                // Only the first failure counts: that it ends is what the others fail of.
                let told = |error| drop(failure.set(error));
                digests(tasks, blank, &mut buffers, &mut reader).map(|digest| {
                    digest?.map_err(told).inspect_err(|()| watch.is_ended.store(true, Relaxed)).ok()
                })
            }
        });
        match failure.into_inner() {
            Some(error) => Err(error),
            None => Ok(digests.iter().flat_map(|(_, digest)| digest.octets()).copied().collect()),
        }
    }

    /// Whether every file still is as it was when they were looked at, and no other has come.
    fn check_unchanged(&self) -> Result<(), CreateError> {
        let mut stamped = self.places.iter().zip(&self.stamps);
        match stamped.find(|(place, stamp)| Stamp::of(place) != **stamp) {
            Some((place, _)) => Err(CreateError::Changed(place.clone())),
            None => self.newcomer()?.map_or(Ok(()), |place| Err(CreateError::Appeared(place))),
        }
    }

    /// A file that was not there when they were looked at.
    fn newcomer(&self) -> Result<Option<PathBuf>, CreateError> {
        let now = Self::scan(&self.root, Some(self.piece_length), self.not.as_deref())?;
        // Both are in the order of names.
        let known = self.places.iter().map(Some).chain(std::iter::repeat(None));
        Ok(now
            .places
            .iter()
            .zip(known)
            .find(|(place, known)| Some(*place) != *known)
            .map(|(place, _)| place.clone()))
    }
}

/// One thread's way to the files.
struct Reader<'a> {
    plan: &'a Plan,
    layout: &'a Layout,
    watch: &'a Watch,
    /// The file that was read last.
    open: Option<(usize, File)>,
}

impl Reader<'_> {
    fn file(&mut self, index: usize) -> Result<&File, CreateError> {
        let known = self.open.take().filter(|(open, _)| *open == index);
        let open = match known {
            Some(open) => open,
            None => (index, self.plan.open(index)?),
        };
        Ok(&self.open.insert(open).1)
    }
}

impl Content for Reader<'_> {
    type Error = CreateError;

    fn is_hole(&mut self, range: &Range<u64>) -> Result<bool, CreateError> {
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        for slice in self.layout.slices(range.start, len) {
            let end = slice.offset + slice.range.len() as u64;
            if !files::is_hole(self.file(slice.file)?, &(slice.offset..end)) {
                return Ok(false);
            }
        }
        self.watch.done.fetch_add(range.end - range.start, Relaxed);
        Ok(true)
    }

    fn read(&mut self, at: u64, octets: &mut [u8]) -> Result<(), CreateError> {
        if self.watch.is_ended.load(Relaxed) {
            return Err(CreateError::Ended);
        }
        for slice in self.layout.slices(at, octets.len()) {
            let place = &self.plan.places[slice.file];
            let read = files::read_at(self.file(slice.file)?, &mut octets[slice.range], slice.offset);
            read.map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => CreateError::Changed(place.clone()),
                _ => CreateError::Io(place.clone(), error),
            })?;
        }
        self.watch.done.fetch_add(octets.len() as u64, Relaxed);
        Ok(())
    }
}

/// Whether its owner may run a file.
#[cfg(unix)]
fn is_executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &Metadata) -> bool {
    false
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_shrinks_while_it_is_read_has_changed() {
        let path = std::env::temp_dir().join(format!("cede-shrinking-{}", std::process::id()));
        fs::write(&path, vec![1; 100_000]).unwrap();
        let plan = Plan::scan(&path, None, None).unwrap();
        let (_, layout) = plan.skeleton().unwrap();
        let watch = Watch::default();
        let mut reader = Reader { plan: &plan, layout: &layout, watch: &watch, open: None };
        let mut buffer = [0; 1000];
        reader.read(0, &mut buffer).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(10_000).unwrap();
        reader.read(9_000, &mut buffer).unwrap();
        let error = reader.read(9_001, &mut buffer).unwrap_err();
        // Behind the end there is nothing, which is no hole.
        let is_hole = reader.is_hole(&(50_000..60_000)).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(
            matches!(error, CreateError::Changed(changed) if changed.ends_with(path.file_name().unwrap()))
        );
        assert!(!is_hole);
        assert_eq!(watch.done.load(Relaxed), 2000);
    }
}
