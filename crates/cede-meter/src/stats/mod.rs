//! Series of delays in numbers.
//!
//! **Invariant:** nothing here knows whose delays they are.

pub(crate) mod delay;
pub(crate) mod histogram;
pub(crate) mod order;
pub(crate) mod ranks;
pub(crate) mod summary;
