//! The real-time testbed: real sockets over emulated paths, beside what the simulated world predicts for the same paths.
//!
//! * [`relay`] is a path of any rate, delay, buffer and loss on the loopback, without root: a UDP relay whose physics are
//!   [`cede_net::Link`], the very code that the simulated world runs, driven by the real clock.
//! * [`path`] sends a stream of `cede-real` through it, and predicts in the simulated world what should come of it.
//! * [`gentle`] lets a uTP flow meet kernel TCP at a bottleneck of the kernel's, between network namespaces.
//! * [`bloat`] holds the passive meter against a real queue there.
//! * [`kernel`] lets two of the kernel's own congestion controls meet there, to hold the models in the simulator against them.
//!
//! **Invariant:** nothing here decides what a transport or a controller does, and nothing here talks to a terminal. What
//! the testbed cannot vouch for, because the machine was too slow for it, it says itself.

pub mod bloat;
pub mod gentle;
pub mod kernel;
pub mod path;
pub mod relay;

mod clock;
mod netns;
mod overflow;
mod pause;
mod predict;
mod priority;
mod summary;

pub use netns::{NetnsError, shortest_buffer};
pub use overflow::overflows;
pub use priority::Priority;
pub use summary::Summary;
