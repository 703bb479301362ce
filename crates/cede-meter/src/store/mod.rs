//! What is kept of flows: short ones as what their packets said, long ones as state and samples.
//!
//! **Invariant:** nothing here knows what a delay is.

pub(crate) mod embryo;
pub(crate) mod flow;
pub(crate) mod gone;
pub(crate) mod hops;
pub(crate) mod low;
pub(crate) mod packed;
pub(crate) mod pages;
pub(crate) mod place;
pub(crate) mod pool;
pub(crate) mod sample;
pub(crate) mod samples;
pub(crate) mod sender;
pub(crate) mod stock;
pub(crate) mod table;
pub(crate) mod tcp;
pub(crate) mod utp;
