//! IP packets as captures hold them: perhaps cut short, padded, or in fragments.

use super::{Checksum, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, PROTOCOL_TCP, PROTOCOL_UDP, u16_at};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which part of a larger packet this is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fragment {
    /// Octets of the larger packet before this part.
    pub offset_bytes: u32,
    /// More parts follow.
    pub more: bool,
    /// The number that the parts share.
    pub identification: u32,
}

/// An IP packet, borrowed from the octets that it came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The sender.
    pub source: IpAddr,
    /// The receiver.
    pub destination: IpAddr,
    /// What the payload is, see [`PROTOCOL_TCP`] and [`PROTOCOL_UDP`]: the number behind the last header that was skipped, an extension
    /// of IPv6 or one of authentication.
    pub protocol: u8,
    /// Differentiated services (upper six bits) and ECN (lower two).
    pub traffic_class: u8,
    /// Routers that the packet may still pass.
    pub hop_limit: u8,
    /// IPv4's "don't fragment"; true in IPv6.
    pub dont_fragment: bool,
    /// Set where this is a part of a larger packet.
    pub fragment: Option<Fragment>,
    /// Octets of the payload on the wire.
    pub payload_len: usize,
    /// The payload, as far as it was captured; octets behind the packet's own length are left off.
    pub payload: &'a [u8],
    header: &'a [u8],
}

/// Why octets are no IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ParseError {
    /// A header goes on beyond the octets that are there.
    Truncated,
    /// Neither version 4 nor 6.
    Version(u8),
    /// A length field speaks of fewer octets than its own header has.
    Length(u16),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "cut off within a header"),
            Self::Version(version) => write!(f, "IP version {version} is neither 4 nor 6"),
            Self::Length(length) => write!(f, "a length of {length} octets is less than its header's"),
        }
    }
}

impl core::error::Error for ParseError {}

impl<'a> Packet<'a> {
    /// Reads an IP packet of either version.
    ///
    /// # Errors
    /// [`ParseError`]; a packet whose payload alone is cut short is none.
    pub fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        Self::parse_of(octets, octets.len())
    }

    /// As [`Self::parse`], where a capture may hold less than the octets that were there: their number is the packet's length if its header
    /// leaves that open, as it does where a network card is to cut it up, and in jumbograms.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_of(octets: &'a [u8], original_len: usize) -> Result<Self, ParseError> {
        let original_len = original_len.max(octets.len());
        match octets.first().ok_or(ParseError::Truncated)? >> 4 {
            4 => parse_v4(octets, original_len),
            6 => parse_v6(octets, original_len),
            version => Err(ParseError::Version(version)),
        }
    }

    /// True where the capture holds less than was on the wire.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.payload.len() < self.payload_len
    }

    /// Whether the checksum of the IPv4 header is right; `None` in IPv6, which has none.
    #[must_use]
    pub fn header_checksum_is_right(&self) -> Option<bool> {
        self.source.is_ipv4().then(|| Checksum::ZERO.with(self.header).finish() == 0)
    }

    /// Whether the checksum of the TCP segment or UDP datagram is right; `None` where that cannot be known: the
    /// capture is cut short, the packet is a fragment or of another protocol, or UDP goes without a checksum.
    #[must_use]
    pub fn transport_checksum_is_right(&self) -> Option<bool> {
        if self.is_truncated() || self.fragment.is_some() {
            return None;
        }
        let is_covered = match self.protocol {
            PROTOCOL_TCP => true,
            PROTOCOL_UDP => u16_at(self.payload, 6)? != 0,
            _ => false,
        };
        let sum = || {
            let len = self.payload.len() as u32;
            Checksum::ZERO
                .with_pseudo_header(self.source, self.destination, self.protocol, len)
                .with(self.payload)
        };
        is_covered.then(|| sum().finish() == 0)
    }
}

/// The first `len` octets of `rest`, or all that there are.
fn at_most(rest: &[u8], len: usize) -> &[u8] {
    &rest[..rest.len().min(len)]
}

/// RFC 791, section 3.1.
fn parse_v4(octets: &[u8], original_len: usize) -> Result<Packet<'_>, ParseError> {
    let fixed = octets.first_chunk::<IPV4_HEADER_BYTES>().ok_or(ParseError::Truncated)?;
    let header_len = usize::from(fixed[0] & 0x0f) * 4;
    if header_len < IPV4_HEADER_BYTES {
        return Err(ParseError::Length(header_len as u16));
    }
    let (header, rest) = octets.split_at_checked(header_len).ok_or(ParseError::Truncated)?;
    let payload_len = match u16::from_be_bytes([fixed[2], fixed[3]]) {
        // A capture taken before the network card cut a large send into packets.
        0 => original_len - header_len,
        total => usize::from(total).checked_sub(header_len).ok_or(ParseError::Length(total))?,
    };
    let flags_and_offset = u16::from_be_bytes([fixed[6], fixed[7]]);
    let fragment = v4_fragment(flags_and_offset, u16::from_be_bytes([fixed[4], fixed[5]]));
    let payload = at_most(rest, payload_len);
    let upper = skip_authentication(Upper { protocol: fixed[9], len: payload_len, payload, fragment })?;
    Ok(Packet {
        source: IpAddr::V4(Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15])),
        destination: IpAddr::V4(Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19])),
        protocol: upper.protocol,
        traffic_class: fixed[1],
        hop_limit: fixed[8],
        dont_fragment: flags_and_offset & 0x4000 != 0,
        fragment: upper.fragment,
        payload_len: upper.len,
        payload: upper.payload,
        header,
    })
}

/// RFC 4302, of which IPv4 has no more than one; behind the header of a later fragment stands the middle of a payload.
fn skip_authentication(upper: Upper<'_>) -> Result<Upper<'_>, ParseError> {
    if upper.protocol == AUTHENTICATION && upper.fragment.is_none_or(|fragment| fragment.offset_bytes == 0) {
        let len = upper.extension_len(AUTHENTICATION_UNITS)?;
        upper.behind(len)
    } else {
        Ok(upper)
    }
}

fn v4_fragment(flags_and_offset: u16, identification: u16) -> Option<Fragment> {
    let (more, units) = (flags_and_offset & 0x2000 != 0, flags_and_offset & 0x1fff);
    (more || units != 0).then(|| Fragment {
        offset_bytes: u32::from(units) * 8,
        more,
        identification: u32::from(identification),
    })
}

/// RFC 8200, section 3.
fn parse_v6(octets: &[u8], original_len: usize) -> Result<Packet<'_>, ParseError> {
    let (fixed, rest) = octets.split_first_chunk::<IPV6_HEADER_BYTES>().ok_or(ParseError::Truncated)?;
    let declared = match u16::from_be_bytes([fixed[4], fixed[5]]) {
        // Offloading or a jumbogram: the packet is what was there.
        0 => original_len - IPV6_HEADER_BYTES,
        len => usize::from(len),
    };
    let upper = skip_extensions(fixed[6], at_most(rest, declared), declared)?;
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&fixed[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    Ok(Packet {
        source: address(8),
        destination: address(24),
        protocol: upper.protocol,
        traffic_class: fixed[0] << 4 | fixed[1] >> 4,
        hop_limit: fixed[7],
        dont_fragment: true,
        fragment: upper.fragment,
        payload_len: upper.len,
        payload: upper.payload,
        header: fixed,
    })
}

const FRAGMENT: u8 = 44;
/// RFC 4302: its number, and the octets in which it tells its length, and how many such units it does not count.
const AUTHENTICATION: u8 = 51;
const AUTHENTICATION_UNITS: (usize, usize) = (4, 2);

/// What stands behind headers that were skipped.
struct Upper<'a> {
    protocol: u8,
    len: usize,
    payload: &'a [u8],
    fragment: Option<Fragment>,
}

impl<'a> Upper<'a> {
    /// Of the header that comes next.
    fn extension_len(&self, (unit, extra): (usize, usize)) -> Result<usize, ParseError> {
        self.payload.get(1).map(|&n| (usize::from(n) + extra) * unit).ok_or(ParseError::Truncated)
    }

    /// What follows that, which has so many octets.
    fn behind(self, len: usize) -> Result<Self, ParseError> {
        let (header, payload) = self.payload.split_at_checked(len).ok_or(ParseError::Truncated)?;
        let fragment = if self.protocol == FRAGMENT { v6_fragment(header) } else { self.fragment };
        Ok(Self { protocol: header[0], len: self.len - len, payload, fragment })
    }
}

/// RFC 8200, section 4: hop-by-hop options, routing, fragment, destination options; RFC 4302: authentication.
fn skip_extensions(first: u8, rest: &[u8], declared: usize) -> Result<Upper<'_>, ParseError> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const DESTINATION: u8 = 60;
    const UNITS: (usize, usize) = (8, 1);
    let mut upper = Upper { protocol: first, len: declared, payload: rest, fragment: None };
    loop {
        // Behind the header of a later fragment stands the middle of a payload.
        if upper.fragment.is_some_and(|fragment| fragment.offset_bytes != 0) {
            return Ok(upper);
        }
        let len = match upper.protocol {
            HOP_BY_HOP | ROUTING | DESTINATION => upper.extension_len(UNITS)?,
            AUTHENTICATION => upper.extension_len(AUTHENTICATION_UNITS)?,
            FRAGMENT => 8,
            _ => return Ok(upper),
        };
        upper = upper.behind(len)?;
    }
}

/// RFC 8200, section 4.5. A packet sent whole behind a fragment header (RFC 6946) is no fragment.
fn v6_fragment(header: &[u8]) -> Option<Fragment> {
    let offset_and_more = u16_at(header, 2)?;
    let identification = u32::from_be_bytes(*header.get(4..)?.first_chunk()?);
    let (offset, more) = (offset_and_more & 0xfff8, offset_and_more & 1 != 0);
    (more || offset != 0).then(|| Fragment { offset_bytes: u32::from(offset), more, identification })
}
