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
//! [`guide`] goes from there to everything else: choices, errors, sharing a port, measuring, and what it costs.
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
//! [`UtpStream::snapshot`] says where a stream stands (window, RTT, one-way and queueing delay, packet size, rate of delivery),
//! [`UtpStream::statistics`] what it has done (retransmissions, timeouts, octets), and two [`Reading`]s give rates between
//! them. All can be asked at any time, of the halves of a split stream too.
//!
//! # One port, two protocols
//! Datagrams that are no uTP, such as those of a BitTorrent client's DHT, come out of [`UtpSocket::foreign`], and
//! [`UtpSocket::send_foreign`] answers them. Beyond [`SocketConfig::foreign_backlog`] they are dropped and counted.
//!
//! # How it works
//! One task per socket, its driver, reads until nothing is there, hands everything to a [`cede_utp::Endpoint`] and lets
//! out what that causes: what arrived together is acknowledged together, and packets of one size to one peer leave in one
//! system call (GSO; `quinn-udp` and `nix` do the calls, and one datagram at a time where the system cannot do better).
//! After two such calls, of 64 KB at most, what has arrived is looked at again, so a large window is not poured into a
//! small socket buffer at once. The task that writes to a stream sends from where it is. What the kernel has put together
//! is received into buffers that payloads share. There is one timer, with the runtime's granularity of a millisecond;
//! paced streams make up for it by bursts of 2 ms. Random numbers are seeded by the operating system.
//!
//! Path-MTU search is on: streams begin with 548 octets per datagram over IPv4 and 1232 over IPv6, and probe for more: up
//! to an Ethernet frame, and between two of these sockets up to 16,000 octets where the first link carries that (a uTP
//! peer whose buffer is smaller than a datagram would corrupt the stream, so nobody else gets larger ones). All datagrams
//! carry "don't fragment" where the system can set it, but those that no longer fit and have to arrive as they are. Where a
//! path carries less than it did, a router says so or three timeouts of a large packet tell: packets are small then until larger ones are known to pass. Between two of these sockets what is under way
//! leaves again in parts; towards others it leaves whole, for the system or the network to cut (Linux; where fragments do not get
//! through it is lost with its connection, unless the path recovers).
//!
//! A datagram counts as arrived when the kernel got it (Linux), so a busy machine does not show up as delay in the
//! network. What the kernel has put together of several has the stamp of the first. Steps of the system's clock are
//! noticed, and stamps across them ignored.
//!
//! uTP has no field for congestion marks (ECN): a receiver could not tell the sender of them. So none are set on what leaves,
//! which routers therefore drop rather than mark, and what arrives is not looked at for any; what `quinn-udp` loses of
//! them on coalesced receives is missed by nobody.
//!
//! **Without async**: the feature `blocking` has sockets and streams for threads (`cede_real::blocking`). **Without tokio**:
//! `examples/blocking.rs` drives the same endpoint over a `std::net::UdpSocket` by hand.
//!
//! # Limits
//! A socket has 3000 connections, 256 half open and 128 waiting to be accepted, unless [`SocketConfig::limits`] says
//! otherwise. A stream's buffers begin with 1 MiB in each direction and grow to 16 MiB with the path; what all streams together
//! have received and nobody has read is bounded by 256 MiB and 64 KiB for each ([`cede_utp::Limits::buffered_bytes`]); idle, a
//! connection takes 1,600 octets per end, and a task that waits to read from it 400 more, which are the runtime's
//! (`cargo bench -p cede-real --bench idle`). Keepalives of connections between the same two
//! sockets are shared where both are of this kind, so idle connections take no CPU time that is worth mention. One socket costs
//! 1 MiB of address space for receiving, of which only what is used becomes memory, and 2 MiB at most for batches whose
//! payloads wait to be read. On a socket with several addresses the system chooses which one answers leave from. uTP is
//! neither encrypted nor authenticated: whoever sees its packets can forge them.
//!
//! # Not yet
//! * ICMP errors are read on Linux alone. Elsewhere only what the system says to a send call counts.
//! * Kernel timestamps, segmented sends and large datagrams are Linux's alone too; for macOS and Windows it is only checked
//!   that everything compiles.
//! * A pacing rate is kept by timers: where the machine is more than 2 ms late, or the rate above about 400 Mbit/s and
//!   acknowledgements rare, a stream falls behind it.
//!
//! **Invariant:** nothing here decides what a packet says or how much may be under way; that is done below, by code that
//! runs unchanged in the simulator.

mod arrival;
#[cfg(feature = "blocking")]
pub mod blocking;
mod clock;
mod complaint;
mod complaints;
mod config;
mod driver;
mod error;
mod foreign;
pub mod guide;
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
mod way;
pub mod yielding;

pub use config::{ControllerChoice, LARGEST_DATAGRAM_BYTES, MakeController, SocketConfig, StreamConfig};
pub use error::{BindError, ConnectError};
pub use foreign::{Foreign, ForeignDatagram};
pub use socket::{SocketStatistics, UtpSocket};
pub use stream::{OwnedReadHalf, OwnedWriteHalf, Reading, StreamView, UtpStream};
pub use yielding::{Yielding, YieldingError, YieldingTcp};
