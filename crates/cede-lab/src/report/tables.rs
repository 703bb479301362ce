//! What flows and links achieved, as tables.

use super::{Group, Subject};
use crate::outcome::{Delays, FlowOutcome, LinkOutcome, Verdict};
use cede_plot::{Cell, Table};

/// One row per flow, or per group where there are many: rate, share, delays, loss.
#[must_use]
pub fn flows(subject: &Subject<'_>) -> Table {
    let headings = [
        "flow",
        "transport",
        "rate (Mbit/s)",
        "share (%)",
        "delay p50 (ms)",
        "p95 (ms)",
        "p99 (ms)",
        "loss (%)",
    ];
    subject.groups().iter().fold(Table::new(headings), |table, group| table.row(flow_row(subject, group)))
}

fn flow_row(subject: &Subject<'_>, group: &Group<'_>) -> Vec<Cell> {
    let members: Vec<&FlowOutcome> = group.flows.iter().map(|&index| &subject.outcome.flows[index]).collect();
    let count = members.len();
    let sum = |pick: fn(&FlowOutcome) -> f64| members.iter().map(|flow| pick(flow)).sum::<f64>();
    let mean =
        |pick: fn(&FlowOutcome) -> f64| members.iter().map(|flow| pick(flow)).sum::<f64>() / count as f64;
    let name = if count == 1 { group.name.to_string() } else { format!("{} (all {count})", group.name) };
    let transport =
        members.first().map(|flow| format!("{}/{}", flow.protocol, flow.controller)).unwrap_or_default();
    vec![
        name.into(),
        transport.into(),
        Cell::number(sum(|flow| flow.rate_mbps), 2),
        Cell::number(sum(|flow| flow.share) * 100.0, 1),
        Cell::number(mean(|flow| flow.delays.p50_ms), 1),
        Cell::number(mean(|flow| flow.delays.p95_ms), 1),
        Cell::number(mean(|flow| flow.delays.p99_ms), 1),
        Cell::number(mean(|flow| flow.loss) * 100.0, 2),
    ]
}

/// No more links than this have a row.
const MAX_LINKS: usize = 8;

/// One row per metered link that carried anything, the busiest where there are many: efficiency, delays, loss, queue
/// index.
#[must_use]
pub fn links(subject: &Subject<'_>) -> Table {
    let headings = [
        "link",
        "efficiency (%)",
        "delay mean (ms)",
        "p50 (ms)",
        "p95 (ms)",
        "p99 (ms)",
        "loss (%)",
        "queue index",
    ];
    let used = || subject.outcome.links.iter().filter(|link| link.rate_mbps > 0.0);
    let mut efficiencies: Vec<f64> = used().map(|link| link.efficiency).collect();
    efficiencies.sort_by(|a, b| b.total_cmp(a));
    let least = efficiencies.get(MAX_LINKS - 1).copied().unwrap_or(0.0);
    let table = match efficiencies.len().saturating_sub(MAX_LINKS) {
        0 => Table::new(headings),
        others => Table::new(headings).caption(format!("The busiest links; {others} more carried something")),
    };
    used()
        .filter(|link| link.efficiency >= least)
        .take(MAX_LINKS)
        .fold(table, |table, link| table.row(link_row(link)))
}

fn link_row(link: &LinkOutcome) -> Vec<Cell> {
    let Delays { mean_ms, p50_ms, p95_ms, p99_ms, .. } = link.delays;
    let mut row = vec![link.name.clone().into(), Cell::number(link.efficiency * 100.0, 1)];
    row.extend([mean_ms, p50_ms, p95_ms, p99_ms].map(|ms| Cell::number(ms, 1)));
    row.extend([Cell::number(link.loss * 100.0, 2), Cell::number(link.queue_index, 3)]);
    row
}

/// One row per assertion, with what was measured; none where the scenario makes none.
#[must_use]
pub fn assertions(verdicts: &[Verdict]) -> Option<Table> {
    let row = |verdict: &Verdict| -> [Cell; 3] {
        [
            verdict.assertion.clone().into(),
            Cell::from(measured(verdict.measured)),
            cede_plot::Verdict::from(verdict.holds).into(),
        ]
    };
    let table = Table::new(["assertion", "measured", "verdict"]).align(1, cede_plot::Align::Right);
    (!verdicts.is_empty()).then(|| verdicts.iter().fold(table, |table, verdict| table.row(row(verdict))))
}

/// A measured value in about four significant digits.
fn measured(value: f64) -> String {
    if value.is_nan() { "nothing".to_string() } else { cede_plot::ticks::short(value) }
}

/// A ratio as a percentage of two significant digits or more.
pub(super) fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    if percent < 9.95 { format!("{percent:.1}\u{a0}%") } else { format!("{percent:.0}\u{a0}%") }
}
