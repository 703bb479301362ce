//! A host of the laboratory: sockets of uTP and TCP, with an application behind each that sends a pattern or checks it.

use crate::journal::{Entry, Happening, Journal, Standing};
use crate::scenario::{Protocol, TcpAck, TcpOptions, UtpAck, UtpOptions};
use crate::traffic::Source;
use crate::view::SocketView;
use cede_net::{Address, Datagram, Host, Input, Output};
use cede_tcp::{InitialWindow, Ports};
use cede_units::{Duration, Instant, Stream};
use cede_utp::ControllerFactory;
use cede_wire::{Payload, Transmit};

/// Octets of an IPv4 header.
const IPV4_BYTES: u32 = 20;
/// Octets of headers of a uTP packet: IPv4, UDP and uTP.
const UTP_OVERHEAD_BYTES: u32 = IPV4_BYTES + 8 + 20;
/// An application keeps this much written and unsent, so that a flow that is told to stop has little left to say.
const WRITE_AHEAD_BYTES: u64 = 32 << 10;

/// One end of a flow.
pub struct Socket {
    me: Address,
    peer: Address,
    transport: Transport,
    role: Role,
    start: Instant,
    /// The peer will send nothing more.
    peer_finished: bool,
    /// Why the connection ended, where it ended badly.
    error: Option<String>,
    /// What happens to it, where somebody wants to know.
    journal: Option<Box<Journal>>,
}

enum Transport {
    /// Nothing has happened yet: what it takes to begin.
    Idle(Box<Opening>),
    Utp(Box<cede_utp::Endpoint<Address>>, Option<cede_utp::Handle>),
    Tcp(Box<cede_tcp::Connection>),
}

/// What it takes to open or accept a connection.
struct Opening {
    protocol: Protocol,
    packet_bytes: u32,
    controller: Option<ControllerFactory>,
    random: Stream,
}

enum Role {
    Sender { source: Source, written: u64, closed: bool, finished_at: Option<Instant> },
    Receiver { received: u64, intact: bool },
}

impl Socket {
    /// The end of a flow that sends what `source` offers, from the source's start on.
    #[must_use]
    pub fn sender(ends: (Address, Address), setup: SocketSetup, source: Source, start: Instant) -> Self {
        let role = Role::Sender { source, written: 0, closed: false, finished_at: None };
        Self::new(ends, setup, role, start)
    }

    /// The end of a flow that receives, and checks that what comes is what was sent.
    #[must_use]
    pub fn receiver(ends: (Address, Address), setup: SocketSetup) -> Self {
        let role = Role::Receiver { received: 0, intact: true };
        Self::new(ends, setup, role, Instant::NEVER)
    }

    fn new((me, peer): (Address, Address), setup: SocketSetup, role: Role, start: Instant) -> Self {
        let transport = Transport::Idle(setup.opening());
        Self { me, peer, transport, role, start, peer_finished: false, error: None, journal: None }
    }

    /// The same socket, which writes down what happens to it.
    #[must_use]
    pub fn with_journal(mut self) -> Self {
        self.journal = Some(Box::default());
        self
    }

    /// What happened since this was last asked; nothing without a journal.
    #[must_use]
    pub fn take_journal(&self) -> Vec<Entry> {
        self.journal.as_ref().map(|journal| journal.take()).unwrap_or_default()
    }

    /// Payload octets received in order.
    #[must_use]
    pub const fn received_bytes(&self) -> u64 {
        match self.role {
            Role::Receiver { received, .. } => received,
            Role::Sender { .. } => 0,
        }
    }

    /// Whether all that was received is what was sent.
    #[must_use]
    pub const fn is_intact(&self) -> bool {
        match self.role {
            Role::Receiver { intact, .. } => intact,
            Role::Sender { .. } => true,
        }
    }

    /// When, by the host's clock, everything had been sent and acknowledged.
    #[must_use]
    pub const fn finished_at(&self) -> Option<Instant> {
        match self.role {
            Role::Sender { finished_at, .. } => finished_at,
            Role::Receiver { .. } => None,
        }
    }

    /// What can be seen from outside.
    #[must_use]
    pub fn view(&self) -> SocketView {
        let view = match &self.transport {
            Transport::Idle(_) => SocketView::default(),
            Transport::Utp(endpoint, handle) => handle
                .and_then(|handle| endpoint.connection(handle))
                .map(SocketView::of_utp)
                .unwrap_or_default(),
            Transport::Tcp(connection) => SocketView::of_tcp(connection),
        };
        SocketView { error: self.error.clone(), ..view }
    }

    /// Takes what happens and sends what there is to send; returns the next deadline.
    fn handle(&mut self, now: Instant, datagram: Option<Datagram>, output: &mut Output) -> Instant {
        if now >= self.start && matches!(self.transport, Transport::Idle(_)) {
            self.connect(now);
        }
        match datagram {
            Some(datagram) => self.receive(now, datagram),
            None => self.expire(now),
        }
        self.work(now, output);
        if self.journal.is_some() {
            self.keep_journal(now);
        }
        self.deadline()
    }

    fn connect(&mut self, now: Instant) {
        let Transport::Idle(opening) = &mut self.transport else { return };
        if let Some(transport) = opening.connect(now, self.me, self.peer) {
            self.transport = transport;
            note(&mut self.journal, now, Happening::Opening);
        }
    }

    fn keep_journal(&mut self, now: Instant) {
        let Role::Sender { closed, finished_at, .. } = self.role else { return };
        let mut standing = self.transport.standing();
        (standing.stopped, standing.finished) = (closed, finished_at.is_some());
        if let Some(journal) = &mut self.journal {
            journal.compare(now, standing);
        }
    }

    fn receive(&mut self, now: Instant, datagram: Datagram) {
        if let Transport::Idle(opening) = &mut self.transport {
            // A receiver's first packet tells that there is a connection to accept.
            if let Some(transport) = opening.accept(now, &datagram) {
                self.transport = transport;
            }
            if !matches!(self.transport, Transport::Utp(..)) {
                return;
            }
        }
        match &mut self.transport {
            Transport::Idle(_) => {}
            Transport::Utp(endpoint, handle) => {
                endpoint.handle(now, datagram.source, &datagram.head, datagram.payload);
                if handle.is_none() {
                    *handle = endpoint.accept();
                }
            }
            Transport::Tcp(connection) => {
                if let Ok((segment, _)) = cede_wire::tcp::Segment::decode(&datagram.head) {
                    connection.handle(now, &segment, datagram.payload);
                }
            }
        }
    }

    fn expire(&mut self, now: Instant) {
        match &mut self.transport {
            Transport::Idle(_) => {}
            Transport::Utp(endpoint, _) => endpoint.handle_timeout(now),
            Transport::Tcp(connection) => connection.handle_timeout(now),
        }
    }

    /// Lets the application read and write, and sends what the transport then has to send.
    fn work(&mut self, now: Instant, output: &mut Output) {
        loop {
            self.hear_events(now);
            self.serve_application(now);
            if !self.transmit(now, output) {
                return;
            }
        }
    }

    fn hear_events(&mut self, now: Instant) {
        match &mut self.transport {
            Transport::Idle(_) => {}
            Transport::Utp(endpoint, _) => {
                while let Some((_, event)) = endpoint.poll_event() {
                    let happening = match event {
                        cede_utp::Event::PeerFinished => Happening::PeerFinished,
                        cede_utp::Event::Failed(error) => Happening::Failed(error.to_string()),
                        cede_utp::Event::Connected => Happening::Connected,
                        cede_utp::Event::Closed => Happening::Closed,
                        cede_utp::Event::Readable | cede_utp::Event::Writable => continue,
                    };
                    hear(&mut self.peer_finished, &mut self.error, &happening);
                    note(&mut self.journal, now, happening);
                }
            }
            Transport::Tcp(connection) => {
                while let Some(event) = connection.poll_event() {
                    let happening = match event {
                        cede_tcp::Event::PeerFinished => Happening::PeerFinished,
                        cede_tcp::Event::Failed(failure) => Happening::Failed(failure.to_string()),
                        cede_tcp::Event::Connected => Happening::Connected,
                        cede_tcp::Event::Closed => Happening::Closed,
                        cede_tcp::Event::Readable | cede_tcp::Event::Writable => continue,
                    };
                    hear(&mut self.peer_finished, &mut self.error, &happening);
                    note(&mut self.journal, now, happening);
                }
            }
        }
    }

    fn serve_application(&mut self, now: Instant) {
        match &mut self.role {
            Role::Receiver { received, intact } => {
                while let Some(payload) = self.transport.read() {
                    *intact &= continues(&payload, *received);
                    *received += u64::from(payload.len());
                }
                if self.peer_finished {
                    self.transport.close();
                }
            }
            Role::Sender { source, written, closed, finished_at } => {
                let offer = source.offer(now);
                let room = WRITE_AHEAD_BYTES.saturating_sub(*written - self.transport.first_sent_bytes());
                // Half a buffer at a time: one write serves many packets.
                if offer > 0 && room >= (WRITE_AHEAD_BYTES / 2).min(offer) && !*closed {
                    let payload = Payload::Pattern { start: *written, len: offer.min(room) as u32 };
                    let accepted = u64::from(self.transport.write(payload));
                    source.taken(accepted);
                    *written += accepted;
                }
                if source.is_finished() && !*closed && !matches!(self.transport, Transport::Idle(_)) {
                    self.transport.close();
                    *closed = true;
                }
                if *closed && finished_at.is_none() && self.transport.acked_bytes() >= *written {
                    *finished_at = Some(now);
                }
            }
        }
    }

    /// Sends everything that may leave; says whether there was anything.
    fn transmit(&mut self, now: Instant, output: &mut Output) -> bool {
        let before = output.sends.len();
        loop {
            let sent = match &mut self.transport {
                Transport::Idle(_) => None,
                Transport::Utp(endpoint, _) => endpoint
                    .poll_transmit(now)
                    .map(|(peer, transmit)| wrap(self.me, peer, cede_net::Protocol::Udp, transmit)),
                Transport::Tcp(connection) => connection
                    .poll_transmit(now)
                    .map(|transmit| wrap(self.me, self.peer, cede_net::Protocol::Tcp, transmit)),
            };
            let Some(datagram) = sent else { break };
            output.sends.push(datagram);
        }
        output.sends.len() > before
    }

    fn deadline(&self) -> Instant {
        let transport = match &self.transport {
            Transport::Idle(_) => Some(self.start),
            Transport::Utp(endpoint, _) => endpoint.poll_timeout(),
            Transport::Tcp(connection) => connection.poll_timeout(),
        };
        let application = match &self.role {
            Role::Sender { source, closed: false, .. } => source.next_change(),
            _ => Instant::NEVER,
        };
        transport.unwrap_or(Instant::NEVER).min(application.max(self.start))
    }
}

impl Transport {
    fn read(&mut self) -> Option<Payload> {
        match self {
            Self::Idle(_) => None,
            Self::Utp(endpoint, handle) => endpoint.read((*handle)?),
            Self::Tcp(connection) => connection.read(),
        }
    }

    /// Writes what fits and says how much that was.
    fn write(&mut self, payload: Payload) -> u32 {
        match self {
            Self::Idle(_) => 0,
            Self::Utp(endpoint, handle) => {
                let connection = handle.and_then(|handle| endpoint.connection_mut(handle));
                connection.map_or(0, |connection| connection.write(payload).unwrap_or(0))
            }
            Self::Tcp(connection) => connection.write(payload).unwrap_or(0),
        }
    }

    fn close(&mut self) {
        match self {
            Self::Idle(_) => {}
            Self::Utp(endpoint, handle) => {
                if let Some(connection) = handle.and_then(|handle| endpoint.connection_mut(handle)) {
                    connection.close();
                }
            }
            Self::Tcp(connection) => connection.close(),
        }
    }

    /// Losses, timeouts and phase.
    fn standing(&self) -> Standing {
        let (losses, timeouts, phase) = match self {
            Self::Idle(_) => (0, 0, None),
            Self::Utp(endpoint, handle) => {
                let Some(connection) = handle.and_then(|handle| endpoint.connection(handle)) else {
                    return Standing::default();
                };
                let statistics = connection.statistics();
                (statistics.losses, statistics.timeouts, Some(connection.snapshot().controller.phase))
            }
            Self::Tcp(connection) => {
                let statistics = connection.statistics();
                (statistics.losses, statistics.timeouts, Some(connection.snapshot().controller.phase))
            }
        };
        Standing { losses, timeouts, phase, ..Standing::default() }
    }

    /// Payload octets that have been sent at least once.
    fn first_sent_bytes(&self) -> u64 {
        match self {
            Self::Idle(_) => 0,
            Self::Utp(endpoint, handle) => {
                let statistics =
                    handle.and_then(|handle| endpoint.connection(handle)).map(|c| c.statistics());
                statistics.map_or(0, |s| s.data_bytes_sent - s.retransmitted_bytes)
            }
            Self::Tcp(connection) => {
                let statistics = connection.statistics();
                statistics.data_bytes_sent - statistics.retransmitted_bytes
            }
        }
    }

    fn acked_bytes(&self) -> u64 {
        match self {
            Self::Idle(_) => 0,
            Self::Utp(endpoint, handle) => handle
                .and_then(|handle| endpoint.connection(handle))
                .map_or(u64::MAX, |connection| connection.statistics().bytes_acked),
            Self::Tcp(connection) => connection.statistics().delivered_bytes,
        }
    }
}

/// What an event means for the application.
fn hear(peer_finished: &mut bool, error: &mut Option<String>, happening: &Happening) {
    match happening {
        Happening::PeerFinished => *peer_finished = true,
        Happening::Failed(reason) => *error = Some(reason.clone()),
        _ => {}
    }
}

fn note(journal: &mut Option<Box<Journal>>, now: Instant, happening: Happening) {
    if let Some(journal) = journal {
        journal.note(now, happening);
    }
}

/// What a socket is made of.
pub struct SocketSetup {
    /// The transport with its options.
    pub protocol: Protocol,
    /// Octets of a full packet, all headers included.
    pub packet_bytes: u32,
    /// Who decides how much may be under way.
    pub controller: ControllerFactory,
    /// Where the connection's random numbers come from.
    pub random: Stream,
}

impl SocketSetup {
    fn opening(self) -> Box<Opening> {
        Box::new(Opening {
            protocol: self.protocol,
            packet_bytes: self.packet_bytes,
            controller: Some(self.controller),
            random: self.random,
        })
    }
}

impl Opening {
    fn connect(&mut self, now: Instant, me: Address, peer: Address) -> Option<Transport> {
        match &self.protocol {
            Protocol::Utp(options) => {
                let config = utp_config(options, self.packet_bytes);
                let controller = (self.controller.take()?)(&config.path());
                let mut endpoint = self.endpoint();
                let handle = endpoint.connect(now, peer, config, controller);
                Some(Transport::Utp(endpoint, handle))
            }
            Protocol::Tcp(options) => {
                let config = tcp_config(options, self.packet_bytes);
                let controller = (self.controller.take()?)(&config.path());
                let ports = Ports { local: me.port, remote: peer.port };
                let connection = cede_tcp::Connection::connect(config, controller, ports, &mut self.random);
                Some(Transport::Tcp(Box::new(connection)))
            }
        }
    }

    fn accept(&mut self, now: Instant, datagram: &Datagram) -> Option<Transport> {
        match &self.protocol {
            Protocol::Utp(options) => {
                let config = utp_config(options, self.packet_bytes);
                let mut endpoint = self.endpoint();
                endpoint.listen(config, self.controller.take()?);
                Some(Transport::Utp(endpoint, None))
            }
            Protocol::Tcp(options) => {
                let config = tcp_config(options, self.packet_bytes);
                let (segment, _) = cede_wire::tcp::Segment::decode(&datagram.head).ok()?;
                let controller = (self.controller.as_mut()?)(&config.path());
                let accepted =
                    cede_tcp::Connection::accept(now, config, controller, &segment, &mut self.random).ok()?;
                Some(Transport::Tcp(Box::new(accepted)))
            }
        }
    }

    fn endpoint(&self) -> Box<cede_utp::Endpoint<Address>> {
        Box::new(cede_utp::Endpoint::new(cede_utp::Limits::default(), self.random.clone()))
    }
}

fn utp_config(options: &UtpOptions, packet_bytes: u32) -> cede_utp::Config {
    let payload = packet_bytes.saturating_sub(UTP_OVERHEAD_BYTES).max(1) as u16;
    let delayed = cede_utp::DelayedAck {
        timeout: options.ack_delay,
        every_packets: u8::try_from(options.ack_packets).unwrap_or(u8::MAX),
    };
    let search = cede_utp::Mtu::Search { floor_bytes: 548, ceiling_bytes: payload + 20 };
    let clamp = |bytes: cede_units::Bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX);
    // Both ends are ours, so neither is bound to the 1,024 packets of libutp's receivers.
    let packets = (clamp(options.send_buffer) / u32::from(payload)).clamp(1_023, 16_384) as u16;
    cede_utp::Config {
        mtu: if options.mtu_search { search } else { cede_utp::Mtu::Fixed(payload) },
        min_rto: options.min_rto,
        delayed_ack: (options.ack == UtpAck::Delayed).then_some(delayed),
        send_buffer_bytes: clamp(options.send_buffer),
        receive_buffer_bytes: clamp(options.receive_buffer),
        max_outstanding_packets: packets,
        seq_window_packets: packets + 1,
        ..cede_utp::Config::default()
    }
}

fn tcp_config(options: &TcpOptions, packet_bytes: u32) -> cede_tcp::Config {
    let clamp = |bytes: cede_units::Bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX);
    cede_tcp::Config {
        mss_bytes: packet_bytes.saturating_sub(2 * IPV4_BYTES).max(1) as u16,
        initial_window: InitialWindow::Segments(options.initial_window_packets),
        sack: options.sack,
        limited_transmit: options.limited_transmit,
        timestamps: options.timestamps,
        timestamp_granularity: options.timestamp_tick,
        ack_policy: match options.ack {
            TcpAck::Every => cede_tcp::AckPolicy::Every,
            TcpAck::Delayed => cede_tcp::AckPolicy::Delayed { every: 2, timeout: options.ack_delay },
            TcpAck::Linux => cede_tcp::AckPolicy::Linux,
        },
        send_buffer_bytes: clamp(options.send_buffer),
        receive_window_bytes: clamp(options.receive_buffer),
        rto_min: options.min_rto,
        ..cede_tcp::Config::default()
    }
}

fn wrap(source: Address, destination: Address, protocol: cede_net::Protocol, transmit: Transmit) -> Datagram {
    Datagram {
        source,
        destination,
        protocol,
        dont_fragment: transmit.dont_fragment,
        network_overhead_bytes: IPV4_BYTES as u8,
        head: transmit.head,
        payload: transmit.payload,
    }
}

/// Whether a payload is the run of the pattern that begins at `offset`.
fn continues(payload: &Payload, offset: u64) -> bool {
    match payload {
        Payload::Pattern { start, .. } => *start == offset,
        Payload::Empty => true,
        Payload::Shared { .. } => {
            payload.to_vec().iter().zip(offset..).all(|(&o, at)| o == cede_wire::pattern_octet(at))
        }
    }
}

/// A host: its sockets, by port.
#[derive(Default)]
pub struct LabHost {
    sockets: Vec<Socket>,
    deadlines: Vec<Instant>,
    /// What the host's clock showed when the world began; sockets count from there.
    origin: Instant,
}

impl LabHost {
    /// A host with these sockets.
    #[must_use]
    pub fn new(mut sockets: Vec<Socket>) -> Self {
        sockets.sort_by_key(|socket| socket.me.port);
        Self { deadlines: vec![Instant::NEVER; sockets.len()], sockets, origin: Instant::ZERO }
    }

    /// The socket at a port.
    #[must_use]
    pub fn socket(&self, port: u16) -> Option<&Socket> {
        self.place(port).map(|index| &self.sockets[index])
    }

    /// What the host's clock showed when the world began.
    #[must_use]
    pub const fn origin(&self) -> Instant {
        self.origin
    }

    fn place(&self, port: u16) -> Option<usize> {
        match &self.sockets[..] {
            [only] => (only.me.port == port).then_some(0),
            sockets => sockets.binary_search_by_key(&port, |socket| socket.me.port).ok(),
        }
    }

    fn begin(&mut self, now: Instant) {
        self.origin = now;
        let since_start = Duration::from_nanos(now.as_nanos());
        for socket in &mut self.sockets {
            socket.start += since_start;
            if let Role::Sender { source, .. } = &mut socket.role {
                source.delay(since_start);
            }
        }
    }
}

impl Host for LabHost {
    fn handle(&mut self, now: Instant, input: Input, output: &mut Output) {
        match input {
            Input::Datagram(datagram) => {
                if let Some(index) = self.place(datagram.destination.port) {
                    self.deadlines[index] = self.sockets[index].handle(now, Some(datagram), output);
                }
            }
            Input::Start => {
                self.begin(now);
                for (socket, deadline) in self.sockets.iter_mut().zip(&mut self.deadlines) {
                    *deadline = socket.handle(now, None, output);
                }
            }
            Input::Timeout => {
                for (socket, deadline) in self.sockets.iter_mut().zip(&mut self.deadlines) {
                    if *deadline <= now {
                        *deadline = socket.handle(now, None, output);
                    }
                }
            }
        }
        output.wake_at = self.deadlines.iter().copied().min().filter(|&at| at != Instant::NEVER);
    }
}
