//! What is to be seen at a time: the hosts of the window, and what is new since the last time.

use cede_meter::{Counters, Delay, Estimator, HostReport, Meter, Protocol, QueueSample, Summary, Visitor};
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// Upper ends of the metric's buckets in seconds: from below a packet's time at 10 Mbit/s to the worst uplinks.
pub const BUCKETS_S: [f64; 14] =
    [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];

/// Delays since the beginning, by buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Samples no longer than each bucket's end, and longer than the one's before; the last has no end.
    pub counts: [u64; BUCKETS_S.len() + 1],
    pub sum_s: f64,
}

impl Tally {
    fn add(&mut self, queue_s: f64) {
        self.counts[BUCKETS_S.partition_point(|&end| end < queue_s)] += 1;
        self.sum_s += queue_s;
    }
}

/// A host, in the window and now.
pub struct Row {
    pub host: HostReport,
    /// Since the last picture; `None` where nothing came.
    pub now: Option<Summary>,
}

/// What is to be seen.
pub struct Picture {
    pub rows: Vec<Row>,
    pub counters: Counters,
    pub flows: usize,
    pub memory_bytes: usize,
    /// Packets and octets a second since the last picture.
    pub packets_per_s: f64,
    pub bits_per_s: f64,
    /// Packets that the kernel had no room for.
    pub lost: u64,
    /// Interfaces that are down.
    pub down: String,
    /// The least time between two samples of a direction that are kept.
    pub spacing: Duration,
    /// Delays since the beginning, by uTP and TCP.
    pub tallies: [Tally; 2],
    pub running_s: f64,
}

impl Picture {
    /// Whether no interface is down.
    pub fn is_up(&self) -> bool {
        self.down.is_empty()
    }
}

/// Collects what is new.
pub struct Recent<'a> {
    /// Samples after the first and up to the second of these times are new: when the last packet came that was read before the last
    /// picture, and before this one. Those that the kernel still holds come with the next.
    pub new_us: (u64, u64),
    pub estimator: Estimator,
    pub tallies: &'a mut [Tally; 2],
    pub by_host: HashMap<IpAddr, Vec<Delay>>,
}

impl Visitor for Recent<'_> {
    fn sample(&mut self, sample: &QueueSample) {
        if sample.estimator != self.estimator || !self.is_new(sample.delay.time_us) {
            return;
        }
        self.tallies[usize::from(sample.protocol == Protocol::Tcp)].add(sample.delay.queue_us / 1e6);
        self.by_host.entry(sample.source.address).or_default().push(sample.delay);
    }
}

impl Recent<'_> {
    const fn is_new(&self, time_us: u64) -> bool {
        self.new_us.0 < time_us && time_us <= self.new_us.1
    }

    /// The report's hosts with what is new of each.
    pub fn rows(mut self, meter: &Meter) -> Vec<Row> {
        let report = meter.report_to(&mut self);
        let mut now = |host: &HostReport| {
            let mut delays = self.by_host.remove(&host.address)?;
            delays.sort_by_key(|delay| delay.time_us);
            Summary::of(&delays)
        };
        report.hosts.into_iter().map(|host| Row { now: now(&host), host }).collect()
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;
    use cede_meter::Flags;

    /// A picture of hosts 10.0.0.N, each with a queue of N ms.
    pub fn picture(hosts: impl Iterator<Item = u8>) -> Picture {
        let mut tallies = [Tally::default(); 2];
        let row = |last: u8| {
            let queue_us = f64::from(last) * 1e3;
            tallies[0].add(queue_us / 1e6);
            let delays = [0, 1_000_000].map(|time_us| Delay { time_us, queue_us });
            let all = Summary::of(&delays).expect("delays");
            let host = HostReport {
                address: [10, 0, 0, last].into(),
                flows: 1,
                all,
                utp: Some(all),
                tcp: None,
                clock_hz: None,
                round_trip: None,
                flags: Flags::SHORT,
            };
            Row { host, now: Some(all) }
        };
        Picture {
            rows: hosts.map(row).collect(),
            counters: Counters { evicted: 3, thinned: 4, ..Counters::default() },
            flows: 7,
            memory_bytes: 1_000_000,
            packets_per_s: 10.0,
            bits_per_s: 1e6,
            lost: 5,
            down: String::new(),
            spacing: Duration::ZERO,
            tallies,
            running_s: 12.0,
        }
    }
}
