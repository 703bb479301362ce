//! What Linux can do and others cannot, by safe wrappers of its system calls.

use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg, setsockopt, sockopt};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

/// Sends datagrams of `segment` octets each, the last perhaps shorter, gathered from `parts`.
///
/// # Errors
/// The system's.
pub(crate) fn send_gathered(
    socket: &impl AsRawFd,
    peer: SocketAddr,
    parts: &[IoSlice<'_>],
    segment: Option<u16>,
) -> io::Result<()> {
    let messages = segment.as_ref().map(ControlMessage::UdpGsoSegments);
    let to = SockaddrStorage::from(peer);
    sendmsg(socket.as_raw_fd(), parts, messages.as_slice(), MsgFlags::empty(), Some(&to))?;
    Ok(())
}

/// Leaves out the kernel's receive timestamps, which `quinn-udp` turns on.
pub(crate) fn disable_timestamps(socket: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(socket, sockopt::ReceiveTimestampns, &false)?)
}

/// The MTU of the way from `local` to `peer`, as far as the kernel knows it: that of the first link, unless a router has
/// told it a smaller one.
pub(crate) fn path_mtu(local: IpAddr, peer: SocketAddr) -> io::Result<u32> {
    // The kernel looks the way up when a socket is connected. Nothing is sent.
    let socket = UdpSocket::bind((local, 0))?;
    socket.connect(peer)?;
    match peer {
        SocketAddr::V4(_) => Ok(rustix::net::sockopt::ip_mtu(&socket)?),
        SocketAddr::V6(_) => Ok(rustix::net::sockopt::ipv6_mtu(&socket)?),
    }
}
