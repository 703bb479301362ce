//! The netlink socket over which the system is asked.

use super::told::{Silence, Told, answer, question};
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

/// More than an answer, of a connection with all that a kernel may add.
const ANSWER_BYTES: usize = 4_096;
/// Answers to questions that somebody has given up.
const STRAY_MAX: usize = 8;
/// `ENOENT`: there is no such connection.
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
        // A connection that cannot be: that there is none is an answer.
        let nobody = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        match diag.ask(nobody, nobody) {
            Err(error) if error.raw_os_error() != Some(NO_SUCH) => Err(error),
            _ => Ok(diag),
        }
    }

    /// How the connection between two addresses stands.
    pub fn ask(&self, local: SocketAddr, peer: SocketAddr) -> io::Result<Told> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        asking.1 = asking.1.wrapping_add(1);
        let (fd, number) = &*asking;
        send(fd, &question(*number, local, peer), SendFlags::empty())?;
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
