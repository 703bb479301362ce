//! Opening a stream to a peer and agreeing on its encryption, for sessions and for whoever follows a magnet link.

use crate::link::{Link, Stream};
use crate::listener::Listener;
use cede_bt::Transport;
use cede_bt::mse::{Accept, Handshake, Outcome, PADDING_MAX, Secrets};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::timeout;

/// Whoever does not answer so long is not there.
const DIAL_PATIENCE: Duration = Duration::from_secs(10);
/// libtorrent gives uTP three seconds before it tries TCP; a handshake here may need a second SYN or two.
const UTP_PATIENCE: Duration = Duration::from_secs(6);
/// A handshake of the encryption takes a few round trips.
const MSE_PATIENCE: Duration = Duration::from_secs(15);

/// Whether connections are enciphered (MSE).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encryption {
    /// Never.
    Off,
    /// If the peer begins so and offers nothing else, and with peers that have hung up on the clear.
    #[default]
    Allow,
    /// Tried first; in the clear where that fails.
    Prefer,
    /// Always.
    Require,
}

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

impl Reach<'_> {
    /// Opens a stream to a peer and agrees on its encryption.
    ///
    /// # Errors
    /// What the system says, `TimedOut` where nobody answers, `Unsupported` for uTP without a listener that has it, and what
    /// the handshake of the encryption says.
    pub async fn open(&self, address: SocketAddr, transport: Transport) -> io::Result<Link> {
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
            other => other,
        }
    }

    async fn connect(&self, address: SocketAddr, transport: Transport) -> io::Result<Stream> {
        if transport == Transport::Tcp {
            let origin = self.listener.map(Listener::origin).unwrap_or_default();
            let stream = Stream::Tcp(timeout(DIAL_PATIENCE, origin.connect(address)).await??);
            no_delay(&stream);
            return Ok(stream);
        }
        let (socket, config) = self.listener.and_then(Listener::utp).ok_or(io::ErrorKind::Unsupported)?;
        let connecting = socket.connect_with(address, config);
        let stream = timeout(UTP_PATIENCE, connecting).await?.map_err(io::Error::other)?;
        Ok(Stream::Utp(Box::new(stream)))
    }

    async fn ask(&self, stream: Stream, accept: Accept) -> io::Result<Link> {
        let handshake = Handshake::open(self.info_hash, accept, secrets()?);
        let (stream, outcome) = converse(stream, handshake).await?;
        Ok(Link::enciphered(stream, outcome.ciphers, outcome.early))
    }
}

/// Takes up a stream whose peer may begin with the handshake of the encryption.
/// `hashes` are what it may call the torrent by.
pub(crate) async fn answer(
    stream: Stream,
    hashes: ([u8; 20], Option<[u8; 20]>),
    encryption: Encryption,
) -> io::Result<Link> {
    let is_required = encryption == Encryption::Require;
    let accept = if is_required { Accept::RC4 } else { Accept::EITHER };
    let handshake = Handshake::answer(hashes.0, accept, secrets()?)
        .or_by(hashes.1)
        .in_the_clear_if(encryption == Encryption::Allow);
    let (stream, outcome) = converse(stream, handshake).await?;
    if is_required && outcome.ciphers.is_none() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the peer speaks in the clear"));
    }
    Ok(Link::enciphered(stream, outcome.ciphers, outcome.early))
}

/// Small messages leave at once: requests are one, and a window is soon full of them.
pub(crate) fn no_delay(stream: &Stream) {
    if let Stream::Tcp(stream) = stream {
        let _ = stream.set_nodelay(true);
    }
}

fn secrets() -> io::Result<Secrets> {
    let mut private = [0; 20];
    getrandom::fill(&mut private).map_err(io::Error::other)?;
    let len = getrandom::u32().map_err(io::Error::other)? as usize % (PADDING_MAX + 1);
    let mut padding = vec![0; len];
    getrandom::fill(&mut padding).map_err(io::Error::other)?;
    Ok(Secrets { private, padding })
}

/// Carries a handshake of the encryption to its end.
async fn converse(stream: Stream, mut handshake: Handshake) -> io::Result<(Stream, Outcome)> {
    let talk = async {
        let mut link = Link::plain(stream, Vec::new());
        let mut buffer = [0; 2048];
        loop {
            link.send(&mut handshake.take_output()).await?;
            let n = link.receive(&mut buffer).await?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(outcome) = handshake.receive(&buffer[..n]).map_err(io::Error::other)? {
                link.send(&mut handshake.take_output()).await?;
                return Ok((link.stream, outcome));
            }
        }
    };
    timeout(MSE_PATIENCE, talk).await?
}
