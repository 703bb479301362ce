//! Between whom datagrams pass.
//!
//! A socket that is bound to no address in particular hears of all that its machine has: most have several, over IPv6
//! nearly all. What answers a datagram has to come from the address that the datagram went to, or whoever sent it takes
//! the answer for a stranger's.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

/// A peer, and which of our addresses it writes to. Two ways to one peer are the same: where the peer was called first,
/// which address it will answer to is not known yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub peer: SocketAddr,
    /// Our address; where it is not said, the system chooses.
    pub from: Option<IpAddr>,
}

impl Way {
    /// To a peer that has not written yet.
    pub const fn to(peer: SocketAddr) -> Self {
        Self { peer, from: None }
    }

    /// To a peer whose datagram went to `local`. Nothing can be sent from an address of many.
    pub fn back_to(peer: SocketAddr, local: Option<IpAddr>) -> Self {
        let is_one = |ip: &IpAddr| match ip {
            IpAddr::V4(v4) => !v4.is_multicast() && !v4.is_broadcast(),
            IpAddr::V6(v6) => !v6.is_multicast(),
        };
        Self { peer, from: local.map(|ip| ip.to_canonical()).filter(is_one) }
    }
}

impl PartialEq for Way {
    fn eq(&self, other: &Self) -> bool {
        self.peer == other.peer
    }
}

impl Eq for Way {}

impl PartialOrd for Way {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Way {
    fn cmp(&self, other: &Self) -> Ordering {
        self.peer.cmp(&other.peer)
    }
}

impl Hash for Way {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.peer.hash(state);
    }
}
