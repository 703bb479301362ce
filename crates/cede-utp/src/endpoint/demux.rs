//! Whose packet is it? One look-up in a table of hashes.
//!
//! Source: linear probing with backward shifts (Knuth, "The Art of Computer Programming", volume 3, section 6.4, algorithm
//! R). The hash is keyed, or strangers could choose addresses and ids that all fall into one place; it multiplies and folds
//! as wyhash (Wang Yi) does.
//!
//! An entry is eight octets: the key itself is with the connection, where it is needed anyway.
//!
//! **What it leaves out.** It does not shrink.
//! **How it was validated.** Beside a map, below; `tests/endpoint.rs`.

use alloc::vec;
use alloc::vec::Vec;
use cede_units::Stream;
use core::hash::{Hash, Hasher};

/// Marks an empty place.
const ABSENT: u32 = u32::MAX;
const INITIAL_PLACES: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    index: u32,
}

const EMPTY: Entry = Entry { hash: 0, index: ABSENT };

/// The table: names of connections by the hash of their keys.
pub(super) struct Demux {
    /// A power of two, of which a quarter at least is empty.
    places: Vec<Entry>,
    len: usize,
    secrets: [u64; 2],
}

impl Demux {
    /// An empty one, with secrets of its own that leave `random` as it was.
    pub fn new(random: &Stream) -> Self {
        let mut secrets = Stream::named(random.clone().next_u64(), "demultiplexer");
        Self { places: Vec::new(), len: 0, secrets: [secrets.next_u64() | 1, secrets.next_u64()] }
    }

    pub fn hash(&self, key: &impl Hash) -> u32 {
        let mut folding = Folding { state: self.secrets[1], factor: self.secrets[0] };
        key.hash(&mut folding);
        (folding.finish() >> 32) as u32
    }

    /// The first name with this hash that `is_it`.
    pub fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut place = self.home(hash)?;
        loop {
            let entry = self.places[place];
            if entry.index == ABSENT {
                return None;
            }
            if entry.hash == hash && is_it(entry.index) {
                return Some(entry.index);
            }
            place = self.after(place);
        }
    }

    /// Adds a name that is not there.
    pub fn insert(&mut self, hash: u32, index: u32) {
        if 4 * (self.len + 1) > 3 * self.places.len() {
            let places = (2 * self.places.len()).max(INITIAL_PLACES);
            let former = core::mem::replace(&mut self.places, vec![EMPTY; places]);
            former.into_iter().filter(|entry| entry.index != ABSENT).for_each(|entry| self.put(entry));
        }
        self.put(Entry { hash, index });
        self.len += 1;
    }

    /// Takes a name out, where it is there.
    pub fn remove(&mut self, hash: u32, index: u32) {
        let Some(mut place) = self.home(hash) else { return };
        while self.places[place].index != index {
            if self.places[place].index == ABSENT {
                return;
            }
            place = self.after(place);
        }
        self.places[place] = EMPTY;
        self.len -= 1;
        self.close_gap(place);
    }

    /// Moves up what lies behind a place that has become empty, as far as it would not be found otherwise.
    fn close_gap(&mut self, mut gap: usize) {
        let mut place = self.after(gap);
        while self.places[place].index != ABSENT {
            let entry = self.places[place];
            let (mask, home) = (self.places.len() - 1, self.home(entry.hash).unwrap_or_default());
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(gap) & mask) {
                self.places[gap] = entry;
                self.places[place] = EMPTY;
                gap = place;
            }
            place = self.after(place);
        }
    }

    fn put(&mut self, entry: Entry) {
        let mut place = self.home(entry.hash).unwrap_or_default();
        while self.places[place].index != ABSENT {
            place = self.after(place);
        }
        self.places[place] = entry;
    }

    /// Where an entry belongs; nowhere in a table without places.
    fn home(&self, hash: u32) -> Option<usize> {
        (!self.places.is_empty()).then(|| hash as usize & (self.places.len() - 1))
    }

    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }
}

struct Folding {
    state: u64,
    factor: u64,
}

impl Hasher for Folding {
    fn write(&mut self, octets: &[u8]) {
        for octets in octets.chunks(8) {
            let mut word = [0; 8];
            word[..octets.len()].copy_from_slice(octets);
            let product = u128::from(self.state ^ u64::from_le_bytes(word)) * u128::from(self.factor);
            self.state = (product as u64 ^ (product >> 64) as u64).wrapping_add(octets.len() as u64);
        }
    }

    fn finish(&self) -> u64 {
        let product = u128::from(self.state) * u128::from(self.factor);
        product as u64 ^ (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn the_table_agrees_with_a_map() {
        let mut random = Stream::named(1, "demux");
        let mut demux = Demux::new(&random);
        let mut map = BTreeMap::new();
        let mut keys = vec![0_u64; 400];
        for step in 0..60_000 {
            // It fills, and empties again.
            let few = step / 15_000 % 2 == 1;
            let index = random.below(if few { 20 } else { 400 }) as u32;
            let key = keys[index as usize];
            match map.remove(&key) {
                Some(index) => demux.remove(demux.hash(&key), index),
                None => {
                    let key = random.below(2000);
                    if let alloc::collections::btree_map::Entry::Vacant(place) = map.entry(key) {
                        place.insert(index);
                        keys[index as usize] = key;
                        demux.insert(demux.hash(&key), index);
                    }
                }
            }
            let asked = random.below(2000);
            let found = demux.find(demux.hash(&asked), |index| keys[index as usize] == asked);
            assert_eq!(found, map.get(&asked).copied());
            assert_eq!(demux.len, map.len());
        }
    }

    #[test]
    fn chosen_keys_do_not_fall_into_one_place() {
        let demux = Demux::new(&Stream::named(7, "demux"));
        for stride in [1, 16, 256, 65_536, 1 << 32] {
            let homes: alloc::collections::BTreeSet<u32> =
                (0..1024_u64).map(|i| demux.hash(&(i * stride)) & 1023).collect();
            // 1024 at random fall into 647 places of 1024, give or take 17.
            assert!(homes.len() > 560, "{stride}: {}", homes.len());
        }
    }
}
