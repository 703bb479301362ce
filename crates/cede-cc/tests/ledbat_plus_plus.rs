//! The checks on LEDBAT++ that need a link: late-comers, the base they find, rivals, short paths.

mod support;

use cede_cc::Snapshot;
use cede_units::{Instant, Rate};
use support::{Flow, MSS, World, build, ms, s};

const PROFILES: [&str; 2] = ["ledbat++", "ledbat++-libutp"];

/// 10 Mbit/s, 50 ms, the second flow ten seconds late.
fn two_flows(name: &str, buffer_packets: u64) -> World {
    let flows = [0, 10].map(|start| Flow::new(build(name, &[])).starting_at(s(start)));
    World::new(Rate::from_mbit(10), ms(50), ms(buffer_packets * 6 / 5), flows.into())
}

#[test]
fn check_5_a_late_comer_shares_evenly_and_the_link_stays_full() {
    for name in PROFILES {
        for buffer in [200, 400] {
            let mut world = two_flows(name, buffer);
            world.run_until(s(40));
            let (_, utilisation) = world.measure_until(s(140));
            let share = world.share(1);
            assert!((share - 0.5).abs() < 0.08, "{name}, {buffer} packets: late flow {share}");
            assert!(utilisation > 0.95, "{name}: {utilisation}");
            assert_eq!(world.flows[0].lost + world.flows[1].lost, 0, "{name}");
        }
    }
}

#[test]
fn check_6_after_the_first_common_slowdown_both_know_the_true_base() {
    let mut world = two_flows("ledbat++", 400);
    world.run_until(s(100));
    for flow in &world.flows {
        let Snapshot { base_delay_ns, .. } = flow.controller.snapshot();
        let base_ms = base_delay_ns.unwrap() as f64 / 1e6;
        assert!((50.0..52.5).contains(&base_ms), "50 ms and a packet time of 1.2: {base_ms}");
    }
}

#[test]
fn check_6_beside_reno_it_takes_a_few_percent() {
    for name in PROFILES {
        for buffer_ms in [120, 200] {
            let flows = vec![Flow::new(build("reno", &[])), Flow::new(build(name, &[]))];
            let mut world = World::new(Rate::from_mbit(10), ms(50), ms(buffer_ms), flows);
            world.measure_until(s(120));
            assert!(world.share(1) < 0.08, "{name}, {buffer_ms} ms: {}", world.share(1));
        }
    }
}

/// In the published order CUBIC has the link and its buffer when LEDBAT++ joins, which then takes a part of the queue for
/// propagation; how much, the start decides. Over eight starts the fork, which is what the sheet's tenth was read from, has 9.0 %
/// (6.7 to 12.6) and passes. The draft has 14.6 % (8.8 to 22.3) and does not. With the kernel's acknowledgements in the
/// simulated world neither does (`docs/ledbatpp.md`).
#[test]
fn check_7_in_the_published_order_the_fork_stays_below_a_tenth_and_the_draft_does_not() {
    let run = |name: &str, start: u64| {
        let cubic = Flow::new(build("cubic", &[])).stopping_at(s(150));
        let late = Instant::from_millis(50_000 + 217 * start);
        let flows = vec![Flow::new(build(name, &[])).starting_at(late), cubic];
        let mut world = World::new(Rate::from_mbit(50), ms(30), ms(120), flows);
        world.run_until(s(60));
        world.measure_until(s(150));
        let base_ns = world.flows[0].controller.snapshot().base_delay_ns.unwrap();
        let share = world.share(0);
        world.run_until(s(170));
        let (_, utilisation) = world.measure_until(s(200));
        assert!(utilisation > 0.9, "{name} alone, 20 s after CUBIC: {utilisation}");
        (share, base_ns as f64 / 1e6)
    };
    let mean_share = |name: &str| (0..8).map(|start| run(name, start).0).sum::<f64>() / 8.0;
    let (fork, draft) = (mean_share("ledbat++-libutp"), mean_share("ledbat++"));
    assert!(fork < 0.1, "the fork beside CUBIC: {fork}");
    assert!((0.1..0.2).contains(&draft), "the draft beside CUBIC: {draft}");
    let base_ms = run("ledbat++", 0).1;
    assert!(base_ms > 60.0, "more than a round trip of queue passes for propagation: {base_ms}");
}

/// The easier order: LEDBAT++ knows the base delay from the time before CUBIC.
#[test]
fn check_7_beside_cubic_below_a_tenth_alone_above_nine_and_back_in_time() {
    for name in PROFILES {
        let cubic = Flow::new(build("cubic", &[])).starting_at(s(30)).stopping_at(s(130));
        let flows = vec![Flow::new(build(name, &[])), cubic];
        let mut world = World::new(Rate::from_mbit(50), ms(30), ms(120), flows);
        world.run_until(s(40));
        world.measure_until(s(130));
        assert!(world.share(0) < 0.1, "{name} beside CUBIC: {}", world.share(0));
        world.run_until(s(160));
        let (_, utilisation) = world.measure_until(s(220));
        assert!(utilisation > 0.9, "{name} alone again: {utilisation}");
    }
}

#[test]
fn check_8_on_a_short_path_it_grows_by_a_sixteenth_of_a_packet_per_round_trip() {
    let params = [("slow_start_exit", "0"), ("slowdowns", "off")];
    let mut world =
        World::new(Rate::from_mbit(1000), ms(2), ms(50), vec![Flow::new(build("ledbat++", &params))]);
    let packets = |world: &World| world.flows[0].controller.snapshot().cwnd_bytes / f64::from(MSS);
    world.run_until(Instant::from_millis(100));
    let before = packets(&world);
    world.run_until(Instant::from_millis(900));
    let rounds = 400.0;
    let grown = packets(&world) - before;
    assert!((grown / rounds * 16.0 - 1.0).abs() < 0.1, "{grown} packets in {rounds} round trips");
}

#[test]
fn the_queue_stays_near_the_target_where_a_flow_is_alone() {
    for (name, mbit) in [("ledbat++", 10), ("ledbat++-libutp", 10), ("ledbat++", 50)] {
        let mut world = World::new(Rate::from_mbit(mbit), ms(30), ms(500), vec![Flow::new(build(name, &[]))]);
        world.run_until(s(60));
        let (queue_ms, utilisation) = world.measure_until(s(180));
        assert!((30.0..62.0).contains(&queue_ms), "{name} at {mbit} Mbit/s: {queue_ms} ms");
        assert!(utilisation > 0.9, "{name} at {mbit} Mbit/s: {utilisation}");
        assert_eq!(world.flows[0].lost, 0);
    }
}
