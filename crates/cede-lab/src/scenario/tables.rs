//! The table of options: every key of the scenario format, once. Those of links, their queues and flows are in
//! `link_tables`, `queue_tables` and `flow_tables`.

use super::flow_tables::{CONTROLLER, FLOW, TCP, TRAFFIC, UTP};
use super::link_tables::{GRAPH_LINK, HOST_LINK, LOSS_BURST, REORDER, RETURN_LINK, link_table};
use super::model::{ROUTING_WORDS, TOPOLOGY_WORDS};
use super::queue_tables::{CHANGE, CODEL, FQ_CODEL, PIE, POLICER, QUEUE, RED};
use super::schema::Fallback::{Absent, Required, Value};
use super::schema::{Kind, OptionDoc, TableDoc, option, table, words};

/// Every table of the format, in the order of the reference.
pub const TABLES: &[TableDoc] = &[
    table("", "top of the file", "The run as a whole. These keys stand before the first table.", ROOT),
    table("topology", "[topology]", "The shape of the network.", TOPOLOGY),
    link_table(
        "link",
        "[link]",
        "The bottleneck of a dumbbell, from the senders' side to the receivers'. A packet waits in the queue, is \
         serialised at `rate`, may then be lost, doubled or held back, and arrives `delay` later. In a graph this is \
         a list, [[link]], with the further keys of [[link]] below.",
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
    link_table(
        "uplink",
        "[uplink]",
        "Star: what every host's link to the hub is like where the host does not say.",
        &[],
    ),
    link_table(
        "downlink",
        "[downlink]",
        "Star: what every host's link from the hub is like where the host does not say.",
        &[],
    ),
    table(
        "loss_burst",
        "loss_burst = { ... }",
        "Loss in bursts, in any link: the model of Gilbert and Elliott. A link is good or bad and changes its state after each packet; the loss rate of a pure burst model is enter / (enter + leave).",
        LOSS_BURST,
    ),
    table("reorder", "reorder = { ... }", "Packets that are held back and overtaken, in any link.", REORDER),
    QUEUE,
    CODEL,
    FQ_CODEL,
    PIE,
    RED,
    table(
        "policer",
        "policer = { ... }",
        "A token bucket in front of a link's queue: a packet that finds too few tokens is dropped.",
        POLICER,
    ),
    table(
        "change",
        "[[change]]",
        "Something that changes on a link while the world runs: a path that is routed anew, a modem that trains again, a packet that is lost at a known time.",
        CHANGE,
    ),
    table("node", "[[node]]", "A node of a graph.", NODE),
    table("route", "[[route]]", "A route of a graph that is stated instead of found.", ROUTE),
    table(
        "host",
        "[[host]]",
        "Properties of one host. In a dumbbell the hosts are called `FLOW-sender` and `FLOW-receiver` (the name of a \
         replicated flow means all its replicates), in a graph as their node; in a star every host needs an entry.",
        HOST,
    ),
    link_table(
        "host.uplink",
        "[host.uplink]",
        "Star: this host's link to the hub. Keys that are not given are those of [uplink].",
        HOST_LINK,
    ),
    link_table(
        "host.downlink",
        "[host.downlink]",
        "Star: this host's link from the hub. Keys that are not given are those of [downlink].",
        HOST_LINK,
    ),
    table(
        "flow",
        "[[flow]]",
        "A flow, or several alike. The sender opens the connection and sends; acknowledgements come back.",
        FLOW,
    ),
    table(
        "controller",
        "controller = { ... }",
        "The congestion controller of a flow: its name and its own parameters, which `cede list controllers` shows. `controller = \"ledbat\"` is short for `controller = { name = \"ledbat\" }`.",
        CONTROLLER,
    ),
    table(
        "traffic",
        "traffic = { ... }",
        "When the application has data. `traffic = \"backlogged\"` is short for `traffic = { kind = \"backlogged\" }`.",
        TRAFFIC,
    ),
    table("flow.tcp", "[flow.tcp]", "Options of the model TCP.", TCP),
    table("flow.utp", "[flow.utp]", "Options of uTP.", UTP),
    table(
        "record",
        "[record]",
        "What is written down while the world runs. `cede run --format` says in which forms: tables as `csv`, `jsonl` and \
         `parquet`, where times are seconds since the beginning of the run and what is not known is empty or null; `flent` is one \
         file, `NAME.flent.gz`, which flent reads as its test `tcp_nup`: flows are uploads by their numbers, the ping is the round trip \
         without queues and the mean wait at the link where packets wait longest.",
        RECORD,
    ),
];

/// The table with this path.
pub(crate) fn table_or_none(path: &str) -> Option<&'static TableDoc> {
    TABLES.iter().chain(super::SWARM_TABLES).find(|table| table.path == path)
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
    option(
        "warmup",
        Kind::Time,
        Value("0 s"),
        "10 s",
        "Time at the beginning that no metric looks at; less than `duration`.",
    ),
    option(
        "seed",
        Kind::Integer { min: 0, max: i64::MAX },
        Value("1"),
        "42",
        "Seed of every named random stream.",
    ),
    option("topology", Kind::Table("topology"), Absent("a dumbbell"), "", "The shape of the network."),
    option(
        "link",
        Kind::LinkOrLinks,
        Absent("none; a dumbbell and a graph need it"),
        "",
        "The bottleneck; in a graph the links.",
    ),
    option(
        "return_link",
        Kind::Table("return_link"),
        Absent("the forward link's rate and delay, without loss"),
        "",
        "The bottleneck's way back.",
    ),
    option(
        "uplink",
        Kind::Table("uplink"),
        Absent("each host states its own"),
        "",
        "Star: every host's link to the hub.",
    ),
    option(
        "downlink",
        Kind::Table("downlink"),
        Absent("each host states its own"),
        "",
        "Star: every host's link from the hub.",
    ),
    option("node", Kind::Tables("node"), Absent("none"), "", "The nodes of a graph."),
    option(
        "route",
        Kind::Tables("route"),
        Absent("all routes are found by `topology.routing`"),
        "",
        "Stated routes of a graph.",
    ),
    option("host", Kind::Tables("host"), Absent("every clock is exact"), "", "Properties of single hosts."),
    option(
        "change",
        Kind::Tables("change"),
        Absent("nothing changes"),
        "",
        "What changes on links, and when.",
    ),
    option("flow", Kind::Tables("flow"), Required, "", "The flows; at least one."),
    option("record", Kind::Table("record"), Absent("the defaults of [record]"), "", "What is written down."),
    option(
        "assert",
        Kind::Assertions,
        Absent("none"),
        "[\"queue.p95_ms < 70\"]",
        "What must hold at the end, see *Assertions*. A table [assert] says the same with a metric as the key: `queue.p95_ms = \"< 70\"`.",
    ),
];

const TOPOLOGY: &[OptionDoc] = &[
    option("kind", words(TOPOLOGY_WORDS), Value("dumbbell"), "star", "The shape."),
    option(
        "access_rate",
        Kind::Rate,
        Value("1 Gbit/s"),
        "100 Mbit/s",
        "Dumbbell: rate of every access link, both ways.",
    ),
    option(
        "access_delay",
        Kind::Time,
        Value("1 ms"),
        "5 ms",
        "Dumbbell: propagation delay of every access link, each way, so that a round trip has four of them.",
    ),
    option(
        "access_buffer",
        Kind::Buffer,
        Value("10000 packets"),
        "1 MiB",
        "Dumbbell: queue of every access link, each way.",
    ),
    option("routing", words(ROUTING_WORDS), Value("delay"), "hops", "Graph: how routes are found."),
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
    option(
        "clock_offset",
        Kind::Offset,
        Value("0 s"),
        "-3 s",
        "How far its clock is ahead at the beginning.",
    ),
    option(
        "clock_drift",
        Kind::Drift,
        Value("0 ppm"),
        "50 ppm",
        "How much its clock gains: 50 ppm are 50 us a second.",
    ),
    option(
        "clock_step",
        Kind::Offset,
        Value("0 s"),
        "-1 s",
        "By how much its clock is set forward at `clock_step_at`; back, where it is negative. TCP with timestamps then takes what this host sends for old until the clock has caught up (PAWS, RFC 7323).",
    ),
    option("clock_step_at", Kind::Time, Value("0 s"), "30 s", "Only with `clock_step`: when it is."),
    option("uplink", Kind::Table("host.uplink"), Absent("[uplink]"), "", "Star: its link to the hub."),
    option(
        "downlink",
        Kind::Table("host.downlink"),
        Absent("[downlink]"),
        "",
        "Star: its link from the hub.",
    ),
];

const RECORD: &[OptionDoc] = &[
    option(
        "queue",
        Kind::Switch,
        Value("true"),
        "false",
        "Queues, at each dequeue: time, octets and packets left, served and dropped so far.",
    ),
    option(
        "links",
        Kind::Names,
        Value("[]"),
        "[\"core\"]",
        "Links whose queues are recorded; none named: the bottleneck of a dumbbell, all links elsewhere. A dumbbell has the links `bottleneck` and `return`, a star HOST-up and HOST-down.",
    ),
    option("interval", Kind::Span, Value("100 ms"), "1 s", "How often the flows' counters are written down."),
    option("packets", Kind::Switch, Value("false"), "true", "The octets of every packet, as pcapng."),
    option("events", Kind::Switch, Value("true"), "false", "Events of the connections, as JSON lines."),
    option("controllers", Kind::Switch, Value("false"), "true", "The controllers' state, every `interval`."),
];

#[cfg(test)]
mod tests {
    use super::super::flow::{Distribution, ProtocolKind, TcpAck, TrafficKind, UtpAck};
    use super::super::model::{Buffer, PieKind, QueueKind, Routing, TopologyKind};
    use super::super::reader::default_node;
    use super::super::values::{DriftPpb, FromNode, OffsetNs, Packets};
    use super::*;
    use cede_units::{Bytes, Duration, Rate};

    fn reads<T: FromNode>(kind: &Kind, text: &str) -> bool {
        T::from_node(&default_node(kind, text), kind).is_ok()
    }

    /// Whether a text is a value of this kind, for the kinds that are not tables.
    fn fits(kind: &Kind, text: &str) -> bool {
        match kind {
            Kind::Text | Kind::Name | Kind::Controller | Kind::Traffic | Kind::Queue => {
                reads::<String>(kind, text)
            }
            Kind::Time | Kind::Span => reads::<Duration>(kind, text),
            Kind::Offset => reads::<OffsetNs>(kind, text),
            Kind::Drift => reads::<DriftPpb>(kind, text),
            Kind::Rate => reads::<Rate>(kind, text),
            Kind::Size { .. } => reads::<Bytes>(kind, text),
            Kind::Packets => reads::<Packets>(kind, text),
            Kind::Buffer => reads::<Buffer>(kind, text),
            Kind::Probability | Kind::Number { .. } => reads::<f64>(kind, text),
            Kind::Integer { .. } => reads::<i64>(kind, text),
            Kind::Switch => reads::<bool>(kind, text),
            Kind::Names => reads::<Vec<String>>(kind, text),
            Kind::Word { .. } => {
                reads::<TopologyKind>(kind, text)
                    || reads::<Routing>(kind, text)
                    || reads::<QueueKind>(kind, text)
                    || reads::<PieKind>(kind, text)
                    || reads::<ProtocolKind>(kind, text)
                    || reads::<TcpAck>(kind, text)
                    || reads::<UtpAck>(kind, text)
                    || reads::<Distribution>(kind, text)
                    || reads::<TrafficKind>(kind, text)
            }
            _ => true,
        }
    }

    #[test]
    fn every_default_and_example_is_a_value_of_its_kind() {
        for table in TABLES {
            for option in table.options() {
                let place = format!("{} {}", table.heading, option.key);
                if let Value(default) = option.fallback {
                    assert!(fits(&option.kind, default), "default of {place}: {default}");
                }
                assert!(
                    option.example.is_empty() || fits(&option.kind, option.example),
                    "example of {place}"
                );
                let is_table = matches!(option.kind, Kind::Table(_) | Kind::Tables(_) | Kind::LinkOrLinks);
                assert!(is_table || !option.example.is_empty(), "no example of {place}");
            }
        }
    }

    #[test]
    fn tables_and_keys_are_unique_and_explained() {
        for (i, table) in TABLES.iter().enumerate() {
            assert!(TABLES[..i].iter().all(|other| other.path != table.path), "{}", table.path);
            let mut keys: Vec<&str> = table.own.iter().map(|option| option.key).collect();
            keys.sort_unstable();
            assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{}", table.path);
            assert!(table.meaning.ends_with('.'), "{}", table.path);
            for option in table.options() {
                assert!(option.meaning.ends_with('.'), "{} {}", table.path, option.key);
            }
        }
    }

    #[test]
    fn every_table_that_an_option_names_is_there() {
        for option in TABLES.iter().flat_map(TableDoc::options) {
            if let Kind::Table(path) | Kind::Tables(path) = option.kind {
                assert!(table_or_none(path).is_some(), "{path}");
            }
        }
    }
}
