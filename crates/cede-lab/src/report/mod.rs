//! What a run showed, as figures, tables, sentences and one page.
//!
//! **Invariant:** every number and every sentence is computed from the [`Outcome`]; nothing here measures.

mod figures;
mod flent;
mod page;
mod phases;
mod story;
mod tables;

pub use figures::{overview, queues, rates, windows};
pub use flent::flent;
pub use page::{Provenance, page};
pub use phases::{Phase, phases};
pub use story::story;
pub use tables::{assertions, flows, links};

use crate::network::Network;
use crate::outcome::Outcome;
use crate::scenario::Scenario;

/// A run to report on.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// What was run.
    pub scenario: &'a Scenario,
    /// The network that it ran on.
    pub network: &'a Network,
    /// What it showed.
    pub outcome: &'a Outcome,
}

/// Runs with more flows than this are shown group by group: a group is a flow of the scenario with its replicates.
const MAX_SINGLE_FLOWS: usize = 8;

/// No more links than this are drawn.
const MAX_DRAWN_LINKS: usize = 4;
/// Links whose mean delay is below this part of the longest one are not drawn.
const LEAST_DRAWN_DELAY: f64 = 0.02;

/// Flows that are shown together: the indices of one flow, or those of all replicates of one.
struct Group<'a> {
    name: &'a str,
    flows: Vec<usize>,
}

impl<'a> Subject<'a> {
    /// The flows one by one where they are few, otherwise group by group.
    fn groups(&self) -> Vec<Group<'a>> {
        if self.outcome.flows.len() > MAX_SINGLE_FLOWS {
            return self.scenario_groups();
        }
        let flows = self.outcome.flows.iter().enumerate();
        flows.map(|(index, flow)| Group { name: &flow.name, flows: vec![index] }).collect()
    }

    /// The metered link in which packets wait longest on average; the first of equals.
    fn main_link(&self) -> usize {
        let delay = |&link: &usize| self.outcome.links[link].delays.mean_ms;
        (0..self.outcome.links.len()).rev().max_by(|a, b| delay(a).total_cmp(&delay(b))).unwrap_or(0)
    }

    /// The metered links in which packets wait noticeably, a few at most, in the order of the network.
    fn drawn_links(&self) -> Vec<usize> {
        let delay = |link: usize| self.outcome.links[link].delays.mean_ms;
        let main = self.main_link();
        let mut links: Vec<usize> = (0..self.outcome.links.len())
            .filter(|&link| link == main || delay(link) > delay(main) * LEAST_DRAWN_DELAY)
            .collect();
        links.sort_by(|&a, &b| delay(b).total_cmp(&delay(a)));
        links.truncate(MAX_DRAWN_LINKS);
        links.sort_unstable();
        links
    }

    /// The flows as the scenario names them, replicates together.
    fn scenario_groups(&self) -> Vec<Group<'a>> {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for (index, flow) in self.outcome.flows.iter().enumerate() {
            match groups.iter_mut().find(|group| group.name == flow.group) {
                Some(group) => group.flows.push(index),
                None => groups.push(Group { name: &flow.group, flows: vec![index] }),
            }
        }
        groups
    }
}
