//! What a swarm showed, as files.

use super::columns::{
    GAPS, LINKS, PAYLOADS, PEERS, PIECES, QUEUE, ROUNDS, RTTS, TRACKER, TableFile, UNCHOKES,
};
use super::host::HostRecord;
use super::model::{Role, Swarm, SwarmRecords};
use super::outcome::{PeerOutcome, SwarmOutcome};
use crate::histogram::Histogram;
use cede_plot::{Cell, Table};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

const SUMMARY: &str = "summary.md";

/// Of what is written down as percentiles.
const PERCENTS: [f64; 7] = [1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 99.0];

/// A few numbers as a table.
#[must_use]
pub fn summary_table(swarm: &Swarm, outcome: &SwarmOutcome) -> Table {
    let summary = outcome.summary(swarm.content_bytes);
    let mut table = Table::new(["what", "value"]);
    let mut row = |what: &str, value: String| table.push([Cell::from(what), value.into()]);
    row("leechers complete", format!("{} of {}", summary.complete, summary.leechers));
    let completion = match summary.complete {
        0 => "–".to_string(),
        _ => format!("{:.1} s (sd {:.1}, last {:.1})", summary.mean_s, summary.sd_s, summary.max_s),
    };
    row("mean completion", completion);
    let none = || "–".to_string();
    row("octets over TCP", tcp_share(outcome).map_or_else(none, |share| format!("{:.1} %", 100.0 * share)));
    row("copies sent by seeds", format!("{:.2}", summary.seed_copies));
    if outcome.has_queues() {
        let seeds = seed_queue_ms(outcome).map_or_else(none, |ms| format!("{ms:.1}"));
        let (mean, p95) = (summary.queue_mean_ms, summary.queue_p95_ms);
        row("queue at dequeues", format!("{mean:.1} ms (p95 {p95:.1}, seeds {seeds})"));
        row("dequeues that leave a queue", format!("{:.1} %", 100.0 * summary.busy_share));
    }
    table
}

/// TCP's share, where content moved: attempts to connect are octets too, and say nothing where nothing came of them.
fn tcp_share(outcome: &SwarmOutcome) -> Option<f64> {
    let moved = outcome.peers.iter().any(|peer| peer.record.totals.uploaded != [0; 2]);
    moved.then(|| outcome.tcp_share())
}

/// Mean queue at the dequeues of seeds' uplinks; seeds without any have none.
fn seed_queue_ms(outcome: &SwarmOutcome) -> Option<f64> {
    outcome.queue_mean_ms(|peer| peer.role == Role::Seed)
}

/// Each peer.
#[must_use]
pub fn peers_table(outcome: &SwarmOutcome) -> Table {
    let mut table = Table::new(PEERS.headings());
    outcome.peers.iter().for_each(|peer| table.push(peer_row(peer)));
    table
}

fn peer_row(peer: &PeerOutcome) -> Vec<Cell> {
    let record = &peer.record;
    let totals = &record.totals;
    let time = |at: Option<cede_units::Instant>| {
        at.map_or_else(|| Cell::from(""), |at| Cell::number(at.as_secs_f64(), 3))
    };
    let count = |count: u64| Cell::number(count as f64, 0);
    let rtt = record.rtts.as_ref().and_then(|rtts| rtts.mean_ms());
    vec![
        Cell::from(peer.name.clone()),
        time(record.arrived_at),
        peer.completion_s().map_or_else(|| Cell::from(""), |s| Cell::number(s, 3)),
        time(record.left_at),
        count(totals.downloaded[0]),
        count(totals.downloaded[1]),
        count(totals.uploaded[0]),
        count(totals.uploaded[1]),
        count(u64::from(totals.connections[0])),
        count(u64::from(totals.connections[1])),
        count(totals.haves_sent),
        count(totals.requests_sent),
        count(totals.redundant),
        count(totals.cut),
        rtt.map_or_else(|| Cell::from(""), |ms| Cell::number(ms, 2)),
    ]
}

/// The same numbers and each peer's, for programs.
#[must_use]
pub fn to_json(swarm: &Swarm, outcome: &SwarmOutcome) -> Value {
    let summary = outcome.summary(swarm.content_bytes);
    let peers = outcome.peers.iter().map(|peer| peer_json(swarm, peer));
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "name": swarm.name,
        "seed": swarm.seed,
        "leechers": summary.leechers,
        "complete": summary.complete,
        "completion_mean_s": (summary.complete > 0).then_some(summary.mean_s),
        "completion_sd_s": (summary.complete > 0).then_some(summary.sd_s),
        "completion_max_s": (summary.complete > 0).then_some(summary.max_s),
        "tcp_share": tcp_share(outcome),
        "copies_sent_by_seeds": summary.seed_copies,
        "queue_mean_ms": outcome.has_queues().then_some(summary.queue_mean_ms),
        "queue_p95_ms": outcome.has_queues().then_some(summary.queue_p95_ms),
        "seed_queue_ms": seed_queue_ms(outcome),
        "busy_share": outcome.has_queues().then_some(summary.busy_share),
        "ended_s": outcome.ended_at.as_secs_f64(),
        "interrupted": outcome.is_interrupted,
        "events": outcome.events,
        "peers": peers.collect::<Vec<Value>>(),
    })
}

fn peer_json(swarm: &Swarm, peer: &PeerOutcome) -> Value {
    let totals = &peer.record.totals;
    json!({
        "name": peer.name,
        "group": swarm.groups[peer.group].name,
        "arrived_s": peer.record.arrived_at.map(cede_units::Instant::as_secs_f64),
        "complete_after_s": peer.completion_s(),
        "left_s": peer.record.left_at.map(cede_units::Instant::as_secs_f64),
        "downloaded_bytes": { "tcp": totals.downloaded[0], "utp": totals.downloaded[1] },
        "uploaded_bytes": { "tcp": totals.uploaded[0], "utp": totals.uploaded[1] },
        "connections": { "tcp": totals.connections[0], "utp": totals.connections[1] },
        "unchoke_rounds": peer.record.rounds,
        "haves_sent": totals.haves_sent,
    })
}

/// What makes the text of a table.
type Make = fn(&SwarmOutcome) -> String;

/// The tables that are written where they are asked for.
fn optional(records: SwarmRecords) -> impl Iterator<Item = (&'static str, Make)> {
    let tables: [(bool, &str, Make); 7] = [
        (records.pieces, PIECES.name, pieces),
        (records.unchokes, UNCHOKES.name, unchokes),
        (records.unchokes, ROUNDS.name, rounds),
        (records.sends, PAYLOADS.name, payloads),
        (records.sends, GAPS.name, gaps),
        (records.rtt, RTTS.name, rtts),
        (records.queue, QUEUE.name, queue),
    ];
    tables.into_iter().filter(|(wanted, ..)| *wanted).map(|(_, name, make)| (name, make))
}

/// The files that [`write()`] makes of a swarm.
#[must_use]
pub fn file_names(swarm: &Swarm) -> Vec<&'static str> {
    let always = [SUMMARY, PEERS.name, LINKS.name, TRACKER.name];
    always.into_iter().chain(optional(swarm.records).map(|(name, _)| name)).collect()
}

/// Writes everything that was recorded into a folder, which is made if it is not there. Answers with the files.
///
/// # Errors
/// What the file system says, and of which file.
pub fn write(swarm: &Swarm, outcome: &SwarmOutcome, folder: &Path) -> io::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)?;
    let mut files = vec![
        (SUMMARY, summary_table(swarm, outcome).to_markdown()),
        (PEERS.name, peers_table(outcome).to_csv()),
        (LINKS.name, links(outcome)),
        (TRACKER.name, tracker(outcome)),
    ];
    let wanted = optional(swarm.records);
    files.extend(wanted.map(|(name, make)| (name, make(outcome))));
    let write = |(name, text): (&str, String)| {
        let path = folder.join(name);
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
        std::fs::write(&path, text).map(|()| path).map_err(named)
    };
    files.into_iter().map(write).collect()
}

/// Lines of text, each made from one item.
fn lines<T>(table: TableFile, items: impl Iterator<Item = T>, line: impl Fn(&mut String, T)) -> String {
    let headings: Vec<&str> = table.headings().collect();
    let mut text = format!("{}\n", headings.join(","));
    items.for_each(|item| {
        line(&mut text, item);
        text.push('\n');
    });
    text
}

fn links(outcome: &SwarmOutcome) -> String {
    let up = outcome.uplinks.iter().map(|link| ("up", link));
    let all = up.chain(outcome.downlinks.iter().map(|link| ("down", link)));
    lines(LINKS, all, |text, (way, (peer, link))| {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
        let _ = write!(
            text,
            "{},{way},{},{},{},{},{},{},{},{},{}",
            outcome.peers[*peer].name,
            link.rate().as_mbit_f64(),
            link.dequeues,
            link.busy_dequeues,
            number(link.backlog.mean_ms()),
            number(link.backlog.percentile_ms(95.0)),
            number(link.waits.mean_ms()),
            link.bytes[0],
            link.bytes[1],
            link.dropped
        );
    })
}

fn tracker(outcome: &SwarmOutcome) -> String {
    lines(TRACKER, outcome.tracker.iter(), |text, entry| {
        let event =
            entry.event.map_or_else(|| "stopped".to_string(), |event| format!("{event:?}").to_lowercase());
        let name = &outcome.peers[entry.peer as usize].name;
        let _ = write!(text, "{:.6},{name},{event},{}", entry.at.as_secs_f64(), entry.named);
    })
}

fn pieces(outcome: &SwarmOutcome) -> String {
    let all = outcome.peers.iter().flat_map(|peer| peer.record.pieces.iter().map(move |entry| (peer, entry)));
    lines(PIECES, all, |text, (peer, (at, piece))| {
        let _ = write!(text, "{:.6},{},{piece}", at.as_secs_f64(), peer.name);
    })
}

fn unchokes(outcome: &SwarmOutcome) -> String {
    let all =
        outcome.peers.iter().flat_map(|peer| peer.record.unchokes.iter().map(move |entry| (peer, entry)));
    lines(UNCHOKES, all, |text, (peer, (at, whom, unchoked, busy))| {
        let whom = outcome.peers.get(*whom as usize).map_or("", |whom| &whom.name);
        let _ = write!(text, "{:.6},{},{whom},{unchoked},{busy}", at.as_secs_f64(), peer.name);
    })
}

fn rounds(outcome: &SwarmOutcome) -> String {
    lines(ROUNDS, outcome.peers.iter(), |text, peer| {
        let turns = || peer.record.unchokes.iter();
        let unchokes = turns().filter(|(.., unchoked, _)| *unchoked).count();
        let idle = turns().filter(|(.., unchoked, waited)| !unchoked && !waited).count();
        let _ = write!(text, "{},{},{unchokes},{idle}", peer.name, peer.record.rounds);
    })
}

fn payloads(outcome: &SwarmOutcome) -> String {
    let all =
        outcome.peers.iter().flat_map(|peer| peer.record.payloads.iter().map(move |entry| (peer, entry)));
    lines(PAYLOADS, all, |text, (peer, (size, count))| {
        let _ = write!(text, "{},{size},{count}", peer.name);
    })
}

fn gaps(outcome: &SwarmOutcome) -> String {
    percentiles(GAPS, outcome, |record| record.gaps.as_deref())
}

fn rtts(outcome: &SwarmOutcome) -> String {
    percentiles(RTTS, outcome, |record| record.rtts.as_deref())
}

/// Percentiles of what was sampled at each peer; none where there were no samples.
fn percentiles(
    table: TableFile,
    outcome: &SwarmOutcome,
    of: impl Fn(&HostRecord) -> Option<&Histogram>,
) -> String {
    let sampled = outcome.peers.iter().filter_map(|peer| Some((&peer.name, of(&peer.record)?)));
    let all = sampled.flat_map(|(name, samples)| PERCENTS.map(|percent| (name, percent, samples)));
    let known = all.filter_map(|(name, percent, samples)| {
        Some((name, percent, samples.percentile_ms(percent)?, samples.samples()))
    });
    lines(table, known, |text, (name, percent, ms, samples)| {
        let _ = write!(text, "{name},{percent},{ms:.3},{samples}");
    })
}

fn queue(outcome: &SwarmOutcome) -> String {
    lines(QUEUE, outcome.queue.iter(), |text, entry| {
        let (peer, is_up) = outcome.link(entry.link).unwrap_or_default();
        let _ = write!(
            text,
            "{:.6},{},{},{},{},{},{}",
            entry.at.as_secs_f64(),
            outcome.peers[peer].name,
            if is_up { "up" } else { "down" },
            entry.packets,
            entry.bytes,
            entry.served_bytes,
            entry.dropped
        );
    })
}
