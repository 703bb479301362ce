//! Torrent files: what a torrent consists of, and how it is told from others.
//!
//! Source: BEP 3 (v1), BEP 5 (nodes), BEP 12 (tiers of trackers), BEP 27 (private), BEP 47 (padding files, programs), BEP 52 (v2 and hybrid).
//! The info-hash is that of the info dictionary's octets as they came; nothing is written anew to be hashed.
//!
//! What it leaves out: of a hybrid torrent, the hashes of v2; it is used by its v1 side. How it was validated: torrents made by
//! libtorrent, Transmission and mktorrent, a fuzz target, and the table of names in the tests.

mod layers;
mod path;
mod tree;
mod write;

pub use path::{PathError, check_component};
pub use tree::FileTree;
pub use write::{MIN_PIECE_BYTES, Writer, piece_length_for};

use crate::bencode::{self, Document, Limits, Node};
use crate::digest;
use crate::geometry::{BLOCK_BYTES, Geometry, ShortPieces};
use crate::merkle::levels_above;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use sha1::{Digest, Sha1};
use sha2::Sha256;

/// The longest piece that is taken: it is held in memory until it has been checked.
pub const MAX_PIECE_BYTES: u32 = 64 << 20;
/// The most pieces that are taken: four times what a torrent of 4 TiB in pieces of 4 MiB has.
pub const MAX_PIECES: u32 = 1 << 22;
/// The most files that are taken.
pub const MAX_FILES: usize = 1 << 20;
/// The longest torrent file that is read.
pub const MAX_FILE_BYTES: usize = 128 << 20;
/// The most nodes of the hash table that are kept.
const MAX_NODES: usize = 32;
/// The most trackers that are kept.
const MAX_TRACKERS: usize = 200;

/// SHA-1 of some octets.
#[must_use]
pub fn sha1(octets: &[u8]) -> [u8; 20] {
    Sha1::digest(octets).into()
}

/// Why octets are no torrent that can be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// They are not bencoded.
    Bencode(bencode::Error),
    /// A key is missing, or its value is of another kind.
    Key(&'static str),
    /// A length or number is beyond what is taken.
    Limit(&'static str),
    /// It is of a later generation than BEP 52.
    Version,
    /// All files are empty.
    Nothing,
    /// The hashes are not as many as the pieces.
    Pieces,
    /// The hashes of a v2 torrent's pieces do not lead to the hash of their file.
    Layers,
    /// The two sides of a hybrid torrent tell of other files, or of the same ones elsewhere in the content.
    Sides,
    /// A name leads out of the folder, or cannot be one.
    Path(PathError),
    /// The info dictionary is not the one that was asked for.
    Hash,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bencode(error) => write!(f, "this is no torrent: {error}"),
            Self::Key(key) => write!(f, "the torrent has no usable \"{key}\""),
            Self::Limit(what) => write!(f, "the torrent's {what} is beyond what is taken"),
            Self::Version => f.write_str("the torrent is of a version that is not known here: 1 and 2 are"),
            Self::Nothing => f.write_str("the torrent has no content: its files are empty"),
            Self::Pieces => f.write_str("the torrent has not as many hashes as pieces"),
            Self::Layers => f.write_str("the torrent's piece layers are not those of its files"),
            Self::Sides => f.write_str(
                "the torrent contradicts itself: its v1 and v2 sides do not tell of the same files in the same places",
            ),
            Self::Path(error) => error.fmt(f),
            Self::Hash => f.write_str("the info dictionary has another hash than was asked for"),
        }
    }
}

impl core::error::Error for Error {}

impl From<bencode::Error> for Error {
    fn from(error: bencode::Error) -> Self {
        Self::Bencode(error)
    }
}

impl From<PathError> for Error {
    fn from(error: PathError) -> Self {
        Self::Path(error)
    }
}

/// A file of a torrent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Its place below the folder of the download, from the torrent's name on; each part is a plain name.
    pub path: Vec<String>,
    /// Its length in octets.
    pub length: u64,
    /// Where it begins in the torrent's content.
    pub offset: u64,
    /// It only fills the piece before the next file with zeros, and is never written (BEP 47).
    pub is_padding: bool,
    /// It is a program: whoever keeps it may run it (BEP 47).
    pub is_executable: bool,
}

/// Which generation of the format an info dictionary is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// BEP 3.
    V1,
    /// BEP 52 alone.
    V2,
    /// Both: its v1 side is used.
    Hybrid,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::Hybrid => "hybrid (v1 and v2)",
        })
    }
}

/// What the info dictionary says: all that identifies a torrent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Info {
    /// The name of the file, or of the folder of several.
    pub name: String,
    /// Octets of each piece but the last.
    pub piece_length: u32,
    /// The hash of each piece: a SHA-1 of 20 octets, or for [`Version::V2`] the root of a tree, of 32. Empty as long as those
    /// are not known ([`Info::lacks_hashes`]).
    pub pieces: Vec<u8>,
    /// The trees of hashes of [`Version::V2`], in the order of the content; empty for others.
    pub trees: Vec<FileTree>,
    /// How the content is cut into pieces, padding included. Those with padding at their end are short: of that nobody has to send
    /// anything.
    pub geometry: Geometry,
    /// The files in the order of the content, padding included.
    pub files: Vec<File>,
    /// Octets of all pieces, without the padding at their ends.
    pub total_bytes: u64,
    /// Several files in a folder of the torrent's name, rather than one.
    pub is_folder: bool,
    /// Peers come from its trackers alone (BEP 27).
    pub is_private: bool,
    /// The generation.
    pub version: Version,
    /// SHA-1 of the dictionary.
    pub hash_v1: [u8; 20],
    /// SHA-256 of the dictionary, where it is of v2.
    pub hash_v2: Option<[u8; 32]>,
    /// The dictionary's octets as they came.
    pub raw: Vec<u8>,
}

impl Info {
    /// Reads an info dictionary.
    ///
    /// # Errors
    /// [`Error`].
    pub fn parse(raw: &[u8]) -> Result<Self, Error> {
        let document = Document::parse(raw, Limits::METAINFO)?;
        let info = Some(document.root()).filter(|info| info.is_dict()).ok_or(Error::Key("info"))?;
        let name = path::component(path::best(info, b"name").ok_or(Error::Key("name"))?)?;
        let piece_length = piece_length(info)?;
        let (version, files, trees) = content(info, &name, piece_length)?;
        path::check_tree(&files)?;
        let span_bytes = span(&files)?;
        let pieces = pieces(info, version, span_bytes, piece_length)?;
        let (geometry, total_bytes) = geometry(&files, span_bytes, piece_length);
        let mut info = Self {
            geometry,
            trees,
            is_folder: files.iter().any(|file| !file.is_padding && file.path.len() > 1),
            name,
            piece_length,
            pieces,
            files,
            total_bytes,
            // Others take any number but 0 for that, too.
            is_private: info.get(b"private").and_then(Node::int).is_some_and(|private| private != 0),
            version,
            hash_v1: sha1(raw),
            hash_v2: (version != Version::V1).then(|| Sha256::digest(raw).into()),
            raw: raw.to_vec(),
        };
        if version == Version::V2 {
            // Files of one piece say its hash themselves. Where there are others, theirs may come later.
            let _ = info.set_layers(|_| None);
        }
        Ok(info)
    }

    /// The hash that trackers, DHT and handshakes use: SHA-1, or the beginning of SHA-256 where the torrent is of v2 alone.
    #[must_use]
    pub fn info_hash(&self) -> [u8; 20] {
        self.hash_v2_start().filter(|_| self.version == Version::V2).unwrap_or(self.hash_v1)
    }

    /// What else peers may mean a hybrid torrent by: the first 20 octets of its v2 hash.
    #[must_use]
    pub fn hybrid_hash(&self) -> Option<[u8; 20]> {
        self.hash_v2_start().filter(|_| self.version == Version::Hybrid)
    }

    fn hash_v2_start(&self) -> Option<[u8; 20]> {
        self.hash_v2.and_then(|hash| hash.first_chunk().copied())
    }

    /// The files, padding left out.
    pub fn real_files(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| !file.is_padding)
    }

    /// How many pieces there are.
    #[must_use]
    pub const fn piece_count(&self) -> u32 {
        self.geometry.pieces()
    }

    /// Octets of a piece, without padding at its end; zero where there is no such piece.
    #[must_use]
    pub fn piece_bytes(&self, piece: u32) -> u32 {
        self.geometry.piece_len(piece)
    }

    /// The places in [`Info::files`] of those that have a number by which people and links call them (BEP 53), in the order of
    /// those: padding that is listed has one, that which v2 implies has none.
    #[must_use]
    pub fn numbered(&self) -> Vec<usize> {
        let is_listed = |file: &File| !file.is_padding || self.version != Version::V2;
        self.files.iter().enumerate().filter(|(_, file)| is_listed(file)).map(|(at, _)| at).collect()
    }

    /// The hash that a piece must have.
    #[must_use]
    pub fn piece_hash(&self, piece: u32) -> Option<digest::Digest> {
        fn hash<const BYTES: usize>(pieces: &[u8], piece: u32) -> Option<[u8; BYTES]> {
            let at = usize::try_from(piece).ok()?.checked_mul(BYTES)?;
            pieces.get(at..)?.first_chunk().copied()
        }
        match self.version {
            Version::V2 => hash(&self.pieces, piece).map(digest::Digest::V2),
            Version::V1 | Version::Hybrid => hash(&self.pieces, piece).map(digest::Digest::V1),
        }
    }

    /// What hashes the octets of a piece.
    #[must_use]
    pub fn hasher(&self, piece: u32) -> digest::Hasher {
        match self.tree_of(piece) {
            Some(tree) => digest::Hasher::v2(tree.piece_levels(self.piece_length)),
            None => digest::Hasher::v1(),
        }
    }

    /// What hashes the octets of any piece that is as long as pieces are.
    #[must_use]
    pub fn whole_hasher(&self) -> digest::Hasher {
        match self.version {
            Version::V2 => digest::Hasher::v2(levels_above(u64::from(self.piece_length / BLOCK_BYTES))),
            Version::V1 | Version::Hybrid => digest::Hasher::v1(),
        }
    }

    /// The tree of the file that a piece of a v2 torrent is of.
    fn tree_of(&self, piece: u32) -> Option<&FileTree> {
        let behind = self.trees.partition_point(|tree| tree.first_piece <= piece);
        self.trees.get(behind.checked_sub(1)?)
    }
}

fn piece_length(info: Node<'_, '_>) -> Result<u32, Error> {
    let length = info.get(b"piece length").and_then(Node::uint).ok_or(Error::Key("piece length"))?;
    match u32::try_from(length) {
        Ok(0) => Err(Error::Key("piece length")),
        Ok(length) if length <= MAX_PIECE_BYTES => Ok(length),
        _ => Err(Error::Limit("piece length")),
    }
}

fn pieces(info: Node<'_, '_>, version: Version, span: u64, piece_length: u32) -> Result<Vec<u8>, Error> {
    let count = span.div_ceil(piece_length.into());
    if count > MAX_PIECES.into() {
        return Err(Error::Limit("number of pieces"));
    }
    if version == Version::V2 {
        return Ok(Vec::new());
    }
    let pieces = info.get(b"pieces").and_then(Node::bytes).ok_or(Error::Key("pieces"))?;
    if pieces.len() as u64 != count * 20 {
        return Err(Error::Pieces);
    }
    Ok(pieces.to_vec())
}

/// How a content is cut, and the octets of all its pieces. What is left of a piece behind the last octet of a file, up to the next
/// file or to the end, is short of that; a piece of nothing but padding is as long as any.
fn geometry(files: &[File], span_bytes: u64, piece_length: u32) -> (Geometry, u64) {
    let length = u64::from(piece_length);
    let (mut short, mut total_bytes) = (Vec::new(), span_bytes);
    let mut real = files.iter().filter(|file| !file.is_padding && file.length > 0).peekable();
    while let Some(file) = real.next() {
        let end = file.offset + file.length;
        let next = real.peek().map_or(span_bytes, |next| next.offset);
        let piece_end = end.next_multiple_of(length).min(span_bytes);
        if end < piece_end && piece_end <= next {
            short.push(((end / length) as u32, (end % length) as u32));
            total_bytes -= piece_end - end;
        }
    }
    (Geometry::unbounded(span_bytes, piece_length, ShortPieces::new(&short)), total_bytes)
}

fn span(files: &[File]) -> Result<u64, Error> {
    let total = files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.length));
    let total = total.filter(|total| *total <= i64::MAX as u64).ok_or(Error::Limit("length"))?;
    if total == 0 {
        return Err(Error::Nothing);
    }
    Ok(total)
}

/// The generation, the files, and the trees of v2.
fn content(
    info: Node<'_, '_>,
    name: &str,
    piece_length: u32,
) -> Result<(Version, Vec<File>, Vec<FileTree>), Error> {
    let meta_version = info.get(b"meta version").and_then(Node::uint);
    let v2 = if meta_version == Some(2) { Some(tree::files(info, name, piece_length)?) } else { None };
    Ok(match (info.get(b"pieces").is_some(), v2) {
        (false, Some(v2)) => (Version::V2, v2.files, v2.trees),
        (true, Some(v2)) => (Version::Hybrid, hybrid(info, name, &v2.files)?, Vec::new()),
        (true, None) => (Version::V1, files(info, name)?, Vec::new()),
        (false, None) if meta_version.is_some() => return Err(Error::Version),
        (false, None) => return Err(Error::Key("pieces")),
    })
}

/// The files of a v1 dictionary.
fn files(info: Node<'_, '_>, name: &str) -> Result<Vec<File>, Error> {
    let length = info.get(b"length");
    let list = info.get(b"files").filter(|list| list.is_list());
    match (length, list) {
        (Some(length), None) => {
            let length = length.uint().ok_or(Error::Key("length"))?;
            // One file alone has nothing to pad.
            let is_executable = Attributes::of(info)?.is_executable;
            let path = vec![name.to_string()];
            Ok(vec![File { path, length, offset: 0, is_padding: false, is_executable }])
        }
        (None, Some(list)) => several(list, name),
        _ => Err(Error::Key("length or files")),
    }
}

/// What a torrent says of a file beside its name and length (BEP 47). Letters that are not known, and what is no text, count
/// for nothing.
struct Attributes {
    is_padding: bool,
    is_executable: bool,
}

impl Attributes {
    /// Those of a file's dictionary.
    fn of(file: Node<'_, '_>) -> Result<Self, Error> {
        let letters = file.get(b"attr").and_then(Node::bytes).unwrap_or_default();
        // The text of a symbolic link would lead wherever it likes.
        if letters.contains(&b'l') {
            return Err(Error::Path(PathError::Link));
        }
        let is_padding = letters.contains(&b'p');
        Ok(Self { is_padding, is_executable: letters.contains(&b'x') && !is_padding })
    }
}

/// The files of a hybrid dictionary: its two sides must tell of the same.
fn hybrid(info: Node<'_, '_>, name: &str, v2: &[File]) -> Result<Vec<File>, Error> {
    let v1 = files(info, name)?;
    if places(&v1).eq(places(v2)) { Ok(v1) } else { Err(Error::Sides) }
}

/// What is where in the content, by path as a tree has it, without padding. That of one file at the top does not say whether it is in a
/// folder of its own name: v1 does. An empty file is in no place.
fn places(files: &[File]) -> impl Iterator<Item = (&[String], u64, u64)> {
    files.iter().filter(|file| !file.is_padding).map(|file| {
        let path = &file.path[usize::from(file.path.len() > 1)..];
        (path, file.length, if file.length > 0 { file.offset } else { 0 })
    })
}

fn several(list: Node<'_, '_>, name: &str) -> Result<Vec<File>, Error> {
    let (mut files, mut offset) = (Vec::new(), 0_u64);
    for entry in list.items() {
        if files.len() >= MAX_FILES {
            return Err(Error::Limit("number of files"));
        }
        let length = entry.get(b"length").and_then(Node::uint).ok_or(Error::Key("length"))?;
        let Attributes { is_padding, is_executable } = Attributes::of(entry)?;
        let mut path = vec![name.to_string()];
        path.extend(path::components(path::best(entry, b"path").ok_or(Error::Key("path"))?)?);
        files.push(File { path, length, offset, is_padding, is_executable });
        offset = offset.checked_add(length).ok_or(Error::Limit("length"))?;
    }
    Ok(files)
}

/// A torrent file: an info dictionary, and where peers may be found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metainfo {
    /// What the torrent consists of.
    pub info: Info,
    /// Trackers by tiers (BEP 12).
    pub trackers: Vec<Vec<String>>,
    /// Servers that have the content (BEP 19).
    pub web_seeds: Vec<String>,
    /// Nodes of the hash table to begin with, each with its port (BEP 5).
    pub nodes: Vec<String>,
    /// Whatever its maker says.
    pub comment: Option<String>,
    /// The program that made it.
    pub created_by: Option<String>,
    /// When, in seconds since 1970.
    pub creation_s: Option<i64>,
}

impl Metainfo {
    /// Reads a torrent file.
    ///
    /// # Errors
    /// [`Error`].
    pub fn parse(octets: &[u8]) -> Result<Self, Error> {
        if octets.len() > MAX_FILE_BYTES {
            return Err(Error::Limit("length as a file"));
        }
        let document = Document::parse(octets, Limits::METAINFO)?;
        let root = document.root();
        let info = root.get(b"info").filter(|info| info.is_dict()).ok_or(Error::Key("info"))?;
        let text = |key: &[u8]| root.get(key).and_then(Node::bytes).map(path::lossy);
        let mut info = Info::parse(info.raw())?;
        if let Some(layers) = root.get(b"piece layers").filter(|_| info.lacks_hashes()) {
            let layers: BTreeMap<_, _> =
                layers.entries().filter_map(|(root, layer)| Some((root, layer.bytes()?))).collect();
            info.set_layers(|root| layers.get(&root[..]).copied())?;
        }
        Ok(Self {
            info,
            trackers: trackers(root),
            web_seeds: web_seeds(root),
            nodes: nodes(root),
            comment: text(b"comment"),
            created_by: text(b"created by"),
            creation_s: root.get(b"creation date").and_then(Node::int),
        })
    }

    /// A torrent of which only the info dictionary is known, such as one behind a magnet link.
    #[must_use]
    pub const fn of_info(info: Info, trackers: Vec<Vec<String>>) -> Self {
        Self {
            info,
            trackers,
            web_seeds: Vec::new(),
            nodes: Vec::new(),
            comment: None,
            created_by: None,
            creation_s: None,
        }
    }
}

/// Some makers leave empty places, and white space where people have pasted URLs.
fn url(node: Node<'_, '_>) -> Option<String> {
    node.text().map(str::trim).filter(|url| !url.is_empty()).map(String::from)
}

fn trackers(root: Node<'_, '_>) -> Vec<Vec<String>> {
    let urls = |tier: Node<'_, '_>| tier.items().filter_map(url).collect::<Vec<_>>();
    let list = root.get(b"announce-list").into_iter().flat_map(Node::items);
    let mut tiers: Vec<Vec<String>> = list.map(urls).filter(|tier| !tier.is_empty()).collect();
    if tiers.is_empty() {
        tiers.extend(root.get(b"announce").and_then(url).map(|url| vec![url]));
    }
    let mut room = MAX_TRACKERS;
    for tier in &mut tiers {
        tier.truncate(room);
        room -= tier.len();
    }
    tiers.retain(|tier| !tier.is_empty());
    tiers
}

fn web_seeds(root: Node<'_, '_>) -> Vec<String> {
    let Some(list) = root.get(b"url-list") else { return Vec::new() };
    url(list).into_iter().chain(list.items().filter_map(url)).take(MAX_TRACKERS).collect()
}

fn nodes(root: Node<'_, '_>) -> Vec<String> {
    let list = root.get(b"nodes").into_iter().flat_map(Node::items);
    list.filter_map(node).take(MAX_NODES).collect()
}

/// A name or an address, and a port; brackets tell the colons of IPv6 from the port's.
fn node(pair: Node<'_, '_>) -> Option<String> {
    let [host, port] = pair.items().collect::<Vec<_>>().try_into().ok()?;
    let host =
        url(host).filter(|host| !host.contains(|sign: char| sign.is_whitespace() || sign.is_control()))?;
    let port = port.int().and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0)?;
    Some(if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    })
}

#[cfg(test)]
mod tests;
