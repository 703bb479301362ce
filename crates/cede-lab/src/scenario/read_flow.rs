//! Reading flows.

use super::document::Node;
use super::flow::{
    ControllerSpec, Ends, Flow, FlowAccess, Protocol, ProtocolKind, TcpAck, TcpOptions, Traffic, TrafficKind,
    UtpAck, UtpOptions,
};
use super::model::TopologyKind;
use super::problem::Origin;
use super::read_controller;
use super::reader::{Fields, Reader};
use super::values::Packets;
use super::words::Words;
use cede_cc::registry;
use cede_units::{Bytes, Duration};

/// A flow with the places that later checks need.
pub(crate) struct PlacedFlow {
    pub flow: Flow,
    pub name_origin: Origin,
    pub from_origin: Origin,
    pub to_origin: Origin,
}

/// What flows are checked against.
pub(crate) struct World {
    pub duration: Option<Duration>,
    /// None where it could not be read.
    pub topology: Option<TopologyKind>,
}

/// Reads every flow; None where one of them is wrong.
pub(crate) fn read_all(reader: &mut Reader<'_>, root: &Fields<'_>, world: &World) -> Option<Vec<PlacedFlow>> {
    let nodes = root.list(reader, "flow");
    if nodes.is_empty() {
        let help = vec!["allowed: [[flow]], once or more".to_string()];
        reader.report(root.origin("flow"), "there is no flow", help);
        return None;
    }
    // All of them are read before the first that is wrong ends it.
    let flows: Vec<Option<PlacedFlow>> = nodes.iter().map(|node| read_flow(reader, node, world)).collect();
    flows.into_iter().collect()
}

fn read_flow(reader: &mut Reader<'_>, node: &Node, world: &World) -> Option<PlacedFlow> {
    let fields = Fields::open(reader, "flow", Some(node), node.origin)?;
    let protocol_kind = fields.get::<ProtocolKind>(reader, "protocol");
    let name: Option<Option<String>> = fields.maybe(reader, "name");
    let count: Option<i64> = fields.get(reader, "count");
    let times = read_times(reader, &fields, world);
    let start_jitter = fields.get(reader, "start_jitter");
    let bytes = fields.maybe(reader, "bytes");
    let packet: Option<Bytes> = fields.get(reader, "packet");
    let traffic = read_traffic(reader, &fields);
    let ends = read_ends(reader, &fields, world.topology);
    let access = read_access(reader, &fields, world.topology);
    let protocol_kind = protocol_kind?;
    let protocol = read_protocol(reader, &fields, protocol_kind);
    let controller = read_controller::read(reader, fields.node("controller"), fields.at, protocol_kind);
    let (controller, (start, stop), protocol) = (controller?, times?, protocol?);
    check_marks(reader, &fields, &protocol, &controller)?;
    let flow = Flow {
        name: name?.unwrap_or_else(|| controller.name.clone()),
        // The kind bounds both, so the casts keep them.
        count: count? as u32,
        packet_bytes: packet?.0 as u32,
        protocol,
        controller,
        ends: ends?,
        start,
        stop,
        start_jitter: start_jitter?,
        bytes: bytes?,
        traffic: traffic?,
        access: access?,
    };
    let [name_origin, from_origin, to_origin] = ["name", "from", "to"].map(|key| fields.origin(key));
    Some(PlacedFlow { flow, name_origin, from_origin, to_origin })
}

/// Whoever lets its data be marked must answer the marks (RFC 3168, section 5).
fn check_marks(
    reader: &mut Reader<'_>,
    flow: &Fields<'_>,
    protocol: &Protocol,
    controller: &ControllerSpec,
) -> Option<()> {
    let announces = matches!(protocol, Protocol::Tcp(options) if options.ecn);
    let ignores = registry::find(&controller.name).is_some_and(|entry| !entry.answers_marks());
    if !(announces && ignores) {
        return Some(());
    }
    let options = Fields::open(reader, "flow.tcp", flow.node("tcp"), flow.at)?;
    let help =
        vec!["allowed: with a controller that answers marks; `cede explain CONTROLLER` says".to_string()];
    let message = format!("`ecn` is not for `{}`, which does not answer marks", controller.name);
    reader.report(options.origin("ecn"), message, help);
    None
}

/// Start and stop, which must lie in the run and in their order.
fn read_times(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    world: &World,
) -> Option<(Duration, Option<Duration>)> {
    let start: Option<Duration> = fields.get(reader, "start");
    let stop: Option<Option<Duration>> = fields.maybe(reader, "stop");
    let (start, stop) = (start?, stop?);
    if let Some(stop) = stop.filter(|stop| *stop <= start) {
        let help = vec![format!("allowed: a time after `start`, {start}")];
        reader.report(fields.origin("stop"), format!("`stop` is {stop}, not after the start"), help);
        return None;
    }
    if let Some(duration) = world.duration.filter(|duration| start >= *duration) {
        let help = vec![format!("allowed: a time before the end of the run, {duration}")];
        reader.report(fields.origin("start"), format!("`start` is {start}, when the run is over"), help);
        return None;
    }
    Some((start, stop))
}

fn read_ends(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    topology: Option<TopologyKind>,
) -> Option<Option<Ends>> {
    if topology? == TopologyKind::Dumbbell {
        fields.refuse(reader, &["from", "to"], "each flow of a dumbbell has hosts of its own");
        return Some(None);
    }
    let ends = ["from", "to"].map(|key| {
        if !fields.has(key) {
            let help = vec![format!("allowed: `{key} = \"HOST\"`")];
            reader.report(fields.at, format!("`{key}` is missing in [[flow]]"), help);
            return None;
        }
        fields.get::<String>(reader, key)
    });
    let [Some(from), Some(to)] = ends else { return None };
    if from == to {
        reader.report(fields.origin("to"), format!("the flow leads from `{from}` to itself"), Vec::new());
        return None;
    }
    Some(Some(Ends { from, to }))
}

fn read_access(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    topology: Option<TopologyKind>,
) -> Option<FlowAccess> {
    if topology? != TopologyKind::Dumbbell {
        fields.refuse(reader, &["access_rate", "access_delay", "return_delay"], "it belongs to a dumbbell");
        return Some(FlowAccess::default());
    }
    let rate = fields.maybe(reader, "access_rate");
    let delay = fields.maybe(reader, "access_delay");
    let return_delay = fields.maybe(reader, "return_delay");
    Some(FlowAccess { rate: rate?, delay: delay?, return_delay: return_delay? })
}

fn read_protocol(reader: &mut Reader<'_>, fields: &Fields<'_>, kind: ProtocolKind) -> Option<Protocol> {
    let (path, key, other) = match kind {
        ProtocolKind::Utp => ("flow.utp", "utp", "tcp"),
        ProtocolKind::Tcp => ("flow.tcp", "tcp", "utp"),
    };
    let why = format!("the protocol of this flow is \"{key}\"");
    fields.refuse(reader, &[other], &why);
    let options = Fields::open(reader, path, fields.node(key), fields.at)?;
    match kind {
        ProtocolKind::Utp => read_utp(reader, &options).map(Protocol::Utp),
        ProtocolKind::Tcp => read_tcp(reader, &options).map(Protocol::Tcp),
    }
}

fn read_tcp(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<TcpOptions> {
    let sack = fields.get(reader, "sack");
    let ack = fields.get(reader, "ack");
    let ack_delay = fields.get(reader, "ack_delay");
    let limited_transmit = fields.get(reader, "limited_transmit");
    let rack = fields.get(reader, "rack");
    let prr = fields.get(reader, "prr");
    let initial_window: Option<Packets> = fields.get(reader, "initial_window");
    let min_rto = fields.get(reader, "min_rto");
    let ecn = fields.get(reader, "ecn");
    let timestamps = fields.get(reader, "timestamps");
    let timestamp_tick = fields.get(reader, "timestamp_tick");
    let timestamp_random = fields.get(reader, "timestamp_random");
    let send_buffer = fields.get(reader, "send_buffer");
    let receive_buffer = fields.get(reader, "receive_buffer");
    let options = TcpOptions {
        sack: sack?,
        ack: ack?,
        ack_delay: ack_delay?,
        limited_transmit: limited_transmit?,
        rack: rack?,
        prr: prr?,
        // At most a thousand million by its kind.
        initial_window_packets: initial_window?.0 as u32,
        min_rto: min_rto?,
        ecn: ecn?,
        timestamps: timestamps?,
        timestamp_tick: timestamp_tick?,
        timestamp_random: timestamp_random?,
        send_buffer: send_buffer?,
        receive_buffer: receive_buffer?,
    };
    refuse_idle(reader, fields, &options);
    Some(options)
}

/// Options that would do nothing beside others.
fn refuse_idle(reader: &mut Reader<'_>, fields: &Fields<'_>, options: &TcpOptions) {
    if options.ack != TcpAck::Delayed {
        fields.refuse(reader, &["ack_delay"], DELAYED_ALONE);
    }
    if !options.timestamps {
        fields.refuse(reader, &["timestamp_tick", "timestamp_random"], "only with `timestamps`");
    }
    for (key, on) in [("rack", options.rack), ("prr", options.prr)] {
        if on && !options.sack {
            fields.refuse(reader, &[key], "only with `sack`");
        }
    }
}

/// Why a receiver's delay is refused beside another `ack`.
const DELAYED_ALONE: &str = "only with `ack = \"delayed\"`";

fn read_utp(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<UtpOptions> {
    let ack = fields.get(reader, "ack");
    let ack_delay = fields.get(reader, "ack_delay");
    let ack_packets: Option<i64> = fields.get(reader, "ack_packets");
    let min_rto = fields.get(reader, "min_rto");
    let mtu_search = fields.get(reader, "mtu_search");
    let internet = fields.get(reader, "internet");
    let send_buffer = fields.get(reader, "send_buffer");
    let receive_buffer = fields.get(reader, "receive_buffer");
    if ack == Some(UtpAck::Every) {
        fields.refuse(reader, &["ack_delay", "ack_packets"], DELAYED_ALONE);
    }
    Some(UtpOptions {
        ack: ack?,
        ack_delay: ack_delay?,
        ack_packets: ack_packets? as u32,
        min_rto: min_rto?,
        mtu_search: mtu_search?,
        internet: internet?,
        send_buffer: send_buffer?,
        receive_buffer: receive_buffer?,
    })
}

/// The keys that each kind of traffic has besides `kind`.
fn keys_of(kind: TrafficKind) -> &'static [&'static str] {
    match kind {
        TrafficKind::Backlogged => &[],
        TrafficKind::Chirp => &["period", "first", "growth", "max"],
        TrafficKind::Heartbeat => &["period", "bytes"],
        TrafficKind::Paced => &["rate", "message"],
        TrafficKind::OnOff => &["on", "off", "rate", "distribution"],
    }
}

fn read_traffic(reader: &mut Reader<'_>, flow: &Fields<'_>) -> Option<Traffic> {
    let long_form = flow.node("traffic").map(Node::long_form);
    let fields = Fields::open(reader, "traffic", long_form.as_ref(), flow.at)?;
    let kind: TrafficKind = fields.get(reader, "kind")?;
    let others: Vec<&str> = super::tables::get("traffic")
        .options()
        .map(|o| o.key)
        .filter(|key| *key != "kind" && !keys_of(kind).contains(key))
        .collect();
    fields.refuse(reader, &others, &format!("it is no option of \"{}\" traffic", kind.word()));
    read_traffic_of(reader, &fields, kind)
}

fn read_traffic_of(reader: &mut Reader<'_>, fields: &Fields<'_>, kind: TrafficKind) -> Option<Traffic> {
    match kind {
        TrafficKind::Backlogged => Some(Traffic::Backlogged),
        TrafficKind::Chirp => {
            let period = fields.get(reader, "period");
            let first: Option<Packets> = fields.get(reader, "first");
            let growth = fields.get(reader, "growth");
            let max: Option<Packets> = fields.get(reader, "max");
            Some(Traffic::Chirp {
                period: period?,
                first_packets: first?.0,
                growth: growth?,
                max_packets: max?.0,
            })
        }
        TrafficKind::Heartbeat => {
            let period = fields.get(reader, "period");
            let bytes = fields.get(reader, "bytes");
            Some(Traffic::Heartbeat { period: period?, bytes: bytes? })
        }
        TrafficKind::Paced => {
            let rate = fields.get(reader, "rate");
            let message = fields.get(reader, "message");
            Some(Traffic::Paced { rate: rate?, message: message? })
        }
        TrafficKind::OnOff => {
            let on = fields.get(reader, "on");
            let off = fields.get(reader, "off");
            let rate = fields.maybe(reader, "rate");
            let distribution = fields.get(reader, "distribution");
            Some(Traffic::OnOff { on: on?, off: off?, rate: rate?, distribution: distribution? })
        }
    }
}
