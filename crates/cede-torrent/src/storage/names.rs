//! The names that files are kept under.

use cede_bt::metainfo::{File, sha1};
use std::borrow::Cow;

/// What file systems take as one name.
const MAX_BYTES: usize = 255;
/// What is behind the last dot and not longer says what a file is.
const MAX_EXTENSION_BYTES: usize = 16;

/// The name in the folder: the torrent's own or, where file systems take none so long, its beginning, a piece of its digest
/// and its end.
pub fn kept(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_BYTES {
        return Cow::Borrowed(name);
    }
    let dot = name.rfind('.').filter(|dot| name.len() - dot <= MAX_EXTENSION_BYTES);
    let end = dot.map_or("", |dot| &name[dot..]);
    let mark: String = sha1(name.as_bytes())[..4].iter().map(|octet| format!("{octet:02x}")).collect();
    let room = MAX_BYTES - end.len() - mark.len() - 1;
    let beginning = &name[..name.floor_char_boundary(room)];
    Cow::Owned(format!("{beginning}~{mark}{end}"))
}

/// The path in the folder.
pub fn kept_path(path: &[String]) -> Vec<String> {
    path.iter().map(|name| kept(name).into_owned()).collect()
}

/// Two files that would be kept at one place: somebody has made a name for that.
pub fn clash(files: &[File]) -> Option<Vec<String>> {
    if files.iter().flat_map(|file| &file.path).all(|name| name.len() <= MAX_BYTES) {
        return None;
    }
    let real = files.iter().filter(|file| !file.is_padding);
    let mut paths: Vec<_> = real.map(|file| kept_path(&file.path)).collect();
    paths.sort_unstable();
    paths.windows(2).find(|pair| pair[1].starts_with(&pair[0])).map(|pair| pair[0].clone())
}
