//! What was said, as the columns of a line.

use super::InspectArgs;
use super::names::{hex, peer_id};
use cede_bt::wire::{BlockRef, Message};
use cede_inspect::{About, Cover, Kind, What};

/// One line.
#[derive(Default)]
pub struct Line {
    /// What was said.
    pub kind: String,
    pub piece: Option<u32>,
    pub offset: Option<u32>,
    pub length: Option<u32>,
    /// What else there is to it.
    pub detail: String,
}

/// Where something happened.
#[derive(Clone, Copy)]
pub struct Place {
    pub transport: &'static str,
    pub connection: Option<u32>,
    pub info_hash: Option<[u8; 20]>,
}

impl Line {
    fn new(kind: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: kind.into(), detail: detail.into(), ..Self::default() }
    }

    /// The line for people.
    pub fn words(&self) -> String {
        let numbers =
            [self.piece, self.offset, self.length].into_iter().flatten().map(|number| number.to_string());
        let parts: Vec<String> =
            numbers.chain((!self.detail.is_empty()).then(|| self.detail.clone())).collect();
        format!("{:14} {}", self.kind, parts.join(" ")).trim_end().to_string()
    }

    pub fn of(what: &What<'_>, args: &InspectArgs) -> Self {
        match what {
            What::Opened => Self::new("opened", ""),
            What::Handshake(handshake) => {
                let id = if args.pseudonyms.is_some() { String::new() } else { peer_id(&handshake.peer_id) };
                let client = cede_inspect::client_of(&handshake.peer_id).unwrap_or_default();
                let detail = format!(
                    "{} reserved {} {id} {client}",
                    hex(&handshake.info_hash),
                    hex(&handshake.reserved.0)
                );
                Self::new(Kind::Handshake.name(), detail.trim_end())
            }
            What::CutHandshake { reserved, info_hash } => {
                let hash = info_hash.map(|hash| hex(&hash)).unwrap_or_default();
                let reserved =
                    reserved.map(|reserved| format!("reserved {}", hex(&reserved.0))).unwrap_or_default();
                let detail = format!("{hash} {reserved} (octets of it were not captured)");
                let words: Vec<&str> = detail.split_whitespace().collect();
                Self::new(Kind::Handshake.name(), words.join(" "))
            }
            What::Message { message, extension, is_cut } => Self::of_message(message, *extension, *is_cut),
            What::Block(block) => Self::of_block(Kind::Piece, block.block),
            What::Other { id, len } => Self { length: Some(*len), ..Self::new("other", format!("id {id}")) },
            What::Lost => Self::new("lost", "octets were not captured: nothing is known from here on"),
            What::Resumed { octets } => {
                Self::new("resumed", format!("messages again behind {octets} octets that were not read"))
            }
            What::Covered(Cover::Encrypted) => Self::new("encrypted", "only octets and times can be told"),
            What::Covered(_) => Self::new("unknown", "no message was found"),
            What::Finished => Self::new("fin", ""),
            What::Reset => Self::new("reset", ""),
        }
    }

    fn of_block(kind: Kind, block: BlockRef) -> Self {
        let (piece, offset, length) = (Some(block.piece), Some(block.begin), Some(block.len));
        Self { piece, offset, length, ..Self::new(kind.name(), "") }
    }

    fn of_message(message: &Message, extension: Option<&str>, is_cut: bool) -> Self {
        let kind = Kind::of(message);
        if is_cut {
            return Self::new(kind.name(), "(octets of it were not captured)");
        }
        match message {
            Message::Have(piece) | Message::Suggest(piece) | Message::AllowedFast(piece) => {
                Self { piece: Some(*piece), ..Self::new(kind.name(), "") }
            }
            Message::Request(block) | Message::Cancel(block) | Message::Reject(block) => {
                Self::of_block(kind, *block)
            }
            Message::Bitfield(octets) => {
                let has: u32 = octets.iter().map(|octet| octet.count_ones()).sum();
                Self { length: Some(octets.len() as u32), ..Self::new(kind.name(), format!("{has} pieces")) }
            }
            Message::Port(port) => Self::new(kind.name(), port.to_string()),
            Message::Extended(id, octets) => {
                let name = extension.map_or_else(|| format!("id {id}"), str::to_string);
                Self { length: Some(octets.len() as u32), ..Self::new(kind.name(), name) }
            }
            Message::HashRequest(range) | Message::Hashes(range, _) | Message::HashReject(range) => {
                let about = format!("{} of level {} from {}", range.length, range.base, range.index);
                Self::new(kind.name(), about)
            }
            _ => Self::new(kind.name(), ""),
        }
    }

    pub fn of_aside(about: &About) -> Self {
        match about {
            About::Announce { announce, is_http } => {
                let event = announce.event.name();
                let by = if *is_http { "HTTP" } else { "UDP" };
                let (down, up) = (announce.downloaded, announce.uploaded);
                let left = announce.left.map_or_else(|| "unknown".to_owned(), |left| left.to_string());
                Self::new(
                    "announce",
                    format!(
                        "{by} {event} port {} downloaded {down} uploaded {up} left {left}",
                        announce.port
                    ),
                )
            }
            About::Dht { kind, .. } => Self::new("dht", kind.as_str()),
        }
    }
}
