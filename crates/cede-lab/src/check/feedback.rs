//! Acknowledgements that come late, in batches, or through a queue of their own.

use super::bench::{Bench, OWN, RENO};
use super::case::{Case, Family, Finding, Mark, Measure};
use super::marks::{HARD_LINK_USED, IDLE_LINK_USED, PART_OF_RENO, own_delay_ms};
use super::setup::Setup;
use crate::run::RunError;
use crate::scenario::ProtocolKind;

const RATE_MBPS: f64 = 20.0;
const RTT_MS: f64 = 40.0;
/// Batches of acknowledgements release batches of data, which wait for one another for as long as a batch is.
const BATCH_MS: f64 = 30.0;

const fn case(name: &'static str, world: &'static str, story: &'static str, measure: Measure) -> Case {
    Case { name, family: Family::Feedback, world, story, measure }
}

pub(super) const CASES: &[Case] = &[
    case(
        "feedback/delayed",
        "20 Mbit/s, 40 ms; one acknowledgement for two packets, or after 100 ms",
        "Receivers that save work: half the samples, and some of them late by a timer, which is no queue.",
        delayed,
    ),
    case(
        "feedback/delayed-far",
        "2 Mbit/s, 1 s; the same receiver",
        "A satellite and a receiver that saves work: half a minute of slow start and small windows, at which each acknowledgement waits for its timer, and each waits longer than a short target.",
        delayed_far,
    ),
    case(
        "feedback/compressed",
        "20 Mbit/s, 40 ms; acknowledgements arrive in batches every 30 ms",
        "Radio and cable links grant the way back in slots (DOCSIS request and grant, Wi-Fi aggregation): bursts of acknowledgements, bursts of data.",
        compressed,
    ),
    case(
        "feedback/return-congested",
        "20 Mbit/s down, 2 Mbit/s up with 500 ms of buffer, which an upload by CUBIC fills from 15 s on",
        "A backup uploads while the background transfer downloads: round trips grow by half a second though the way of the data is free. It is what one-way delays are for; but every window then carries a twelfth of what it did, so the measure is what Reno has in its place, over the same transport.",
        return_congested,
    ),
];

fn findings(bench: &Bench<'_>, setup: &Setup, least: f64, most_ms: f64) -> Result<Vec<Finding>, RunError> {
    let seen = bench.run(setup)?;
    Ok(vec![
        Finding::new("link used", seen.rate_mbps(OWN) / RATE_MBPS, Mark::AtLeast(least)),
        Finding::new("own queue, p95 ms", seen.bottleneck().delays.p95_ms, Mark::AtMost(most_ms)),
    ])
}

fn delayed(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let options = match bench.over() {
        ProtocolKind::Utp => "utp = { ack = \"delayed\", ack_packets = 2, ack_delay = \"100 ms\" }",
        ProtocolKind::Tcp => "tcp.ack = \"delayed\"\ntcp.ack_delay = \"100 ms\"",
    };
    let setup = Setup::new(RATE_MBPS, RTT_MS).with(bench.own(options));
    findings(bench, &setup, IDLE_LINK_USED, own_delay_ms(RATE_MBPS))
}

fn delayed_far(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    const MBPS: f64 = 2.0;
    let setup = Setup::new(MBPS, 1_000.0).buffer("250 ms").window(60.0, 180.0);
    let seen = bench.run(&setup.with(bench.own(bench.lazy_receiver())))?;
    Ok(vec![
        Finding::new("link used", seen.rate_mbps(OWN) / MBPS, Mark::AtLeast(IDLE_LINK_USED)),
        Finding::new("own queue, p95 ms", seen.bottleneck().delays.p95_ms, Mark::AtMost(own_delay_ms(MBPS))),
    ])
}

fn compressed(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let setup = Setup::new(RATE_MBPS, RTT_MS).back(&format!("batch = \"{BATCH_MS} ms\"")).with(bench.own(""));
    findings(bench, &setup, HARD_LINK_USED, own_delay_ms(RATE_MBPS) + BATCH_MS)
}

fn return_congested(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    const ENDS: &str = "from = \"server\"\nto = \"laptop\"";
    let reno = bench.run_text(&two_ways(&bench.reno(ENDS)))?.rate_mbps(RENO);
    let seen = bench.run_text(&two_ways(&bench.own(ENDS)))?;
    let down_ms = seen.link("down").map_or(f64::NAN, |link| link.delays.p95_ms);
    Ok(vec![
        Finding::new("rate over Reno's", seen.rate_mbps(OWN) / reno, Mark::AtLeast(PART_OF_RENO)),
        Finding::new("own queue, p95 ms", down_ms, Mark::AtMost(own_delay_ms(RATE_MBPS))),
    ])
}

/// A home behind an asymmetric line: a server and a store outside, a laptop and a computer that backs up inside.
fn two_ways(own: &str) -> String {
    let nodes = ["server", "store", "net", "home", "laptop", "backup"];
    let nodes: String = nodes.iter().map(|name| format!("[[node]]\nname = \"{name}\"\n")).collect();
    let wire = |name: &str, from: &str, to: &str, rate: &str, delay: &str, buffer: &str, both: bool| {
        format!(
            "[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
             buffer = \"{buffer}\"\nboth_ways = {both}\n"
        )
    };
    let line = wire("down", "net", "home", "20 Mbit/s", "20 ms", "200 ms", false)
        + &wire("up", "home", "net", "2 Mbit/s", "20 ms", "500 ms", false);
    let ends: String = [("server", "net"), ("store", "net"), ("laptop", "home"), ("backup", "home")]
        .iter()
        .map(|(end, at)| wire(end, end, at, "10 Gbit/s", "0 s", "1000000 packets", true))
        .collect();
    let upload = "[[flow]]\nname = \"upload\"\nprotocol = \"tcp\"\ncontroller = \"cubic\"\nfrom = \"backup\"\nto = \"store\"\nstart = \"15 s\"\n\
                  tcp = { ack = \"linux\", min_rto = \"200 ms\" }\n";
    format!(
        "name = \"return-congested\"\nduration = \"75 s\"\nwarmup = \"30 s\"\ntopology.kind = \"graph\"\n{nodes}{line}{ends}{own}\n\
         {upload}[record]\ninterval = \"250 ms\"\n"
    )
}
