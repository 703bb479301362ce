//! The report of a run as one self-contained HTML page.

use super::{Subject, assertions, flows, links, overview, story};
use crate::outcome::Verdict;
use cede_plot::html::{Report, Section};

/// Where a run came from, as its report tells.
#[derive(Clone, Copy, Debug)]
pub struct Provenance<'a> {
    /// The command that repeats the run.
    pub command: &'a str,
    /// The scenario as its author wrote it.
    pub source: &'a str,
    /// How long the run took, in seconds.
    pub wall_s: f64,
    /// Names of the run folder's other files.
    pub files: &'a [String],
}

/// The page: what one sees, figures, tables, the scenario, and how to repeat the run.
#[must_use]
pub fn page(subject: &Subject<'_>, verdicts: &[Verdict], provenance: &Provenance<'_>) -> String {
    let report = head(subject, provenance)
        .section(Section::new("What one sees").list(story(subject)).figure(&overview(subject)))
        .section(numbers(subject, verdicts))
        .section(repetition(subject, provenance));
    report.footer(format!("Made by `cede {}`.", env!("CARGO_PKG_VERSION"))).to_html()
}

fn head(subject: &Subject<'_>, provenance: &Provenance<'_>) -> Report {
    let (scenario, outcome) = (subject.scenario, subject.outcome);
    Report::new(format!("Run of {}", scenario.name))
        .lead(scenario.description.clone())
        .fact("simulated", scenario.duration.to_string())
        .fact("took", format!("{:.2} s", provenance.wall_s))
        .fact("seed", scenario.seed.to_string())
        .fact("tape", outcome.tape.clone())
        .fact("scenario", scenario.content_hash().to_string())
}

fn numbers(subject: &Subject<'_>, verdicts: &[Verdict]) -> Section {
    let section =
        Section::new("Numbers").table(&flows(subject)).table(&links(subject)).prose(fairness(subject));
    match assertions(verdicts) {
        Some(table) => section.table(&table.caption("Assertions")),
        None => section,
    }
}

fn fairness(subject: &Subject<'_>) -> String {
    let outcome = subject.outcome;
    let index = |value: Option<f64>| value.map_or("–".to_string(), |value| format!("{value:.3}"));
    let of = if subject.scenario.warmup.is_zero() {
        "of the whole run".to_string()
    } else {
        format!("of the {} s after the warm-up", outcome.span_s)
    };
    format!(
        "All of this is {of}. Jain's fairness index is {} over that time and {} on average over \
         windows of one second. Delays are those of packets in the queues, for a flow on their whole way; share and rate \
         count what reached the receivers, headers included.",
        index(outcome.fairness_long),
        index(outcome.fairness_short),
    )
}

fn repetition(subject: &Subject<'_>, provenance: &Provenance<'_>) -> Section {
    let whole =
        Section::new("The scenario with every default filled in").code("TOML", subject.scenario.to_toml());
    let files = provenance.files.iter().map(|name| format!("[{name}]({name})"));
    Section::new("How to repeat it")
        .prose("The same scenario and seed give the same run to the bit, and the same tape.")
        .code("shell", provenance.command)
        .prose("The scenario:")
        .code("TOML", provenance.source)
        .details(&whole)
        .prose("In the same folder:")
        .list(files)
}
