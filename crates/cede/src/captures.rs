//! Captures that are named on a command line.

use std::collections::HashSet;
use std::path::PathBuf;

/// Captures that are named.
pub struct Captures {
    /// Each once, however often it is named. What nothing is known of is itself.
    pub files: Vec<PathBuf>,
    /// Those that are named again.
    pub again: Vec<PathBuf>,
}

impl Captures {
    /// Looks up what the names mean.
    pub fn named(files: &[PathBuf]) -> Self {
        let mut known = HashSet::new();
        let is_new =
            |path: &PathBuf| known.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()));
        let (files, again) = files.iter().cloned().partition(is_new);
        Self { files, again }
    }
}
