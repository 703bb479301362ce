//! What the system hands over of a complaint.

use std::net::SocketAddr;

/// One thing that was said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Complaint {
    /// Whom our datagram was for.
    pub peer: SocketAddr,
    pub reason: Reason,
    /// How our datagram began.
    pub head: Vec<u8>,
}

/// What was said.
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), expect(dead_code))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// No way leads there, or nobody is to be reached by it.
    Unreachable,
    /// The peer's system: nobody has the port.
    NobodyThere,
    /// This is the largest packet that would have passed, IP header included.
    TooBig { mtu_bytes: u32 },
}
