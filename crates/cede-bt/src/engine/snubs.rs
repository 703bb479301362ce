//! Peers that are late: who they are, and what becomes of the blocks they owe.

use super::conn::Conn;
use super::{Engine, PeerAddress};
use crate::snub::SnubRule;
use cede_units::Instant;

impl<A: PeerAddress> Engine<A> {
    /// Whether a peer has been waited for in vain.
    pub(super) fn is_snubbed(&self, now: Instant, conn: &Conn<A>) -> bool {
        let last = conn.tally.last_data_at;
        match self.profile.snub {
            SnubRule::Silent { after } => last.is_none_or(|at| now.since(at) > after),
            SnubRule::Owing { after } => {
                let since = last.unwrap_or(conn.wait.block_since).max(conn.wait.block_since);
                !conn.owed.is_empty() && now.since(since) > after
            }
            SnubRule::Late { .. } => conn.snubbed,
        }
    }

    /// Once a second: whoever is late is snubbed, and for each reason one block is asked of others.
    pub(super) fn look_for_lateness(&mut self, now: Instant, index: u32) {
        let rule = self.profile.snub;
        let Some(conn) = self.at(index).filter(|conn| !conn.owed.is_empty()) else { return };
        let reasons = conn.wait.reasons(now, rule);
        if reasons > 0 {
            conn.snubbed = true;
            conn.pipeline.end_slow_start();
        }
        for _ in 0..reasons {
            self.give_one_up(index);
        }
    }

    /// The last block that the peer owes becomes free, if nothing else of its piece is.
    fn give_one_up(&mut self, index: u32) {
        let Some(conn) = self.slots.get_mut(index as usize).and_then(Option::as_deref_mut) else { return };
        let late = conn.owed.iter().rev().find(|block| !conn.overdue.contains(block));
        let Some(&block) = late.filter(|block| !self.picker.has_free(block.piece)) else { return };
        conn.overdue.push(block);
        // It may still come, in between what the other sends of it.
        self.picker.note_shared(block);
        self.picker.release(&[block]);
    }

    /// A block came, whole. Says whether it was one that others have been asked for in the meantime.
    pub(super) fn note_block(&mut self, now: Instant, index: u32, owed: Option<usize>) -> bool {
        let rule = self.profile.snub;
        let Some(conn) = self.at(index) else { return false };
        let block = owed.map(|at| conn.owed.remove(at));
        let was_overdue = block.is_some_and(|block| conn.take_overdue(block));
        if conn.wait.is_in_time(now, rule) {
            conn.snubbed = false;
        }
        conn.wait.times.add(now.since(conn.wait.block_since));
        if !conn.owed.is_empty() {
            conn.wait.block_since = now;
        }
        conn.pipeline.on_block();
        was_overdue
    }
}

impl<A> Conn<A> {
    /// Takes a block off the list of those that others may be asked for.
    pub(super) fn take_overdue(&mut self, block: crate::wire::BlockRef) -> bool {
        let at = self.overdue.iter().position(|&overdue| overdue == block);
        at.map(|at| self.overdue.swap_remove(at)).is_some()
    }

    /// What the peer owes and nobody else has been asked for instead.
    pub(super) fn reserved_blocks(&self) -> alloc::vec::Vec<crate::wire::BlockRef> {
        self.owed.iter().copied().filter(|block| !self.overdue.contains(block)).collect()
    }
}
