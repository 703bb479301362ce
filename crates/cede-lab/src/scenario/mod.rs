//! The one scenario format of Cede: TOML in, a checked [`Scenario`] out.
//!
//! [`Scenario::parse`] reads a file, [`Scenario::parse_with`] lays `key=value` overrides over it first. Both collect
//! every [`Problem`] they find, each with its line, the place in it, and what is allowed there.
//! [`Scenario::to_toml`] prints a scenario with every default filled in; what it prints parses back to an equal one.
//! One table of options ([`TABLES`]) drives the reading and the generated [`reference()`].
//!
//! To make a scenario in code, change a parsed one and parse what [`Scenario::to_toml`] prints: that checks it too.
//!
//! **Invariant:** nothing here runs anything; nothing here knows a clock, a file or a simulator. A text that is no
//! scenario gives problems, never a panic.

mod built_in;
mod document;
mod flow;
mod flow_tables;
mod hash;
mod link_tables;
mod metric_names;
mod model;
mod names;
mod overrides;
mod print;
mod problem;
mod queue_tables;
mod read_assertions;
mod read_changes;
mod read_controller;
mod read_flow;
mod read_links;
mod read_presence;
mod read_queue;
mod read_swarm;
mod read_topology;
mod reader;
mod reference;
mod routes;
mod schema;
mod swarm_tables;
mod tables;
mod values;
mod words;

pub use built_in::{BUILT_IN, BuiltIn, built_in};
pub use cede_net::{BucketConfig, Discipline, LinkChange, Shaper};
pub use flow::{
    ControllerSpec, Distribution, Ends, Flow, FlowAccess, Protocol, ProtocolKind, TcpAck, TcpOptions,
    Traffic, TrafficKind, UtpAck, UtpOptions,
};
pub use hash::ContentHash;
pub use metric_names::{Assertion, Comparison, METRICS, Metric, MetricDoc};
pub use model::{
    Access, Buffer, BurstLoss, Change, Clock, Dumbbell, Graph, GraphLink, Host, Limit, Link, PieKind,
    QueueKind, Record, Reorder, Routing, Scenario, Topology, TopologyKind,
};
pub use names::Instance;
pub use overrides::Overrides;
pub use problem::{MAX_PROBLEMS, Problem, nearest, render};
pub use read_swarm::{is_swarm, parse_swarm};
pub use reference::{reference, swarm_reference};
pub use routes::{BOTTLENECK, DirectedLink, RETURN};
pub use schema::{Fallback, Kind, OptionDoc, TableDoc};
pub use swarm_tables::SWARM_TABLES;
pub use tables::TABLES;
pub use words::Words;

use crate::ports::MAX_FLOWS;
use cede_units::Duration;
use document::Node;
use problem::{Origin, Sources};
use read_assertions::Known;
use read_changes::PlacedChange;
use read_flow::{PlacedFlow, World};
use read_topology::ReadTopology;
use reader::{Fields, Reader};

impl Scenario {
    /// Reads a scenario. `file_name` is for messages alone; nothing is opened.
    ///
    /// # Errors
    /// Everything that is wrong with the text, in its order; at least one.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, Vec<Problem>> {
        Self::parse_with(file_name, text, &Overrides::none())
    }

    /// Reads a scenario after laying overrides over its text.
    ///
    /// # Errors
    /// Everything that is wrong with the text and the overrides; a problem in an override has `-s` for its file and
    /// the override for its line.
    pub fn parse_with(file_name: &str, text: &str, overrides: &Overrides) -> Result<Self, Vec<Problem>> {
        let mut sources = Sources::default();
        let (root, mut problems) = overrides::overridden(&mut sources, (file_name, text), overrides)?;
        let mut reader = Reader::new(&sources);
        let scenario = read(&mut reader, &root);
        problems.extend(reader.into_problems());
        match scenario {
            Some(scenario) if problems.is_empty() => Ok(scenario),
            _ => Err(problems),
        }
    }
}

/// Reads the whole document. None where a problem was taken down; what is left is still checked.
fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Scenario> {
    let root = Fields::open(reader, "", Some(node), node.origin)?;
    let name = root.get(reader, "name");
    let description = root.get(reader, "description");
    let duration: Option<Duration> = root.get(reader, "duration");
    let warmup = read_warmup(reader, &root, duration);
    let seed: Option<i64> = root.get(reader, "seed");
    let (topology, network) = read_topology::read(reader, &root);
    let flows = read_flow::read_all(reader, &root, &World { duration, topology });
    let changes = read_changes::read_all(reader, &root, duration);
    let record = read_record(reader, &root);
    let (Some(network), Some(placed)) = (network, flows) else {
        // Without its names, the form of the assertions can still be checked.
        read_assertions::read(reader, &root, None);
        return None;
    };
    let (hosts, origins): (Vec<Host>, Vec<Origin>) = network.hosts.iter().cloned().unzip();
    let mut scenario = Scenario {
        name: name?,
        description: description?,
        duration: duration?,
        warmup: warmup?,
        seed: seed?.unsigned_abs(),
        topology: network.topology.clone(),
        hosts,
        flows: placed.iter().map(|placed| placed.flow.clone()).collect(),
        changes: changes.iter().flatten().map(|placed| placed.change.clone()).collect(),
        record: record?,
        assertions: Vec::new(),
    };
    check_whole(reader, &root, &scenario, &network, &placed, &origins);
    check_changed_links(reader, &scenario, &changes?);
    scenario.assertions = read_assertions::read(reader, &root, Some(&known_names(&scenario)))?;
    Some(scenario)
}

fn read_warmup(reader: &mut Reader<'_>, root: &Fields<'_>, duration: Option<Duration>) -> Option<Duration> {
    let warmup: Duration = root.get(reader, "warmup")?;
    if duration.is_some_and(|duration| warmup >= duration) {
        let help = vec!["allowed: a time shorter than `duration`".to_string()];
        reader.report(
            root.origin("warmup"),
            format!("`warmup` is {warmup}: nothing of the run is left"),
            help,
        );
        return None;
    }
    Some(warmup)
}

fn read_record(reader: &mut Reader<'_>, root: &Fields<'_>) -> Option<Record> {
    let fields = Fields::open(reader, "record", root.node("record"), root.at)?;
    let queue = fields.get(reader, "queue");
    let links = fields.get(reader, "links");
    let interval = fields.get(reader, "interval");
    let packets = fields.get(reader, "packets");
    let events = fields.get(reader, "events");
    let controllers = fields.get(reader, "controllers");
    Some(Record {
        queue: queue?,
        links: links?,
        interval: interval?,
        packets: packets?,
        events: events?,
        controllers: controllers?,
    })
}

/// The checks that need more than one table.
fn check_whole(
    reader: &mut Reader<'_>,
    root: &Fields<'_>,
    scenario: &Scenario,
    network: &ReadTopology,
    flows: &[PlacedFlow],
    host_origins: &[Origin],
) {
    check_flow_names(reader, flows);
    check_ends(reader, scenario, flows);
    if let Topology::Dumbbell(_) = scenario.topology {
        check_dumbbell_hosts(reader, scenario, host_origins);
    }
    let rtt = match &scenario.topology {
        Topology::Dumbbell(dumbbell) => Some(dumbbell.base_rtt()),
        _ => None,
    };
    let packet_bytes = scenario.flows.iter().map(|flow| flow.packet_bytes).max().unwrap_or(0);
    for placed in &network.links {
        read_links::check_buffer(reader, placed, rtt, packet_bytes);
        read_links::check_policer(reader, placed, packet_bytes);
    }
    check_clocks(reader, scenario, host_origins);
    check_recorded_links(reader, root, scenario);
}

fn check_clocks(reader: &mut Reader<'_>, scenario: &Scenario, origins: &[Origin]) {
    let end = scenario.duration;
    for (host, &at) in scenario.hosts.iter().zip(origins) {
        if host.clock.step_at >= end {
            let message = format!("`clock_step_at` is {}, when the run is over", host.clock.step_at);
            reader.report(at, message, vec![format!("allowed: a time before the end of the run, {end}")]);
        }
    }
}

fn check_flow_names(reader: &mut Reader<'_>, flows: &[PlacedFlow]) {
    let count: u64 = flows.iter().map(|placed| u64::from(placed.flow.count)).sum();
    if let Some(last) = flows.last().filter(|_| count > MAX_FLOWS as u64) {
        let help = vec![format!("allowed: {MAX_FLOWS} flows in all, for each needs a port")];
        return reader.report(last.name_origin, format!("there are {count} flows"), help);
    }
    let mut seen = std::collections::BTreeSet::new();
    for placed in flows {
        // The name of the whole counts too: metrics and hosts may use it.
        let group = (placed.flow.count > 1).then(|| placed.flow.name.clone());
        let twin = placed.flow.instance_names().chain(group).find(|name| !seen.insert(name.clone()));
        if let Some(name) = twin {
            let help = vec!["allowed: a `name` of its own for each flow".to_string()];
            reader.report(placed.name_origin, format!("two flows are called `{name}`"), help);
        }
    }
}

/// The ends of flows must be there, and each must reach the other.
fn check_ends(reader: &mut Reader<'_>, scenario: &Scenario, flows: &[PlacedFlow]) {
    let known: Vec<&str> = match &scenario.topology {
        Topology::Dumbbell(_) => return,
        Topology::Star => scenario.hosts.iter().map(|host| host.name.as_str()).collect(),
        Topology::Graph(graph) => graph.nodes.iter().map(String::as_str).collect(),
    };
    for placed in flows {
        let Some(ends) = &placed.flow.ends else { continue };
        let mut both = true;
        for (name, at) in [(&ends.from, placed.from_origin), (&ends.to, placed.to_origin)] {
            if !known.contains(&name.as_str()) {
                reader.report_unknown(at, "host", name, &known);
                both = false;
            }
        }
        let Topology::Graph(graph) = &scenario.topology else { continue };
        for (from, to) in [(&ends.from, &ends.to), (&ends.to, &ends.from)] {
            if both && graph.route(from, to).is_none() {
                let help = vec![
                    "allowed: nodes that links join in both directions: acknowledgements come back"
                        .to_string(),
                ];
                reader.report(placed.to_origin, format!("no way leads from `{from}` to `{to}`"), help);
            }
        }
    }
}

/// The hosts of a dumbbell are made by its flows.
fn check_dumbbell_hosts(reader: &mut Reader<'_>, scenario: &Scenario, origins: &[Origin]) {
    let names = flow_names(scenario);
    let hosts: Vec<String> =
        names.iter().flat_map(|name| [format!("{name}-sender"), format!("{name}-receiver")]).collect();
    let known: Vec<&str> = hosts.iter().map(String::as_str).collect();
    for (host, at) in scenario.hosts.iter().zip(origins) {
        if !hosts.contains(&host.name) {
            reader.report_unknown(*at, "host", &host.name, &known);
        }
    }
}

fn check_recorded_links(reader: &mut Reader<'_>, root: &Fields<'_>, scenario: &Scenario) {
    let links = scenario.named_links();
    let known: Vec<&str> = links.iter().map(|(name, _)| name.as_str()).collect();
    for name in scenario.record.links.iter().filter(|name| !known.contains(&name.as_str())) {
        let record = Fields::quiet("record", root.node("record"), root.at);
        let at = record.map_or(root.at, |record| record.origin("links"));
        reader.report_unknown(at, "link", name, &known);
    }
}

fn check_changed_links(reader: &mut Reader<'_>, scenario: &Scenario, changes: &[PlacedChange]) {
    let links = scenario.named_links();
    let known: Vec<&str> = links.iter().map(|(name, _)| name.as_str()).collect();
    for placed in changes.iter().filter(|placed| !known.contains(&placed.change.link.as_str())) {
        reader.report_unknown(placed.link_origin, "link", &placed.change.link, &known);
    }
    for PlacedChange { change, link_origin } in changes {
        let link = links.iter().find(|(name, _)| *name == change.link);
        let peak = link.and_then(|(_, link)| link.shaper?.peak);
        if let Some((peak, rate)) = peak.zip(change.what.rate).filter(|(peak, rate)| peak < rate) {
            let help = vec![format!("allowed: a rate up to the link's `peak`, {peak}")];
            reader.report(*link_origin, format!("`rate` becomes {rate}, above `peak`"), help);
        }
    }
}

/// The names of flows: first as the scenario has them, then those of replicates.
fn flow_names(scenario: &Scenario) -> Vec<String> {
    let declared = scenario.flows.iter().map(|flow| flow.name.clone());
    let replicates = scenario.flows.iter().filter(|flow| flow.count > 1).flat_map(Flow::instance_names);
    declared.chain(replicates).collect()
}

fn known_names(scenario: &Scenario) -> Known {
    Known {
        flows: flow_names(scenario),
        links: scenario.named_links().into_iter().map(|(name, _)| name).collect(),
        has_bottleneck: matches!(scenario.topology, Topology::Dumbbell(_)),
    }
}
