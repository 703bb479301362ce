//! Capture files of every byte order and resolution, made by hand or by the writer, as the reader sees them.

use cede_wire::link::LinkType;
use cede_wire::pcap::{ReadError, ReadErrorKind, Reader, Record};
use cede_wire::pcapng::{Captured, Interface, InterfaceId, Section, WriteError, Writer};

/// Numbers in one byte order.
#[derive(Clone, Copy)]
enum Order {
    Big,
    Little,
}

impl Order {
    fn u16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Big => value.to_be_bytes(),
            Self::Little => value.to_le_bytes(),
        }
    }

    fn u32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Big => value.to_be_bytes(),
            Self::Little => value.to_le_bytes(),
        }
    }

    fn words(self, values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|&value| self.u32(value)).collect()
    }

    fn block(self, block_type: u32, body: &[u8]) -> Vec<u8> {
        let len = body.len() as u32 + 12;
        [&self.words(&[block_type, len])[..], body, &self.u32(len)].concat()
    }

    fn section(self) -> Vec<u8> {
        let version = [self.u16(1), self.u16(0)].concat();
        let body = [&self.u32(0x1a2b_3c4d)[..], &version, &self.words(&[u32::MAX, u32::MAX])].concat();
        self.block(0x0a0d_0d0a, &body)
    }

    fn interface(self, link_type: u16, snap_len: u32, options: &[u8]) -> Vec<u8> {
        let body = [&self.u16(link_type)[..], &[0, 0], &self.u32(snap_len), options].concat();
        self.block(1, &body)
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut octets = [&self.u16(code)[..], &self.u16(value.len() as u16), value].concat();
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    }

    /// An enhanced packet block of the octets 1, 2, 3, of 60 on the wire.
    fn packet(self, interface: u32, ticks: u64) -> Vec<u8> {
        let fixed = self.words(&[interface, (ticks >> 32) as u32, ticks as u32, 3, 60]);
        self.block(6, &[&fixed[..], &[1, 2, 3, 0]].concat())
    }
}

fn records(file: &[u8]) -> Vec<Record<'_>> {
    Reader::new(file).unwrap().map(Result::unwrap).collect()
}

fn first_error(file: &[u8]) -> ReadError {
    match Reader::new(file) {
        Err(error) => error,
        Ok(mut reader) => {
            let error = reader.find_map(Result::err).expect("an error");
            assert_eq!(reader.next(), None, "nothing follows an error");
            error
        }
    }
}

#[test]
fn classic_files_of_both_orders_and_resolutions_read_alike() {
    for order in [Order::Big, Order::Little] {
        for (magic, fraction, expected_ns) in
            [(0xa1b2_c3d4, 654_321, 7_654_321_000), (0xa1b2_3c4d, 654_321, 7_000_654_321)]
        {
            let mut file = order.u32(magic).to_vec();
            file.extend([order.u16(2), order.u16(4)].concat());
            // Frame check sequences are announced in the upper half of the link type.
            file.extend(order.words(&[0, 0, 64, 0x4000_0065, 7, fraction, 5, 1500]));
            file.extend([9, 8, 7, 6, 5]);
            let [record] = records(&file)[..] else { panic!("one record") };
            assert_eq!(record.time_ns, Some(expected_ns));
            assert_eq!((record.link_type, record.original_len), (LinkType::RAW, 1500));
            assert_eq!(record.captured, [9, 8, 7, 6, 5]);
            for cut in 25..file.len() {
                let error = ReadError { offset: 24, kind: ReadErrorKind::Truncated };
                assert_eq!(first_error(&file[..cut]), error, "{cut}");
            }
            assert!(records(&file[..24]).is_empty());
        }
    }
}

#[test]
fn other_files_are_named_for_what_they_are_not() {
    let at_start = |kind| ReadError { offset: 0, kind };
    assert_eq!(first_error(&[]), at_start(ReadErrorKind::Truncated));
    assert_eq!(first_error(b"GIF89a and then some more octets"), at_start(ReadErrorKind::NotACapture));
    assert_eq!(first_error(&[0xd4, 0xc3, 0xb2, 0xa1]), at_start(ReadErrorKind::Truncated));
    let old = Order::Little.words(&[0xa1b2_c3d4, 1, 0, 0, 0, 1]);
    assert_eq!(first_error(&old), at_start(ReadErrorKind::Version(1)));
    assert_eq!(first_error(&[0x0a, 0x0d, 0x0d, 0x0a].repeat(9)), at_start(ReadErrorKind::NotACapture));
}

#[test]
fn every_resolution_and_offset_comes_out_in_nanoseconds() {
    // Option value, offset in seconds, ticks, nanoseconds.
    let cases: &[(u8, i64, u64, u64)] = &[
        (0, 0, 3, 3_000_000_000),
        (3, 0, 1_234, 1_234_000_000),
        (6, 0, 1_234_567, 1_234_567_000),
        (9, 0, 1_234_567_891, 1_234_567_891),
        (9, 2, 5, 2_000_000_005),
        (9, -1, 2_000_000_005, 1_000_000_005),
        (9, -1, 5, 0),
        (12, 0, 1_234_567, 1_234),
        (40, 0, u64::MAX, 0),
        (127, 0, u64::MAX, 0),
        (0x80, 0, 3, 3_000_000_000),
        (0x80 | 10, 0, 1_536, 1_500_000_000),
        (0x80 | 32, 0, 1 << 31, 500_000_000),
        (0xff, 0, u64::MAX, 0),
        (0, i64::MAX, u64::MAX, u64::MAX),
        (0, i64::MIN, 1, 0),
    ];
    for order in [Order::Big, Order::Little] {
        for &(resolution, offset, ticks, expected_ns) in cases {
            let offset = match order {
                Order::Big => offset.to_be_bytes(),
                Order::Little => offset.to_le_bytes(),
            };
            let options =
                [order.option(2, b"eth"), order.option(9, &[resolution]), order.option(14, &offset)].concat();
            let file = [order.section(), order.interface(1, 0, &options), order.packet(0, ticks)].concat();
            assert_eq!(records(&file)[0].time_ns, Some(expected_ns), "resolution {resolution:#x}");
        }
    }
}

#[test]
fn sections_of_both_orders_follow_each_other_with_interfaces_of_their_own() {
    let mut file = Vec::new();
    for order in [Order::Big, Order::Little] {
        file.extend(order.section());
        file.extend(order.interface(1, 0, &[]));
        // A block of a kind that is not read.
        file.extend(order.block(5, &[0; 12]));
        file.extend(order.interface(101, 0, &order.option(9, &[9])));
        file.extend(order.packet(1, 77));
        file.extend(order.packet(0, 77));
    }
    let found: Vec<_> = records(&file).iter().map(|r| (r.interface, r.link_type, r.time_ns)).collect();
    let section = [(1, LinkType::RAW, Some(77)), (0, LinkType::ETHERNET, Some(77_000))];
    assert_eq!(found, section.repeat(2));
    // The second section does not know the first one's interfaces.
    let bad = [Order::Big.section(), Order::Big.interface(1, 0, &[]), Order::Little.section()].concat();
    let offset = bad.len();
    let error = ReadError { offset, kind: ReadErrorKind::UnknownInterface(0) };
    assert_eq!(first_error(&[bad, Order::Little.packet(0, 1)].concat()), error);
}

#[test]
fn packets_of_old_files_are_read_beside_enhanced_ones() {
    for order in [Order::Big, Order::Little] {
        let interfaces =
            [order.interface(1, 0, &[]), order.interface(101, 0, &order.option(9, &[9]))].concat();
        // The interface's number has 16 bits, and packets that were dropped meanwhile have the others.
        let numbers = [order.u16(1), order.u16(300)].concat();
        let old = [&numbers[..], &order.words(&[0, 88, 3, 60]), &[4, 5, 6, 0]].concat();
        let file = [order.section(), interfaces, order.block(2, &old), order.packet(0, 77)].concat();
        let [first, second] = records(&file)[..] else { panic!("two records") };
        assert_eq!((first.interface, first.link_type, first.time_ns), (1, LinkType::RAW, Some(88)));
        assert_eq!((first.captured, first.original_len), (&[4, 5, 6][..], 60));
        assert_eq!((second.interface, second.time_ns), (0, Some(77_000)));
    }
}

#[test]
fn simple_packets_are_cut_to_the_snapshot_length_and_have_no_time() {
    let order = Order::Big;
    let head = [order.section(), order.interface(1, 2, &[])].concat();
    let file = [&head[..], &order.block(3, &[0, 0, 0, 9, 4, 5, 0, 0])].concat();
    let [record] = records(&file)[..] else { panic!("one record") };
    assert_eq!((record.captured, record.original_len, record.time_ns), (&[4, 5][..], 9, None));
    let unlimited = [order.section(), order.interface(1, 0, &[])].concat();
    let file = [&unlimited[..], &order.block(3, &[0, 0, 0, 9, 4, 5, 0, 0])].concat();
    assert_eq!(first_error(&file).kind, ReadErrorKind::PacketLength(9));
}

#[test]
fn damaged_blocks_are_named_with_their_offset() {
    let order = Order::Little;
    let head = [order.section(), order.interface(1, 0, &[])].concat();
    let with = |block: Vec<u8>| first_error(&[&head[..], &block].concat());
    let error = |kind| ReadError { offset: head.len(), kind };
    let mut packet = order.packet(0, 1);
    packet[20] = 5;
    assert_eq!(with(packet.clone()), error(ReadErrorKind::PacketLength(5)));
    packet[4] = 13;
    assert_eq!(with(packet.clone()), error(ReadErrorKind::BlockLength(13)));
    packet[4] = 0xff;
    assert_eq!(with(packet.clone()), error(ReadErrorKind::BlockLength(255)));
    packet[5] = 0xff;
    packet[4] = 0xfc;
    assert_eq!(with(packet), error(ReadErrorKind::Truncated));
    let mut packet = order.packet(0, 1);
    *packet.last_mut().unwrap() = 1;
    assert_eq!(with(packet), error(ReadErrorKind::BlockLength(36)));
    assert_eq!(with(order.block(6, &[0; 16])), error(ReadErrorKind::BlockLength(28)));
    assert_eq!(with(order.interface(1, 0, &[9, 0, 5, 0])), error(ReadErrorKind::OptionOverrun));
    assert_eq!(with(order.packet(1, 1)), error(ReadErrorKind::UnknownInterface(1)));
}

#[test]
fn what_the_writer_writes_the_reader_reads() {
    let section = Section { application: "cede", comment: "a scenario" };
    let mut writer = Writer::new(Vec::new(), &section).unwrap();
    let mut expected = Vec::new();
    for (name, link_type) in [("access", LinkType::RAW), ("", LinkType::ETHERNET)] {
        writer.add_interface(&Interface { name, description: "", link_type }).unwrap();
    }
    let octets: Vec<u8> = (0..64).collect();
    for len in 0..64_usize {
        let interface = InterfaceId(len as u32 % 2);
        let time_ns = u64::from(u32::MAX) * len as u64;
        let comment = if len % 3 == 0 { "dropped: ébène" } else { "" };
        let original_len = 1500;
        let packet = Captured { interface, time_ns, octets: &octets[..len], original_len, comment };
        writer.write_packet(&packet).unwrap();
        let link_type = [LinkType::RAW, LinkType::ETHERNET][len % 2];
        expected.push(Record {
            time_ns: Some(time_ns),
            interface: interface.0,
            link_type,
            captured: packet.octets,
            original_len,
        });
    }
    let stray = Captured { interface: InterfaceId(2), time_ns: 0, octets: &[], original_len: 0, comment: "" };
    assert_eq!(writer.write_packet(&stray), Err(WriteError::UnknownInterface(InterfaceId(2))));
    assert_eq!(records(&writer.into_sink()), expected);
}

#[test]
fn texts_beyond_an_options_length_are_cut_between_characters() {
    let comment = "é".repeat(40_000);
    let file = Writer::new(Vec::new(), &Section { application: "", comment: &comment }).unwrap().into_sink();
    // 65,534 octets of two each, padded to a whole word.
    assert_eq!(file[24..28], [1, 0, 0xfe, 0xff]);
    assert_eq!(file.len(), 24 + 4 + 65_536 + 4 + 4);
    assert!(records(&file).is_empty());
}

#[test]
fn pieces_of_any_length_read_like_the_whole() {
    let order = Order::Little;
    let classic = {
        let mut file = order.words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]);
        for k in 0..20_u32 {
            file.extend(order.words(&[100 + k, k, 4, 60, 0x0101_0101 * k]));
        }
        file
    };
    let blocks =
        [order.section(), order.interface(1, 0, &[]), order.packet(0, 7), order.packet(0, 8)].concat();
    for file in [classic, blocks] {
        let whole = records(&file);
        for piece in 1..60 {
            let (mut decoder, mut taken, mut found) = (cede_wire::pcap::Decoder::new(), 0, Vec::new());
            for end in (0..file.len()).step_by(piece).chain([file.len()]) {
                loop {
                    match decoder.next(&file[..end], &mut taken) {
                        Ok(Some(record)) => found.push(record),
                        Ok(None) => break,
                        Err(error) if error.kind == ReadErrorKind::Truncated => break,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            assert_eq!(found, whole, "pieces of {piece}");
            assert_eq!(taken, file.len());
        }
    }
}
