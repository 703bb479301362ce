//! One UDP socket of the relay: batches in, batches out.

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The largest datagram, and the largest that the kernel puts together of several.
const BUFFER_BYTES: usize = 65_536;
/// Buffers that one call fills.
const BUFFERS: usize = if BATCH_SIZE < 16 { BATCH_SIZE } else { 16 };
/// Room for datagrams that wait to be read, where the system grants it: 0.3 s of 100 Mbit/s and the kernel's own
/// accounting on top.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;

/// A socket and what the kernel can do for it.
pub(super) struct Port {
    pub socket: UdpSocket,
    state: UdpSocketState,
}

/// A datagram that has arrived.
pub(super) struct Arrived<'a> {
    pub from: SocketAddr,
    pub octets: &'a [u8],
    /// When the kernel had it, on the wall clock.
    pub wall: Option<std::time::Duration>,
}

impl Port {
    pub fn bind(local: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(local)?;
        enlarge(&socket);
        socket.set_nonblocking(true)?;
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, state })
    }

    /// Any port of any address that can reach `target`.
    pub fn towards(target: SocketAddr) -> io::Result<Self> {
        let any = match target.ip() {
            IpAddr::V4(ip) if ip.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(ip) if ip.is_loopback() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Self::bind(SocketAddr::new(any, 0))
    }

    pub fn send(&self, to: SocketAddr, octets: &[u8], segment: usize) -> io::Result<()> {
        let segment_size = (segment < octets.len()).then_some(segment);
        let transmit = Transmit { destination: to, ecn: None, contents: octets, segment_size, src_ip: None };
        self.state.try_send((&self.socket).into(), &transmit)
    }

    pub fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }
}

/// Asks for a large receive buffer: as root beyond the system's limit, otherwise as far as that allows.
fn enlarge(socket: &UdpSocket) {
    #[cfg(target_os = "linux")]
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER_BYTES).is_ok() {
        return;
    }
    // What is refused shows as overflow in the report.
    let _ = socket2::SockRef::from(socket).set_recv_buffer_size(RECEIVE_BUFFER_BYTES);
}

/// Room for what one call receives.
pub(super) struct Inbox {
    octets: Box<[u8]>,
    metas: [RecvMeta; BUFFERS],
    filled: usize,
}

impl Inbox {
    pub fn new() -> Self {
        let octets = vec![0; BUFFERS * BUFFER_BYTES].into_boxed_slice();
        Self { octets, metas: [RecvMeta::default(); BUFFERS], filled: 0 }
    }

    /// Receives what is there, as far as there is room for it.
    ///
    /// # Errors
    /// `WouldBlock` where nothing is, and the system's; the inbox is empty then.
    pub fn fill(&mut self, port: &Port) -> io::Result<()> {
        self.filled = 0;
        let mut chunks = self.octets.chunks_exact_mut(BUFFER_BYTES);
        let mut buffers: [IoSliceMut<'_>; BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        self.filled = port.state.recv((&port.socket).into(), &mut buffers, &mut self.metas)?;
        Ok(())
    }

    pub fn datagrams(&self) -> impl Iterator<Item = Arrived<'_>> {
        let buffers = self.octets.chunks_exact(BUFFER_BYTES);
        self.metas[..self.filled].iter().zip(buffers).flat_map(|(meta, buffer)| {
            let datagrams = buffer[..meta.len].chunks(meta.stride.max(1));
            datagrams.map(|octets| Arrived { from: meta.addr, octets, wall: meta.timestamp })
        })
    }
}
