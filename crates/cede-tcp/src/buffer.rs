//! Written data that has not been sent yet.

use crate::payloads::Payloads;
use cede_wire::Payload;

/// A queue of payloads, from whose front segments are cut.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendBuffer {
    chunks: Payloads,
    bytes: u64,
}

impl SendBuffer {
    /// Octets waiting.
    pub(crate) const fn len(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Appends `payload`, joined to the last one where that costs no copy.
    pub(crate) fn push(&mut self, payload: Payload) {
        self.bytes += u64::from(payload.len());
        self.chunks.push(payload);
    }

    /// Takes the first `n` octets, or all where there are fewer. Only where small writes lie in different buffers are
    /// they copied into one.
    pub(crate) fn cut(&mut self, n: u32) -> Payload {
        let mut payload = Payload::Empty;
        while payload.len() < n {
            let Some(piece) = self.chunks.pop_up_to(n - payload.len()) else { break };
            self.bytes -= u64::from(piece.len());
            payload = payload.joined(piece);
        }
        payload
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_stays_one_chunk_however_it_is_written() {
        let mut buffer = SendBuffer::default();
        for i in 0..10 {
            buffer.push(Payload::Pattern { start: 100 * i, len: 100 });
        }
        assert_eq!((buffer.len(), buffer.chunks.len()), (1000, 1));
        assert_eq!(buffer.cut(250).len(), 250);
        assert_eq!(buffer.cut(2000).to_vec(), Payload::Pattern { start: 250, len: 750 }.to_vec());
        assert!(buffer.is_empty());
    }

    #[test]
    fn small_writes_are_gathered_into_full_segments() {
        let mut buffer = SendBuffer::default();
        for octets in [b"abc".as_slice(), b"", b"de", b"fgh"] {
            buffer.push(Payload::copy_from(octets));
        }
        assert_eq!(buffer.cut(6).to_vec(), b"abcdef");
        assert_eq!(buffer.cut(6).to_vec(), b"gh");
        assert!(buffer.cut(1).is_empty());
    }
}
