//! `utp-rs`, with its defaults. It reads to the end or not at all, and it has no way to ask for the bound address.

use crate::data::Running;
use crate::relay;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
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
    pub(super) fn bind(ip: IpAddr) -> io::Result<Self> {
        let socket = relay::bind(ip)?;
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
    /// `close` ends when the peer has acknowledged everything.
    pub(super) async fn send(&mut self, octets: &[u8]) -> io::Result<()> {
        for piece in octets.chunks(super::PIECE_BYTES) {
            let mut rest = piece;
            while !rest.is_empty() {
                rest = &rest[self.0.write(rest).await?..];
            }
        }
        self.0.close().await
    }

    pub(super) async fn receive(&mut self, arrived: &Mutex<Running>) -> io::Result<()> {
        let mut all = Vec::new();
        let result = self.0.read_to_eof(&mut all).await;
        arrived.lock().expect("no panic holds it").add(&all);
        result.map(drop)
    }
}
