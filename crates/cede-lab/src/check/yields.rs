//! Giving way to what somebody waits for, and coming back when it is gone.
//!
//! The incident: in December 2008 the announcement of uTP was read as the end of Internet telephony ("BitTorrent
//! declares war on VoIP, gamers", The Register); that it was not so is what the delay target is for.

use super::bench::{Bench, OWN, Seen};
use super::case::{Case, Family, Finding, Mark, Measure};
use super::marks::{FOREGROUND_KEEPS, TAKE_BACK_FAR_S, TAKE_BACK_S, TAKEN_BACK, own_delay_ms};
use super::setup::{Setup, foreground};
use crate::outcome::FlowOutcome;
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
/// A bulk flow of equal rights would leave a short flow half of what it has alone; who leaves less is no background.
/// [`FOREGROUND_KEEPS`] cannot be asked for: a page is over in five round trips, before anybody could have made room, and pays the
/// standing queue, which may be there, in each of them.
const PAGE_KEEPS: f64 = 0.5;
/// A connection that loses a packet takes five times as long on average (Flach et al., "Reducing Web latency: the virtue of
/// gentle aggression", SIGCOMM 2013). One page in ten may be so unlucky: of 70 packets each, one in 700.
const PAGE_LOSS_PERCENT: f64 = 100.0 / 700.0;
const PAGES_MBPS: f64 = 10.0;

const KEEPS: &str = "rate that the other keeps";
const TAKES_BACK: &str = "seconds to take it back";

const fn case(name: &'static str, world: &'static str, story: &'static str, measure: Measure) -> Case {
    Case { name, family: Family::Yields, world, story, measure }
}

const DOWNLOAD: &str = "Somebody's download beside the background transfer: it keeps nine tenths of its rate, measured from five seconds after it began. LCN 2010 measured a hundredth each for ten LEDBAT flows beside one TCP.";
const BEHIND: &str = "The download was there first and its queue stands: the path is never seen without it, so what is measured as the base is too long. LEDBAT then aims at a queue that lies beyond the buffer's end and is a loss-based flow (RFC 6817, section 4.4, on late-comers; the published plots of LEDBAT beside CUBIC at four bandwidth-delay products of buffer). Who waits for the download does not care who came first: the marks are those of yields/cubic and yields/back-after-cubic.";
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
    case(
        "yields/bbr-near",
        "20 Mbit/s, 5 ms, 200 ms of buffer; BBR v1 for 60 s",
        "BBR's queue is about one base RTT: on a short path every target in milliseconds lies above it.",
        bbr_near,
    ),
    case("yields/back-after-cubic", "as yields/cubic, after CUBIC ended", BACK, |bench| {
        takes_back(bench, "cubic")
    }),
    case("yields/back-after-bbr", "as yields/bbr, after BBR ended", BACK, |bench| takes_back(bench, "bbr")),
    case(
        "yields/back-far",
        "20 Mbit/s, 600 ms, 250 ms of buffer; CUBIC from 20 to 60 s",
        "The same on a long path: from the smallest window, a packet per round trip takes ten minutes, and a growth that is bound to a queue of milliseconds as long.",
        back_far,
    ),
    case("yields/behind-cubic", "as yields/cubic, CUBIC 20 s before the scavenger", BEHIND, behind),
    case(
        "yields/web",
        "10 Mbit/s, 40 ms; 30 downloads of 100 kB at random times in a minute",
        "Pages are short flows: over before a controller has seen them, and every round trip pays the standing queue. Their time, what it is of the time they take alone, the delay that their packets are added, and the packets that they lose.",
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
    Ok(vec![Finding::new(KEEPS, kept, Mark::AtLeast(FOREGROUND_KEEPS))])
}

fn takes_back(bench: &Bench<'_>, controller: &str) -> Result<Vec<Finding>, RunError> {
    let seen = bench.run(&contest(bench, controller, true))?;
    let took_s = seen.time_to_reach_s(OWN, TAKEN_BACK * RATE_MBPS, ENDS_S);
    Ok(vec![Finding::new(TAKES_BACK, took_s, Mark::AtMost(TAKE_BACK_S))])
}

fn bbr_near(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    const BBR: &str = "bbr";
    let other = foreground(BBR, &format!("start = \"{BEGINS_S} s\"\nstop = \"{ENDS_S} s\""));
    let setup = Setup::new(RATE_MBPS, 5.0).window(BEGINS_S + 5.0, ENDS_S).with(other);
    let alone = bench.run(&setup)?.rate_mbps(BBR);
    let kept = bench.run(&setup.with(bench.own("")))?.rate_mbps(BBR) / alone;
    Ok(vec![Finding::new(KEEPS, kept, Mark::AtLeast(FOREGROUND_KEEPS))])
}

fn back_far(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    const LEAVES_S: f64 = 60.0;
    let other = foreground("cubic", &format!("start = \"{BEGINS_S} s\"\nstop = \"{LEAVES_S} s\""));
    let setup = Setup::new(RATE_MBPS, 600.0).buffer("250 ms").window(LEAVES_S, LEAVES_S + 150.0);
    let seen = bench.run(&setup.with(bench.own("")).with(other))?;
    let took_s = seen.time_to_reach_s(OWN, TAKEN_BACK * RATE_MBPS, LEAVES_S);
    Ok(vec![Finding::new(TAKES_BACK, took_s, Mark::AtMost(TAKE_BACK_FAR_S))])
}

/// The scavenger comes when CUBIC's queue stands.
fn behind(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    const CUBIC: &str = "cubic";
    let other = foreground(CUBIC, &format!("start = \"0 s\"\nstop = \"{ENDS_S} s\""));
    let setup = Setup::new(RATE_MBPS, 40.0).window(BEGINS_S + 5.0, ENDS_S + 30.0).with(other);
    let kept_mbps = |seen: &Seen| seen.mean_rate_mbps(CUBIC, BEGINS_S + 5.0, ENDS_S);
    let alone = bench.run(&setup)?;
    let both = bench.run(&setup.with(bench.own(&format!("start = \"{BEGINS_S} s\""))))?;
    let took_s = both.time_to_reach_s(OWN, TAKEN_BACK * RATE_MBPS, ENDS_S);
    Ok(vec![
        Finding::new(KEEPS, kept_mbps(&both) / kept_mbps(&alone), Mark::AtLeast(FOREGROUND_KEEPS)),
        Finding::new(TAKES_BACK, took_s, Mark::AtMost(TAKE_BACK_S)),
    ])
}

/// What the downloads of a run had: mean time in seconds, the mean of their 95th percentiles of queueing delay in milliseconds,
/// and the part of their packets that was lost.
fn pages(seen: &Seen, name: &str) -> (f64, f64, f64) {
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let of = |what: fn(&FlowOutcome) -> f64| mean(seen.flows(name).map(what).collect());
    (mean(seen.completions_s(name)), of(|flow| flow.delays.p95_ms), of(|flow| flow.loss))
}

fn web(bench: &Bench<'_>) -> Result<Vec<Finding>, RunError> {
    const PAGES: &str = "cubic";
    let flows =
        foreground(PAGES, "count = 30\nstart = \"15 s\"\nstart_jitter = \"60 s\"\nbytes = \"100 kB\"");
    let setup = Setup::new(PAGES_MBPS, 40.0).window(15.0, 90.0).with(flows);
    let (alone_s, alone_ms, alone_loss) = pages(&*bench.run(&setup)?, PAGES);
    let (took_s, queue_ms, loss) = pages(&*bench.run(&setup.with(bench.own("")))?, PAGES);
    Ok(vec![
        Finding::new("mean download, s", took_s, Mark::AtMost(PAGE_S)),
        Finding::new("rate that the downloads keep", alone_s / took_s, Mark::AtLeast(PAGE_KEEPS)),
        Finding::new("added delay, p95 ms", queue_ms - alone_ms, Mark::AtMost(own_delay_ms(PAGES_MBPS))),
        Finding::new("added loss, %", 100.0 * (loss - alone_loss), Mark::AtMost(PAGE_LOSS_PERCENT)),
    ])
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
