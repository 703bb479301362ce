//! The passive meter beside the log of a simulated queue, under whatever clocks, acknowledgements, loss and reordering do.
//!
//! Each case of the validation runs under each of the conditions. The errors of 99 of 100 samples lie within the time of
//! one packet, over TCP and one tick of its clock; means over time within six in a hundred of the true one, or a twelfth of a
//! packet where the queue is mostly shorter than one. What was held back behind the queue by itself, so that no packet of its flow
//! overtook it, looks as if it had queued: these are few.

use cede_meter::Estimator;
use cede_repro::bufferbloat::Measured;
use cede_repro::bufferbloat::measure::{Estimate, validate};
use cede_repro::bufferbloat::setting::{Case, Conditions, PACKET_MS, TICK_MS};
use std::sync::Mutex;

const SHARE: f64 = 0.99;
const MEAN_TOLERANCE: f64 = 0.06;
const MEAN_TOLERANCE_MS: f64 = PACKET_MS / 12.0;
/// So many samples are of packets that the log knows, at the time at which they arrived; but for those that were held back.
const MATCHED: f64 = 0.98;

type Job = (Case, &'static str, Conditions);

/// What is wrong with an estimate, and a line for whoever reads along.
fn judge(job: &Job, measured: &Measured, estimate: &Estimate) -> (String, bool) {
    let bound_ms = if measured.case.seen.is_utp() { PACKET_MS } else { PACKET_MS + TICK_MS };
    let (error_ms, mean) = (estimate.error_ms(SHARE), estimate.mean_ratio());
    let matched = estimate.errors_ms.len() as f64 / estimate.samples.len() as f64;
    let tolerance = MEAN_TOLERANCE.max(MEAN_TOLERANCE_MS / estimate.true_mean_ms);
    let is_near = (mean - 1.0).abs() <= tolerance || estimate.estimator == Estimator::Echoed;
    let is_good = error_ms <= bound_ms && matched >= MATCHED - job.2.held_back && is_near;
    let line = format!(
        "{:<40} {:<12} {:<6} {:6} samples, errors {:6.2} {:6.2} {:6.2} ms, mean {:5.1} % of {:7.1} ms{}",
        job.0.title(),
        job.1,
        format!("{:?}", estimate.estimator),
        estimate.samples.len(),
        estimate.error_ms(0.5),
        estimate.error_ms(0.95),
        error_ms,
        100.0 * mean,
        estimate.true_mean_ms,
        if is_good { "" } else { "  <-- no" }
    );
    (line, is_good)
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
            let measured = validate(job.0, &job.2, &|| false).expect("it runs");
            let judged = measured.estimates.iter().map(|estimate| judge(&job, &measured, estimate));
            lines.lock().unwrap().extend(judged);
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
