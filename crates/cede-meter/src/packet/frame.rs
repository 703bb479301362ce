//! From a captured frame to what is looked at: addresses, ports, and a uTP or TCP header.
//!
//! Sources: `cede_wire` for link types, IP, UDP; RFC 9293 section 3.1 and RFC 7323 section 3 for TCP; RFC 2784 and 2890
//! (GRE), RFC 2003, 2473 and 4213 (IP within IP), RFC 7348 (VXLAN), RFC 8926 (Geneve), 3GPP TS 29.281 section 5.1 (GTP-U) for tunnels, of
//! which one level is opened.
//!
//! **What it leaves out.** Checksums: a capture at the sender has none yet. Fragments other than the first, which have
//! no ports; a first fragment is read like a whole packet. Tunnels within tunnels.
//!
//! **How it was validated.** One frame of each kind by hand, cut at every octet (below), arbitrary octets
//! (`tests/fuzz.rs`), and the recorded captures.

use crate::packet::key::{Address, End};
use cede_wire::ip::{self, PROTOCOL_TCP, PROTOCOL_UDP};
use cede_wire::link::{self, LinkType};
use cede_wire::utp::HEADER_BYTES as HEADER_BYTES_UTP;

const PROTOCOL_GRE: u8 = 47;
/// A packet of IPv4, or of IPv6.
const PROTOCOL_IP: [u8; 2] = [4, 41];
/// What it carries stands behind a header of its own (`cede_wire::ip`).
const PROTOCOL_AUTHENTICATION: u8 = 51;
const PORT_VXLAN: u16 = 4789;
/// What Linux took before there was another one, and does unless told otherwise.
const PORT_VXLAN_LINUX: u16 = 8472;
const PORT_GENEVE: u16 = 6081;
const PORT_GTP_U: u16 = 2152;
/// Protocols within a tunnel, by EtherType.
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const ETHERNET: [u8; 2] = [0x65, 0x58];
const HEADER_BYTES_TCP: usize = 20;

/// A packet of TCP or UDP.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Who sent it.
    pub source: End,
    /// Who it is for.
    pub destination: End,
    /// IPv4's time to live, or IPv6's hop limit.
    pub hop_limit: u8,
    /// What it carries.
    pub content: Content<'a>,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A datagram.
    Udp {
        /// As far as it was captured.
        payload: &'a [u8],
        /// On the wire.
        payload_len: usize,
    },
    /// A segment.
    Tcp(Tcp<'a>),
}

/// What is read of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp<'a> {
    /// The sequence number.
    pub seq: u32,
    /// The acknowledgement.
    pub ack: u32,
    /// FIN, SYN and so on, as in the header.
    pub flags: u8,
    /// TSval and TSecr, where the option was there and captured.
    pub timestamps: Option<(u32, u32)>,
    /// The capture ends within the options.
    pub is_cut: bool,
    /// As far as it was captured.
    pub payload: &'a [u8],
    /// Octets of the payload on the wire.
    pub payload_len: u32,
}

impl Seen<'_> {
    /// Whether the capture ends before what is looked for: TCP's timestamps, or a header of uTP's.
    pub(crate) fn ends_too_early(&self) -> bool {
        match &self.content {
            Content::Tcp(tcp) => tcp.is_cut && tcp.timestamps.is_none(),
            Content::Udp { payload, payload_len } => payload.len() < (*payload_len).min(HEADER_BYTES_UTP),
        }
    }
}

/// Why a frame says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mute {
    /// It carries something other than TCP or UDP over IP.
    Other,
    /// A later part of a fragmented packet.
    Fragment,
    /// It was cut off before the end of the headers, or these make no sense.
    Cut,
    /// A link type that is not read.
    UnknownLinkType(u16),
}

/// Octets as far as they were captured, and how many they were on the wire.
#[derive(Clone, Copy)]
struct Piece<'a> {
    captured: &'a [u8],
    len: usize,
}

impl<'a> Piece<'a> {
    /// What is left of it behind a header.
    fn behind(self, rest: &'a [u8]) -> Self {
        Self { captured: rest, len: self.len.saturating_sub(self.captured.len() - rest.len()) }
    }
}

/// What the transport needs of an IP packet.
struct Carried<'a> {
    source: Address,
    destination: Address,
    hop_limit: u8,
    protocol: u8,
    /// As far as it was captured.
    payload: &'a [u8],
    /// On the wire.
    payload_len: usize,
}

/// Reads a frame that had so many octets on the wire.
///
/// # Errors
/// [`Mute`], where there is neither TCP nor UDP in it.
#[inline]
pub fn read(link_type: LinkType, frame: &[u8], original_len: u32) -> Result<Seen<'_>, Mute> {
    if link_type == LinkType::ETHERNET
        && let Some(ip) = plain(frame)
        && ip.protocol != PROTOCOL_AUTHENTICATION
    {
        return transport(&Carried::of(&ip), true);
    }
    let whole = Piece { captured: frame, len: original_len as usize };
    read_ip(behind_link(link_type, whole)?, true)
}

/// The IP packet in a frame.
fn behind_link(link_type: LinkType, frame: Piece<'_>) -> Result<Piece<'_>, Mute> {
    let packet = link::ip_packet(link_type, frame.captured).map_err(|error| match error {
        link::StripError::UnknownLinkType(LinkType(number)) => Mute::UnknownLinkType(number),
        link::StripError::Truncated => Mute::Cut,
        link::StripError::NotIp(_) => Mute::Other,
    })?;
    Ok(frame.behind(packet))
}

/// What nearly every frame of Ethernet carries: IPv4 without options, in no fragment.
#[derive(Clone, Copy)]
pub(crate) struct PlainIp<'a> {
    pub source: u32,
    pub destination: u32,
    pub hop_limit: u8,
    pub protocol: u8,
    /// As far as it was captured.
    pub payload: &'a [u8],
    /// On the wire.
    pub payload_len: usize,
}

/// Reads a frame without tags that carries such a packet; all others take the long way.
#[inline(always)]
pub(crate) fn plain(frame: &[u8]) -> Option<PlainIp<'_>> {
    let (header, rest) = frame.split_first_chunk::<34>()?;
    let is_plain =
        header[12..15] == [0x08, 0x00, 0x45] && u16::from_be_bytes([header[20], header[21]]) & 0x3fff == 0;
    let payload_len = usize::from(u16::from_be_bytes([header[16], header[17]])).checked_sub(20)?;
    let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    is_plain.then(|| PlainIp {
        source: word(26),
        destination: word(30),
        hop_limit: header[22],
        protocol: header[23],
        payload: &rest[..rest.len().min(payload_len)],
        payload_len,
    })
}

/// Reads an IP packet; a tunnel is opened if `opens`.
#[inline(never)]
fn read_ip(packet: Piece<'_>, opens: bool) -> Result<Seen<'_>, Mute> {
    let packet = ip::Packet::parse_of(packet.captured, packet.len).map_err(|_| Mute::Cut)?;
    if packet.fragment.is_some_and(|fragment| fragment.offset_bytes != 0) {
        return Err(Mute::Fragment);
    }
    let carried = Carried {
        source: Address::of(packet.source),
        destination: Address::of(packet.destination),
        hop_limit: packet.hop_limit,
        protocol: packet.protocol,
        payload: packet.payload,
        payload_len: packet.payload_len,
    };
    transport(&carried, opens)
}

// On the way of nearly every packet; what was parsed stays in registers.
#[inline(always)]
fn transport<'a>(carried: &Carried<'a>, opens: bool) -> Result<Seen<'a>, Mute> {
    match carried.protocol {
        PROTOCOL_TCP => read_tcp(carried),
        PROTOCOL_UDP => read_udp(carried, opens),
        PROTOCOL_GRE if opens => read_ip(behind_gre(carried.piece())?, false),
        protocol if opens && PROTOCOL_IP.contains(&protocol) => read_ip(carried.piece(), false),
        _ => Err(Mute::Other),
    }
}

impl<'a> Carried<'a> {
    #[inline]
    fn of(ip: &PlainIp<'a>) -> Self {
        let PlainIp { source, destination, hop_limit, protocol, payload, payload_len } = *ip;
        let (source, destination) = (Address::v4(source), Address::v4(destination));
        Self { source, destination, hop_limit, protocol, payload, payload_len }
    }

    const fn piece(&self) -> Piece<'a> {
        Piece { captured: self.payload, len: self.payload_len }
    }

    fn seen(&self, ports: [u16; 2], content: Content<'a>) -> Seen<'a> {
        Seen {
            source: End { address: self.source, port: ports[0] },
            destination: End { address: self.destination, port: ports[1] },
            hop_limit: self.hop_limit,
            content,
        }
    }
}

#[inline(always)]
fn read_tcp<'a>(carried: &Carried<'a>) -> Result<Seen<'a>, Mute> {
    let header: &[u8; HEADER_BYTES_TCP] = carried.payload.first_chunk().ok_or(Mute::Cut)?;
    let header_len = usize::from(header[12] >> 4) * 4;
    let payload_len = carried.payload_len.checked_sub(header_len).ok_or(Mute::Cut)?;
    let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let options_end = carried.payload.len().min(header_len).max(HEADER_BYTES_TCP);
    let tcp = Tcp {
        seq: word(4),
        ack: word(8),
        flags: header[13],
        timestamps: timestamps(&carried.payload[HEADER_BYTES_TCP..options_end]),
        is_cut: carried.payload.len() < header_len,
        payload: carried.payload.get(header_len..).unwrap_or_default(),
        payload_len: payload_len as u32,
    };
    let ports = word(0);
    Ok(carried.seen([(ports >> 16) as u16, ports as u16], Content::Tcp(tcp)))
}

/// RFC 7323, section 3.2: TSval and TSecr among options that may be cut off.
fn timestamps(mut options: &[u8]) -> Option<(u32, u32)> {
    const END: u8 = 0;
    const NOP: u8 = 1;
    const TIMESTAMPS: u8 = 8;
    // As nearly everybody has them (RFC 7323, appendix A).
    if let [NOP, NOP, TIMESTAMPS, 10, ..] = *options {
        options = &options[2..];
    }
    loop {
        match *options {
            [NOP, ref rest @ ..] => options = rest,
            [TIMESTAMPS, 10, a, b, c, d, e, f, g, h, ..] => {
                return Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
            }
            [END, ..] | [] | [_] => return None,
            [_, len, ..] => options = options.get(usize::from(len.max(2))..)?,
        }
    }
}

#[inline(always)]
fn read_udp<'a>(carried: &Carried<'a>, opens: bool) -> Result<Seen<'a>, Mute> {
    let datagram = ip::Datagram::parse_of(carried.payload, carried.payload_len).map_err(|_| Mute::Cut)?;
    if opens && let Some(verdict) = tunnelled(&datagram) {
        return verdict;
    }
    let content = Content::Udp { payload: datagram.payload, payload_len: datagram.payload_len };
    Ok(carried.seen([datagram.source_port, datagram.destination_port], content))
}

/// What a datagram to a tunnel's port carries; `None` where it only looks like a tunnel, and is a datagram like others.
#[inline(always)]
fn tunnelled<'a>(datagram: &ip::Datagram<'a>) -> Option<Result<Seen<'a>, Mute>> {
    is_of_tunnels(datagram.destination_port).then(|| open(datagram)).flatten()
}

/// Whether a tunnel's packets go to this port of UDP.
#[inline(always)]
pub(crate) const fn is_of_tunnels(port: u16) -> bool {
    matches!(port, PORT_VXLAN | PORT_VXLAN_LINUX | PORT_GENEVE | PORT_GTP_U)
}

#[inline(never)]
fn open<'a>(datagram: &ip::Datagram<'a>) -> Option<Result<Seen<'a>, Mute>> {
    let piece = Piece { captured: datagram.payload, len: datagram.payload_len };
    let packet = match datagram.destination_port {
        PORT_GTP_U => behind_gtp(piece)?,
        PORT_GENEVE => behind_geneve(piece)?,
        _ => behind_link(LinkType::ETHERNET, behind_vxlan(piece)?),
    };
    let verdict = packet.and_then(|packet| read_ip(packet, false));
    // All of it is there, and makes no sense.
    let is_none = piece.captured.len() >= piece.len && matches!(verdict, Err(Mute::Cut));
    (!is_none).then_some(verdict)
}

/// RFC 2784, section 2.1, and RFC 2890: flags for a checksum, a key and a sequence number, four octets each. RFC 7637, section
/// 3.2: an Ethernet frame in the place of an IP packet.
fn behind_gre(whole: Piece<'_>) -> Result<Piece<'_>, Mute> {
    const OPTIONAL: [u8; 3] = [0x80, 0x20, 0x10];
    let [flags, version, high, low, ..] = *whole.captured else { return Err(Mute::Cut) };
    let words = OPTIONAL.iter().filter(|&&bit| flags & bit != 0).count();
    let carried = || whole.captured.get(4 + 4 * words..).map(|rest| whole.behind(rest)).ok_or(Mute::Cut);
    if version & 7 != 0 { Err(Mute::Other) } else { of_type([high, low], carried) }
}

/// What a tunnel carries by its EtherType: an IP packet, or a frame with one in it.
fn of_type<'a>(
    ether_type: [u8; 2],
    carried: impl FnOnce() -> Result<Piece<'a>, Mute>,
) -> Result<Piece<'a>, Mute> {
    match ether_type {
        IPV4 | IPV6 => carried(),
        ETHERNET => behind_link(LinkType::ETHERNET, carried()?),
        _ => Err(Mute::Other),
    }
}

/// RFC 7348, section 5: a flag that says that the network's number is there, and reserved zeros.
fn behind_vxlan(whole: Piece<'_>) -> Option<Piece<'_>> {
    let payload = whole.captured;
    matches!(payload, [0x08, 0, 0, 0, _, _, _, 0, ..]).then(|| whole.behind(&payload[8..]))
}

/// RFC 8926, section 3.4: version 0 and words of options; flags, of which all but two are reserved zeros; what it carries; a network's
/// number, and a zero.
fn behind_geneve(whole: Piece<'_>) -> Option<Result<Piece<'_>, Mute>> {
    const FLAGS: u8 = 0xc0;
    let [version_and_words, flags, high, low, _, _, _, 0, ..] = *whole.captured else { return None };
    let is_plausible =
        version_and_words >> 6 == 0 && flags & !FLAGS == 0 && [IPV4, IPV6, ETHERNET].contains(&[high, low]);
    let header_bytes = 8 + 4 * usize::from(version_and_words & 0x3f);
    let carried = || whole.captured.get(header_bytes..).map(|rest| whole.behind(rest)).ok_or(Mute::Cut);
    is_plausible.then(|| of_type([high, low], carried))
}

/// TS 29.281, section 5.1: version 1, protocol type 1, message type 255, and extension headers if flagged.
fn behind_gtp(whole: Piece<'_>) -> Option<Result<Piece<'_>, Mute>> {
    let [flags, 255, ..] = *whole.captured else { return None };
    let behind = || behind_extensions(flags, whole.captured).map(|rest| whole.behind(rest));
    (flags & 0xf0 == 0x30).then(|| behind().ok_or(Mute::Cut))
}

/// `None` where they go on beyond what was captured.
fn behind_extensions(flags: u8, payload: &[u8]) -> Option<&[u8]> {
    if flags & 0x07 == 0 {
        return payload.get(8..);
    }
    let mut at = 12;
    let mut next = if flags & 0x04 != 0 { *payload.get(11)? } else { 0 };
    while next != 0 {
        let len = usize::from(*payload.get(at)?) * 4;
        next = *payload.get((at + len).checked_sub(1)?)?;
        at += len.max(4);
    }
    payload.get(at..)
}
