//! Recorded packets of libutp, libtorrent and the Linux kernel, through capture reader, link layer, IP, UDP and uTP.
//!
//! `utp1`: libutp to libutp through a proxy that drops. `lt1`: a libtorrent transfer, in which nothing is lost. `syn_retry`: SYNs
//! that nobody answers. `rst`: probes of a connection that libutp does not have. `utp_head` and `tcp_head`: the first
//! 200 packets at the far end of a 1 Mbit/s uplink, of which the capture kept 128 octets each.

use cede_wire::ip::{Datagram, PROTOCOL_TCP, PROTOCOL_UDP, Packet};
use cede_wire::link::{self, LinkType};
use cede_wire::pcap::{Decoder, ReadErrorKind, Reader, Record};
use cede_wire::utp::{self, DecodeError, Kind};

/// What a file holds.
#[derive(PartialEq, Eq, Debug, Default)]
struct Census {
    /// uTP packets by kind: DATA, FIN, STATE, RESET, SYN.
    utp: [u32; 5],
    /// uTP packets with a selective acknowledgement, and with a close reason.
    selective_acks: u32,
    close_reasons: u32,
    /// UDP payloads that are no uTP packets, TCP segments, other IP packets, and what is not IP.
    other_udp: u32,
    tcp: u32,
    other_ip: u32,
    not_ip: u32,
    /// Records that hold less than was on the wire.
    truncated: u32,
}

impl Census {
    fn of(file: &[u8]) -> Self {
        let mut census = Self::default();
        let mut last_ns = 0;
        for record in Reader::new(file).expect("a capture file") {
            let record = record.expect("a whole record");
            let time_ns = record.time_ns.expect("a time");
            assert!(time_ns >= last_ns && time_ns / 1_000_000_000 / 86_400 > 365, "the clock runs");
            last_ns = time_ns;
            census.count(&record);
        }
        census
    }

    fn count(&mut self, record: &Record<'_>) {
        assert_eq!(record.link_type, LinkType::ETHERNET);
        self.truncated += u32::from((record.captured.len() as u32) < record.original_len);
        let Ok(octets) = link::ip_packet(record.link_type, record.captured) else {
            self.not_ip += 1;
            return;
        };
        let packet = Packet::parse(octets).expect("an IP packet");
        assert_ne!(packet.header_checksum_is_right(), Some(false));
        assert_eq!(packet.fragment, None);
        match packet.protocol {
            PROTOCOL_UDP => self.count_udp(&packet),
            PROTOCOL_TCP => self.tcp += 1,
            _ => self.other_ip += 1,
        }
    }

    fn count_udp(&mut self, packet: &Packet<'_>) {
        let datagram = Datagram::parse(packet.payload).expect("a UDP datagram");
        assert_eq!(datagram.payload_len + 8, packet.payload_len);
        match utp::Packet::decode(datagram.payload) {
            Ok(utp) => {
                assert_eq!(utp.to_vec(), datagram.payload, "decoding and encoding changes nothing");
                self.utp[utp.header.kind as usize] += 1;
                self.selective_acks += u32::from(utp.extensions.selective_ack().is_some());
                self.close_reasons += u32::from(utp.extensions.close_reason().is_some());
            }
            Err(error) => {
                assert!(matches!(error, DecodeError::Version(_) | DecodeError::Kind(_)), "{error:?}");
                self.other_udp += 1;
            }
        }
    }
}

#[test]
fn libutp_through_a_dropping_proxy() {
    let census = Census::of(include_bytes!("captures/utp1.pcap"));
    let expected = Census { utp: [62, 2, 32, 0, 2], selective_acks: 14, ..Census::default() };
    assert_eq!(census, expected);
}

#[test]
fn libtorrent_sends_whole_and_in_order() {
    let census = Census::of(include_bytes!("captures/lt1.pcap"));
    let expected = Census { utp: [1692, 2, 270, 0, 1], close_reasons: 4, ..Census::default() };
    assert_eq!(census, expected);
}

#[test]
fn libutp_asks_again_where_nobody_answers() {
    let census = Census::of(include_bytes!("captures/syn_retry.pcap"));
    assert_eq!(census, Census { utp: [0, 0, 0, 0, 6], ..Census::default() });
}

#[test]
fn libutp_resets_what_it_does_not_know() {
    let census = Census::of(include_bytes!("captures/rst.pcap"));
    assert_eq!(census, Census { utp: [2, 0, 0, 1, 0], ..Census::default() });
}

#[test]
fn short_snapshots_of_utp_among_other_packets() {
    let census = Census::of(include_bytes!("captures/utp_head.pcap"));
    let other = Census { other_udp: 44, other_ip: 6, not_ip: 2, truncated: 74, ..Census::default() };
    assert_eq!(census, Census { utp: [77, 0, 70, 0, 1], ..other });
}

#[test]
fn tcp_among_datagrams_that_are_no_utp() {
    let census = Census::of(include_bytes!("captures/tcp_head.pcap"));
    let other = Census { other_udp: 38, other_ip: 5, not_ip: 2, truncated: 83, ..Census::default() };
    assert_eq!(census, Census { tcp: 155, ..other });
}

/// The same probe twice, and one answer that echoes its id and number.
#[test]
fn the_answer_to_a_probe_carries_its_id_and_number() {
    let file = include_bytes!("captures/rst.pcap");
    let headers: Vec<utp::Header> = Reader::new(file)
        .unwrap()
        .map(|record| {
            let ip = Packet::parse(link::ip_packet(LinkType::ETHERNET, record.unwrap().captured).unwrap())
                .unwrap();
            utp::Packet::decode(Datagram::parse(ip.payload).unwrap().payload).unwrap().header
        })
        .collect();
    let kinds: Vec<Kind> = headers.iter().map(|header| header.kind).collect();
    assert_eq!(kinds, [Kind::Data, Kind::Reset, Kind::Data]);
    assert_eq!(headers[1].connection_id, headers[0].connection_id);
    assert_eq!(headers[1].ack, headers[0].seq);
}

/// Hands over what [`Decoder::each_usual`] does from the second record on: times and lengths, and how far it came.
fn usual(file: &[u8]) -> (Vec<(Option<u64>, usize)>, usize) {
    let (mut decoder, mut taken, mut records) = (Decoder::new(), 0, Vec::new());
    let first = decoder.next(file, &mut taken).expect("a capture").expect("a record");
    let mut last_ns = first.time_ns.expect("a time");
    records.push((first.time_ns, first.captured.len()));
    decoder.each_usual(file, &mut taken, &mut last_ns, &mut |record| {
        records.push((record.time_ns, record.captured.len()));
    });
    assert_eq!(records.last().unwrap().0, Some(last_ns));
    (records, taken)
}

#[test]
fn records_are_handed_over_up_to_the_first_that_is_unusual() {
    const FILE: &[u8] = include_bytes!("captures/utp_head.pcap");
    let records: Vec<_> = Reader::new(FILE).unwrap().map(Result::unwrap).collect();
    let all: Vec<_> = records.iter().map(|record| (record.time_ns, record.captured.len())).collect();
    assert_eq!(usual(FILE), (all.clone(), FILE.len()));
    // Where the eleventh stands.
    let at = 24 + all[..10].iter().map(|record| 16 + record.1).sum::<usize>();
    assert_eq!(usual(&FILE[..at + 20]), (all[..10].to_vec(), at), "it is not whole");
    let is_stopped_by = |field: usize, value: u32| {
        let mut altered = FILE.to_vec();
        altered[at + field..at + field + 4].copy_from_slice(&value.to_le_bytes());
        assert_eq!(usual(&altered), (all[..10].to_vec(), at), "{field} {value}");
    };
    let seconds = (all[10].0.unwrap() / 1_000_000_000) as u32;
    for (field, value) in [(0, seconds - 4_000), (0, seconds + 4_000), (4, 1_000_000), (12, 0), (12, 1 << 21)]
    {
        is_stopped_by(field, value);
    }
    is_stopped_by(8, u32::MAX);
    is_stopped_by(12, all[10].1 as u32 - 1);
    let mut decoder = Decoder::new();
    assert_eq!(decoder.next(&FILE[..10], &mut 0).map(|_| ()).unwrap_err().kind, ReadErrorKind::Truncated);
    decoder.each_usual(FILE, &mut 0, &mut 0, &mut |_| panic!("nothing is known of the format"));
}
