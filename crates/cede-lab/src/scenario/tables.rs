//! The table of options: every key of the scenario format, once.

use super::flow::{DISTRIBUTION_WORDS, PROTOCOL_WORDS, TCP_ACK_WORDS, TRAFFIC_WORDS, UTP_ACK_WORDS};
use super::model::{QUEUE_WORDS, QUEUES_TO_COME, ROUTING_WORDS, TOPOLOGY_WORDS};
use super::schema::Fallback::{Absent, Required, Value};
use super::schema::{Fallback, Kind, OptionDoc, SIZE_MAX_BYTES, TableDoc};

const fn option(
    key: &'static str,
    kind: Kind,
    fallback: Fallback,
    example: &'static str,
    meaning: &'static str,
) -> OptionDoc {
    OptionDoc { key, kind, fallback, example, meaning }
}

const fn table(
    path: &'static str,
    heading: &'static str,
    meaning: &'static str,
    own: &'static [OptionDoc],
) -> TableDoc {
    TableDoc { path, heading, meaning, own, shared: &[] }
}

const fn link_table(
    path: &'static str,
    heading: &'static str,
    meaning: &'static str,
    own: &'static [OptionDoc],
) -> TableDoc {
    TableDoc { path, heading, meaning, own, shared: LINK }
}

const fn words(words: &'static [(&'static str, &'static str)]) -> Kind {
    Kind::Word { words, later: &[] }
}

const ANY_SIZE: Kind = Kind::Size { min: 1, max: SIZE_MAX_BYTES };
const BUFFER_SIZE: Kind = Kind::Size { min: 2_000, max: 1 << 40 };

/// Every table of the format, in the order of the reference.
pub const TABLES: &[TableDoc] = &[
    table("", "top of the file", "The run as a whole. These keys stand before the first table.", ROOT),
    table("topology", "[topology]", "The shape of the network.", TOPOLOGY),
    link_table(
        "link",
        "[link]",
        "The bottleneck of a dumbbell, from the senders' side to the receivers'. A packet waits in the queue, is \
         serialised at `rate`, may then be lost, doubled or held back, and arrives `delay` later. In a graph this is \
         a list, [[link]], with the further keys of `graph_link`.",
        &[],
    ),
    link_table(
        "return_link",
        "[return_link]",
        "The way back through a dumbbell's bottleneck, which acknowledgements take. By default it has the forward \
         link's rate and delay, a buffer that does not overflow in practice, and no loss.",
        RETURN_LINK,
    ),
    link_table("graph_link", "[[link]]", "A link of a graph, with its own name and ends.", GRAPH_LINK),
    link_table("uplink", "[uplink]", "Star: what every host's link to the hub is like where the host does not say.", ACCESS),
    link_table("downlink", "[downlink]", "Star: what every host's link from the hub is like where the host does not say.", ACCESS),
    table("loss_burst", "loss_burst = { ... }", "Loss in bursts, in any link: the model of Gilbert and Elliott. A link is good or bad and changes its state after each packet; the loss rate of a pure burst model is enter / (enter + leave).", LOSS_BURST),
    table("reorder", "reorder = { ... }", "Packets that are held back and overtaken, in any link.", REORDER),
    table("node", "[[node]]", "A node of a graph.", NODE),
    table("route", "[[route]]", "A route of a graph that is stated instead of found.", ROUTE),
    table(
        "host",
        "[[host]]",
        "Properties of one host. In a dumbbell the hosts are called `FLOW-sender` and `FLOW-receiver` (the name of a \
         replicated flow means all its replicates), in a graph as their node; in a star every host needs an entry.",
        HOST,
    ),
    link_table("host.uplink", "[host.uplink]", "Star: this host's link to the hub. Keys that are not given are those of [uplink].", HOST_LINK),
    link_table("host.downlink", "[host.downlink]", "Star: this host's link from the hub. Keys that are not given are those of [downlink].", HOST_LINK),
    table("flow", "[[flow]]", "A flow, or several alike. The sender opens the connection and sends; acknowledgements come back.", FLOW),
    table("controller", "controller = { ... }", "The congestion controller of a flow: its name and its own parameters, which `cede list controllers` shows. `controller = \"ledbat\"` is short for `controller = { name = \"ledbat\" }`.", CONTROLLER),
    table("traffic", "traffic = { ... }", "When the application has data. `traffic = \"backlogged\"` is short for `traffic = { kind = \"backlogged\" }`.", TRAFFIC),
    table("flow.tcp", "[flow.tcp]", "Options of the model TCP.", TCP),
    table("flow.utp", "[flow.utp]", "Options of uTP.", UTP),
    table("record", "[record]", "What is written down while the world runs.", RECORD),
];

/// The table with this path.
pub(crate) fn table_or_none(path: &str) -> Option<&'static TableDoc> {
    TABLES.iter().find(|table| table.path == path)
}

/// The table with this path, which must be in the list.
pub(crate) fn get(path: &str) -> &'static TableDoc {
    table_or_none(path).expect("every table that is read is in the table of options")
}

/// Where a key is at home that was found elsewhere.
pub(crate) fn homes_of(key: &str) -> Option<String> {
    let homes: Vec<&str> = TABLES.iter().filter(|t| t.find(key).is_some()).map(|t| t.heading).collect();
    (!homes.is_empty()).then(|| format!("`{key}` is an option of {}", homes.join(", ")))
}

const ROOT: &[OptionDoc] = &[
    option("name", Kind::Name, Value("scenario"), "latecomer", "Short name, used for the run folder."),
    option("description", Kind::Text, Value(""), "Two LEDBAT flows, one late", "What the scenario shows."),
    option("duration", Kind::Span, Required, "120 s", "How long the world runs."),
    option("warmup", Kind::Time, Value("0 s"), "10 s", "Time at the beginning that no metric looks at; less than `duration`."),
    option("seed", Kind::Integer { min: 0, max: i64::MAX }, Value("1"), "42", "Seed of every named random stream."),
    option("topology", Kind::Table("topology"), Absent("a dumbbell"), "", "The shape of the network."),
    option("link", Kind::LinkOrLinks, Absent("refused in a dumbbell, which needs one"), "", "The bottleneck; in a graph the links."),
    option("return_link", Kind::Table("return_link"), Absent("the forward link's rate and delay, without loss"), "", "The bottleneck's way back."),
    option("uplink", Kind::Table("uplink"), Absent("each host states its own"), "", "Star: every host's link to the hub."),
    option("downlink", Kind::Table("downlink"), Absent("each host states its own"), "", "Star: every host's link from the hub."),
    option("node", Kind::Tables("node"), Absent("none"), "", "The nodes of a graph."),
    option("route", Kind::Tables("route"), Absent("all routes are found by `topology.routing`"), "", "Stated routes of a graph."),
    option("host", Kind::Tables("host"), Absent("every clock is exact"), "", "Properties of single hosts."),
    option("flow", Kind::Tables("flow"), Required, "", "The flows; at least one."),
    option("record", Kind::Table("record"), Absent("the defaults of [record]"), "", "What is written down."),
    option("assert", Kind::Assertions, Absent("none"), "[\"queue.p95_ms < 70\"]", "What must hold at the end, see *Assertions*. A table [assert] says the same with a metric as the key: `queue.p95_ms = \"< 70\"`."),
];

const TOPOLOGY: &[OptionDoc] = &[
    option("kind", words(TOPOLOGY_WORDS), Value("dumbbell"), "star", "The shape."),
    option("access_rate", Kind::Rate, Value("1 Gbit/s"), "100 Mbit/s", "Dumbbell: rate of every access link, both ways."),
    option("access_delay", Kind::Time, Value("1 ms"), "5 ms", "Dumbbell: propagation delay of every access link, each way, so that a round trip has four of them."),
    option("access_buffer", Kind::Buffer, Value("10000 packets"), "1 MiB", "Dumbbell: queue of every access link, each way."),
    option("routing", words(ROUTING_WORDS), Value("delay"), "hops", "Graph: how routes are found."),
];

/// What every link has.
const LINK: &[OptionDoc] = &[
    option("rate", Kind::Rate, Required, "10 Mbit/s", "Bits per second at which packets are serialised; IP datagrams are counted, from the IP header on."),
    option("delay", Kind::Time, Required, "25 ms", "Propagation delay, one way."),
    option("buffer", Kind::Buffer, Value("100 packets"), "2 BDP", "How much may wait: packets, octets, time (times the link's rate) or bandwidth-delay products (times `rate` and `bdp_rtt`)."),
    option("bdp_rtt", Kind::Span, Absent("the base RTT of the dumbbell (both bottleneck delays and four `topology.access_delay`); must be given elsewhere where the buffer is in BDP"), "50 ms", "The round-trip time that BDP means."),
    option("count_in_service", Kind::Switch, Value("false"), "true", "The packet being serialised takes room in the buffer."),
    option("queue", Kind::Word { words: QUEUE_WORDS, later: QUEUES_TO_COME }, Value("droptail"), "droptail", "What happens to packets that do not fit. codel, fq_codel, pie and red are to come."),
    option("loss", Kind::Probability, Value("0.0"), "0.01", "Probability that a packet is lost after the queue, independently of the others."),
    option("loss_burst", Kind::Table("loss_burst"), Absent("no bursts"), "", "Loss in bursts, on top of `loss`."),
    option("reorder", Kind::Table("reorder"), Absent("no packet is held back"), "", "Packets that are overtaken."),
    option("duplicate", Kind::Probability, Value("0.0"), "0.001", "Probability that a packet arrives twice."),
    option("jitter", Kind::Time, Value("0 s"), "5 ms", "Extra delay of each packet, uniform from 0 to this."),
    option("jitter_reorders", Kind::Switch, Value("false"), "true", "Jitter lets packets overtake each other. Otherwise none arrives before its predecessor."),
];

const RETURN_LINK: &[OptionDoc] = &[
    option("rate", Kind::Rate, Absent("that of [link]"), "1 Mbit/s", "Bits per second at which packets are serialised."),
    option("delay", Kind::Time, Absent("that of [link]"), "25 ms", "Propagation delay, one way."),
    option("buffer", Kind::Buffer, Value("10000 packets"), "100 packets", "How much may wait."),
];

const GRAPH_LINK: &[OptionDoc] = &[
    option("name", Kind::Name, Absent("FROM-TO"), "core", "Name, as in metrics and records. The way back is called NAME-back."),
    option("from", Kind::Name, Required, "a", "Node where it begins."),
    option("to", Kind::Name, Required, "r1", "Node where it ends."),
    option("both_ways", Kind::Switch, Value("true"), "false", "A second link with the same properties leads back. For two different directions write two links."),
];

const ACCESS: &[OptionDoc] = &[];

const HOST_LINK: &[OptionDoc] = &[
    option("rate", Kind::Rate, Absent("that of the table for all hosts, where there is one"), "1 Mbit/s", "Bits per second at which packets are serialised."),
    option("delay", Kind::Time, Absent("that of the table for all hosts, where there is one"), "10 ms", "Propagation delay, one way."),
];

const LOSS_BURST: &[OptionDoc] = &[
    option("enter", Kind::Probability, Required, "0.01", "Probability to go from good to bad after a packet."),
    option("leave", Kind::Probability, Required, "0.25", "Probability to go from bad to good after a packet; above 0. A burst lasts 1 / leave packets on average."),
    option("loss_bad", Kind::Probability, Value("1.0"), "0.5", "Probability of loss while bad."),
    option("loss_good", Kind::Probability, Value("0.0"), "0.001", "Probability of loss while good."),
];

const REORDER: &[OptionDoc] = &[
    option("probability", Kind::Probability, Required, "0.01", "Probability that a packet is held back."),
    option("extra_delay", Kind::Span, Required, "5 ms", "By how much."),
];

const NODE: &[OptionDoc] = &[option("name", Kind::Name, Required, "r1", "Its name.")];

const ROUTE: &[OptionDoc] = &[option(
    "path",
    Kind::Names,
    Required,
    "[\"a\", \"r1\", \"b\"]",
    "The nodes from sender to receiver; a link must lead from each to the next. It holds for this direction alone.",
)];

const HOST: &[OptionDoc] = &[
    option("name", Kind::Name, Required, "ledbat-sender", "Which host."),
    option("clock_offset", Kind::Offset, Value("0 s"), "-3 s", "How far its clock is ahead at the beginning."),
    option("clock_drift", Kind::Drift, Value("0 ppm"), "50 ppm", "How much its clock gains: 50 ppm are 50 us a second."),
    option("uplink", Kind::Table("host.uplink"), Absent("[uplink]"), "", "Star: its link to the hub."),
    option("downlink", Kind::Table("host.downlink"), Absent("[downlink]"), "", "Star: its link from the hub."),
];

const FLOW: &[OptionDoc] = &[
    option("name", Kind::Name, Absent("the controller's name"), "late", "Name, as in metrics and records."),
    option("count", Kind::Integer { min: 1, max: 10_000 }, Value("1"), "10", "How many flows like this. Above 1 they are called NAME-1, NAME-2 and so on."),
    option("protocol", words(PROTOCOL_WORDS), Value("utp"), "tcp", "The transport."),
    option("controller", Kind::Controller, Absent("ledbat for uTP, cubic for TCP"), "ledbat", "The congestion controller."),
    option("from", Kind::Name, Absent("a host of its own (dumbbell); must be given elsewhere"), "a", "Star and graph: the sending host."),
    option("to", Kind::Name, Absent("a host of its own (dumbbell); must be given elsewhere"), "b", "Star and graph: the receiving host."),
    option("start", Kind::Time, Value("0 s"), "10 s", "When it opens its connection; before the end of the run."),
    option("stop", Kind::Span, Absent("never"), "20 s", "When it stops offering data; after `start`."),
    option("start_jitter", Kind::Time, Value("0 s"), "1 s", "`start` is moved by a random time from 0 to this, another for each flow."),
    option("bytes", ANY_SIZE, Absent("no end"), "10 MB", "How much it has to send; then it closes."),
    option("packet", Kind::Size { min: 128, max: 65_535 }, Value("1500 B"), "1000 B", "Size of a full packet as an IP datagram."),
    option("traffic", Kind::Traffic, Value("backlogged"), "backlogged", "When the application has data."),
    option("access_rate", Kind::Rate, Absent("`topology.access_rate`"), "2 Mbit/s", "Dumbbell: rate of the sender's access link, both ways."),
    option("access_delay", Kind::Time, Absent("`topology.access_delay`"), "20 ms", "Dumbbell: propagation delay of the sender's access link for what the flow sends."),
    option("return_delay", Kind::Time, Absent("`topology.access_delay`"), "50 ms", "Dumbbell: propagation delay of the sender's access link for what comes back. Differences here make RTTs differ on the return path alone."),
    option("tcp", Kind::Table("flow.tcp"), Absent("the defaults of [flow.tcp]"), "", "Options of the model TCP."),
    option("utp", Kind::Table("flow.utp"), Absent("the defaults of [flow.utp]"), "", "Options of uTP."),
];

const CONTROLLER: &[OptionDoc] = &[option(
    "name",
    Kind::Name,
    Absent("ledbat for uTP, cubic for TCP"),
    "ledbat",
    "Which one. All other keys are the controller's own.",
)];

const TRAFFIC: &[OptionDoc] = &[
    option("kind", words(TRAFFIC_WORDS), Value("backlogged"), "chirp", "The model."),
    option("period", Kind::Span, Required, "30 s", "chirp, heartbeat: from one burst or message to the next."),
    option("first", Kind::Packets, Value("1 packets"), "10 packets", "chirp: size of the first burst, in full packets."),
    option("growth", Kind::Number { min: 1.0, max: 1000.0 }, Value("2.0"), "1.5", "chirp: ratio of a burst to the one before it."),
    option("max", Kind::Packets, Value("1000000 packets"), "1000 packets", "chirp: no burst is larger."),
    option("bytes", ANY_SIZE, Required, "100 B", "heartbeat: payload of a message."),
    option("rate", Kind::Rate, Absent("on_off: as much as the connection takes; paced needs it"), "1 Mbit/s", "paced, on_off: payload bits per second."),
    option("message", ANY_SIZE, Value("1000 B"), "160 B", "paced: payload of a message."),
    option("on", Kind::Span, Required, "2 s", "on_off: mean time with data."),
    option("off", Kind::Span, Required, "5 s", "on_off: mean time without."),
    option("distribution", words(DISTRIBUTION_WORDS), Value("constant"), "exponential", "on_off: how the times are drawn, on a random stream of the flow's own."),
];

const TCP: &[OptionDoc] = &[
    option("sack", Kind::Switch, Value("true"), "false", "Selective acknowledgements and the recovery of RFC 6675; NewReno (RFC 6582) without."),
    option("ack", words(TCP_ACK_WORDS), Value("every"), "delayed", "When the receiver acknowledges."),
    option("ack_delay", Kind::Span, Value("200 ms"), "40 ms", "How long an acknowledgement waits with `ack = \"delayed\"`; at most 500 ms by RFC 5681."),
    option("limited_transmit", Kind::Switch, Value("true"), "false", "New data on the first two duplicate acknowledgements (RFC 3042)."),
    option("initial_window", Kind::Packets, Value("10 packets"), "2 packets", "Initial window in full segments (RFC 6928: 10)."),
    option("min_rto", Kind::Span, Value("1 s"), "200 ms", "Smallest retransmission timeout (RFC 6298: 1 s; Linux: 200 ms)."),
    option("timestamps", Kind::Switch, Value("true"), "false", "Timestamps option (RFC 7323), with a random offset for each connection."),
    option("timestamp_tick", Kind::Span, Value("1 ms"), "10 ms", "One tick of the timestamp clock: 1 ms to 1 s by RFC 7323."),
    option("send_buffer", BUFFER_SIZE, Value("16 MiB"), "1 MiB", "Unacknowledged data that the sender keeps."),
    option("receive_buffer", BUFFER_SIZE, Value("16 MiB"), "64 KiB", "Unread data that the receiver keeps: the largest window it advertises."),
];

const UTP: &[OptionDoc] = &[
    option("ack", words(UTP_ACK_WORDS), Value("every"), "delayed", "When the receiver acknowledges."),
    option("ack_delay", Kind::Span, Value("100 ms"), "20 ms", "How long an acknowledgement waits with `ack = \"delayed\"`."),
    option("ack_packets", Kind::Integer { min: 1, max: 1000 }, Value("2"), "4", "How many packets one acknowledgement may answer with `ack = \"delayed\"`."),
    option("min_rto", Kind::Span, Value("500 ms"), "1 s", "Smallest retransmission timeout (BEP 29: 500 ms; libutp: 1 s)."),
    option("mtu_search", Kind::Switch, Value("false"), "true", "Find the largest packet that passes, with `packet` as the upper bound. Otherwise every full packet has the size `packet`."),
    option("send_buffer", BUFFER_SIZE, Value("16 MiB"), "1 MiB", "Unacknowledged data that the sender keeps."),
    option("receive_buffer", BUFFER_SIZE, Value("16 MiB"), "1 MiB", "Unread data that the receiver keeps: the largest window it advertises."),
];

const RECORD: &[OptionDoc] = &[
    option("queue", Kind::Switch, Value("true"), "false", "Queues, at each dequeue: time, octets and packets left, served and dropped so far."),
    option("links", Kind::Names, Value("[]"), "[\"core\"]", "Links whose queues are recorded; none named: the bottleneck of a dumbbell, all links elsewhere. A dumbbell has the links `bottleneck` and `return`, a star HOST-up and HOST-down."),
    option("interval", Kind::Span, Value("100 ms"), "1 s", "How often the flows' counters are written down."),
    option("packets", Kind::Switch, Value("false"), "true", "The octets of every packet, as pcapng."),
    option("events", Kind::Switch, Value("true"), "false", "Events of the connections, as JSON lines."),
    option("controllers", Kind::Switch, Value("false"), "true", "The controllers' state, every `interval`."),
];
