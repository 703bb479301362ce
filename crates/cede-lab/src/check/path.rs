//! Paths that shake, reorder and change.
//!
//! A delay-based controller measures the queue against the shortest delay it remembers. When the path itself becomes
//! longer, that memory is wrong until it has been forgotten: ten minutes by RFC 6817's advice, thirteen in libutp.

use super::bench::{Bench, OWN, RENO};
use super::case::{Case, Family, Finding, Mark, Measure};
use super::marks::{HARD_LINK_USED, PART_OF_RENO, TAKE_BACK_S, TAKEN_BACK, own_delay_ms};
use super::setup::Setup;
use crate::run::RunError;

const RATE_MBPS: f64 = 20.0;
/// Where a window of a few packets and acknowledgements that wait for a timer meet.
const SLOW_MBPS: f64 = 4.0;
/// For so long after a change its answer is measured, and then again.
const SOON_S: f64 = 30.0;
const LATER_S: (f64, f64) = (280.0, 340.0);

const fn case(name: &'static str, world: &'static str, story: &'static str, measure: Measure) -> Case {
    Case { name, family: Family::Path, world, story, measure }
}

pub(super) const CASES: &[Case] = &[
    case(
        "path/jitter",
        "20 Mbit/s, 40 ms, up to 20 ms of jitter in order",
        "A shared radio link: delay that is no queue. Tribler issue 2620: at 600 ms with jitter of 200 ms uTP had a hundredth of what TCP had.",
        |bench| used(bench, &Setup::new(RATE_MBPS, 40.0).link("jitter = \"20 ms\"").window(20.0, 60.0)),
    ),
    case(
        "path/medium-jitter",
        "the same with up to 40 ms",
        "Between the two: more than a target allows for, and no more than a queue may be. Of a hundred packets under way even the least waits for half of it. Found in a controller that used nearly all of the link under 20 and under 60 ms, and a third under 40.",
        |bench| used(bench, &Setup::new(RATE_MBPS, 40.0).link("jitter = \"40 ms\"").window(20.0, 60.0)),
    ),
    case(
        "path/more-jitter",
        "the same with up to 80 ms",
        "A crowded Wi-Fi or a mobile network at its edge: twice the base RTT, and more than most targets. Nobody else is there, so what is left unused helps nobody.",
        |bench| used(bench, &Setup::new(RATE_MBPS, 40.0).link("jitter = \"80 ms\"").window(20.0, 60.0)),
    ),
    case(
        "path/reordering",
        "20 Mbit/s, 40 ms, one packet in a hundred 10 ms late and overtaken",
        "Several links in parallel: three packets that overtake one look like its loss. The measure is Reno over the same transport.",
        reordering,
    ),
    case(
        "path/longer",
        "20 Mbit/s; the base RTT rises from 40 to 140 ms at 40 s",
        "A tunnel or satellite takes over: all of the new delay looks like a queue until the old one has been forgotten (S. Shalunov on Tribler issue 2620: the base delay did not seem to reset).",
        |bench| longer(bench, RATE_MBPS, "120 ms", 60.0, ""),
    ),
    case(
        "path/far-longer",
        "20 Mbit/s; the base RTT rises from 40 to 340 ms at 40 s",
        "The same by 300 ms, three times a target of 100: whoever holds still at his target above starves here.",
        |bench| longer(bench, RATE_MBPS, "320 ms", 70.0, ""),
    ),
    case(
        "path/longer-delayed",
        "4 Mbit/s; 40 ms, 140 from 40 s on; one acknowledgement for two packets, or by a timer",
        "The same with a receiver that saves work, as every TCP and some uTP do: at a window of two packets each acknowledgement waits for its timer, at a larger one none does, and what was learnt at the small one is wrong. Found in a controller that passed path/longer and stood at 0.06 of the link for ten minutes here.",
        |bench| longer(bench, SLOW_MBPS, "120 ms", 60.0, bench.lazy_receiver()),
    ),
    case(
        "path/stalls",
        "10 Mbit/s, 40 ms, 100 packets of buffer; 10 kbit/s for a minute from 40 s on",
        "A phone in a lift: the queue is two minutes long then, and round trips with it. Who has paced by them must not wait for them when the link is back: 83 s of silence were seen.",
        stalls,
    ),
    case(
        "path/shorter",
        "20 Mbit/s; the base RTT falls from 140 to 40 ms at 40 s",
        "And back again: the window that filled the long path is a queue on the short one.",
        |bench| {
            let setup = Setup::new(RATE_MBPS, 140.0).change(40.0, "delay = \"20 ms\"").window(60.0, 90.0);
            used_at_low_delay(bench, &setup, RATE_MBPS)
        },
    ),
    case(
        "path/slower",
        "40 ms; the rate falls from 20 to 4 Mbit/s at 40 s, with 1 s of buffer then",
        "A modem trains again, or the phone leaves the window: what was in flight becomes a queue of a second.",
        |bench| {
            let setup = Setup::new(RATE_MBPS, 40.0).buffer("512 kB").change(40.0, "rate = \"4 Mbit/s\"");
            used_at_low_delay(bench, &setup.window(50.0, 90.0), 4.0)
        },
    ),
    case(
        "path/faster",
        "40 ms; the rate rises from 4 to 20 Mbit/s at 40 s",
        "And comes back: who remembers an old ceiling crawls below the new one.",
        |bench| {
            let setup = Setup::new(4.0, 40.0).buffer("512 kB").change(40.0, "rate = \"20 Mbit/s\"");
            used(bench, &setup.window(55.0, 90.0))
        },
    ),
];

/// The base RTT rises at 40 s: what is used soon after, and what minutes later. A base that creeps up hides in the first.
fn longer(
    bench: &Bench<'_>,
    rate_mbps: f64,
    delay: &str,
    from_s: f64,
    options: &str,
) -> Result<Vec<Finding>, RunError> {
    let setup = Setup::new(rate_mbps, 40.0).change(40.0, &format!("delay = \"{delay}\""));
    let seen = bench.run(&setup.window(from_s, LATER_S.1).with(bench.own(options)))?;
    let used = |(from_s, until_s)| seen.mean_rate_mbps(OWN, from_s, until_s) / rate_mbps;
    Ok(vec![
        Finding::new("link used", used((from_s, from_s + SOON_S)), Mark::AtLeast(HARD_LINK_USED)),
        Finding::new("link used four minutes later", used(LATER_S), Mark::AtLeast(HARD_LINK_USED)),
    ])
}

fn stalls(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    const MBPS: f64 = 10.0;
    const BACK_S: f64 = 100.0;
    let setup = Setup::new(MBPS, 40.0).buffer("100 packets").window(BACK_S, BACK_S + 60.0);
    let setup = setup.change(40.0, "rate = \"10 kbit/s\"").change(BACK_S, "rate = \"10 Mbit/s\"");
    let took_s = bench.run(&setup.with(bench.own("")))?.time_to_reach_s(OWN, TAKEN_BACK * MBPS, BACK_S);
    Ok(vec![Finding::new("seconds to take it back", took_s, Mark::AtMost(TAKE_BACK_S))])
}

fn used(bench: &Bench<'_>, setup: &Setup) -> Result<Vec<Finding>, RunError> {
    let seen = bench.run(&setup.clone().with(bench.own("")))?;
    Ok(vec![Finding::new("link used", seen.rate_mbps(OWN) / RATE_MBPS, Mark::AtLeast(HARD_LINK_USED))])
}

fn used_at_low_delay(bench: &Bench<'_>, setup: &Setup, rate_mbps: f64) -> Result<Vec<Finding>, RunError> {
    let seen = bench.run(&setup.clone().with(bench.own("")))?;
    Ok(vec![
        Finding::new("link used", seen.rate_mbps(OWN) / rate_mbps, Mark::AtLeast(HARD_LINK_USED)),
        Finding::new(
            "own queue, p95 ms",
            seen.bottleneck().delays.p95_ms,
            Mark::AtMost(own_delay_ms(rate_mbps)),
        ),
    ])
}

fn reordering(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let rule = "reorder = { probability = 0.01, extra_delay = \"10 ms\" }";
    let setup = Setup::new(RATE_MBPS, 40.0).link(rule).window(15.0, 60.0);
    let reno = bench.run(&setup.clone().with(bench.reno("")))?.rate_mbps(RENO);
    let own = bench.run(&setup.with(bench.own("")))?.rate_mbps(OWN);
    Ok(vec![Finding::new("rate over Reno's", own / reno, Mark::AtLeast(PART_OF_RENO))])
}
