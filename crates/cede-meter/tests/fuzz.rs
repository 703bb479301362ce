//! Arbitrary octets as captures and frames: no panic, no false sense of certainty, memory within its limit.

use bolero::ValueGenerator;
use cede_meter::{Config, Feed, Filter, Meter, Selection};
use cede_wire::link::LinkType;
use std::time::Duration;

const LINKS: [u16; 11] = [0, 1, 9, 12, 50, 51, 101, 108, 113, 276, 147];

/// Octets alone (`&[u8]`) are never more than 64, whatever their greatest length is said to be: too few for several packets.
fn octets_up_to(most: usize) -> impl ValueGenerator<Output = Vec<u8>> {
    bolero::produce::<Vec<u8>>().with().len(0..=most)
}

#[test]
fn arbitrary_frames_are_counted() {
    bolero::check!().with_generator(octets_up_to(400)).with_test_time(Duration::from_secs(2)).for_each(
        |octets| {
            let mut meter = Meter::new(Config { memory_bytes: 1 << 16, ..Config::default() });
            let mut time_ns = 0_u64;
            // Lengths are taken from the octets themselves, so that frames repeat and flows have several packets.
            for (k, frame) in
                octets.chunks(usize::from(octets.first().copied().unwrap_or(1)).max(1)).enumerate()
            {
                time_ns = time_ns.wrapping_add(u64::from(frame[0]) << (k % 50));
                meter.packet(time_ns, LinkType(LINKS[k % LINKS.len()]), frame, frame.len() as u32);
            }
            let report = meter.report();
            assert!(report.hosts.iter().all(|host| host.all.time_mean_ms.is_finite()));
        },
    );
}

/// A packet as it is or within something, whose own octets are arbitrary, too, but for those that say what it is.
fn within(fields: &[u8], packet: Vec<u8>) -> (LinkType, Vec<u8>) {
    let at = |k: usize| fields.get(k).copied().unwrap_or(0);
    let datagram = |port: u16, header: &[u8]| {
        let [high, low] = port.to_be_bytes();
        let len = (8 + header.len() + packet.len()) as u8;
        let mut outer = vec![0x45, 0, 0, 20 + len, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        outer.extend([200, 0, high, low, 0, len, 0, 0]);
        (LinkType::RAW, [&outer, header, &packet].concat())
    };
    match at(1) % 10 {
        0 => (LinkType::ETHERNET, [&[0; 12][..], &[0x88, 0x47, 0, 0, at(2), at(3)], &packet].concat()),
        1 => (LinkType::PPP, [&[at(2), at(3), 0x00, 0x21][..], &packet].concat()),
        2 => datagram(6081, &[at(2) & 0x0f, at(3), 8, 0, 0, 0, 1, 0]),
        3 => datagram(2152, &[0x30 | at(2) & 0x0f, 255, 0, 0, 0, 0, 0, at(3)]),
        4 => datagram(4789, &[8, 0, 0, 0, at(2), at(3), 0, 0]),
        5 => {
            let snap = [0, at(2), 0xaa, 0xaa, 3, 0, 0, at(3) & 1, 8, 0];
            (LinkType::ETHERNET, [&[0; 12][..], &snap, &packet].concat())
        }
        6 => {
            let (header, protocol) = ([packet[9], at(2) & 0x07, 0, 0, 0, 0, 0, 9, 0, 0, 0, at(3)], 51);
            let front = [&packet[..9], &[protocol], &packet[10..20]].concat();
            (LinkType::RAW, [&front[..], &header, &packet[20..]].concat())
        }
        _ => (LinkType::RAW, packet),
    }
}

#[test]
fn plausible_frames_with_arbitrary_fields_are_counted() {
    bolero::check!().with_generator(octets_up_to(2_000)).with_test_time(Duration::from_secs(3)).for_each(
        |octets| {
            let mut meter = Meter::new(Config { memory_bytes: 1 << 16, ..Config::default() });
            let mut time_ns = 0_u64;
            for fields in octets.chunks(24) {
                let is_tcp = fields[0] & 1 == 0;
                let mut frame = vec![0x45, 0, 0, 92, 0, 0, 0, 0, 64, if is_tcp { 6 } else { 17 }, 0, 0];
                let ends = if fields[0] & 2 == 0 { [1, 2] } else { [2, 1] };
                frame.extend([10, 0, 0, ends[0], 10, 0, 0, ends[1], 0, ends[0], 0, ends[1]]);
                frame.extend(if is_tcp { [0; 8] } else { [0, 72, 0, 0, fields[0] & 0x41, 0, 0, 1] });
                frame.extend(fields);
                frame.resize(92, 0);
                if is_tcp {
                    frame[32] = 0x80;
                    frame[40..44].copy_from_slice(&[1, 1, 8, 10]);
                }
                time_ns = time_ns.wrapping_add(u64::from(fields[fields.len() - 1]) * 10_000_000);
                let (link_type, frame) = within(fields, frame);
                meter.packet(time_ns, link_type, &frame, frame.len() as u32);
            }
            let report = meter.report();
            assert!(report.hosts.iter().all(|host| host.all.time_mean_ms.is_finite()));
        },
    );
}

#[test]
fn arbitrary_captures_end_with_an_error_or_well() {
    bolero::check!().with_generator(octets_up_to(600)).with_test_time(Duration::from_secs(2)).for_each(
        |octets| {
            for magic in [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0x0a, 0x0d, 0x0d, 0x0a], &[]] {
                let file = [magic, octets].concat();
                let mut meter = Meter::default();
                let mut feed = Feed::new(&file[..]);
                while matches!(feed.step(&mut meter), Ok(true)) {}
                assert!(feed.offset() <= file.len() as u64);
            }
        },
    );
}

#[test]
fn a_recorded_capture_cut_anywhere_gives_what_came_before() {
    let mut file = Vec::new();
    let recorded: &[u8] = include_bytes!("vectors/utp_1m.pcap.gz");
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(recorded), &mut file).unwrap();
    for len in (0..4_000).step_by(7) {
        let mut meter = Meter::default();
        let mut feed = Feed::new(&file[..len]);
        let error = loop {
            match feed.step(&mut meter) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        let is_whole = feed.offset() == len as u64 && len >= 24;
        assert_eq!(error.is_none(), is_whole, "{len}: {error:?}");
        assert!(error.is_none_or(|text| text.contains("the file ends here before its time")), "{len}");
    }
}

#[test]
fn arbitrary_filters_are_read_or_refused_with_a_place() {
    const WORDS: [&str; 20] = [
        "and",
        "or",
        "not",
        "!",
        "(",
        ")",
        "tcp",
        "udp",
        "utp",
        "ip6",
        "src",
        "dst",
        "host",
        "net",
        "port",
        "10.0.0.0/8",
        "::1",
        "80",
        "80-90",
        "portrange",
    ];
    bolero::check!().with_generator(octets_up_to(60)).with_test_time(Duration::from_secs(2)).for_each(
        |octets| {
            let words =
                octets.iter().map(|&k| WORDS[usize::from(k) % WORDS.len()]).collect::<Vec<_>>().join(" ");
            for text in [words.as_str(), &String::from_utf8_lossy(octets)] {
                match Filter::parse(text) {
                    Ok(filter) => {
                        let selection = Selection { filter: Some(filter), ..Selection::default() };
                        let mut meter = Meter::new(Config { selection, ..Config::default() });
                        meter.packet(1, LinkType::RAW, &[0x45; 60], 60);
                        assert_eq!(meter.counters().packets, 1);
                    }
                    Err(error) => {
                        assert!(text.get(error.offset..error.offset + error.len).is_some(), "{error:?}");
                        assert!(error.to_string().contains('^'));
                    }
                }
            }
        },
    );
}
