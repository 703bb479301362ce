//! Reading the topology: bottleneck, star or graph, and the hosts.

use super::document::{Node, Value};
use super::model::{Access, Clock, Dumbbell, Graph, GraphLink, Host, Topology, TopologyKind};
use super::problem::Origin;
use super::read_links::{Inherited, PlacedLink, read_link};
use super::reader::{Fields, Reader};
use super::values::{DriftPpb, OffsetNs};

/// The topology, and the places that later checks need.
pub(crate) struct ReadTopology {
    pub topology: Topology,
    pub hosts: Vec<(Host, Origin)>,
    /// Every link, for the check of its buffer.
    pub links: Vec<PlacedLink>,
}

/// Reads everything about the network; the kind may be known where the rest is wrong.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    root: &Fields<'_>,
) -> (Option<TopologyKind>, Option<ReadTopology>) {
    let fields = Fields::open(reader, "topology", root.node("topology"), root.at);
    let kind = fields.as_ref().and_then(|fields| fields.get::<TopologyKind>(reader, "kind"));
    (kind, fields.zip(kind).and_then(|(fields, kind)| read_kind(reader, root, &fields, kind)))
}

fn read_kind(
    reader: &mut Reader<'_>,
    root: &Fields<'_>,
    fields: &Fields<'_>,
    kind: TopologyKind,
) -> Option<ReadTopology> {
    match kind {
        TopologyKind::Dumbbell => {
            root.refuse(reader, &["uplink", "downlink"], "it belongs to a star");
            root.refuse(reader, &["node", "route"], "it belongs to a graph");
            fields.refuse(reader, &["routing"], "it belongs to a graph");
            read_dumbbell(reader, root, fields)
        }
        TopologyKind::Star => {
            const WHY: &str = "a star has [uplink] and [downlink]";
            root.refuse(reader, &["link", "return_link"], WHY);
            root.refuse(reader, &["node", "route"], "it belongs to a graph");
            fields.refuse(reader, &["routing"], "it belongs to a graph");
            refuse_access(reader, fields);
            read_star(reader, root)
        }
        TopologyKind::Graph => {
            root.refuse(reader, &["return_link", "uplink", "downlink"], "a graph has [[link]]");
            refuse_access(reader, fields);
            read_graph(reader, root, fields)
        }
    }
}

fn refuse_access(reader: &mut Reader<'_>, topology: &Fields<'_>) {
    topology.refuse(reader, &["access_rate", "access_delay", "access_buffer"], "it belongs to a dumbbell");
}

fn read_dumbbell(reader: &mut Reader<'_>, root: &Fields<'_>, topology: &Fields<'_>) -> Option<ReadTopology> {
    let hosts = read_hosts(reader, root, false);
    let access_rate = topology.get(reader, "access_rate");
    let access_delay = topology.get(reader, "access_delay");
    let access_buffer = topology.get(reader, "access_buffer");
    if !root.has("link") {
        reader.report(
            root.at,
            "[link] is missing: a dumbbell needs its bottleneck",
            vec!["allowed: [link] with at least `rate` and `delay`".to_string()],
        );
        return None;
    }
    let fields = Fields::open(reader, "link", root.node("link"), root.at)?;
    let link = read_link(reader, &fields, &Inherited::default());
    let back_fields = Fields::open(reader, "return_link", root.node("return_link"), fields.at)?;
    let placeholder = (cede_units::Rate::from_mbit(1), cede_units::Duration::ZERO);
    let rate_and_delay = link.as_ref().map_or(placeholder, |placed| (placed.link.rate, placed.link.delay));
    let back =
        read_link(reader, &back_fields, &Inherited { table: None, rate_and_delay: Some(rate_and_delay) });
    let (link, back) = (link?, back?);
    let dumbbell = Dumbbell {
        link: link.link.clone(),
        return_link: back.link.clone(),
        access_rate: access_rate?,
        access_delay: access_delay?,
        access_buffer: access_buffer?,
    };
    if dumbbell.base_rtt().is_zero() {
        let help = vec![
            "allowed: a `delay` above zero in [link], [return_link] or `topology.access_delay`".to_string(),
        ];
        reader.report(fields.origin("delay"), "the base round-trip time is zero", help);
        return None;
    }
    Some(ReadTopology {
        topology: Topology::Dumbbell(Box::new(dumbbell)),
        hosts: hosts?,
        links: vec![link, back],
    })
}

fn read_star(reader: &mut Reader<'_>, root: &Fields<'_>) -> Option<ReadTopology> {
    // The tables for all hosts are read for their keys and values here, whether or not a host needs them.
    for key in ["uplink", "downlink"] {
        Fields::open(reader, key, root.node(key), root.at)?;
    }
    let hosts = read_hosts(reader, root, true)?;
    if hosts.is_empty() {
        reader.report(
            root.at,
            "a star needs hosts",
            vec!["allowed: [[host]] with at least `name`, two or more".to_string()],
        );
        return None;
    }
    let mut links = Vec::new();
    for (node, (host, _)) in root.list(reader, "host").iter().zip(&hosts) {
        let Some(access) = &host.access else { continue };
        for (key, link) in [("uplink", &access.up), ("downlink", &access.down)] {
            let at = node.table().and_then(|t| t.get(key)).map_or(root.origin(key), |e| e.node.origin);
            links.push(PlacedLink { link: link.clone(), buffer_origin: at, policer_origin: at });
        }
    }
    Some(ReadTopology { topology: Topology::Star, hosts, links })
}

/// The hosts of the list; None where one of them is wrong.
fn read_hosts(reader: &mut Reader<'_>, root: &Fields<'_>, star: bool) -> Option<Vec<(Host, Origin)>> {
    let mut hosts: Vec<(Host, Origin)> = Vec::new();
    let mut whole = true;
    for node in root.list(reader, "host") {
        let Some((host, at)) = read_host(reader, root, node, star) else {
            whole = false;
            continue;
        };
        if hosts.iter().any(|(other, _)| other.name == host.name) {
            reader.report(
                at,
                format!("two hosts are called `{}`", host.name),
                vec!["allowed: one entry for each host".to_string()],
            );
            whole = false;
        }
        hosts.push((host, at));
    }
    whole.then_some(hosts)
}

fn read_host(reader: &mut Reader<'_>, root: &Fields<'_>, node: &Node, star: bool) -> Option<(Host, Origin)> {
    let fields = Fields::open(reader, "host", Some(node), node.origin)?;
    let name: Option<String> = fields.get(reader, "name");
    let offset: Option<OffsetNs> = fields.get(reader, "clock_offset");
    let drift: Option<DriftPpb> = fields.get(reader, "clock_drift");
    let step: Option<OffsetNs> = fields.get(reader, "clock_step");
    let step_at = fields.get(reader, "clock_step_at");
    let access = if star {
        let up = read_access(reader, root, &fields, "uplink", "host.uplink");
        let down = read_access(reader, root, &fields, "downlink", "host.downlink");
        up.zip(down).map(|(up, down)| Some(Box::new(Access { up: up.link, down: down.link })))
    } else {
        fields.refuse(reader, &["uplink", "downlink"], "it belongs to a star");
        Some(None)
    };
    if !fields.has("clock_step") {
        fields.refuse(reader, &["clock_step_at"], "only with a `clock_step`");
    }
    let clock = Clock { offset_ns: offset?.0, drift_ppb: drift?.0, step_ns: step?.0, step_at: step_at? };
    Some((Host { name: name?, clock, access: access? }, fields.origin("name")))
}

fn read_access(
    reader: &mut Reader<'_>,
    root: &Fields<'_>,
    host: &Fields<'_>,
    key: &str,
    path: &str,
) -> Option<PlacedLink> {
    // Opened without a second report of its unknown keys: the table for all hosts was checked before.
    let table = Fields::quiet(key, root.node(key), root.at);
    let own = Fields::open(reader, path, host.node(key), host.at)?;
    if !own.has("rate") && !table.as_ref().is_some_and(|t| t.has("rate")) && !host.has(key) {
        let help =
            vec![format!("allowed: [{key}] for all hosts, or {key} = {{ rate = ..., delay = ... }} here")];
        reader.report(host.at, format!("this host has no {key}"), help);
        return None;
    }
    read_link(reader, &own, &Inherited { table, rate_and_delay: None })
}

fn read_graph(reader: &mut Reader<'_>, root: &Fields<'_>, topology: &Fields<'_>) -> Option<ReadTopology> {
    let hosts = read_hosts(reader, root, false);
    let routing = topology.get(reader, "routing");
    let nodes = read_nodes(reader, root)?;
    let mut links: Vec<GraphLink> = Vec::new();
    let mut placed = Vec::new();
    let mut whole = true;
    for node in root.list(reader, "link") {
        let Some((link, place)) = read_graph_link(reader, node, &nodes, &links) else {
            whole = false;
            continue;
        };
        links.push(link);
        placed.push(place);
    }
    let mut graph = Graph { nodes, links, routing: routing?, routes: Vec::new() };
    if whole {
        read_routes(reader, root, &mut graph);
    }
    let hosts = hosts?;
    let known: Vec<&str> = graph.nodes.iter().map(String::as_str).collect();
    for (host, at) in hosts.iter().filter(|(host, _)| !graph.nodes.contains(&host.name)) {
        reader.report_unknown(*at, "node", &host.name, &known);
    }
    whole.then_some(ReadTopology { topology: Topology::Graph(graph), hosts, links: placed })
}

fn read_nodes(reader: &mut Reader<'_>, root: &Fields<'_>) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for node in root.list(reader, "node") {
        let fields = Fields::open(reader, "node", Some(node), node.origin)?;
        let name: String = fields.get(reader, "name")?;
        if names.contains(&name) {
            reader.report(fields.origin("name"), format!("two nodes are called `{name}`"), Vec::new());
        }
        names.push(name);
    }
    if names.is_empty() {
        reader.report(
            root.at,
            "a graph needs nodes",
            vec!["allowed: [[node]] with `name`, two or more".to_string()],
        );
        return None;
    }
    Some(names)
}

fn read_graph_link(
    reader: &mut Reader<'_>,
    node: &Node,
    nodes: &[String],
    others: &[GraphLink],
) -> Option<(GraphLink, PlacedLink)> {
    let fields = Fields::open(reader, "graph_link", Some(node), node.origin)?;
    let from: Option<String> = fields.get(reader, "from");
    let to: Option<String> = fields.get(reader, "to");
    let name: Option<Option<String>> = fields.maybe(reader, "name");
    let both_ways = fields.get(reader, "both_ways");
    let placed = read_link(reader, &fields, &Inherited::default());
    let (from, to) = (from?, to?);
    let known: Vec<&str> = nodes.iter().map(String::as_str).collect();
    for (key, end) in [("from", &from), ("to", &to)] {
        if !nodes.contains(end) {
            reader.report_unknown(fields.origin(key), "node", end, &known);
        }
    }
    if !nodes.contains(&from) || !nodes.contains(&to) {
        return None;
    }
    if from == to {
        reader.report(fields.origin("to"), format!("the link leads from `{from}` to itself"), Vec::new());
        return None;
    }
    let name = name?.unwrap_or_else(|| format!("{from}-{to}"));
    let link = GraphLink { name, from, to, both_ways: both_ways?, link: placed.clone()?.link };
    if let Some(twin) = clash(&link, others) {
        let help =
            vec!["allowed: a `name` of its own; a link with `both_ways` also takes NAME-back".to_string()];
        reader.report(fields.origin("name"), format!("two links are called `{twin}`"), help);
        return None;
    }
    Some((link, placed?))
}

/// A name that this link would share with an earlier one.
fn clash(link: &GraphLink, others: &[GraphLink]) -> Option<String> {
    let names = |link: &GraphLink| {
        let back = link.both_ways.then(|| format!("{}-back", link.name));
        core::iter::once(link.name.clone()).chain(back).collect::<Vec<_>>()
    };
    let mine = names(link);
    others.iter().flat_map(names).find(|name| mine.contains(name))
}

fn read_routes(reader: &mut Reader<'_>, root: &Fields<'_>, graph: &mut Graph) {
    for node in root.list(reader, "route") {
        let Some(fields) = Fields::open(reader, "route", Some(node), node.origin) else { continue };
        let Some(path) = fields.get::<Vec<String>>(reader, "path") else { continue };
        if check_route(reader, &fields, graph, &path) {
            graph.routes.push(path);
        }
    }
}

fn check_route(reader: &mut Reader<'_>, fields: &Fields<'_>, graph: &Graph, path: &[String]) -> bool {
    let at = fields.origin("path");
    let known: Vec<&str> = graph.nodes.iter().map(String::as_str).collect();
    if let Some(index) = path.iter().position(|name| !graph.nodes.contains(name)) {
        let at = match fields.node("path").map(|node| &node.value) {
            Some(Value::List(items)) => items.get(index).map_or(at, |item| item.origin),
            _ => at,
        };
        reader.report_unknown(at, "node", &path[index], &known);
        return false;
    }
    if path.len() < 2 || (1..path.len()).any(|i| path[..i].contains(&path[i])) {
        let help = vec!["allowed: two nodes or more, each once".to_string()];
        reader.report(at, "the route does not lead from one node to another", help);
        return false;
    }
    if let Some(pair) = path.windows(2).find(|pair| graph.link_between(&pair[0], &pair[1]).is_none()) {
        let message = format!("no link leads from `{}` to `{}`", pair[0], pair[1]);
        reader.report(at, message, Vec::new());
        return false;
    }
    let ends = (path.first(), path.last());
    if graph.routes.iter().any(|other| (other.first(), other.last()) == ends) {
        reader.report(at, "a second route between the same two nodes", Vec::new());
        return false;
    }
    true
}
