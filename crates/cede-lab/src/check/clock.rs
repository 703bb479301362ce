//! Clocks that run apart, and clocks that are set.
//!
//! One-way delays are differences of two clocks (RFC 6817, appendix A.2). A receiver's clock that gains looks like a
//! queue that grows, one that loses like a queue that never is.

use super::bench::{Bench, OWN};
use super::case::{Case, Family, Finding, Mark, Measure};
use super::marks::{HARD_LINK_USED, IDLE_LINK_USED, own_delay_ms};
use super::setup::Setup;
use crate::run::RunError;

const RATE_MBPS: f64 = 4.0;
const RTT_MS: f64 = 50.0;

const fn case(name: &'static str, world: &'static str, story: &'static str, measure: Measure) -> Case {
    Case { name, family: Family::Clock, world, story, measure }
}

/// Quartz oscillators of computers are within 100 ppm or so of each other: 20 ms in 200 s.
const DRIFT: &str = "Quartzes that disagree by 100 ppm, for five minutes: 30 ms, a third of RFC 6817's target. nim-eth issue 727: the compensation that libutp has is hard to get right.";
const STEP: &str =
    "NTP sets a clock that was a second off: the one-way delay jumps by a second, and stays there.";

pub(super) const CASES: &[Case] = &[
    case("clock/gains", "4 Mbit/s, 50 ms; the receiver's clock gains 100 ppm for 5 min", DRIFT, |bench| {
        drift(bench, 100)
    }),
    case("clock/loses", "the same, and it loses 100 ppm", DRIFT, |bench| drift(bench, -100)),
    case(
        "clock/set-forward",
        "4 Mbit/s, 50 ms; the receiver's clock is set forward by 1 s at 40 s",
        STEP,
        |bench| step(bench, 1),
    ),
    case("clock/set-back", "the same, and it is set back", STEP, |bench| step(bench, -1)),
];

fn host(options: &str) -> String {
    format!("[[host]]\nname = \"{OWN}-receiver\"\n{options}\n")
}

fn measure(bench: &Bench<'_>, setup: Setup, least: f64) -> Result<Vec<Finding>, RunError> {
    let seen = bench.run(&setup.with(bench.own("")))?;
    Ok(vec![
        Finding::new("link used", seen.rate_mbps(OWN) / RATE_MBPS, Mark::AtLeast(least)),
        Finding::new(
            "own queue, p95 ms",
            seen.bottleneck().delays.p95_ms,
            Mark::AtMost(own_delay_ms(RATE_MBPS)),
        ),
    ])
}

fn drift(bench: &Bench<'_>, ppm: i32) -> Result<Vec<Finding>, RunError> {
    let setup = Setup::new(RATE_MBPS, RTT_MS).window(200.0, 300.0);
    measure(bench, setup.with(host(&format!("clock_drift = \"{ppm} ppm\""))), IDLE_LINK_USED)
}

fn step(bench: &Bench<'_>, seconds: i32) -> Result<Vec<Finding>, RunError> {
    let setup = Setup::new(RATE_MBPS, RTT_MS).window(55.0, 85.0);
    let clock = host(&format!("clock_step = \"{seconds} s\"\nclock_step_at = \"40 s\""));
    measure(bench, setup.with(clock), HARD_LINK_USED)
}
