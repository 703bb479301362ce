//! Deadlines of a host's connections: the earliest is known, and one changes in a walk to the root.

use cede_units::Instant;

/// A tournament over deadlines by small numbers.
#[derive(Debug)]
pub struct Deadlines {
    leaves: usize,
    tree: Vec<Instant>,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { leaves: 1, tree: vec![Instant::NEVER; 2] }
    }
}

impl Deadlines {
    /// Sets the deadline of number `index`.
    pub fn set(&mut self, index: usize, at: Instant) {
        if index >= self.leaves {
            self.grow(index + 1);
        }
        let mut place = self.leaves + index;
        if self.tree[place] == at {
            return;
        }
        self.tree[place] = at;
        while place > 1 {
            let earliest = self.tree[place & !1].min(self.tree[place | 1]);
            place /= 2;
            if self.tree[place] == earliest {
                return;
            }
            self.tree[place] = earliest;
        }
    }

    /// The earliest deadline.
    pub fn earliest(&self) -> Instant {
        self.tree[1]
    }

    /// The number of a deadline that is due.
    pub fn due(&self, now: Instant) -> Option<usize> {
        if self.tree[1] > now {
            return None;
        }
        let mut place = 1;
        while place < self.leaves {
            place *= 2;
            if self.tree[place] > now {
                place += 1;
            }
        }
        Some(place - self.leaves)
    }

    fn grow(&mut self, len: usize) {
        let before: Vec<Instant> = self.tree[self.leaves..].to_vec();
        self.leaves = len.next_power_of_two();
        self.tree = vec![Instant::NEVER; 2 * self.leaves];
        for (index, at) in before.into_iter().enumerate() {
            self.set(index, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    #[test]
    fn the_earliest_is_known_whatever_happens() {
        let (mut deadlines, mut naive) = (Deadlines::default(), vec![Instant::NEVER; 50]);
        let mut random = Stream::named(1, "deadlines");
        for _ in 0..5_000 {
            let (index, at) = (random.below(50) as usize, Instant::from_secs(random.below(100)));
            deadlines.set(index, at);
            naive[index] = at;
            let earliest = *naive.iter().min().unwrap();
            assert_eq!(deadlines.earliest(), earliest);
            if earliest != Instant::NEVER {
                assert!(naive[deadlines.due(earliest).unwrap()] == earliest);
            }
        }
        assert_eq!(deadlines.due(Instant::ZERO).is_some(), naive.contains(&Instant::ZERO));
    }
}
