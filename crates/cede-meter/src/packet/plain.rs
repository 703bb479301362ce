//! Nearly every packet, read at once: Ethernet without tags; IPv4 without options, not in fragments; TCP whose options begin with its timestamps,
//! or uTP. What was read stays in registers until it is kept. All others, and those that say nothing, take the long way ([`crate::packet::frame`]),
//! which makes the same of these.
//!
//! **How it was validated.** Beside the long way: frames whose octets were altered, cut anywhere (below).

use crate::packet::frame;
use crate::packet::key::{Key, Side};
use crate::packet::length::Length;
use crate::packet::{Packet, Said, tcp, utp};
use cede_wire::ip::{PROTOCOL_TCP, PROTOCOL_UDP};

const HEADER_BYTES_UDP: usize = 8;
/// TCP's header with the timestamps first, as nearly everybody has them (RFC 7323, appendix A).
const HEADER_BYTES_TCP: usize = 32;
const TIMESTAMPS_FIRST: [u8; 4] = [1, 1, 8, 10];

/// Reads a frame of Ethernet: its flow, and what counts of it; `None` where it takes the long way.
#[inline(always)]
pub(crate) fn read(frame: &[u8], time_us: u64, bytes: u32) -> Option<(Key, Packet)> {
    let ip = frame::plain(frame)?;
    let ports: &[u8; 4] = ip.payload.first_chunk()?;
    let ports = u32::from_be_bytes(*ports);
    let (from, to) = ((ports >> 16) as u16, ports as u16);
    let is_tcp = ip.protocol == PROTOCOL_TCP;
    let (said, opens) = match ip.protocol {
        PROTOCOL_TCP => segment(ip.payload, ip.payload_len)?,
        PROTOCOL_UDP if !frame::is_of_tunnels(to) => datagram(ip.payload)?,
        _ => return None,
    };
    let (key, side): (Key, Side) = Key::of_v4((ip.source, from), (ip.destination, to), is_tcp);
    let length = Length::of(bytes);
    Some((key, Packet { side, time_us, bytes, length, hop_limit: ip.hop_limit, opens, said }))
}

#[inline(always)]
fn segment(payload: &[u8], payload_len: usize) -> Option<(Said, bool)> {
    let header: &[u8; HEADER_BYTES_TCP] = payload.first_chunk()?;
    let header_len = usize::from(header[12] >> 4) * 4;
    let flags = header[13];
    if header_len < HEADER_BYTES_TCP || header[20..24] != TIMESTAMPS_FIRST || flags & tcp::RST != 0 {
        return None;
    }
    let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let payload_len = payload_len.checked_sub(header_len)? as u32;
    let said = tcp::Said { seq: word(4), ack: word(8), flags, clock: word(24), echo: word(28), payload_len };
    Some((Said::Tcp(said), flags & tcp::SYN != 0))
}

#[inline(always)]
fn datagram(octets: &[u8]) -> Option<(Said, bool)> {
    let (header, rest) = octets.split_first_chunk::<HEADER_BYTES_UDP>()?;
    let len = usize::from(u16::from_be_bytes([header[4], header[5]])).checked_sub(HEADER_BYTES_UDP)?;
    let said = utp::Said::of_one(&rest[..rest.len().min(len)], len)?;
    Some((Said::Utp(said), said.opens()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;
    use cede_wire::link::LinkType;

    /// Ethernet, IPv4, and TCP with its timestamps first, or a datagram of uTP.
    fn frame(is_tcp: bool, payload_len: u16) -> Vec<u8> {
        let transport_len: u16 = if is_tcp { 32 } else { 28 };
        let mut out = [&[2; 12][..], &[8, 0, 0x45, 0]].concat();
        out.extend((20 + transport_len + payload_len).to_be_bytes());
        out.extend([0, 1, 0x40, 0, 60, if is_tcp { 6 } else { 17 }, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        out.extend([0x1a, 0xe1, 0x1a, 0xe2]);
        if is_tcp {
            out.extend([0, 0, 0, 9, 0, 0, 0, 7, 0x80, 0x10, 1, 0, 0, 0, 0, 0]);
            out.extend([TIMESTAMPS_FIRST, [0, 0, 1, 0], [0, 0, 2, 0]].concat());
        } else {
            out.extend([(28 + payload_len).to_be_bytes(), [0, 0]].concat());
            out.extend([
                if payload_len > 0 { 0x01 } else { 0x21 },
                0,
                0,
                5,
                0,
                0,
                1,
                0,
                0,
                0,
                2,
                0,
                0,
                0x10,
                0,
                0,
                0,
                3,
                0,
                4,
            ]);
        }
        out.resize(out.len() + usize::from(payload_len), 7);
        out
    }

    fn the_long_way(frame: &[u8], time_us: u64, bytes: u32) -> Option<(Key, Packet)> {
        let seen = frame::read(LinkType::ETHERNET, frame, bytes).ok()?;
        let (key, side) =
            Key::of(seen.source, seen.destination, matches!(seen.content, frame::Content::Tcp(_)));
        let mut packets = Vec::new();
        Packet::each(&seen, side, time_us, bytes, |packet| packets.push(packet));
        // What holds several takes that way alone.
        if let [packet] = packets[..] { Some((key, packet)) } else { None }
    }

    #[test]
    fn what_is_read_at_once_is_what_the_long_way_reads() {
        let mut stream = Stream::named(12, "plain");
        let (mut plain, mut others) = (0, 0);
        for round in 0..40_000_u64 {
            let mut frame = frame(round % 2 == 0, [0, 3, 1000][stream.below(3) as usize]);
            // Most within the headers, where it makes a difference.
            for _ in 0..stream.below(3) {
                let at = stream.below(68).min(frame.len() as u64 - 1) as usize;
                frame[at] = if stream.below(2) == 0 { stream.next_u32() as u8 } else { frame[at] ^ 1 };
            }
            if stream.below(4) == 0 {
                frame.truncate(stream.below(80) as usize);
            }
            let bytes = stream.below(3_000) as u32;
            match read(&frame, round, bytes) {
                Some(read) => {
                    assert_eq!(
                        format!("{:?}", Some(read)),
                        format!("{:?}", the_long_way(&frame, round, bytes))
                    );
                    plain += 1;
                }
                None => others += 1,
            }
        }
        assert!(plain > 10_000 && others > 5_000, "{plain} {others}");
    }
}
