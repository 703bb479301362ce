//! Several hosts behind one address, and one host that looks like several.

mod common;

use cede_meter::{Config, Flags};
use cede_units::Stream;
use cede_wire::utp::Kind;
use common::{A, B, Clock, Tap, Tcp, connection, ethernet, ipv4, udp, utp};
use core::ops::Range;

const USUAL: Clock = Clock { hz: 1000, ppm: 0.0, ahead: 0 };

/// Whether B's clocks are called several.
fn are_several(tap: &Tap, connections: u32) -> bool {
    let found = tap.found();
    let address = core::net::IpAddr::from(B.0);
    let host = found.report().hosts.iter().find(|host| host.address == address).unwrap();
    assert_eq!(host.flows, connections);
    host.flags.has(Flags::SEVERAL_CLOCKS)
}

/// The same of TCP connections, each with its clock and time.
fn tcp(connections: &[(Clock, Range<u64>)]) -> bool {
    let (mut tap, mut noise) = (Tap::new(Config::default()), Stream::named(2, "noise"));
    for (port, (clock, seconds)) in (80..).zip(connections) {
        connection(&mut tap, port, clock, seconds.clone(), &mut noise);
    }
    are_several(&tap, connections.len() as u32)
}

#[test]
fn rates_and_drifts_tell_hosts_apart() {
    let with = |hz, ppm| (Clock { hz, ppm, ..USUAL }, 0..120);
    assert!(!tcp(&[with(1000, 0.0), with(1000, 0.0)]), "one clock");
    assert!(tcp(&[with(1000, 0.0), with(100, 0.0)]), "two rates");
    assert!(tcp(&[with(1000, 60.0), with(1000, -60.0)]), "two drifts");
}

#[test]
fn offsets_of_tcp_tell_hosts_apart_where_connections_share_them() {
    let at = |ahead, seconds: Range<u64>| (Clock { ahead, ..USUAL }, seconds);
    let [one, other] = [7, 3_000_000_000];
    // Some systems have one offset for all connections to an address, others draw one for each.
    assert!(tcp(&[at(one, 0..20), at(other, 0..20), at(one, 5..15), at(other, 5..15)]), "two groups");
    assert!(!tcp(&[at(one, 0..20), at(one, 5..25), at(one, 10..30)]), "one group");
    assert!(!tcp(&[at(one, 0..20), at(other, 0..20), at(1 << 30, 0..20), at(1 << 31, 0..20)]), "one each");
    assert!(!tcp(&[at(one, 0..20), at(other, 0..20), at(one, 5..15)]), "a group, and one more connection");
    assert!(!tcp(&[at(one, 0..9), at(one, 0..9), at(other, 60..69), at(other, 60..69)]), "a restart");
    // The clock begins anew between the first connection and the second one.
    assert!(!tcp(&[at(u32::MAX - 4_000, 0..9), at(u32::MAX - 4_000, 4..9)]), "a wrap");
}

/// uTP flows from ports of B's: each with how far its clock is ahead, and when.
fn utp_flows(flows: &[(u32, Range<u64>)]) -> bool {
    let mut tap = Tap::new(Config::default());
    for (port, (ahead, seconds)) in (6_881..).zip(flows) {
        for k in seconds.start * 50..seconds.end * 50 {
            let (sent, arrives) = (1_000_000 + k * 20_000, 1_020_000 + k * 20_000 + k % 50 * 400);
            let stamp = (sent as u32).wrapping_add(*ahead);
            tap.utp(arrives, (B.0, port), A, &utp(Kind::Data, 8, (k as u16, 4), (stamp, 5), 100));
            tap.utp(arrives + 10, A, (B.0, port), &utp(Kind::State, 7, (5, k as u16), (sent as u32, 500), 0));
        }
    }
    are_several(&tap, flows.len() as u32)
}

#[test]
fn offsets_of_utp_tell_hosts_apart() {
    assert!(!utp_flows(&[(9, 0..20), (9, 10..30)]), "one clock, whatever the port");
    assert!(utp_flows(&[(9, 0..20), (700_000_000, 10..30)]), "two");
    assert!(!utp_flows(&[(9, 0..20), (700_000_000, 40..60)]), "a restart");
    // Ahead by half of what 32 bits hold: the sign of the difference changes between the flows.
    assert!(!utp_flows(&[(1 << 31, 0..20), ((1 << 31) + 30_000, 0..20)]), "a wrap");
}

/// A frame from B to A with a hop limit of its own.
fn frame_of(hop_limit: u8, protocol: u8, segment: &[u8]) -> Vec<u8> {
    let mut frame = ethernet(0x0800, &ipv4(protocol, B.0, A.0, segment));
    frame[22] = hop_limit;
    frame
}

/// What somebody on the way sends in B's name to end a connection: no timestamps, and as many hops as it is away.
fn reset(port: u16, hop_limit: u8) -> Vec<u8> {
    let mut octets = Tcp { seq: 1, ack: 1, flags: 0x14, clock: 0, echo: 0, len: 0 }.octets(port, A.1);
    octets.truncate(20);
    octets[12] = 0x50;
    frame_of(hop_limit, 6, &octets)
}

/// Two connections of one clock, with what `forge` adds to the first, within it or at its end.
fn forged(seconds: u64, forge: impl Fn(&mut Tap, u64)) -> bool {
    let (mut tap, mut noise) = (Tap::new(Config::default()), Stream::named(2, "noise"));
    for (port, ends) in [(80, [seconds / 2, seconds]), (81, [seconds, seconds])] {
        connection(&mut tap, port, &USUAL, 0..ends[0], &mut noise);
        if port == 80 {
            forge(&mut tap, 1_000_000 + ends[0] * 1_000_000 + 50_000);
        }
        connection(&mut tap, port, &USUAL, ends[0]..ends[1], &mut noise);
        if port == 80 {
            forge(&mut tap, 1_000_000 + ends[1] * 1_000_000 + 50_000);
        }
    }
    are_several(&tap, 2)
}

#[test]
fn a_few_packets_in_a_hosts_name_are_no_host() {
    for count in [1, 3] {
        let of_each = |at: u64| (0..count).map(move |k| at + k * 10);
        let resets = |tap: &mut Tap, at: u64| of_each(at).for_each(|at| tap.frame(at, &reset(80, 241)));
        assert!(!forged(20, resets), "{count} resets");
        assert!(!forged(2, resets), "{count} resets of short ones");
        // With any clock, in the right place of the sequence.
        for clock in [1_000, 0xffff_0000, 0x7654_3210, 0] {
            let segment = |seq| Tcp { seq, ack: 1, flags: 0x10, clock, echo: 900, len: 10 }.octets(80, A.1);
            let data = |tap: &mut Tap, at: u64| {
                of_each(at).for_each(|at| tap.frame(at, &frame_of(241, 6, &segment(at as u32 / 200))));
            };
            for seconds in [2, 4, 20, 130] {
                assert!(!forged(seconds, data), "{count} with {clock} within {seconds} s");
            }
        }
    }
}

#[test]
fn a_few_datagrams_in_a_hosts_name_are_no_host() {
    for kind in [Kind::Reset, Kind::State] {
        for (count, stamp) in [(1, 5), (1, 0x8765_4321), (4, 5), (4, 0x8765_4321)] {
            let mut tap = Tap::new(Config::default());
            for k in 0..1_000_u64 {
                let (sent, arrives) = (1_000_000 + k * 20_000, 1_020_000 + k * 20_000 + k % 50 * 400);
                for port in [6_881, 6_882] {
                    let data = utp(Kind::Data, 8, (k as u16, 4), (sent as u32, 5), 100);
                    tap.utp(arrives, (B.0, port), A, &data);
                    let state = utp(Kind::State, 7, (5, k as u16), (sent as u32, 500), 0);
                    tap.utp(arrives + 10, A, (B.0, port), &state);
                }
                if k == 500 || k == 999 {
                    let forged = udp(6_881, A.1, &utp(kind, 8, (k as u16, 4), (stamp, 5), 0));
                    (0..count).for_each(|n| tap.frame(arrives + 20 + n, &frame_of(241, 17, &forged)));
                }
            }
            assert!(!are_several(&tap, 2), "{kind:?} {count} {stamp:#x}");
        }
    }
}

/// Anybody may say that a connection is B's.
#[test]
fn connections_that_are_asked_for_in_a_hosts_name_are_not_its() {
    let with_strangers = |packets: u16, hop_limit: u8| {
        let (mut tap, mut noise) = (Tap::new(Config::default()), Stream::named(2, "noise"));
        connection(&mut tap, 80, &USUAL, 0..20, &mut noise);
        for k in 0..packets {
            let syn = Tcp { seq: 7, ack: 0, flags: 2, clock: u32::from(k) << 20, echo: 0, len: 0 };
            let at_us = 5_000_000 + u64::from(k) * 1_000_000;
            tap.frame(at_us, &frame_of(hop_limit, 6, &syn.octets(9_000 + k, A.1)));
        }
        are_several(&tap, 1 + u32::from(packets))
    };
    assert!(!with_strangers(1, 241) && !with_strangers(4, 241));
    assert!(with_strangers(10, 241) && !with_strangers(10, 64), "these are more than a few");
}
