//! Attacks, one test for each: what it can do is bounded, and it is counted.
#![allow(missing_docs)]

mod common;

use cede_cc::{Params, registry};
use cede_units::{Duration, Instant, Seq16, Stream};
use cede_utp::{Config, ConnectionError, Endpoint, Event, Handle, Limits, Verdict};
use cede_wire::utp::{Header, Kind, Packet};
use cede_wire::{Payload, Transmit};
use common::{Fate, Script, Setup, World, controller, header, ms};

fn endpoint(seed: u64, limits: Limits, config: &Config) -> Endpoint<u32> {
    let mut endpoint = Endpoint::new(limits, Stream::named(seed, "endpoint"));
    endpoint.listen(config.clone(), Box::new(|_| controller("reno", &Config::default())));
    endpoint
}

/// Hands a packet in, and counts the octets that leave.
fn throw(endpoint: &mut Endpoint<u32>, now: Instant, peer: u32, header: &Header) -> (Verdict, u64) {
    let verdict = endpoint.handle(now, peer, &header.encode(&[]).unwrap(), Payload::Empty);
    (verdict, drain(endpoint, now))
}

/// The octets that leave for strangers; peer 1 is honest.
fn drain(endpoint: &mut Endpoint<u32>, now: Instant) -> u64 {
    let sent = std::iter::from_fn(|| endpoint.poll_transmit(now));
    sent.filter(|(peer, _)| *peer != 1).map(|(_, transmit)| transmit.len() as u64).sum()
}

/// The client's side of a connection to the endpoint, in one go; false where it does not get through.
fn open(server: &mut Endpoint<u32>, client: &mut Endpoint<u32>, now: Instant) -> bool {
    let config = Config::default();
    let Some(handle) = client.connect(now, 2, config.clone(), controller("reno", &config)) else {
        return false;
    };
    for _ in 0..3 {
        while let Some((_, packet)) = client.poll_transmit(now) {
            server.handle(now, 1, &packet.head, packet.payload);
        }
        while let Some((peer, packet)) = server.poll_transmit(now) {
            if peer == 1 {
                client.handle(now, 2, &packet.head, packet.payload);
            }
        }
    }
    client.connection(handle).is_some_and(|connection| connection.is_established())
        && server.accept().is_some()
}

#[test]
fn spoofed_syn_flood_draws_no_more_than_it_sends_and_keeps_nobody_out() {
    for config in [Config::default(), Config::internet()] {
        let limits = Limits { connections: 2000, ..Limits::default() };
        let mut server = endpoint(1, limits, &config);
        let mut client = endpoint(2, Limits::default(), &config);
        let mut now = Instant::from_secs(1);
        let (mut received, mut sent) = (0, 0);
        for i in 0..60_000_u32 {
            now += ms(1);
            server.handle_timeout(now);
            received += 20;
            sent += throw(&mut server, now, 10 + i, &header(Kind::Syn, i as u16, 7)).1;
            assert!(server.len() <= 256 + i as usize / 1000 + 1);
            if i % 1000 == 999 {
                assert!(open(&mut server, &mut client, now), "an honest peer gets in after {i} SYNs");
            }
        }
        // The answers to the first few may have been repeated, twice each, before there was any sign of a flood.
        assert!(sent <= received + 2 * 20 * (256 / 8 + 1), "{sent} octets for {received}");
        let statistics = *server.statistics();
        assert!(statistics.half_open_dropped > 50_000 && statistics.answered_once > 50_000);
        // Silence, and the rest is gone.
        for _ in 0..40 {
            now += ms(1000);
            server.handle_timeout(now);
            drain(&mut server, now);
        }
        assert!(server.statistics().half_open_expired > 200);
        assert!(server.len() == 60, "what the honest peers hold");
    }
}

#[test]
fn spoofed_syns_one_by_one_draw_three_answers_at_most() {
    let mut server = endpoint(1, Limits::default(), &Config::default());
    let mut now = Instant::from_secs(1);
    let mut sent = throw(&mut server, now, 9, &header(Kind::Syn, 5, 7)).1;
    for _ in 0..30 {
        now += ms(1000);
        server.handle_timeout(now);
        sent += drain(&mut server, now);
    }
    assert_eq!(sent, 3 * 20);
    assert!(server.is_empty());
}

/// RESETs with our id and every acknowledgement number there is.
fn resets_that_count(prepare: impl Fn() -> Script) -> u32 {
    let counts = |ack: u16| {
        let mut script = prepare();
        let reset = script.header(Kind::Reset, Seq16(1), Seq16(ack));
        script.packet(&reset, &[], Payload::Empty);
        let discarded = script.connection.statistics().discarded_resets;
        assert_eq!(discarded == 0, script.connection.error() == Some(ConnectionError::Reset));
        u32::from(discarded == 0)
    };
    (0..=u16::MAX).map(counts).sum()
}

#[test]
fn blind_reset_needs_an_acknowledgement_that_fits() {
    let idle = || Script::new(Config::default(), 100_000, Seq16(100), Seq16(500));
    assert_eq!(resets_that_count(idle), 5, "of 65,536");
    let mut script = idle();
    let stranger = Header { connection_id: 7, ..script.header(Kind::Reset, Seq16(1), Seq16(99)) };
    script.packet(&stranger, &[], Payload::Empty);
    assert_eq!(script.connection.statistics().discarded_other, 1);
    assert!(script.connection.is_established());
}

/// Everything that went over the wire of a short connection, with who received it.
fn recorded() -> Vec<(usize, Transmit)> {
    let config = Config::default();
    let mut ends = [1, 2].map(|seed| endpoint(seed, Limits::default(), &config));
    let mut now = Instant::from_secs(1);
    let client = ends[0].connect(now, 1, config.clone(), controller("reno", &config)).unwrap();
    ends[0].connection_mut(client).unwrap().write_slice(&[7; 5000]).unwrap();
    ends[0].connection_mut(client).unwrap().close();
    let mut log = Vec::new();
    for _ in 0..20 {
        now += ms(10);
        for from in [0, 1] {
            while let Some((_, packet)) = ends[from].poll_transmit(now) {
                log.push((1 - from, packet.clone()));
                ends[1 - from].handle(now, from as u32, &packet.head, packet.payload);
            }
            if let Some(handle) = ends[from].accept() {
                ends[from].release(handle);
            }
        }
    }
    log
}

#[test]
fn replayed_connection_ends_half_open_and_forgotten() {
    let log = recorded();
    assert!(log.len() > 8);
    let mut server = endpoint(3, Limits { early: 0, ..Limits::default() }, &Config::default());
    let mut now = Instant::from_secs(5000);
    for _ in 0..10 {
        for (_, packet) in log.iter().filter(|(to, _)| *to == 1) {
            now += ms(1);
            server.handle(now, 0, &packet.head, packet.payload.clone());
            drain(&mut server, now);
        }
    }
    // The answer to the SYN has another number every time, which the replay does not know.
    assert_eq!((server.len(), server.accept()), (1, None));
    for _ in 0..12 {
        now += ms(1000);
        server.handle_timeout(now);
        drain(&mut server, now);
    }
    assert!(server.is_empty());
    assert_eq!(server.statistics().half_open_expired, 1);
}

#[test]
fn replayed_packets_of_a_living_connection_change_nothing() {
    let mut world = World::connected(&Setup::default());
    world.sides[0].to_write = 50_000;
    let mut seen = Vec::new();
    let log = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let copy = log.clone();
    world.judge = Box::new(move |packet| {
        copy.lock().unwrap().push(packet.clone());
        Fate::Deliver
    });
    world.run_for(Duration::from_secs(5));
    seen.append(&mut log.lock().unwrap());
    assert_eq!(world.sides[1].received, 50_000);
    let data: Vec<_> = seen.iter().filter(|packet| packet.header.kind == Kind::Data).collect();
    for packet in &data {
        world.inject(1, &packet.header, Payload::Pattern { start: 0, len: packet.payload_bytes });
    }
    let statistics = world.sides[1].connection.statistics();
    assert_eq!(statistics.duplicates_received, data.len() as u64);
    assert_eq!((statistics.bytes_delivered, world.sides[1].received), (50_000, 50_000));
}

#[test]
fn truncated_packets_are_no_packets() {
    let mut script = Script::new(Config::default(), 100_000, Seq16(100), Seq16(500));
    let mut whole = Vec::new();
    let header = script.header(Kind::Data, script.peer_seq, Seq16(99));
    header.encode_into(&[(1, &[0; 4]), (3, &[0; 4])], &[], &mut whole).unwrap();
    for len in 0..whole.len() {
        script.connection.handle(script.now, &whole[..len], Payload::Empty);
        assert_eq!(script.connection.statistics().discarded_other, len as u64 + 1);
    }
    assert_eq!(script.connection.statistics().data_packets_received, 0);
    let mut endpoint = endpoint(1, Limits::default(), &Config::default());
    for len in 0..whole.len() {
        let verdict = endpoint.handle(script.now, 1, &whole[..len], Payload::Empty);
        assert_eq!(verdict, Verdict::Unrecognised);
    }
    assert_eq!(endpoint.statistics().unrecognised, whole.len() as u64);
}

#[test]
fn packets_to_unknown_connections_draw_few_resets_and_take_little_memory() {
    let memory = allocation_counter::measure(|| {
        let mut server = endpoint(1, Limits::default(), &Config::default());
        let (mut now, mut sent) = (Instant::from_secs(1), 0);
        for i in 0..100_000_u32 {
            now += Duration::from_micros(100);
            sent += throw(&mut server, now, i, &header(Kind::Data, i as u16, (i >> 8) as u16)).1;
        }
        // A thousand in ten seconds.
        assert!(sent <= 20 * 1001, "{sent}");
        let statistics = server.statistics();
        assert_eq!(statistics.strays, 100_000);
        assert_eq!(statistics.resets_sent + statistics.resets_suppressed, 100_000);
    });
    assert!(memory.bytes_max < 200_000, "{} octets", memory.bytes_max);
}

#[test]
fn packets_to_a_closed_connection_are_counted_and_dropped() {
    let mut script = Script::new(Config::default(), 100_000, Seq16(100), Seq16(500));
    script.connection.abort();
    script.drain();
    let data = script.header(Kind::Data, script.peer_seq, Seq16(99));
    script.packet(&data, &[], Payload::copy_from(&[1; 100]));
    assert!(script.drain().is_empty() && script.connection.read().is_none());
    assert_eq!(script.connection.statistics().discarded_other, 1);
}

/// A peer that answers everything with a window of zero, for so long; the probes that it gets, by the second.
fn zero_window_probes(config: Config, span: Duration) -> (Script, Vec<u64>) {
    let mut script = Script::new(config, 100_000, Seq16(100), Seq16(500));
    let shut = |script: &Script| Header {
        window_bytes: 0,
        ..script.header(Kind::State, script.peer_seq, Seq16(99))
    };
    let header = shut(&script);
    script.packet(&header, &[], Payload::Empty);
    script.connection.write(Payload::Pattern { start: 0, len: 50_000 }).unwrap();
    script.drain();
    let (begun, mut probes) = (script.now, Vec::new());
    while script.now.since(begun) < span && !script.connection.is_drained() {
        let Some(at) = script.connection.poll_timeout() else { break };
        script.wait(at.since(script.now));
        if script.drain().iter().any(|seen| seen.header.kind == Kind::Data) {
            probes.push(script.now.since(begun).as_millis() / 1000);
            script.wait(ms(50));
            let header = shut(&script);
            script.packet(&header, &[], Payload::Empty);
        }
    }
    (script, probes)
}

#[test]
fn zero_window_for_ever_is_probed_ever_more_seldom_until_the_application_gives_up() {
    let (mut script, probes) = zero_window_probes(Config::internet(), Duration::from_secs(3600));
    assert_eq!(probes[..6], [1, 3, 7, 15, 31, 63]);
    assert!((60..=70).contains(&probes.len()), "{} probes in an hour", probes.len());
    assert_eq!(script.connection.statistics().zero_window_probes, probes.len() as u64);
    assert!(script.connection.is_established());
    script.connection.abort();
    assert_eq!(script.drain()[0].header.kind, Kind::Reset);
}

#[test]
fn zero_window_for_ever_can_be_limited() {
    let config = Config { zero_window_limit: Some(Duration::from_secs(300)), ..Config::internet() };
    let (script, _) = zero_window_probes(config, Duration::from_secs(3600));
    assert_eq!(script.connection.error(), Some(ConnectionError::TimedOut));
    assert!(script.now.since(Instant::from_secs(1)) < Duration::from_secs(370));
}

#[test]
fn acknowledgements_of_what_was_never_sent_are_dropped_and_kill_nothing() {
    let mut script = Script::new(Config::default(), 100_000, Seq16(100), Seq16(500));
    let sent = script.send_packets(10);
    for beyond in [1, 2, 1000, 30_000] {
        let data = script.header(Kind::Data, script.peer_seq, Seq16(sent[9]).add(beyond));
        script.packet(&data, &[], Payload::copy_from(&[1; 100]));
    }
    let statistics = script.connection.statistics();
    assert_eq!((statistics.discarded_ack, statistics.packets_acked), (4, 0));
    assert!(script.connection.is_established() && script.connection.read().is_none());
}

/// A script whose controller keeps no diary, which would be the larger part of what is measured.
fn without_diary(config: Config) -> Script {
    let controller = controller("fixed", &config);
    Script::with_controller(config, controller, Seq16(100), Seq16(500))
}

/// Packets of so many octets far and wide beyond a gap; the heap that they take.
fn fill_reorder_buffer(config: Config, packets: u16, payload_bytes: usize) -> (Script, u64) {
    let mut script = without_diary(config);
    let memory = allocation_counter::measure(|| {
        for ahead in 1..packets {
            let header = script.header(Kind::Data, script.peer_seq.add(ahead), Seq16(99));
            script.packet(&header, &[], Payload::copy_from(&vec![1; payload_bytes]));
            script.drain();
        }
    });
    (script, memory.bytes_current as u64)
}

#[test]
fn reorder_buffer_is_bounded_in_octets() {
    for payload_bytes in [10, 100, 1000, 1400] {
        let (script, memory) = fill_reorder_buffer(Config::default(), 16_000, payload_bytes);
        assert!(script.connection.snapshot().reordered_bytes <= 1 << 20);
        assert!(memory < (1 << 20) + 200_000, "{memory} octets for packets of {payload_bytes}");
        assert!(script.connection.statistics().discarded_seq >= 14_000);
    }
}

#[test]
fn reorder_buffer_is_bounded_in_tiny_packets() {
    let config = Config { seq_window_packets: 16_384, ..Config::default() };
    let (script, memory) = fill_reorder_buffer(config, 16_000, 1);
    let suspicions = script.connection.suspicions();
    assert_eq!(suspicions.crowded_out, script.connection.statistics().discarded_buffer);
    assert!(suspicions.crowded_out > 7000);
    // 8,193 packets, and a ring of 16,384 places.
    assert!(memory < 1 << 20, "{memory} octets");
}

#[test]
fn optimistic_acknowledgements_are_counted_and_draw_no_more_than_the_limit() {
    let config = Config::internet();
    let reno = registry::build("reno", &Params::new(), &config.path()).unwrap();
    let mut script = Script::with_controller(config, reno, Seq16(100), Seq16(500));
    let (mut written, mut newest) = (0, Seq16(99));
    for _ in 0..300 {
        while let Ok(n) = script.connection.write(Payload::Pattern { start: written, len: 1 << 20 }) {
            written += u64::from(n);
        }
        newest = script.drain_data().last().map_or(newest, |&seq| Seq16(seq));
        // Nothing takes 1 ms on this path, which took 50 ms a moment ago.
        script.wait(ms(1));
        script.state(newest, &[]);
    }
    let snapshot = script.connection.snapshot();
    assert!(script.connection.suspicions().early_acks > 0);
    assert!(snapshot.unacked_bytes + snapshot.queued_bytes <= 16 << 20);
    assert!(snapshot.in_flight_bytes <= 16 << 20);
}

#[test]
fn selective_acknowledgement_lies_are_ignored() {
    let mut script = Script::new(Config::default(), 100_000, Seq16(100), Seq16(500));
    let sent = script.send_packets(10);
    // Of ten packets, all that follow the missing first, and 2030 that were never sent.
    script.state(Seq16(99), &[0xff; 255]);
    let statistics = script.connection.statistics();
    assert_eq!((statistics.packets_acked, statistics.losses), (9, 1));
    assert_eq!(script.connection.suspicions().unsent_selective_acks, 1);
    assert_eq!(script.drain_data(), [sent[0]]);
    // What it said it had it does not have after all: it is not believed twice.
    for _ in 0..10 {
        script.wait(ms(1));
        script.state(Seq16(99), &[0, 0, 0, 0]);
        script.state(Seq16(99), &[0x55; 4]);
        script.state(Seq16(sent[3]), &[0x0f; 12]);
    }
    assert_eq!(script.connection.statistics().packets_acked, 10);
    assert_eq!(script.connection.snapshot().unacked_bytes, 0);
    assert!(script.connection.is_established());
    assert_eq!(script.send_packets(2).len(), 2);
}

#[test]
fn timestamp_lies_leave_every_controller_within_its_bounds() {
    for entry in registry::all() {
        let config = Config { send_buffer_limit_bytes: Some(256 << 10), ..Config::internet() };
        let controller = registry::build(entry.name, &Params::new(), &config.path()).unwrap();
        let mut script = Script::with_controller(config, controller, Seq16(100), Seq16(500));
        let mut random = Stream::named(7, entry.name);
        let (mut written, mut newest) = (0, Seq16(99));
        for _ in 0..600 {
            while let Ok(n) = script.connection.write(Payload::Pattern { start: written, len: 1 << 20 }) {
                written += u64::from(n);
            }
            newest = script.drain_data().last().map_or(newest, |&seq| Seq16(seq));
            script.wait(ms(20));
            let honest = script.header(Kind::State, script.peer_seq, newest);
            let lie = |random: &mut Stream| match random.below(4) {
                0 => 0,
                1 => 0x7fff_ffff,
                2 => u32::MAX,
                _ => random.next_u32(),
            };
            let (timestamp_us, timestamp_difference_us) = (lie(&mut random), lie(&mut random));
            script.packet(&Header { timestamp_us, timestamp_difference_us, ..honest }, &[], Payload::Empty);
        }
        let snapshot = script.connection.snapshot();
        assert!(script.connection.is_established(), "{}", entry.name);
        assert!(snapshot.controller.cwnd_bytes.is_finite(), "{}", entry.name);
        assert!(snapshot.in_flight_bytes <= 256 << 10, "{}", entry.name);
        assert!(script.connection.statistics().packets_acked > 100, "{} starves", entry.name);
    }
}

#[test]
fn window_that_shrinks_stops_what_is_new_and_loses_nothing() {
    let mut world = World::connected(&Setup::default());
    world.sides[0].to_write = 400_000;
    world.run_for(ms(100));
    assert!(world.sides[0].connection.snapshot().in_flight_bytes > 0);
    // In the name of side 1: hardly any room any more, however much it had.
    for window_bytes in [3000, 100, 0] {
        let shrunk = Header { window_bytes, ..world.forged(0, Kind::State) };
        let ack = world.last_of(1).header.ack;
        world.inject(0, &Header { ack, ..shrunk }, Payload::Empty);
        assert!(world.sides[0].connection.snapshot().peer_window_bytes <= 1 << 20);
    }
    let end = world.now + Duration::from_secs(60);
    assert!(world.run_until(end, |world| world.sides[1].received == 400_000));
}

#[test]
fn silly_windows_draw_five_tiny_packets_a_second_at_most() {
    let mut script = Script::new(Config::default(), 100_000, Seq16(100), Seq16(500));
    script.connection.write(Payload::Pattern { start: 0, len: 50_000 }).unwrap();
    let sent = script.drain_data();
    let (mut newest, mut tiny) = (*sent.last().unwrap(), 0);
    for _ in 0..10_000 {
        let window = Header { window_bytes: 1, ..script.header(Kind::State, script.peer_seq, Seq16(newest)) };
        script.packet(&window, &[], Payload::Empty);
        for seen in script.drain().iter().filter(|seen| seen.header.kind == Kind::Data) {
            assert_eq!(seen.payload_bytes, 1);
            newest = seen.header.seq.0;
            tiny += 1;
        }
        script.wait(ms(1));
    }
    assert!((45..=51).contains(&tiny), "{tiny} packets of one octet in ten seconds");
    assert!(script.connection.suspicions().silly_windows > 0);
}

#[test]
fn data_after_the_fin_and_second_fins_are_dropped_and_counted() {
    let mut script = Script::new(Config::default(), 100_000, Seq16(100), Seq16(500));
    let packet = |script: &Script, kind, ahead| script.header(kind, script.peer_seq.add(ahead), Seq16(99));
    // The FIN is the third packet; the first two are missing.
    let fin = packet(&script, Kind::Fin, 2);
    script.packet(&fin, &[], Payload::Empty);
    for (kind, ahead) in [(Kind::Data, 3), (Kind::Data, 500), (Kind::Fin, 4), (Kind::Fin, 1), (Kind::Fin, 0)]
    {
        let header = packet(&script, kind, ahead);
        script.packet(&header, &[], Payload::copy_from(&[1; 10]));
    }
    assert_eq!(script.connection.suspicions().data_after_fin, 5);
    for ahead in [1, 0] {
        let header = packet(&script, Kind::Data, ahead);
        script.packet(&header, &[], Payload::copy_from(&[7; 10]));
    }
    assert_eq!(script.connection.statistics().bytes_delivered, 20);
    assert_eq!(script.connection.peer_fin(), Some(fin.seq));
    let late = packet(&script, Kind::Data, 3);
    script.packet(&late, &[], Payload::copy_from(&[1; 10]));
    assert_eq!(script.connection.statistics().bytes_delivered, 20);
}

#[test]
fn fin_far_ahead_is_no_fin() {
    let mut script = Script::new(Config::default(), 100_000, Seq16(100), Seq16(500));
    for seq in [
        script.peer_seq.add(1024),
        script.peer_seq.add(30_000),
        script.peer_seq.sub(1),
        script.peer_seq.sub(900),
    ] {
        let fin = script.header(Kind::Fin, seq, Seq16(99));
        script.packet(&fin, &[], Payload::Empty);
    }
    assert_eq!(script.connection.peer_fin(), None);
    let data = script.header(Kind::Data, script.peer_seq, Seq16(99));
    script.packet(&data, &[], Payload::copy_from(&[1; 10]));
    assert_eq!(script.connection.statistics().bytes_delivered, 10);
}

#[test]
fn packets_of_one_octet_take_little_more_than_their_octets() {
    let config = Config { receive_buffer_bytes: 60_000, ..Config::default() };
    let mut script = without_diary(config);
    let memory = allocation_counter::measure(|| {
        for i in 0..100_000_u32 {
            let header = script.header(Kind::Data, script.peer_seq.add(i.min(60_000) as u16), Seq16(99));
            script.packet(&header, &[], Payload::copy_from(&[i as u8]));
            script.drain();
        }
    });
    assert_eq!(script.connection.readable_bytes(), 60_000);
    assert_eq!(script.connection.snapshot().window_bytes, 0);
    assert!(script.connection.statistics().discarded_buffer >= 39_999);
    assert!(memory.bytes_max < 2 * 60_000, "{} octets", memory.bytes_max);
}

#[test]
fn packets_without_octets_take_nothing() {
    let mut script = without_diary(Config::default());
    let memory = allocation_counter::measure(|| {
        for i in 0..200_000_u32 {
            let header = script.header(Kind::Data, script.peer_seq.add(i as u16), Seq16(99));
            script.packet(&header, &[], Payload::Empty);
            script.drain();
        }
    });
    assert!(memory.bytes_max < 2000, "{} octets", memory.bytes_max);
    assert!(script.connection.read().is_none());
    let events: Vec<Event> = std::iter::from_fn(|| script.connection.poll_event()).collect();
    assert_eq!(events, [Event::Connected]);
}

#[test]
fn stray_syn_changes_nothing() {
    let mut world = World::connected(&Setup::default());
    let id = world.sides[1].connection.receive_id().wrapping_sub(1);
    for seq in [1, 2, 3] {
        let syn = Header { connection_id: id, ..header(Kind::Syn, id, seq) };
        world.inject(1, &syn, Payload::Empty);
    }
    assert_eq!(world.sides[1].connection.suspicions().stray_syns, 3);
    world.sides[0].to_write = 10_000;
    world.run_for(ms(1000));
    assert_eq!(world.sides[1].received, 10_000);
}

/// One peer that really is there may open as many connections as there are, and no more.
#[test]
fn connections_that_are_opened_and_forgotten_fill_the_limits_and_nothing_else() {
    let limits = Limits { connections: 100, half_open: 16, backlog: 10, ..Limits::default() };
    let mut server = endpoint(1, limits, &Config::default());
    let mut clients: Vec<Endpoint<u32>> =
        (0..200).map(|seed| endpoint(seed, Limits::default(), &Config::default())).collect();
    let now = Instant::from_secs(1);
    let mut accepted: Vec<Handle> = Vec::new();
    for (i, client) in clients.iter_mut().enumerate() {
        let peer = i as u32 + 10;
        let config = Config::default();
        client.connect(now, 2, config.clone(), controller("reno", &config)).unwrap();
        for _ in 0..3 {
            while let Some((_, packet)) = client.poll_transmit(now) {
                server.handle(now, peer, &packet.head, packet.payload);
            }
            while let Some((to, packet)) = server.poll_transmit(now) {
                assert_eq!(to, peer);
                client.handle(now, 2, &packet.head, packet.payload);
            }
        }
        if i % 5 == 0 {
            accepted.extend(server.accept());
        }
        assert!(server.len() <= 100);
    }
    assert!(server.statistics().syns_refused > 0 && accepted.len() <= 40);
}

/// What we send is read by libutp's rule: a datagram is its own if the first extension is below 3 and each fits.
#[test]
fn forged_extension_chains_are_walked_once() {
    let mut script = Script::new(Config::default(), 100_000, Seq16(100), Seq16(500));
    // As many extensions as a datagram holds, none of which says anything.
    let header = script.header(Kind::Data, script.peer_seq, Seq16(99));
    let chain = vec![(9_u8, &[][..]); 30_000];
    let mut octets = Vec::new();
    header.encode_into(&chain, b"x", &mut octets).unwrap();
    assert!(Packet::decode(&octets).is_ok());
    script.connection.handle(script.now, &octets, Payload::Empty);
    assert_eq!(script.connection.read().unwrap().to_vec(), b"x");
}

/// Everything that the two have to say, until neither has a deadline before `end`.
fn exchange(
    server: &mut Endpoint<u32>,
    client: &mut Endpoint<u32>,
    mut now: Instant,
    end: Instant,
) -> Instant {
    loop {
        let mut quiet = true;
        while let Some((_, packet)) = client.poll_transmit(now) {
            server.handle(now, 1, &packet.head, packet.payload);
            quiet = false;
        }
        while let Some((_, packet)) = server.poll_transmit(now) {
            client.handle(now, 2, &packet.head, packet.payload);
            quiet = false;
        }
        if !quiet {
            continue;
        }
        let next = [server.poll_timeout(), client.poll_timeout()].into_iter().flatten().min();
        let Some(at) = next.filter(|&at| at <= end) else { return end };
        now = now.max(at);
        server.handle_timeout(now);
        client.handle_timeout(now);
    }
}

#[test]
fn unread_streams_of_many_peers_are_bounded_together_and_whoever_reads_goes_on() {
    const STREAM_BYTES: u32 = 400_000;
    const BUDGET_BYTES: u64 = 2 << 20;
    const PEERS: usize = 40;
    let limits = Limits { buffered_bytes: BUDGET_BYTES, ..Limits::default() };
    let config = Config::internet();
    let mut server = endpoint(1, limits, &config);
    let mut client = Endpoint::new(Limits::default(), Stream::named(2, "client"));
    let mut now = Instant::from_secs(1);
    let mut connections = Vec::new();
    for _ in 0..PEERS {
        let ours = client.connect(now, 2, config.clone(), controller("reno", &config)).unwrap();
        exchange(&mut server, &mut client, now, now);
        connections.push((ours, server.accept().unwrap()));
    }
    for &(ours, _) in &connections {
        let connection = client.connection_mut(ours).unwrap();
        let mut left = Payload::Pattern { start: 0, len: STREAM_BYTES };
        // What does not fit the send buffer now is written below.
        connection.write(left.split_to(200_000)).unwrap();
    }
    now = exchange(&mut server, &mut client, now, now + Duration::from_secs(30));
    let (held, statistics) = (server.buffered_bytes(), *server.statistics());
    // Once too much is there, each takes 64 KiB at most, and a packet may come that was counted a moment too late.
    let most = BUDGET_BYTES + (PEERS as u64) * (65 << 10);
    assert!((BUDGET_BYTES..=most).contains(&held), "{held}");
    assert!(statistics.over_budget > 0 && held < PEERS as u64 * 150_000, "{statistics:?}");
    // One that is read gets through while the others hold what they hold.
    let (ours, theirs) = connections[PEERS - 1];
    let (mut read, mut written) = (0, 200_000);
    for _ in 0..2000 {
        let connection = client.connection_mut(ours).unwrap();
        if written < STREAM_BYTES && connection.writable_bytes() > 0 {
            written += connection
                .write(Payload::Pattern { start: written.into(), len: STREAM_BYTES - written })
                .unwrap();
        }
        read += std::iter::from_fn(|| server.read(theirs)).map(|payload| payload.len()).sum::<u32>();
        now = exchange(&mut server, &mut client, now, now + ms(50));
    }
    assert_eq!(read, STREAM_BYTES);
    // What is read, or goes, is off the account.
    for (_, theirs) in connections {
        server.release(theirs);
    }
    exchange(&mut server, &mut client, now, now + Duration::from_secs(400));
    assert_eq!(server.buffered_bytes(), 0);
}
