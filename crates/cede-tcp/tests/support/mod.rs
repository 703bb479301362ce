//! Two connections and a channel between them, in virtual time.
#![allow(dead_code)]

pub mod script;

use cede_cc::{Controller, ParamValue, Params, registry};
use cede_tcp::{Config, Connection, Event, Ports};
use cede_units::{Bytes, Duration, Instant, Rate, Stream};
use cede_wire::tcp::Segment;
use cede_wire::{Payload, Transmit};
use std::collections::BTreeMap;

/// A controller by name, for a connection with this configuration.
pub fn controller(name: &str, config: &Config) -> Box<dyn Controller> {
    registry::build(name, &Params::new(), &config.path()).unwrap()
}

/// A window that reacts to nothing.
pub fn fixed_window(cwnd_bytes: u64, config: &Config) -> Box<dyn Controller> {
    let params = Params::new().with("cwnd", ParamValue::Bytes(Bytes(cwnd_bytes)));
    registry::build("fixed", &params, &config.path()).unwrap()
}

pub const PORTS: Ports = Ports { local: 40_000, remote: 80 };

/// What the channel does with a segment.
pub enum Verdict {
    Deliver,
    Drop,
    Delay(Duration),
    Twice,
}

/// A segment on its way, as the channel sees it.
pub struct Passing<'a> {
    pub now: Instant,
    pub from_client: bool,
    /// Counts the segments with payload from the client, retransmissions included, from 0.
    pub data_index: u64,
    pub segment: &'a Segment,
    pub payload: &'a Payload,
}

/// One end and what its application has seen.
pub struct End {
    pub connection: Option<Connection>,
    pub config: Config,
    pub received: u64,
    pub intact: bool,
    pub events: Vec<Event>,
    pub to_send: u64,
    pub written: u64,
    pub closes: bool,
    pub reads: bool,
}

impl End {
    fn new(config: Config) -> Self {
        Self {
            connection: None,
            config,
            received: 0,
            intact: true,
            events: Vec::new(),
            to_send: 0,
            written: 0,
            closes: true,
            reads: true,
        }
    }

    /// The application: writes what it has, reads what came, closes when it is done.
    fn run_application(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        while let Some(event) = connection.poll_event() {
            // Each kind once is enough to know.
            if !self.events.contains(&event) {
                self.events.push(event);
            }
        }
        while self.written < self.to_send {
            let len = (self.to_send - self.written).min(1 << 20) as u32;
            match connection.write(Payload::Pattern { start: self.written, len }) {
                Ok(0) | Err(_) => break,
                Ok(n) => self.written += u64::from(n),
            }
        }
        while self.reads
            && let Some(payload) = connection.read()
        {
            // Patterns are compared by their place, which says as much as comparing the octets.
            self.intact &= matches!(payload, Payload::Pattern { start, .. } if start == self.received);
            self.received += u64::from(payload.len());
        }
    }

    fn maybe_close(&mut self) {
        let peer_done = self.events.contains(&Event::PeerFinished);
        let Some(connection) = &mut self.connection else { return };
        if self.closes && self.written == self.to_send && (self.to_send > 0 || peer_done) {
            connection.close();
        }
    }
}

/// Client, server, and what lies between.
pub struct Net {
    pub now: Instant,
    pub client: End,
    pub server: End,
    pub delay: Duration,
    /// The client's segments pass a link of this rate with room for so many octets.
    pub link: Option<(Rate, u64)>,
    link_free_at: Instant,
    random: Stream,
    in_flight: BTreeMap<(Instant, u64), (bool, Transmit)>,
    counter: u64,
    data_index: u64,
    pub drops: u64,
    pub server_window: u64,
}

impl Net {
    pub fn new(client: Config, server: Config, delay: Duration) -> Self {
        Self {
            now: Instant::from_secs(1),
            client: End::new(client),
            server: End::new(server),
            delay,
            link: None,
            link_free_at: Instant::ZERO,
            random: Stream::named(1, "net"),
            in_flight: BTreeMap::new(),
            counter: 0,
            data_index: 0,
            drops: 0,
            server_window: 1 << 20,
        }
    }

    pub fn connect(&mut self, controller: Box<dyn Controller>) {
        let config = self.client.config.clone();
        self.client.connection = Some(Connection::connect(config, controller, PORTS, &mut self.random));
    }

    pub fn client(&mut self) -> &mut Connection {
        self.client.connection.as_mut().unwrap()
    }

    pub fn server(&mut self) -> &mut Connection {
        self.server.connection.as_mut().unwrap()
    }

    /// Runs until nothing is pending or `until` is reached.
    pub fn run(&mut self, until: Instant, channel: &mut dyn FnMut(&Passing) -> Verdict) {
        self.drive(channel);
        while let Some(next) = self.next_at().filter(|&next| next <= until) {
            assert!(next >= self.now, "a deadline in the past: {next} at {}", self.now);
            self.now = next;
            self.step();
            self.drive(channel);
        }
        self.now = self.now.max(until);
    }

    fn next_at(&self) -> Option<Instant> {
        let arrival = self.in_flight.keys().next().map(|key| key.0);
        let ends = [&self.client, &self.server]
            .map(|end| end.connection.as_ref().and_then(Connection::poll_timeout));
        // A deadline that has just passed is due now.
        ends.into_iter().flatten().map(|at| at.max(self.now)).chain(arrival).min()
    }

    fn step(&mut self) {
        if let Some(entry) = self.in_flight.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (from_client, transmit) = entry.remove();
            self.arrive(from_client, transmit);
            return;
        }
        let now = self.now;
        for end in [&mut self.client, &mut self.server] {
            if let Some(connection) = &mut end.connection {
                connection.handle_timeout(now);
            }
        }
    }

    fn arrive(&mut self, from_client: bool, transmit: Transmit) {
        let (segment, len) = Segment::decode(&transmit.head).unwrap();
        assert_eq!(len, transmit.head.len());
        let now = self.now;
        let end = if from_client { &mut self.server } else { &mut self.client };
        match &mut end.connection {
            Some(connection) => connection.handle(now, &segment, transmit.payload),
            None => {
                let controller = fixed_window(self.server_window, &end.config);
                end.connection =
                    Connection::accept(now, end.config.clone(), controller, &segment, &mut self.random).ok();
            }
        }
    }

    /// Lets both ends do what they can now.
    pub fn drive(&mut self, channel: &mut dyn FnMut(&Passing) -> Verdict) {
        for from_client in [true, false] {
            loop {
                let now = self.now;
                let end = if from_client { &mut self.client } else { &mut self.server };
                let Some(connection) = &mut end.connection else { break };
                let Some(transmit) = connection.poll_transmit(now) else {
                    let before = (end.written, end.received);
                    end.run_application();
                    end.maybe_close();
                    let Some(last) = end.connection.as_mut().and_then(|c| c.poll_transmit(now)) else {
                        if before == (end.written, end.received) {
                            break;
                        }
                        continue;
                    };
                    self.launch(from_client, last, channel);
                    continue;
                };
                self.launch(from_client, transmit, channel);
            }
        }
    }

    fn launch(
        &mut self,
        from_client: bool,
        transmit: Transmit,
        channel: &mut dyn FnMut(&Passing) -> Verdict,
    ) {
        let (segment, _) = Segment::decode(&transmit.head).unwrap();
        let passing = Passing {
            now: self.now,
            from_client,
            data_index: self.data_index,
            segment: &segment,
            payload: &transmit.payload,
        };
        let verdict = channel(&passing);
        if from_client && !transmit.payload.is_empty() {
            self.data_index += 1;
        }
        match verdict {
            Verdict::Drop => self.drops += 1,
            Verdict::Deliver => self.put(from_client, transmit, Duration::ZERO),
            Verdict::Delay(more) => self.put(from_client, transmit, more),
            Verdict::Twice => {
                self.put(from_client, transmit.clone(), Duration::ZERO);
                self.put(from_client, transmit, Duration::ZERO);
            }
        }
    }

    fn put(&mut self, from_client: bool, transmit: Transmit, more: Duration) {
        let mut leaves = self.now;
        if let (Some((rate, room)), true) = (self.link, from_client) {
            let bytes = transmit.len() as u64 + 20;
            let backlog = rate.bytes_in(self.link_free_at.since(self.now));
            if backlog + bytes > room {
                self.drops += 1;
                return;
            }
            leaves = self.link_free_at.max(self.now) + rate.time_to_send(bytes);
            self.link_free_at = leaves;
        }
        self.counter += 1;
        self.in_flight.insert((leaves + self.delay + more, self.counter), (from_client, transmit));
    }
}

/// A channel that delivers everything.
pub fn clear(_: &Passing) -> Verdict {
    Verdict::Deliver
}
