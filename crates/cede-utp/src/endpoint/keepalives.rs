//! Keepalives of many connections to one peer: one is enough.
//!
//! No source. What forgets a connection that is silent for 30 s, address translators and firewalls (RFC 4787 section 4.3),
//! knows addresses and ports alone: all connections between two sockets are one to it. Connections to one peer of our own
//! kind come due at the same times (see [`Config::keepalive_shared`](crate::Config::keepalive_shared)), in a row, and the
//! first that sends a keepalive does so for the others. A thousand idle connections between two sockets then cost two or
//! four small packets in 29 s instead of two thousand.
//!
//! **What it leaves out.** That a busy connection keeps its idle neighbours known; peers that have announced nothing,
//! which hang up on each connection by itself.
//! **How it was validated.** `tests/endpoint.rs`.

use super::Endpoint;
use cede_units::Instant;
use core::hash::Hash;

/// Connections to a peer that send keepalives of their own beside the first, each time: who have been silent for long might
/// be very many, and fall silent together.
const MAX_BESIDE: u32 = 64;

/// The peer that a keepalive leaves for.
pub(super) struct Kept<P> {
    peer: Option<P>,
    beside: u32,
}

impl<P> Default for Kept<P> {
    fn default() -> Self {
        Self { peer: None, beside: 0 }
    }
}

impl<P: Copy + Ord + Hash> Endpoint<P> {
    /// Was the connection called for a keepalive alone, and does another send that?
    pub(super) fn leaves_keepalive_to_other(&mut self, now: Instant, index: u32, kept: &mut Kept<P>) -> bool {
        let Some(slot) = self.slots.at_mut(index) else { return false };
        let other = kept.peer == Some(slot.peer);
        let leaves = other && slot.connection.leaves_keepalive_to_other(now, kept.beside >= MAX_BESIDE);
        if leaves {
            let deadline = slot.connection.poll_timeout().unwrap_or(Instant::NEVER);
            self.deadlines.set(index, deadline);
        }
        leaves
    }

    /// The connection has been called: does it send a keepalive?
    pub(super) fn note_keepalive(&mut self, index: u32, kept: &mut Kept<P>) {
        let Some(slot) = self.slots.at(index).filter(|slot| slot.connection.owes_keepalive()) else { return };
        let beside = if kept.peer == Some(slot.peer) { kept.beside + 1 } else { 0 };
        *kept = Kept { peer: Some(slot.peer), beside };
    }
}
