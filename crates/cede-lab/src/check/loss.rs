//! Losses that mean no congestion.

use super::bench::{Bench, OWN, RENO};
use super::case::{Case, Family, Finding, Mark, Measure};
use super::marks::{HARD_LINK_USED, IDLE_LINK_USED, PART_OF_RENO};
use super::setup::Setup;
use crate::run::RunError;

const RATE_MBPS: f64 = 10.0;
const RTT_MS: f64 = 50.0;

const fn case(name: &'static str, world: &'static str, story: &'static str, measure: Measure) -> Case {
    Case { name, family: Family::Loss, world, story, measure }
}

pub(super) const CASES: &[Case] = &[
    case(
        "loss/single",
        "10 Mbit/s, 50 ms; one packet lost at 30 s",
        "One bit error: halving the window of a full pipe with a queue of a target delay behind it must not leave the pipe empty for long.",
        single,
    ),
    case(
        "loss/1-percent",
        "10 Mbit/s, 50 ms, 1 % random loss",
        "A radio link. The rule that halves for each loss is Reno's as well, so the measure is Reno over the same transport; some uTP senders are far below it (libtorrent issue 3542, \"Poor uTP performance\").",
        |bench| random(bench, 0.01),
    ),
    case(
        "loss/5-percent",
        "the same with 5 %",
        "A bad radio link, or far away: freenet-core issue 2669, transfers that failed on lossy paths until the project looked for something else than LEDBAT.",
        |bench| random(bench, 0.05),
    ),
    case(
        "loss/no-crawl",
        "10 Mbit/s, 50 ms; 20 % loss from 30 s to 35 s",
        "Five bad seconds, then all is well again: no crawl that lasts. freenet-core issue 2459 (\"LEDBAT death spiral\"): timeouts that backed off and never came back, 28 s for 2.3 MB.",
        no_crawl,
    ),
];

fn single(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let setup = Setup::new(RATE_MBPS, RTT_MS).window(30.0, 40.0).change(30.0, "lose = \"1 packet\"");
    let seen = bench.run(&setup.with(bench.own("")))?;
    let used = seen.rate_mbps(OWN) / RATE_MBPS;
    Ok(vec![Finding::new("link used in 10 s after it", used, Mark::AtLeast(IDLE_LINK_USED))])
}

fn random(bench: &Bench<'_>, loss: f64) -> Result<Vec<Finding>, RunError> {
    let setup = Setup::new(RATE_MBPS, RTT_MS).window(15.0, 75.0).link(&format!("loss = {loss:?}"));
    let reno = bench.run(&setup.clone().with(bench.reno("")))?.rate_mbps(RENO);
    let own = bench.run(&setup.with(bench.own("")))?.rate_mbps(OWN);
    Ok(vec![Finding::new("rate over Reno's", own / reno, Mark::AtLeast(PART_OF_RENO))])
}

fn no_crawl(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let setup = Setup::new(RATE_MBPS, RTT_MS).window(50.0, 70.0);
    let setup = setup.change(30.0, "loss = 0.2").change(35.0, "loss = 0.0").with(bench.own(""));
    let used = bench.run(&setup)?.rate_mbps(OWN) / RATE_MBPS;
    Ok(vec![Finding::new("link used 15 s later", used, Mark::AtLeast(HARD_LINK_USED))])
}
