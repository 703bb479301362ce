//! The folder of a run.

use super::manifest::Manifest;
use super::output::RecordError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "manifest.json";

/// A folder that holds one run and nothing else.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// What an earlier run left here, by its own manifest.
    stale: Vec<String>,
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
        let stale = match fs::read(path.join(MANIFEST)) {
            Ok(text) => files_of(&text),
            Err(_) if is_empty(path).map_err(|error| fail("read the folder", error))? => Vec::new(),
            Err(_) => return Err(fail("use the folder", io::Error::other(NOT_A_RUN))),
        };
        Ok(Self { path: path.to_path_buf(), stale })
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

    /// Removes files of an earlier run that this one did not replace.
    pub fn sweep(&self, files: &[String]) {
        for name in self.stale.iter().filter(|name| !files.contains(name)) {
            // A file that is gone already is as good as removed.
            let _ = fs::remove_file(self.path.join(name));
        }
    }
}

const NOT_A_RUN: &str = "it holds files that no run wrote; name an empty or a new folder with -o";

fn is_empty(path: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(path)?.next().is_none())
}

/// The files that a manifest names: plain names only, whatever it says.
fn files_of(manifest: &[u8]) -> Vec<String> {
    let manifest: serde_json::Value = serde_json::from_slice(manifest).unwrap_or_default();
    let files = manifest["files"].as_array().into_iter().flatten();
    let is_plain =
        |name: &&str| !name.contains(['/', '\\', ':']) && *name != MANIFEST && !name.starts_with('.');
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
