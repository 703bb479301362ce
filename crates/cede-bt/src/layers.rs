//! The hashes of a v2 torrent's pieces, from peers and for them: what a magnet link needs beside the info dictionary.
//!
//! Source: BEP 52, "hash request", "hashes" and "hash reject". Hashes are asked for in runs of at most 512, each with the nodes
//! that join it to the root of its file, so that a run is checked by itself: a peer that sends a wrong one has wasted its own
//! turn alone. How it was validated: the tests below, and libtorrent in both directions.
//!
//! *What it leaves out:* hashes below pieces, by which a bad block could be told within a bad piece. Who asks for those is refused.

use crate::merkle::{HASH_BYTES, Hash, Levels, leads_to};
use crate::metainfo::{FileTree, Info};
use crate::wire::{HashRange, Message};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Hashes in a run: as many as may be asked for.
const RUN: u32 = 512;
/// Runs asked for at once.
const MAX_OPEN: usize = 8;

/// The run of hashes of a file's pieces that begins at `index`.
fn run(tree: &FileTree, piece_length: u32, index: u32) -> HashRange {
    let levels = tree.levels();
    let (length, proofs) = if levels <= RUN.trailing_zeros() { (1 << levels, 0) } else { (RUN, levels - 1) };
    HashRange { root: tree.root, base: tree.piece_levels(piece_length), index, length, proofs }
}

/// How many nodes join a run to what its request asks for: those of the levels that do not follow from the run itself.
const fn uncles(range: &HashRange) -> u32 {
    (range.proofs + 1).saturating_sub(range.length.trailing_zeros())
}

/// How a fetch stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Ask for these.
    Ask(Vec<HashRange>),
    /// All are there.
    Done,
    /// The peer is of no use for this.
    Failed,
}

/// The hashes of all files of several pieces, from one peer.
#[derive(Clone, Debug)]
pub struct Fetch {
    trees: Vec<FileTree>,
    piece_length: u32,
    /// The next run to ask for: of which file, and where in it.
    next: (usize, u32),
    /// What has been asked for, and of which file.
    open: Vec<(HashRange, usize)>,
    layers: BTreeMap<Hash, Vec<u8>>,
}

impl Fetch {
    /// Begins.
    #[must_use]
    pub fn begin(info: &Info) -> Self {
        let trees = info.trees.iter().filter(|tree| tree.pieces > 1).copied().collect();
        let (open, layers) = (Vec::new(), BTreeMap::new());
        Self { trees, piece_length: info.piece_length, next: (0, 0), open, layers }
    }

    /// What to ask for now.
    pub fn due(&mut self) -> Vec<HashRange> {
        let mut due = Vec::new();
        while self.open.len() < MAX_OPEN
            && let Some(tree) = self.trees.get(self.next.0)
        {
            let (file, index) = self.next;
            let range = run(tree, self.piece_length, index);
            // Files of the same content have the same tree.
            let is_known = index == 0 && self.layers.contains_key(&tree.root);
            let is_last = is_known || tree.pieces - index <= range.length;
            self.next = if is_last { (file + 1, 0) } else { (file, index + range.length) };
            if !is_known {
                self.layers.entry(tree.root).or_default();
                self.open.push((range, file));
                due.push(range);
            }
        }
        due
    }

    /// Hashes have come. Those that were not asked for are passed over.
    pub fn receive(&mut self, range: &HashRange, hashes: &[Hash]) -> Progress {
        let Some(at) = self.open.iter().position(|(open, _)| open == range) else {
            return Progress::Ask(Vec::new());
        };
        let whole = (range.length + uncles(range)) as usize;
        if hashes.len() != whole {
            return Progress::Failed;
        }
        let (run, above) = hashes.split_at(range.length as usize);
        if !leads_to(&range.root, range.base, range.index, run, above) {
            return Progress::Failed;
        }
        let (_, file) = self.open.swap_remove(at);
        let layer = self.layers.entry(range.root).or_default();
        // Behind the last piece of the file nothing is but what is missing.
        let real = run.len().min((self.trees[file].pieces - range.index) as usize);
        let (start, octets) = (range.index as usize * HASH_BYTES, run[..real].as_flattened());
        layer.resize(layer.len().max(start + octets.len()), 0);
        layer[start..start + octets.len()].copy_from_slice(octets);
        match self.due() {
            due if due.is_empty() && self.open.is_empty() => Progress::Done,
            due => Progress::Ask(due),
        }
    }

    /// The hashes of a file's pieces one behind the other, by the root of its tree, once all are there.
    #[must_use]
    pub fn layer(&self, root: &Hash) -> Option<&[u8]> {
        self.layers.get(root).map(|layer| &layer[..])
    }
}

/// Answers those who ask.
#[derive(Clone, Debug)]
pub struct Server {
    /// The files of several pieces, by the roots of their trees.
    trees: BTreeMap<Hash, FileTree>,
    requests: u64,
    /// The tree that was asked for last.
    last: Option<(Hash, Levels)>,
}

impl Server {
    /// One that can tell of a torrent; of none but v2 there is anything to tell.
    #[must_use]
    pub fn new(info: &Info) -> Self {
        let several = info.trees.iter().filter(|tree| tree.pieces > 1);
        let trees: BTreeMap<_, _> = several.map(|tree| (tree.root, *tree)).collect();
        let requests = trees.values().map(|tree| u64::from(tree.pieces.div_ceil(RUN))).sum();
        Self { trees, requests, last: None }
    }

    /// How many requests it takes to be told of everything.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// The answer to a request: the hashes, or that they will not be sent.
    #[must_use]
    pub fn answer(&mut self, info: &Info, range: &HashRange) -> Message {
        match self.hashes(info, range) {
            Some(hashes) => Message::Hashes(*range, hashes),
            None => Message::HashReject(*range),
        }
    }

    fn hashes(&mut self, info: &Info, range: &HashRange) -> Option<Vec<Hash>> {
        let HashRange { root, base, index, length, proofs } = *range;
        let tree = self.trees.get(&root)?;
        let is_run = length.is_power_of_two() && (2..=RUN).contains(&length) && index.is_multiple_of(length);
        let is_there = base == tree.piece_levels(info.piece_length) && index < tree.pieces;
        if !is_run || !is_there || length.trailing_zeros() > tree.levels() || proofs >= tree.levels() {
            return None;
        }
        let levels = match self.last.take() {
            Some((last, levels)) if last == root => levels,
            _ => match info.layer(tree) {
                [] => return None,
                layer => Levels::new(base, layer.to_vec()),
            },
        };
        let first = length.trailing_zeros();
        let run = (index..index + length).map(|place| levels.node(0, place));
        let above = (first..first + uncles(range)).map(|level| levels.node(level, (index >> level) ^ 1));
        let hashes = run.chain(above).collect();
        self.last = Some((root, levels));
        Some(hashes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bencode::Form;
    use crate::merkle::Tree;
    use alloc::format;
    use alloc::string::String;

    /// A torrent whose files have so many pieces of 32 KiB, the last with the same content as the first.
    fn torrent(pieces: &[u32]) -> Info {
        let layer = |file: usize, count: u32| -> Vec<Hash> {
            (0..count)
                .map(|at| [[file as u8; 16], [(at % 251) as u8; 16]].concat().try_into().unwrap())
                .collect()
        };
        let (mut tree, mut layers) = (Form::dict(), BTreeMap::new());
        let names: Vec<String> = (0..pieces.len()).map(|at| format!("{at:03}")).collect();
        for (at, &count) in pieces.iter().enumerate() {
            let hashes = layer(if at + 1 == pieces.len() { 0 } else { at }, count);
            let mut above = Tree::new(1);
            hashes.iter().for_each(|hash| above.push(*hash));
            let root = above.root(crate::merkle::levels_above(count.into()));
            let length = u64::from(count) * 32_768 - 5;
            let leaf = Form::dict().with("length", length).with("pieces root", root.to_vec());
            tree = tree.with(&names[at], Form::dict().with("", leaf));
            layers.insert(root, hashes.as_flattened().to_vec());
        }
        let info = Form::dict().with("file tree", tree).with("meta version", 2_u32).with("name", "n");
        let mut info = Info::parse(&info.with("piece length", 32_768_u32).encode()).unwrap();
        assert_eq!(info.lacks_hashes(), pieces.iter().any(|&count| count > 1));
        info.set_layers(|root| layers.get(root).map(|layer| &layer[..])).unwrap();
        info
    }

    fn ask(server: &mut Server, info: &Info, range: &HashRange) -> Vec<Hash> {
        match server.answer(info, range) {
            Message::Hashes(told, hashes) if told == *range => hashes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_hashes_come_from_a_peer_that_has_them() {
        for pieces in [&[2, 1, 2][..], &[513, 3, 1, 512, 513], &[5_000, 1, 5_000], &[1, 1]] {
            let info = torrent(pieces);
            let mut empty = Info::parse(&info.raw).unwrap();
            let (mut fetch, mut server) = (Fetch::begin(&empty), Server::new(&info));
            let mut queue = fetch.due();
            let mut asked = 0;
            // The last first: answers come in any order.
            while let Some(range) = queue.pop() {
                assert!(queue.len() < MAX_OPEN);
                asked += 1;
                match fetch.receive(&range, &ask(&mut server, &info, &range)) {
                    Progress::Ask(more) => queue.extend(more),
                    Progress::Done => assert!(queue.is_empty()),
                    Progress::Failed => panic!("{pieces:?} {range:?}"),
                }
            }
            assert_eq!(asked, server.requests(), "{pieces:?}");
            empty.set_layers(|root| fetch.layer(root)).unwrap();
            assert_eq!(empty, info);
        }
    }

    #[test]
    fn wrong_hashes_are_noticed_and_unasked_ones_passed_over() {
        let info = torrent(&[600, 2]);
        let empty = Info::parse(&info.raw).unwrap();
        let mut server = Server::new(&info);
        let ranges = Fetch::begin(&empty).due();
        assert_eq!(
            ranges.iter().map(|range| (range.length, range.proofs)).collect::<Vec<_>>(),
            [(512, 9), (512, 9), (2, 0)]
        );
        for range in ranges {
            let good = ask(&mut server, &info, &range);
            let mut fetch = Fetch::begin(&empty);
            fetch.due();
            for at in [0, good.len() - 1] {
                let mut bad = good.clone();
                bad[at][7] ^= 1;
                assert_eq!(fetch.clone().receive(&range, &bad), Progress::Failed);
            }
            assert_eq!(fetch.clone().receive(&range, &good[1..]), Progress::Failed);
            let other = HashRange { index: range.index + range.length, ..range };
            assert_eq!(fetch.receive(&HashRange { proofs: 1, ..other }, &good), Progress::Ask(Vec::new()));
        }
    }

    #[test]
    fn what_there_is_not_is_refused() {
        let info = torrent(&[600, 1]);
        let (mut server, good) = (Server::new(&info), run(&info.trees[0], info.piece_length, 0));
        ask(&mut server, &info, &good);
        for bad in [
            HashRange { root: [0; 32], ..good },
            HashRange { root: info.trees[1].root, ..good },
            HashRange { base: 0, ..good },
            HashRange { base: u32::MAX, ..good },
            HashRange { index: 1, ..good },
            HashRange { index: 1024, ..good },
            HashRange { index: u32::MAX, ..good },
            HashRange { length: 0, ..good },
            HashRange { length: 1, ..good },
            HashRange { length: 3, ..good },
            HashRange { length: 1 << 31, ..good },
            HashRange { proofs: 10, ..good },
            HashRange { proofs: u32::MAX, ..good },
        ] {
            assert_eq!(server.answer(&info, &bad), Message::HashReject(bad));
        }
        let lacking = Info::parse(&info.raw).unwrap();
        assert_eq!(Server::new(&lacking).answer(&lacking, &good), Message::HashReject(good));
    }
}
