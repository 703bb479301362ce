//! What a scenario says, as types: the run, its links and its topology.

use super::flow::Flow;
use super::metric_names::Assertion;
use super::words::words;
use cede_net::{BucketConfig, Discipline, LinkChange, Shaper};
use cede_units::{Bytes, Duration, Rate};
use core::fmt;

/// One experiment: what a scenario file says, checked, with every default filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// A short name, used for the run folder.
    pub name: String,
    /// What the scenario shows, in a sentence.
    pub description: String,
    /// How long the world runs.
    pub duration: Duration,
    /// The time at the beginning that no metric looks at.
    pub warmup: Duration,
    /// The seed of every named random stream.
    pub seed: u64,
    /// The links and how they hang together.
    pub topology: Topology,
    /// Hosts with properties of their own, in the order of the file. All hosts of a star stand here; in the other
    /// topologies only those whose clock is not exact.
    pub hosts: Vec<Host>,
    /// The flows, in the order of the file, each with the number of its replicates.
    pub flows: Vec<Flow>,
    /// What changes on links while the world runs, in the order of the file.
    pub changes: Vec<Change>,
    /// What is written down while the world runs.
    pub record: Record,
    /// What must hold of the metrics at the end.
    pub assertions: Vec<Assertion>,
}

/// The links and how they hang together.
#[derive(Clone, PartialEq, Debug)]
pub enum Topology {
    /// Two routers and one bottleneck between them; each flow has a sender and a receiver of its own.
    Dumbbell(Box<Dumbbell>),
    /// Hosts around a hub that never delays: each [`Host`] has an uplink and a downlink.
    Star,
    /// Nodes and links, stated one by one.
    Graph(Graph),
}

/// Sender - access link - router - **bottleneck** - router - access link - receiver, for every flow.
///
/// Every access link carries both directions at `access_rate` and has a lossless drop-tail queue of
/// `access_buffer` on either side.
#[derive(Clone, PartialEq, Debug)]
pub struct Dumbbell {
    /// The bottleneck from the senders' side to the receivers'.
    pub link: Link,
    /// The bottleneck's way back, which acknowledgements take.
    pub return_link: Link,
    /// The rate of every access link where a flow does not state its own.
    pub access_rate: Rate,
    /// The propagation delay of every access link, one way, where a flow does not state its own.
    pub access_delay: Duration,
    /// The queue of every access link.
    pub access_buffer: Buffer,
}

impl Dumbbell {
    /// The base round-trip time of a flow that states no delays of its own: the two bottlenecks and four passes of
    /// an access link, without the time to serialise packets. It is what "BDP" means for a dumbbell's buffers.
    #[must_use]
    pub fn base_rtt(&self) -> Duration {
        self.link.delay + self.return_link.delay + self.access_delay * 4
    }
}

/// A graph of nodes and links.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Graph {
    /// The names of the nodes, in the order of the file.
    pub nodes: Vec<String>,
    /// The links, in the order of the file.
    pub links: Vec<GraphLink>,
    /// How routes are found that are not stated.
    pub routing: Routing,
    /// Routes that are stated: the nodes they pass, from sender to receiver.
    pub routes: Vec<Vec<String>>,
}

/// A link of a graph.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphLink {
    /// Its name; `FROM-TO` where the file gives none. The way back is called `NAME-back`.
    pub name: String,
    /// The node where it begins.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// A second link with the same properties leads back.
    pub both_ways: bool,
    /// Its properties.
    pub link: Link,
}

words! {
    /// How the route between two nodes of a graph is found.
    #[derive(Default)]
    Routing, ROUTING_WORDS {
        #[default]
        Delay = "delay": "the smallest sum of propagation delays; ties by fewer links, then by the links' names",
        Hops = "hops": "the fewest links; ties by propagation delay, then by the links' names",
    }
}

words! {
    /// The shape of the network.
    TopologyKind, TOPOLOGY_WORDS {
        Dumbbell = "dumbbell": "two routers with one bottleneck; each flow has its own sender and receiver",
        Star = "star": "hosts with an uplink and a downlink each, around a hub that never delays",
        Graph = "graph": "nodes and links stated one by one",
    }
}

words! {
    /// How a queue decides which packets it takes, keeps, drops and marks.
    QueueKind, QUEUE_WORDS {
        DropTail = "droptail": "first in, first out; a packet that finds the buffer full is dropped",
        HeadDrop = "head-drop": "first in, first out; a packet that finds the buffer full pushes out the oldest",
        Codel = "codel": "drops packets while they have waited too long for too long (RFC 8289)",
        FqCodel = "fq-codel": "a queue for each flow, with CoDel on it (RFC 8290)",
        Pie = "pie": "drops packets at arrival with a probability that follows the delay (RFC 8033)",
        Red = "red": "drops packets at arrival with a probability that follows the average length (Floyd and Jacobson, 1993)",
    }
}

words! {
    /// Which PIE.
    PieKind, PIE_WORDS {
        Rfc = "rfc": "RFC 8033, section 4 and appendix A",
        Linux = "linux": "with the enhancements of appendix B that Linux has",
    }
}

/// One direction of a link.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Bits per second at which packets are serialised.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// How much may wait.
    pub buffer: Buffer,
    /// The round-trip time that a buffer in BDPs means; a dumbbell's base RTT where it is not stated.
    pub bdp_rtt: Option<Duration>,
    /// The packet being serialised takes room in the buffer.
    pub count_in_service: bool,
    /// Packets that are being serialised or propagate take room in the buffer, which is in packets: netem's limit.
    pub count_delayed: bool,
    /// How its queue decides which packets it takes, keeps, drops and marks.
    pub queue: Discipline,
    /// A queue that drops early marks packets instead where their transport understands that.
    pub ecn: bool,
    /// Packets beyond a rate are dropped before they reach the queue.
    pub policer: Option<BucketConfig>,
    /// The rate is that of a token bucket.
    pub shaper: Option<Shaper>,
    /// The probability that a packet is lost, independently of all others, after it left the queue.
    pub loss: f64,
    /// Loss in bursts, on top of `loss`.
    pub loss_burst: Option<BurstLoss>,
    /// Some packets take longer and are overtaken.
    pub reorder: Option<Reorder>,
    /// The probability that a packet arrives twice.
    pub duplicate: f64,
    /// Extra delay, uniform in `0..=jitter`, drawn for each packet.
    pub jitter: Duration,
    /// A packet with less jitter overtakes one with more. Otherwise a packet never arrives before its predecessor.
    pub jitter_reorders: bool,
    /// Packets arrive in batches, at multiples of this; zero for each at its own time.
    pub batch: Duration,
}

/// How much may wait in a queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Buffer {
    /// This many packets, whatever their size.
    Packets(u64),
    /// This many octets.
    Bytes(Bytes),
    /// What the link's rate moves in this time.
    Time(Duration),
    /// This many bandwidth-delay products: the link's rate times a round-trip time.
    Bdp(f64),
}

/// A buffer's limit in the unit that the queue counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Packets.
    Packets(u64),
    /// Octets.
    Bytes(u64),
}

impl Buffer {
    /// The limit of this buffer at a link of this rate; `rtt` is what a BDP means. None for a buffer in BDPs without
    /// an RTT, which no parsed scenario has.
    #[must_use]
    pub fn limit(self, rate: Rate, rtt: Option<Duration>) -> Option<Limit> {
        match self {
            Self::Packets(packets) => Some(Limit::Packets(packets)),
            Self::Bytes(bytes) => Some(Limit::Bytes(bytes.0)),
            Self::Time(time) => Some(Limit::Bytes(rate.bytes_in(time))),
            Self::Bdp(factor) => Some(Limit::Bytes(rate.bytes_in(rtt?.mul_f64(factor)))),
        }
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => write!(f, "{packets} packets"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Time(time) => write!(f, "{time}"),
            Self::Bdp(factor) => write!(f, "{factor} BDP"),
        }
    }
}

impl Link {
    /// The queue's limit. `default_rtt` is what a BDP means where the link does not say.
    #[must_use]
    pub fn limit(&self, default_rtt: Option<Duration>) -> Option<Limit> {
        self.buffer.limit(self.rate, self.bdp_rtt.or(default_rtt))
    }
}

/// Loss in bursts (Gilbert and Elliott): a link is good or bad, and changes its state after each packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BurstLoss {
    /// The probability to go from good to bad.
    pub enter: f64,
    /// The probability to go from bad to good; bursts last 1 / `leave` packets on average.
    pub leave: f64,
    /// The probability of loss while bad.
    pub loss_bad: f64,
    /// The probability of loss while good.
    pub loss_good: f64,
}

/// Some packets take longer and are overtaken.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reorder {
    /// The probability that a packet is held back.
    pub probability: f64,
    /// By how much.
    pub extra_delay: Duration,
}

/// A host that the file says something about.
#[derive(Clone, PartialEq, Debug)]
pub struct Host {
    /// Its name. In a dumbbell `FLOW-sender` and `FLOW-receiver`, where the name of a replicated flow means all of
    /// its replicates; in a graph the name of a node.
    pub name: String,
    /// Its clock.
    pub clock: Clock,
    /// Star only: its links to and from the hub.
    pub access: Option<Box<Access>>,
}

/// A host's links to and from the hub of a star.
#[derive(Clone, PartialEq, Debug)]
pub struct Access {
    /// From the host to the hub.
    pub up: Link,
    /// From the hub to the host.
    pub down: Link,
}

/// How a host's clock differs from the world's: it shows `t + offset + drift * t` at the time `t`, and `step` more from
/// `step_at` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// How far it is ahead at the beginning, in nanoseconds; negative where it is behind.
    pub offset_ns: i64,
    /// How much it gains, in nanoseconds a second (parts per billion); negative where it loses.
    pub drift_ppb: i64,
    /// By how much it is set forward, or back where negative, in nanoseconds.
    pub step_ns: i64,
    /// When it is.
    pub step_at: Duration,
}

/// Something that changes on a link while the world runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// When, counted from the beginning of the run.
    pub at: Duration,
    /// The link's name, as in metrics and records.
    pub link: String,
    /// What becomes of it.
    pub what: LinkChange,
}

/// What is written down while the world runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// The state of queues at each dequeue.
    pub queue: bool,
    /// The links whose queues are recorded; empty for the bottleneck of a dumbbell and for all links of the others.
    pub links: Vec<String>,
    /// How often the flows' counters are written down.
    pub interval: Duration,
    /// The octets of every packet, as pcapng.
    pub packets: bool,
    /// Events of the connections (established, loss, timeout, closed), as JSON lines.
    pub events: bool,
    /// The controllers' state, every `interval`.
    pub controllers: bool,
}
