//! Links by name, and the routes of a graph.

use super::model::{Graph, Link, Routing, Scenario, Topology};
use std::collections::BTreeMap;

/// The name of a dumbbell's bottleneck in metrics and records.
pub const BOTTLENECK: &str = "bottleneck";
/// The name of a dumbbell's way back in metrics and records.
pub const RETURN: &str = "return";

/// One direction of a link of a graph.
#[derive(Clone, PartialEq, Debug)]
pub struct DirectedLink<'a> {
    /// Its name; that of the way back ends in `-back`.
    pub name: String,
    /// The node where it begins.
    pub from: &'a str,
    /// The node where it ends.
    pub to: &'a str,
    /// Its properties.
    pub link: &'a Link,
}

/// What a path costs: the routing's first and second measure, then the links by their places in name order.
type Cost = (u64, u64, Vec<usize>);

impl Graph {
    /// Every direction of every link, by name: an order that does not depend on that of the file.
    #[must_use]
    pub fn directed(&self) -> Vec<DirectedLink<'_>> {
        let mut all = Vec::new();
        for l in &self.links {
            all.push(DirectedLink { name: l.name.clone(), from: &l.from, to: &l.to, link: &l.link });
            if l.both_ways {
                let name = format!("{}-back", l.name);
                all.push(DirectedLink { name, from: &l.to, to: &l.from, link: &l.link });
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The place in [`Graph::directed`] of the best link from one node to a neighbour.
    #[must_use]
    pub fn link_between(&self, from: &str, to: &str) -> Option<usize> {
        let directed = self.directed();
        let between = directed.iter().enumerate().filter(|(_, l)| l.from == from && l.to == to);
        between.min_by_key(|&(i, l)| (l.link.delay, i)).map(|(i, _)| i)
    }

    /// The links of the route from one node to another, as places in [`Graph::directed`]: the stated route, or else
    /// the one that the routing finds. None where there is no way.
    #[must_use]
    pub fn route(&self, from: &str, to: &str) -> Option<Vec<usize>> {
        let stated = self.routes.iter().find(|path| {
            path.first().is_some_and(|first| first == from) && path.last().is_some_and(|last| last == to)
        });
        match stated {
            Some(path) => path.windows(2).map(|pair| self.link_between(&pair[0], &pair[1])).collect(),
            None => self.best_paths(from).remove(to).map(|(.., links)| links),
        }
    }

    /// The best path to every node that can be reached, by relaxing until nothing gets better. Each link adds a hop,
    /// so costs grow strictly along a path and the relaxation ends.
    fn best_paths(&self, from: &str) -> BTreeMap<&str, Cost> {
        let directed = self.directed();
        let mut best: BTreeMap<&str, Cost> = BTreeMap::new();
        if let Some(start) = self.nodes.iter().find(|name| *name == from) {
            best.insert(start, (0, 0, Vec::new()));
        }
        loop {
            let mut improved = false;
            for (i, link) in directed.iter().enumerate() {
                let Some(cost) = best.get(link.from).map(|cost| self.extended(cost, i, link.link)) else {
                    continue;
                };
                if best.get(link.to).is_none_or(|known| cost < *known) {
                    best.insert(link.to, cost);
                    improved = true;
                }
            }
            if !improved {
                return best;
            }
        }
    }

    fn extended(&self, cost: &Cost, index: usize, link: &Link) -> Cost {
        let delay_ns = link.delay.as_nanos();
        let (first, second) = match self.routing {
            Routing::Delay => (delay_ns, 1),
            Routing::Hops => (1, delay_ns),
        };
        let mut links = cost.2.clone();
        links.push(index);
        (cost.0.saturating_add(first), cost.1.saturating_add(second), links)
    }
}

impl Scenario {
    /// Every direction of every link that metrics and records can name, with its name: the two of a dumbbell,
    /// `HOST-up` and `HOST-down` of a star, those of [`Graph::directed`] of a graph. A dumbbell's access links are
    /// not among them.
    #[must_use]
    pub fn named_links(&self) -> Vec<(String, &Link)> {
        match &self.topology {
            Topology::Dumbbell(dumbbell) => {
                vec![(BOTTLENECK.to_string(), &dumbbell.link), (RETURN.to_string(), &dumbbell.return_link)]
            }
            Topology::Star => self.star_links(),
            Topology::Graph(graph) => graph.directed().into_iter().map(|l| (l.name, l.link)).collect(),
        }
    }

    /// Whether the record or an assertion names this link.
    #[must_use]
    pub fn looks_at(&self, link: &str) -> bool {
        let asserted = |assertion: &super::Assertion| {
            assertion.metric.doc.group != "flow" && assertion.metric.subject.as_deref() == Some(link)
        };
        self.record.links.iter().any(|name| name == link) || self.assertions.iter().any(asserted)
    }

    fn star_links(&self) -> Vec<(String, &Link)> {
        let accesses =
            self.hosts.iter().filter_map(|host| host.access.as_ref().map(|access| (&host.name, access)));
        let mut links: Vec<(String, &Link)> = accesses
            .flat_map(|(name, access)| {
                [(format!("{name}-up"), &access.up), (format!("{name}-down"), &access.down)]
            })
            .collect();
        links.sort_by(|a, b| a.0.cmp(&b.0));
        links
    }
}
