//! Swarms: many BitTorrent peers in the simulated world.
//!
//! A [`Swarm`] says who takes part and what lies between them; [`run`] runs it, with a [`SwarmHost`] for each peer: the
//! engine of `cede-bt` over uTP endpoints and model TCP connections behind one access link. Content is a pattern: its
//! octets are a function of their place in the torrent, so nothing is stored, and each octet that arrives is compared.
//!
//! **Invariant:** nothing here decides what a peer, a transport or a controller does.

mod columns;
mod exchange;
mod files;
mod host;
mod layout;
mod meter;
mod model;
mod near;
mod offload;
mod outcome;
mod run;
mod sockets;
mod timers;
mod tracker;

pub use columns::{TABLE_FILES, TableFile};
pub use files::{file_names, peers_table, summary_table, to_json, write};
pub use host::{HostRecord, SwarmHost};
pub(crate) use layout::IMMEDIATE;
pub use meter::{LinkRecord, QueueEntry, SwarmMeter};
pub use model::{
    Arrival, ControllerChoice, Departure, Device, Group, Hashing, Links, Packets, Role, Swarm, SwarmRecords,
    TcpStack, UtpStack,
};
pub use outcome::{PeerOutcome, Summary, SwarmOutcome, mean, percentile, unfinished};
pub use run::{SwarmError, SwarmWatcher, run, run_captured};
pub use tracker::{Tracker, TrackerEntry};
