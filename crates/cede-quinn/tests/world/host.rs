//! One end of a QUIC connection as a host of the simulated world.

use super::INTERVAL;
use bytes::BytesMut;
use cede_net::{Address, Datagram, Host, HostId, Input, Output, Protocol};
use cede_quinn::QuicController;
use cede_units::Instant;
use cede_wire::{Ecn, Payload};
use quinn_proto::congestion::ControllerFactory;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig,
    Event, ServerConfig, StreamEvent, StreamId, Transmit, TransportConfig, VarInt,
};
use rcgen::CertifiedKey;
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time;

const PORT: u16 = 4433;
const CHUNK: &[u8] = &[0; 16 * 1024];
const SERVER_NAME: &str = "receiver.test";

/// A transfer from one host to another.
pub struct Flow {
    pub name: &'static str,
    pub congestion: Arc<dyn ControllerFactory + Send + Sync>,
    /// Seconds at which it begins and stops sending.
    pub span_s: (u64, u64),
}

/// What a host does.
pub enum Role {
    Sender { to: HostId, flow: Flow },
    Receiver,
}

/// The certificate that all receivers share.
pub struct Identity {
    server: Arc<ServerConfig>,
    client: ClientConfig,
}

impl Identity {
    pub fn new() -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec![SERVER_NAME.to_string()]).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let server = ServerConfig::with_single_cert(vec![cert.der().clone()], key.into()).expect("a server");
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).expect("a root");
        let client = ClientConfig::with_root_certificates(Arc::new(roots)).expect("a client");
        Self { server: Arc::new(server), client }
    }
}

/// A QUIC endpoint with one connection.
pub struct QuicHost {
    me: HostId,
    role: Role,
    base: time::Instant,
    client: ClientConfig,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    received: Vec<u64>,
    buffer: Vec<u8>,
}

impl QuicHost {
    pub fn new(me: HostId, role: Role, base: time::Instant, identity: &Identity) -> Self {
        let server = matches!(role, Role::Receiver).then(|| identity.server.clone());
        let mut seed = [0; 32];
        seed[0] = me.0 as u8;
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), server, true, Some(seed));
        Self {
            me,
            role,
            base,
            client: identity.client.clone(),
            endpoint,
            connection: None,
            stream: None,
            received: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Octets read, by interval.
    pub fn received(&self) -> &[u64] {
        &self.received
    }

    /// The name of our controller, where this end has one.
    pub fn controller(&self) -> Option<&'static str> {
        let (_, connection) = self.connection.as_ref()?;
        let controller = connection.congestion_state().clone_box().into_any();
        controller.downcast::<QuicController>().ok().map(|controller| controller.name())
    }

    /// This end's congestion window, whoever's the controller is.
    pub fn window_bytes(&self) -> Option<u64> {
        self.connection.as_ref().map(|(_, connection)| connection.congestion_state().window())
    }

    fn at(&self, now: Instant) -> time::Instant {
        self.base + time::Duration::from_nanos(now.as_nanos())
    }

    fn local(&self, at: time::Instant) -> Instant {
        Instant::from_nanos(at.saturating_duration_since(self.base).as_nanos() as u64)
    }

    fn connect(&mut self, now: time::Instant) {
        let Role::Sender { to, flow } = &self.role else { return };
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(flow.congestion.clone());
        let mut config = self.client.clone();
        config.transport_config(Arc::new(transport));
        self.connection =
            Some(self.endpoint.connect(now, config, socket(*to), SERVER_NAME).expect("the address is good"));
    }

    fn take(&mut self, now: time::Instant, datagram: &Datagram, output: &mut Output) {
        let ecn = EcnCodepoint::from_bits(datagram.ecn as u8);
        let data = BytesMut::from(&datagram.payload.to_vec()[..]);
        self.buffer.clear();
        let remote = socket(datagram.source.host);
        match self.endpoint.handle(now, remote, None, ecn, data, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut self.buffer, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(error) => panic!("the connection is not accepted: {}", error.cause),
                }
            }
            Some(DatagramEvent::Response(transmit)) => output.sends.extend(self.datagrams(&transmit)),
            None => {}
        }
    }

    /// The application: sends while its time lasts, reads all there is.
    fn application(&mut self, now: Instant) {
        while let Some(event) = self.connection.as_mut().and_then(|(_, connection)| connection.poll()) {
            match (event, &mut self.connection) {
                (Event::Connected, Some((_, connection))) if matches!(self.role, Role::Sender { .. }) => {
                    self.stream = connection.streams().open(Dir::Uni);
                }
                (Event::Stream(StreamEvent::Opened { dir }), Some((_, connection))) => {
                    self.stream = connection.streams().accept(dir);
                    self.read(now);
                }
                (Event::Stream(StreamEvent::Readable { .. }), _) => self.read(now),
                (Event::ConnectionLost { .. }, _) => self.stream = None,
                _ => {}
            }
        }
        self.write(now);
    }

    fn read(&mut self, now: Instant) {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else { return };
        let interval = (now.as_nanos() / INTERVAL.as_nanos()) as usize;
        self.received.resize(self.received.len().max(interval + 1), 0);
        let mut reader = connection.recv_stream(stream);
        let Ok(mut chunks) = reader.read(true) else { return };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.received[interval] += chunk.bytes.len() as u64;
        }
        let _ = chunks.finalize();
    }

    fn write(&mut self, now: Instant) {
        let Role::Sender { flow, .. } = &self.role else { return };
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else { return };
        if now >= Instant::from_secs(flow.span_s.1) {
            let at = self.base + time::Duration::from_nanos(now.as_nanos());
            connection.close(at, VarInt::from_u32(0), bytes::Bytes::new());
            self.stream = None;
            return;
        }
        while connection.send_stream(stream).write(CHUNK).is_ok_and(|written| written == CHUNK.len()) {}
    }

    /// Lets connection and endpoint talk until both are quiet, and sends what they want sent.
    fn drive(&mut self, now: time::Instant, output: &mut Output) {
        while let Some((handle, connection)) = &mut self.connection {
            let Some(event) = connection.poll_endpoint_events() else { break };
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        loop {
            self.buffer.clear();
            let Some((_, connection)) = &mut self.connection else { return };
            let Some(transmit) = connection.poll_transmit(now, 1, &mut self.buffer) else { return };
            output.sends.extend(self.datagrams(&transmit));
        }
    }

    fn datagrams(&self, transmit: &Transmit) -> Option<Datagram> {
        let SocketAddr::V4(to) = transmit.destination else { return None };
        let to = HostId(u32::from(*to.ip()) & 0xff);
        Some(Datagram {
            source: Address::new(self.me, PORT),
            destination: Address::new(to, PORT),
            protocol: Protocol::Udp,
            dont_fragment: true,
            ecn: match transmit.ecn {
                Some(EcnCodepoint::Ect0) => Ecn::Ect0,
                Some(EcnCodepoint::Ect1) => Ecn::Ect1,
                Some(EcnCodepoint::Ce) => Ecn::Ce,
                None => Ecn::NotEct,
            },
            network_overhead_bytes: 20,
            payload: Payload::copy_from(&self.buffer[..transmit.size]),
            ..Datagram::default()
        })
    }

    fn next_wake(&mut self) -> Option<Instant> {
        let deadline = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        let deadline = deadline.map(|at| self.local(at));
        let Role::Sender { flow, .. } = &self.role else { return deadline };
        let begin = self.connection.is_none().then(|| Instant::from_secs(flow.span_s.0));
        let end = self.stream.map(|_| Instant::from_secs(flow.span_s.1));
        [deadline, begin, end].into_iter().flatten().min()
    }
}

impl Host for QuicHost {
    fn handle(&mut self, now: Instant, input: Input, output: &mut Output) {
        let at = self.at(now);
        match &input {
            Input::Datagram(datagram) => self.take(at, datagram, output),
            Input::Start | Input::Timeout => {}
        }
        if let Role::Sender { flow, .. } = &self.role
            && self.connection.is_none()
            && now >= Instant::from_secs(flow.span_s.0)
        {
            self.connect(at);
        }
        if let Some((_, connection)) = &mut self.connection
            && connection.poll_timeout().is_some_and(|deadline| deadline <= at)
        {
            connection.handle_timeout(at);
        }
        self.application(now);
        self.drive(at, output);
        output.wake_at = self.next_wake();
    }
}

fn socket(host: HostId) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host.0 as u8)), PORT)
}
