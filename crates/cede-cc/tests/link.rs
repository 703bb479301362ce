//! Checks that need a link: the numbered checks on LEDBAT and TCP, drift, the standing queue, late-comers.

mod support;

use cede_units::{Duration, Instant, Rate};
use support::{Flow, MSS, World, build, ms, s};

/// 5 Mbit/s with a second of buffer, where a flow is alone.
fn alone(flow: Flow) -> World {
    World::new(Rate::from_mbit(5), ms(50), ms(1000), vec![flow])
}

/// 10 Mbit/s, 50 ms, shared.
fn shared(buffer: Duration, flows: Vec<Flow>) -> World {
    World::new(Rate::from_mbit(10), ms(50), buffer, flows)
}

#[test]
fn check_6_alone_the_queue_settles_at_the_target() {
    for (name, target_ms) in [("ledbat", 25), ("ledbat", 100), ("ledbat-draft", 25), ("ledbat-draft", 100)] {
        let target = format!("{target_ms} ms");
        for mbit in [5, 10] {
            let flow = Flow::new(build(name, &[("target", &target)]));
            let mut world = World::new(Rate::from_mbit(mbit), ms(50), ms(1000), vec![flow]);
            world.run_until(s(30));
            let (queue_ms, utilisation) = world.measure_until(s(120));
            assert!((queue_ms - f64::from(target_ms)).abs() < 2.0, "{name} {target}: {queue_ms} ms");
            assert!(utilisation > 0.99, "{name} {target}: {utilisation}");
            assert_eq!(world.flows[0].lost, 0);
        }
    }
}

#[test]
fn alone_for_half_an_hour_the_queue_stays_at_the_target_whatever_the_clocks_do() {
    for target_ms in [25, 100] {
        for skew in [0.0, 50e-6, -50e-6, 200e-6, -200e-6] {
            for has_reverse in [true, false] {
                let controller = build("ledbat", &[("target", &format!("{target_ms} ms"))]);
                let mut flow = Flow::new(controller).with_skew(skew);
                flow.has_reverse = has_reverse;
                let mut world = alone(flow);
                world.run_until(s(120));
                for minute in 3..=30 {
                    let (queue_ms, utilisation) = world.measure_until(s(60 * minute));
                    let context = format!("target {target_ms}, skew {skew}, minute {minute}: {queue_ms} ms");
                    assert!((queue_ms - f64::from(target_ms)).abs() < 2.0, "{context}");
                    assert!(utilisation > 0.98, "{context}, {utilisation}");
                }
            }
        }
    }
}

#[test]
fn the_plain_rule_creeps_and_drifts_off_which_the_two_additions_mend() {
    let last_minutes = |drift, hold, skew| {
        let params = [("correct_drift", drift), ("hold_base", hold), ("target", "25 ms")];
        let mut world = alone(Flow::new(build("ledbat", &params)).with_skew(skew));
        world.run_until(s(1500));
        world.measure_until(s(1800))
    };
    let (crept, _) = last_minutes("off", "off", 0.0);
    assert!(crept > 60.0, "base history of 10 minutes: two steps of 25 ms in half an hour, {crept} ms");
    let (bloated, _) = last_minutes("off", "off", -50e-6);
    assert!(bloated > 120.0, "{bloated} ms");
    let (_, starved) = last_minutes("off", "off", 50e-6);
    assert!(starved < 0.8, "utilisation {starved}");
    let (held, _) = last_minutes("off", "on", 0.0);
    assert!((held - 25.0).abs() < 2.0, "{held} ms");
}

#[test]
fn jitter_and_millisecond_stamps_do_not_spoil_it() {
    for (stamp_ns, jitter_ms, has_reverse) in [(1_000_000, 2, true), (1_000_000, 2, false), (1_000, 5, true)]
    {
        for skew in [50e-6, -50e-6] {
            let mut flow = Flow::new(build("ledbat", &[("target", "25 ms")])).with_skew(skew);
            (flow.stamp_ns, flow.has_reverse) = (stamp_ns, has_reverse);
            let mut world = alone(flow);
            world.jitter = ms(jitter_ms);
            world.run_until(s(120));
            for minutes in [10, 20, 30] {
                let (queue_ms, utilisation) = world.measure_until(s(60 * minutes));
                let context =
                    format!("stamp {stamp_ns} ns, jitter {jitter_ms} ms, skew {skew}: {queue_ms} ms");
                assert!((queue_ms - 25.0).abs() < 2.0 && utilisation > 0.98, "{context}, {utilisation}");
            }
        }
    }
}

#[test]
fn two_flows_that_share_the_target_no_longer_climb_together() {
    let last_minutes = |hold| {
        let params = [("hold_base", hold), ("slow_start", "off")];
        let flows = [0, 0].map(|start| Flow::new(build("ledbat", &params)).starting_at(s(start)));
        let mut world = shared(ms(800), flows.into());
        world.run_until(s(1500));
        world.measure_until(s(1800)).0
    };
    let (held, plain) = (last_minutes("on"), last_minutes("off"));
    assert!((held - 100.0).abs() < 2.0, "{held} ms");
    assert!(plain > 180.0, "{plain} ms");
}

#[test]
fn a_clock_that_is_set_does_not_disturb() {
    for step_ns in [-3_600_000_000_000, 3_600_000_000_000, -150_000_000, 150_000_000_i64] {
        let mut world = alone(Flow::new(build("ledbat", &[])));
        world.run_until(s(90));
        world.flows[0].offset_ns += step_ns;
        let (queue_ms, utilisation) = world.measure_until(s(150));
        assert!(
            (queue_ms - 100.0).abs() < 2.0 && utilisation > 0.98,
            "{step_ns}: {queue_ms} ms, {utilisation}"
        );
    }
}

#[test]
fn a_reverse_path_that_queues_is_not_mistaken_for_drift() {
    // For a minute in the middle the reverse path is 60 ms longer, then short again.
    let mut world = alone(Flow::new(build("ledbat", &[("target", "25 ms")])));
    world.run_until(s(240));
    world.backward = ms(85);
    world.run_until(s(300));
    world.backward = ms(25);
    for minute in 6..=15 {
        let (queue_ms, utilisation) = world.measure_until(s(60 * minute));
        assert!(
            (queue_ms - 25.0).abs() < 6.0 && utilisation > 0.98,
            "{minute}: {queue_ms} ms, {utilisation}"
        );
    }
}

#[test]
fn check_7_beside_reno_the_paper_s_ledbat_leaves_it_the_link() {
    let share = |target: &str| {
        let flows =
            vec![Flow::new(build("reno", &[])), Flow::new(build("ledbat-draft", &[("target", target)]))];
        let mut world = shared(ms(120), flows);
        world.measure_until(s(120));
        world.share(0)
    };
    // ns-2 with the paper's code: 99.0 % at 25 ms. Our link has no jitter.
    assert!(share("25 ms") > 0.96, "{}", share("25 ms"));
    assert!(share("60 ms") > 0.93, "{}", share("60 ms"));
    assert!(share("120 ms") < 0.6, "{}", share("120 ms"));
}

#[test]
fn check_7_ten_ledbat_flows_take_about_one_percent_each() {
    let mut flows = vec![Flow::new(build("reno", &[]))];
    flows.extend((0..10).map(|_| Flow::new(build("ledbat-draft", &[]))));
    let mut world = shared(ms(120), flows);
    world.measure_until(s(120));
    assert!((world.share(0) - 0.9).abs() < 0.03, "Reno {}", world.share(0));
    for i in 1..=10 {
        assert!((world.share(i) - 0.01).abs() < 0.004, "LEDBAT {i}: {}", world.share(i));
    }
}

#[test]
fn check_8_a_buffer_shorter_than_the_target_makes_it_reno_with_losses() {
    let mut world = shared(ms(40), vec![Flow::new(build("ledbat", &[]))]);
    world.run_until(s(60));
    let (queue_ms, utilisation) = world.measure_until(s(240));
    assert!(world.flows[0].lost > 3, "losses rule: {}", world.flows[0].lost);
    assert!(queue_ms < 40.0 && utilisation > 0.9, "{queue_ms} ms, {utilisation}");
}

#[test]
fn check_9_a_rising_base_is_learnt_after_the_history_and_a_falling_one_at_once() {
    let mut world = alone(Flow::new(build("ledbat", &[("hold_base", "off"), ("base_history", "3")])));
    world.run_until(s(50));
    world.forward += ms(20);
    world.run_until(s(60));
    let (shrunk, _) = world.measure_until(s(110));
    assert!((shrunk - 80.0).abs() < 3.0, "{shrunk} ms of queue and 20 of route look like 100");
    world.run_until(s(240));
    let (learnt, _) = world.measure_until(s(290));
    assert!(learnt > 98.0, "{learnt}");
    // A route that becomes shorter: its first short sample counts.
    let mut world = alone(Flow::new(build("ledbat", &[])));
    world.forward = ms(45);
    world.run_until(s(60));
    world.forward = ms(25);
    world.run_until(s(70));
    let (queue_ms, _) = world.measure_until(s(110));
    assert!((queue_ms - 120.0).abs() < 3.0, "the queue hides the fall: base + 20 - 20, {queue_ms} ms");
}

#[test]
fn check_9_with_the_base_held_a_rise_beyond_the_target_is_learnt_as_well() {
    let mut world = alone(Flow::new(build("ledbat", &[("target", "25 ms"), ("base_history", "3")])));
    world.run_until(s(600));
    world.forward += ms(100);
    world.run_until(s(620));
    let (_, starved) = world.measure_until(s(660));
    assert!(starved < 0.5, "the flow stands at its floor: {starved}");
    world.run_until(s(900));
    let (queue_ms, utilisation) = world.measure_until(s(1200));
    assert!((queue_ms - 25.0).abs() < 2.0 && utilisation > 0.98, "{queue_ms} ms, {utilisation}");
}

#[test]
fn with_the_base_held_a_rise_below_the_target_costs_queue_not_throughput() {
    let mut world = alone(Flow::new(build("ledbat", &[])));
    world.run_until(s(120));
    world.forward += ms(20);
    world.run_until(s(200));
    let (queue_ms, utilisation) = world.measure_until(s(1800));
    assert!((queue_ms - 80.0).abs() < 2.0 && utilisation > 0.98, "{queue_ms} ms, {utilisation}");
}

#[test]
fn check_10_the_flow_with_the_larger_target_takes_nearly_all() {
    let flows = ["50 ms", "100 ms"].map(|target| Flow::new(build("ledbat", &[("target", target)])));
    let mut world = shared(ms(400), flows.into());
    world.run_until(s(60));
    world.measure_until(s(180));
    assert!(world.share(1) > 0.95, "{}", world.share(1));
}

/// The late flow's share in 60..160 s, and the queue: two equal flows, the second ten seconds late.
fn late_comer(name: &str, target: &str) -> (f64, f64) {
    let flows = [0, 10].map(|start| Flow::new(build(name, &[("target", target)])).starting_at(s(start)));
    let mut world = shared(ms(480), flows.into());
    world.run_until(s(60));
    let (queue_ms, utilisation) = world.measure_until(s(160));
    assert!(utilisation > 0.99, "{name}: {utilisation}");
    (world.share(1), queue_ms)
}

#[test]
fn a_late_comer_starves_plain_ledbat_and_shares_with_fledbat() {
    let (share, queue_ms) = late_comer("ledbat", "25 ms");
    assert!(share > 0.95, "{share}");
    assert!((queue_ms - 50.0).abs() < 3.0, "base + target taken for the base: {queue_ms} ms");
    let (share, queue_ms) = late_comer("fledbat", "100 ms");
    assert!((share - 0.5).abs() < 0.06, "{share}");
    assert!((queue_ms - 100.0).abs() < 10.0, "{queue_ms} ms");
}

/// Equation 10 of fLEDBAT's paper: the target, and by how much the queue of `flows` is above it. The paper takes the round-trip time
/// for constant; here it counts the queue, so this is solved by iteration.
fn equilibrium_s(zeta: f64, flows: f64) -> f64 {
    let (target_s, packets_per_s) = (0.025, 10e6 / 8.0 / f64::from(MSS));
    (0..100).fold(target_s, |queue_s, _| {
        let rtt_s = 0.05 + queue_s;
        target_s + flows * target_s / (packets_per_s * zeta * rtt_s)
    })
}

#[test]
fn the_queue_of_fledbat_is_that_of_its_paper_s_equilibrium() {
    for (zeta, count) in [(0.01, 2), (0.05, 2), (0.1, 1), (0.1, 2), (0.1, 3), (0.2, 2_u64)] {
        let params = [("target", "25 ms"), ("zeta", &zeta.to_string()), ("slow_start", "off")];
        let flow = |k| Flow::new(build("fledbat", &params)).starting_at(Instant::from_millis(100 * k));
        let mut world = shared(ms(480), (0..count).map(flow).collect());
        world.run_until(s(60));
        let (queue_ms, _) = world.measure_until(s(160));
        let expected_ms = 1e3 * equilibrium_s(zeta, count as f64);
        assert!((queue_ms / expected_ms - 1.0).abs() < 0.03, "{zeta}, {count}: {queue_ms}, {expected_ms} ms");
        assert!((world.share(0) * count as f64 - 1.0).abs() < 0.03, "{zeta}, {count}: {}", world.share(0));
    }
}

#[test]
fn ledbat_yields_to_cubic_and_comes_back() {
    let cubic = Flow::new(build("cubic", &[])).starting_at(s(30)).stopping_at(s(150));
    let mut world = shared(ms(200), vec![Flow::new(build("ledbat", &[("target", "25 ms")])), cubic]);
    world.run_until(s(60));
    world.measure_until(s(150));
    assert!(world.share(1) > 0.95, "{}", world.share(1));
    world.run_until(s(170));
    let (queue_ms, utilisation) = world.measure_until(s(230));
    assert!((queue_ms - 25.0).abs() < 2.0 && utilisation > 0.98, "{queue_ms} ms, {utilisation}");
}

#[test]
fn a_tcp_that_fills_the_buffer_for_half_an_hour_does_not_spoil_the_base_for_good() {
    let reno = Flow::new(build("reno", &[])).starting_at(s(30)).stopping_at(s(1830));
    let mut world = shared(ms(120), vec![Flow::new(build("ledbat", &[("target", "25 ms")])), reno]);
    world.run_until(s(1900));
    let (queue_ms, utilisation) = world.measure_until(s(2000));
    // Reno's queue was never empty: RFC 6817 lets that become the base, until the flow sees the empty queue again.
    assert!((queue_ms - 25.0).abs() < 6.0 && utilisation > 0.98, "{queue_ms} ms, {utilisation}");
}

#[test]
fn check_5_for_tcp_reno_alone_is_a_saw_tooth_between_71_and_142_packets() {
    let mut world = shared(ms(120), vec![Flow::new(build("reno", &[]))]);
    world.run_until(s(20));
    let (queue_ms, utilisation) = world.measure_until(s(200));
    assert!((queue_ms / 120.0 - 0.68).abs() < 0.04, "{queue_ms}");
    assert!(utilisation > 0.99 && world.flows[0].lost > 5, "{utilisation}");
    let cwnd = world.flows[0].controller.snapshot().cwnd_bytes / f64::from(MSS);
    assert!((69.0..=145.0).contains(&cwnd), "{cwnd}");
}

#[test]
fn hystart_loses_less_than_half_of_what_plain_slow_start_loses() {
    let lost_by = |hystart: &str| {
        let mut world = shared(ms(120), vec![Flow::new(build("cubic", &[("hystart", hystart)]))]);
        world.measure_until(s(4));
        world.flows[0].lost
    };
    let (with, without) = (lost_by("on"), lost_by("off"));
    assert!(2 * with < without, "{with} of {without} packets lost in the first seconds");
}

#[test]
fn the_deployed_profiles_hold_their_target_too() {
    for name in ["ledbat-libutp", "ledbat-libtorrent"] {
        let mut world = alone(Flow::new(build(name, &[])));
        world.run_until(s(60));
        let (queue_ms, utilisation) = world.measure_until(s(300));
        assert!((queue_ms - 100.0).abs() < 3.0 && utilisation > 0.98, "{name}: {queue_ms} ms, {utilisation}");
    }
}

#[test]
fn the_same_run_twice_is_the_same_run() {
    let run = || {
        let flows = vec![Flow::new(build("cubic", &[])), Flow::new(build("ledbat", &[])).with_skew(3e-5)];
        let mut world = shared(ms(150), flows);
        let measured = world.measure_until(s(200));
        (measured, world.share(0), world.flows[1].controller.snapshot())
    };
    assert_eq!(run(), run());
}
