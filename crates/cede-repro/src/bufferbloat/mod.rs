//! "Passive bufferbloat measurement exploiting transport layer information" (Chirichella, Rossi, Testa, Friedman,
//! Pescape; GLOBECOM 2013): the meter beside the queue's own log, and the analysis of many peers.
//!
//! ```text
//! Request -> execute() -> Results -> Report::of() -> figures, statements, tables, files
//! ```
//! * [`setting`] is the paper's test bed: a remote host behind a slow uplink, an observer, somebody else to whom hidden
//!   traffic goes; and a population of such hosts with uplinks of many kinds.
//! * [`measure`] runs a setting with the meter of `cede-meter` at the observer and the queue's log beside it.
//!   The same cases with real sockets and the kernel's queue are `cede-testbed`'s (`bloat`), judged by the same code.
//! * [`bounds`] is how near the meter must come to that log, whatever else happens.
//! * [`peers`] is the paper's analysis of many peers, simulated or captured.
//! * `statements` holds what the paper says, each with a criterion that is computed; `draw` and `report` show it.
//!
//! **Invariant:** the meter is fed with octets, as from a wire, and knows nothing of the simulation.
//!
//! *What it leaves out:* the paper's hosts on the internet; the population is of our making and shows how the
//! analysis works, not how the internet was. *How it was validated:* `docs/bufferbloat.md`.

pub mod bounds;
mod draw;
mod execute;
pub mod measure;
pub mod peers;
mod report;
pub mod setting;
mod statements;

pub use execute::{Request, Results, World, execute};
pub use measure::Measured;
pub use peers::{Pairs, Peer};
pub use report::Report;
