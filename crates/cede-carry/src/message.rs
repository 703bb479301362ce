//! The frames: a kind, a length and a body, and what each body says.
//!
//! ```text
//! frame   kind (1 octet), length of the body (4 octets), body
//! text    length (2 octets), UTF-8
//! ```
//! Numbers are unsigned and in network order. A body that is too short, too long for its message, or longer than
//! [`MAX_BODY_BYTES`] ([`MAX_DATA_BYTES`] for data) is an error: there is one way to write each message.

use crate::bench::{ControllerSpec, Limit, MAX_STREAMS, Plan, Sample};
use crate::offer::{DIGEST_BYTES, Modified, Offer};
use cede_units::{Duration, Rate};
use std::fmt;

/// The version of this grammar, and of everything that is said in it.
pub const VERSION: u16 = 1;
/// Octets before each body.
pub const HEAD_BYTES: usize = 5;
/// The longest body of a message.
pub const MAX_BODY_BYTES: usize = 64 << 10;
/// The longest body of a frame of data.
pub const MAX_DATA_BYTES: usize = 1 << 20;
/// The longest text.
pub const MAX_TEXT_BYTES: usize = 1024;
/// The most that one [`Message::Hole`] leaves out.
pub const MAX_HOLE_BYTES: u64 = 1 << 20;
/// The most parameters that a controller is given.
const MAX_PARAMS: usize = 32;

/// What the one who connects wants.
#[derive(Clone, PartialEq, Debug)]
pub enum Purpose {
    /// To test the path; the answer names a session, which streams then join.
    Test(Plan),
    /// To add a stream to a test.
    Join {
        /// The number that the answer to [`Purpose::Test`] gave.
        session: u64,
        /// Which of the test's streams it is, from zero.
        index: u16,
    },
    /// To send a file.
    Put,
    /// To be sent a file.
    Get {
        /// The name under which it is offered; empty for the only one.
        name: String,
    },
    /// To speak to the TCP server behind a proxy.
    Relay,
}

/// What is said in frames.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// The first frame of whoever connects.
    Hello(Purpose),
    /// Yes; a number where the purpose asks for one.
    Welcome(u64),
    /// No, and why. The stream ends behind it.
    Refused(String),
    /// Nothing, so that it is not taken for silence.
    Alive,
    /// The speaker gives up, and why. The stream ends behind it.
    Failed(String),
    /// What is about to be sent.
    Offer(Offer),
    /// How much of it is there already.
    Have(u64),
    /// The digest of what is there already.
    Digest([u8; DIGEST_BYTES]),
    /// Data begin at this offset.
    Begin(u64),
    /// Octets of data: the body itself.
    Data,
    /// So many octets of zero, which are not sent.
    Hole(u64),
    /// Nothing more comes; the whole has this many octets and this digest.
    End {
        /// All octets, those that were there already included.
        bytes: u64,
        /// Their digest.
        digest: [u8; DIGEST_BYTES],
    },
    /// The file is complete, checked and in its place.
    Stored,
    /// The test begins.
    Start,
    /// Where a test's streams stand at the other end.
    Report(Vec<Sample>),
    /// A test is over, and the other end's last report is asked for; or a program ends its direction of a TCP
    /// connection.
    Finish,
}

/// Why octets are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// No message has this kind.
    Kind(u8),
    /// The body is longer than messages are.
    TooLong(u32),
    /// The body ends within a field.
    Short,
    /// Something follows the last field.
    Trailing,
    /// A field has a value that it cannot have.
    Value,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => write!(f, "there is no message of kind {kind}"),
            Self::TooLong(bytes) => write!(f, "a message of {bytes} octets is longer than any"),
            Self::Short => f.write_str("a message ends within a field"),
            Self::Trailing => f.write_str("something follows a message's last field"),
            Self::Value => f.write_str("a field of a message has a value that it cannot have"),
        }
    }
}

impl std::error::Error for DecodeError {}

mod kind {
    pub const HELLO: u8 = 1;
    pub const WELCOME: u8 = 2;
    pub const REFUSED: u8 = 3;
    pub const ALIVE: u8 = 4;
    pub const FAILED: u8 = 5;
    pub const OFFER: u8 = 6;
    pub const HAVE: u8 = 7;
    pub const DIGEST: u8 = 8;
    pub const BEGIN: u8 = 9;
    pub const DATA: u8 = 10;
    pub const HOLE: u8 = 11;
    pub const END: u8 = 12;
    pub const STORED: u8 = 13;
    pub const START: u8 = 14;
    pub const REPORT: u8 = 15;
    pub const FINISH: u8 = 16;
}

mod purpose {
    pub const TEST: u8 = 1;
    pub const JOIN: u8 = 2;
    pub const PUT: u8 = 3;
    pub const GET: u8 = 4;
    pub const RELAY: u8 = 5;
}

/// The head of a frame with a body of so many octets.
#[must_use]
pub fn data_head(bytes: usize) -> [u8; HEAD_BYTES] {
    head(kind::DATA, bytes)
}

fn head(kind: u8, bytes: usize) -> [u8; HEAD_BYTES] {
    let [a, b, c, d] = u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    [kind, a, b, c, d]
}

/// What a head announces: the kind, and the length of the body.
///
/// # Errors
/// [`DecodeError::Kind`] and [`DecodeError::TooLong`].
pub fn decode_head(head: [u8; HEAD_BYTES]) -> Result<(u8, usize), DecodeError> {
    let [kind, length @ ..] = head;
    let bytes = u32::from_be_bytes(length);
    let most = match kind {
        kind::DATA => MAX_DATA_BYTES,
        kind::HELLO..=kind::FINISH => MAX_BODY_BYTES,
        _ => return Err(DecodeError::Kind(kind)),
    };
    if bytes as usize > most {
        return Err(DecodeError::TooLong(bytes));
    }
    Ok((kind, bytes as usize))
}

impl Message {
    /// The whole frame. That of [`Message::Data`] has no body here: the writer puts data behind [`data_head`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out(vec![0; HEAD_BYTES]);
        let kind = self.put(&mut out);
        let bytes = out.0.len() - HEAD_BYTES;
        out.0[..HEAD_BYTES].copy_from_slice(&head(kind, bytes));
        out.0
    }

    /// Writes the body and answers with the kind.
    fn put(&self, out: &mut Out) -> u8 {
        match self {
            Self::Hello(purpose) => out.purpose(purpose),
            Self::Welcome(number) => out.u64(kind::WELCOME, *number),
            Self::Refused(text) => out.text(kind::REFUSED, text),
            Self::Alive => kind::ALIVE,
            Self::Failed(text) => out.text(kind::FAILED, text),
            Self::Offer(offer) => out.offer(offer),
            Self::Have(bytes) => out.u64(kind::HAVE, *bytes),
            Self::Digest(digest) => out.octets(kind::DIGEST, digest),
            Self::Begin(offset) => out.u64(kind::BEGIN, *offset),
            Self::Data => kind::DATA,
            Self::Hole(bytes) => out.u64(kind::HOLE, *bytes),
            Self::End { bytes, digest } => {
                out.u64(kind::END, *bytes);
                out.octets(kind::END, digest)
            }
            Self::Stored => kind::STORED,
            Self::Start => kind::START,
            Self::Report(samples) => out.samples(samples),
            Self::Finish => kind::FINISH,
        }
    }

    /// Reads the body of a frame of this kind.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(kind: u8, body: &[u8]) -> Result<Self, DecodeError> {
        if kind == kind::DATA {
            return Ok(Self::Data);
        }
        let mut from = In(body);
        let message = Self::take(kind, &mut from)?;
        if from.0.is_empty() { Ok(message) } else { Err(DecodeError::Trailing) }
    }

    fn take(kind: u8, from: &mut In<'_>) -> Result<Self, DecodeError> {
        Ok(match kind {
            kind::HELLO => Self::Hello(from.purpose()?),
            kind::WELCOME => Self::Welcome(from.u64()?),
            kind::REFUSED => Self::Refused(from.text()?),
            kind::ALIVE => Self::Alive,
            kind::FAILED => Self::Failed(from.text()?),
            kind::OFFER => Self::Offer(from.offer()?),
            kind::HAVE => Self::Have(from.u64()?),
            kind::DIGEST => Self::Digest(from.array()?),
            kind::BEGIN => Self::Begin(from.u64()?),
            kind::HOLE => Self::Hole(from.up_to(MAX_HOLE_BYTES)?),
            kind::END => Self::End { bytes: from.u64()?, digest: from.array()? },
            kind::STORED => Self::Stored,
            kind::START => Self::Start,
            kind::REPORT => Self::Report(from.samples()?),
            kind::FINISH => Self::Finish,
            _ => return Err(DecodeError::Kind(kind)),
        })
    }
}

/// A body in the making. Each method answers with the kind, so that a message's line in [`Message::put`] is one.
struct Out(Vec<u8>);

impl Out {
    fn octets(&mut self, kind: u8, octets: &[u8]) -> u8 {
        self.0.extend_from_slice(octets);
        kind
    }

    fn u64(&mut self, kind: u8, number: u64) -> u8 {
        self.octets(kind, &number.to_be_bytes())
    }

    fn optional(&mut self, number: Option<u64>) {
        self.0.push(u8::from(number.is_some()));
        self.u64(0, number.unwrap_or(0));
    }

    /// Texts of people are cut where they are too long.
    fn text(&mut self, kind: u8, text: &str) -> u8 {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        self.0.extend_from_slice(&(text.len() as u16).to_be_bytes());
        self.octets(kind, text.as_bytes())
    }

    fn purpose(&mut self, purpose: &Purpose) -> u8 {
        match purpose {
            Purpose::Test(plan) => {
                self.0.push(purpose::TEST);
                self.plan(plan);
            }
            Purpose::Join { session, index } => {
                self.0.push(purpose::JOIN);
                self.u64(0, *session);
                self.octets(0, &index.to_be_bytes());
            }
            Purpose::Put => self.0.push(purpose::PUT),
            Purpose::Get { name } => {
                self.0.push(purpose::GET);
                self.text(0, name);
            }
            Purpose::Relay => self.0.push(purpose::RELAY),
        }
        kind::HELLO
    }

    fn plan(&mut self, plan: &Plan) {
        self.octets(0, &plan.streams.to_be_bytes());
        self.0.push(u8::from(plan.reverse));
        let (is_bytes, amount) = match plan.limit {
            Limit::Time(span) => (0, span.as_nanos()),
            Limit::Bytes(bytes) => (1, bytes),
        };
        self.0.push(is_bytes);
        self.u64(0, amount);
        self.u64(0, plan.interval.as_nanos());
        self.optional(plan.rate.map(Rate::bits_per_sec));
        self.0.push(u8::from(plan.controller.is_some()));
        if let Some(spec) = &plan.controller {
            self.text(0, &spec.name);
            let params = &spec.params[..spec.params.len().min(MAX_PARAMS)];
            self.0.push(params.len() as u8);
            for (name, value) in params {
                self.text(0, name);
                self.text(0, value);
            }
        }
    }

    fn offer(&mut self, offer: &Offer) -> u8 {
        self.text(0, &offer.name);
        self.optional(offer.bytes);
        self.0.push(u8::from(offer.modified.is_some()));
        let modified = offer.modified.unwrap_or_default();
        self.octets(0, &modified.seconds.to_be_bytes());
        self.octets(kind::OFFER, &modified.nanos.to_be_bytes())
    }

    fn samples(&mut self, samples: &[Sample]) -> u8 {
        let samples = &samples[..samples.len().min(MAX_STREAMS)];
        self.octets(0, &(samples.len() as u16).to_be_bytes());
        for sample in samples {
            self.u64(0, sample.at.as_nanos());
            self.u64(0, sample.bytes);
            self.u64(0, sample.retransmissions);
            self.u64(0, sample.cwnd_bytes);
            self.u64(0, sample.rtt.as_nanos());
            self.optional(sample.queueing_delay.map(Duration::as_nanos));
            self.0.push(u8::from(sample.is_queue_estimated));
        }
        kind::REPORT
    }
}

/// What is left of a body.
struct In<'a>(&'a [u8]);

impl In<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (octets, rest) = self.0.split_first_chunk().ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(*octets)
    }

    fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(|[octet]| octet)
    }

    fn switch(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Value),
        }
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    fn up_to(&mut self, most: u64) -> Result<u64, DecodeError> {
        self.u64().and_then(|number| if number <= most { Ok(number) } else { Err(DecodeError::Value) })
    }

    fn optional(&mut self) -> Result<Option<u64>, DecodeError> {
        let (is_there, number) = (self.switch()?, self.u64()?);
        if !is_there && number != 0 {
            return Err(DecodeError::Value);
        }
        Ok(is_there.then_some(number))
    }

    fn text(&mut self) -> Result<String, DecodeError> {
        let length = usize::from(self.u16()?);
        if length > MAX_TEXT_BYTES {
            return Err(DecodeError::Value);
        }
        let (octets, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Short)?;
        self.0 = rest;
        std::str::from_utf8(octets).map(str::to_owned).map_err(|_| DecodeError::Value)
    }

    fn purpose(&mut self) -> Result<Purpose, DecodeError> {
        Ok(match self.u8()? {
            purpose::TEST => Purpose::Test(self.plan()?),
            purpose::JOIN => Purpose::Join { session: self.u64()?, index: self.u16()? },
            purpose::PUT => Purpose::Put,
            purpose::GET => Purpose::Get { name: self.text()? },
            purpose::RELAY => Purpose::Relay,
            _ => return Err(DecodeError::Value),
        })
    }

    fn plan(&mut self) -> Result<Plan, DecodeError> {
        let (streams, reverse) = (self.u16()?, self.switch()?);
        let limit = match (self.switch()?, self.u64()?) {
            (false, nanos) => Limit::Time(Duration::from_nanos(nanos)),
            (true, bytes) => Limit::Bytes(bytes),
        };
        let interval = Duration::from_nanos(self.u64()?);
        let rate = self.optional()?.map(Rate::from_bits_per_sec);
        let controller = if self.switch()? { Some(self.controller()?) } else { None };
        Ok(Plan { streams, reverse, limit, interval, rate, controller })
    }

    fn controller(&mut self) -> Result<ControllerSpec, DecodeError> {
        let name = self.text()?;
        let count = usize::from(self.u8()?);
        if count > MAX_PARAMS {
            return Err(DecodeError::Value);
        }
        let params = (0..count).map(|_| Ok((self.text()?, self.text()?))).collect::<Result<_, _>>()?;
        Ok(ControllerSpec { name, params })
    }

    fn offer(&mut self) -> Result<Offer, DecodeError> {
        let (name, bytes) = (self.text()?, self.optional()?);
        let is_there = self.switch()?;
        let modified =
            Modified { seconds: i64::from_be_bytes(self.array()?), nanos: u32::from_be_bytes(self.array()?) };
        let is_sound = modified.nanos < 1_000_000_000 && (is_there || modified == Modified::default());
        if !is_sound {
            return Err(DecodeError::Value);
        }
        Ok(Offer { name, bytes, modified: is_there.then_some(modified) })
    }

    fn samples(&mut self) -> Result<Vec<Sample>, DecodeError> {
        let count = usize::from(self.u16()?);
        if count > MAX_STREAMS {
            return Err(DecodeError::Value);
        }
        (0..count).map(|_| self.sample()).collect()
    }

    fn sample(&mut self) -> Result<Sample, DecodeError> {
        Ok(Sample {
            at: Duration::from_nanos(self.u64()?),
            bytes: self.u64()?,
            retransmissions: self.u64()?,
            cwnd_bytes: self.u64()?,
            rtt: Duration::from_nanos(self.u64()?),
            queueing_delay: self.optional()?.map(Duration::from_nanos),
            is_queue_estimated: self.switch()?,
        })
    }
}
