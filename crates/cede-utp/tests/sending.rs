//! What may leave, and when; when it is acknowledged.
#![allow(missing_docs)]

mod common;

use cede_cc::Allowance;
use cede_units::{Duration, Instant, Rate, Seq16, Stream};
use cede_utp::{Config, Connection, DelayedAck, Event, Mtu, SubPacketWindow, WriteError};
use cede_wire::Payload;
use cede_wire::utp::{Header, Kind};
use common::{Recorder, Script, Setup, Told, World, ms, transfer};

fn pattern(start: u64, len: u32) -> Payload {
    Payload::Pattern { start, len }
}

#[test]
fn the_window_bounds_what_is_under_way() {
    let mut script = Script::new(Config::default(), 3 * 1382 + 1381, Seq16(1), Seq16(900));
    assert_eq!(script.send_packets(10), [1, 2, 3]);
    script.state(Seq16(1), &[]);
    assert_eq!(script.drain_data(), [4]);
}

#[test]
fn the_peers_window_bounds_what_is_under_way() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    let narrow = |script: &Script, ack: u16, window_bytes: u32| Header {
        window_bytes,
        ..script.header(Kind::State, Seq16(900), Seq16(ack))
    };
    let header = narrow(&script, 0, 2 * 1382 + 500);
    script.packet(&header, &[], Payload::Empty);
    assert_eq!(script.send_packets(10), [1, 2]);
    // Smaller than a packet: once nothing is under way, a packet is cut to it, but not at once.
    let header = narrow(&script, 2, 500);
    script.packet(&header, &[], Payload::Empty);
    assert!(script.drain().is_empty());
    script.wait(ms(200));
    let sent = script.drain();
    assert_eq!((sent.len(), sent[0].payload_bytes), (1, 500));
}

#[test]
fn nagle_holds_the_last_short_packet_back() {
    for (nagle, expected) in [(true, vec![1]), (false, vec![1, 2])] {
        let mut script = Script::new(Config { nagle, ..Config::default() }, 1 << 20, Seq16(1), Seq16(900));
        script.connection.write(pattern(0, 1382 + 100)).unwrap();
        assert_eq!(script.drain_data(), expected);
        script.state(Seq16(expected.len() as u16), &[]);
        let rest = script.drain();
        assert_eq!(rest.iter().map(|seen| seen.payload_bytes).sum::<u32>(), if nagle { 100 } else { 0 });
    }
    let mut closing = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    closing.connection.write(pattern(0, 1382 + 100)).unwrap();
    closing.connection.close();
    let kinds: Vec<Kind> = closing.drain().iter().map(|seen| seen.header.kind).collect();
    assert_eq!(kinds, [Kind::Data, Kind::Data, Kind::Fin]);
}

#[test]
fn a_window_below_a_packet_is_one_packet_every_so_many_round_trips() {
    // A quarter of a packet, round trips of 50 ms: a packet every 200 ms.
    let mut script = Script::new(Config::default(), 1382 / 4 + 1, Seq16(1), Seq16(900));
    script.connection.write(pattern(0, 4 * 1382)).unwrap();
    let mut times = Vec::new();
    for seq in 1..=4 {
        while script.drain_data().is_empty() {
            let at = script.connection.poll_timeout().unwrap();
            script.wait(at.since(script.now));
        }
        times.push(script.now);
        script.wait(ms(50));
        script.state(Seq16(seq), &[]);
    }
    for pair in times.windows(2) {
        let gap = pair[1].since(pair[0]).as_millis();
        assert!((195..=200).contains(&gap), "{gap} ms");
    }
    // libutp waits for its timer instead.
    let config = Config { sub_packet_window: SubPacketWindow::Blocked, ..Config::default() };
    let mut blocked = Script::new(config, 300, Seq16(1), Seq16(900));
    assert!(blocked.send_packets(2).is_empty());
    let at = blocked.connection.poll_timeout().unwrap();
    assert_eq!(at.since(blocked.now), ms(500));
    blocked.wait(ms(500));
    assert!(blocked.diary.lock().unwrap().iter().any(|told| matches!(told, Told::Timeout(t) if !t.idle)));
}

#[test]
fn a_window_that_opens_while_nothing_is_outstanding_ends_the_wait() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    let window = |script: &mut Script, window_bytes: u32, ack: u16| {
        let header = Header { window_bytes, ..script.header(Kind::State, Seq16(900), Seq16(ack)) };
        script.packet(&header, &[], Payload::Empty);
    };
    window(&mut script, 0, 0);
    assert!(script.send_packets(3).is_empty());
    assert_eq!(script.connection.poll_timeout().unwrap().since(script.now), Duration::from_secs(15));
    script.wait(ms(100));
    window(&mut script, 1 << 20, 0);
    assert_eq!(script.drain_data(), [1, 2, 3]);
    script.wait(ms(50));
    window(&mut script, 1 << 20, 3);
    script.wait(Duration::from_secs(20));
    assert_eq!(script.connection.statistics().zero_window_probes, 0);
}

#[test]
fn packets_cut_when_full_ones_were_larger_leave_again_through_a_window_of_one_packet() {
    for config in [Config::libutp(), Config::default()] {
        let config = Config { mtu: Mtu::SEARCH_IPV4, ..config };
        // The window shrinks at the timeout to a packet of the size that passes then.
        let controller = Box::new(Recorder {
            allowance: Allowance::window(8 * 1452),
            after_timeout_bytes: Some(580),
            diary: common::Diary::default(),
        });
        let mut script = Script::with_controller(config, controller, Seq16(1), Seq16(900));
        let mut start = 0;
        for _ in 0..12 {
            start += u64::from(script.connection.write(pattern(start, 8 * 1452)).unwrap());
            while let Some(last) = script.drain_data().last() {
                script.state(Seq16(*last), &[]);
            }
        }
        assert!(script.connection.snapshot().payload_bytes > 1400);
        script.connection.write(pattern(start, 6 * 1452)).unwrap();
        let large = script.drain_data();
        script.connection.packet_too_big(script.now, Some(600));
        assert_eq!(script.connection.snapshot().payload_bytes, 580);
        let mut resent = Vec::new();
        for _ in 0..40 {
            let data = script.drain_data();
            match (data.last(), script.connection.poll_timeout()) {
                (Some(&seq), _) => script.state(Seq16(seq), &[]),
                (None, Some(at)) => script.wait(at.since(script.now)),
                (None, None) => break,
            }
            resent.extend(data);
        }
        assert!(large.iter().all(|seq| resent.contains(seq)), "{large:?} {resent:?}");
        let snapshot = script.connection.snapshot();
        assert_eq!((snapshot.queued_bytes, snapshot.unacked_bytes), (0, 0));
    }
}

#[test]
fn pacing_spaces_packets_beyond_the_burst() {
    let rate = Rate::from_bits_per_sec(1382 * 8 * 100);
    let allowance = Allowance { cwnd_bytes: 1 << 20, pacing_rate: Some(rate), burst_bytes: 2 * 1382 };
    let controller =
        Box::new(Recorder { allowance, after_timeout_bytes: None, diary: common::Diary::default() });
    let setup = Setup::default();
    let mut world = World::new(&setup);
    let mut random = Stream::named(1, "paced");
    world.sides[0].connection =
        Connection::connect(Instant::ZERO, Config::default(), controller, &mut random);
    world.accept_next(&setup);
    world.sides[0].to_write = 20 * 1382;
    world.run_for(Duration::from_secs(2));
    let times: Vec<u64> =
        world.sent_by(0, Kind::Data).iter().map(|seen| seen.at.since(Instant::ZERO).as_millis()).collect();
    // The answer took one trip of 10 ms; two packets at once, then one every 10 ms.
    let expected: Vec<u64> = (0..20).map(|i: u64| 10 + 10 * i.saturating_sub(1)).collect();
    assert_eq!(times, expected);
}

#[test]
fn the_send_buffer_takes_what_fits_and_says_when_there_is_room() {
    let config = Config { send_buffer_bytes: 10_000, ..Config::default() };
    let mut script = Script::new(config, 4 * 1382, Seq16(1), Seq16(900));
    while script.connection.poll_event().is_some() {}
    assert_eq!(script.connection.write(pattern(0, 30_000)), Ok(10_000));
    assert_eq!(script.connection.write(pattern(10_000, 1)), Err(WriteError::Full));
    assert_eq!(script.connection.write(Payload::Empty), Ok(0));
    script.drain();
    assert_eq!(script.connection.poll_event(), None);
    script.state(Seq16(1), &[]);
    assert_eq!(script.connection.poll_event(), Some(Event::Writable));
    assert_eq!(script.connection.write(pattern(10_000, 5000)), Ok(1382));
    script.connection.close();
    assert_eq!(script.connection.write(pattern(11_382, 1)), Err(WriteError::Closed));
    assert_eq!(script.connection.write_slice(b"x"), Err(WriteError::Closed));
}

#[test]
fn libutp_peers_get_at_most_1023_packets_and_others_as_many_as_agreed() {
    let small = Mtu::Fixed(100);
    let config = Config { mtu: small, ..Config::default() };
    let mut script = Script::new(config, 1 << 20, Seq16(1), Seq16(900));
    script.connection.write(pattern(0, 1 << 20)).unwrap();
    assert_eq!(script.drain_data().len(), 1023);
    let wide = Config {
        mtu: small,
        max_outstanding_packets: 16_384,
        seq_window_packets: 16_384,
        send_buffer_bytes: 4 << 20,
        receive_buffer_bytes: 4 << 20,
        ..Config::default()
    };
    let setup = Setup { configs: [wide.clone(), wide], controller: "fixed", ..Setup::default() };
    // The first packet of the long flight is lost: 8000 and more are held behind it.
    let mut dropped = false;
    let world = transfer(&setup, 1_200_000, move |seen| {
        let drop = !dropped && seen.header.kind == Kind::Data;
        dropped |= drop;
        if drop { common::Fate::Drop } else { common::Fate::Deliver }
    });
    assert_eq!(world.sides[1].received, 1_200_000);
    assert!(world.sides[1].connection.statistics().out_of_order_received > 8000);
    assert_eq!(world.sides[0].connection.statistics().retransmissions, 1);
}

#[test]
fn a_batch_is_acknowledged_once_and_delayed_acknowledgements_wait() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    for i in 0..20_u16 {
        let header = script.header(Kind::Data, Seq16(900 + i), Seq16(0));
        script.packet(&header, &[], pattern(u64::from(i) * 10, 10));
    }
    let sent = script.drain();
    assert_eq!((sent.len(), sent[0].header.kind, sent[0].header.ack), (1, Kind::State, Seq16(919)));

    let delayed_ack = Some(DelayedAck { timeout: ms(40), every_packets: 2 });
    let mut script = Script::new(Config { delayed_ack, ..Config::default() }, 1 << 20, Seq16(1), Seq16(900));
    let data = |script: &mut Script, seq: u16| {
        let header = script.header(Kind::Data, Seq16(seq), Seq16(0));
        script.packet(&header, &[], pattern(u64::from(seq) * 10, 10));
        script.drain().len()
    };
    assert_eq!((data(&mut script, 900), data(&mut script, 901)), (0, 1));
    assert_eq!(data(&mut script, 902), 0);
    assert_eq!(script.connection.poll_timeout().unwrap().since(script.now), ms(40));
    script.wait(ms(40));
    assert_eq!(script.drain().len(), 1);
    // Gaps are told at once, and so is their end.
    assert_eq!((data(&mut script, 904), data(&mut script, 903)), (1, 1));
    assert_eq!(data(&mut script, 904), 1, "and so are duplicates");
}

#[test]
fn data_carry_acknowledgements_and_masks() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    for seq in [900, 902] {
        let header = script.header(Kind::Data, Seq16(seq), Seq16(0));
        script.packet(&header, &[], pattern(0, 10));
    }
    script.connection.write(pattern(0, 2000)).unwrap();
    let sent = script.drain();
    assert_eq!(sent[0].header.kind, Kind::Data);
    assert_eq!((sent[0].header.ack, sent[0].mask.as_deref()), (Seq16(900), Some(&[1, 0, 0, 0][..])));
    // The mask's six octets come out of the payload.
    assert_eq!((sent[0].payload_bytes, sent.len()), (1376, 1));
}

#[test]
fn a_packet_without_room_for_the_mask_leaves_the_state_owed() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    script.send_packets(4);
    let header = script.header(Kind::Data, Seq16(902), Seq16(0));
    script.packet(&header, &[], pattern(0, 10));
    script.state(Seq16(0), &[0x07, 0, 0, 0]);
    let sent = script.drain();
    let kinds: Vec<(Kind, bool)> = sent.iter().map(|seen| (seen.header.kind, seen.mask.is_some())).collect();
    assert_eq!(kinds, [(Kind::Data, false), (Kind::State, true)]);
}

#[test]
fn a_shared_buffer_is_carried_in_pieces_of_itself() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    script.connection.write_slice(&[7; 3000]).unwrap();
    script.connection.write_slice(&[8; 3000]).unwrap();
    script.connection.close();
    let mut octets = Vec::new();
    while let Some(transmit) = script.connection.poll_transmit(script.now) {
        octets.extend(transmit.payload.to_vec());
    }
    assert_eq!(octets, [[7; 3000], [8; 3000]].concat());
}

#[test]
fn a_retransmission_that_is_lost_is_sent_again_though_others_keep_being_acknowledged() {
    let mut script = Script::new(Config::default(), 8 * 1382, Seq16(1), Seq16(900));
    assert_eq!(script.send_packets(300), [1, 2, 3, 4, 5, 6, 7, 8]);
    // Packet 1 is lost with all its retransmissions; the others arrive, one every 10 ms, and each is acknowledged
    // selectively, so that a new one leaves.
    let mut again = 0;
    for held in 1..=200 {
        script.wait(ms(10));
        let mask: Vec<u8> = (0..32).map(|octet| mask_octet(held, octet)).collect();
        script.state(Seq16(0), &mask);
        again += script.drain_data().iter().filter(|&&seq| seq == 1).count();
    }
    assert!(again >= 2, "sent again {again} times in two seconds of selective acknowledgements");
}

/// The octet of a mask that says that the `held` packets after the missing one have arrived.
fn mask_octet(held: u32, octet: u32) -> u8 {
    let bits = held.saturating_sub(8 * octet).min(8);
    ((1_u16 << bits) - 1) as u8
}

/// libtorrent's timeout runs from the last packet of any kind; ours, as libutp's, from the last news of what we sent.
#[test]
fn a_peer_that_sends_data_is_waited_for_where_silence_counts() {
    for (rto_after_silence, repeats) in [(false, true), (true, false)] {
        let config = Config { rto_after_silence, ..Config::default() };
        let mut script = Script::new(config, 1 << 20, Seq16(1), Seq16(900));
        assert_eq!(script.send_packets(1), [1]);
        let mut again = 0;
        for number in 0..20 {
            script.wait(ms(100));
            again += script.drain_data().len();
            let header = script.header(Kind::Data, Seq16(900).add(number), Seq16(0));
            script.packet(&header, &[], pattern(u64::from(number) * 100, 100));
        }
        assert_eq!(again > 0, repeats, "{again}");
        // Silence ends the patience of either.
        let last = (0..30).map(|_| {
            script.wait(ms(100));
            script.drain_data().len()
        });
        assert!(last.sum::<usize>() > 0);
    }
}
