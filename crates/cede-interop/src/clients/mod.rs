//! The BitTorrent clients whose uTP is inside: each a process of its own, with one torrent and one peer, ours.
//!
//! Nothing here installs anything: what is missing is said, and skipped.

mod exchange;
mod guard;
mod libtorrent;
mod process;
mod tracker;
mod transmission;

pub use exchange::{Ready, control, run};

use crate::bittorrent::Torrent;
use process::Folder;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// A client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Client {
    /// libtorrent from PyPI, in a virtual environment.
    LibtorrentPypi,
    /// libtorrent as Debian has it, with the system's Python.
    LibtorrentDebian,
    /// Transmission, which carries libutp.
    Transmission,
}

impl Client {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::LibtorrentPypi, Self::LibtorrentDebian, Self::Transmission];

    /// How it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LibtorrentPypi => "libtorrent (PyPI)",
            Self::LibtorrentDebian => "libtorrent (Debian)",
            Self::Transmission => "Transmission (libutp)",
        }
    }

    /// Its version, where it is installed.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn version(self) -> Result<String, String> {
        match self {
            Self::LibtorrentPypi | Self::LibtorrentDebian => libtorrent::version(self),
            Self::Transmission => transmission::version(),
        }
    }

    /// An address at which the client and ours can meet.
    ///
    /// # Errors
    /// Why there is none.
    pub fn meeting_place(self, loopback: IpAddr, client_opens: bool) -> Result<IpAddr, String> {
        match self {
            // It takes no peers at loopback addresses from a tracker, and has no UDP socket of IPv6 at all on a machine
            // without a global address.
            Self::Transmission if client_opens || loopback.is_ipv6() => transmission::believable(loopback),
            _ => Ok(loopback),
        }
    }
}

/// What a client does with the torrent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Has it.
    Seed,
    /// Wants it.
    Leech,
}

/// What a client is told.
pub struct Task<'a> {
    /// What it does.
    pub role: Role,
    /// With what.
    pub torrent: &'a Torrent,
    /// Where it listens.
    pub ip: IpAddr,
    /// Whom it connects to.
    pub connect: Option<SocketAddr>,
    /// The size of its UDP socket's buffers, where that can be chosen, instead of the system's default.
    pub buffer_bytes: Option<usize>,
}

/// A running client.
pub enum Running {
    /// libtorrent.
    Libtorrent(Box<libtorrent::Session>),
    /// Transmission.
    Transmission(Box<transmission::Daemon>),
}

impl Running {
    /// Starts a client on a task.
    ///
    /// # Errors
    /// What kept it from starting.
    pub async fn start(client: Client, task: &Task<'_>) -> io::Result<Self> {
        Ok(match client {
            Client::Transmission => {
                Self::Transmission(Box::new(transmission::Daemon::start(task, Folder::new(task)?).await?))
            }
            _ => Self::Libtorrent(Box::new(
                libtorrent::Session::start(client, task, Folder::new(task)?).await?,
            )),
        })
    }

    /// Where it takes uTP connections.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        match self {
            Self::Libtorrent(session) => session.addr,
            Self::Transmission(daemon) => daemon.addr,
        }
    }

    /// Its process.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        match self {
            Self::Libtorrent(session) => session.process_id(),
            Self::Transmission(daemon) => daemon.process_id(),
        }
    }

    /// Waits until it has everything, and compares that with what it should have.
    ///
    /// # Errors
    /// What it says went wrong; a file that differs.
    pub async fn complete(&mut self, torrent: &Torrent) -> io::Result<()> {
        let folder = match self {
            Self::Libtorrent(session) => session.complete().await?,
            Self::Transmission(daemon) => daemon.complete().await?,
        };
        folder.check(torrent)
    }

    /// What it had to say, for the report of a failure.
    #[must_use]
    pub fn notes(&self) -> String {
        match self {
            Self::Libtorrent(session) => session.notes.join("; "),
            Self::Transmission(_) => String::new(),
        }
    }
}
