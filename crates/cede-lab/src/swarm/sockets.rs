//! The connections of a simulated peer: a uTP endpoint and model TCP connections behind one set of names.

use super::model::{ControllerChoice, Group, UtpStack};
use super::timers::Deadlines;
use cede_bt::Transport;
use cede_bt::engine::ConnId;
use cede_cc::registry::{self, Entry};
use cede_cc::{Controller, ParamValue, Params, Path};
use cede_net::{Address, Datagram, HostId, Protocol};
use cede_tcp::Ports;
use cede_units::{Instant, Stream};
use cede_utp::{Endpoint, Handle, Limits, Verdict};
use cede_wire::{Payload, Transmit};
use std::collections::HashMap;

/// The port on which every peer listens, over both transports.
pub(super) const PORT: u16 = 6881;
/// The first port of connections that a peer opens.
const FIRST_EPHEMERAL: u16 = 10_000;
/// Octets of an IPv4 header.
const IPV4_BYTES: u32 = 20;
/// Octets of the headers of a uTP packet: IPv4, UDP, uTP.
const UTP_OVERHEAD_BYTES: u32 = IPV4_BYTES + 8 + 20;

/// What a peer's connections are made of.
pub(super) struct Stack {
    utp: cede_utp::Config,
    tcp: cede_tcp::Config,
    utp_controller: (&'static Entry, Params),
    tcp_controller: (&'static Entry, Params),
}

impl Stack {
    /// The stack of a group's peers. A controller that there is not is an error by its name.
    pub(super) fn of(group: &Group) -> Result<Self, String> {
        let entry = |choice: &ControllerChoice| {
            let entry = registry::require(&choice.name).map_err(|error| error.to_string())?;
            registry::resolve(&choice.name, &choice.params).map_err(|error| error.to_string())?;
            Ok::<_, String>((entry, choice.params.clone()))
        };
        let payload = group.packet_bytes.saturating_sub(UTP_OVERHEAD_BYTES).max(1) as u16;
        let utp = match group.utp_stack {
            UtpStack::Libutp => cede_utp::Config::libutp(),
            UtpStack::Libtorrent => cede_utp::Config::libtorrent(),
            UtpStack::Standard => cede_utp::Config::default(),
        };
        Ok(Self {
            utp: cede_utp::Config { mtu: cede_utp::Mtu::Fixed(payload), ..utp },
            tcp: cede_tcp::Config {
                mss_bytes: group.packet_bytes.saturating_sub(2 * IPV4_BYTES).max(1) as u16,
                nagle: true,
                timestamp_random: false,
                ..cede_tcp::Config::linux()
            },
            utp_controller: entry(&group.utp)?,
            tcp_controller: entry(&group.tcp)?,
        })
    }
}

fn build(
    (entry, params): &(&'static Entry, Params),
    path: &Path,
    random: &mut Stream,
) -> Box<dyn Controller> {
    let draws = entry.params.iter().any(|doc| doc.name == "seed") && params.get("seed").is_none();
    let mut params = params.clone();
    if draws {
        params.set("seed", ParamValue::Number(f64::from(random.next_u32())));
    }
    (entry.build)(&params, path).expect("parameters are checked before the run")
}

/// A TCP connection with what is known beside it.
struct TcpSlot {
    connection: Box<cede_tcp::Connection>,
    peer: Address,
    conn: Option<ConnId>,
    dirty: bool,
}

/// Where a connection of the engine lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Tcp(u32),
    Utp(Handle),
}

/// A connection of the engine.
#[derive(Clone, Copy, Debug)]
struct Wire {
    conn: ConnId,
    place: Place,
    /// Octets handed to the transport.
    written: u64,
    /// Room that the engine has been told of and has not used.
    offered: u32,
}

/// What a transport has to tell.
pub(super) enum News {
    /// A peer has opened a connection: answer with [`Sockets::adopt`] or [`Sockets::turn_away`].
    Arrived(Newcomer, HostId, Transport),
    /// The connection is open.
    Connected(ConnId),
    /// Octets came.
    Received(ConnId, Payload),
    /// The connection is over.
    Closed(ConnId),
}

/// A connection that the engine does not know yet.
#[derive(Clone, Copy)]
pub(super) struct Newcomer(Place);

/// The connections of one peer.
pub(super) struct Sockets {
    me: HostId,
    stack: Stack,
    random: Stream,
    endpoint: Endpoint<HostId>,
    tcp: Vec<Option<TcpSlot>>,
    free: Vec<u32>,
    demux: HashMap<(u32, u16, u16), u32, Mix>,
    next_port: u16,
    deadlines: Deadlines,
    dirty: Vec<u32>,
    wires: Vec<Option<Wire>>,
    /// The engine's connection of each handle of the endpoint.
    utp_conns: Vec<Option<(Handle, ConnId)>>,
    /// The connection to each peer that was bound last.
    utp_peers: HashMap<u32, ConnId, Mix>,
    news: std::collections::VecDeque<News>,
    write_ahead: u32,
    offload_bytes: u32,
    /// The sum of smoothed RTTs at sends in ms and their number, where they are wanted.
    rtt: Option<(f64, u64)>,
    /// Connections whose room may have grown.
    stirred: Vec<ConnId>,
}

/// Mixes small numbers: what is looked up here comes from the simulation, not from strangers.
#[derive(Clone, Copy, Default)]
pub(super) struct Mix(u64);

impl std::hash::BuildHasher for Mix {
    type Hasher = Self;
    fn build_hasher(&self) -> Self {
        Self(0)
    }
}

impl std::hash::Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(u32::from(byte)));
    }
    fn write_u16(&mut self, value: u16) {
        self.write_u32(u32::from(value));
    }
    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0.rotate_left(23) ^ u64::from(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Sockets {
    pub(super) fn new(me: HostId, stack: Stack, group: &Group, mut random: Stream) -> Self {
        let limits = Limits { half_open: 4096, backlog: 4096, early: 0, ..Limits::default() };
        let mut endpoint = Endpoint::new(limits, Stream::named(random.next_u64(), "utp"));
        let (config, controller) = (stack.utp.clone(), stack.utp_controller.clone());
        let mut drawn = Stream::named(random.next_u64(), "controllers");
        let listens = group.disposition.accepts(Transport::Utp);
        endpoint.listen_with(Box::new(move |_| {
            listens.then(|| (config.clone(), build(&controller, &config.path(), &mut drawn)))
        }));
        Self {
            me,
            stack,
            random,
            endpoint,
            tcp: Vec::new(),
            free: Vec::new(),
            demux: HashMap::with_hasher(Mix::default()),
            next_port: FIRST_EPHEMERAL,
            deadlines: Deadlines::default(),
            dirty: Vec::new(),
            wires: Vec::new(),
            utp_conns: Vec::new(),
            utp_peers: HashMap::with_hasher(Mix::default()),
            news: std::collections::VecDeque::new(),
            write_ahead: group.write_ahead_bytes,
            offload_bytes: group.offload_bytes,
            rtt: None,
            stirred: Vec::new(),
        }
    }

    /// Notes TCP's RTT estimate at each send of data from now on.
    pub(super) const fn note_rtt(&mut self) {
        self.rtt = Some((0.0, 0));
    }

    /// The sum of the estimates in ms, and how many there were.
    pub(super) fn rtt_estimates(&self) -> (f64, u64) {
        self.rtt.unwrap_or_default()
    }

    /// Opens a connection for the engine.
    pub(super) fn connect(&mut self, now: Instant, conn: ConnId, to: HostId, transport: Transport) {
        let place = match transport {
            Transport::Tcp => Place::Tcp(self.connect_tcp(to, conn)),
            Transport::Utp => {
                let config = self.stack.utp.clone();
                let controller = build(&self.stack.utp_controller, &config.path(), &mut self.random);
                match self.endpoint.connect(now, to, config, controller) {
                    Some(handle) => Place::Utp(handle),
                    None => return self.news.push_back(News::Closed(conn)),
                }
            }
        };
        self.bind(conn, place);
    }

    fn connect_tcp(&mut self, to: HostId, conn: ConnId) -> u32 {
        let ports = Ports { local: self.next_port, remote: PORT };
        self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_EPHEMERAL);
        let config = self.stack.tcp.clone();
        let controller = build(&self.stack.tcp_controller, &config.path(), &mut self.random);
        let connection = cede_tcp::Connection::connect(config, controller, ports, &mut self.random);
        self.insert_tcp(connection, Address::new(to, PORT), Some(conn))
    }

    fn insert_tcp(&mut self, connection: cede_tcp::Connection, peer: Address, conn: Option<ConnId>) -> u32 {
        let index = self.free.pop().unwrap_or(self.tcp.len() as u32);
        if index as usize == self.tcp.len() {
            self.tcp.push(None);
        }
        self.demux.insert((peer.host.0, peer.port, connection.ports().local), index);
        self.tcp[index as usize] =
            Some(TcpSlot { connection: Box::new(connection), peer, conn, dirty: false });
        self.soil(index);
        index
    }

    fn bind(&mut self, conn: ConnId, place: Place) {
        if self.wires.len() <= conn.index() {
            self.wires.resize(conn.index() + 1, None);
        }
        self.wires[conn.index()] = Some(Wire { conn, place, written: 0, offered: 0 });
        match place {
            Place::Tcp(index) => {
                if let Some(slot) = &mut self.tcp[index as usize] {
                    slot.conn = Some(conn);
                }
            }
            Place::Utp(handle) => {
                let index = handle.index() as usize;
                if self.utp_conns.len() <= index {
                    self.utp_conns.resize(index + 1, None);
                }
                self.utp_conns[index] = Some((handle, conn));
                if let Some(peer) = self.endpoint.peer(handle) {
                    self.utp_peers.insert(peer.0, conn);
                }
            }
        }
    }

    /// The engine takes a newcomer up.
    pub(super) fn adopt(&mut self, newcomer: Newcomer, conn: ConnId) {
        self.bind(conn, newcomer.0);
        self.stirred.push(conn);
        match newcomer.0 {
            Place::Tcp(index) => self.soil(index),
            Place::Utp(handle) => {
                self.read_utp(handle, conn);
                if self.endpoint.connection(handle).is_none_or(cede_utp::Connection::is_closed) {
                    self.news.push_back(News::Closed(conn));
                }
            }
        }
    }

    /// The engine does not want a newcomer.
    pub(super) fn turn_away(&mut self, newcomer: Newcomer) {
        match newcomer.0 {
            Place::Tcp(index) => {
                if let Some(slot) = &mut self.tcp[index as usize] {
                    slot.connection.abort();
                }
                self.soil(index);
            }
            Place::Utp(handle) => self.endpoint.release(handle),
        }
    }

    /// The engine is done with a connection: what was written still leaves.
    pub(super) fn close(&mut self, conn: ConnId) {
        let Some(wire) = self.wire(conn).copied() else { return };
        self.wires[conn.index()] = None;
        match wire.place {
            Place::Tcp(index) => {
                if let Some(slot) = &mut self.tcp[index as usize] {
                    slot.conn = None;
                    slot.connection.close();
                }
                self.soil(index);
            }
            Place::Utp(handle) => {
                self.utp_conns[handle.index() as usize] = None;
                self.endpoint.release(handle);
            }
        }
    }

    fn wire(&mut self, conn: ConnId) -> Option<&mut Wire> {
        self.wires.get_mut(conn.index())?.as_mut().filter(|wire| wire.conn == conn)
    }

    fn soil(&mut self, index: u32) {
        if let Some(slot) = &mut self.tcp[index as usize]
            && !core::mem::replace(&mut slot.dirty, true)
        {
            self.dirty.push(index);
        }
    }

    /// Takes a packet in.
    pub(super) fn handle(&mut self, now: Instant, datagram: Datagram, accepts_tcp: bool) -> Option<Datagram> {
        match datagram.protocol {
            Protocol::Udp => {
                let source = datagram.source.host;
                let verdict = self.endpoint.handle(now, source, &datagram.head, datagram.payload);
                if let Verdict::Taken(handle) = verdict {
                    self.stir_utp(handle);
                }
                None
            }
            Protocol::Tcp => self.handle_tcp(now, datagram, accepts_tcp),
        }
    }

    fn handle_tcp(&mut self, now: Instant, datagram: Datagram, accepts: bool) -> Option<Datagram> {
        let (segment, _) = cede_wire::tcp::Segment::decode(&datagram.head).ok()?;
        let source = datagram.source;
        let key = (source.host.0, source.port, datagram.destination.port);
        if let Some(&index) = self.demux.get(&key) {
            if let Some(slot) = &mut self.tcp[index as usize] {
                slot.connection.handle_with_ecn(now, &segment, datagram.payload, datagram.ecn);
            }
            self.soil(index);
            return None;
        }
        if accepts && datagram.destination.port == PORT {
            let config = self.stack.tcp.clone();
            let controller = build(&self.stack.tcp_controller, &config.path(), &mut self.random);
            if let Ok(connection) =
                cede_tcp::Connection::accept(now, config, controller, &segment, &mut self.random)
            {
                self.insert_tcp(connection, source, None);
                return None;
            }
        }
        let refusal = cede_tcp::Connection::refuse(&segment, datagram.payload.len())?;
        Some(wrap(datagram.destination, source, Protocol::Tcp, refusal))
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(index) = self.deadlines.due(now) {
            self.deadlines.set(index, Instant::NEVER);
            if let Some(slot) = &mut self.tcp[index] {
                slot.connection.handle_timeout(now);
                self.soil(index as u32);
            }
        }
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
    }

    /// The earliest deadline.
    pub(super) fn deadline(&self) -> Instant {
        self.deadlines.earliest().min(self.endpoint.poll_timeout().unwrap_or(Instant::NEVER))
    }

    /// What has happened since this was last asked.
    pub(super) fn next_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// Hands octets to a connection; the engine was told of the room.
    pub(super) fn write(&mut self, conn: ConnId, payload: Payload) {
        let len = payload.len();
        let Some(wire) = self.wire(conn) else { return };
        wire.written += u64::from(len);
        wire.offered = wire.offered.saturating_sub(len);
        match wire.place {
            Place::Tcp(index) => {
                if let Some(slot) = &mut self.tcp[index as usize] {
                    let _ = slot.connection.write(payload);
                }
                self.soil(index);
            }
            Place::Utp(handle) => {
                if let Some(connection) = self.endpoint.connection_mut(handle) {
                    let _ = connection.write(payload);
                }
            }
        }
    }

    /// Reads what has arrived, and sends what may leave. Says whether anything was sent.
    pub(super) fn work(&mut self, now: Instant, sends: &mut Vec<Datagram>) -> bool {
        let before = sends.len();
        let mut round = core::mem::take(&mut self.dirty);
        for &index in &round {
            self.work_tcp(now, index, sends);
        }
        round.clear();
        if self.dirty.is_empty() {
            self.dirty = round;
        }
        self.work_utp(now, sends);
        sends.len() > before
    }

    fn work_tcp(&mut self, now: Instant, index: u32, sends: &mut Vec<Datagram>) {
        self.hear_tcp(index);
        let Some(slot) = &mut self.tcp[index as usize] else { return };
        let first = sends.len();
        while let Some(transmit) = slot.connection.poll_transmit(now) {
            let me = Address::new(self.me, slot.connection.ports().local);
            sends.push(wrap(me, slot.peer, Protocol::Tcp, transmit));
        }
        if self.offload_bytes > 0 {
            super::offload::merge(sends, first, self.offload_bytes);
        }
        if let Some((sum, samples)) = &mut self.rtt
            && sends[first..].iter().any(|datagram| !datagram.payload.is_empty())
            && let Some(rtt) = slot.connection.smoothed_rtt()
        {
            (*sum, *samples) = (*sum + rtt.as_millis_f64(), *samples + 1);
        }
        self.stirred.extend(slot.conn);
        let deadline = slot.connection.poll_timeout().unwrap_or(Instant::NEVER);
        self.deadlines.set(index as usize, deadline);
        if slot.connection.is_closed() {
            self.remove_tcp(index);
        }
    }

    /// Takes in what a connection has to tell and what it has received.
    fn hear_tcp(&mut self, index: u32) {
        use cede_tcp::Event;
        let Some(slot) = &mut self.tcp[index as usize] else { return };
        slot.dirty = false;
        while let Some(event) = slot.connection.poll_event() {
            match (event, slot.conn) {
                (Event::Connected, Some(conn)) => self.news.push_back(News::Connected(conn)),
                (Event::Connected, None) => {
                    let newcomer = Newcomer(Place::Tcp(index));
                    self.news.push_back(News::Arrived(newcomer, slot.peer.host, Transport::Tcp));
                }
                (Event::Failed(_) | Event::PeerFinished | Event::Closed, conn) => {
                    slot.connection.close();
                    self.news.extend(conn.map(News::Closed));
                }
                (Event::Readable | Event::Writable, _) => {}
            }
        }
        let Some(conn) = slot.conn else { return };
        while let Some(payload) = slot.connection.read() {
            self.news.push_back(News::Received(conn, payload));
        }
    }

    fn remove_tcp(&mut self, index: u32) {
        let Some(slot) = self.tcp[index as usize].take() else { return };
        self.demux.remove(&(slot.peer.host.0, slot.peer.port, slot.connection.ports().local));
        self.deadlines.set(index as usize, Instant::NEVER);
        self.free.push(index);
        self.news.extend(slot.conn.map(News::Closed));
    }

    fn work_utp(&mut self, now: Instant, sends: &mut Vec<Datagram>) {
        while let Some(handle) = self.endpoint.accept() {
            match self.endpoint.peer(handle) {
                Some(peer) => {
                    self.news.push_back(News::Arrived(Newcomer(Place::Utp(handle)), peer, Transport::Utp));
                }
                None => self.endpoint.release(handle),
            }
        }
        self.hear_utp();
        while let Some((peer, transmit)) = self.endpoint.poll_transmit(now) {
            if !transmit.payload.is_empty() {
                self.stirred.extend(self.utp_peers.get(&peer.0));
            }
            sends.push(wrap(Address::new(self.me, PORT), Address::new(peer, PORT), Protocol::Udp, transmit));
        }
        self.hear_utp();
    }

    fn hear_utp(&mut self) {
        while let Some((handle, event)) = self.endpoint.poll_event() {
            let known = self.utp_conns.get(handle.index() as usize).copied().flatten();
            let Some((_, conn)) = known.filter(|(known, _)| *known == handle) else { continue };
            match event {
                cede_utp::Event::Connected => self.news.push_back(News::Connected(conn)),
                cede_utp::Event::Readable => self.read_utp(handle, conn),
                cede_utp::Event::PeerFinished | cede_utp::Event::Closed | cede_utp::Event::Failed(_) => {
                    self.read_utp(handle, conn);
                    self.news.push_back(News::Closed(conn));
                }
                cede_utp::Event::Writable => {}
            }
            self.stirred.push(conn);
        }
    }

    fn read_utp(&mut self, handle: Handle, conn: ConnId) {
        while let Some(payload) = self.endpoint.read(handle) {
            self.news.push_back(News::Received(conn, payload));
        }
    }

    /// Connections that can take more than the engine has been told, and how much.
    pub(super) fn take_rooms(&mut self, rooms: &mut Vec<(ConnId, u32)>) {
        let mut stirred = core::mem::take(&mut self.stirred);
        for &conn in &stirred {
            let Some(wire) = self.wire(conn).copied() else { continue };
            let Some(unsent) = self.unsent_bytes(&wire) else { continue };
            let room = self.write_ahead.saturating_sub(unsent.min(u64::from(u32::MAX)) as u32);
            // Half a buffer at a time: one write serves many packets.
            if room >= self.write_ahead / 2 && room > wire.offered {
                self.wires[conn.index()] = Some(Wire { offered: room, ..wire });
                rooms.push((conn, room));
            }
        }
        stirred.clear();
        if self.stirred.is_empty() {
            self.stirred = stirred;
        }
    }

    /// Octets that were written and have not been sent.
    fn unsent_bytes(&self, wire: &Wire) -> Option<u64> {
        let first_sent = match wire.place {
            Place::Tcp(index) => {
                let statistics = self.tcp[index as usize].as_ref()?.connection.statistics();
                statistics.data_bytes_sent - statistics.retransmitted_bytes
            }
            Place::Utp(handle) => {
                let statistics = self.endpoint.connection(handle)?.statistics();
                statistics.data_bytes_sent - statistics.retransmitted_bytes
            }
        };
        Some(wire.written.saturating_sub(first_sent))
    }

    fn stir_utp(&mut self, handle: Handle) {
        let known = self.utp_conns.get(handle.index() as usize).copied().flatten();
        self.stirred.extend(known.filter(|(known, _)| *known == handle).map(|(_, conn)| conn));
    }
}

fn wrap(source: Address, destination: Address, protocol: Protocol, transmit: Transmit) -> Datagram {
    Datagram {
        source,
        destination,
        protocol,
        dont_fragment: transmit.dont_fragment,
        ecn: transmit.ecn,
        network_overhead_bytes: IPV4_BYTES as u8,
        head: transmit.head,
        payload: transmit.payload,
    }
}
