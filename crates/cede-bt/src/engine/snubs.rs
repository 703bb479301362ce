//! Peers that are late: who they are, and what becomes of the blocks they owe.

use super::conn::Conn;
use super::{Engine, PeerAddress};
use crate::snub::{DOUBTFUL_AFTER, SnubRule};
use crate::wire::BlockRef;
use alloc::vec::Vec;
use cede_units::Instant;

impl<A: PeerAddress> Engine<A> {
    /// Whether a peer has been waited for in vain.
    pub(super) fn is_snubbed(&self, now: Instant, conn: &Conn<A>) -> bool {
        let last = conn.tally.last_data_at;
        match self.profile.snub {
            SnubRule::Silent { after } => last.is_none_or(|at| now.since(at) > after),
            SnubRule::Owing { after } => !conn.owed.is_empty() && conn.wait.is_fruitless(now, after),
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
            self.drop_plans(index);
        }
        for _ in 0..reasons {
            self.give_one_up(index);
        }
        if let SnubRule::Owing { after } = rule
            && self.at(index).is_some_and(|conn| conn.wait.is_fruitless(now, after))
        {
            self.give_up(index, |_| true);
        }
    }

    /// Blocks that the peer owes may be asked of others. Says whether there were any.
    fn give_up(&mut self, index: u32, which: impl Fn(BlockRef) -> bool) -> bool {
        self.drop_plans(index);
        let Some(conn) = self.slots.get_mut(index as usize).and_then(Option::as_deref_mut) else {
            return false;
        };
        let late: Vec<BlockRef> = conn.reserved_blocks().into_iter().filter(|&block| which(block)).collect();
        for &block in &late {
            conn.overdue.push(block);
            self.picker.note_shared(block);
        }
        self.picker.release(&late);
        !late.is_empty()
    }

    /// Whether a peer has owed blocks in vain for so long that nobody is to wait for it at the end.
    fn is_doubtful(&self, now: Instant, index: u32) -> bool {
        let rule = matches!(self.profile.snub, SnubRule::Owing { .. });
        rule && self.peek(index).is_some_and(|conn| conn.wait.is_fruitless(now, DOUBTFUL_AFTER))
    }

    /// Nothing is left to ask a peer for that owes nothing: in the end game it is asked for what doubtful ones owe. Says whether
    /// there is something.
    pub(super) fn relieve(&mut self, now: Instant, index: u32) -> bool {
        if !self.picker.is_end_game() || self.is_doubtful(now, index) {
            return false;
        }
        let idle = |conn: &&Conn<A>| conn.owed.is_empty() && !conn.peer_choking;
        let Some(conn) = self.slots[index as usize].as_deref().filter(idle) else { return false };
        let have = self.open_to(conn).unwrap_or_else(|| conn.have.clone());
        let others: Vec<u32> = self.list.iter().copied().filter(|&other| other != index).collect();
        let mut doubtful =
            others.into_iter().filter(|&other| self.is_doubtful(now, other)).collect::<Vec<_>>();
        doubtful.retain(|&other| self.give_up(other, |block| have.has(block.piece)));
        !doubtful.is_empty()
    }

    /// What a doubtful peer is asked for besides others is not counted: it keeps nobody from asking once more.
    pub(super) fn discount(&mut self, now: Instant, index: u32) {
        if !self.is_doubtful(now, index) {
            return;
        }
        let Some(conn) = self.slots[index as usize].as_deref() else { return };
        let doubled: Vec<BlockRef> =
            conn.owed.iter().copied().filter(|&block| self.picker.copies(block) > 1).collect();
        self.give_up(index, |block| doubled.contains(&block));
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
        if block.is_some() {
            conn.wait.fruitless_since = (!conn.owed.is_empty()).then_some(now);
        }
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
    pub(super) fn take_overdue(&mut self, block: BlockRef) -> bool {
        let at = self.overdue.iter().position(|&overdue| overdue == block);
        at.map(|at| self.overdue.swap_remove(at)).is_some()
    }

    /// What the peer owes and nobody else has been asked for instead.
    pub(super) fn reserved_blocks(&self) -> Vec<BlockRef> {
        self.reserved().collect()
    }

    fn reserved(&self) -> impl Iterator<Item = BlockRef> {
        self.owed.iter().copied().filter(|block| !self.overdue.contains(block))
    }

    /// What of a piece is among that.
    pub(super) fn reserved_of(&self, piece: u32) -> impl Iterator<Item = BlockRef> {
        self.reserved().filter(move |block| block.piece == piece)
    }
}
