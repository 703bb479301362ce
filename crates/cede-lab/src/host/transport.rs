//! The transport of a socket: a uTP endpoint or a TCP connection behind one set of calls.

use crate::journal::{Happening, Standing};
use crate::scenario::{Protocol, TcpAck, TcpOptions, UtpAck, UtpOptions};
use crate::view::SocketView;
use cede_net::{Address, Datagram};
use cede_tcp::{InitialWindow, Ports};
use cede_units::{Instant, Stream};
use cede_utp::ControllerFactory;
use cede_wire::{Payload, Transmit};

/// Octets of an IPv4 header.
pub(crate) const IPV4_BYTES: u32 = 20;
/// Octets of headers of a uTP packet: IPv4, UDP and uTP.
pub(crate) const UTP_OVERHEAD_BYTES: u32 = IPV4_BYTES + 8 + 20;

/// A transport before, or with, its connection.
pub(super) enum Transport {
    /// Nothing has happened yet: what it takes to begin.
    Idle(Box<Opening>),
    Utp(Box<cede_utp::Endpoint<Address>>, Option<cede_utp::Handle>),
    Tcp(Box<cede_tcp::Connection>),
}

/// What it takes to open or accept a connection.
pub(super) struct Opening {
    protocol: Protocol,
    packet_bytes: u32,
    controller: Option<ControllerFactory>,
    random: Stream,
}

impl Transport {
    /// Nothing has happened yet.
    pub(super) const fn is_idle(&self) -> bool {
        matches!(self, Self::Idle(_))
    }

    /// Opens the connection; says whether it could.
    pub(super) fn connect(&mut self, now: Instant, me: Address, peer: Address) -> bool {
        let Self::Idle(opening) = self else { return false };
        let Some(open) = opening.connect(now, me, peer) else { return false };
        *self = open;
        true
    }

    /// Takes a packet. The first one tells an idle transport that there is a connection to accept.
    pub(super) fn handle(&mut self, now: Instant, datagram: Datagram) {
        if let Self::Idle(opening) = self {
            let Some(accepted) = opening.accept(now, &datagram) else { return };
            *self = accepted;
            // TCP has taken the SYN already; uTP's endpoint has yet to see it.
            if matches!(self, Self::Tcp(_)) {
                return;
            }
        }
        match self {
            Self::Idle(_) => {}
            Self::Utp(endpoint, handle) => {
                endpoint.handle(now, datagram.source, &datagram.head, datagram.payload);
                if handle.is_none() {
                    *handle = endpoint.accept();
                }
            }
            Self::Tcp(connection) => {
                if let Ok((segment, _)) = cede_wire::tcp::Segment::decode(&datagram.head) {
                    connection.handle_with_ecn(now, &segment, datagram.payload, datagram.ecn);
                }
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Idle(_) => {}
            Self::Utp(endpoint, _) => endpoint.handle_timeout(now),
            Self::Tcp(connection) => connection.handle_timeout(now),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Idle(_) => None,
            Self::Utp(endpoint, _) => endpoint.poll_timeout(),
            Self::Tcp(connection) => connection.poll_timeout(),
        }
    }

    /// The next packet to send.
    pub(super) fn poll_transmit(&mut self, now: Instant, me: Address, peer: Address) -> Option<Datagram> {
        match self {
            Self::Idle(_) => None,
            Self::Utp(endpoint, _) => {
                let (peer, transmit) = endpoint.poll_transmit(now)?;
                Some(wrap(me, peer, cede_net::Protocol::Udp, transmit))
            }
            Self::Tcp(connection) => {
                let transmit = connection.poll_transmit(now)?;
                Some(wrap(me, peer, cede_net::Protocol::Tcp, transmit))
            }
        }
    }

    /// The next event that says more than that there is something to read or room to write.
    pub(super) fn next_happening(&mut self) -> Option<Happening> {
        loop {
            let happening = match self {
                Self::Idle(_) => return None,
                Self::Utp(endpoint, _) => match endpoint.poll_event()?.1 {
                    cede_utp::Event::PeerFinished => Happening::PeerFinished,
                    cede_utp::Event::Failed(error) => Happening::Failed(error.to_string()),
                    cede_utp::Event::Connected => Happening::Connected,
                    cede_utp::Event::Closed => Happening::Closed,
                    cede_utp::Event::Readable | cede_utp::Event::Writable => continue,
                },
                Self::Tcp(connection) => match connection.poll_event()? {
                    cede_tcp::Event::PeerFinished => Happening::PeerFinished,
                    cede_tcp::Event::Failed(failure) => Happening::Failed(failure.to_string()),
                    cede_tcp::Event::Connected => Happening::Connected,
                    cede_tcp::Event::Closed => Happening::Closed,
                    cede_tcp::Event::Readable | cede_tcp::Event::Writable => continue,
                },
            };
            return Some(happening);
        }
    }

    /// What can be seen from outside.
    pub(super) fn view(&self) -> SocketView {
        match self {
            Self::Idle(_) => SocketView::default(),
            Self::Utp(endpoint, handle) => handle
                .and_then(|handle| endpoint.connection(handle))
                .map(SocketView::of_utp)
                .unwrap_or_default(),
            Self::Tcp(connection) => SocketView::of_tcp(connection),
        }
    }

    pub(super) fn read(&mut self) -> Option<Payload> {
        match self {
            Self::Idle(_) => None,
            Self::Utp(endpoint, handle) => endpoint.read((*handle)?),
            Self::Tcp(connection) => connection.read(),
        }
    }

    /// Writes what fits and says how much that was.
    pub(super) fn write(&mut self, payload: Payload) -> u32 {
        match self {
            Self::Idle(_) => 0,
            Self::Utp(endpoint, handle) => {
                let connection = handle.and_then(|handle| endpoint.connection_mut(handle));
                connection.map_or(0, |connection| connection.write(payload).unwrap_or(0))
            }
            Self::Tcp(connection) => connection.write(payload).unwrap_or(0),
        }
    }

    pub(super) fn close(&mut self) {
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
    pub(super) fn standing(&self) -> Standing {
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
    pub(super) fn first_sent_bytes(&self) -> u64 {
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

    pub(super) fn acked_bytes(&self) -> u64 {
        match self {
            Self::Idle(_) => 0,
            Self::Utp(endpoint, handle) => handle
                .and_then(|handle| endpoint.connection(handle))
                .map_or(u64::MAX, |connection| connection.statistics().bytes_acked),
            Self::Tcp(connection) => connection.statistics().delivered_bytes,
        }
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
    /// The transport before anything has happened.
    pub(super) fn idle(self) -> Transport {
        Transport::Idle(Box::new(Opening {
            protocol: self.protocol,
            packet_bytes: self.packet_bytes,
            controller: Some(self.controller),
            random: self.random,
        }))
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
    let floor_bytes = cede_utp::Mtu::FLOOR_IPV4_BYTES;
    let search = cede_utp::Mtu::Search { floor_bytes, ceiling_bytes: payload + 20 };
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
        rack: options.internet,
        pace_windows: options.internet,
        initial_window_packets: if options.internet { 10 } else { 2 },
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
        rack: options.rack,
        prr: options.prr,
        ecn: options.ecn,
        timestamps: options.timestamps,
        timestamp_granularity: options.timestamp_tick,
        timestamp_random: options.timestamp_random,
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

/// What a transport wants to send, as a datagram over IPv4.
pub(crate) fn wrap(
    source: Address,
    destination: Address,
    protocol: cede_net::Protocol,
    transmit: Transmit,
) -> Datagram {
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
