//! What is shown and written: pictures, statements, every case in numbers, the peers.

use super::draw;
use super::execute::{Request, Results, World};
use super::measure::{Estimate, Measured};
use super::peers::Peer;
use super::setting::{Case, Conditions};
use super::statements::statements;
use crate::{Statements, drawn, lead, pages, write_all};
use cede_meter::Estimator;
use cede_plot::html::{Report as Page, Section};
use cede_plot::{Cell, Figure, Table};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};

/// What a reproduction showed.
#[derive(Clone, Debug)]
pub struct Report {
    /// The pictures, each with the name of its files.
    pub pictures: Vec<(&'static str, Figure)>,
    /// What the paper says, judged.
    pub statements: Statements,
    results: Results,
}

impl Report {
    /// Draws and judges.
    #[must_use]
    pub fn of(results: Results) -> Self {
        let mut pictures = Vec::new();
        if !results.cases.is_empty() {
            pictures.push(("validation", draw::validation(&results)));
            pictures.push(("errors", draw::errors(&results.cases)));
        }
        if !results.real.is_empty() {
            pictures.push(("real-validation", draw::real_validation(&results)));
            pictures.push(("real-errors", draw::errors(&results.real)));
        }
        if !results.peers.is_empty() {
            pictures.push(("peers", draw::peers(&results)));
        }
        Self { pictures, statements: Statements(statements(&results)), results }
    }

    /// Each case, world and estimator: samples, means, errors.
    #[must_use]
    pub fn cases_table(&self) -> Table {
        let headings = [
            "seen, hidden",
            "world",
            "estimate",
            "samples",
            "true mean ms",
            "time mean %",
            "sample mean %",
            "error p50 ms",
            "p95",
            "p99",
        ];
        let mut table = Table::new(headings);
        let mut rows: Vec<(&str, &Measured)> = self.worlds().collect();
        // Both worlds side by side.
        let place = |measured: &Measured| Case::all().iter().position(|case| *case == measured.case);
        rows.sort_by_key(|(_, measured)| place(measured));
        for (world, measured) in rows {
            for estimate in &measured.estimates {
                table.push(case_row(world, measured, estimate));
            }
        }
        table
    }

    /// Every case of both worlds.
    fn worlds(&self) -> impl Iterator<Item = (&'static str, &Measured)> {
        let simulated = self.results.cases.iter().map(|measured| ("simulated", measured));
        simulated.chain(self.results.real.iter().map(|measured| ("real", measured)))
    }

    /// The page, the tables as Markdown, everything as JSON, and each picture as SVG and PNG. Answers with what was
    /// written, the page first.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut files = pages("bufferbloat", self.to_html(), self.to_markdown(), &self.to_json());
        for (name, picture) in &self.pictures {
            files.extend(drawn(name, picture)?);
        }
        write_all(folder, files)
    }

    /// One page that needs nothing else.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut page = Page::new("Passive measurement of bufferbloat")
            .lead(lead(LEAD, "statements", self.statements.tally()))
            .fact("version", env!("CARGO_PKG_VERSION"))
            .fact("peers", self.results.peers.len().to_string());
        page = page.section(Section::new("What the paper says").table(&self.statements.table()));
        for (name, picture) in &self.pictures {
            page = page.section(Section::new(heading(name)).figure(picture));
        }
        let cases = Section::new("Every case").prose(ERRORS_NOTE).table(&self.cases_table());
        page.section(cases).section(self.repeat_section()).to_html()
    }

    fn repeat_section(&self) -> Section {
        let case =
            self.results.cases.first().map(|measured| measured.case.scenario(&Conditions::USUAL).to_toml());
        let section = Section::new("To repeat this").code("shell", self.command());
        match case {
            Some(toml) => section.details(&Section::new("A run as a scenario").code("TOML", toml)),
            None => section,
        }
    }

    /// The command that makes this report.
    #[must_use]
    pub const fn command(&self) -> &'static str {
        let Request { world, quick, captured } = &self.results.request;
        match (captured, *quick) {
            (Some(_), _) => "cede repro bufferbloat --capture FILE",
            _ if matches!(world, World::Real) => "cede repro bufferbloat --world netns",
            (None, true) => "cede repro bufferbloat --quick",
            (None, false) => "cede repro bufferbloat",
        }
    }

    /// The tables, for documents.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        format!(
            "# Passive measurement of bufferbloat\n\n`{}`\n\n## What the paper says\n\n{}\n## Every case\n\n{}",
            self.command(),
            self.statements.table().to_markdown(),
            self.cases_table().to_markdown()
        )
    }

    /// Everything, for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let cases = self.worlds().map(|(world, measured)| {
            json!({
                "world": world,
                "seen": measured.case.seen.title(),
                "hidden": measured.case.hidden.title(),
                "longest_ms": measured.longest_ms,
                "estimates": measured.estimates.iter().map(estimate_json).collect::<Vec<Value>>(),
            })
        });
        json!({
            "paper": "bufferbloat",
            "version": env!("CARGO_PKG_VERSION"),
            "command": self.command(),
            "statements": self.statements.to_json(),
            "cases": cases.collect::<Vec<Value>>(),
            "peers": self.results.peers.iter().map(peer_json).collect::<Vec<Value>>(),
        })
    }
}

fn heading(picture: &str) -> &'static str {
    match picture {
        "validation" => "Inferred and true delay, simulated",
        "errors" => "Errors, simulated",
        "real-validation" => "Inferred and true delay, real",
        "real-errors" => "Errors, real",
        _ => "Many peers",
    }
}

const fn name(estimator: Estimator) -> &'static str {
    match estimator {
        Estimator::Direct => "direct",
        Estimator::Echoed => "paper",
    }
}

fn case_row(world: &'static str, measured: &Measured, estimate: &Estimate) -> [Cell; 10] {
    let percent = |ratio: f64| Cell::number(100.0 * ratio, 1);
    [
        measured.case.title().into(),
        world.into(),
        name(estimate.estimator).into(),
        Cell::number(estimate.summary.samples as f64, 0),
        Cell::number(estimate.true_mean_ms, 1),
        percent(estimate.mean_ratio()),
        percent(estimate.sample_mean_ratio()),
        Cell::number(estimate.error_ms(0.5), 2),
        Cell::number(estimate.error_ms(0.95), 2),
        Cell::number(estimate.error_ms(0.99), 2),
    ]
}

fn estimate_json(estimate: &Estimate) -> Value {
    json!({
        "estimator": name(estimate.estimator),
        "samples": estimate.summary.samples,
        "time_mean_ms": estimate.summary.time_mean_ms,
        "sample_mean_ms": estimate.summary.sample_mean_ms,
        "true_mean_ms": estimate.true_mean_ms,
        "error_p50_ms": estimate.error_ms(0.5),
        "error_p95_ms": estimate.error_ms(0.95),
        "error_p99_ms": estimate.error_ms(0.99),
    })
}

fn peer_json(peer: &Peer) -> Value {
    serde_json::to_value(peer).unwrap_or_default()
}

const LEAD: &str = "The validation and the analysis of \"Passive bufferbloat measurement exploiting transport layer \
information\" (GLOBECOM 2013): a host behind a slow uplink sends to an observer, who infers from uTP's headers and from TCP's \
timestamps how long its packets queued, traffic that the observer does not see included. The truth is the queue's own log. \
Each statement has a criterion that is computed from the data.";

const ERRORS_NOTE: &str = "Means as parts of the true mean over time. The mean over samples, which the paper reports, misleads \
where the sender sends least when the queue is longest, as LEDBAT does beside hidden TCP; the mean over time does not.";

#[cfg(test)]
mod tests {
    use super::super::measure::validate;
    use super::super::setting::{Hidden, Seen};
    use super::*;

    fn report() -> Report {
        let case = Case { seen: Seen::UtpHeartbeat, hidden: Hidden::Chirp };
        let peer = |name: &str, utp_ms, tcp_ms| Peer {
            name: name.to_string(),
            utp_ms,
            tcp_ms,
            utp_time_mean_ms: utp_ms,
            tcp_time_mean_ms: tcp_ms,
        };
        let peers = vec![peer("1", Some(80.0), Some(300.0)), peer("2", Some(90.0), None)];
        let cases = vec![validate(case, &Conditions::USUAL, &|| false).unwrap()];
        let real = cases.clone();
        let request = Request { quick: true, ..Request::default() };
        Report::of(Results { request, cases, real, peers })
    }

    #[test]
    fn everything_measured_is_in_every_form_and_every_file() {
        let report = report();
        let (hold, fail, open) = report.statements.tally();
        assert_eq!(hold + fail + open, report.statements.0.len());
        assert!(open > 0, "one case does not answer everything");
        assert_eq!(report.cases_table().len(), 2 * report.results.cases[0].estimates.len(), "both worlds");
        assert_eq!(report.pictures.len(), 5);
        let (html, json) = (report.to_html(), report.to_json());
        assert!(html.contains("<svg") && html.contains("cede repro bufferbloat --quick"));
        assert_eq!(json["peers"][0]["tcp_ms"], 300.0);
        let folder = std::env::temp_dir().join(format!("cede-bufferbloat-{}", std::process::id()));
        let files = report.write(&folder).unwrap();
        assert!(files.iter().all(|file| std::fs::metadata(file).is_ok_and(|meta| meta.len() > 100)));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
