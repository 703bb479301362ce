//! From octets to messages, whatever cuts the stream came in.

use super::error::WireError;
use super::handshake::{HANDSHAKE_BYTES, Handshake};
use super::message::{BlockRef, HASH_RANGE_BYTES, HashRange, Message, id};
use alloc::vec::Vec;
use cede_wire::Payload;

/// Octets of the head of a message that tell what follows: length, id and, of a piece, index and begin.
const HEAD_BYTES: usize = 13;

/// What a peer may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WireLimits {
    /// Octets of a bitfield: one for every eight pieces. Where the number of pieces is not known yet (a magnet link),
    /// whatever seems sane.
    pub bitfield_bytes: u32,
    /// Octets of a block's data.
    pub block_bytes: u32,
    /// Octets of a message of an extension.
    pub extended_bytes: u32,
}

impl Default for WireLimits {
    /// 128 KiB of bitfield (a million pieces), blocks of 128 KiB (libtorrent), 1 MiB of extension.
    fn default() -> Self {
        Self { bitfield_bytes: 128 << 10, block_bytes: 128 << 10, extended_bytes: 1 << 20 }
    }
}

impl WireLimits {
    /// The limits for a torrent of so many pieces.
    #[must_use]
    pub fn of(pieces: u32) -> Self {
        Self { bitfield_bytes: pieces.div_ceil(8), ..Self::default() }
    }
}

/// What the decoder found.
#[derive(Clone, Debug)]
pub enum Item {
    /// The peer's handshake, always first.
    Handshake(Handshake),
    /// A message.
    Message(Message),
    /// The next octets of a block. The last ones end at `block.len`.
    Data {
        /// The block.
        block: BlockRef,
        /// Where in the block these octets begin.
        at: u32,
        /// They.
        payload: Payload,
    },
    /// A message that means nothing to us; its octets are passed over.
    Unknown {
        /// Its id.
        id: u8,
        /// Octets behind the id.
        len: u32,
    },
}

#[derive(Debug)]
enum State {
    Handshake,
    /// Gathering the head of a message.
    Head,
    /// Gathering the rest of a message of which the head is known.
    Body {
        id: u8,
        len: u32,
    },
    /// Handing on the data of a block.
    Data {
        block: BlockRef,
        at: u32,
    },
    /// Passing over a message that means nothing to us.
    Skip {
        left: u32,
    },
}

/// Reads one direction of a connection.
#[derive(Debug)]
pub struct Decoder {
    limits: WireLimits,
    state: State,
    head: [u8; HEAD_BYTES],
    head_len: usize,
    handshake: Vec<u8>,
    body: Vec<u8>,
}

impl Decoder {
    /// A decoder of a stream that begins with a handshake.
    #[must_use]
    pub const fn new(limits: WireLimits) -> Self {
        Self {
            limits,
            state: State::Handshake,
            head: [0; HEAD_BYTES],
            head_len: 0,
            handshake: Vec::new(),
            body: Vec::new(),
        }
    }

    /// A decoder of a stream that goes on with a message, its handshake being over or not seen.
    #[must_use]
    pub fn behind_handshake(limits: WireLimits) -> Self {
        Self { state: State::Head, ..Self::new(limits) }
    }

    /// Octets that are still to come of the message whose head has been read.
    #[must_use]
    pub fn awaited(&self) -> u32 {
        match self.state {
            State::Handshake | State::Head => 0,
            State::Body { len, .. } => len.saturating_sub(self.body.len() as u32),
            State::Data { block, at } => block.len - at,
            State::Skip { left } => left,
        }
    }

    /// Whether the octets that come next are data of a block, or of a message that means nothing to us: what they are
    /// changes nothing but the data.
    #[must_use]
    pub const fn is_indifferent(&self) -> bool {
        matches!(self.state, State::Data { .. } | State::Skip { .. })
    }

    /// Changes the limits, once the number of pieces is known.
    pub const fn set_limits(&mut self, limits: WireLimits) {
        self.limits = limits;
    }

    /// Takes octets off the front of `input` until there is something to tell; `None` once `input` is used up.
    ///
    /// # Errors
    /// [`WireError`]; the stream cannot be read on.
    pub fn next(&mut self, input: &mut Payload) -> Result<Option<Item>, WireError> {
        while !input.is_empty() {
            let item = match self.state {
                State::Handshake => self.read_handshake(input)?,
                State::Head => self.read_head(input)?,
                State::Body { id, len } => self.read_body(input, id, len)?,
                State::Data { block, at } => Some(self.read_data(input, block, at)),
                State::Skip { left } => {
                    self.skip(input, left);
                    None
                }
            };
            if item.is_some() {
                return Ok(item);
            }
        }
        Ok(None)
    }

    fn read_handshake(&mut self, input: &mut Payload) -> Result<Option<Item>, WireError> {
        gather(&mut self.handshake, input, HANDSHAKE_BYTES);
        // A stranger is told from a peer by the first octets it has sent, not only once there are 68.
        let Some(whole) = self.handshake.first_chunk::<HANDSHAKE_BYTES>() else {
            return Handshake::torrent_of(&self.handshake).map(|_| None);
        };
        let handshake = Handshake::decode(whole)?;
        (self.state, self.handshake) = (State::Head, Vec::new());
        Ok(Some(Item::Handshake(handshake)))
    }

    /// Gathers as much of a head as is needed to know what follows.
    fn read_head(&mut self, input: &mut Payload) -> Result<Option<Item>, WireError> {
        self.fill_head(input, 4);
        if self.head_len < 4 {
            return Ok(None);
        }
        let len = self.word(0);
        if len == 0 {
            self.head_len = 0;
            return Ok(Some(Item::Message(Message::KeepAlive)));
        }
        self.fill_head(input, 5);
        if self.head_len < 5 {
            return Ok(None);
        }
        let id = self.head[4];
        self.check_length(id, len)?;
        if id != id::PIECE {
            return Ok(self.begin_body(id, len - 1));
        }
        self.fill_head(input, HEAD_BYTES);
        if self.head_len == HEAD_BYTES {
            let block = BlockRef { piece: self.word(5), begin: self.word(9), len: len - 9 };
            (self.state, self.head_len) = (State::Data { block, at: 0 }, 0);
        }
        Ok(None)
    }

    fn begin_body(&mut self, id: u8, len: u32) -> Option<Item> {
        self.head_len = 0;
        self.body.clear();
        if len == 0 {
            return Some(message(id, &[]).map_or(Item::Unknown { id, len }, Item::Message));
        }
        if is_known(id) {
            self.state = State::Body { id, len };
            return None;
        }
        self.state = State::Skip { left: len };
        Some(Item::Unknown { id, len })
    }

    fn read_body(&mut self, input: &mut Payload, id: u8, len: u32) -> Result<Option<Item>, WireError> {
        gather(&mut self.body, input, len as usize);
        if self.body.len() < len as usize {
            return Ok(None);
        }
        self.state = State::Head;
        let found = match id {
            // These may be large; they leave with their memory.
            id::BITFIELD => Some(Message::Bitfield(core::mem::take(&mut self.body))),
            _ => message(id, &self.body),
        };
        if self.body.capacity() > 4096 {
            self.body = Vec::new();
        }
        found.map(|found| Some(Item::Message(found))).ok_or(WireError::BadLength { id, len })
    }

    fn read_data(&mut self, input: &mut Payload, block: BlockRef, at: u32) -> Item {
        let payload = input.split_to(block.len - at);
        let reached = at + payload.len();
        self.state = if reached == block.len { State::Head } else { State::Data { block, at: reached } };
        Item::Data { block, at, payload }
    }

    fn skip(&mut self, input: &mut Payload, left: u32) {
        let skipped = left.min(input.len());
        input.skip(skipped);
        let left = left - skipped;
        self.state = if left == 0 { State::Head } else { State::Skip { left } };
    }

    /// Whether a message of this kind may have this length, id included.
    fn check_length(&self, id: u8, len: u32) -> Result<(), WireError> {
        let limit = match id {
            id::PIECE if len < 10 => return Err(WireError::BadLength { id, len }),
            id::PIECE => self.limits.block_bytes.saturating_add(9),
            id::BITFIELD => self.limits.bitfield_bytes.saturating_add(1),
            id::HAVE | id::SUGGEST | id::ALLOWED_FAST => 5,
            id::REQUEST | id::CANCEL | id::REJECT => 13,
            id::PORT => 3,
            id::CHOKE | id::UNCHOKE | id::INTERESTED | id::NOT_INTERESTED => 1,
            id::HAVE_ALL | id::HAVE_NONE => 1,
            id::HASH_REQUEST | id::HASH_REJECT => HASH_RANGE_BYTES as u32 + 1,
            _ => self.limits.extended_bytes,
        };
        let exact = !matches!(id, id::PIECE | id::BITFIELD | id::EXTENDED | id::HASHES) && is_known(id);
        match len {
            _ if len > limit => Err(WireError::TooLong { id, len }),
            _ if exact && len < limit => Err(WireError::BadLength { id, len }),
            _ => Ok(()),
        }
    }

    fn fill_head(&mut self, input: &mut Payload, until: usize) {
        if self.head_len < until {
            self.head_len += input.take_into(&mut self.head[self.head_len..until]);
        }
    }

    fn word(&self, at: usize) -> u32 {
        word(&self.head, at)
    }
}

fn word(octets: &[u8], at: usize) -> u32 {
    octets.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_be_bytes(*word))
}

/// Takes octets off `input` until `buffer` has `until`.
fn gather(buffer: &mut Vec<u8>, input: &mut Payload, until: usize) {
    let start = buffer.len();
    buffer.resize(start + until.saturating_sub(start).min(input.len() as usize), 0);
    input.take_into(&mut buffer[start..]);
}

const fn is_known(id: u8) -> bool {
    matches!(id, 0..=9 | 13..=17 | 20..=23)
}

/// The message of this id with this body; `None` where such a body cannot be.
fn message(id: u8, body: &[u8]) -> Option<Message> {
    let block = || BlockRef { piece: word(body, 0), begin: word(body, 4), len: word(body, 8) };
    Some(match id {
        id::CHOKE => Message::Choke,
        id::UNCHOKE => Message::Unchoke,
        id::INTERESTED => Message::Interested,
        id::NOT_INTERESTED => Message::NotInterested,
        id::HAVE => Message::Have(word(body, 0)),
        id::BITFIELD => Message::Bitfield(body.to_vec()),
        id::REQUEST => Message::Request(block()),
        id::CANCEL => Message::Cancel(block()),
        id::PORT => Message::Port(u16::from_be_bytes(*body.first_chunk()?)),
        id::SUGGEST => Message::Suggest(word(body, 0)),
        id::HAVE_ALL => Message::HaveAll,
        id::HAVE_NONE => Message::HaveNone,
        id::REJECT => Message::Reject(block()),
        id::ALLOWED_FAST => Message::AllowedFast(word(body, 0)),
        id::EXTENDED => Message::Extended(*body.first()?, body.get(1..)?.to_vec()),
        id::HASH_REQUEST => Message::HashRequest(hash_range(body)?),
        id::HASHES => match body.get(HASH_RANGE_BYTES..)?.as_chunks() {
            (hashes, []) => Message::Hashes(hash_range(body)?, hashes.to_vec()),
            _ => return None,
        },
        id::HASH_REJECT => Message::HashReject(hash_range(body)?),
        _ => return None,
    })
}

fn hash_range(body: &[u8]) -> Option<HashRange> {
    let (root, words) = body.split_first_chunk()?;
    let [base, index, length, proofs] = [0, 4, 8, 12].map(|at| word(words, at));
    Some(HashRange { root: *root, base, index, length, proofs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn decoded(octets: &[u8], cut: usize) -> Vec<Message> {
        let mut decoder = Decoder::new(WireLimits::default());
        let handshake = Handshake { reserved: Default::default(), info_hash: [7; 20], peer_id: [9; 20] };
        let mut stream = handshake.encode().to_vec();
        stream.extend_from_slice(octets);
        let mut found = Vec::new();
        for part in stream.chunks(cut) {
            let mut input = Payload::copy_from(part);
            while let Some(item) = decoder.next(&mut input).unwrap() {
                match item {
                    Item::Message(message) => found.push(message),
                    Item::Handshake(seen) => assert_eq!(seen, handshake),
                    Item::Unknown { id, len } => assert!(matches!((id, len), (30, 2) | (99, 0))),
                    Item::Data { .. } => {}
                }
            }
        }
        found
    }

    #[test]
    fn every_message_survives_every_cut() {
        let block = BlockRef { piece: 3, begin: 16_384, len: 1_000 };
        let range = HashRange { root: [5; 32], base: 1, index: 2, length: 4, proofs: 3 };
        let messages = vec![
            Message::Bitfield(vec![0x80, 1]),
            Message::KeepAlive,
            Message::Choke,
            Message::Unchoke,
            Message::Interested,
            Message::NotInterested,
            Message::Have(70_000),
            Message::Request(block),
            Message::Cancel(block),
            Message::Port(6881),
            Message::Suggest(1),
            Message::HaveAll,
            Message::HaveNone,
            Message::Reject(block),
            Message::AllowedFast(9),
            Message::Extended(3, b"d1:ai1ee".to_vec()),
            Message::HashRequest(range),
            Message::Hashes(range, vec![[7; 32], [8; 32], [9; 32]]),
            Message::HashReject(range),
        ];
        let mut octets = Vec::new();
        messages.iter().for_each(|message| message.encode(&mut octets));
        // Messages that nobody knows are read over.
        octets.splice(0..0, [0, 0, 0, 3, 30, 1, 2, 0, 0, 0, 1, 99]);
        for cut in [1, 2, 3, 5, 7, 64, 10_000] {
            assert_eq!(decoded(&octets, cut), messages, "cut into {cut}");
        }
    }

    #[test]
    fn a_block_is_handed_on_as_it_comes() {
        let mut decoder = Decoder::new(WireLimits::default());
        decoder.state = State::Head;
        assert_eq!((decoder.awaited(), decoder.is_indifferent()), (0, false));
        let block = BlockRef { piece: 2, begin: 0, len: 100 };
        let mut head = Payload::copy_from(&super::super::piece_header(block));
        assert!(decoder.next(&mut head).unwrap().is_none());
        for (start, len) in [(500, 60), (560, 40)] {
            assert_eq!((decoder.awaited(), decoder.is_indifferent()), (600 - start as u32, true));
            let mut input = Payload::Pattern { start, len };
            let Some(Item::Data { block: seen, at, payload }) = decoder.next(&mut input).unwrap() else {
                panic!("no data");
            };
            assert_eq!((seen, u64::from(at), payload.len()), (block, start - 500, len));
        }
    }

    #[test]
    fn what_is_too_long_or_of_no_possible_length_ends_the_stream() {
        for octets in [
            &[0, 0, 0, 2, id::CHOKE, 0][..],
            &[0, 0, 0, 4, id::HAVE, 0, 0, 0],
            &[0, 0, 0, 5, id::PIECE, 0, 0, 0, 0],
            &[0xff, 0xff, 0xff, 0xff, id::PIECE],
            &[0, 0xff, 0, 0, id::EXTENDED],
            &[0, 2, 0, 2, id::BITFIELD],
            &[0, 0, 0, 48, id::HASH_REQUEST],
            &[0, 0, 0, 2, id::HASHES, 0],
        ] {
            let mut decoder = Decoder::new(WireLimits::default());
            decoder.state = State::Head;
            assert!(decoder.next(&mut Payload::copy_from(octets)).is_err(), "{octets:?}");
        }
        let mut decoder = Decoder::new(WireLimits::default());
        let stranger = &mut Payload::copy_from(b"GET / HTTP/1.1");
        assert_eq!(decoder.next(stranger).unwrap_err(), WireError::NotBitTorrent);
    }
}
