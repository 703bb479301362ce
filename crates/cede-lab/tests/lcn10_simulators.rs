//! A handful of runs of the LCN 2010 paper's scenario, held against ns-2 and ns-3 (`tests/data/lcn10-simulators.csv`).
//!
//! The tolerances: 1 point of TCP share for targets up to 65 % of the buffer and for every N, 5 points from 65 to
//! 100 %, 0.03 of the queue index. Beyond 100 % the other two simulators differ by up to 13 points from each other.

use cede_lab::repro::lcn10::measure::measure;
use cede_lab::repro::lcn10::setting::{Choices, Kind, Ledbat, Part, Setting, target_ms};
use cede_lab::repro::lcn10::simulators::{Simulator, at};
use cede_lab::repro::lcn10::{Measured, Metric};

const QUEUE_TOLERANCE: f64 = 0.03;

fn run(parts: &[Part], repetition: u32) -> Measured {
    let setting = Setting { parts: parts.to_vec(), choices: Choices::PRIMARY, repetition, series: false };
    let measured = measure(&setting, &|| false).expect("runs to the end");
    assert!(measured.intact);
    measured
}

fn reno() -> Part {
    Part::one("tcp", Kind::Reno)
}

fn ledbat(ledbat: Ledbat) -> Part {
    Part::one("lbe", Kind::Ledbat(ledbat))
}

/// Holds a run against ns-2's and ns-3's value of a metric: near one of them, or between the two.
fn near(run: &Measured, curve: &str, x: f64, metric: Metric, tolerance: f64) {
    let theirs: Vec<f64> = [Simulator::Ns2, Simulator::Ns3]
        .iter()
        .filter_map(|&simulator| at(simulator, curve, x, metric))
        .collect();
    let (low, high) =
        (theirs.iter().copied().fold(f64::MAX, f64::min), theirs.iter().copied().fold(f64::MIN, f64::max));
    let ours = metric.of(run);
    assert!(
        ours >= low - tolerance && ours <= high + tolerance,
        "{curve} at {x}, {metric:?}: {ours} against {theirs:?}"
    );
}

fn target(percent: f64) -> Measured {
    run(&[reno(), ledbat(Ledbat::with_target_ms(target_ms(percent)))], 1)
}

#[test]
fn targets_up_to_65_percent_of_the_buffer() {
    for percent in [5.0, 30.0, 50.0, 65.0] {
        let run = target(percent);
        near(&run, "target", percent, Metric::TcpPercent, 1.0);
        near(&run, "target", percent, Metric::QueueIndex, QUEUE_TOLERANCE);
        near(&run, "target", percent, Metric::LossPercent, 0.01);
        assert!(run.efficiency > 0.99);
    }
}

#[test]
fn targets_from_65_to_100_percent_of_the_buffer() {
    for percent in [80.0, 90.0, 100.0] {
        let run = target(percent);
        near(&run, "target", percent, Metric::TcpPercent, 5.0);
        near(&run, "target", percent, Metric::QueueIndex, QUEUE_TOLERANCE);
    }
}

#[test]
fn beside_one_five_and_ten_ledbat_flows() {
    for count in [1, 5, 10] {
        let run = run(&[reno(), ledbat(Ledbat::PAPER).times(count)], 1);
        near(&run, "n-ledbat", f64::from(count), Metric::TcpPercent, 1.0);
        near(&run, "n-ledbat", f64::from(count), Metric::QueueIndex, QUEUE_TOLERANCE);
        near(&run, "n-ledbat", f64::from(count), Metric::FairnessOthers, 0.01);
    }
}

#[test]
fn ledbat_alone() {
    let run = run(&[ledbat(Ledbat::PAPER)], 1);
    assert!((0.988..=0.991).contains(&run.efficiency), "{}", run.efficiency);
    near(&run, "ledbat", 1.0, Metric::QueueIndex, 0.01);
    assert_eq!(run.loss, 0.0);
}

#[test]
fn reno_alone() {
    let run = run(&[reno()], 1);
    assert!((0.994..=0.999).contains(&run.efficiency), "{}", run.efficiency);
    near(&run, "reno", 1.0, Metric::QueueIndex, 0.01);
    near(&run, "reno", 1.0, Metric::LossPercent, 0.005);
}

#[test]
fn two_ledbat_flows_with_targets_or_round_trip_times_apart() {
    for ratio in [1.5, 5.0] {
        let larger = Part::one("a", Kind::Ledbat(Ledbat::with_target_ms(24.0 * ratio)));
        let smaller = Part::one("b", Kind::Ledbat(Ledbat::with_target_ms(24.0)));
        near(&run(&[larger, smaller], 1), "target-ratio", ratio, Metric::FairnessLong, 0.01);
    }
    for ratio in [2.0, 10.0] {
        let long = ledbat(Ledbat::PAPER).rtt_ratio(ratio);
        let run = run(&[long, Part::one("short", Kind::Ledbat(Ledbat::PAPER))], 1);
        near(&run, "rtt-ledbat", ratio, Metric::FairnessLong, 0.02);
        near(&run, "rtt-ledbat", ratio, Metric::Efficiency, 0.005);
    }
}
