//! Pieces in order of how many peers have them.
//!
//! An array of pieces sorted by availability, with the place where each availability begins: a piece that becomes one
//! more available changes places with the last of its bucket, and the boundary moves. Every change takes constant time.

use alloc::vec;
use alloc::vec::Vec;

/// A piece that is not in the order.
const NOWHERE: u32 = u32::MAX;

/// Pieces that are wanted and not begun, by availability.
#[derive(Clone, Debug)]
pub(super) struct Rarity {
    /// The pieces in order, rarest first.
    order: Vec<u32>,
    /// Where each piece stands in `order`.
    place: Vec<u32>,
    /// How many peers have each piece.
    availability: Vec<u16>,
    /// Where the pieces of each availability end in `order`: bucket `a` is `ends[a - 1] .. ends[a]`.
    ends: Vec<u32>,
}

impl Rarity {
    pub(super) fn new(pieces: u32) -> Self {
        Self {
            order: Vec::new(),
            place: vec![NOWHERE; pieces as usize],
            availability: vec![0; pieces as usize],
            ends: vec![0],
        }
    }

    /// Whether a piece is in the order.
    pub(super) fn has(&self, piece: u32) -> bool {
        self.place.get(piece as usize).is_some_and(|place| *place != NOWHERE)
    }

    /// Pieces in the order.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn availability(&self, piece: u32) -> u16 {
        self.availability.get(piece as usize).copied().unwrap_or(0)
    }

    /// The pieces of each availability, the rarest first.
    pub(super) fn buckets(&self) -> impl Iterator<Item = &[u32]> {
        let starts = core::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.order[start as usize..end as usize])
    }

    /// Puts a piece in. One that is in stays.
    pub(super) fn insert(&mut self, piece: u32) {
        if self.place[piece as usize] != NOWHERE {
            return;
        }
        // From the far end, one bucket at a time, each passing its first place on.
        self.place[piece as usize] = self.order.len() as u32;
        self.order.push(piece);
        let home = self.bucket(piece);
        for bucket in (home + 1..self.ends.len()).rev() {
            let first = self.ends[bucket - 1];
            self.swap(self.place[piece as usize], first);
            self.ends[bucket] += 1;
        }
        self.ends[home] += 1;
    }

    /// Takes a piece out.
    pub(super) fn remove(&mut self, piece: u32) {
        if self.place[piece as usize] == NOWHERE {
            return;
        }
        for bucket in self.bucket(piece)..self.ends.len() {
            self.ends[bucket] -= 1;
            let last = self.ends[bucket];
            self.swap(self.place[piece as usize], last);
        }
        self.order.pop();
        self.place[piece as usize] = NOWHERE;
    }

    /// One more peer has a piece.
    pub(super) fn gain(&mut self, piece: u32) {
        let bucket = self.bucket(piece);
        if self.ends.len() <= bucket + 1 {
            self.ends.push(self.order.len() as u32);
        }
        self.availability[piece as usize] = self.availability[piece as usize].saturating_add(1);
        if self.place[piece as usize] != NOWHERE && self.bucket(piece) != bucket {
            self.ends[bucket] -= 1;
            self.swap(self.place[piece as usize], self.ends[bucket]);
        }
    }

    /// One peer fewer has a piece.
    pub(super) fn lose(&mut self, piece: u32) {
        let bucket = self.bucket(piece);
        self.availability[piece as usize] = self.availability[piece as usize].saturating_sub(1);
        if self.place[piece as usize] != NOWHERE && self.bucket(piece) != bucket {
            self.swap(self.place[piece as usize], self.ends[bucket - 1]);
            self.ends[bucket - 1] += 1;
        }
    }

    fn bucket(&self, piece: u32) -> usize {
        usize::from(self.availability[piece as usize])
    }

    fn swap(&mut self, a: u32, b: u32) {
        self.order.swap(a as usize, b as usize);
        self.place[self.order[a as usize] as usize] = a;
        self.place[self.order[b as usize] as usize] = b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    fn check(rarity: &Rarity) {
        let mut seen = 0;
        for (bucket, availability) in rarity.buckets().zip(0u16..) {
            for &piece in bucket {
                assert_eq!(rarity.availability(piece), availability);
                assert_eq!(rarity.order[rarity.place[piece as usize] as usize], piece);
                seen += 1;
            }
        }
        assert_eq!(seen, rarity.len());
    }

    #[test]
    fn the_order_holds_whatever_happens() {
        let mut random = Stream::named(1, "rarity");
        let mut rarity = Rarity::new(40);
        let mut availability = [0u16; 40];
        for _ in 0..20_000 {
            let piece = random.below(40) as u32;
            match random.below(4) {
                0 => rarity.insert(piece),
                1 => rarity.remove(piece),
                2 => {
                    rarity.gain(piece);
                    availability[piece as usize] += 1;
                }
                _ => {
                    rarity.lose(piece);
                    availability[piece as usize] = availability[piece as usize].saturating_sub(1);
                }
            }
            check(&rarity);
            assert_eq!(rarity.availability(piece), availability[piece as usize]);
        }
    }
}
