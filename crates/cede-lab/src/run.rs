//! Running a scenario in the simulated world.

use crate::host::{LabHost, Socket, SocketSetup};
use crate::journal::Happening;
use crate::meter::{Meters, PacketTap, QueueTap};
use crate::network::{Event, FlowPlan, Network};
use crate::outcome::{FlowEnds, FlowSeries, Outcome, Series};
use crate::ports::MAX_FLOWS;
use crate::scenario::{ControllerSpec, Flow, Scenario};
use crate::traffic::Source;
use crate::view::SocketView;
use cede_cc::registry::{self, Entry};
use cede_cc::{ParamValue, Params, Path};
use cede_net::HostId;
use cede_sim::World;
use cede_units::{Duration, Instant, Stream};
use cede_utp::ControllerFactory;
use std::fmt;

/// The world that scenarios run in.
pub type LabWorld = World<LabHost, Meters>;

/// Why a scenario could not be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// The topology does not hang together.
    Topology(cede_sim::TopologyError),
    /// More flows than there are ports.
    TooManyFlows(usize),
    /// A controller was to stand in for that of a flow that there is not.
    NoFlow(String),
    /// The run is longer than the event queue of so large a network can count.
    TooLong {
        /// How long it can be.
        horizon: Instant,
    },
    /// The run was interrupted.
    Interrupted,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topology(error) => error.fmt(f),
            Self::TooManyFlows(flows) => write!(f, "{flows} flows; there are ports for {MAX_FLOWS}"),
            Self::NoFlow(name) => write!(f, "no flow is called `{name}`"),
            Self::TooLong { horizon } => write!(f, "a network of this size can be run for {horizon} at most"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for RunError {}

/// Hears how a run proceeds, once per sampling interval.
pub trait Watcher {
    /// `now` of `end` has been simulated; answers whether to go on.
    fn progress(&mut self, now: Instant, end: Instant) -> bool {
        let _ = (now, end);
        true
    }

    /// What a flow did in an interval and what its sender looks like at the end of it.
    fn sample(&mut self, sample: &FlowSample<'_>) {
        let _ = sample;
    }

    /// What happened to a flow, where the run keeps journals: in the order of time, an interval's events after its end.
    fn event(&mut self, event: &FlowEvent<'_>) {
        let _ = event;
    }
}

impl Watcher for () {}

/// A flow at the end of an interval.
#[derive(Clone, Copy, Debug)]
pub struct FlowSample<'a> {
    /// The end of the interval.
    pub now: Instant,
    /// Which flow.
    pub flow: &'a FlowPlan,
    /// Its sender.
    pub view: &'a SocketView,
    /// Octets that reached its receiver in the interval, headers included, in Mbit/s; before the end of the warm-up
    /// as well.
    pub rate_mbps: f64,
}

/// Something that happened to a flow.
#[derive(Clone, Debug)]
pub struct FlowEvent<'a> {
    /// When, in the world's time.
    pub at: Instant,
    /// Which flow.
    pub flow: &'a FlowPlan,
    /// At the end that sends data; otherwise at the one that receives.
    pub at_sender: bool,
    /// What.
    pub happening: Happening,
}

/// A scenario, ready to run.
pub struct Run<'a> {
    scenario: &'a Scenario,
    network: Network,
    tap: Option<Box<dyn PacketTap>>,
    queue_tap: Option<Box<dyn QueueTap>>,
    journal: bool,
    sampling: bool,
    tape: bool,
    stand_ins: Vec<StandIn>,
}

/// A controller that takes the place of those that a scenario names.
struct StandIn {
    whose: Whose,
    entry: Entry,
    params: Params,
}

/// Which flows have it.
enum Whose {
    /// Those whose names begin so.
    Named(&'static str),
    /// A flow of the scenario with all of its replicates.
    Of(String),
}

impl Whose {
    fn is(&self, plan: &FlowPlan, flow: &Flow) -> bool {
        match self {
            Self::Named(prefix) => plan.name.starts_with(prefix),
            Self::Of(name) => flow.name == *name,
        }
    }
}

impl<'a> Run<'a> {
    /// Lays out the network of `scenario`.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        Self {
            scenario,
            network: Network::of(scenario),
            tap: None,
            queue_tap: None,
            journal: false,
            sampling: true,
            tape: true,
            stand_ins: Vec::new(),
        }
    }

    /// Gives the flows whose names begin with `prefix` a controller that need not be in the registry, whatever the
    /// scenario says; outcomes name it.
    #[must_use]
    pub fn stand_in(mut self, prefix: &'static str, entry: Entry, params: Params) -> Self {
        self.stand_ins.push(StandIn { whose: Whose::Named(prefix), entry, params });
        self
    }

    /// As [`Self::stand_in`], for one flow of the scenario and all of its replicates. Where there is none of that name the run fails.
    #[must_use]
    pub fn stand_in_of(mut self, flow: &str, entry: Entry, params: Params) -> Self {
        self.stand_ins.push(StandIn { whose: Whose::Of(flow.to_string()), entry, params });
        self
    }

    /// Leaves out the tape.
    #[must_use]
    pub const fn without_tape(mut self) -> Self {
        self.tape = false;
        self
    }

    /// Hands every packet at a host to `tap`.
    #[must_use]
    pub fn tap(mut self, tap: Box<dyn PacketTap>) -> Self {
        self.tap = Some(tap);
        self
    }

    /// Hands every dequeue at a metered link to `tap`.
    #[must_use]
    pub fn tap_queues(mut self, tap: Box<dyn QueueTap>) -> Self {
        self.queue_tap = Some(tap);
        self
    }

    /// Tells the watcher what happens to each flow, event by event.
    #[must_use]
    pub const fn journal(mut self) -> Self {
        self.journal = true;
        self
    }

    /// Leaves out series and tape: for sweeps and benchmarks that look at totals only.
    #[must_use]
    pub fn totals_only(mut self) -> Self {
        self.sampling = false;
        self.tape = false;
        self
    }

    /// The network that the scenario runs on.
    #[must_use]
    pub const fn network(&self) -> &Network {
        &self.network
    }

    /// Runs to the end and adds up. The meters come along for who wants more than the outcome holds.
    ///
    /// # Errors
    /// [`RunError`]; a scenario that parsed fails only where `watcher` stops it, or a stand-in has no flow.
    pub fn go(mut self, watcher: &mut dyn Watcher) -> Result<(Outcome, Meters), RunError> {
        let mut world = self.world()?;
        if self.tape {
            world.record_tape();
        }
        let mut recorder = Recorder::new(&self.network);
        let mut before = vec![FlowEnds::default(); self.network.flows.len()];
        let end = Instant::ZERO + self.scenario.duration;
        let warm = Instant::ZERO + self.scenario.warmup;
        if end > world.horizon() {
            return Err(RunError::TooLong { horizon: world.horizon() });
        }
        let mut events = self.network.events.iter().copied().peekable();
        for stop in self.stops() {
            while let Some((at, event)) = events.next_if(|&(at, _)| at <= stop) {
                world.run_until(at);
                take_place(&mut world, event);
            }
            world.run_until(stop);
            if stop == warm {
                before = self.ends(&world);
            }
            if self.sampling {
                recorder.sample(stop, &self.network, &mut world, watcher);
            }
            if self.journal {
                tell_events(&self.network, &world, watcher);
            }
            if !watcher.progress(stop, end) {
                return Err(RunError::Interrupted);
            }
        }
        world.observer_mut().settle(end);
        Ok(self.finish(world, recorder.series, &before))
    }

    /// The times at which the run pauses: each interval's end, the end of the warm-up, and the end.
    fn stops(&self) -> impl Iterator<Item = Instant> + use<> {
        let (start, end) = (Instant::ZERO, Instant::ZERO + self.scenario.duration);
        let warm = start + self.scenario.warmup;
        let step = if self.sampling { self.scenario.record.interval } else { self.scenario.duration / 20 };
        let step = step.max(Duration::from_micros(1));
        let mut last = start;
        core::iter::from_fn(move || {
            let next_interval = start + step * (last.as_nanos() / step.as_nanos() + 1);
            last = [next_interval, warm, end].into_iter().filter(|&stop| stop > last && stop <= end).min()?;
            Some(last)
        })
    }

    fn world(&mut self) -> Result<LabWorld, RunError> {
        if self.network.flows.len() > MAX_FLOWS {
            return Err(RunError::TooManyFlows(self.network.flows.len()));
        }
        let is_there = |name: &String| self.scenario.flows.iter().any(|flow| flow.name == *name);
        let named = self.stand_ins.iter().filter_map(|other| match &other.whose {
            Whose::Of(name) => Some(name),
            Whose::Named(_) => None,
        });
        if let Some(name) = named.into_iter().find(|name| !is_there(name)) {
            return Err(RunError::NoFlow(name.clone()));
        }
        let (mut sockets, meters) = (self.sockets(), self.meters());
        let make = |host: HostId, _: &str| LabHost::new(core::mem::take(&mut sockets[host.0 as usize]));
        self.network.topology.build(self.scenario.seed, meters, make).map_err(RunError::Topology)
    }

    fn meters(&mut self) -> Meters {
        let mut senders = vec![HostId(0); self.network.flows.len()];
        for plan in &self.network.flows {
            senders[plan.number] = plan.sender.host;
        }
        let watched: Vec<_> = self.network.watched.iter().map(|watched| watched.link).collect();
        let opened = Instant::ZERO + self.scenario.warmup;
        let links = self.network.topology.link_names().count();
        let mut meters = Meters::new(links, &watched, senders, opened);
        self.tap.take().into_iter().for_each(|tap| meters.tap(tap));
        self.queue_tap.take().into_iter().for_each(|tap| meters.tap_queues(tap));
        meters
    }

    /// The sockets of each host.
    fn sockets(&self) -> Vec<Vec<Socket>> {
        let mut hosts: Vec<Vec<Socket>> = self.network.topology.host_names().map(|_| Vec::new()).collect();
        for plan in &self.network.flows {
            let flow = &self.scenario.flows[plan.flow];
            let setup = |end: &str| self.setup(plan, flow, end);
            let source = self.source(plan, flow);
            let sender = Socket::sender((plan.sender, plan.receiver), setup("sender"), source, plan.start);
            let receiver = Socket::receiver((plan.receiver, plan.sender), setup("receiver"));
            let kept = |socket: Socket| if self.journal { socket.with_journal() } else { socket };
            hosts[plan.sender.host.0 as usize].push(kept(sender));
            hosts[plan.receiver.host.0 as usize].push(kept(receiver));
        }
        hosts
    }

    fn setup(&self, plan: &FlowPlan, flow: &Flow, end: &str) -> SocketSetup {
        SocketSetup {
            protocol: flow.protocol.clone(),
            packet_bytes: flow.packet_bytes,
            controller: self.controller_factory(plan, flow),
            random: Stream::named(self.scenario.seed, &format!("flow {}/{end}", plan.name)),
        }
    }

    fn controller_factory(&self, plan: &FlowPlan, flow: &Flow) -> ControllerFactory {
        let seed = self.scenario.seed;
        if let Some(other) = self.stand_in_for(plan, flow) {
            return controller_factory(other.entry, other.params.clone(), seed, &plan.name);
        }
        let ControllerSpec { name, params } = &flow.controller;
        let entry = registry::find(name).expect("parsing the scenario has found it");
        controller_factory(*entry, params.clone(), seed, &plan.name)
    }

    fn stand_in_for(&self, plan: &FlowPlan, flow: &Flow) -> Option<&StandIn> {
        self.stand_ins.iter().find(|other| other.whose.is(plan, flow))
    }

    fn source(&self, plan: &FlowPlan, flow: &Flow) -> Source {
        let random = Stream::named(self.scenario.seed, &format!("flow {}/traffic", plan.name));
        let stop = flow.stop.map(|stop| Instant::ZERO + stop);
        let payload = flow.packet_bytes.saturating_sub(52).max(1);
        Source::new(flow.traffic, plan.start, stop, flow.bytes, payload, random)
    }

    fn ends(&self, world: &LabWorld) -> Vec<FlowEnds> {
        self.network.flows.iter().map(|plan| flow_ends(world, plan)).collect()
    }

    /// `before` is what flows had done by the end of the warm-up.
    fn finish(self, world: LabWorld, series: Series, before: &[FlowEnds]) -> (Outcome, Meters) {
        let ends: Vec<FlowEnds> =
            self.ends(&world).into_iter().zip(before).map(|(end, before)| end.since(before)).collect();
        let mut outcome = Outcome::of(self.scenario, &self.network, world.observer(), &ends, series);
        for (plan, flow) in self.network.flows.iter().zip(&mut outcome.flows) {
            if let Some(other) = self.stand_in_for(plan, &self.scenario.flows[plan.flow]) {
                flow.controller = other.entry.name.to_string();
            }
        }
        outcome.tape = world.tape().map(|tape| format!("{:016x}", tape.hash())).unwrap_or_default();
        outcome.events = world.events();
        (outcome, world.into_observer())
    }
}

fn take_place(world: &mut LabWorld, event: Event) {
    match event {
        Event::Link(link, change) => world.change_link(link, &change),
        Event::Clock(host, step_ns) => world.step_clock(host, step_ns),
    }
}

fn flow_ends(world: &LabWorld, plan: &FlowPlan) -> FlowEnds {
    let host = world.host(plan.sender.host);
    let (Some(sender), Some(receiver)) =
        (host.socket(plan.sender.port), world.host(plan.receiver.host).socket(plan.receiver.port))
    else {
        return FlowEnds::default();
    };
    let view = sender.view();
    let in_world = |local: Instant| world.clock(plan.sender.host).world(local).as_secs_f64();
    FlowEnds {
        data_packets_sent: view.data_packets_sent,
        retransmissions: view.retransmissions,
        timeouts: view.timeouts,
        received_bytes: receiver.received_bytes(),
        finish_s: sender.finished_at().map(in_world),
        error: view.error,
        intact: receiver.is_intact(),
    }
}

/// Empties all journals into the watcher.
fn tell_events(network: &Network, world: &LabWorld, watcher: &mut dyn Watcher) {
    let mut events = Vec::new();
    for plan in &network.flows {
        for (end, at_sender) in [(plan.sender, true), (plan.receiver, false)] {
            let entries = world.host(end.host).socket(end.port).map(Socket::take_journal).unwrap_or_default();
            let clock = world.clock(end.host);
            events.extend(entries.into_iter().map(|entry| FlowEvent {
                at: clock.world(entry.at),
                flow: plan,
                at_sender,
                happening: entry.happening,
            }));
        }
    }
    events.sort_by_key(|event| event.at);
    events.iter().for_each(|event| watcher.event(event));
}

/// Makes a flow's controllers. One that draws random numbers has a stream of its own: its parameter `seed` comes from the
/// run's seed and the flow's name, where it is not given.
fn controller_factory(entry: Entry, mut params: Params, seed: u64, flow: &str) -> ControllerFactory {
    let draws = entry.params.iter().any(|doc| doc.name == "seed");
    if draws && params.get("seed").is_none() {
        let drawn = Stream::named(seed, &format!("flow {flow}/controller")).next_u32();
        params.set("seed", ParamValue::Number(f64::from(drawn)));
    }
    Box::new(move |path: &Path| {
        // Scenarios have built theirs once; one from elsewhere may never have been.
        (entry.build)(&params, path)
            .unwrap_or_else(|error| panic!("`{}` cannot be built: {error}", entry.name))
    })
}

/// Collects the series.
struct Recorder {
    series: Series,
    last: Instant,
    delivered: Vec<u64>,
}

impl Recorder {
    fn new(network: &Network) -> Self {
        let links = network.watched.len();
        let series = Series {
            t_s: Vec::new(),
            queue_mean_ms: vec![Vec::new(); links],
            queue_max_ms: vec![Vec::new(); links],
            flows: vec![FlowSeries::default(); network.flows.len()],
        };
        Self { series, last: Instant::ZERO, delivered: vec![0; network.flows.len()] }
    }

    fn sample(&mut self, now: Instant, network: &Network, world: &mut LabWorld, watcher: &mut dyn Watcher) {
        let span = now.since(self.last);
        self.last = now;
        self.series.t_s.push(now.as_secs_f64());
        for (index, meter) in world.observer_mut().links_mut().iter_mut().enumerate() {
            let interval = meter.take_interval();
            let mean = interval.mean_ms();
            self.series.queue_mean_ms[index].push(mean.unwrap_or(f64::NAN));
            self.series.queue_max_ms[index].push(mean.map_or(f64::NAN, |_| interval.max.as_millis_f64()));
        }
        for (index, plan) in network.flows.iter().enumerate() {
            let view =
                world.host(plan.sender.host).socket(plan.sender.port).map(Socket::view).unwrap_or_default();
            let delivered = world.observer().deliveries().bytes_since_start[plan.number];
            let bytes = delivered - core::mem::replace(&mut self.delivered[index], delivered);
            let rate_mbps = bytes as f64 * 8e3 / (span.as_nanos() as f64).max(1.0);
            watcher.sample(&FlowSample { now, flow: plan, view: &view, rate_mbps });
            self.series.flows[index].push(&view, rate_mbps);
        }
    }
}

impl FlowSeries {
    fn push(&mut self, view: &SocketView, rate_mbps: f64) {
        let known = |value: f64| if view.connected { value } else { f64::NAN };
        let some = |value: Option<f64>| value.unwrap_or(f64::NAN);
        self.rate_mbps.push(rate_mbps);
        self.cwnd_bytes.push(known(view.cwnd_bytes));
        self.ssthresh_bytes.push(some(view.controller.ssthresh_bytes));
        self.srtt_ms.push(some((!view.srtt.is_zero()).then(|| view.srtt.as_millis_f64())));
        self.believed_queue_ms.push(some(view.controller.queueing_delay.map(Duration::as_millis_f64)));
        self.in_flight_bytes.push(view.in_flight_bytes as f64);
        self.retransmissions.push(view.retransmissions as f64);
    }
}
