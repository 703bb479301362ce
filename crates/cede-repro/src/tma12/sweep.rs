//! What the paper leaves open, swept: its swarms at 1 Mbit/s under each reading, judged by the claims themselves.
//!
//! One choice is changed at a time, so that each row says what that choice moves.

use super::claims::{claims, means};
use super::reading::{Readings, Swept};
use super::{PAPER, Paper, Request, Results};
use crate::swarms::{Cells, Claim, Command, Job, Measured, Part, Report, jobs, show};
use cede_plot::{Cell, Table, Verdict};

/// The claims that the sweep judges: those about the swarms that it runs.
const JUDGED: [&str; 12] = ["A5", "A6", "A7", "A8", "A9", "A10", "A11", "A12", "A13", "A14", "A16", "A17"];

/// The swarms of one capacity under each reading, each with its repetitions, reading by reading.
fn plan(request: Request, on_top_of: &Readings) -> Vec<(Swept, u32)> {
    let each = on_top_of.and_each(request);
    each.iter().flat_map(|readings| readings.of(request.at_capacity(1))).collect()
}

/// The swarms of the sweep: each reading, on top of these.
#[must_use]
pub fn sweep_jobs(request: Request, on_top_of: &Readings) -> Vec<Job> {
    jobs(&plan(request, on_top_of), Swept::swarm)
}

/// The table of the sweep.
#[must_use]
pub fn sweep_report(request: Request, on_top_of: &Readings, measured: Vec<Option<Measured>>) -> Report {
    let per_reading: u32 = request.at_capacity(1).iter().map(|(_, repetitions)| repetitions).sum();
    let results = measured
        .chunks(per_reading as usize)
        .map(|runs| Results { request, cells: Cells::sorted(request.at_capacity(1), runs.to_vec()) });
    let prose = "Mean completion at 1 Mbit/s in seconds and TCP's share of the octets under each reading, one choice \
                 changed at a time, and which of the claims about these swarms then hold.";
    let parts = vec![Part {
        heading: "What the paper leaves open".to_string(),
        prose: prose.to_string(),
        picture: None,
        table: Some(table(&on_top_of.and_each(request), results)),
    }];
    let paper = Paper { name: "tma12-sweep", ..PAPER };
    let cells = Cells::sorted(plan(request, on_top_of), measured);
    Report::new(
        paper,
        Command { what: "tma12 --sweep", readings: on_top_of.names(), quick: request.quick },
        Vec::new(),
        parts,
        &cells,
    )
}

fn table(readings: &[Readings], results: impl Iterator<Item = Results>) -> Table {
    let headings = [
        "reading",
        "31: s",
        "10: s",
        "5: s",
        "25, 50, 75 % of 13: s",
        "TCP's octets %",
        "hold",
        "do not hold",
    ];
    let mut table = Table::new(headings);
    for (readings, results) in readings.iter().zip(results) {
        let judged = claims(&results);
        let time = |runs: &[Measured]| show(&means(runs, |run| run.mean_s), 0);
        let mixes = [25, 50, 75].map(|percent| results.mixed(percent, 1));
        let share = |runs: &[Measured]| mean_or_nothing(runs, |run| 100.0 * run.tcp_share);
        table.push([
            Cell::from(readings.says()),
            time(results.homogeneous(31, 1)).into(),
            time(results.homogeneous(10, 1)).into(),
            time(results.homogeneous(5, 1)).into(),
            mixes.map(|runs| mean_or_nothing(runs, |run| run.mean_s)).join(", ").into(),
            mixes.map(share).join(", ").into(),
            of_verdict(&judged, Verdict::Holds).into(),
            of_verdict(&judged, Verdict::Fails).into(),
        ]);
    }
    table
}

fn mean_or_nothing(runs: &[Measured], of: impl Fn(&Measured) -> f64) -> String {
    let values = means(runs, of);
    if values.is_empty() {
        "not measured".to_string()
    } else {
        format!("{:.0}", cede_lab::swarm::mean(&values))
    }
}

/// The numbers of the judged claims with this verdict.
fn of_verdict(claims: &[Claim], verdict: Verdict) -> String {
    let judged = claims.iter().filter(|claim| JUDGED.contains(&claim.id) && claim.verdict() == verdict);
    let ids: Vec<&str> = judged.map(|claim| claim.id).collect();
    if ids.is_empty() { "none".to_string() } else { ids.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::super::reading::READINGS;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_reading_changes_something_and_is_judged_by_its_own_runs() {
        for quick in [true, false] {
            let request = Request { quick };
            let none = Readings::default();
            let (jobs, readings) = (sweep_jobs(request, &none), none.and_each(request));
            let of = |reading: &Readings| -> Vec<String> {
                let own = jobs.iter().filter(|job| job.key.starts_with(&format!("{}, ", reading.says())));
                own.map(|job| format!("{:?}", job.swarm)).collect()
            };
            let different: BTreeSet<Vec<String>> = readings.iter().map(of).collect();
            assert_eq!(different.len(), READINGS.len(), "each reading changes something");
            // Only under the second reading is 31 before 10 before 5.
            let second = &*readings[1].says();
            let measured = jobs.iter().map(|job| {
                let place =
                    ["31 at", "10 at", "5 at"].iter().position(|name| job.key.contains(&format!(", {name}")));
                let mean_s =
                    if job.key.starts_with(second) { 100.0 + place.unwrap_or(3) as f64 } else { 100.0 };
                Some(Measured { mean_s, ..Measured::default() })
            });
            let markdown = sweep_report(request, &none, measured.collect()).to_markdown();
            let row = markdown.lines().find(|line| line.contains(second)).unwrap();
            let columns: Vec<&str> = row.split('|').map(str::trim).collect();
            assert!(columns[7].contains("A9") && columns[7].contains("A17"), "{row}");
            let first = markdown.lines().find(|line| line.contains("as in the report")).unwrap();
            assert!(first.split('|').nth(8).unwrap().contains("A9"), "{first}");
        }
    }

    #[test]
    fn where_nothing_was_run_nothing_is_judged() {
        let request = Request { quick: true };
        let nothing = vec![None; sweep_jobs(request, &Readings::default()).len()];
        let markdown = sweep_report(request, &Readings::default(), nothing).to_markdown();
        assert!(!markdown.contains("NaN") && !markdown.contains("A9"), "{markdown}");
    }
}
