//! The numbered checks of the uTP sheet, by number. Check 13 (interoperation on real sockets) needs sockets, and so
//! belongs to the crate that has them.
#![allow(missing_docs)]

mod common;

use cede_units::{Duration, Instant, Seq16, Stream};
use cede_utp::{Config, Connection, ConnectionError, ConnectionState, Endpoint, Event, Limits, Verdict};
use cede_wire::utp::{Header, Kind, Packet};
use cede_wire::{Payload, Transmit};
use common::{Fate, Recorder, Script, Seen, Setup, World, acked, controller, ms, next, transfer};

const VECTORS: &str = include_str!("../../cede-wire/tests/vectors/utp_packets.json");

/// The octets of every vector, with whether it must be refused.
fn vectors() -> Vec<(Vec<u8>, bool)> {
    let field = |entry: &str, name: &str| {
        let start = entry.find(&format!("\"{name}\": \""))? + name.len() + 5;
        Some(entry[start..].split('"').next()?.to_owned())
    };
    VECTORS
        .split("\"name\":")
        .skip(1)
        .map(|entry| {
            let hex = field(entry, "hex").expect("every vector has octets");
            let octets = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap());
            (octets.collect(), entry.contains("\"reject\""))
        })
        .collect()
}

fn endpoint(seed: u64) -> Endpoint<u32> {
    let mut endpoint = Endpoint::new(Limits::default(), Stream::named(seed, "endpoint"));
    endpoint.listen(Config::default(), Box::new(|_| controller("reno", &Config::default())));
    endpoint
}

#[test]
fn check_01_vectors_are_taken_or_refused_by_an_endpoint() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 31);
    for (octets, refused) in vectors {
        let verdict = endpoint(1).handle(Instant::from_secs(1), 7, &octets, Payload::Empty);
        assert_eq!(verdict == Verdict::Unrecognised, refused, "{octets:02x?}: {verdict:?}");
        if !refused {
            assert_eq!(Packet::decode(&octets).unwrap().to_vec(), octets);
        }
    }
}

#[test]
fn check_02_hand_examples_open_a_connection() {
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
    };
    // The captured initiator: id 17767, first number 9158, its clock at 1469955044 us.
    let config = Config { connection_id: Some(17767), initial_seq: Some(Seq16(9158)), ..Config::default() };
    let mut now = Instant::from_micros(1_469_955_044);
    let mut random = Stream::named(1, "unused");
    let mut connection = Connection::connect(now, config.clone(), controller("reno", &config), &mut random);
    let syn = connection.poll_transmit(now).unwrap();
    assert_eq!(syn.head.to_vec(), hex("41004567579dbbe4000000000010000023c60000"));
    now += Duration::from_micros(1_469_955_277 - 1_469_955_044);
    // The answer arrived 103 us after its timestamp; the first DATA tells 102, so it was taken in one earlier.
    let answer = hex("21004567579dbc660000000000100000456723c6");
    connection.handle(now.saturating_sub(Duration::from_micros(1)), &answer, Payload::Empty);
    assert_eq!(connection.poll_event(), Some(Event::Connected));
    connection.write(Payload::Pattern { start: 0, len: 4000 }).unwrap();
    let data = connection.poll_transmit(now).unwrap();
    assert_eq!(data.head.to_vec(), hex("01004568579dbccd000000660010000023c74566"));
    assert_eq!(data.payload.len(), 1382);
}

#[test]
fn check_03_the_third_bit_of_a_mask_resends_and_no_earlier_one() {
    for config in [Config::default(), Config::libutp()] {
        let mut script = Script::new(config, 20 * 1382, Seq16(9159), Seq16(17767));
        assert_eq!(script.send_packets(12), (9159..9171).collect::<Vec<u16>>());
        script.state(Seq16(9160), &[0x01, 0, 0, 0]);
        assert!(script.drain_data().is_empty());
        script.state(Seq16(9160), &[0x03, 0, 0, 0]);
        assert!(script.drain_data().is_empty());
        script.state(Seq16(9160), &[0x07, 0, 0, 0]);
        assert_eq!(script.drain_data(), [9161]);
        script.state(Seq16(9160), &[0x0f, 0, 0, 0]);
        assert!(script.drain_data().is_empty(), "a packet is found lost once");
        script.state(Seq16(9165), &[0x01, 0, 0, 0]);
        script.state(Seq16(9165), &[0x03, 0, 0, 0]);
        assert!(script.drain_data().is_empty());
        script.state(Seq16(9165), &[0x07, 0, 0, 0]);
        assert_eq!(script.drain_data(), [9166]);
    }
    let mut four = Script::new(Config::libtorrent(), 20 * 1382, Seq16(9159), Seq16(17767));
    four.connection.write(Payload::Pattern { start: 0, len: 12 * 1382 }).unwrap();
    four.drain();
    for mask in [0x01, 0x03] {
        four.state(Seq16(9160), &[mask, 0, 0, 0]);
    }
    assert!(four.drain_data().is_empty());
    four.state(Seq16(9160), &[0x0f, 0, 0, 0]);
    assert_eq!(four.drain_data(), [9161]);
}

#[test]
fn check_04_a_mask_acknowledges_across_the_wrap() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(0xfff0), Seq16(1));
    assert_eq!(script.send_packets(100).len(), 100);
    script.state(Seq16(0xfffe), &[0x81, 0, 0, 0, 0, 0, 0, 0x80]);
    let offset = |seq: u16| u64::from(seq.wrapping_sub(0xfff0));
    let expected: Vec<u64> = (0xfff0..=0xfffe_u16).chain([0x0000, 0x0007, 0x003f]).map(offset).collect();
    assert_eq!(acked(&script.diary), expected);
}

#[test]
fn check_05_masks_of_any_length_are_read() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1000), Seq16(1));
    script.send_packets(60);
    script.state(Seq16(1004), &[0xff]);
    let mut expected: Vec<u64> = (0..=4).chain(6..=13).collect();
    assert_eq!(acked(&script.diary), expected);
    script.state(Seq16(1019), &[0xff, 0xff, 0x03]);
    expected.extend((5..=19).filter(|n| !(6..=13).contains(n)));
    expected.extend(21..=38);
    assert_eq!(acked(&script.diary), expected);
    // Bits beyond what was sent, and an empty mask, say nothing.
    script.state(Seq16(1019), &[0xff; 255]);
    expected.extend(39..=59);
    assert_eq!(acked(&script.diary), expected);
}

#[test]
fn check_06_wrap_of_numbers_and_clocks_stalls_nothing() {
    let configs =
        [Seq16(0xfff0), Seq16(0xfff0)].map(|seq| Config { initial_seq: Some(seq), ..Config::default() });
    let before_the_edge = Duration::from_micros(0xffff_0000);
    for clock_offsets in [[before_the_edge; 2], [before_the_edge, ms(5)], [ms(5), before_the_edge]] {
        let setup = Setup { configs: configs.clone(), clock_offsets, ..Setup::default() };
        let mut world = World::connected(&setup);
        let (controller, diary) = Recorder::boxed(4 * 1382);
        let config = configs[0].clone();
        let mut random = Stream::named(3, "recorder");
        let start = world.local(0);
        // The initiator again, with a controller that writes down the delays.
        world.sides[0].connection = Connection::connect(start, config, controller, &mut random);
        world.sides.truncate(1);
        world.accept_next(&setup);
        world.sides[0].to_write = 3_000_000;
        let end = world.now + Duration::from_secs(600);
        assert!(world.run_until(end, |world| world.sides[1].received == 3_000_000));
        assert!(world.local(0).as_micros() > 0xffff_0000 || clock_offsets[0] == ms(5));
        let statistics = world.sides[0].connection.statistics();
        assert_eq!((statistics.timeouts, statistics.retransmissions), (0, 0));
        let delays: Vec<i64> = diary
            .lock()
            .unwrap()
            .iter()
            .filter_map(|told| match told {
                common::Told::Feedback { feedback, .. } => feedback.one_way_delay_ns,
                _ => None,
            })
            .collect();
        assert!(delays.len() > 500);
        assert!(delays.iter().all(|&delay| delay == delays[0]), "the path's delay is constant");
    }
}

#[test]
fn check_07_a_lost_answer_is_given_again_with_the_same_number() {
    let config = Config::default();
    let mut random = Stream::named(7, "both");
    let mut now = Instant::from_secs(1);
    let mut initiator = Connection::connect(now, config.clone(), controller("reno", &config), &mut random);
    let syn = initiator.poll_transmit(now).unwrap();
    let packet = Packet::decode(&syn.head).unwrap();
    let mut acceptor =
        Connection::accept(now, &packet, config.clone(), controller("reno", &config), &mut random).unwrap();
    let lost = acceptor.poll_transmit(now).unwrap();
    now = initiator.poll_timeout().unwrap();
    assert_eq!(now, Instant::from_secs(4), "the SYN is repeated after three seconds");
    initiator.handle_timeout(now);
    let again = initiator.poll_transmit(now).unwrap();
    let again_header = Packet::decode(&again.head).unwrap().header;
    assert_eq!(
        (again_header.seq, again_header.connection_id),
        (packet.header.seq, packet.header.connection_id)
    );
    acceptor.handle(now, &again.head, Payload::Empty);
    let answer = acceptor.poll_transmit(now).unwrap();
    let header = |transmit: &Transmit| Packet::decode(&transmit.head).unwrap().header;
    assert_eq!(header(&answer).seq, header(&lost).seq);
    initiator.handle(now, &answer.head, Payload::Empty);
    assert!(initiator.is_established());
    assert_eq!(initiator.snapshot().rtt_min, None, "a SYN that was sent twice gives no RTT");
    // An answer with another number, as libtorrent gives to each SYN, comes too late.
    let other = Header { seq: Seq16(header(&answer).seq.0 ^ 0x5555), ..header(&answer) };
    initiator.handle(now, &other.encode(&[]).unwrap(), Payload::Empty);
    initiator.write_slice(b"still works").unwrap();
    while let Some(transmit) = initiator.poll_transmit(now) {
        acceptor.handle(now, &transmit.head, transmit.payload);
    }
    assert_eq!(acceptor.read().unwrap().to_vec(), b"still works");
}

/// Drops the first `n` FINs of each side that is listed.
fn drop_fins(sides: &'static [usize], n: usize) -> impl FnMut(&Seen) -> Fate {
    let mut dropped = [0; 2];
    move |seen| {
        let drop = seen.header.kind == Kind::Fin && sides.contains(&seen.from) && dropped[seen.from] < n;
        dropped[seen.from] += usize::from(drop);
        if drop { Fate::Drop } else { Fate::Deliver }
    }
}

#[test]
fn check_08_fins_survive_loss_in_either_direction() {
    for (sides, n) in [(&[0][..], 1), (&[1][..], 1), (&[0, 1][..], 2)] {
        let world = transfer(&Setup::default(), 100_000, drop_fins(sides, n));
        assert_eq!(world.sides[1].received, 100_000);
        assert!(world.sides.iter().all(|side| side.has(Event::Closed) && side.has(Event::PeerFinished)));
        assert!(world.sides.iter().all(|side| side.connection.error().is_none()));
    }
}

#[test]
fn check_08_both_sides_may_close_at_once() {
    let mut world = World::connected(&Setup::default());
    world.sides.iter_mut().for_each(|side| side.connection.close());
    world.run_for(Duration::from_secs(30));
    for side in &world.sides {
        assert!(side.connection.is_drained() && side.has(Event::Closed));
        assert_eq!(side.connection.error(), None);
    }
}

#[test]
fn check_08_a_fin_that_overtakes_data_ends_the_stream_after_them() {
    let mut held = 0;
    let judge = move |seen: &Seen| {
        held += u32::from(seen.from == 0 && seen.header.kind == Kind::Data);
        // The third packet comes after the FIN.
        if held == 3 && seen.header.kind == Kind::Data && seen.from == 0 {
            Fate::Late(ms(40))
        } else {
            Fate::Deliver
        }
    };
    let mut world = World::connected(&Setup { controller: "fixed", ..Setup::default() });
    world.judge = Box::new(judge);
    world.sides[0].to_write = 6 * 1382;
    world.sides[0].close_after_writing = true;
    world.run_for(ms(20));
    assert!(!world.sides[1].has(Event::PeerFinished));
    assert_eq!(world.sides[1].received, 2 * 1382);
    world.run_for(ms(100));
    assert!(world.sides[1].has(Event::PeerFinished));
    assert_eq!(world.sides[1].received, 6 * 1382);
}

#[test]
fn check_08_states_that_repeat_the_number_of_the_fin_acknowledge_ours() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(500), Seq16(900));
    // The peer ends; libtorrent's counter stays at its FIN.
    let fin = script.header(Kind::Fin, Seq16(900), Seq16(499));
    script.packet(&fin, &[], Payload::Empty);
    assert_eq!(script.drain().last().unwrap().header.ack, Seq16(900));
    script.connection.close();
    let ours = script.drain();
    assert_eq!((ours[0].header.kind, ours[0].header.seq), (Kind::Fin, Seq16(500)));
    script.wait(ms(30));
    let state = script.header(Kind::State, Seq16(900), Seq16(500));
    script.packet(&state, &[], Payload::Empty);
    assert_eq!(script.connection.state(), ConnectionState::Lingering);
    // libutp's counter goes past its FIN.
    let mut other = Script::new(Config::default(), 1 << 20, Seq16(500), Seq16(900));
    other.connection.close();
    other.drain();
    let fin = other.header(Kind::Fin, Seq16(900), Seq16(499));
    other.packet(&fin, &[], Payload::Empty);
    let state = other.header(Kind::State, Seq16(901), Seq16(500));
    other.packet(&state, &[], Payload::Empty);
    assert_eq!(other.connection.state(), ConnectionState::Lingering);
}

#[test]
fn check_09_loss_reordering_and_duplication_leave_the_stream_whole() {
    for seed in 0..8 {
        for name in ["reno", "ledbat"] {
            let mut random = Stream::named(seed, "network");
            let judge = move |_: &Seen| match random.below(100) {
                0..5 => Fate::Drop,
                5..10 => Fate::Twice,
                // A little later than its neighbour.
                10..20 => Fate::Late(Duration::from_micros(1)),
                _ => Fate::Deliver,
            };
            let world = transfer(&Setup { seed, controller: name, ..Setup::default() }, 1_000_000, judge);
            assert_eq!(world.sides[1].received, 1_000_000);
        }
    }
}

#[test]
fn check_10_a_window_of_zero_is_probed_every_fifteen_seconds_and_no_more() {
    let mut world = World::connected(&Setup { controller: "fixed", ..Setup::default() });
    world.sides[1].reads = false;
    world.sides[0].to_write = 4 << 20;
    let start = world.now;
    world.run_for(Duration::from_secs(60));
    let data: Vec<Instant> = world.sent_by(0, Kind::Data).iter().map(|seen| seen.at).collect();
    let filled = data.partition_point(|&at| at < start + Duration::from_secs(10));
    let probes = &data[filled..];
    assert!((2..=4).contains(&probes.len()), "{} probes in 50 s", probes.len());
    assert!(probes.windows(2).all(|pair| pair[1].since(pair[0]) >= Duration::from_secs(15)));
    assert_eq!(world.sides[0].connection.error(), None);
    world.sides[1].reads = true;
    let resumed = world.now;
    let end = world.now + Duration::from_secs(10);
    assert!(world.run_until(end, |world| world.sides[1].received == 4 << 20));
    let first = world.sent_by(0, Kind::Data).into_iter().find(|seen| seen.at > resumed).unwrap();
    assert!(first.at.since(resumed) <= ms(10), "the update takes one trip");
}

#[test]
fn check_11_resets_count_only_where_they_acknowledge_something_plausible() {
    let fresh = || {
        let mut script = Script::new(Config::default(), 1 << 20, Seq16(500), Seq16(900));
        script.send_packets(4);
        script
    };
    let reset = |script: &mut Script, id: u16, ack: u16| {
        let header = Header { connection_id: id, ..script.header(Kind::Reset, Seq16(4711), Seq16(ack)) };
        script.packet(&header, &[], Payload::Empty);
        script.connection.error()
    };
    let mut script = fresh();
    for wrong in [0, 492, 505, 30_000, 0xffff] {
        assert_eq!(reset(&mut script, 100, wrong), None, "ack {wrong}");
    }
    assert_eq!(script.connection.statistics().discarded_resets, 5);
    assert_eq!(reset(&mut script, 77, 503), None, "another connection's id");
    // Our receive id and our send id; the answer to the last DATA, and to a STATE.
    for (id, ack) in [(100, 503), (101, 503), (101, 504), (100, 496)] {
        assert_eq!(reset(&mut fresh(), id, ack), Some(ConnectionError::Reset), "id {id} ack {ack}");
    }
    // The answer to our FIN is the peer's way of having finished.
    let mut closing = fresh();
    closing.connection.close();
    assert_eq!(closing.drain().last().unwrap().header.seq, Seq16(504));
    assert_eq!(reset(&mut closing, 101, 504), None);
    assert!(closing.connection.is_drained());
    assert!(std::iter::from_fn(|| closing.connection.poll_event()).any(|event| event == Event::Closed));
}

#[test]
fn check_11_a_reset_in_answer_to_the_syn_is_a_refusal() {
    let config = Config { initial_seq: Some(Seq16(9)), connection_id: Some(100), ..Config::default() };
    let mut random = Stream::named(1, "unused");
    let now = Instant::from_secs(1);
    let mut connection = Connection::connect(now, config.clone(), controller("reno", &config), &mut random);
    connection.poll_transmit(now).unwrap();
    let header = Header {
        kind: Kind::Reset,
        connection_id: 100,
        timestamp_us: 0,
        timestamp_difference_us: 0,
        window_bytes: 0,
        seq: Seq16(1),
        ack: Seq16(9),
    };
    connection.handle(now, &header.encode(&[]).unwrap(), Payload::Empty);
    assert_eq!(connection.poll_event(), Some(Event::Failed(ConnectionError::Refused)));
}

#[test]
fn check_12_strangers_get_one_reset_in_ten_seconds() {
    let mut endpoint = endpoint(1);
    let probe: Vec<u8> =
        vectors().into_iter().find(|(octets, _)| octets.starts_with(&[0x01, 0x00, 0xab, 0xcd])).unwrap().0;
    let at = |now: Instant, endpoint: &mut Endpoint<u32>| {
        assert_eq!(endpoint.handle(now, 7, &probe, Payload::Empty), Verdict::Stray);
        endpoint.poll_transmit(now)
    };
    let (peer, reset) = at(Instant::from_secs(1), &mut endpoint).unwrap();
    let header = Packet::decode(&reset.head).unwrap().header;
    assert_eq!((peer, header.kind, header.connection_id, header.ack), (7, Kind::Reset, 0xabcd, Seq16(100)));
    assert_eq!((header.timestamp_us, header.timestamp_difference_us, header.window_bytes), (0, 0, 0));
    assert!(at(Instant::from_secs(10), &mut endpoint).is_none());
    assert!(
        at(Instant::from_secs(19), &mut endpoint).is_none(),
        "the last such packet counts, not the answer"
    );
    assert!(at(Instant::from_secs(30), &mut endpoint).is_some());
    // At most a thousand are remembered; beyond that nobody is answered.
    let mut answered = 0;
    for id in 0..3000_u16 {
        let header = Header { connection_id: id, ..Packet::decode(&probe).unwrap().header };
        endpoint.handle(Instant::from_secs(31), 9, &header.encode(&[]).unwrap(), Payload::Empty);
        while endpoint.poll_transmit(Instant::from_secs(31)).is_some() {
            answered += 1;
        }
    }
    assert_eq!(answered, 999);
}

#[test]
fn check_14_keepalives_are_neither_news_nor_duplicates() {
    let mut world = World::connected(&Setup::default());
    world.sides[0].to_write = 10_000;
    world.run_for(Duration::from_secs(1));
    let before = world.log.len();
    world.run_for(Duration::from_secs(100));
    let keepalives: Vec<&Seen> = world.log[before..].iter().collect();
    assert_eq!(keepalives.len(), 6, "three in 100 s from each side");
    for seen in keepalives {
        assert_eq!((seen.header.kind, seen.payload_bytes), (Kind::State, 0));
        // One less than what was received last; where nothing was, no less than the number before the first.
        match world.sent_by(1 - seen.from, Kind::Data).last() {
            Some(last_data) => assert_eq!(next(seen.header.ack), last_data.header.seq),
            None => {
                let states = world.sent_by(1 - seen.from, Kind::State);
                let answer = states.first().expect("the handshake's");
                assert_eq!(next(seen.header.ack), answer.header.seq);
            }
        }
    }
    for side in &world.sides {
        assert!(side.connection.is_established());
        let statistics = side.connection.statistics();
        assert_eq!((statistics.duplicate_acks_received, statistics.retransmissions), (0, 0));
        assert_eq!((statistics.discarded_ack, statistics.discarded_seq), (0, 0));
    }
    world.sides[0].to_write = 10_000;
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.sides[1].received, 10_000 * 2);
}

#[test]
fn check_08_a_fin_that_arrived_ahead_of_data_is_no_end_while_they_are_missing() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(500), Seq16(900));
    script.send_packets(3);
    script.connection.close();
    assert_eq!(script.drain().last().unwrap().header.seq, Seq16(503));
    let fin = script.header(Kind::Fin, Seq16(900), Seq16(500));
    // Packet 501 is missing; 502 and the FIN have arrived.
    script.packet(&fin, &[0b11, 0, 0, 0], Payload::Empty);
    assert_eq!(script.connection.state(), ConnectionState::Closing);
    script.wait(ms(500));
    assert_eq!(script.drain_data(), [501]);
    script.peer_seq = Seq16(901);
    script.state(Seq16(503), &[]);
    assert_eq!(script.connection.state(), ConnectionState::Lingering);
}

#[test]
fn check_05_masks_of_every_length_count_as_far_as_packets_were_sent() {
    for len in 0..=255_usize {
        let mut script = Script::new(Config::default(), 1 << 20, Seq16(0xffe0), Seq16(1));
        assert_eq!(script.send_packets(60).len(), 60);
        let header = script.header(Kind::State, Seq16(1), Seq16(0xffdf));
        let mut octets = Vec::new();
        header.encode_into(&[(1, &vec![0xff; len])], &[], &mut octets).unwrap();
        script.connection.handle(script.now, &octets, Payload::Empty);
        let told = (8 * len).min(59);
        assert_eq!(acked(&script.diary), (1..=told as u64).collect::<Vec<u64>>(), "{len} octets");
        assert_eq!(script.drain_data(), if told >= 3 { vec![0xffe0] } else { vec![] });
    }
}

#[test]
fn masks_on_data_count_as_on_states() {
    // libtorrent's DATA carry them.
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(500), Seq16(900));
    script.send_packets(6);
    let data = script.header(Kind::Data, Seq16(900), Seq16(500));
    script.packet(&data, &[0x07], Payload::copy_from(b"and data too"));
    assert_eq!(script.drain_data(), [501]);
    assert_eq!(script.connection.statistics().packets_acked, 4);
    assert_eq!(script.connection.read().unwrap().to_vec(), b"and data too");
}

#[test]
fn what_waits_beyond_a_gap_never_exceeds_the_receive_buffer() {
    let config = Config { receive_buffer_bytes: 5000, ..Config::default() };
    let mut script = Script::new(config, 1 << 20, Seq16(500), Seq16(900));
    for ahead in (1..1000).rev() {
        let data = script.header(Kind::Data, Seq16(900 + ahead), Seq16(499));
        script.packet(&data, &[], Payload::copy_from(&[7; 1000]));
        assert!(script.connection.snapshot().reordered_bytes <= 5000);
    }
    let snapshot = script.connection.snapshot();
    assert_eq!((snapshot.reordered_bytes, snapshot.window_bytes), (5000, 0));
    assert_eq!(script.connection.statistics().discarded_buffer, 994);
    // The packet that is missing has room all the same.
    let data = script.header(Kind::Data, Seq16(900), Seq16(499));
    script.packet(&data, &[], Payload::copy_from(&[7; 1000]));
    assert_eq!(script.connection.readable_bytes(), 1000);
}
