//! The folder of a run.

use super::manifest::Manifest;
use super::output::RecordError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "manifest.json";

/// What a run writes about itself and its files: a scenario's the one, a swarm's the other.
const INDICES: [&str; 2] = [MANIFEST, "summary.json"];

/// A folder that holds one run and nothing else.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// What an earlier run left here, by its own account.
    stale: Vec<String>,
    /// What somebody else has put beside it.
    others: Vec<String>,
}

impl Folder {
    /// Makes the folder where there is none. An earlier run in it is replaced; anything else in it is a reason to
    /// refuse.
    ///
    /// # Errors
    /// [`RecordError`] where the folder cannot be made or read, or holds what no run wrote.
    pub fn claim(path: &Path) -> Result<Self, RecordError> {
        let fail = |action, error| RecordError::new(action, path, error);
        fs::create_dir_all(path).map_err(|error| fail("make the folder", error))?;
        let stale: Vec<String> = INDICES.into_iter().flat_map(|index| left_by(path, index)).collect();
        let mut others = names_in(path).map_err(|error| fail("read the folder", error))?;
        others.retain(|name| !stale.contains(name));
        if stale.is_empty() && !others.is_empty() {
            return Err(fail("use the folder", io::Error::other(NOT_A_RUN)));
        }
        Ok(Self { path: path.to_path_buf(), stale, others })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file at once.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn write(&self, name: &str, octets: &[u8]) -> Result<String, RecordError> {
        let path = self.path.join(name);
        fs::write(&path, octets).map_err(|error| RecordError::new("write", &path, error))?;
        Ok(name.to_string())
    }

    /// Writes the manifest, in place of the one before.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn write_manifest(&self, manifest: &Manifest<'_>) -> Result<(), RecordError> {
        let mut text = serde_json::to_vec_pretty(manifest)
            .map_err(|error| RecordError::new("write", &self.path.join(MANIFEST), error.into()))?;
        text.push(b'\n');
        self.write(MANIFEST, &text).map(drop)
    }

    /// The files that this run has made so far, but for what it says about itself.
    #[must_use]
    pub fn made(&self) -> Vec<String> {
        let mut names = names_in(&self.path).unwrap_or_default();
        names.retain(|name| !self.others.contains(name) && !INDICES.contains(&name.as_str()));
        names
    }

    /// Removes files of an earlier run but for these, which are this one's.
    pub fn sweep(&self, files: &[&str]) {
        for name in self.stale.iter().filter(|name| !files.contains(&name.as_str())) {
            // A file that is gone already is as good as removed.
            let _ = fs::remove_file(self.path.join(name));
        }
    }
}

const NOT_A_RUN: &str = "it holds files that no run wrote; name an empty or a new folder with -o";

fn names_in(path: &Path) -> io::Result<Vec<String>> {
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let mut names = fs::read_dir(path)?.map(name).collect::<io::Result<Vec<String>>>()?;
    names.sort_unstable();
    Ok(names)
}

/// What a run left that wrote this about itself; nothing where that is not here, or no run's. A manifest that was torn
/// is one all the same: nothing else is called so in a run folder, whereas many a program writes a summary.
fn left_by(path: &Path, index: &str) -> Vec<String> {
    let Ok(text) = fs::read(path.join(index)) else { return Vec::new() };
    let mut names = files_of(&text);
    if index == MANIFEST || !names.is_empty() {
        names.push(index.to_string());
    }
    names
}

/// The files that a manifest names: plain names only, whatever it says.
fn files_of(manifest: &[u8]) -> Vec<String> {
    let manifest: serde_json::Value = serde_json::from_slice(manifest).unwrap_or_default();
    let files = manifest["files"].as_array().into_iter().flatten();
    let is_plain =
        |name: &&str| !name.contains(['/', '\\', ':']) && !INDICES.contains(name) && !name.starts_with('.');
    files.filter_map(serde_json::Value::as_str).filter(is_plain).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_ever_removed() {
        let manifest = br#"{"files": ["flows.csv", "../x", "/etc/passwd", ".", "a\\b", 7, "manifest.json"]}"#;
        assert_eq!(files_of(manifest), ["flows.csv"]);
        assert!(files_of(b"no manifest").is_empty());
    }
}
