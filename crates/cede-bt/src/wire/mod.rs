//! What peers say to each other over a byte stream.
//!
//! Source: BEP 3 (messages 0 to 8), BEP 5 (9), BEP 6 (13 to 17), BEP 10 (20), BEP 52 (21 to 23). Integers are big-endian.
//!
//! The decoder hands the octets of a block on as they come, so that a block needs no memory here; everything else is
//! gathered until it is whole, within limits.
//!
//! **How it was validated.** The vectors of BEP 3 and BEP 6 and round trips, in any cut, below and in `tests/`.

mod decode;
mod error;
mod handshake;
mod message;

pub use decode::{Decoder, Item, WireLimits};
pub use error::WireError;
pub use handshake::{HANDSHAKE_BYTES, HANDSHAKE_HEAD_BYTES, Handshake, PROTOCOL, Reserved};
pub use message::{BlockRef, HashRange, Message, PIECE_HEADER_BYTES, id, piece_header};
