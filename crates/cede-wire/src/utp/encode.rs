//! Headers and extensions to octets.

use super::{HEADER_BYTES, Header, Packet, VERSION};
use crate::Head;
use alloc::vec::Vec;

impl Header {
    /// The fixed header alone, `first_extension` announcing what follows it.
    #[inline]
    #[must_use]
    pub fn to_bytes(&self, first_extension: u8) -> [u8; HEADER_BYTES] {
        let mut octets = [0; HEADER_BYTES];
        octets[0] = (self.kind as u8) << 4 | VERSION;
        octets[1] = first_extension;
        octets[2..4].copy_from_slice(&self.connection_id.to_be_bytes());
        octets[4..8].copy_from_slice(&self.timestamp_us.to_be_bytes());
        octets[8..12].copy_from_slice(&self.timestamp_difference_us.to_be_bytes());
        octets[12..16].copy_from_slice(&self.window_bytes.to_be_bytes());
        octets[16..18].copy_from_slice(&self.seq.0.to_be_bytes());
        octets[18..20].copy_from_slice(&self.ack.0.to_be_bytes());
        octets
    }

    /// Header and extensions, each given as its kind and body.
    ///
    /// `None` where they do not fit a [`Head`], or cannot be written at all: a body of more than 255 octets, or
    /// kind 0, which ends a chain.
    #[inline]
    #[must_use]
    pub fn encode(&self, extensions: &[(u8, &[u8])]) -> Option<Head> {
        let first = extensions.first().map_or(0, |&(kind, _)| kind);
        let mut head = Head::new(&self.to_bytes(first))?;
        if !extensions.is_empty() {
            put_chain(extensions.iter().copied(), |octets| head.push(octets))?;
        }
        Some(head)
    }

    /// Appends header, extensions and payload to `out`, of whatever length.
    ///
    /// `None`, and `out` as it was, where an extension cannot be written: a body of more than 255 octets, or kind 0.
    pub fn encode_into(&self, extensions: &[(u8, &[u8])], payload: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        let first = extensions.first().map_or(0, |&(kind, _)| kind);
        out.extend_from_slice(&self.to_bytes(first));
        let written = put_chain(extensions.iter().copied(), |octets| {
            out.extend_from_slice(octets);
            Some(())
        });
        match written {
            Some(()) => out.extend_from_slice(payload),
            None => out.truncate(start),
        }
        written
    }
}

impl Packet<'_> {
    /// The packet's octets. What decoded encodes to the octets that it came from.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let extensions: Vec<(u8, &[u8])> = self.extensions.iter().map(|e| (e.kind, e.body)).collect();
        let mut octets = Vec::new();
        // A decoded chain has neither kind 0 nor long bodies, so there is nothing to refuse.
        let _ = self.header.encode_into(&extensions, self.payload, &mut octets);
        octets
    }
}

/// Writes each extension behind the kind of its successor, as the chain wants it.
fn put_chain<'e>(
    extensions: impl Iterator<Item = (u8, &'e [u8])>,
    mut push: impl FnMut(&[u8]) -> Option<()>,
) -> Option<()> {
    let mut rest = extensions.peekable();
    while let Some((kind, body)) = rest.next() {
        let len = u8::try_from(body.len()).ok()?;
        let next = rest.peek().map_or(0, |&(kind, _)| kind);
        if kind == 0 {
            return None;
        }
        push(&[next, len])?;
        push(body)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::utp::{EXT_CLOSE_REASON, EXT_SELECTIVE_ACK, Kind, close_reason_body};
    use cede_units::Seq16;

    const HEADER: Header = Header {
        kind: Kind::Fin,
        connection_id: 1,
        timestamp_us: 2,
        timestamp_difference_us: 3,
        window_bytes: 4,
        seq: Seq16(5),
        ack: Seq16(6),
    };

    #[test]
    fn a_mask_of_256_packets_and_a_close_reason_fit_a_head() {
        let reason = close_reason_body(285);
        let head = HEADER.encode(&[(EXT_SELECTIVE_ACK, &[0xa5; 32]), (EXT_CLOSE_REASON, &reason)]).unwrap();
        let packet = Packet::decode(&head).unwrap();
        assert_eq!(packet.header, HEADER);
        assert_eq!(packet.extensions.selective_ack().unwrap().as_bytes(), [0xa5; 32]);
        assert_eq!(packet.extensions.close_reason(), Some(285));
        assert!(packet.payload.is_empty());
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        assert_eq!(HEADER.encode(&[(0, &[])]), None);
        assert_eq!(HEADER.encode(&[(EXT_SELECTIVE_ACK, &[0; 43])]), None);
        let mut out = alloc::vec![7];
        assert_eq!(HEADER.encode_into(&[(9, &[0; 256])], &[], &mut out), None);
        assert_eq!(HEADER.encode_into(&[(9, &[]), (0, &[])], &[], &mut out), None);
        assert_eq!(out, [7]);
        assert_eq!(HEADER.encode_into(&[(9, &[0; 255])], &[1, 2], &mut out), Some(()));
        assert_eq!(out.len(), 1 + 20 + 257 + 2);
    }
}
