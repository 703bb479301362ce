//! UDP datagrams (RFC 768).

use super::{ParseError, UDP_HEADER_BYTES};

/// A UDP datagram, borrowed from the octets that it came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The checksum as it stands there; zero for none.
    pub checksum: u16,
    /// Octets of the payload on the wire.
    pub payload_len: usize,
    /// The payload, as far as it was captured.
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Reads a datagram from the payload of an IP packet that is no later fragment.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] for fewer octets than a header, [`ParseError::Length`] for a length field below it.
    pub fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        Self::parse_of(octets, octets.len())
    }

    /// As [`Self::parse`], of which a capture may hold less than the octets that were there: their number is the datagram's length if its header
    /// leaves that open.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_of(octets: &'a [u8], original_len: usize) -> Result<Self, ParseError> {
        let (header, rest) = octets.split_first_chunk::<UDP_HEADER_BYTES>().ok_or(ParseError::Truncated)?;
        let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let payload_len = match field(4) {
            // A jumbogram (RFC 2675, section 4), or a capture before segmentation.
            0 => original_len.max(octets.len()) - UDP_HEADER_BYTES,
            len => usize::from(len).checked_sub(UDP_HEADER_BYTES).ok_or(ParseError::Length(len))?,
        };
        Ok(Self {
            source_port: field(0),
            destination_port: field(2),
            checksum: field(6),
            payload_len,
            payload: &rest[..rest.len().min(payload_len)],
        })
    }
}
