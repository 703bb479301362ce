//! Reading what a link does to traffic: discipline, marks, policer, token bucket.

use super::document::Node;
use super::model::{PieKind, QueueKind};
use super::reader::{Fields, Reader};
use cede_net::{
    BucketConfig, CodelConfig, Discipline, FqCodelConfig, PieConfig, PieProfile, RedAdaptation, RedConfig,
    Shaper,
};
use cede_units::{Bytes, Rate};

/// Reads `queue = "KIND"` or `queue = { kind = "KIND", ... }`.
pub(crate) fn read_queue(reader: &mut Reader<'_>, link: &Fields<'_>) -> Option<Discipline> {
    let Some(node) = link.node("queue") else { return Some(Discipline::DropTail) };
    let long = node.long_form();
    let kind = kind_of(reader, link, &long)?;
    let path = match kind {
        QueueKind::DropTail | QueueKind::HeadDrop => "queue",
        QueueKind::Codel => "queue.codel",
        QueueKind::FqCodel => "queue.fq-codel",
        QueueKind::Pie => "queue.pie",
        QueueKind::Red => "queue.red",
    };
    let fields = Fields::open(reader, path, Some(&long), node.origin)?;
    match kind {
        QueueKind::DropTail => Some(Discipline::DropTail),
        QueueKind::HeadDrop => Some(Discipline::HeadDrop),
        QueueKind::Codel => read_codel(reader, &fields).map(Discipline::Codel),
        QueueKind::FqCodel => read_fq_codel(reader, &fields).map(Discipline::FqCodel),
        QueueKind::Pie => read_pie(reader, &fields).map(Discipline::Pie),
        QueueKind::Red => read_red(reader, &fields).map(Discipline::Red),
    }
}

/// The discipline's name, before its table can be opened.
fn kind_of(reader: &mut Reader<'_>, link: &Fields<'_>, long: &Node) -> Option<QueueKind> {
    match Fields::quiet("queue", Some(long), link.at) {
        Some(fields) => fields.get(reader, "kind"),
        None => {
            let help = vec!["allowed: a discipline's name, or { kind = \"...\", ... }".to_string()];
            reader.report(long.origin, format!("`queue` is {}", long.describe()), help);
            None
        }
    }
}

fn read_codel(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<CodelConfig> {
    let target = fields.get(reader, "target");
    let interval = fields.get(reader, "interval");
    let max_packet: Option<Bytes> = fields.get(reader, "max_packet");
    let memory: Option<i64> = fields.get(reader, "memory");
    // The kinds bound both, so the casts keep them.
    Some(CodelConfig {
        target: target?,
        interval: interval?,
        max_packet_bytes: max_packet?.0 as u32,
        memory_intervals: memory? as u32,
    })
}

fn read_fq_codel(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<FqCodelConfig> {
    let codel = read_codel(reader, fields);
    let quantum: Option<Bytes> = fields.get(reader, "quantum");
    let queues: Option<i64> = fields.get(reader, "queues");
    let exact = fields.get(reader, "exact");
    let drop_batch: Option<i64> = fields.get(reader, "drop_batch");
    // The kinds bound all three, so the casts keep them.
    Some(FqCodelConfig {
        codel: codel?,
        quantum_bytes: quantum?.0 as u32,
        queues: queues? as u32,
        exact: exact?,
        drop_batch: drop_batch? as u32,
    })
}

fn read_pie(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<PieConfig> {
    let target = fields.get(reader, "target");
    let update = fields.get(reader, "update");
    let burst = fields.get(reader, "burst");
    let profile = match fields.get(reader, "profile")? {
        PieKind::Rfc => PieProfile::Rfc,
        PieKind::Linux => PieProfile::Linux,
    };
    let (alpha, beta) = (fields.get(reader, "alpha"), fields.get(reader, "beta"));
    let mark_max = fields.get(reader, "mark_max");
    let mean: Option<Bytes> = fields.get(reader, "mean_packet");
    let (decay, max_step) = (fields.maybe(reader, "decay"), fields.maybe(reader, "max_step"));
    let high_delay = fields.maybe(reader, "high_delay");
    let first_update = fields.maybe(reader, "first_update");
    Some(PieConfig {
        target: target?,
        update: update?,
        burst: burst?,
        profile,
        alpha: alpha?,
        beta: beta?,
        mark_max: mark_max?,
        mean_packet_bytes: mean?.0 as u32,
        decay: decay?,
        max_step: max_step?,
        high_delay: high_delay?,
        first_update: first_update?,
    })
}

fn read_red(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<RedConfig> {
    let min: Option<f64> = fields.get(reader, "min");
    let max: Option<f64> = fields.get(reader, "max");
    let max_probability = fields.get(reader, "max_p");
    let weight: Option<f64> = fields.get(reader, "weight");
    let gentle = fields.get(reader, "gentle");
    let adaptive = fields.get(reader, "adaptive");
    let adaptation = read_adaptation(reader, fields);
    if adaptive == Some(false) {
        fields.refuse(reader, &ADAPTATION, "only with `adaptive = true`");
    }
    let mean: Option<Bytes> = fields.get(reader, "mean_packet");
    let (min, max) = (min?, max?);
    if max <= min {
        let help = vec![format!("allowed: a number above `min`, {min}")];
        reader.report(fields.origin("max"), format!("`max` is {max}, not above `min`"), help);
        return None;
    }
    if weight == Some(0.0) {
        let help = vec!["allowed: a number above 0, up to 1".to_string()];
        reader.report(fields.origin("weight"), "`weight` is 0: the average would never move", help);
        return None;
    }
    Some(RedConfig {
        min_packets: min,
        max_packets: max,
        max_probability: max_probability?,
        weight: weight?,
        gentle: gentle?,
        adaptive: adaptive?,
        adaptation: adaptation?,
        mean_packet_bytes: mean?.0 as u32,
    })
}

/// The options of RED's adaptation.
const ADAPTATION: [&str; 7] =
    ["adapt_every", "adapt_up", "adapt_down", "adapt_ceiling", "adapt_floor", "adapt_low", "adapt_high"];

/// The `adapt_` options of RED.
fn read_adaptation(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<RedAdaptation> {
    let every = fields.get(reader, "adapt_every");
    let (up, down) = (fields.get(reader, "adapt_up"), fields.get(reader, "adapt_down"));
    let (ceiling, floor) = (fields.get(reader, "adapt_ceiling"), fields.get(reader, "adapt_floor"));
    let low: Option<f64> = fields.get(reader, "adapt_low");
    let high: Option<f64> = fields.get(reader, "adapt_high");
    let (low, high) = (low?, high?);
    if high < low {
        let help = vec![format!("allowed: a number from `adapt_low`, {low}, to 1")];
        let message = format!("`adapt_high` is {high}, below `adapt_low`");
        reader.report(fields.origin("adapt_high"), message, help);
        return None;
    }
    Some(RedAdaptation { every: every?, up: up?, down: down?, ceiling: ceiling?, floor: floor?, low, high })
}

/// Reads `policer = { rate = ..., burst = ... }`.
pub(crate) fn read_policer(reader: &mut Reader<'_>, link: &Fields<'_>) -> Option<Option<BucketConfig>> {
    let Some(node) = link.node("policer") else { return Some(None) };
    let fields = Fields::open(reader, "policer", Some(node), node.origin)?;
    let rate = fields.get(reader, "rate");
    let burst: Option<Bytes> = fields.get(reader, "burst");
    Some(Some(BucketConfig { rate: rate?, burst_bytes: burst?.0 }))
}

/// Reads `burst` and `peak` of a link.
pub(crate) fn read_shaper(
    reader: &mut Reader<'_>,
    burst: &Fields<'_>,
    peak: &Fields<'_>,
) -> Option<Option<Shaper>> {
    let burst: Option<Bytes> = burst.maybe(reader, "burst")?;
    let rate: Option<Rate> = peak.maybe(reader, "peak")?;
    if rate.is_some() && burst.is_none() {
        peak.refuse(reader, &["peak"], "a link without `burst` has no token bucket");
        return None;
    }
    Some(burst.map(|burst| Shaper { burst_bytes: burst.0, peak: rate }))
}
