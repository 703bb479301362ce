//! The relay's thread: read what has come, send what is due, sleep until there is more of either.

use super::batch::Batch;
use super::direction::Direction;
use super::port::{Inbox, Port};
use super::{RelayConfig, Report};
use crate::clock::{Clock, age_of};
use crate::pause;
use crate::priority::{Priority, raise};
use crate::summary::Summary;
use cede_lab::histogram::Histogram;
use cede_units::Duration;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};

/// Requests wait this long at most.
const MAX_SLEEP: Duration = Duration::from_millis(5);
/// Calls to receive from one socket before anything else is looked at: what is due must not wait for long.
const FILLS_PER_TURN: usize = 4;
/// The socket that clients send to comes first.
const FRONT: usize = 0;
const IPV4_UDP_BYTES: u32 = 28;
const IPV6_UDP_BYTES: u32 = 48;

/// What can be asked of the thread.
pub(super) enum Request {
    /// To say what it has done.
    Report(SyncSender<Report>),
    /// To end.
    End,
}

pub(super) struct Forwarder {
    config: RelayConfig,
    requests: Receiver<Request>,
    clock: Clock,
    /// The front, and behind it each client's port towards the target.
    ports: Vec<Port>,
    clients: Clients,
    forward: Direction,
    backward: Direction,
    log: Log,
    batch: Batch,
    inbox: Inbox,
    priority: Priority,
}

/// Which way a datagram goes.
#[derive(Clone, Copy)]
enum Way {
    /// To the target.
    Forward,
    /// To a client.
    Backward,
}

/// Who sends through the relay.
#[derive(Default)]
struct Clients {
    known: HashMap<SocketAddr, usize>,
    addresses: Vec<SocketAddr>,
}

impl Clients {
    /// The client with this address; a new one is given a port towards the target. None beyond the limit, or where the
    /// system has no port left.
    fn find(&mut self, from: SocketAddr, config: &RelayConfig, ports: &mut Vec<Port>) -> Option<usize> {
        if let Some(&known) = self.known.get(&from) {
            return Some(known);
        }
        let number = self.addresses.len();
        if number >= config.max_clients {
            return None;
        }
        ports.push(Port::towards(config.target).ok()?);
        self.addresses.push(from);
        self.known.insert(from, number);
        Some(number)
    }
}

/// The relay's own conduct.
#[derive(Default)]
struct Log {
    departures_late: Histogram,
    arrivals_late: Histogram,
    refused: u64,
    receive_errors: u64,
}

impl Forwarder {
    pub fn new(config: RelayConfig, requests: Receiver<Request>) -> io::Result<Self> {
        let header_bytes = if config.target.is_ipv4() { IPV4_UDP_BYTES } else { IPV6_UDP_BYTES };
        Ok(Self {
            clock: Clock::new(),
            ports: vec![Port::bind(config.listen)?],
            clients: Clients::default(),
            forward: Direction::new(&config.forward, config.seed, "forward", header_bytes),
            backward: Direction::new(&config.backward, config.seed, "backward", header_bytes),
            log: Log::default(),
            batch: Batch::default(),
            inbox: Inbox::new(),
            priority: Priority::Ordinary(String::new()),
            config,
            requests,
        })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.ports[FRONT].socket.local_addr()
    }

    /// Runs until asked to end, or until the system does not let it wait any more.
    pub fn run(mut self) {
        self.priority = raise();
        let mut ready = Vec::new();
        while self.answer() && self.sleep(&mut ready).is_ok() {
            for &port in &ready {
                self.read(port);
            }
            self.depart(Way::Forward);
            self.depart(Way::Backward);
        }
    }

    /// Answers requests; false once it is to end.
    fn answer(&self) -> bool {
        loop {
            match self.requests.try_recv() {
                Ok(Request::Report(answer)) => {
                    let _ = answer.try_send(self.report());
                }
                Ok(Request::End) | Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    fn sleep(&self, ready: &mut Vec<usize>) -> io::Result<()> {
        let next = self.forward.next_event().min(self.backward.next_event());
        let span = next.since(self.clock.now()).min(MAX_SLEEP);
        pause::wait(self.ports.iter().map(|port| &port.socket), span, ready)
    }

    /// Takes in what has come to a port.
    fn read(&mut self, port: usize) {
        for _ in 0..FILLS_PER_TURN {
            if let Err(error) = self.inbox.fill(&self.ports[port]) {
                self.log.receive_errors += u64::from(error.kind() != io::ErrorKind::WouldBlock);
                return;
            }
            let now = self.clock.now();
            for datagram in self.inbox.datagrams() {
                let age = datagram.wall.map_or(Duration::ZERO, age_of);
                self.log.arrivals_late.record(age);
                let at = now.saturating_sub(age);
                let known = if port == FRONT {
                    self.clients.find(datagram.from, &self.config, &mut self.ports)
                } else {
                    (datagram.from == self.config.target).then(|| port - 1)
                };
                match known {
                    Some(client) if port == FRONT => self.forward.take_in(at, client, datagram.octets),
                    Some(client) => self.backward.take_in(at, client, datagram.octets),
                    None => self.log.refused += 1,
                }
            }
        }
    }

    /// Sends on what is due.
    fn depart(&mut self, way: Way) {
        let now = self.clock.now();
        let max_segments = self.ports[FRONT].max_segments();
        while let Some((due, parcel)) = self.direction(way).next_departure(now) {
            if !self.batch.fits(&parcel, max_segments) {
                self.flush(way);
            }
            self.batch.push(due, &parcel);
            self.direction(way).give_back(parcel.octets);
        }
        self.flush(way);
    }

    fn direction(&mut self, way: Way) -> &mut Direction {
        match way {
            Way::Forward => &mut self.forward,
            Way::Backward => &mut self.backward,
        }
    }

    fn flush(&mut self, way: Way) {
        if self.batch.is_empty() {
            return;
        }
        let batch = &self.batch;
        let (port, to) = match way {
            Way::Forward => (batch.client + 1, self.config.target),
            Way::Backward => (FRONT, self.clients.addresses[batch.client]),
        };
        let sent = self.ports[port].send(to, &batch.octets, batch.segment).is_ok();
        let (datagrams, bytes) = (batch.due.len() as u64, batch.octets.len() as u64);
        let now = self.clock.now();
        for &due in &batch.due {
            self.log.departures_late.record(now.since(due));
        }
        self.direction(way).count(datagrams, bytes, sent);
        self.batch.clear();
    }

    fn report(&self) -> Report {
        Report {
            elapsed: self.clock.elapsed(),
            forward: self.forward.report(),
            backward: self.backward.report(),
            departures_late: Summary::of(&self.log.departures_late),
            arrivals_late: Summary::of(&self.log.arrivals_late),
            clients: self.clients.addresses.len(),
            refused: self.log.refused,
            receive_errors: self.log.receive_errors,
            overflowed: None,
            priority: self.priority.clone(),
            ports: self.ports.iter().filter_map(|port| port.socket.local_addr().ok()).collect(),
        }
    }
}
