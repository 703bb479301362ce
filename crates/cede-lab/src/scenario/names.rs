//! Flows by name: replicates, the hosts of a dumbbell, and the order in which ids are given out.

use super::flow::Flow;
use super::model::{Clock, Scenario};

/// One flow of the run: a flow of the scenario, or one of its replicates.
#[derive(Clone, PartialEq, Debug)]
pub struct Instance<'a> {
    /// Its name: that of the scenario's flow, with `-1`, `-2` and so on behind it where there are several.
    pub name: String,
    /// The name of the host that sends.
    pub sender: String,
    /// The name of the host that receives.
    pub receiver: String,
    /// What the scenario says of it.
    pub flow: &'a Flow,
}

impl Flow {
    /// The names of its replicates, or its own where it has none.
    pub fn instance_names(&self) -> impl Iterator<Item = String> + '_ {
        (1..=self.count)
            .map(|i| if self.count == 1 { self.name.clone() } else { format!("{}-{i}", self.name) })
    }
}

impl Scenario {
    /// Every flow of the run, by name: an order that does not depend on that of the file.
    #[must_use]
    pub fn instances(&self) -> Vec<Instance<'_>> {
        let mut all: Vec<Instance<'_>> = self.flows.iter().flat_map(instances_of).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The clock of the host with this name. In a dumbbell an entry for `FLOW-sender` holds for all replicates of
    /// FLOW, and one for a single replicate goes before it.
    #[must_use]
    pub fn clock(&self, host: &str) -> Clock {
        let entry = |name: &str| self.hosts.iter().find(|host| host.name == name).map(|host| host.clock);
        entry(host)
            .or_else(|| group_host(host, &self.flows).and_then(|name| entry(&name)))
            .unwrap_or_default()
    }
}

fn instances_of(flow: &Flow) -> impl Iterator<Item = Instance<'_>> {
    flow.instance_names().map(move |name| {
        let (sender, receiver) = match &flow.ends {
            Some(ends) => (ends.from.clone(), ends.to.clone()),
            None => (format!("{name}-sender"), format!("{name}-receiver")),
        };
        Instance { name, sender, receiver, flow }
    })
}

/// `ledbat-sender` for `ledbat-3-sender`.
fn group_host(host: &str, flows: &[Flow]) -> Option<String> {
    let (instance, side) = host.rsplit_once('-')?;
    let (group, number) = instance.rsplit_once('-')?;
    let number: u32 = number.parse().ok()?;
    let is_replicate =
        |flow: &Flow| flow.name == group && flow.count > 1 && (1..=flow.count).contains(&number);
    flows.iter().any(is_replicate).then(|| format!("{group}-{side}"))
}
