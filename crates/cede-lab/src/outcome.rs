//! What a run showed: totals per flow and link, series over time, and the metrics that scenarios assert on.

use crate::histogram::Histogram;
use crate::meter::{Length, LinkMeter, Meters, jain};
use crate::network::{FlowPlan, Network, Watched};
use crate::scenario::{Assertion, Limit, Metric, ProtocolKind, Scenario};
use cede_net::DropCause;
use cede_units::{Duration, Instant};
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything that a run showed.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The time that the metrics look at: the duration less the warm-up, in seconds.
    pub span_s: f64,
    /// The flows, in the order of the scenario.
    pub flows: Vec<FlowOutcome>,
    /// The metered links; the first is the bottleneck.
    pub links: Vec<LinkOutcome>,
    /// Jain's index of the flows' rates over the whole time; none where nothing arrived.
    pub fairness_long: Option<f64>,
    /// The mean of Jain's index over windows of one second.
    pub fairness_short: Option<f64>,
    /// How things went over time.
    #[serde(skip)]
    pub series: Series,
    /// A hash over all deliveries and drops, the same for the same scenario and seed.
    pub tape: String,
    /// Events of the simulation.
    pub events: u64,
}

/// Delays of packets, in milliseconds; all zero where there were none.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Delays {
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

/// What a flow achieved.
#[derive(Clone, Debug, Serialize)]
pub struct FlowOutcome {
    /// Its name.
    pub name: String,
    /// The scenario's flow of which it is a replicate.
    pub group: String,
    /// `utp` or `tcp`.
    pub protocol: &'static str,
    /// Its controller.
    pub controller: String,
    /// When it started, in seconds.
    pub start_s: f64,
    /// Octets of data packets that reached the receiver, headers included, as a rate in Mbit/s.
    pub rate_mbps: f64,
    /// Payload that reached the application, in Mbit/s.
    pub goodput_mbps: f64,
    /// Its part of all rates.
    pub share: f64,
    /// The part of its data packets that did not arrive.
    pub loss: f64,
    /// Queueing delays of its data packets that arrived, each on its whole way.
    pub delays: Delays,
    /// The part of its data packets that were sent again.
    pub retransmitted: f64,
    /// Retransmission timeouts since the beginning, the warm-up included.
    pub timeouts: u64,
    /// When its last octet was acknowledged, in seconds; none where that did not happen.
    pub finish_s: Option<f64>,
    /// Why the connection ended, where it ended badly.
    pub error: Option<String>,
    /// The byte stream arrived in order and unchanged.
    pub intact: bool,
}

/// What a link carried.
#[derive(Clone, Debug, Serialize)]
pub struct LinkOutcome {
    /// Its name.
    pub name: String,
    /// The part of its capacity that carried packets.
    pub efficiency: f64,
    /// What left it, in Mbit/s.
    pub rate_mbps: f64,
    /// Octets of data packets of each flow that left it, headers included, in Mbit/s, in the order of the flows.
    pub flow_rates_mbps: Vec<f64>,
    /// The part of the packets offered to it that did not get through.
    pub loss: f64,
    /// Packets that the queue refused or dropped, of those offered.
    pub drop_probability: f64,
    /// Packets that did not get through, by cause.
    pub drops: BTreeMap<&'static str, u64>,
    /// The part of the packets offered to it that its queue marked in place of dropping them.
    pub marked: f64,
    /// Queueing delays of all its packets.
    pub delays: Delays,
    /// Mean of the queue's length after each enqueue, over the buffer's size.
    pub queue_index: f64,
    /// Mean of the queue's length over time, over the buffer's size.
    pub queue_index_over_time: f64,
}

/// How things went, one value per sampling interval.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The ends of the intervals, in seconds.
    pub t_s: Vec<f64>,
    /// Per metered link, the mean queueing delay of the packets that left in the interval (NaN where none did), in ms.
    pub queue_mean_ms: Vec<Vec<f64>>,
    /// Per metered link, the largest.
    pub queue_max_ms: Vec<Vec<f64>>,
    /// Per flow.
    pub flows: Vec<FlowSeries>,
}

/// How a flow went, one value per sampling interval.
#[derive(Clone, Debug, Default)]
pub struct FlowSeries {
    /// Octets that reached the receiver, headers included, as a rate in Mbit/s.
    pub rate_mbps: Vec<f64>,
    /// The congestion window in octets at the end of the interval; NaN while there is no connection.
    pub cwnd_bytes: Vec<f64>,
    /// The slow-start threshold in octets; NaN where there is none.
    pub ssthresh_bytes: Vec<f64>,
    /// The smoothed RTT in milliseconds; NaN before the first sample.
    pub srtt_ms: Vec<f64>,
    /// The queueing delay that the controller believes in, in milliseconds; NaN where it has no opinion.
    pub believed_queue_ms: Vec<f64>,
    /// Octets under way.
    pub in_flight_bytes: Vec<f64>,
    /// Retransmissions since the beginning.
    pub retransmissions: Vec<f64>,
}

/// What the run loop knows of a flow beyond what the meters saw.
#[derive(Clone, Debug, Default)]
pub struct FlowEnds {
    /// Data packets sent, retransmissions included.
    pub data_packets_sent: u64,
    /// Of these, sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Payload octets that the receiving application had.
    pub received_bytes: u64,
    /// When the last octet was acknowledged, in seconds.
    pub finish_s: Option<f64>,
    /// Why the connection failed.
    pub error: Option<String>,
    /// The stream's octets were those that were sent.
    pub intact: bool,
}

impl FlowEnds {
    /// The same without what was counted until an earlier time; timeouts count from the beginning.
    #[must_use]
    pub fn since(self, before: &Self) -> Self {
        Self {
            data_packets_sent: self.data_packets_sent.saturating_sub(before.data_packets_sent),
            retransmissions: self.retransmissions.saturating_sub(before.retransmissions),
            received_bytes: self.received_bytes.saturating_sub(before.received_bytes),
            ..self
        }
    }
}

impl Outcome {
    /// Adds up what the meters saw.
    #[must_use]
    pub fn of(
        scenario: &Scenario,
        network: &Network,
        meters: &Meters,
        ends: &[FlowEnds],
        series: Series,
    ) -> Self {
        let span = scenario.duration - scenario.warmup;
        let bytes: Vec<u64> =
            network.flows.iter().map(|plan| meters.deliveries().bytes[plan.number]).collect();
        let total: u64 = bytes.iter().sum();
        let flow = |(index, plan): (usize, &FlowPlan)| {
            let context = FlowContext { scenario, meters, span, total, bytes: bytes[index] };
            context.outcome(plan, &ends[index])
        };
        let short = &meters.deliveries().short_term_fairness;
        Self {
            span_s: span.as_secs_f64(),
            flows: network.flows.iter().enumerate().map(flow).collect(),
            links: meters
                .links()
                .iter()
                .zip(&network.watched)
                .map(|(m, w)| link(m, w, network, scenario))
                .collect(),
            fairness_long: jain(bytes.iter().map(|&bytes| bytes as f64)),
            fairness_short: (!short.is_empty()).then(|| short.iter().sum::<f64>() / short.len() as f64),
            series,
            tape: String::new(),
            events: 0,
        }
    }

    /// The part of all rates that the flows have for which `belongs` holds; NaN where nothing arrived.
    pub fn share_of(&self, belongs: impl Fn(&FlowOutcome) -> bool) -> f64 {
        let total: f64 = self.flows.iter().map(|flow| flow.rate_mbps).sum();
        let part: f64 = self.flows.iter().filter(|flow| belongs(flow)).map(|flow| flow.rate_mbps).sum();
        part / total
    }

    /// The values of a metric: one, or one per replicate where it names a replicated flow. NaN where there is nothing to
    /// measure.
    #[must_use]
    pub fn values(&self, metric: &Metric) -> Vec<f64> {
        let leaf = metric.doc.leaf;
        let subject = metric.subject.as_deref();
        match metric.doc.group {
            "flow" => self
                .flows
                .iter()
                .filter(|flow| subject == Some(&flow.name) || subject == Some(&flow.group))
                .map(|flow| flow.value(leaf))
                .collect(),
            "queue" | "link" => {
                let found = self.links.iter().find(|link| subject.is_none_or(|name| link.name == name));
                vec![found.map_or(f64::NAN, |link| link.value(leaf))]
            }
            "fairness" if leaf == "long" => vec![self.fairness_long.unwrap_or(f64::NAN)],
            "fairness" => vec![self.fairness_short.unwrap_or(f64::NAN)],
            _ => vec![self.share_of(|flow| flow.protocol == leaf)],
        }
    }

    /// What became of the scenario's assertions.
    #[must_use]
    pub fn verdicts(&self, scenario: &Scenario) -> Vec<Verdict> {
        let verdict = |assertion: &Assertion| {
            let measured = self.values(&assertion.metric);
            // Of several replicates the one that is furthest from holding speaks for all.
            let failing = measured.iter().copied().find(|&value| !assertion.holds(value));
            let shown = failing.or(measured.first().copied()).unwrap_or(f64::NAN);
            let holds = failing.is_none() && !measured.is_empty();
            Verdict { assertion: assertion.to_string(), measured: shown, holds }
        };
        scenario.assertions.iter().map(verdict).collect()
    }
}

/// What became of an assertion.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The assertion.
    pub assertion: String,
    /// What was measured; of several replicates, one for which it does not hold.
    pub measured: f64,
    /// Whether it holds.
    pub holds: bool,
}

impl FlowOutcome {
    fn value(&self, leaf: &str) -> f64 {
        match leaf {
            "rate_mbps" => self.rate_mbps,
            "goodput_mbps" => self.goodput_mbps,
            "share" => self.share,
            "loss" => self.loss,
            "retransmitted" => self.retransmitted,
            "finish_s" => self.finish_s.unwrap_or(f64::INFINITY),
            delay => self.delays.value(delay),
        }
    }
}

impl LinkOutcome {
    fn value(&self, leaf: &str) -> f64 {
        match leaf {
            "efficiency" => self.efficiency,
            "loss" => self.loss,
            "marked" => self.marked,
            "rate_mbps" => self.rate_mbps,
            "index" => self.queue_index,
            delay => self.delays.value(delay),
        }
    }
}

impl Delays {
    fn of(histogram: &Histogram) -> Self {
        let percentile = |percent| histogram.percentile_ms(percent).unwrap_or_default();
        Self {
            mean_ms: histogram.mean_ms().unwrap_or_default(),
            p50_ms: percentile(50.0),
            p95_ms: percentile(95.0),
            p99_ms: percentile(99.0),
            max_ms: histogram.max_ms().unwrap_or_default(),
        }
    }

    fn value(&self, leaf: &str) -> f64 {
        match leaf {
            "mean_ms" => self.mean_ms,
            "p50_ms" => self.p50_ms,
            "p95_ms" => self.p95_ms,
            "p99_ms" => self.p99_ms,
            "max_ms" => self.max_ms,
            _ => f64::NAN,
        }
    }
}

fn mbps(bytes: u64, span: Duration) -> f64 {
    bytes as f64 * 8e3 / (span.as_nanos() as f64).max(1.0)
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// What is needed to add up one flow.
struct FlowContext<'a> {
    scenario: &'a Scenario,
    meters: &'a Meters,
    span: Duration,
    total: u64,
    bytes: u64,
}

impl FlowContext<'_> {
    fn outcome(&self, plan: &FlowPlan, ends: &FlowEnds) -> FlowOutcome {
        let flow = &self.scenario.flows[plan.flow];
        let meter = &self.meters.flows()[plan.number];
        FlowOutcome {
            name: plan.name.clone(),
            group: flow.name.clone(),
            protocol: match flow.protocol.kind() {
                ProtocolKind::Utp => "utp",
                ProtocolKind::Tcp => "tcp",
            },
            controller: flow.controller.name.clone(),
            start_s: plan.start.as_secs_f64(),
            rate_mbps: mbps(self.bytes, self.span),
            goodput_mbps: mbps(ends.received_bytes, self.span),
            share: ratio(self.bytes, self.total),
            loss: ratio(meter.dropped_packets, meter.sent_packets),
            delays: Delays::of(&meter.delays),
            retransmitted: ratio(ends.retransmissions, ends.data_packets_sent),
            timeouts: ends.timeouts,
            finish_s: ends.finish_s,
            error: ends.error.clone(),
            intact: ends.intact,
        }
    }
}

/// The part of a buffer that a queue takes, in the unit in which the buffer is limited.
fn fill(queue: Length<f64>, limit: Option<Limit>) -> f64 {
    match limit {
        Some(Limit::Packets(packets)) => queue.packets / packets as f64,
        Some(Limit::Bytes(bytes)) => queue.bytes / bytes as f64,
        None => 0.0,
    }
}

fn link(meter: &LinkMeter, watched: &Watched, network: &Network, scenario: &Scenario) -> LinkOutcome {
    let (opened, end) = (Instant::ZERO + scenario.warmup, Instant::ZERO + scenario.duration);
    let span = end.since(opened);
    let carried_bytes = meter.carried_bytes(|at| watched.rate_at(at), opened, end);
    let carried_mbps = carried_bytes * 8e3 / (span.as_nanos() as f64).max(1.0);
    let served = |plan: &FlowPlan| meter.flow_bytes.get(plan.number).map(|&bytes| mbps(bytes, span));
    LinkOutcome {
        name: watched.name.clone(),
        efficiency: carried_mbps / watched.mean_rate_mbps(opened, end),
        rate_mbps: carried_mbps,
        flow_rates_mbps: network.flows.iter().filter_map(served).collect(),
        loss: ratio(meter.dropped_packets + meter.lost_packets, meter.arrived_packets),
        drop_probability: ratio(meter.dropped_packets, meter.arrived_packets),
        drops: DropCause::ALL.into_iter().map(|cause| (cause.word(), meter.drops.of(cause))).collect(),
        marked: ratio(meter.marked_packets, meter.arrived_packets),
        delays: Delays::of(&meter.delays),
        queue_index: fill(meter.mean_queue_at_enqueue(), watched.limit),
        queue_index_over_time: fill(meter.mean_queue_over(span), watched.limit),
    }
}
