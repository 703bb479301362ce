//! Names in a torrent: each part of a path must be a plain name, so that nothing is ever written outside of the folder that
//! was chosen.

use super::{Error, File};
use crate::bencode::Node;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Longer than people write. Makers on systems that count in other units than octets go beyond the 255 that most file
/// systems take here; whoever keeps such a file has to find it a shorter name.
const MAX_NAME_BYTES: usize = 1024;
/// Folders inside each other, with the file in the last.
pub(super) const MAX_PARTS: usize = 100;

/// What is wrong with a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathError {
    /// A path without parts, or an empty part.
    Empty,
    /// `.` or `..`.
    Upwards,
    /// A separator or a zero octet inside a name. A backslash is one elsewhere, and told from a plain character where files are
    /// opened.
    Separator(String),
    /// A name that is too long.
    Long,
    /// Too many folders inside each other.
    Deep,
    /// Two files have one place, or one is a folder of the other.
    Clash(String),
    /// A symbolic link.
    Link,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the torrent has a file without a name"),
            Self::Upwards => {
                f.write_str("the torrent has a file with `.` or `..` in its path, which is no name")
            }
            Self::Separator(name) if name.contains('\0') => {
                write!(f, "the torrent has a name with a zero octet in it: {name:?}")
            }
            Self::Separator(name) => write!(f, "the torrent has a name with a separator in it: {name:?}"),
            Self::Long => f.write_str("the torrent has a name that is too long"),
            Self::Deep => f.write_str("the torrent has too many folders inside each other"),
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
        _ if name.contains(['/', '\0']) => Err(PathError::Separator(name.to_string())),
        _ => Ok(()),
    }
}

/// Octets as text; what is no UTF-8 shows as replacement characters.
pub(super) fn lossy(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// What stands under a key, or better under the same with `.utf-8`: makers that write names in some other encoding repeat
/// them so.
pub(super) fn best<'a, 'b>(dictionary: Node<'a, 'b>, key: &[u8]) -> Option<Node<'a, 'b>> {
    dictionary.get(&[key, b".utf-8"].concat()).or_else(|| dictionary.get(key))
}

/// One name.
pub(super) fn component(node: Node<'_, '_>) -> Result<String, Error> {
    of_octets(node.bytes().ok_or(Error::Key("name"))?)
}

/// One name, from its octets.
pub(super) fn of_octets(octets: &[u8]) -> Result<String, Error> {
    let name = match core::str::from_utf8(octets) {
        Ok(name) => name.to_string(),
        // Which other encoding is not said. Octet by octet, two names that differ still do.
        Err(_) => octets.iter().map(|octet| char::from(*octet)).collect(),
    };
    check_component(&name)?;
    Ok(name)
}

/// The parts of a path.
pub(super) fn components(list: Node<'_, '_>) -> Result<Vec<String>, Error> {
    let part = |node: Node<'_, '_>| of_octets(node.bytes().ok_or(Error::Key("path"))?);
    let parts: Vec<String> = list.items().take(MAX_PARTS + 1).map(part).collect::<Result<_, _>>()?;
    match parts.len() {
        0 => Err(PathError::Empty.into()),
        count if count > MAX_PARTS => Err(PathError::Deep.into()),
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
