//! IP packets written and read back, and the forms that captures bring.

use cede_wire::Payload;
use cede_wire::ip::{
    Addresses, Datagram, EncodeError, Envelope, Fragment, PROTOCOL_TCP, PROTOCOL_UDP, Packet, ParseError,
};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const V4: Addresses =
    Addresses::V4 { source: Ipv4Addr::new(10, 0, 0, 1), destination: Ipv4Addr::new(192, 168, 7, 255) };
const V6: Addresses = Addresses::V6 {
    source: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
    destination: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0xffff, 0xffff, 2),
};

/// 20 octets of a TCP header that says five words, with a wrong checksum in it.
fn tcp_head() -> [u8; 20] {
    let mut head = [0x11; 20];
    head[12] = 0x50;
    head
}

fn udp(envelope: &Envelope, head: &[u8], payload: &Payload) -> Vec<u8> {
    let mut octets = Vec::new();
    envelope.put_udp(6881, 51_413, head, payload, &mut octets).unwrap();
    octets
}

#[test]
fn udp_packets_of_both_families_and_odd_lengths_read_back_with_right_checksums() {
    for addresses in [V4, V6] {
        for len in 0..40 {
            let envelope = Envelope { traffic_class: 0xb9, hop_limit: 9, ..Envelope::new(addresses) };
            let payload = Payload::Pattern { start: 77, len };
            let octets = udp(&envelope, b"head", &payload);
            let packet = Packet::parse(&octets).unwrap();
            assert_eq!((packet.source, packet.destination), (addresses.source(), addresses.destination()));
            assert_eq!((packet.protocol, packet.traffic_class, packet.hop_limit), (PROTOCOL_UDP, 0xb9, 9));
            assert_ne!(packet.header_checksum_is_right(), Some(false));
            assert_eq!(packet.transport_checksum_is_right(), Some(true));
            let datagram = Datagram::parse(packet.payload).unwrap();
            assert_eq!((datagram.source_port, datagram.destination_port), (6881, 51_413));
            assert_eq!(datagram.payload, [&b"head"[..], &payload.to_vec()].concat());
        }
    }
}

#[test]
fn any_flipped_bit_spoils_a_checksum() {
    let octets = udp(&Envelope::new(V4), b"scavenger", &Payload::Empty);
    for bit in 0..octets.len() * 8 {
        let mut damaged = octets.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let Ok(packet) = Packet::parse(&damaged) else { continue };
        let is_right = packet.header_checksum_is_right() != Some(false)
            && packet.transport_checksum_is_right() == Some(true);
        assert!(!is_right, "bit {bit}");
    }
}

#[test]
fn a_tcp_checksum_is_filled_in_over_head_and_payload() {
    for addresses in [V4, V6] {
        let mut octets = vec![0xee; 3];
        let payload = Payload::Pattern { start: 0, len: 33 };
        Envelope::new(addresses).put_tcp(&tcp_head(), &payload, &mut octets).unwrap();
        let packet = Packet::parse(&octets[3..]).unwrap();
        assert_eq!((packet.protocol, packet.payload_len), (PROTOCOL_TCP, 53));
        assert_eq!(packet.transport_checksum_is_right(), Some(true));
        assert_eq!(packet.payload[..16], tcp_head()[..16]);
    }
}

/// The payload is chosen so that all words sum to 0xffff and the checksum would come out as zero.
#[test]
fn a_udp_checksum_of_zero_is_sent_as_all_ones() {
    let bare = udp(&Envelope::new(V4), &[0, 0], &Payload::Empty);
    let checksum: [u8; 2] = Datagram::parse(&bare[20..]).unwrap().checksum.to_be_bytes();
    let octets = udp(&Envelope::new(V4), &checksum, &Payload::Empty);
    assert_eq!(Datagram::parse(&octets[20..]).unwrap().checksum, 0xffff);
    assert_eq!(Packet::parse(&octets).unwrap().transport_checksum_is_right(), Some(true));
}

#[test]
fn what_is_too_long_is_refused_whole() {
    let mut out = Vec::new();
    let longest_v4 = 65_535 - 20 - 8;
    let payload = |len| Payload::Pattern { start: 0, len };
    assert_eq!(Envelope::new(V4).put_udp(1, 2, &[], &payload(longest_v4), &mut out), Ok(()));
    out.clear();
    let refused = Err(EncodeError::TooLong);
    assert_eq!(Envelope::new(V4).put_udp(1, 2, &[], &payload(longest_v4 + 1), &mut out), refused);
    assert_eq!(Envelope::new(V6).put_udp(1, 2, &[], &payload(65_528), &mut out), refused);
    assert_eq!(Envelope::new(V6).put_tcp(&tcp_head(), &payload(u32::MAX), &mut out), refused);
    assert_eq!(Envelope::new(V4).put_tcp(&[0; 19], &Payload::Empty, &mut out), Err(EncodeError::ShortHead));
    assert!(out.is_empty());
    assert_eq!(Addresses::new(V4.source(), V6.destination()), None);
}

#[test]
fn options_padding_and_a_snapshot_length_do_not_confuse_the_lengths() {
    let plain = udp(&Envelope::new(V4), b"payload", &Payload::Empty);
    // Two words of options behind the fixed header.
    let mut octets = [&plain[..20], &[1; 8], &plain[20..]].concat();
    octets[0] = 0x47;
    octets[3] += 8;
    let packet = Packet::parse(&octets).unwrap();
    assert_eq!(packet.payload, &plain[20..]);
    // Ethernet pads short frames.
    let padded = [&octets[..], &[0; 11]].concat();
    assert_eq!(Packet::parse(&padded).unwrap(), packet);
    // A capture that kept 32 octets.
    let cut = Packet::parse(&octets[..32]).unwrap();
    assert!(cut.is_truncated());
    assert_eq!((cut.payload.len(), cut.payload_len), (4, 15));
    assert_eq!(cut.transport_checksum_is_right(), None);
    assert_eq!(Datagram::parse(cut.payload), Err(ParseError::Truncated));
    let header_cut = Packet::parse(&octets[..27]);
    assert_eq!(header_cut, Err(ParseError::Truncated));
}

#[test]
fn fragments_are_recognised_in_both_families() {
    let mut v4 = udp(&Envelope { identification: 0xbeef, ..Envelope::new(V4) }, b"12345678", &Payload::Empty);
    assert_eq!(Packet::parse(&v4).unwrap().fragment, None);
    assert!(Packet::parse(&v4).unwrap().dont_fragment);
    v4[6..8].copy_from_slice(&[0x20, 0x03]);
    let expected = Fragment { offset_bytes: 24, more: true, identification: 0xbeef };
    let packet = Packet::parse(&v4).unwrap();
    assert_eq!((packet.fragment, packet.dont_fragment), (Some(expected), false));
    assert_eq!(packet.transport_checksum_is_right(), None);

    let plain = udp(&Envelope::new(V6), b"12345678", &Payload::Empty);
    let header = [17, 0, 0, 0x19, 0xde, 0xad, 0xbe, 0xef];
    let v6 = with_extensions(&plain, 44, &header);
    let packet = Packet::parse(&v6).unwrap();
    let expected = Fragment { offset_bytes: 24, more: true, identification: 0xdead_beef };
    assert_eq!((packet.fragment, packet.protocol), (Some(expected), PROTOCOL_UDP));
    assert_eq!(packet.payload, &plain[40..]);
    // RFC 6946: whole, though behind a fragment header.
    let atomic = with_extensions(&plain, 44, &[17, 0, 0, 0, 1, 2, 3, 4]);
    assert_eq!(Packet::parse(&atomic).unwrap().fragment, None);
    assert_eq!(Packet::parse(&atomic).unwrap().transport_checksum_is_right(), Some(true));
}

/// `packet` of IPv6 with `extensions`, the first of kind `first`, put behind its header.
fn with_extensions(packet: &[u8], first: u8, extensions: &[u8]) -> Vec<u8> {
    let mut octets = [&packet[..40], extensions, &packet[40..]].concat();
    octets[6] = first;
    octets[5] += extensions.len() as u8;
    octets
}

#[test]
fn extension_headers_are_passed_and_their_ends_are_checked() {
    let plain = udp(&Envelope::new(V6), b"data", &Payload::Empty);
    // Hop-by-hop options of 8 octets, destination options of 16, authentication of 12 + 4 = 16, then UDP.
    let mut extensions = vec![60, 0, 1, 4, 0, 0, 0, 0];
    extensions.extend_from_slice(&[51, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    extensions.extend_from_slice(&[17, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let octets = with_extensions(&plain, 0, &extensions);
    let packet = Packet::parse(&octets).unwrap();
    assert_eq!((packet.protocol, packet.payload_len), (PROTOCOL_UDP, 12));
    assert_eq!(packet.transport_checksum_is_right(), Some(true));
    for cut in 40..40 + extensions.len() {
        assert_eq!(Packet::parse(&octets[..cut]), Err(ParseError::Truncated), "{cut}");
    }
    assert_eq!(Packet::parse(&octets[..39]), Err(ParseError::Truncated));
}

#[test]
fn senseless_versions_and_lengths_are_refused() {
    assert_eq!(Packet::parse(&[]), Err(ParseError::Truncated));
    assert_eq!(Packet::parse(&[0x50; 40]), Err(ParseError::Version(5)));
    assert_eq!(Packet::parse(&[0x44; 40]), Err(ParseError::Length(16)));
    let mut octets = udp(&Envelope::new(V4), b"x", &Payload::Empty);
    octets[2..4].copy_from_slice(&[0, 19]);
    assert_eq!(Packet::parse(&octets), Err(ParseError::Length(19)));
    assert_eq!(Datagram::parse(&[0, 1, 0, 2, 0, 7, 0, 0]), Err(ParseError::Length(7)));
    // Zero: the whole of what was handed to a network card that cuts it up.
    octets[2..4].copy_from_slice(&[0, 0]);
    assert_eq!(Packet::parse(&octets).unwrap().payload_len, 9);
    assert_eq!(Packet::parse(&octets).unwrap().source, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
    // Of which a capture may hold the front.
    let cut = Packet::parse_of(&octets[..28], 70_000).unwrap();
    assert_eq!((cut.payload.len(), cut.payload_len), (8, 69_980));
    let mut datagram = cut.payload.to_vec();
    datagram[4..6].copy_from_slice(&[0, 0]);
    assert_eq!(Datagram::parse_of(&datagram, cut.payload_len).unwrap().payload_len, 69_972);
    let mut six = udp(&Envelope::new(V6), b"data", &Payload::Empty);
    six[4..6].copy_from_slice(&[0, 0]);
    assert_eq!(Packet::parse_of(&six[..48], 70_040).unwrap().payload_len, 70_000);
    // No length is less than what is there.
    assert_eq!(Packet::parse_of(&six, 0), Packet::parse(&six));
}
