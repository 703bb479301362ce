//! In the steady state no packet costs an allocation, neither where it is sent nor where it is received.
#![allow(missing_docs)]

use cede_cc::{ParamValue, Params, Path, registry};
use cede_units::{Bytes, Duration, Instant, Stream};
use cede_utp::{Config, Connection, Endpoint, Limits, Mtu};
use cede_wire::utp::Packet;
use cede_wire::{Payload, Transmit};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

const WINDOW_BYTES: u64 = 100 * 1382;

fn params(name: &str) -> Params {
    match name {
        "fixed" => Params::new().with("cwnd", ParamValue::Bytes(Bytes(WINDOW_BYTES))),
        _ => Params::new(),
    }
}

/// Every `n`th packet is lost, so that masks, losses and retransmissions are among what must not allocate.
struct Wire {
    flying: VecDeque<Transmit>,
    count: u64,
    drop_every: u64,
}

impl Wire {
    fn put(&mut self, transmit: Transmit) {
        self.count += 1;
        if !self.count.is_multiple_of(self.drop_every) {
            self.flying.push_back(transmit);
        }
    }
}

fn round(
    sender: &mut Connection,
    receiver: &mut Connection,
    wire: &mut Wire,
    now: &mut Instant,
    written: &mut u64,
) {
    *now += Duration::from_micros(100);
    while let Ok(n) = sender.write(Payload::Pattern { start: *written, len: 1 << 16 }) {
        *written += u64::from(n);
    }
    [&mut *sender, &mut *receiver].into_iter().for_each(|side| side.handle_timeout(*now));
    while let Some(transmit) = sender.poll_transmit(*now) {
        wire.put(transmit);
    }
    while let Some(transmit) = wire.flying.pop_front() {
        receiver.handle(*now, &transmit.head, transmit.payload);
        while let Some(answer) = receiver.poll_transmit(*now) {
            sender.handle(*now, &answer.head, answer.payload);
        }
        while receiver.read().is_some() {}
    }
    while sender.poll_event().is_some() {}
    while receiver.poll_event().is_some() {}
}

fn allocations_per_run(config: &Config, controller: &str, drop_every: u64) -> (u64, u64) {
    let build = || registry::build(controller, &params(controller), &config.path()).unwrap();
    let (mut random, mut now) = (Stream::named(1, "no alloc"), Instant::from_secs(1));
    let mut sender = Connection::connect(now, config.clone(), build(), &mut random);
    let syn = sender.poll_transmit(now).unwrap();
    let syn = Packet::decode(&syn.head).unwrap();
    let mut receiver = Connection::accept(now, &syn, config.clone(), build(), &mut random).unwrap();
    let answer = receiver.poll_transmit(now).unwrap();
    sender.handle(now, &answer.head, Payload::Empty);
    let mut wire = Wire { flying: VecDeque::with_capacity(4096), count: 0, drop_every };
    let mut written = 0;
    let mut run = |packets: u64| {
        let goal = sender.statistics().packets_acked + packets;
        let counted = allocation_counter::measure(|| {
            while sender.statistics().packets_acked < goal {
                round(&mut sender, &mut receiver, &mut wire, &mut now, &mut written);
            }
        });
        (counted.count_total, sender.statistics().retransmissions)
    };
    run(50_000);
    run(50_000)
}

/// One endpoint on either side, one connection.
fn allocations_through_endpoints() -> u64 {
    let (mut now, config) = (Instant::from_secs(1), Config::default());
    let build = || registry::build("fixed", &params("fixed"), &Config::default().path()).unwrap();
    let mut client: Endpoint<u32> = Endpoint::new(Limits::default(), Stream::named(1, "client"));
    let mut server: Endpoint<u32> = Endpoint::new(Limits::default(), Stream::named(1, "server"));
    server.listen(config.clone(), Box::new(move |_| build()));
    let build = || registry::build("fixed", &params("fixed"), &Config::default().path()).unwrap();
    let ours = client.connect(now, 2, config, build()).unwrap();
    let (mut theirs, mut written) = (None, 0_u64);
    let mut run = |packets: u64| {
        let goal = client.connection(ours).unwrap().statistics().packets_acked + packets;
        while client.connection(ours).unwrap().statistics().packets_acked < goal {
            now += Duration::from_micros(100);
            let connection = client.connection_mut(ours).unwrap();
            while let Ok(n) = connection.write(Payload::Pattern { start: written, len: 1 << 16 }) {
                written += u64::from(n);
            }
            while let Some((_, packet)) = client.poll_transmit(now) {
                server.handle(now, 1, &packet.head, packet.payload);
            }
            theirs = theirs.or_else(|| server.accept());
            if let Some(connection) = theirs.and_then(|handle| server.connection_mut(handle)) {
                while connection.read().is_some() {}
            }
            while let Some((_, packet)) = server.poll_transmit(now) {
                client.handle(now, 2, &packet.head, packet.payload);
            }
            while client.poll_event().is_some() {}
            while server.poll_event().is_some() {}
            assert!(client.poll_timeout().is_some());
        }
    };
    run(20_000);
    allocation_counter::measure(|| run(50_000)).count_total
}

#[test]
fn the_steady_state_allocates_nothing() {
    let copying = allocation_counter::measure(|| drop(Payload::copy_from(b"one")));
    assert_eq!(copying.count_total, 1, "the counter counts");
    for config in [Config::default(), Config::internet()] {
        for controller in ["fixed", "reno", "cubic", "ledbat"] {
            let (allocations, retransmissions) = allocations_per_run(&config, controller, u64::MAX);
            assert_eq!((allocations, retransmissions), (0, 0), "{controller}");
            let (allocations, retransmissions) = allocations_per_run(&config, controller, 50);
            assert!(retransmissions > 1000, "{controller}: {retransmissions}");
            assert_eq!(allocations, 0, "{controller} with losses");
        }
    }
    assert_eq!(allocations_through_endpoints(), 0);
}

/// Before anything has been sent, and after a busy time.
#[test]
fn idle_connections_hold_little_memory() {
    let now = Instant::from_secs(1);
    let config = Config::default();
    let mut open = Vec::new();
    let fresh = allocation_counter::measure(|| {
        let mut random = Stream::named(1, "idle");
        let controller = registry::build("ledbat", &params("ledbat"), &config.path()).unwrap();
        open.push(Box::new(Connection::connect(now, config.clone(), controller, &mut random)));
    });
    assert!(fresh.bytes_current < 3000, "{} octets", fresh.bytes_current);
    drop(open);
    let mut kept = None;
    let used = allocation_counter::measure(|| kept = Some(idle_pair()));
    println!("{} octets for both ends", used.bytes_current);
    // Most of what `Connection` says of its memory.
    assert!(used.bytes_current < 2 * 1320, "{} octets for both ends", used.bytes_current);
    drop(kept);
}

/// Two ends that have moved a megabyte, with losses, and have had nothing to do for half a minute.
fn idle_pair() -> (Box<Connection>, Box<Connection>) {
    let config = Arc::new(Config::default());
    let build = || registry::build("fixed", &params("fixed"), &config.path()).unwrap();
    let (mut random, mut now) = (Stream::named(1, "idle"), Instant::from_secs(1));
    let mut one = Box::new(Connection::connect(now, config.clone(), build(), &mut random));
    let syn = one.poll_transmit(now).unwrap();
    let syn = Packet::decode(&syn.head).unwrap();
    let mut two = Box::new(Connection::accept(now, &syn, config.clone(), build(), &mut random).unwrap());
    let mut left = 1 << 20;
    let mut sent = 0;
    while now < Instant::from_secs(60) {
        if left > 0 {
            left -=
                one.write(Payload::Pattern { start: (1 << 20) - u64::from(left), len: left }).unwrap_or(0);
        }
        now += Duration::from_millis(10);
        one.handle_timeout(now);
        two.handle_timeout(now);
        while let Some(answer) = two.poll_transmit(now) {
            one.handle(now, &answer.head, answer.payload);
        }
        while let Some(packet) = one.poll_transmit(now) {
            sent += 1;
            if sent % 50 != 0 {
                two.handle(now, &packet.head, packet.payload);
            }
        }
        while two.read().is_some() {}
    }
    assert_eq!(two.statistics().bytes_delivered, 1 << 20);
    (one, two)
}

/// What an idle connection end may cost, in octets of heap: its part of an endpoint's books, the connection, and a
/// `ledbat` controller. 1.8 KiB.
const IDLE_END_BYTES: u64 = 1843;
const IDLE_CONNECTIONS: u64 = 10_000;

/// Ten thousand connections of two endpoints, each of which has carried a BitTorrent handshake.
#[test]
fn ten_thousand_idle_connections_cost_what_is_documented() {
    let mut kept = None;
    let used = allocation_counter::measure(|| kept = Some(idle_endpoints(IDLE_CONNECTIONS)));
    let each = used.bytes_current as u64 / (2 * IDLE_CONNECTIONS);
    println!("{each} octets for each end of an idle connection");
    assert!(each <= IDLE_END_BYTES, "{each} octets");
    drop(kept);
}

type Sockets = (Endpoint<SocketAddr>, Endpoint<SocketAddr>);

fn idle_endpoints(connections: u64) -> Sockets {
    let limits = Limits { connections: 20_000, half_open: 20_000, backlog: 20_000, ..Limits::default() };
    let config = Config { mtu: Mtu::SEARCH_IPV4, ..Config::default() };
    let build = |path: &Path| registry::build("ledbat", &Params::new(), path).unwrap();
    let mut sockets =
        [1, 2].map(|seed| Endpoint::<SocketAddr>::new(limits, Stream::named(seed, "idle endpoints")));
    sockets[1].listen(config.clone(), Box::new(build));
    let addresses = [SocketAddr::from(([127, 0, 0, 1], 1)), SocketAddr::from(([127, 0, 0, 1], 2))];
    let mut now = Instant::from_secs(1);
    for _ in 0..connections {
        let handle = sockets[0].connect(now, addresses[1], config.clone(), build(&config.path())).unwrap();
        assert_eq!(sockets[0].connection_mut(handle).unwrap().write_slice(&[7; 68]), Ok(68));
    }
    for _ in 0..50 {
        now += Duration::from_millis(20);
        for end in 0..2 {
            sockets[end].handle_timeout(now);
            while let Some((_, packet)) = sockets[end].poll_transmit(now) {
                sockets[1 - end].handle(now, addresses[end], &packet.head, packet.payload);
            }
        }
        while let Some(handle) = sockets[1].accept() {
            assert_eq!(sockets[1].read(handle).map(|payload| payload.len()), Some(68));
        }
        sockets.iter_mut().for_each(|socket| while socket.poll_event().is_some() {});
    }
    let [one, two] = sockets;
    (one, two)
}
