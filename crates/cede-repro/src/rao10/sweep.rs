//! What the paper leaves open, swept: the same cells under each reading, beside the printed times.
//!
//! One choice is changed at a time, so that each row says what that choice moves.

use super::published::{Case, TABLE_IV};
use super::results::Request;
use super::setting::Setting;
use super::{PAPER, Paper};
use crate::swarms::{Cells, Command, Job, Measured, Part, Report, jobs, show};
use cede_bt::Profile;
use cede_bt::picker::PartialRule;
use cede_lab::swarm::{ControllerChoice, TcpStack, mean};
use cede_plot::{Cell, Table};

/// A reading: what it says, and what it changes.
type Reading = (&'static str, fn(&mut Setting));

/// Every reading; the first is the one that the report of the paper uses.
const READINGS: [Reading; 13] = [
    ("as in the report: 4.0.2, 256 KiB, kB of 1,024, 50 x 2^20", |_| {}),
    ("pieces of 64 KiB", |setting| setting.piece_bytes = 64 << 10),
    ("pieces of 128 KiB", |setting| setting.piece_bytes = 128 << 10),
    ("pieces of 512 KiB", |setting| setting.piece_bytes = 512 << 10),
    ("pieces of 1 MiB", |setting| setting.piece_bytes = 1 << 20),
    ("kB of 1,000 octets", |setting| setting.kilobyte = 1_000),
    ("50 MB of 10^6 octets", |setting| setting.content_bytes = setting.content_bytes / (1 << 20) * 1_000_000),
    ("4 upload slots", |setting| setting.profile.slots = Some(4)),
    ("5 upload slots", |setting| setting.profile.slots = Some(5)),
    ("7 upload slots", |setting| setting.profile.slots = Some(7)),
    ("started pieces first only among equally rare ones (5.3)", |setting| {
        setting.profile.picker.partials = PartialRule::EquallyRare;
    }),
    ("up to 300 connections", |setting| {
        (setting.profile.initiate_max, setting.profile.connections_max) = (300, 300);
    }),
    ("libtorrent's rules", |setting| setting.profile = Profile::LIBTORRENT),
];

/// The cells of Table IV that are swept: an upload limit in kB/s and an RTT in ms.
const CELLS: [(u64, u64); 4] = [(20, 0), (20, 400), (100, 0), (100, 1000)];

/// Readings that show where packets are lost: of the kernel, of which the paper says no more than CUBIC, and of the slots.
const LOSSY_READINGS: [Reading; 5] = [
    ("as in the report: today's Linux, 3 to 7 upload slots by the limit", |_| {}),
    ("Linux of 2009", |setting| setting.tcp_stack = TcpStack::Linux26),
    ("Linux of 2009, Reno", |setting| {
        setting.tcp_stack = TcpStack::Linux26;
        setting.tcp = ControllerChoice::named("reno");
    }),
    ("4 upload slots at any limit", |setting| setting.profile.slots = Some(4)),
    ("5 upload slots at any limit", |setting| setting.profile.slots = Some(5)),
];

/// The cells that those are swept over.
const LOSSY: [(u64, u64); 6] = [(10, 1000), (20, 1000), (50, 1000), (100, 0), (100, 400), (100, 1000)];

/// The settings of the sweep, each with its iterations.
fn settings(request: Request) -> Vec<(Setting, u32)> {
    let plain = READINGS.iter().flat_map(|reading| CELLS.map(|cell| (reading, cell, Case::Plain)));
    let lossy = LOSSY_READINGS.iter().flat_map(|reading| LOSSY.map(|cell| (reading, cell, Case::Loss)));
    let setting = |(&(says, change), (kbps, rtt_ms), case): (&Reading, (u64, u64), Case)| {
        let mut setting = request.case(kbps, rtt_ms, case);
        setting.key = key(says, kbps, rtt_ms, case);
        change(&mut setting);
        (setting, if request.quick { 1 } else { 3 })
    };
    plain.chain(lossy).map(setting).collect()
}

fn key(says: &str, kbps: u64, rtt_ms: u64, case: Case) -> String {
    let lossy = if case == Case::Loss { ", 5 % loss" } else { "" };
    format!("{says}, {kbps} kB/s, RTT {rtt_ms} ms{lossy}")
}

/// The swarms of the sweep.
#[must_use]
pub fn sweep_jobs(request: Request) -> Vec<Job> {
    jobs(&settings(request), Setting::swarm)
}

/// The table of the sweep.
#[must_use]
pub fn sweep_report(request: Request, measured: Vec<Option<Measured>>) -> Report {
    let cells = Cells::sorted(settings(request), measured);
    let prose = "Mean completion in seconds under each reading, one choice changed at a time, and how far off the printed \
                 mean. A smaller file and swarm (`--quick`) show what a choice moves, not whether it fits.";
    let parts = vec![
        Part {
            heading: "What the paper leaves open".to_string(),
            prose: prose.to_string(),
            picture: None,
            table: Some(table(&cells, &READINGS, &CELLS, Case::Plain)),
        },
        Part {
            heading: "Kernels and slots, with 5 % of loss".to_string(),
            prose: String::new(),
            picture: None,
            table: Some(table(&cells, &LOSSY_READINGS, &LOSSY, Case::Loss)),
        },
    ];
    let paper = Paper { name: "rao10-sweep", ..PAPER };
    Report::new(
        paper,
        Command { what: "rao10 --sweep", readings: Vec::new(), quick: request.quick },
        Vec::new(),
        parts,
        &cells,
    )
}

fn table(cells: &Cells<Setting>, readings: &[Reading], of: &[(u64, u64)], case: Case) -> Table {
    let heading = of.iter().map(|(kbps, rtt)| format!("{kbps} kB/s, {rtt} ms: s (off by %)"));
    let mut table = Table::new(std::iter::once("reading".to_string()).chain(heading));
    for (says, _) in readings {
        let times = of.iter().map(|&at| Cell::from(cell(cells, says, at, case)));
        table.push(std::iter::once(Cell::from(*says)).chain(times));
    }
    table
}

fn cell(cells: &Cells<Setting>, says: &str, (kbps, rtt_ms): (u64, u64), case: Case) -> String {
    let runs = cells.of(&key(says, kbps, rtt_ms, case));
    // Where nobody completes there is no time, and where some do not the mean is that of the others.
    let times: Vec<f64> = runs.iter().filter(|run| run.leechers[1] > 0).map(|run| run.mean_s).collect();
    let [all, complete] = [0, 1].map(|at| runs.iter().map(|run| run.leechers[at]).sum::<usize>());
    let part = if complete < all { format!(", {complete} of {all}") } else { String::new() };
    let is_it = |row: &&(u64, u64, Case, f64)| (row.0, row.1, row.2) == (kbps, rtt_ms, case);
    let printed = TABLE_IV.iter().find(is_it).map_or(f64::NAN, |row| row.3);
    match times.len() {
        0 if all > 0 => "nobody completes".to_string(),
        0 => show(&times, 0),
        _ => format!("{} ({:+.1}{part})", show(&times, 0), 100.0 * (mean(&times) / printed - 1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reading_changes_something_and_finds_its_runs() {
        let request = Request { quick: true };
        let all = settings(request);
        let bare = |setting: &Setting| format!("{:?}", Setting { key: String::new(), ..setting.clone() });
        let mut different: Vec<String> = all.iter().map(|(setting, _)| bare(setting)).collect();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), all.len(), "each reading changes something");
        let told = |leechers, mean_s| {
            let measured = Measured { leechers, mean_s, ..Measured::default() };
            sweep_report(request, all.iter().map(|_| Some(measured.clone())).collect()).to_markdown()
        };
        assert!(told([300, 300], 1_000.0).contains("1000 (-72.5)"));
        assert!(told([300, 299], 1_000.0).contains("1000 (-72.5, 299 of 300)"));
        let nobody = told([300, 0], 0.0);
        assert!(nobody.contains("nobody completes") && !nobody.contains("-100"), "{nobody}");
    }
}
