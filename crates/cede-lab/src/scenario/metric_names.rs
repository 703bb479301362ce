//! The names of metrics, and assertions on them. `read_assertions` reads them.
//!
//! This is the one list of what can be measured, asserted and explained.

use core::fmt;

/// A metric, as people read of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MetricDoc {
    /// What is measured: `queue`, `link`, `flow`, `fairness` or `share`.
    pub group: &'static str,
    /// The last part of its name, with its unit last.
    pub leaf: &'static str,
    /// The unit; `1` for a ratio.
    pub unit: &'static str,
    /// What it is, in a sentence.
    pub summary: &'static str,
    /// How it is computed.
    pub formula: &'static str,
    /// Where the definition comes from.
    pub source: &'static str,
}

const fn metric(
    group: &'static str,
    leaf: &'static str,
    unit: &'static str,
    summary: &'static str,
    formula: &'static str,
    source: &'static str,
) -> MetricDoc {
    MetricDoc { group, leaf, unit, summary, formula, source }
}

const CEDE: &str = "Cede";
const LCN10: &str = "Carofiglio, Muscariello, Rossi, Testa: A hands-on assessment of transport protocols with lower than best effort priority, LCN 2010";
const JAIN: &str =
    "Jain, Chiu, Hawe: A quantitative measure of fairness, DEC-TR-301, 1984; used so in LCN 2010";
const SOJOURN: &str = "time from a packet's arrival at the queue to the start of its transmission, over the packets that left after the warm-up";

const WAY: &str = "time from a packet's arrival at a queue to the start of its transmission, summed over all links of its way, over the packets that arrived after the warm-up";

/// Every metric.
///
/// The paths: `queue.LEAF` and `link.LEAF` for the bottleneck of a dumbbell, `queue.LINK.LEAF` and `link.LINK.LEAF`
/// for any link; `flow.NAME.LEAF` for a flow, or for each replicate where NAME stands for several; `fairness.LEAF`
/// and `share.LEAF` for all flows.
pub const METRICS: &[MetricDoc] = &[
    metric("queue", "mean_ms", "ms", "Mean queueing delay.", SOJOURN, CEDE),
    metric("queue", "p50_ms", "ms", "Median queueing delay.", SOJOURN, CEDE),
    metric("queue", "p95_ms", "ms", "Queueing delay that 95 % of the packets do not exceed.", SOJOURN, CEDE),
    metric("queue", "p99_ms", "ms", "Queueing delay that 99 % of the packets do not exceed.", SOJOURN, CEDE),
    metric("queue", "max_ms", "ms", "Largest queueing delay.", SOJOURN, CEDE),
    metric(
        "queue",
        "index",
        "1",
        "Average queue index B: how full the buffer is.",
        "mean over all enqueues of (what waits) / (what the buffer holds), in packets, or in octets where the buffer is given so",
        LCN10,
    ),
    metric(
        "link",
        "efficiency",
        "1",
        "Link efficiency: the part of the capacity that carried packets.",
        "octets that left the link / (rate * time), with the mean of the rate where it changes",
        LCN10,
    ),
    metric(
        "link",
        "loss",
        "1",
        "Probability that a packet offered to the link does not arrive, by a full buffer or by the link's own loss.",
        "(dropped + lost) / offered",
        LCN10,
    ),
    metric(
        "link",
        "marked",
        "1",
        "Probability that a packet offered to the link is marked \"congestion experienced\" in place of dropped.",
        "marked / offered",
        "RFC 3168",
    ),
    metric(
        "link",
        "rate_mbps",
        "Mbit/s",
        "What left the link.",
        "octets * 8 / time, IP header included",
        CEDE,
    ),
    metric(
        "flow",
        "rate_mbps",
        "Mbit/s",
        "What the flow's sender got through, headers included.",
        "IP octets that reached the receiver * 8 / time",
        LCN10,
    ),
    metric(
        "flow",
        "goodput_mbps",
        "Mbit/s",
        "What the application received, in order and once.",
        "payload octets * 8 / time",
        CEDE,
    ),
    metric(
        "flow",
        "share",
        "1",
        "The flow's part of what all flows got through.",
        "rate of the flow / sum of the rates of all flows",
        LCN10,
    ),
    metric(
        "flow",
        "loss",
        "1",
        "Probability that one of the flow's data packets does not arrive.",
        "data packets dropped or lost on any link / data packets sent",
        LCN10,
    ),
    metric(
        "flow",
        "mean_ms",
        "ms",
        "Mean queueing delay of the flow's data packets on their whole way.",
        WAY,
        CEDE,
    ),
    metric("flow", "p50_ms", "ms", "Median queueing delay of the flow's data packets.", WAY, CEDE),
    metric(
        "flow",
        "p95_ms",
        "ms",
        "Queueing delay that 95 % of the flow's data packets do not exceed.",
        WAY,
        CEDE,
    ),
    metric(
        "flow",
        "p99_ms",
        "ms",
        "Queueing delay that 99 % of the flow's data packets do not exceed.",
        WAY,
        CEDE,
    ),
    metric(
        "flow",
        "retransmitted",
        "1",
        "The part of the flow's data packets that were sent again.",
        "retransmissions / data packets sent",
        CEDE,
    ),
    metric(
        "flow",
        "finish_s",
        "s",
        "When the flow's last octet was acknowledged; infinite for a flow that did not finish.",
        "time since the beginning of the run",
        CEDE,
    ),
    metric(
        "fairness",
        "long",
        "1",
        "Jain's index of the flows' rates over the whole run after the warm-up: 1 where all are equal, 1/n where one has all.",
        "(sum x)^2 / (n * sum x^2)",
        JAIN,
    ),
    metric(
        "fairness",
        "short",
        "1",
        "Mean of Jain's index over windows of one second.",
        "mean over the windows of (sum x)^2 / (n * sum x^2)",
        JAIN,
    ),
    metric(
        "share",
        "tcp",
        "1",
        "The part of all flows' rates that TCP flows have.",
        "sum of the rates of TCP flows / sum of all rates",
        LCN10,
    ),
    metric(
        "share",
        "utp",
        "1",
        "The part of all flows' rates that uTP flows have.",
        "sum of the rates of uTP flows / sum of all rates",
        LCN10,
    ),
];

impl MetricDoc {
    /// The name with a place for the subject: `flow.NAME.rate_mbps`.
    #[must_use]
    pub fn pattern(&self) -> String {
        match self.group {
            "flow" => format!("flow.NAME.{}", self.leaf),
            "queue" | "link" => format!("{}[.LINK].{}", self.group, self.leaf),
            group => format!("{group}.{}", self.leaf),
        }
    }
}

/// A metric of a certain flow or link.
#[derive(Clone, PartialEq, Debug)]
pub struct Metric {
    /// Which metric.
    pub doc: &'static MetricDoc,
    /// The flow's or link's name; none for the bottleneck and for metrics of all flows.
    pub subject: Option<String>,
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Some(subject) => write!(f, "{}.{subject}.{}", self.doc.group, self.doc.leaf),
            None => write!(f, "{}.{}", self.doc.group, self.doc.leaf),
        }
    }
}

/// How a metric is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// Longer operators first: `<=` begins with `<`.
pub(super) const COMPARISONS: &[(&str, Comparison)] = &[
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// What must hold of a metric at the end of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Assertion {
    /// The metric. Where it names a replicated flow, the assertion must hold for each replicate.
    pub metric: Metric,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what, in the metric's unit.
    pub bound: f64,
}

impl Assertion {
    /// Whether the assertion holds of a measured value; nothing holds of not-a-number.
    #[must_use]
    pub fn holds(&self, measured: f64) -> bool {
        match self.comparison {
            Comparison::Less => measured < self.bound,
            Comparison::AtMost => measured <= self.bound,
            Comparison::Greater => measured > self.bound,
            Comparison::AtLeast => measured >= self.bound,
        }
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = COMPARISONS.iter().find(|(_, c)| *c == self.comparison).map_or("", |(sign, _)| sign);
        write!(f, "{} {sign} {}", self.metric, self.bound)
    }
}
