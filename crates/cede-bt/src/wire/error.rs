//! What makes a stream unreadable.

use core::fmt;

/// Why a stream cannot be read on. The connection is to be closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireError {
    /// It does not begin as BitTorrent does.
    NotBitTorrent,
    /// A message is longer than allowed.
    TooLong {
        /// The message's id.
        id: u8,
        /// Octets that it claims to have.
        len: u32,
    },
    /// A message has a length that its kind cannot have.
    BadLength {
        /// The message's id.
        id: u8,
        /// Octets that it claims to have.
        len: u32,
    },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBitTorrent => f.write_str("the peer does not speak BitTorrent"),
            Self::TooLong { id, len } => write!(f, "a message {id} of {len} octets is too long"),
            Self::BadLength { id, len } => write!(f, "a message {id} cannot have {len} octets"),
        }
    }
}

impl core::error::Error for WireError {}
