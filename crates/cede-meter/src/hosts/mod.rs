//! What the directions of one host have in common, and tell each other.

pub(crate) mod company;
pub(crate) mod direction;
pub(crate) mod one_clock;
pub(crate) mod quickest;
pub(crate) mod senders;
pub(crate) mod several;
pub(crate) mod shared;
pub(crate) mod source;
pub(crate) mod together;
