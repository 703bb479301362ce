//! What was found, for a person.

use super::asides::Asides;
use super::names::{hex, torrent};
use super::{InspectArgs, covered};
use crate::carry::numbers::count;
use crate::meter;
use crate::screen::Screen;
use cede_inspect::{ConnectionReport, Cover, Kind, Report, SideReport, Speech};
use cede_plot::{Cell, Table, terminal};
use std::collections::{BTreeMap, BTreeSet};

const LEGEND: &str = "A opened the connection, where that was seen. other: octets of messages that are no blocks, of all that was said \
     where nothing could be read; again: octets \
     that were sent again; twice: blocks that their receiver had; choking, wanting: how long of the time for \
     which that is known; p50, p95: from a \
     request to the last octet of its block. More columns: --csv; every message: --log; every block: --pieces";

/// Everything.
pub fn text(args: &InspectArgs, report: &Report, asides: &Asides, screen: &Screen) -> String {
    let table = |table: &Table| terminal::table(table, screen.columns, screen.colour) + "\n";
    let mut out = String::new();
    if report.connections.is_empty() {
        out += &nothing(args, report);
    } else {
        out += &table(&pairs(args, report));
        out += &table(&directions(report));
        out += &screen.wrap("", LEGEND);
        out.push('\n');
        let messages = messages(report);
        if !messages.is_empty() {
            out += &table(&messages);
        }
        out += &table(&torrents(report));
    }
    for remark in remarks(report, asides) {
        out += &screen.wrap("", &remark);
    }
    out
}

/// Who spoke with whom.
fn pairs(args: &InspectArgs, report: &Report) -> Table {
    let headings = ["#", "A", "client", "B", "client", "by", "torrent", "s", "notes"];
    let mut table = Table::new(headings);
    for one in &report.connections {
        let [a, b] = &one.sides;
        // Many write their version behind a slash, where a narrow column cannot be broken.
        let client = |side: &SideReport| {
            Cell::from(
                side.client.as_ref().map_or_else(|| "–".to_string(), |name| name.replacen('/', " ", 1)),
            )
        };
        let hash = one.info_hash.map_or_else(|| "–".to_string(), |hash| hex(&hash[..4]));
        table.push([
            Cell::number(one.number.into(), 0),
            args.end(one.ends[0]).into(),
            client(a),
            args.end(one.ends[1]).into(),
            client(b),
            one.transport.to_string().into(),
            hash.into(),
            Cell::number((one.span_ns.1 - one.span_ns.0) as f64 / 1e9, 1),
            notes(one).into(),
        ]);
    }
    table
}

/// Two lines for each connection: what each end sent.
fn directions(report: &Report) -> Table {
    let headings = [
        "#", "sent by", "blocks", "MB", "other kB", "again kB", "twice", "unchokes", "choking", "wanting",
        "p50 ms", "p95 ms",
    ];
    let mut table = Table::new(headings);
    for one in &report.connections {
        for (side, name) in one.sides.iter().zip(["A", "B"]) {
            table.push(direction(one, side, name));
        }
    }
    table
}

fn direction(one: &ConnectionReport, side: &SideReport, name: &str) -> Vec<Cell> {
    let quantile =
        |share| side.latency.quantile(share).map(|bucket| (bucket.low_us + bucket.high_us) as f64 / 2e3);
    let number = |value: Option<f64>| value.map_or_else(|| "–".into(), |value| Cell::number(value, 1));
    vec![
        Cell::number(one.number.into(), 0),
        name.into(),
        Cell::number(side.blocks as f64, 0),
        Cell::number(side.block_bytes as f64 / 1e6, 2),
        Cell::number(side.protocol_bytes() as f64 / 1e3, 1),
        Cell::number(side.carried.repeated_bytes as f64 / 1e3, 1),
        Cell::number(side.duplicate_blocks as f64, 0),
        Cell::number(side.unchokes as f64, 0),
        share(side.choking_s).into(),
        share(side.interested_s).into(),
        number(quantile(0.5)),
        number(quantile(0.95)),
    ]
}

fn share((on, off): (f64, f64)) -> String {
    if on + off > 0.0 { format!("{:.0} %", 100.0 * on / (on + off)) } else { "–".to_string() }
}

/// What is to be borne in mind about a connection.
fn notes(connection: &ConnectionReport) -> String {
    let mut notes = Vec::new();
    if connection.speech != Speech::Plain {
        notes.push(connection.speech.name());
    }
    if connection.sides.iter().any(|side| side.losses > 0) {
        notes.push("not all could be read");
    } else if connection.sides.iter().any(|side| side.holes > 0) {
        notes.push("holes");
    }
    if connection.is_reset {
        notes.push("reset");
    }
    notes.join(", ")
}

/// Messages by kind, from the first ends and from the others.
fn messages(report: &Report) -> Table {
    let mut table = Table::new(["message", "from openers", "from the others", "in all"]);
    for &kind in Kind::ALL {
        let count =
            |side: usize| report.connections.iter().map(|one| one.sides[side].count(kind)).sum::<u64>();
        let (a, b) = (count(0), count(1));
        if a + b > 0 {
            let numbers = [a, b, a + b].map(|count| Cell::number(count as f64, 0));
            table.push(std::iter::once(Cell::from(kind.name())).chain(numbers));
        }
    }
    table
}

/// What is known of a torrent.
#[derive(Default)]
struct Torrent {
    connections: u64,
    blocks: u64,
    block_bytes: u64,
    duplicate_bytes: u64,
    stream_bytes: u64,
}

fn torrents(report: &Report) -> Table {
    let mut all: BTreeMap<Option<[u8; 20]>, Torrent> = BTreeMap::new();
    for connection in &report.connections {
        let torrent = all.entry(connection.info_hash).or_default();
        torrent.connections += 1;
        for side in &connection.sides {
            torrent.blocks += side.blocks;
            torrent.block_bytes += side.block_bytes;
            torrent.duplicate_bytes += side.duplicate_bytes;
            torrent.stream_bytes += side.carried.stream_bytes;
        }
    }
    let mut table =
        Table::new(["torrent", "connections", "blocks", "MB of blocks", "MB duplicate", "MB in all"]);
    for (hash, one) in all {
        let name = if hash.is_some() { torrent(hash) } else { "not known".to_string() };
        let megabytes = |bytes: u64| Cell::number(bytes as f64 / 1e6, 2);
        let counts = [one.connections, one.blocks].map(|count| Cell::number(count as f64, 0));
        let sizes = [one.block_bytes, one.duplicate_bytes, one.stream_bytes].map(megabytes);
        table.push(std::iter::once(Cell::from(name)).chain(counts).chain(sizes));
    }
    table
}

fn remarks(report: &Report, asides: &Asides) -> Vec<String> {
    let mut remarks = Vec::new();
    remarks.extend(encryption(report));
    remarks.extend(cut(report));
    remarks.extend(announces(asides));
    if !asides.dht.is_empty() {
        let kinds: Vec<String> = asides.dht.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        remarks.push(format!("Distributed hash table: {}.", kinds.join(", ")));
    }
    remarks.push(remark(report, report.connections.is_empty()));
    remarks
}

/// What trackers were told.
fn announces(asides: &Asides) -> Option<String> {
    let more = &asides.more_announces;
    let counts = asides.announces.values().chain([more]);
    let (http, udp) = counts.fold((0, 0), |(http, udp), n| (http + n[0], udp + n[1]));
    let trackers: BTreeSet<&str> = asides.announces.keys().map(|(tracker, _)| tracker.as_str()).collect();
    let torrents: BTreeSet<&[u8; 20]> = asides.announces.keys().map(|(_, hash)| hash).collect();
    let hashes: Vec<String> = torrents.iter().take(4).map(|hash| hex(&hash[..4])).collect();
    let untold = match more[0] + more[1] {
        0 => String::new(),
        more => {
            format!(" {} beside them are not told apart for want of memory.", meter::many(more, "announce"))
        }
    };
    (http + udp > 0).then(|| {
        format!(
            "Announces: {http} over HTTP and {udp} over UDP to {} ({}), about {} ({}).{untold}",
            count(trackers.len(), "tracker"),
            trackers.iter().take(4).copied().collect::<Vec<_>>().join(", "),
            count(torrents.len(), "torrent"),
            hashes.join(", "),
        )
    })
}

/// What a capture of a part of each packet lacks.
fn cut(report: &Report) -> Option<String> {
    let sides = report.connections.iter().flat_map(|one| &one.sides);
    let packets: u64 = sides.map(|side| side.carried.cut_packets).sum();
    (packets > 0).then(|| {
        format!(
            "Of {} the capture has only the first octets; what the others say is not read. Take whole packets \
             (tcpdump -s 0).",
            meter::many(packets, "packet")
        )
    })
}

/// What encryption hides.
fn encryption(report: &Report) -> Option<String> {
    let (mut counts, mut octets, mut seconds) = ([0_u64; 2], 0_u64, 0.0);
    for connection in covered(report) {
        counts[usize::from(connection.speech != Speech::Covered(Cover::Encrypted))] += 1;
        octets += connection.sides.iter().map(|side| side.carried.stream_bytes).sum::<u64>();
        seconds += (connection.span_ns.1 - connection.span_ns.0) as f64 / 1e9;
    }
    let kinds: Vec<String> = [(counts[0], "encrypted connection"), (counts[1], "unknown connection")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| meter::many(count, what))
        .collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "{}: {:.2} MB, {seconds:.1} s in all. Of what was said in them nothing can be told, not even the \
             torrent; octets, times and repetitions are those of the transport.",
            kinds.join(" and "),
            octets as f64 / 1e6
        )
    })
}

/// One line about packets; what else there is is left out where that is told already.
pub fn remark(report: &Report, is_told: bool) -> String {
    let (counters, unlisted) = (&report.counters, &report.unlisted);
    let given_up = [
        (counters.evicted, "connection", "ended early for want of memory"),
        (unlisted.given_up, "connection", "not listed for want of memory"),
        (unlisted.unchecked_blocks, "block", "not checked for duplicates for want of memory"),
    ];
    let others = (!is_told).then(|| unread(report).into_iter().chain(meter::left_out(counters)));
    meter::in_all(counters, (report.connections.len() as u64, "connection"), others, given_up) + "\n"
}

/// What is no connection between peers, by reason.
const fn unread(report: &Report) -> [meter::Count<'static>; 3] {
    let unlisted = &report.unlisted;
    [
        (unlisted.tcp_connections, "TCP connection", "of another kind"),
        (unlisted.datagrams, "datagram", "of another kind"),
        (unlisted.lone_utp, "direction", "like uTP without an answer"),
    ]
}

/// Why there is no connection.
fn nothing(args: &InspectArgs, report: &Report) -> String {
    let counts = unread(report).into_iter().chain(meter::left_out(&report.counters));
    let asked = match (args.host.is_empty(), args.info_hash.is_empty()) {
        (true, true) => "",
        (false, true) => " that --host asks for",
        (true, false) => " that --info-hash asks for",
        (false, false) => " that --host and --info-hash ask for",
    };
    format!("No BitTorrent connection{asked} was found{}\n", meter::because(&report.counters, counts))
}
