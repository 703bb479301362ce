//! Each flag that there is can be said: a scene for each, and none is left over.

mod common;

use cede_meter::{Config, Flags};
use cede_units::Stream;
use cede_wire::utp::Kind;
use common::{A, B, Clock, Tap, Tcp, connection, packet_of, utp};

const USUAL: Clock = Clock { hz: 1000, ppm: 0.0, ahead: 0 };

fn tap() -> Tap {
    Tap::new(Config { samples_min: 1, ..Config::default() })
}

/// What is said of any flow, and of any host.
fn said(tap: &Tap) -> Flags {
    let found = tap.found();
    let of_flows = found.seen.flows.iter().map(|flow| flow.flags);
    of_flows.chain(found.report().hosts.iter().map(|host| host.flags)).fold(Flags::default(), Flags::with)
}

/// B's connections, each with its clock and so many seconds.
fn connections(of: &[(Clock, u64)]) -> Flags {
    let (mut tap, mut noise) = (tap(), Stream::named(1, "noise"));
    for (port, (clock, seconds)) in (80..).zip(of) {
        connection(&mut tap, port, clock, 0..*seconds, &mut noise);
    }
    said(&tap)
}

/// A segment of B's every so many microseconds that nobody answers, with a clock of its own.
fn alone(each_us: u64, count: u64, clock: impl Fn(u64) -> u64) -> Flags {
    let mut tap = tap();
    for k in 0..count {
        let at = 1_000_000 + k * each_us;
        let (seq, clock) = (k as u32 * 100, clock(at) as u32);
        tap.tcp(at, B, A, &Tcp { seq, ack: 1, flags: 0x10, clock, echo: 9, len: 100 });
    }
    said(&tap)
}

/// More segments under way than are kept track of, all of which are acknowledged in the end.
fn many_under_way() -> Flags {
    let mut tap = tap();
    for k in 0..5_000_u64 {
        let at = 1_000_000 + k * 1_000;
        let data =
            Tcp { seq: k as u32 * 100, ack: 1, flags: 0x10, clock: (at / 1_000) as u32, echo: 9, len: 100 };
        tap.tcp(at, B, A, &data);
    }
    tap.tcp(7_000_000, A, B, &Tcp { seq: 1, ack: 500_000, flags: 0x10, clock: 5, echo: 9, len: 0 });
    said(&tap)
}

/// Data of B's, each answered at once by what says that it took so much longer than the first, while it took no longer.
fn answered_with(longer_us: impl Fn(u64) -> u32) -> Flags {
    let mut tap = tap();
    for k in 0..600_u64 {
        let at = 1_000_000 + k * 50_000;
        tap.utp(at, B, A, &utp(Kind::Data, 8, (k as u16 + 1, 4), (at as u32, 9), 1_000));
        let states = utp(Kind::State, 7, (5, k as u16 + 1), (at as u32 + 50, 40_000 + longer_us(k)), 0);
        tap.utp(at + 50, A, B, &states);
    }
    said(&tap)
}

/// Frames of more than a packet.
fn large_frames() -> Flags {
    let mut tap = tap();
    for k in 0..100_u64 {
        let at = 1_000_000 + k * 10_000;
        let data = Tcp {
            seq: k as u32 * 4_344,
            ack: 1,
            flags: 0x10,
            clock: (at / 1_000) as u32,
            echo: 9,
            len: 4_344,
        };
        tap.tcp(at, B, A, &data);
    }
    said(&tap)
}

/// More flows than there is memory for, some of which come back.
fn little_memory() -> Flags {
    let mut tap = Tap::new(Config { memory_bytes: 1 << 16, samples_min: 1, ..Config::default() });
    for k in 0..12_000_u32 {
        let frame = packet_of(1_000_000 + u64::from(k) * 500, k % 3_000, k / 3_000, 3_000);
        tap.frame(1_000_000 + u64::from(k) * 500, &common::ethernet(0x0800, &frame));
    }
    said(&tap)
}

/// Delays of half a second and more, of which the round trips through the same queue know nothing.
fn longer_than_round_trips() -> Flags {
    let mut tap = tap();
    for k in 0..1_200_u64 {
        let at = 1_000_000 + k * 50_000;
        // Up and down by less at a time than what a clock is set by.
        let behind_us = (k % 40).min(40 - k % 40) * 50_000;
        let (stamp, seq) = (((1 << 30) + at - behind_us) as u32, k as u16 + 1);
        tap.utp(at, A, B, &utp(Kind::Data, 8, (seq, 4), (at as u32, 9), 100));
        tap.utp(at + 30_000, B, A, &utp(Kind::State, 7, (5, seq), (stamp, 9), 0));
    }
    said(&tap)
}

/// A connection from an empty queue on, and one that begins when the queue stands.
fn begun_in_a_queue() -> Flags {
    let mut packets = Vec::new();
    for (port, begins_us, count) in [(80, 0, 3_000_u64), (81, 6_000_000, 300)] {
        for k in 0..count {
            let sent = 1_000_000 + begins_us + k * 10_000;
            let queue = if sent > 3_000_000 { 400_000 + k % 40 * 1_000 } else { 0 };
            packets.push((sent + queue, port, sent, k as u32 * 100));
        }
    }
    packets.sort_unstable();
    // The last acknowledgement before it was sent is what each echoes: who is seen to have a long round trip.
    let echo = |of: u16, sent: u64| {
        let before = packets.iter().filter(|(seen, port, ..)| *port == of && *seen < sent);
        before.map(|(seen, ..)| (seen / 1_000) as u32).max().unwrap_or(0)
    };
    let mut tap = tap();
    for &(seen, port, sent, seq) in &packets {
        let stamp = (sent / 1_000) as u32 + u32::from(port) * 77_777;
        let data = Tcp { seq, ack: 1, flags: 0x10, clock: stamp, echo: echo(port, sent), len: 100 };
        let ack =
            Tcp { seq: 1, ack: seq + 100, flags: 0x10, clock: (seen / 1_000) as u32, echo: stamp, len: 0 };
        tap.tcp(seen, (B.0, port), A, &data);
        tap.tcp(seen + 10, A, (B.0, port), &ack);
    }
    said(&tap)
}

/// Through a wire on which a long packet takes 12 ms: a short one, and ten long ones in a row, each second.
fn on_a_slow_wire() -> Flags {
    let mut tap = tap();
    for k in 0..440_u64 {
        let (burst, place) = (k / 11, k % 11);
        let sent = 1_000_000 + burst * 1_000_000 + if place > 0 { 500_000 } else { 0 };
        let (seen, len) = if place > 0 { (sent + place * 12_000, 1_448) } else { (sent + 480, 8) };
        let stamp = (sent / 1_000) as u32;
        let seq =
            (burst * (8 + 10 * 1_448)) as u32 + if place > 0 { 8 + (place as u32 - 1) * 1_448 } else { 0 };
        tap.tcp(seen, B, A, &Tcp { seq, ack: 1, flags: 0x10, clock: stamp, echo: 9, len });
        let ack = Tcp {
            seq: 1,
            ack: seq + len as u32,
            flags: 0x10,
            clock: (seen / 1_000) as u32,
            echo: stamp,
            len: 0,
        };
        tap.tcp(seen + 10, A, B, &ack);
    }
    said(&tap)
}

#[test]
fn each_flag_occurs() {
    let with = |clock, seconds| connections(&[(clock, seconds)]);
    let scenes = [
        (Flags::START_NOT_SEEN, with(USUAL, 20)),
        (Flags::BASE_NOT_REVISITED, alone(10_000, 1_000, |at| (at - (at - 1_000_000) / 50) / 1_000)),
        (Flags::COARSE_CLOCK, with(Clock { hz: 100, ..USUAL }, 60)),
        (Flags::ESTIMATORS_DISAGREE, answered_with(|k| (k % 40) as u32 * 10_000)),
        (Flags::RATE_ASSUMED, with(USUAL, 1)),
        (Flags::RATE_ODD, alone(100_000, 100, |_| 7)),
        (Flags::DRIFT_CORRECTED, with(Clock { ppm: 100.0, ..USUAL }, 120)),
        (Flags::CLOCK_STEP, alone(10_000, 2_000, |at| at / 1_000 + if at > 9_000_000 { 60_000 } else { 0 })),
        (Flags::ONE_DIRECTION, alone(10_000, 1_000, |at| at / 1_000)),
        (Flags::OFFLOADED, large_frames()),
        (Flags::LOST_TRACK, many_under_way()),
        (Flags::EVICTED, little_memory()),
        (Flags::SHORT, with(USUAL, 5)),
        (Flags::SEVERAL_CLOCKS, connections(&[(USUAL, 60), (Clock { hz: 100, ..USUAL }, 60)])),
        (Flags::TRANSMISSION_REMOVED, on_a_slow_wire()),
        (Flags::BEYOND_ROUND_TRIPS, longer_than_round_trips()),
        (Flags::BASE_TOLD, begun_in_a_queue()),
    ];
    for (&(flag, name, _), (of, said)) in Flags::ALL.iter().zip(&scenes) {
        assert_eq!(flag, *of, "{name} has no scene");
        assert!(said.has(flag), "{name} is not said: {:?}", said.names().collect::<Vec<_>>());
    }
    assert_eq!(Flags::ALL.len(), scenes.len());
    // A drift is told of one direction alone, too, as `explain` says of both flags.
    let drifting = alone(10_000, 12_000, |at| (at as f64 * (1.0 - 1e-4)) as u64 / 1_000);
    assert!(drifting.has(Flags::ONE_DIRECTION.with(Flags::DRIFT_CORRECTED)));
    // What needs no flag has none but that it began before.
    let usual: Vec<_> = with(USUAL, 60).names().collect();
    assert_eq!(usual, ["start-not-seen"]);
}

/// What B's uTP is flagged with, of so many packets each 50 ms, where another connection between the same sockets is opened at some time.
fn opened_at(at: u64, packets: u64) -> Flags {
    let mut tap = tap();
    let mut sent: Vec<(u64, bool, Vec<u8>)> = (0..packets)
        .flat_map(|k| {
            let (at, seq) = (20_000_000 + k * 50_000, k as u16);
            let data = utp(Kind::Data, 8, (seq, 4), (at as u32, 5), 100);
            [
                (at + 20_000, true, data),
                (at + 20_010, false, utp(Kind::State, 7, (5, seq), (at as u32, 6), 0)),
            ]
        })
        .collect();
    sent.push((at, false, utp(Kind::Syn, 900, (1, 0), (at as u32, 0), 0)));
    sent.push((at + 10, true, utp(Kind::State, 900, (50, 1), (at as u32, 0), 0)));
    sent.sort();
    for (at, is_of_b, packet) in sent {
        let (from, to) = if is_of_b { (B, A) } else { (A, B) };
        tap.utp(at, from, to, &packet);
    }
    tap.found().flow(B.0).flags
}

#[test]
fn what_opens_in_the_midst_of_a_flow_is_not_its_beginning() {
    // Whether what is kept of it is short or long.
    for packets in [9, 400] {
        let end = 20_000_000 + packets * 50_000;
        for (at, is_seen) in
            [(19_000_000, true), (end - 200_000, false), (end + 2_000_000, false), (end + 30_000_000, true)]
        {
            assert_eq!(!opened_at(at, packets).has(Flags::START_NOT_SEEN), is_seen, "{packets}, {at}");
        }
    }
}
