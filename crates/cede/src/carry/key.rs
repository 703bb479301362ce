//! `cede key`, and where the other verbs take their key from.

use super::args::{KeyArgs, MakeKeyArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::screen;
use cede_carry::{Key, KeyError};
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

/// The variable of the environment that may hold the text of a key.
const VARIABLE: &str = "CEDE_KEY";
/// More is not read of a file that is meant to be a key.
const MAX_FILE_BYTES: u64 = 1024;

/// The key that a verb was given, if any: by its option, or else by the environment.
///
/// # Errors
/// It cannot be read, is none, or others can read it: never is there no key where one was meant.
pub fn load(args: &KeyArgs) -> Result<Option<Key>, Failure> {
    if let Some(path) = &args.key {
        return read(path).map(Some);
    }
    let Some(text) = std::env::var_os(VARIABLE) else { return Ok(None) };
    let wrong = |error: KeyError| Failure::Usage(format!("{VARIABLE}: {error}"));
    match text.to_str() {
        Some("") => Err(Failure::Usage(format!("{VARIABLE} is empty: unset it to speak in the clear"))),
        text => Key::parse(text.unwrap_or_default()).map(Some).map_err(wrong),
    }
}

/// What is said of a conversation beside all else.
pub fn under(key: Option<&Key>) -> String {
    key.map_or(String::new(), |key| format!(", under the key {}", key.fingerprint()))
}

fn read(path: &Path) -> Result<Key, Failure> {
    let text = interrupt::while_reading(|| text_of(path))?;
    let text = String::from_utf8(text).unwrap_or_default();
    Key::parse(&text).map_err(|error| Failure::Usage(format!("{}: {error}", screen::named(path))))
}

fn text_of(path: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable = |error: io::Error| {
        Failure::of_system(format!("cannot read the key {}: {error}", screen::named(path)), error.kind())
    };
    let file = File::open(path).map_err(unreadable)?;
    // Of the file that is open, not of whatever has its name by now.
    refuse_if_shared(path, &file.metadata().map_err(unreadable)?)?;
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// A secret that others can read is none.
#[cfg(unix)]
fn refuse_if_shared(path: &Path, found: &fs::Metadata) -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt;
    let mode = found.mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let path = screen::named(path);
    Err(Failure::Usage(format!(
        "the key {path} is not its owner's alone (mode {mode:04o}); if nobody else has read it: chmod 600 {path}"
    )))
}

/// Elsewhere a file has the rights of its folder, which we cannot read.
#[cfg(not(unix))]
fn refuse_if_shared(_: &Path, _: &fs::Metadata) -> Result<(), Failure> {
    Ok(())
}

/// `cede key`: makes one, or looks at one.
pub fn key(args: &MakeKeyArgs) -> Result<(), Failure> {
    let is_stdout = args.file.as_os_str() == "-";
    if args.check {
        return tell(args, &read(&args.file)?, "is the key");
    }
    let key = Key::random().map_err(|error| Failure::Failed(format!("no randomness: {error}")))?;
    if !is_stdout {
        write(&args.file, &key)?;
        return tell(args, &key, "holds the new key");
    }
    if args.json {
        return screen::print_json(&json!({ "key": key.to_text(), "fingerprint": key.fingerprint() }));
    }
    screen::mention(&format!("fingerprint {}\n", key.fingerprint()));
    screen::print(&format!("{}\n", key.to_text()))
}

fn tell(args: &MakeKeyArgs, key: &Key, what: &str) -> Result<(), Failure> {
    let fingerprint = key.fingerprint();
    if args.json {
        let path = args.file.display().to_string();
        return screen::print_json(&json!({ "path": path, "fingerprint": fingerprint }));
    }
    screen::print(&format!("{} {what} {fingerprint}\n", screen::named(&args.file)))
}

/// Into a file that is made for it and that nobody else may read, from its first moment on.
fn write(path: &Path, key: &Key) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| {
        let written = writeln!(file, "{}", key.to_text()).and_then(|()| file.sync_all());
        // A part of a key is none.
        written.inspect_err(|_| drop(fs::remove_file(path)))
    });
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::Failed(format!("{} is there already, and a key is never replaced", screen::named(path)))
        }
        kind => Failure::of_system(format!("cannot write {}: {error}", screen::named(path)), kind),
    })
}
