//! Where what arrives is put: into `NAME.part` until it is complete, then under its name.

use super::name::part_of;
use super::{DIGEST_BYTES, Modified, Offer, PIECE_BYTES, PIECES, Piece, safe_name};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc as std_mpsc;
use std::thread;
use tokio::sync::{mpsc, oneshot};

/// Where a file is to be put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    /// Into this folder, under the name that the sender gives, as far as it is safe.
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What has that name already is replaced.
        force: bool,
    },
    /// Under this name. A folder is taken for [`Destination::Folder`]; a device or a pipe is written to as it is.
    Path {
        /// The name.
        path: PathBuf,
        /// What has that name already is replaced.
        force: bool,
    },
    /// To standard output.
    Stdout,
}

impl Destination {
    /// What went wrong here, as the other end is told: where on this machine is nobody else's business.
    pub(crate) fn without_folder(&self, text: &str) -> String {
        let folder = match self {
            Self::Folder { folder, .. } => folder,
            Self::Path { path, .. } if path.is_dir() => path,
            Self::Path { path, .. } => path.parent().unwrap_or(path),
            Self::Stdout => return text.to_owned(),
        };
        text.replace(&format!("{}{}", folder.display(), std::path::MAIN_SEPARATOR), "")
    }

    /// Opens it for what is offered.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn open(&self, offer: &Offer, most_bytes: Option<u64>) -> Result<Place, String> {
        // Before anything is made that would be left behind.
        if let (Some(bytes), Some(most)) = (offer.bytes, most_bytes)
            && bytes > most
        {
            return Err(format!("{bytes} octets are more than the {most} that are taken here"));
        }
        let mut place = match self {
            Self::Stdout => Place::stream(Box::new(io::stdout()), "standard output".to_owned()),
            Self::Folder { folder, force } => Place::file(&folder.join(safe_name(&offer.name)), *force)?,
            Self::Path { path, force } => Self::at(path, *force, offer)?,
        };
        (place.most_bytes, place.announced, place.modified) = (most_bytes, offer.bytes, offer.modified);
        Ok(place)
    }

    fn at(path: &Path, force: bool, offer: &Offer) -> Result<Place, String> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Place::file(&path.join(safe_name(&offer.name)), force),
            Ok(found) if !found.is_file() => {
                let device = Device { path: path.to_path_buf(), file: None };
                Ok(Place::stream(Box::new(device), path.display().to_string()))
            }
            _ => Place::file(path, force),
        }
    }

    /// The path that a file of this name would get; standard output, which has none, is `-`.
    pub(crate) fn path_for(&self, offer: &Offer) -> PathBuf {
        match self {
            Self::Folder { folder, .. } => folder.join(safe_name(&offer.name)),
            Self::Path { path, .. } if path.is_dir() => path.join(safe_name(&offer.name)),
            Self::Path { path, .. } => path.clone(),
            Self::Stdout => PathBuf::from("-"),
        }
    }

    /// What arrived can be gone on with, or written anew. What has gone to a pipe or a device is there for good.
    pub(crate) fn can_resume(&self) -> bool {
        match self {
            Self::Folder { .. } => true,
            Self::Path { path, .. } => {
                fs::metadata(path).map_or(true, |found| found.is_file() || found.is_dir())
            }
            Self::Stdout => false,
        }
    }
}

/// An open destination.
pub(crate) struct Place {
    output: Output,
    label: String,
    digest: blake3::Hasher,
    at: u64,
    most_bytes: Option<u64>,
    /// How long it is by what the sender has said.
    announced: Option<u64>,
    modified: Option<Modified>,
    /// The part has got its name, or was thrown away: what is called so now is another's.
    is_settled: bool,
}

enum Output {
    /// A file that can be gone on with.
    Part { file: File, part: PathBuf, target: PathBuf, force: bool },
    /// Something that takes octets in order.
    Stream(Box<dyn Write + Send>),
}

/// A device or a pipe. The thread that writes opens it, since a pipe waits for whoever reads it.
struct Device {
    path: PathBuf,
    file: Option<File>,
}

impl Device {
    fn opened(&mut self) -> io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => OpenOptions::new().write(true).open(&self.path)?,
        };
        Ok(self.file.insert(file))
    }
}

impl Write for Device {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.opened()?.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.opened()?.flush()
    }
}

/// A part without anything in it goes, however its transfer ended.
impl Drop for Place {
    fn drop(&mut self) {
        if let Output::Part { file, part, .. } = &self.output
            && !self.is_settled
            && file.metadata().is_ok_and(|found| found.len() == 0)
        {
            let _ = fs::remove_file(part);
        }
    }
}

impl Place {
    fn new(output: Output, label: String) -> Self {
        let digest = blake3::Hasher::new();
        Self {
            output,
            label,
            digest,
            at: 0,
            most_bytes: None,
            announced: None,
            modified: None,
            is_settled: false,
        }
    }

    fn stream(stream: Box<dyn Write + Send>, label: String) -> Self {
        Self::new(Output::Stream(stream), label)
    }

    fn file(target: &Path, force: bool) -> Result<Self, String> {
        if !force && fs::symlink_metadata(target).is_ok() {
            return Err(taken(target));
        }
        if target.is_dir() {
            return Err(format!("{} is a folder", target.display()));
        }
        let part = part_of(target);
        let file = open_part(&part, target)?;
        let output = Output::Part { file, part, target: target.to_path_buf(), force };
        Ok(Self::new(output, target.display().to_string()))
    }

    /// Where the complete file will lie.
    pub fn target(&self) -> Option<&Path> {
        match &self.output {
            Output::Part { target, .. } => Some(target),
            Output::Stream(_) => None,
        }
    }

    /// Octets that are there already.
    pub fn present_bytes(&self) -> Result<u64, String> {
        match &self.output {
            Output::Part { file, part, .. } => {
                file.metadata().map(|found| found.len()).map_err(|error| unwritable(part, &error))
            }
            Output::Stream(_) => Ok(0),
        }
    }

    /// Reads so many octets of what is there, and says their digest.
    pub fn digest_of_first(&mut self, bytes: u64) -> Result<[u8; DIGEST_BYTES], String> {
        if let Output::Part { file, part, .. } = &mut self.output {
            let unreadable = |error: io::Error| format!("cannot read {}: {error}", part.display());
            file.rewind().map_err(unreadable)?;
            let mut from = file.take(bytes);
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                let n = from.read(&mut piece).map_err(unreadable)?;
                if n == 0 {
                    break;
                }
                self.digest.update(&piece[..n]);
                self.at += n as u64;
            }
        }
        Ok(self.digest.finalize().into())
    }

    /// Gets ready for octets from this place on: where the earlier ones end, or the beginning.
    pub fn begin(&mut self, offset: u64) -> Result<(), String> {
        if offset != self.at {
            (self.digest, self.at) = (blake3::Hasher::new(), 0);
        }
        if offset != self.at {
            return Err("the sender begins where nothing ends".to_owned());
        }
        let at = self.at;
        match &mut self.output {
            Output::Part { file, part, .. } => {
                let ready = file.set_len(at).and_then(|()| file.seek(SeekFrom::Start(at)));
                ready.map(drop).map_err(|error| unwritable(part, &error))
            }
            Output::Stream(_) => Ok(()),
        }
    }

    /// Has a thread write what arrives.
    pub fn sink(self) -> Result<Sink, String> {
        let (pieces, pieces_out) = mpsc::channel(PIECES);
        let (spent_in, spent) = std_mpsc::channel();
        let is_kept = matches!(self.output, Output::Part { .. });
        let (tell, outcome) = oneshot::channel();
        let thread = thread::Builder::new().name("destination".to_owned());
        let spawned = thread.spawn(move || {
            let _ = tell.send(self.write_all(pieces_out, &spent_in));
        });
        spawned.map_err(|error| format!("no thread to write with: {error}"))?;
        Ok(Sink { pieces, spent, outcome, is_kept })
    }

    /// Writes until the end, or until nothing more comes.
    fn write_all(
        mut self,
        mut pieces: mpsc::Receiver<Piece>,
        spent: &std_mpsc::Sender<Vec<u8>>,
    ) -> Result<Written, String> {
        while let Some(piece) = pieces.blocking_recv() {
            match piece {
                Piece::Data(octets) => {
                    self.write(&octets)?;
                    let _ = spent.send(octets);
                }
                Piece::Hole(bytes) => self.leave_out(bytes)?,
                Piece::End { bytes, digest } => return self.finish(bytes, digest),
                Piece::Failed(text) => return Err(text),
            }
        }
        self.keep();
        Err("nothing more came".to_owned())
    }

    fn write(&mut self, octets: &[u8]) -> Result<(), String> {
        self.make_room(octets.len() as u64)?;
        let written = match &mut self.output {
            Output::Part { file, .. } => file.write_all(octets),
            Output::Stream(stream) => stream.write_all(octets).and_then(|()| stream.flush()),
        };
        if let Err(error) = written {
            self.keep();
            return Err(self.refused(&error));
        }
        self.digest.update(octets);
        self.at += octets.len() as u64;
        Ok(())
    }

    fn leave_out(&mut self, bytes: u64) -> Result<(), String> {
        let zeros = [0; 16 << 10];
        let mut left = bytes;
        if matches!(self.output, Output::Stream(_)) {
            while left > 0 {
                let n = left.min(zeros.len() as u64);
                self.write(&zeros[..n as usize])?;
                left -= n;
            }
            return Ok(());
        }
        self.make_room(bytes)?;
        while left > 0 {
            let n = left.min(zeros.len() as u64);
            self.digest.update(&zeros[..n as usize]);
            left -= n;
        }
        self.at += bytes;
        let at = self.at;
        if let Output::Part { file, .. } = &mut self.output {
            let skipped = file.seek(SeekFrom::Start(at));
            skipped.map_err(|error| self.refused(&error))?;
        }
        Ok(())
    }

    fn make_room(&self, bytes: u64) -> Result<(), String> {
        let is_beyond = |most: Option<u64>| most.filter(|most| self.at.saturating_add(bytes) > *most);
        if let Some(most) = is_beyond(self.most_bytes) {
            return Err(format!("no more than {most} octets are taken here"));
        }
        match is_beyond(self.announced) {
            Some(announced) => Err(format!("more comes than the {announced} octets that were announced")),
            None => Ok(()),
        }
    }

    fn refused(&self, error: &io::Error) -> String {
        let what = match (error.kind(), &self.output) {
            (ErrorKind::StorageFull, Output::Part { .. }) => {
                "; make room and send it again: what has arrived is kept"
            }
            (ErrorKind::StorageFull, Output::Stream(_)) => "; make room and send it again",
            _ => "",
        };
        format!("cannot write {} beyond octet {}: {error}{what}", self.label, self.at)
    }

    /// What has arrived stays for another time.
    fn keep(&self) {
        if let Output::Part { file, .. } = &self.output {
            let _ = file.set_len(self.at);
        }
    }

    fn finish(mut self, bytes: u64, digest: [u8; DIGEST_BYTES]) -> Result<Written, String> {
        if let Some(announced) = self.announced.filter(|announced| *announced != self.at) {
            self.keep();
            return Err(format!("the sender ended after {} of {announced} octets", self.at));
        }
        let ours: [u8; DIGEST_BYTES] = self.digest.finalize().into();
        if bytes != self.at || ours != digest {
            if let Output::Part { part, .. } = &self.output {
                let _ = fs::remove_file(part);
            }
            self.is_settled = true;
            let what = "what arrived is not what was sent: its digest differs, and it was thrown away; send it again";
            return Err(what.to_owned());
        }
        let (at, label) = (self.at, &self.label);
        let path = match &mut self.output {
            Output::Stream(stream) => {
                stream.flush().map_err(|error| format!("cannot write {label}: {error}"))?;
                None
            }
            Output::Part { file, part, target, force } => {
                let settled = settle(file, at, self.modified).map_err(|error| unwritable(part, &error));
                settled.and_then(|()| name(part, target, *force))?;
                self.is_settled = true;
                Some(target.clone())
            }
        };
        Ok(Written { path, bytes, digest })
    }
}

/// A destination that is being written.
pub(crate) struct Sink {
    /// What is to be written, in order.
    pub pieces: mpsc::Sender<Piece>,
    /// Buffers that can be used again.
    pub spent: std_mpsc::Receiver<Vec<u8>>,
    /// What came of it.
    pub outcome: oneshot::Receiver<Result<Written, String>>,
    /// What has arrived is kept for another time; else it has gone to who may never take any more of it.
    pub is_kept: bool,
}

/// What was written, complete and checked.
#[derive(Debug)]
pub(crate) struct Written {
    pub path: Option<PathBuf>,
    pub bytes: u64,
    pub digest: [u8; DIGEST_BYTES],
}

/// Brings everything to the disk.
fn settle(file: &File, bytes: u64, modified: Option<Modified>) -> io::Result<()> {
    // A hole at the end has been skipped, not written.
    file.set_len(bytes)?;
    if let Some(time) = modified.and_then(Modified::time) {
        // Times beyond what the file system knows are no reason to lose the file.
        let _ = file.set_modified(time);
    }
    file.sync_all()
}

/// Gives the part its name. Without `force` that of another file is never taken, not even where it has come into being
/// just now: a second link is made and the first removed, since renaming would replace.
fn name(part: &Path, target: &Path, force: bool) -> Result<(), String> {
    let named = if force {
        fs::rename(part, target)
    } else {
        match fs::hard_link(part, target) {
            Ok(()) => fs::remove_file(part),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(format!("{}; what arrived is in {}", taken(target), part.display()));
            }
            // Not every file system has links.
            Err(_) if fs::symlink_metadata(target).is_err() => fs::rename(part, target),
            Err(error) => Err(error),
        }
    };
    named.map_err(|error| unwritable(target, &error))?;
    // The name too is to survive a power cut, where the system can promise it.
    if let Some(folder) = target.parent() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

fn taken(target: &Path) -> String {
    format!("{} is there already, and is not replaced without --force", target.display())
}

fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

/// Opens what is there of a file, or begins it. It is locked, so that no two processes write it.
fn open_part(part: &Path, target: &Path) -> Result<File, String> {
    let found = fs::symlink_metadata(part);
    if found.is_ok_and(|found| !found.is_file()) {
        return Err(format!("{} is in the way: it is no ordinary file", part.display()));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    }
    let file = options.open(part).map_err(|error| unwritable(part, &error))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(format!("{} is being received already", target.display())),
        // A file system without locks is no reason to lose a file.
        _ => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    fn folder(name: &str) -> PathBuf {
        let folder = env::temp_dir().join(format!("cede-part-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn offer(name: &str, bytes: u64) -> Offer {
        Offer { name: name.to_owned(), bytes: Some(bytes), modified: None }
    }

    fn end(octets: &[u8]) -> Piece {
        Piece::End { bytes: octets.len() as u64, digest: blake3::hash(octets).into() }
    }

    /// Writes pieces into a place, from an offset on.
    fn write(mut place: Place, offset: u64, pieces: Vec<Piece>) -> Result<Written, String> {
        place.begin(offset)?;
        let (sender, receiver) = mpsc::channel(pieces.len().max(1));
        for piece in pieces {
            sender.try_send(piece).unwrap();
        }
        drop(sender);
        place.write_all(receiver, &std_mpsc::channel().0)
    }

    #[test]
    fn what_is_incomplete_is_kept_and_gone_on_with() {
        let folder = folder("resume");
        let to = Destination::Folder { folder: folder.clone(), force: false };
        let place = to.open(&offer("../a", 6), None).unwrap();
        assert!(write(place, 0, vec![Piece::Data(b"abc".to_vec())]).is_err());
        assert_eq!(fs::read(folder.join("a.part")).unwrap(), b"abc");
        let mut place = to.open(&offer("a", 6), None).unwrap();
        assert_eq!(place.present_bytes(), Ok(3));
        assert_eq!(place.digest_of_first(3).unwrap(), *blake3::hash(b"abc").as_bytes());
        let written = write(place, 3, vec![Piece::Data(b"def".to_vec()), end(b"abcdef")]).unwrap();
        assert_eq!(written.path, Some(folder.join("a")));
        assert_eq!(fs::read(folder.join("a")).unwrap(), b"abcdef");
        assert!(!folder.join("a.part").exists());
        assert!(to.open(&offer("a", 6), None).err().unwrap().contains("--force"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn holes_are_zeros_and_nothing_is_left_of_nothing() {
        let folder = folder("holes");
        let to = Destination::Path { path: folder.join("h"), force: false };
        drop(write(to.open(&offer("h", 5), None).unwrap(), 0, Vec::new()));
        assert!(!folder.join("h.part").exists());
        let pieces = vec![Piece::Data(vec![7]), Piece::Hole(4), end(&[7, 0, 0, 0, 0])];
        write(to.open(&offer("h", 5), None).unwrap(), 0, pieces).unwrap();
        assert_eq!(fs::read(folder.join("h")).unwrap(), [7, 0, 0, 0, 0]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn damage_is_found_and_thrown_away() {
        let folder = folder("damage");
        let to = Destination::Path { path: folder.join("d"), force: false };
        let pieces = vec![Piece::Data(b"abd".to_vec()), end(b"abc")];
        let error = write(to.open(&offer("d", 3), None).unwrap(), 0, pieces).unwrap_err();
        assert!(error.contains("digest"), "{error}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_name_that_came_into_being_meanwhile_is_left_alone() {
        let folder = folder("meanwhile");
        let to = Destination::Path { path: folder.join("m"), force: false };
        let place = to.open(&offer("m", 1), None).unwrap();
        fs::write(folder.join("m"), "mine").unwrap();
        let error = write(place, 0, vec![Piece::Data(vec![1]), end(&[1])]).unwrap_err();
        assert!(error.contains("--force") && error.contains("m.part"), "{error}");
        assert_eq!(fs::read(folder.join("m")).unwrap(), b"mine");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn two_do_not_write_one_file_and_limits_hold() {
        let folder = folder("two");
        let to = Destination::Folder { folder: folder.clone(), force: false };
        let first = to.open(&offer("t", 3), None).unwrap();
        assert!(to.open(&offer("t", 3), None).err().unwrap().contains("already"));
        drop(first);
        assert!(to.open(&offer("t", 3), Some(2)).is_err());
        let endless = Offer { bytes: None, ..offer("t", 0) };
        let place = to.open(&endless, Some(2)).unwrap();
        assert!(write(place, 0, vec![Piece::Data(b"abc".to_vec())]).unwrap_err().contains("no more than 2"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_refused_or_never_begins_leaves_no_part() {
        let folder = folder("refused");
        let to = Destination::Folder { folder: folder.clone(), force: false };
        assert!(to.open(&offer("r", 3), Some(2)).err().unwrap().contains("more than the 2"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        let endless = Offer { bytes: None, ..offer("e", 0) };
        let place = to.open(&endless, Some(2)).unwrap();
        assert!(write(place, 0, vec![Piece::Data(b"abc".to_vec())]).is_err());
        drop(to.open(&offer("n", 3), None).unwrap());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_sender_is_held_to_the_length_that_it_has_announced() {
        let folder = folder("announced");
        let to = Destination::Folder { folder: folder.clone(), force: true };
        fs::write(folder.join("a"), "before").unwrap();
        for pieces in [
            vec![Piece::Data(b"abcd".to_vec()), end(b"abcd")],
            vec![Piece::Data(b"ab".to_vec()), Piece::Hole(2), end(b"ab\0\0")],
            vec![Piece::Data(b"ab".to_vec()), end(b"ab")],
        ] {
            let error = write(to.open(&offer("a", 3), None).unwrap(), 0, pieces).unwrap_err();
            assert!(error.contains("3 octets"), "{error}");
            assert_eq!(fs::read(folder.join("a")).unwrap(), b"before");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_in_the_way_are_not_followed() {
        let folder = folder("links");
        let elsewhere = folder.join("elsewhere");
        fs::write(&elsewhere, "mine").unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.join("l.part")).unwrap();
        std::os::unix::fs::symlink(folder.join("nowhere"), folder.join("k")).unwrap();
        let to = Destination::Folder { folder: folder.clone(), force: false };
        assert!(to.open(&offer("l", 3), None).err().unwrap().contains("in the way"));
        assert!(to.open(&offer("k", 3), None).err().unwrap().contains("--force"));
        fs::remove_dir_all(folder).unwrap();
    }
}
