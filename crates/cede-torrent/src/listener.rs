//! Where peers reach us.

use crate::ip_filter::IpFilter;
use crate::link::Stream;
use crate::open_files::is_too_many;
use crate::origin::Origin;
use crate::reception::{Callee, Door, Reception};
use cede_bt::{Disposition, Transport};
use cede_real::{SocketConfig, StreamConfig, UtpSocket};
use socket2::{Domain, Protocol, Socket, Type};
use std::cell::Cell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// Ports that are tried where any will do: TCP and UDP must both be free.
const PORT_TRIES: usize = 20;
/// After a failure to take up a connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where peers reach us: TCP and uTP at one port number, for as many torrents as share it.
pub struct Listener {
    pub(crate) tcp: Option<TcpListener>,
    pub(crate) utp: Option<UtpSocket>,
    pub(crate) stream: StreamConfig,
    port: u16,
    /// Where a router takes calls for us; 0 where none does.
    outer_port: Arc<AtomicU16>,
    origin: Origin,
    reception: Reception,
    /// Neither called nor heard.
    filter: Rc<IpFilter>,
    is_open: Cell<bool>,
    /// The process may have nothing more open.
    is_short: Notify,
}

impl Listener {
    /// Waits at a port (0 for any) of an address, or of all of both families where there is none.
    ///
    /// # Errors
    /// What the system says.
    pub async fn bind(
        address: Option<IpAddr>,
        port: u16,
        disposition: Disposition,
        stream: StreamConfig,
    ) -> io::Result<Self> {
        let all = [IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::UNSPECIFIED)];
        let addresses = address.map_or(all.to_vec(), |address| vec![address]);
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            for _ in 0..PORT_TRIES {
                match Self::bind_one(SocketAddr::new(address, port), disposition, stream.clone()).await {
                    Ok(listener) => return Ok(listener),
                    // A port that is free for one protocol may be taken for the other.
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse && port == 0 => last = error,
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
                    Err(error) => {
                        last = error;
                        break;
                    }
                }
            }
        }
        Err(last)
    }

    async fn bind_one(
        mut address: SocketAddr,
        disposition: Disposition,
        stream: StreamConfig,
    ) -> io::Result<Self> {
        let tcp = disposition.accepts(Transport::Tcp).then(|| listen_tcp(address)).transpose()?;
        if let Some(tcp) = &tcp {
            address.set_port(tcp.local_addr()?.port());
        }
        let is_used = disposition.accepts(Transport::Utp) || disposition.attempts(Transport::Utp);
        let mut utp = None;
        if is_used {
            let accepts = disposition.accepts(Transport::Utp);
            let config = SocketConfig { stream: stream.clone(), accepts, ..SocketConfig::default() };
            let socket = UtpSocket::bind_with(address, config).await.map_err(|error| match error {
                cede_real::BindError::Io(error) => error,
                other => io::Error::other(other),
            })?;
            address.set_port(socket.local_addr().port());
            utp = Some(socket);
        }
        let origin = Origin::new(Some(address.ip()));
        let (outer_port, reception, is_open) = (Arc::default(), Reception::default(), Cell::new(false));
        let (port, is_short, filter) = (address.port(), Notify::new(), Rc::default());
        Ok(Self { tcp, utp, stream, port, outer_port, origin, reception, filter, is_open, is_short })
    }

    /// The same, but that these addresses are neither called nor heard.
    #[must_use]
    pub fn leaving_alone(self, filter: Rc<IpFilter>) -> Self {
        Self { filter, ..self }
    }

    /// These.
    #[must_use]
    pub fn filter(&self) -> Rc<IpFilter> {
        self.filter.clone()
    }

    /// Whether an address is one of these.
    #[must_use]
    pub fn leaves_alone(&self, address: IpAddr) -> bool {
        self.filter.has(address)
    }

    fn admit(&self, stream: Stream, address: SocketAddr) {
        if !self.leaves_alone(address.ip()) {
            self.reception.admit(stream, address);
        }
    }

    /// Leads callers who mean one of these names to a torrent, as long as what comes back is there. Must be called within a
    /// [`tokio::task::LocalSet`], on the thread of the torrent.
    pub(crate) fn receive(self: &Rc<Self>, names: Vec<[u8; 20]>, callee: Rc<dyn Callee>) -> Door {
        if !self.is_open.replace(true) {
            tokio::task::spawn_local(self.clone().listen());
        }
        self.reception.open(names, callee)
    }

    /// Takes up connections for ever.
    async fn listen(self: Rc<Self>) {
        let tcp = async {
            let Some(tcp) = &self.tcp else { return std::future::pending().await };
            loop {
                match tcp.accept().await {
                    Ok((stream, address)) => self.admit(Stream::Tcp(stream), address),
                    Err(error) => {
                        if is_too_many(&error) {
                            self.is_short.notify_one();
                        }
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        };
        let utp = async {
            let Some(utp) = &self.utp else { return std::future::pending().await };
            while let Ok(stream) = utp.accept().await {
                let address = stream.peer_addr();
                self.admit(Stream::Utp(Box::new(stream)), address);
            }
        };
        tokio::join!(tcp, utp);
    }

    /// Waits until a caller had to wait because the process may have no more files and connections open.
    pub async fn runs_short(&self) {
        self.is_short.notified().await;
    }

    /// Where uTP is to be had, and how its streams are opened.
    pub(crate) fn utp(&self) -> Option<(&UtpSocket, &StreamConfig)> {
        Some((self.utp.as_ref()?, &self.stream))
    }

    /// Where connections go out from: the address that it waits at.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The port by which others are told of us: a router's where one leads here, else ours. It may be asked for on any thread.
    pub fn outer_port(&self) -> impl Fn() -> u16 + Send + 'static {
        let (port, outer) = (self.port, self.outer_port.clone());
        move || told(port, &outer)
    }

    /// The same, as it is now.
    pub(crate) fn told_port(&self) -> u16 {
        told(self.port, &self.outer_port)
    }

    /// A router leads from this port to ours, or none does. Trackers, peers and the hash table hear of it when they are told of us again, peers
    /// whom a session has called at once.
    pub fn set_outer_port(&self, port: Option<u16>) {
        self.outer_port.store(port.unwrap_or(0), Relaxed);
    }
}

/// The router's port where there is one, else ours.
fn told(port: u16, outer: &AtomicU16) -> u16 {
    Some(outer.load(Relaxed)).filter(|outer| *outer > 0).unwrap_or(port)
}

fn listen_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(256)?;
    TcpListener::from_std(socket.into())
}
