//! The vectors of what is known about passive estimation, and its checks by number.

mod common;

use cede_meter::{Base, Config, Estimator, Flags};
use cede_units::Stream;
use cede_wire::utp::Kind;
use common::{A, B, Tap, Tcp, utp};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors/passive.json")).expect("vectors")
}

fn running() -> Config {
    Config { base: Base::Running, ..Config::default() }
}

/// Plays a row of differences that A reports about B, a packet of B before each.
fn reported(rows: &Value) -> (Vec<f64>, Vec<f64>) {
    let mut tap = Tap::new(running());
    let rows = rows.as_array().unwrap();
    for (k, row) in rows.iter().enumerate() {
        let time_us = 1_000_000 + k as u64 * 10_000;
        let difference = u32::from_str_radix(row[0].as_str().unwrap(), 16).unwrap();
        let seq = 10 + k as u16;
        tap.utp(time_us, B, A, &utp(Kind::Data, 8, (seq, 4), (time_us as u32, 5), 100));
        tap.utp(time_us + 10, A, B, &utp(Kind::State, 7, (5, seq), (time_us as u32, difference), 0));
    }
    let wanted = rows.iter().filter_map(|row| row[2].as_f64()).collect();
    (tap.found().queue_us(B.0, Estimator::Echoed), wanted)
}

#[test]
fn check_1_differences_are_unwrapped_and_skipped() {
    for name in ["utp_ts_diff[hex,unwrapped,q_us]", "utp_wrap"] {
        let (found, wanted) = reported(&vectors()[name]);
        assert_eq!(found, wanted, "{name}");
    }
}

#[test]
fn a_difference_that_is_said_twice_counts_once() {
    let mut tap = Tap::new(running());
    for k in 0..10_u16 {
        let time_us = 1_000_000 + u64::from(k) * 10_000;
        tap.utp(time_us, B, A, &utp(Kind::Data, 8, (10 + k, 4), (time_us as u32, 5), 100));
        for again in 0..3 {
            tap.utp(time_us + 10 + again, A, B, &utp(Kind::State, 7, (5, 10 + k), (time_us as u32, 500), 0));
        }
    }
    assert_eq!(tap.found().queue_us(B.0, Estimator::Echoed).len(), 10);
}

/// B's data and A's acknowledgements, in the order of time.
fn tcp_tap(config: Config) -> Tap {
    let vectors = vectors();
    let mut tap = Tap::new(config);
    let mut frames: Vec<(u64, bool, Tcp)> = Vec::new();
    let us = |seconds: &Value| 1_000_000 + (seconds.as_f64().unwrap() * 1e6).round() as u64;
    for row in vectors["tcp_data"].as_array().unwrap() {
        let (end, clock) = (row[1].as_u64().unwrap() as u32, row[2].as_u64().unwrap() as u32);
        frames.push((
            us(&row[0]),
            true,
            Tcp { seq: end - 1448, ack: 1, flags: 0x10, clock, echo: 9, len: 1448 },
        ));
    }
    for row in vectors["tcp_seed"].as_array().unwrap() {
        let word = |name: &str| row[name].as_u64().unwrap() as u32;
        let ack =
            Tcp { seq: 1, ack: word("ack"), flags: 0x10, clock: word("tsvalA"), echo: word("tsecr"), len: 0 };
        frames.push((us(&row["cap"]), false, ack));
    }
    frames.sort_by_key(|frame| frame.0);
    for (time_us, is_data, segment) in &frames {
        if *is_data { tap.tcp(*time_us, B, A, segment) } else { tap.tcp(*time_us, A, B, segment) }
    }
    tap
}

#[test]
fn check_2_acknowledgements_are_matched_with_the_last_segment_they_cover() {
    let wanted: Vec<f64> = vectors()["tcp_seed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["q_ms"].as_f64().unwrap() * 1000.0)
        .collect();
    assert_eq!(tcp_tap(running()).found().queue_us(B.0, Estimator::Echoed), wanted);
}

#[test]
fn check_2_direct_delays_need_one_direction() {
    let vectors = vectors();
    let rows = vectors["tcp_direct[cap_s,tsvalB,owd_ms,q_ms]"].as_array().unwrap();
    let wanted: Vec<f64> = rows.iter().map(|row| row[3].as_f64().unwrap() * 1000.0).collect();
    assert_eq!(tcp_tap(running()).found().queue_us(B.0, Estimator::Direct), wanted);
}

/// Ten minutes of B's packets through a queue that empties every 20 s, with clocks as told.
fn drifting(ppm: f64, offset_us: u64) -> Tap {
    let mut tap = Tap::new(Config::default());
    for k in 0..12_000_u64 {
        let sent = k * 50_000;
        let queue = if k % 400 == 0 { 0 } else { (k % 400) * 100 };
        // A stamp of zero would be none.
        let of_b = |at: u64| (at as f64 * (1.0 + ppm / 1e6)) as u64 as u32 + 12_345;
        let (arrives, seq) = (offset_us + sent + 20_000 + queue, k as u16);
        let difference = of_b(sent).wrapping_sub((offset_us + sent) as u32);
        tap.utp(arrives, B, A, &utp(Kind::Data, 8, (seq, 4), (of_b(sent), difference), 100));
        let seen = (arrives as u32).wrapping_sub(of_b(sent));
        tap.utp(arrives + 10, A, B, &utp(Kind::State, 7, (5, seq), (arrives as u32 + 10, seen), 0));
    }
    tap
}

#[test]
fn check_4_drift_is_measured_on_the_other_direction_and_taken_out() {
    for ppm in [-100.0, 0.0, 50.0, 100.0] {
        let found = drifting(ppm, 1_000_000).found();
        let flow = found.flow(B.0);
        assert_eq!(flow.flags.has(Flags::DRIFT_CORRECTED), ppm != 0.0, "{ppm}: {:?}", flow.drift_ppm);
        for (k, queue_us) in found.queue_us(B.0, Estimator::Direct).into_iter().enumerate() {
            let truth = (k % 400) as f64 * 100.0;
            assert!((queue_us - truth).abs() < 2_000.0, "{ppm} ppm, packet {k}: {queue_us} for {truth}");
        }
    }
}

#[test]
fn check_5_clocks_that_wrap_go_on() {
    // The observer's and the sender's 32 bits both wrap within the ten minutes.
    let found = drifting(0.0, (1 << 32) - 100_000_000).found();
    let most = found.queue_us(B.0, Estimator::Direct).into_iter().fold(0.0, f64::max);
    assert!((most - 39_900.0).abs() < 1.0, "{most}");
    assert!(!found.flow(B.0).flags.has(Flags::CLOCK_STEP));
}

#[test]
fn check_6_a_receiver_that_measures_when_it_answers_disturbs_the_echoed_estimate_alone() {
    let mut tap = Tap::new(Config::default());
    let mut stream = Stream::named(6, "late answers");
    for k in 0..400_u16 {
        let sent_us = 1_000_000 + u64::from(k) * 60_000;
        let arrives_us = sent_us + 25_000;
        tap.utp(arrives_us, B, A, &utp(Kind::Data, 8, (10 + k, 4), (sent_us as u32, 5), 100));
        let answered_us = arrives_us + stream.below(40_000);
        let difference_us = (answered_us - sent_us) as u32;
        tap.utp(answered_us, A, B, &utp(Kind::State, 7, (5, 10 + k), (answered_us as u32, difference_us), 0));
    }
    let found = tap.found();
    let most = |estimator| found.queue_us(B.0, estimator).into_iter().fold(0.0, f64::max);
    assert_eq!(most(Estimator::Direct), 0.0);
    assert!((30_000.0..40_000.0).contains(&most(Estimator::Echoed)), "{}", most(Estimator::Echoed));
    assert!(found.flow(B.0).flags.has(Flags::ESTIMATORS_DISAGREE));
}
