//! Opening that fails, ends of all kinds, and the timers in between.
#![allow(missing_docs)]

mod common;

use cede_units::{Duration, Instant, Seq16, Stream};
use cede_utp::{Config, Connection, ConnectionError, ConnectionState, Event, Timer};
use cede_wire::Payload;
use cede_wire::utp::{Header, Kind, Packet};
use common::{Fate, Script, Setup, Told, World, controller, ms};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn events(script: &mut Script) -> Vec<Event> {
    std::iter::from_fn(|| script.connection.poll_event()).collect()
}

#[test]
fn a_syn_is_sent_three_times_and_the_attempt_ends_after_21_seconds() {
    let config = Config::default();
    let mut random = Stream::named(1, "unused");
    let mut now = Instant::ZERO;
    let mut connection = Connection::connect(now, config.clone(), controller("reno", &config), &mut random);
    let mut syns = Vec::new();
    loop {
        while let Some(transmit) = connection.poll_transmit(now) {
            syns.push((now, Packet::decode(&transmit.head).unwrap().header));
        }
        let Some(at) = connection.poll_timeout() else { break };
        now = at;
        connection.handle_timeout(now);
    }
    let times: Vec<u64> = syns.iter().map(|(at, _)| at.as_micros() / 1_000_000).collect();
    assert_eq!((times, now), (vec![0, 3, 9], Instant::from_secs(21)));
    assert!(syns.iter().all(|(_, header)| header.seq == syns[0].1.seq && header.ack == Seq16(0)));
    assert_eq!(connection.poll_event(), Some(Event::Failed(ConnectionError::TimedOut)));
    assert!(connection.is_drained());
}

#[test]
fn an_answer_that_acknowledges_something_else_is_none() {
    let config = Config { initial_seq: Some(Seq16(9)), connection_id: Some(100), ..Config::default() };
    let mut random = Stream::named(1, "unused");
    let now = Instant::from_secs(1);
    let mut connection = Connection::connect(now, config.clone(), controller("reno", &config), &mut random);
    connection.poll_transmit(now);
    for (kind, ack, opened) in [(Kind::State, 8, false), (Kind::Data, 10, false), (Kind::Fin, 9, true)] {
        let header = Header {
            kind,
            connection_id: 100,
            timestamp_us: 1,
            timestamp_difference_us: 0,
            window_bytes: 1000,
            seq: Seq16(77),
            ack: Seq16(ack),
        };
        connection.handle(now, &header.encode(&[]).unwrap(), Payload::Empty);
        assert_eq!(connection.is_established(), opened);
    }
    // libtorrent may answer with a FIN at once: it is the first packet of its stream.
    let events: Vec<Event> = std::iter::from_fn(|| connection.poll_event()).collect();
    assert_eq!(events, [Event::Connected, Event::PeerFinished]);
    let state = connection.poll_transmit(now).unwrap();
    assert_eq!(Packet::decode(&state.head).unwrap().header.ack, Seq16(77));
}

#[test]
fn a_first_answer_with_data_delivers_them() {
    let mut world = World::new(&Setup::default());
    world.accept_next(&Setup::default());
    // The STATE is lost, and DATA of the acceptor overtakes its repetition.
    let t = Seq16(4000);
    let lost = world.sides[1].connection.poll_transmit(Instant::ZERO).unwrap();
    let syn_seq = Packet::decode(&lost.head).unwrap().header.ack;
    let initiator = &mut world.sides[0].connection;
    let id = initiator.receive_id();
    let header = Header {
        kind: Kind::Data,
        connection_id: id,
        timestamp_us: 1,
        timestamp_difference_us: 0,
        window_bytes: 1 << 20,
        seq: t,
        ack: syn_seq,
    };
    initiator.handle(Instant::from_millis(5), &header.encode(&[]).unwrap(), Payload::copy_from(b"hello"));
    assert_eq!(initiator.read().unwrap().to_vec(), b"hello");
    let state = initiator.poll_transmit(Instant::from_millis(5)).unwrap();
    assert_eq!(Packet::decode(&state.head).unwrap().header.ack, t);
}

#[test]
fn an_acceptor_that_hears_nothing_more_gives_up_after_ten_seconds() {
    let mut world = World::new(&Setup::default());
    world.accept_next(&Setup::default());
    world.judge = Box::new(|seen| if seen.from == 1 { Fate::Drop } else { Fate::Deliver });
    world.run_for(secs(12));
    assert_eq!(world.sides[1].connection.error(), Some(ConnectionError::TimedOut));
    // The answer, two repetitions of its own, and one for each repeated SYN at 3 s and 9 s.
    assert_eq!(world.sent_by(1, Kind::State).len(), 5);
    let first = world.sent_by(1, Kind::State)[0].header.seq;
    assert!(world.sent_by(1, Kind::State).iter().all(|seen| seen.header.seq == first));
}

#[test]
fn an_acceptor_may_speak_first_even_if_the_third_packet_is_lost() {
    // Its answer leaves three times; that each of these is acknowledged in vain is the end.
    for lost in 0..2 {
        let mut world = World::new(&Setup::default());
        world.accept_next(&Setup::default());
        world.judge = Box::new(move |seen| {
            if seen.from == 0 && seen.header.kind == Kind::State && seen.index <= lost {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
        world.sides[1].to_write = 50_000;
        let end = Instant::from_secs(30);
        assert!(world.run_until(end, |world| world.sides[0].received == 50_000), "{lost} lost");
    }
}

#[test]
fn silence_ends_a_connection_after_five_timeouts() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    script.send_packets(2);
    let start = script.now;
    while let Some(at) = script.connection.poll_timeout() {
        script.wait(at.since(script.now));
        script.drain();
    }
    // 0.5 + 1 + 2 + 4 + 8 s.
    assert_eq!(script.now.since(start), ms(15_500));
    assert!(events(&mut script).contains(&Event::Failed(ConnectionError::TimedOut)));
    assert_eq!(script.connection.statistics().timeouts, 4);
}

#[test]
fn libutps_timer_is_polled() {
    let mut script = Script::new(Config::libutp(), 1 << 20, Seq16(1), Seq16(900));
    script.wait(ms(120));
    script.send_packets(1);
    let at = script.connection.poll_timeout().unwrap();
    assert_eq!((at.as_micros() % 500_000, at.since(script.now).as_millis() / 1000), (0, 1));
}

#[test]
fn a_half_closed_connection_goes_on_receiving() {
    let mut world = World::connected(&Setup::default());
    world.sides[0].connection.shutdown();
    world.run_for(secs(30));
    assert!(world.sides[1].has(Event::PeerFinished) && !world.sides[0].connection.is_closed());
    assert_eq!(world.sides[0].connection.state(), ConnectionState::Closing);
    world.sides[1].to_write = 500_000;
    world.sides[1].close_after_writing = true;
    world.run_for(secs(30));
    assert_eq!(world.sides[0].received, 500_000);
    assert!(world.sides.iter().all(|side| side.has(Event::Closed) && side.connection.is_drained()));
}

#[test]
fn a_closed_connection_waits_ten_seconds_for_the_peers_fin() {
    for half_closed_first in [false, true] {
        let mut world = World::connected(&Setup::default());
        let mut start = world.now;
        if half_closed_first {
            world.sides[0].connection.shutdown();
            world.run_for(secs(60));
            start = world.now;
        }
        world.sides[0].connection.close();
        let end = world.now + secs(60);
        assert!(world.run_until(end, |world| world.sides[0].connection.is_drained()));
        let waited = world.now.since(start).as_millis();
        assert!((10_000..10_100).contains(&waited), "{waited} ms");
        assert_eq!(world.sides[0].events.last(), Some(&Event::Failed(ConnectionError::Unfinished)));
    }
}

#[test]
fn closing_twice_is_closing_once() {
    let mut world = World::connected(&Setup::default());
    world.sides[0].connection.shutdown();
    world.run_for(secs(1));
    world.sides[0].connection.close();
    world.sides[0].connection.close();
    world.run_for(secs(11));
    assert_eq!(world.sides[0].connection.error(), Some(ConnectionError::Unfinished));
}

#[test]
fn a_finished_connection_still_answers_repeated_fins() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    script.connection.close();
    script.drain();
    let fin = script.header(Kind::Fin, Seq16(900), Seq16(1));
    script.packet(&fin, &[], Payload::Empty);
    assert_eq!(script.drain()[0].header.ack, Seq16(900));
    assert_eq!(script.connection.state(), ConnectionState::Lingering);
    assert!(script.connection.is_closed() && !script.connection.is_drained());
    script.wait(ms(100));
    script.packet(&fin, &[], Payload::Empty);
    assert_eq!(script.drain()[0].header.ack, Seq16(900));
    let (at, why) = script.connection.poll_timeout_reason().unwrap();
    assert_eq!((why, at.since(script.now).as_millis()), (Timer::Close, 900));
    script.wait(ms(900));
    assert!(script.connection.is_drained());
    assert_eq!(events(&mut script).iter().filter(|&&event| event == Event::Closed).count(), 1);
}

#[test]
fn packets_beyond_the_fin_are_dropped_and_second_fins_do_not_count() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    let send = |script: &mut Script, kind: Kind, seq: u16| {
        let header = script.header(kind, Seq16(seq), Seq16(0));
        script.packet(&header, &[], Payload::Empty);
    };
    send(&mut script, Kind::Fin, 902);
    send(&mut script, Kind::Data, 903);
    assert_eq!(script.connection.statistics().discarded_seq, 1);
    send(&mut script, Kind::Fin, 901);
    send(&mut script, Kind::Data, 900);
    assert_eq!(events(&mut script), [Event::Connected]);
    send(&mut script, Kind::Data, 901);
    assert_eq!(events(&mut script), [Event::PeerFinished]);
    assert_eq!(script.connection.peer_fin(), Some(Seq16(902)));
}

#[test]
fn a_fin_may_carry_payload() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    let fin = script.header(Kind::Fin, Seq16(900), Seq16(0));
    script.packet(&fin, &[], Payload::copy_from(b"last words"));
    assert_eq!(events(&mut script), [Event::Connected, Event::Readable, Event::PeerFinished]);
    assert!(!script.connection.is_at_end());
    assert_eq!(script.connection.read().unwrap().to_vec(), b"last words");
    assert!(script.connection.is_at_end());
}

#[test]
fn reasons_are_told_behind_a_mask_and_only_once() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    script.connection.close_with_reason(6);
    let sent = script.drain();
    assert_eq!((sent[0].close_reason, sent[0].mask.as_deref()), (Some(6), Some(&[0; 4][..])));
    script.wait(ms(500));
    let again = script.drain();
    assert_eq!((again[0].header.kind, again[0].close_reason, again[0].mask.clone()), (Kind::Fin, None, None));
    // libtorrent's comes first in the chain.
    let fin = script.header(Kind::Fin, Seq16(900), Seq16(1));
    let octets = fin.encode(&[(3, &[0, 0, 1, 4])]).unwrap();
    script.connection.handle(script.now, &octets, Payload::Empty);
    assert_eq!(script.connection.peer_close_reason(), Some(260));
}

#[test]
fn an_aborted_connection_resets_its_peer() {
    let mut world = World::connected(&Setup::default());
    world.sides[0].to_write = 100_000;
    world.run_for(ms(50));
    world.sides[0].to_write = 0;
    world.sides[0].connection.abort();
    assert!(!world.sides[0].connection.is_drained());
    world.run_for(ms(50));
    assert!(world.sides[0].connection.is_drained());
    assert_eq!(world.sent_by(0, Kind::Reset).len(), 1);
    assert_eq!(world.sides[1].events.last(), Some(&Event::Failed(ConnectionError::Reset)));
}

#[test]
fn an_application_that_reads_no_more_lets_the_peer_finish() {
    let mut world = World::connected(&Setup::default());
    world.sides[1].to_write = 4 << 20;
    world.sides[1].close_after_writing = true;
    world.sides[0].connection.stop_reading();
    world.sides[0].connection.close();
    world.run_for(secs(30));
    assert!(world.sides.iter().all(|side| side.connection.is_drained() && side.connection.error().is_none()));
    assert_eq!(world.sides[1].connection.statistics().bytes_acked, 4 << 20);
    assert_eq!(world.sides[0].received, 0);
}

#[test]
fn closing_before_the_handshake_is_over_sends_what_was_written() {
    let setup = Setup::default();
    let mut world = World::new(&setup);
    world.sides[0].to_write = 5000;
    world.sides[0].close_after_writing = true;
    world.accept_next(&setup);
    world.run_for(secs(1));
    assert_eq!(world.sides[1].received, 5000);
    assert!(world.sides[1].has(Event::PeerFinished));
    // With nothing written there is nothing to wait for.
    let mut idle = World::new(&setup);
    idle.sides[0].connection.close();
    assert!(idle.sides[0].connection.is_drained());
}

#[test]
fn an_idle_connection_tells_the_controller_until_the_window_is_a_packet() {
    let mut script =
        Script::new(Config { keepalive: None, ..Config::default() }, 10 * 1382, Seq16(1), Seq16(900));
    script.send_packets(3);
    script.state(Seq16(3), &[]);
    let mut times = Vec::new();
    let start = script.now;
    while let Some(at) = script.connection.poll_timeout() {
        script.wait(at.since(script.now));
        times.push(script.now.since(start).as_millis());
        assert!(script.drain().is_empty());
    }
    // Twice as long each time, up to a minute; the recorder keeps its window.
    assert_eq!(times, [500, 1500, 3500, 7500, 15_500, 31_500, 63_500]);
    let idle =
        script.diary.lock().unwrap().iter().filter(|told| matches!(told, Told::Timeout(t) if t.idle)).count();
    assert_eq!(idle, 7);
    let mut small = Script::new(Config { keepalive: None, ..Config::default() }, 1382, Seq16(1), Seq16(900));
    small.send_packets(1);
    small.state(Seq16(1), &[]);
    small.wait(ms(500));
    assert_eq!(small.connection.poll_timeout(), None, "an idle connection costs nothing");
}

#[test]
fn the_peers_window_shut_for_good_is_no_timeout() {
    // A peer that accepted packets beyond its window's end and dropped them: it answers, so it lives.
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    script.send_packets(3);
    let start = script.now;
    let mut sent = 0;
    while script.now.since(start) < secs(120) {
        let at = script.connection.poll_timeout().expect("it goes on");
        script.wait(at.since(script.now));
        let data = script.drain_data().len();
        sent += data;
        if data > 0 {
            let header = Header { window_bytes: 0, ..script.header(Kind::State, Seq16(900), Seq16(0)) };
            script.packet(&header, &[], Payload::Empty);
        }
    }
    assert!(script.connection.is_established());
    // All three once more after the timeout, then a probe every 15 s.
    assert!((10..=11).contains(&sent), "{sent} packets in 120 s");
}

#[test]
fn unreachable_peers_end_the_connection() {
    let config = Config::default();
    let mut random = Stream::named(1, "unused");
    let mut opening =
        Connection::connect(Instant::ZERO, config.clone(), controller("reno", &config), &mut random);
    opening.unreachable();
    assert_eq!(opening.error(), Some(ConnectionError::Refused));
    let mut script = Script::new(config, 1 << 20, Seq16(1), Seq16(900));
    script.connection.unreachable();
    assert_eq!(script.connection.error(), Some(ConnectionError::Reset));
}

#[test]
fn an_acceptor_believes_nothing_that_does_not_acknowledge_its_answer() {
    let mut world = World::new(&Setup::default());
    world.accept_next(&Setup::default());
    let acceptor = &mut world.sides[1].connection;
    let now = Instant::from_millis(5);
    let answer = Packet::decode(&acceptor.poll_transmit(now).unwrap().head).unwrap().header;
    let forged = |ack: Seq16| Header {
        kind: Kind::Data,
        connection_id: answer.connection_id.wrapping_add(1),
        timestamp_us: 1,
        timestamp_difference_us: 0,
        window_bytes: 1 << 20,
        seq: answer.ack.add(1),
        ack,
    };
    for behind in [0, 2, 3, 4, 5, 100] {
        let head = forged(answer.seq.sub(behind)).encode(&[]).unwrap();
        acceptor.handle(now, &head, Payload::copy_from(b"forged"));
        assert!(!acceptor.is_established() && acceptor.read().is_none(), "{behind}");
    }
    let head = forged(answer.seq.sub(1)).encode(&[]).unwrap();
    acceptor.handle(now, &head, Payload::copy_from(b"true"));
    assert!(acceptor.is_established());
    assert_eq!(acceptor.read().unwrap().to_vec(), b"true");
}

#[test]
fn the_window_of_a_syn_means_nothing() {
    // libtorrent's SYNs state a window of zero.
    let (config, now) = (Config::default(), Instant::from_secs(1));
    let syn = Header {
        kind: Kind::Syn,
        connection_id: 40,
        timestamp_us: 7,
        timestamp_difference_us: 0,
        window_bytes: 0,
        seq: Seq16(11),
        ack: Seq16(0),
    };
    let octets = syn.encode(&[]).unwrap();
    let mut random = Stream::named(1, "unused");
    let packet = Packet::decode(&octets).unwrap();
    let mut acceptor =
        Connection::accept(now, &packet, config.clone(), controller("fixed", &config), &mut random).unwrap();
    let answer = Packet::decode(&acceptor.poll_transmit(now).unwrap().head).unwrap().header;
    assert_eq!((answer.connection_id, answer.ack, answer.timestamp_difference_us), (40, Seq16(11), 999_993));
    assert_eq!(acceptor.snapshot().peer_window_bytes, 255 * 1435);
}

#[test]
fn acknowledgements_of_what_was_never_sent_are_dropped() {
    let mut script = Script::new(Config::default(), 1 << 20, Seq16(1), Seq16(900));
    script.send_packets(4);
    for ack in [5, 6, 100, 0x8000] {
        script.state(Seq16(ack), &[0xff; 4]);
    }
    assert_eq!(script.connection.statistics().discarded_ack, 4);
    assert_eq!(script.connection.statistics().bytes_acked, 0);
    // Their data are not taken in either.
    let data = script.header(Kind::Data, Seq16(900), Seq16(5));
    script.packet(&data, &[], Payload::copy_from(b"from nowhere"));
    assert!(script.connection.read().is_none());
    // A mask that reaches beyond what was sent counts up to there.
    script.state(Seq16(0), &[0xff; 255]);
    assert_eq!(script.connection.statistics().packets_acked, 3);
}

#[test]
fn a_window_that_opens_forfeits_the_leave_to_probe() {
    // A controller whose window holds the probe back until the peer's window has opened.
    let config = Config { sub_packet_window: cede_utp::SubPacketWindow::Blocked, ..Config::default() };
    let recorder = common::Recorder {
        allowance: cede_cc::Allowance::window(100),
        after_timeout_bytes: Some(1 << 20),
        diary: common::Diary::default(),
    };
    let mut script = Script::with_controller(config, Box::new(recorder), Seq16(1), Seq16(900));
    let window = |script: &mut Script, window_bytes: u32, ack: u16| {
        let header = Header { window_bytes, ..script.header(Kind::State, Seq16(900), Seq16(ack)) };
        script.packet(&header, &[], Payload::Empty);
    };
    window(&mut script, 0, 0);
    assert!(script.send_packets(3).is_empty());
    script.connection.handle_timeout(script.now + secs(15));
    script.now += secs(15);
    assert!(script.drain_data().is_empty(), "the congestion window is still too small");
    window(&mut script, 1 << 20, 0);
    while script.drain_data().is_empty() {
        let at = script.connection.poll_timeout().unwrap();
        script.wait(at.since(script.now));
    }
    // What left was no probe: a STATE that repeats itself does not take it back.
    window(&mut script, 1 << 20, 0);
    assert!(script.drain_data().is_empty());
    assert_eq!(script.connection.statistics().retransmissions, 0);
}

/// librqbit and utp-rs end their stream, hear that ours knows, and forget the connection.
#[test]
fn a_fin_that_nobody_answers_any_more_is_given_up_in_good_order() {
    for (data, peer_ends) in [(0, true), (3, true), (0, false)] {
        let mut script = Script::new(Config::default(), 100_000, Seq16(100), Seq16(500));
        if data > 0 {
            script.send_packets(data);
        }
        if peer_ends {
            let fin = script.header(Kind::Fin, script.peer_seq, Seq16(99));
            script.packet(&fin, &[], Payload::Empty);
        }
        script.connection.close();
        script.drain();
        script.wait(ms(50));
        // All but the FIN is acknowledged, and then nothing more is heard.
        if data > 0 {
            script.state(Seq16(99 + data as u16), &[]);
        }
        let mut fins = 0;
        while !script.connection.is_drained() {
            let at = script.connection.poll_timeout().expect("it ends some time");
            script.wait(at.since(script.now));
            fins += script.drain().iter().filter(|seen| seen.header.kind == Kind::Fin).count();
        }
        let (resends, error) = if peer_ends { (2, None) } else { (4, Some(ConnectionError::TimedOut)) };
        assert_eq!((fins, script.connection.error()), (resends, error));
        let events: Vec<Event> = std::iter::from_fn(|| script.connection.poll_event()).collect();
        assert_eq!(events.contains(&Event::Closed), peer_ends);
    }
}
