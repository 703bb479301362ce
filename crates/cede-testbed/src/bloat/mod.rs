//! The meter beside a real queue: the validation of "Passive bufferbloat measurement exploiting transport layer
//! information" (GLOBECOM 2013, Fig. 2) with the kernel's TCP and this project's uTP over real sockets.
//!
//! Three namespaces: the remote host, a router with its slow uplink, the observer; hidden traffic goes to a second address
//! behind the observer's port, of which the meter is shown nothing. Every packet is captured where it reaches the router and
//! where it has passed the uplink, by the kernel's clock: the difference is how long it queued, whatever caused it. [`measure`]
//! compares what the meter says with that, by the same code that judges the simulated world
//! ([`cede_repro::bufferbloat`]).
//!
//! *What it leaves out:* propagation, clocks that differ (the hosts share the machine's), and the paper's thirty seconds
//! between the bursts of a chirp ([`Pace`]). *How it was validated:* `tests/bloat.rs`; `docs/bufferbloat.md` holds both
//! worlds side by side.

mod measure;
mod watch;

pub use measure::{Pace, measure, measure_all};
