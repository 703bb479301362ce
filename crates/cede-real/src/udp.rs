//! The UDP socket: its options, and batches in and out of it.
//!
//! Through `quinn-udp`: segmentation offload (GSO) on the way out and coalesced receives (GRO) with `recvmmsg` on the
//! way in where the kernel has them, one datagram per call where not. That library's 0.6 line loses ECN marks on
//! coalesced receives, which costs nothing here: uTP has no field to report them in, and none are set.
//!
//! Every datagram leaves with "don't fragment" set, not only path-MTU probes: ordinary packets have a size that is known
//! to pass, and one that no longer does is better lost, which shows, than fragmented, which does not.

use crate::config::SocketConfig;
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::task::{Context, Poll};
use tokio::io::Interest;

/// The largest datagram, and the largest that the kernel puts together of several.
const BUFFER_BYTES: usize = 65_536;
/// Buffers that one call fills. Each takes as many datagrams as the kernel coalesces.
const BUFFERS: usize = if BATCH_SIZE < 16 { BATCH_SIZE } else { 16 };

pub(crate) struct Udp {
    socket: tokio::net::UdpSocket,
    state: UdpSocketState,
    dual_stack: bool,
    local: SocketAddr,
}

impl Udp {
    pub fn bind(addr: SocketAddr, config: &SocketConfig) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        if addr.is_ipv6() {
            socket.set_only_v6(!config.dual_stack)?;
        }
        socket.bind(&addr.into())?;
        // What the system does not grant is a matter of speed, not a failure.
        config.receive_buffer_bytes.map(|bytes| socket.set_recv_buffer_size(bytes));
        config.send_buffer_bytes.map(|bytes| socket.set_send_buffer_size(bytes));
        let state = UdpSocketState::new((&socket).into())?;
        let socket = tokio::net::UdpSocket::from_std(socket.into())?;
        let local = socket.local_addr()?;
        Ok(Self { socket, state, dual_stack: addr.is_ipv6() && config.dual_stack, local })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// A peer's address as this socket writes it; `None` for one of a family that it does not speak.
    pub fn address_of(&self, peer: SocketAddr) -> Option<SocketAddr> {
        match peer {
            SocketAddr::V4(_) if self.local.is_ipv4() => Some(peer),
            SocketAddr::V4(v4) if self.dual_stack => {
                Some(SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port())))
            }
            SocketAddr::V6(_) if self.local.is_ipv6() => Some(without_labels(peer)),
            _ => None,
        }
    }

    /// Sends datagrams of `segment` octets each, the last perhaps shorter.
    pub fn send(&self, peer: SocketAddr, contents: &[u8], segment: usize) -> io::Result<()> {
        let segment_size = (segment < contents.len()).then_some(segment);
        let transmit =
            quinn_udp::Transmit { destination: peer, ecn: None, contents, segment_size, src_ip: None };
        self.socket.try_io(Interest::WRITABLE, || self.state.try_send((&self.socket).into(), &transmit))
    }

    /// Sends one datagram of another protocol.
    pub async fn send_to(&self, octets: &[u8], peer: SocketAddr) -> io::Result<()> {
        self.socket.send_to(octets, peer).await.map(drop)
    }

    /// How many datagrams one call can send.
    pub fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_recv_ready(cx).map(drop)
    }

    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_send_ready(cx).map(drop)
    }
}

/// The address without flow label, and without scope where it has no meaning: what arrives carries neither.
fn without_labels(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V6(mut v6) => {
            v6.set_flowinfo(0);
            if !v6.ip().is_unicast_link_local() {
                v6.set_scope_id(0);
            }
            v6.into()
        }
        SocketAddr::V4(_) => peer,
    }
}

/// Room for what one call receives.
pub(crate) struct Inbox {
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
    /// `WouldBlock` where nothing is, and the system's errors; the inbox is empty then.
    pub fn fill(&mut self, udp: &Udp) -> io::Result<()> {
        self.filled = 0;
        let mut chunks = self.octets.chunks_exact_mut(BUFFER_BYTES);
        let mut buffers: [IoSliceMut<'_>; BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let metas = &mut self.metas;
        self.filled = udp
            .socket
            .try_io(Interest::READABLE, || udp.state.recv((&udp.socket).into(), &mut buffers, metas))?;
        Ok(())
    }

    /// Each datagram and whom it is from.
    pub fn datagrams(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let buffers = self.octets.chunks_exact(BUFFER_BYTES);
        self.metas[..self.filled].iter().zip(buffers).flat_map(|(meta, buffer)| {
            let peer = without_labels(meta.addr);
            buffer[..meta.len].chunks(meta.stride.max(1)).map(move |datagram| (peer, datagram))
        })
    }
}
