//! What was given up for want of memory, as marks of four octets: flows, so that one that comes back counts once and says that it
//! lost samples, and the hosts that lost any.
//!
//! There may be more of them than of anything else, so the marks have a room of their own: when it is full, the older half of them
//! is forgotten, and a flow that comes back later than that counts again. Of 200,000 flows five pairs share a mark by chance.
//!
//! **How it was validated.** Flows by the thousand through little memory (`tests/eviction.rs`).

use crate::packet::key::{Address, Key, Side};
use core::hash::BuildHasher;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::sync::LazyLock;

/// One for all meters of a process, as what one of them gave up another may be told of.
static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// Octets that a place of a table takes.
const PLACE_BYTES: usize = size_of::<u32>() + 1;
/// Where a table is as small as it gets.
const ROOM_BYTES_MIN: usize = 1 << 12;

/// What is remembered, each by a mark of its own.
#[derive(Clone, Copy)]
enum What {
    /// A flow without samples.
    Flow(Key),
    /// One that had some.
    Sampled(Key),
    /// A host lost some.
    Host(Address),
}

impl What {
    fn mark(self) -> u32 {
        let hash = match self {
            Self::Flow(key) => key.hash(&STATE),
            Self::Sampled(key) => STATE.hash_one((key.hash(&STATE), true)),
            Self::Host(address) => STATE.hash_one(address),
        };
        (hash >> 32) as u32 ^ hash as u32
    }
}

/// What was given up.
#[derive(Debug)]
pub(crate) struct Gone {
    /// The younger and the older ones.
    marks: [HashTable<u32>; 2],
    /// The times of the first and the last of each.
    spans_us: [(u64, u64); 2],
    room_bytes: usize,
}

impl Default for Gone {
    fn default() -> Self {
        Self { marks: Default::default(), spans_us: [(0, 0); 2], room_bytes: ROOM_BYTES_MIN }
    }
}

impl Gone {
    /// Marks take so many octets at most.
    pub(crate) fn set_room(&mut self, bytes: usize) {
        self.room_bytes = bytes.max(ROOM_BYTES_MIN);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.marks.iter().map(bytes_of).sum()
    }

    /// Remembers a flow that is given up, by the time it was heard last, and the sides that lost samples.
    pub(crate) fn flow(&mut self, key: &Key, last_us: u64, lost: [bool; 2], had_any: bool) {
        let what = if had_any { What::Sampled } else { What::Flow };
        self.put(what(*key), last_us);
        self.hosts(key, last_us, lost);
    }

    /// Remembers the hosts that lost samples of a flow.
    pub(crate) fn hosts(&mut self, key: &Key, last_us: u64, lost: [bool; 2]) {
        for side in [0, 1].into_iter().filter(|&side: &Side| lost[side]) {
            self.put(What::Host(key.address(side)), last_us);
        }
    }

    /// Whether a flow was given up, and whether it had samples then.
    #[inline]
    pub(crate) fn knows(&self, key: &Key) -> (bool, bool) {
        let is_any = self.marks.iter().any(|marks| !marks.is_empty());
        let was_sampled = is_any && self.has(What::Sampled(*key));
        (was_sampled || is_any && self.has(What::Flow(*key)), was_sampled)
    }

    /// Whether a host lost samples.
    pub(crate) fn has_host(&self, address: Address) -> bool {
        self.has(What::Host(address))
    }

    fn has(&self, what: What) -> bool {
        let mark = what.mark();
        self.marks.iter().any(|marks| marks.find(spread(mark), |&other| other == mark).is_some())
    }

    fn put(&mut self, what: What, time_us: u64) {
        self.put_mark(what.mark(), time_us);
    }

    fn put_mark(&mut self, mark: u32, time_us: u64) {
        let young = &self.marks[0];
        let is_full = young.len() == young.capacity();
        // A table that grows has twice the places.
        if is_full && 2 * bytes_of(young).max(PLACE_BYTES) > self.room_bytes / 3 {
            self.age();
        }
        let ([young, _], [(first_us, last_us), _]) = (&mut self.marks, &mut self.spans_us);
        if young.is_empty() {
            (*first_us, *last_us) = (time_us, time_us);
        }
        (*first_us, *last_us) = (time_us.min(*first_us), time_us.max(*last_us));
        young.entry(spread(mark), |&other| other == mark, |&mark| spread(mark)).or_insert(mark);
    }

    /// The younger ones become the older ones.
    fn age(&mut self) {
        let [young, old] = &mut self.marks;
        *old = core::mem::take(young);
        self.spans_us[1] = self.spans_us[0];
    }

    /// Forgets what was given up before a time, as far as all that is remembered beside it was.
    pub(crate) fn forget_before(&mut self, time_us: u64) {
        for (marks, span_us) in self.marks.iter_mut().zip(self.spans_us) {
            if span_us.1 < time_us {
                *marks = HashTable::new();
            }
        }
        if !self.marks[0].is_empty() && self.spans_us[0].0 < time_us {
            self.age();
        }
    }

    /// Takes over what another meter gave up.
    pub(crate) fn append(&mut self, later: &Self) {
        for (marks, span_us) in later.marks.iter().zip(later.spans_us).rev() {
            marks.iter().for_each(|&mark| self.put_mark(mark, span_us.1));
        }
    }
}

/// Tables choose places by the lowest bits and tell what is there by the highest.
fn spread(mark: u32) -> u64 {
    u64::from(mark).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn bytes_of(marks: &HashTable<u32>) -> usize {
    // A table is at most seven eighths full.
    marks.capacity() * 8 / 7 * PLACE_BYTES
}
