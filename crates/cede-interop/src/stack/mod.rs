//! The implementations in Rust behind one face: bind, open, accept, send everything, receive to the end.

mod rqbit;
mod utp_rs;

use crate::relay;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const PIECE_BYTES: usize = 128 << 10;
/// What an idle reader holds.
const IDLE_BYTES: usize = 128;

/// An implementation of uTP that is linked in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stack {
    /// Ours, over `cede-real`.
    Cede,
    /// `librqbit-utp`.
    Rqbit,
    /// `utp-rs`.
    UtpRs,
}

impl Stack {
    /// Its crate's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cede => "cede-real",
            Self::Rqbit => "librqbit-utp",
            Self::UtpRs => "utp-rs",
        }
    }
}

/// A bound socket of some implementation.
pub enum Node {
    /// Ours.
    Cede(Box<cede_real::UtpSocket>),
    /// `librqbit-utp`'s.
    Rqbit(Arc<librqbit_utp::UtpSocketUdp>),
    /// `utp-rs`'s.
    UtpRs(Box<utp_rs::Node>),
}

impl Node {
    /// Binds to an address's free port, with the implementation's defaults.
    ///
    /// # Errors
    /// The implementation's.
    pub async fn bind(stack: Stack, ip: IpAddr) -> io::Result<Self> {
        Ok(match stack {
            Stack::Cede => Self::ours(ip, cede_real::SocketConfig::default()).await?,
            Stack::Rqbit => Self::Rqbit(rqbit::bind(ip).await?),
            Stack::UtpRs => Self::UtpRs(Box::new(utp_rs::Node::bind(ip, Some(relay::SOCKET_BUFFER_BYTES))?)),
        })
    }

    /// As [`Node::bind`], with the UDP socket's buffers of this size, or of the system's default size.
    /// `librqbit-utp` leaves no choice: it asks for 160 MB to receive into and takes what it gets.
    ///
    /// # Errors
    /// The implementation's.
    pub async fn bind_with_buffers(stack: Stack, ip: IpAddr, bytes: Option<usize>) -> io::Result<Self> {
        let config = cede_real::SocketConfig {
            receive_buffer_bytes: bytes,
            send_buffer_bytes: bytes,
            ..cede_real::SocketConfig::default()
        };
        match stack {
            Stack::Cede => Self::ours(ip, config).await,
            Stack::Rqbit => Self::bind(stack, ip).await,
            Stack::UtpRs => Ok(Self::UtpRs(Box::new(utp_rs::Node::bind(ip, bytes)?))),
        }
    }

    /// One of ours, with choices.
    ///
    /// # Errors
    /// Those of binding.
    pub async fn ours(ip: IpAddr, config: cede_real::SocketConfig) -> io::Result<Self> {
        let socket = cede_real::UtpSocket::bind_with((ip, 0), config).await.map_err(io::Error::other)?;
        Ok(Self::Cede(Box::new(socket)))
    }

    /// A socket of `librqbit-utp` that holds this many connections, for as long as they like to be silent.
    ///
    /// # Errors
    /// Those of binding.
    pub async fn patient_rqbit(ip: IpAddr, connections: usize) -> io::Result<Self> {
        Ok(Self::Rqbit(rqbit::bind_patiently(ip, connections).await?))
    }

    /// Where it is bound.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        match self {
            Self::Cede(socket) => socket.local_addr(),
            Self::Rqbit(socket) => socket.bind_addr(),
            Self::UtpRs(node) => node.addr,
        }
    }

    /// Opens a stream.
    ///
    /// # Errors
    /// The implementation's.
    pub async fn open(&self, peer: SocketAddr) -> io::Result<Stream> {
        Ok(match self {
            Self::Cede(socket) => Stream::Cede(socket.connect(peer).await.map_err(io::Error::other)?),
            Self::Rqbit(socket) => Stream::Rqbit(socket.connect(peer).await.map_err(io::Error::other)?),
            Self::UtpRs(node) => Stream::UtpRs(node.open(peer).await?),
        })
    }

    /// The next stream that a peer opens.
    ///
    /// # Errors
    /// The implementation's.
    pub async fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Self::Cede(socket) => Stream::Cede(socket.accept().await?),
            Self::Rqbit(socket) => Stream::Rqbit(socket.accept().await.map_err(io::Error::other)?),
            Self::UtpRs(node) => Stream::UtpRs(node.accept().await?),
        })
    }
}

/// A stream of some implementation.
pub enum Stream {
    /// Ours.
    Cede(cede_real::UtpStream),
    /// `librqbit-utp`'s.
    Rqbit(librqbit_utp::UtpStream),
    /// `utp-rs`'s.
    UtpRs(utp_rs::Stream),
}

impl Stream {
    /// Writes all of this.
    ///
    /// # Errors
    /// The implementation's.
    pub async fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        match self {
            Self::Cede(stream) => write(stream, octets).await,
            Self::Rqbit(stream) => write(stream, octets).await,
            Self::UtpRs(stream) => stream.write(octets).await,
        }
    }

    /// Ends our direction. Where the implementation says when the end was acknowledged, waits for it.
    ///
    /// # Errors
    /// The implementation's.
    pub async fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Cede(stream) => stream.shutdown().await,
            Self::Rqbit(stream) => stream.shutdown().await,
            Self::UtpRs(stream) => stream.end().await,
        }
    }

    /// Hands over what arrives, to the end of the peer's direction.
    ///
    /// # Errors
    /// The implementation's.
    pub async fn receive(&mut self, arrived: impl FnMut(&[u8])) -> io::Result<()> {
        match self {
            Self::Cede(stream) => receive(stream, PIECE_BYTES, arrived).await,
            Self::Rqbit(stream) => receive(stream, PIECE_BYTES, arrived).await,
            Self::UtpRs(stream) => stream.receive(arrived).await,
        }
    }

    /// Waits for the end with a small buffer, and drops what arrives.
    ///
    /// # Errors
    /// The implementation's.
    pub async fn idle(&mut self) -> io::Result<()> {
        match self {
            Self::Cede(stream) => receive(stream, IDLE_BYTES, |_| {}).await,
            Self::Rqbit(stream) => receive(stream, IDLE_BYTES, |_| {}).await,
            Self::UtpRs(stream) => stream.receive(|_| {}).await,
        }
    }
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), octets: &[u8]) -> io::Result<()> {
    for piece in octets.chunks(PIECE_BYTES) {
        stream.write_all(piece).await?;
    }
    Ok(())
}

async fn receive(
    stream: &mut (impl AsyncRead + Unpin),
    buffer_bytes: usize,
    mut arrived: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut buffer = vec![0; buffer_bytes];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            n => arrived(&buffer[..n]),
        }
    }
}
