//! Buffers and windows that follow the path.
#![allow(missing_docs)]

mod common;

use cede_units::{Duration, Seq16};
use cede_utp::Config;
use cede_wire::utp::{EXT_BITS, Header, Kind, Packet};
use cede_wire::{Payload, Transmit};
use common::{Fate, Script, Seen, Setup, World, ms};

const MIB: u64 = 1 << 20;

/// Two ends with these choices, 100 ms apart there and back, the first of which has much to send.
fn far_apart(configs: [Config; 2]) -> World {
    let mut world = World::connected(&Setup { configs, ..Setup::default() });
    world.delay = ms(50);
    world.sides[0].to_write = 1 << 40;
    world
}

/// The most that is under way in the first `span`, in octets.
fn most_in_flight(world: &mut World, span: Duration) -> u64 {
    let end = world.now + span;
    let mut most = 0;
    world.run_until(end, |world| {
        most = most.max(world.sides[0].connection.snapshot().in_flight_bytes);
        false
    });
    most
}

#[test]
fn a_gigabit_over_100_ms_is_filled() {
    let mut world = far_apart([Config::internet(), Config::internet()]);
    let most = most_in_flight(&mut world, Duration::from_secs(3));
    // 1 Gbit/s times 100 ms.
    assert!(most >= 12_500_000, "{most} octets under way");
    assert!(most <= 16 * MIB, "{most} octets under way");
}

#[test]
fn peers_that_announce_nothing_get_as_many_packets_as_libutp_can_tell_apart() {
    let stranger = Config { announce: false, ..Config::internet() };
    for configs in [[Config::internet(), stranger.clone()], [stranger, Config::internet()]] {
        let mut world = far_apart(configs);
        let most = most_in_flight(&mut world, Duration::from_secs(3));
        assert_eq!(most, 1023 * 1382);
        // Enough for 100 Mbit/s over 100 ms all the same.
        assert!(most >= 1_250_000);
    }
}

#[test]
fn fixed_buffers_stay_as_they_are() {
    let mut world = far_apart([Config::internet(), Config::default()]);
    assert_eq!(most_in_flight(&mut world, Duration::from_secs(3)), MIB / 1382 * 1382);
    assert_eq!(u64::from(world.sides[1].connection.snapshot().window_bytes), MIB);
    let mut world = far_apart([Config::default(), Config::internet()]);
    assert_eq!(most_in_flight(&mut world, Duration::from_secs(3)), MIB / 1382 * 1382);
}

#[test]
fn an_application_that_takes_little_keeps_a_small_window() {
    let mut world = far_apart([Config::internet(), Config::internet()]);
    world.sides[1].reads = false;
    let mut promised = 0;
    for _ in 0..300 {
        world.run_for(ms(10));
        let taken = world.sides[1].connection.read_slice(&mut [0; 10_000]);
        assert!(taken <= 10_000);
        let connection = &world.sides[1].connection;
        let snapshot = connection.snapshot();
        // A tenth of 256 KiB per round trip is no reason to hold more.
        assert!(u64::from(snapshot.window_bytes) + snapshot.readable_bytes <= 256 << 10);
        // Nothing is lost, so what has been promised stays promised.
        let edge = connection.statistics().bytes_delivered + u64::from(snapshot.window_bytes);
        assert!(edge >= promised, "{edge} after {promised}");
        promised = edge;
    }
    assert!(world.sides[1].connection.statistics().bytes_delivered > 2_000_000);
}

#[test]
fn the_window_stays_where_it_is_while_nobody_reads() {
    let mut world = far_apart([Config::internet(), Config::internet()]);
    world.sides[1].reads = false;
    world.run_for(Duration::from_secs(5));
    let snapshot = world.sides[1].connection.snapshot();
    assert!(snapshot.readable_bytes > 200 << 10 && snapshot.readable_bytes <= 256 << 10);
    // And the sender holds no more than its own buffer.
    assert!(world.sides[0].connection.snapshot().queued_bytes <= 512 << 10);
}

#[test]
fn the_send_buffer_is_twice_the_congestion_window() {
    let mut world = far_apart([Config::internet(), Config::internet()]);
    assert_eq!(world.sides[0].connection.writable_bytes(), 256 << 10);
    let end = world.now + Duration::from_secs(3);
    assert!(world.run_until(end, |world| world.sides[0].connection.snapshot().cwnd_bytes > MIB));
    world.run_for(ms(20));
    let snapshot = world.sides[0].connection.snapshot();
    let held = snapshot.queued_bytes + snapshot.unacked_bytes;
    assert!(snapshot.cwnd_bytes > MIB);
    assert!(held > snapshot.cwnd_bytes && held <= 2 * snapshot.cwnd_bytes, "{snapshot:?}");
}

/// The extension bits of what leaves.
fn bits(transmit: &Transmit) -> Option<Vec<u8>> {
    Packet::decode(&transmit.head).unwrap().extensions.find(EXT_BITS).map(<[u8]>::to_vec)
}

#[test]
fn limits_are_told_in_the_first_syn_alone_and_in_the_answer_to_one_that_told() {
    let setup = Setup { configs: [Config::internet(), Config::internet()], ..Setup::default() };
    let mut world = World::new(&setup);
    let now = world.now;
    let syn = world.sides[0].connection.poll_transmit(now).unwrap();
    assert_eq!(bits(&syn).unwrap(), *b"Cede\x0e\x01\0\0");
    world.now += Duration::from_secs(3);
    world.sides[0].connection.handle_timeout(world.now);
    let again = world.sides[0].connection.poll_transmit(world.now).unwrap();
    assert_eq!((bits(&again), again.head.len()), (None, 20));
    for (syn, told) in [(syn, true), (again, false)] {
        world.sides.truncate(1);
        world.accept(&setup, &syn);
        let answer = world.sides[1].connection.poll_transmit(world.now).unwrap();
        assert_eq!(bits(&answer).is_some(), told);
        assert_eq!(world.sides[1].connection.is_peer_known(), told);
    }
}

#[test]
fn nothing_is_told_by_default() {
    let mut world = World::new(&Setup::default());
    let now = world.now;
    assert_eq!(bits(&world.sides[0].connection.poll_transmit(now).unwrap()), None);
}

#[test]
fn other_extension_bits_mean_nothing() {
    let bodies: [&[u8]; 5] =
        [&[0; 8], b"Cede\x0e\x02\xff\xff", b"CEDE\x0e\x01\xff\xff", b"Cede\x0e\x01\xff", b"Cede\xff\x01\0\0"];
    for body in bodies {
        let config = Config::internet();
        let mut world = World::new(&Setup { configs: [config.clone(), config], ..Setup::default() });
        let now = world.now;
        let syn = world.sides[0].connection.poll_transmit(now).unwrap();
        let ours = Packet::decode(&syn.head).unwrap().header;
        let answer = Header {
            kind: Kind::State,
            connection_id: ours.connection_id,
            seq: Seq16(7),
            ack: ours.seq,
            ..ours
        };
        let head = answer.encode(&[(EXT_BITS, body)]).unwrap();
        world.sides[0].connection.handle(now, &head, Payload::Empty);
        assert!(world.sides[0].connection.is_established());
        world.sides[0].to_write = 1 << 30;
        let written = world.sides[0].connection.write(Payload::Pattern { start: 0, len: 1 << 20 });
        assert!(written.is_ok());
        // A window of packets that cannot be is none; a size alone says nothing of windows.
        assert!(world.sides[0].connection.poll_transmit(now).is_some());
    }
}

/// Silence before the first keepalive of a connection of which one side, or neither, announces.
fn keepalive_after(announces: bool) -> Duration {
    let config = Config { announce: announces, ..Config::internet() };
    let mut world = World::connected(&Setup { configs: [Config::internet(), config], ..Setup::default() });
    let quiet_since = world.last_of(0).at;
    let packets = world.sides[0].connection.statistics().packets_sent;
    let end = world.now + Duration::from_secs(60);
    assert!(
        world.run_until(end, |world| world.sides[0].connection.statistics().packets_sent > packets),
        "a keepalive"
    );
    world.now.since(quiet_since)
}

#[test]
fn strangers_get_a_keepalive_before_they_hang_up() {
    // They leave at whole seconds, up to a second early.
    for (announces, seconds) in [(false, 9), (true, 29)] {
        let after = keepalive_after(announces);
        assert!(after <= Duration::from_secs(seconds) && after > Duration::from_secs(seconds - 1), "{after}");
    }
}

/// One packet far ahead takes no more places than the window is worth.
#[test]
fn a_packet_far_ahead_is_dropped_where_the_window_is_small() {
    let config = Config { receive_buffer_bytes: 128 << 10, ..Config::internet() };
    let mut script = Script::new(config, 10_000, Seq16(100), Seq16(500));
    for (ahead, kept) in [(2047, 1), (2048, 1), (16_000, 1), (1, 2)] {
        let header = script.header(Kind::Data, script.peer_seq.add(ahead), Seq16(99));
        script.packet(&header, &[], Payload::Pattern { start: 0, len: 10 });
        let statistics = script.connection.statistics();
        assert_eq!(statistics.out_of_order_received, kept, "{ahead} ahead");
    }
    assert_eq!(script.connection.statistics().discarded_seq, 2);
}

#[test]
fn a_long_path_with_losses_still_delivers_everything() {
    let mut world = far_apart([Config::internet(), Config::internet()]);
    world.judge = Box::new(|seen: &Seen| match (seen.header.kind, seen.index % 997) {
        (Kind::Data, 500) => Fate::Drop,
        _ => Fate::Deliver,
    });
    world.sides[0].to_write = 40_000_000;
    let end = world.now + Duration::from_secs(600);
    assert!(world.run_until(end, |world| world.sides[1].received == 40_000_000));
}
