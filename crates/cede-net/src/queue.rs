//! The queue in front of a transmitter: first in, first out, with a limit, and drop-tail beyond it.
//!
//! What it leaves out: disciplines that drop at the head or by delay (CoDel, PIE, RED) and those that keep several
//! queues. They fit where [`DropTail`] stands: admission at enqueue, and a choice at dequeue, each told the time.
//!
//! How it was validated: the serialising-link example of the link sheet (arrivals, a drop, finish times), and the
//! conservation law (arrivals = served + dropped + queued) as a property of every run.

use alloc::collections::VecDeque;
use cede_units::Instant;

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

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting<T> {
    pub(crate) token: T,
    pub(crate) bytes: u32,
    pub(crate) since: Instant,
}

/// The queue and what is in it.
#[derive(Clone, Debug)]
pub(crate) struct DropTail<T> {
    limit: QueueLimit,
    packets: VecDeque<Waiting<T>>,
    bytes: u64,
}

impl<T> DropTail<T> {
    pub(crate) const fn new(limit: QueueLimit) -> Self {
        Self { limit, packets: VecDeque::new(), bytes: 0 }
    }

    /// Whether a packet of `bytes` may join, with `in_service` octets and packets counted on top.
    pub(crate) fn admits(&self, bytes: u32, in_service: Option<u32>) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => {
                self.packets.len() + usize::from(in_service.is_some()) < limit as usize
            }
            QueueLimit::Bytes(limit) => {
                self.bytes + u64::from(in_service.unwrap_or(0)) + u64::from(bytes) <= limit
            }
            QueueLimit::Unlimited => true,
        }
    }

    pub(crate) fn push(&mut self, packet: Waiting<T>) {
        self.bytes += u64::from(packet.bytes);
        self.packets.push_back(packet);
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting<T>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(crate) fn len(&self) -> u32 {
        self.packets.len() as u32
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}
