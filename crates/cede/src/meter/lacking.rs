//! What of captures was not read, and why.

use crate::failure::Failure;
use crate::screen;
use cede_meter::{Counters, FeedError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// What kept captures from being read to their ends.
#[derive(Default, Debug)]
pub struct Lacking {
    /// What is wrong with files, a text each.
    damage: Vec<String>,
    /// Files that were not read to their ends, as somebody asked for the end.
    given_up: Vec<PathBuf>,
}

/// What reading ends with when somebody has asked for the end.
pub fn asked() -> FeedError {
    FeedError::Io(io::Error::new(ErrorKind::Interrupted, "interrupted"))
}

impl Lacking {
    /// Takes down how the reading of a file ended, of which so many packets were read.
    pub fn note(&mut self, path: &Path, end: Result<(), FeedError>, packets: u64) {
        match end {
            Ok(()) => {}
            Err(FeedError::Io(error)) if error.kind() == ErrorKind::Interrupted => self.give_up(path),
            Err(error) => self.damage.push(told(path, &error, packets)),
        }
    }

    /// Takes down that a file was not read to its end.
    pub fn give_up(&mut self, path: &Path) {
        self.given_up.push(path.to_path_buf());
    }

    /// Takes down that nothing of these files is of a link type that is read, where that is so.
    pub fn note_unread(&mut self, files: &[PathBuf], counters: &Counters) {
        let Some(number) = counters.unknown_link_type else { return };
        if counters.unread + counters.timeless == counters.packets {
            let names: Vec<_> = files.iter().map(|path| screen::named(path)).collect();
            let names = names.join(", ");
            self.damage.push(format!(
                "{names}: link type {number} is not read, and there is no other; docs/meter.md lists those that are"
            ));
        }
    }

    /// Adds what others lack.
    pub fn add(&mut self, other: Self) {
        self.damage.extend(other.damage);
        self.given_up.extend(other.given_up);
    }

    /// The damage, and that there was an interruption.
    pub fn failures(self) -> [Option<Failure>; 2] {
        let damage = (!self.damage.is_empty()).then(|| Failure::Failed(self.damage.join("\nerror: ")));
        let unread = match &self.given_up[..] {
            [] => None,
            [path] => Some(format!("{} was", screen::named(path))),
            paths => Some(format!("{} files were", paths.len())),
        };
        let cut = unread.map(|unread| {
            Failure::Interrupted(format!("{unread} not read to the end; what came before counts"))
        });
        [damage, cut]
    }
}

/// What is wrong with a file of which so many packets were read.
fn told(path: &Path, error: &FeedError, packets: u64) -> String {
    let kept = match error {
        _ if packets == 0 => "",
        FeedError::Damaged(_) => "; all the rest counts",
        _ => "; what came before counts",
    };
    format!("{}: {error}{kept}", screen::named(path))
}
