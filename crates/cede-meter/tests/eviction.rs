//! What is given up for want of memory is told of: flows that come back count once, and hosts that lost samples say so.

mod common;

use cede_meter::{Config, Flags, Meter};
use cede_wire::link::LinkType;
use common::{A, Tcp, ipv4, packet_of};
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;

const MEMORY_BYTES: usize = 8 << 20;
/// Each has one flow.
const HOSTS: u32 = 20_000;

fn host(number: u32) -> [u8; 4] {
    (0x0a20_0000 + number).to_be_bytes()
}

/// So many rounds, in each of which every one of these hosts sends a segment.
fn fill(meter: &mut Meter, rounds: Range<u32>, hosts: Range<u32>) {
    fill_from(meter, 5_000, rounds, hosts);
}

fn fill_from(meter: &mut Meter, port: u16, rounds: Range<u32>, hosts: Range<u32>) {
    for round in rounds {
        for number in hosts.clone() {
            let time_us = 1_000_000 + u64::from(round) * 1_000_000 + u64::from(number) * 40;
            let clock = (time_us / 1_000) as u32;
            let segment = Tcp { seq: round * 100, ack: 1, flags: 0x10, clock, echo: 9, len: 100 };
            let packet = ipv4(6, host(number), A.0, &segment.octets(port, 80));
            meter.packet(time_us * 1_000, LinkType::RAW, &packet, packet.len() as u32);
        }
    }
}

/// Whether each host that lost samples says so, and no other: how many did.
fn lost(meter: &Meter, sent: u64) -> usize {
    let report = meter.report();
    assert_eq!((report.timeless_tcp_flows, report.other_udp_flows), (0, 0));
    let found: HashMap<IpAddr, (u64, Flags)> =
        report.hosts.iter().map(|host| (host.address, (host.all.samples, host.flags))).collect();
    let hosts = (0..HOSTS).filter_map(|number| found.get(&IpAddr::from(host(number))));
    let (mut lost, mut wrong) = (0, 0);
    for (samples, flags) in hosts {
        let is_short = *samples < sent;
        lost += usize::from(is_short);
        wrong += usize::from(is_short != flags.has(Flags::EVICTED));
    }
    // Marks of four octets are shared by chance, though hardly ever.
    assert!(wrong <= 2, "{wrong} of {} say what is not so", found.len());
    lost
}

#[test]
fn flows_that_come_back_count_once_and_their_hosts_say_what_they_lost() {
    let mut meter = Meter::new(Config { memory_bytes: MEMORY_BYTES, samples_min: 1, ..Config::default() });
    fill(&mut meter, 0..16, 0..HOSTS);
    let counters = meter.counters();
    assert!(counters.evicted > 5_000, "{counters:?}");
    assert!(counters.flows.abs_diff(HOSTS.into()) <= 2, "{counters:?}");
    assert!(counters.evicted <= counters.flows, "{counters:?}");
    assert_eq!(counters.thinned, 0);
    let lost = lost(&meter, 16);
    assert!(lost > 5_000, "{lost}");
}

#[test]
fn where_nothing_is_given_up_nobody_says_so() {
    let mut meter =
        Meter::new(Config { memory_bytes: 8 * MEMORY_BYTES, samples_min: 1, ..Config::default() });
    fill(&mut meter, 0..16, 0..HOSTS);
    assert_eq!((meter.counters().flows, meter.counters().evicted), (HOSTS.into(), 0));
    assert_eq!(lost(&meter, 16), 0);
}

/// What was given up is forgotten with the window.
#[test]
fn what_was_lost_long_ago_is_not_told_for_ever() {
    let mut meter = Meter::new(Config { memory_bytes: MEMORY_BYTES, samples_min: 1, ..Config::default() });
    fill(&mut meter, 0..16, 0..HOSTS);
    // Others: who was given up itself says so as long as it lives.
    for round in 16..80 {
        fill(&mut meter, round..round + 1, HOSTS..HOSTS + 50);
        fill_from(&mut meter, 5_001, round..round + 1, 0..50);
        meter.forget_before(u64::from(round - 10) * 1_000_000);
    }
    let report = meter.report();
    let told = report.hosts.iter().filter(|host| host.flags.has(Flags::EVICTED)).count();
    assert!(report.hosts.len() >= 50 && told == 0, "{told} of {}", report.hosts.len());
}

/// Files that are read side by side: what one of them gave up, the whole tells.
#[test]
fn what_is_put_together_tells_what_its_parts_lost() {
    let config = |memory_bytes| Config { memory_bytes, samples_min: 1, ..Config::default() };
    let mut whole = Meter::new(config(8 * MEMORY_BYTES));
    for part in 0..2 {
        let mut meter = Meter::new(config(2 * MEMORY_BYTES));
        fill(&mut meter, part * 8..part * 8 + 8, 0..HOSTS);
        if part == 0 {
            fill(&mut meter, 7..8, HOSTS..HOSTS + 40_000);
        }
        whole.append(&meter);
    }
    assert!(whole.counters().evicted > 5_000, "{:?}", whole.counters());
    let lost = lost(&whole, 16);
    assert!(lost > 5_000, "{lost}: {:?}", whole.counters());
}

/// As few octets as somebody may ask for: flows are given up, and counted, and nothing fails.
#[test]
fn any_memory_is_enough_to_read_with() {
    for memory_bytes in (0..64).chain((0..16).map(|power| 1 << power)) {
        let mut meter = Meter::new(Config { memory_bytes, ..Config::default() });
        for k in 0..2_000_u32 {
            let time_us = 1_000_000 + u64::from(k) * 5_000;
            let packet = packet_of(time_us, k % 10, k / 10, 4);
            meter.packet(time_us * 1000, LinkType::RAW, &packet, packet.len() as u32);
        }
        // Nothing more comes, when all flows may have been given up.
        (0..8).for_each(|_| drop(meter.batch()));
        meter.forget_before(2_000_000);
        assert_eq!(
            (meter.counters().packets, meter.report().hosts.len() <= 5),
            (2_000, true),
            "{memory_bytes}"
        );
    }
}
