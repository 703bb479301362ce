//! From a scenario to a network: which hosts, links and routes the simulated world is made of.

use crate::ports::FIRST_PORT;
use crate::scenario::{
    self, Access, BOTTLENECK, Buffer, Dumbbell, Graph, Instance, Limit, Link, RETURN, Scenario, Topology,
};
use cede_net::{
    Address, Discipline, GilbertElliott, HostId, Impairments, LinkChange, LinkConfig, QueueLimit, Reordering,
    TrafficControl,
};
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
    /// What changes while the world runs, in the order of time.
    pub events: Vec<(Instant, Event)>,
}

/// Something that changes while the world runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event {
    /// A link changes.
    Link(LinkId, LinkChange),
    /// A host's clock is set forward by so many nanoseconds, or back.
    Clock(HostId, i64),
}

/// A link under study.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its name.
    pub name: String,
    /// Its number.
    pub link: LinkId,
    /// Its rates and since when it has them, in the order of time: the first from the beginning of the run.
    pub rates: Vec<(Instant, Rate)>,
    /// What its buffer holds, for the queue index; none where it has no limit.
    pub limit: Option<Limit>,
}

impl Watched {
    /// Its rate at a time.
    #[must_use]
    pub fn rate_at(&self, at: Instant) -> Rate {
        let since = self.rates.iter().rev().find(|&&(since, _)| since <= at);
        since.map_or(Rate::default(), |&(_, rate)| rate)
    }

    /// Its mean rate from one time to a later one, in Mbit/s.
    #[must_use]
    pub fn mean_rate_mbps(&self, from: Instant, until: Instant) -> f64 {
        let ends = self.rates.iter().skip(1).map(|&(since, _)| since).chain([until]);
        let part = |(&(since, rate), end): (&(Instant, Rate), Instant)| {
            rate.as_mbit_f64() * end.min(until).since(since.max(from)).as_nanos() as f64
        };
        let sum: f64 = self.rates.iter().zip(ends).map(part).sum();
        sum / (until.since(from).as_nanos() as f64).max(1.0)
    }
}

impl Network {
    /// The network of `scenario`, with starts jittered as its seed says.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Self {
        let mut planner = Planner::new(scenario);
        let flows = scenario.instances();
        match &scenario.topology {
            Topology::Dumbbell(dumbbell) => planner.lay_dumbbell(dumbbell, &flows),
            Topology::Star => planner.lay_star(),
            Topology::Graph(graph) => planner.lay_graph(graph, &flows),
        }
        planner.finish(&flows)
    }
}

struct Planner<'a> {
    scenario: &'a Scenario,
    /// The offset of the clock that is furthest behind, where one is behind at all.
    lowest_offset_ns: i64,
    topology: cede_sim::Topology,
    watched: Vec<(String, Link, Option<Duration>)>,
    /// Clocks that are set, by host, time and nanoseconds.
    steps: Vec<(String, Instant, i64)>,
}

impl<'s> Planner<'s> {
    fn new(scenario: &'s Scenario) -> Self {
        let clocks = scenario.hosts.iter().map(|host| host.clock);
        let offsets = clocks.map(|clock| clock.offset_ns.saturating_add(clock.step_ns.min(0)));
        let lowest_offset_ns = offsets.min().unwrap_or(0).min(0);
        let topology = cede_sim::Topology::new();
        Self { scenario, lowest_offset_ns, topology, watched: Vec::new(), steps: Vec::new() }
    }

    fn host(&mut self, name: &str) {
        let clock = self.scenario.clock(name);
        let known = self.steps.iter().any(|(stepped, ..)| stepped == name);
        if clock.step_ns != 0 && !known {
            self.steps.push((name.to_string(), Instant::ZERO + clock.step_at, clock.step_ns));
        }
        // Only differences between clocks mean anything, so the one that is furthest behind is put at zero.
        let offset_ns = clock.offset_ns.abs_diff(self.lowest_offset_ns);
        self.topology.host(name, Clock { offset_ns, drift_ppb: clock.drift_ppb });
    }

    fn link(&mut self, name: &str, from: &str, to: &str, link: &Link, rtt: Option<Duration>) {
        self.topology.link(name, from, to, physics(link, rtt));
    }

    fn lay_dumbbell(&mut self, dumbbell: &Dumbbell, flows: &[Instance<'_>]) {
        let rtt = Some(dumbbell.base_rtt());
        self.link(BOTTLENECK, "left", "right", &dumbbell.link, rtt);
        self.link(RETURN, "right", "left", &dumbbell.return_link, rtt);
        self.watched.push((BOTTLENECK.to_string(), dumbbell.link.clone(), rtt));
        if self.scenario.looks_at(RETURN) {
            self.watched.push((RETURN.to_string(), dumbbell.return_link.clone(), rtt));
        }
        for instance in flows {
            self.lay_ends(dumbbell, instance, rtt);
        }
    }

    /// The two hosts of a dumbbell's flow, with their access links and routes.
    fn lay_ends(&mut self, dumbbell: &Dumbbell, instance: &Instance<'_>, rtt: Option<Duration>) {
        let access = instance.flow.access;
        let rate = access.rate.unwrap_or(dumbbell.access_rate);
        let wire = |delay: Option<Duration>, rate| {
            access_wire(rate, delay.unwrap_or(dumbbell.access_delay), dumbbell.access_buffer)
        };
        let (sender, receiver) = (&instance.sender, &instance.receiver);
        self.host(sender);
        self.host(receiver);
        let legs = [
            (format!("{sender} up"), sender.as_str(), "left", wire(access.delay, rate)),
            (format!("{sender} down"), "left", sender.as_str(), wire(access.return_delay, rate)),
            (format!("{receiver} down"), "right", receiver.as_str(), wire(None, dumbbell.access_rate)),
            (format!("{receiver} up"), receiver.as_str(), "right", wire(None, dumbbell.access_rate)),
        ];
        for (name, from, to, link) in &legs {
            self.link(name, from, to, link, rtt);
        }
        // There is but one way; stated, it need not be searched among thousands of hosts.
        let [up, down_back, down, up_back] = legs.each_ref().map(|(name, ..)| name.as_str());
        self.topology.route(sender, receiver, &[up, BOTTLENECK, down]);
        self.topology.route(receiver, sender, &[up_back, RETURN, down_back]);
    }

    fn lay_star(&mut self) {
        let hosts: Vec<(String, Access)> = self
            .scenario
            .hosts
            .iter()
            .filter_map(|host| Some((host.name.clone(), (**host.access.as_ref()?).clone())))
            .collect();
        for (name, access) in hosts {
            self.host(&name);
            for (label, from, to, link) in
                [("up", name.as_str(), "hub", &access.up), ("down", "hub", name.as_str(), &access.down)]
            {
                let label = format!("{name}-{label}");
                self.link(&label, from, to, link, None);
                self.watched.push((label, link.clone(), None));
            }
        }
    }

    fn lay_graph(&mut self, graph: &Graph, flows: &[Instance<'_>]) {
        let links = graph.directed();
        for directed in &links {
            self.link(&directed.name, directed.from, directed.to, directed.link, None);
            self.watched.push((directed.name.clone(), directed.link.clone(), None));
        }
        for instance in flows {
            self.host(&instance.sender);
            self.host(&instance.receiver);
            let ends = [(&instance.sender, &instance.receiver), (&instance.receiver, &instance.sender)];
            for (from, to) in ends {
                // A parsed scenario has a route for every flow, both ways.
                let route = graph.route(from, to).unwrap_or_default();
                let names: Vec<&str> = route.iter().map(|&link| links[link].name.as_str()).collect();
                self.topology.route(from, to, &names);
            }
        }
    }

    fn finish(self, instances: &[Instance<'_>]) -> Network {
        let numbered = |(name, number)| (name, HostId(number));
        let hosts: BTreeMap<&str, HostId> = self.topology.host_names().zip(0..).map(numbered).collect();
        let host = |name: &str| hosts.get(name).copied().unwrap_or(HostId(u32::MAX));
        let numbered = |(index, flow): (usize, &'s scenario::Flow)| (flow.name.as_str(), index);
        let places: BTreeMap<&str, usize> = self.scenario.flows.iter().enumerate().map(numbered).collect();
        let place = |wanted: &scenario::Flow| places.get(wanted.name.as_str()).copied();
        let plan = |(number, instance): (usize, &Instance<'_>)| {
            let port = FIRST_PORT + number as u16;
            FlowPlan {
                start: self.start_of(instance),
                sender: Address::new(host(&instance.sender), port),
                receiver: Address::new(host(&instance.receiver), port),
                name: instance.name.clone(),
                flow: place(instance.flow).unwrap_or(0),
                number,
            }
        };
        let mut flows: Vec<FlowPlan> = instances.iter().enumerate().map(plan).collect();
        flows.sort_by_key(|plan| plan.flow);
        let events = self.events(host);
        let watched = self.watched.iter().filter_map(|(name, link, rtt)| {
            let id = self.topology.link_id(name)?;
            let later = events.iter().filter_map(|&(at, event)| match event {
                Event::Link(changed, change) if changed == id => Some((at, change.rate?)),
                _ => None,
            });
            let rates = core::iter::once((Instant::ZERO, link.rate)).chain(later).collect();
            Some(Watched { name: name.clone(), link: id, rates, limit: link.limit(*rtt) })
        });
        let watched = watched.collect();
        Network { flows, watched, events, topology: self.topology }
    }

    /// What changes while the world runs, in the order of time.
    fn events(&self, host: impl Fn(&str) -> HostId) -> Vec<(Instant, Event)> {
        let clocks = self.steps.iter().map(|(name, at, step_ns)| (*at, Event::Clock(host(name), *step_ns)));
        let links = self.scenario.changes.iter().filter_map(|change| {
            let link = self.topology.link_id(&change.link)?;
            Some((Instant::ZERO + change.at, Event::Link(link, change.what)))
        });
        let mut events: Vec<(Instant, Event)> = links.chain(clocks).collect();
        events.sort_by_key(|&(at, _)| at);
        events
    }

    fn start_of(&self, instance: &Instance<'_>) -> Instant {
        let flow = instance.flow;
        let mut random = Stream::named(self.scenario.seed, &format!("flow {}/start", instance.name));
        let jitter = random.below(flow.start_jitter.as_nanos().saturating_add(1));
        Instant::ZERO + flow.start + Duration::from_nanos(jitter)
    }
}

/// An access link: fast, lossless, and with room enough.
fn access_wire(rate: Rate, delay: Duration, buffer: Buffer) -> Link {
    Link {
        rate,
        delay,
        buffer,
        bdp_rtt: None,
        count_in_service: false,
        count_delayed: false,
        queue: Discipline::DropTail,
        ecn: false,
        policer: None,
        shaper: None,
        loss: 0.0,
        loss_burst: None,
        reorder: None,
        duplicate: 0.0,
        jitter: Duration::ZERO,
        jitter_reorders: false,
        batch: Duration::ZERO,
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
        count_delayed: link.count_delayed,
        control: TrafficControl {
            discipline: link.queue,
            ecn: link.ecn,
            policer: link.policer,
            shaper: link.shaper,
        },
        impairments: Impairments {
            loss: link.loss,
            burst_loss: link.loss_burst.map(|burst| GilbertElliott {
                good_to_bad: burst.enter,
                bad_to_good: burst.leave,
                loss_in_good: burst.loss_good,
                loss_in_bad: burst.loss_bad,
            }),
            reordering: link
                .reorder
                .map(|rule| Reordering { probability: rule.probability, extra_delay: rule.extra_delay }),
            duplication: link.duplicate,
            jitter: link.jitter,
            jitter_reorders: link.jitter_reorders,
            batching: link.batch,
        },
    }
}
