//! What a conversation begins with, in the clear or under a key: what nothing else begins with, and the version.

use crate::message;
use std::time::Duration;

/// What nobody else begins with: no text, no BitTorrent handshake, and nothing that survives a change of line ends.
pub const MAGIC: [u8; 8] = *b"\xcecede\r\n\x1a";
/// What a sealed conversation begins with, in each direction.
pub const SEALED_MAGIC: [u8; 8] = *b"\xceseal\r\n\x1a";
/// The version of the handshake and the records of a sealed one.
pub const SEALED_VERSION: u16 = 1;
/// How long the other side may take to greet.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// Who says nothing for so long is gone. uTP itself notices only where it has something to send.
pub const SILENCE: Duration = Duration::from_secs(30);

pub(crate) const OPENING_BYTES: usize = MAGIC.len() + 2;

fn beginning(magic: [u8; MAGIC.len()], version: u16) -> [u8; OPENING_BYTES] {
    let mut octets = [0; OPENING_BYTES];
    octets[..magic.len()].copy_from_slice(&magic);
    octets[magic.len()..].copy_from_slice(&version.to_be_bytes());
    octets
}

/// In the clear.
pub(crate) fn greeting() -> [u8; OPENING_BYTES] {
    beginning(MAGIC, message::VERSION)
}

/// Under a key.
pub(crate) fn sealed() -> [u8; OPENING_BYTES] {
    beginning(SEALED_MAGIC, SEALED_VERSION)
}
