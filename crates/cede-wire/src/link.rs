//! Link-layer headers in front of IP packets.
//!
//! Source: the registry of link types (draft-ietf-opsawg-pcaplinktype), IEEE 802.1Q for VLAN tags, RFC 1042 for IP behind logical link
//! control, RFC 2516 for PPPoE, RFC 1661 and 1662 for PPP, RFC 3032 for MPLS.
//!
//! **What it leaves out.** Link types other than those named here, and everything on a link that is not IP: pseudowires over MPLS
//! (RFC 4448) among it.
//!
//! **How it was validated.** One frame of every link type by hand (below), recorded Ethernet frames
//! (`tests/captures.rs`), arbitrary octets (`tests/fuzz.rs`).

use crate::ip::u16_at;
use core::fmt;

/// What the octets of a captured packet begin with, by its number in the registry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: the address family in four octets, in the byte order of the machine that captured.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without the address and control octets of its frames as HDLC has them.
    pub const PPP: Self = Self(9);
    /// An IP packet, by the number that some systems have for it.
    pub const RAW_12: Self = Self(12);
    /// An IP packet, by the number that OpenBSD has for it.
    pub const RAW_14: Self = Self(14);
    /// PPP in frames as HDLC has them.
    pub const PPP_HDLC: Self = Self(50);
    /// PPPoE, from its own header on.
    pub const PPP_ETHER: Self = Self(51);
    /// An IP packet.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback: the address family in four octets, big-endian.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture.
    pub const LINUX_SLL: Self = Self(113);
    /// An IPv4 packet.
    pub const IPV4: Self = Self(228);
    /// An IPv6 packet.
    pub const IPV6: Self = Self(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);
}

/// Why no IP packet was found in a captured frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StripError {
    /// A link type that is not read here.
    UnknownLinkType(LinkType),
    /// The frame ends within its link-layer header.
    Truncated,
    /// The frame carries something else: its EtherType, or address family, or the first octet of a raw packet.
    NotIp(u32),
}

impl fmt::Display for StripError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLinkType(LinkType(number)) => write!(f, "link type {number} is not known"),
            Self::Truncated => write!(f, "the frame ends within its link-layer header"),
            Self::NotIp(number) => write!(f, "the frame carries protocol {number:#06x}, not IP"),
        }
    }
}

impl core::error::Error for StripError {}

/// The IP packet within a captured frame; padding behind it, which the packet's own length tells, is left on.
///
/// # Errors
/// [`StripError`].
pub fn ip_packet(link_type: LinkType, frame: &[u8]) -> Result<&[u8], StripError> {
    match link_type {
        LinkType::ETHERNET => behind_ether_type(frame, 12, 14),
        LinkType::RAW | LinkType::RAW_12 | LinkType::RAW_14 | LinkType::IPV4 | LinkType::IPV6 => raw(frame),
        LinkType::NULL | LinkType::LOOP => behind_family(frame),
        LinkType::PPP | LinkType::PPP_HDLC => behind_ppp(behind_hdlc(frame)),
        LinkType::PPP_ETHER => behind_pppoe(frame),
        LinkType::LINUX_SLL => behind_ether_type(frame, 14, 16),
        LinkType::LINUX_SLL2 => behind_ether_type(frame, 0, 20),
        other => Err(StripError::UnknownLinkType(other)),
    }
}

fn raw(frame: &[u8]) -> Result<&[u8], StripError> {
    let &first = frame.first().ok_or(StripError::Truncated)?;
    if matches!(first >> 4, 4 | 6) { Ok(frame) } else { Err(StripError::NotIp(u32::from(first))) }
}

/// The address family is 2 for IPv4 on all systems, and 24, 28, 30 or 10 for IPv6 depending on whose it is.
fn behind_family(frame: &[u8]) -> Result<&[u8], StripError> {
    let (&family, rest) = frame.split_first_chunk().ok_or(StripError::Truncated)?;
    // Families are small numbers, so the smaller of both readings is the one that was meant.
    match u32::from_be_bytes(family).min(u32::from_le_bytes(family)) {
        2 | 10 | 24 | 28 | 30 => Ok(rest),
        other => Err(StripError::NotIp(other)),
    }
}

/// What follows a link-layer header of `header_bytes` whose EtherType stands at `type_at`, behind any VLAN tags.
fn behind_ether_type(frame: &[u8], type_at: usize, header_bytes: usize) -> Result<&[u8], StripError> {
    const IPV4: u16 = 0x0800;
    const IPV6: u16 = 0x86dd;
    const PPPOE_SESSION: u16 = 0x8864;
    const MPLS: [u16; 2] = [0x8847, 0x8848];
    // IEEE 802.3: so much is no type, but how long the frame is; in cooked captures it is the number of frames like these.
    const LENGTH_MAX: u16 = 1_500;
    // Customer and service tags of IEEE 802.1Q, and the service tag's numbers before it was standardised.
    const VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
    let mut ether_type = u16_at(frame, type_at).ok_or(StripError::Truncated)?;
    let mut rest = frame.get(header_bytes..).ok_or(StripError::Truncated)?;
    while VLAN.contains(&ether_type) {
        ether_type = u16_at(rest, 2).ok_or(StripError::Truncated)?;
        rest = &rest[4..];
    }
    if ether_type <= LENGTH_MAX {
        (ether_type, rest) = behind_snap(ether_type, rest)?;
    }
    match ether_type {
        IPV4 | IPV6 => Ok(rest),
        PPPOE_SESSION => behind_pppoe(rest),
        labelled if MPLS.contains(&labelled) => behind_labels(rest),
        other => Err(StripError::NotIp(u32::from(other))),
    }
}

/// RFC 1042: logical link control (IEEE 802.2) whose octets say that an EtherType follows, in the name of an organisation that is none.
fn behind_snap(length: u16, rest: &[u8]) -> Result<(u16, &[u8]), StripError> {
    const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];
    if let Some(rest) = rest.strip_prefix(&SNAP) {
        let ether_type = u16_at(rest, 0).ok_or(StripError::Truncated)?;
        return Ok((ether_type, &rest[2..]));
    }
    let is_cut = SNAP.starts_with(rest);
    Err(if is_cut { StripError::Truncated } else { StripError::NotIp(u32::from(length)) })
}

/// RFC 3032, section 2.1: labels of four octets, the last of which says so. What follows has no number, and is told by its version.
fn behind_labels(mut rest: &[u8]) -> Result<&[u8], StripError> {
    loop {
        let (label, behind) = rest.split_first_chunk::<4>().ok_or(StripError::Truncated)?;
        rest = behind;
        if label[2] & 1 != 0 {
            return raw(rest);
        }
    }
}

/// RFC 2516, section 4: six octets, then PPP.
fn behind_pppoe(rest: &[u8]) -> Result<&[u8], StripError> {
    behind_ppp(rest.get(6..).ok_or(StripError::Truncated)?)
}

/// RFC 1662, sections 3.1 and 3.2: an address and a control octet, which both ends may have agreed to leave out.
const fn behind_hdlc(frame: &[u8]) -> &[u8] {
    match frame {
        [0xff, 0x03, rest @ ..] => rest,
        [0xff] => &[],
        rest => rest,
    }
}

/// RFC 1661, sections 2 and 6.5: the protocol's number, whose first octet may be left out where it is zero: the second one is odd, the first
/// one even.
fn behind_ppp(rest: &[u8]) -> Result<&[u8], StripError> {
    const IPV4: u16 = 0x0021;
    const IPV6: u16 = 0x0057;
    let (protocol, rest) = match *rest {
        [short, ref rest @ ..] if short & 1 != 0 => (short.into(), rest),
        [high, low, ref rest @ ..] => (u16::from_be_bytes([high, low]), rest),
        _ => return Err(StripError::Truncated),
    };
    if [IPV4, IPV6].contains(&protocol) { Ok(rest) } else { Err(StripError::NotIp(protocol.into())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn frame(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn every_link_type_yields_the_packet_behind_it() {
        let ip: &[u8] = &[0x45, 1, 2, 3];
        let macs: &[u8] = &[9; 12];
        let cases: &[(LinkType, &[&[u8]])] = &[
            (LinkType::ETHERNET, &[macs, &[0x08, 0x00]]),
            (LinkType::ETHERNET, &[macs, &[0x81, 0x00, 0, 7, 0x86, 0xdd]]),
            (LinkType::ETHERNET, &[macs, &[0x88, 0xa8, 0, 7, 0x81, 0x00, 0, 8, 0x08, 0x00]]),
            (
                LinkType::ETHERNET,
                &[macs, &[0x91, 0x00, 0, 7, 0x92, 0x00, 0, 8, 0x81, 0x00, 0, 9, 0x08, 0x00]],
            ),
            (LinkType::ETHERNET, &[macs, &[0x88, 0x64, 0x11, 0, 0, 9, 0, 6, 0x00, 0x21]]),
            (LinkType::ETHERNET, &[macs, &[0x81, 0x00, 0, 7, 0x88, 0x64, 0x11, 0, 0, 9, 0, 6, 0x00, 0x57]]),
            (LinkType::ETHERNET, &[macs, &[0x88, 0x47], &[0, 0, 0x10, 64, 0, 0, 0x20, 64, 0, 0, 0x31, 64]]),
            (LinkType::ETHERNET, &[macs, &[0x81, 0x00, 0, 7, 0x88, 0x48, 0, 0, 0x31, 64]]),
            (LinkType::ETHERNET, &[macs, &[0x00, 0x0c], &[0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00]]),
            (
                LinkType::ETHERNET,
                &[macs, &[0x81, 0x00, 0, 7, 0x05, 0xdc], &[0xaa, 0xaa, 0x03, 0, 0, 0, 0x86, 0xdd]],
            ),
            (LinkType::LINUX_SLL, &[&[0; 14], &[0, 4], &[0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00]]),
            (LinkType::PPP, &[&[0xff, 0x03, 0x00, 0x21]]),
            (LinkType::PPP, &[&[0x00, 0x57]]),
            (LinkType::PPP_HDLC, &[&[0xff, 0x03, 0x21]]),
            (LinkType::PPP_ETHER, &[&[0x11, 0, 0, 9, 0, 6, 0x00, 0x21]]),
            (LinkType::RAW, &[]),
            (LinkType::RAW_12, &[]),
            (LinkType::RAW_14, &[]),
            (LinkType::NULL, &[&[2, 0, 0, 0]]),
            (LinkType::NULL, &[&[0, 0, 0, 30]]),
            (LinkType::LOOP, &[&[0, 0, 0, 24]]),
            (LinkType::LINUX_SLL, &[&[0; 14], &[0x08, 0x00]]),
            (LinkType::LINUX_SLL2, &[&[0x86, 0xdd], &[0; 18]]),
        ];
        for (link_type, header) in cases {
            let octets = frame(&[&frame(header), ip]);
            assert_eq!(ip_packet(*link_type, &octets), Ok(ip), "{link_type:?}");
            let header_len = octets.len() - ip.len();
            for cut in 0..header_len {
                assert_eq!(
                    ip_packet(*link_type, &octets[..cut]),
                    Err(StripError::Truncated),
                    "{link_type:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_ip_is_named() {
        let arp = frame(&[&[0; 12], &[0x08, 0x06]]);
        assert_eq!(ip_packet(LinkType::ETHERNET, &arp), Err(StripError::NotIp(0x0806)));
        // A bridge's spanning tree; another organisation's number.
        let bridge = frame(&[&[0; 12], &[0, 38], &[0x42, 0x42, 0x03, 0, 0]]);
        assert_eq!(ip_packet(LinkType::ETHERNET, &bridge), Err(StripError::NotIp(38)));
        let other = frame(&[&[0; 12], &[0, 38], &[0xaa, 0xaa, 0x03, 0, 0, 12, 8, 0]]);
        assert_eq!(ip_packet(LinkType::ETHERNET, &other), Err(StripError::NotIp(38)));
        assert_eq!(ip_packet(LinkType::RAW, &[0x55]), Err(StripError::NotIp(0x55)));
        assert_eq!(ip_packet(LinkType::NULL, &[7, 0, 0, 0]), Err(StripError::NotIp(7)));
        let pseudowire = frame(&[&[0; 12], &[0x88, 0x47, 0, 0, 0x31, 64], &[0, 0, 0, 1], &[2; 12], &[8, 0]]);
        assert_eq!(ip_packet(LinkType::ETHERNET, &pseudowire), Err(StripError::NotIp(0)));
        assert_eq!(ip_packet(LinkType::PPP, &[0xff, 0x03, 0xc0, 0x21, 1]), Err(StripError::NotIp(0xc021)));
        let usb = LinkType(189);
        assert_eq!(ip_packet(usb, &[]), Err(StripError::UnknownLinkType(usb)));
    }
}
