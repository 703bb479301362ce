//! Opening a stream to a peer, enciphered where it is to be, for sessions and for whoever follows a magnet link.

use crate::agree::{Encryption, converse, secrets};
use crate::calls::Miss;
use crate::link::{Link, Stream};
use crate::listener::Listener;
use cede_bt::Transport;
use cede_bt::mse::{Accept, Handshake};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::timeout;

/// Whoever does not answer so long is not there.
const DIAL_PATIENCE: Duration = Duration::from_secs(10);
/// libtorrent gives uTP three seconds before it tries TCP; a handshake here may need a second SYN or two.
const UTP_PATIENCE: Duration = Duration::from_secs(6);

/// How peers of a torrent are reached.
#[derive(Clone, Copy)]
pub(crate) struct Reach<'a> {
    /// Where uTP is to be had.
    pub listener: Option<&'a Listener>,
    /// The torrent, as it is called on the wire.
    pub info_hash: [u8; 20],
    pub encryption: Encryption,
    /// The peer has hung up on the clear before.
    pub is_deaf: bool,
}

/// What did not come to be.
#[derive(Debug)]
pub(crate) enum Missed {
    /// A stream: what the system says, `TimedOut` where nobody answers, `Unsupported` for uTP without a listener that has it.
    Stream(io::Error),
    /// The encryption of one.
    Agreement(io::Error),
    /// Its address is one to leave alone.
    Filtered,
}

impl Missed {
    /// What a person is told, who wants this encryption.
    pub fn miss(&self, encryption: Encryption) -> Miss {
        match self {
            Self::Stream(error) => Miss::of(error),
            Self::Agreement(_) => Miss::of_agreement(encryption),
            Self::Filtered => Miss::Filtered,
        }
    }

    pub fn error(self) -> io::Error {
        match self {
            Self::Stream(error) | Self::Agreement(error) => error,
            Self::Filtered => io::ErrorKind::PermissionDenied.into(),
        }
    }
}

impl From<io::Error> for Missed {
    fn from(error: io::Error) -> Self {
        Self::Stream(error)
    }
}

impl Reach<'_> {
    /// Opens a stream to a peer and agrees on its encryption.
    pub async fn open(&self, address: SocketAddr, transport: Transport) -> Result<Link, Missed> {
        if self.listener.is_some_and(|listener| listener.leaves_alone(address.ip())) {
            return Err(Missed::Filtered);
        }
        let stream = self.connect(address, transport).await?;
        let accept = match self.encryption {
            Encryption::Off => None,
            Encryption::Require => Some(Accept::RC4),
            Encryption::Allow | Encryption::Prefer if self.is_deaf => Some(Accept::EITHER),
            Encryption::Allow => None,
            // Offered both, many take the clear.
            Encryption::Prefer => Some(Accept::RC4),
        };
        let Some(accept) = accept else { return Ok(Link::plain(stream, Vec::new())) };
        match self.ask(stream, accept).await {
            Err(_) if self.encryption != Encryption::Require => {
                Ok(Link::plain(self.connect(address, transport).await?, Vec::new()))
            }
            asked => asked.map_err(Missed::Agreement),
        }
    }

    async fn connect(&self, address: SocketAddr, transport: Transport) -> io::Result<Stream> {
        if transport == Transport::Tcp {
            let origin = self.listener.map(Listener::origin).unwrap_or_default();
            let stream = Stream::Tcp(timeout(DIAL_PATIENCE, origin.connect(address)).await??);
            stream.no_delay();
            return Ok(stream);
        }
        let (socket, config) = self.listener.and_then(Listener::utp).ok_or(io::ErrorKind::Unsupported)?;
        let connecting = socket.connect_with(address, config);
        let stream = timeout(UTP_PATIENCE, connecting).await??;
        Ok(Stream::Utp(Box::new(stream)))
    }

    async fn ask(&self, stream: Stream, accept: Accept) -> io::Result<Link> {
        let handshake = Handshake::open(self.info_hash, accept, secrets()?);
        let (stream, outcome) = converse(stream, handshake).await?;
        Ok(Link::enciphered(stream, outcome.ciphers, outcome.early))
    }
}
