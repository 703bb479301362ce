//! The info dictionary from a peer, by its hash: what a magnet link needs.
//!
//! Source: BEP 9. A dictionary is fetched in parts of 16 KiB, from one peer as a whole, and hashed: a peer that sends a wrong
//! one has wasted its own turn alone. How it was validated: the tests below, a fuzz target, and libtorrent and Transmission
//! in both directions.

use crate::bencode::{Document, Form, Limits, Node};
use crate::metainfo::sha1;
use alloc::vec;
use alloc::vec::Vec;
use sha2::{Digest, Sha256};

/// Octets of a part.
pub const PART_BYTES: u32 = 16 << 10;
/// The longest dictionary that is fetched: pieces' hashes of 16 TiB in pieces of 16 MiB take 20 MiB.
pub const MAX_BYTES: u32 = 32 << 20;
/// Parts asked for at once.
const MAX_OPEN: u32 = 8;

/// A message about metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Send this part.
    Request(u32),
    /// A part.
    Data {
        /// Which.
        part: u32,
        /// Octets of the whole.
        total: u32,
        /// Its octets.
        octets: Vec<u8>,
    },
    /// This part will not be sent.
    Reject(u32),
}

impl Message {
    /// Its octets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let head = |kind: u32, part: u32| Form::dict().with("msg_type", kind).with("piece", part);
        match self {
            Self::Request(part) => head(0, *part).encode(),
            Self::Reject(part) => head(2, *part).encode(),
            Self::Data { part, total, octets } => {
                let mut out = head(1, *part).with("total_size", *total).encode();
                out.extend_from_slice(octets);
                out
            }
        }
    }

    /// Reads one; `None` where it is none.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let (document, len) = Document::parse_prefix(octets, Limits::MESSAGE).ok()?;
        let root = document.root();
        let number = |key: &[u8]| u32::try_from(root.get(key).and_then(Node::uint)?).ok();
        let part = number(b"piece")?;
        match number(b"msg_type")? {
            0 => Some(Self::Request(part)),
            1 => Some(Self::Data { part, total: number(b"total_size")?, octets: octets[len..].to_vec() }),
            2 => Some(Self::Reject(part)),
            _ => None,
        }
    }

    /// The answer to a request, from the dictionary's octets where they are known.
    #[must_use]
    pub fn answer(part: u32, raw: &[u8]) -> Self {
        let start = part as usize * PART_BYTES as usize;
        match (raw.get(start..), u32::try_from(raw.len())) {
            (Some(rest), Ok(total)) if !rest.is_empty() => {
                let octets = rest[..rest.len().min(PART_BYTES as usize)].to_vec();
                Self::Data { part, total, octets }
            }
            _ => Self::Reject(part),
        }
    }
}

/// What the dictionary must hash to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// SHA-1.
    V1([u8; 20]),
    /// SHA-256.
    V2([u8; 32]),
}

/// How a fetch stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Ask for these parts.
    Ask(Vec<u32>),
    /// All is there, and its hash is right.
    Done(Vec<u8>),
    /// The peer is of no use for this.
    Failed,
}

/// A dictionary that is fetched from one peer.
#[derive(Clone, Debug)]
pub struct Fetch {
    wanted: Wanted,
    octets: Vec<u8>,
    asked: u32,
    held: Vec<bool>,
}

impl Fetch {
    /// Begins, with the size that the peer says; `None` where that is beyond what is taken.
    #[must_use]
    pub fn begin(wanted: Wanted, total: u32) -> Option<Self> {
        if total == 0 || total > MAX_BYTES {
            return None;
        }
        let parts = total.div_ceil(PART_BYTES) as usize;
        Some(Self { wanted, octets: vec![0; total as usize], asked: 0, held: vec![false; parts] })
    }

    /// The parts to be asked for now.
    pub fn due(&mut self) -> Vec<u32> {
        let held = self.held.iter().filter(|is_held| **is_held).count() as u32;
        let until = (held + MAX_OPEN).min(self.held.len() as u32);
        let parts = self.asked..until.max(self.asked);
        self.asked = parts.end;
        parts.collect()
    }

    /// The peer has said something.
    pub fn receive(&mut self, message: &Message) -> Progress {
        match message {
            Message::Data { part, total, octets } => self.take(*part, *total, octets),
            Message::Reject(_) => Progress::Failed,
            Message::Request(_) => Progress::Ask(Vec::new()),
        }
    }

    fn take(&mut self, part: u32, total: u32, octets: &[u8]) -> Progress {
        let start = part as usize * PART_BYTES as usize;
        let len = self.octets.len().saturating_sub(start).min(PART_BYTES as usize);
        if part >= self.asked || total as usize != self.octets.len() || octets.len() != len {
            return Progress::Failed;
        }
        self.octets[start..start + len].copy_from_slice(octets);
        self.held[part as usize] = true;
        if !self.held.iter().all(|is_held| *is_held) {
            return Progress::Ask(self.due());
        }
        let is_right = match self.wanted {
            Wanted::V1(hash) => sha1(&self.octets) == hash,
            Wanted::V2(hash) => Sha256::digest(&self.octets)[..] == hash,
        };
        if is_right { Progress::Done(core::mem::take(&mut self.octets)) } else { Progress::Failed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_form_of_bep_9() {
        assert_eq!(Message::Request(0).encode(), b"d8:msg_typei0e5:piecei0ee");
        assert_eq!(Message::Reject(3).encode(), b"d8:msg_typei2e5:piecei3ee");
        let data = Message::Data { part: 0, total: 4, octets: b"abcd".to_vec() };
        assert_eq!(data.encode(), b"d8:msg_typei1e5:piecei0e10:total_sizei4eeabcd");
        assert_eq!(Message::parse(&data.encode()), Some(data));
        assert_eq!(Message::parse(b"d8:msg_typei7e5:piecei0ee"), None);
    }

    #[test]
    fn a_dictionary_comes_in_parts_and_is_hashed() {
        let raw: Vec<u8> = (0..200_000_u32).map(|at| (at * 7 % 251) as u8).collect();
        for wanted in [Wanted::V1(sha1(&raw)), Wanted::V2(Sha256::digest(&raw).into())] {
            let mut fetch = Fetch::begin(wanted, raw.len() as u32).unwrap();
            let mut open = fetch.due();
            assert_eq!(open.len(), 8);
            let whole = loop {
                match fetch.receive(&Message::answer(open.remove(0), &raw)) {
                    Progress::Ask(more) => open.extend(more),
                    other => break other,
                }
            };
            assert_eq!(whole, Progress::Done(raw.clone()));
        }
    }

    #[test]
    fn what_is_wrong_ends_the_fetch() {
        assert!(Fetch::begin(Wanted::V1([0; 20]), 0).is_none());
        assert!(Fetch::begin(Wanted::V1([0; 20]), MAX_BYTES + 1).is_none());
        let data = |part, total, len| Message::Data { part, total, octets: vec![0; len] };
        for message in [data(0, 11, 10), data(0, 10, 9), data(1, 10, 10), data(0, 10, 10), Message::Reject(0)]
        {
            let mut fetch = Fetch::begin(Wanted::V1([0; 20]), 10).unwrap();
            fetch.due();
            assert_eq!(fetch.receive(&message), Progress::Failed);
        }
        assert_eq!(Message::answer(1, b"short"), Message::Reject(1));
        assert_eq!(Message::answer(u32::MAX, b"short"), Message::Reject(u32::MAX));
    }
}
