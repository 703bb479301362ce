//! From a scenario to a network: which hosts, links and routes the simulated world is made of.

use crate::meter::FIRST_PORT;
use crate::scenario::{self, Access, Buffer, Dumbbell, Flow, Graph, Limit, Link, Routing, Scenario, Topology};
use cede_net::{Address, GilbertElliott, HostId, Impairments, LinkConfig, QueueLimit, Reordering};
use cede_sim::{Clock, LinkId};
use cede_units::{Duration, Instant, Rate, Stream};
use std::collections::BTreeMap;

/// A flow of the network: one of the `count` replicates of a scenario's flow.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Its name: the scenario's, with a number where there are several.
    pub name: String,
    /// Which of the scenario's flows it is a replicate of.
    pub flow: usize,
    /// Its number, in the order of names: decides its port and its place in the meters.
    pub number: usize,
    /// When it opens its connection, jitter included.
    pub start: Instant,
    /// The address that sends data.
    pub sender: Address,
    /// The address that receives them.
    pub receiver: Address,
}

/// The network of a scenario.
#[derive(Clone, Debug)]
pub struct Network {
    /// Hosts, links and routes.
    pub topology: cede_sim::Topology,
    /// The flows, in the order of the scenario.
    pub flows: Vec<FlowPlan>,
    /// The links that are metered; the first is the bottleneck.
    pub watched: Vec<Watched>,
}

/// A link under study.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its name.
    pub name: String,
    /// Its number.
    pub link: LinkId,
    /// Its rate.
    pub rate: Rate,
    /// How many packets of 1500 octets its buffer holds, for the queue index.
    pub buffer_packets: f64,
}

/// Octets of a full-size packet, in which a buffer given in octets is counted for the queue index.
const FULL_PACKET_BYTES: f64 = 1500.0;

impl Network {
    /// The network of `scenario`, with starts jittered as its seed says.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Self {
        let mut plan = Planner { scenario, topology: cede_sim::Topology::new(), watched: Vec::new() };
        let mut flows = plan.name_flows();
        plan.lay(&mut flows);
        plan.finish(flows)
    }
}

/// A flow before its hosts have numbers.
struct Named {
    name: String,
    flow: usize,
    from: String,
    to: String,
}

struct Planner<'a> {
    scenario: &'a Scenario,
    topology: cede_sim::Topology,
    watched: Vec<(String, Link, Option<Duration>)>,
}

impl Planner<'_> {
    fn name_flows(&self) -> Vec<Named> {
        let numbered = self.scenario.flows.iter().enumerate();
        numbered.flat_map(|(index, flow)| replicate_names(flow).map(move |name| named(index, flow, name))).collect()
    }

    fn lay(&mut self, flows: &mut [Named]) {
        match &self.scenario.topology {
            Topology::Dumbbell(dumbbell) => self.lay_dumbbell(dumbbell, flows),
            Topology::Star => self.lay_star(),
            Topology::Graph(graph) => self.lay_graph(graph, flows),
        }
    }

    fn host(&mut self, name: &str, declared: &str) {
        let lowest = self.scenario.hosts.iter().map(|host| host.clock.offset_ns).min().unwrap_or(0).min(0);
        let host = self.scenario.hosts.iter().find(|host| host.name == declared || host.name == name);
        let clock = host.map(|host| host.clock).unwrap_or_default();
        // Only differences between clocks mean anything, so the slowest one is put at zero.
        let offset_ns = clock.offset_ns.abs_diff(lowest);
        self.topology.host(name, Clock { offset_ns, drift_ppb: clock.drift_ppb });
    }

    fn link(&mut self, name: &str, from: &str, to: &str, link: &Link, rtt: Option<Duration>) {
        self.topology.link(name, from, to, physics(link, rtt));
    }

    fn lay_dumbbell(&mut self, dumbbell: &Dumbbell, flows: &[Named]) {
        let rtt = Some(dumbbell.base_rtt());
        self.link(BOTTLENECK, "left", "right", &dumbbell.link, rtt);
        self.link("return", "right", "left", &dumbbell.return_link, rtt);
        self.watched.push((BOTTLENECK.to_string(), dumbbell.link.clone(), rtt));
        for named in flows {
            let access = self.scenario.flows[named.flow].access;
            let rate = access.rate.unwrap_or(dumbbell.access_rate);
            let wire = |delay: Option<Duration>, rate| {
                access_wire(rate, delay.unwrap_or(dumbbell.access_delay), dumbbell.access_buffer)
            };
            let base = &self.scenario.flows[named.flow].name;
            let (sender, receiver) = (&named.from, &named.to);
            self.host(sender, &format!("{base}-sender"));
            self.host(receiver, &format!("{base}-receiver"));
            let legs = [
                (format!("{sender} up"), sender.as_str(), "left", wire(access.delay, rate)),
                (format!("{sender} down"), "left", sender.as_str(), wire(access.return_delay, rate)),
                (format!("{receiver} down"), "right", receiver.as_str(), wire(None, dumbbell.access_rate)),
                (format!("{receiver} up"), receiver.as_str(), "right", wire(None, dumbbell.access_rate)),
            ];
            for (name, from, to, link) in legs {
                self.link(&name, from, to, &link, rtt);
            }
        }
    }

    fn lay_star(&mut self) {
        let hosts: Vec<(String, Access)> = self
            .scenario
            .hosts
            .iter()
            .filter_map(|host| Some((host.name.clone(), (**host.access.as_ref()?).clone())))
            .collect();
        for (name, access) in hosts {
            self.host(&name, &name);
            for (label, from, to, link) in
                [("up", name.as_str(), "hub", &access.up), ("down", "hub", name.as_str(), &access.down)]
            {
                let label = format!("{name} {label}");
                self.link(&label, from, to, link, None);
                self.watched.push((label, link.clone(), None));
            }
        }
    }

    fn lay_graph(&mut self, graph: &Graph, flows: &[Named]) {
        for named in flows {
            self.host(&named.from, &named.from);
            self.host(&named.to, &named.to);
        }
        for edge in &graph.links {
            self.link(&edge.name, &edge.from, &edge.to, &edge.link, None);
            self.watched.push((edge.name.clone(), edge.link.clone(), None));
            if edge.both_ways {
                self.link(&format!("{}-back", edge.name), &edge.to, &edge.from, &edge.link, None);
            }
        }
        self.lay_routes(graph);
    }

    fn lay_routes(&mut self, graph: &Graph) {
        for route in &graph.routes {
            let links: Option<Vec<String>> = route.windows(2).map(|pair| link_between(graph, pair)).collect();
            if let (Some(links), Some(from), Some(to)) = (links, route.first(), route.last()) {
                let links: Vec<&str> = links.iter().map(String::as_str).collect();
                self.topology.route(from, to, &links);
            }
        }
        if graph.routing == Routing::Hops {
            self.topology.route_by_hops();
        }
    }

    fn finish(self, flows: Vec<Named>) -> Network {
        let order: BTreeMap<String, usize> = {
            let mut names: Vec<&String> = flows.iter().map(|flow| &flow.name).collect();
            names.sort_unstable();
            names.into_iter().cloned().zip(0..).collect()
        };
        let host = |name: &str| self.topology.host_id(name).unwrap_or(HostId(u32::MAX));
        let plans = flows.into_iter().map(|named| {
            let number = order[&named.name];
            let port = FIRST_PORT + number as u16;
            FlowPlan {
                start: self.start_of(&named),
                sender: Address::new(host(&named.from), port),
                receiver: Address::new(host(&named.to), port),
                name: named.name,
                flow: named.flow,
                number,
            }
        });
        let flows = plans.collect();
        let watched = self.watched.iter().filter_map(|(name, link, rtt)| {
            Some(Watched {
                name: name.clone(),
                link: self.topology.link_id(name)?,
                rate: link.rate,
                buffer_packets: buffer_packets(link, *rtt),
            })
        });
        Network { flows, watched: watched.collect(), topology: self.topology }
    }

    fn start_of(&self, named: &Named) -> Instant {
        let flow = &self.scenario.flows[named.flow];
        let mut random = Stream::named(self.scenario.seed, &format!("flow {}/start", named.name));
        let jitter = random.below(flow.start_jitter.as_nanos().saturating_add(1));
        Instant::ZERO + flow.start + Duration::from_nanos(jitter)
    }
}

/// The name of a dumbbell's bottleneck.
pub const BOTTLENECK: &str = "bottleneck";

/// The names of a flow's replicates.
fn replicate_names(flow: &Flow) -> impl Iterator<Item = String> + '_ {
    (1..=flow.count).map(|index| match flow.count {
        1 => flow.name.clone(),
        _ => format!("{}-{index}", flow.name),
    })
}

fn named(index: usize, flow: &Flow, name: String) -> Named {
    let (from, to) = match &flow.ends {
        Some(ends) => (ends.from.clone(), ends.to.clone()),
        None => (format!("{name}-sender"), format!("{name}-receiver")),
    };
    Named { name, flow: index, from, to }
}

/// The link of a graph from one node to the next.
fn link_between(graph: &Graph, pair: &[String]) -> Option<String> {
    graph.links.iter().find_map(|edge| {
        let forward = edge.from == pair[0] && edge.to == pair[1];
        let backward = edge.both_ways && edge.to == pair[0] && edge.from == pair[1];
        match (forward, backward) {
            (true, _) => Some(edge.name.clone()),
            (_, true) => Some(format!("{}-back", edge.name)),
            _ => None,
        }
    })
}

/// An access link: fast, lossless, and with room enough.
fn access_wire(rate: Rate, delay: Duration, buffer: Buffer) -> Link {
    Link {
        rate,
        delay,
        buffer,
        bdp_rtt: None,
        count_in_service: false,
        queue: scenario::QueueDiscipline::DropTail,
        loss: 0.0,
        loss_burst: None,
        reorder: None,
        duplicate: 0.0,
        jitter: Duration::ZERO,
        jitter_reorders: false,
    }
}

fn physics(link: &Link, rtt: Option<Duration>) -> LinkConfig {
    LinkConfig {
        rate: link.rate,
        delay: link.delay,
        limit: match link.limit(rtt) {
            Some(Limit::Packets(packets)) => QueueLimit::Packets(u32::try_from(packets).unwrap_or(u32::MAX)),
            Some(Limit::Bytes(bytes)) => QueueLimit::Bytes(bytes),
            None => QueueLimit::Unlimited,
        },
        count_in_service: link.count_in_service,
        impairments: Impairments {
            loss: link.loss,
            burst_loss: link.loss_burst.map(|burst| GilbertElliott {
                good_to_bad: burst.enter,
                bad_to_good: burst.leave,
                loss_in_good: burst.loss_good,
                loss_in_bad: burst.loss_bad,
            }),
            reordering: link.reorder.map(|rule| Reordering {
                probability: rule.probability,
                extra_delay: rule.extra_delay,
            }),
            duplication: link.duplicate,
            jitter: link.jitter,
            jitter_reorders: link.jitter_reorders,
        },
    }
}

fn buffer_packets(link: &Link, rtt: Option<Duration>) -> f64 {
    match link.limit(rtt) {
        Some(Limit::Packets(packets)) => packets as f64,
        Some(Limit::Bytes(bytes)) => bytes as f64 / FULL_PACKET_BYTES,
        None => f64::INFINITY,
    }
}
