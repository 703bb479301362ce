//! A tournament tree: sources are leaves, and every inner node holds the earlier of its two children's events.
//!
//! Moving a source's event replays its matches on the way to the root, and stops where a match's result is unchanged.
//! Nothing is ever inserted or removed, so there is nothing to cancel, no stale entry, and no allocation. A node is
//! (time, source) in one number, so ties go to the smaller source, and the next event stands at the root.

use super::Scheduler;
use alloc::vec;
use alloc::vec::Vec;
use cede_units::Instant;

/// The tree. See the module's text.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Node `i` has the children `2 i` and `2 i + 1`; leaves fill the upper half.
    winners: Vec<u128>,
    leaves: usize,
}

impl Scheduler for Tournament {
    fn with_sources(sources: usize) -> Self {
        let leaves = sources.next_power_of_two().max(2);
        Self { winners: vec![u128::MAX; 2 * leaves], leaves }
    }

    fn set(&mut self, source: u32, at: Instant) {
        let mut node = self.leaves + source as usize;
        let mut winner = (u128::from(at.as_nanos()) << 32) | u128::from(source);
        self.winners[node] = winner;
        while node > 1 {
            winner = winner.min(self.winners[node ^ 1]);
            node /= 2;
            if self.winners[node] == winner {
                return;
            }
            self.winners[node] = winner;
        }
    }

    fn next(&mut self) -> Option<(u32, Instant)> {
        let key = self.winners[1];
        let at = Instant::from_nanos((key >> 32) as u64);
        (at != Instant::NEVER).then_some((key as u32, at))
    }
}
