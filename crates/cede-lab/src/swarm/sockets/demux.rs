//! Which connection a segment belongs to, by its addresses.
//!
//! Open addressing with linear probing (Knuth, The Art of Computer Programming 3, section 6.4, algorithms L and R): key
//! and answer stand side by side, so that a packet costs one look at memory.

use crate::swarm::near::bring_item;
use cede_net::Address;

/// Connections by the peer's address and the local port.
#[derive(Clone, Debug, Default)]
pub(super) struct Demux {
    /// A power of two of places, at least half of them empty; the key 0 stands for an empty one.
    places: Vec<(u64, u32)>,
    len: usize,
}

/// No key is 0, because no port is.
const fn key(peer: Address, local: u16) -> u64 {
    (peer.host.0 as u64) << 32 | (peer.port as u64) << 16 | local as u64
}

impl Demux {
    /// The connection, where there is one.
    pub(super) fn find(&self, peer: Address, local: u16) -> Option<u32> {
        let place = self.seek(key(peer, local))?;
        let (known, index) = self.places[place];
        (known != 0).then_some(index)
    }

    /// Brings the place where a connection is sought near.
    pub(super) fn bring(&self, peer: Address, local: u16) {
        if !self.places.is_empty() {
            bring_item(&self.places, self.home(key(peer, local)));
        }
    }

    /// Puts a connection in, or another in its place.
    pub(super) fn insert(&mut self, peer: Address, local: u16, index: u32) {
        if 2 * (self.len + 1) > self.places.len() {
            self.grow();
        }
        let key = key(peer, local);
        if let Some(place) = self.seek(key) {
            self.len += usize::from(self.places[place].0 == 0);
            self.places[place] = (key, index);
        }
    }

    /// Takes a connection out; those behind it that it had pushed on move up.
    pub(super) fn remove(&mut self, peer: Address, local: u16) {
        let Some(mut hole) = self.seek(key(peer, local)).filter(|&place| self.places[place].0 != 0) else {
            return;
        };
        self.len -= 1;
        let mask = self.places.len() - 1;
        let mut next = hole;
        loop {
            self.places[hole] = (0, 0);
            loop {
                next = (next + 1) & mask;
                let key = self.places[next].0;
                if key == 0 {
                    return;
                }
                // It may move where its own place does not lie behind the hole.
                if next.wrapping_sub(self.home(key)) & mask >= next.wrapping_sub(hole) & mask {
                    break;
                }
            }
            self.places[hole] = self.places[next];
            hole = next;
        }
    }

    /// Where a key stands or would stand; none while there is no place at all.
    fn seek(&self, key: u64) -> Option<usize> {
        let mask = self.places.len().checked_sub(1)?;
        let mut place = self.home(key);
        while self.places[place].0 != key && self.places[place].0 != 0 {
            place = (place + 1) & mask;
        }
        Some(place)
    }

    /// Fibonacci hashing: the upper bits of a product with the golden ratio's.
    fn home(&self, key: u64) -> usize {
        let bits = self.places.len().trailing_zeros();
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
    }

    fn grow(&mut self) {
        let places = vec![(0, 0); (2 * self.places.len()).max(16)];
        for (key, index) in core::mem::replace(&mut self.places, places) {
            if key != 0
                && let Some(place) = self.seek(key)
            {
                self.places[place] = (key, index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_net::HostId;
    use cede_units::Stream;
    use std::collections::HashMap;

    #[test]
    fn it_finds_what_a_hash_map_finds() {
        let (mut demux, mut naive) = (Demux::default(), HashMap::new());
        let mut random = Stream::named(1, "demux");
        for step in 0..50_000_u32 {
            let peer = Address::new(HostId(random.below(60) as u32), 6881 + random.below(3) as u16);
            let local = 10_000 + random.below(2) as u16;
            if random.below(5) < 3 {
                demux.insert(peer, local, step);
                naive.insert((peer, local), step);
            } else {
                demux.remove(peer, local);
                naive.remove(&(peer, local));
            }
            let peer = Address::new(HostId(random.below(60) as u32), 6881);
            assert_eq!(demux.find(peer, local), naive.get(&(peer, local)).copied());
            assert_eq!(demux.len, naive.len());
        }
    }
}
