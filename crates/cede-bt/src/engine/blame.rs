//! Bad pieces: who is to blame, and whom they are asked of next.
//!
//! Only what is certain counts: whoever sent a bad piece alone is banned, and nobody else ever is. Where several had a part in
//! it, it is fetched again from one peer (`picker/suspect.rs`).

use super::conn::Conn;
use super::{Action, CloseReason, Engine, PeerAddress};
use crate::picker::Origin;
use alloc::vec::Vec;
use cede_units::Instant;

impl<A> Conn<A> {
    /// What it owes of a piece does not count any more.
    fn leave_piece(&mut self, piece: u32) {
        let left: Vec<_> = self.reserved_of(piece).collect();
        self.overdue.extend(left);
        self.pipeline.leave_piece(piece);
    }
}

impl<A: PeerAddress> Engine<A> {
    pub(super) fn on_bad_piece(&mut self, now: Instant, piece: u32, origin: &Origin) {
        self.slots.iter_mut().flatten().for_each(|conn| conn.leave_piece(piece));
        self.sources.iter_mut().for_each(|source| source.leave_piece(piece));
        match origin.peers[..] {
            [peer] if !origin.shared => self.ban(now, peer),
            _ => self.picker.suspect(piece),
        }
    }

    fn ban(&mut self, now: Instant, peer: u32) {
        if self.ban_source(now, peer) {
            return;
        }
        let present = self.slots.iter().flatten().find(|conn| conn.id.generation == peer);
        let known = present.map(|conn| conn.address).or_else(|| self.dials.departed.get(&peer).copied());
        // Of one that is gone several pieces may turn out bad, one after the other.
        let Some(address) = known.filter(|&address| self.dials.banned.insert(address)) else { return };
        self.act(Action::Banned { address });
        let same = self.slots.iter().flatten().filter(|conn| conn.address == address);
        let same: Vec<u32> = same.map(|conn| conn.id.index).collect();
        same.into_iter().for_each(|index| self.close(now, index, CloseReason::Banned));
    }

    /// Who is gone need not be known any longer than it takes to check what came from there.
    pub(super) fn forget_departed(&mut self) {
        let picker = &self.picker;
        self.dials.departed.retain(|&peer, _| picker.has_part(peer));
    }

    /// A peer sends nothing for now: what it was to send alone is asked of another.
    pub(super) fn take_suspects(&mut self, peer: u32) {
        for piece in self.picker.disown(peer) {
            self.leave(piece, peer);
        }
    }

    /// Whoever takes too long for a piece that nobody else is asked for is not waited for.
    pub(super) fn look_at_suspects(&mut self, now: Instant) {
        let taken = self.picker.take_from_late(now);
        for &(piece, peer) in &taken {
            self.leave(piece, peer);
        }
        if !taken.is_empty() {
            self.ask_everybody(now);
        }
    }

    fn leave(&mut self, piece: u32, peer: u32) {
        let found = self.slots.iter_mut().flatten().find(|conn| conn.id.generation == peer);
        found.into_iter().for_each(|conn| conn.leave_piece(piece));
        self.leave_to_others(piece, peer);
    }
}
