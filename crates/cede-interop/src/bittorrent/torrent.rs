//! A torrent of one file, made from a seed.

use crate::data::{self, Digest};

/// The smallest size in use for pieces, for small torrents, so that even they have several,
const SMALL_PIECE_BYTES: usize = 16 << 10;
/// and one for larger ones.
const LARGE_PIECE_BYTES: usize = 256 << 10;

/// A torrent and what is in it.
#[derive(Clone)]
pub struct Torrent {
    /// The file's name.
    pub name: String,
    /// The file's contents.
    pub octets: Vec<u8>,
    /// The SHA-1 of the info dictionary, by which the torrent is known.
    pub info_hash: Digest,
    /// The `.torrent` file.
    pub metainfo: Vec<u8>,
    pub(super) piece_bytes: usize,
    pub(super) digests: Vec<Digest>,
}

impl Torrent {
    /// Makes a torrent of `bytes` octets; `announce` is its tracker, if it has one.
    #[must_use]
    pub fn new(name: &str, seed: u64, bytes: usize, announce: Option<&str>) -> Self {
        let octets = data::octets(seed, bytes);
        let piece_bytes = if bytes < 8 << 20 { SMALL_PIECE_BYTES } else { LARGE_PIECE_BYTES };
        let digests: Vec<Digest> = octets.chunks(piece_bytes).map(data::digest).collect();
        let info = info(name, bytes, piece_bytes, &digests);
        let metainfo = metainfo(announce, &info);
        Self { name: name.to_owned(), info_hash: data::digest(&info), octets, metainfo, piece_bytes, digests }
    }

    /// The bitfield of someone who has all of it.
    pub(super) fn full_bitfield(&self) -> Vec<u8> {
        let mut bits = vec![0; self.digests.len().div_ceil(8)];
        (0..self.digests.len()).for_each(|piece| bits[piece / 8] |= 0x80 >> (piece % 8));
        bits
    }
}

/// Bencoding wants a dictionary's keys in order, as they are here.
fn info(name: &str, bytes: usize, piece_bytes: usize, digests: &[Digest]) -> Vec<u8> {
    let mut info = format!(
        "d6:lengthi{bytes}e4:name{}:{name}12:piece lengthi{piece_bytes}e6:pieces{}:",
        name.len(),
        digests.len() * 20
    )
    .into_bytes();
    info.extend(digests.as_flattened());
    // Private: clients then look for peers nowhere but where they are told to (BEP 27).
    info.extend(b"7:privatei1ee");
    info
}

fn metainfo(announce: Option<&str>, info: &[u8]) -> Vec<u8> {
    let announce = announce.map_or_else(String::new, |url| format!("8:announce{}:{url}", url.len()));
    let head = format!("d{announce}4:info");
    [head.as_bytes(), info, b"e"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_info_dictionary_is_what_the_hash_is_of() {
        let torrent = Torrent::new("name", 1, 20_000, Some("http://x/"));
        let text = String::from_utf8_lossy(&torrent.metainfo).into_owned();
        let head =
            "d8:announce9:http://x/4:infod6:lengthi20000e4:name4:name12:piece lengthi16384e6:pieces40:";
        assert!(text.starts_with(head), "{text}");
        let info = &torrent.metainfo["d8:announce9:http://x/4:info".len()..torrent.metainfo.len() - 1];
        assert_eq!(data::digest(info), torrent.info_hash);
        assert_eq!(torrent.full_bitfield(), [0xc0]);
    }
}
