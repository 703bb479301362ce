//! Making torrents.

use super::{File, MAX_PIECE_BYTES};
use crate::bencode::Form;
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

/// What goes into a torrent file of v1.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    /// The name of the file or folder.
    pub name: String,
    /// Octets of each piece but the last.
    pub piece_length: u32,
    /// The SHA-1 of each piece, 20 octets each.
    pub pieces: Vec<u8>,
    /// The files, with paths that begin with the name; one file of that name alone is a torrent without a folder.
    pub files: Vec<File>,
    /// Trackers by tiers.
    pub trackers: Vec<Vec<String>>,
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
            .with("pieces", self.pieces.clone())
            .with_some("private", self.is_private.then_some(1_i64))
            .with_some("source", self.source.as_deref());
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
        let tiers = self.trackers.iter().map(|tier| tier.iter().map(|url| Form::from(&url[..])).collect());
        let tiers: Vec<Form> = tiers.map(Form::List).collect();
        let several = self.trackers.iter().map(Vec::len).sum::<usize>() > 1;
        Form::dict()
            .with_some("announce", self.trackers.first().and_then(|tier| tier.first()).map(|url| &url[..]))
            .with_some("announce-list", several.then_some(tiers))
            .with_some("comment", self.comment.as_deref())
            .with_some("created by", self.created_by.as_deref())
            .with_some("creation date", self.creation_s)
            .with("info", self.info())
            .encode()
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
