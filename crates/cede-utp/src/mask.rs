//! Buffers for masks that are too long for a head.
//!
//! A mask of up to 252 octets leaves behind the head, where a packet has its payload, so that heads stay small. Who sends
//! the packet holds the buffer until it has left, which on a socket is at once: a few buffers then serve all masks.
//!
//! A mask begins at the gap and reaches 2016 packets far. Where more are under way, whoever is beyond it would be told of
//! only when the gap has moved on, a round trip or many later. Peers that have said that they take windows of more packets,
//! which are Cede's own, are therefore told behind the mask, in an extension of our own (`EXT_FAR_ACK`), what has arrived
//! since the last STATE: the place of the first bit (16 bits; zero would be that of the mask's) and a mask from there on, as the
//! first block of TCP's selective acknowledgements always tells the newest (RFC 2018 section 4).

use alloc::sync::Arc;
use alloc::vec::Vec;
use cede_wire::Payload;

/// Octets of the longest mask: of what an extension's octet of length can say, the largest multiple of four. It tells
/// of 2016 packets.
pub(crate) const MAX_MASK_BYTES: usize = 252;
/// What a far mask has before it: the header of its extension and the place of its first bit.
pub(crate) const FAR_HEAD_BYTES: usize = 4;
/// Buffers kept. In a simulated world, where packets hold them until they arrive, more are made as they are needed, and
/// forgotten.
const KEPT: usize = 4;

/// A few buffers, which are given back with what they are for.
#[derive(Debug, Default)]
pub(crate) struct MaskBuffers {
    kept: Vec<Arc<[u8]>>,
    /// The one that was lent longest ago: the likeliest to be free.
    oldest: usize,
}

impl MaskBuffers {
    /// A mask, as `write` writes it; it returns its length.
    pub fn write(&mut self, write: impl FnOnce(&mut [u8]) -> usize) -> Payload {
        let buffer = self.free();
        // It is nobody else's.
        let len = Arc::get_mut(buffer).map_or(0, write);
        Payload::from_part(buffer, 0, len as u32)
    }

    /// A buffer that nobody else holds.
    fn free(&mut self) -> &mut Arc<[u8]> {
        if self.kept.len() < KEPT {
            self.kept.push(new_buffer());
            return self.kept.last_mut().expect("one was just put there");
        }
        let place = self.oldest;
        self.oldest = (place + 1) % KEPT;
        let buffer = &mut self.kept[place];
        if Arc::get_mut(buffer).is_none() {
            *buffer = new_buffer();
        }
        buffer
    }
}

fn new_buffer() -> Arc<[u8]> {
    Arc::from([0; MAX_MASK_BYTES + FAR_HEAD_BYTES + MAX_MASK_BYTES])
}
