//! uTP packets: a header of 20 octets, a chain of extensions, the payload.
//!
//! Source: BEP 29, "Header format" and "Selective ACK", and what libutp and libtorrent put on the wire where the text
//! is silent: close reasons (extension 3), masks of any length, chains of several extensions. Numbers are big-endian.
//!
//! **What it leaves out.** The meaning of every field, and with it all rules about sequence numbers, connection ids
//! and windows; the 23-octet header of version 0, which no living implementation sends.
//!
//! **How it was validated.** Packets recorded from libutp and libtorrent decode to their known fields and encode to the
//! same octets (`tests/utp_vectors.rs`, `tests/captures.rs`); arbitrary octets never panic, and what decodes survives
//! the way back (`tests/fuzz.rs`).

mod encode;
mod extension;
mod view;

pub use extension::{
    EXT_BITS, EXT_CLOSE_REASON, EXT_FAR_ACK, EXT_PADDING, EXT_PART, EXT_SELECTIVE_ACK, Extension, Extensions,
    SelectiveAck, close_reason_body, part_body,
};
pub use view::View;

use cede_units::Seq16;
use core::fmt;

/// Octets of the fixed header.
pub const HEADER_BYTES: usize = 20;

/// The only version of the protocol that is spoken.
pub const VERSION: u8 = 1;

/// What a packet is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Payload; takes a sequence number.
    Data = 0,
    /// The end of the sender's stream; takes a sequence number.
    Fin = 1,
    /// An acknowledgement alone; takes no sequence number.
    State = 2,
    /// The connection is refused or unknown.
    Reset = 3,
    /// Opens a connection; takes a sequence number.
    Syn = 4,
}

impl Kind {
    /// The kind with this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Data),
            1 => Some(Self::Fin),
            2 => Some(Self::State),
            3 => Some(Self::Reset),
            4 => Some(Self::Syn),
            _ => None,
        }
    }
}

/// The fixed header, without the number of the first extension, which belongs to the chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What the packet is for.
    pub kind: Kind,
    /// The connection, as its receiver (for a SYN: its sender) numbers it.
    pub connection_id: u16,
    /// The sender's clock when it sent the packet, in microseconds modulo 2^32.
    pub timestamp_us: u32,
    /// The sender's clock less the timestamp of the packet that it received last, in microseconds modulo 2^32; zero
    /// where it has none.
    pub timestamp_difference_us: u32,
    /// Free room in the sender's receive buffer, in octets.
    pub window_bytes: u32,
    /// The packet's number.
    pub seq: Seq16,
    /// The last number that the sender received in order.
    pub ack: Seq16,
}

/// A packet of sound form, borrowed from the octets that it came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The fixed header.
    pub header: Header,
    /// The chain of extensions, every one of them whole.
    pub extensions: Extensions<'a>,
    /// What follows the chain.
    pub payload: &'a [u8],
}

/// Why octets are no uTP packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DecodeError {
    /// Fewer octets than the fixed header has.
    ShortHeader,
    /// A version other than 1.
    Version(u8),
    /// A kind beyond SYN.
    Kind(u8),
    /// An extension is announced, but its two octets of kind and length are not there.
    TruncatedExtensionHeader,
    /// An extension is longer than what is left of the packet.
    ExtensionOverrun,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShortHeader => write!(f, "shorter than the header of {HEADER_BYTES} octets"),
            Self::Version(version) => write!(f, "version {version}, where {VERSION} is the only one"),
            Self::Kind(kind) => write!(f, "unknown packet kind {kind}"),
            Self::TruncatedExtensionHeader => write!(f, "an announced extension is missing"),
            Self::ExtensionOverrun => write!(f, "an extension is longer than the packet"),
        }
    }
}

impl core::error::Error for DecodeError {}

impl<'a> Packet<'a> {
    /// Reads a packet; unknown extensions are kept and skipped, a chain that does not fit refuses the whole packet.
    ///
    /// # Errors
    /// What is wrong with the form; see [`DecodeError`].
    #[inline]
    pub fn decode(octets: &'a [u8]) -> Result<Self, DecodeError> {
        let (fixed, rest) = octets.split_first_chunk::<HEADER_BYTES>().ok_or(DecodeError::ShortHeader)?;
        let header = Header::read(fixed)?;
        let (extensions, payload) = Extensions::split_from(fixed[1], rest)?;
        Ok(Self { header, extensions, payload })
    }
}

impl Header {
    #[inline]
    fn read(octets: &[u8; HEADER_BYTES]) -> Result<Self, DecodeError> {
        let version = octets[0] & 0x0f;
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let number = octets[0] >> 4;
        let fields = View::of(octets);
        Ok(Self {
            kind: Kind::from_number(number).ok_or(DecodeError::Kind(number))?,
            connection_id: fields.connection_id(),
            timestamp_us: fields.timestamp_us(),
            timestamp_difference_us: fields.timestamp_difference_us(),
            window_bytes: fields.window_bytes(),
            seq: fields.seq(),
            ack: fields.ack(),
        })
    }
}
