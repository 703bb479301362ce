//! Octets of any kind: nothing panics, and what decodes survives the way back. `cargo bolero` runs these without an
//! end; the test run makes a bounded number of tries.

use bolero::{TypeGenerator, ValueGenerator, check, produce};
use cede_units::Seq16;
use cede_wire::link::{self, LinkType};
use cede_wire::pcap::Reader;
use cede_wire::pcapng::{Captured, Interface, InterfaceId, Section, Writer};
use cede_wire::utp::{Header, Kind, Packet, View};
use cede_wire::{Payload, ip};
use core::net::{Ipv4Addr, Ipv6Addr};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const TRIES: usize = 100_000;

/// Up to so many arbitrary octets.
fn octets_up_to(len: usize) -> impl ValueGenerator<Output = Vec<u8>> {
    produce::<Vec<u8>>().with().len(0..=len)
}

/// How many tries came how far: a generator whose octets are all refused would test little.
struct Tally {
    tries: AtomicUsize,
    accepted: AtomicUsize,
}

impl Tally {
    const fn new() -> Self {
        Self { tries: AtomicUsize::new(0), accepted: AtomicUsize::new(0) }
    }

    fn count(&self, is_accepted: bool) {
        self.tries.fetch_add(1, Relaxed);
        self.accepted.fetch_add(usize::from(is_accepted), Relaxed);
    }

    /// At least a tenth of the tries must have been accepted.
    fn check(&self) {
        let (tries, accepted) = (self.tries.load(Relaxed), self.accepted.load(Relaxed));
        println!("{accepted} of {tries} tries were accepted");
        assert!(accepted * 10 >= tries);
    }
}

/// A header with extensions and a payload, as arbitrary as the format allows.
#[derive(Debug, TypeGenerator)]
struct Form {
    kind: u8,
    connection_id: u16,
    timestamp_us: u32,
    timestamp_difference_us: u32,
    window_bytes: u32,
    seq: u16,
    ack: u16,
    // Some bodies are longer than an extension can be.
    #[generator(produce::<Vec<(u8, Vec<u8>)>>().with().len(0..=4).values((0..=255, octets_up_to(264))))]
    extensions: Vec<(u8, Vec<u8>)>,
    payload: Vec<u8>,
}

impl Form {
    fn header(&self) -> Header {
        Header {
            kind: Kind::from_number(self.kind % 5).unwrap(),
            connection_id: self.connection_id,
            timestamp_us: self.timestamp_us,
            timestamp_difference_us: self.timestamp_difference_us,
            window_bytes: self.window_bytes,
            seq: Seq16(self.seq),
            ack: Seq16(self.ack),
        }
    }

    fn extensions(&self) -> Vec<(u8, &[u8])> {
        self.extensions.iter().map(|(kind, body)| (*kind, &body[..])).collect()
    }
}

#[test]
fn any_header_with_any_extensions_decodes_to_itself() {
    static TALLY: Tally = Tally::new();
    check!().with_iterations(TRIES).with_type::<Form>().for_each(|form| {
        let (header, extensions) = (form.header(), form.extensions());
        let mut octets = Vec::new();
        let written = header.encode_into(&extensions, &form.payload, &mut octets);
        let is_expressible = extensions.iter().all(|(kind, body)| *kind != 0 && body.len() < 256);
        assert_eq!(written.is_some(), is_expressible);
        TALLY.count(is_expressible);
        if !is_expressible {
            assert!(octets.is_empty());
            return;
        }
        let packet = Packet::decode(&octets).unwrap();
        assert_eq!((packet.header, packet.payload), (header, &form.payload[..]));
        let found: Vec<(u8, &[u8])> = packet.extensions.iter().map(|e| (e.kind, e.body)).collect();
        assert_eq!(found, extensions);
        check_head(&header, &extensions);
    });
    TALLY.check();
}

/// The inline form is the front of the general one, or too long.
fn check_head(header: &Header, extensions: &[(u8, &[u8])]) {
    let mut octets = Vec::new();
    header.encode_into(extensions, &[], &mut octets).unwrap();
    match header.encode(extensions) {
        Some(head) => assert_eq!(head[..], octets),
        None => assert!(octets.len() > cede_wire::HEAD_CAPACITY),
    }
}

#[test]
fn what_decodes_as_utp_encodes_to_the_same_octets() {
    // Half of the tries begin as packets do, or few would pass the first octet.
    static TALLY: Tally = Tally::new();
    let generator = (produce::<bool>(), produce::<u8>(), octets_up_to(120));
    check!().with_iterations(TRIES).with_generator(generator).for_each(|(is_likely, kind, tail)| {
        let mut octets = tail.clone();
        if let (true, [first, extension, ..]) = (is_likely, &mut octets[..]) {
            *first = (kind % 5) << 4 | 1;
            *extension %= 4;
        }
        make_lengths_small(&mut octets, *kind);
        let view = View::new(&octets);
        assert_eq!(view.is_some(), octets.len() >= 20);
        let extensions_seen = view.map_or(0, |view| view.extensions().count());
        let decoded = Packet::decode(&octets);
        TALLY.count(decoded.is_ok_and(|packet| !packet.extensions.is_empty()));
        if let Ok(packet) = decoded {
            assert_eq!(packet.to_vec(), octets);
            assert_eq!(packet.extensions.iter().count(), extensions_seen);
            let mask = packet.extensions.selective_ack();
            assert!(mask.is_none_or(|mask| mask.bits().all(|i| mask.contains(i))));
        }
    });
    TALLY.check();
}

/// Makes most octets behind the header small, or a chain's first length would nearly always run over the end.
fn make_lengths_small(octets: &mut [u8], seed: u8) {
    for (place, octet) in octets.iter_mut().enumerate().skip(20) {
        if !(place + usize::from(seed)).is_multiple_of(5) {
            *octet %= 4;
        }
    }
}

/// Reads a file to its end or first error, each packet down to UDP; returns how many packets there were.
fn read_through(file: &[u8]) -> usize {
    let Ok(reader) = Reader::new(file) else { return 0 };
    // No record is shorter than the smallest header.
    let records_max = file.len() / 12;
    let mut records = 0;
    for record in reader.map_while(Result::ok) {
        records += 1;
        assert!(records <= records_max);
        parse_through(record.link_type, record.captured);
    }
    records
}

/// Returns true where the frame held an IP packet.
fn parse_through(link_type: LinkType, frame: &[u8]) -> bool {
    let Ok(octets) = link::ip_packet(link_type, frame) else { return false };
    let Ok(packet) = ip::Packet::parse(octets) else { return false };
    assert!(packet.payload.len() <= packet.payload_len.min(octets.len()));
    let _ = (packet.header_checksum_is_right(), packet.transport_checksum_is_right());
    if let Ok(datagram) = ip::Datagram::parse(packet.payload) {
        assert!(datagram.payload.len() <= datagram.payload_len);
    }
    true
}

/// Octets to be changed and a place to cut at.
#[derive(Debug, TypeGenerator)]
struct Damage {
    #[generator(produce::<Vec<(u16, u8)>>().with().len(0..=6_usize))]
    changes: Vec<(u16, u8)>,
    cut: Option<u16>,
}

fn damage(octets: &[u8], damage: &Damage) -> Vec<u8> {
    let mut octets = octets.to_vec();
    for &(place, value) in &damage.changes {
        let place = usize::from(place) % octets.len();
        octets[place] = value;
    }
    if let Some(cut) = damage.cut {
        octets.truncate(usize::from(cut) % (octets.len() + 1));
    }
    octets
}

#[test]
fn capture_readers_bear_any_octets() {
    let magics: [&[u8]; 5] = [
        &[0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4],
        &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0],
        &[0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0],
        &[0x0a, 0x0d, 0x0d, 0x0a],
        &[],
    ];
    let generator = (produce::<usize>(), octets_up_to(400));
    check!().with_iterations(TRIES).with_generator(generator).for_each(|(choice, tail)| {
        read_through(&[magics[choice % magics.len()], tail].concat());
    });
}

#[test]
fn capture_readers_bear_damaged_files() {
    let classic = include_bytes!("captures/utp_head.pcap");
    static TALLY: Tally = Tally::new();
    let ng = pcapng_of_every_kind();
    check!().with_iterations(TRIES).with_type::<(bool, Damage)>().for_each(|(is_ng, how)| {
        let file = if *is_ng { &ng[..] } else { &classic[..2000] };
        TALLY.count(read_through(&damage(file, how)) > 0);
    });
    TALLY.check();
}

/// Two interfaces, packets of both families, comments.
fn pcapng_of_every_kind() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &Section { application: "cede", comment: "fuzz" }).unwrap();
    for link_type in [LinkType::RAW, LinkType::ETHERNET] {
        writer.add_interface(&Interface { name: "a", description: "", link_type }).unwrap();
    }
    for (time_ns, octets) in (0..).zip(packets()) {
        let original_len = octets.len() as u32;
        let interface = InterfaceId(0);
        writer
            .write_packet(&Captured { interface, time_ns, octets: &octets, original_len, comment: "why" })
            .unwrap();
    }
    writer.into_sink()
}

fn packets() -> [Vec<u8>; 2] {
    let v4 = ip::Addresses::V4 { source: Ipv4Addr::LOCALHOST, destination: Ipv4Addr::BROADCAST };
    let v6 = ip::Addresses::V6 { source: Ipv6Addr::LOCALHOST, destination: Ipv6Addr::UNSPECIFIED };
    [v4, v6].map(|addresses| {
        let mut octets = Vec::new();
        ip::Envelope::new(addresses).put_udp(1, 2, &[7; 20], &Payload::Empty, &mut octets).unwrap();
        octets
    })
}

#[test]
fn the_ip_parser_bears_any_octets() {
    static TALLY: Tally = Tally::new();
    let [v4, v6] = packets();
    let generator = (produce::<u16>(), produce::<bool>(), produce::<Damage>(), octets_up_to(120));
    check!().with_iterations(TRIES).with_generator(generator).for_each(|(link_type, is_v6, how, tail)| {
        parse_through(LinkType(link_type % 300), tail);
        parse_through(LinkType::RAW, tail);
        let packet = if *is_v6 { &v6 } else { &v4 };
        TALLY.count(parse_through(LinkType::RAW, &damage(&[&packet[..], tail].concat(), how)));
    });
    TALLY.check();
}
