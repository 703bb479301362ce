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
