//! The checks on Vegas, NICE and TCP-LP that need a link: alone, and beside one Reno flow on the link of the LCN 2010 paper
//! (10 Mbit/s, 50 ms, 100 packets of buffer, 120 s).

mod support;

use cede_units::Rate;
use support::{Flow, World, build, ms, s};

/// One Reno flow and `count` others, with stamps of 1 ms from clocks that are `offset_ms` apart.
fn beside_reno(name: &str, params: &[(&str, &str)], count: usize, offset_ms: i64) -> World {
    let other = || {
        let mut flow = Flow::new(build(name, params));
        (flow.stamp_ns, flow.offset_ns) = (1_000_000, offset_ms * 1_000_000);
        flow
    };
    let mut flows = vec![Flow::new(build("reno", &[]))];
    flows.extend((0..count).map(|_| other()));
    let mut world = World::new(Rate::from_mbit(10), ms(50), ms(120), flows);
    world.measure_until(s(120));
    world
}

/// Reno's share in percent.
fn reno(name: &str, params: &[(&str, &str)], count: usize, offset_ms: i64) -> f64 {
    beside_reno(name, params, count, offset_ms).share(0) * 100.0
}

fn near(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found - expected).abs() <= tolerance, "{what}: {found}, expected {expected}");
}

#[test]
fn check_6_vegas_alone_keeps_between_alpha_and_beta_packets_in_the_queue() {
    for (alpha, beta) in [("2", "4"), ("1", "3")] {
        for backlog in ["linux", "classic"] {
            let vegas = build("vegas", &[("alpha", alpha), ("beta", beta), ("backlog", backlog)]);
            let mut world = World::new(Rate::from_mbit(10), ms(50), ms(120), vec![Flow::new(vegas)]);
            world.run_until(s(20));
            let (queue_ms, utilisation) = world.measure_until(s(120));
            let packets = queue_ms / 1.2;
            let (low, high): (f64, f64) = (alpha.parse().unwrap(), beta.parse().unwrap());
            // The packet in service is in the backlog and not in the queue.
            assert!((low - 1.0..=high + 0.5).contains(&packets), "{alpha} to {beta}, {backlog}: {packets}");
            assert!(utilisation > 0.99, "{utilisation}");
            assert_eq!(world.flows[0].lost, 0);
        }
    }
}

#[test]
fn check_7_ten_nice_flows_beside_reno_by_their_floor() {
    // The toy simulator of the sheet: 98, 89 and 80 %.
    let at_once = |floor| reno("nice", &[("begin", "at_once"), ("min_cwnd", floor)], 10, 0);
    assert!(at_once("0") > 98.0, "{}", at_once("0"));
    near(at_once("1"), 89.0, 2.5, "floor of one packet");
    near(at_once("2"), 80.0, 2.5, "floor of two packets");
    // What ten initial slow starts take, in two minutes.
    near(reno("nice", &[], 10, 0), at_once("0"), 4.0, "from the first loss on");
    // Without its halving NICE is Vegas.
    near(
        reno("nice", &[("threshold", "1"), ("begin", "at_once")], 10, 0),
        reno("vegas", &[("alpha", "1"), ("beta", "3")], 10, 0),
        2.0,
        "no round is late",
    );
}

#[test]
fn check_8_fifty_nice_flows_disturb_only_where_their_windows_have_a_floor() {
    let (fractional, floored) = (reno("nice", &[], 50, 0), reno("nice", &[("min_cwnd", "1")], 50, 0));
    assert!(fractional > 95.0, "{fractional}");
    assert!(floored < fractional - 15.0, "{floored} against {fractional}");
}

#[test]
fn nice_beside_reno_alone_again_takes_the_link_back() {
    let reno = Flow::new(build("reno", &[])).starting_at(s(30)).stopping_at(s(90));
    let mut world =
        World::new(Rate::from_mbit(10), ms(50), ms(120), vec![Flow::new(build("nice", &[])), reno]);
    world.run_until(s(40));
    world.measure_until(s(90));
    assert!(world.share(0) < 0.02, "{}", world.share(0));
    world.run_until(s(110));
    let (_, utilisation) = world.measure_until(s(160));
    assert!(utilisation > 0.95, "{utilisation}");
}

#[test]
fn check_5_ten_lp_flows_beside_reno() {
    near(reno("lp", &[], 10, 0), 90.0, 2.0, "the paper's equations");
    for offset_ms in [-700, 5000] {
        near(reno("lp", &[], 10, offset_ms), 90.0, 2.0, "whatever the clocks read");
    }
}

#[test]
fn check_5_ten_linux_lp_flows_by_the_offset_of_their_clocks() {
    let known = [("clock_rate", "known")];
    // The toy simulator of the sheet: 69, 64, 46 and 9 %; ns-2 with synchronised clocks: 71.4 %.
    let found = [0, 25, 100, 1000].map(|offset_ms| reno("lp-linux", &known, 10, offset_ms));
    near(found[0], 71.4, 3.0, "synchronised");
    near(found[3], 9.0, 3.0, "a second apart it is plain Reno");
    assert!(found.is_sorted_by(|a, b| a > b), "the further apart, the blunter: {found:?}");
    near(100.0 - reno("lp-linux", &known, 1, 0), 6.5, 2.0, "one flow");
    near(100.0 - reno("lp-linux", &known, 1, 100), 16.0, 2.0, "one flow, 100 ms apart");
}

#[test]
fn check_5_with_32_bits_lp_takes_more_than_with_64() {
    for count in [5, 10] {
        let (bits_64, bits_32) = (reno("lp-linux", &[], count, 0), reno("lp-linux26", &[], count, 0));
        assert!(bits_32 < bits_64 - 10.0, "{count}: {bits_32} against {bits_64}");
    }
}

#[test]
fn lp_by_the_equations_uses_an_empty_link_whatever_signal_it_has() {
    for signal in ["owd", "rtt"] {
        let lp = build("lp", &[("signal", signal)]);
        let mut world = World::new(Rate::from_mbit(10), ms(50), ms(120), vec![Flow::new(lp)]);
        world.run_until(s(20));
        let (queue_ms, utilisation) = world.measure_until(s(120));
        assert!(utilisation > 0.7 && queue_ms < 30.0, "{signal}: {utilisation}, {queue_ms} ms");
    }
}
