//! Making torrents.

use super::tree::{FileTree, trees};
use super::{File, MAX_PIECE_BYTES, Metainfo, Version};
use crate::bencode::Form;
use crate::merkle::Hash;
use alloc::string::String;
use alloc::vec::Vec;

/// The shortest piece that is chosen.
pub const MIN_PIECE_BYTES: u32 = 16 << 10;
/// As many pieces are aimed at: few enough for a small torrent file, enough for peers to trade.
const AIM_PIECES: u64 = 1_500;
/// Longer pieces are not chosen: nothing of a piece can be passed on before it is whole.
const CHOSEN_MAX_BYTES: u32 = 16 << 20;

/// A length of pieces that suits a content of this size: a power of two, from 16 KiB to 16 MiB, that gives about 1,500
/// pieces.
#[must_use]
pub fn piece_length_for(total_bytes: u64) -> u32 {
    let aim = (total_bytes / AIM_PIECES).clamp(MIN_PIECE_BYTES.into(), CHOSEN_MAX_BYTES.into());
    (aim as u32).next_power_of_two().min(MAX_PIECE_BYTES)
}

/// What goes into a torrent file of v1, or of v2.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    /// The name of the file or folder.
    pub name: String,
    /// Octets of each piece but the last.
    pub piece_length: u32,
    /// It is of v2 (BEP 52).
    pub is_v2: bool,
    /// The hash of each piece: a SHA-1 of 20 octets, or of v2 a tree's root, of 32. Where those of v2 are left out, what is
    /// written still says which pieces there are, and how each is hashed.
    pub pieces: Vec<u8>,
    /// The files, with paths that begin with the name; one file of that name alone is a torrent without a folder. Of v2 in the
    /// order of their paths, without padding.
    pub files: Vec<File>,
    /// Trackers by tiers.
    pub trackers: Vec<Vec<String>>,
    /// Servers that have the content (BEP 19).
    pub web_seeds: Vec<String>,
    /// Peers come from its trackers alone.
    pub is_private: bool,
    /// Whatever one likes to say.
    pub comment: Option<String>,
    /// The program that made it.
    pub created_by: Option<String>,
    /// When, in seconds since 1970.
    pub creation_s: Option<i64>,
    /// Tells a torrent from another of the same content, as private trackers ask for.
    pub source: Option<String>,
}

impl Writer {
    /// The info dictionary.
    #[must_use]
    pub fn info(&self) -> Form {
        let info = Form::dict()
            .with("name", &self.name[..])
            .with("piece length", self.piece_length)
            .with_some("private", self.is_private.then_some(1_i64))
            .with_some("source", self.source.as_deref());
        if self.is_v2 {
            return info.with("meta version", 2_i64).with("file tree", self.file_tree());
        }
        let info = info.with("pieces", self.pieces.clone());
        match &self.files[..] {
            [file] if file.path.len() == 1 => {
                info.with("length", file.length).with_some("attr", attributes(file))
            }
            files => info.with("files", files.iter().map(entry).collect::<Vec<_>>()),
        }
    }

    /// The torrent file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        file(&self.trackers, &self.web_seeds, self.info(), self.is_v2.then(|| self.layers()))
            .with_some("comment", self.comment.as_deref())
            .with_some("created by", self.created_by.as_deref())
            .with_some("creation date", self.creation_s)
            .encode()
    }

    /// The trees of files that are not empty, and the hashes of their pieces.
    fn trees(&self) -> impl Iterator<Item = (FileTree, &[Hash])> {
        let hashes = self.pieces.as_chunks().0;
        trees(self.files.iter().map(|file| file.length), self.piece_length, hashes)
    }

    fn file_tree(&self) -> Form {
        let mut trees = self.trees();
        let mut whole = Form::dict();
        for file in &self.files {
            let root = (file.length > 0).then(|| trees.next().map(|(tree, _)| tree.root.to_vec())).flatten();
            let about = Form::dict()
                .with("length", file.length)
                .with_some("pieces root", root)
                .with_some("attr", attributes(file));
            let path = if file.path.len() > 1 { &file.path[1..] } else { &file.path[..] };
            plant(&mut whole, path, Form::dict().with("", about));
        }
        whole
    }

    fn layers(&self) -> Form {
        layers(self.trees().filter(|(tree, _)| tree.pieces > 1).map(|(tree, layer)| (tree.root, layer)))
    }
}

/// A torrent file, with what is looked for in it.
fn file(trackers: &[Vec<String>], web_seeds: &[String], info: Form, layers: Option<Form>) -> Form {
    let tiers = trackers.iter().map(|tier| tier.iter().map(|url| Form::from(&url[..])).collect());
    let tiers: Vec<Form> = tiers.map(Form::List).collect();
    let urls: Vec<Form> = web_seeds.iter().map(|url| Form::from(&url[..])).collect();
    let several = trackers.iter().map(Vec::len).sum::<usize>() > 1;
    Form::dict()
        .with_some("announce", trackers.first().and_then(|tier| tier.first()).map(|url| &url[..]))
        .with_some("announce-list", several.then_some(tiers))
        .with("info", info)
        .with_some("piece layers", layers)
        .with_some("url-list", (!urls.is_empty()).then_some(urls))
}

/// The hashes of the pieces of files, by the roots of their trees.
fn layers<'a>(several: impl Iterator<Item = (Hash, &'a [Hash])>) -> Form {
    several.fold(Form::dict(), |dict, (root, layer)| dict.with(root, layer.as_flattened()))
}

impl Metainfo {
    /// A torrent file of it: with its dictionary as it came, so that it is the same torrent, its trackers, its web seeds, and of one of v2 alone its
    /// hashes, as far as they are known.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let info = &self.info;
        let trees = info.trees.iter().map(|tree| (tree.root, info.layer(tree)));
        let layers =
            (info.version == Version::V2).then(|| layers(trees.filter(|(_, layer)| layer.len() > 1)));
        file(&self.trackers, &self.web_seeds, Form::Raw(info.raw.clone()), layers).encode()
    }
}

/// Puts a file into a tree of folders.
fn plant(folder: &mut Form, path: &[String], file: Form) {
    let (Form::Dict(entries), [name, rest @ ..]) = (folder, path) else { return };
    if rest.is_empty() {
        entries.insert(name.as_bytes().to_vec(), file);
    } else {
        plant(entries.entry(name.as_bytes().to_vec()).or_insert_with(Form::dict), rest, file);
    }
}

fn entry(file: &File) -> Form {
    let path: Vec<Form> = file.path.iter().skip(1).map(|part| Form::from(&part[..])).collect();
    Form::dict().with("length", file.length).with("path", path).with_some("attr", attributes(file))
}

/// The letters of BEP 47.
fn attributes(file: &File) -> Option<&'static str> {
    match (file.is_padding, file.is_executable) {
        (true, _) => Some("p"),
        (false, true) => Some("x"),
        (false, false) => None,
    }
}
