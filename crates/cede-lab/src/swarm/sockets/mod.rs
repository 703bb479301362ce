//! The connections of a simulated peer: a uTP endpoint and model TCP connections behind one set of names.

mod demux;
mod flow;
mod tcp;

use super::model::{ControllerChoice, Group, UtpStack};
use super::timers::Deadlines;
use crate::histogram::Histogram;
use crate::host::{IPV4_BYTES, UTP_OVERHEAD_BYTES, wrap};
use cede_bt::Transport;
use cede_bt::engine::ConnId;
use cede_bt::mixed::MixedRule;
use cede_cc::registry::{self, Entry};
use cede_cc::{Controller, ParamValue, Params, Path};
use cede_net::{Address, Datagram, HostId, Protocol};
use cede_units::{Duration, Instant, Stream};
use cede_utp::{Endpoint, Handle, Limits, Verdict, WriteError};
use cede_wire::Payload;
use cede_wire::utp::HEADER_BYTES;
use demux::Demux;
use flow::Flow;
use std::collections::{HashMap, VecDeque};
use tcp::TcpSlot;

/// The port on which every peer listens, over both transports.
pub(super) const PORT: u16 = 6881;

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
        let payload = group.packet_bytes.saturating_sub(UTP_OVERHEAD_BYTES).max(1) as u16;
        let known = cede_utp::Mtu::Fixed(payload);
        let ceiling_bytes = payload + HEADER_BYTES as u16;
        // No packet is larger than a full one, also where that is smaller than what every path of the internet carries.
        let floor_bytes = cede_utp::Mtu::FLOOR_IPV4_BYTES.min(ceiling_bytes);
        let searched = cede_utp::Mtu::Halving { floor_bytes, ceiling_bytes };
        let (utp, mtu) = match group.utp_stack {
            UtpStack::Libutp => (cede_utp::Config::libutp(), known),
            UtpStack::Libtorrent => (cede_utp::Config::libtorrent(), searched),
            UtpStack::Standard => (cede_utp::Config::default(), known),
        };
        // libutp bounds what is under way, by 1 MiB, as the peer's window does; what waits to be sent stands beside. Linux's
        // buffer for TCP holds both.
        let send_buffer_bytes = utp.send_buffer_bytes.saturating_add(group.write_ahead_bytes);
        Ok(Self {
            utp: cede_utp::Config { mtu, send_buffer_bytes, ..utp },
            tcp: cede_tcp::Config {
                mss_bytes: group.packet_bytes.saturating_sub(2 * IPV4_BYTES).max(1) as u16,
                nagle: true,
                timestamp_random: false,
                receive_tuning: group.profile.mixed != MixedRule::Free,
                ..group.tcp_stack.config()
            },
            utp_controller: chosen(&group.utp)?,
            tcp_controller: chosen(&group.tcp)?,
        })
    }
}

/// A controller and all its parameters: defaults are text, and are read here once, not for each connection. A seed that nobody gave is
/// drawn for each.
fn chosen(choice: &ControllerChoice) -> Result<(&'static Entry, Params), String> {
    let entry = registry::require(&choice.name).map_err(|error| error.to_string())?;
    let settings = registry::resolve(&choice.name, &choice.params).map_err(|error| error.to_string())?;
    let mut params = choice.params.clone();
    for (name, value) in
        settings.iter().filter(|(name, _)| *name != "seed" && choice.params.get(name).is_none())
    {
        params.set(name, value.clone());
    }
    Ok((entry, params))
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

/// Where a connection of the engine lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Tcp(u32),
    Utp(Handle),
}

/// What is known beside a uTP connection.
#[derive(Clone, Copy, Debug)]
struct UtpSlot {
    handle: Handle,
    conn: ConnId,
    flow: Flow,
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
    demux: Demux,
    next_port: u16,
    deadlines: Deadlines,
    dirty: Vec<u32>,
    /// Where each connection of the engine lives.
    places: Vec<Option<Place>>,
    /// The engine's connection of each handle of the endpoint.
    utp: Vec<Option<UtpSlot>>,
    /// The connection to each peer that was bound last.
    utp_peers: HashMap<u32, Handle, Mix>,
    /// Something was asked of the endpoint since it was last looked at.
    utp_stirred: bool,
    news: VecDeque<News>,
    write_ahead: u32,
    offload_bytes: u32,
    /// Smoothed RTTs at sends, where they are wanted.
    rtts: Option<Box<Histogram>>,
    /// Connections whose room may have grown.
    stirred: Vec<Place>,
    /// How many of these the engine has been told of.
    stirred_from: usize,
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
        let answers_strays = group.utp_stack != UtpStack::Libtorrent;
        let limits = Limits { half_open: 4096, backlog: 4096, early: 0, answers_strays, ..Limits::default() };
        let mut endpoint = Endpoint::new(limits, Stream::named(random.next_u64(), "utp"));
        let (config, controller) = (stack.utp.clone(), stack.utp_controller.clone());
        let mut drawn = Stream::named(random.next_u64(), "controllers");
        let listens = group.disposition.accepts(Transport::Utp);
        endpoint.listen_with(Box::new(move |_| {
            listens.then(|| (config.clone(), build(&controller, &config.path(), &mut drawn)))
        }));
        let smallest_bytes = stack.utp.send_buffer_bytes.min(stack.tcp.send_buffer_bytes);
        Self {
            me,
            stack,
            random,
            endpoint,
            tcp: Vec::new(),
            free: Vec::new(),
            demux: Demux::default(),
            next_port: tcp::FIRST_EPHEMERAL,
            deadlines: Deadlines::default(),
            dirty: Vec::new(),
            places: Vec::new(),
            utp: Vec::new(),
            utp_peers: HashMap::with_hasher(Mix::default()),
            utp_stirred: false,
            news: VecDeque::new(),
            // Half of it has to fit into the smaller of the buffers for room to be offered at all.
            write_ahead: group.write_ahead_bytes.min(smallest_bytes),
            offload_bytes: group.offload_bytes,
            rtts: None,
            stirred: Vec::new(),
            stirred_from: 0,
        }
    }

    /// Notes the RTT estimate at each send of data from now on.
    pub(super) fn note_rtts(&mut self) {
        self.rtts.get_or_insert_default();
    }

    /// The estimates.
    pub(super) fn rtt_estimates(&self) -> Option<Box<Histogram>> {
        self.rtts.clone()
    }

    /// Opens a connection for the engine.
    pub(super) fn connect(&mut self, now: Instant, conn: ConnId, to: HostId, transport: Transport) {
        let place = match transport {
            Transport::Tcp => Place::Tcp(self.connect_tcp(to, conn)),
            Transport::Utp => {
                let config = self.stack.utp.clone();
                let controller = build(&self.stack.utp_controller, &config.path(), &mut self.random);
                self.utp_stirred = true;
                match self.endpoint.connect(now, to, config, controller) {
                    Some(handle) => Place::Utp(handle),
                    None => return self.news.push_back(News::Closed(conn)),
                }
            }
        };
        self.bind(conn, place);
    }

    fn bind(&mut self, conn: ConnId, place: Place) {
        if self.places.len() <= conn.index() {
            self.places.resize(conn.index() + 1, None);
        }
        self.places[conn.index()] = Some(place);
        match place {
            Place::Tcp(index) => {
                if let Some(slot) = &mut self.tcp[index as usize] {
                    (slot.conn, slot.flow) = (Some(conn), Flow::default());
                }
            }
            Place::Utp(handle) => {
                let index = handle.index() as usize;
                if self.utp.len() <= index {
                    self.utp.resize(index + 1, None);
                }
                self.utp[index] = Some(UtpSlot { handle, conn, flow: Flow::default() });
                if let Some(peer) = self.endpoint.peer(handle) {
                    self.utp_peers.insert(peer.0, handle);
                }
            }
        }
    }

    /// The engine takes a newcomer up.
    pub(super) fn adopt(&mut self, newcomer: Newcomer, conn: ConnId) {
        self.bind(conn, newcomer.0);
        self.stirred.push(newcomer.0);
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
            Place::Utp(handle) => self.release(handle),
        }
    }

    /// The engine is done with a connection: what was written still leaves.
    pub(super) fn close(&mut self, conn: ConnId) {
        let Some(place) = self.place(conn) else { return };
        self.places[conn.index()] = None;
        match place {
            Place::Tcp(index) => {
                if let Some(slot) = &mut self.tcp[index as usize] {
                    slot.conn = None;
                    slot.connection.close();
                }
                self.soil(index);
            }
            Place::Utp(handle) => {
                self.utp[handle.index() as usize] = None;
                self.release(handle);
            }
        }
    }

    /// The engine is gone, and with it all that it has opened: the next one counts its connections from the beginning again.
    pub(super) fn close_all(&mut self) {
        let tcp = self.tcp.iter().flatten().filter_map(|slot| slot.conn);
        let utp = self.utp.iter().flatten().map(|slot| slot.conn);
        let conns: Vec<ConnId> = tcp.chain(utp).collect();
        conns.into_iter().for_each(|conn| self.close(conn));
    }

    fn release(&mut self, handle: Handle) {
        self.utp_stirred = true;
        self.endpoint.release(handle);
    }

    fn place(&self, conn: ConnId) -> Option<Place> {
        let place = (*self.places.get(conn.index())?)?;
        let lives_there = match place {
            Place::Tcp(index) => self.tcp[index as usize].as_ref()?.conn,
            Place::Utp(handle) => self.utp[handle.index() as usize].map(|slot| slot.conn),
        };
        (lives_there == Some(conn)).then_some(place)
    }

    /// The engine's connection behind a handle, where it has one.
    fn utp_slot(&mut self, handle: Handle) -> Option<&mut UtpSlot> {
        self.utp.get_mut(handle.index() as usize)?.as_mut().filter(|slot| slot.handle == handle)
    }

    /// Takes a packet in, for the TCP connection that [`Self::find`] has found, where there is one.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        datagram: Datagram,
        (known, accepts_tcp): (Option<u32>, bool),
    ) -> Option<Datagram> {
        match datagram.protocol {
            Protocol::Udp => {
                let source = datagram.source.host;
                self.utp_stirred = true;
                let verdict = self.endpoint.handle(now, source, &datagram.head, datagram.payload);
                if let Verdict::Taken(handle) = verdict {
                    self.stirred.push(Place::Utp(handle));
                }
                None
            }
            Protocol::Tcp => self.handle_tcp(now, datagram, (known, accepts_tcp)),
        }
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
            self.utp_stirred = true;
            self.endpoint.handle_timeout(now);
        }
    }

    /// The earliest deadline.
    pub(super) fn deadline(&self) -> Instant {
        self.deadlines.earliest().min(self.endpoint.poll_timeout().unwrap_or(Instant::NEVER))
    }

    /// What has happened since this was last asked.
    pub(super) fn next_news(&mut self) -> Option<News> {
        pop_from_start(&mut self.news)
    }

    /// Whether [`Sockets::next_news`] has any.
    pub(super) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// Hands octets to a connection; the engine was told of the room.
    pub(super) fn write(&mut self, conn: ConnId, payload: Payload) {
        match self.place(conn) {
            Some(Place::Tcp(index)) => {
                if let Some(slot) = &mut self.tcp[index as usize] {
                    let len = payload.len();
                    slot.flow.write(len);
                    must_take(len, slot.connection.write(payload).ok());
                }
                self.soil(index);
            }
            Some(Place::Utp(handle)) => {
                self.utp_stirred = true;
                let len = payload.len();
                if let Some(slot) = self.utp_slot(handle) {
                    slot.flow.write(len);
                }
                if let Some(connection) = self.endpoint.connection_mut(handle) {
                    let taken = connection.write(payload).or_else(|error| match error {
                        WriteError::Full => Ok(0),
                        WriteError::Closed => Err(error),
                    });
                    must_take(len, taken.ok());
                }
            }
            None => {}
        }
    }

    /// Whether [`Sockets::work`] has something to do, or there is news.
    pub(super) fn is_stirred(&self) -> bool {
        !self.dirty.is_empty() || self.utp_stirred || !self.news.is_empty()
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

    fn work_utp(&mut self, now: Instant, sends: &mut Vec<Datagram>) {
        // In a swarm over TCP the endpoint has nothing to say, and is not asked.
        if !core::mem::take(&mut self.utp_stirred) {
            return;
        }
        while let Some(handle) = self.endpoint.accept() {
            match self.endpoint.peer(handle) {
                Some(peer) => {
                    self.news.push_back(News::Arrived(Newcomer(Place::Utp(handle)), peer, Transport::Utp));
                }
                None => self.release(handle),
            }
        }
        self.hear_utp();
        while let Some((peer, transmit)) = self.endpoint.poll_transmit(now) {
            if !transmit.payload.is_empty()
                && let Some(&handle) = self.utp_peers.get(&peer.0)
            {
                self.stirred.push(Place::Utp(handle));
                let connection = self.endpoint.connection(handle);
                note_rtt(&mut self.rtts, || connection?.smoothed_rtt());
            }
            sends.push(wrap(Address::new(self.me, PORT), Address::new(peer, PORT), Protocol::Udp, transmit));
        }
        self.hear_utp();
    }

    fn hear_utp(&mut self) {
        while let Some((handle, event)) = self.endpoint.poll_event() {
            let Some(&mut UtpSlot { conn, .. }) = self.utp_slot(handle) else { continue };
            match event {
                cede_utp::Event::Connected => self.news.push_back(News::Connected(conn)),
                cede_utp::Event::Readable => self.read_utp(handle, conn),
                cede_utp::Event::PeerFinished | cede_utp::Event::Closed | cede_utp::Event::Failed(_) => {
                    self.read_utp(handle, conn);
                    self.news.push_back(News::Closed(conn));
                }
                cede_utp::Event::Writable => {}
            }
            self.stirred.push(Place::Utp(handle));
        }
    }

    fn read_utp(&mut self, handle: Handle, conn: ConnId) {
        self.utp_stirred = true;
        while let Some(payload) = self.endpoint.read(handle) {
            self.news.push_back(News::Received(conn, payload));
        }
    }

    /// The next connection that can take more than the engine has been told, of those at which something has happened since that
    /// was last asked, and how much.
    pub(super) fn next_room(&mut self) -> Option<(ConnId, u32)> {
        while let Some(&place) = self.stirred.get(self.stirred_from) {
            self.stirred_from += 1;
            if let Some(room) = self.offer(place) {
                return Some(room);
            }
        }
        self.stirred.clear();
        self.stirred_from = 0;
        None
    }

    fn offer(&mut self, place: Place) -> Option<(ConnId, u32)> {
        match place {
            Place::Tcp(index) => {
                let slot = self.tcp.get_mut(index as usize)?.as_mut()?;
                let statistics = slot.connection.statistics();
                let sent = statistics.data_bytes_sent - statistics.retransmitted_bytes;
                let writable = slot.connection.write_room();
                // Where reading is held back, so is writing, and the buffers of the kernel count.
                let room = if self.stack.tcp.receive_tuning {
                    let used = self.stack.tcp.send_buffer_bytes - writable;
                    slot.flow.offer_kernel(sent, (used, writable), self.stack.tcp.payload_bytes())
                } else {
                    slot.flow.offer(sent, writable, self.write_ahead)
                };
                Some((slot.conn?, room?))
            }
            Place::Utp(handle) => {
                let connection = self.endpoint.connection(handle)?;
                let (statistics, writable) = (connection.statistics(), connection.writable_bytes());
                let sent = statistics.data_bytes_sent - statistics.retransmitted_bytes;
                let write_ahead = self.write_ahead;
                let slot = self.utp_slot(handle)?;
                Some((slot.conn, slot.flow.offer(sent, writable, write_ahead)?))
            }
        }
    }
}

/// Takes the next off a queue; one that is empty begins again where it began, in memory that is near.
fn pop_from_start<T>(queue: &mut VecDeque<T>) -> Option<T> {
    let next = queue.pop_front();
    if next.is_none() {
        queue.clear();
    }
    next
}

/// The engine was told of the room, so all of it is taken; what a connection that is over does not take comes to nothing anyway.
/// Octets left out of a stream would make all that follow others than they are.
fn must_take(len: u32, taken: Option<u32>) {
    assert!(taken.is_none_or(|taken| taken == len), "{taken:?} of {len} octets were taken");
}

/// Notes an RTT estimate where they are wanted and there is one.
fn note_rtt(rtts: &mut Option<Box<Histogram>>, estimate: impl FnOnce() -> Option<Duration>) {
    if let Some(rtts) = rtts
        && let Some(estimate) = estimate()
    {
        rtts.record(estimate);
    }
}
