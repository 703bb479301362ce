//! What is remembered of torrents: for each a document, and once it is known its torrent file.

use super::own::Own;
use crate::failure::Failure;
use crate::{screen, whole};
use cede_bt::metainfo::Metainfo;
use cede_torrent::session::Turn;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What is remembered of one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Kept {
    /// The link that it was asked for by, as long as its torrent file is not known.
    pub link: Option<String>,
    /// The folder that it goes into.
    #[serde(with = "any_path")]
    pub folder: PathBuf,
    /// It is not to run.
    pub is_paused: bool,
    /// It was given as often, or for as long, as was asked for.
    #[serde(default)]
    pub is_finished: bool,
    /// Places, among its files without padding, of those that are not wanted.
    #[serde(default)]
    pub unwanted: BTreeSet<usize>,
    /// Places of those that are fetched before all others, and after them.
    #[serde(default)]
    pub first: BTreeSet<usize>,
    /// See there.
    #[serde(default)]
    pub last: BTreeSet<usize>,
    /// Places of those that are wanted and no others, as long as the torrent file is not known.
    #[serde(default)]
    pub picked: Vec<usize>,
    /// Seconds since 1970 at which it was added, and at which all was there.
    pub added_s: i64,
    /// See there.
    #[serde(default)]
    pub done_s: Option<i64>,
    /// Octets of blocks that were received and sent, in all runs but the one under way.
    #[serde(default)]
    pub received: u64,
    /// See there.
    #[serde(default)]
    pub sent: u64,
    /// Octets of each file that were there when it ended last, or at first began; none where it never has.
    #[serde(default)]
    pub here: Vec<u64>,
    /// Seconds that it was fetched for, and given, in all runs but the one under way where that was killed.
    #[serde(default)]
    pub fetched_s: u64,
    /// See there.
    #[serde(default)]
    pub given_s: u64,
    /// Its place in the queue; those of one place stand in the order in which they came.
    #[serde(default)]
    pub place: u64,
    /// Its own limits, and when giving it ends.
    #[serde(default)]
    pub own: Own,
    /// What people call it besides.
    #[serde(default)]
    pub labels: Vec<String>,
    /// How all its files stood when all of it was there and on the disk: octets, and nanoseconds since 1970 of the last change.
    #[serde(default)]
    pub checked: Option<Vec<Option<(u64, i64)>>>,
    /// Peers that it had when it ended last.
    #[serde(default)]
    pub peers: Vec<SocketAddr>,
}

impl Kept {
    /// When the file with this number is fetched.
    pub fn turn(&self, number: usize) -> Turn {
        match (self.first.contains(&number), self.last.contains(&number)) {
            (true, _) => Turn::First,
            (false, true) => Turn::Last,
            (false, false) => Turn::Usual,
        }
    }

    /// From now on the files with these numbers are fetched then.
    pub fn give_turn(&mut self, numbers: impl Iterator<Item = usize>, turn: Turn) {
        for number in numbers {
            for (set, of) in [(&mut self.first, Turn::First), (&mut self.last, Turn::Last)] {
                if of == turn {
                    set.insert(number);
                } else {
                    set.remove(&number);
                }
            }
        }
    }
}

/// What is remembered of all runs together.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Past {
    /// Octets that were received and sent by torrents that are no more: sums that are told as such never go down.
    pub received: u64,
    /// See there.
    pub sent: u64,
    /// Torrents that were added.
    pub added: u64,
    /// Runs that have begun, and seconds for which those that have ended lasted.
    pub runs: u64,
    /// See there.
    pub seconds: u64,
}

/// A path: text, or where it is none its octets.
mod any_path {
    use super::{Deserialize, PathBuf, Serialize};
    use serde::{Deserializer, Serializer};
    use std::path::Path;

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(PathBuf),
        #[cfg(unix)]
        Octets(Vec<u8>),
    }

    #[cfg(unix)]
    fn form(path: &Path) -> Form {
        use std::os::unix::ffi::OsStrExt;
        match path.to_str() {
            Some(_) => Form::Text(path.to_path_buf()),
            None => Form::Octets(path.as_os_str().as_bytes().to_vec()),
        }
    }

    #[cfg(not(unix))]
    fn form(path: &Path) -> Form {
        Form::Text(path.to_path_buf())
    }

    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        form(path).serialize(serializer)
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(match Form::deserialize(deserializer)? {
            Form::Text(path) => path,
            #[cfg(unix)]
            Form::Octets(octets) => {
                use std::os::unix::ffi::OsStringExt;
                std::ffi::OsString::from_vec(octets).into()
            }
        })
    }
}

/// Where it is remembered.
pub struct Store {
    folder: PathBuf,
    /// Nobody else uses it as long as this is open.
    _lock: File,
}

impl Store {
    /// The usual place.
    pub fn usual() -> Option<PathBuf> {
        let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let state = of("XDG_STATE_HOME").or_else(|| Some(of("HOME")?.join(".local/state")))?;
        Some(state.join("cede/torrents"))
    }

    /// Opens, or makes, the folder.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            let name = screen::named(folder);
            Failure::of_system(format!("--state: cannot use {name}: {error}"), error.kind())
        };
        // Clients are told of it, who may be elsewhere.
        let folder = &std::path::absolute(folder).map_err(failed)?;
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = File::create(folder.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { folder: folder.to_path_buf(), _lock: lock }),
            Err(fs::TryLockError::Error(error)) => Err(failed(error)),
            Err(fs::TryLockError::WouldBlock) => {
                let name = screen::named(folder);
                let text = format!("--state: {name} is in use by another one; give this one its own");
                Err(Failure::Failed(text))
            }
        }
    }

    /// Where all is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The torrent file of one, where it is known.
    pub fn torrent(&self, hash: &str) -> PathBuf {
        self.folder.join(format!("{hash}.torrent"))
    }

    fn document(&self, hash: &str) -> PathBuf {
        self.folder.join(format!("{hash}.json"))
    }

    fn past_document(&self) -> PathBuf {
        self.folder.join("past")
    }

    /// What is remembered of all runs together.
    pub fn past(&self) -> Result<Past, Failure> {
        let path = self.past_document();
        let told = |text: &str| Failure::Failed(format!("{}: {text}", screen::named(&path)));
        match fs::read(&path) {
            Ok(octets) => serde_json::from_slice(&octets).map_err(|error| told(&error.to_string())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Past::default()),
            Err(error) => Err(told(&error.to_string())),
        }
    }

    /// Remembers that.
    pub fn write_past(&self, past: &Past) -> Result<(), Failure> {
        let octets = serde_json::to_vec_pretty(past).map_err(|error| Failure::Failed(error.to_string()))?;
        self.put(&self.past_document(), &octets)
    }

    /// All that is remembered: the hash, the document, and the torrent. What cannot be read is told of, and stays.
    pub fn read(&self, complain: impl Fn(&str)) -> Vec<(String, Kept, Option<Metainfo>)> {
        let names = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let hash = |name: std::ffi::OsString| name.to_str()?.strip_suffix(".json").map(str::to_owned);
        let mut hashes: Vec<String> = names.filter_map(hash).filter(|name| !name.starts_with('.')).collect();
        hashes.sort_unstable();
        let mut all = Vec::new();
        for hash in hashes {
            match self.read_one(&hash) {
                Ok((kept, metainfo)) => all.push((hash, kept, metainfo)),
                Err(text) => complain(&format!("{}: {text}", screen::named(&self.document(&hash)))),
            }
        }
        all.sort_by_key(|(_, kept, _)| kept.added_s);
        all
    }

    fn read_one(&self, hash: &str) -> Result<(Kept, Option<Metainfo>), String> {
        let octets = fs::read(self.document(hash)).map_err(|error| error.to_string())?;
        let kept: Kept = serde_json::from_slice(&octets).map_err(|error| error.to_string())?;
        match fs::read(self.torrent(hash)) {
            Ok(octets) => match Metainfo::parse(&octets) {
                Ok(metainfo) => Ok((kept, Some(metainfo))),
                Err(error) => Err(format!("its torrent file: {error}")),
            },
            Err(error) if error.kind() == ErrorKind::NotFound && kept.link.is_some() => Ok((kept, None)),
            Err(error) => Err(format!("its torrent file: {error}")),
        }
    }

    /// Remembers.
    pub fn write(&self, hash: &str, kept: &Kept) -> Result<(), Failure> {
        let octets = serde_json::to_vec_pretty(kept).map_err(|error| Failure::Failed(error.to_string()))?;
        self.put(&self.document(hash), &octets)
    }

    /// Remembers the torrent file.
    pub fn write_torrent(&self, hash: &str, metainfo: &Metainfo) -> Result<(), Failure> {
        self.put(&self.torrent(hash), &metainfo.encode())
    }

    fn put(&self, path: &Path, octets: &[u8]) -> Result<(), Failure> {
        whole::write(path, octets).map_err(|error| {
            let text = format!("cannot remember it in {}: {error}", screen::named(&self.folder));
            Failure::of_system(text, error.kind())
        })
    }

    /// Forgets. What cannot be forgotten would come again with the next run.
    pub fn forget(&self, hash: &str) -> Result<(), Failure> {
        // The document comes first: without it nothing is begun again.
        match fs::remove_file(self.document(hash)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let text = format!("cannot forget it in {}: {error}", screen::named(&self.folder));
                return Err(Failure::of_system(text, error.kind()));
            }
            _ => {}
        }
        let _ = fs::remove_file(self.torrent(hash));
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn folders_of_any_name_are_remembered() {
        let kept = |folder: PathBuf| Kept { folder, ..Kept::default() };
        for folder in ["/srv/größe".into(), PathBuf::from(OsString::from_vec(b"/srv/\xff".to_vec()))] {
            let octets = serde_json::to_vec(&kept(folder.clone())).unwrap();
            assert_eq!(serde_json::from_slice::<Kept>(&octets).unwrap().folder, folder);
        }
    }
}
