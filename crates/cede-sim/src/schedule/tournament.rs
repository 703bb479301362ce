//! A tournament tree: sources are leaves, and every inner node holds the earlier of its two children's times.
//!
//! Moving a source's event replays its matches on the way to the root, and stops where a match's result is unchanged.
//! Nothing is ever inserted or removed, so there is nothing to cancel, no stale entry, and no allocation. Ties go to
//! the left child, which is the smaller source.

use super::Scheduler;
use alloc::vec;
use alloc::vec::Vec;
use cede_units::Instant;

/// The tree. See the module's text.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Node `i` has the children `2 i` and `2 i + 1`; leaves fill the upper half.
    winners: Vec<u64>,
    leaves: usize,
}

impl Scheduler for Tournament {
    fn with_sources(sources: usize) -> Self {
        let leaves = sources.next_power_of_two().max(2);
        Self { winners: vec![u64::MAX; 2 * leaves], leaves }
    }

    fn set(&mut self, source: u32, at: Instant) {
        let mut node = self.leaves + source as usize;
        self.winners[node] = at.as_nanos();
        while node > 1 {
            let winner = self.winners[node].min(self.winners[node ^ 1]);
            node /= 2;
            if self.winners[node] == winner {
                return;
            }
            self.winners[node] = winner;
        }
    }

    fn next(&mut self) -> Option<(u32, Instant)> {
        let earliest = self.winners[1];
        if earliest == u64::MAX {
            return None;
        }
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            node += usize::from(self.winners[node] != earliest);
        }
        Some(((node - self.leaves) as u32, Instant::from_nanos(earliest)))
    }
}
