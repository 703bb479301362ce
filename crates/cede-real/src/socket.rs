//! The socket: what opens streams and takes them up.

use crate::config::{SocketConfig, StreamConfig};
use crate::driver;
use crate::error::{BindError, ConnectError, socket_closed};
use crate::foreign::Foreign;
use crate::shared::Shared;
use crate::stream::{Core, UtpStream};
use crate::udp::{Udp, canonical};
use crate::way::Way;
use cede_units::Stream;
use cede_utp::{Endpoint, EndpointStatistics};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use tokio::net::ToSocketAddrs;

/// A UDP socket that carries uTP streams, any number of them, in both directions.
///
/// Dropping it takes up no more streams of peers; streams that exist go on, and the UDP port stays taken until the last
/// of them has ended. All methods take `&self`: share it in an [`Arc`].
pub struct UtpSocket {
    shared: Arc<Shared>,
    config: SocketConfig,
}

/// Counters of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SocketStatistics {
    /// Connections, those that linger included.
    pub connections: usize,
    /// What came from strangers.
    pub endpoint: EndpointStatistics,
    /// Octets that have arrived and that no stream has been read for
    /// ([`Limits::buffered_bytes`](cede_utp::Limits::buffered_bytes)).
    pub buffered_bytes: u64,
    /// Datagrams that arrived.
    pub datagrams_received: u64,
    /// System calls that received them.
    pub receive_calls: u64,
    /// System calls to receive that failed.
    pub receive_errors: u64,
    /// Things that routers and peers said of our datagrams (ICMP) and that were heeded.
    pub icmp_heeded: u64,
    /// Likewise, and not: they quote no packet that is under way, or tell what we do not act upon.
    pub icmp_ignored: u64,
    /// Datagrams that left.
    pub datagrams_sent: u64,
    /// System calls that sent them.
    pub send_calls: u64,
    /// Datagrams that the system refused to send, path-MTU probes larger than the interface carries among them.
    pub send_errors: u64,
    /// Datagrams of other protocols that nobody took.
    pub foreign_dropped: u64,
}

impl UtpSocket {
    /// Binds to an address, with defaults for all choices. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`BindError::Io`].
    pub async fn bind(addr: impl ToSocketAddrs) -> Result<Self, BindError> {
        Self::bind_with(addr, SocketConfig::default()).await
    }

    /// As [`UtpSocket::bind`], with choices. Where the name has several addresses, the first that can be bound.
    ///
    /// # Errors
    /// [`BindError`].
    pub async fn bind_with(addr: impl ToSocketAddrs, config: SocketConfig) -> Result<Self, BindError> {
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
        for addr in tokio::net::lookup_host(addr).await? {
            match Udp::bind(addr, &config) {
                Ok(udp) => return Self::start(udp, config),
                Err(error) => last = error,
            }
        }
        Err(last.into())
    }

    fn start(udp: Udp, config: SocketConfig) -> Result<Self, BindError> {
        let seed = getrandom::u64().map_err(io::Error::other)?;
        let mut endpoint = Endpoint::new(config.limits, Stream::named(seed, "socket"));
        // Whether the controller can be built does not depend on the peer.
        config.stream.build_for(udp.local_addr())?;
        if config.accepts {
            let choice = config.stream.clone();
            endpoint.listen_with(Box::new(move |way: &Way| choice.build_for(way.peer).ok()));
        }
        let shared = Arc::new(Shared::new(udp, endpoint));
        tokio::spawn(driver::run(Arc::clone(&shared)));
        Ok(Self { shared, config })
    }

    /// The address that the socket is bound to.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.udp.local_addr()
    }

    /// Opens a stream to a peer, with the socket's choices for streams. Ends when the peer has answered; dropping the
    /// future gives the attempt up.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(&self, peer: SocketAddr) -> Result<UtpStream, ConnectError> {
        self.connect_with(peer, &self.config.stream).await
    }

    /// As [`UtpSocket::connect`], with choices for this stream.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect_with(
        &self,
        peer: SocketAddr,
        config: &StreamConfig,
    ) -> Result<UtpStream, ConnectError> {
        let core = self.begin(peer, config)?;
        poll_fn(|cx| core.poll_connected(cx)).await?;
        core.search_large_datagrams();
        Ok(UtpStream::new(core))
    }

    /// The connection whose SYN has just left.
    fn begin(&self, peer: SocketAddr, config: &StreamConfig) -> Result<Core, ConnectError> {
        let peer = self.shared.udp.address_of(peer).ok_or(ConnectError::AddressFamily)?;
        let (transport, controller) = config.build_for(peer).map_err(ConnectError::Controller)?;
        let now = self.shared.clock.now();
        let handle = self.shared.with(|state| {
            if state.is_driver_gone() {
                return Err(ConnectError::SocketClosed);
            }
            let handle = state
                .endpoint
                .connect(now, Way::to(peer), transport, controller)
                .ok_or(ConnectError::Full)?;
            state.hold(handle);
            Ok(handle)
        })?;
        Ok(Core::new(Arc::clone(&self.shared), handle))
    }

    /// The next stream that a peer has opened. Dropping the future loses none.
    ///
    /// While few peers are at it, this is before they have shown that they receive, so that we can speak first: what is
    /// written then leaves as far as it fits one small packet, and a SYN with a forged address ends as a stream that times
    /// out after ten seconds. See [`Limits::early`](cede_utp::Limits::early), which says how many are few, and forbids it
    /// if it is zero.
    ///
    /// # Errors
    /// Of kind `NotConnected` once the socket's driver has ended.
    pub async fn accept(&self) -> io::Result<UtpStream> {
        let handle = poll_fn(|cx| {
            let mut state = self.shared.lock();
            let taken = state.take_incoming(cx);
            if let Some(handle) = taken {
                state.hold(handle);
            }
            let gone = state.is_driver_gone();
            self.shared.settle(state);
            match taken {
                Some(taken) => Poll::Ready(Ok(taken)),
                None if gone => Poll::Ready(Err(socket_closed())),
                None => Poll::Pending,
            }
        })
        .await?;
        let core = Core::new(Arc::clone(&self.shared), handle);
        // Only now: a question to the system for each SYN of a flood would be dear.
        core.search_large_datagrams();
        Ok(UtpStream::new(core))
    }

    /// Decides about each stream that a peer opens from now on, by the peer's address: with which choices it is taken up,
    /// or that its SYN stays without answer (`None`, or choices whose controller cannot be built). The closure is asked
    /// for SYNs of a flood too and runs under the socket's lock: it should be quick and must not use the socket.
    pub fn listen_with(&self, mut choose: impl FnMut(SocketAddr) -> Option<StreamConfig> + Send + 'static) {
        self.shared.with(|state| {
            state.endpoint.listen_with(Box::new(move |way: &Way| {
                choose(canonical(way.peer))?.build_for(way.peer).ok()
            }));
        });
    }

    /// Takes up no more streams. Those that wait for [`UtpSocket::accept`] still do.
    pub fn stop_listening(&self) {
        self.shared.with(|state| state.endpoint.stop_listening());
    }

    /// Where datagrams that are no uTP come out from now on; before the first call they are dropped and counted. A
    /// second call takes the outlet from who made the first.
    #[must_use]
    pub fn foreign(&self) -> Foreign {
        self.shared.lock().foreign.open(self.config.foreign_backlog)
    }

    /// Sends a datagram of another protocol from the same port.
    ///
    /// # Errors
    /// The system's, and `InvalidInput` for a peer of an address family that the socket does not speak.
    pub async fn send_foreign(&self, octets: &[u8], peer: SocketAddr) -> io::Result<()> {
        let peer = self.shared.udp.address_of(peer).ok_or(ConnectError::AddressFamily)?;
        self.shared.udp.send_to(octets, peer).await
    }

    /// What the socket has done so far.
    #[must_use]
    pub fn statistics(&self) -> SocketStatistics {
        let state = self.shared.lock();
        SocketStatistics {
            connections: state.endpoint.len(),
            endpoint: *state.endpoint.statistics(),
            buffered_bytes: state.endpoint.buffered_bytes(),
            datagrams_received: state.received_datagrams,
            receive_calls: state.receive_calls,
            receive_errors: state.receive_errors,
            icmp_heeded: state.complaints_heeded,
            icmp_ignored: state.complaints_ignored,
            datagrams_sent: state.outgoing.sent.datagrams,
            send_calls: state.outgoing.sent.calls,
            send_errors: state.outgoing.sent.errors,
            foreign_dropped: state.foreign.dropped,
        }
    }
}

impl Drop for UtpSocket {
    fn drop(&mut self) {
        self.shared.with(|state| {
            state.stop_accepting();
            state.foreign.close();
        });
    }
}

impl std::fmt::Debug for UtpSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UtpSocket").field("local_addr", &self.local_addr()).finish_non_exhaustive()
    }
}
