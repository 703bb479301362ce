//! Datagrams of other protocols that share the port.

use std::net::SocketAddr;
use tokio::sync::mpsc;

/// A datagram that is no uTP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForeignDatagram {
    /// Whom it is from.
    pub peer: SocketAddr,
    /// What it says.
    pub octets: Vec<u8>,
}

/// Where datagrams of other protocols come out: see [`UtpSocket::foreign`](crate::UtpSocket::foreign).
#[derive(Debug)]
pub struct Foreign {
    datagrams: mpsc::Receiver<ForeignDatagram>,
}

impl Foreign {
    /// The next one; `None` once the socket has closed and all have been handed out.
    pub async fn recv(&mut self) -> Option<ForeignDatagram> {
        self.datagrams.recv().await
    }
}

/// The other side of [`Foreign`].
#[derive(Default)]
pub(crate) struct Outlet {
    channel: Option<mpsc::Sender<ForeignDatagram>>,
    pub dropped: u64,
}

impl Outlet {
    /// Opens it, with room for so many; whoever held the other side before gets nothing more.
    pub fn open(&mut self, backlog: usize) -> Foreign {
        let (channel, datagrams) = mpsc::channel(backlog.max(1));
        self.channel = Some(channel);
        Foreign { datagrams }
    }

    /// Hands one out, or counts it as dropped.
    pub fn offer(&mut self, peer: SocketAddr, octets: &[u8]) {
        let room = self.channel.as_ref().and_then(|channel| channel.try_reserve().ok());
        match room {
            Some(room) => {
                let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                room.send(ForeignDatagram { peer, octets: octets.to_vec() });
            }
            None => self.dropped += 1,
        }
    }

    pub fn close(&mut self) {
        self.channel = None;
    }
}
