//! The evaluation published with LEDBAT++.

use super::{Args, failed, folder, jobs, judge_runs, metered, not_run, tally_and_page, tell, titled};
use crate::failure::Failure;
use crate::interrupt;
use crate::screen::Screen;
use cede_repro::ledbatpp;
use std::path::PathBuf;

pub fn run(args: &Args) -> Result<(), Failure> {
    let folder = folder(args, "ledbatpp");
    let request = ledbatpp::Request { quick: args.quick };
    let results = metered(|hear| ledbatpp::execute(request, jobs(args), &interrupt::is_asked, hear));
    let report = ledbatpp::Report::of(results.map_err(not_run)?);
    let files = report.write(&folder).map_err(|error| failed(&folder, &error))?;
    tell(args, |screen| summary(screen, &report, &files), || report.to_json())?;
    judge_runs(report.broken_runs())
}

fn summary(screen: &Screen, report: &ledbatpp::Report, files: &[PathBuf]) -> String {
    let tables = [
        ("What was published", report.statements.short_table()),
        ("Every phase", report.phases_table()),
        ("Duels with BBR", report.duels_table()),
    ];
    titled(screen, tables) + &tally_and_page("statements", report.statements.tally(), files)
}
