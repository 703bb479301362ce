//! The paper of LCN 2010.

use super::{Args, failed, folder, goes_on, jobs, judge_runs, metered, page, tally_and_page, tell, titled};
use crate::failure::Failure;
use crate::interrupt;
use crate::screen::Screen;
use cede_repro::lcn10::{self, ARITHMETIC, ExecuteError, FigureNumber, Report, Request, Results, Store};
use std::path::{Path, PathBuf};

pub fn run(args: &Args) -> Result<(), Failure> {
    let request = request(args)?;
    let folder = folder(args, "lcn10");
    let report = Report::of(measured(&request, &folder, jobs(args))?);
    let files = report.write(&folder).map_err(|error| failed(&folder, &error))?;
    tell(args, |screen| summary(screen, &report, &files), || report.to_json())?;
    judge_runs(report.broken_runs())
}

/// The figures that can be drawn, each with what it shows.
pub fn figures() -> Vec<(String, String)> {
    let figure = |figure: FigureNumber| (format!("lcn10 {}", figure.number()), figure.summary().to_string());
    FigureNumber::ALL.into_iter().map(figure).collect()
}

pub fn request(args: &Args) -> Result<Request, Failure> {
    let known = |&number: &u32| {
        FigureNumber::from_number(number).ok_or_else(|| {
            let numbers = FigureNumber::ALL.map(|figure| figure.number().to_string()).join(", ");
            Failure::Usage(format!("there is no figure {number} to draw\n  allowed: {numbers}"))
        })
    };
    let figures = args.figure.iter().map(known).collect::<Result<Vec<FigureNumber>, Failure>>()?;
    Ok(Request { figures, sensitivity: args.sensitivity, quick: args.quick })
}

fn measured(request: &Request, folder: &Path, jobs: usize) -> Result<Results, Failure> {
    let store = Store::open(&folder.join("runs")).map_err(|error| failed(&error.path, &error.cause))?;
    let results =
        metered(|hear| lcn10::execute(&lcn10::plan(request), &store, jobs, &interrupt::is_asked, hear));
    results.map_err(|error| match error {
        ExecuteError::Interrupted => goes_on(folder),
        ExecuteError::Store(error) => failed(&error.path, &error.cause),
        ExecuteError::Run(error) => Failure::Failed(error.to_string()),
    })
}

fn summary(screen: &Screen, report: &Report, files: &[PathBuf]) -> String {
    let mut text = String::new();
    for figure in &report.figures {
        let heading = format!("Figure {}: {}", figure.figure.number(), figure.figure.summary());
        text += &titled(screen, [(heading.as_str(), figure.short_table())]);
    }
    let more = [
        ("What the paper leaves open", &report.short_sensitivity),
        ("Which TCP-LP, which NICE", &report.short_background),
        (ARITHMETIC, &report.short_arithmetic),
    ];
    text += &titled(screen, more.into_iter().filter_map(|(heading, table)| Some((heading, table.clone()?))));
    text + &match report.figures.is_empty() {
        true => page(files),
        false => tally_and_page("claims", report.tally(), files),
    }
}
