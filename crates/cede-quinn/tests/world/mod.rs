//! quinn-proto's endpoints in the simulated world: QUIC flows that share one bottleneck, in virtual time.

// The tests and the example each use a part of it.
#![allow(dead_code)]

mod host;

use cede_net::{HostId, LinkConfig, QueueLimit};
use cede_sim::{Clock, LinkId, Observer, Topology};
use cede_units::{Duration, Instant, Rate};
pub use host::{Flow, Role};
use host::{Identity, QuicHost};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Received octets are counted in intervals of this length.
pub const INTERVAL: Duration = Duration::from_millis(250);

/// The battery's bottleneck for giving way: 20 Mbit/s, 40 ms, 200 ms of buffer.
#[derive(Clone, Copy)]
pub struct Path {
    pub rate: Rate,
    pub rtt: Duration,
    pub buffer_bytes: u64,
    /// The part of packets that is lost at random.
    pub loss: f64,
    /// Of which packets are lost.
    pub seed: u64,
}

impl Default for Path {
    fn default() -> Self {
        let rate = Rate::from_mbit(20);
        let buffer_bytes = rate.bytes_in(Duration::from_millis(200));
        Self { rate, rtt: Duration::from_millis(40), buffer_bytes, loss: 0.0, seed: 1 }
    }
}

/// Queueing delays at the bottleneck, by time.
#[derive(Default)]
struct Queue {
    bottleneck: Option<LinkId>,
    waits: Vec<(Instant, Duration)>,
    dropped: u64,
}

impl Observer for Queue {
    fn watches(&self, link: LinkId) -> bool {
        self.bottleneck == Some(link)
    }

    fn dequeued(&mut self, _: LinkId, _: &cede_net::Datagram, event: &cede_net::Dequeue) {
        self.waits.push((event.at, event.waited));
    }

    fn dropped(&mut self, _: LinkId, _: &cede_net::Datagram, _: Instant, _: cede_net::DropCause) {
        self.dropped += 1;
    }
}

/// What a run showed.
pub struct Seen {
    /// Octets that each receiver's application read, by interval.
    received: BTreeMap<&'static str, Vec<u64>>,
    waits: Vec<(Instant, Duration)>,
    pub dropped: u64,
    /// The name of the controller that each sender had in the end, where it is one of ours.
    pub controllers: BTreeMap<&'static str, &'static str>,
    /// The window that each sender had in the end, in octets.
    pub windows: BTreeMap<&'static str, u64>,
}

impl Seen {
    /// A flow's mean goodput between two times in seconds.
    pub fn rate_mbps(&self, flow: &str, from_s: f64, until_s: f64) -> f64 {
        let per_s = 1.0 / INTERVAL.as_secs_f64();
        let (from, until) = ((from_s * per_s) as usize, (until_s * per_s) as usize);
        let octets: u64 = self.received[flow].iter().take(until).skip(from).sum();
        octets as f64 * 8.0 / 1e6 / (until_s - from_s)
    }

    /// Seconds after `from_s` until two seconds begin in which a flow's goodput is `mbps`, as the battery of `cede check`
    /// counts; infinite if it never is.
    pub fn time_to_reach_s(&self, flow: &str, mbps: f64, from_s: f64) -> f64 {
        let step_s = INTERVAL.as_secs_f64();
        let until_s = self.received[flow].len() as f64 * step_s;
        let starts = (0..).map(|step| from_s + f64::from(step) * step_s);
        starts
            .take_while(|at_s| at_s + 2.0 <= until_s)
            .find(|at_s| self.rate_mbps(flow, *at_s, at_s + 2.0) >= mbps)
            .map_or(f64::INFINITY, |at_s| at_s - from_s)
    }

    /// The queueing delay at a percentile of the packets that left the bottleneck between two times, in milliseconds.
    pub fn queue_ms(&self, percent: f64, from_s: f64, until_s: f64) -> f64 {
        let inside = |at: &Instant| (from_s..until_s).contains(&at.as_secs_f64());
        let mut waits: Vec<f64> =
            self.waits.iter().filter(|(at, _)| inside(at)).map(|(_, wait)| wait.as_millis_f64()).collect();
        waits.sort_by(f64::total_cmp);
        let place = (percent / 100.0 * waits.len() as f64) as usize;
        waits.get(place.min(waits.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    }
}

/// Runs flows through the bottleneck for so long.
pub fn run(path: Path, flows: Vec<Flow>, seconds: u64) -> Seen {
    let one_way = Duration::from_nanos(path.rtt.as_nanos() / 2);
    let fast = LinkConfig::new(Rate::from_mbit(10_000), Duration::ZERO, QueueLimit::Unlimited);
    let mut topology = Topology::new();
    for flow in &flows {
        for (host, middle) in [(sender(flow.name), "a"), (receiver(flow.name), "b")] {
            topology.host(&host, Clock::default());
            topology.link(&format!("{host} up"), &host, middle, fast);
            topology.link(&format!("{host} down"), middle, &host, fast);
        }
    }
    let mut bottleneck = LinkConfig::new(path.rate, one_way, QueueLimit::Bytes(path.buffer_bytes));
    bottleneck.impairments.loss = path.loss;
    topology.link("bottleneck", "a", "b", bottleneck);
    topology.link("return", "b", "a", LinkConfig { delay: one_way, ..fast });

    let identity = Arc::new(Identity::new());
    let base = std::time::Instant::now();
    let id = |name: &str| topology.host_id(name).expect("it was added");
    let mut roles: BTreeMap<HostId, Role> = BTreeMap::new();
    let mut receivers = Vec::new();
    for flow in flows {
        let (from, to) = (id(&sender(flow.name)), id(&receiver(flow.name)));
        receivers.push((flow.name, from, to));
        roles.insert(to, Role::Receiver);
        roles.insert(from, Role::Sender { to, flow });
    }
    let observer = Queue { bottleneck: topology.link_id("bottleneck"), ..Queue::default() };
    let hosts = |host: HostId, _: &str| {
        let role = roles.remove(&host).expect("each host has a role");
        QuicHost::new(host, role, base, &identity)
    };
    let mut world = topology.build(path.seed, observer, hosts).expect("the topology hangs together");
    world.run_until(Instant::from_secs(seconds));
    let mut received = BTreeMap::new();
    let (mut controllers, mut windows) = (BTreeMap::new(), BTreeMap::new());
    for (name, from, to) in receivers {
        let mut intervals = world.host(to).received().to_vec();
        intervals.resize((seconds as f64 / INTERVAL.as_secs_f64()) as usize, 0);
        received.insert(name, intervals);
        controllers.extend(world.host(from).controller().map(|controller| (name, controller)));
        windows.extend(world.host(from).window_bytes().map(|bytes| (name, bytes)));
    }
    let queue = world.into_observer();
    Seen { received, waits: queue.waits, dropped: queue.dropped, controllers, windows }
}

fn sender(flow: &str) -> String {
    format!("{flow} sender")
}

fn receiver(flow: &str) -> String {
    format!("{flow} receiver")
}
