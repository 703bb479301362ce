//! From readings of one direction to its delays: wraps, rates, drift, bases, and what packets take by themselves.
//!
//! **Invariant:** nothing here knows of other directions but the one that answers, and what it is [`told`].

pub(crate) mod about;
pub(crate) mod ahead;
pub(crate) mod around;
pub(crate) mod clock;
pub(crate) mod doubt;
pub(crate) mod drift;
pub(crate) mod glance;
pub(crate) mod own;
pub(crate) mod rate;
pub(crate) mod reading;
pub(crate) mod shelf;
pub(crate) mod short;
pub(crate) mod sieve;
pub(crate) mod sliding;
pub(crate) mod stamps;
pub(crate) mod told;
pub(crate) mod track;
pub(crate) mod transmission;
pub(crate) mod wraps;
