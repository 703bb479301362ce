//! Routes between hosts: the links of least total delay, computed when first used.

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec;
use alloc::vec::Vec;
use cede_net::HostId;
use core::cmp::Reverse;

/// One direction of a wire, numbered in the order of names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

/// The end of a path in the flat table.
const END: u32 = u32::MAX;
/// A path that has not been sought.
const UNSOUGHT: u32 = u32::MAX;
/// A path that there is not.
const NO_PATH: u32 = u32::MAX - 1;

/// A link as routing sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) delay_ns: u64,
}

/// A place in the flat table of paths: the next link to take, until the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hop(u32);

/// All paths that have been used, end to end in one table, so that a packet finds its next link by one look-up.
#[derive(Debug)]
pub(crate) struct Routes {
    edges: Vec<Edge>,
    outgoing: Vec<Vec<u32>>,
    /// Where each host sends from and where it receives: its own node unless it stands elsewhere.
    stands: Vec<(u32, u32)>,
    hops: Vec<u32>,
    /// Where each path stands in the table: most are those of many pairs of hosts.
    laid: BTreeMap<Vec<u32>, u32>,
    /// The beginning of the path from each host to each other, in a row per host that has sent anything.
    known: Vec<Vec<u32>>,
    /// The links by which each node is reached best, for every node from which routes have been sought.
    trees: BTreeMap<u32, Vec<u32>>,
    /// The destination that each host sent to last, and the way there: most hosts talk to few.
    last: Vec<(HostId, Hop)>,
}

impl Routes {
    pub(crate) fn new(edges: Vec<Edge>, nodes: usize, hosts: usize) -> Self {
        let mut outgoing = vec![Vec::new(); nodes];
        for (index, edge) in edges.iter().enumerate() {
            outgoing[edge.from as usize].push(index as u32);
        }
        let nowhere = (HostId(END), Hop(0));
        Self {
            edges,
            outgoing,
            stands: (0..hosts as u32).map(|host| (host, host)).collect(),
            hops: vec![END],
            laid: BTreeMap::new(),
            known: vec![Vec::new(); hosts],
            trees: BTreeMap::new(),
            last: vec![nowhere; hosts],
        }
    }

    /// Puts a host at two nodes: what it sends begins at the one, what it receives arrives at the other.
    pub(crate) fn stand(&mut self, host: HostId, sends_from: u32, arrives_at: u32) {
        self.stands[host.0 as usize] = (sends_from, arrives_at);
    }

    /// The beginning of the path between two hosts; `None` where there is none.
    pub(crate) fn path(&mut self, from: HostId, to: HostId) -> Option<Hop> {
        let (last, hop) = *self.last.get(from.0 as usize)?;
        if last == to {
            return Some(hop);
        }
        let known = self.known[from.0 as usize].get(to.0 as usize).copied();
        let hop = match known {
            None | Some(UNSOUGHT) => self.discover(from, to),
            Some(NO_PATH) => None,
            Some(hop) => Some(Hop(hop)),
        }?;
        self.last[from.0 as usize] = (to, hop);
        Some(hop)
    }

    /// The link at a hop; `None` at the end of the path.
    pub(crate) fn link(&self, hop: Hop) -> Option<LinkId> {
        match self.hops[hop.0 as usize] {
            END => None,
            link => Some(LinkId(link)),
        }
    }

    pub(crate) const fn after(hop: Hop) -> Hop {
        Hop(hop.0 + 1)
    }

    pub(crate) fn prescribe(&mut self, from: HostId, to: HostId, path: &[LinkId]) {
        let links: Vec<u32> = path.iter().map(|link| link.0).collect();
        self.remember(from, to, Some(&links));
    }

    fn remember(&mut self, from: HostId, to: HostId, links: Option<&[u32]>) -> Option<Hop> {
        let hop = links.filter(|links| !links.is_empty()).map(|links| Hop(self.lay(links)));
        let hosts = self.stands.len();
        let row = &mut self.known[from.0 as usize];
        if row.is_empty() {
            row.resize(hosts, UNSOUGHT);
        }
        if let Some(place) = row.get_mut(to.0 as usize) {
            *place = hop.map_or(NO_PATH, |hop| hop.0);
        }
        hop
    }

    /// The place of a path in the table, where it is put if it is new.
    fn lay(&mut self, links: &[u32]) -> u32 {
        if let Some(&start) = self.laid.get(links) {
            return start;
        }
        let start = self.hops.len() as u32;
        self.hops.extend_from_slice(links);
        self.hops.push(END);
        self.laid.insert(links.to_vec(), start);
        start
    }

    fn discover(&mut self, from: HostId, to: HostId) -> Option<Hop> {
        let (start, _) = self.stands[from.0 as usize];
        let (_, end) = *self.stands.get(to.0 as usize)?;
        let path = self.shortest(start, end);
        self.remember(from, to, path.as_deref())
    }

    /// The best path between two nodes. A node with a single way out shares the tree of the node behind it.
    fn shortest(&mut self, from: u32, to: u32) -> Option<Vec<u32>> {
        if from == to {
            return Some(Vec::new());
        }
        let only = match self.outgoing[from as usize][..] {
            [link] => Some(link),
            _ => None,
        };
        let root = only.map_or(from, |link| self.edges[link as usize].to);
        if !self.trees.contains_key(&root) {
            let tree = self.tree(root);
            self.trees.insert(root, tree);
        }
        let mut path = self.trace_back(root, to, &self.trees[&root])?;
        if let Some(link) = only {
            path.insert(0, link);
        }
        Some(path)
    }

    /// Dijkstra's algorithm over (delay, links); among equals the link with the smaller number wins.
    fn tree(&self, from: u32) -> Vec<u32> {
        let mut best = vec![(u64::MAX, u64::MAX); self.outgoing.len()];
        let mut via = vec![END; self.outgoing.len()];
        let mut frontier = BinaryHeap::from([Reverse((0, 0, from))]);
        best[from as usize] = (0, 0);
        while let Some(Reverse((delay, hops, node))) = frontier.pop() {
            if (delay, hops) > best[node as usize] {
                continue;
            }
            for &link in &self.outgoing[node as usize] {
                let edge = self.edges[link as usize];
                let reached = (delay.saturating_add(edge.delay_ns), hops + 1);
                if reached < best[edge.to as usize] {
                    best[edge.to as usize] = reached;
                    via[edge.to as usize] = link;
                    frontier.push(Reverse((reached.0, reached.1, edge.to)));
                }
            }
        }
        via
    }

    fn trace_back(&self, from: u32, to: u32, via: &[u32]) -> Option<Vec<u32>> {
        let mut links = Vec::new();
        let mut node = to;
        while node != from {
            let link = via[node as usize];
            if link == END {
                return None;
            }
            links.push(link);
            node = self.edges[link as usize].from;
        }
        links.reverse();
        Some(links)
    }
}
