#![no_std]
//! Congestion controllers for scavenger transport, and the instruments they are built from.
//!
//! A transport (`cede-utp`, `cede-tcp`, or one of your own) tells a [`Controller`] what each acknowledgement said
//! and obeys the [`Allowance`] that comes back. Controllers are built by name through the [`registry`]:
//!
//! ```
//! use cede_cc::{ParamValue, Params, Path, registry};
//! use cede_units::Duration;
//!
//! let path = Path { mss_bytes: 1448, initial_cwnd_bytes: 4344, max_cwnd_bytes: 1 << 20 };
//! let params = Params::new().with("target", ParamValue::Duration(Duration::from_millis(25)));
//! let controller = registry::build("ledbat", &params, &path)?;
//! assert_eq!(controller.allowance().cwnd_bytes, 2 * 1448);
//! # Ok::<(), cede_cc::ParamError>(())
//! ```
//!
//! **Invariant:** nothing here knows a header, a socket, a clock or a simulator; nothing here knows which transport
//! asks.

extern crate alloc;

mod bbr;
mod cede;
pub mod conformance;
mod controller;
mod cubic;
mod cubic_linux;
mod entry;
mod fixed;
mod hystart;
pub mod instruments;
mod ledbat;
mod lp;
mod lp_linux;
mod nice;
mod pair_turns;
mod params;
mod pcc;
pub mod registry;
mod reno;
mod reno_window;
mod signal;
#[cfg(test)]
mod testing;
mod undo;
mod vegas;
mod vegas_rule;
mod window;

pub use controller::{
    Allowance, Controller, DelaySamples, Feedback, PacketFact, Path, Phase, SendRecord, Sent, Snapshot, Tag,
    Timeout, run_timers,
};
pub use params::{ParamDoc, ParamError, ParamKind, ParamValue, Params, Settings};
