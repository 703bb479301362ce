//! The implementations in Rust behind one face: bind, open, accept, send everything, receive to the end.

mod rqbit;
mod utp_rs;

use crate::data::Running;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const PIECE_BYTES: usize = 128 << 10;

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
            Stack::UtpRs => Self::UtpRs(Box::new(utp_rs::Node::bind(ip)?)),
        })
    }

    /// One of ours, with choices.
    ///
    /// # Errors
    /// Those of binding.
    pub async fn ours(ip: IpAddr, config: cede_real::SocketConfig) -> io::Result<Self> {
        let socket = cede_real::UtpSocket::bind_with((ip, 0), config).await.map_err(io::Error::other)?;
        Ok(Self::Cede(Box::new(socket)))
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
    /// Sends everything and ends our direction. Where the implementation says when the end was acknowledged, waits for it.
    ///
    /// # Errors
    /// The implementation's.
    pub async fn send(&mut self, octets: &[u8]) -> io::Result<()> {
        match self {
            Self::Cede(stream) => send(stream, octets).await,
            Self::Rqbit(stream) => send(stream, octets).await,
            Self::UtpRs(stream) => stream.send(octets).await,
        }
    }

    /// Receives to the end of the peer's direction. `arrived` counts on the way, so that one knows where it got stuck.
    ///
    /// # Errors
    /// The implementation's.
    pub async fn receive(&mut self, arrived: &Mutex<Running>) -> io::Result<()> {
        match self {
            Self::Cede(stream) => receive(stream, arrived).await,
            Self::Rqbit(stream) => receive(stream, arrived).await,
            Self::UtpRs(stream) => stream.receive(arrived).await,
        }
    }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), octets: &[u8]) -> io::Result<()> {
    for piece in octets.chunks(PIECE_BYTES) {
        stream.write_all(piece).await?;
    }
    stream.shutdown().await
}

async fn receive(stream: &mut (impl AsyncRead + Unpin), arrived: &Mutex<Running>) -> io::Result<()> {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            n => arrived.lock().expect("no panic holds it").add(&buffer[..n]),
        }
    }
}
