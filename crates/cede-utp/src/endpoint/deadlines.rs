//! The deadlines of all connections: a binary heap in which each has at most one entry, which can be moved.

use alloc::vec::Vec;
use cede_units::Instant;

/// Marks a connection without an entry.
const ABSENT: u32 = u32::MAX;

/// The heap. Deadlines of the same instant come in the order of the connections' places.
pub(super) struct Deadlines {
    heap: Vec<(Instant, u32)>,
    /// Where in the heap each connection's entry is.
    positions: Vec<u32>,
}

impl Deadlines {
    pub fn new() -> Self {
        Self { heap: Vec::new(), positions: Vec::new() }
    }

    pub fn earliest(&self) -> Option<Instant> {
        self.heap.first().map(|&(at, _)| at)
    }

    /// Takes one connection out that is due by `now`.
    pub fn take_due(&mut self, now: Instant) -> Option<u32> {
        let &(at, index) = self.heap.first()?;
        if at > now {
            return None;
        }
        self.set(index, Instant::NEVER);
        Some(index)
    }

    /// Gives a connection a deadline, or with [`Instant::NEVER`] none.
    pub fn set(&mut self, index: u32, at: Instant) {
        if self.positions.len() <= index as usize {
            self.positions.resize(index as usize + 1, ABSENT);
        }
        match (self.positions[index as usize], at == Instant::NEVER) {
            (ABSENT, true) => {}
            (ABSENT, false) => {
                self.heap.push((at, index));
                self.sift_up(self.heap.len() - 1);
            }
            (position, true) => self.remove(position as usize),
            // Most calls of a connection leave its deadline as it was.
            (position, false) if self.heap[position as usize].0 == at => {}
            (position, false) => self.change(position as usize, at),
        }
    }

    fn change(&mut self, position: usize, at: Instant) {
        self.heap[position].0 = at;
        let position = self.sift_up(position);
        self.sift_down(position);
    }

    fn remove(&mut self, position: usize) {
        let (_, index) = self.heap.swap_remove(position);
        self.positions[index as usize] = ABSENT;
        if position < self.heap.len() {
            let position = self.sift_up(position);
            self.sift_down(position);
        }
    }

    /// Moves an entry towards the front and returns where it ends; notes its position in any case.
    fn sift_up(&mut self, mut position: usize) -> usize {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.heap[parent] <= self.heap[position] {
                break;
            }
            self.heap.swap(parent, position);
            self.note(position);
            position = parent;
        }
        self.note(position);
        position
    }

    fn sift_down(&mut self, mut position: usize) {
        loop {
            let (left, right) = (2 * position + 1, 2 * position + 2);
            let mut least = position;
            for child in [left, right] {
                if child < self.heap.len() && self.heap[child] < self.heap[least] {
                    least = child;
                }
            }
            if least == position {
                break;
            }
            self.heap.swap(position, least);
            self.note(position);
            position = least;
        }
        self.note(position);
    }

    fn note(&mut self, position: usize) {
        self.positions[self.heap[position].1 as usize] = position as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    #[test]
    fn the_heap_agrees_with_a_search_of_a_list() {
        let mut random = Stream::named(1, "deadlines");
        let mut heap = Deadlines::new();
        let mut list = alloc::vec![Instant::NEVER; 50];
        for _ in 0..20_000 {
            let index = random.below(50) as u32;
            let at = match random.below(4) {
                0 => Instant::NEVER,
                _ => Instant::from_nanos(random.below(1000)),
            };
            heap.set(index, at);
            list[index as usize] = at;
            let least = list.iter().copied().min().filter(|&at| at != Instant::NEVER);
            assert_eq!(heap.earliest(), least);
            if random.below(10) == 0
                && let Some(index) = heap.take_due(Instant::from_nanos(500))
            {
                assert_eq!(Some(list[index as usize]), least);
                list[index as usize] = Instant::NEVER;
            }
        }
    }
}
