//! Several hosts behind one address, and one host that looks like several.

mod common;

use cede_meter::{Config, Flags};
use cede_units::Stream;
use cede_wire::utp::Kind;
use common::{A, B, Clock, Tap, connection, utp};
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
