//! The TCP codec on segments of the Linux kernel and on arbitrary octets.

use cede_wire::ip::{PROTOCOL_TCP, Packet};
use cede_wire::link;
use cede_wire::pcap::Reader;
use cede_wire::tcp::{Flags, HEADER_BYTES, OPTION_BYTES_MAX, Segment};

/// The TCP segments of a capture, as far as they were kept.
fn segments(file: &[u8]) -> Vec<&[u8]> {
    let records = Reader::new(file).expect("a capture").map(|record| record.expect("a whole record"));
    let packets = records.filter_map(|record| {
        let octets = link::ip_packet(record.link_type, record.captured).ok()?;
        Packet::parse(octets).ok()
    });
    packets.filter(|packet| packet.protocol == PROTOCOL_TCP).map(|packet| packet.payload).collect()
}

#[test]
fn segments_of_the_linux_kernel_re_encode_to_the_same_octets() {
    let (mut syns, mut stamped, mut sacked, mut count) = (0, 0, 0, 0);
    for octets in segments(include_bytes!("captures/tcp_head.pcap")) {
        let (segment, len) = Segment::decode(octets).expect("a TCP header");
        let mut head = segment.encode();
        // The checksum is the capture writer's, and the urgent pointer is not used.
        head.as_mut_slice()[16..18].copy_from_slice(&octets[16..18]);
        assert_eq!(octets[18..20], [0, 0]);
        assert_eq!(*head, octets[..len], "{segment:?}");
        syns += u32::from(segment.flags.has(Flags::SYN));
        stamped += u32::from(segment.options.timestamps.is_some());
        sacked += u32::from(!segment.options.sack.is_empty());
        count += 1;
    }
    assert_eq!((count, syns, stamped, sacked), (155, 2, 155, 0));
}

/// Acknowledgements of gaps by the Linux kernel, with one, two and three blocks.
const WITH_BLOCKS: [&str; 3] = [
    "1389ad9e1bb5ad52ac1dadbfb01008524bc100000101080a771572c03cf105090101050aac1db367ac1db90f",
    "1389ad9e1bb5ad52ac1dadbfd010086911de00000101080a771572f13cf1050901010512ac1dd557ac1ddaffac1db367ac1dca07",
    "1389ad9e1bb5ad52ac1dadbff0100880941b00000101080a771573213cf105090101051aac1df747ac1dfcefac1dd557ac1debf7\
     ac1db367ac1dca07",
];

#[test]
fn acknowledgements_of_gaps_re_encode_to_the_same_octets() {
    for (count, hex) in (1..).zip(WITH_BLOCKS) {
        let octet = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let mut octets: Vec<u8> = (0..hex.len()).step_by(2).map(octet).collect();
        let (segment, _) = Segment::decode(&octets).unwrap();
        assert_eq!(segment.options.sack.as_slice().len(), count);
        assert!(segment.options.sack.as_slice().iter().all(|(start, end)| start.before(*end)));
        octets[16..18].fill(0);
        assert_eq!(*segment.encode(), octets);
    }
}

#[test]
fn arbitrary_octets_decode_to_an_error_or_to_what_encodes_to_the_same() {
    bolero::check!().for_each(|octets: &[u8]| check(octets));
}

/// Arbitrary octets are rarely headers: here the data offset and the first option are made plausible.
#[test]
fn arbitrary_options_decode_to_an_error_or_to_what_encodes_to_the_same() {
    bolero::check!().with_type::<(u8, [u8; HEADER_BYTES + OPTION_BYTES_MAX])>().for_each(|(kind, octets)| {
        let mut octets = *octets;
        octets[12] = (5 + octets[12] % 11) << 4;
        octets[20] = [2, 3, 4, 5, 8, 1, 30, 0][usize::from(kind % 8)];
        let (mut at, end) = (20, octets.len());
        // Give each option the length of its kind, so that the walk goes on.
        while at + 1 < end {
            let kind = octets[at] % 9;
            octets[at] = kind;
            let len = [1, 1, 4, 3, 2, 10 + 8 * (octets[at + 1] % 3), 4, 4, 10][usize::from(kind)];
            octets[at + 1] = if kind < 2 { octets[at + 1] } else { len };
            at += usize::from(len);
        }
        check(&octets);
    });
}

fn check(octets: &[u8]) {
    let Ok((segment, len)) = Segment::decode(octets) else { return };
    assert!(len <= octets.len() && (HEADER_BYTES..=HEADER_BYTES + OPTION_BYTES_MAX).contains(&len));
    let head = segment.encode();
    assert_eq!(Segment::decode(&head), Ok((segment, head.len())));
}
