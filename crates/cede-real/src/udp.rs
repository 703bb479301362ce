//! The UDP socket: its options, and batches in and out of it.
//!
//! Through `quinn-udp`: segmentation offload (GSO) on the way out and coalesced receives (GRO) with `recvmmsg` on the
//! way in where the kernel has them, one datagram per call where not. On Linux, batches leave gathered from where their
//! parts lie. `quinn-udp`'s 0.6 line loses ECN marks on coalesced receives, which costs nothing here: uTP has no field to
//! report them in, and none are set.
//!
//! Every datagram leaves with "don't fragment" set, not only path-MTU probes: ordinary packets have a size that is known
//! to pass, and one that no longer does is better lost, which shows, than fragmented, which does not. Those that are known to be too
//! large, and have to arrive as they are, leave without, one at a time.

use crate::complaint::Complaint;
use crate::config::SocketConfig;
use crate::outgoing::Wire;
use crate::system;
use crate::way::Way;
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use tokio::io::Interest;

/// A call that receives fewer datagrams than it has room for has received all there are. Elsewhere `quinn-udp` receives
/// one per call.
const SHORT_MEANS_DRY: bool = cfg!(any(target_os = "linux", target_os = "android"));
/// Buffers that one call fills. Each takes as many datagrams as the kernel coalesces.
pub(crate) const BUFFERS: usize = if BATCH_SIZE < 16 { BATCH_SIZE } else { 16 };
/// Elsewhere a socket's error readiness says something else, or nothing.
const HAS_ERROR_QUEUE: bool = SHORT_MEANS_DRY;
/// Complaints that are taken up before packets are looked at again.
const MAX_COMPLAINTS: usize = 64;
/// Octets of IP and UDP headers.
const HEADERS_V4_BYTES: u32 = 28;
const HEADERS_V6_BYTES: u32 = 48;

/// What filling came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fill {
    /// Nothing more is there.
    Dry,
    /// There may be more.
    More,
}

/// The socket.
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
        if config.heeds_icmp {
            // Where that cannot be had, nothing is heard, and timeouts find out.
            let _ = system::enable_complaints(&socket, addr.is_ipv6());
        }
        if !config.kernel_timestamps {
            // Where they cannot be turned off there are none.
            let _ = system::disable_timestamps(&socket);
        }
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

    /// Octets of UDP payload that the first link of the way to a peer carries, where the system says so.
    pub fn link_carries(&self, peer: SocketAddr) -> Option<u32> {
        let peer = canonical(peer);
        let local = self.local.ip().to_canonical();
        let local = if local.is_ipv4() == peer.is_ipv4() { local } else { unspecified(peer) };
        system::path_mtu(local, peer).ok()?.checked_sub(header_bytes(peer))
    }

    /// Sends one datagram of another protocol.
    pub async fn send_to(&self, octets: &[u8], peer: SocketAddr) -> io::Result<()> {
        self.socket.send_to(octets, peer).await.map(drop)
    }

    /// Receives, and says how many buffers are filled and whether there may be more.
    pub fn receive(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
        asks: bool,
    ) -> io::Result<(usize, Fill)> {
        let mut filled = 0;
        let mut receive = || {
            filled = self.state.recv((&self.socket).into(), buffers, metas)?;
            if !self.local.ip().is_unspecified() {
                // It has one address, which need not be said.
                metas[..filled].iter_mut().for_each(|meta| meta.dst_ip = None);
            }
            // To say that it would block saves asking once more to hear it.
            let is_dry = SHORT_MEANS_DRY && filled < BUFFERS;
            if is_dry { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        };
        let result = if asks { receive() } else { self.socket.try_io(Interest::READABLE, receive) };
        match (filled, result) {
            (0, Err(error)) => Err(error),
            (_, Err(_)) => Ok((filled, Fill::Dry)),
            (_, Ok(())) => Ok((filled, Fill::More)),
        }
    }

    /// Waits until somebody has said something of what we sent: for ever where the system keeps that to itself.
    pub async fn complaints_wait(&self) {
        let waiting = self.socket.ready(Interest::ERROR).await;
        if !HAS_ERROR_QUEUE || waiting.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// What has been said, as much as is taken up at once.
    pub fn complaints(&self) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        let _ = self.socket.try_io(Interest::ERROR, || {
            for _ in 0..MAX_COMPLAINTS {
                let complaint = system::next_complaint(&self.socket)?;
                complaints
                    .extend(complaint.map(|said| Complaint { peer: without_labels(said.peer), ..said }));
            }
            Ok(())
        });
        complaints
    }

    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_recv_ready(cx).map(drop)
    }

    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_send_ready(cx).map(drop)
    }
}

impl Wire for Udp {
    fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn send(&self, way: Way, contents: &[u8], segment: usize) -> io::Result<()> {
        let segment_size = (segment < contents.len()).then_some(segment);
        let transmit = quinn_udp::Transmit {
            destination: way.peer,
            ecn: None,
            contents,
            segment_size,
            src_ip: way.from,
        };
        self.socket.try_io(Interest::WRITABLE, || self.state.try_send((&self.socket).into(), &transmit))
    }

    fn send_gathered(&self, way: Way, parts: &[IoSlice<'_>], segment: Option<u16>) -> io::Result<()> {
        self.socket.try_io(Interest::WRITABLE, || system::send_gathered(&self.socket, way, parts, segment))
    }

    fn let_fragment(&self, may: bool) -> io::Result<()> {
        system::let_fragment(&self.socket, self.local.is_ipv6(), may)
    }
}

/// The address without flow label, and without scope where it has no meaning: what arrives carries neither.
pub(crate) fn without_labels(peer: SocketAddr) -> SocketAddr {
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

/// The address as others write it: IPv4 as such. A scope would be lost on the way through the bare address.
pub(crate) fn canonical(peer: SocketAddr) -> SocketAddr {
    match peer.ip().to_canonical() {
        IpAddr::V6(_) => peer,
        v4 @ IpAddr::V4(_) => SocketAddr::new(v4, peer.port()),
    }
}

/// Octets of IP and UDP headers in front of what is sent to this peer.
pub(crate) fn header_bytes(peer: SocketAddr) -> u32 {
    if canonical(peer).is_ipv4() { HEADERS_V4_BYTES } else { HEADERS_V6_BYTES }
}

/// Any address of the same family.
pub(crate) fn unspecified(peer: SocketAddr) -> IpAddr {
    match peer {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}
