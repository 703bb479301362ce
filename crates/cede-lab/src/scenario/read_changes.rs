//! Reading what changes on links while the world runs.

use super::document::Node;
use super::model::Change;
use super::problem::Origin;
use super::reader::{Fields, Reader};
use super::routes::BOTTLENECK;
use super::values::Packets;
use cede_net::LinkChange;
use cede_units::Duration;

/// A change with the place of its link's name, for the check that needs the links.
pub(crate) struct PlacedChange {
    pub change: Change,
    pub link_origin: Origin,
}

/// Reads every change; None where one of them is wrong.
pub(crate) fn read_all(
    reader: &mut Reader<'_>,
    root: &Fields<'_>,
    duration: Option<Duration>,
) -> Option<Vec<PlacedChange>> {
    let nodes = root.list(reader, "change");
    // All of them are read before the first that is wrong ends it.
    let changes: Vec<_> = nodes.iter().map(|node| read_change(reader, node, duration)).collect();
    changes.into_iter().collect()
}

fn read_change(reader: &mut Reader<'_>, node: &Node, duration: Option<Duration>) -> Option<PlacedChange> {
    let fields = Fields::open(reader, "change", Some(node), node.origin)?;
    let at: Option<Duration> = fields.get(reader, "at");
    let link: Option<Option<String>> = fields.maybe(reader, "link");
    let rate = fields.maybe(reader, "rate");
    let delay = fields.maybe(reader, "delay");
    let loss = fields.maybe(reader, "loss");
    let lose: Option<Option<Packets>> = fields.maybe(reader, "lose");
    let at = at?;
    if let Some(duration) = duration.filter(|duration| at >= *duration) {
        let help = vec![format!("allowed: a time before the end of the run, {duration}")];
        reader.report(fields.origin("at"), format!("`at` is {at}, when the run is over"), help);
        return None;
    }
    let what = LinkChange {
        rate: rate?,
        delay: delay?,
        loss: loss?,
        lose_packets: lose?.map_or(0, |packets| packets.0),
    };
    if what == LinkChange::default() {
        let help = vec!["allowed: one or more of `rate`, `delay`, `loss`, `lose`".to_string()];
        reader.report(fields.at, "nothing changes", help);
        return None;
    }
    let link = link?.unwrap_or_else(|| BOTTLENECK.to_string());
    Some(PlacedChange { change: Change { at, link, what }, link_origin: fields.origin("link") })
}
