//! The papers about swarms.

use super::{Args, failed, folder, goes_on, jobs, judge_runs, metered, tally_and_page, tell, titled};
use crate::failure::Failure;
use crate::interrupt;
use crate::screen::Screen;
use cede_repro::swarms::{self, ExecuteSwarmsError};
use cede_repro::{rao10, tma12};
use std::path::PathBuf;

/// The paper of TMA 2012.
pub fn run_tma12(args: &Args) -> Result<(), Failure> {
    let request = tma12::Request { quick: args.quick };
    run(args, "tma12", &request.jobs(), |measured| tma12::report(&tma12::Results::sorted(request, measured)))
}

/// What that paper leaves open, swept, on top of readings where there are any.
pub fn run_tma12_sweep(args: &Args) -> Result<(), Failure> {
    let (request, readings) = (tma12::Request { quick: args.quick }, readings(args)?);
    let jobs = tma12::sweep_jobs(request, &readings);
    run(args, "tma12", &jobs, |measured| tma12::sweep_report(request, &readings, measured))
}

/// All of that paper under other readings.
pub fn run_tma12_reading(args: &Args) -> Result<(), Failure> {
    let (request, readings) = (tma12::Request { quick: args.quick }, readings(args)?);
    run(args, "tma12", &readings.jobs(request), |measured| readings.report(request, measured))
}

fn readings(args: &Args) -> Result<tma12::Readings, Failure> {
    tma12::Readings::named(&args.reading).map_err(|tma12::UnknownReading { text, meant }| {
        let names = meant.join("\n             ");
        Failure::Usage(format!(
            "--reading \"{text}\": no reading is meant by that alone\n  there are: {names}"
        ))
    })
}

/// The paper of P2P 2010.
pub fn run_rao10(args: &Args) -> Result<(), Failure> {
    let request = rao10::Request { quick: args.quick };
    run(args, "rao10", &request.jobs(), |measured| rao10::report(&rao10::Results::sorted(request, measured)))
}

/// What that paper leaves open, swept.
pub fn run_rao10_sweep(args: &Args) -> Result<(), Failure> {
    let request = rao10::Request { quick: args.quick };
    run(args, "rao10", &rao10::sweep_jobs(request), |measured| rao10::sweep_report(request, measured))
}

/// Runs what has not been run, draws and judges.
fn run(
    args: &Args,
    paper: &str,
    swarms: &[swarms::Job],
    report: impl FnOnce(Vec<Option<swarms::Measured>>) -> swarms::Report,
) -> Result<(), Failure> {
    #[cfg(unix)]
    crate::pages::prefer_large();
    let folder = folder(args, paper);
    let store = folder.join("runs");
    let selection = selection(args, swarms)?;
    let results =
        metered(|hear| swarms::execute(swarms, &selection, &store, jobs(args), &interrupt::is_asked, hear));
    let report = report(results.map_err(|error| match error {
        ExecuteSwarmsError::Interrupted => goes_on(&folder),
        ExecuteSwarmsError::Store(path, cause) => failed(&path, &cause),
        error @ ExecuteSwarmsError::Swarm(_) => Failure::Failed(error.to_string()),
    })?);
    let files = report.write(&folder).map_err(|error| failed(&folder, &error))?;
    tell(args, |screen| summary(screen, &report, &files), || report.to_json())?;
    judge_runs(report.broken_runs)
}

/// Which of the swarms are asked for. Words that no swarm has in its name are refused.
fn selection(args: &Args, swarms: &[swarms::Job]) -> Result<swarms::Selection, Failure> {
    for word in &args.only {
        if !swarms.iter().any(|job| job.key.contains(word.as_str())) {
            let mut names: Vec<&str> = swarms.iter().map(|job| job.key.as_str()).collect();
            names.dedup();
            let text = format!(
                "no swarm has \"{word}\" in its name\n  there are: {}",
                names.join("\n             ")
            );
            return Err(Failure::Usage(text));
        }
    }
    Ok(swarms::Selection { only: args.only.clone(), repetitions: args.iterations })
}

fn summary(screen: &Screen, report: &swarms::Report, files: &[PathBuf]) -> String {
    let parts = report.parts.iter().filter_map(|part| Some((part.heading.as_str(), part.table.clone()?)));
    let tables = std::iter::once(("Claims", report.short_table())).chain(parts);
    titled(screen, tables) + &tally_and_page("claims", report.tally(), files)
}
