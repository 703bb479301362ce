#![no_std]
//! The simulated world: hosts, links and virtual time.
//!
//! A [`Topology`] names hosts, nodes and links; [`Topology::build`] puts them in the order of their names, computes
//! the routes and gives a [`World`], which takes one [`cede_net::Host`] per host and runs them. What hosts, links and queues do
//! can be listened to through an [`Observer`].
//!
//! # The order of events
//! Events happen in the order of (time, kind, place): at one instant, links act before hosts, and each kind in the
//! order of names. A link or a host has at most one pending event, so this order is total and never that of
//! insertion. Random streams carry the names of what they drive. So a run depends on its topology, hosts and seed,
//! and not on the order in which anything was added; the [`Tape`] hashes all that happens to show it.
//!
//! # Cost
//! The event set holds one entry per link direction and host, not per packet: packets wait in their link's ring, and
//! timers are re-armed lazily. Packets live in a pool and are passed by index; no allocation happens per packet once
//! pool and rings have grown to the size of the traffic.
//!
//! **Invariant:** nothing here knows a protocol, a scenario or a file.

extern crate alloc;

mod clock;
mod observe;
mod pool;
mod route;
pub mod schedule;
mod tape;
mod topology;
mod world;

pub use clock::Clock;
pub use observe::{Observer, PacketEvent};
pub use route::LinkId;
pub use tape::Tape;
pub use topology::{NodeId, Topology, TopologyError};
pub use world::World;
