//! The whole experiment in small, where namespaces can be made: both flows run, and nothing is left behind. How gentle uTP
//! is takes longer to see than a test may last; `cede lab gentle` measures it.

use cede_testbed::NetnsError;
use cede_testbed::gentle::{GentleSpec, measure, predict};
use cede_units::Duration;
use std::fs;

fn spec() -> GentleSpec {
    let span = Duration::from_secs(4);
    GentleSpec { alone: span, joined: span, again: span, ..GentleSpec::default() }
}

/// Namespaces that this process has made and that are still there.
fn left_behind() -> Vec<String> {
    let own = format!("cede-{}-", std::process::id());
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(&own))
        .collect()
}

#[test]
fn both_flows_run_and_nothing_is_left_behind() {
    let interrupted = measure(&spec(), &mut |sample| sample.t_s < 0.5);
    if let Err(NetnsError::Impossible(why)) = interrupted {
        println!("SKIPPED: {why}");
        return;
    }
    assert!(matches!(interrupted, Err(NetnsError::Interrupted)), "{interrupted:?}");
    assert_eq!(left_behind(), Vec::<String>::new());
    let measured = measure(&spec(), &mut |_| true).unwrap();
    assert_eq!(left_behind(), Vec::<String>::new());
    if measured.longest_gap_s > 1.0 {
        println!("SKIPPED: this machine stood still for {:.1} s", measured.longest_gap_s);
        return;
    }
    let samples = &measured.showing.samples;
    let arrived = |from: f64, to: f64, mbps: fn(&cede_testbed::gentle::Sample) -> f64| {
        samples.iter().filter(|sample| sample.t_s > from && sample.t_s <= to).map(mbps).sum::<f64>()
    };
    assert!(arrived(0.0, 4.0, |sample| sample.utp_mbps) > 0.0);
    assert!(arrived(4.0, 9.0, |sample| sample.tcp_mbps) > 0.0);
    assert!(samples.iter().any(|sample| sample.queue_ms > 0.0));
}

#[test]
fn the_simulated_world_sees_utp_make_way_and_come_back() {
    let predicted = predict(&GentleSpec::default(), &mut || true).unwrap();
    assert!((predicted.alone_queue_ms - 100.0).abs() < 10.0, "{}", predicted.alone_queue_ms);
    assert!(predicted.alone_utilisation > 0.95, "{}", predicted.alone_utilisation);
    assert!(predicted.yielded_after_s.is_some_and(|after| after < 10.0), "{:?}", predicted.yielded_after_s);
    assert!(
        predicted.own_again_after_s.is_some_and(|after| after < 30.0),
        "{:?}",
        predicted.own_again_after_s
    );
}
