#![no_std]
//! Quantities: what every other room of Cede counts in.
//!
//! [`Instant`] and [`Duration`] are nanoseconds of whichever world drives the code, [`Rate`] is bits per second,
//! [`Bytes`] are octets, [`Seq16`] and [`Seq32`] are sequence numbers that wrap, [`Stream`] is a named stream of
//! random numbers, and [`parse`] reads "10 Mbit/s", "25 ms" and "64 KiB" as people write them.
//!
//! **Invariant:** nothing here knows what a packet, a connection or a clock is, and nothing here can fail to be
//! deterministic: there is no floating-point function beyond the four operations, whose results IEEE 754 fixes.

extern crate alloc;

pub mod math;
pub mod parse;
mod rate;
mod rng;
mod seq;
mod time;

pub use parse::ParseQuantityError;
pub use rate::{Bytes, Rate};
pub use rng::Stream;
pub use seq::{Seq16, Seq32};
pub use time::{Duration, Instant};
