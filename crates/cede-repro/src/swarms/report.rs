//! A paper's report: claims, pictures and tables, on one page and as files.

use super::cells::Cells;
use super::claim::Claim;
use super::plan::Keyed;
use crate::{Tally, drawn, lead, pages, tally, write_all};
use cede_plot::html::{Report as Page, Section};
use cede_plot::{Align, Cell, Figure, Table};
use serde_json::{Value, json};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What is said about a paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paper {
    /// The name of the command and of files.
    pub name: &'static str,
    /// The page's title.
    pub title: &'static str,
    /// What the paper is about, how it was repeated, and what was left open.
    pub lead: &'static str,
    /// What is smaller than that with `--quick`.
    pub quick: &'static str,
}

/// What a person types for a report, behind `cede repro`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// The paper, with `--sweep` or without.
    pub what: &'static str,
    /// With `--reading`: what the paper leaves open, read in these ways.
    pub readings: Vec<&'static str>,
    /// With `--quick`: less than the paper has.
    pub quick: bool,
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cede repro {}", self.what)?;
        for reading in &self.readings {
            write!(f, " --reading '{}'", reading.replace('\'', "'\\''"))?;
        }
        f.write_str(if self.quick { " --quick" } else { "" })
    }
}

/// A part of the report.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its heading.
    pub heading: String,
    /// What there is to know.
    pub prose: String,
    /// The picture with the name of its files.
    pub picture: Option<(&'static str, Figure)>,
    /// The numbers.
    pub table: Option<Table>,
}

/// A report.
#[derive(Clone, Debug)]
pub struct Report {
    /// About which paper.
    pub paper: Paper,
    /// The command that makes it.
    pub command: Command,
    /// The claims.
    pub claims: Vec<Claim>,
    /// Everything else.
    pub parts: Vec<Part>,
    /// Runs there are, and runs there would be with every repetition of everything.
    pub coverage: [usize; 2],
    /// Swarms in which something arrived that was not the torrent's.
    pub broken_runs: usize,
    /// Everything that was measured, for programs.
    pub data: Value,
}

impl Report {
    /// A report, with what is told of the runs themselves.
    #[must_use]
    pub fn new<S: Keyed>(
        paper: Paper,
        command: Command,
        claims: Vec<Claim>,
        parts: Vec<Part>,
        cells: &Cells<S>,
    ) -> Self {
        let broken_runs = cells.runs().filter(|run| !run.is_intact()).count();
        Self { paper, command, claims, parts, coverage: cells.coverage(), broken_runs, data: cells.to_json() }
    }

    /// How many claims hold, do not hold, and are open.
    #[must_use]
    pub fn tally(&self) -> Tally {
        tally(self.claims.iter().map(Claim::verdict))
    }

    /// The claims as a table.
    #[must_use]
    pub fn claims_table(&self) -> Table {
        let headings = ["", "from", "the paper says", "measured", "verdict", "criterion"];
        let mut table = Table::new(headings).align(4, Align::Left);
        for claim in &self.claims {
            table.push([
                Cell::from(claim.id),
                claim.place.into(),
                claim.says.into(),
                claim.judgement.measured.clone().into(),
                claim.verdict().into(),
                claim.criterion.into(),
            ]);
        }
        table
    }

    /// The same for a narrow screen.
    #[must_use]
    pub fn short_table(&self) -> Table {
        let mut table = Table::new(["", "the paper says", "measured", "verdict"]);
        for claim in &self.claims {
            table.push([
                Cell::from(claim.id),
                claim.says.into(),
                claim.judgement.measured.clone().into(),
                claim.verdict().into(),
            ]);
        }
        table
    }

    /// The page, the tables as Markdown, everything as JSON, and each picture as SVG and PNG. Answers with what was
    /// written, the page first.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut files = pages(self.paper.name, self.to_html(), self.to_markdown(), &self.to_json());
        for (name, picture) in self.parts.iter().filter_map(|part| part.picture.as_ref()) {
            files.extend(drawn(name, picture)?);
        }
        write_all(folder, files)
    }

    /// One page that needs nothing else.
    #[must_use]
    pub fn to_html(&self) -> String {
        let lead = lead(&self.told(), "claims", self.tally());
        let mut page = Page::new(self.paper.title).lead(lead).fact("version", env!("CARGO_PKG_VERSION"));
        page = page.section(Section::new("Claims").table(&self.claims_table()));
        for part in &self.parts {
            let mut section = Section::new(part.heading.as_str()).prose(&part.prose);
            if let Some((_, picture)) = &part.picture {
                section = section.figure(picture);
            }
            if let Some(table) = &part.table {
                section = section.table(table);
            }
            page = page.section(section);
        }
        page.section(Section::new("To repeat this").code("shell", self.command.to_string())).to_html()
    }

    /// The tables, for documents.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n\n`{}`\n\n{}\n", self.paper.title, self.command, self.told());
        if !self.claims.is_empty() {
            text += &format!("\n## Claims\n\n{}", self.claims_table().to_markdown());
        }
        for part in &self.parts {
            if let Some(table) = &part.table {
                text += &format!("\n## {}\n\n{}\n\n{}", part.heading, part.prose, table.to_markdown());
            }
        }
        text
    }

    /// What was repeated, and how much of it.
    fn told(&self) -> String {
        let smaller = if self.command.quick { format!(" {}", self.paper.quick) } else { String::new() };
        format!("{}{smaller} {}", self.paper.lead, self.coverage_words())
    }

    fn coverage_words(&self) -> String {
        match self.coverage {
            [there, all] if there == all => format!("All {all} runs are in."),
            [there, all] => {
                format!("{there} of {all} runs are in; the same command goes on with the others.")
            }
        }
    }

    /// Everything, for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let claims = self.claims.iter().map(|claim| {
            json!({
                "id": claim.id,
                "place": claim.place,
                "says": claim.says,
                "criterion": claim.criterion,
                "measured": claim.judgement.measured,
                "verdict": claim.verdict().words(),
            })
        });
        json!({
            "paper": self.paper.name,
            "version": env!("CARGO_PKG_VERSION"),
            "command": self.command.to_string(),
            "runs_there": self.coverage[0],
            "runs_in_all": self.coverage[1],
            "claims": claims.collect::<Vec<Value>>(),
            "runs": self.data,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who reads a report made with `--quick` beside the paper's numbers has to know that the swarms were smaller.
    #[test]
    fn a_quick_report_says_what_is_smaller() {
        let said = |quick| {
            let report = Report {
                paper: Paper { name: "x", title: "X", lead: "A hundred peers.", quick: "Ten of them." },
                command: Command { what: "x", readings: Vec::new(), quick },
                claims: Vec::new(),
                parts: Vec::new(),
                coverage: [2, 2],
                broken_runs: 0,
                data: Value::Null,
            };
            [report.to_markdown(), report.to_html()]
                .map(|text| text.contains("A hundred peers. Ten of them. All 2"))
        };
        assert_eq!((said(true), said(false)), ([true; 2], [false; 2]));
    }
}
