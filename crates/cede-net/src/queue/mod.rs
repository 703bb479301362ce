//! The queue in front of a transmitter: what may join it, which packet leaves next, and which are dropped or marked.
//!
//! [`Queue::DropTail`] is the plain queue that nearly every link has. All others are [`Managed`]: they decide at
//! arrival and at departure, are told the time, and may drop packets that wait. One `match` tells them apart; nothing
//! is dispatched dynamically, and no queue allocates per packet once it has grown to its traffic.
//!
//! How it was validated: the conservation law (arrivals = served + dropped + queued) under arbitrary traffic for every
//! discipline, in the tests of the link; each discipline's own vectors stand in its file.

mod codel;
mod fifo;
mod fq_codel;
mod head_drop;
mod managed;
mod pie;
mod red;
#[cfg(test)]
pub(crate) mod testing;
mod verdicts;

pub use codel::CodelConfig;
pub use fq_codel::FqCodelConfig;
pub use managed::{Discipline, TrafficControl};
pub use pie::{PieConfig, PieProfile};
pub use red::{RedAdaptation, RedConfig};

pub(crate) use fifo::{Fifo, Waiting};
pub(crate) use managed::{Arrival, Managed};
pub(crate) use verdicts::Verdicts;

use alloc::boxed::Box;

/// How much may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// At most this many packets. The packet being sent does not count.
    Packets(u32),
    /// At most this many octets. The packet being sent does not count.
    Bytes(u64),
    /// No limit: for links whose queue is not under study.
    Unlimited,
}

impl QueueLimit {
    /// Whether a packet of `bytes` may join `queue`, with `in_service` octets of a packet counted on top.
    pub(crate) fn admits(self, packets: usize, queued: u64, bytes: u32, in_service: Option<u32>) -> bool {
        match self {
            Self::Packets(limit) => packets + usize::from(in_service.is_some()) < limit as usize,
            Self::Bytes(limit) => queued + u64::from(in_service.unwrap_or(0)) + u64::from(bytes) <= limit,
            Self::Unlimited => true,
        }
    }
}

/// The queue of a link.
#[derive(Clone, Debug)]
pub(crate) enum Queue<T> {
    /// First in, first out; a packet that finds it full is dropped.
    DropTail(QueueLimit, Fifo<T>),
    /// A discipline that manages its queue.
    Managed(Box<Managed<T>>),
}

impl<T> Queue<T> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::DropTail(_, fifo) => fifo.is_empty(),
            Self::Managed(managed) => managed.is_empty(),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        match self {
            Self::DropTail(_, fifo) => fifo.len() as u32,
            Self::Managed(managed) => managed.len() as u32,
        }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::DropTail(_, fifo) => fifo.bytes(),
            Self::Managed(managed) => managed.bytes(),
        }
    }
}
