//! A tournament tree: sources are leaves, and every inner node holds the earlier of its two children's events.
//!
//! Moving a source's event replays its matches on the way to the root, and stops where a match's result is unchanged.
//! Nothing is ever inserted or removed, so there is nothing to cancel, no stale entry, and no allocation.
//!
//! What is set before everything else and comes next, as a packet does that takes no time, is kept beside the tree and never
//! enters it.
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
    /// An event that was before all others when it was set, kept beside the tree, where its leaf is empty; or no event.
    ahead: u64,
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

    const fn source(&self, key: u64) -> u32 {
        (key & (self.leaves as u64 - 1)) as u32
    }
}

impl Scheduler for Tournament {
    fn with_sources(sources: usize) -> Self {
        let leaves = sources.next_power_of_two().max(2);
        let source_bits = leaves.trailing_zeros();
        Self { winners: vec![u64::MAX; 2 * leaves], ahead: u64::MAX, leaves, source_bits }
    }

    fn set(&mut self, source: u32, at: Instant) {
        let mut winner = self.key(source, at);
        let mut node = self.leaves + source as usize;
        if self.ahead != u64::MAX && self.source(self.ahead) == source {
            self.ahead = u64::MAX;
        }
        if self.winners[node] == u64::MAX {
            if winner == u64::MAX {
                return;
            }
            if self.ahead == u64::MAX && winner < self.winners[1] {
                self.ahead = winner;
                return;
            }
        }
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
        let key = self.winners[1].min(self.ahead);
        (key != u64::MAX).then(|| (self.source(key), Instant::from_nanos(key >> self.source_bits)))
    }

    fn horizon(&self) -> Instant {
        // The last tick is left out: with the largest source it would be the mark of no event.
        Instant::from_nanos((u64::MAX >> self.source_bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

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

    #[test]
    fn an_event_beside_the_tree_is_one_like_the_others() {
        let mut random = Stream::named(1, "beside");
        let (mut tournament, mut pending) = (Tournament::with_sources(5), [Instant::NEVER; 5]);
        let (mut beside, mut now) = (0, 0);
        for _ in 0..20_000 {
            let source = random.below(5) as usize;
            let at = match random.below(3) {
                0 => Instant::NEVER,
                _ => Instant::from_nanos(now + random.below(4)),
            };
            tournament.set(source as u32, at);
            pending[source] = at;
            beside += u32::from(tournament.ahead != u64::MAX);
            let first = pending.iter().enumerate().min_by_key(|&(_, at)| *at);
            let first = first.filter(|&(_, at)| *at != Instant::NEVER);
            assert_eq!(tournament.next(), first.map(|(source, at)| (source as u32, *at)));
            now = first.map_or(now, |(_, at)| at.as_nanos());
        }
        assert!(beside > 1_000, "{beside}");
    }
}
