//! One side of a recorded libutp connection, replayed to our endpoint: its answers must be those that the protocol
//! demands. The recording is of libutp to libutp through a proxy that drops packets; we stand in for either side.
#![allow(missing_docs)]

mod common;

use cede_units::{Instant, Seq16, Stream};
use cede_utp::{Config, Connection, ConnectionState, Endpoint, Event, Limits, Verdict};
use cede_wire::Payload;
use cede_wire::utp::{Kind, Packet};
use common::controller;
use std::collections::{BTreeMap, VecDeque};

const LIBUTP: &[u8] = include_bytes!("../../cede-wire/tests/captures/utp1.pcap");
/// A libtorrent seeder and its downloader.
const LIBTORRENT: &[u8] = include_bytes!("../../cede-wire/tests/captures/lt1.pcap");
/// Classic pcap: 24 octets of file header, 16 before each packet; then Ethernet, IPv4 and UDP headers.
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const LINK_HEADERS: usize = 14 + 20 + 8;

#[derive(Clone)]
struct Recorded {
    at: Instant,
    ports: (u16, u16),
    octets: Vec<u8>,
}

impl Recorded {
    fn packet(&self) -> Packet<'_> {
        Packet::decode(&self.octets).expect("recorded packets decode")
    }
}

fn recording(capture: &[u8]) -> Vec<Recorded> {
    let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
    let half = |at: usize| u16::from_be_bytes(capture[at..at + 2].try_into().unwrap());
    let mut packets = Vec::new();
    let mut at = FILE_HEADER;
    while at + RECORD_HEADER <= capture.len() {
        let (seconds, micros, len) = (word(at), word(at + 4), word(at + 8) as usize);
        let frame = at + RECORD_HEADER;
        let udp = frame + LINK_HEADERS - 8;
        packets.push(Recorded {
            // Seconds of the day keep the numbers small.
            at: Instant::from_micros(u64::from(seconds % 86_400) * 1_000_000 + u64::from(micros)),
            ports: (half(udp), half(udp + 2)),
            octets: capture[frame + LINK_HEADERS..frame + len].to_vec(),
        });
        at = frame + len;
    }
    packets
}

/// What arrived at the listening libutp, after the proxy's losses, and what that answered, in the order of recording.
fn listeners_view() -> (Vec<Recorded>, Vec<Recorded>) {
    let all = recording(LIBUTP);
    // The proxy forwards a SYN from a port of its own to the listener: the second packet of the recording.
    let (proxy, listener) = all[1].ports;
    let of = |ports| all.iter().filter(|recorded| recorded.ports == ports).cloned().collect();
    (of((proxy, listener)), of((listener, proxy)))
}

/// What reached the initiating libutp, and what it sent.
fn initiators_view() -> (Vec<Recorded>, Vec<Recorded>) {
    let all = recording(LIBUTP);
    let (initiator, proxy) = all[0].ports;
    let of = |ports| all.iter().filter(|recorded| recorded.ports == ports).cloned().collect();
    (of((proxy, initiator)), of((initiator, proxy)))
}

/// The receiver's rule, worked out independently: what a packet sequence has to be answered with.
#[derive(Default)]
struct Ledger {
    received: BTreeMap<u16, ()>,
    ack: u16,
}

impl Ledger {
    fn take(&mut self, packet: &Packet<'_>) {
        match packet.header.kind {
            Kind::Syn => self.ack = packet.header.seq.0,
            Kind::Data | Kind::Fin => drop(self.received.insert(packet.header.seq.0, ())),
            _ => {}
        }
        while self.received.contains_key(&self.ack.wrapping_add(1)) {
            self.ack = self.ack.wrapping_add(1);
        }
    }

    fn missing_then_held(&self) -> Vec<u16> {
        let beyond = |seq: u16| seq.wrapping_sub(self.ack.wrapping_add(2));
        let mut bits: Vec<u16> =
            self.received.keys().map(|&seq| beyond(seq)).filter(|&bit| bit < 1024).collect();
        bits.sort_unstable();
        bits
    }
}

#[test]
fn our_listener_answers_a_recorded_libutp_initiator_as_the_protocol_demands() {
    let (arriving, libutps) = listeners_view();
    assert!(arriving.len() > 30 && libutps.len() > 10);
    let mut endpoint: Endpoint<u16> = Endpoint::new(Limits::default(), Stream::named(1, "replay"));
    let config = Config { initial_seq: Some(Seq16(0x4567)), ..Config::default() };
    endpoint.listen(
        config,
        Box::new(|path| {
            cede_cc::registry::build("ledbat", &cede_cc::Params::new(), path)
                .expect("a controller of the registry")
        }),
    );
    let (mut ledger, mut ours, mut stream, mut expected) =
        (Ledger::default(), Vec::new(), Vec::new(), BTreeMap::new());
    let mut masks = 0;
    for recorded in &arriving {
        let packet = recorded.packet();
        assert!(matches!(
            endpoint.handle(recorded.at, 7, &recorded.octets, Payload::Empty),
            Verdict::Opened(_) | Verdict::Taken(_)
        ));
        ledger.take(&packet);
        expected.insert(packet.header.seq.0, packet.payload.to_vec());
        let (_, answer) = endpoint.poll_transmit(recorded.at).expect("each of these is answered");
        assert!(endpoint.poll_transmit(recorded.at).is_none(), "once");
        let decoded = Packet::decode(&answer.head).unwrap();
        assert_eq!((decoded.header.kind, decoded.header.connection_id), (Kind::State, 17767));
        assert_eq!(decoded.header.seq, Seq16(0x4567), "STATEs consume no number");
        assert_eq!(decoded.header.ack.0, ledger.ack);
        let bits: Vec<u16> =
            decoded.extensions.selective_ack().map(|mask| mask.bits().collect()).unwrap_or_default();
        assert_eq!(bits, ledger.missing_then_held());
        assert!(decoded.extensions.selective_ack().is_none_or(|mask| mask.as_bytes().len() % 4 == 0));
        if packet.header.kind != Kind::Syn {
            let difference = recorded.at.as_micros() as u32;
            assert_eq!(
                decoded.header.timestamp_difference_us,
                difference.wrapping_sub(packet.header.timestamp_us)
            );
        }
        masks += usize::from(!bits.is_empty());
        ours.push((decoded.header.ack, bits));
    }
    assert!(masks > 5, "the recording has gaps: {masks}");
    // Everything that libutp's listener said of the same packets, ours said too.
    for answer in &libutps {
        let packet = answer.packet();
        let bits: Vec<u16> =
            packet.extensions.selective_ack().map(|mask| mask.bits().collect()).unwrap_or_default();
        assert!(ours.contains(&(packet.header.ack, bits.clone())), "{:?} {bits:?}", packet.header);
    }
    let handle = endpoint.accept().expect("the connection is open");
    let connection = endpoint.connection_mut(handle).unwrap();
    while let Some(payload) = connection.read() {
        stream.extend(payload.to_vec());
    }
    assert!(connection.is_at_end());
    assert_eq!(stream, expected.into_values().flatten().collect::<Vec<u8>>());
    assert_eq!(stream.len(), 40_000);
    let events: Vec<Event> = std::iter::from_fn(|| endpoint.poll_event()).map(|(_, event)| event).collect();
    assert_eq!(events, [Event::Connected, Event::Readable, Event::PeerFinished]);
}

#[test]
fn our_initiator_takes_a_recorded_libutp_listener_to_its_end() {
    let (arriving, libutps) = initiators_view();
    let syn = libutps[0].packet().header;
    let config =
        Config { connection_id: Some(syn.connection_id), initial_seq: Some(syn.seq), ..Config::libutp() };
    let mut random = Stream::named(1, "replay");
    // The initiator's own clock, so that timestamps can be compared.
    let start = Instant::from_micros(u64::from(syn.timestamp_us));
    let local = |recorded: &Recorded| start + recorded.at.since(libutps[0].at);
    let controller = controller("fixed", &config);
    let mut connection = Connection::connect(start, config, controller, &mut random);
    assert_eq!(
        connection.poll_transmit(start).unwrap().head.to_vec(),
        libutps[0].octets,
        "the same SYN to the octet"
    );
    connection.write_slice(&[9; 40_000]).unwrap();
    connection.close();
    let (mut sent, mut resent) = (BTreeMap::<u16, usize>::new(), Vec::new());
    for recorded in &arriving {
        let now = local(recorded);
        connection.handle_timeout(now);
        connection.handle(now, &recorded.octets, Payload::Empty);
        while let Some(transmit) = connection.poll_transmit(now) {
            let header = Packet::decode(&transmit.head).unwrap().header;
            if matches!(header.kind, Kind::Data | Kind::Fin) {
                let times = sent.entry(header.seq.0).or_default();
                *times += 1;
                if *times > 1 {
                    resent.push(header.seq.0);
                }
            }
        }
    }
    // 29 packets of 1382 octets carry 40,000; the FIN is the next, as in the recording.
    let first = syn.seq.0 + 1;
    assert_eq!(sent.keys().copied().collect::<Vec<u16>>(), (first..=first + 29).collect::<Vec<u16>>());
    assert_eq!(connection.snapshot().unacked_bytes, 0);
    assert_eq!(connection.state(), ConnectionState::Closing, "libutp's listener never ends its own stream");
    // What libutp sent again by fast retransmission, its masks make us send again too, and nothing else.
    let mut theirs = Vec::new();
    let mut seen = BTreeMap::<u16, ()>::new();
    for recorded in &libutps {
        let header = recorded.packet().header;
        if header.kind == Kind::Data && seen.insert(header.seq.0, ()).is_some() {
            theirs.push(header.seq.0);
        }
    }
    assert!(!theirs.is_empty());
    assert_eq!(resent, theirs);
}

/// True where the answer names a packet beyond a gap; the ledger knows what it must say.
fn check_answer(ledger: &Ledger, answer: &Packet<'_>) -> bool {
    assert_eq!(answer.header.ack.0, ledger.ack);
    let bits: Vec<u16> =
        answer.extensions.selective_ack().map(|mask| mask.bits().collect()).unwrap_or_default();
    let expected: Vec<u16> = ledger.missing_then_held().into_iter().filter(|&bit| bit < 256).collect();
    assert_eq!(bits, expected);
    !bits.is_empty()
}

/// libtorrent's recording as it would be if the path lost the seeder's every 33rd packet: it comes 20 packets later.
fn with_losses() -> Vec<Recorded> {
    let all = recording(LIBTORRENT);
    let seeder = all[0].ports.1;
    let (mut delayed, mut late, mut count) = (Vec::new(), VecDeque::<(usize, Recorded)>::new(), 0);
    for (index, recorded) in all.iter().enumerate() {
        let is_data = recorded.ports.0 == seeder && recorded.packet().header.kind == Kind::Data;
        count += usize::from(is_data);
        // The first is the answer's successor: where the stream begins must be known.
        if is_data && count % 33 == 0 && index + 20 < all.len() {
            late.push_back((index + 20, recorded.clone()));
        } else {
            delayed.push(recorded.clone());
        }
        while late.front().is_some_and(|&(due, _)| due <= index) {
            let (_, mut packet) = late.pop_front().unwrap();
            // What is sent again has the clock, the window and the acknowledgement of now.
            let latest = all[..=index].iter().rfind(|recorded| recorded.ports.0 == seeder).unwrap();
            packet.octets[4..16].copy_from_slice(&latest.octets[4..16]);
            packet.octets[18..20].copy_from_slice(&latest.octets[18..20]);
            delayed.push(Recorded { at: recorded.at, ..packet });
        }
    }
    delayed
}

#[test]
fn our_downloader_gathers_what_a_recorded_libtorrent_seeder_sent() {
    let all = with_losses();
    let syn = all[0].packet().header;
    let (downloader, seeder) = all[0].ports;
    let config = Config {
        connection_id: Some(syn.connection_id),
        initial_seq: Some(syn.seq),
        nagle: false,
        ..Config::default()
    };
    let mut random = Stream::named(1, "replay");
    let controller = controller("fixed", &config);
    let mut connection = Connection::connect(all[0].at, config, controller, &mut random);
    assert!(connection.poll_transmit(all[0].at).is_some());
    let answer = all.iter().find(|recorded| recorded.ports == (seeder, downloader)).unwrap().packet().header;
    let mut ledger = Ledger { ack: answer.seq.0.wrapping_sub(1), ..Ledger::default() };
    let (mut expected, mut stream) = (BTreeMap::new(), Vec::new());
    let (mut written, mut masks) = (syn.seq, 0);
    for recorded in &all[1..] {
        let packet = recorded.packet();
        if recorded.ports == (downloader, seeder) {
            // What the downloader asked for, so that what the seeder acknowledges has been sent.
            if matches!(packet.header.kind, Kind::Data | Kind::Fin) {
                written = written.add(1);
                match packet.header.kind {
                    Kind::Data => drop(connection.write_slice(packet.payload).unwrap()),
                    _ => connection.close(),
                }
                let sent = connection.poll_transmit(recorded.at).expect("it may leave");
                assert_eq!(Packet::decode(&sent.head).unwrap().header.seq, written);
            }
            continue;
        }
        ledger.take(&packet);
        if matches!(packet.header.kind, Kind::Data | Kind::Fin) {
            expected.insert(packet.header.seq.distance_from(answer.seq), packet.payload.to_vec());
        }
        connection.handle(recorded.at, &recorded.octets, Payload::Empty);
        while let Some(answer) = connection.poll_transmit(recorded.at) {
            masks += usize::from(check_answer(&ledger, &Packet::decode(&answer.head).unwrap()));
        }
        while let Some(payload) = connection.read() {
            stream.extend(payload.to_vec());
        }
    }
    assert!(masks > 100, "{masks}");
    let statistics = connection.statistics();
    assert_eq!((statistics.discarded_ack, statistics.discarded_seq, statistics.discarded_other), (0, 0, 0));
    // Every number from the first on has arrived, and the last acknowledgement covers them all.
    let last = *expected.keys().last().unwrap();
    assert_eq!(expected.len(), usize::from(last) + 1);
    assert_eq!(Seq16(ledger.ack), answer.seq.add(last));
    assert!(stream.len() > 1_900_000);
    assert!(stream == expected.into_values().flatten().collect::<Vec<u8>>());
}
