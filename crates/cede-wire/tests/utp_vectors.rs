//! uTP packets with known fields: recorded from libutp and libtorrent, probes of our own, and hand-made ones at the
//! edges of the format. `vectors/utp_packets.json` holds each as hex with what it must decode to, or why it must not.

use cede_units::Seq16;
use cede_wire::utp::{DecodeError, Extension, Header, Kind, Packet};
use serde_json::Value;

fn octets_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|c| !c.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn vectors() -> Vec<Value> {
    let text = include_str!("vectors/utp_packets.json");
    serde_json::from_str(text).expect("the vectors are valid JSON")
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} missing in {value}"))
}

fn expected_header(fields: &Value) -> Header {
    Header {
        kind: Kind::from_number(number(fields, "type") as u8).unwrap(),
        connection_id: number(fields, "conn_id") as u16,
        timestamp_us: number(fields, "ts_us") as u32,
        timestamp_difference_us: number(fields, "ts_diff_us") as u32,
        window_bytes: number(fields, "wnd_bytes") as u32,
        seq: Seq16(number(fields, "seq") as u16),
        ack: Seq16(number(fields, "ack") as u16),
    }
}

fn expected_error(reject: &Value) -> DecodeError {
    match reject["reject"].as_str().unwrap() {
        "short header" => DecodeError::ShortHeader,
        "version" => DecodeError::Version(number(reject, "version") as u8),
        "type" => DecodeError::Kind(number(reject, "type") as u8),
        "truncated extension header" => DecodeError::TruncatedExtensionHeader,
        "extension overruns packet" => DecodeError::ExtensionOverrun,
        other => panic!("unknown reason {other}"),
    }
}

fn sacked(packet: &Packet<'_>) -> Vec<u64> {
    let mask = packet.extensions.selective_ack().expect("a selective acknowledgement");
    mask.bits().map(|i| u64::from(packet.header.ack.add(2).add(i).0)).collect()
}

fn check_extension(name: &str, packet: &Packet<'_>, found: Extension<'_>, expected: &Value) {
    assert_eq!(u64::from(found.kind), number(expected, "ext"), "{name}");
    assert_eq!(found.body.len() as u64, number(expected, "len"), "{name}");
    assert_eq!(found.body, octets_of(expected["hex"].as_str().unwrap()), "{name}");
    if let Some(list) = expected["sacked"].as_array() {
        let list: Vec<u64> = list.iter().map(|n| n.as_u64().unwrap()).collect();
        assert_eq!(sacked(packet), list, "{name}");
    }
    if let Some(reason) = expected["close_reason"].as_u64() {
        assert_eq!(packet.extensions.close_reason().map(u64::from), Some(reason), "{name}");
    }
}

fn check_accepted(name: &str, octets: &[u8], fields: &Value) {
    let packet = Packet::decode(octets).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(packet.header, expected_header(fields), "{name}");
    assert_eq!(u64::from(octets[0] & 0x0f), number(fields, "version"), "{name}");
    assert_eq!(u64::from(octets[1]), number(fields, "first_ext"), "{name}");
    assert_eq!(packet.payload.len() as u64, number(fields, "payload_len"), "{name}");
    let extensions: Vec<Extension<'_>> = packet.extensions.iter().collect();
    let expected = fields["exts"].as_array().unwrap();
    assert_eq!(extensions.len(), expected.len(), "{name}");
    for (found, expected) in extensions.iter().zip(expected) {
        check_extension(name, &packet, *found, expected);
    }
    assert_eq!(packet.to_vec(), octets, "{name}");
}

#[test]
fn every_vector_decodes_to_its_fields_and_back_or_is_rejected_for_its_reason() {
    let (mut accepted, mut rejected) = (0, 0);
    for vector in vectors() {
        let name = vector["name"].as_str().unwrap();
        let octets = octets_of(vector["hex"].as_str().unwrap());
        let decode = &vector["decode"];
        if decode.get("reject").is_some() {
            assert_eq!(Packet::decode(&octets), Err(expected_error(decode)), "{name}");
            rejected += 1;
        } else {
            check_accepted(name, &octets, decode);
            accepted += 1;
        }
    }
    assert_eq!((accepted, rejected), (24, 7));
}

#[test]
fn a_handshake_of_libutp_reads_as_its_text_says() {
    let syn = octets_of("41004567579dbbe4000000000010000023c60000");
    let syn = Packet::decode(&syn).unwrap().header;
    assert_eq!((syn.kind, syn.connection_id, syn.timestamp_us), (Kind::Syn, 17_767, 1_469_955_044));
    assert_eq!((syn.window_bytes, syn.seq, syn.ack), (1_048_576, Seq16(9158), Seq16(0)));

    let answer = octets_of("21004567579dbc660000000000100000456723c6");
    let answer = Packet::decode(&answer).unwrap().header;
    assert_eq!((answer.kind, answer.connection_id), (Kind::State, 17_767));
    assert_eq!((answer.seq, answer.ack, answer.timestamp_difference_us), (Seq16(17_767), Seq16(9158), 0));

    let data = octets_of("01004568579dbccd000000660010000023c74566");
    let data = Packet::decode(&data).unwrap().header;
    assert_eq!((data.kind, data.connection_id), (Kind::Data, 17_768));
    assert_eq!((data.seq, data.ack, data.timestamp_difference_us), (Seq16(9159), Seq16(17_766), 102));
}

/// `ack` of a STATE with this mask, and the packets that the mask says are held.
fn held_by(ack: u16, mask: &[u8]) -> Vec<u64> {
    let mut octets = octets_of("21014567579dbd3c0000000d001000004567");
    octets.extend_from_slice(&ack.to_be_bytes());
    octets.extend_from_slice(&[0, mask.len() as u8]);
    octets.extend_from_slice(mask);
    sacked(&Packet::decode(&octets).unwrap())
}

#[test]
fn a_selective_ack_of_libutp_grows_bit_by_bit() {
    let recorded = octets_of("21014567579dbd3c0000000d00100000456723c8 0004 01000000");
    let packet = Packet::decode(&recorded).unwrap();
    assert_eq!((packet.header.ack, sacked(&packet)), (Seq16(9160), vec![9162]));
    assert_eq!(held_by(9160, &[0x07, 0, 0, 0]), [9162, 9163, 9164]);
    assert_eq!(held_by(9160, &[0x0f, 0, 0, 0]), [9162, 9163, 9164, 9165]);
    // 9166 is the packet missing next. Three packets beyond the gap are what asks for a resend.
    for (octet, held) in [(0x01, 1), (0x03, 2), (0x07, 3), (0x0f, 4)] {
        assert_eq!(held_by(9165, &[octet, 0, 0, 0]), (9167..9167 + held).collect::<Vec<_>>());
    }
}

#[test]
fn a_mask_that_crosses_the_wrap_names_the_packets_behind_it() {
    assert_eq!(held_by(0xfffe, &[0x81, 0, 0, 0, 0, 0, 0, 0x80]), [0x0000, 0x0007, 0x003f]);
}

#[test]
fn the_short_masks_of_libtorrent_are_accepted() {
    assert_eq!(held_by(100, &[0xff]), (102..110).collect::<Vec<_>>());
    assert_eq!(held_by(100, &[0xff, 0xff, 0x03]), (102..120).collect::<Vec<_>>());
    assert!(held_by(100, &[]).is_empty());
    assert_eq!(held_by(100, &[0xff; 255]).len(), 2040);
}
