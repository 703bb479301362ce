//! From a swarm to a network: hosts, access links, and what lies between.

use super::model::{Arrival, Device, Group, Links, Swarm};
use cede_net::{Impairments, LinkConfig, QueueLimit, Shaper};
use cede_sim::{Clock, Topology};
use cede_units::{Duration, Instant, Rate, Stream};

/// A rate at which a packet takes no time.
pub(crate) const IMMEDIATE: Rate = Rate::from_bits_per_sec(1_000_000_000_000_000);
/// netem's limit in the P2P 2010 study.
const DEVICE_PACKETS: u32 = 100_000;

/// A peer's place in the swarm.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) name: String,
    pub(super) group: usize,
    pub(super) arrives_at: Instant,
}

/// The network of a swarm.
pub(super) struct Layout {
    pub(super) topology: Topology,
    /// Peers in the order of their hosts' numbers.
    pub(super) seats: Vec<Seat>,
    /// Access links by name, with their rates: from each peer that has one.
    pub(super) uplinks: Vec<(String, Rate)>,
    /// The same to each peer.
    pub(super) downlinks: Vec<(String, Rate)>,
}

impl Layout {
    pub(super) fn of(swarm: &Swarm) -> Self {
        let mut layout =
            Self { topology: Topology::new(), seats: Vec::new(), uplinks: Vec::new(), downlinks: Vec::new() };
        layout.lay_between(swarm);
        for (number, group) in swarm.groups.iter().enumerate() {
            let arrivals = arrivals(group, swarm.seed);
            for (member, &arrives_at) in arrivals.iter().enumerate() {
                let name = name_of(group, number, member as u32);
                let shared = member as u32 / group.per_link.max(1) * group.per_link.max(1);
                layout.lay_access(swarm, group, (number, &name_of(group, number, shared)), &name);
                layout.seats.push(Seat { name, group: number, arrives_at });
            }
        }
        layout.seats.sort_by(|a, b| a.name.cmp(&b.name));
        layout
    }

    /// The access links of a peer; where it has none, it stands at its group's door. Several peers of one host share the
    /// link from the first of them.
    fn lay_access(&mut self, swarm: &Swarm, group: &Group, (number, first): (usize, &str), name: &str) {
        self.topology.host(name, Clock::default());
        let (out, door) = doors(swarm, group, number);
        let mut from = out.clone();
        if let Some(rate) = group.uplink {
            let link = format!("{first}/up");
            if first == name {
                let config = shaped(LinkConfig::new(rate, group.latency, group.buffer), group);
                self.topology.link(&link, name, &out, config);
                self.uplinks.push((link, rate));
            }
            from = first.to_string();
        } else if !group.latency.is_zero() {
            let config = LinkConfig::new(IMMEDIATE, group.latency, QueueLimit::Unlimited);
            self.topology.link(&format!("{name}/up"), name, &out, config);
            from = name.to_string();
        }
        let mut arrives = door.clone();
        if group.downlink.is_some() || group.loss > 0.0 {
            let rate = group.downlink.unwrap_or(IMMEDIATE);
            let is_limited = rate != IMMEDIATE;
            let buffer = group.downlink_buffer.unwrap_or(group.buffer);
            let limit = if is_limited { buffer } else { QueueLimit::Unlimited };
            let config = lossy(LinkConfig::new(rate, group.latency, limit), group.loss);
            let config = if is_limited { shaped(config, group) } else { config };
            let link = format!("{name}/down");
            // No link leads on from there: who is near to both of two others does not carry what these say to each other.
            arrives = format!("{name}/in");
            self.topology.link(&link, &door, &arrives, config);
            // What takes its time and has no rate is no access link, and has no queue to tell of.
            self.downlinks.extend(is_limited.then_some((link, rate)));
        }
        self.topology.stand(name, &from, &arrives);
    }

    /// What lies between the doors of groups or machines.
    fn lay_between(&mut self, swarm: &Swarm) {
        match &swarm.links {
            Links::Homogeneous { rtt, loss } if !needs_nothing(swarm, *rtt, *loss) => {
                let config = lossy(LinkConfig::new(IMMEDIATE, *rtt / 2, QueueLimit::Unlimited), *loss);
                self.topology.link("between", "out", "in", config);
            }
            Links::Homogeneous { .. } => {}
            Links::Matrix { rtt, loss } => {
                for (i, row) in rtt.iter().enumerate() {
                    for (j, &rtt) in row.iter().enumerate() {
                        let config = lossy(LinkConfig::new(IMMEDIATE, rtt / 2, QueueLimit::Unlimited), *loss);
                        let (from, to) = (format!("as{i}/out"), format!("as{j}/in"));
                        self.topology.link(&format!("as{i}-as{j}"), &from, &to, config);
                    }
                }
            }
            Links::Devices(devices) => {
                for (machine, device) in devices.iter().enumerate() {
                    self.lay_device(machine, device);
                }
            }
        }
    }

    fn lay_device(&mut self, machine: usize, device: &Device) {
        let egress = |delay| LinkConfig::new(IMMEDIATE, delay, QueueLimit::Packets(DEVICE_PACKETS));
        let ingress = |delay| lossy(egress(delay), device.loss);
        let node = |name: &str| format!("m{machine}/{name}");
        let mut link = |name: &str, from: &str, to: &str, config| {
            self.topology.link(&node(name), from, to, config);
        };
        link("eth-out", &node("out"), "wire", egress(device.ethernet));
        link("eth-in", "wire", &node("in"), ingress(device.ethernet));
        link("lo-out", &node("out"), &node("lo"), egress(device.loopback));
        link("lo-in", &node("lo"), &node("in"), ingress(device.loopback));
        // What is for the same machine does not leave it, however slow its loopback.
        self.topology.last_resort(&node("eth-out"));
    }
}

fn name_of(group: &Group, number: usize, member: u32) -> String {
    format!("{number:02}-{}-{member:05}", group.name)
}

/// Where a group's packets set out and where they come in.
fn doors(swarm: &Swarm, group: &Group, number: usize) -> (String, String) {
    match &swarm.links {
        Links::Homogeneous { rtt, loss } if needs_nothing(swarm, *rtt, *loss) => ("hub".into(), "hub".into()),
        Links::Homogeneous { .. } => ("out".into(), "in".into()),
        Links::Matrix { .. } => (format!("as{number}/out"), format!("as{number}/in")),
        Links::Devices(_) => (format!("m{}/out", group.machine), format!("m{}/in", group.machine)),
    }
}

/// No link is needed between peers that all have access links, where it would do nothing.
fn needs_nothing(swarm: &Swarm, rtt: Duration, loss: f64) -> bool {
    rtt.is_zero() && loss == 0.0 && swarm.groups.iter().all(|group| group.uplink.is_some())
}

/// The link as a group's token bucket, where it has one.
fn shaped(mut config: LinkConfig, group: &Group) -> LinkConfig {
    let burst_bytes = group.burst_bytes;
    config.control.shaper = (burst_bytes > 0).then_some(Shaper { burst_bytes, peak: None });
    config
}

fn lossy(config: LinkConfig, loss: f64) -> LinkConfig {
    LinkConfig { impairments: Impairments { loss, ..Impairments::NONE }, ..config }
}

/// When each of a group's peers comes.
fn arrivals(group: &Group, seed: u64) -> Vec<Instant> {
    let mut random = Stream::named(seed, &format!("group {}/arrivals", group.name));
    let count = group.count as usize;
    match &group.arrival {
        Arrival::Together { at, within } => (0..count)
            .map(|_| Instant::ZERO + *at + Duration::from_secs_f64(within.as_secs_f64() * random.unit()))
            .collect(),
        Arrival::Poisson { from, gap } => (0..count)
            .scan(Instant::ZERO + *from, |now, _| {
                *now += Duration::from_secs_f64(random.exponential(gap.as_secs_f64()));
                Some(*now)
            })
            .collect(),
        Arrival::Trace(times) => (0..count)
            .map(|member| times.get(member).or(times.last()).copied().unwrap_or(Duration::ZERO))
            .map(|at| Instant::ZERO + at)
            .collect(),
    }
}
