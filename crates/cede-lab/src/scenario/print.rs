//! A scenario as TOML, every default filled in but those that mean nothing beside the other options.

use super::flow::ControllerSpec;
use super::flow::{Flow, FlowAccess, Protocol, TcpAck, TcpOptions, Traffic, UtpAck, UtpOptions};
use super::model::{
    Buffer, Change, Dumbbell, Graph, Host, Link, PieKind, QueueKind, Record, Scenario, Topology,
};
use super::words::Words;
use cede_cc::ParamValue;
use cede_net::{CodelConfig, Discipline, PieConfig, PieProfile, RedConfig};
use cede_units::{Bytes, Duration, Rate};
use core::fmt::Write;

/// A value as it stands behind the `=`.
trait Toml {
    fn toml(&self) -> String;
}

impl Toml for str {
    fn toml(&self) -> String {
        let mut out = String::from("\"");
        for c in self.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                // TOML allows no control character but the tab, and escapes of eight hex digits for any.
                c if c.is_control() => {
                    let _ = write!(out, "\\U{:08X}", u32::from(c));
                }
                c => out.push(c),
            }
        }
        out + "\""
    }
}

/// Values whose printed form is a text.
macro_rules! as_text {
    ($($type:ty),+) => { $(impl Toml for $type { fn toml(&self) -> String { self.to_string().as_str().toml() } })+ };
}
as_text!(Duration, Rate, Bytes, Buffer);

/// Values whose printed form stands without quotes. The debug form of a float always shows that it is one.
macro_rules! as_literal {
    ($($type:ty),+) => { $(impl Toml for $type { fn toml(&self) -> String { format!("{self:?}") } })+ };
}
as_literal!(u32, u64, f64, bool);

impl Toml for String {
    fn toml(&self) -> String {
        self.as_str().toml()
    }
}

impl Toml for [String] {
    fn toml(&self) -> String {
        format!("[{}]", self.iter().map(Toml::toml).collect::<Vec<_>>().join(", "))
    }
}

/// An inline table of the pairs that have a value.
fn inline(pairs: &[(&str, Option<String>)]) -> String {
    let given =
        pairs.iter().filter_map(|(key, value)| value.as_ref().map(|value| format!("{key} = {value}")));
    format!("{{ {} }}", given.collect::<Vec<_>>().join(", "))
}

/// Lines of TOML as they come together.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn heading(&mut self, heading: &str) {
        self.text.push('\n');
        self.text.push_str(heading);
        self.text.push('\n');
    }

    fn line(&mut self, key: &str, value: &str) {
        self.text.push_str(key);
        self.text.push_str(" = ");
        self.text.push_str(value);
        self.text.push('\n');
    }

    fn put<T: Toml + ?Sized>(&mut self, key: &str, value: &T) {
        self.line(key, &value.toml());
    }

    fn put_if<T: Toml>(&mut self, key: &str, value: Option<&T>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn word<T: Words>(&mut self, key: &str, value: T) {
        self.put(key, value.word());
    }
}

impl Scenario {
    /// The scenario as TOML with every default filled in that means something beside the other options. It parses back to an
    /// equal scenario, if what means nothing has its default.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut page = Page::default();
        page.put("name", &self.name);
        page.put("description", &self.description);
        page.put("duration", &self.duration);
        page.put("warmup", &self.warmup);
        page.put("seed", &self.seed);
        let assertions: Vec<String> = self.assertions.iter().map(ToString::to_string).collect();
        page.put("assert", assertions.as_slice());
        match &self.topology {
            Topology::Dumbbell(dumbbell) => print_dumbbell(&mut page, dumbbell),
            Topology::Star => {
                page.heading("[topology]");
                page.put("kind", "star");
            }
            Topology::Graph(graph) => print_graph(&mut page, graph),
        }
        self.hosts.iter().for_each(|host| print_host(&mut page, host));
        self.changes.iter().for_each(|change| print_change(&mut page, change));
        self.flows.iter().for_each(|flow| print_flow(&mut page, flow));
        print_record(&mut page, &self.record);
        page.text
    }
}

fn print_dumbbell(page: &mut Page, dumbbell: &Dumbbell) {
    page.heading("[topology]");
    page.put("kind", "dumbbell");
    page.put("access_rate", &dumbbell.access_rate);
    page.put("access_delay", &dumbbell.access_delay);
    page.put("access_buffer", &dumbbell.access_buffer);
    page.heading("[link]");
    print_link(page, &dumbbell.link);
    page.heading("[return_link]");
    print_link(page, &dumbbell.return_link);
}

fn print_graph(page: &mut Page, graph: &Graph) {
    page.heading("[topology]");
    page.put("kind", "graph");
    page.word("routing", graph.routing);
    for name in &graph.nodes {
        page.heading("[[node]]");
        page.put("name", name);
    }
    for link in &graph.links {
        page.heading("[[link]]");
        page.put("name", &link.name);
        page.put("from", &link.from);
        page.put("to", &link.to);
        page.put("both_ways", &link.both_ways);
        print_link(page, &link.link);
    }
    for path in &graph.routes {
        page.heading("[[route]]");
        page.put("path", path.as_slice());
    }
}

fn print_link(page: &mut Page, link: &Link) {
    page.put("rate", &link.rate);
    page.put("delay", &link.delay);
    page.put("buffer", &link.buffer);
    page.put_if("bdp_rtt", link.bdp_rtt.as_ref());
    page.put("count_in_service", &link.count_in_service);
    page.put("count_delayed", &link.count_delayed);
    print_control(page, link);
    page.put("loss", &link.loss);
    if let Some(burst) = link.loss_burst {
        let pairs = [
            ("enter", burst.enter),
            ("leave", burst.leave),
            ("loss_bad", burst.loss_bad),
            ("loss_good", burst.loss_good),
        ];
        page.line("loss_burst", &inline(&pairs.map(|(key, value)| (key, Some(value.toml())))));
    }
    if let Some(reorder) = link.reorder {
        let pairs = [
            ("probability", Some(reorder.probability.toml())),
            ("extra_delay", Some(reorder.extra_delay.toml())),
        ];
        page.line("reorder", &inline(&pairs));
    }
    page.put("duplicate", &link.duplicate);
    page.put("jitter", &link.jitter);
    page.put("jitter_reorders", &link.jitter_reorders);
    page.put("batch", &link.batch);
}

fn print_control(page: &mut Page, link: &Link) {
    page.line("queue", &queue_toml(&link.queue, link.ecn));
    page.put("ecn", &link.ecn);
    if let Some(policer) = &link.policer {
        let pairs = [("rate", Some(policer.rate.toml())), ("burst", Some(Bytes(policer.burst_bytes).toml()))];
        page.line("policer", &inline(&pairs));
    }
    if let Some(shaper) = &link.shaper {
        page.put("burst", &Bytes(shaper.burst_bytes));
        page.put_if("peak", shaper.peak.as_ref());
    }
}

fn octets(octets: u32) -> Option<String> {
    Some(Bytes(u64::from(octets)).toml())
}

fn codel_pairs(config: &CodelConfig) -> [(&'static str, Option<String>); 4] {
    [
        ("target", Some(config.target.toml())),
        ("interval", Some(config.interval.toml())),
        ("max_packet", octets(config.max_packet_bytes)),
        ("memory", Some(config.memory_intervals.toml())),
    ]
}

fn queue_toml(queue: &Discipline, marks: bool) -> String {
    let kind = |kind: QueueKind| ("kind", Some(kind.word().toml()));
    match queue {
        Discipline::DropTail => QueueKind::DropTail.word().toml(),
        Discipline::HeadDrop => QueueKind::HeadDrop.word().toml(),
        Discipline::Codel(config) => {
            let [target, interval, max_packet, memory] = codel_pairs(config);
            inline(&[kind(QueueKind::Codel), target, interval, max_packet, memory])
        }
        Discipline::FqCodel(config) => {
            let [target, interval, max_packet, memory] = codel_pairs(&config.codel);
            inline(&[
                kind(QueueKind::FqCodel),
                target,
                interval,
                max_packet,
                memory,
                ("quantum", octets(config.quantum_bytes)),
                ("queues", Some(config.queues.toml())),
                ("exact", Some(config.exact.toml())),
                ("drop_batch", Some(config.drop_batch.toml())),
            ])
        }
        Discipline::Pie(config) => pie_toml(config, kind(QueueKind::Pie), marks),
        Discipline::Red(config) => red_toml(config, kind(QueueKind::Red)),
    }
}

fn pie_toml(config: &PieConfig, kind: (&str, Option<String>), marks: bool) -> String {
    let profile = match config.profile {
        PieProfile::Rfc => PieKind::Rfc,
        PieProfile::Linux => PieKind::Linux,
    };
    inline(&[
        kind,
        ("target", Some(config.target.toml())),
        ("update", Some(config.update.toml())),
        ("burst", Some(config.burst.toml())),
        ("profile", Some(profile.word().toml())),
        ("alpha", Some(config.alpha.toml())),
        ("beta", Some(config.beta.toml())),
        ("mark_max", marks.then(|| config.mark_max.toml())),
        ("mean_packet", octets(config.mean_packet_bytes)),
        ("decay", config.decay.map(|decay| decay.toml())),
        ("max_step", config.max_step.map(|step| step.toml())),
        ("high_delay", config.high_delay.map(|delay| delay.toml())),
        ("first_update", config.first_update.map(|update| update.toml())),
    ])
}

fn red_toml(config: &RedConfig, kind: (&str, Option<String>)) -> String {
    let by = &config.adaptation;
    let adapts = |value: String| config.adaptive.then_some(value);
    inline(&[
        kind,
        ("min", Some(config.min_packets.toml())),
        ("max", Some(config.max_packets.toml())),
        ("max_p", Some(config.max_probability.toml())),
        ("weight", Some(config.weight.toml())),
        ("gentle", Some(config.gentle.toml())),
        ("adaptive", Some(config.adaptive.toml())),
        ("adapt_every", adapts(by.every.toml())),
        ("adapt_up", adapts(by.up.toml())),
        ("adapt_down", adapts(by.down.toml())),
        ("adapt_ceiling", adapts(by.ceiling.toml())),
        ("adapt_floor", adapts(by.floor.toml())),
        ("adapt_low", adapts(by.low.toml())),
        ("adapt_high", adapts(by.high.toml())),
        ("mean_packet", octets(config.mean_packet_bytes)),
    ])
}

fn print_change(page: &mut Page, change: &Change) {
    page.heading("[[change]]");
    page.put("at", &change.at);
    page.put("link", &change.link);
    page.put_if("rate", change.what.rate.as_ref());
    page.put_if("delay", change.what.delay.as_ref());
    page.put_if("loss", change.what.loss.as_ref());
    if change.what.lose_packets > 0 {
        page.line("lose", &packets_toml(change.what.lose_packets));
    }
}

fn print_host(page: &mut Page, host: &Host) {
    page.heading("[[host]]");
    page.put("name", &host.name);
    page.put("clock_offset", &signed(host.clock.offset_ns));
    page.put("clock_drift", &format!("{} ppb", host.clock.drift_ppb));
    page.put("clock_step", &signed(host.clock.step_ns));
    page.put("clock_step_at", &host.clock.step_at);
    if let Some(access) = &host.access {
        page.heading("[host.uplink]");
        print_link(page, &access.up);
        page.heading("[host.downlink]");
        print_link(page, &access.down);
    }
}

fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", Duration::from_nanos(ns.unsigned_abs()))
}

fn print_flow(page: &mut Page, flow: &Flow) {
    page.heading("[[flow]]");
    page.put("name", &flow.name);
    page.put("count", &flow.count);
    page.word("protocol", flow.protocol.kind());
    page.line("controller", &controller_toml(&flow.controller));
    if let Some(ends) = &flow.ends {
        page.put("from", &ends.from);
        page.put("to", &ends.to);
    }
    page.put("start", &flow.start);
    page.put_if("stop", flow.stop.as_ref());
    page.put("start_jitter", &flow.start_jitter);
    page.put_if("bytes", flow.bytes.as_ref());
    page.put("packet", &Bytes(u64::from(flow.packet_bytes)));
    page.line("traffic", &traffic_toml(&flow.traffic));
    print_access(page, &flow.access);
    match &flow.protocol {
        Protocol::Utp(options) => print_utp(page, options),
        Protocol::Tcp(options) => print_tcp(page, options),
    }
}

fn print_access(page: &mut Page, access: &FlowAccess) {
    page.put_if("access_rate", access.rate.as_ref());
    page.put_if("access_delay", access.delay.as_ref());
    page.put_if("return_delay", access.return_delay.as_ref());
}

fn controller_toml(controller: &ControllerSpec) -> String {
    let name = ("name", Some(controller.name.toml()));
    let params = controller.params.iter().map(|(name, value)| (name, Some(param_toml(value))));
    inline(&core::iter::once(name).chain(params).collect::<Vec<_>>())
}

fn param_toml(value: &ParamValue) -> String {
    match value {
        ParamValue::Number(number) => number.toml(),
        ParamValue::Switch(switch) => switch.toml(),
        ParamValue::Duration(_) | ParamValue::Rate(_) | ParamValue::Bytes(_) | ParamValue::Word(_) => {
            value.to_string().toml()
        }
    }
}

fn packets_toml(packets: u64) -> String {
    format!("{packets} packets").toml()
}

fn traffic_toml(traffic: &Traffic) -> String {
    let kind = |kind: &str| ("kind", Some(kind.toml()));
    match traffic {
        Traffic::Backlogged => inline(&[kind("backlogged")]),
        Traffic::Chirp { period, first_packets, growth, max_packets } => inline(&[
            kind("chirp"),
            ("period", Some(period.toml())),
            ("first", Some(packets_toml(*first_packets))),
            ("growth", Some(growth.toml())),
            ("max", Some(packets_toml(*max_packets))),
        ]),
        Traffic::Heartbeat { period, bytes } => {
            inline(&[kind("heartbeat"), ("period", Some(period.toml())), ("bytes", Some(bytes.toml()))])
        }
        Traffic::Paced { rate, message } => {
            inline(&[kind("paced"), ("rate", Some(rate.toml())), ("message", Some(message.toml()))])
        }
        Traffic::OnOff { on, off, rate, distribution } => inline(&[
            kind("on_off"),
            ("on", Some(on.toml())),
            ("off", Some(off.toml())),
            ("rate", rate.as_ref().map(Toml::toml)),
            ("distribution", Some(distribution.word().toml())),
        ]),
    }
}

fn print_tcp(page: &mut Page, tcp: &TcpOptions) {
    page.heading("[flow.tcp]");
    page.put("sack", &tcp.sack);
    page.word("ack", tcp.ack);
    page.put_if("ack_delay", (tcp.ack == TcpAck::Delayed).then_some(&tcp.ack_delay));
    page.put("limited_transmit", &tcp.limited_transmit);
    page.put("rack", &tcp.rack);
    page.put("prr", &tcp.prr);
    page.line("initial_window", &packets_toml(u64::from(tcp.initial_window_packets)));
    page.put("min_rto", &tcp.min_rto);
    page.put("ecn", &tcp.ecn);
    page.put("timestamps", &tcp.timestamps);
    page.put_if("timestamp_tick", tcp.timestamps.then_some(&tcp.timestamp_tick));
    page.put_if("timestamp_random", tcp.timestamps.then_some(&tcp.timestamp_random));
    page.put("send_buffer", &tcp.send_buffer);
    page.put("receive_buffer", &tcp.receive_buffer);
}

fn print_utp(page: &mut Page, utp: &UtpOptions) {
    page.heading("[flow.utp]");
    page.word("ack", utp.ack);
    let delayed = utp.ack == UtpAck::Delayed;
    page.put_if("ack_delay", delayed.then_some(&utp.ack_delay));
    page.put_if("ack_packets", delayed.then_some(&utp.ack_packets));
    page.put("min_rto", &utp.min_rto);
    page.put("mtu_search", &utp.mtu_search);
    page.put("internet", &utp.internet);
    page.put("send_buffer", &utp.send_buffer);
    page.put("receive_buffer", &utp.receive_buffer);
}

fn print_record(page: &mut Page, record: &Record) {
    page.heading("[record]");
    page.put("queue", &record.queue);
    page.put("links", record.links.as_slice());
    page.put("interval", &record.interval);
    page.put("packets", &record.packets);
    page.put("events", &record.events);
    page.put("controllers", &record.controllers);
}
