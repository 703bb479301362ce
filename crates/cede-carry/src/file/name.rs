//! Names that strangers give to files.

use crate::untrusted::is_unprintable;
use std::path::{Path, PathBuf};

/// The longest name: 255 octets are what file systems take, and `.part` comes behind.
const MAX_NAME_BYTES: usize = 200;
/// What file systems take.
const MAX_FILE_NAME_BYTES: usize = 255;
/// What a file's name ends in while it comes.
const ENDING: &str = ".part";
/// What a file is called whose name has nothing in it that is safe.
const NAMELESS: &str = "received";
/// Names that Windows keeps for devices, whatever follows a dot.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "COM", "LPT"];

/// A name that cannot lead out of a folder, hide, command a terminal or mean a device: the last part of what a stranger
/// calls a file, with `_` for each character that is not safe on some system. A name that ends in `.part` gets a `_`,
/// so that no file is taken for the remains of another.
#[must_use]
pub fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or_default();
    let is_safe = |c: char| !is_unprintable(c) && !"<>:\"|?*".contains(c);
    let mut safe: String = last.chars().map(|c| if is_safe(c) { c } else { '_' }).collect();
    safe.truncate(safe.trim_end_matches([' ', '.']).len());
    if safe.starts_with(['.', '-', '~']) {
        safe.replace_range(..1, "_");
    }
    if safe.trim().is_empty() || safe.chars().all(|c| c == '_') {
        return NAMELESS.to_owned();
    }
    if is_device(&safe) {
        safe.insert(0, '_');
    }
    shorten(&mut safe);
    if safe.to_ascii_lowercase().ends_with(ENDING) {
        safe.push('_');
    }
    safe
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let bare = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    DEVICES.contains(&bare) && (stem.len() - bare.len()) <= 1
}

/// What a file is called while it comes. Where that would be longer than file systems take, its end makes room for a piece of the digest of all.
pub(super) fn part_of(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default();
    let octets = name.as_encoded_bytes();
    if octets.len() + ENDING.len() <= MAX_FILE_NAME_BYTES {
        let mut part = name.to_owned();
        part.push(ENDING);
        return target.with_file_name(part);
    }
    let digest = &blake3::hash(octets).to_hex()[..16];
    let (name, room) = (name.to_string_lossy(), MAX_FILE_NAME_BYTES - ENDING.len() - 1 - digest.len());
    let kept = &name[..name.floor_char_boundary(room)];
    target.with_file_name(format!("{kept}.{digest}{ENDING}"))
}

/// Cuts the stem and keeps what tells the kind.
fn shorten(name: &mut String) {
    if name.len() <= MAX_NAME_BYTES {
        return;
    }
    let extension = match name.rfind('.') {
        Some(dot) if name.len() - dot <= 20 => name[dot..].to_owned(),
        _ => String::new(),
    };
    name.truncate(name.floor_char_boundary(MAX_NAME_BYTES - extension.len()));
    name.push_str(&extension);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_comes_has_a_name_that_file_systems_take() {
        let name_of =
            |name: &str| part_of(&Path::new("in").join(name)).strip_prefix("in").unwrap().to_owned();
        assert_eq!(name_of("a.b"), Path::new("a.b.part"));
        let longest = "n".repeat(250);
        assert_eq!(name_of(&longest).to_str(), Some(&*format!("{longest}.part")));
        for long in ["n".repeat(251), "n".repeat(255), "é".repeat(127)] {
            let (part, other) = (name_of(&long), name_of(&format!("{}x", &long[..long.len() - 2])));
            let octets = part.as_os_str().len();
            assert!((200..=255).contains(&octets) && part.to_str().unwrap().ends_with(ENDING), "{part:?}");
            assert_ne!(part, other);
        }
    }

    #[test]
    fn ordinary_names_stay() {
        for name in ["a.txt", "Übung 3.pdf", "x", "a..b", "archive.tar.gz", "console.log", "com10.txt"] {
            assert_eq!(safe_name(name), name);
        }
    }

    #[test]
    fn nothing_leads_out_of_a_folder() {
        for (name, safe) in [
            ("../../etc/passwd", "passwd"),
            ("/etc/passwd", "passwd"),
            (r"C:\Windows\evil.exe", "evil.exe"),
            ("..", NAMELESS),
            (".", NAMELESS),
            ("", NAMELESS),
            ("/", NAMELESS),
            ("a/..", NAMELESS),
            (".bashrc", "_bashrc"),
            ("-rf", "_rf"),
            ("a\0b\nc\x1b[2J", "a_b_c_[2J"),
            ("gpj.\u{202e}exe", "gpj._exe"),
            ("NUL", "_NUL"),
            ("com1.txt", "_com1.txt"),
            ("film.part", "film.part_"),
            ("film.PART.. ", "film.PART_"),
            ("C:stream", "C_stream"),
        ] {
            assert_eq!(safe_name(name), safe, "{name:?}");
        }
    }

    #[test]
    fn long_names_keep_their_kind() {
        let safe = safe_name(&format!("{}.tar", "ü".repeat(400)));
        assert!(safe.len() <= MAX_NAME_BYTES && safe.ends_with("ü.tar"), "{safe}");
        assert!(safe_name(&"x".repeat(1000)).len() <= MAX_NAME_BYTES);
    }

    #[test]
    fn whatever_comes_is_one_plain_name_and_stays_what_it_is() {
        bolero::check!().with_iterations(20_000).with_type::<String>().for_each(|name| {
            let safe = safe_name(name);
            let path = std::path::Path::new(&safe);
            assert_eq!(path.components().count(), 1, "{safe:?}");
            assert!(matches!(path.components().next(), Some(std::path::Component::Normal(_))), "{safe:?}");
            assert!(safe.len() <= MAX_NAME_BYTES + 1 && !safe.starts_with('.'), "{safe:?}");
            assert!(!safe.chars().any(is_unprintable), "{safe:?}");
        });
    }
}
