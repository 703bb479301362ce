//! Several flows of the same kind.

use super::bench::{Bench, OWN};
use super::case::{Case, Family, Finding, Mark, Measure};
use super::marks::{EQUALS_JAIN, IDLE_LINK_USED, own_delay_ms};
use super::setup::Setup;
use crate::run::RunError;

const RATE_MBPS: f64 = 10.0;
const RTT_MS: f64 = 50.0;

/// With round trips of 1 to 6 AIMD shares about as 6 to 1 or worse (Lakshman and Madhow, 1997: rates go as RTT to a
/// power between one and two). A scavenger need not do better than best effort, but who gets less than a tenth of the
/// link is starved.
const LONG_PATH_SHARE: f64 = 0.1;

const fn case(name: &'static str, world: &'static str, story: &'static str, measure: Measure) -> Case {
    Case { name, family: Family::Sharing, world, story, measure }
}

pub(super) const CASES: &[Case] = &[
    case(
        "sharing/late-comer",
        "10 Mbit/s, 50 ms; a second flow comes 30 s after the first",
        "Who comes late takes the first one's queue for the path and starves it (Carofiglio, Muscariello, Rossi, Valenti, \"The quest for LEDBAT fairness\", 2010; RFC 6817, section 4.4): the reason for LEDBAT++'s slowdowns.",
        late_comer,
    ),
    case(
        "sharing/four-equals",
        "10 Mbit/s, 50 ms; four flows within two seconds of each other",
        "A BitTorrent client has dozens of connections on one uplink: they must share it, and together still use it.",
        equals,
    ),
    case(
        "sharing/slow-link",
        "3 Mbit/s, 40 ms; four flows within two seconds of each other",
        "The uplink of a village or a phone: with a few packets each they are at their smallest windows, and what one of them does is several milliseconds to all others. Who takes that for something else than a queue has the link, and everybody's delay, for himself: `cede` did.",
        slow_link,
    ),
    case(
        "sharing/different-rtts",
        "10 Mbit/s; one flow of 20 ms, one of 120 ms",
        "Peers near and far: who is far must not be starved.",
        different_rtts,
    ),
];

fn late_comer(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let setup = Setup::new(RATE_MBPS, RTT_MS).window(60.0, 150.0).with(bench.own(""));
    let seen = bench.run(&setup.with(bench.own_too("own-late", "start = \"30 s\"")))?;
    let used = (seen.rate_mbps(OWN) + seen.rate_mbps("own-late")) / RATE_MBPS;
    Ok(vec![
        Finding::new("Jain's index", seen.jain(), Mark::AtLeast(EQUALS_JAIN)),
        Finding::new("link used", used, Mark::AtLeast(IDLE_LINK_USED)),
    ])
}

fn equals(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let (findings, _) = four(bench, RATE_MBPS, Setup::new(RATE_MBPS, RTT_MS))?;
    Ok(findings)
}

/// How four flows share a link, and its 95th percentile of delay in milliseconds.
pub(super) fn four(bench: &Bench<'_>, rate_mbps: f64, setup: Setup) -> Result<(Vec<Finding>, f64), RunError> {
    let four = bench.own("count = 4\nstart_jitter = \"2 s\"");
    let seen = bench.run(&setup.window(40.0, 130.0).with(four))?;
    let findings = vec![
        Finding::new("Jain's index", seen.jain(), Mark::AtLeast(EQUALS_JAIN)),
        Finding::new("link used", seen.rate_mbps(OWN) / rate_mbps, Mark::AtLeast(IDLE_LINK_USED)),
    ];
    Ok((findings, seen.bottleneck().delays.p95_ms))
}

fn slow_link(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    const MBPS: f64 = 3.0;
    let (mut findings, p95_ms) = four(bench, MBPS, Setup::new(MBPS, 40.0))?;
    findings.push(Finding::new("own queue, p95 ms", p95_ms, Mark::AtMost(own_delay_ms(MBPS))));
    Ok(findings)
}

fn different_rtts(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let far = bench.own_too("own-far", "access_delay = \"50 ms\"\nreturn_delay = \"50 ms\"");
    let setup = Setup::new(RATE_MBPS, 20.0).window(40.0, 130.0).with(bench.own("")).with(far);
    let seen = bench.run(&setup)?;
    let least = seen.share(OWN).min(seen.share("own-far"));
    let used = (seen.rate_mbps(OWN) + seen.rate_mbps("own-far")) / RATE_MBPS;
    Ok(vec![
        Finding::new("the smaller share", least, Mark::AtLeast(LONG_PATH_SHARE)),
        Finding::new("link used", used, Mark::AtLeast(IDLE_LINK_USED)),
    ])
}
