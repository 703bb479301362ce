//! The passive meter beside the log of a simulated queue, under whatever clocks, acknowledgements, loss and reordering do.
//!
//! Each case of the validation runs under each of the conditions, and keeps to [`Judged`]'s bounds. Many more conditions are
//! those of `examples/bufferbloat_sweep.rs`.

use cede_repro::bufferbloat::bounds::Judged;
use cede_repro::bufferbloat::measure::validate;
use cede_repro::bufferbloat::setting::{Case, Conditions};
use std::sync::Mutex;

type Job = (Case, &'static str, Conditions);

/// A line for whoever reads along about each estimate, and whether it is as it should be.
fn run((case, name, conditions): &Job) -> Vec<(String, bool)> {
    let measured = validate(*case, conditions, &|| false).expect("it runs");
    let judge = |estimate| {
        let judged = Judged::of(case, estimate, conditions);
        (judged.line(&measured, estimate, name), judged.is_good())
    };
    measured.estimates.iter().map(judge).collect()
}

#[test]
fn delays_are_inferred_to_one_packet_whatever_else_happens() {
    let conditions = Conditions::ALL;
    let all =
        conditions.iter().flat_map(|&(name, it)| Case::all().into_iter().map(move |case| (case, name, it)));
    let jobs: Mutex<Vec<Job>> = Mutex::new(all.collect());
    let lines = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(job) = jobs.lock().unwrap().pop() else { break };
            lines.lock().unwrap().extend(run(&job));
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let mut lines = lines.into_inner().unwrap();
    lines.sort();
    lines.iter().for_each(|(line, _)| println!("{line}"));
    assert!(lines.len() >= 2 * 13 * 13, "{} estimates", lines.len());
    let bad: Vec<&str> = lines.iter().filter(|(_, good)| !good).map(|(line, _)| &**line).collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
