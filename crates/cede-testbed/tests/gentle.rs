//! The whole experiment in small, where namespaces can be made: both flows run, and nothing is left behind. How gentle uTP
//! is takes longer to see than a test may last; `cede lab gentle` measures it.

use cede_testbed::gentle::{GentleSpec, measure, predict};
use cede_testbed::{NetnsError, shortest_buffer};
use cede_units::{Duration, Rate};
use std::fs;
use std::sync::Mutex;
use std::time::Instant;

/// Who looks for what is left behind is alone.
static ALONE: Mutex<()> = Mutex::new(());

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
    let _alone = ALONE.lock();
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
fn where_no_packet_of_tcp_comes_through_it_ends_in_its_time() {
    let _alone = ALONE.lock();
    let span = Duration::from_secs(1);
    // Less than a packet: small ones of uTP fill it.
    let buffer = Duration::from_millis(5);
    let spec = GentleSpec {
        rate: Rate::from_mbit(1),
        buffer,
        alone: span,
        joined: span,
        again: span,
        ..GentleSpec::default()
    };
    assert!(buffer < shortest_buffer(spec.rate));
    let began = Instant::now();
    match measure(&spec, &mut |_| true) {
        Err(NetnsError::Impossible(why)) => println!("SKIPPED: {why}"),
        measured => assert_eq!(measured.unwrap().showing.joined_tcp_mbps, 0.0),
    }
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
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

#[test]
fn predicted_rates_count_payload_as_measured_ones_do() {
    let spec = spec();
    let predicted = predict(&spec, &mut || true).unwrap();
    let busy = predicted.samples.iter().filter(|sample| sample.t_s > 1.0 && sample.utilisation > 0.98);
    let most = spec.rate.as_mbit_f64() * 0.98;
    let (mut intervals, mut mbits, mut of_link) = (0, 0.0, 0.0);
    for sample in busy {
        (intervals, mbits) = (intervals + 1, mbits + sample.utp_mbps + sample.tcp_mbps);
        of_link += sample.utilisation * most;
    }
    assert!(intervals > 50 && mbits < of_link, "{mbits} Mbit of payload through a link for {of_link}");
}
