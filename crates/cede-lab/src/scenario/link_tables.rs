//! The table of options, continued: links.

use super::queue_tables::{BURST, PEAK};
use super::schema::Fallback::{Absent, Required, Value};
use super::schema::{Kind, OptionDoc, TableDoc, option};

/// A table with keys of its own and those of every link.
pub(crate) const fn link_table(
    path: &'static str,
    heading: &'static str,
    meaning: &'static str,
    own: &'static [OptionDoc],
) -> TableDoc {
    TableDoc { path, heading, meaning, own, shared: LINK }
}

/// What every link has.
const LINK: &[OptionDoc] = &[
    option(
        "rate",
        Kind::Rate,
        Required,
        "10 Mbit/s",
        "Bits per second at which packets are serialised; IP datagrams are counted, from the IP header on.",
    ),
    option("delay", Kind::Time, Required, "25 ms", "Propagation delay, one way."),
    option(
        "buffer",
        Kind::Buffer,
        Value("100 packets"),
        "2 BDP",
        "How much may wait: packets, octets, time (times the link's rate) or bandwidth-delay products (times `rate` and `bdp_rtt`).",
    ),
    option(
        "bdp_rtt",
        Kind::Span,
        Absent(
            "the base RTT of the dumbbell (both bottleneck delays and four `topology.access_delay`); must be given elsewhere where the buffer is in BDP",
        ),
        "50 ms",
        "The round-trip time that BDP means.",
    ),
    option(
        "count_in_service",
        Kind::Switch,
        Value("false"),
        "true",
        "The packet being serialised takes room in the buffer.",
    ),
    option(
        "count_delayed",
        Kind::Switch,
        Value("false"),
        "true",
        "Packets being serialised or propagating take room in the buffer, as in Linux's netem; needs `queue = \"droptail\"` and a buffer in packets.",
    ),
    option(
        "queue",
        Kind::Queue,
        Value("droptail"),
        "codel",
        "Which packets the queue takes, keeps, drops and marks: droptail, head-drop, codel, fq-codel, pie or red, with parameters as `queue = { kind = \"codel\", target = \"15 ms\" }`.",
    ),
    option(
        "ecn",
        Kind::Switch,
        Value("false"),
        "true",
        "codel, fq-codel, pie, red: packets are marked in place of dropped where their transport says that it understands (RFC 3168; see `ecn` of [flow.tcp]).",
    ),
    option(
        "policer",
        Kind::Table("policer"),
        Absent("no policer"),
        "",
        "Packets beyond a rate are dropped before they reach the queue.",
    ),
    BURST,
    PEAK,
    option(
        "loss",
        Kind::Probability,
        Value("0.0"),
        "0.01",
        "Probability that a packet is lost after the queue, independently of the others.",
    ),
    option(
        "loss_burst",
        Kind::Table("loss_burst"),
        Absent("no bursts"),
        "",
        "Loss in bursts, on top of `loss`.",
    ),
    option(
        "reorder",
        Kind::Table("reorder"),
        Absent("no packet is held back"),
        "",
        "Packets that are overtaken.",
    ),
    option("duplicate", Kind::Probability, Value("0.0"), "0.001", "Probability that a packet arrives twice."),
    option("jitter", Kind::Time, Value("0 s"), "5 ms", "Extra delay of each packet, uniform from 0 to this."),
    option(
        "jitter_reorders",
        Kind::Switch,
        Value("false"),
        "true",
        "Only with `jitter`: packets may overtake each other. Otherwise none arrives before its predecessor.",
    ),
    option(
        "batch",
        Kind::Time,
        Value("0 s"),
        "20 ms",
        "Packets arrive in batches, at multiples of this, as over radio and cable links with time slots; on the way back it compresses acknowledgements.",
    ),
];

pub(crate) const RETURN_LINK: &[OptionDoc] = &[
    option(
        "rate",
        Kind::Rate,
        Absent("that of [link]"),
        "1 Mbit/s",
        "Bits per second at which packets are serialised.",
    ),
    option("delay", Kind::Time, Absent("that of [link]"), "25 ms", "Propagation delay, one way."),
    option("buffer", Kind::Buffer, Value("10000 packets"), "100 packets", "How much may wait."),
];

pub(crate) const GRAPH_LINK: &[OptionDoc] = &[
    option(
        "name",
        Kind::Name,
        Absent("FROM-TO"),
        "core",
        "Name, as in metrics and records. The way back is called NAME-back.",
    ),
    option("from", Kind::Name, Required, "a", "Node where it begins."),
    option("to", Kind::Name, Required, "r1", "Node where it ends."),
    option(
        "both_ways",
        Kind::Switch,
        Value("true"),
        "false",
        "A second link with the same properties leads back. For two different directions write two links.",
    ),
];

pub(crate) const HOST_LINK: &[OptionDoc] = &[
    option(
        "rate",
        Kind::Rate,
        Absent("that of the table for all hosts, where there is one"),
        "1 Mbit/s",
        "Bits per second at which packets are serialised.",
    ),
    option(
        "delay",
        Kind::Time,
        Absent("that of the table for all hosts, where there is one"),
        "10 ms",
        "Propagation delay, one way.",
    ),
];

pub(crate) const LOSS_BURST: &[OptionDoc] = &[
    option(
        "enter",
        Kind::Probability,
        Required,
        "0.01",
        "Probability to go from good to bad after a packet.",
    ),
    option(
        "leave",
        Kind::Probability,
        Required,
        "0.25",
        "Probability to go from bad to good after a packet; above 0. A burst lasts 1 / leave packets on average.",
    ),
    option("loss_bad", Kind::Probability, Value("1.0"), "0.5", "Probability of loss while bad."),
    option("loss_good", Kind::Probability, Value("0.0"), "0.001", "Probability of loss while good."),
];

pub(crate) const REORDER: &[OptionDoc] = &[
    option("probability", Kind::Probability, Required, "0.01", "Probability that a packet is held back."),
    option("extra_delay", Kind::Span, Required, "5 ms", "By how much."),
];
