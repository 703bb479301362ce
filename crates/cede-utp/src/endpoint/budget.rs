//! What peers have sent and nobody has read, over all connections.
//!
//! Source: Linux's `tcp_mem`: beyond a limit for all sockets together none grows, and each is held to a minimum with which
//! it still moves.
//!
//! A connection is told as its next packet comes whether the limit is exceeded. It then advertises a window, and takes in,
//! as if its buffer had 64 KiB; so whoever reads goes on, and whoever does not holds no more than that. Those
//! that hold more already keep it: it has been acknowledged.
//!
//! **What it leaves out.** What the application has written: that is its own to bound.
//! **How it was validated.** `tests/hostile.rs`.

use super::Endpoint;

/// What a connection holds is counted in steps of this, rounded up: an octet takes its buffer's memory too.
const STEP_BYTES: u64 = 1 << 10;

/// The account of all connections.
#[derive(Default)]
pub(super) struct Budget {
    held_steps: u64,
}

impl<P> Endpoint<P> {
    /// Octets that have arrived and that nobody has read, what waits beyond gaps included, of all connections together; each
    /// connection's rounded up to a KiB. [`Limits::buffered_bytes`](crate::Limits::buffered_bytes) bounds it.
    #[must_use]
    pub fn buffered_bytes(&self) -> u64 {
        self.budget.held_steps * STEP_BYTES
    }

    /// Brings the account up to what a connection holds now.
    #[inline]
    pub(super) fn account(&mut self, index: u32) {
        let Some(slot) = self.slots.at_mut(index) else { return };
        let steps = slot.connection.buffered_bytes().div_ceil(STEP_BYTES);
        let steps = u16::try_from(steps).unwrap_or(u16::MAX);
        if steps != slot.held_steps {
            self.budget.held_steps = self.budget.held_steps - u64::from(slot.held_steps) + u64::from(steps);
            slot.held_steps = steps;
        }
    }

    /// A connection goes, and what it held with it.
    pub(super) fn close_account(&mut self, held_steps: u16) {
        self.budget.held_steps -= u64::from(held_steps);
    }

    /// Is there more than there should be?
    #[inline]
    pub(super) fn is_exceeded(&self) -> bool {
        self.buffered_bytes() >= self.limits.buffered_bytes
    }
}
