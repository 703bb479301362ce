//! The netlink socket over which the system is asked.

use super::told::{Silence, Told, Which, answer, question};
use nix::sys::socket::{getsockopt, sockopt::BindToDevice};
use rustix::net::netdevice::name_to_index;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::socket_cookie;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// More than an answer, of a connection with all that a kernel may add.
const ANSWER_BYTES: usize = 4_096;
/// Answers to questions that somebody has given up.
const STRAY_MAX: usize = 8;
/// `ENOENT`: there is no such connection, or nobody in the kernel who knows connections.
const NO_SUCH: i32 = 2;

/// Asks of connections.
pub(super) struct Diag {
    /// The socket, and the number of the last question.
    asking: Mutex<(OwnedFd, u32)>,
}

impl Diag {
    /// Opens the socket and tries whether it answers.
    pub fn open() -> io::Result<Self> {
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
        // The kernel.
        connect(&fd, &SocketAddrNetlink::new(0, 0))?;
        let diag = Self { asking: Mutex::new((fd, 0)) };
        diag.try_out().map_err(|error| match error.raw_os_error() {
            Some(NO_SUCH) => io::Error::other("the kernel lacks tcp_diag (CONFIG_INET_DIAG)"),
            _ => error,
        })?;
        Ok(diag)
    }

    /// A kernel without `tcp_diag` says of each connection that there is none. One that waits at the loopback is there.
    fn try_out(&self) -> io::Result<()> {
        let loopback =
            [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))];
        // Without a loopback nothing is known yet.
        let Ok(waiting) = TcpListener::bind(&loopback[..]) else { return Ok(()) };
        let local = waiting.local_addr()?;
        self.ask(&which(&waiting, local, local)).map(drop)
    }

    /// How a connection stands.
    pub fn ask(&self, which: &Which) -> io::Result<Told> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        asking.1 = asking.1.wrapping_add(1);
        let (fd, number) = &*asking;
        send(fd, &question(*number, which), SendFlags::empty())?;
        let mut buffer = [0; ANSWER_BYTES];
        for _ in 0..STRAY_MAX {
            // The kernel has answered before `send` returns.
            let (_, len) = recv(fd, &mut buffer, RecvFlags::DONTWAIT)?;
            match answer(*number, &buffer[..len.min(ANSWER_BYTES)]) {
                Err(Silence::Another) => {}
                Err(Silence::Refused(code)) => return Err(io::Error::from_raw_os_error(code)),
                Err(Silence::Unreadable) => break,
                Ok(told) => return Ok(told),
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "an answer that cannot be read"))
    }
}

/// The socket between two addresses: without its cookie (before Linux 4.12) whoever is found there.
pub(super) fn which(socket: &impl AsFd, local: SocketAddr, peer: SocketAddr) -> Which {
    Which { local, peer, device: device(socket), cookie: socket_cookie(socket).ok() }
}

/// The device that the socket is bound to, of a VRF too: it is not found without.
fn device(socket: &impl AsFd) -> Option<u32> {
    let name = getsockopt(&socket.as_fd(), BindToDevice).ok()?;
    name_to_index(socket, name.to_str().filter(|name| !name.is_empty())?).ok()
}
