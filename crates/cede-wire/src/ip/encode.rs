//! Whole packets from a transport's head and payload.

use super::{Checksum, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, PROTOCOL_TCP, PROTOCOL_UDP, UDP_HEADER_BYTES};
use crate::Payload;
use crate::tcp::HEADER_BYTES as TCP_HEADER_BYTES;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// From where to where, both of one family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Addresses {
    /// IPv4.
    V4 {
        /// The sender.
        source: Ipv4Addr,
        /// The receiver.
        destination: Ipv4Addr,
    },
    /// IPv6.
    V6 {
        /// The sender.
        source: Ipv6Addr,
        /// The receiver.
        destination: Ipv6Addr,
    },
}

impl Addresses {
    /// `None` where the families differ.
    #[must_use]
    pub const fn new(source: IpAddr, destination: IpAddr) -> Option<Self> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Some(Self::V4 { source, destination }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Some(Self::V6 { source, destination }),
            _ => None,
        }
    }

    /// The sender.
    #[must_use]
    pub const fn source(&self) -> IpAddr {
        match *self {
            Self::V4 { source, .. } => IpAddr::V4(source),
            Self::V6 { source, .. } => IpAddr::V6(source),
        }
    }

    /// The receiver.
    #[must_use]
    pub const fn destination(&self) -> IpAddr {
        match *self {
            Self::V4 { destination, .. } => IpAddr::V4(destination),
            Self::V6 { destination, .. } => IpAddr::V6(destination),
        }
    }

    const fn header_bytes(&self) -> usize {
        match self {
            Self::V4 { .. } => IPV4_HEADER_BYTES,
            Self::V6 { .. } => IPV6_HEADER_BYTES,
        }
    }
}

/// What the IP header says beside length, protocol and checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// From where to where.
    pub addresses: Addresses,
    /// Differentiated services (upper six bits) and ECN (lower two).
    pub traffic_class: u8,
    /// How many routers the packet may pass: "time to live" in IPv4.
    pub hop_limit: u8,
    /// IPv4's identification; IPv6 has none.
    pub identification: u16,
    /// IPv4's "don't fragment"; IPv6 never does.
    pub dont_fragment: bool,
}

/// Why a packet cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EncodeError {
    /// More octets than the length fields can say.
    TooLong,
    /// The head is no TCP header.
    ShortHead,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "more octets than an IP packet holds"),
            Self::ShortHead => write!(f, "shorter than a TCP header of {TCP_HEADER_BYTES} octets"),
        }
    }
}

impl core::error::Error for EncodeError {}

impl Envelope {
    /// An envelope as hosts commonly send it: 64 hops, best effort, not to be fragmented.
    #[must_use]
    pub const fn new(addresses: Addresses) -> Self {
        Self { addresses, traffic_class: 0, hop_limit: 64, identification: 0, dont_fragment: true }
    }

    /// Appends an IP packet to `out` that carries `head` and `payload` over UDP, checksums included.
    ///
    /// # Errors
    /// [`EncodeError::TooLong`], and `out` as it was.
    pub fn put_udp(
        &self,
        source_port: u16,
        destination_port: u16,
        head: &[u8],
        payload: &Payload,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let len = UDP_HEADER_BYTES + head.len() + payload.len() as usize;
        let len16 = u16::try_from(len).map_err(|_| EncodeError::TooLong)?;
        self.put_header(PROTOCOL_UDP, len, out)?;
        let start = out.len();
        for field in [source_port, destination_port, len16, 0] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        put_body(head, payload, out);
        let checksum = match self.transport_checksum(PROTOCOL_UDP, &out[start..]) {
            // Zero would say that there is no checksum (RFC 768).
            0 => 0xffff,
            checksum => checksum,
        };
        out[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
        Ok(())
    }

    /// Appends an IP packet to `out` that carries the TCP segment of `head` and `payload`. The checksum in `head` is
    /// replaced by the right one.
    ///
    /// # Errors
    /// [`EncodeError`], and `out` as it was.
    pub fn put_tcp(&self, head: &[u8], payload: &Payload, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if head.len() < TCP_HEADER_BYTES {
            return Err(EncodeError::ShortHead);
        }
        self.put_header(PROTOCOL_TCP, head.len() + payload.len() as usize, out)?;
        let start = out.len();
        put_body(head, payload, out);
        out[start + 16..start + 18].fill(0);
        let checksum = self.transport_checksum(PROTOCOL_TCP, &out[start..]);
        out[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
        Ok(())
    }

    /// Appends the IP header of a packet with `len` octets behind it.
    fn put_header(&self, protocol: u8, len: usize, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        // The length field counts the header in IPv4 and leaves it out in IPv6.
        let counted = match self.addresses {
            Addresses::V4 { .. } => len + IPV4_HEADER_BYTES,
            Addresses::V6 { .. } => len,
        };
        let counted = u16::try_from(counted).map_err(|_| EncodeError::TooLong)?;
        out.reserve(self.addresses.header_bytes() + len);
        match self.addresses {
            Addresses::V4 { source, destination } => {
                out.extend_from_slice(&self.v4_header(source, destination, protocol, counted));
            }
            Addresses::V6 { source, destination } => {
                out.extend_from_slice(&self.v6_header(source, destination, protocol, counted));
            }
        }
        Ok(())
    }

    /// RFC 791, section 3.1.
    fn v4_header(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: u8,
        total_len: u16,
    ) -> [u8; IPV4_HEADER_BYTES] {
        let mut octets = [0; IPV4_HEADER_BYTES];
        octets[0] = 0x45;
        octets[1] = self.traffic_class;
        octets[2..4].copy_from_slice(&total_len.to_be_bytes());
        octets[4..6].copy_from_slice(&self.identification.to_be_bytes());
        octets[6] = u8::from(self.dont_fragment) << 6;
        octets[8] = self.hop_limit;
        octets[9] = protocol;
        octets[12..16].copy_from_slice(&source.octets());
        octets[16..20].copy_from_slice(&destination.octets());
        let checksum = Checksum::ZERO.with(&octets).finish();
        octets[10..12].copy_from_slice(&checksum.to_be_bytes());
        octets
    }

    /// RFC 8200, section 3; the flow label stays zero.
    fn v6_header(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        protocol: u8,
        payload_len: u16,
    ) -> [u8; IPV6_HEADER_BYTES] {
        let mut octets = [0; IPV6_HEADER_BYTES];
        octets[0] = 0x60 | self.traffic_class >> 4;
        octets[1] = self.traffic_class << 4;
        octets[4..6].copy_from_slice(&payload_len.to_be_bytes());
        octets[6] = protocol;
        octets[7] = self.hop_limit;
        octets[8..24].copy_from_slice(&source.octets());
        octets[24..40].copy_from_slice(&destination.octets());
        octets
    }

    fn transport_checksum(&self, protocol: u8, octets: &[u8]) -> u16 {
        let (source, destination) = (self.addresses.source(), self.addresses.destination());
        Checksum::ZERO
            .with_pseudo_header(source, destination, protocol, octets.len() as u32)
            .with(octets)
            .finish()
    }
}

fn put_body(head: &[u8], payload: &Payload, out: &mut Vec<u8>) {
    out.extend_from_slice(head);
    let start = out.len();
    out.resize(start + payload.len() as usize, 0);
    payload.copy_to(&mut out[start..]);
}
