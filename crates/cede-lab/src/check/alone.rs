//! Alone on an idle link: it must be used, and its buffer must not be filled.
//!
//! The incidents: uTP held at a fraction of the line by its own arithmetic on long paths (Tribler issue 2620, libtorrent
//! issue 3542), LEDBAT++ stuck between slowdowns on intercontinental ones (freenet-core issues 2510, 2532, 2619), and
//! the access buffers that a single upload fills for seconds (Gettys, "Bufferbloat", 2010), which scavengers
//! were made against.

use super::bench::{Bench, OWN};
use super::case::{Case, Family, Finding, Mark};
use super::marks::{IDLE_LINK_USED, own_delay_ms};
use super::setup::Setup;
use crate::run::RunError;

const SLOW: &str = "A slow uplink, where one packet takes as long as a whole round trip elsewhere: delay arithmetic in packets breaks down (the reason for CoDel's \"target at least one packet\").";
const USUAL: &str = "The link that everything was designed on. Who fails here need not look further.";
const LONG: &str = "A long fat path: the window must grow to hundreds or thousands of packets before the transfer is over. freenet-core issues 2510 and 2619: LEDBAT++ at 75 kB/s on a path that carried eight times that; Tribler issue 2620: uTP's rate falls with latency.";
const SHORT: &str = "A local network: the round trip is shorter than a clock tick or a delayed acknowledgement, and a window of two packets is already a standing queue.";
const FAST: &str = "A fast line: one packet per round trip is no growth at all, and the queue of a target delay is megabytes.";

const fn case(
    name: &'static str,
    world: &'static str,
    story: &'static str,
    measure: super::case::Measure,
) -> Case {
    Case { name, family: Family::Alone, world, story, measure }
}

/// Rate and RTT; the window of measurement begins after 50 round trips or 15 s, whichever is more.
pub(super) const CASES: &[Case] = &[
    case("alone/500-kbit-20-ms", "0.5 Mbit/s, 20 ms", SLOW, |bench| alone(bench, 0.5, 20.0, (30.0, 90.0))),
    case("alone/2-mbit-100-ms", "2 Mbit/s, 100 ms", SLOW, |bench| alone(bench, 2.0, 100.0, (20.0, 60.0))),
    case("alone/10-mbit-1-ms", "10 Mbit/s, 1 ms", SHORT, |bench| alone(bench, 10.0, 1.0, (15.0, 45.0))),
    case("alone/10-mbit-50-ms", "10 Mbit/s, 50 ms", USUAL, |bench| alone(bench, 10.0, 50.0, (15.0, 60.0))),
    case("alone/10-mbit-600-ms", "10 Mbit/s, 600 ms", LONG, |bench| alone(bench, 10.0, 600.0, (30.0, 90.0))),
    case("alone/100-mbit-20-ms", "100 Mbit/s, 20 ms", USUAL, |bench| alone(bench, 100.0, 20.0, (15.0, 35.0))),
    case("alone/100-mbit-200-ms", "100 Mbit/s, 200 ms", LONG, |bench| {
        alone(bench, 100.0, 200.0, (15.0, 45.0))
    }),
    case("alone/100-mbit-600-ms", "100 Mbit/s, 600 ms", LONG, |bench| {
        alone(bench, 100.0, 600.0, (30.0, 60.0))
    }),
    case("alone/1000-mbit-1-ms", "1 Gbit/s, 1 ms", SHORT, |bench| alone(bench, 1_000.0, 1.0, (5.0, 10.0))),
    case("alone/1000-mbit-40-ms", "1 Gbit/s, 40 ms", FAST, |bench| alone(bench, 1_000.0, 40.0, (10.0, 16.0))),
];

fn alone(
    bench: &Bench<'_>,
    rate_mbps: f64,
    rtt_ms: f64,
    (from_s, until_s): (f64, f64),
) -> Result<Vec<Finding>, RunError> {
    let setup = Setup::new(rate_mbps, rtt_ms).buffer("250 ms").window(from_s, until_s).with(bench.own(""));
    let seen = bench.run(&setup)?;
    Ok(vec![
        Finding::new("link used", seen.rate_mbps(OWN) / rate_mbps, Mark::AtLeast(IDLE_LINK_USED)),
        Finding::new(
            "own queue, p95 ms",
            seen.bottleneck().delays.p95_ms,
            Mark::AtMost(own_delay_ms(rate_mbps)),
        ),
    ])
}
