//! A passive meter of queueing delay: it watches packets and says how long they queued at the other end, without
//! sending any.
//!
//! Every uTP packet says when it was sent, and so does every TCP segment with timestamps. The observer's clock less that
//! stamp is the way's delay plus an unknown constant; what it exceeds its own minimum by is time spent in queues, and
//! nearly all of that in the sender's uplink. The method is that of "Passive bufferbloat measurement exploiting
//! transport layer information" (GLOBECOM 2013); [`Estimator`] says which of two estimates is which.
//!
//! ```
//! use cede_meter::Meter;
//! use cede_wire::pcap::{ReadError, Reader};
//!
//! fn worst_first(capture: &[u8]) -> Result<(), ReadError> {
//!     let mut meter = Meter::default();
//!     for record in Reader::new(capture)? {
//!         meter.record(&record?);
//!     }
//!     for host in meter.report().hosts {
//!         println!("{}: {:.1} ms queued, {} samples", host.address, host.all.time_mean_ms, host.all.samples);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # What is kept
//! One table look-up finds a packet's flow, and eight octets are kept of it: what a sample means depends on what is known
//! at the end only (the clock's rate and drift, the shortest delay, whether a UDP flow is uTP at all). Flows and samples
//! stay within [`Config::memory_bytes`]; beyond, the flows that were quiet longest are given up, counted and flagged.
//!
//! # What the figures are worth
//! [`Flags`] name what may be wrong with one, above all that a queue which was never empty cannot be told from a longer
//! way. A delay is that of all queues between sender and observer; that it is the uplink's is the method's assumption. A
//! host whose packets pass the observer before its uplink shows no delay.
//!
//! # The rooms
//! `packet` (what octets say), `store` (what is kept of flows), `clocks` (readings of a direction to its delays), `hosts` (what directions
//! tell each other), `stats` (delays in numbers); each knows those before it, and `stats` none. `meter` takes packets in, `analysis` makes the report.
//!
//! **Invariant:** nothing here sends a packet, reads a clock or opens a file: packets and their times are handed in, or
//! read from what [`Feed`] is given.

mod analysis;
mod batch;
mod clocks;
mod config;
mod feed;
mod hosts;
mod intake;
#[cfg(feature = "json")]
pub mod json;
mod meter;
mod packet;
mod pseudonyms;
mod report;
mod stats;
mod store;
mod waiting;

pub use analysis::{QueueSample, Visitor, Wants};
pub use batch::Batch;
pub use config::{Base, Config};
pub use feed::{Damage, Feed, FeedError};
pub use intake::{Counters, Selection};
pub use meter::Meter;
pub use packet::filter::{Filter, FilterError};
pub use packet::frame::{Content, Seen, Tcp};
pub use packet::key::{Address, End, Key, Side, Socket};
pub use packet::utp::has_form as has_utp_form;
pub use pseudonyms::{KEY_BYTES, Pseudonyms};
pub use report::{Estimator, Flags, FlowReport, HostReport, Protocol, Report, RoundTrip};
pub use stats::histogram::{Bucket, Histogram};
pub use stats::{delay::Delay, summary::Summary};
