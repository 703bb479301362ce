//! Files that are there as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What a file is called until it is whole, beside where it belongs. Readers of data sets pass over names that begin with a dot.
pub fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.unfinished"))
}

/// Writes a file, in place of one that is there: that stays where the disk is full. What is no file, such as a pipe, is written
/// to as it is, and so is a file in a folder that takes no others.
///
/// # Errors
/// What the system says.
pub fn write(path: &Path, octets: &[u8]) -> io::Result<()> {
    // Where a link leads to; what is not there has its own name.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let before = fs::metadata(path).ok();
    if before.as_ref().is_some_and(|before| !before.is_file()) {
        return fs::write(path, octets);
    }
    if before.is_some() {
        // Who may not change it may not replace it.
        OpenOptions::new().write(true).open(path)?;
    }
    let draft = unfinished(path);
    let _ = fs::remove_file(&draft);
    let mut file = match File::create_new(&draft) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied && before.is_some() => {
            return fs::write(path, octets);
        }
        file => file?,
    };
    let written = file
        .write_all(octets)
        .and_then(|()| before.map_or(Ok(()), |before| fs::set_permissions(&draft, before.permissions())))
        .and_then(|()| fs::rename(&draft, path));
    written.inspect_err(|_| drop(fs::remove_file(&draft)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_whole_leaves_what_was_there() {
        let folder = std::env::temp_dir().join(format!("cede-whole-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("page.html");
        write(&path, b"first").unwrap();
        write(&path, b"second").unwrap();
        // The draft has no room where a folder has its name.
        fs::create_dir(unfinished(&path)).unwrap();
        write(&path, b"third").unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        fs::remove_dir(unfinished(&path)).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
