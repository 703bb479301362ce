//! Trees of hashes over the blocks of a file, as v2 torrents have them.
//!
//! Source: BEP 52. A leaf is the SHA-256 of a block of 16 KiB, the last one perhaps of less; leaves that are missing to a
//! power of two are zeros; a node above is the SHA-256 of the two below it. How it was validated: the tests below against a
//! tree that is spelled out, and torrents made by libtorrent.

use crate::abreast::{self, Stream};
use crate::geometry::BLOCK_BYTES;
use alloc::vec::Vec;
use sha2::{Digest, Sha256};

/// Octets of a hash.
pub const HASH_BYTES: usize = 32;
/// A leaf, or a node above.
pub type Hash = [u8; HASH_BYTES];

/// The most levels that any tree here has: blocks of 2^63 octets.
const MAX_LEVELS: usize = 50;

fn pair(left: &Hash, right: &Hash) -> Hash {
    let mut digest = Sha256::new();
    digest.update(left);
    digest.update(right);
    digest.finalize().into()
}

/// The node `levels` above leaves that all are missing.
#[must_use]
pub fn blank(levels: u32) -> Hash {
    (0..levels).fold([0; HASH_BYTES], |below, _| pair(&below, &below))
}

/// How many levels a tree has above so many leaves; none above a single one.
#[must_use]
pub const fn levels_above(leaves: u64) -> u32 {
    leaves.next_power_of_two().trailing_zeros()
}

/// A tree of which the nodes of one level come in order. Only the left halves that still await their right ones are held.
#[derive(Clone, Debug)]
pub struct Tree {
    base: u32,
    waiting: Vec<Option<Hash>>,
}

impl Tree {
    /// A tree of nodes that are `base` levels above the leaves.
    #[must_use]
    pub const fn new(base: u32) -> Self {
        Self { base, waiting: Vec::new() }
    }

    /// The next node.
    pub fn push(&mut self, mut node: Hash) {
        for place in &mut self.waiting {
            match place.take() {
                Some(left) => node = pair(&left, &node),
                None => return *place = Some(node),
            }
        }
        self.waiting.push(Some(node));
    }

    /// The node that is `levels` above those that have come; of what is below it, what has not come is missing. Of no use where
    /// more have come than are below it.
    #[must_use]
    pub fn root(self, levels: u32) -> Hash {
        let mut blank = blank(self.base);
        let mut right: Option<Hash> = None;
        let mut waiting = self.waiting.into_iter();
        for _ in 0..levels {
            right = match (waiting.next().flatten(), right) {
                (Some(left), right) => Some(pair(&left, &right.unwrap_or(blank))),
                (None, Some(left)) => Some(pair(&left, &blank)),
                (None, None) => None,
            };
            blank = pair(&blank, &blank);
        }
        right.or_else(|| waiting.next().flatten()).unwrap_or(blank)
    }
}

/// The root of the tree over octets that come in order.
#[derive(Clone, Debug)]
pub struct Hasher {
    tree: Tree,
    levels: u32,
    leaf: Stream<abreast::Sha256>,
    leaf_bytes: u32,
}

impl Hasher {
    /// That of a tree with so many levels above its leaves.
    #[must_use]
    pub fn new(levels: u32) -> Self {
        Self { tree: Tree::new(0), levels, leaf: Stream::default(), leaf_bytes: 0 }
    }

    /// The next octets.
    pub fn update(&mut self, mut octets: &[u8]) {
        while !octets.is_empty() {
            let (part, rest) = octets.split_at(self.room().min(octets.len()));
            self.leaf.update(part);
            self.took(part.len());
            octets = rest;
        }
    }

    /// The next octets of two trees; where they are as many, in less time than one behind the other takes.
    pub fn update_both(a: &mut Self, mut of_a: &[u8], b: &mut Self, mut of_b: &[u8]) {
        while !of_a.is_empty() && !of_b.is_empty() {
            let both = a.room().min(b.room()).min(of_a.len()).min(of_b.len());
            let (part_a, rest_a) = of_a.split_at(both);
            let (part_b, rest_b) = of_b.split_at(both);
            Stream::update_both(&mut a.leaf, part_a, &mut b.leaf, part_b);
            (of_a, of_b) = (rest_a, rest_b);
            a.took(both);
            b.took(both);
        }
        a.update(of_a);
        b.update(of_b);
    }

    /// What is missing of the leaf that has been begun.
    const fn room(&self) -> usize {
        (BLOCK_BYTES - self.leaf_bytes) as usize
    }

    /// Some more of the leaf has been hashed.
    fn took(&mut self, octets: usize) {
        self.leaf_bytes += octets as u32;
        if self.leaf_bytes == BLOCK_BYTES {
            self.end_leaf();
        }
    }

    fn end_leaf(&mut self) {
        self.tree.push(core::mem::take(&mut self.leaf).finish());
        self.leaf_bytes = 0;
    }

    /// The root.
    #[must_use]
    pub fn finish(mut self) -> Hash {
        if self.leaf_bytes > 0 {
            self.end_leaf();
        }
        self.tree.root(self.levels)
    }
}

/// Whether nodes lead up to a root: the tree over `nodes`, at `index` of their level, is joined with its neighbours of each
/// level above it, `uncles`, in order.
#[must_use]
pub fn leads_to(root: &Hash, base: u32, index: u32, nodes: &[Hash], uncles: &[Hash]) -> bool {
    let Ok(count) = u32::try_from(nodes.len()) else { return false };
    if !count.is_power_of_two() || !index.is_multiple_of(count) || uncles.len() > MAX_LEVELS {
        return false;
    }
    let mut tree = Tree::new(base);
    nodes.iter().for_each(|node| tree.push(*node));
    let (mut place, mut node) = (index / count, tree.root(count.trailing_zeros()));
    for uncle in uncles {
        node = if place.is_multiple_of(2) { pair(&node, uncle) } else { pair(uncle, &node) };
        place /= 2;
    }
    place == 0 && node == *root
}

/// The levels of a tree from one level of nodes up, all of them held.
#[derive(Clone, Debug)]
pub struct Levels {
    base: u32,
    levels: Vec<Vec<Hash>>,
}

impl Levels {
    /// Those above the nodes that are `base` levels above the leaves.
    #[must_use]
    pub fn new(base: u32, nodes: Vec<Hash>) -> Self {
        let above = levels_above(nodes.len() as u64);
        let (mut levels, mut blank) = (Vec::with_capacity(above as usize + 1), blank(base));
        let mut top = nodes;
        for _ in 0..above {
            let next = top.chunks(2).map(|two| pair(&two[0], two.get(1).unwrap_or(&blank))).collect();
            levels.push(core::mem::replace(&mut top, next));
            blank = pair(&blank, &blank);
        }
        levels.push(top);
        Self { base, levels }
    }

    /// How many levels are above the lowest.
    #[must_use]
    pub fn above(&self) -> u32 {
        self.levels.len() as u32 - 1
    }

    /// A node by its level above the lowest and its place in it, which may be beyond what there is on the right.
    #[must_use]
    pub fn node(&self, level: u32, place: u32) -> Hash {
        let known = self.levels.get(level as usize).and_then(|level| level.get(place as usize));
        known.copied().unwrap_or_else(|| blank(self.base + level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn sha256(octets: &[u8]) -> Hash {
        Sha256::digest(octets).into()
    }

    /// The tree spelled out: all leaves, then level by level.
    fn spelled(content: &[u8], levels: u32) -> Hash {
        let mut nodes: Vec<Hash> = content.chunks(BLOCK_BYTES as usize).map(sha256).collect();
        nodes.resize(1 << levels, [0; 32]);
        while nodes.len() > 1 {
            nodes = nodes.chunks(2).map(|two| sha256(&two.concat())).collect();
        }
        nodes[0]
    }

    fn content(len: usize) -> Vec<u8> {
        (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    #[test]
    fn a_root_is_that_of_the_tree_spelled_out_however_the_octets_come() {
        let block = BLOCK_BYTES as usize;
        for len in [0, 1, block - 1, block, block + 1, 3 * block, 4 * block, 7 * block + 5, 8 * block] {
            let content = content(len);
            let least = levels_above(len.div_ceil(block) as u64);
            for levels in least..least + 3 {
                for cut in [len.max(1), 1000, 3 * block + 1] {
                    let mut hasher = Hasher::new(levels);
                    content.chunks(cut).for_each(|part| hasher.update(part));
                    assert_eq!(hasher.finish(), spelled(&content, levels), "{len} {levels} {cut}");
                    let (mut a, mut b) = (Hasher::new(levels), Hasher::new(levels + 1));
                    let mut of_b = content.chunks(cut * 2 + 1);
                    for part in content.chunks(cut) {
                        Hasher::update_both(&mut a, part, &mut b, of_b.next().unwrap_or_default());
                    }
                    assert_eq!(a.finish(), spelled(&content, levels), "{len} {levels} {cut}");
                    assert_eq!(b.finish(), spelled(&content, levels + 1), "{len} {levels} {cut}");
                }
            }
        }
    }

    #[test]
    fn levels_are_those_of_a_power_of_two() {
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 9].map(levels_above), [0, 0, 1, 2, 2, 3, 3, 4]);
        assert_eq!(blank(0), [0; 32]);
        assert_eq!(blank(2), spelled(&[], 2));
    }

    #[test]
    fn nodes_lead_to_their_root_and_nothing_else_does() {
        let nodes: Vec<Hash> = (0..21_u8).map(|node| sha256(&[node])).collect();
        let (base, levels) = (3, Levels::new(3, nodes.clone()));
        let mut tree = Tree::new(base);
        nodes.iter().for_each(|node| tree.push(*node));
        let root = tree.root(5);
        assert_eq!((levels.above(), levels.node(5, 0)), (5, root));
        for count in [2_u32, 4, 8, 16, 32] {
            let first = count.trailing_zeros();
            for index in (0..32).step_by(count as usize) {
                let mine: Vec<Hash> = (index..index + count).map(|at| levels.node(0, at)).collect();
                let uncle = |level: u32| levels.node(level, (index >> level) ^ 1);
                let uncles: Vec<Hash> = (first..5).map(uncle).collect();
                assert!(leads_to(&root, base, index, &mine, &uncles), "{count} {index}");
                // Where all is missing, one place is like another.
                assert!(index >= 24 || !leads_to(&root, base, index + count, &mine, &uncles));
                assert!(!leads_to(&root, base, index, &mine[1..], &uncles));
                let mut wrong = mine.clone();
                wrong[count as usize - 1][31] ^= 1;
                assert!(!leads_to(&root, base, index, &wrong, &uncles));
                let longer = [&uncles[..], &[[0; 32]]].concat();
                assert!(!leads_to(&root, base, index, &mine, &longer));
            }
        }
        assert!(!leads_to(&root, base, 0, &[], &[]) && !leads_to(&root, base, 0, &[], &vec![root; 99]));
    }
}
