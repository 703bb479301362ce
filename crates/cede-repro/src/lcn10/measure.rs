//! What one run showed, in the paper's metrics (section III-B).
//!
//! * x_i: octets of flow i's packets that left the bottleneck, over the time;
//! * efficiency: the sum of x_i over the capacity; TCP %: the first flow's part of the sum;
//! * Jain's index (sum x)^2 / (n sum x^2), over the whole run and as the mean over windows of 1 s (20 RTT);
//! * queue index B: the queue's length after each enqueue, over the buffer; P_l: drops over arrivals.
//!
//! The windows of the short-term index are counted where packets arrive, 24 ms behind the bottleneck.

use super::setting::{PACKET_MS, Setting};
use cede_lab::meter::jain;
use cede_lab::outcome::Outcome;
use cede_lab::run::{Run, RunError, Watcher};
use cede_units::Instant;
use serde::{Deserialize, Serialize};

/// What one run showed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// What left the bottleneck, over its capacity.
    pub efficiency: f64,
    /// The same, counting only octets that their applications received.
    pub goodput_efficiency: f64,
    /// x_i of every flow, in Mbit/s.
    pub rates_mbps: Vec<f64>,
    /// Jain's index over the whole run.
    pub fairness_long: f64,
    /// Mean of Jain's index over windows of 1 s.
    pub fairness_short: f64,
    /// Jain's index among all flows but the first; 1 for a single one.
    pub fairness_others: f64,
    /// Mean of the queue's length after each enqueue, over the buffer.
    pub queue_index: f64,
    /// Mean of the queue's length over time, over the buffer.
    pub queue_index_over_time: f64,
    /// Drops over arrivals.
    pub loss: f64,
    /// The largest part of its packets that one of the flows but the first lost.
    #[serde(default)]
    pub loss_others: f64,
    /// Retransmission timeouts of all flows.
    pub timeouts: u64,
    /// Every connection lived to the end and delivered what was sent.
    pub intact: bool,
    /// The run over time, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Traces>,
}

/// Windows and queue over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Traces {
    /// The times of the samples, in seconds.
    pub t_s: Vec<f64>,
    /// Congestion window of each flow, in packets; absent before its connection.
    pub cwnd_packets: Vec<Vec<Option<f64>>>,
    /// Mean wait of the packets that left since the sample before, in packets at the bottleneck's rate.
    pub queue_packets: Vec<Option<f64>>,
}

impl Measured {
    /// The first flow's part of everything, in percent.
    #[must_use]
    pub fn tcp_percent(&self) -> f64 {
        self.share(0) * 100.0
    }

    /// A flow's part of everything.
    #[must_use]
    pub fn share(&self, flow: usize) -> f64 {
        self.rates_mbps[flow] / self.rates_mbps.iter().sum::<f64>()
    }

    fn of(outcome: &Outcome, capacity_mbps: f64) -> Self {
        let link = &outcome.links[0];
        let rates = link.flow_rates_mbps.clone();
        let payload: f64 = outcome.flows.iter().map(|flow| flow.goodput_mbps).sum();
        let fairness = |rates: &[f64]| jain(rates.iter().copied()).unwrap_or(1.0);
        Self {
            efficiency: rates.iter().sum::<f64>() / capacity_mbps,
            goodput_efficiency: payload / capacity_mbps,
            fairness_long: fairness(&rates),
            fairness_short: outcome.fairness_short.unwrap_or(1.0),
            fairness_others: fairness(&rates[1.min(rates.len())..]),
            rates_mbps: rates,
            queue_index: link.queue_index,
            queue_index_over_time: link.queue_index_over_time,
            loss: link.drop_probability,
            loss_others: outcome.flows.iter().skip(1).map(|flow| flow.loss).fold(0.0, f64::max),
            timeouts: outcome.flows.iter().map(|flow| flow.timeouts).sum(),
            intact: outcome.flows.iter().all(|flow| flow.intact && flow.error.is_none()),
            series: None,
        }
    }
}

/// Octets of payload in a packet of 1500 octets, for windows counted in packets.
fn payload_bytes(protocol: &str) -> f64 {
    if protocol == "utp" { 1452.0 } else { 1448.0 }
}

impl Traces {
    fn of(outcome: &Outcome) -> Self {
        let series = &outcome.series;
        let finite = |value: f64| value.is_finite().then_some((value * 1e3).round() / 1e3);
        let windows = outcome.flows.iter().zip(&series.flows).map(|(flow, series)| {
            let packet = payload_bytes(flow.protocol);
            series.cwnd_bytes.iter().map(|bytes| finite(bytes / packet)).collect()
        });
        Self {
            t_s: series.t_s.iter().map(|t| (t * 1e3).round() / 1e3).collect(),
            cwnd_packets: windows.collect(),
            queue_packets: series.queue_mean_ms[0].iter().map(|ms| finite(ms / PACKET_MS)).collect(),
        }
    }
}

struct Stopper<'a>(&'a dyn Fn() -> bool);

impl Watcher for Stopper<'_> {
    fn progress(&mut self, _: Instant, _: Instant) -> bool {
        !(self.0)()
    }
}

/// Runs a setting; stops as soon as `stop` says so.
///
/// # Errors
/// [`RunError::Interrupted`] where it was stopped.
pub fn measure(setting: &Setting, stop: &dyn Fn() -> bool) -> Result<Measured, RunError> {
    let scenario = setting.scenario();
    let run = Run::new(&scenario);
    let run = if setting.series { run } else { run.totals_only() };
    let (outcome, _) = run.go(&mut Stopper(stop))?;
    let traces = setting.series.then(|| Traces::of(&outcome));
    Ok(Measured { series: traces, ..Measured::of(&outcome, setting.choices.bed.capacity_mbps()) })
}
