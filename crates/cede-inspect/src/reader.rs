//! One direction's stream as messages.
//!
//! Source: BEP 3 and 10, by way of [`cede_bt::wire::Decoder`]. A stream that begins with a handshake is read from there. One
//! that does not, or whose thread was lost in a hole, is searched for messages ([`crate::seek`]). Holes of known length
//! within the data of a block, or within any other message whose head was seen, lose no thread: what is missing is
//! counted and read over.
//!
//! **What it leaves out.** A hole of unknown length (a uTP packet that was not captured) within a block always loses the
//! thread until the next message that can be found.
//!
//! **How it was validated.** Streams torn at random against what was written (`tests/streams.rs`), arbitrary octets.

use crate::seek;
use cede_bt::wire::BlockRef;
use cede_bt::wire::{Decoder, HANDSHAKE_BYTES, Handshake, Item, Message, Reserved, WireLimits};
use cede_wire::Payload;

/// What is searched of a stream that may not be BitTorrent at all: begun before the capture, and seen from its beginning.
const SOUGHT_MAX_MIDWAY: u64 = 1 << 20;
const SOUGHT_MAX_BEGUN: u64 = 64 << 10;
/// Octets of the front that are kept until it is known what the stream is.
pub(crate) const FRONT_BYTES: usize = 4096;
/// How a handshake begins, as far as it must have been captured to be told from anything else.
const GREETING: &[u8] = b"\x13BitTorrent";
/// Where the info-hash of a handshake begins, behind the protocol's name and the reserved octets.
const INFO_HASH_AT: usize = 28;
/// As many octets as the head of any message has.
const HEAD_BYTES: usize = 13;
const LIMITS: WireLimits =
    WireLimits { bitfield_bytes: 1 << 20, block_bytes: 1 << 24, extended_bytes: 1 << 20 };

/// What a stream says.
#[derive(Debug)]
pub(crate) enum Said {
    Handshake(Handshake),
    /// A handshake of which the capture has only the first octets.
    CutHandshake(CutHandshake),
    /// A message, and whether octets of it are missing.
    Message(Message, bool),
    /// So many octets of a block more, which ends there where they are the last ones; `true` where they were captured.
    Data(BlockRef, u32, u32, bool),
    /// A message that means nothing to us: its id and length.
    Unknown(u8, u32),
    /// From here on nothing is known, until messages are found again.
    Lost,
    /// Messages again, after so many octets (as far as these are known).
    Resumed(u64),
    /// Searched long enough: this is not BitTorrent in the clear.
    GivenUp,
}

/// What the first octets of a handshake say, as far as they were captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CutHandshake {
    pub reserved: Option<Reserved>,
    pub info_hash: Option<[u8; 20]>,
}

impl CutHandshake {
    /// `None` where it may be something else.
    fn of(octets: &[u8]) -> Option<Self> {
        let behind = |at: usize| octets.get(at..);
        octets.starts_with(GREETING).then(|| Self {
            reserved: behind(INFO_HASH_AT - 8)
                .and_then(|reserved| reserved.first_chunk().copied())
                .map(Reserved),
            info_hash: behind(INFO_HASH_AT).and_then(|hash| hash.first_chunk().copied()),
        })
    }
}

#[derive(Debug)]
enum State {
    /// A handshake is to come.
    Start,
    Messages,
    /// Looking for messages: the last octets, how many octets were passed over, and how many more may be.
    Seeking {
        tail: Vec<u8>,
        passed: u64,
        left: u64,
    },
    /// Not BitTorrent in the clear: octets that were passed over.
    Opaque {
        passed: u64,
    },
}

/// Reads one direction.
#[derive(Debug)]
pub(crate) struct Reader {
    decoder: Decoder,
    state: State,
    /// The stream's first octets, until it is known to be BitTorrent.
    front: Vec<u8>,
    /// What was read of the handshake that is to come.
    greeting: Vec<u8>,
    /// The stream is BitTorrent, so that it is worth looking on for ever.
    is_known: bool,
    /// Octets of the message in the making are missing.
    is_cut: bool,
}

impl Reader {
    /// A reader of a stream from its beginning, or from the middle.
    pub(crate) fn new(from_start: bool) -> Self {
        let state = if from_start { State::Start } else { seeking(0, SOUGHT_MAX_MIDWAY) };
        let decoder = Decoder::new(LIMITS);
        Self { decoder, state, front: Vec::new(), greeting: Vec::new(), is_known: false, is_cut: false }
    }

    /// The stream's first octets, as long as it is not known to be BitTorrent.
    pub(crate) fn front(&self) -> &[u8] {
        &self.front
    }

    /// Memory that the reader holds, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.front.capacity() + self.decoder.awaited() as usize * usize::from(!self.decoder.is_indifferent())
    }

    /// The stream is that of a BitTorrent connection: the other direction says so.
    pub(crate) fn know(&mut self) {
        self.is_known = true;
        self.front = Vec::new();
        if let State::Opaque { passed } = self.state {
            self.state = seeking(passed, u64::MAX);
        }
    }

    /// Octets that were passed over since messages were last read.
    pub(crate) const fn unread_bytes(&self) -> u64 {
        match &self.state {
            State::Start | State::Messages => 0,
            State::Seeking { tail, passed, .. } => passed.saturating_add(tail.len() as u64),
            State::Opaque { passed } => *passed,
        }
    }

    /// Reads octets.
    pub(crate) fn octets(&mut self, mut octets: &[u8], say: &mut dyn FnMut(Said)) {
        if !self.is_known && self.front.len() < FRONT_BYTES {
            let part = octets.len().min(FRONT_BYTES - self.front.len());
            self.front.extend_from_slice(&octets[..part]);
        }
        while !octets.is_empty() {
            octets = match &mut self.state {
                State::Start | State::Messages => self.read(octets, say),
                State::Seeking { .. } => self.seek(octets, say),
                State::Opaque { passed } => {
                    *passed += octets.len() as u64;
                    return;
                }
            };
        }
    }

    /// Reads a part of octets; answers with the rest.
    fn read<'a>(&mut self, octets: &'a [u8], say: &mut dyn FnMut(Said)) -> &'a [u8] {
        let awaited = self.decoder.awaited() as usize;
        let part = if awaited > 0 { awaited } else { HEAD_BYTES }.min(octets.len());
        // The handshake is longer than a head.
        let part = if matches!(self.state, State::Start) {
            let part = octets.len().min(HANDSHAKE_BYTES);
            let kept = part.min(HANDSHAKE_BYTES - self.greeting.len());
            self.greeting.extend_from_slice(&octets[..kept]);
            part
        } else {
            part
        };
        // What the data of a block are makes no difference, so they need not be copied.
        let mut input = if self.decoder.is_indifferent() {
            Payload::Pattern { start: 0, len: part as u32 }
        } else {
            Payload::copy_from(&octets[..part])
        };
        match self.decode(&mut input, true, say) {
            Ok(()) => &octets[part - input.len() as usize..],
            // Something is taken in any case, so that this ends.
            Err(unread) => {
                self.lose(unread, say);
                &octets[part..]
            }
        }
    }

    /// Decodes.
    ///
    /// # Errors
    /// These are no messages: so many octets of them were not read.
    fn decode(
        &mut self,
        input: &mut Payload,
        is_captured: bool,
        say: &mut dyn FnMut(Said),
    ) -> Result<(), u64> {
        loop {
            let left = u64::from(input.len());
            match self.decoder.next(input) {
                Ok(None) => return Ok(()),
                Ok(Some(item)) => {
                    self.item(item, is_captured, say);
                    // Messages behind a handshake are read in parts of their own.
                    if matches!(self.state, State::Start) {
                        (self.state, self.greeting) = (State::Messages, Vec::new());
                        return Ok(());
                    }
                }
                Err(_) => return Err(left),
            }
        }
    }

    fn item(&mut self, item: Item, is_captured: bool, say: &mut dyn FnMut(Said)) {
        match item {
            Item::Handshake(handshake) => {
                self.know();
                say(Said::Handshake(handshake));
            }
            Item::Message(message) => say(Said::Message(message, core::mem::take(&mut self.is_cut))),
            Item::Data { block, at, payload } => say(Said::Data(block, at, payload.len(), is_captured)),
            Item::Unknown { id, len } => say(Said::Unknown(id, len)),
        }
    }

    /// The thread is lost, and so many octets with it.
    fn lose(&mut self, unread: u64, say: &mut dyn FnMut(Said)) {
        if self.is_known {
            say(Said::Lost);
        }
        let left = match self.state {
            _ if self.is_known => u64::MAX,
            State::Start => SOUGHT_MAX_BEGUN,
            _ => SOUGHT_MAX_MIDWAY,
        };
        self.state = seeking(unread, left);
        (self.is_cut, self.greeting) = (false, Vec::new());
    }

    /// Octets are missing: so many, where that is known.
    pub(crate) fn missing(&mut self, len: Option<u64>, say: &mut dyn FnMut(Said)) {
        match (&mut self.state, len) {
            (State::Opaque { passed }, len) => *passed = passed.saturating_add(len.unwrap_or(0)),
            (State::Seeking { tail, passed, .. }, len) => {
                *passed = passed.saturating_add(tail.len() as u64 + len.unwrap_or(0));
                tail.clear();
            }
            (State::Messages, Some(len)) => self.read_over(len, say),
            (State::Start, len) => self.cut_handshake(len, say),
            (State::Messages, None) => self.lose(0, say),
        }
    }

    /// Octets of the handshake are missing, and maybe what stood behind it.
    fn cut_handshake(&mut self, len: Option<u64>, say: &mut dyn FnMut(Said)) {
        let len = len.unwrap_or(0);
        let Some(cut) = CutHandshake::of(&self.greeting) else { return self.lose(len, say) };
        self.know();
        say(Said::CutHandshake(cut));
        let awaited = (HANDSHAKE_BYTES - self.greeting.len()) as u64;
        if len == awaited {
            self.decoder = Decoder::behind_handshake(LIMITS);
            (self.state, self.greeting) = (State::Messages, Vec::new());
        } else {
            self.lose(len.saturating_sub(awaited), say);
        }
    }

    /// Reads over octets that are missing: the message in the making is as long as its head said.
    fn read_over(&mut self, len: u64, say: &mut dyn FnMut(Said)) {
        let awaited = self.decoder.awaited();
        let part = len.min(u64::from(awaited)) as u32;
        self.is_cut |= part > 0 && !self.decoder.is_indifferent();
        let rest = len - u64::from(part);
        match self.decode(&mut Payload::Pattern { start: 0, len: part }, false, say) {
            Ok(()) if rest == 0 => {}
            Ok(()) => self.lose(rest, say),
            Err(unread) => self.lose(unread + rest, say),
        }
    }

    /// There are messages again, or a handshake.
    fn resume(&mut self, is_handshake: bool, passed: u64, say: &mut dyn FnMut(Said)) {
        let (decoder, state) = if is_handshake {
            (Decoder::new(LIMITS), State::Start)
        } else {
            (Decoder::behind_handshake(LIMITS), State::Messages)
        };
        (self.decoder, self.state) = (decoder, state);
        self.know();
        // A handshake where a stream was first seen is where it begins.
        if !is_handshake || passed > 0 {
            say(Said::Resumed(passed));
        }
    }

    /// Looks for messages; answers with what comes behind what was searched in vain.
    fn seek<'a>(&mut self, octets: &'a [u8], say: &mut dyn FnMut(Said)) -> &'a [u8] {
        let State::Seeking { tail, passed, left } = &mut self.state else { return octets };
        let before = tail.len();
        tail.extend_from_slice(octets);
        if let Some((at, is_handshake)) = seek::find(tail) {
            let passed = *passed + at as u64;
            let found = tail.split_off(at);
            self.resume(is_handshake, passed, say);
            // Of what was kept from before, at most a few octets are read by themselves.
            let old = before.saturating_sub(at);
            self.octets(&found[..old], say);
            return &octets[at.saturating_sub(before)..];
        }
        let searched = tail.len().saturating_sub(seek::TAIL_BYTES);
        tail.drain(..searched);
        *passed += searched as u64;
        *left = left.saturating_sub(octets.len() as u64);
        if *left == 0 {
            self.state = State::Opaque { passed: *passed + tail.len() as u64 };
            say(Said::GivenUp);
        }
        &[]
    }
}

const fn seeking(passed: u64, left: u64) -> State {
    State::Seeking { tail: Vec::new(), passed, left }
}
