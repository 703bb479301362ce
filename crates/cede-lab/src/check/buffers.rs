//! Buffers that are too small for a target delay, and buffers that are far too large.

use super::bench::{Bench, OWN};
use super::case::{Case, Family, Finding, Mark, Measure};
use super::marks::{FOREGROUND_KEEPS, IDLE_LINK_USED, TAKEN_BACK, own_delay_ms};
use super::queues::beside_cubic;
use super::setup::{Setup, foreground};
use crate::run::RunError;

/// AIMD that halves without a buffer uses three quarters of a pipe (Appenzeller, Keslassy, McKeown, 2004), and ten packets
/// hold a seventh of this one. A fifth less is allowed.
const SHALLOW_USED: f64 = 0.6;
/// After five seconds of CUBIC's queue have drained, the ten seconds of `marks::TAKE_BACK_S`.
const TAKE_BACK_BLOATED_S: f64 = 15.0;

const RATE_MBPS: f64 = 20.0;
const RTT_MS: f64 = 40.0;
/// A slow uplink is where five seconds of buffer were found.
const BLOATED_MBPS: f64 = 4.0;
const BEGINS_S: f64 = 20.0;
const ENDS_S: f64 = 80.0;

const fn case(name: &'static str, world: &'static str, story: &'static str, measure: Measure) -> Case {
    Case { name, family: Family::Buffers, world, story, measure }
}

pub(super) const CASES: &[Case] = &[
    case(
        "buffers/shallow",
        "20 Mbit/s, 40 ms, 10 packets of buffer",
        "A switch with a few packets per port: the target delay never shows, only losses do.",
        shallow,
    ),
    case(
        "buffers/shallow-cubic",
        "the same, beside CUBIC",
        "Where the buffer is smaller than the target, LEDBAT is Reno by another name (Ros and Welzl, \"Assessing LEDBAT's delay impact\", 2013): it should still take clearly less than an equal.",
        shallow_cubic,
    ),
    case(
        "buffers/bloated",
        "4 Mbit/s, 40 ms, 5 s of buffer",
        "Nothing is ever lost, and a loss-based upload makes everything else wait for seconds (Gettys, 2010; Chirichella and Rossi, 2013, found one peer in a hundred so).",
        bloated,
    ),
    case(
        "buffers/bloated-cubic",
        "the same, beside CUBIC for 60 s",
        "Giving way under seconds of queue, with timeouts that must not fire, and coming back when it has drained.",
        bloated_cubic,
    ),
];

fn shallow(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let setup = Setup::new(RATE_MBPS, RTT_MS).buffer("10 packets").window(15.0, 60.0).with(bench.own(""));
    let used = bench.run(&setup)?.rate_mbps(OWN) / RATE_MBPS;
    Ok(vec![Finding::new("link used", used, Mark::AtLeast(SHALLOW_USED))])
}

fn shallow_cubic(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    beside_cubic(bench, &Setup::new(RATE_MBPS, RTT_MS).buffer("10 packets").window(25.0, 100.0))
}

fn bloated(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let setup = Setup::new(BLOATED_MBPS, RTT_MS).buffer("5 s").window(20.0, 80.0).with(bench.own(""));
    let seen = bench.run(&setup)?;
    let mark = Mark::AtMost(own_delay_ms(BLOATED_MBPS));
    Ok(vec![
        Finding::new("link used", seen.rate_mbps(OWN) / BLOATED_MBPS, Mark::AtLeast(IDLE_LINK_USED)),
        Finding::new("own queue, p95 ms", seen.bottleneck().delays.p95_ms, mark),
    ])
}

fn bloated_cubic(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let other = foreground("cubic", &format!("start = \"{BEGINS_S} s\"\nstop = \"{ENDS_S} s\""));
    let setup =
        Setup::new(BLOATED_MBPS, RTT_MS).buffer("5 s").window(BEGINS_S + 5.0, ENDS_S + 40.0).with(other);
    let kept_of = |setup: &Setup| -> Result<f64, RunError> {
        Ok(bench.run(setup)?.mean_rate_mbps("cubic", BEGINS_S + 5.0, ENDS_S))
    };
    let alone = kept_of(&setup)?;
    let both = setup.with(bench.own(""));
    let kept = kept_of(&both)? / alone;
    let took_s = bench.run(&both)?.time_to_reach_s(OWN, TAKEN_BACK * BLOATED_MBPS, ENDS_S);
    Ok(vec![
        Finding::new("rate that the other keeps", kept, Mark::AtLeast(FOREGROUND_KEEPS)),
        Finding::new("seconds to take it back", took_s, Mark::AtMost(TAKE_BACK_BLOATED_S)),
    ])
}
