//! A path of any rate, delay, buffer and loss on the loopback: a UDP relay whose physics are [`cede_net::Link`].
//!
//! ```no_run
//! use cede_net::QueueLimit;
//! use cede_testbed::relay::{Relay, RelayConfig, Wire};
//! use cede_units::{Duration, Rate};
//!
//! let half = Duration::from_millis(15);
//! let there = Wire::new(Rate::from_mbit(50), half, QueueLimit::Bytes(187_500));
//! let back = Wire::new(Rate::from_mbit(50), half, QueueLimit::Unlimited);
//! let relay = Relay::start(RelayConfig::new("127.0.0.1:4000".parse()?, there, back))?;
//! println!("send to {} instead", relay.local_addr());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Clients send to [`Relay::local_addr`]; each gets a port of its own towards the target, so the target tells them apart
//! and answers each. Everything counts as an IP datagram: UDP payload, 8 octets of UDP, 20 or 40 of IP.
//!
//! # Time
//! A thread of its own, at real-time priority where the system permits, sleeps until the next datagram is due (`ppoll`,
//! nanoseconds) or one arrives. Departure times come from the links' schedule and arrivals from the kernel's time stamps,
//! so a late awakening delays single datagrams and nothing else. Both kinds of lateness are in the [`Report`]: whoever
//! draws conclusions from a run looks there first.
//!
//! # Nothing is lost in silence
//! What the link drops, what is too large, what the system refuses to send, and what the kernel drops in front of the
//! relay's own sockets: each has its counter.
//!
//! *What it leaves out:* ECN marks do not pass; ICMP errors are not relayed.
//! *How it was validated:* `tests/relay.rs` (order, rate, loss by seed the same as the link's own, black hole).

mod batch;
mod direction;
mod forwarder;
mod port;
mod report;

pub use report::{DirectionReport, Report};

use cede_net::{Impairments, LinkConfig, QueueLimit};
use cede_units::{Duration, Rate};
use forwarder::{Forwarder, Request};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::{self, Sender};
use std::thread::{Builder, JoinHandle};

/// One direction of an emulated path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wire {
    /// Queue, transmitter, propagation, and what else happens to packets.
    pub link: LinkConfig,
    /// IP datagrams larger than this many octets vanish in silence, before they reach the queue.
    pub mtu_bytes: Option<u32>,
}

impl Wire {
    /// A perfect wire with a drop-tail queue.
    #[must_use]
    pub fn new(rate: Rate, delay: Duration, limit: QueueLimit) -> Self {
        Self { link: LinkConfig::new(rate, delay, limit), mtu_bytes: None }
    }

    /// The same, impaired.
    #[must_use]
    pub const fn impaired(mut self, impairments: Impairments) -> Self {
        self.link.impairments = impairments;
        self
    }

    /// The same, a black hole for IP datagrams of more octets.
    #[must_use]
    pub const fn mtu(mut self, bytes: u32) -> Self {
        self.mtu_bytes = Some(bytes);
        self
    }
}

/// What a relay is made of.
#[derive(Clone, PartialEq, Debug)]
pub struct RelayConfig {
    /// Where clients send to. Default: a free port of the loopback address of the target's family.
    pub listen: SocketAddr,
    /// Whom the clients mean.
    pub target: SocketAddr,
    /// From the clients to the target.
    pub forward: Wire,
    /// From the target to the clients.
    pub backward: Wire,
    /// Names the random streams of both links. Default 1.
    pub seed: u64,
    /// Datagrams of more clients than this are refused and counted. Default 1024.
    pub max_clients: usize,
}

impl RelayConfig {
    /// A relay towards `target`, with defaults for the rest.
    #[must_use]
    pub fn new(target: SocketAddr, forward: Wire, backward: Wire) -> Self {
        let loopback = match target {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        Self { listen: SocketAddr::new(loopback, 0), target, forward, backward, seed: 1, max_clients: 1024 }
    }
}

/// A running relay; dropping it ends it, with whatever is still under way.
#[derive(Debug)]
pub struct Relay {
    local: SocketAddr,
    requests: Sender<Request>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Binds and begins.
    ///
    /// # Errors
    /// The system's, where it grants no socket or no thread.
    pub fn start(config: RelayConfig) -> io::Result<Self> {
        let (requests, inbox) = mpsc::channel();
        let forwarder = Forwarder::new(config, inbox)?;
        let local = forwarder.local_addr()?;
        let thread = Builder::new().name("relay".to_string()).spawn(move || forwarder.run())?;
        Ok(Self { local, requests, thread: Some(thread) })
    }

    /// Where clients send to.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// What the relay has done so far, and how late it was.
    ///
    /// # Errors
    /// The relay has ended, since the system would not let it wait for its sockets.
    pub fn report(&self) -> io::Result<Report> {
        let (answer, answers) = mpsc::sync_channel(1);
        let gone = || io::Error::other("the relay has ended by itself");
        self.requests.send(Request::Report(answer)).map_err(|_| gone())?;
        let mut report: Report = answers.recv().map_err(|_| gone())?;
        report.count_overflows();
        Ok(report)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.requests.send(Request::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
