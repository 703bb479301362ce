//! Applications that pause: the window that was right before says nothing afterwards.

use super::bench::{Bench, OWN};
use super::case::{Case, Family, Finding, Mark, Measure};
use super::marks::own_delay_ms;
use super::setup::Setup;
use crate::run::RunError;

const RATE_MBPS: f64 = 20.0;
const RTT_MS: f64 = 40.0;

/// A stream that asks for a tenth of the link gets it: what is missing was sent again or is under way.
const STREAM_KEPT: f64 = 0.95;
/// It needs no queue; one packet that finds another in service waits 0.6 ms.
const STREAM_QUEUE_MS: f64 = 5.0;
/// Of five seconds with data, two are for growing again from nothing.
const AFTER_PAUSE_USED: f64 = 0.6;
/// A window of before the pause sent at once is a burst into the buffer. One packet in a hundred lost is what TCP's slow
/// start may cost, at most.
const AFTER_PAUSE_LOSS: f64 = 0.01;

const fn case(name: &'static str, world: &'static str, story: &'static str, measure: Measure) -> Case {
    Case { name, family: Family::Application, world, story, measure }
}

pub(super) const CASES: &[Case] = &[
    case(
        "application/limited",
        "20 Mbit/s, 40 ms; the application has 2 Mbit/s",
        "A stream that needs a tenth of the link: a controller that reads \"not used\" as \"not there\" shrinks below it (freenet-core issue 2619: the cap of an application-limited window).",
        limited,
    ),
    case(
        "application/pauses",
        "20 Mbit/s, 40 ms, 100 ms of buffer; 5 s with data, 10 s without",
        "A seeder between requests (RFC 2861, RFC 7661): the old window after a pause is a burst, a forgotten one a crawl.",
        pauses,
    ),
];

fn limited(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    const STREAM_MBPS: f64 = 2.0;
    let traffic = "traffic = { kind = \"paced\", rate = \"2 Mbit/s\", message = \"1000 B\" }";
    let seen = bench.run(&Setup::new(RATE_MBPS, RTT_MS).window(15.0, 60.0).with(bench.own(traffic)))?;
    let goodput: f64 = seen.flows(OWN).map(|flow| flow.goodput_mbps).sum();
    Ok(vec![
        Finding::new("of what it had to say", goodput / STREAM_MBPS, Mark::AtLeast(STREAM_KEPT)),
        Finding::new("own queue, p95 ms", seen.bottleneck().delays.p95_ms, Mark::AtMost(STREAM_QUEUE_MS)),
    ])
}

fn pauses(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let traffic = "traffic = { kind = \"on_off\", on = \"5 s\", off = \"10 s\" }";
    let setup = Setup::new(RATE_MBPS, RTT_MS).buffer("100 ms").window(15.0, 105.0).with(bench.own(traffic));
    let seen = bench.run(&setup)?;
    // A third of the time there is data to send.
    let used = 3.0 * seen.rate_mbps(OWN) / RATE_MBPS;
    Ok(vec![
        Finding::new("link used while it had data", used, Mark::AtLeast(AFTER_PAUSE_USED)),
        Finding::new("loss", seen.bottleneck().loss, Mark::AtMost(AFTER_PAUSE_LOSS)),
        Finding::new(
            "own queue, p95 ms",
            seen.bottleneck().delays.p95_ms,
            Mark::AtMost(own_delay_ms(RATE_MBPS)),
        ),
    ])
}
