//! Keepalives of many connections to few addresses.
#![allow(missing_docs)]

mod common;

use cede_units::{Duration, Instant, Stream};
use cede_utp::{Config, ConnectionError, Endpoint, Event, Handle, Limits};
use cede_wire::utp::Packet;
use common::controller;
use std::cell::Cell;
use std::collections::BTreeMap;

const START: Instant = Instant::from_secs(1);
/// What address translators forget, rounded down.
const PATIENCE: Duration = Duration::from_secs(29);
const SHARED: Duration = Duration::from_secs(300);

/// Endpoints by their addresses, beginning with 1, without anything between them.
struct World {
    endpoints: Vec<Endpoint<u32>>,
    now: Instant,
    /// When packets left, by whence and whither, and by whence, whither and connection.
    by_way: BTreeMap<(u32, u32), Vec<Instant>>,
    by_connection: BTreeMap<(u32, u32, u16), Vec<Instant>>,
}

impl World {
    fn new(addresses: u32, config: &Config) -> Self {
        let endpoints = (1..=addresses).map(|address| listening(u64::from(address), config)).collect();
        Self { endpoints, now: START, by_way: BTreeMap::new(), by_connection: BTreeMap::new() }
    }

    fn connect(&mut self, from: u32, to: u32, config: &Config) -> Handle {
        let controller = controller("reno", config);
        self.endpoints[from as usize - 1].connect(self.now, to, config.clone(), controller).unwrap()
    }

    /// Moves packets and time.
    fn run_until(&mut self, end: Instant) {
        loop {
            while self.exchange() {}
            let next = self.endpoints.iter().filter_map(Endpoint::poll_timeout).min();
            let Some(at) = next.filter(|&at| at <= end) else { break };
            self.now = self.now.max(at);
            for endpoint in &mut self.endpoints {
                endpoint.handle_timeout(self.now);
                while endpoint.accept().is_some() {}
            }
        }
        self.now = end;
    }

    fn exchange(&mut self) -> bool {
        let mut moved = false;
        for from in 1..=self.endpoints.len() as u32 {
            while let Some((to, transmit)) = self.endpoints[from as usize - 1].poll_transmit(self.now) {
                let id = Packet::decode(&transmit.head).unwrap().header.connection_id;
                self.by_way.entry((from, to)).or_default().push(self.now);
                self.by_connection.entry((from, to, id)).or_default().push(self.now);
                self.endpoints[to as usize - 1].handle(self.now, from, &transmit.head, transmit.payload);
                moved = true;
            }
        }
        moved
    }

    fn forget_packets(&mut self) {
        self.by_way.clear();
        self.by_connection.clear();
    }
}

fn listening(seed: u64, config: &Config) -> Endpoint<u32> {
    let most = 5000;
    let limits = Limits { connections: most, backlog: most, half_open: most, ..Limits::default() };
    let mut endpoint = Endpoint::new(limits, Stream::named(seed, "endpoint"));
    endpoint.listen(config.clone(), Box::new(|_| controller("reno", &Config::internet())));
    endpoint
}

/// The longest time without a packet.
fn longest_pause(times: &[Instant], begin: Instant, end: Instant) -> Duration {
    let all = std::iter::once(begin).chain(times.iter().copied()).chain([end]).collect::<Vec<_>>();
    all.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap()
}

#[test]
fn connections_to_one_address_share_keepalives_and_each_is_heard_of_now_and_then() {
    let config = Config::internet();
    let mut world = World::new(3, &config);
    for i in 0..600 {
        world.now = START + Duration::from_millis(100 * i);
        world.connect(1, 2 + (i % 2) as u32, &config);
        world.run_until(world.now);
    }
    let (begin, end) = (world.now, START + Duration::from_secs(3600));
    world.forget_packets();
    world.run_until(end);
    // Every way is used often enough for whatever is on it.
    assert_eq!(world.by_way.keys().copied().collect::<Vec<_>>(), [(1, 2), (1, 3), (2, 1), (3, 1)]);
    for (way, times) in &world.by_way {
        // Before the first there were handshakes.
        assert!(longest_pause(times, begin, end) <= PATIENCE, "{way:?}");
    }
    // Each of the connections would have sent 124 from each end.
    let packets: usize = world.by_way.values().map(Vec::len).sum();
    assert!(packets < 600 * 124 * 2 / 8, "{packets} packets");
    let pairs = world.by_connection.keys().map(|&(_, _, id)| id).collect::<std::collections::BTreeSet<_>>();
    assert!(pairs.len() >= 600, "of {} connections something was heard", pairs.len());
    for (connection, times) in &world.by_connection {
        // Either end may be the one that speaks, and then the other need not.
        let alone = longest_pause(times, begin, end) <= SHARED * 3;
        assert!(alone || times.len() < 40, "{connection:?}: {times:?}");
    }
}

#[test]
fn who_lost_the_other_end_learns_it_though_others_send_the_keepalives() {
    let config = Config::internet();
    let mut world = World::new(2, &config);
    let handles: Vec<Handle> = (0..300).map(|_| world.connect(1, 2, &config)).collect();
    world.run_until(START + Duration::from_secs(100));
    world.endpoints[1] = listening(77, &config);
    world.run_until(START + Duration::from_secs(700));
    let mut failed = std::collections::BTreeSet::new();
    while let Some((handle, event)) = world.endpoints[0].poll_event() {
        if event == Event::Failed(ConnectionError::Reset) {
            failed.insert(handle);
        }
    }
    let ignorant = handles.iter().filter(|&handle| !failed.contains(handle)).count();
    assert_eq!(ignorant, 0);
}

#[test]
fn who_has_ended_its_stream_and_reads_asks_as_often_as_before() {
    let config = Config::internet();
    let mut world = World::new(2, &config);
    let handles: Vec<Handle> = (0..20).map(|_| world.connect(1, 2, &config)).collect();
    world.run_until(START + Duration::from_secs(1));
    let reader = world.endpoints[0].connection_mut(handles[7]).unwrap();
    reader.shutdown();
    let before = reader.statistics().keepalives_sent;
    world.run_until(START + Duration::from_secs(300));
    let after = world.endpoints[0].connection(handles[7]).unwrap().statistics().keepalives_sent;
    assert!((10..=20).contains(&(after - before)), "{}", after - before);
}

#[test]
fn strangers_get_a_keepalive_on_each_connection() {
    let stranger =
        Config { announce: false, keepalive: None, keepalive_strangers: None, ..Config::default() };
    let mut world = World::new(2, &Config::internet());
    world.endpoints[1] = listening(2, &stranger);
    let handles: Vec<Handle> = (0..50).map(|_| world.connect(1, 2, &Config::internet())).collect();
    world.run_until(START);
    let begin = world.now;
    world.forget_packets();
    let end = START + Duration::from_secs(100);
    world.run_until(end);
    let ours: Vec<_> = world.by_connection.iter().filter(|((from, ..), _)| *from == 1).collect();
    assert_eq!(ours.len(), handles.len());
    for (connection, times) in ours {
        let pause = longest_pause(times, begin, end);
        assert!(pause <= Duration::from_secs(9), "{connection:?}: {pause}");
    }
}

/// The second endpoint's program is gone, and its system says so of each packet that is not `spared`.
fn run_beside_nobody(world: &mut World, until: Instant, spared: impl Fn() -> bool) {
    loop {
        while let Some((to, transmit)) = world.endpoints[0].poll_transmit(world.now) {
            let seq = Packet::decode(&transmit.head).unwrap().header.seq;
            if !spared() {
                world.endpoints[0].nobody_there(world.now, to, &transmit.head, seq);
            }
        }
        let Some(at) = world.endpoints[0].poll_timeout().filter(|&at| at <= until) else { break };
        world.now = world.now.max(at);
        world.endpoints[0].handle_timeout(world.now);
    }
    world.now = until;
}

fn errors(world: &World, handles: &[Handle]) -> Vec<Option<ConnectionError>> {
    handles.iter().map(|&handle| world.endpoints[0].connection(handle).and_then(|one| one.error())).collect()
}

#[test]
fn who_only_reads_learns_that_the_other_program_is_gone() {
    let config = Config::internet();
    let mut world = World::new(2, &config);
    let handles: Vec<Handle> = (0..8).map(|_| world.connect(1, 2, &config)).collect();
    world.run_until(START + Duration::from_secs(5));
    let end = world.now + PATIENCE + Duration::from_secs(10);
    run_beside_nobody(&mut world, end, || false);
    assert_eq!(errors(&world, &handles), [Some(ConnectionError::Reset); 8]);
}

#[test]
fn one_complaint_or_three_end_nothing_nor_do_those_between_which_the_peer_speaks() {
    let config = Config::internet();
    let mut world = World::new(2, &config);
    let handle = world.connect(1, 2, &config);
    world.run_until(START + Duration::from_secs(5));
    for _ in 0..4 {
        let packets = Cell::new(0);
        let end = world.now + PATIENCE * 2;
        run_beside_nobody(&mut world, end, || packets.replace(packets.get() + 1) >= 3);
        assert!(packets.get() > 3 && errors(&world, &[handle]) == [None], "{} packets", packets.get());
        // The peer's own keepalive.
        world.endpoints[1].handle_timeout(world.now);
        world.run_until(world.now + Duration::from_secs(1));
        assert_eq!(errors(&world, &[handle]), [None]);
    }
}

#[test]
fn a_complaint_of_another_packet_is_of_no_account() {
    let config = Config::internet();
    let mut world = World::new(2, &config);
    let handle = world.connect(1, 2, &config);
    world.run_until(START + Duration::from_secs(5));
    let one = &mut world.endpoints[0];
    let at = one.poll_timeout().unwrap();
    one.handle_timeout(at);
    let (_, keepalive) = one.poll_transmit(at).unwrap();
    let seq = Packet::decode(&keepalive.head).unwrap().header.seq;
    for wrong in [seq.add(1), seq.sub(1)] {
        assert!((0..9).all(|_| !one.nobody_there(at, 2, &keepalive.head, wrong)));
    }
    assert!(!one.nobody_there(at, 3, &keepalive.head, seq), "another peer");
    assert!(one.nobody_there(at, 2, &keepalive.head, seq));
    one.connection_mut(handle).unwrap().write_slice(&[1; 100]).unwrap();
    let data = one.poll_transmit(at).unwrap().1;
    let seq = Packet::decode(&data.head).unwrap().header.seq;
    assert!(!one.nobody_there(at, 2, &data.head, seq), "what is under way has its timeouts");
    assert!(one.connection(handle).unwrap().error().is_none());
}
