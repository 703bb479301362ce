//! Experimental assessment of BitTorrent completion time in heterogeneous TCP/uTP swarms (TMA 2012).
//!
//! ```text
//! Request -> jobs -> swarms::execute() -> Results -> report() -> claims, pictures, tables, files
//! ```
//! * [`setting`] is the paper's swarms and what is read into them where it is silent.
//! * `claims` holds A1 to A20, each with a criterion that is computed from the data; `draw` the four figures.
//! * `reading` reads what the paper leaves open in other ways; `sweep` runs the same swarms under each, and judges them by the same claims.
//!
//! **Invariant:** a criterion knows the published figures, and no parameter of a run does.
//!
//! *What it leaves out:* uTorrent's own choker and pipeline, which are not public. *How it was validated:* the swarm of
//! `tests/swarm_reference.rs`, which was run with real clients too.

mod claims;
mod draw;
mod reading;
mod results;
pub mod setting;
mod sweep;

pub use reading::{Readings, UnknownReading};
pub use results::{Request, Results};
pub use sweep::{sweep_jobs, sweep_report};

use super::swarms::{Command, Paper, Part, Report, show};
use cede_plot::{Cell, Table};

const PAPER: Paper = Paper {
    name: "tma12",
    title: "BitTorrent completion time in heterogeneous TCP/uTP swarms",
    lead: "The experiments of \"Experimental assessment of BitTorrent completion time in heterogeneous TCP/uTP swarms\" \
(TMA 2012) in virtual time: 76 peers behind 1, 2 or 5 Mbit/s uplinks with a second of buffer share 100 MB over TCP CUBIC and \
uTP. The paper's client, uTorrent 3.0, is closed: its race of transports is as the paper describes it; choker and pipeline \
are libtorrent's with uTorrent's four slots, and pieces are 1 MiB. Nothing was chosen by its result.",
    quick: "These are smaller swarms, whose times are not the paper's: 40 peers, 30 MB in pieces of 256 KiB, 1 Mbit/s \
alone, each once.",
};

/// Draws and judges.
#[must_use]
pub fn report(results: &Results) -> Report {
    draw_and_judge(results, &Readings::default())
}

/// The same of swarms under other readings.
fn draw_and_judge(results: &Results, readings: &Readings) -> Report {
    let first = (!readings.is_empty()).then(|| Part {
        heading: "Another reading".to_string(),
        prose: format!(
            "What the paper leaves open is read in another way here: {}. All else is as without.",
            readings.says()
        ),
        picture: None,
        table: None,
    });
    let (name, figures) =
        if readings.is_empty() { (PAPER.name, FIGURES) } else { ("tma12-reading", READING_FIGURES) };
    Report::new(
        Paper { name, ..PAPER },
        Command { what: "tma12", readings: readings.names(), quick: results.request.quick },
        claims::claims(results),
        first.into_iter().chain(parts(results, figures)).collect(),
        &results.cells,
    )
}

/// What the files of figures are called; those of another reading do not take the place of the report's.
const FIGURES: [&str; 4] = ["fig1", "fig2", "fig3", "fig4"];
const READING_FIGURES: [&str; 4] = ["reading-fig1", "reading-fig2", "reading-fig3", "reading-fig4"];

fn parts(results: &Results, [fig1, fig2, fig3, fig4]: [&'static str; 4]) -> [Part; 6] {
    let picture = |name, heading: &str, figure| Part {
        heading: heading.to_string(),
        prose: String::new(),
        picture: Some((name, figure)),
        table: None,
    };
    let tabled = |heading: &str, prose: &str, table| Part {
        heading: heading.to_string(),
        prose: prose.to_string(),
        picture: None,
        table: Some(table),
    };
    [
        picture(fig1, "Figure 1: target delay", draw::fig1(results)),
        picture(fig2, "Figure 2: homogeneous swarms", draw::fig2(results)),
        picture(fig3, "Figure 3: heterogeneous swarms", draw::fig3(results)),
        picture(fig4, "Figure 4: completion time by traffic and by queue", draw::fig4(results)),
        tabled("The swarms of Figures 2 to 4", "", swarms_table(results)),
        tabled(
            "Questions that the paper left",
            "Several peers behind one uplink, targets and capacities that differ, and leechers that come and go.",
            questions_table(results),
        ),
    ]
}

fn swarms_table(results: &Results) -> Table {
    let headings = ["swarm", "complete", "T s", "sd s", "queue ms", "busy %", "TCP %", "seed sent files"];
    let mut table = Table::new(headings);
    for (setting, runs) in results.swarms() {
        table.push(row(&setting.key, runs));
    }
    table
}

fn questions_table(results: &Results) -> Table {
    let headings = ["question", "complete", "T s", "sd s", "queue ms", "busy %", "TCP %", "seed sent files"];
    let mut table = Table::new(headings);
    for key in results::QUESTIONS {
        table.push(row(key, results.of(key)));
    }
    table
}

fn row(key: &str, runs: &[super::swarms::Measured]) -> [Cell; 8] {
    let all = |of: &dyn Fn(&super::swarms::Measured) -> f64| runs.iter().map(of).collect::<Vec<f64>>();
    let complete: usize = runs.iter().map(|run| run.leechers[1]).sum();
    let leechers: usize = runs.iter().map(|run| run.leechers[0]).sum();
    [
        Cell::from(key.to_string()),
        format!("{complete} of {leechers}").into(),
        show(&all(&|run| run.mean_s), 0).into(),
        show(&all(&|run| run.sd_s), 1).into(),
        show(&all(&|run| run.queue_ms), 0).into(),
        show(&all(&|run| 100.0 * run.busy_share), 0).into(),
        show(&all(&|run| 100.0 * run.tcp_share), 1).into(),
        show(&all(&|run| run.seed_copies), 2).into(),
    ]
}
