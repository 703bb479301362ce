//! What is made of what peers say: times, blocks, what is beside, and what cannot be read.

mod common;

use cede_bt::tracker::udp::{Asked, Request};
use cede_bt::tracker::{Announce, http};
use cede_bt::wire::Message;
use cede_inspect::{About, Config, Cover, Inspector, Kind, Speech};
use cede_units::Stream;
use cede_wire::link::LinkType;
use common::{Heard, MS, PORTS, Packet, block, handshake, inspect, over_tcp, piece, tcp, udp};

const BACK: (u16, u16) = (PORTS.1, PORTS.0);
const ACK: u8 = 0x10;

/// Says messages in turns, each at its time in milliseconds, over TCP.
fn talk(lines: &[(u64, bool, Vec<u8>)]) -> Vec<Packet> {
    let mut seqs = [101_u32, 201];
    let mut out = vec![tcp(0, PORTS, (100, 0, 2), &[]), tcp(0, BACK, (200, 101, 0x12), &[])];
    for (time_ms, is_answer, octets) in lines {
        let side = usize::from(*is_answer);
        let ports = if *is_answer { BACK } else { PORTS };
        out.push(tcp(time_ms * MS, ports, (seqs[side], seqs[1 - side], ACK), octets));
        seqs[side] += octets.len() as u32;
    }
    out
}

fn say(message: &Message) -> Vec<u8> {
    message.to_vec()
}

#[test]
fn latency_chokes_interest_and_duplicates_are_those_of_the_conversation() {
    let (a, b) = (block(0), block(1));
    let (report, heard) = inspect(&talk(&[
        (0, false, handshake(b'-')),
        (0, true, handshake(b'+')),
        (100, false, say(&Message::Interested)),
        (200, true, say(&Message::Unchoke)),
        (300, false, say(&Message::Request(a))),
        (310, false, say(&Message::Request(b))),
        (400, true, piece(a)),
        (700, true, say(&Message::Reject(b))),
        (800, true, say(&Message::Choke)),
        (900, true, piece(a)),
        (1_000, false, say(&Message::NotInterested)),
    ]));
    let [leecher, seed] = &report.connections[0].sides;
    assert_eq!((seed.blocks, seed.duplicate_blocks, seed.unrequested_blocks), (2, 1, 1));
    assert_eq!(heard.blocks.iter().map(|block| block.is_duplicate).collect::<Vec<_>>(), [false, true]);
    assert_eq!(heard.blocks[0].latency_ns(), Some(100 * MS));
    assert_eq!((seed.latency.count(), seed.latency_mean_ms), (1, Some(100.0)));
    assert_eq!((seed.unchokes, seed.choking_s), (1, (0.4, 0.6)));
    assert_eq!(leecher.interested_s, (0.9, 0.1));
    assert_eq!((seed.count(Kind::Reject), leecher.count(Kind::Request)), (1, 2));
    assert_eq!(leecher.client.as_deref(), Some("XX 1.0"));
}

#[test]
fn a_block_that_is_sent_in_parts_has_its_times_and_repairs() {
    let octets = piece(block(3));
    let (first, rest) = octets.split_at(1_000);
    let mut packets = talk(&[
        (0, false, handshake(b'-')),
        (0, true, handshake(b'+')),
        (10, false, say(&Message::Request(block(3)))),
        (60, true, first.to_vec()),
        (90, true, rest.to_vec()),
    ]);
    let mut again = packets[5].clone();
    again.time_ns = 70 * MS;
    packets.insert(6, again);
    let (_, heard) = inspect(&packets);
    let [seen] = heard.blocks[..] else { panic!("{:?}", heard.said) };
    assert_eq!((seen.requested_ns, seen.first_ns, seen.last_ns), (Some(10 * MS), 60 * MS, 90 * MS));
    assert_eq!((seen.repairs, seen.missing), (1, 0));
}

#[test]
fn extended_messages_bear_the_names_that_their_receiver_gave() {
    struct Names(Vec<Option<String>>);
    impl cede_inspect::Sink for Names {
        fn event(&mut self, event: &cede_inspect::Event<'_>) {
            if let cede_inspect::What::Message { message: Message::Extended(..), extension, .. } = event.what
            {
                self.0.push(extension.map(str::to_string));
            }
        }
    }
    let packets = talk(&[
        (0, false, handshake(b'-')),
        (0, true, handshake(b'+')),
        (1, false, say(&Message::Extended(0, b"d1:md6:ut_pexi3eee".to_vec()))),
        (2, true, say(&Message::Extended(3, b"de".to_vec()))),
        (3, true, say(&Message::Extended(4, b"de".to_vec()))),
    ]);
    let (mut inspector, mut names) = (Inspector::new(Config::default()), Names(Vec::new()));
    for packet in &packets {
        inspector.packet(packet.time_ns, LinkType::RAW, &packet.octets, packet.len, &mut names);
    }
    assert_eq!(names.0, [Some("handshake".to_string()), Some("ut_pex".to_string()), None]);
}

#[test]
fn announces_and_the_hash_table_are_told_beside() {
    let announce = Announce {
        info_hash: [9; 20],
        peer_id: *b"-XX1000-abcdefghijkl",
        port: 6881,
        uploaded: 1,
        downloaded: 2,
        left: Some(3),
        event: cede_bt::tracker::Event::Started,
        key: 0,
        wanted: Some(50),
    };
    let url = http::url("http://tracker/announce", &announce, None);
    let target = url.strip_prefix("http://tracker").unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: tracker\r\n\r\n").into_bytes();
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nde".to_vec();
    // Over one connection that is kept, in one packet and in two.
    let (front, rest) = request.split_at(40);
    let mut packets = talk(&[
        (0, false, request.clone()),
        (1, true, answer),
        (2, false, front.to_vec()),
        (3, false, rest.to_vec()),
    ]);
    for request in [Request::Connect, Request::Announce(announce.clone())] {
        packets.push(udp(MS, (5_000, 6_969), &Asked { connection: 77, transaction: 5, request }.encode()));
    }
    let ping = b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe";
    packets.push(udp(2 * MS, (6_881, 6_882), ping));
    let (report, heard) = inspect(&packets);
    let found: Vec<&About> = heard.asides.iter().map(|aside| &aside.about).collect();
    assert_eq!(found.len(), 4, "{found:?}");
    for (about, over_http) in [(found[0], true), (found[1], true), (found[2], false)] {
        let About::Announce { announce: seen, is_http } = about else { panic!("{about:?}") };
        let wanted = Announce { key: seen.key, ..announce.clone() };
        assert_eq!((&**seen, *is_http), (&wanted, over_http));
    }
    assert_eq!(*found[3], About::Dht { kind: "ping".to_string(), info_hash: None });
    assert!(report.connections.is_empty(), "a tracker is no peer");
}

fn random_octets(seed: u64, len: usize) -> Vec<u8> {
    let mut stream = Stream::named(seed, "cover");
    (0..len).map(|_| stream.next_u32() as u8).collect()
}

#[test]
fn what_encryption_hides_is_told_from_what_is_something_else() {
    let flights = |first: Vec<u8>, answer: Vec<u8>| {
        talk(&[
            (0, false, first),
            (10, true, answer),
            (20, false, random_octets(3, 300)),
            (30, true, random_octets(4, 5_000)),
        ])
    };
    let cover = |packets: &[Packet]| {
        let (report, _) = inspect(packets);
        report.connections.first().map(|one| one.speech)
    };
    let encrypted = flights(random_octets(1, 96 + 40), random_octets(2, 96 + 512));
    assert_eq!(cover(&encrypted), Some(Speech::Covered(Cover::Encrypted)));
    let mut hello = random_octets(1, 500);
    hello[..3].copy_from_slice(&[0x16, 3, 1]);
    for other in [hello, b"GET / HTTP/1.1\r\n\r\n".to_vec(), random_octets(5, 2_000), random_octets(6, 40)] {
        let packets = flights(other, random_octets(2, 300));
        assert_eq!(cover(&packets), None);
    }
    let (report, heard) = inspect(&encrypted);
    assert!(heard.said.iter().any(|(_, text)| text == "Covered(Encrypted)"));
    assert_eq!(report.connections[0].sides[1].carried.stream_bytes, 608 + 5_000);
}

#[test]
fn messages_behind_an_encrypted_beginning_are_found() {
    let mut first = random_octets(1, 130);
    let answer = random_octets(2, 200);
    let more = random_octets(7, 100);
    first.extend(more);
    let (report, heard) = inspect(&talk(&[
        (0, false, first),
        (10, true, answer),
        (30, false, say(&Message::Request(block(0)))),
        (40, true, piece(block(0))),
    ]));
    assert_eq!(report.connections[0].speech, Speech::PlainLater);
    assert_eq!(heard.blocks.len(), 1);
    assert_eq!(heard.blocks[0].requested_ns, Some(30 * MS));
    // The handshakes may be among them.
    let (report, _) = inspect(&talk(&[
        (0, false, random_octets(1, 230)),
        (10, true, [random_octets(2, 200), handshake(b'+')].concat()),
        (20, false, [handshake(b'-'), say(&Message::Request(block(0)))].concat()),
        (30, true, piece(block(0))),
    ]));
    let one = &report.connections[0];
    assert_eq!((one.speech, one.info_hash), (Speech::PlainBehind, Some([7; 20])));
    assert_eq!(one.sides.each_ref().map(|side| side.unread_bytes), [230, 200]);
    assert_eq!(one.sides[0].protocol_bytes(), 68 + 17);
}

#[test]
fn a_socket_pair_that_is_used_again_makes_two_connections() {
    let streams = common::streams(4);
    let mut packets = over_tcp(&streams, [5, 9], 1448);
    packets.extend(over_tcp(&streams, [90_000_000, 7], 1448));
    let (report, heard) = inspect(&packets);
    assert_eq!(report.connections.len(), 2);
    assert_eq!(heard.blocks.iter().filter(|block| block.is_duplicate).count(), 4, "the second time");
}

#[test]
fn memory_is_bounded_and_what_is_given_up_is_counted() {
    let mut inspector = Inspector::new(Config { memory_bytes: 1 << 20, ..Config::default() });
    let mut heard = Heard::default();
    for k in 0..20_000_u32 {
        let from = 10_000 + (k % 50_000) as u16;
        let packet = tcp(u64::from(k) * MS, (from, 6_881), (k, 1, ACK), &handshake(b'-'));
        inspector.packet(packet.time_ns, LinkType::RAW, &packet.octets, packet.len, &mut heard);
    }
    let report = inspector.finish(&mut heard);
    let (evicted, given_up) = (report.counters.evicted, report.unlisted.given_up);
    assert!(evicted > 10_000 && given_up > 0, "{evicted} {given_up} of {}", report.connections.len());
    assert!(report.connections.len() < 2_000, "{}", report.connections.len());
}
