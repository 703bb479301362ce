#![no_std]
//! The uTP transport protocol (BEP 29) as a state machine without clock, socket or random numbers of its own.
//!
//! A [`Connection`] is handed packets and the time, and asked for packets, events and its next deadline. An
//! [`Endpoint`] is many of them behind one address, with the rules for strangers. How much may be under way is decided
//! by a controller of `cede-cc`.
//!
//! Two connections, driven by hand; the network between them takes 10 ms:
//!
//! ```
//! use cede_cc::{Params, registry};
//! use cede_utp::{Config, Connection, Duration, Instant, Packet, Stream};
//!
//! let config = Config::default();
//! let ledbat = || registry::build("ledbat", &Params::new(), &config.path()).unwrap();
//! let (mut now, mut random) = (Instant::from_secs(1), Stream::named(1, "two connections"));
//! let mut alice = Connection::connect(now, config.clone(), ledbat(), &mut random);
//! let syn = alice.poll_transmit(now).unwrap();
//! let syn = Packet::decode(&syn.head).unwrap();
//! let mut bob = Connection::accept(now, &syn, config.clone(), ledbat(), &mut random).unwrap();
//!
//! alice.write_slice(b"what nobody else wants").unwrap();
//! let mut heard = Vec::new();
//! while heard.len() < 22 {
//!     now += Duration::from_millis(10);
//!     for end in [&mut alice, &mut bob] {
//!         end.handle_timeout(now);
//!     }
//!     while let Some(packet) = bob.poll_transmit(now) {
//!         alice.handle(now, &packet.head, packet.payload);
//!     }
//!     while let Some(packet) = alice.poll_transmit(now) {
//!         bob.handle(now, &packet.head, packet.payload);
//!     }
//!     heard.extend(bob.read().map(|payload| payload.to_vec()).unwrap_or_default());
//! }
//! assert_eq!(heard, b"what nobody else wants");
//! ```
//!
//! What the API speaks in (times, payloads, decoded packets) is re-exported here, so this crate and `cede-cc` are all
//! that a driver of one's own depends on.
//!
//! # Drive rule
//! Mutate, then drain: after any call that hands something in (`handle`, `handle_timeout`, `write`, `read`, `close` and
//! their kin), call `poll_transmit` until it gives `None`, drain `poll_event`, then ask `poll_timeout` and come back at
//! that instant. Packets handed in before one round of `poll_transmit` are acknowledged together.
//!
//! # Time
//! `now` is the host's own clock, and never less than in the call before. The two ends need not agree on the time.
//! Deadlines are exact: a host that comes late makes them late, and nothing else; one that comes early for nothing
//! does no harm.
//!
//! # Cost
//! In the steady state nothing is allocated per packet where payloads are patterns or shared buffers. A connection
//! without deadline costs nothing until it is called.
//!
//! **Invariant:** nothing here knows a clock, a socket or a source of random numbers, and nothing here decides how much
//! may be under way. No input panics, and nothing that a peer can make grow is without a limit.

extern crate alloc;

mod bits;
mod chunks;
mod config;
mod connection;
mod delay;
mod endpoint;
mod event;
mod mask;
mod mtu;
mod outbox;
mod parts;
mod reorder;
mod statistics;
mod timers;

pub use cede_units::{Duration, Instant, Rate, Seq16, Stream};
pub use cede_wire::utp::Packet;
pub use cede_wire::{Head, Payload, Transmit};
pub use config::{Config, DelayedAck, RttRule, SubPacketWindow};
pub use connection::Connection;
pub use endpoint::{Admission, ControllerFactory, Endpoint, EndpointStatistics, Handle, Limits, Verdict};
pub use event::{ConnectionError, Event, WriteError};
pub use mtu::Mtu;
pub use statistics::{ConnectionState, Snapshot, Statistics, Suspicions};
pub use timers::Timer;
