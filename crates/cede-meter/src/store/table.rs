//! Where flows are, by what their keys are hashed to.
//!
//! Source: open addressing with linear probing (Knuth, The Art of Computer Programming, volume 3, section 6.4, algorithm L, and R for one
//! that is taken out: those behind it move up, so that no marks of former ones are needed). A slot keeps half of its hash beside the place: other flows are nearly
//! never looked at, and a table that grows need not be told any key; as the upper bits choose the slot, it is read and written from one
//! end to the other.
//!
//! **How it was validated.** Beside the standard library's map (below).

use crate::store::place::Place;
use core::hint::black_box;

const SLOTS_MIN: usize = 16;
/// So many eighths of the slots are taken at most: one that is not there is told after three looks on average then.
const FULL_EIGHTHS: usize = 5;
const EMPTY: u64 = 0;

/// Places by hashes.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Each has the upper half of a hash, and behind it a place and one more, which is never zero.
    slots: Vec<u64>,
    len: usize,
}

const fn slot_of(half: u64, place: Place) -> u64 {
    half << 32 | (place.bits() as u64 + 1)
}

const fn place_of(slot: u64) -> Place {
    Place::from_bits((slot as u32).wrapping_sub(1))
}

impl Table {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }

    /// The slot that the upper half of a hash belongs to.
    #[inline(always)]
    const fn first(&self, half: u64) -> usize {
        (half.wrapping_mul(self.slots.len() as u64) >> 32) as usize
    }

    /// The slots from where a hash belongs on, up to the first that is empty.
    #[inline(always)]
    fn probe(&self, half: u64) -> impl Iterator<Item = usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = self.first(half);
        core::iter::from_fn(move || {
            let this = at & mask;
            at = this + 1;
            (*self.slots.get(this)? != EMPTY).then_some(this)
        })
    }

    /// The places that have the upper half of a hash.
    #[inline(always)]
    fn alike(&self, hash: u64) -> impl Iterator<Item = usize> {
        let half = hash >> 32;
        self.probe(half).filter(move |&at| self.slots[at] >> 32 == half)
    }

    /// Has the slots brought near that hashes belong to: where nothing hangs on what one of them holds, the processor waits for all of
    /// them together.
    #[inline]
    pub(crate) fn bring_near(&self, hashes: impl Iterator<Item = u64>) {
        let slot = |hash: u64| self.slots.get(self.first(hash >> 32)).copied();
        black_box(hashes.filter_map(slot).fold(0, |all, slot| all ^ slot));
    }

    /// Where a flow most likely is, if it is there.
    #[inline(always)]
    pub(crate) fn likely(&self, hash: u64) -> Option<Place> {
        self.alike(hash).next().map(|at| place_of(self.slots[at]))
    }

    /// Where the flow is that is the one.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(Place) -> bool) -> Option<Place> {
        let half = hash >> 32;
        // A plain loop becomes part of its callers.
        for at in self.probe(half) {
            let slot = self.slots[at];
            if slot >> 32 == half && is_it(place_of(slot)) {
                return Some(place_of(slot));
            }
        }
        None
    }

    /// Puts a place in that is not there.
    pub(crate) fn insert(&mut self, hash: u64, place: Place) {
        if self.len >= self.slots.len() / 8 * FULL_EIGHTHS {
            self.grow();
        }
        self.put(slot_of(hash >> 32, place));
        self.len += 1;
    }

    fn put(&mut self, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut at = self.first(slot >> 32);
        while self.slots[at & mask] != EMPTY {
            at += 1;
        }
        self.slots[at & mask] = slot;
    }

    #[cold]
    fn grow(&mut self) {
        let count = (2 * self.slots.len()).max(SLOTS_MIN);
        // Written at once: memory that is zero already the system would give twice, once for the first look and once for the first place.
        let mut slots = Vec::with_capacity(count);
        slots.resize(count, EMPTY);
        let old = core::mem::replace(&mut self.slots, slots);
        old.into_iter().filter(|&slot| slot != EMPTY).for_each(|slot| self.put(slot));
    }

    /// Puts another place where one is.
    pub(crate) fn replace(&mut self, hash: u64, old: Place, new: Place) {
        let at = self.alike(hash).find(|&at| place_of(self.slots[at]) == old);
        if let Some(at) = at {
            self.slots[at] = slot_of(hash >> 32, new);
        }
    }

    /// Takes a place out, if it is there.
    pub(crate) fn remove(&mut self, hash: u64, place: Place) {
        let Some(mut hole) = self.alike(hash).find(|&at| place_of(self.slots[at]) == place) else { return };
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot == EMPTY {
                break;
            }
            // It is found from where it belongs on: it must not come before that.
            let passed = at.wrapping_sub(self.first(slot >> 32)) & mask;
            if passed >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = EMPTY;
        self.len -= 1;
    }

    pub(crate) fn clear(&mut self) {
        self.slots.fill(EMPTY);
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;
    use std::collections::HashMap;

    #[test]
    fn a_table_finds_what_a_map_does() {
        let mut stream = Stream::named(11, "table");
        // Hashes of few different upper halves, too, and of the last slots.
        for spread in [1_u64 << 63, 200, 1] {
            let (mut table, mut map) = (Table::default(), HashMap::new());
            for number in 0..3_000_u32 {
                let half = stream.below(spread).wrapping_sub(spread / 2) as u32;
                let hash = u64::from(half) << 32 | u64::from(number);
                let place = Place::from_bits(number);
                table.insert(hash, place);
                map.insert(hash, place);
                if stream.below(3) == 0 {
                    let other = Place::from_bits(1 << 31 | number);
                    table.replace(hash, place, other);
                    map.insert(hash, other);
                }
            }
            for hash in map.keys().copied().filter(|hash| hash % 3 == 0).collect::<Vec<_>>() {
                table.remove(hash, map[&hash]);
                map.remove(&hash);
                assert!(table.find(hash, |_| false).is_none());
            }
            for (&hash, &place) in &map {
                assert_eq!(table.find(hash, |found| found == place), Some(place));
                assert!(table.likely(hash).is_some() && table.find(hash, |_| false).is_none());
            }
            assert_eq!(
                (table.len(), table.find(7 << 32 | 1 << 60, |place| place.bits() == 5_000)),
                (map.len(), None)
            );
            table.clear();
            assert!(table.len() == 0 && map.keys().all(|&hash| table.likely(hash).is_none()));
        }
    }
}
