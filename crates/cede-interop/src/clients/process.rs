//! What the clients' processes have in common: a folder of their own, and an end when nobody needs them.

use super::{Role, Task};
use crate::bittorrent::Torrent;
use crate::data;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A client's folder: the metainfo, its data and its settings. Removed when dropped.
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    name: String,
}

impl Folder {
    /// Makes a folder for a task: with the data in it where the client is to have them.
    pub(super) fn new(task: &Task<'_>) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("cede-interop-{}-{number}", std::process::id()));
        let folder = Self { path, name: task.torrent.name.clone() };
        std::fs::create_dir_all(folder.data())?;
        std::fs::write(folder.metainfo(), &task.torrent.metainfo)?;
        if task.role == Role::Seed {
            std::fs::write(folder.data().join(&folder.name), &task.torrent.octets)?;
        }
        Ok(folder)
    }

    /// Where the torrent's file is or goes.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// The `.torrent` file.
    #[must_use]
    pub fn metainfo(&self) -> PathBuf {
        self.path.join("it.torrent")
    }

    /// Compares what is there with what should be.
    ///
    /// # Errors
    /// The system's, and a difference.
    pub fn check(&self, torrent: &Torrent) -> io::Result<()> {
        let found = std::fs::read(self.data().join(&self.name))?;
        let is_it = data::digest(&found) == data::digest(&torrent.octets);
        if is_it {
            Ok(())
        } else {
            Err(io::Error::other(format!("a file of {} B that differs", found.len())))
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// What a command says about its version, on either output; why there is none otherwise.
pub(super) fn version_of(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    if output.status.success() { Ok(text) } else { Err(text.lines().last().unwrap_or(&name).to_owned()) }
}
