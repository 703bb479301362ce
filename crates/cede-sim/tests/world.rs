//! Worlds of toy hosts: delivery times, determinism, independence of the order of adding, conservation.

use cede_net::{
    Address, Datagram, Dequeue, DropCause, Host, HostId, Impairments, Input, LinkConfig, Output, QueueLimit,
};
use cede_sim::schedule::{Heap, Scheduler, Tournament, Wheel};
use cede_sim::{Clock, LinkId, Observer, PacketEvent, Topology, World};
use cede_units::{Duration, Instant, Rate};
use cede_wire::{Head, Payload};
use std::collections::{BTreeMap, VecDeque};

/// Keeps a window of packets under way to a peer, and answers each packet that carries a payload.
struct Toy {
    me: HostId,
    peer: Option<HostId>,
    window: u32,
    received: Vec<Instant>,
}

impl Toy {
    fn packet(&self, to: HostId, payload: u32) -> Datagram {
        Datagram {
            source: Address::new(self.me, 1),
            destination: Address::new(to, 1),
            network_overhead_bytes: 20,
            head: Head::new(&[0; 20]).unwrap(),
            payload: Payload::Pattern { start: 0, len: payload },
            ..Datagram::default()
        }
    }
}

impl Host for Toy {
    fn handle(&mut self, now: Instant, input: Input, output: &mut Output) {
        match (input, self.peer) {
            (Input::Start, Some(peer)) => {
                output.sends.extend((0..self.window).map(|_| self.packet(peer, 1452)));
                output.wake_at = Some(now + Duration::from_secs(1));
            }
            (Input::Datagram(datagram), Some(_)) if datagram.payload.is_empty() => {
                output.sends.push(self.packet(datagram.source.host, 1452));
                output.wake_at = Some(now + Duration::from_secs(1));
            }
            (Input::Datagram(datagram), _) => {
                self.received.push(now);
                output.sends.push(self.packet(datagram.source.host, 0));
            }
            (Input::Timeout, Some(peer)) => {
                output.sends.push(self.packet(peer, 1452));
                output.wake_at = Some(now + Duration::from_secs(1));
            }
            _ => {}
        }
    }
}

fn wire(rate: Rate, limit: QueueLimit, loss: f64) -> LinkConfig {
    LinkConfig {
        impairments: Impairments { loss, duplication: loss, ..Impairments::default() },
        ..LinkConfig::new(rate, Duration::from_millis(10), limit)
    }
}

/// Two senders share a 10 Mbit/s bottleneck between `a` and `b`; `reversed` adds everything the other way round.
fn dumbbell(reversed: bool, loss: f64) -> Topology {
    let fast = wire(Rate::from_mbit(1000), QueueLimit::Unlimited, 0.0);
    let slow = wire(Rate::from_mbit(10), QueueLimit::Packets(20), loss);
    let mut topology = Topology::new();
    let mut names = vec!["left-0", "left-1", "right-0", "right-1"];
    if reversed {
        names.reverse();
    }
    for name in names {
        topology.host(name, Clock::default());
        let middle = if name.starts_with("left") { "a" } else { "b" };
        topology.link(&format!("{name} up"), name, middle, fast);
        topology.link(&format!("{name} down"), middle, name, fast);
    }
    topology.link("bottleneck", "a", "b", slow).link("return", "b", "a", fast);
    topology
}

fn toys<O: Observer, S: Scheduler>(topology: &Topology, seed: u64, observer: O) -> World<Toy, O, S> {
    let peers: Vec<(HostId, HostId)> = (0..2)
        .map(|i| {
            let id = |side: &str| topology.host_id(&format!("{side}-{i}")).unwrap();
            (id("left"), id("right"))
        })
        .collect();
    let make = |me, _: &str| Toy {
        me,
        peer: peers.iter().find(|(left, _)| *left == me).map(|(_, right)| *right),
        window: 40,
        received: Vec::new(),
    };
    topology.build_with(seed, observer, make).unwrap()
}

fn tape(reversed: bool, seed: u64) -> (u64, u64) {
    tape_by::<Tournament>(reversed, seed)
}

fn tape_by<S: Scheduler>(reversed: bool, seed: u64) -> (u64, u64) {
    let mut world = toys::<(), S>(&dumbbell(reversed, 0.02), seed, ());
    world.record_tape();
    world.run_until(Instant::from_secs(20));
    let tape = world.tape().unwrap();
    (tape.hash(), tape.events())
}

#[test]
fn the_same_seed_gives_the_same_tape_whatever_the_order_of_adding() {
    let first = tape(false, 1);
    assert!(first.1 > 2_000, "{first:?}");
    assert_eq!(first, tape(false, 1));
    assert_eq!(first, tape(true, 1));
    assert_ne!(first, tape(false, 2));
}

#[test]
fn every_scheduler_gives_the_same_tape() {
    assert_eq!(tape(false, 1), tape_by::<Heap>(false, 1));
    assert_eq!(tape(false, 1), tape_by::<Wheel>(true, 1));
}

#[test]
fn running_in_pieces_changes_nothing() {
    let mut world = toys::<_, Tournament>(&dumbbell(false, 0.02), 1, ());
    world.record_tape();
    for step in 1..=2_000 {
        world.run_until(Instant::from_millis(10 * step));
    }
    assert_eq!(world.tape().unwrap().hash(), tape(false, 1).0);
}

#[test]
fn so_do_pieces_of_a_few_events_and_each_is_no_larger() {
    let mut world = toys::<_, Tournament>(&dumbbell(false, 0.02), 1, ());
    world.record_tape();
    let end = Instant::from_secs(20);
    while !world.run_some(end, 1_000) {
        assert!(world.now() <= end && world.events() % 1_000 == 0, "{} events", world.events());
    }
    assert_eq!((world.now(), world.tape().unwrap().hash()), (end, tape(false, 1).0));
}

#[test]
fn every_packet_is_served_dropped_or_queued() {
    let topology = dumbbell(false, 0.05);
    let link = topology.link_id("bottleneck").unwrap();
    let mut world = toys::<_, Tournament>(&topology, 5, ());
    world.run_until(Instant::from_secs(30));
    let counters = *world.link_counters(link);
    let accounted = counters.served_packets + counters.dropped_packets;
    assert!(counters.arrived_packets - accounted <= 20, "{counters:?}");
    assert!(counters.lost_packets > 0 && counters.dropped_packets > 0, "{counters:?}");
    assert!(world.packets_under_way() < 200, "{}", world.packets_under_way());
}

#[test]
fn a_packet_takes_serialisation_and_propagation() {
    let topology = dumbbell(false, 0.0);
    let mut world = toys::<_, Tournament>(&topology, 1, ());
    world.run_until(Instant::from_millis(40));
    let right = world.host(topology.host_id("right-0").unwrap());
    // 1500 octets: 12 us on each access link, 1200 us at 10 Mbit/s, and three times 10 ms of propagation.
    assert_eq!(right.received[0], Instant::from_micros(30_000 + 12 + 1_200 + 12));
}

#[derive(Default)]
struct Queue {
    watched: Option<LinkId>,
    dequeues: Vec<Dequeue>,
    sent: u64,
    delivered: u64,
}

impl Observer for Queue {
    fn watches(&self, link: LinkId) -> bool {
        self.watched == Some(link)
    }
    fn dequeued(&mut self, _: LinkId, _: &Datagram, event: &Dequeue) {
        self.dequeues.push(*event);
    }
    fn sent(&mut self, _: &PacketEvent<'_>) {
        self.sent += 1;
    }
    fn delivered(&mut self, _: &PacketEvent<'_>) {
        self.delivered += 1;
    }
}

#[test]
fn each_dequeue_is_heard_at_its_exact_time() {
    let topology = dumbbell(false, 0.0);
    let watched = topology.link_id("bottleneck");
    let mut world = toys::<_, Tournament>(&topology, 1, Queue { watched, ..Queue::default() });
    world.run_until(Instant::from_secs(10));
    let served = world.link_counters(watched.unwrap()).served_packets;
    let queue = world.into_observer();
    assert_eq!(queue.dequeues.len() as u64, served);
    let gap = |pair: &[Dequeue]| pair[1].at.since(pair[0].at);
    assert!(queue.dequeues.windows(2).all(|pair| gap(pair) >= Duration::from_micros(1_200)));
    assert!(queue.dequeues.iter().all(|event| event.queued_packets <= 20));
    assert!(queue.dequeues.windows(2).all(|pair| pair[1].served_bytes == pair[0].served_bytes + 1_500));
    assert!(queue.delivered <= queue.sent && queue.delivered > served);
}

/// When packets with a payload left each host, and what those that arrived took beyond what they had waited. It watches no link.
#[derive(Default)]
struct Journeys {
    sent: BTreeMap<HostId, VecDeque<Instant>>,
    moving: Vec<Duration>,
    longest_wait: Duration,
    dropped: u64,
}

impl Observer for Journeys {
    fn sent(&mut self, event: &PacketEvent<'_>) {
        assert!(event.waited.is_zero());
        if !event.datagram.payload.is_empty() {
            self.sent.entry(event.host).or_default().push_back(event.at);
        }
    }
    fn delivered(&mut self, event: &PacketEvent<'_>) {
        let sent = self.sent.get_mut(&event.datagram.source.host).and_then(VecDeque::pop_front);
        if let Some(sent) = sent.filter(|_| !event.datagram.payload.is_empty()) {
            self.moving.push(event.at.since(sent) - event.waited);
            self.longest_wait = self.longest_wait.max(event.waited);
        }
    }
    fn dropped(&mut self, _: LinkId, _: &Datagram, _: Instant, _: DropCause) {
        self.dropped += 1;
    }
}

#[test]
fn what_a_packet_waits_adds_up_on_its_way_whoever_watches() {
    let slow = |mbit| wire(Rate::from_mbit(mbit), QueueLimit::Unlimited, 0.0);
    let mut topology = Topology::new();
    for i in 0..2 {
        let (left, right) = (format!("left-{i}"), format!("right-{i}"));
        topology.host(&left, Clock::default()).host(&right, Clock::default());
        topology.link(&format!("{left} up"), &left, "a", slow(40));
        topology.link(&format!("{left} down"), "a", &left, slow(1000));
        topology.link(&format!("{right} up"), &right, "b", slow(1000));
        topology.link(&format!("{right} down"), "b", &right, slow(1000));
    }
    topology.link("there", "a", "b", slow(10)).link("back", "b", "a", slow(1000));
    let mut world = toys::<_, Tournament>(&topology, 1, Journeys::default());
    world.run_until(Instant::from_millis(500));
    let seen = world.into_observer();
    // 1500 octets: 300 us at 40 Mbit/s, 1200 at 10, 12 at 1000; and three times 10 ms of propagation.
    assert!(seen.moving.len() > 100);
    assert!(seen.moving.iter().all(|&moving| moving == Duration::from_micros(30_000 + 300 + 1_200 + 12)));
    assert!(seen.longest_wait > Duration::from_millis(60), "{}", seen.longest_wait);
}

#[test]
fn drops_are_heard_of_on_links_that_nobody_watches() {
    let topology = dumbbell(false, 0.05);
    let link = topology.link_id("bottleneck").unwrap();
    let mut world = toys::<_, Tournament>(&topology, 5, Journeys::default());
    world.run_until(Instant::from_secs(30));
    let counters = *world.link_counters(link);
    assert_eq!(world.observer().dropped, counters.dropped_packets + counters.lost_packets);
}

#[test]
fn hosts_live_by_their_own_clocks() {
    let mut topology = dumbbell(false, 0.0);
    let clock = Clock { offset_ns: 5_000_000_000, drift_ppb: 1_000_000 };
    topology.host("right-0", clock);
    let mut world = toys::<_, Tournament>(&topology, 1, ());
    world.run_until(Instant::from_secs(2));
    let right = world.host(topology.host_id("right-0").unwrap());
    let arrived = Instant::from_micros(31_224);
    assert_eq!(right.received[0], clock.local(arrived));
}
