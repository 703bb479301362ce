//! A guide: from the first stream to a server that strangers may call.
//!
//! Nothing here is code to call; everything it shows is compiled and run with the tests.
//!
//! # 1. What uTP is for
//! A uTP stream is what a TCP stream is (octets in order, both ways, flow control), over UDP, with a congestion controller
//! that measures how long packets queue and makes room before others notice. Take it for what can wait: backups, updates,
//! seeding. Both ends must speak it. It is not encrypted; put TLS or Noise on top as you would on TCP.
//!
//! # 2. A server and a client
//! [`UtpSocket::bind`](crate::UtpSocket::bind) takes a UDP port. The same socket opens streams and takes them up, any
//! number of both; dropping it stops accepting, while its streams go on.
//!
//! ```
//! use cede_real::UtpSocket;
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let server = UtpSocket::bind("[::1]:0").await?;
//! let addr = server.local_addr();
//! tokio::spawn(async move {
//!     while let Ok(stream) = server.accept().await {
//!         tokio::spawn(async move {
//!             let (mut from, mut to) = stream.into_split();
//!             let _ = tokio::io::copy(&mut from, &mut to).await;
//!             // Dropping the write half ends its direction.
//!         });
//!     }
//! });
//!
//! let client = UtpSocket::bind("[::1]:0").await?;
//! let mut stream = client.connect(addr).await?;
//! stream.write_all(b"hello").await?;
//! stream.shutdown().await?;
//! let mut echo = Vec::new();
//! stream.read_to_end(&mut echo).await?;
//! assert_eq!(echo, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! **The acceptor speaks second.** A connection is complete for the acceptor with the first packet that follows its
//! answer, so `accept` gives a stream once the initiator has sent something, if only an acknowledgement.
//!
//! **Delivery.** `write` returns when octets are in the send buffer, `flush` does not wait, and `shutdown` ends our
//! direction without waiting. Whether everything arrived is known when the *peer* says so: read its answer, or its end.
//! `examples/send_file.rs` does it with a digest. A dropped stream still delivers what was written, for as long as the
//! runtime lives.
//!
//! # 3. Choosing how gently
//! The default controller is LEDBAT (RFC 6817) with a target of 100 ms of queueing delay. Others, with their parameters,
//! are in [`cede_cc::registry`]; [`ControllerChoice`](crate::ControllerChoice) names one or makes one of your own.
//!
//! ```
//! use cede_cc::ParamValue;
//! use cede_real::{ControllerChoice, SocketConfig, StreamConfig, UtpSocket};
//! use cede_units::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! // For all streams of a socket:
//! let gentle = StreamConfig::with_controller("ledbat").target(Duration::from_millis(25));
//! let server =
//!     UtpSocket::bind_with("127.0.0.1:0", SocketConfig { stream: gentle, ..SocketConfig::default() }).await?;
//! // For some peers, and not at all for others:
//! server.listen_with(|peer| peer.ip().is_loopback().then(|| StreamConfig::with_controller("cubic")));
//! // For one stream that we open:
//! let client = UtpSocket::bind("127.0.0.1:0").await?;
//! let stream = client.connect_with(server.local_addr(), &StreamConfig::with_controller("reno")).await?;
//! // For a stream that runs:
//! let target = ParamValue::Duration(Duration::from_millis(60));
//! stream.set_controller(&ControllerChoice::named("ledbat").with("target", target)).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! Everything else about the transport (timeouts, buffers, keepalive) is in
//! [`StreamConfig::transport`](crate::StreamConfig::transport); its defaults suit peers of every make.
//!
//! # 4. What can go wrong
//! | where | error | when | what helps |
//! |---|---|---|---|
//! | bind | [`BindError::Io`](crate::BindError::Io) | the port is taken, the address is not ours, no descriptors are left | another port |
//! | bind | [`BindError::Controller`](crate::BindError::Controller) | no controller has this name or parameter | `cede_cc::registry` lists them |
//! | connect | [`ConnectError::Controller`](crate::ConnectError::Controller) | the same, for one stream | |
//! | connect | [`ConnectError::AddressFamily`](crate::ConnectError::AddressFamily) | an IPv6 peer on an IPv4 socket, or the reverse | bind to `[::]`, which speaks both |
//! | connect | [`ConnectError::Full`](crate::ConnectError::Full) | the socket has [`Limits::connections`](cede_utp::Limits::connections), or 65,536 to this peer | raise the limit, or another socket |
//! | connect | `Failed(Refused)`: `ConnectionRefused` | a RESET or ICMP came back, or no way leads there | |
//! | connect | `Failed(TimedOut)`: `TimedOut` | three SYNs in 21 s had no answer | a firewall, or nobody there |
//! | connect | [`ConnectError::SocketClosed`](crate::ConnectError::SocketClosed) | the socket's runtime is gone | keep the runtime |
//! | read, write | `ConnectionReset` | the peer aborted, has forgotten the connection (restarted), or its program is gone (ICMP, to who only reads) | connect again |
//! | read, write | `TimedOut` | several timeouts in a row without answer | connect again |
//! | read, write | `ConnectionAborted` | this side called [`abort`](crate::UtpStream::abort) | |
//! | read | `UnexpectedEof` | the peer had everything, and went silent without ending its own stream | what was sent has arrived |
//! | write | `BrokenPipe` | after `shutdown` | |
//! | any | `NotConnected` | the socket's driver has ended | keep the runtime |
//!
//! What arrived before an error can be read first. A stream's errors have the
//! [`ConnectionError`](cede_utp::ConnectionError) inside ([`std::io::Error::get_ref`]).
//!
//! # 5. Measuring
//! ```
//! # use cede_real::UtpSocket;
//! # use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! # let server = UtpSocket::bind("127.0.0.1:0").await?;
//! # let client = UtpSocket::bind("127.0.0.1:0").await?;
//! # let (there, here) = tokio::join!(client.connect(server.local_addr()), server.accept());
//! # let (mut stream, mut here) = (there?, here?);
//! # let sink = tokio::spawn(async move { here.read_exact(&mut [0; 100_000]).await });
//! let begun = stream.reading();
//! stream.write_all(&[0; 100_000]).await?;
//! # sink.await??;
//! if let Some(snapshot) = stream.snapshot() {
//!     println!("RTT {}, window {} octets", snapshot.srtt, snapshot.cwnd_bytes);
//!     println!("queueing delay {:?}", snapshot.controller.queueing_delay);
//! }
//! println!("{} since then", stream.reading().delivery_rate(&begun));
//! println!("{} retransmissions", stream.statistics().retransmissions);
//! # Ok(())
//! # }
//! ```
//! [`UtpSocket::statistics`](crate::UtpSocket::statistics) counts what strangers send: noise, strays, refused SYNs,
//! half-open connections dropped, ICMP heeded and ignored.
//!
//! # 6. Another protocol on the port
//! Datagrams that are no uTP come out of [`UtpSocket::foreign`](crate::UtpSocket::foreign), and
//! [`UtpSocket::send_foreign`](crate::UtpSocket::send_foreign) answers them: a BitTorrent client's DHT, for one.
//!
//! # 7. TCP that yields
//! Where the other end speaks TCP alone, [`yielding`](crate::yielding) has the same controllers hold back what is written to the system's
//! connection (Linux).
//!
//! # 8. Complete programs
//! * `examples/echo.rs`: a server, a client, and rates;
//! * `examples/send_file.rs`: a file with its digest, and the receiver's word that it is whole;
//! * `examples/blocking.rs`: no tokio, one thread and a `std::net::UdpSocket` per end.
