//! What a transfer showed, measured or predicted alike.

use cede_units::Duration;
use serde::Serialize;

/// From one sample to the next.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);

/// A transfer at the end of an interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// The end of the interval, in seconds since the SYN.
    pub t_s: f64,
    /// Payload that arrived in it, in Mbit/s.
    pub rate_mbps: f64,
    /// Mean queueing delay at the bottleneck of the packets that left it in the interval; none where none did.
    pub queue_ms: Option<f64>,
    /// The sender's congestion window, in octets.
    pub cwnd_bytes: f64,
    /// Packets sent again since the beginning.
    pub retransmissions: u64,
}

/// What a transfer showed.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Showing {
    /// From the SYN to the first octet of payload at the receiver; not known of a prediction.
    pub first_octet_s: Option<f64>,
    /// From the SYN to the last octet of payload at the receiver; none where it did not come.
    pub finish_s: Option<f64>,
    /// Payload over that time, start-up and handshake included, in Mbit/s.
    pub goodput_mbps: f64,
    /// The same over the second half of that time.
    pub steady_mbps: f64,
    /// Mean queueing delay at the bottleneck in the second half, in milliseconds.
    pub queue_ms: f64,
    /// The largest mean of an interval, in milliseconds.
    pub queue_max_ms: f64,
    /// Packets sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Interval by interval.
    pub samples: Vec<Sample>,
}

impl Showing {
    /// Adds up samples; `finish_s` is when the last octet came, `bytes` how many there were.
    pub(super) fn of(samples: Vec<Sample>, bytes: u64, finish_s: Option<f64>) -> Self {
        let last = samples.last().copied();
        let arrived = |samples: &[Sample]| samples.iter().map(|sample| sample.rate_mbps).sum::<f64>();
        let end_s = finish_s.or(last.map(|sample| sample.t_s)).unwrap_or_default();
        let steady: Vec<Sample> = samples
            .iter()
            .copied()
            .filter(|sample| sample.t_s > end_s / 2.0 && sample.t_s <= end_s)
            .collect();
        let known: Vec<f64> = steady.iter().filter_map(|sample| sample.queue_ms).collect();
        let mbits =
            finish_s.map_or_else(|| arrived(&samples) * INTERVAL.as_secs_f64(), |_| bytes as f64 * 8e-6);
        Self {
            first_octet_s: None,
            finish_s,
            goodput_mbps: ratio(mbits, end_s),
            steady_mbps: ratio(arrived(&steady), steady.len() as f64),
            queue_ms: ratio(known.iter().sum(), known.len() as f64),
            queue_max_ms: samples.iter().filter_map(|sample| sample.queue_ms).fold(0.0, f64::max),
            retransmissions: last.map_or(0, |sample| sample.retransmissions),
            timeouts: 0,
            samples,
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
