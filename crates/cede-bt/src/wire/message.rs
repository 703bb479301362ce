//! Messages and their octets.

use crate::merkle::{HASH_BYTES, Hash};
use alloc::vec::Vec;

/// Octets before the data of a piece message: length, id, index, begin.
pub const PIECE_HEADER_BYTES: u32 = 13;

/// Message ids.
#[allow(missing_docs, reason = "the names are the protocol's")]
pub mod id {
    pub const CHOKE: u8 = 0;
    pub const UNCHOKE: u8 = 1;
    pub const INTERESTED: u8 = 2;
    pub const NOT_INTERESTED: u8 = 3;
    pub const HAVE: u8 = 4;
    pub const BITFIELD: u8 = 5;
    pub const REQUEST: u8 = 6;
    pub const PIECE: u8 = 7;
    pub const CANCEL: u8 = 8;
    pub const PORT: u8 = 9;
    pub const SUGGEST: u8 = 13;
    pub const HAVE_ALL: u8 = 14;
    pub const HAVE_NONE: u8 = 15;
    pub const REJECT: u8 = 16;
    pub const ALLOWED_FAST: u8 = 17;
    pub const EXTENDED: u8 = 20;
    pub const HASH_REQUEST: u8 = 21;
    pub const HASHES: u8 = 22;
    pub const HASH_REJECT: u8 = 23;
}

/// A run of octets of a piece, as requests name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockRef {
    /// Which piece.
    pub piece: u32,
    /// Where in the piece.
    pub begin: u32,
    /// Octets.
    pub len: u32,
}

/// A run of nodes of one level of a file's tree of hashes (BEP 52).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HashRange {
    /// The tree's root, which names the file.
    pub root: Hash,
    /// The level, counted from the blocks.
    pub base: u32,
    /// The first node, by its place in the level.
    pub index: u32,
    /// How many.
    pub length: u32,
    /// To which level above the run the nodes are to come that join it to the root.
    pub proofs: u32,
}

/// Octets of a [`HashRange`].
pub(super) const HASH_RANGE_BYTES: usize = HASH_BYTES + 16;

impl HashRange {
    fn encode(&self) -> [u8; HASH_RANGE_BYTES] {
        let mut octets = [0; HASH_RANGE_BYTES];
        octets[..HASH_BYTES].copy_from_slice(&self.root);
        let words = [self.base, self.index, self.length, self.proofs];
        for (place, word) in octets[HASH_BYTES..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        octets
    }
}

/// A message other than the data of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Nothing; the connection is to stay.
    KeepAlive,
    /// Requests will not be answered.
    Choke,
    /// Requests will be answered.
    Unchoke,
    /// The sender would request, were it not choked.
    Interested,
    /// The peer has nothing that the sender wants.
    NotInterested,
    /// The sender has this piece now.
    Have(u32),
    /// What the sender has, one bit per piece, the first in the highest bit.
    Bitfield(Vec<u8>),
    /// Send this block.
    Request(BlockRef),
    /// Do not send this block after all.
    Cancel(BlockRef),
    /// The sender's DHT node listens here.
    Port(u16),
    /// This piece would be cheap (BEP 6).
    Suggest(u32),
    /// The sender has everything (BEP 6).
    HaveAll,
    /// The sender has nothing (BEP 6).
    HaveNone,
    /// This request will not be answered (BEP 6).
    Reject(BlockRef),
    /// This piece may be requested while choked (BEP 6).
    AllowedFast(u32),
    /// A message of an extension, under the id that its receiver has chosen; 0 is the extension handshake (BEP 10).
    Extended(u8, Vec<u8>),
    /// Send these hashes (BEP 52).
    HashRequest(HashRange),
    /// Hashes: those of the run, and those that join it to the root (BEP 52).
    Hashes(HashRange, Vec<Hash>),
    /// These hashes will not be sent (BEP 52).
    HashReject(HashRange),
}

/// The octets before the data of a block.
#[must_use]
pub fn piece_header(block: BlockRef) -> [u8; PIECE_HEADER_BYTES as usize] {
    let mut octets = [0; PIECE_HEADER_BYTES as usize];
    octets[..4].copy_from_slice(&(block.len + 9).to_be_bytes());
    octets[4] = id::PIECE;
    octets[5..9].copy_from_slice(&block.piece.to_be_bytes());
    octets[9..].copy_from_slice(&block.begin.to_be_bytes());
    octets
}

impl Message {
    /// Appends the octets, length first.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::KeepAlive => out.extend_from_slice(&[0; 4]),
            Self::Choke => plain(out, id::CHOKE),
            Self::Unchoke => plain(out, id::UNCHOKE),
            Self::Interested => plain(out, id::INTERESTED),
            Self::NotInterested => plain(out, id::NOT_INTERESTED),
            Self::HaveAll => plain(out, id::HAVE_ALL),
            Self::HaveNone => plain(out, id::HAVE_NONE),
            Self::Have(piece) => with_body(out, id::HAVE, &piece.to_be_bytes()),
            Self::Suggest(piece) => with_body(out, id::SUGGEST, &piece.to_be_bytes()),
            Self::AllowedFast(piece) => with_body(out, id::ALLOWED_FAST, &piece.to_be_bytes()),
            Self::Port(port) => with_body(out, id::PORT, &port.to_be_bytes()),
            Self::Bitfield(octets) => with_body(out, id::BITFIELD, octets),
            Self::Request(block) => with_block(out, id::REQUEST, *block),
            Self::Cancel(block) => with_block(out, id::CANCEL, *block),
            Self::Reject(block) => with_block(out, id::REJECT, *block),
            Self::Extended(extension, payload) => {
                head(out, id::EXTENDED, payload.len() + 1);
                out.push(*extension);
                out.extend_from_slice(payload);
            }
            Self::HashRequest(range) => with_body(out, id::HASH_REQUEST, &range.encode()),
            Self::HashReject(range) => with_body(out, id::HASH_REJECT, &range.encode()),
            Self::Hashes(range, hashes) => {
                let hashes = hashes.as_flattened();
                head(out, id::HASHES, HASH_RANGE_BYTES + hashes.len());
                out.extend_from_slice(&range.encode());
                out.extend_from_slice(hashes);
            }
        }
    }

    /// The octets in a vector of their own.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }
}

/// Length and id of a message whose body has `len` octets.
fn head(out: &mut Vec<u8>, id: u8, len: usize) {
    let len = u32::try_from(len + 1).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.push(id);
}

fn plain(out: &mut Vec<u8>, id: u8) {
    head(out, id, 0);
}

fn with_body(out: &mut Vec<u8>, id: u8, body: &[u8]) {
    head(out, id, body.len());
    out.extend_from_slice(body);
}

fn with_block(out: &mut Vec<u8>, id: u8, block: BlockRef) {
    head(out, id, 12);
    for word in [block.piece, block.begin, block.len] {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_octets_of_bep_3_and_6() {
        let block = BlockRef { piece: 1, begin: 16_384, len: 16_384 };
        assert_eq!(
            Message::Request(block).to_vec(),
            [0, 0, 0, 13, 6, 0, 0, 0, 1, 0, 0, 0x40, 0, 0, 0, 0x40, 0]
        );
        assert_eq!(Message::Have(5).to_vec(), [0, 0, 0, 5, 4, 0, 0, 0, 5]);
        assert_eq!(Message::KeepAlive.to_vec(), [0; 4]);
        assert_eq!(Message::Reject(block).to_vec()[4], 0x10);
        assert_eq!(Message::Extended(0, b"de".to_vec()).to_vec(), *b"\0\0\0\x04\x14\0de");
        assert_eq!(piece_header(block), [0, 0, 0x40, 9, 7, 0, 0, 0, 1, 0, 0, 0x40, 0]);
    }
}
