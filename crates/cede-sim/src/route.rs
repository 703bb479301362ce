//! Routes between hosts: the links of least total delay, computed when first used.

use crate::LinkId;
use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec;
use alloc::vec::Vec;
use cede_net::HostId;
use core::cmp::Reverse;

/// The end of a path in the flat table.
const END: u32 = u32::MAX;

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
    hosts: usize,
    hops: Vec<u32>,
    known: BTreeMap<(HostId, HostId), Option<Hop>>,
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
        Self { edges, outgoing, hosts, hops: vec![END], known: BTreeMap::new(), last: vec![nowhere; hosts] }
    }

    /// The beginning of the path between two hosts; `None` where there is none.
    pub(crate) fn path(&mut self, from: HostId, to: HostId) -> Option<Hop> {
        let (last, hop) = *self.last.get(from.0 as usize)?;
        if last == to {
            return Some(hop);
        }
        let hop = match self.known.get(&(from, to)) {
            Some(&known) => known,
            None => self.discover(from, to),
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
        let hop = links.filter(|links| !links.is_empty()).map(|links| {
            let start = self.hops.len() as u32;
            self.hops.extend_from_slice(links);
            self.hops.push(END);
            Hop(start)
        });
        self.known.insert((from, to), hop);
        hop
    }

    fn discover(&mut self, from: HostId, to: HostId) -> Option<Hop> {
        let path = if to.0 as usize >= self.hosts { None } else { self.shortest(from.0, to.0) };
        self.remember(from, to, path.as_deref())
    }

    /// Dijkstra's algorithm over (delay, links); among equals the link with the smaller number wins.
    fn shortest(&self, from: u32, to: u32) -> Option<Vec<u32>> {
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
        self.trace_back(from, to, &via)
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
