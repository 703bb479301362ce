//! Deadlines of a host's connections: the earliest is known, and one changes in a walk to the root.
//!
//! A tree with eight branches at each fork, which lie in one line of memory: in a swarm what a change costs are the lines that it
//! touches, two or three for a hundred connections.

use super::near::bring_item;
use cede_units::Instant;

const BRANCHES: usize = 8;

/// The earliest deadlines below each branch of a fork; at the leaves, the deadlines themselves.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Fork([Instant; BRANCHES]);

impl Fork {
    const EMPTY: Self = Self([Instant::NEVER; BRANCHES]);

    fn earliest(&self) -> Instant {
        self.0.into_iter().fold(Instant::NEVER, Instant::min)
    }
}

/// A tournament over deadlines by small numbers. The root comes first; those below fork `k` are `8 k + 1` to `8 k + 8`.
#[derive(Debug)]
pub struct Deadlines {
    /// The number of the first fork that has deadlines.
    leaves: usize,
    tree: Vec<Fork>,
    earliest: Instant,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { leaves: 0, tree: vec![Fork::EMPTY], earliest: Instant::NEVER }
    }
}

impl Deadlines {
    /// Brings the deadline of number `index` near.
    pub fn bring(&self, index: usize) {
        bring_item(&self.tree, self.leaves + index / BRANCHES);
    }

    /// Sets the deadline of number `index`.
    pub fn set(&mut self, index: usize, at: Instant) {
        while index >= BRANCHES * (self.tree.len() - self.leaves) {
            self.grow();
        }
        let (mut fork, mut branch, mut at) = (self.leaves + index / BRANCHES, index % BRANCHES, at);
        loop {
            let branches = &mut self.tree[fork];
            if branches.0[branch] == at {
                return;
            }
            branches.0[branch] = at;
            at = branches.earliest();
            let Some(above) = fork.checked_sub(1) else { break };
            (fork, branch) = (above / BRANCHES, above % BRANCHES);
        }
        self.earliest = at;
    }

    /// The earliest deadline.
    pub const fn earliest(&self) -> Instant {
        self.earliest
    }

    /// The smallest number whose deadline is due.
    pub fn due(&self, now: Instant) -> Option<usize> {
        if self.earliest > now {
            return None;
        }
        let mut fork = 0;
        loop {
            let branch = self.tree[fork].0.iter().position(|at| *at <= now)?;
            if fork >= self.leaves {
                return Some(BRANCHES * (fork - self.leaves) + branch);
            }
            fork = BRANCHES * fork + 1 + branch;
        }
    }

    /// Room for eight times as many.
    fn grow(&mut self) {
        let before = self.tree.split_off(self.leaves);
        self.leaves = BRANCHES * self.leaves + 1;
        self.tree = vec![Fork::EMPTY; BRANCHES * self.leaves + 1];
        let deadlines = before.iter().flat_map(|fork| fork.0).enumerate();
        deadlines.for_each(|(index, at)| self.set(index, at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    #[test]
    fn the_earliest_is_known_whatever_happens() {
        let (mut deadlines, mut naive) = (Deadlines::default(), vec![Instant::NEVER; 90]);
        let mut random = Stream::named(1, "deadlines");
        for _ in 0..5_000 {
            let (index, at) = (random.below(90) as usize, Instant::from_secs(random.below(100)));
            deadlines.set(index, at);
            naive[index] = at;
            let earliest = *naive.iter().min().unwrap();
            assert_eq!(deadlines.earliest(), earliest);
            if earliest != Instant::NEVER {
                let first = naive.iter().position(|at| *at == earliest);
                assert_eq!(deadlines.due(earliest), first);
            }
        }
        assert_eq!(deadlines.due(Instant::ZERO).is_some(), naive.contains(&Instant::ZERO));
    }
}
