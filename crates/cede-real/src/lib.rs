//! uTP (BEP 29) on real UDP sockets: streams for tokio that leave the line to everyone else.
//!
//! A [`UtpSocket`] is one UDP port with any number of [`UtpStream`]s, which are tokio's `AsyncRead` and `AsyncWrite`. How
//! much a stream sends is decided by a congestion controller of `cede-cc`: by default LEDBAT (RFC 6817), which makes room
//! as soon as packets begin to queue.
//!
//! ```
//! use cede_real::UtpSocket;
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let server = UtpSocket::bind("127.0.0.1:0").await?;
//! let client = UtpSocket::bind("127.0.0.1:0").await?;
//!
//! let (there, here) = tokio::join!(client.connect(server.local_addr()), server.accept());
//! let (mut there, mut here) = (there?, here?);
//! there.write_all(b"whatever nobody else wants").await?;
//! there.shutdown().await?;
//!
//! let mut heard = String::new();
//! here.read_to_string(&mut heard).await?;
//! assert_eq!(heard, "whatever nobody else wants");
//! # Ok(())
//! # }
//! ```
//!
//! # Choices
//! [`SocketConfig`] holds those of a socket, [`StreamConfig`] those of a stream: the controller by its name in
//! `cede_cc::registry`, its parameters (its target delay above all), the packet size, and every choice of the transport.
//! [`UtpSocket::connect_with`] takes them for one stream. A controller of one's own goes in by
//! [`ControllerChoice::custom`].
//!
//! ```
//! use cede_real::{ControllerChoice, SocketConfig, StreamConfig, UtpSocket};
//! use cede_units::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let stream = StreamConfig::with_controller("ledbat").target(Duration::from_millis(25));
//! let socket = UtpSocket::bind_with("[::]:0", SocketConfig { stream, ..SocketConfig::default() }).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # How streams end
//! * `shutdown` ends our direction; the other stays open. The peer reads to its end.
//! * Dropping a stream ends it in good order: what was written still arrives, in the background, even if the socket is
//!   dropped too, as long as the runtime lives. What the peer still sends is acknowledged and dropped.
//! * [`UtpStream::abort`] ends it at once with a RESET.
//!
//! Errors are [`std::io::Error`]s with a [`cede_utp::ConnectionError`] inside:
//!
//! | kind | what happened |
//! |---|---|
//! | `ConnectionRefused` | the peer answered the SYN with a RESET, or the system knows no way to it |
//! | `ConnectionReset` | the peer reset the connection |
//! | `TimedOut` | nobody answered, several times in a row |
//! | `UnexpectedEof` | after our end was acknowledged the peer went silent without ending its own stream |
//! | `ConnectionAborted` | this side called [`UtpStream::abort`] |
//! | `BrokenPipe` | a write after `shutdown` |
//! | `NotConnected` | the socket's driver is gone, with its runtime or because the UDP socket failed |
//!
//! # Numbers
//! [`UtpStream::snapshot`] says where a stream stands (window, RTT, one-way and queueing delay, packet size),
//! [`UtpStream::statistics`] what it has done (retransmissions, timeouts, octets), and two [`Reading`]s give rates between
//! them. All can be asked at any time, of the halves of a split stream too.
//!
//! # One port, two protocols
//! Datagrams that are no uTP, such as those of a BitTorrent client's DHT, come out of [`UtpSocket::foreign`], and
//! [`UtpSocket::send_foreign`] answers them. Beyond [`SocketConfig::foreign_backlog`] they are dropped and counted.
//!
//! # How it works
//! One task per socket reads until nothing is there, hands everything to a [`cede_utp::Endpoint`] and lets out what that
//! causes: what arrived together is acknowledged together, and packets of one size to one peer leave in one system call
//! (GSO; `quinn-udp` does the calls, and one datagram at a time where the system cannot do better). After at most one such
//! call, of 64 KB at most, what has arrived is looked at again, so a large window is not poured into a small socket buffer
//! at once. The task that writes to a stream sends from where it is. There is one timer, with the runtime's granularity of
//! a millisecond. Random numbers are seeded by the operating system.
//!
//! Path-MTU search is on: streams begin with 548 octets per datagram over IPv4 and 1232 over IPv6 and dual-stack sockets,
//! and probe for more. All datagrams carry "don't fragment" where the system can set it.
//!
//! **Without tokio**: `examples/blocking.rs` drives the same endpoint over a `std::net::UdpSocket` by hand.
//!
//! # Limits
//! A socket has 3000 connections, 256 half open and 128 waiting to be accepted, unless [`SocketConfig::limits`] says
//! otherwise; a stream buffers 256 KiB to 16 MiB in each direction, as the path needs. One socket costs 1 MiB of address space for receiving, of which
//! only what is used becomes memory. On a socket with several addresses the system chooses which one answers leave
//! from. uTP is neither encrypted nor authenticated.
//!
//! # Not yet
//! * ICMP errors: only what the system says to a send call counts (too large; no way to a peer being connected to). The
//!   error queue of Linux is not read.
//! * Kernel receive timestamps: arrival is when the driver reads, so a busy machine shows up in the one-way delay.
//! * Pacing finer than the timer.
//! * A delivery rate by the estimator that controllers use: rates come from counters.
//! * Interoperability with other implementations is not tested here, nor are platforms other than Linux.
//!
//! **Invariant:** nothing here decides what a packet says or how much may be under way; that is done below, by code that
//! runs unchanged in the simulator.

mod arrival;
mod clock;
mod complaints;
mod config;
mod driver;
mod error;
mod foreign;
mod inbox;
#[cfg(test)]
mod model;
mod outgoing;
mod shared;
mod socket;
mod stream;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod system;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "portable.rs"]
mod system;
mod udp;

pub use config::{ControllerChoice, LARGEST_DATAGRAM_BYTES, MakeController, SocketConfig, StreamConfig};
pub use error::{BindError, ConnectError};
pub use foreign::{Foreign, ForeignDatagram};
pub use socket::{SocketStatistics, UtpSocket};
pub use stream::{OwnedReadHalf, OwnedWriteHalf, Reading, UtpStream};
