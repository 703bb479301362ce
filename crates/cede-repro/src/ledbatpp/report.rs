//! What is shown and written: pictures, statements, every phase in numbers, and the duels.

use super::draw::{average, duel_allowed, duel_delays, duel_share, queue, throughput, why};
use super::execute::Results;
use super::measure::Measured;
use super::setting::{ALONE, ALONE_AGAIN, CONTENDER, Contender, PHASES, Phase, Setting};
use super::statements::{at_end, recoveries, show, statements};
use crate::{Statements, drawn, lead, pages, write_all};
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
    /// What was published, judged.
    pub statements: Statements,
    results: Results,
}

impl Report {
    /// Draws and judges.
    #[must_use]
    pub fn of(results: Results) -> Self {
        let pictures =
            vec![("throughput", throughput(&results)), ("queue", queue(&results)), ("why", why(&results))];
        Self { pictures, statements: Statements(statements(&results)), results }
    }

    /// Runs that did not end as they should: connections that broke or delivered other than what was sent.
    #[must_use]
    pub fn broken_runs(&self) -> usize {
        self.results.runs().filter(|run| !run.intact).count()
    }

    /// Each contender in each phase: both throughputs, the queue, and the time to take the link back.
    #[must_use]
    pub fn phases_table(&self) -> Table {
        let headings = ["scavenger", "phase", "Mbit/s", "rival", "share %", "queue ms", "back after s"];
        let mut table = Table::new(headings);
        for (contender, runs) in &self.results.scripts {
            for phase in PHASES {
                table.push(phase_row(*contender, runs, phase));
            }
        }
        table
    }

    /// The duels with BBR.
    #[must_use]
    pub fn duels_table(&self) -> Table {
        let headings =
            ["duel", "share %", "queue ms", "BBR's base RTT ms", "its window's queue ms", "at most ms"];
        let mut table = Table::new(headings);
        for (duel, runs) in &self.results.duels {
            let shares: Vec<f64> = runs.iter().map(duel_share).collect();
            table.push([
                Cell::from(duel.title.clone()),
                show(&shares, 0).into(),
                Cell::number(average(runs, |run| duel_delays(run).0), 1),
                Cell::number(average(runs, |run| duel_delays(run).1), 1),
                Cell::number(average(runs, |run| duel_allowed(run).0), 1),
                Cell::number(average(runs, |run| duel_allowed(run).1), 1),
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
        let mut files = pages("ledbatpp", self.to_html(), self.to_markdown(), &self.to_json());
        for (contender, _) in &self.results.scripts {
            let toml = Setting::script(*contender, 0).to_toml().into_bytes();
            files.push((format!("{}.toml", file_name(*contender)), toml));
        }
        for (name, picture) in &self.pictures {
            files.extend(drawn(name, picture)?);
        }
        write_all(folder, files)
    }

    /// One page that needs nothing else.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut page = Page::new("LEDBAT++ beside CUBIC, BBR and Proteus-P")
            .lead(lead(LEAD, "statements", self.statements.tally()))
            .fact("version", env!("CARGO_PKG_VERSION"))
            .fact("repetitions", self.results.request.repetitions().to_string());
        let parts: [(&str, &str, Table); 3] = [
            ("The script", "", self.statements.table()),
            ("Queueing delay and every phase in numbers", PHASES_NOTE, self.phases_table()),
            ("Why LEDBAT++ takes the link from BBR", WHY, self.duels_table()),
        ];
        for ((_, picture), (heading, prose, table)) in self.pictures.iter().zip(parts) {
            page = page.section(Section::new(heading).prose(prose).figure(picture).table(&table));
        }
        page.section(self.repeat_section()).to_html()
    }

    fn repeat_section(&self) -> Section {
        let run = Setting::script(Contender::PlusPlus, 0).to_toml();
        Section::new("To repeat this")
            .code("shell", self.command())
            .details(&Section::new("A run as a scenario").code("TOML", run))
    }

    /// The command that makes this report.
    #[must_use]
    pub const fn command(&self) -> &'static str {
        if self.results.request.quick { "cede repro ledbatpp --quick" } else { "cede repro ledbatpp" }
    }

    /// The tables, for documents.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        format!(
            "# LEDBAT++ beside CUBIC, BBR and Proteus-P\n\n`{}`\n\n## What was published\n\n{}\n## Every phase\n\n{}\n## \
             Duels with BBR\n\n{}",
            self.command(),
            self.statements.table().to_markdown(),
            self.phases_table().to_markdown(),
            self.duels_table().to_markdown()
        )
    }

    /// Everything, for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let scripts = self.results.scripts.iter().map(|(contender, runs)| {
            let phases = PHASES.map(|phase| phase_json(runs, phase));
            json!({ "scavenger": contender.title(), "phases": phases })
        });
        let duels = self.results.duels.iter().map(|(duel, runs)| {
            json!({
                "duel": duel.title,
                "share_percent": runs.iter().map(duel_share).collect::<Vec<f64>>(),
                "queue_ms": average(runs, |run| duel_delays(run).0),
                "bbr_base_rtt_ms": average(runs, |run| duel_delays(run).1),
                "bbr_window_queue_ms": average(runs, |run| duel_allowed(run).0),
                "bbr_window_queue_ms_p95": average(runs, |run| duel_allowed(run).1),
            })
        });
        json!({
            "paper": "ledbatpp",
            "version": env!("CARGO_PKG_VERSION"),
            "command": self.command(),
            "repetitions": self.results.request.repetitions(),
            "statements": self.statements.to_json(),
            "scripts": scripts.collect::<Vec<Value>>(),
            "duels": duels.collect::<Vec<Value>>(),
        })
    }
}

const fn file_name(contender: Contender) -> &'static str {
    match contender {
        Contender::Ledbat => "ledbat",
        Contender::PlusPlus => "ledbat++",
        Contender::PlusPlusDraft => "ledbat++-draft",
        Contender::ProteusS => "proteus-s",
    }
}

/// Whether the contender comes back from a rival in this phase.
fn is_return(phase: Phase) -> bool {
    phase == ALONE || phase == ALONE_AGAIN
}

fn phase_row(contender: Contender, runs: &[Measured], phase: Phase) -> [Cell; 7] {
    let own = at_end(runs, CONTENDER, phase);
    let rival = phase.rival.map(|name| at_end(runs, name, phase));
    let back = is_return(phase).then(|| recoveries(runs, phase));
    let share =
        phase.rival.map(|name| average(runs, |run| 100.0 * run.share(name, phase.to_s - 20.0, phase.to_s)));
    let queue_ms = average(runs, |run| run.queue_ms(phase.to_s - 20.0, phase.to_s));
    let none = || Cell::from("");
    [
        contender.title().into(),
        phase.title.into(),
        show(&own, 1).into(),
        rival.map_or_else(none, |rival| show(&rival, 1).into()),
        share.map_or_else(none, |share| Cell::number(share, 1)),
        Cell::number(queue_ms, 1),
        back.map_or_else(none, |times| show(&times, 0).into()),
    ]
}

fn phase_json(runs: &[Measured], phase: Phase) -> Value {
    json!({
        "phase": phase.title,
        "from_s": phase.from_s,
        "to_s": phase.to_s,
        "mbps": at_end(runs, CONTENDER, phase),
        "rival": phase.rival,
        "rival_mbps": phase.rival.map(|name| at_end(runs, name, phase)),
        "queue_ms": average(runs, |run| run.queue_ms(phase.to_s - 20.0, phase.to_s)),
        "recovery_s": is_return(phase).then(|| recoveries(runs, phase)),
    })
}

const LEAD: &str = "The evaluation that was published with an implementation of LEDBAT++ (meng-tong/libutp, 2020): each \
scavenger beside CUBIC, BBR and Proteus-P on 50 Mbit/s, 30 ms and 750 kB of buffer. Each statement has a criterion that is \
computed from the data; no parameter was chosen by its result. LEDBAT++ as in the draft was not part of it.";

const PHASES_NOTE: &str = "Means of the last 20 s of each phase, with the range over repetitions. Back: the time until nine \
tenths of what the scavenger comes to in this phase are held for 3 s.";

const WHY: &str = "BBR keeps at most two bandwidth-delay products under way, counted with the largest bandwidth of its last \
ten rounds and the smallest RTT that it has seen, and three bursts. Where the bandwidth is what it gets, and the RTT the true one, which \
slowdowns of LEDBAT++ show it, that is a queue of one base round trip and of the bursts' time. But each slowdown leaves the link to BBR, which \
probes, finds a quarter more at most and remembers it for ten rounds: its window then allows a queue of one and a half base round trips. \
LEDBAT++ comes back to its old window in a few round trips, and where that queue is above its target it yields in proportion. So with a \
target near one base round trip it loses in each slowdown what its quarter of a packet per round trip regains between them; above one and a \
half it goes on growing, BBR's window leaves it less, and it measures less. The last two columns are the queue that BBR's window would hold at \
its throughput: the mean, and what a twentieth of the time exceeds. LEDBAT never empties the queue: BBR takes part of it for propagation, \
and both stay at one half.";

#[cfg(test)]
mod tests {
    use super::super::execute::Request;
    use super::super::measure::tests::run;
    use super::super::setting::duels;
    use super::*;

    fn report() -> Report {
        let scripts = Contender::ALL.map(|who| (who, vec![run("bbr", |_| 24.0)]));
        let duels = duels().into_iter().map(|duel| (duel, vec![run("bbr", |_| 36.0)])).collect();
        Report::of(Results { request: Request { quick: true }, scripts: scripts.into(), duels })
    }

    #[test]
    fn everything_measured_is_in_every_form() {
        let report = report();
        let (hold, fail, open) = report.statements.tally();
        assert_eq!(hold + fail + open, report.statements.0.len());
        assert_eq!(report.phases_table().len(), Contender::ALL.len() * PHASES.len());
        assert_eq!(report.duels_table().len(), duels().len());
        let (html, text, json) = (report.to_html(), report.to_markdown(), report.to_json());
        for statement in &report.statements.0 {
            assert!(text.contains(&statement.judgement.measured), "{}", statement.says);
        }
        assert!(html.contains("<svg") && html.contains("cede repro ledbatpp --quick"));
        assert_eq!(json["duels"][0]["share_percent"][0], 75.0);
        assert_eq!(json["scripts"][1]["phases"][2]["rival_mbps"][0], 24.0);
        assert_eq!(report.broken_runs(), 0);
    }

    #[test]
    fn files_are_written_whole_and_scenarios_can_be_read_again() {
        let folder = std::env::temp_dir().join(format!("cede-ledbatpp-{}", std::process::id()));
        let files = report().write(&folder).unwrap();
        assert!(files.iter().all(|file| std::fs::metadata(file).is_ok_and(|meta| meta.len() > 100)));
        let toml = std::fs::read_to_string(folder.join("ledbat++.toml")).unwrap();
        assert!(cede_lab::scenario::Scenario::parse("ledbat++.toml", &toml).is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
