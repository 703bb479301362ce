//! A handful of runs of the LCN 2010 paper's scenario, held against ns-2 and ns-3 (`tests/data/lcn10-simulators.csv`).
//!
//! The tolerances: 1 point of TCP share for targets up to 65 % of the buffer and for every N of LEDBAT, 5 points from 65
//! to 100 %, 2 points for NICE and Vegas, 3 for TCP-LP (means over four repetitions), 0.03 of the queue index.
//! In 32-bit numbers single runs of TCP-LP spread by 10 to 20 points: nothing is asserted of those. Beyond 100 % the other two
//! simulators differ by up to 13 points from each other.

use cede_repro::lcn10::measure::measure;
use cede_repro::lcn10::setting::{Background, Choices, Kind, Ledbat, Part, Setting, target_ms};
use cede_repro::lcn10::simulators::{Simulator, at};
use cede_repro::lcn10::{Measured, Metric};

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

/// The first four repetitions.
fn four(parts: &[Part]) -> Vec<Measured> {
    (0..4).map(|repetition| run(parts, repetition)).collect()
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

fn background(protocol: Background) -> Part {
    Part::one("lbe", Kind::Background(protocol))
}

#[test]
fn beside_one_five_and_ten_nice_flows() {
    for count in [1, 5, 10] {
        let run = run(&[reno(), background(Background::NICE_LINUX26).times(count)], 1);
        near(&run, "n-nice", f64::from(count), Metric::TcpPercent, 2.0);
        near(&run, "n-nice", f64::from(count), Metric::QueueIndex, QUEUE_TOLERANCE);
        near(&run, "n-nice", f64::from(count), Metric::LossPercent, 0.02);
    }
}

#[test]
fn beside_one_five_and_ten_vegas_flows() {
    for count in [1, 5, 10] {
        let run = run(&[reno(), background(Background::VEGAS_NS3).times(count)], 1);
        near(&run, "b-vegas", f64::from(count), Metric::TcpPercent, 2.0);
        near(&run, "b-vegas", f64::from(count), Metric::QueueIndex, QUEUE_TOLERANCE);
    }
}

#[test]
fn beside_one_five_and_ten_lp_flows_by_variant() {
    let variants = [
        ("b-lp-known", Simulator::Ns2, Background::LP_KNOWN_RATE),
        ("b-lp-ns3", Simulator::Ns3, Background::LP_NS3),
        ("b-lp-ns3-window", Simulator::Ns3, Background::LP_NS3_WINDOW),
        ("b-lp-ns2-64", Simulator::Ns2, Background::LP_NS2),
    ];
    for (curve, simulator, protocol) in variants {
        for count in [1, 5, 10] {
            let runs = four(&[reno(), background(protocol).times(count)]);
            for (metric, tolerance) in [(Metric::TcpPercent, 3.0), (Metric::QueueIndex, 0.05)] {
                let theirs = at(simulator, curve, f64::from(count), metric).unwrap();
                let ours = runs.iter().map(|run| metric.of(run)).sum::<f64>() / runs.len() as f64;
                assert!((ours - theirs).abs() < tolerance, "{curve} {count} {metric:?}: {ours}, {theirs}");
            }
        }
    }
}

#[test]
fn lp_alone_collapses_where_the_rate_is_known_and_uses_the_link_by_its_equations() {
    let alone = |protocol| run(&[background(protocol)], 1).efficiency;
    let theirs = |simulator| at(simulator, "lp-known", 1.0, Metric::Efficiency).unwrap();
    assert!((alone(Background::LP_KNOWN_RATE) - theirs(Simulator::Ns2)).abs() < 0.005);
    assert!((alone(Background::LP_NS3_WINDOW) - theirs(Simulator::Ns3)).abs() < 0.02);
    assert!(alone(Background::LP_EQUATIONS) > 0.8);
}
