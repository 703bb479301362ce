//! Magnet links: a torrent named by its hash.
//!
//! Source: BEP 9 ("magnet URI format"), BEP 53 (selected files), BEP 52 (`btmh`). How it was validated: links of other
//! clients in the tests, a fuzz target (what was written is read).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The longest link that is read.
pub const MAX_BYTES: usize = 64 << 10;
const MAX_ENTRIES: usize = 200;
const MAX_SELECTED: u32 = 1 << 20;

/// Why a text is no magnet link that can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// It does not begin with `magnet:?`.
    Scheme,
    /// It is too long.
    Long,
    /// There is no `xt=urn:btih:` with a hash of 40 hexadecimal or 32 base-32 digits, nor an `xt=urn:btmh:`.
    Hash,
    /// It names two hashes of one kind.
    Ambiguous,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "a magnet link begins with magnet:?",
            Self::Long => "the magnet link is too long",
            Self::Hash => {
                "the magnet link has no usable hash (xt=urn:btih: and 40 hexadecimal or 32 base-32 digits)"
            }
            Self::Ambiguous => "the magnet link names two torrents",
        })
    }
}

impl core::error::Error for Error {}

/// What a magnet link says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Magnet {
    /// The SHA-1 of the info dictionary.
    pub hash_v1: Option<[u8; 20]>,
    /// The SHA-256 of the info dictionary.
    pub hash_v2: Option<[u8; 32]>,
    /// A name to show.
    pub name: Option<String>,
    /// Trackers.
    pub trackers: Vec<String>,
    /// Peers, as `HOST:PORT`.
    pub peers: Vec<String>,
    /// Servers that have the content (BEP 19).
    pub web_seeds: Vec<String>,
    /// Which files are wanted, first and last of each range; empty for all.
    pub selected: Vec<(u32, u32)>,
}

impl Magnet {
    /// Reads a link.
    ///
    /// # Errors
    /// [`Error`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.len() > MAX_BYTES {
            return Err(Error::Long);
        }
        let is_magnet = text.get(..8).is_some_and(|head| head.eq_ignore_ascii_case("magnet:?"));
        let query = if is_magnet { &text[8..] } else { return Err(Error::Scheme) };
        let mut magnet = Self::default();
        for part in query.split('&') {
            if let Some((key, value)) = part.split_once('=') {
                magnet.take(key, &String::from_utf8_lossy(&percent_decoded(value)))?;
            }
        }
        if magnet.hash_v1.is_none() && magnet.hash_v2.is_none() {
            return Err(Error::Hash);
        }
        Ok(magnet)
    }

    fn take(&mut self, key: &str, value: &str) -> Result<(), Error> {
        // `xt.1`, `tr.2` and so on where there are several.
        let key = key.to_ascii_lowercase();
        let (name, tail) = key.split_once('.').unwrap_or((&key, ""));
        // The source of a web page writes `&amp;` for what is between two keys.
        let name = name.strip_prefix("amp;").unwrap_or(name);
        let url = value.trim();
        match (name, tail) {
            ("tr" | "ws", _) if url.is_empty() => {}
            ("xt", _) => self.take_topic(value)?,
            ("dn", _) => self.name = Some(value.into()),
            ("tr", _) if self.trackers.len() < MAX_ENTRIES => self.trackers.push(url.into()),
            ("x", "pe") if self.peers.len() < MAX_ENTRIES => self.peers.push(value.into()),
            ("ws", _) if self.web_seeds.len() < MAX_ENTRIES => self.web_seeds.push(url.into()),
            ("so", _) => self.selected.extend(ranges(value)),
            _ => {}
        }
        Ok(())
    }

    fn take_topic(&mut self, topic: &str) -> Result<(), Error> {
        if let Some(text) = stripped(topic, "urn:btih:") {
            let hash = hex(text).or_else(|| base32(text)).ok_or(Error::Hash)?;
            return once(&mut self.hash_v1, hash);
        }
        if let Some(text) = stripped(topic, "urn:btmh:1220") {
            return once(&mut self.hash_v2, hex(text).ok_or(Error::Hash)?);
        }
        Ok(())
    }

    /// The hash that trackers, DHT and handshakes use.
    #[must_use]
    pub fn info_hash(&self) -> [u8; 20] {
        let truncated = self.hash_v2.as_ref().and_then(|hash| hash.first_chunk().copied());
        self.hash_v1.or(truncated).unwrap_or_default()
    }
}

fn once<T: PartialEq>(place: &mut Option<T>, value: T) -> Result<(), Error> {
    match place.replace(value) {
        Some(before) if Some(&before) != place.as_ref() => Err(Error::Ambiguous),
        _ => Ok(()),
    }
}

fn stripped<'a>(text: &'a str, head: &str) -> Option<&'a str> {
    let begins = text.get(..head.len())?.eq_ignore_ascii_case(head);
    begins.then(|| &text[head.len()..])
}

fn digit(octet: u8) -> Option<u8> {
    char::from(octet).to_digit(16).map(|digit| digit as u8)
}

/// So many octets in hexadecimal, and nothing else.
#[must_use]
pub fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut octets = [0; N];
    for (octet, pair) in octets.iter_mut().zip(digits.chunks_exact(2)) {
        *octet = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(octets)
}

/// The 20 octets of 32 digits (RFC 4648, section 6).
fn base32(text: &str) -> Option<[u8; 20]> {
    if text.len() != 32 {
        return None;
    }
    let (mut octets, mut bits, mut held, mut at) = ([0; 20], 0_u32, 0, 0);
    for octet in text.bytes() {
        let value = match octet.to_ascii_uppercase() {
            letter @ b'A'..=b'Z' => letter - b'A',
            digit @ b'2'..=b'7' => digit - b'2' + 26,
            _ => return None,
        };
        bits = bits << 5 | u32::from(value);
        held += 5;
        if held >= 8 {
            held -= 8;
            octets[at] = (bits >> held) as u8;
            at += 1;
        }
    }
    Some(octets)
}

/// "0,2,4-7".
fn ranges(text: &str) -> Vec<(u32, u32)> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last && last < MAX_SELECTED).then_some((first, last))
    };
    text.split(',').filter_map(range).take(MAX_ENTRIES).collect()
}

/// What percent signs stand for. What follows a percent sign and is no hexadecimal number stays; a plus is a plus.
#[must_use]
pub fn percent_decoded(text: &str) -> Vec<u8> {
    let octets = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(octets.len()), 0);
    while let Some(&octet) = octets.get(at) {
        let pair = octets.get(at + 1).zip(octets.get(at + 2));
        match pair.and_then(|(&high, &low)| Some(digit(high)? << 4 | digit(low)?)) {
            Some(decoded) if octet == b'%' => {
                out.push(decoded);
                at += 3;
            }
            _ => {
                out.push(octet);
                at += 1;
            }
        }
    }
    out
}

/// Octets with percent signs for whatever is not unreserved (RFC 3986, section 2.3).
#[must_use]
pub fn percent_encoded(octets: &[u8]) -> String {
    let mut out = String::with_capacity(octets.len() * 3);
    for &octet in octets {
        match octet {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(octet.into()),
            _ => out.push_str(&alloc::format!("%{octet:02X}")),
        }
    }
    out
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Display for Magnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "magnet:?";
        let mut entry = |f: &mut fmt::Formatter<'_>, key: &str, value: &dyn fmt::Display| {
            write!(f, "{separator}{key}={value}")?;
            separator = "&";
            Ok(())
        };
        if let Some(hash) = &self.hash_v1 {
            entry(f, "xt", &format_args!("urn:btih:{}", Hex(hash)))?;
        }
        if let Some(hash) = &self.hash_v2 {
            entry(f, "xt", &format_args!("urn:btmh:1220{}", Hex(hash)))?;
        }
        let plain = self.name.iter().map(|name| ("dn", name));
        let trackers = self.trackers.iter().map(|url| ("tr", url));
        let peers = self.peers.iter().map(|peer| ("x.pe", peer));
        let web_seeds = self.web_seeds.iter().map(|url| ("ws", url));
        for (key, value) in plain.chain(trackers).chain(peers).chain(web_seeds) {
            entry(f, key, &percent_encoded(value.as_bytes()))?;
        }
        for (index, (first, last)) in self.selected.iter().enumerate() {
            f.write_str(if index == 0 { "&so=" } else { "," })?;
            if first == last { write!(f, "{first}")? } else { write!(f, "{first}-{last}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const HASH: &str = "0123456789abcdef0123456789ABCDEF01234567";

    #[test]
    fn links_are_read() {
        let text = alloc::format!(
            "magnet:?xt=urn:btih:{HASH}&dn=A+film%20%C3%A9&tr=http%3A%2F%2Ft.example%2Fannounce&tr.1=udp://u:1\
             &x.pe=192.0.2.1:6881&x.pe=[2001:db8::1]:7&so=0,2,4-7,9-8&ws=http://w.example/f&xl=7&unknown"
        );
        let magnet = Magnet::parse(&text).unwrap();
        assert_eq!(magnet.hash_v1, hex(HASH));
        assert_eq!(magnet.name.as_deref(), Some("A+film é"));
        assert_eq!(magnet.trackers, ["http://t.example/announce", "udp://u:1"]);
        assert_eq!(magnet.peers, ["192.0.2.1:6881", "[2001:db8::1]:7"]);
        assert_eq!(magnet.web_seeds, ["http://w.example/f"]);
        assert_eq!(magnet.selected, [(0, 0), (2, 2), (4, 7)]);
        assert_eq!(Magnet::parse(&magnet.to_string()), Ok(magnet));
    }

    #[test]
    fn a_tracker_or_server_without_a_name_is_none() {
        let text =
            alloc::format!("magnet:?xt=urn:btih:{HASH}&tr=&tr=%20udp://u:1%0A&tr=%20&ws=&ws=http://w/%20");
        let magnet = Magnet::parse(&text).unwrap();
        assert_eq!(
            (&magnet.trackers[..], &magnet.web_seeds[..]),
            (&["udp://u:1".into()][..], &["http://w/".into()][..])
        );
    }

    #[test]
    fn keys_may_be_in_capitals() {
        let text =
            alloc::format!("MAGNET:?XT=URN:BTIH:{HASH}&DN=x&Tr.1=udp://u:1&X.PE=192.0.2.1:1&XT=urn:sha1:abc");
        let magnet = Magnet::parse(&text).unwrap();
        assert_eq!((magnet.hash_v1, magnet.name.as_deref()), (hex(HASH), Some("x")));
        assert_eq!(
            (&magnet.trackers[..], &magnet.peers[..]),
            (&["udp://u:1".into()][..], &["192.0.2.1:1".into()][..])
        );
    }

    #[test]
    fn hashes_may_be_in_base_32_or_of_v2() {
        let octets: [u8; 20] = core::array::from_fn(|k| k as u8 * 13);
        // RFC 4648's alphabet; computed with Python's base64.b32encode.
        let magnet = Magnet::parse("magnet:?xt=urn:btih:AAGRUJZUIFHFW2DVQKHZZKNWYPIN32XX").unwrap();
        assert_eq!(magnet.hash_v1, Some(octets));
        let lower = Magnet::parse("MAGNET:?xt=URN:BTIH:aagrujzuifhfw2dvqkhzzknwypin32xx").unwrap();
        assert_eq!(lower.hash_v1, Some(octets));
        let text = alloc::format!("magnet:?xt=urn:btmh:1220{}", "ab".repeat(32));
        let magnet = Magnet::parse(&text).unwrap();
        assert_eq!((magnet.hash_v1, magnet.info_hash()), (None, [0xab; 20]));
        assert_eq!(magnet.to_string(), text);
    }

    #[test]
    fn what_is_no_link_says_why() {
        let cases = [
            ("http://x/", Error::Scheme),
            ("magnet:?dn=x", Error::Hash),
            ("magnet:?xt=urn:btih:0123", Error::Hash),
            ("magnet:?xt=urn:btih:0123456789abcdef0123456789ABCDEF0123456é", Error::Hash),
            ("magnet:?xt=urn:sha1:XYZ", Error::Hash),
        ];
        for (text, error) in cases {
            assert_eq!(Magnet::parse(text), Err(error), "{text}");
        }
        let two = alloc::format!("magnet:?xt=urn:btih:{HASH}&xt=urn:btih:{}", "0".repeat(40));
        assert_eq!(Magnet::parse(&two), Err(Error::Ambiguous));
    }

    #[test]
    fn percent_signs_that_mean_nothing_stay() {
        assert_eq!(percent_decoded("a%2"), b"a%2");
        assert_eq!(percent_decoded("%zz%41%"), b"%zzA%");
        assert_eq!(percent_encoded(b"a b\xff"), "a%20b%FF");
    }
}
