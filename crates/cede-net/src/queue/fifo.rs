//! Packets that wait, first in, first out.

use alloc::collections::VecDeque;
use cede_units::Instant;

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting<T> {
    pub(crate) token: T,
    pub(crate) bytes: u32,
    pub(crate) since: Instant,
}

/// Packets in the order of their arrival.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    packets: VecDeque<Waiting<T>>,
    bytes: u64,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Fifo<T> {
    #[inline]
    pub(crate) fn push(&mut self, packet: Waiting<T>) {
        self.bytes += u64::from(packet.bytes);
        self.packets.push_back(packet);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Waiting<T>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    #[inline]
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}
