//! The ways of deployed peers (libutp, libtorrent, librqbit, utp-rs), as far as no other test has them: what they send is
//! understood, and what they need is sent.
#![allow(missing_docs)]

mod common;

use cede_units::{Duration, Instant, Seq16, Stream};
use cede_utp::{Config, Connection, ConnectionError, Endpoint, Event, Limits, Mtu};
use cede_wire::Payload;
use cede_wire::utp::{EXT_BITS, EXT_CLOSE_REASON, EXT_PADDING, EXT_SELECTIVE_ACK, Header, Kind, Packet};
use common::{Fate, Script, Seen, Setup, World, controller, ms, transfer};
use std::collections::BTreeSet;

/// libutp takes a datagram for uTP where the first extension is below 3, and drops it where extension bits are not 8
/// octets long; utp-rs drops it where a mask is no multiple of 4.
fn everybody_reads(seen: &Seen) -> bool {
    let first = seen.chain.first().is_none_or(|&(kind, _)| kind < 3);
    let lengths = seen.chain.iter().all(|&(kind, len)| match kind {
        EXT_SELECTIVE_ACK => len > 0 && len % 4 == 0,
        EXT_BITS => len == 8,
        _ => true,
    });
    first && lengths
}

#[test]
fn every_datagram_is_one_that_every_peer_reads() {
    let config = Config { mtu: Mtu::SEARCH_IPV4, datagram_limit_bytes: Some(9000), ..Config::internet() };
    let setup = Setup { configs: [config.clone(), config], ..Setup::default() };
    let mut world = World::new(&setup);
    let mut random = Stream::named(5, "everybody");
    world.judge = Box::new(move |_| match random.below(20) {
        0 => Fate::Drop,
        1 => Fate::Late(ms(15)),
        2 => Fate::Twice,
        _ => Fate::Deliver,
    });
    world.accept_next(&setup);
    world.sides[0].to_write = 3_000_000;
    world.sides[1].to_write = 300_000;
    world.run_for(Duration::from_secs(120));
    assert_eq!((world.sides[0].received, world.sides[1].received), (300_000, 3_000_000));
    // A close reason has to go behind something, whether or not there is a gap.
    world.judge = Box::new(|_| Fate::Deliver);
    world.sides.iter_mut().for_each(|side| side.connection.close_with_reason(5));
    world.run_for(Duration::from_secs(5));
    let strange: Vec<&Seen> = world.log.iter().filter(|seen| !everybody_reads(seen)).collect();
    assert!(strange.is_empty(), "{strange:?}");
    let kinds: BTreeSet<u8> = world.log.iter().flat_map(|seen| &seen.chain).map(|&(kind, _)| kind).collect();
    assert!(kinds.is_superset(&[EXT_SELECTIVE_ACK, EXT_BITS, EXT_CLOSE_REASON, EXT_PADDING].into()));
    assert!(world.sides.iter().all(|side| side.connection.peer_close_reason() == Some(5)));
    // The probes got through, or else all packets would still be small.
    assert!(world.sides[0].connection.snapshot().payload_bytes > 1400);
}

#[test]
fn more_packets_than_there_are_numbers_are_delivered() {
    let config = Config { mtu: Mtu::Fixed(100), initial_seq: Some(Seq16(0xfff0)), ..Config::default() };
    let setup = Setup { configs: [config.clone(), config], controller: "cubic", ..Setup::default() };
    let mut count = 0;
    let world = transfer(&setup, 14_000_000, move |seen| {
        count += u32::from(seen.header.kind == Kind::Data);
        if seen.header.kind == Kind::Data && count % 5000 == 4999 { Fate::Drop } else { Fate::Deliver }
    });
    assert_eq!(world.sides[1].received, 14_000_000);
    let packets = world.sides[1].connection.statistics().data_packets_received;
    assert!(packets > 2 * 65_536, "{packets} packets");
}

fn header(kind: Kind, id: u16, seq: u16) -> Header {
    Header { window_bytes: 0, ..common::header(kind, id, seq) }
}

#[test]
fn each_repeated_syn_gets_one_answer_with_the_same_number() {
    for id in [7, 0xffff] {
        let mut server: Endpoint<u32> = Endpoint::new(Limits::default(), Stream::named(1, "server"));
        server.listen(Config::internet(), Box::new(|_| controller("reno", &Config::default())));
        let mut now = Instant::from_secs(1);
        let mut answers = Vec::new();
        for _ in 0..4 {
            now += ms(100);
            let syn = header(Kind::Syn, id, 1000).encode(&[]).unwrap();
            server.handle(now, 5, &syn, Payload::Empty);
            let sent: Vec<_> = std::iter::from_fn(|| server.poll_transmit(now)).collect();
            assert_eq!(sent.len(), 1);
            let answer = Packet::decode(&sent[0].1.head).unwrap().header;
            assert_eq!((answer.kind, answer.connection_id, answer.ack), (Kind::State, id, Seq16(1000)));
            answers.push(answer.seq);
        }
        answers.dedup();
        assert_eq!((answers.len(), server.len()), (1, 1));
    }
}

/// An initiator whose SYN has left, and the SYN's number.
fn initiator(now: Instant) -> (Connection, Seq16) {
    let config = Config { connection_id: Some(100), ..Config::internet() };
    let mut random = Stream::named(1, "initiator");
    let mut connection = Connection::connect(now, config.clone(), controller("reno", &config), &mut random);
    let syn = connection.poll_transmit(now).unwrap();
    (connection, Packet::decode(&syn.head).unwrap().header.seq)
}

#[test]
fn librqbits_listener_hears_soon_enough_that_its_answer_has_arrived() {
    // It repeats the answer every 200 ms until something shows that it arrived; ours may be lost.
    let now = Instant::from_secs(1);
    let (mut connection, syn) = initiator(now);
    let answer = Header { ack: syn, ..header(Kind::State, 100, 900) }.encode(&[]).unwrap();
    for repeat in 0..3 {
        connection.handle(now + ms(200 * repeat), &answer, Payload::Empty);
        let heard: Vec<Header> = std::iter::from_fn(|| connection.poll_transmit(now + ms(200 * repeat)))
            .map(|transmit| Packet::decode(&transmit.head).unwrap().header)
            .collect();
        assert_eq!(heard.len(), 1);
        assert_eq!((heard[0].kind, heard[0].ack), (Kind::State, Seq16(899)));
    }
    assert!(connection.is_established());
}

#[test]
fn libtorrents_second_answer_with_another_number_is_ignored() {
    let now = Instant::from_secs(1);
    let (mut connection, syn) = initiator(now);
    for seq in [900, 40_000, 899, 20_000] {
        let answer = Header { ack: syn, ..header(Kind::State, 100, seq) }.encode(&[]).unwrap();
        connection.handle(now, &answer, Payload::Empty);
    }
    let data = Header { ack: syn, ..header(Kind::Data, 100, 900) }.encode(&[]).unwrap();
    connection.handle(now, &data, Payload::copy_from(b"the first answer counts"));
    assert_eq!(connection.read().unwrap().to_vec(), b"the first answer counts");
}

#[test]
fn a_fin_may_be_the_first_answer() {
    let now = Instant::from_secs(1);
    let (mut connection, syn) = initiator(now);
    let fin = Header { ack: syn, ..header(Kind::Fin, 100, 900) }.encode(&[]).unwrap();
    connection.handle(now, &fin, Payload::Empty);
    let events: Vec<Event> = std::iter::from_fn(|| connection.poll_event()).collect();
    assert_eq!(events, [Event::Connected, Event::PeerFinished]);
    let answer = connection.poll_transmit(now).unwrap();
    assert_eq!(Packet::decode(&answer.head).unwrap().header.ack, Seq16(900));
}

#[test]
fn acknowledgements_far_too_old_are_dropped() {
    let mut script = Script::new(Config::default(), 100_000, Seq16(100), Seq16(500));
    let sent = script.send_packets(3);
    script.state(Seq16(sent[2]), &[]);
    for (behind, dropped) in [(0, 0), (1, 0), (3, 0), (4, 1), (10, 2)] {
        let data = script.header(Kind::Data, script.peer_seq, Seq16(sent[2]).sub(behind));
        script.packet(&data, &[], Payload::copy_from(b"x"));
        script.peer_seq = script.peer_seq.add(u16::from(dropped == 0));
        assert_eq!(script.connection.statistics().discarded_ack, dropped, "{behind} behind");
    }
    assert_eq!(script.connection.statistics().bytes_delivered, 3);
}

/// Both streams have ended and our FIN is out.
fn last_fin_out() -> Script {
    let mut script = Script::new(Config::default(), 100_000, Seq16(100), Seq16(500));
    let fin = script.header(Kind::Fin, script.peer_seq, Seq16(99));
    script.packet(&fin, &[], Payload::Empty);
    script.connection.close();
    assert_eq!(script.drain()[0].header.kind, Kind::Fin);
    script
}

/// How often the last FIN leaves in all, where nobody answers it.
fn fins_to(mut script: Script) -> usize {
    let mut fins = 1;
    while let Some(at) = script.connection.poll_timeout() {
        script.wait(at.since(script.now));
        fins += script.drain().iter().filter(|seen| seen.header.kind == Kind::Fin).count();
    }
    assert_eq!(script.connection.error(), None, "all has been said");
    fins
}

#[test]
fn a_last_fin_is_repeated_twice_to_those_who_forget() {
    assert_eq!(fins_to(last_fin_out()), 3);
}

#[test]
fn utp_rs_forgets_after_its_fin_and_resets_with_an_acknowledgement_of_nothing() {
    let mut script = last_fin_out();
    let reset = script.header(Kind::Reset, Seq16(0), Seq16(0));
    script.packet(&reset, &[], Payload::Empty);
    assert!(script.connection.is_closed() && script.connection.error().is_none());
    // While there is anything to lose, such a RESET counts for nothing.
    for prepare in [
        |script: &mut Script| script.connection.close(),
        |script: &mut Script| {
            script.send_packets(2);
        },
    ] {
        let mut script = Script::new(Config::default(), 100_000, Seq16(100), Seq16(500));
        prepare(&mut script);
        script.drain();
        let reset = script.header(Kind::Reset, Seq16(0), Seq16(0));
        script.packet(&reset, &[], Payload::Empty);
        assert_eq!(script.connection.statistics().discarded_resets, 1);
        assert_ne!(script.connection.error(), Some(ConnectionError::Reset));
    }
}

/// A receiver whose buffer is full of the peer's data.
fn full() -> Script {
    let config = Config { receive_buffer_bytes: 10_000, ..Config::default() };
    let mut script = Script::new(config, 100_000, Seq16(100), Seq16(500));
    for _ in 0..10 {
        let data = script.header(Kind::Data, script.peer_seq, Seq16(99));
        script.packet(&data, &[], Payload::copy_from(&[7; 1000]));
        script.peer_seq = script.peer_seq.add(1);
    }
    assert_eq!(script.drain().last().unwrap().header.window_bytes, 0);
    script
}

/// When STATEs leave in the next minutes, in milliseconds.
fn states(script: &mut Script) -> Vec<u64> {
    let begun = script.now;
    let mut states = Vec::new();
    while script.now.since(begun) < Duration::from_secs(200) {
        for seen in script.drain() {
            assert!(seen.header.window_bytes > 0);
            states.push(seen.at.since(begun).as_millis());
        }
        let Some(at) = script.connection.poll_timeout() else { break };
        script.wait(at.since(script.now));
    }
    states
}

#[test]
fn peers_that_never_ask_hear_again_that_the_window_is_open() {
    let mut script = full();
    while script.connection.read().is_some() {}
    let heard = states(&mut script);
    assert_eq!(heard[..7], [0, 500, 1500, 3500, 7500, 15_500, 31_500]);
    // After that, there are keepalives.
    assert!(heard[7..].windows(2).all(|pair| pair[1] - pair[0] >= 28_000), "{heard:?}");
}

#[test]
fn peers_that_have_heard_that_the_window_is_open_hear_it_once() {
    let mut script = full();
    while script.connection.read().is_some() {}
    assert_eq!(script.drain().len(), 1);
    let data = script.header(Kind::Data, script.peer_seq, Seq16(99));
    script.packet(&data, &[], Payload::copy_from(&[7; 1000]));
    assert_eq!(script.drain().len(), 1);
    assert!(states(&mut script)[0] > 20_000);
}

/// Data that came ahead of others, and then those.
fn gap_filled() -> Script {
    let mut script = full();
    while script.connection.read().is_some() {}
    let seq = script.peer_seq;
    for seq in [seq.add(1), seq] {
        let data = script.header(Kind::Data, seq, Seq16(99));
        script.packet(&data, &[], Payload::copy_from(&[7; 1000]));
    }
    script.peer_seq = seq.add(2);
    assert_eq!(script.drain().last().unwrap().header.ack, seq.add(1));
    script
}

#[test]
fn a_peer_that_falls_silent_hears_once_more_that_the_gap_is_filled() {
    // libtorrent gives up without a word where a packet has been sent three times: the gap has cost it two.
    let heard = states(&mut gap_filled());
    assert!(heard[0] == 250 && heard[1] > 8_000, "{heard:?}");
}

#[test]
fn a_peer_that_goes_on_hears_once_that_the_gap_is_filled() {
    let mut script = gap_filled();
    let data = script.header(Kind::Data, script.peer_seq, Seq16(99));
    script.packet(&data, &[], Payload::copy_from(&[7; 1000]));
    assert_eq!(script.drain().len(), 1);
    assert!(states(&mut script)[0] > 8_000);
}

/// A sender that never probes a window of zero, behind a network that loses the update.
#[test]
fn a_lost_window_update_does_not_stall_a_sender_that_never_asks() {
    let patient = Config {
        zero_window_probe: Duration::from_secs(100_000),
        zero_window_probe_max: Duration::from_secs(100_000),
        keepalive: None,
        ..Config::default()
    };
    let small = Config { receive_buffer_bytes: 20_000, keepalive: None, ..Config::default() };
    let mut world = World::connected(&Setup { configs: [patient, small], ..Setup::default() });
    world.sides[1].reads = false;
    world.sides[0].to_write = 100_000;
    world.run_for(Duration::from_secs(30));
    let mut left = 3;
    world.judge = Box::new(move |seen| {
        let lost = seen.from == 1 && left > 0;
        left -= u32::from(lost);
        if lost { Fate::Drop } else { Fate::Deliver }
    });
    world.sides[1].reads = true;
    let end = world.now + Duration::from_secs(10);
    assert!(world.run_until(end, |world| world.sides[1].received == 100_000));
}
