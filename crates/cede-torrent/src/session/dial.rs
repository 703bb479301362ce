//! Opening connections and taking them up, over TCP and uTP on one port number, in the clear or enciphered.

use super::conn::{self, Shared};
use super::{Inner, State, canonical};
use crate::link::{Link, Stream};
use cede_bt::engine::ConnId;
use cede_bt::mse::{Accept, Handshake, Outcome, PADDING_MAX, Secrets};
use cede_bt::{Disposition, Transport};
use cede_real::{SocketConfig, StreamConfig, UtpSocket};
use socket2::{Domain, Protocol, Socket, Type};
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Whoever does not answer so long is not there.
const DIAL_PATIENCE: Duration = Duration::from_secs(10);
/// libtorrent gives uTP three seconds before it tries TCP; a handshake here may need a second SYN or two.
const UTP_PATIENCE: Duration = Duration::from_secs(6);
/// A handshake of the encryption takes a few round trips.
const MSE_PATIENCE: Duration = Duration::from_secs(15);
/// Connections whose peers have not shown yet what they speak.
const MAX_HANDSHAKING: usize = 100;
/// Ports that are tried where any will do: TCP and UDP must both be free.
const PORT_TRIES: usize = 20;
/// After a failure to take up a connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Whether connections are enciphered (MSE).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encryption {
    /// Never.
    Off,
    /// If the peer begins so.
    #[default]
    Allow,
    /// Tried first; in the clear where that fails.
    Prefer,
    /// Always.
    Require,
}

/// Where peers reach us: TCP and uTP at one port number.
pub struct Listener {
    tcp: Option<TcpListener>,
    utp: Option<UtpSocket>,
    stream: StreamConfig,
    port: u16,
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
        Ok(Self { tcp, utp, stream, port: address.port() })
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
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

/// Takes up connections until the session ends.
pub(super) async fn listen(inner: Rc<Inner>, listener: Rc<Listener>) {
    let tcp = async {
        let Some(tcp) = &listener.tcp else { return std::future::pending().await };
        loop {
            match tcp.accept().await {
                Ok((stream, address)) => admit(&inner, Stream::Tcp(stream), address),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    };
    let utp = async {
        let Some(utp) = &listener.utp else { return std::future::pending().await };
        while let Ok(stream) = utp.accept().await {
            let address = stream.peer_addr();
            admit(&inner, Stream::Utp(Box::new(stream)), address);
        }
    };
    tokio::join!(tcp, utp);
}

/// A peer has opened a connection.
fn admit(inner: &Rc<Inner>, stream: Stream, address: SocketAddr) {
    let mut state = inner.state.borrow_mut();
    if state.handshaking < MAX_HANDSHAKING {
        state.handshaking += 1;
        tokio::task::spawn_local(greet(inner.clone(), stream, canonical(address)));
    }
}

async fn greet(inner: Rc<Inner>, stream: Stream, address: SocketAddr) {
    let transport = stream.transport();
    no_delay(&stream);
    let link = match inner.choices.encryption {
        Encryption::Off => Some(Link::plain(stream, Vec::new())),
        encryption => answer(&inner, stream, encryption).await.ok(),
    };
    if let Some((shared, link)) = take_up(&inner, link, address, transport) {
        conn::run(inner, shared, link).await;
    }
}

/// Offers the engine a connection whose peer has shown what it speaks.
fn take_up(
    inner: &Rc<Inner>,
    link: Option<Link>,
    address: SocketAddr,
    transport: Transport,
) -> Option<(Rc<RefCell<Shared>>, Link)> {
    let mut state = inner.state.borrow_mut();
    state.handshaking -= 1;
    let link = link?;
    let id = state.engine.accept(inner.now(), address, transport)?;
    let mut shared = Shared::new(id, address);
    shared.is_enciphered = link.is_enciphered();
    let shared = Inner::enter(&mut state, shared);
    inner.pump(&mut state);
    Some((shared, link))
}

/// Small messages leave at once: requests are one, and a window is soon full of them.
fn no_delay(stream: &Stream) {
    if let Stream::Tcp(stream) = stream {
        let _ = stream.set_nodelay(true);
    }
}

/// The engine wants a connection.
pub(super) fn dial(
    inner: &Rc<Inner>,
    state: &mut State,
    id: ConnId,
    address: SocketAddr,
    transport: Transport,
) {
    let shared = Inner::enter(state, Shared::new(id, address));
    let task = tokio::task::spawn_local(open(inner.clone(), shared.clone(), transport));
    shared.borrow_mut().dial = Some(task.abort_handle());
}

async fn open(inner: Rc<Inner>, shared: Rc<RefCell<Shared>>, transport: Transport) {
    let (id, address) = {
        let shared = shared.borrow();
        (shared.id, shared.address)
    };
    let link = reach(&inner, address, transport).await;
    {
        let mut state = inner.state.borrow_mut();
        let now = inner.now();
        let is_known = Inner::conn(&state, id).is_some();
        if link.is_err() || !is_known {
            if let Some(place) = state.conns.get_mut(id.index()) {
                place.take_if(|conn| conn.borrow().id == id);
            }
            state.engine.closed(now, id);
            inner.pump(&mut state);
            return;
        }
        // From here on the connection is not opened any more: to close it lets it say its last words.
        shared.borrow_mut().dial = None;
        shared.borrow_mut().is_enciphered = link.as_ref().is_ok_and(Link::is_enciphered);
        state.engine.connected(now, id);
        inner.pump(&mut state);
    }
    if let Ok(link) = link {
        conn::run(inner, shared, link).await;
    }
}

async fn reach(inner: &Inner, address: SocketAddr, transport: Transport) -> io::Result<Link> {
    let encryption = inner.choices.encryption;
    let stream = connect(inner, address, transport).await?;
    if matches!(encryption, Encryption::Off | Encryption::Allow) {
        return Ok(Link::plain(stream, Vec::new()));
    }
    match ask(inner, stream, encryption).await {
        Err(_) if encryption == Encryption::Prefer => {
            Ok(Link::plain(connect(inner, address, transport).await?, Vec::new()))
        }
        other => other,
    }
}

async fn connect(inner: &Inner, address: SocketAddr, transport: Transport) -> io::Result<Stream> {
    let listener = inner.state.borrow().listener.clone();
    let stream = connect_by(listener.as_deref(), address, transport).await?;
    no_delay(&stream);
    Ok(stream)
}

/// Opens a stream to a peer.
///
/// # Errors
/// What the system says, `TimedOut` where nobody answers, `Unsupported` for uTP without a listener that has it.
pub(crate) async fn connect_by(
    listener: Option<&Listener>,
    address: SocketAddr,
    transport: Transport,
) -> io::Result<Stream> {
    if transport == Transport::Tcp {
        return Ok(Stream::Tcp(tokio::time::timeout(DIAL_PATIENCE, TcpStream::connect(address)).await??));
    }
    let utp = listener.and_then(|listener| Some((listener.utp.as_ref()?, &listener.stream)));
    let (socket, config) = utp.ok_or(io::ErrorKind::Unsupported)?;
    let connecting = socket.connect_with(address, config);
    let stream = tokio::time::timeout(UTP_PATIENCE, connecting).await?.map_err(io::Error::other)?;
    Ok(Stream::Utp(Box::new(stream)))
}

fn secrets() -> io::Result<Secrets> {
    let mut private = [0; 20];
    getrandom::fill(&mut private).map_err(io::Error::other)?;
    let len = getrandom::u32().map_err(io::Error::other)? as usize % (PADDING_MAX + 1);
    let mut padding = vec![0; len];
    getrandom::fill(&mut padding).map_err(io::Error::other)?;
    Ok(Secrets { private, padding })
}

async fn ask(inner: &Inner, stream: Stream, encryption: Encryption) -> io::Result<Link> {
    let accept = if encryption == Encryption::Require { Accept::RC4 } else { Accept::EITHER };
    let handshake = Handshake::open(inner.info.info_hash(), accept, secrets()?);
    let (stream, outcome) = converse(stream, handshake).await?;
    Ok(Link::enciphered(stream, outcome.ciphers, outcome.early))
}

async fn answer(inner: &Inner, stream: Stream, encryption: Encryption) -> io::Result<Link> {
    let is_required = encryption == Encryption::Require;
    let accept = if is_required { Accept::RC4 } else { Accept::EITHER };
    let handshake = Handshake::answer(inner.info.info_hash(), accept, secrets()?);
    let (stream, outcome) = converse(stream, handshake).await?;
    if is_required && outcome.ciphers.is_none() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the peer speaks in the clear"));
    }
    Ok(Link::enciphered(stream, outcome.ciphers, outcome.early))
}

/// Carries a handshake of the encryption to its end.
async fn converse(stream: Stream, mut handshake: Handshake) -> io::Result<(Stream, Outcome)> {
    let talk = async {
        let mut stream = stream;
        let mut buffer = [0; 2048];
        loop {
            let output = handshake.take_output();
            match &mut stream {
                Stream::Tcp(stream) => stream.write_all(&output).await?,
                Stream::Utp(stream) => stream.write_all(&output).await?,
            }
            let n = match &mut stream {
                Stream::Tcp(stream) => stream.read(&mut buffer).await?,
                Stream::Utp(stream) => stream.read(&mut buffer).await?,
            };
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(outcome) = handshake.receive(&buffer[..n]).map_err(io::Error::other)? {
                let output = handshake.take_output();
                match &mut stream {
                    Stream::Tcp(stream) => stream.write_all(&output).await?,
                    Stream::Utp(stream) => stream.write_all(&output).await?,
                }
                return Ok((stream, outcome));
            }
        }
    };
    tokio::time::timeout(MSE_PATIENCE, talk).await?
}
