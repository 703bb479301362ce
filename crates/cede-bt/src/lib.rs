#![no_std]
//! One BitTorrent peer, without socket, clock, disk or random numbers of its own, and the formats around it.
//!
//! * [`wire`] is what peers say to each other: handshake and messages (BEP 3, 6, 10).
//!
//! **Invariant:** nothing here knows a socket, a clock, a file or a simulator, and nothing here decides how much a
//! transport may have under way. No input panics, and nothing that a peer can make grow is without a limit.

extern crate alloc;

pub mod wire;
