//! Wireshark as the judge of what we write: a capture with uTP over UDP and TCP, over IPv4 and IPv6, on two interfaces.
//! Without `tshark` on this machine the test says that it was skipped.

use cede_units::{Seq16, Seq32};
use cede_wire::Payload;
use cede_wire::ip::{Addresses, Envelope};
use cede_wire::link::LinkType;
use cede_wire::pcapng::{Captured, Interface, InterfaceId, Section, Writer};
use cede_wire::tcp::{Flags, Options, SackBlocks, Segment, Timestamps};
use cede_wire::utp::{EXT_SELECTIVE_ACK, Header, Kind};
use core::net::{Ipv4Addr, Ipv6Addr};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

const V4: Addresses =
    Addresses::V4 { source: Ipv4Addr::new(10, 0, 0, 1), destination: Ipv4Addr::new(10, 0, 0, 2) };
const V6: Addresses = Addresses::V6 {
    source: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
    destination: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2),
};

/// A moment with nine significant digits behind the point.
const START_NS: u64 = 1_700_000_000_123_456_789;

/// What `tshark` finds, in its own columns; empty where a packet has no such field.
const FIELDS: [&str; 25] = [
    "frame.time_epoch",
    "frame.interface_name",
    "frame.len",
    "frame.cap_len",
    "frame.comment",
    "ip.checksum.status",
    "udp.checksum.status",
    "tcp.checksum.status",
    "ip.ttl",
    "bt-utp.type",
    "bt-utp.connection_id",
    "bt-utp.timestamp_us",
    "bt-utp.timestamp_diff_us",
    "bt-utp.wnd_size",
    "bt-utp.seq_nr",
    "bt-utp.ack_nr",
    "bt-utp.extension_bitmask",
    "bt-utp.len",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.len",
    "tcp.options.mss_val",
    "tcp.options.timestamp.tsval",
    "tcp.options.sack_le",
    "_ws.malformed",
];

fn utp_head(kind: Kind, seq: u16, mask: &[u8]) -> cede_wire::Head {
    let header = Header {
        kind,
        connection_id: 4711,
        timestamp_us: 0xdead_beef,
        timestamp_difference_us: 25_000,
        window_bytes: 1_048_576,
        seq: Seq16(seq),
        ack: Seq16(0xfffe),
    };
    let sack = [(EXT_SELECTIVE_ACK, mask)];
    header.encode(if mask.is_empty() { &[] } else { &sack }).unwrap()
}

fn utp_packet(addresses: Addresses, head: &[u8], payload_len: u32) -> Vec<u8> {
    let mut octets = Vec::new();
    let payload = Payload::Pattern { start: 1000, len: payload_len };
    Envelope::new(addresses).put_udp(6881, 50_000, head, &payload, &mut octets).unwrap();
    octets
}

fn tcp_packet(addresses: Addresses, segment: &Segment, payload_len: u32) -> Vec<u8> {
    let mut octets = Vec::new();
    let payload = Payload::Pattern { start: 0, len: payload_len };
    Envelope::new(addresses).put_tcp(&segment.encode(), &payload, &mut octets).unwrap();
    octets
}

fn syn() -> Segment {
    Segment {
        src_port: 50_001,
        dst_port: 6882,
        seq: Seq32(u32::MAX),
        flags: Flags::SYN,
        window: 65_535,
        options: Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 99, echo: 0 }),
            ..Options::default()
        },
        ..Segment::default()
    }
}

fn ack_with_sack() -> Segment {
    let mut sack = SackBlocks::default();
    sack.push(Seq32(5000), Seq32(6000)).unwrap();
    sack.push(Seq32(7000), Seq32(8000)).unwrap();
    Segment {
        src_port: 6882,
        dst_port: 50_001,
        seq: Seq32(31),
        ack: Seq32(4000),
        flags: Flags::ACK,
        window: 512,
        options: Options { timestamps: Some(Timestamps { value: 7, echo: 99 }), sack, ..Options::default() },
    }
}

/// A packet, the interface that saw it, how much of it is kept, and a remark.
type Sighting = (u32, Vec<u8>, usize, &'static str);

fn sightings() -> Vec<Sighting> {
    let whole = usize::MAX;
    let mut framed = vec![2; 12];
    framed.extend_from_slice(&[0x86, 0xdd]);
    framed.extend(tcp_packet(V6, &ack_with_sack(), 333));
    vec![
        (0, utp_packet(V4, &utp_head(Kind::Syn, 1, &[]), 0), whole, ""),
        (0, utp_packet(V4, &utp_head(Kind::State, 2, &[0x81, 0, 0, 0x80]), 0), whole, "with a gap"),
        (0, utp_packet(V6, &utp_head(Kind::State, 3, &[1, 2, 3, 4, 5, 6, 7, 8]), 0), whole, ""),
        (0, utp_packet(V4, &utp_head(Kind::Data, 4, &[]), 1001), whole, "dropped: queue full"),
        (0, utp_packet(V6, &utp_head(Kind::Fin, 5, &[]), 0), whole, ""),
        (0, tcp_packet(V4, &syn(), 0), whole, ""),
        (1, framed, whole, ""),
        (0, utp_packet(V4, &utp_head(Kind::Data, 6, &[]), 900), 64, ""),
    ]
}

fn write_capture(path: &Path) {
    let section = Section { application: "cede", comment: "seed 7" };
    let mut writer = Writer::new(Vec::new(), &section).unwrap();
    for (name, link_type) in [("access link", LinkType::RAW), ("lan", LinkType::ETHERNET)] {
        writer.add_interface(&Interface { name, description: "of a test", link_type }).unwrap();
    }
    for (index, (interface, octets, kept, comment)) in (0..).zip(sightings()) {
        let packet = Captured {
            interface: InterfaceId(interface),
            time_ns: START_NS + index * 1_000_000_001,
            octets: &octets[..octets.len().min(kept)],
            original_len: octets.len() as u32,
            comment,
        };
        writer.write_packet(&packet).unwrap();
    }
    std::fs::write(path, writer.into_sink()).unwrap();
}

/// What `program` prints with these arguments; `None`, said aloud, where there is none.
fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("skipped: {program} is not installed");
            None
        }
        Err(error) => panic!("{program} did not start: {error}"),
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).unwrap())
        }
    }
}

/// What `tshark` prints of a capture with these arguments more, all checksums verified.
fn tshark(path: &Path, more: &[&str]) -> Option<String> {
    let mut arguments = vec!["-r", path.to_str().unwrap(), "-d", "udp.port==6881,bt-utp"];
    for preference in [
        "ip.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
        "tcp.check_checksum:TRUE",
        "tcp.relative_sequence_numbers:FALSE",
    ] {
        arguments.extend(["-o", preference]);
    }
    arguments.extend(more);
    output_of("tshark", &arguments)
}

fn capture_file(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    write_capture(&path);
    path
}

/// Columns as in [`FIELDS`]. A checksum status of 1 is "good", of 2 "unverified", for what was cut short.
const EXPECTED: [&str; 8] = [
    "1700000000.123456789|access link|48|48||1|1||64|4|4711|3735928559|25000|1048576|1|65534||0|||||||",
    "1700000001.123456790|access link|54|54|with a gap|1|1||64|2|4711|3735928559|25000|1048576|2|65534|81000080|0|||||||",
    "1700000002.123456791|access link|78|78|||1|||2|4711|3735928559|25000|1048576|3|65534|0102030405060708|0|||||||",
    "1700000003.123456792|access link|1049|1049|dropped: queue full|1|1||64|0|4711|3735928559|25000|1048576|4|65534||1001|||||||",
    "1700000004.123456793|access link|68|68|||1|||1|4711|3735928559|25000|1048576|5|65534||0|||||||",
    "1700000005.123456794|access link|60|60||1||1|64||||||||||4294967295|0|0|1460|99||",
    "1700000006.123456795|lan|439|439||||1|||||||||||31|4000|333||7|5000,7000|",
    "1700000007.123456796|access link|948|64||1|2||64|0|4711|3735928559|25000|1048576|6|65534||900|||||||",
];

#[test]
fn wireshark_finds_every_field_and_nothing_malformed() {
    let path = capture_file("fields.pcapng");
    let mut arguments = vec!["-T", "fields", "-E", "separator=|"];
    arguments.extend(FIELDS.iter().flat_map(|field| ["-e", field]));
    let Some(found) = tshark(&path, &arguments) else { return };
    assert_eq!(found.lines().collect::<Vec<_>>(), EXPECTED);
    // The sequence group, say, holds remarks on any SYN; these two hold faults.
    let faults =
        ["-Y", "_ws.malformed or _ws.expert.group == \"Malformed\" or _ws.expert.group == \"Checksum\""];
    assert_eq!(tshark(&path, &faults).unwrap(), "");
}

/// The judge is no good if it lets everything pass.
#[test]
fn wireshark_finds_a_flipped_bit() {
    let path = capture_file("damaged.pcapng");
    let mut octets = std::fs::read(&path).unwrap();
    let syn = utp_head(Kind::Syn, 1, &[]);
    let place = octets.windows(syn.len()).position(|window| *window == syn[..]).unwrap();
    octets[place + 10] ^= 1;
    std::fs::write(&path, octets).unwrap();
    let faults = ["-Y", "_ws.expert.group == \"Checksum\"", "-T", "fields", "-e", "frame.number"];
    let Some(found) = tshark(&path, &faults) else { return };
    assert_eq!(found.trim(), "1");
}

#[test]
fn wireshark_reads_what_the_file_says_about_itself() {
    let path = capture_file("section.pcapng");
    let Some(text) = tshark(&path, &["-V"]) else { return };
    assert!(!text.contains("Malformed"), "{text}");
    assert_eq!(text.matches("Interface description: of a test").count(), 8, "{text}");
    assert_eq!(text.matches("Encapsulation type: Raw IP").count(), 7, "{text}");
    assert_eq!(text.matches("Encapsulation type: Ethernet").count(), 1, "{text}");
    let Some(text) = output_of("capinfos", &[path.to_str().unwrap()]) else { return };
    for said in ["cede", "seed 7", "Name = access link", "Name = lan", "nanosecond"] {
        assert!(text.contains(said), "{said} in {text}");
    }
}
