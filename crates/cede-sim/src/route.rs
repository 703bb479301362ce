//! Routes between hosts: the links of least total delay, computed when first used.

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec;
use alloc::vec::Vec;
use cede_net::HostId;
use core::cmp::Reverse;

/// One direction of a wire, numbered in the order of names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

/// The end of a path in the flat table; also, no link.
const END: u32 = u32::MAX;
/// A path that has not been sought, and a row that there is not yet.
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

/// How a host's packets leave it.
#[derive(Clone, Copy, Debug)]
struct Exit {
    /// The one link out of it, which then is no part of the paths in its row; or [`END`].
    first: u32,
    /// Its row in the table of paths; [`UNSOUGHT`] as long as it has sent nothing.
    row: u32,
}

/// All paths that have been used. Hosts with a single link out, to the same node, share the paths that begin there: in a star of
/// hosts these are as many as there are hosts, not as pairs, and lie near the processor.
#[derive(Debug)]
pub(crate) struct Routes {
    edges: Vec<Edge>,
    outgoing: Vec<Vec<u32>>,
    /// Where each host sends from and where it receives: its own node unless it stands elsewhere.
    stands: Vec<(u32, u32)>,
    exits: Vec<Exit>,
    /// The beginning of the path to each host, in a row per node that paths begin at, or per host that has some prescribed.
    rows: Vec<Vec<u32>>,
    /// The row of paths that begin at a node.
    shared: BTreeMap<u32, u32>,
    hops: Vec<u32>,
    /// Where each path stands in the table.
    laid: BTreeMap<Vec<u32>, u32>,
    /// The links by which each node is reached best, for every node from which routes have been sought.
    trees: BTreeMap<u32, Vec<u32>>,
}

impl Routes {
    pub(crate) fn new(edges: Vec<Edge>, nodes: usize, hosts: usize) -> Self {
        let mut outgoing = vec![Vec::new(); nodes];
        for (index, edge) in edges.iter().enumerate() {
            outgoing[edge.from as usize].push(index as u32);
        }
        Self {
            edges,
            outgoing,
            stands: (0..hosts as u32).map(|host| (host, host)).collect(),
            exits: vec![Exit { first: END, row: UNSOUGHT }; hosts],
            rows: Vec::new(),
            shared: BTreeMap::new(),
            hops: vec![END],
            laid: BTreeMap::new(),
            trees: BTreeMap::new(),
        }
    }

    /// Puts a host at two nodes: what it sends begins at the one, what it receives arrives at the other.
    pub(crate) fn stand(&mut self, host: HostId, sends_from: u32, arrives_at: u32) {
        self.stands[host.0 as usize] = (sends_from, arrives_at);
    }

    /// The first link of the path between two hosts and where the path goes on behind it; `None` where there is none.
    pub(crate) fn path(&mut self, from: HostId, to: HostId) -> Option<(LinkId, Hop)> {
        let exit = match *self.exits.get(from.0 as usize)? {
            Exit { row: UNSOUGHT, .. } => self.find_exit(from),
            known => known,
        };
        let hop = match *self.rows[exit.row as usize].get(to.0 as usize)? {
            UNSOUGHT => self.discover(exit, from, to)?,
            NO_PATH => return None,
            hop => Hop(hop),
        };
        if exit.first == END {
            return self.step(hop);
        }
        // The row is of where the link leads, and says nothing of where it comes from.
        let ((start, _), (_, end)) = (self.stands[from.0 as usize], self.stands[to.0 as usize]);
        (start != end).then_some((LinkId(exit.first), hop))
    }

    /// The link at a hop and where the path goes on behind it; `None` at the end.
    pub(crate) fn step(&self, hop: Hop) -> Option<(LinkId, Hop)> {
        match self.hops[hop.0 as usize] {
            END => None,
            link => Some((LinkId(link), Hop(hop.0 + 1))),
        }
    }

    pub(crate) fn prescribe(&mut self, from: HostId, to: HostId, path: &[LinkId]) {
        if self.exits[from.0 as usize].row == UNSOUGHT {
            self.exits[from.0 as usize].row = self.add_row();
        }
        let row = self.exits[from.0 as usize].row as usize;
        let links: Vec<u32> = path.iter().map(|link| link.0).collect();
        self.rows[row][to.0 as usize] = self.lay(&links);
    }

    /// A row of which no path has been sought.
    fn add_row(&mut self) -> u32 {
        self.rows.push(vec![UNSOUGHT; self.stands.len()]);
        self.rows.len() as u32 - 1
    }

    /// How a host's packets leave it, where no path of it is prescribed.
    #[cold]
    #[inline(never)]
    fn find_exit(&mut self, host: HostId) -> Exit {
        let (start, _) = self.stands[host.0 as usize];
        let (first, root) = match self.outgoing[start as usize][..] {
            [link] => (link, self.edges[link as usize].to),
            _ => (END, start),
        };
        let row = self.shared.get(&root).copied().unwrap_or_else(|| self.add_row());
        self.shared.insert(root, row);
        let exit = Exit { first, row };
        self.exits[host.0 as usize] = exit;
        exit
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

    /// Seeks the best path from where an exit's row begins.
    #[cold]
    #[inline(never)]
    fn discover(&mut self, exit: Exit, from: HostId, to: HostId) -> Option<Hop> {
        let ((start, _), (_, end)) = (self.stands[from.0 as usize], self.stands[to.0 as usize]);
        let root = if exit.first == END { start } else { self.edges[exit.first as usize].to };
        if !self.trees.contains_key(&root) {
            let tree = self.tree(root);
            self.trees.insert(root, tree);
        }
        let path = self.trace_back(root, end, &self.trees[&root]);
        let hop = path.map(|links| self.lay(&links));
        self.rows[exit.row as usize][to.0 as usize] = hop.unwrap_or(NO_PATH);
        hop.map(Hop)
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

#[cfg(test)]
mod tests {
    use super::*;

    const LINKS: [(u32, u32); 8] = [(0, 3), (3, 0), (1, 3), (3, 1), (2, 3), (3, 2), (3, 4), (4, 3)];

    /// Hosts 0 to 2 around node 3, behind which stands node 4; each link takes as long as its number says.
    fn star() -> Routes {
        let edge = |(number, (from, to)): (u64, (u32, u32))| Edge { from, to, delay_ns: 100 + number };
        Routes::new((0..).zip(LINKS).map(edge).collect(), 5, 3)
    }

    fn walk(routes: &mut Routes, from: u32, to: u32) -> Option<Vec<u32>> {
        let mut next = Some(routes.path(HostId(from), HostId(to))?);
        let mut links = Vec::new();
        while let Some((link, hop)) = next {
            links.push(link.0);
            next = routes.step(hop);
        }
        Some(links)
    }

    #[test]
    fn hosts_of_a_star_share_what_lies_behind_its_middle() {
        let mut routes = star();
        for _ in 0..2 {
            for (from, to, links) in [(0, 1, [0, 3]), (1, 0, [2, 1]), (0, 2, [0, 5]), (1, 2, [2, 5])] {
                assert_eq!(walk(&mut routes, from, to), Some(links.to_vec()));
            }
        }
        assert_eq!(routes.rows.len(), 1);
        // Nobody is told of a way to himself, although there is one to him from the middle.
        assert_eq!(walk(&mut routes, 0, 0), None);
        assert_eq!(walk(&mut routes, 0, 9), None);
    }

    #[test]
    fn prescribed_paths_hold_for_their_host_alone() {
        let mut routes = star();
        let detour = [0, 6, 7, 3].map(LinkId);
        routes.prescribe(HostId(0), HostId(1), &detour);
        routes.prescribe(HostId(0), HostId(0), &[LinkId(0), LinkId(1)]);
        assert_eq!(walk(&mut routes, 0, 1), Some(vec![0, 6, 7, 3]));
        assert_eq!(walk(&mut routes, 0, 0), Some(vec![0, 1]));
        assert_eq!(walk(&mut routes, 0, 2), Some(vec![0, 5]));
        assert_eq!(walk(&mut routes, 2, 1), Some(vec![4, 3]));
        assert_eq!(walk(&mut routes, 2, 2), None);
    }

    #[test]
    fn hosts_that_stand_elsewhere_send_from_there() {
        let mut routes = star();
        routes.stand(HostId(2), 4, 4);
        assert_eq!(walk(&mut routes, 2, 0), Some(vec![7, 1]));
        assert_eq!(walk(&mut routes, 0, 2), Some(vec![0, 6]));
        assert_eq!(walk(&mut routes, 2, 2), None);
    }

    #[test]
    fn where_no_link_leads_there_is_no_path() {
        let mut routes = Routes::new(vec![Edge { from: 0, to: 1, delay_ns: 1 }], 3, 3);
        assert_eq!(walk(&mut routes, 0, 1), Some(vec![0]));
        for (from, to) in [(0, 2), (1, 0), (2, 0), (1, 1)] {
            assert_eq!(walk(&mut routes, from, to), None, "{from} {to}");
        }
    }
}
