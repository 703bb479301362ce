//! Any scenario that the types can hold within the format's limits prints as text that parses back to it.

use cede_cc::{ParamValue, Params};
use cede_lab::scenario::{
    Access, BucketConfig, Buffer, BurstLoss, Change, Clock, ControllerSpec, Discipline, Distribution,
    Dumbbell, Ends, Flow, FlowAccess, Graph, GraphLink, Host, Link, LinkChange, Protocol, Record, Reorder,
    Routing, Scenario, Shaper, TcpAck, TcpOptions, Topology, Traffic, UtpAck, UtpOptions, render,
};
use cede_net::{CodelConfig, FqCodelConfig, PieConfig, PieProfile, RedAdaptation, RedConfig};
use cede_units::{Bytes, Duration, Rate};
use proptest::option::of;
use proptest::prelude::*;

/// The longest time the format takes, 1000 h.
const LONGEST_NS: u64 = 1_000 * 3_600 * 1_000_000_000;

fn span() -> impl Strategy<Value = Duration> {
    (1..=LONGEST_NS).prop_map(Duration::from_nanos)
}

fn short() -> impl Strategy<Value = Duration> {
    (1..10_000_000_000_u64).prop_map(Duration::from_nanos)
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![
        (1_000_u64..=1_000).prop_map(Rate::from_mbit),
        (1_000_u64..=1_000_000_000_000).prop_map(Rate::from_bits_per_sec)
    ]
}

fn probability() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 1e-12..1.0_f64]
}

/// Buffers that hold the largest packet at any rate above.
fn buffer() -> impl Strategy<Value = Buffer> {
    prop_oneof![
        (1..=1_000_000_000_u64).prop_map(Buffer::Packets),
        (65_535..=1_u64 << 50).prop_map(|octets| Buffer::Bytes(Bytes(octets))),
        (600..=1_000_u64).prop_map(|s| Buffer::Time(Duration::from_secs(s))),
        (1e5..=1e6_f64).prop_map(Buffer::Bdp),
    ]
}

prop_compose! {
    fn burst()(enter in probability(), leave in 1e-9..=1.0_f64, loss_bad in probability(), loss_good in probability())
        -> BurstLoss { BurstLoss { enter, leave, loss_bad, loss_good } }
}

prop_compose! {
    fn reorder()(probability in probability(), extra_delay in span()) -> Reorder { Reorder { probability, extra_delay } }
}

prop_compose! {
    fn policer()(rate in rate(), burst_bytes in 65_535..=1_u64 << 50) -> BucketConfig { BucketConfig { rate, burst_bytes } }
}

prop_compose! {
    fn shaper()(peak in of(rate()), burst_bytes in 128..=1_u64 << 50) -> Shaper { Shaper { burst_bytes, peak } }
}

prop_compose! {
    fn codel()(target in short(), interval in short(), max_packet_bytes in 0..=65_535_u32, memory_intervals in 0..=1_000_000_u32)
        -> CodelConfig { CodelConfig { target, interval, max_packet_bytes, memory_intervals } }
}

prop_compose! {
    fn pie()(
        (target, update, burst, linux) in (short(), short(), short(), any::<bool>()),
        (alpha, beta, mark_max, mean_packet_bytes) in (0.0..1e3_f64, 0.0..1e3_f64, probability(), 0..=65_535_u32),
        (decay, max_step) in (of(probability()), of(probability())),
        (high_delay, first_update) in (of(short()), of(short())),
    ) -> PieConfig {
        let profile = if linux { PieProfile::Linux } else { PieProfile::Rfc };
        PieConfig {
            target, update, burst, profile, alpha, beta, mark_max, mean_packet_bytes, decay, max_step, high_delay,
            first_update,
        }
    }
}

prop_compose! {
    fn adaptation()(
        (every, up, down, ceiling, floor) in (short(), probability(), probability(), probability(), probability()),
        (one, other) in (probability(), probability()),
    ) -> RedAdaptation {
        RedAdaptation { every, up, down, ceiling, floor, low: one.min(other), high: one.max(other) }
    }
}

fn queue() -> impl Strategy<Value = Discipline> {
    let fq = (codel(), 64..=1_u32 << 20, 1..=65_536_u32, any::<bool>(), 1..=1_000_000_u32).prop_map(
        |(codel, quantum_bytes, queues, exact, drop_batch)| FqCodelConfig {
            codel,
            quantum_bytes,
            queues,
            exact,
            drop_batch,
        },
    );
    let red =
        (0.0..1e6_f64, 1.0..1e6_f64, probability(), 1e-9..=1.0_f64, any::<(bool, bool)>(), 64..=65_535_u32)
            .prop_map(|(min, span, max_probability, weight, (gentle, adaptive), mean)| RedConfig {
                min_packets: min,
                max_packets: min + span,
                max_probability,
                weight,
                gentle,
                adaptive,
                adaptation: RedAdaptation::default(),
                mean_packet_bytes: mean,
            });
    let red = (red, adaptation()).prop_map(|(red, adaptation)| {
        // What means nothing is not printed.
        if red.adaptive { RedConfig { adaptation, ..red } } else { red }
    });
    prop_oneof![
        Just(Discipline::DropTail),
        Just(Discipline::HeadDrop),
        codel().prop_map(Discipline::Codel),
        fq.prop_map(Discipline::FqCodel),
        pie().prop_map(Discipline::Pie),
        red.prop_map(Discipline::Red),
    ]
}

prop_compose! {
    fn change()(
        at in 0..LONGEST_NS,
        (rate, delay, loss, lose_packets) in (of(rate()), of(short()), of(probability()), 1..=1_000_000_000_u64),
    ) -> (Duration, LinkChange) {
        (Duration::from_nanos(at), LinkChange { rate, delay, loss, lose_packets })
    }
}

prop_compose! {
    fn link()(
        (rate, delay, buffer, bdp_rtt) in (rate(), short(), buffer(), (600..1_000_u64).prop_map(Duration::from_secs)),
        (count_in_service, jitter_reorders, jitter) in (any::<bool>(), any::<bool>(), short()),
        (loss, duplicate, loss_burst, reorder) in (probability(), probability(), of(burst()), of(reorder())),
        (queue, marks, policer, shaper, batch) in (queue(), any::<bool>(), of(policer()), of(shaper()), short()),
    ) -> Link {
        let plain = queue == Discipline::DropTail && policer.is_none() && shaper.is_none();
        let ecn = marks && !matches!(queue, Discipline::DropTail | Discipline::HeadDrop);
        let queue = match queue {
            Discipline::Pie(pie) if !ecn => Discipline::Pie(PieConfig { mark_max: PieConfig::default().mark_max, ..pie }),
            other => other,
        };
        let shaper = shaper.map(|it| Shaper { peak: it.peak.map(|peak| peak.max(rate)), ..it });
        Link {
            rate, delay, buffer, bdp_rtt: matches!(buffer, Buffer::Bdp(_)).then_some(bdp_rtt), count_in_service, queue, ecn, policer, shaper, batch, loss,
            loss_burst, reorder, duplicate, jitter, jitter_reorders,
            count_delayed: plain && matches!(buffer, Buffer::Packets(_)),
        }
    }
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let size = || (1..=1_u64 << 50).prop_map(Bytes);
    let distribution = prop_oneof![Just(Distribution::Constant), Just(Distribution::Exponential)];
    let packets = 1..=1_000_000_000_u64;
    prop_oneof![
        Just(Traffic::Backlogged),
        (span(), packets.clone(), 1.0..=1000.0_f64, packets).prop_map(
            |(period, first_packets, growth, max_packets)| {
                Traffic::Chirp { period, first_packets, growth, max_packets }
            }
        ),
        (span(), size()).prop_map(|(period, bytes)| Traffic::Heartbeat { period, bytes }),
        (rate(), size()).prop_map(|(rate, message)| Traffic::Paced { rate, message }),
        (span(), span(), of(rate()), distribution).prop_map(|(on, off, rate, distribution)| Traffic::OnOff {
            on,
            off,
            rate,
            distribution
        }),
    ]
}

prop_compose! {
    fn tcp()(
        ack in prop_oneof![Just(TcpAck::Every), Just(TcpAck::Delayed), Just(TcpAck::Linux)],
        (sack, rack, limited_transmit, prr, timestamps, ecn) in any::<(bool, bool, bool, bool, bool, bool)>(),
        (ack_delay, min_rto, timestamp_tick) in (span(), span(), span()),
        initial_window_packets in 1..=1_000_000_000_u32,
        (timestamp_random, send, receive) in (any::<bool>(), 2_000..=1_u64 << 30, 2_000..=1_u64 << 30),
    ) -> Protocol {
        // What means nothing has its default: it is not printed.
        let ack_delay = if ack == TcpAck::Delayed { ack_delay } else { Duration::from_millis(200) };
        let (timestamp_tick, timestamp_random) =
            if timestamps { (timestamp_tick, timestamp_random) } else { (Duration::from_millis(1), true) };
        Protocol::Tcp(TcpOptions {
            sack, rack: rack && sack, ack, ack_delay, limited_transmit, prr: prr && sack, initial_window_packets, min_rto,
            ecn, timestamps, timestamp_tick, timestamp_random, send_buffer: Bytes(send), receive_buffer: Bytes(receive),
        })
    }
}

prop_compose! {
    fn utp()(
        ack in prop_oneof![Just(UtpAck::Every), Just(UtpAck::Delayed)],
        (ack_delay, min_rto) in (span(), span()),
        (ack_packets, mtu_search, internet) in (1..=255_u32, any::<bool>(), any::<bool>()),
        (send, receive) in (2_000..=1_u64 << 30, 2_000..=1_u64 << 30),
    ) -> Protocol {
        let delayed = ack == UtpAck::Delayed;
        let (ack_delay, ack_packets) =
            if delayed { (ack_delay, ack_packets) } else { (Duration::from_millis(100), 2) };
        Protocol::Utp(UtpOptions {
            ack, ack_delay, ack_packets, min_rto, mtu_search, internet, send_buffer: Bytes(send), receive_buffer: Bytes(receive),
        })
    }
}

fn controller() -> impl Strategy<Value = ControllerSpec> {
    let ledbat =
        (1..=100_u64, 0.1..=1.0_f64, any::<bool>()).prop_map(|(target_ms, gain, clamp)| ControllerSpec {
            name: "ledbat".to_string(),
            params: Params::new()
                .with("target", ParamValue::Duration(Duration::from_millis(target_ms)))
                .with("gain", ParamValue::Number(gain))
                .with("clamp", ParamValue::Switch(clamp)),
        });
    let reno = Just(ControllerSpec { name: "reno".to_string(), params: Params::new() });
    prop_oneof![ledbat, reno]
}

prop_compose! {
    /// A flow without its name and ends; the run lasts 1000 h.
    fn flow()(
        (protocol, controller, traffic) in (prop_oneof![tcp(), utp()], controller(), traffic()),
        (count, packet_bytes) in (1..=50_u32, 128..=65_535_u32),
        (start, length, start_jitter) in (0..1_000_000_000_000_u64, of(1..1_000_000_000_000_u64), short()),
        bytes in of(1..=1_u64 << 50),
        (rate, delay, return_delay) in (of(rate()), of(span()), of(span())),
    ) -> Flow {
        Flow {
            name: String::new(), count, protocol, controller, ends: None, start: Duration::from_nanos(start),
            stop: length.map(|length| Duration::from_nanos(start + length)), start_jitter, bytes: bytes.map(Bytes),
            packet_bytes, traffic, access: FlowAccess { rate, delay, return_delay },
        }
    }
}

prop_compose! {
    fn clock()(
        offset_ns in -1_000_000_000_000..1_000_000_000_000_i64,
        drift_ppb in -100_000_000..=100_000_000_i64,
        step_ns in -1_000_000_000_000..1_000_000_000_000_i64,
        step_at in short(),
    ) -> Clock { Clock { offset_ns, drift_ppb, step_ns, step_at } }
}

prop_compose! {
    fn record()((queue, packets, events, controllers) in any::<(bool, bool, bool, bool)>(), interval in span())
        -> Record { Record { queue, links: Vec::new(), interval, packets, events, controllers } }
}

/// The hosts of every topology, by number.
fn host_name(index: usize) -> String {
    format!("h{index}")
}

/// A topology, the number of hosts to give clocks to, and their links in a star.
fn topology() -> impl Strategy<Value = (Topology, Vec<(Link, Link)>)> {
    let dumbbell = (link(), link(), rate(), short(), buffer()).prop_map(
        |(link, return_link, access_rate, access_delay, access_buffer)| {
            let dumbbell = Dumbbell { link, return_link, access_rate, access_delay, access_buffer };
            (Topology::Dumbbell(Box::new(dumbbell)), Vec::new())
        },
    );
    let star = prop::collection::vec((link(), link()), 2..5).prop_map(|links| (Topology::Star, links));
    let graph = (prop::collection::vec(link(), 1..5), any::<bool>(), any::<bool>()).prop_map(
        |(links, by_hops, stated)| {
            let routing = if by_hops { Routing::Hops } else { Routing::Delay };
            (Topology::Graph(chain(links, routing, stated)), Vec::new())
        },
    );
    prop_oneof![dumbbell, star, graph]
}

/// Nodes in a row, perhaps with the route from one end to the other stated.
fn chain(links: Vec<Link>, routing: Routing, stated: bool) -> Graph {
    let nodes: Vec<String> = (0..=links.len()).map(host_name).collect();
    let links = links.into_iter().enumerate().map(|(i, link)| GraphLink {
        name: format!("l{i}"),
        from: host_name(i),
        to: host_name(i + 1),
        both_ways: true,
        link,
    });
    let routes = if stated { vec![nodes.clone()] } else { Vec::new() };
    Graph { links: links.collect(), routing, routes, nodes }
}

prop_compose! {
    fn scenario()(
        (topology, star_links) in topology(),
        mut flows in prop::collection::vec(flow(), 1..4),
        clocks in prop::collection::vec(clock(), 5),
        record in record(),
        (description, seed, warmup) in (any::<String>(), 0..=i64::MAX as u64, 0..LONGEST_NS),
        changes in prop::collection::vec(change(), 0..3),
    ) -> Scenario {
        let dumbbell = matches!(topology, Topology::Dumbbell(_));
        for (i, flow) in flows.iter_mut().enumerate() {
            flow.name = format!("f{i}+");
            if !dumbbell {
                flow.ends = Some(Ends { from: host_name(i % 2), to: host_name(1 - i % 2) });
                flow.access = FlowAccess::default();
            }
        }
        let hosts = hosts(&topology, star_links, &clocks);
        let link = match &topology {
            Topology::Dumbbell(_) => "return",
            Topology::Star => "h0-up",
            Topology::Graph(_) => "l0-back",
        };
        let change = |(at, what)| Change { at, link: link.to_string(), what };
        let changes = changes.into_iter().map(change).collect();
        let mut scenario = Scenario {
            name: "any".to_string(), description, duration: Duration::from_nanos(LONGEST_NS),
            warmup: Duration::from_nanos(warmup), seed, topology, hosts, flows, changes, record, assertions: Vec::new(),
        };
        keep_below_peaks(&mut scenario);
        scenario
    }
}

/// No rate that a link changes to is above its peak.
fn keep_below_peaks(scenario: &mut Scenario) {
    let links = scenario.named_links();
    let peak = |name: &str| links.iter().find(|(other, _)| other == name)?.1.shaper?.peak;
    let peaks: Vec<Option<Rate>> = scenario.changes.iter().map(|change| peak(&change.link)).collect();
    for (change, peak) in scenario.changes.iter_mut().zip(peaks) {
        change.what.rate = change.what.rate.map(|rate| peak.map_or(rate, |peak| rate.min(peak)));
    }
}

fn hosts(topology: &Topology, star_links: Vec<(Link, Link)>, clocks: &[Clock]) -> Vec<Host> {
    let host = |name: String, clock: &Clock, access| Host { name, clock: *clock, access };
    match topology {
        Topology::Dumbbell(_) => vec![host("f0+-receiver".to_string(), &clocks[0], None)],
        Topology::Graph(_) => vec![host(host_name(1), &clocks[0], None)],
        Topology::Star => {
            let links = star_links.into_iter().map(|(up, down)| Some(Box::new(Access { up, down })));
            links
                .zip(clocks)
                .enumerate()
                .map(|(i, (access, clock))| host(host_name(i), clock, access))
                .collect()
        }
    }
}

proptest! {
    #[test]
    fn what_is_printed_parses_back(scenario in scenario()) {
        let printed = scenario.to_toml();
        match Scenario::parse("printed", &printed) {
            Ok(again) => {
                let second = again.to_toml();
                let changed: Vec<_> = printed.lines().zip(second.lines()).filter(|(a, b)| a != b).collect();
                prop_assert!(changed.is_empty(), "{changed:?}");
                prop_assert_eq!(again.content_hash(), scenario.content_hash());
                prop_assert_eq!(again, scenario);
            }
            Err(problems) => return Err(TestCaseError::fail(format!("{}\nof\n{printed}", render(&problems)))),
        }
    }
}
