//! A tournament tree: sources are leaves, and every inner node holds the earlier of its two children's events.
//!
//! Moving a source's event replays its matches on the way to the root, and stops where a match's result is unchanged.
//! Nothing is ever inserted or removed, so there is nothing to cancel, no stale entry, and no allocation.
//!
//! A node is one 64-bit number: the time, and in its lowest bits the source. So a match is one comparison, ties go to
//! the smaller source, and the next event stands at the root. The price is a horizon: with `b` bits for the source,
//! times reach to 2^(64 - b) ns: 208 days for 1,024 sources, 3 days for 65,536. Events beyond it wait behind all others
//! and are not served; [`Scheduler::horizon`] tells, and a world refuses to run past it.

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
    source_bits: u32,
}

impl Tournament {
    fn key(&self, source: u32, at: Instant) -> u64 {
        match at.as_nanos().leading_zeros() >= self.source_bits {
            true => (at.as_nanos() << self.source_bits) | u64::from(source),
            false => u64::MAX,
        }
    }
}

impl Scheduler for Tournament {
    fn with_sources(sources: usize) -> Self {
        let leaves = sources.next_power_of_two().max(2);
        Self { winners: vec![u64::MAX; 2 * leaves], leaves, source_bits: leaves.trailing_zeros() }
    }

    fn set(&mut self, source: u32, at: Instant) {
        let mut winner = self.key(source, at);
        let mut node = self.leaves + source as usize;
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
        let source = key & (self.leaves as u64 - 1);
        (key != u64::MAX).then(|| (source as u32, Instant::from_nanos(key >> self.source_bits)))
    }

    fn horizon(&self) -> Instant {
        // The last tick is left out: with the largest source it would be the mark of no event.
        Instant::from_nanos((u64::MAX >> self.source_bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_horizon_is_the_last_time_that_is_served() {
        let mut tournament = Tournament::with_sources(1_024);
        let horizon = tournament.horizon();
        assert!(horizon.as_secs_f64() > 200.0 * 86_400.0);
        tournament.set(1_023, horizon);
        assert_eq!(tournament.next(), Some((1_023, horizon)));
        tournament.set(1_023, Instant::from_nanos(1 << 60));
        assert_eq!(tournament.next(), None);
    }
}
