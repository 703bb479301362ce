//! Connections that peers open: from the SYN until the application has them.
//!
//! No source: BEP 29 leaves it to the implementation. The acceptor may have to speak first, to peers that say nothing until
//! it has; and nothing may come of SYNs whose address is forged. So the application is handed connections at once while
//! few have yet to show that somebody is there, and only those that have shown it beyond that.
//!
//! **What it leaves out.** SYN cookies: the answer has room for 16 bits of one, which are guessed too soon.
//! **How it was validated.** `tests/early.rs`, `tests/endpoint.rs`, `tests/hostile.rs`.

use super::slots::{Handle, Stage};
use super::{Endpoint, Verdict};
use crate::connection::Connection;
use cede_units::Instant;
use cede_wire::utp::Packet;
use core::hash::Hash;

/// While less than this share of [`Limits::half_open`] is taken, answers that were lost are repeated unasked; beyond it
/// nothing is, so that forged SYNs draw no more octets than they have.
const CALM_SHARE: usize = 8;

impl<P: Copy + Ord + Hash> Endpoint<P> {
    /// The next connection that a peer has opened: those whose handshake is complete come first.
    pub fn accept(&mut self) -> Option<Handle> {
        while let Some(handle) = self.backlog.pop_front() {
            if let Some(slot) = self.slots.get_mut(handle) {
                slot.owned = true;
                self.touch(handle.index());
                return Some(handle);
            }
        }
        self.accept_early()
    }

    /// True where it is worth a call of [`Endpoint::accept`].
    #[must_use]
    pub fn has_incoming(&self) -> bool {
        !self.backlog.is_empty() || (!self.half_open.is_empty() && self.takes_early())
    }

    pub(super) fn on_syn(&mut self, now: Instant, peer: P, packet: &Packet<'_>) -> Verdict {
        let full = self.slots.len() >= self.limits.connections || self.backlog.len() >= self.limits.backlog;
        let full = full || self.limits.half_open == 0 || !self.has_room_half_open(&peer);
        let admission = self.accepting.as_mut().filter(|_| !full);
        let Some((config, controller)) = admission.and_then(|admission| admission(&peer)) else {
            self.statistics.syns_refused += 1;
            return Verdict::Refused;
        };
        let config = self.share(config);
        let Some(mut connection) = Connection::accept(now, packet, config, controller, &mut self.random)
        else {
            return Verdict::Stray;
        };
        if self.unproven() > self.limits.half_open / CALM_SHARE {
            connection.answer_once();
            self.statistics.answered_once += 1;
        }
        if !self.is_burst_of(&peer) {
            self.make_room_half_open();
        }
        let handle = self.insert(peer, connection, false);
        if let Some(slot) = self.slots.get_mut(handle) {
            slot.stage = Stage::HalfOpen;
        }
        self.half_open.push_back(handle);
        self.statistics.opened += 1;
        Verdict::Opened(handle)
    }

    /// No room for half-open connections is left, and the oldest is this peer's own: it opens many at once.
    fn is_burst_of(&self, peer: &P) -> bool {
        let oldest = self.half_open.front().filter(|_| self.half_open.len() >= self.limits.half_open);
        oldest.and_then(|&oldest| self.slots.get(oldest)).is_some_and(|slot| slot.peer == *peer)
    }

    /// Of a burst of one peer's, the first are not dropped for the last, which it asks for again: by then others have shown
    /// that somebody is there, and all of them have room.
    fn has_room_half_open(&self, peer: &P) -> bool {
        let shown = |slot: &super::slots::Slot<P>| slot.peer == *peer && slot.stage == Stage::Settled;
        !self.is_burst_of(peer) || self.slots.iter().any(shown)
    }

    /// Drops the oldest half-open connection where there are too many: a flood then costs those who answer fast least.
    fn make_room_half_open(&mut self) {
        while self.half_open.len() >= self.limits.half_open {
            let Some(oldest) = self.half_open.pop_front() else { break };
            if self.slots.get(oldest).is_some_and(|slot| slot.stage == Stage::HalfOpen) {
                self.statistics.half_open_dropped += 1;
                self.remove(oldest.index());
            }
        }
    }

    /// A peer's connection waits to be accepted from now on, unless it has been already. It was let in while there was room, and
    /// its peer takes it for open: there are at most [`Limits::half_open`](super::Limits::half_open) more of these than
    /// [`Limits::backlog`](super::Limits::backlog).
    pub(super) fn on_handshake_complete(&mut self, handle: Handle) {
        if self.leave_stage(handle) != Stage::HalfOpen {
            return;
        }
        self.backlog.push_back(handle);
    }

    /// A connection is not half-open any more; returns the stage that it was in.
    pub(super) fn leave_stage(&mut self, handle: Handle) -> Stage {
        let Some(slot) = self.slots.get_mut(handle) else { return Stage::Settled };
        let stage = core::mem::replace(&mut slot.stage, Stage::Settled);
        match stage {
            Stage::Settled => {}
            Stage::HalfOpen => self.half_open.retain(|&other| other != handle),
            Stage::Early => self.early -= 1,
        }
        stage
    }

    /// Connections whose peers have yet to show that they receive.
    fn unproven(&self) -> usize {
        self.half_open.len() + self.early
    }

    /// May the application be handed connections whose handshake is not complete?
    fn takes_early(&self) -> bool {
        self.unproven() <= self.limits.early.min(self.limits.half_open / CALM_SHARE)
    }

    fn accept_early(&mut self) -> Option<Handle> {
        if !self.takes_early() {
            return None;
        }
        let handle = self.half_open.pop_front()?;
        let slot = self.slots.get_mut(handle)?;
        (slot.owned, slot.stage) = (true, Stage::Early);
        self.early += 1;
        self.touch(handle.index());
        Some(handle)
    }
}
