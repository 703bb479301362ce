//! Which hosts there are, and what lies between them.

use crate::route::{Edge, LinkId, Routes};
use crate::schedule::{Scheduler, Tournament};
use crate::{Clock, Observer, World};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use cede_net::{Host, HostId, Link, LinkConfig};
use core::fmt;

/// A place where links meet, numbered in the order of names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// Why a topology cannot be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TopologyError {
    /// Two links have one name.
    DuplicateLink(String),
    /// An explicit route does not hang together.
    BrokenRoute {
        /// The host the route begins at.
        from: String,
        /// The host it should reach.
        to: String,
        /// The link at which it breaks, or the route's end.
        at: String,
    },
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateLink(name) => write!(f, "two links are called \"{name}\""),
            Self::BrokenRoute { from, to, at } => {
                write!(f, "the route from \"{from}\" to \"{to}\" breaks at \"{at}\"")
            }
        }
    }
}

impl core::error::Error for TopologyError {}

#[derive(Clone, Debug)]
struct LinkPlan {
    from: String,
    to: String,
    config: LinkConfig,
    is_last_resort: bool,
}

impl LinkPlan {
    /// What it takes to go along it, where routes are sought.
    const fn cost_ns(&self) -> u64 {
        let delay_ns = self.config.delay.as_nanos();
        if self.is_last_resort { delay_ns.saturating_add(LAST_RESORT_NS) } else { delay_ns }
    }
}

/// Longer than any way along other links.
const LAST_RESORT_NS: u64 = 1 << 60;

/// Hosts, nodes and links by name. Hosts are nodes too; a node that no host stands on only forwards.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    hosts: BTreeMap<String, Clock>,
    links: BTreeMap<String, LinkPlan>,
    routes: BTreeMap<(String, String), Vec<String>>,
    stands: BTreeMap<String, (String, String)>,
    duplicate: Option<String>,
}

impl Topology {
    /// A topology of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a host, or changes the clock of the one with this name.
    pub fn host(&mut self, name: &str, clock: Clock) -> &mut Self {
        self.hosts.insert(name.to_string(), clock);
        self
    }

    /// Adds one direction of a wire between two nodes, which need not be hosts.
    pub fn link(&mut self, name: &str, from: &str, to: &str, config: LinkConfig) -> &mut Self {
        let plan = LinkPlan { from: from.to_string(), to: to.to_string(), config, is_last_resort: false };
        if self.links.insert(name.to_string(), plan).is_some() {
            self.duplicate = Some(name.to_string());
        }
        self
    }

    /// Has routes that are sought take a link only where no other leads there, however short it is.
    pub fn last_resort(&mut self, link: &str) -> &mut Self {
        if let Some(plan) = self.links.get_mut(link) {
            plan.is_last_resort = true;
        }
        self
    }

    /// Prescribes the links between two hosts, in order, instead of the route of least delay.
    pub fn route(&mut self, from: &str, to: &str, links: &[&str]) -> &mut Self {
        let links = links.iter().map(|name| (*name).to_string()).collect();
        self.routes.insert((from.to_string(), to.to_string()), links);
        self
    }

    /// Puts a host at nodes that others share, without links of its own: what it sends begins at `sends_from`, what it
    /// receives arrives at `arrives_at`. Either may be the host's own node. Nodes without links are ignored.
    pub fn stand(&mut self, host: &str, sends_from: &str, arrives_at: &str) -> &mut Self {
        self.stands.insert(host.to_string(), (sends_from.to_string(), arrives_at.to_string()));
        self
    }

    /// The number that a host will have.
    #[must_use]
    pub fn host_id(&self, name: &str) -> Option<HostId> {
        self.hosts.keys().position(|host| host == name).map(|index| HostId(index as u32))
    }

    /// The number that a link will have.
    #[must_use]
    pub fn link_id(&self, name: &str) -> Option<LinkId> {
        self.links.keys().position(|link| link == name).map(|index| LinkId(index as u32))
    }

    /// The hosts' names in the order of their numbers.
    pub fn host_names(&self) -> impl Iterator<Item = &str> {
        self.hosts.keys().map(String::as_str)
    }

    /// The links' names in the order of their numbers.
    pub fn link_names(&self) -> impl Iterator<Item = &str> {
        self.links.keys().map(String::as_str)
    }

    /// Builds the world with the default scheduler. `host` is called once per host, in the order of numbers.
    ///
    /// # Errors
    /// A [`TopologyError`] that names what does not fit.
    pub fn build<H: Host, O: Observer>(
        &self,
        seed: u64,
        observer: O,
        host: impl FnMut(HostId, &str) -> H,
    ) -> Result<World<H, O, Tournament>, TopologyError> {
        self.build_with(seed, observer, host)
    }

    /// As [`Topology::build`], with a scheduler of choice.
    ///
    /// # Errors
    /// A [`TopologyError`] that names what does not fit.
    pub fn build_with<H: Host, O: Observer, S: Scheduler>(
        &self,
        seed: u64,
        observer: O,
        mut host: impl FnMut(HostId, &str) -> H,
    ) -> Result<World<H, O, S>, TopologyError> {
        if let Some(name) = &self.duplicate {
            return Err(TopologyError::DuplicateLink(name.clone()));
        }
        let routes = self.routes()?;
        let links = self.links.iter().map(|(name, plan)| Link::new(plan.config, seed, name)).collect();
        let numbered = self.hosts.iter().enumerate();
        let hosts =
            numbered.map(|(index, (name, &clock))| (host(HostId(index as u32), name), clock)).collect();
        Ok(World::new(hosts, links, routes, observer))
    }

    fn routes(&self) -> Result<Routes, TopologyError> {
        let nodes = self.node_numbers();
        let edges = self.links.values().map(|plan| Edge {
            from: nodes[plan.from.as_str()],
            to: nodes[plan.to.as_str()],
            delay_ns: plan.cost_ns(),
        });
        let mut routes = Routes::new(edges.collect(), nodes.len(), self.hosts.len());
        for (host, (from, to)) in &self.stands {
            let number = nodes.get(host.as_str()).filter(|_| self.hosts.contains_key(host));
            let places = (number.map(|&host| HostId(host)), nodes.get(from.as_str()), nodes.get(to.as_str()));
            if let (Some(host), Some(&from), Some(&to)) = places {
                routes.stand(host, from, to);
            }
        }
        for ((from, to), links) in &self.routes {
            self.prescribe(&mut routes, from, to, links)?;
        }
        Ok(routes)
    }

    /// Hosts first, so that a host's node has the host's number; then the other nodes, each group by name.
    fn node_numbers(&self) -> BTreeMap<&str, u32> {
        let mut numbers: BTreeMap<&str, u32> = self.hosts.keys().map(String::as_str).zip(0..).collect();
        let ends = self.links.values().flat_map(|plan| [plan.from.as_str(), plan.to.as_str()]);
        let mut others: Vec<&str> = ends.filter(|name| !self.hosts.contains_key(*name)).collect();
        others.sort_unstable();
        others.dedup();
        let first = numbers.len() as u32;
        numbers.extend(others.into_iter().zip(first..));
        numbers
    }

    fn prescribe(
        &self,
        routes: &mut Routes,
        from: &str,
        to: &str,
        links: &[String],
    ) -> Result<(), TopologyError> {
        let broken =
            |at: &str| TopologyError::BrokenRoute { from: from.into(), to: to.into(), at: at.into() };
        let source = self.host_id(from).ok_or_else(|| broken(from))?;
        let destination = self.host_id(to).ok_or_else(|| broken(to))?;
        let mut place = from;
        let mut path = Vec::new();
        for name in links {
            let plan = self.links.get(name).filter(|plan| plan.from == place).ok_or_else(|| broken(name))?;
            place = &plan.to;
            path.extend(self.link_id(name));
        }
        if place != to {
            return Err(broken(place));
        }
        routes.prescribe(source, destination, &path);
        Ok(())
    }
}
