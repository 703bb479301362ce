//! Checks of the rate-based controllers that need a link.

mod support;

use cede_cc::Phase;
use cede_units::{Duration, Instant, Rate};
use support::{Flow, MSS, World, build, ms, s};

/// The time that so many full packets take at 10 Mbit/s.
fn packets(count: u64) -> Duration {
    Duration::from_micros(1200 * count)
}

/// 10 Mbit/s, 50 ms.
fn link(buffer: Duration, flows: Vec<Flow>) -> World {
    World::new(Rate::from_mbit(10), ms(50), buffer, flows)
}

#[test]
fn check_6_for_tcp_bbr_alone_keeps_the_queue_short_and_dips_every_ten_seconds() {
    let mut world = link(packets(100), vec![Flow::new(build("bbr", &[]))]);
    world.run_until(s(2));
    let (queue_ms, utilisation) = world.measure_until(s(60));
    // The window's room for three bursts of two packets waits in the queue: 7.2 ms.
    assert!(queue_ms < 10.0 && utilisation > 0.95, "{queue_ms} ms, {utilisation}");
    let mut dips = Vec::new();
    for tick in 6000..12_000_u64 {
        world.run_until(Instant::from_millis(10 * tick));
        let snapshot = world.flows[0].controller.snapshot();
        if snapshot.phase == Phase::Named("probe RTT") && snapshot.cwnd_bytes == f64::from(4 * MSS) {
            dips.push(tick);
        }
    }
    let starts: Vec<u64> = dips.iter().filter(|&&tick| !dips.contains(&(tick - 1))).copied().collect();
    assert!((5..=6).contains(&starts.len()), "{starts:?}");
    // 200 ms from when four packets are under way, and one round.
    let length = dips.len() / starts.len();
    assert!((20..=30).contains(&length), "{length} ticks of 10 ms");
    assert!(starts.windows(2).all(|pair| (1000..=1060).contains(&(pair[1] - pair[0]))), "{starts:?}");
}

#[test]
fn bbr_holds_two_bandwidth_delay_products_and_no_more_beside_another() {
    let flows =
        [0, 3].map(|start| Flow::new(build("bbr", &[("seed", &start.to_string())])).starting_at(s(start)));
    let mut world = link(packets(400), flows.into());
    world.run_until(s(30));
    let (queue_ms, utilisation) = world.measure_until(s(120));
    // Each holds twice its share: one bandwidth-delay product waits in all, and three bursts of two packets of each.
    let expected_ms = 50.0 + 12.0 * 1.2;
    assert!((queue_ms - expected_ms).abs() < 10.0 && utilisation > 0.96, "{queue_ms} ms, {utilisation}");
    assert!((world.share(0) - 0.5).abs() < 0.1, "{}", world.share(0));
}

#[test]
fn bbr_takes_a_shallow_buffer_from_reno_and_shares_a_deep_one() {
    let share = |buffer| {
        let flows = vec![Flow::new(build("bbr", &[])), Flow::new(build("reno", &[]))];
        let mut world = link(buffer, flows);
        world.run_until(s(30));
        world.measure_until(s(300));
        world.share(0)
    };
    // 42 packets are a bandwidth-delay product.
    let (shallow, deep) = (share(packets(21)), share(packets(336)));
    assert!(shallow > 0.75, "half a bandwidth-delay product: {shallow}");
    assert!((0.3..0.6).contains(&deep), "eight: {deep}");
}

#[test]
fn bbr_ignores_random_loss_that_stops_reno() {
    let utilisation = |name| {
        let mut world = link(packets(100), vec![Flow::new(build(name, &[]))]);
        world.loss = 0.02;
        world.run_until(s(10));
        world.measure_until(s(60)).1
    };
    let (bbr, reno) = (utilisation("bbr"), utilisation("reno"));
    assert!(bbr > 0.9 && reno < 0.4, "{bbr}, {reno}");
}

#[test]
fn check_4_alone_proteus_fills_the_link_with_next_to_no_queue() {
    // A toy of the rules gives 0.936 and 0.949 of the link, and 2.5 packets of queue on average; here it is 0.939 and 0.953,
    // and 1.7 and 1.8 packets. Vivace, which has no published figure for this, overlooks more.
    for (name, least) in [("proteus-s", 0.88), ("proteus-p", 0.90), ("vivace", 0.90)] {
        let mut world = link(packets(100), vec![Flow::new(build(name, &[]))]);
        world.run_until(s(10));
        let (queue_ms, utilisation) = world.measure_until(s(60));
        assert!(utilisation > least && queue_ms < 8.0, "{name}: {queue_ms} ms, {utilisation}");
        assert_eq!(world.flows[0].lost, 0, "{name}");
    }
}

/// The mean share of the first of two flows over 120 s, over ten seeds and leads of 0.5 to 1.5 s.
fn mean_share(first: &str, second: &str, buffer: Duration) -> f64 {
    let one = |run: u64| {
        let seed = run.to_string();
        let own = |name: &str| {
            let params: &[_] = if name == "reno" { &[] } else { &[("seed", seed.as_str())] };
            Flow::new(build(name, params))
        };
        let late = own(second).starting_at(Instant::from_millis(500 + 111 * run));
        let mut world = link(buffer, vec![own(first), late]);
        world.measure_until(s(120));
        world.share(0)
    };
    (0..10).map(one).sum::<f64>() / 10.0
}

#[test]
fn check_5_beside_reno_the_scavenger_takes_less_than_the_primary() {
    // The toy: 0.05 to 0.24 and 0.28 to 0.55 with 100 packets of buffer, by the lead.
    let scavenger = mean_share("proteus-s", "reno", packets(100));
    let primary = mean_share("proteus-p", "reno", packets(100));
    assert!((0.03..0.25).contains(&scavenger), "{scavenger}");
    assert!((0.15..0.55).contains(&primary) && primary > scavenger + 0.03, "{primary}, {scavenger}");
}

#[test]
fn check_5_beside_the_primary_the_scavenger_yields() {
    // The toy: 0.130.
    let share = mean_share("proteus-s", "proteus-p", packets(100));
    assert!(share < 0.25, "{share}");
}

#[test]
fn check_6_three_percent_of_random_loss_costs_the_primary_little() {
    let mut world = link(packets(100), vec![Flow::new(build("proteus-p", &[]))]);
    world.loss = 0.03;
    world.run_until(s(20));
    let (_, utilisation) = world.measure_until(s(120));
    assert!(utilisation > 0.8, "{utilisation}");
}

/// 100 Mbit/s, where an interval has some 400 packets and the break-even lies at 5.0 %. Of random loss of 8 % on 10 Mbit/s an
/// interval of 40 packets says so little that two of three pairs, which move a primary up, agree more often by chance than
/// three of three, which move it down: it keeps three quarters of the link.
#[test]
fn check_6_above_the_break_even_the_primary_collapses() {
    let utilisation = |loss| {
        let flow = Flow::new(build("proteus-p", &[]));
        let mut world = World::new(Rate::from_mbit(100), ms(50), ms(100), vec![flow]);
        world.regular_loss = loss;
        world.run_until(s(30));
        world.measure_until(s(90)).1
    };
    let (below, above) = (utilisation(0.03), utilisation(0.08));
    assert!(below > 0.85, "{below}");
    assert!(above < 0.3, "{above}");
}

#[test]
fn check_7_the_same_seed_gives_the_same_run_and_another_does_not() {
    let run = |seed| {
        let flows = ["proteus-s", "proteus-p"].map(|name| Flow::new(build(name, &[("seed", seed)])));
        let mut world = link(packets(100), flows.into());
        world.run_until(s(30));
        let snapshots: Vec<_> = world.flows.iter().map(|flow| flow.controller.snapshot()).collect();
        (world.share(0), snapshots)
    };
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

#[test]
fn two_of_a_kind_share_evenly() {
    for (name, within) in [("proteus-s", 0.2), ("proteus-p", 0.1), ("vivace", 0.1)] {
        let flows =
            [0, 3].map(|start| Flow::new(build(name, &[("seed", &start.to_string())])).starting_at(s(start)));
        let mut world = link(packets(100), flows.into());
        world.run_until(s(60));
        world.measure_until(s(240));
        assert!((world.share(0) - 0.5).abs() < within, "{name}: {}", world.share(0));
    }
}

#[test]
fn a_hybrid_keeps_what_it_needs_beside_the_primary_and_no_more() {
    let mut world = link(
        packets(100),
        vec![Flow::new(build("proteus-h", &[("threshold", "4 Mbit/s")])), Flow::new(build("proteus-p", &[]))],
    );
    world.run_until(s(60));
    world.measure_until(s(240));
    assert!((0.2..0.5).contains(&world.share(0)), "{}", world.share(0));
}

#[test]
fn all_take_the_link_back_when_reno_leaves() {
    for name in ["bbr", "vivace", "proteus-p", "proteus-s", "proteus-h"] {
        for seed in 0..4 {
            let own = Flow::new(build(name, &[("seed", &seed.to_string())]))
                .starting_at(Instant::from_millis(20_000 + 77 * seed));
            let mut world = link(packets(200), vec![Flow::new(build("reno", &[])).stopping_at(s(60)), own]);
            world.run_until(s(70));
            let (_, utilisation) = world.measure_until(s(90));
            assert!(utilisation > 0.8, "{name} {seed}: {utilisation}");
        }
    }
}
