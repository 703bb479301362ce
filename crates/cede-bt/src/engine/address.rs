//! Where peers are.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Peers that are remembered.
pub(super) const KNOWN_MAX: usize = 4096;

/// Where a peer is, as its driver calls it.
pub trait PeerAddress: Copy + Ord {
    /// Its host: peers behind one are told of the same pieces.
    fn host(&self) -> IpAddr;

    /// Whether it is in a private network, of this machine or around it.
    fn is_neighbour(&self) -> bool {
        match self.host() {
            IpAddr::V4(host) => host.is_private() || host.is_loopback() || host.is_link_local(),
            IpAddr::V6(host) => host.is_loopback() || host.is_unicast_link_local(),
        }
    }
}

impl PeerAddress for SocketAddr {
    fn host(&self) -> IpAddr {
        self.ip()
    }
}

/// A number of a simulated host stands for its address, in one private network: 10.0.0.1 and so on.
impl PeerAddress for u32 {
    fn host(&self) -> IpAddr {
        Ipv4Addr::from_bits(10 << 24 | (*self + 1) & 0x00ff_ffff).into()
    }
}

/// So does its place in a list.
impl PeerAddress for usize {
    fn host(&self) -> IpAddr {
        (*self as u32).host()
    }
}
