//! The paper's analysis of many peers: the mean delay of each, under either transport.
//!
//! Source: section V of the paper: peers with at least 100 packets, which are 50 samples; distributions of the mean per
//! peer; peers seen under both transports against each other.

use cede_meter::{HostReport, Report, Summary};
use serde::Serialize;

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

    /// Every host of a report that has enough samples.
    #[must_use]
    pub fn all(report: &Report) -> Vec<Self> {
        report.hosts.iter().filter_map(|host| Self::of(host.address.to_string(), host)).collect()
    }

    /// Both means, where it was seen under both.
    #[must_use]
    pub fn both(&self) -> Option<(f64, f64)> {
        self.utp_ms.zip(self.tcp_ms)
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

    #[test]
    fn distributions_rise_to_one() {
        assert_eq!(distribution([3.0, 1.0, 2.0, 2.0]), [(1.0, 0.25), (2.0, 0.5), (2.0, 0.75), (3.0, 1.0)]);
        assert_eq!(distribution([]), []);
        assert_eq!(part(&[1, 2, 3, 4], |value| *value > 3), Some(0.25));
        assert_eq!(part::<u8>(&[], |_| true), None);
    }
}
