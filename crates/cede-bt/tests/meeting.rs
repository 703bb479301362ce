//! Two peers that call each other at the same time, over paths that delay everything differently.

mod common;

use cede_bt::engine::{Action, Chunk, CloseReason, ConnId, ConnView, Setup};
use cede_bt::{Disposition, Duplicates, Engine, Profile, Transport};
use cede_units::{Duration, Instant, Stream};
use cede_wire::Payload;
use common::setup;
use std::collections::BTreeMap;

/// What is under way to one of two.
enum Event {
    /// A connection is open for who called.
    Opened(ConnId),
    /// Octets, or the end of the stream.
    Came(usize, Option<Payload>),
}

/// A connection: its two ends, as far as both know it.
struct Wire {
    ends: [Option<ConnId>; 2],
    transport: Transport,
    /// Until when something is under way to each end, what comes later comes after it.
    busy: [Instant; 2],
}

struct Pair {
    now: Instant,
    engines: [Engine<usize>; 2],
    wires: Vec<Wire>,
    under_way: BTreeMap<(Instant, u64), (usize, Event)>,
    sent: u64,
    delays: Stream,
    calls: u32,
    closed: Vec<CloseReason>,
}

impl Pair {
    /// A peer calls from a port that nobody waits at.
    const CALLER: usize = 100;

    fn new(clients: [Client; 2], masks: [u8; 2], seed: u64) -> Self {
        let engine = |at: usize| {
            let (profile, peer_id) = clients[at];
            Engine::new(Setup { peer_id, ..setup(at as u8, at == 0, profile, Disposition(masks[at])) })
        };
        Self {
            now: Instant::from_secs(1),
            engines: [engine(0), engine(1)],
            wires: Vec::new(),
            under_way: BTreeMap::new(),
            sent: 0,
            delays: Stream::named(seed, "delays"),
            calls: 0,
            closed: Vec::new(),
        }
    }

    /// Both begin within a few milliseconds, and are looked at until some seconds have passed.
    fn run(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        let late = Duration::from_millis(self.delays.below(60));
        self.begin(0);
        self.run_to(self.now + late);
        self.begin(1);
        self.run_to(end);
    }

    fn begin(&mut self, at: usize) {
        self.engines[at].start(self.now);
        self.engines[at].add_peers(self.now, &[1 - at]);
        self.drain(at);
    }

    fn run_to(&mut self, end: Instant) {
        for _ in 0..1_000_000 {
            let event = self.under_way.first_key_value().map(|(&(at, _), _)| at);
            let due = self.engines.iter().filter_map(Engine::poll_timeout).min();
            let next = event.into_iter().chain(due).min().unwrap_or(end);
            if next >= end {
                self.now = end;
                return;
            }
            self.now = next.max(self.now);
            if event == Some(next) {
                let (_, (to, event)) = self.under_way.pop_first().unwrap();
                self.happen(to, event);
            } else {
                for at in 0..2 {
                    self.engines[at].handle_timeout(self.now);
                    self.drain(at);
                }
            }
        }
        panic!("the two do not come to rest");
    }

    fn happen(&mut self, to: usize, event: Event) {
        match event {
            Event::Opened(conn) => self.engines[to].connected(self.now, conn),
            Event::Came(wire, octets) => self.come(to, wire, octets),
        }
        self.drain(to);
    }

    /// A caller is taken up once it has said something.
    fn come(&mut self, to: usize, wire: usize, octets: Option<Payload>) {
        let known = self.wires[wire].ends[to];
        match (known, octets) {
            (Some(conn), Some(octets)) => self.engines[to].received(self.now, conn, octets),
            (Some(conn), None) => {
                self.wires[wire].ends[to] = None;
                self.engines[to].closed(self.now, conn);
                self.engines[to].forget_caller(Self::CALLER + wire);
            }
            (None, Some(octets)) if self.wires[wire].busy[1 - to] == Instant::ZERO => {
                let transport = self.wires[wire].transport;
                let from = if transport == Transport::Utp { 1 - to } else { Self::CALLER + wire };
                let Some(conn) = self.engines[to].accept(self.now, from, transport) else {
                    return self.send(wire, 1 - to, None);
                };
                self.engines[to].set_room(conn, u32::MAX);
                self.wires[wire].ends[to] = Some(conn);
                self.engines[to].received(self.now, conn, octets);
            }
            (None, _) => {}
        }
    }

    fn send(&mut self, wire: usize, to: usize, octets: Option<Payload>) {
        let delay = Duration::from_millis(1 + self.delays.below(60));
        let at = (self.now + delay).max(self.wires[wire].busy[to]);
        self.wires[wire].busy[to] = at;
        self.sent += 1;
        self.under_way.insert((at, self.sent), (to, Event::Came(wire, octets)));
    }

    fn drain(&mut self, at: usize) {
        loop {
            if let Some(action) = self.engines[at].poll_action() {
                self.act(at, &action);
            } else if let Some((conn, chunk)) = self.engines[at].poll_transmit(self.now) {
                let octets = match chunk {
                    Chunk::Octets(payload) => payload,
                    Chunk::Content { offset, len } => Payload::Pattern { start: offset, len },
                };
                let wire = self.wire(at, conn);
                self.engines[at].set_room(conn, u32::MAX);
                self.send(wire, 1 - at, Some(octets));
            } else {
                return;
            }
        }
    }

    fn wire(&self, at: usize, conn: ConnId) -> usize {
        self.wires.iter().position(|wire| wire.ends[at] == Some(conn)).unwrap()
    }

    fn act(&mut self, at: usize, action: &Action<usize>) {
        match *action {
            Action::Connect { conn, transport, .. } => {
                self.calls += 1;
                let mut ends = [None; 2];
                ends[at] = Some(conn);
                self.wires.push(Wire { ends, transport, busy: [Instant::ZERO; 2] });
                let round_trip = Duration::from_millis(2 + self.delays.below(120));
                self.engines[at].set_room(conn, u32::MAX);
                self.sent += 1;
                self.under_way.insert((self.now + round_trip, self.sent), (at, Event::Opened(conn)));
            }
            Action::Close { conn, reason } => {
                self.closed.push(reason);
                let wire = self.wire(at, conn);
                self.wires[wire].ends[at] = None;
                self.engines[at].forget_caller(Self::CALLER + wire);
                self.send(wire, 1 - at, None);
            }
            _ => {}
        }
    }

    fn views(&self, at: usize) -> Vec<ConnView<usize>> {
        self.engines[at].connections().collect()
    }
}

/// How a client behaves, and what it calls itself.
type Client = (Profile, [u8; 20]);

/// The name of a client's user.
fn named(client: [u8; 3], number: u8) -> [u8; 20] {
    let mut id = [number; 20];
    id[..3].copy_from_slice(&client);
    id
}

/// Paths that are tried, for each pair of clients and what they attempt and accept.
const PATHS: u64 = 100;
const MASKS: [[u8; 2]; 6] = [[31, 31], [5, 5], [10, 10], [31, 5], [10, 31], [15, 13]];

/// A client of the open network, of this profile.
fn open(profile: Profile, duplicates: Duplicates) -> Profile {
    Profile { duplicates, duplicate_patience: Some(Duration::from_secs(3)), ..profile }
}

/// After some seconds both have one connection, and the same one.
fn one_stays(clients: [Client; 2]) {
    for masks in MASKS {
        for seed in 0..PATHS {
            let mut pair = Pair::new(clients, masks, seed);
            pair.run(25);
            let [here, there] = [0, 1].map(|at| pair.views(at));
            let names = clients.map(|(profile, id)| (profile.name, profile.duplicates, id[0], id[19]));
            let what = format!("{names:?} {masks:?}, path {seed}: {:?}", pair.closed);
            assert!(here.len() == 1 && there.len() == 1, "{} and {} in {what}", here.len(), there.len());
            assert_eq!(here[0].transport, there[0].transport, "{what}");
            assert_ne!(here[0].opened_by_us, there[0].opened_by_us, "{what}");
        }
    }
}

#[test]
fn of_two_that_call_each_other_at_once_one_connection_stays() {
    for rule in [Duplicates::PreferUtp, Duplicates::ByPeerId] {
        for profile in Profile::ALL {
            for clients in [[*b"-CE", *b"-CE"], [*b"-CE", *b"-LT"]] {
                one_stays([0, 1].map(|at| (open(profile, rule), named(clients[at], at as u8))));
            }
        }
    }
}

/// Nobody waits for what the other may think where both think alike.
#[test]
fn of_two_of_our_own_it_is_closed_at_once() {
    for seed in 0..PATHS {
        let client = |number| (open(Profile::UTORRENT3, Duplicates::PreferUtp), named(*b"-CE", number));
        let mut pair = Pair::new([client(1), client(2)], [31, 31], seed);
        pair.begin(0);
        pair.begin(1);
        pair.run_to(pair.now + Duration::from_millis(900));
        assert_eq!([0, 1].map(|at| pair.views(at).len()), [1, 1], "path {seed}");
    }
}

/// libtorrent, where it takes several connections from one address, keeps the one that the peer with the larger id has opened.
#[test]
fn so_it_does_where_the_two_go_by_different_rules() {
    let theirs = Profile { duplicates: Duplicates::ByPeerId, ..Profile::LIBTORRENT };
    let ours = open(Profile::UTORRENT3, Duplicates::PreferUtp);
    for name in [*b"-AA", *b"-LT"] {
        let (ours, theirs) = ((ours, named(*b"-CE", 1)), (theirs, named(name, 2)));
        one_stays([ours, theirs]);
        one_stays([theirs, ours]);
    }
}

/// Told of its own address it calls that once over each transport, and no more.
#[test]
fn who_is_told_of_its_own_address_calls_itself_once() {
    let client = (open(Profile::UTORRENT3, Duplicates::PreferUtp), named(*b"-CE", 1));
    // The other end of every call of the first is the second, under the same name.
    let mut pair = Pair::new([client; 2], [31, 31], 1);
    pair.begin(0);
    for minute in 1..10 {
        pair.run_to(Instant::from_secs(60 * minute));
        pair.engines[0].add_peers(pair.now, &[1]);
        pair.drain(0);
    }
    assert_eq!(pair.calls, 2);
    assert!(pair.closed.contains(&CloseReason::Ourselves), "{:?}", pair.closed);
    assert_eq!(pair.views(0).len(), 0);
}
