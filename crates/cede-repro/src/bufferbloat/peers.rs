//! The paper's analysis of many peers: the mean delay of each, under either transport.
//!
//! Source: section V of the paper: peers with at least 100 packets, which are 50 samples; distributions of the mean per
//! peer; peers seen under both transports against each other.

use cede_meter::{FlowReport, HostReport, Report, Summary, Visitor, Wants};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Peers with fewer samples under a transport are left out there.
pub const SAMPLES_MIN: u64 = 50;

/// A peer's mean delays in milliseconds, each where there were enough samples.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Peer {
    /// Its address, or its number in the population.
    pub name: String,
    /// Under uTP: the mean over samples, as in the paper.
    pub utp_ms: Option<f64>,
    /// Under TCP, likewise.
    pub tcp_ms: Option<f64>,
    /// Under uTP: the mean over time.
    pub utp_time_mean_ms: Option<f64>,
    /// Under TCP, likewise.
    pub tcp_time_mean_ms: Option<f64>,
}

impl Peer {
    /// What a report says of a host; none where it says too little.
    #[must_use]
    pub fn of(name: String, host: &HostReport) -> Option<Self> {
        let enough = |summary: Option<Summary>| summary.filter(|summary| summary.samples >= SAMPLES_MIN);
        let (utp, tcp) = (enough(host.utp), enough(host.tcp));
        (utp.is_some() || tcp.is_some()).then(|| Self {
            name,
            utp_ms: utp.map(|summary| summary.sample_mean_ms),
            tcp_ms: tcp.map(|summary| summary.sample_mean_ms),
            utp_time_mean_ms: utp.map(|summary| summary.time_mean_ms),
            tcp_time_mean_ms: tcp.map(|summary| summary.time_mean_ms),
        })
    }

    /// Every host of a report that has enough samples, and is none of those at which was observed.
    #[must_use]
    pub fn all(report: &Report, observers: &BTreeSet<IpAddr>) -> Vec<Self> {
        let remote = report.hosts.iter().filter(|host| !observers.contains(&host.address));
        remote.filter_map(|host| Self::of(host.address.to_string(), host)).collect()
    }

    /// Both means, where it was seen under both.
    #[must_use]
    pub fn both(&self) -> Option<(f64, f64)> {
        self.utp_ms.zip(self.tcp_ms)
    }
}

/// Between which addresses flows were seen.
#[derive(Debug, Default)]
pub struct Pairs(BTreeMap<IpAddr, BTreeSet<IpAddr>>);

impl Visitor for Pairs {
    fn wants(&self) -> Wants {
        Wants::Flows
    }

    fn flow(&mut self, flow: &FlowReport) {
        let (a, b) = (flow.source.address, flow.destination.address);
        self.0.entry(a).or_default().insert(b);
        self.0.entry(b).or_default().insert(a);
    }
}

impl Pairs {
    /// Where was observed: whoever all others around it talk to, and to nobody else. Of two hosts alone it is the one that answers
    /// sooner at the shortest, and within two milliseconds.
    #[must_use]
    pub fn observers(&self, report: &Report) -> BTreeSet<IpAddr> {
        const NEAR_MS: f64 = 2.0;
        let round_trip_ms = |address: &IpAddr| {
            let host = report.hosts.iter().find(|host| host.address == *address)?;
            Some(host.round_trip?.min_ms)
        };
        let others = |address: &IpAddr| self.0.get(address).map_or(0, BTreeSet::len);
        let is_observer = |(address, around): &(&IpAddr, &BTreeSet<IpAddr>)| {
            if around.iter().any(|other| others(other) > 1) {
                return false;
            }
            let nearest = around.iter().filter_map(round_trip_ms).fold(f64::INFINITY, f64::min);
            around.len() > 1 || round_trip_ms(address).is_some_and(|own| own < NEAR_MS && own < nearest)
        };
        self.0.iter().filter(is_observer).map(|(address, _)| *address).collect()
    }
}

/// Values in order with the part of them that is at most as large: an empirical distribution.
#[must_use]
pub fn distribution(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let whole = values.len() as f64;
    values.into_iter().zip(1_u32..).map(|(value, rank)| (value, f64::from(rank) / whole)).collect()
}

/// The part of the values that this holds for; none where there are none.
#[must_use]
pub fn part<T>(values: &[T], holds: impl Fn(&T) -> bool) -> Option<f64> {
    (!values.is_empty())
        .then(|| values.iter().filter(|value| holds(value)).count() as f64 / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_meter::{Counters, Delay, Flags, RoundTrip};

    fn host(address: IpAddr, min_ms: Option<f64>) -> HostReport {
        let summary = Summary::of(&[Delay { time_us: 0, queue_us: 0.0 }]).unwrap();
        let round_trip = min_ms.map(|min_ms| RoundTrip { samples: 9, min_ms, mean_ms: min_ms });
        let (utp, tcp, flows, clock_hz) = (None, None, 1, None);
        HostReport { address, flows, all: summary, utp, tcp, clock_hz, round_trip, flags: Flags::default() }
    }

    #[test]
    fn who_observes_is_told_from_peers() {
        const NOBODY: [IpAddr; 0] = [];
        let address = |k: u8| IpAddr::from([10, 0, 0, k]);
        let told = |pairs: &[(u8, u8)], trips: &[(u8, f64)]| {
            let mut seen = Pairs::default();
            for &(a, b) in pairs {
                seen.0.entry(address(a)).or_default().insert(address(b));
                seen.0.entry(address(b)).or_default().insert(address(a));
            }
            let hosts = trips.iter().map(|&(k, ms)| host(address(k), Some(ms))).collect();
            let (counters, other) = (Counters::default(), 0);
            let report = Report {
                counters,
                hosts,
                hosts_with_too_little: other,
                other_udp_flows: other,
                timeless_tcp_flows: other,
                odd_tcp_clocks: 0,
            };
            seen.observers(&report).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(told(&[(1, 2), (1, 3), (1, 4)], &[]), [address(1)]);
        assert_eq!(told(&[(1, 2), (1, 3), (5, 6), (5, 7)], &[]), [address(1), address(5)], "two captures");
        assert_eq!(told(&[(1, 2), (1, 3), (2, 3)], &[]), NOBODY, "a router's view");
        assert_eq!(told(&[(1, 2)], &[(1, 0.1), (2, 30.0)]), [address(1)]);
        assert_eq!(told(&[(1, 2)], &[(1, 0.011), (2, 0.006)]), [address(2)]);
        assert_eq!(told(&[(1, 2)], &[(1, 20.0), (2, 30.0)]), NOBODY, "both are far");
        assert_eq!(told(&[(1, 2)], &[]), NOBODY);
    }

    #[test]
    fn distributions_rise_to_one() {
        assert_eq!(distribution([3.0, 1.0, 2.0, 2.0]), [(1.0, 0.25), (2.0, 0.5), (2.0, 0.75), (3.0, 1.0)]);
        assert_eq!(distribution([]), []);
        assert_eq!(part(&[1, 2, 3, 4], |value| *value > 3), Some(0.25));
        assert_eq!(part::<u8>(&[], |_| true), None);
    }
}
