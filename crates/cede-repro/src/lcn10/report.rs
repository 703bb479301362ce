//! What is shown and written: figures, the claims about them, the other simulators' points, and the sensitivity.

use super::claim::Claim;
use super::figures::FigureReport;
use super::plan::FigureNumber;
use super::results::{Metric, Results};
use super::{arithmetic, background, others, sensitivity, simulators, statements};
use crate::{Tally, drawn, lead, pages, tally, write_all};
use cede_plot::Table;
use cede_plot::html::{Report as Page, Section};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};

/// What a reproduction showed.
#[derive(Clone, Debug)]
pub struct Report {
    /// The figures that were asked for.
    pub figures: Vec<FigureReport>,
    /// What the paper leaves open, where that was asked for: means and ranges over repetitions.
    pub sensitivity: Option<Table>,
    /// The same for a narrow screen: means alone.
    pub short_sensitivity: Option<Table>,
    /// Which rules of TCP-LP and NICE give what, where that was asked for.
    pub background: Option<Table>,
    /// The same for a narrow screen.
    pub short_background: Option<Table>,
    /// TCP-LP's share by its arithmetic, its smallest window and the offset of clocks, where that was asked for.
    pub arithmetic: Option<Table>,
    /// The same for a narrow screen.
    pub short_arithmetic: Option<Table>,
    results: Results,
}

impl Report {
    /// Draws and judges.
    #[must_use]
    pub fn of(results: Results) -> Self {
        let figures =
            results.request.figures().into_iter().map(|figure| FigureReport::of(figure, &results)).collect();
        let wanted = results.request.with_sensitivity();
        let sensitivity = wanted.then(|| sensitivity::table(&results, true));
        let short_sensitivity = wanted.then(|| sensitivity::table(&results, false));
        let background = wanted.then(|| background::table(&results, true));
        let short_background = wanted.then(|| background::table(&results, false));
        let arithmetic = wanted.then(|| arithmetic::table(&results, true));
        let short_arithmetic = wanted.then(|| arithmetic::table(&results, false));
        Self {
            figures,
            sensitivity,
            short_sensitivity,
            background,
            short_background,
            arithmetic,
            short_arithmetic,
            results,
        }
    }

    /// How many claims hold, do not hold, and are open.
    #[must_use]
    pub fn tally(&self) -> Tally {
        tally(self.claims().map(|claim| claim.judgement.verdict))
    }

    fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.figures.iter().flat_map(|figure| &figure.claims)
    }

    /// The paper's 35 statements with what the claims about each measured, where all figures were asked for.
    #[must_use]
    pub fn statements(&self) -> Option<Table> {
        let complete = self.figures.len() == FigureNumber::ALL.len();
        complete.then(|| statements::table(&self.claims().collect::<Vec<&Claim>>()))
    }

    /// Runs that did not end as they should: connections that broke or delivered other than what was sent.
    #[must_use]
    pub fn broken_runs(&self) -> usize {
        self.results.points().iter().flat_map(|(_, runs)| runs).filter(|run| !run.intact).count()
    }

    /// The page, the tables as Markdown, everything as JSON, and each picture as SVG and PNG. Answers with what was
    /// written, the page first.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut files = pages("lcn10", self.to_html(), self.to_markdown(), &self.to_json());
        for (name, picture) in self.figures.iter().flat_map(|figure| &figure.pictures) {
            files.extend(drawn(name, picture)?);
        }
        write_all(folder, files)
    }

    /// One page that needs nothing else.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut page = Page::new("LCN 2010: transport protocols with lower than best effort priority")
            .lead(lead(LEAD, "claims", self.tally()))
            .fact("version", env!("CARGO_PKG_VERSION"))
            .fact("repetitions", self.results.request.repetitions().to_string())
            .fact("points", self.results.points().len().to_string());
        for figure in &self.figures {
            page = page.section(figure_section(figure));
        }
        if let Some(table) = &self.statements() {
            page = page.section(Section::new("The paper's statements").table(table));
        }
        if let Some(table) = &self.sensitivity {
            let section = Section::new("What the paper leaves open").prose(OPEN_POINTS).table(table);
            page = page.section(section);
        }
        if let Some(table) = &self.background {
            page = page.section(self.background_section(table));
        }
        if let Some(table) = &self.arithmetic {
            page = page.section(Section::new(ARITHMETIC).prose(WHICH_ARITHMETIC).table(table));
        }
        if let Some([compared, phase]) = &self.others() {
            let section = Section::new(OTHERS).prose(WHICH_OTHERS).table(compared).prose(WHICH_PHASE);
            page = page.section(section.table(phase));
        }
        page.section(self.repeat_section()).footer(SMALL_PRINT).to_html()
    }

    /// What the paper has no figure for, beside ns-2 and ns-3, and what decides beside a primary that comes and goes.
    fn others(&self) -> Option<[Table; 2]> {
        let wanted = self.results.request.with_sensitivity();
        wanted
            .then(|| [simulators::table(&self.results, others::COMPARED), others::phase_table(&self.results)])
    }

    fn background_section(&self, table: &Table) -> Section {
        let compared = simulators::table(&self.results, background::COMPARED);
        Section::new("Which TCP-LP, which NICE")
            .prose(WHICH_RULES)
            .table(table)
            .details(&Section::new("Point by point beside ns-2 and ns-3").table(&compared))
    }

    fn repeat_section(&self) -> Section {
        let section = Section::new("To repeat this").code("shell", self.command());
        match self.results.points().first() {
            Some((point, _)) => {
                section.details(&Section::new("A run as a scenario").code("TOML", point.example().to_toml()))
            }
            None => section,
        }
    }

    /// The command that makes this report.
    #[must_use]
    pub fn command(&self) -> String {
        let request = &self.results.request;
        let mut command = "cede repro lcn10".to_string();
        for figure in &request.figures {
            command += &format!(" --figure {}", figure.number());
        }
        for (wanted, flag) in [(request.sensitivity, " --sensitivity"), (request.quick, " --quick")] {
            command += if wanted { flag } else { "" };
        }
        command
    }

    /// The tables, for documents.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# LCN 2010, reproduced\n\n`{}`\n", self.command());
        for figure in &self.figures {
            let number = figure.figure.number();
            text += &format!("\n## Fig. {number}: claims\n\n{}", figure.claims_table().to_markdown());
            text +=
                &format!("\n## Fig. {number}: beside ns-2 and ns-3\n\n{}", figure.comparison.to_markdown());
        }
        if let Some(table) = &self.sensitivity {
            text += &format!("\n## What the paper leaves open\n\n{}", table.to_markdown());
        }
        if let Some(table) = &self.background {
            let compared = simulators::table(&self.results, background::COMPARED);
            text += &format!("\n## Which TCP-LP, which NICE\n\n{}", table.to_markdown());
            text += &format!("\n### Beside ns-2 and ns-3\n\n{}", compared.to_markdown());
        }
        if let Some(table) = &self.arithmetic {
            text += &format!("\n## {ARITHMETIC}\n\n{}", table.to_markdown());
        }
        if let Some([compared, phase]) = &self.others() {
            text += &format!("\n## {OTHERS}\n\n{}", compared.to_markdown());
            text += &format!("\n### What LEDBAT loses decides\n\n{}", phase.to_markdown());
        }
        if let Some(table) = &self.statements() {
            text += &format!("\n## The paper's statements\n\n{}", table.to_markdown());
        }
        text
    }

    /// Everything, for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let claims: Vec<Value> = self.claims().map(claim_json).collect();
        let points: Vec<Value> =
            self.results.points().iter().map(|(point, _)| self.point_json(point.curve, point.x)).collect();
        json!({
            "paper": "lcn10",
            "version": env!("CARGO_PKG_VERSION"),
            "command": self.command(),
            "repetitions": self.results.request.repetitions(),
            "claims": claims,
            "points": points,
        })
    }

    fn point_json(&self, curve: &str, x: f64) -> Value {
        let metrics = JSON_METRICS.iter().map(|&(name, metric)| {
            (name.to_string(), serde_json::to_value(self.results.at(curve, x, metric)).unwrap_or(Value::Null))
        });
        json!({ "curve": curve, "x": x, "metrics": metrics.collect::<serde_json::Map<String, Value>>() })
    }
}

const JSON_METRICS: &[(&str, Metric)] = &[
    ("efficiency", Metric::Efficiency),
    ("goodput_efficiency", Metric::Goodput),
    ("tcp_percent", Metric::TcpPercent),
    ("fairness_long", Metric::FairnessLong),
    ("fairness_short", Metric::FairnessShort),
    ("fairness_others", Metric::FairnessOthers),
    ("queue_index", Metric::QueueIndex),
    ("loss_percent", Metric::LossPercent),
    ("first_kbps", Metric::FirstRate),
];

fn claim_json(claim: &Claim) -> Value {
    json!({
        "figure": claim.figure.number(),
        "place": claim.place,
        "says": claim.says,
        "criterion": claim.criterion,
        "measured": claim.judgement.measured,
        "verdict": claim.judgement.verdict.words(),
        "note": claim.note,
        "statement": claim.statement,
    })
}

fn figure_section(report: &FigureReport) -> Section {
    let mut section = Section::new(format!("Figure {}", report.figure.number()));
    for (_, picture) in &report.pictures {
        section = section.figure(picture);
    }
    section
        .table(&report.claims_table().caption("What the paper says, and what was measured"))
        .details(&Section::new("Point by point beside ns-2 and ns-3").table(&report.comparison))
}

const LEAD: &str = "The experiments of *A hands-on assessment of transport protocols with lower than best effort \
priority* (Carofiglio, Muscariello, Rossi, Testa; LCN 2010). Each claim of the paper \
has a criterion that is computed from the data; no parameter was chosen by its result.";

const OPEN_POINTS: &str = "Each row alters one choice of the figures. T: one LEDBAT flow with a target of so many \
percent of the buffer beside one Reno flow; N: so many LEDBAT flows beside one Reno flow; G1/G2 and RTT: two LEDBAT \
flows (or Reno, where it says so) whose gains or round-trip times have this ratio. Means, with the range over \
repetitions where it shows.";

const WHICH_RULES: &str = "So many flows of each variant beside one Reno flow, and one alone. TCP-LP: by its paper's \
equations, or as Linux runs it on millisecond stamps; there the rate of the peer's clock is known or estimated, and numbers have 64 \
or 32 bits. NICE: by its smallest window in packets; Linux before 4.2 is in slow start at ssthresh, too.";

/// The heading of the table of arithmetic, smallest windows and clocks.
pub const ARITHMETIC: &str = "TCP-LP's share at N = 10, by arithmetic, smallest window and clocks";

const WHICH_ARITHMETIC: &str = "What each of ten TCP-LP flows beside one Reno flow has, in per cent, as the receivers' clocks are so far \
ahead of the senders'. The smallest window is what a second early congestion within an inference phase leaves, in packets. \
The paper has about 5 %.";

const OTHERS: &str = "What the paper has no figure for, beside ns-2 and ns-3";

const WHICH_OTHERS: &str = "One flow and two of a kind on the paper's path; two Vegas flows whose round-trip times differ; and on \
50 Mbit/s, 30 ms and 500 packets of buffer a primary from 30 to 80 s beside LEDBAT from 0 to 120 s.";

const WHICH_PHASE: &str = "A primary's slow start ends by overflowing the buffer. Whether one of the packets that are then lost is LEDBAT's \
depends on the order in which packets of the two flows arrive, which starts, acknowledgements and noise shift. If so LEDBAT halves its \
window, and the primary has that much more for the rest of its time.";

const SMALL_PRINT: &str = "x_i are octets that left the bottleneck, headers included. eta: their sum over the capacity. \
F: Jain's index. B: mean queue after each enqueue over the buffer. P_l: drops over arrivals. Reno, NICE and TCP-LP \
run over the model TCP, LEDBAT over uTP.";

#[cfg(test)]
mod tests {
    use super::super::figures::plan;
    use super::super::measure::Measured;
    use super::super::plan::{Plan, Request};
    use super::*;

    fn measured(flows: usize) -> Measured {
        Measured {
            efficiency: 0.99,
            goodput_efficiency: 0.95,
            rates_mbps: vec![9.9 / flows as f64; flows],
            fairness_long: 1.0,
            fairness_short: 0.9,
            fairness_others: 1.0,
            queue_index: 0.5,
            queue_index_over_time: 0.5,
            loss: 0.001,
            loss_others: 0.0,
            timeouts: 0,
            intact: true,
            series: None,
        }
    }

    fn report(figures: &[FigureNumber]) -> Report {
        let request = Request { figures: figures.to_vec(), sensitivity: false, quick: true };
        let Plan { points, .. } = plan(&request);
        let with_runs = |point: super::super::Point| {
            let flows = point.parts.iter().map(|part| part.count as usize).sum();
            (point, vec![measured(flows); 3])
        };
        Report::of(Results::from_points(request, points.into_iter().map(with_runs).collect()))
    }

    #[test]
    fn every_claim_says_what_was_measured_and_is_in_every_form() {
        let report = report(&FigureNumber::ALL);
        let (html, markdown, json) = (report.to_html(), report.to_markdown(), report.to_json());
        assert!(report.claims().count() > 30);
        for claim in report.claims() {
            assert!(!claim.judgement.measured.is_empty(), "{}", claim.says);
            assert!(markdown.contains(claim.says) && html.contains(claim.place), "{}", claim.says);
        }
        assert_eq!(json["claims"].as_array().map(Vec::len), Some(report.claims().count()));
        let (hold, fail, open) = report.tally();
        assert_eq!(hold + fail + open, report.claims().count());
        assert!(fail > 0, "equal shares everywhere contradict the paper");
    }

    #[test]
    fn every_comparison_has_rows() {
        for figure in report(&FigureNumber::ALL).figures {
            assert!(figure.comparison.len() >= 4, "{:?}", figure.figure);
        }
    }

    #[test]
    fn every_statement_of_the_paper_has_a_claim() {
        let report = report(&FigureNumber::ALL);
        for number in 1..=35 {
            assert!(report.claims().any(|claim| claim.statement == number), "{number}");
        }
        assert_eq!(report.statements().map(|table| table.len()), Some(35));
    }

    #[test]
    fn the_command_repeats_the_request() {
        assert_eq!(report(&[FigureNumber::Fig4]).command(), "cede repro lcn10 --figure 4 --quick");
    }
}
