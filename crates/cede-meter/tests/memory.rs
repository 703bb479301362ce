//! Everything that the meter allocates, the making of the report included, stays within what it is allowed.

mod common;

use cede_meter::{Config, Meter};
use cede_wire::link::LinkType;
use cede_wire::utp::Kind;
use common::{A, Tcp, ipv4, packet_of, udp, utp};

/// A thirty-second of the default, and a sixteenth. What has a fixed size weighs more here than there.
const MEMORY_BYTES: usize = 16 << 20;
const MEMORY_BYTES_FLOWS: usize = 32 << 20;

/// Plays packets of as many flows by turns and makes a report: the most that was allocated at a time, and the meter's own
/// estimate before the report.
fn most_bytes(memory_bytes: usize, packets: u32, under_way: u32, of_flow: u32, hosts: u32) -> (usize, Meter) {
    let mut kept = None;
    let counted = allocation_counter::measure(|| {
        let mut meter = Meter::new(Config { memory_bytes, ..Config::default() });
        for k in 0..packets {
            let (round, within) = (k / (under_way * of_flow), k % (under_way * of_flow));
            let (flow, step) = (round * under_way + within % under_way, within / under_way);
            let time_us = 1_000_000 + u64::from(k) * 50;
            let packet = packet_of(time_us, flow, step, hosts);
            meter.packet(time_us * 1000, LinkType::RAW, &packet, packet.len() as u32);
        }
        assert!(meter.memory_bytes() <= memory_bytes, "{}", meter.memory_bytes());
        assert!(!meter.report().hosts.is_empty());
        kept = Some(meter);
    });
    (counted.bytes_max as usize, kept.expect("a meter"))
}

/// A sixteenth of a million flows.
#[test]
fn many_short_flows() {
    let (most, meter) = most_bytes(MEMORY_BYTES_FLOWS, 620_000, 1_000, 10, 5_000);
    assert!(most <= MEMORY_BYTES_FLOWS, "{most} octets");
    assert_eq!((meter.counters().flows, meter.counters().evicted), (62_000, 0));
}

#[test]
fn more_short_flows_than_there_is_room_for() {
    let (most, meter) = most_bytes(MEMORY_BYTES, 600_000, 1_000, 10, 1_000);
    assert!(most <= MEMORY_BYTES, "{most} octets");
    // A flow may look like one that was given up, by the mark that is kept of it: one in some ten thousand here.
    assert!(meter.counters().flows >= 59_900 && meter.counters().evicted > 0, "{:?}", meter.counters());
}

#[test]
fn a_few_long_flows_of_one_host() {
    let (most, meter) = most_bytes(MEMORY_BYTES, 1_500_000, 20, 75_000, 1);
    assert!(most <= MEMORY_BYTES, "{most} octets");
    assert!(meter.counters().evicted == 0 && meter.counters().thinned > 500_000, "{:?}", meter.counters());
    // Everything is covered: 75 seconds.
    let covered = meter.report().hosts[0].all.covered_s;
    assert!((covered - 75.0).abs() < 1.0, "{covered}");
}

#[test]
fn long_flows_of_many_hosts() {
    let (most, meter) = most_bytes(MEMORY_BYTES, 1_500_000, 300, 5_000, 300);
    assert!(most <= MEMORY_BYTES, "{most} octets");
    assert_eq!(meter.counters().evicted, 0, "{:?}", meter.counters());
    assert_eq!(meter.report().hosts.len(), 301);
}

/// Whoever needs all of the memory, or says so, has a report all the same.
#[test]
fn no_reserve_is_too_much() {
    let reports = [0, MEMORY_BYTES, usize::MAX].map(|reserve| {
        let mut meter = Meter::new(Config { memory_bytes: MEMORY_BYTES, ..Config::default() });
        for k in 0..1_000 {
            let packet = packet_of(u64::from(k) * 50, 1, k, 1);
            meter.packet(u64::from(k) * 50_000, LinkType::RAW, &packet, packet.len() as u32);
        }
        meter.reserve(reserve);
        meter.report()
    });
    assert!(!reports[0].hosts.is_empty() && reports.iter().all(|report| *report == reports[0]));
}

/// A queue that holds 200 to 300 ms and is empty for one packet, which comes close behind another: where samples are
/// left out for want of memory, delays are counted from the same.
#[test]
fn what_is_left_out_changes_means_and_shortest_delays_hardly() {
    let means = |memory_bytes: usize, is_tcp: bool| {
        let mut meter = Meter::new(Config { memory_bytes, ..Config::default() });
        for k in 0..2_000_000_u64 {
            let queue_us = ((k + 999_123) % 2_000_000 * 1_000).min(200_000 + k % 1_000 * 100);
            let (sent_us, arrives_us) = (9_000_000 + k * 1_000 - queue_us, 9_000_000 + k * 1_000);
            let packet = if is_tcp {
                let clock = (sent_us / 1_000) as u32;
                let segment = Tcp { seq: k as u32, ack: 1, flags: 0x10, clock, echo: 9, len: 1 };
                ipv4(6, [10, 0, 0, 1], A.0, &segment.octets(80, 80))
            } else {
                let data = utp(Kind::Data, 8, (k as u16, 4), (sent_us as u32, 5), 20);
                ipv4(17, [10, 0, 0, 1], A.0, &udp(80, 80, &data))
            };
            meter.packet(arrives_us * 1_000, LinkType::RAW, &packet, packet.len() as u32);
        }
        let report = meter.report();
        assert_eq!(report.counters.evicted, 0);
        (report.hosts[0].all.time_mean_ms, report.counters.thinned)
    };
    for is_tcp in [true, false] {
        let (whole, none) = means(512 << 20, is_tcp);
        let (thinned, many) = means(3 << 20, is_tcp);
        assert!(none == 0 && many > 100_000, "{none} {many}");
        assert!((thinned / whole - 1.0).abs() < 0.01, "{is_tcp}: {thinned} for {whole}");
    }
}
