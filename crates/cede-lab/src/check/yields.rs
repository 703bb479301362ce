//! Giving way to what somebody waits for, and coming back when it is gone.
//!
//! The incident: in December 2008 the announcement of uTP was read as the end of Internet telephony ("BitTorrent
//! declares war on VoIP, gamers", The Register); that it was not so is what the delay target is for.

use super::bench::{Bench, OWN};
use super::case::{Case, Family, Finding, Mark, Measure};
use super::marks::{FOREGROUND_KEEPS, TAKE_BACK_S, TAKEN_BACK};
use super::setup::{Setup, foreground};
use crate::run::RunError;

const RATE_MBPS: f64 = 20.0;
/// The foreground flow begins and ends at these times.
const BEGINS_S: f64 = 20.0;
const ENDS_S: f64 = 80.0;

/// A call: ITU-T G.114 finds 150 ms one way good. Codec, packets and jitter buffer take 30 ms of it and the path of this
/// case 20 ms, so the queue may have 100 ms.
const CALL_QUEUE_MS: f64 = 100.0;
/// Concealment hides about one packet in a hundred (ITU-T G.113, appendix I, for G.711 with concealment).
const CALL_LOSS: f64 = 0.01;
/// An answer within a second does not interrupt one's flow of thought (Nielsen, "Usability Engineering", 1993).
const PAGE_S: f64 = 1.0;

const fn case(name: &'static str, world: &'static str, story: &'static str, measure: Measure) -> Case {
    Case { name, family: Family::Yields, world, story, measure }
}

const DOWNLOAD: &str = "Somebody's download beside the background transfer: it keeps nine tenths of its rate, measured from five seconds after it began. LCN 2010 measured a hundredth each for ten LEDBAT flows beside one TCP.";
const BACK: &str = "The link is idle again: whoever gave way takes it back within ten seconds. freenet-core issue 2459: windows at the minimum for half a minute after a brief congestion.";

pub(super) const CASES: &[Case] = &[
    case("yields/cubic", "20 Mbit/s, 40 ms, 200 ms of buffer; CUBIC for 60 s", DOWNLOAD, |bench| {
        keeps(bench, "cubic")
    }),
    case("yields/reno", "the same with Reno", DOWNLOAD, |bench| keeps(bench, "reno")),
    case(
        "yields/bbr",
        "the same with BBR v1",
        "BBR keeps the queue short itself, so that delay says little: LEDBAT++ was measured to take nine tenths from it.",
        |bench| keeps(bench, "bbr"),
    ),
    case("yields/back-after-cubic", "as yields/cubic, after CUBIC ended", BACK, |bench| {
        takes_back(bench, "cubic")
    }),
    case("yields/back-after-bbr", "as yields/bbr, after BBR ended", BACK, |bench| takes_back(bench, "bbr")),
    case(
        "yields/web",
        "10 Mbit/s, 40 ms; 30 downloads of 100 kB at random times in a minute",
        "Pages are short flows: over before a controller has seen them, and every round trip pays the standing queue.",
        web,
    ),
    case(
        "yields/call",
        "2 Mbit/s uplink, 40 ms, 500 ms of buffer; 64 kbit/s in packets of 20 ms",
        "The call that uTP was accused of in 2008: the queue and the losses that it sees.",
        call,
    ),
];

fn contest(bench: &Bench<'_>, controller: &str, own: bool) -> Setup {
    let other = foreground(controller, &format!("start = \"{BEGINS_S} s\"\nstop = \"{ENDS_S} s\""));
    let setup = Setup::new(RATE_MBPS, 40.0).window(BEGINS_S + 5.0, ENDS_S + 30.0);
    if own { setup.with(bench.own("")).with(other) } else { setup.with(other) }
}

fn keeps(bench: &Bench<'_>, controller: &str) -> Result<Vec<Finding>, RunError> {
    let rate = |own: bool| -> Result<f64, RunError> {
        let seen = bench.run(&contest(bench, controller, own))?;
        Ok(seen.mean_rate_mbps(controller, BEGINS_S + 5.0, ENDS_S))
    };
    let kept = rate(true)? / rate(false)?;
    Ok(vec![Finding::new("rate that the other keeps", kept, Mark::AtLeast(FOREGROUND_KEEPS))])
}

fn takes_back(bench: &Bench<'_>, controller: &str) -> Result<Vec<Finding>, RunError> {
    let seen = bench.run(&contest(bench, controller, true))?;
    let took_s = seen.time_to_reach_s(OWN, TAKEN_BACK * RATE_MBPS, ENDS_S);
    Ok(vec![Finding::new("seconds to take it back", took_s, Mark::AtMost(TAKE_BACK_S))])
}

fn web(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    let pages =
        foreground("cubic", "count = 30\nstart = \"15 s\"\nstart_jitter = \"60 s\"\nbytes = \"100 kB\"");
    let seen = bench.run(&Setup::new(10.0, 40.0).window(15.0, 90.0).with(bench.own("")).with(pages))?;
    let took = seen.completions_s("cubic");
    let mean_s = took.iter().sum::<f64>() / took.len() as f64;
    Ok(vec![Finding::new("mean download, s", mean_s, Mark::AtMost(PAGE_S))])
}

fn call(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    const CALL: &str = "[[flow]]\nname = \"call\"\nprotocol = \"utp\"\ncontroller = { name = \"fixed\", cwnd = \"1 MB\" }\n\
        start = \"15 s\"\npacket = \"208 B\"\ntraffic = { kind = \"paced\", rate = \"64 kbit/s\", message = \"160 B\" }\n";
    let setup = Setup::new(2.0, 40.0).buffer("500 ms").window(20.0, 80.0).with(bench.own("")).with(CALL);
    let seen = bench.run(&setup)?;
    let Some(call) = seen.flows("call").next() else { return Ok(Vec::new()) };
    Ok(vec![
        Finding::new("queue that the call sees, p95 ms", call.delays.p95_ms, Mark::AtMost(CALL_QUEUE_MS)),
        Finding::new("its loss", call.loss, Mark::AtMost(CALL_LOSS)),
    ])
}
