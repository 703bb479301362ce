//! One connection to a peer: TCP or uTP, in the clear or enciphered.

use crate::origin::Origin;
use cede_bt::Transport;
use cede_bt::mse::{Ciphers, Rc4};
use cede_real::{UtpStream, Yielding, YieldingTcp};
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A byte stream to a peer.
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over TCP, of which a controller says how much is under way.
    Yielding(Box<YieldingTcp>),
    /// Over uTP.
    Utp(Box<UtpStream>),
}

impl Stream {
    /// What carries it.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        match self {
            Self::Tcp(_) | Self::Yielding(_) => Transport::Tcp,
            Self::Utp(_) => Transport::Utp,
        }
    }

    /// The same, which yields over TCP too.
    #[must_use]
    pub(crate) fn yielding(self, by: &Yielding) -> Self {
        match self {
            Self::Tcp(stream) => Self::Yielding(Box::new(by.over(stream))),
            other => other,
        }
    }

    /// The system's connection, where it is one.
    fn as_tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Yielding(stream) => Some(stream.as_tcp()),
            Self::Utp(_) => None,
        }
    }

    /// Small messages leave at once: requests are one, and a window is soon full of them.
    pub fn no_delay(&self) {
        if let Some(stream) = self.as_tcp() {
            let _ = stream.set_nodelay(true);
        }
    }

    /// Has what was read acknowledged at once, where the system can be told so.
    pub fn acknowledge(&self) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(stream) = self.as_tcp() {
            let _ = socket2::SockRef::from(stream).set_tcp_quickack(true);
        }
    }

    /// The machine's address that it goes out from to a peer, where the system tells; over uTP from such an origin.
    #[must_use]
    pub(crate) fn from(&self, peer: SocketAddr, origin: Origin) -> Option<IpAddr> {
        match self.as_tcp() {
            Some(stream) => Some(stream.local_addr().ok()?.ip().to_canonical()),
            None => origin.source_towards(peer),
        }
    }

    /// How many packets have come of the peer, and whether it owes an acknowledgement; `None` where only the system knows.
    #[must_use]
    pub fn heard(&self) -> Option<(u64, bool)> {
        match self {
            Self::Tcp(_) | Self::Yielding(_) => None,
            Self::Utp(stream) => {
                let is_awaited = stream.snapshot().is_some_and(|snapshot| snapshot.unacked_bytes > 0);
                Some((stream.statistics().packets_received, is_awaited))
            }
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Yielding(stream) => Pin::new(&mut **stream).poll_read(cx, buf),
            Self::Utp(stream) => Pin::new(&mut **stream).poll_read(cx, buf),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, octets),
            Self::Yielding(stream) => Pin::new(&mut **stream).poll_write(cx, octets),
            Self::Utp(stream) => Pin::new(&mut **stream).poll_write(cx, octets),
        }
    }

    /// Ends our direction.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Yielding(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
            Self::Utp(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
        }
    }
}

/// A byte stream, and what enciphers it.
pub struct Link {
    /// The stream.
    pub stream: Stream,
    ciphers: Option<Ciphers>,
    /// What came with the handshake of the encryption, in the clear already.
    early: Vec<u8>,
}

impl Link {
    /// A stream in the clear, of which some octets have been read already.
    #[must_use]
    pub const fn plain(stream: Stream, early: Vec<u8>) -> Self {
        Self { stream, ciphers: None, early }
    }

    /// A stream with its ciphers.
    #[must_use]
    pub const fn enciphered(stream: Stream, ciphers: Option<Ciphers>, early: Vec<u8>) -> Self {
        Self { stream, ciphers, early }
    }

    /// Whether what passes is enciphered.
    #[must_use]
    pub const fn is_enciphered(&self) -> bool {
        self.ciphers.is_some()
    }

    /// Reads into the buffer: how many octets came, none at the stream's end.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if !self.early.is_empty() {
            let n = self.early.len().min(buffer.len());
            buffer[..n].copy_from_slice(&self.early[..n]);
            self.early.drain(..n);
            return Poll::Ready(Ok(n));
        }
        let mut unread = ReadBuf::new(buffer);
        ready!(self.stream.poll_read(cx, &mut unread))?;
        let n = unread.filled().len();
        if let Some(ciphers) = &mut self.ciphers {
            ciphers.incoming.apply(&mut buffer[..n]);
        }
        Poll::Ready(Ok(n))
    }

    /// The cipher of what leaves: each octet is to be enciphered once, before it is handed to [`Link::poll_write`].
    pub fn outgoing(&mut self) -> Option<&mut Rc4> {
        self.ciphers.as_mut().map(|ciphers| &mut ciphers.outgoing)
    }

    /// Reads: how many octets came, none at the stream's end.
    pub async fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.poll_read(cx, buffer)).await
    }

    /// Writes all of it, enciphered where it has to be.
    pub async fn send(&mut self, octets: &mut [u8]) -> io::Result<()> {
        if let Some(cipher) = self.outgoing() {
            cipher.apply(octets);
        }
        let mut written = 0;
        while written < octets.len() {
            match poll_fn(|cx| self.poll_write(cx, &octets[written..])).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                n => written += n,
            }
        }
        Ok(())
    }

    /// Writes octets as they are.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        self.stream.poll_write(cx, octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_real::UtpSocket;
    use std::net::SocketAddr;
    use std::time::Duration;
    use tokio::net::UdpSocket;

    /// Hands on what comes from one side to the other, whose address is known.
    async fn relay(socket: UdpSocket, to: SocketAddr) {
        let (mut from, mut buffer) = (to, vec![0; 65_536]);
        while let Ok((n, sender)) = socket.recv_from(&mut buffer).await {
            from = if sender == to { from } else { sender };
            let _ = socket.send_to(&buffer[..n], if sender == to { from } else { to }).await;
        }
    }

    async fn until(stream: &Stream, is_awaited: bool) -> u64 {
        for _ in 0..2_000 {
            match stream.heard() {
                Some((packets, is)) if is == is_awaited => return packets,
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
        panic!("never {is_awaited}: {:?}", stream.heard())
    }

    #[test]
    fn a_peer_that_answers_is_told_from_one_that_is_gone() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (one, other) = tokio::join!(UtpSocket::bind("127.0.0.1:0"), UtpSocket::bind("127.0.0.1:0"));
            let (one, other) = (one.unwrap(), other.unwrap());
            let between = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let address = between.local_addr().unwrap();
            let relaying = tokio::spawn(relay(between, other.local_addr()));
            let (called, answered) = tokio::join!(one.connect(address), other.accept());
            let (called, _answered) = (called.unwrap(), answered.unwrap());
            let mut link = Link::plain(Stream::Utp(Box::new(called)), Vec::new());
            link.send(&mut [1; 3_000]).await.unwrap();
            let before = until(&link.stream, false).await;
            assert!(before > 0);
            relaying.abort();
            link.send(&mut [2; 3_000]).await.unwrap();
            assert_eq!(until(&link.stream, true).await, before);
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert_eq!(link.stream.heard(), Some((before, true)));
        });
    }
}
