//! Bottlenecks that manage their queue, police, or send bursts: delay tells nothing there.
//!
//! Gong, Rossi and Leonardi ("Modeling the interdependency of low-priority congestion control and active queue
//! management", 2013) found that every such queue makes scavengers equals: a priority that is inferred from delay is lost
//! where there is none.

use super::bench::{Bench, OWN};
use super::case::{Case, Family, Finding, Mark, Measure};
use super::marks::{BLIND_KEEPS, BLIND_SHARE, HARD_LINK_USED, IDLE_LINK_USED, own_delay_ms};
use super::setup::{Setup, foreground};
use super::sharing::four;
use crate::run::RunError;

const RATE_MBPS: f64 = 20.0;
const RTT_MS: f64 = 40.0;

const POLICED_MBPS: f64 = 10.0;
/// Flach et al. ("An Internet-wide analysis of traffic policing", SIGCOMM 2016) found several times the losses on policed
/// flows. Loss is all that a policer says, so half of its rate, Reno's share under random loss elsewhere in this battery,
/// is the least; a twentieth is the most loss that a flow may go on provoking once it could know the rate.
const POLICED_USED: f64 = 0.5;
const POLICED_LOSS: f64 = 0.05;

const fn case(name: &'static str, world: &'static str, story: &'static str, measure: Measure) -> Case {
    Case { name, family: Family::Queues, world, story, measure }
}

const ALONE: &str = "A router that keeps its queue short by itself, as more and more do: early drops must not hold a background flow far below the link.";
const BESIDE: &str = "Beside CUBIC at a queue that holds its own delay: the scavenger sees no queue and becomes an equal (Gong, Rossi, Leonardi, 2013). It should still take clearly less.";

pub(super) const CASES: &[Case] = &[
    case("queues/codel", "20 Mbit/s, 40 ms, CoDel", ALONE, |bench| alone(bench, "codel")),
    case("queues/fq-codel", "the same with FQ-CoDel", ALONE, |bench| alone(bench, "fq-codel")),
    case("queues/pie", "the same with PIE", ALONE, |bench| alone(bench, "pie")),
    case("queues/codel-cubic", "CoDel, beside CUBIC", BESIDE, |bench| beside(bench, "codel")),
    case(
        "queues/fq-codel-cubic",
        "FQ-CoDel, beside CUBIC",
        "The scheduler gives each flow its half, and each sees only its own queue: nothing but an explicit rule can make a scavenger take less.",
        |bench| beside(bench, "fq-codel"),
    ),
    case(
        "queues/fq-codel-left",
        "10 Mbit/s, 40 ms, FQ-CoDel; CUBIC from 20 to 60 s",
        "Whoever found out that the scheduler divides the link has to find out that it no longer does: a flow that had made room was left at a fifth of an idle link for good, since its window had become too small to look again.",
        left,
    ),
    case(
        "queues/fq-codel-siblings",
        "10 Mbit/s, 50 ms, FQ-CoDel; four flows within two seconds of each other",
        "An answer to schedulers that divide the link must not be given to flows of its own kind: four that each take half of what the others leave, as `cede` did, leave a quarter of the link to nobody.",
        siblings,
    ),
    case("queues/pie-cubic", "PIE, beside CUBIC", BESIDE, |bench| beside(bench, "pie")),
    case(
        "queues/policer",
        "100 Mbit/s, 40 ms; a policer of 10 Mbit/s with a burst of 64 kB",
        "A policer has no queue at all: bursts pass at line rate, then packets vanish in rows.",
        policer,
    ),
    case(
        "queues/token-bucket",
        "a token bucket of 10 Mbit/s and 256 kB before a 100 Mbit/s line, 40 ms",
        "Cable plans with a boost: after each pause a quarter of a megabyte leaves at once, and the delay that was learnt then is not that of the steady state.",
        token_bucket,
    ),
];

fn alone(bench: &Bench<'_>, queue: &str) -> Result<Vec<Finding>, RunError> {
    let setup = Setup::new(RATE_MBPS, RTT_MS).link(&format!("queue = \"{queue}\"")).window(15.0, 60.0);
    let used = bench.run(&setup.with(bench.own("")))?.rate_mbps(OWN) / RATE_MBPS;
    Ok(vec![Finding::new("link used", used, Mark::AtLeast(HARD_LINK_USED))])
}

fn beside(bench: &Bench<'_>, queue: &str) -> Result<Vec<Finding>, RunError> {
    beside_cubic(
        bench,
        &Setup::new(RATE_MBPS, RTT_MS).link(&format!("queue = \"{queue}\"")).window(25.0, 100.0),
    )
}

/// The scheduler's other flow has gone.
fn left(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    const LEFT_MBPS: f64 = 10.0;
    const LEAVES_S: f64 = 60.0;
    let other = foreground("cubic", &format!("start = \"20 s\"\nstop = \"{LEAVES_S} s\""));
    let setup = Setup::new(LEFT_MBPS, RTT_MS).link("queue = \"fq-codel\"");
    let setup = setup.window(LEAVES_S + 20.0, LEAVES_S + 60.0).with(bench.own("")).with(other);
    let used = bench.run(&setup)?.rate_mbps(OWN) / LEFT_MBPS;
    Ok(vec![Finding::new("link used", used, Mark::AtLeast(HARD_LINK_USED))])
}

/// The scheduler's other flows are of the same kind; without it this is `sharing/four-equals`.
fn siblings(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    const MBPS: f64 = 10.0;
    let (findings, _) = four(bench, MBPS, Setup::new(MBPS, 50.0).link("queue = \"fq-codel\""))?;
    Ok(findings)
}

/// Beside CUBIC where delay says little: what is taken, and what CUBIC keeps. A flow that takes nothing itself because all that it
/// sends is lost has a small share as well.
pub(super) fn beside_cubic(bench: &Bench<'_>, setup: &Setup) -> Result<Vec<Finding>, RunError> {
    const CUBIC: &str = "cubic";
    let setup = setup.clone().with(foreground(CUBIC, ""));
    let alone = bench.run(&setup)?.rate_mbps(CUBIC);
    let both = bench.run(&setup.with(bench.own("")))?;
    Ok(vec![
        Finding::new("own share", both.share(OWN), Mark::AtMost(BLIND_SHARE)),
        Finding::new("rate that the other keeps", both.rate_mbps(CUBIC) / alone, Mark::AtLeast(BLIND_KEEPS)),
    ])
}

fn policer(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let rule = format!("policer = {{ rate = \"{POLICED_MBPS} Mbit/s\", burst = \"64 kB\" }}");
    let setup = Setup::new(100.0, RTT_MS).link(&rule).window(20.0, 80.0).with(bench.own(""));
    let seen = bench.run(&setup)?;
    Ok(vec![
        Finding::new("policed rate used", seen.rate_mbps(OWN) / POLICED_MBPS, Mark::AtLeast(POLICED_USED)),
        Finding::new("loss", seen.bottleneck().loss, Mark::AtMost(POLICED_LOSS)),
    ])
}

fn token_bucket(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    const BUCKET_MBPS: f64 = 10.0;
    let setup =
        Setup::new(BUCKET_MBPS, RTT_MS).link("burst = \"256 kB\"\npeak = \"100 Mbit/s\"").window(20.0, 70.0);
    let seen = bench.run(&setup.with(bench.own("")))?;
    Ok(vec![
        Finding::new("link used", seen.rate_mbps(OWN) / BUCKET_MBPS, Mark::AtLeast(IDLE_LINK_USED)),
        Finding::new(
            "own queue, p95 ms",
            seen.bottleneck().delays.p95_ms,
            Mark::AtMost(own_delay_ms(BUCKET_MBPS)),
        ),
    ])
}
