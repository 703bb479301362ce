//! IPv4, IPv6 and UDP, as far as packets of ours and captures of others need them.
//!
//! Sources: RFC 791 section 3.1 (IPv4), RFC 8200 sections 3 and 4 (IPv6), RFC 768 (UDP), RFC 1071 (the Internet
//! checksum), RFC 9293 section 3.1 and RFC 8200 section 8.1 (the pseudo-headers).
//!
//! **What it leaves out.** Reassembly: a fragment is recognised and handed on as such. IP options are skipped, never
//! written. IPv6 jumbograms and the encapsulating security header end the chain of headers.
//!
//! **How it was validated.** Wireshark finds no fault in lengths and checksums of what is written
//! (`tests/tshark.rs`); recorded packets parse with good checksums (`tests/captures.rs`); arbitrary octets never panic
//! (`tests/fuzz.rs`).

mod checksum;
mod encode;
mod parse;
mod udp;

pub use checksum::Checksum;
pub use encode::{Addresses, EncodeError, Envelope};
pub use parse::{Fragment, Packet, ParseError};
pub use udp::Datagram;

/// The protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;
/// The protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

/// Octets of an IPv4 header without options.
pub const IPV4_HEADER_BYTES: usize = 20;
/// Octets of the fixed IPv6 header.
pub const IPV6_HEADER_BYTES: usize = 40;
/// Octets of a UDP header.
pub const UDP_HEADER_BYTES: usize = 8;

/// The big-endian number at `at`, if it is there.
pub(crate) fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    octets.get(at..)?.first_chunk().map(|&pair| u16::from_be_bytes(pair))
}
