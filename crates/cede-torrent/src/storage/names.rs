//! The names that files are kept under.

use cede_bt::metainfo::{File, sha1};
use std::borrow::Cow;

/// What file systems take as one name.
const MAX_BYTES: usize = 255;
/// What is behind the last dot and not longer says what a file is.
const MAX_EXTENSION_BYTES: usize = 16;

/// What FAT, exFAT and NTFS take in no name, beside control characters.
const ODD: [char; 8] = ['<', '>', ':', '"', '|', '?', '*', '\\'];

/// What a file system takes in names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Taken {
    /// Whatever is in those of torrents.
    #[default]
    All,
    /// Nothing odd.
    Plain,
}

fn is_plain(letter: char) -> bool {
    !letter.is_ascii_control() && !ODD.contains(&letter)
}

/// What of a path not all file systems take in a name.
pub fn odd(path: &[String]) -> impl Iterator<Item = char> + '_ {
    path.iter().flat_map(|name| name.chars()).filter(|letter| !is_plain(*letter))
}

/// The name in the folder: the torrent's own, with a line for each character that is not taken there, or, where file systems take none so
/// long, its beginning, a piece of its digest and its end.
pub fn kept(name: &str, taken: Taken) -> Cow<'_, str> {
    if taken == Taken::Plain && !name.chars().all(is_plain) {
        let plain: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
        return Cow::Owned(shortened(&plain).into_owned());
    }
    shortened(name)
}

fn shortened(name: &str) -> Cow<'_, str> {
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
pub fn kept_path(path: &[String], taken: Taken) -> Vec<String> {
    path.iter().map(|name| kept(name, taken).into_owned()).collect()
}

/// A path in the folder, and all others that some file systems take for it.
pub fn folded(path: &[String]) -> Vec<String> {
    path.iter().map(|name| name.trim_end_matches(['.', ' ']).to_lowercase()).collect()
}

/// Files of which some file systems take one for the other, as they look at neither the case of letters nor at dots and spaces at a name's
/// end: the first of those that are alike, and another one.
pub fn alike(files: &[File], taken: Taken, is_due: impl Fn(usize) -> bool) -> Vec<(usize, usize)> {
    let key = |at: usize| folded(&kept_path(&files[at].path, taken));
    let due = (0..files.len()).filter(|at| !files[*at].is_padding && is_due(*at));
    let mut by_key: Vec<(Vec<String>, usize)> = due.map(|at| (key(at), at)).collect();
    by_key.sort_unstable();
    let groups = by_key.chunk_by(|a, b| a.0 == b.0);
    groups.flat_map(|group| group[1..].iter().map(|other| (group[0].1, other.1))).collect()
}

/// Two files that would be kept at one place: somebody has made a name for that.
pub fn clash(files: &[File]) -> Option<Vec<String>> {
    if files.iter().flat_map(|file| &file.path).all(|name| name.len() <= MAX_BYTES) {
        return None;
    }
    let real = files.iter().filter(|file| !file.is_padding);
    let mut paths: Vec<_> = real.map(|file| kept_path(&file.path, Taken::All)).collect();
    paths.sort_unstable();
    paths.windows(2).find(|pair| pair[1].starts_with(&pair[0])).map(|pair| pair[0].clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_little_are_alike_as_whole_paths() {
        let file = |path: &str| File {
            path: path.split('/').map(str::to_owned).collect(),
            length: 1,
            offset: 0,
            is_padding: path == "pad",
            is_executable: false,
        };
        let paths = ["t/README", "t/b", "u/readme", "T/Readme. ", "pad", "PAD", "t/ÄB", "t/äb", "t/readme"];
        let files: Vec<File> = paths.into_iter().map(file).collect();
        assert_eq!(alike(&files, Taken::All, |_| true), [(0, 3), (0, 8), (6, 7)]);
        assert_eq!(alike(&files, Taken::All, |at| at != 0 && at != 7), [(3, 8)]);
    }
    #[test]
    fn what_is_odd_in_a_name_has_a_substitute_where_it_is_not_taken() {
        for (name, plain) in
            [("a: b?.txt", "a_ b_.txt"), ("<\"|*>\\", "______"), ("\u{1}\u{7f}", "__"), ("ä.b", "ä.b")]
        {
            assert_eq!((kept(name, Taken::All), kept(name, Taken::Plain)), (name.into(), plain.into()));
            assert_eq!(odd(&[name.to_owned()]).count(), plain.matches('_').count(), "{name}");
        }
        let long = kept(&"?".repeat(300), Taken::Plain).into_owned();
        assert!(long.len() == MAX_BYTES && odd(&[long]).next().is_none());
    }
}
