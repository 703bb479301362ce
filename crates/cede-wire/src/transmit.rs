//! What a transport wants sent.

use crate::{Ecn, Head, Payload};

/// One packet that a transport wants sent: the octets behind the UDP or IP header. A real world sends head and payload
/// in one system call, a simulated one moves them by value.
#[derive(Clone, Debug, Default)]
pub struct Transmit {
    /// The transport's header, options and extensions included.
    pub head: Head,
    /// What follows it.
    pub payload: Payload,
    /// The network must drop the packet rather than fragment it (a path-MTU probe).
    pub dont_fragment: bool,
    /// The packet is known to be too large for the path and has to arrive as it is: a world that has the choice lets the network
    /// cut it, where else it would rather lose what is too large.
    pub may_fragment: bool,
    /// What the IP header says of congestion; transports that do not understand marks leave the default.
    pub ecn: Ecn,
}

impl Transmit {
    /// Octets of head and payload.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.payload.len() as usize
    }

    /// True for no octets at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
