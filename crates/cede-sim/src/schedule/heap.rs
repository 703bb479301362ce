//! A binary heap of (time, source) in one 128-bit key, with stale entries left to surface: the plainest scheduler
//! that can be right, kept as the cross-check of the others.

use super::Scheduler;
use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use cede_units::Instant;
use core::cmp::Reverse;

/// The heap. See the module's text.
#[derive(Clone, Debug)]
pub struct Heap {
    entries: BinaryHeap<Reverse<u128>>,
    /// The time that is in force for each source; an entry with another time is stale.
    pending: Vec<Instant>,
}

impl Scheduler for Heap {
    fn with_sources(sources: usize) -> Self {
        Self { entries: BinaryHeap::with_capacity(4 * sources), pending: vec![Instant::NEVER; sources] }
    }

    fn set(&mut self, source: u32, at: Instant) {
        let pending = &mut self.pending[source as usize];
        if *pending == at {
            return;
        }
        *pending = at;
        if at != Instant::NEVER {
            self.entries.push(Reverse((u128::from(at.as_nanos()) << 32) | u128::from(source)));
        }
    }

    fn next(&mut self) -> Option<(u32, Instant)> {
        loop {
            let Reverse(key) = *self.entries.peek()?;
            let (source, at) = (key as u32, Instant::from_nanos((key >> 32) as u64));
            if self.pending[source as usize] == at {
                return Some((source, at));
            }
            self.entries.pop();
        }
    }
}
