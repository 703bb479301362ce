//! What a torrent's content is called on servers that have it (web seeds, BEP 19), and what servers say of the part that they send
//! (RFC 9110).

use crate::metainfo::Info;
use alloc::format;
use alloc::string::String;

/// What a file is called: of a torrent without a folder the URL itself, or the name in the folder that it ends with; else the
/// path of the file below it, its name first.
#[must_use]
pub fn url_of(base: &str, info: &Info, file: usize) -> String {
    let mut url = String::with_capacity(base.len() + 64);
    // Spaces and letters of all kinds are no part of a URL, and stand in some torrents.
    base.bytes().for_each(|octet| push(&mut url, octet, octet.is_ascii_graphic()));
    let path = info.files.get(file).map(|file| &file.path[..]).unwrap_or_default();
    let is_folder = base.ends_with('/');
    if path.len() == 1 && !is_folder {
        return url;
    }
    for (at, part) in path.iter().enumerate() {
        if at > 0 || !is_folder {
            url.push('/');
        }
        let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-._~".contains(&octet);
        part.bytes().for_each(|octet| push(&mut url, octet, is_plain(octet)));
    }
    url
}

fn push(url: &mut String, octet: u8, is_plain: bool) {
    if is_plain {
        url.push(char::from(octet));
    } else {
        url.push_str(&format!("%{octet:02X}"));
    }
}

/// Which part of a file is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContentRange {
    /// Its first octet.
    pub first: u64,
    /// The one behind its last.
    pub end: u64,
    /// Octets of the whole file, where that is said.
    pub length: Option<u64>,
}

impl ContentRange {
    /// What the header says.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (unit, rest) = text.trim().split_once(' ')?;
        let (range, length) = rest.trim().split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last) = (number(first)?, number(last)?);
        let length = if length.trim() == "*" { None } else { Some(number(length)?) };
        let end = last.checked_add(1)?;
        let is_sound = first <= last && length.is_none_or(|length| end <= length);
        (unit.eq_ignore_ascii_case("bytes") && is_sound).then_some(Self { first, end, length })
    }

    /// How long the file is of which the part that was asked for is none, as in `bytes */47`.
    #[must_use]
    pub fn length_of_unsatisfied(text: &str) -> Option<u64> {
        let (unit, rest) = text.trim().split_once(' ')?;
        let length = rest.trim().strip_prefix("*/")?;
        unit.eq_ignore_ascii_case("bytes").then(|| number(length)).flatten()
    }
}

/// Digits alone: others take a sign as well.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    text.bytes().all(|octet| octet.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// After how many seconds a server wants to be asked again; none where it names a date.
#[must_use]
pub fn retry_after_s(text: &str) -> Option<u64> {
    number(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metainfo::{File, Writer};
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    fn torrent(paths: &[&[&str]]) -> Info {
        let mut files = Vec::new();
        for (offset, path) in (0..).zip(paths) {
            let path = path.iter().map(ToString::to_string).collect();
            files.push(File { path, length: 1, offset, is_padding: false, is_executable: false });
        }
        let (name, pieces) = (paths[0][0].into(), vec![0; 20]);
        let writer = Writer { name, piece_length: 16_384, pieces, files, ..Writer::default() };
        Info::parse(&writer.info().encode()).unwrap()
    }

    #[test]
    fn a_file_that_ends_before_what_was_asked_for_is_measured() {
        let length = ContentRange::length_of_unsatisfied;
        assert_eq!((length("bytes */47"), length(" BYTES  */ 0 ")), (Some(47), Some(0)));
        for text in ["", "bytes 0-1/47", "bytes */*", "bytes */-1", "bytes*/47", "octets */47"] {
            assert_eq!(length(text), None, "{text}");
        }
    }

    #[test]
    fn files_have_their_places_below_a_url() {
        let one = torrent(&[&["a film.mkv"]]);
        for (base, url) in [
            ("http://h/film", "http://h/film"),
            ("http://h/d/", "http://h/d/a%20film.mkv"),
            ("http://h/a film", "http://h/a%20film"),
            ("http://h/%C3%BC?x=1&y=2", "http://h/%C3%BC?x=1&y=2"),
            ("http://h/\u{fc}", "http://h/%C3%BC"),
        ] {
            assert_eq!(url_of(base, &one, 0), url);
        }
        let several = torrent(&[&["t", "a+b"], &["t", "\u{fc}", "c?#"]]);
        for base in ["http://h/d", "http://h/d/"] {
            assert_eq!(url_of(base, &several, 0), "http://h/d/t/a%2Bb");
            assert_eq!(url_of(base, &several, 1), "http://h/d/t/%C3%BC/c%3F%23");
        }
        let folder = torrent(&[&["t", "a"]]);
        assert_eq!(url_of("http://h/", &folder, 0), "http://h/t/a");
    }

    #[test]
    fn a_part_is_what_the_header_says() {
        let range = |first, end, length| Some(ContentRange { first, end, length });
        for (text, expected) in [
            ("bytes 0-0/1", range(0, 1, Some(1))),
            ("Bytes 5-9/10", range(5, 10, Some(10))),
            ("bytes 5-9/*", range(5, 10, None)),
            (" bytes  5 - 9 / 11 ", range(5, 10, Some(11))),
            ("bytes 5-10/10", None),
            ("bytes 9-5/10", None),
            ("bytes */10", None),
            ("bytes +1-5/10", None),
            ("bytes -1-5/10", None),
            ("bytes 0-18446744073709551615/*", None),
            ("items 0-1/2", None),
            ("", None),
        ] {
            assert_eq!(ContentRange::parse(text), expected, "{text}");
        }
        assert_eq!((retry_after_s("120"), retry_after_s("+1"), retry_after_s("")), (Some(120), None, None));
        assert_eq!(retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT"), None);
    }

    #[test]
    fn any_header_is_read_or_refused() {
        bolero::check!().with_iterations(2_000).for_each(|octets: &[u8]| {
            let text = String::from_utf8_lossy(octets);
            for text in [text.to_string(), format!("bytes {text}"), format!("bytes {text}-9/10")] {
                if let Some(range) = ContentRange::parse(&text) {
                    assert!(range.first < range.end);
                    assert!(range.length.is_none_or(|length| range.end <= length));
                }
                let _ = retry_after_s(&text);
                let url =
                    url_of("http://h/", &torrent(&[&["t", "x"]]), 0) + &url_of(&text, &torrent(&[&["x"]]), 0);
                assert!(url.bytes().all(|octet| octet.is_ascii_graphic()), "{url}");
            }
        });
    }
}
