//! Names in a torrent: each part of a path must be a plain name, so that nothing is ever written outside of the folder that
//! was chosen.

use super::{Error, File};
use crate::bencode::Node;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// What file systems take as one name.
const MAX_NAME_BYTES: usize = 255;
/// Folders inside each other.
const MAX_PARTS: usize = 100;

/// What is wrong with a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathError {
    /// A path without parts, or an empty part.
    Empty,
    /// `.` or `..`.
    Upwards,
    /// A separator or a zero octet inside a name.
    Separator(String),
    /// A name or path that is too long.
    Long,
    /// Two files have one place, or one is a folder of the other.
    Clash(String),
    /// A symbolic link.
    Link,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the torrent has a file without a name"),
            Self::Upwards => f.write_str("the torrent has a file whose name leads out of the folder (..)"),
            Self::Separator(name) => write!(f, "the torrent has a name with a separator in it: {name:?}"),
            Self::Long => f.write_str("the torrent has a name that is too long"),
            Self::Clash(path) => write!(f, "two files of the torrent have the same place: {path:?}"),
            Self::Link => f.write_str("the torrent has a symbolic link, which is not followed or made"),
        }
    }
}

impl core::error::Error for PathError {}

/// Is this one plain name?
///
/// # Errors
/// [`PathError`].
pub fn check_component(name: &str) -> Result<(), PathError> {
    match name {
        "" => Err(PathError::Empty),
        "." | ".." => Err(PathError::Upwards),
        _ if name.len() > MAX_NAME_BYTES => Err(PathError::Long),
        _ if name.contains(['/', '\\', '\0']) => Err(PathError::Separator(name.to_string())),
        _ => Ok(()),
    }
}

/// Octets as text; what is no UTF-8 shows as replacement characters.
pub(super) fn lossy(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// One name.
pub(super) fn component(node: Node<'_, '_>) -> Result<String, Error> {
    of_octets(node.bytes().ok_or(Error::Key("name"))?)
}

/// One name, from its octets.
pub(super) fn of_octets(octets: &[u8]) -> Result<String, Error> {
    let name = lossy(octets);
    check_component(&name)?;
    Ok(name)
}

/// The parts of a path.
pub(super) fn components(list: Node<'_, '_>) -> Result<Vec<String>, Error> {
    let parts: Vec<String> = list.items().take(MAX_PARTS + 1).map(component).collect::<Result<_, _>>()?;
    match parts.len() {
        0 => Err(PathError::Empty.into()),
        count if count > MAX_PARTS => Err(PathError::Long.into()),
        _ => Ok(parts),
    }
}

/// No two files are at one place, and none is where another has a folder. Padding is never written, and does not count.
pub(super) fn check_tree(files: &[File]) -> Result<(), PathError> {
    let mut paths: Vec<&[String]> =
        files.iter().filter(|file| !file.is_padding).map(|file| &file.path[..]).collect();
    paths.sort_unstable();
    // A folder of others sorts right before the first of them.
    match paths.windows(2).find(|pair| pair[1].starts_with(pair[0])) {
        Some(pair) => Err(PathError::Clash(pair[0].join("/"))),
        None => Ok(()),
    }
}
