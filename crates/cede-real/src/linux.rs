//! What Linux can do and others cannot, by safe wrappers of its system calls.

use crate::complaint::{Complaint, Reason};
use crate::way::Way;
use cede_wire::utp::HEADER_BYTES;
use nix::libc::{
    SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6, in_addr, in_pktinfo, in6_addr, in6_pktinfo, sock_extended_err,
};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

/// RFC 792: destination unreachable, and its codes "port unreachable" and "fragmentation needed and DF set".
const ICMP_UNREACHABLE: u8 = 3;
const ICMP_PORT: u8 = 3;
const ICMP_FRAGMENTATION_NEEDED: u8 = 4;
/// RFC 4443: destination unreachable, its code "port unreachable"; packet too big.
const ICMP6_UNREACHABLE: u8 = 1;
const ICMP6_PORT: u8 = 4;
const ICMP6_TOO_BIG: u8 = 2;

/// Sends datagrams of `segment` octets each, the last perhaps shorter, gathered from `parts`.
///
/// # Errors
/// The system's.
pub(crate) fn send_gathered(
    socket: &impl AsRawFd,
    way: Way,
    parts: &[IoSlice<'_>],
    segment: Option<u16>,
) -> io::Result<()> {
    let (v4, v6) = (way.from.and_then(source_v4), way.from.and_then(source_v6));
    let source = v4.as_ref().map(ControlMessage::Ipv4PacketInfo);
    let source = source.or_else(|| v6.as_ref().map(ControlMessage::Ipv6PacketInfo));
    let (to, none) = (SockaddrStorage::from(way.peer), MsgFlags::empty());
    match (segment.as_ref().map(ControlMessage::UdpGsoSegments), source) {
        (None, None) => sendmsg(socket.as_raw_fd(), parts, &[], none, Some(&to)),
        (Some(one), None) | (None, Some(one)) => sendmsg(socket.as_raw_fd(), parts, &[one], none, Some(&to)),
        (Some(segment), Some(source)) => {
            sendmsg(socket.as_raw_fd(), parts, &[segment, source], none, Some(&to))
        }
    }?;
    Ok(())
}

/// Whence a datagram comes, over IPv4 also where the socket speaks both.
fn source_v4(from: IpAddr) -> Option<in_pktinfo> {
    let IpAddr::V4(from) = from else { return None };
    let ipi_spec_dst = in_addr { s_addr: u32::from_ne_bytes(from.octets()) };
    Some(in_pktinfo { ipi_ifindex: 0, ipi_spec_dst, ipi_addr: in_addr { s_addr: 0 } })
}

fn source_v6(from: IpAddr) -> Option<in6_pktinfo> {
    let IpAddr::V6(from) = from else { return None };
    Some(in6_pktinfo { ipi6_addr: in6_addr { s6_addr: from.octets() }, ipi6_ifindex: 0 })
}

/// Whether the network may cut what a socket sends; where it may not, what is larger than a router once said is sent all the same.
pub(crate) fn let_fragment(socket: &impl AsFd, is_ipv6: bool, may: bool) -> io::Result<()> {
    use rustix::net::sockopt::{
        Ipv4PathMtuDiscovery as V4, Ipv6PathMtuDiscovery as V6, set_ip_mtu_discover, set_ipv6_mtu_discover,
    };
    if is_ipv6 {
        // `quinn-udp` has set both.
        set_ipv6_mtu_discover(socket, if may { V6::DONT } else { V6::PROBE })?;
        setsockopt(socket, sockopt::Ipv6DontFrag, &!may)?;
    }
    // A socket that speaks both has both.
    Ok(set_ip_mtu_discover(socket, if may { V4::DONT } else { V4::PROBE })?)
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

/// Has the kernel keep what routers and peers say of what a socket sends.
pub(crate) fn enable_complaints(socket: &impl AsFd, is_ipv6: bool) -> io::Result<()> {
    if is_ipv6 {
        setsockopt(socket, sockopt::Ipv6RecvErr, &true)?;
    }
    // Of peers over IPv4 on a socket that speaks both, too.
    Ok(setsockopt(socket, sockopt::Ipv4RecvErr, &true)?)
}

/// The next thing that a router or a peer said of a datagram of ours (ICMP): it waits in the socket's error queue, with
/// the beginning of the datagram. `None` where nothing that is understood came; to be called until it would block.
///
/// # Errors
/// `WouldBlock` where nothing is left.
pub(crate) fn next_complaint(socket: &impl AsRawFd) -> io::Result<Option<Complaint>> {
    let mut head = [0; HEADER_BYTES];
    // The error itself, and with it whatever the socket is told of ordinary datagrams.
    let mut space = nix::cmsg_space!([u8; 256]);
    let (read, peer, reason) = {
        let mut parts = [IoSliceMut::new(&mut head)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
        let reason = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => {
                reason_of(&error)
            }
            _ => None,
        });
        (message.bytes, message.address.as_ref().and_then(socket_addr), reason)
    };
    Ok(peer.zip(reason).map(|(peer, reason)| Complaint { peer, reason, head: head[..read].to_vec() }))
}

/// What an error says, where a router or a peer said it; what the system refused by itself is known already.
fn reason_of(error: &sock_extended_err) -> Option<Reason> {
    match (error.ee_origin, error.ee_type, error.ee_code) {
        (SO_EE_ORIGIN_ICMP, ICMP_UNREACHABLE, ICMP_FRAGMENTATION_NEEDED)
        | (SO_EE_ORIGIN_ICMP6, ICMP6_TOO_BIG, _) => Some(Reason::TooBig { mtu_bytes: error.ee_info }),
        (SO_EE_ORIGIN_ICMP, ICMP_UNREACHABLE, ICMP_PORT)
        | (SO_EE_ORIGIN_ICMP6, ICMP6_UNREACHABLE, ICMP6_PORT) => Some(Reason::NobodyThere),
        (SO_EE_ORIGIN_ICMP, ICMP_UNREACHABLE, _) | (SO_EE_ORIGIN_ICMP6, ICMP6_UNREACHABLE, _) => {
            Some(Reason::Unreachable)
        }
        _ => None,
    }
}

fn socket_addr(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quinn_udp::UdpSocketState;
    use rustix::net::sockopt::{Ipv4PathMtuDiscovery as V4, ip_mtu_discover, ipv6_mtu_discover};

    /// Over IPv6 the kernel cuts nothing while either option forbids it.
    #[test]
    fn the_network_may_cut_for_as_long_as_it_is_let() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let socket = UdpSocket::bind(address).unwrap();
            UdpSocketState::new((&socket).into()).unwrap();
            let is_ipv6 = socket.local_addr().unwrap().is_ipv6();
            let set = || {
                let v6 = is_ipv6.then(|| {
                    let discover = ipv6_mtu_discover(&socket).unwrap().as_raw();
                    (discover, nix::sys::socket::getsockopt(&socket, sockopt::Ipv6DontFrag).unwrap())
                });
                (ip_mtu_discover(&socket).unwrap(), v6)
            };
            let before = set();
            let_fragment(&socket, is_ipv6, true).unwrap();
            assert_eq!(set(), (V4::DONT, is_ipv6.then_some((0, false))), "{address}");
            let_fragment(&socket, is_ipv6, false).unwrap();
            assert_eq!(set(), before, "{address}");
        }
    }
}
