//! Can realistic BitTorrent experiments be performed on clusters? (P2P 2010): network latency and packet loss.
//!
//! ```text
//! Request -> jobs -> swarms::execute() -> Results -> report() -> claims, pictures, tables, files
//! ```
//! * [`setting`] is the paper's swarms and what is read into them where it is silent; `results` which of them are run.
//! * `published` holds the paper's numbers; `claims` B1 to B14, each with a criterion that is computed from the data.
//!
//! **Invariant:** a criterion knows the published figures, and no parameter of a run does.
//!
//! *What it leaves out:* the measurements of Internet paths (iPlane, B13) that motivate the paper. *How it was
//! validated:* against Table IV, which is complete; `sweep` shows what its silences move.

mod claims;
mod draw;
mod published;
mod results;
pub mod setting;
mod sweep;

pub use results::{Request, Results};
pub use sweep::{sweep_jobs, sweep_report};

use super::swarms::{Command, Paper, Part, Report, show};
use cede_plot::{Cell, Table};
use published::{SYSTEMS, TABLE_IV};

const PAPER: Paper = Paper {
    name: "rao10",
    title: "Network latency and packet loss in BitTorrent experiments",
    lead: "The experiments of \"Can realistic BitTorrent experiments be performed on clusters?\" (P2P 2010) in virtual time: \
300 leechers on three machines with netem-like devices, one seed, 50 MB, the mainline client with upload limits of 10 to 100 \
kB/s. Release 4.0.2, pieces of 256 KiB, kB of 1,024 octets are how the paper is read where it is silent. Nothing was chosen \
by its result.",
    quick: "These are smaller swarms, whose times are not the paper's: 60 leechers and 10 MiB (in Figure 2 as many as it says, and \
4 MiB), RTTs of 0, 400 and 1000 ms, each once.",
};

/// Draws and judges.
#[must_use]
pub fn report(results: &Results) -> Report {
    Report::new(
        PAPER,
        Command { what: "rao10", readings: Vec::new(), quick: results.request.quick },
        claims::claims(results),
        parts(results),
        &results.cells,
    )
}

fn parts(results: &Results) -> Vec<Part> {
    let drawn = |heading: &str, name, figure| Part {
        heading: heading.to_string(),
        prose: String::new(),
        picture: Some((name, figure)),
        table: None,
    };
    let mut parts = vec![
        drawn("Figure 2: RTT estimates by leechers per machine", "fig2", draw::fig2(results)),
        drawn("Figure 4: payloads", "fig4", draw::fig4(results)),
        drawn("Figure 5: completion time by RTT", "fig5", draw::fig5(results)),
        drawn("Figure 6: time between sends", "fig6", draw::fig6(results)),
        drawn("Figure 7: pieces at leechers", "fig7", draw::fig7(results)),
    ];
    let mut systems = drawn("Figures 8 and 9: autonomous systems", "fig8", draw::fig8(results));
    systems.table = Some(systems_table(results));
    parts.push(systems);
    let tabled = |heading: &str, prose: &str, table| Part {
        heading: heading.to_string(),
        prose: prose.to_string(),
        picture: None,
        table: Some(table),
    };
    parts.push(tabled(
        "Tables I to III",
        "Delays in ms of the systems' devices, at egress and at ingress, and the round trips in ms that follow from them.",
        delays_table(),
    ));
    parts.push(tabled(
        "Table IV",
        "Mean completion times in seconds beside the paper's, and how far off they are.",
        table_iv(results),
    ));
    parts
}

fn table_iv(results: &Results) -> Table {
    let mut table = Table::new(["kB/s", "RTT ms", "case", "paper s", "measured s", "off by %", "complete"]);
    for &(kbps, rtt_ms, case, paper_s) in &TABLE_IV {
        let runs = results.table_iv(kbps, rtt_ms, case);
        let times: Vec<f64> = runs.iter().map(|run| run.mean_s).collect();
        let off = 100.0 * (cede_lab::swarm::mean(&times) / paper_s - 1.0);
        let complete = runs.iter().all(|run| run.leechers[0] == run.leechers[1]);
        table.push([
            Cell::number(kbps as f64, 0),
            Cell::number(rtt_ms as f64, 0),
            case.title().into(),
            Cell::number(paper_s, 1),
            show(&times, 0).into(),
            if times.is_empty() { Cell::from("") } else { Cell::number(off, 1) },
            match (times.is_empty(), complete) {
                (true, _) => Cell::from(""),
                (false, true) => "all".into(),
                (false, false) => "not all".into(),
            },
        ]);
    }
    table
}

/// Each system's devices, and how far it is through them to itself and to the others: across two devices there, and two back.
fn delays_table() -> Table {
    let to = (1..=SYSTEMS.len()).map(|number| format!("to AS'{number}"));
    let headings = ["system", "loopback", "Ethernet", "within"].map(str::to_string);
    let mut table = Table::new(headings.into_iter().chain(to));
    for (number, &(loopback, ethernet)) in (1..).zip(&SYSTEMS) {
        let there = SYSTEMS.iter().map(|&(_, other)| 2 * (ethernet + other));
        let delays = [loopback, ethernet, 4 * loopback].into_iter().chain(there);
        let cells = delays.map(|ms| Cell::number(ms as f64, 0));
        table.push([Cell::from(format!("AS{number}"))].into_iter().chain(cells));
    }
    table
}

fn systems_table(results: &Results) -> Table {
    let mut table = Table::new(["kB/s", "systems", "seed in", "T s"]);
    for (setting, runs) in results.systems() {
        let times: Vec<f64> = runs.iter().map(|run| run.mean_s).collect();
        let (systems, seed) = results::systems_of(&setting.key);
        table.push([
            Cell::number(setting.leecher_kbps as f64, 0),
            systems.into(),
            seed.into(),
            show(&times, 0).into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_table_has_their_delays_and_round_trips() {
        let text = delays_table().to_csv();
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[0], "system,loopback,Ethernet,within,to AS'1,to AS'2,to AS'3,to AS'4,to AS'5");
        assert_eq!([rows[1], rows[4]], ["AS1,2,5,8,20,40,60,210,210", "AS4,25,100,100,210,230,250,400,400"]);
        assert_eq!(rows.len(), 6);
    }
}
