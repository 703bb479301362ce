#![no_std]
//! The contract between hosts and worlds, and the physics of the wire.
//!
//! * [`Host`], [`Input`] and [`Output`] are how a world, simulated or real, drives a participant.
//! * [`Link`] is one direction of a wire: a queue, a transmitter and a stretch of propagation, with whatever the
//!   wire does to packets ([`Impairments`]). What the queue does to them is a [`Discipline`]'s.
//!
//! **Invariant:** nothing here knows which protocol the packets speak, and nothing here knows who drives it: a link is
//! told the time and answers, under virtual and real time alike.

extern crate alloc;

mod bucket;
mod contract;
mod impairment;
mod link;
mod log;
mod queue;

pub use bucket::{BucketConfig, Shaper};
pub use cede_wire::Ecn;
pub use contract::{Address, Datagram, Foresight, Host, HostId, Input, Output, Protocol};
pub use impairment::{GilbertElliott, Impairments, Reordering};
pub use link::{Link, LinkChange, LinkConfig};
pub use log::{Counters, Dequeue, DropCause, Drops, Enqueue, LinkLog};
pub use queue::{
    CodelConfig, Discipline, FqCodelConfig, PieConfig, PieProfile, QueueLimit, RedAdaptation, RedConfig,
    TrafficControl,
};
