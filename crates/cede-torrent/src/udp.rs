//! A UDP socket that answers from the address that was asked, of however many its machine has: whoever asked takes an
//! answer from another for a stranger's.

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::Socket;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// The most that the system puts together of several datagrams.
const BUFFER_BYTES: usize = 64 << 10;

pub(crate) struct Udp {
    socket: UdpSocket,
    state: UdpSocketState,
}

/// Datagrams of one sender, and the address that they were sent to.
pub(crate) struct Heard {
    pub from: SocketAddr,
    to: Option<IpAddr>,
    octets: Vec<u8>,
    /// Octets of each but the last.
    stride: usize,
}

impl Heard {
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.octets.chunks(self.stride)
    }
}

impl Udp {
    pub fn new(socket: Socket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket: UdpSocket::from_std(socket.into())?, state })
    }

    pub async fn receive(&self) -> io::Result<Heard> {
        let mut octets = vec![0; BUFFER_BYTES];
        let mut meta = RecvMeta::default();
        let receive = || {
            let buffers = &mut [IoSliceMut::new(&mut octets)];
            self.state.recv((&self.socket).into(), buffers, std::slice::from_mut(&mut meta))
        };
        self.socket.async_io(Interest::READABLE, receive).await?;
        octets.truncate(meta.len);
        let to = meta.dst_ip.map(|ip| ip.to_canonical());
        Ok(Heard { from: meta.addr, to, octets, stride: meta.stride.max(1) })
    }

    pub async fn answer(&self, heard: &Heard, octets: &[u8]) -> io::Result<()> {
        let transmit = Transmit {
            destination: heard.from,
            ecn: None,
            contents: octets,
            segment_size: None,
            src_ip: heard.to,
        };
        let send = || self.state.try_send((&self.socket).into(), &transmit);
        self.socket.async_io(Interest::WRITABLE, send).await
    }
}
