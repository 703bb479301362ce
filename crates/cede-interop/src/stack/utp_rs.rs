//! `utp-rs`, with its defaults. It reads to the end or not at all, and it has no way to ask for the bound address.

use crate::relay;
use std::io;
use std::net::{IpAddr, SocketAddr};
use utp_rs::conn::ConnectionConfig;
use utp_rs::peer::Peer;
use utp_rs::socket::UtpSocket;
use utp_rs::stream::UtpStream;

/// A socket and where it is bound.
pub struct Node {
    socket: UtpSocket<SocketAddr>,
    pub(super) addr: SocketAddr,
}

impl Node {
    pub(super) fn bind(ip: IpAddr, buffer_bytes: Option<usize>) -> io::Result<Self> {
        let socket = relay::bind(ip, buffer_bytes)?;
        let addr = socket.local_addr()?;
        Ok(Self { socket: UtpSocket::with_socket(socket), addr })
    }

    pub(super) async fn open(&self, peer: SocketAddr) -> io::Result<Stream> {
        self.socket.connect(Peer::new(peer), ConnectionConfig::default()).await.map(Stream)
    }

    pub(super) async fn accept(&self) -> io::Result<Stream> {
        self.socket.accept(ConnectionConfig::default()).await.map(Stream)
    }
}

/// A stream.
pub struct Stream(UtpStream<SocketAddr>);

impl Stream {
    pub(super) async fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        for piece in octets.chunks(super::PIECE_BYTES) {
            let mut rest = piece;
            while !rest.is_empty() {
                rest = &rest[self.0.write(rest).await?..];
            }
        }
        Ok(())
    }

    /// Comes back when the peer has acknowledged everything.
    pub(super) async fn end(&mut self) -> io::Result<()> {
        self.0.close().await
    }

    pub(super) async fn receive(&mut self, mut arrived: impl FnMut(&[u8])) -> io::Result<()> {
        let mut all = Vec::new();
        let result = self.0.read_to_eof(&mut all).await;
        arrived(&all);
        result.map(drop)
    }
}
