//! What BitTorrent peers said to each other, message by message, from captured packets: over TCP and uTP, found by what it
//! says and not by its ports.
//!
//! ```
//! use cede_inspect::{Config, Event, Inspector, Sink};
//! use cede_wire::pcap::{ReadError, Reader};
//!
//! struct Blocks(u64);
//!
//! impl Sink for Blocks {
//!     fn event(&mut self, event: &Event<'_>) {
//!         self.0 += u64::from(matches!(event.what, cede_inspect::What::Block(_)));
//!     }
//! }
//!
//! fn count(capture: &[u8]) -> Result<u64, ReadError> {
//!     let (mut inspector, mut blocks) = (Inspector::new(Config::default()), Blocks(0));
//!     for record in Reader::new(capture)? {
//!         inspector.record(&record?, &mut blocks);
//!     }
//!     let report = inspector.finish(&mut blocks);
//!     println!("{} connections", report.connections.len());
//!     Ok(blocks.0)
//! }
//! ```
//!
//! A packet that the [`cede_meter::Selection`] takes goes to its flow, there into the order of its stream (`order`), is read as
//! messages (`reader`, which is [`cede_bt::wire::Decoder`] with what a captured stream needs besides: holes, beginnings in
//! the middle), and becomes events for a [`Sink`] and figures for a [`Report`].
//!
//! # What is kept
//! Of a stream, what waits behind a hole, up to 4 MiB; of a peer, its open requests and its figures. Everything stays within
//! [`Config::memory_bytes`]; beyond, the connections that were quiet longest are ended, and counted.
//!
//! # What encryption hides
//! Everything but octets and times. A connection is listed as encrypted where both sides begin as message stream encryption
//! does, and as unknown where nothing can be told.
//!
//! **Invariant:** nothing here sends a packet, reads a clock or opens a file, nor decides what a peer should do.

mod aside;
mod client;
mod connection;
mod event;
mod http;
mod inspector;
mod order;
mod reader;
mod report;
mod seek;
mod shared;
mod side;
mod talk;
mod tcp;
mod utp;

pub use client::client_of;
pub use event::{About, Aside, Block, Cover, Event, Kind, Sink, What};
pub use inspector::{Config, Inspector};
pub use report::{Carried, ConnectionReport, Report, SideReport, Speech, Unlisted};
