#![no_std]
//! Octets to headers and back: [`utp`], [`tcp`], [`ip`] with UDP, the [`link`] layers below it, and capture files,
//! read ([`pcap`]) and written ([`pcapng`]).
//!
//! **Invariant:** nothing here knows what a header means: no state, no time, no judgement beyond form.

extern crate alloc;

mod ecn;
mod head;
pub mod ip;
pub mod link;
mod payload;
pub mod pcap;
pub mod pcapng;
pub mod tcp;
mod transmit;
pub mod utp;

pub use ecn::Ecn;
pub use head::{HEAD_CAPACITY, Head};
pub use payload::{Payload, pattern_octet};
pub use transmit::Transmit;
