//! A hierarchical timing wheel of 8 levels with 256 slots each, in ticks of a nanosecond (Varghese and Lauck, 1987).
//!
//! A source waits in the slot of the highest octet in which its time differs from the present. Sources are linked
//! into their slots by index, so nothing is allocated and an event is moved in constant time. When the present
//! reaches a slot above level 0 its sources move down. All sources in a slot of level 0 share one time; the smallest
//! among them is next.

use super::Scheduler;
use alloc::vec;
use alloc::vec::Vec;
use cede_units::Instant;

const SLOTS: usize = 256;
const LEVELS: usize = 8;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    slot: u32,
    before: u32,
    after: u32,
}

/// The wheel. See the module's text.
#[derive(Clone, Debug)]
pub struct Wheel {
    entries: Vec<Entry>,
    heads: Vec<u32>,
    /// Per level, one bit per slot that holds something.
    occupied: [[u64; SLOTS / 64]; LEVELS],
    now: u64,
}

impl Scheduler for Wheel {
    fn with_sources(sources: usize) -> Self {
        let idle = Entry { at: u64::MAX, slot: NONE, before: NONE, after: NONE };
        Self {
            entries: vec![idle; sources],
            heads: vec![NONE; SLOTS * LEVELS],
            occupied: [[0; SLOTS / 64]; LEVELS],
            now: 0,
        }
    }

    fn set(&mut self, source: u32, at: Instant) {
        self.unlink(source);
        self.entries[source as usize].at = at.as_nanos();
        if at != Instant::NEVER {
            self.link(source);
        }
    }

    fn next(&mut self) -> Option<(u32, Instant)> {
        loop {
            let (level, slot) = self.first_occupied()?;
            if level == 0 {
                let source = self.smallest_in(slot);
                return Some((source, Instant::from_nanos(self.entries[source as usize].at)));
            }
            self.descend(level, slot);
        }
    }
}

impl Wheel {
    fn link(&mut self, source: u32) {
        let at = self.entries[source as usize].at.max(self.now);
        let level = match at ^ self.now {
            0 => 0,
            difference => (63 - difference.leading_zeros() as usize) / 8,
        };
        let slot = (at >> (8 * level)) as usize % SLOTS;
        let head = &mut self.heads[level * SLOTS + slot];
        let after = core::mem::replace(head, source);
        if after != NONE {
            self.entries[after as usize].before = source;
        }
        let entry = &mut self.entries[source as usize];
        (entry.slot, entry.before, entry.after) = ((level * SLOTS + slot) as u32, NONE, after);
        self.occupied[level][slot / 64] |= 1 << (slot % 64);
    }

    fn unlink(&mut self, source: u32) {
        let Entry { slot, before, after, .. } = self.entries[source as usize];
        if slot == NONE {
            return;
        }
        if after != NONE {
            self.entries[after as usize].before = before;
        }
        match before {
            NONE => self.heads[slot as usize] = after,
            before => self.entries[before as usize].after = after,
        }
        if self.heads[slot as usize] == NONE {
            let (level, slot) = (slot as usize / SLOTS, slot as usize % SLOTS);
            self.occupied[level][slot / 64] &= !(1 << (slot % 64));
        }
        self.entries[source as usize].slot = NONE;
    }

    /// The lowest level that holds something, and its first slot. Slots never lie behind the present, because a
    /// source's slot agrees with the present in all higher octets.
    fn first_occupied(&self) -> Option<(usize, usize)> {
        for (level, words) in self.occupied.iter().enumerate() {
            for (index, &word) in words.iter().enumerate() {
                if word != 0 {
                    return Some((level, 64 * index + word.trailing_zeros() as usize));
                }
            }
        }
        None
    }

    fn smallest_in(&self, slot: usize) -> u32 {
        let mut source = self.heads[slot];
        let mut smallest = source;
        while source != NONE {
            smallest = smallest.min(source);
            source = self.entries[source as usize].after;
        }
        smallest
    }

    /// Brings the present to the beginning of a slot and lets its sources find their places below.
    fn descend(&mut self, level: usize, slot: usize) {
        let above = self.now.checked_shr(8 * (level as u32 + 1)).unwrap_or(0);
        let above = above.checked_shl(8 * (level as u32 + 1)).unwrap_or(0);
        self.now = above | ((slot as u64) << (8 * level));
        while self.heads[level * SLOTS + slot] != NONE {
            let source = self.heads[level * SLOTS + slot];
            self.unlink(source);
            self.link(source);
        }
    }
}
