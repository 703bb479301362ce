#![no_std]
//! A model TCP for the simulated world.
//!
//! [`Connection`] is one end of a connection as a value: it is handed segments and the time, and asked for segments,
//! events and its next deadline. Reliability is here (handshake, reassembly, loss detection and repair, timeouts); how
//! much may be under way is a [`cede_cc::Controller`]'s business, behind the same contract as for uTP. The real world
//! uses the kernel's TCP instead.
//!
//! **Invariant:** nothing here knows a clock, a socket, a source of randomness, an address or a window's growth: no
//! congestion-control formula stands in this crate.
//!
//! # Driving a connection
//! After any of [`handle`](Connection::handle), [`handle_timeout`](Connection::handle_timeout),
//! [`write`](Connection::write), [`read`](Connection::read), [`close`](Connection::close) and
//! [`abort`](Connection::abort): call [`poll_transmit`](Connection::poll_transmit) until it gives none, then
//! [`poll_event`](Connection::poll_event) until it gives none, then ask [`poll_timeout`](Connection::poll_timeout).
//!
//! ```
//! use cede_cc::{Params, registry};
//! use cede_tcp::{Config, Connection, Ports, Segment};
//! use cede_units::{Duration, Instant, Stream};
//! use cede_wire::Payload;
//!
//! let (config, mut random) = (Config::default(), Stream::named(1, "example"));
//! let controller = || registry::build("cubic", &Params::new(), &config.path()).unwrap();
//! let ports = Ports { local: 40_000, remote: 80 };
//! let mut client = Connection::connect(config.clone(), controller(), ports, &mut random);
//! client.write(Payload::Pattern { start: 0, len: 100_000 }).unwrap();
//!
//! // The network: each turn of the loop is half a round trip of 50 ms.
//! let (mut now, mut server, mut received) = (Instant::ZERO, None::<Connection>, 0);
//! while received < 100_000 {
//!     now += Duration::from_millis(25);
//!     while let Some(transmit) = client.poll_transmit(now) {
//!         let (segment, _) = Segment::decode(&transmit.head).unwrap();
//!         match &mut server {
//!             Some(server) => server.handle(now, &segment, transmit.payload),
//!             None => server = Connection::accept(now, config.clone(), controller(), &segment, &mut random).ok(),
//!         }
//!     }
//!     let Some(server) = &mut server else { continue };
//!     received += server.read().map_or(0, |payload| payload.len());
//!     while let Some(transmit) = server.poll_transmit(now) {
//!         client.handle(now, &Segment::decode(&transmit.head).unwrap().0, transmit.payload);
//!     }
//! }
//! assert_eq!(client.statistics().retransmissions, 0);
//! ```
//!
//! # What is modelled
//! Three-way handshake with retransmission; MSS, window scale, SACK and timestamp options; repair with SACK by counting
//! (RFC 6675) or by time with tail-loss probes (RFC 8985, RACK-TLP; with reports of what arrived twice, RFC 2883, and repairs
//! and timeouts that are taken back where they were in vain), and RFC 6582 (NewReno) without; limited transmit; RFC 6298 and
//! Linux timeouts; timestamps with PAWS and one-way delay samples; explicit congestion notification (RFC 3168); delayed
//! acknowledgements in three policies; proportional rate reduction; zero-window probes; pacing and windows below one segment
//! where a controller asks for them; closing from either side, RST.
//!
//! # What is left out
//! Simultaneous open, data on SYN, urgent data, path-MTU discovery, and F-RTO.
//! Checksums are the capture writer's.

extern crate alloc;

mod buffer;
mod clock;
mod config;
mod connection;
mod delayed_ack;
mod facts;
mod payloads;
mod rack;
mod reassembly;
mod rtt;
mod scoreboard;
mod statistics;

pub use cede_wire::tcp::Segment;
pub use config::{AckPolicy, Config, InitialWindow, RtoProfile, TIMESTAMP_OPTION_BYTES};
pub use connection::{AcceptError, Connection, Event, Failure, Ports, State, TimeoutReason, WriteError};
pub use statistics::{RepairMode, Snapshot, Statistics};
