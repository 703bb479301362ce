//! Where a queue's decisions go: counters, the log, and the tokens of packets that are no more.

use super::Waiting;
use crate::log::{Counters, DropCause, LinkLog};
use alloc::vec::Vec;
use cede_units::Instant;

/// What a queue needs to drop and mark packets that wait.
pub(crate) struct Verdicts<'a, T, L> {
    pub(crate) log: &'a mut L,
    pub(crate) counters: &'a mut Counters,
    /// Tokens that their owner is to reclaim.
    pub(crate) lost: &'a mut Vec<T>,
}

impl<T, L: LinkLog<T>> Verdicts<'_, T, L> {
    /// Drops a packet that waited.
    pub(crate) fn drop(&mut self, packet: Waiting<T>, at: Instant, cause: DropCause) {
        self.counters.note_drop(packet.bytes, cause);
        self.log.dropped(&packet.token, at, cause);
        self.lost.push(packet.token);
    }

    /// Marks a packet; says whether its transport understands marks.
    pub(crate) fn mark(&mut self, packet: &mut Waiting<T>, at: Instant) -> bool {
        let marked = self.log.mark(&mut packet.token, at);
        self.counters.marked_packets += u64::from(marked);
        marked
    }
}
