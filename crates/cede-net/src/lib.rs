#![no_std]
//! The contract between hosts and worlds, and the physics of the wire.
//!
//! * [`Host`], [`Input`] and [`Output`] are how a world, simulated or real, drives a participant.
//! * [`Link`] is one direction of a wire: a queue, a transmitter and a stretch of propagation, with whatever the
//!   wire does to packets ([`Impairments`]).
//!
//! **Invariant:** nothing here knows which protocol the packets speak, and nothing here knows who drives it: a link is
//! told the time and answers, under virtual and real time alike.

extern crate alloc;

mod contract;
mod impairment;
mod link;
mod queue;

pub use contract::{Address, Datagram, Host, HostId, Input, Output, Protocol};
pub use impairment::{GilbertElliott, Impairments, Reordering};
pub use link::{Counters, Dequeue, DropCause, Enqueue, Link, LinkConfig, LinkLog};
pub use queue::QueueLimit;
