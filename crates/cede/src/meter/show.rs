//! What the meter found, as tables and pictures in a terminal.

use super::{Findings, MeterArgs, summary_of};
use crate::failure::Failure;
use crate::screen::{self, Screen};
use cede_meter::{Counters, Delay, Flags, FlowReport, HostReport, Protocol, QueueSample, Report, Summary};
use cede_plot::{Axis, Cell, Panel, Series, Table, terminal};
use std::net::IpAddr;

/// Hosts that are drawn.
const DRAWN: usize = 3;
const PLOT_LINES: usize = 14;

const SUMMARY_COLUMNS: [&str; 9] = [
    "samples",
    "mean_ms",
    "sample_mean_ms",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
    "above_100ms_s",
    "covered_s",
];

/// Everything for a person.
pub fn text(args: &MeterArgs, findings: &Findings, screen: &Screen) -> String {
    let mut out = String::new();
    let table = brief(args, findings, screen.width, usize::MAX);
    if table.is_empty() {
        out += &nothing(args, &findings.report);
    } else {
        out += &terminal::table(&table, screen.width, screen.colour);
        let legend = "queueing delay in ms: mean over time, mean over samples, quantiles over samples; all columns: --csv";
        out.push('\n');
        out += &screen.wrap("", legend);
        out += "what a flag means: cede explain NAME\n";
    }
    if args.plot && findings.has_pictures() {
        out.push('\n');
        out += &terminal::chart(&over_time(findings, DRAWN), screen.columns, PLOT_LINES, screen.colour);
    }
    out.push('\n');
    out += &screen.wrap("", &counters(findings, table.is_empty()));
    out
}

/// Columns of a summary for people; those that count time are in seconds, the others in milliseconds.
const DELAYS: [&str; 9] =
    ["samples", "mean", "by sample", "p50", "p95", "p99", "max", "above 100 ms", "seconds covered"];
/// What is left out where lines are narrow, the first one first: rather than that two hosts look alike.
const SPARE: [&str; 13] = [
    "drift ppm",
    "clock Hz",
    "packets",
    "flows",
    "seconds covered",
    "above 100 ms",
    "p99",
    "min RTT",
    "p50",
    "by sample",
    "max",
    "samples",
    "by",
];
/// The last column is wrapped, down to this width; where even that has no room, its words are shortened.
const FLAGS_WIDTH: usize = 18;
const FLAGS_WIDTH_MIN: usize = 6;

/// What was asked for, for people, in the columns that there is room for: so many rows of it.
pub fn brief(args: &MeterArgs, findings: &Findings, room: usize, most: usize) -> Table {
    if args.flows {
        brief_flows(args, &findings.flows[..most.min(findings.flows.len())], room)
    } else {
        let hosts = &findings.report.hosts;
        brief_hosts(&hosts[..most.min(hosts.len())], room)
    }
}

fn delays(summary: Option<&Summary>) -> Vec<Cell> {
    if summary.is_none() { vec!["–".into(); DELAYS.len()] } else { numbers(summary) }
}

fn brief_hosts(hosts: &[HostReport], room: usize) -> Table {
    let headings = ["host", "by", "flows"].into_iter().chain(DELAYS).chain(["min RTT", "clock Hz", "flags"]);
    let row = |host: &HostReport| {
        let mut cells: Vec<Cell> = vec![host.address.to_string().into(), protocols(host).into()];
        cells.push(Cell::number(f64::from(host.flows), 0));
        cells.extend(delays(Some(&host.all)));
        cells.push(known(host.round_trip.map(|trip| trip.min_ms), 1));
        cells.push(known(host.clock_hz, 0));
        cells.push(names(host.flags).into());
        cells
    };
    fitted(headings.collect(), hosts.iter().map(row).collect(), room)
}

fn brief_flows(args: &MeterArgs, flows: &[FlowReport], room: usize) -> Table {
    let fixed = ["from", "to", "by", "packets"];
    let more = ["min RTT", "clock Hz", "drift ppm", "flags"];
    let row = |flow: &FlowReport| {
        let mut cells: Vec<Cell> = vec![socket(flow.source).into(), socket(flow.destination).into()];
        cells.push(flow.protocol.to_string().into());
        cells.push(Cell::number(f64::from(flow.packets), 0));
        cells.extend(delays(summary_of(args, flow)));
        cells.push(known(flow.round_trip.map(|trip| trip.min_ms), 1));
        cells.push(known(flow.clock_hz, 0));
        cells.push(known(flow.drift_ppm, 1));
        cells.push(names(flow.flags).into());
        cells
    };
    let headings = fixed.into_iter().chain(DELAYS).chain(more).collect();
    fitted(headings, flows.iter().map(row).collect(), room)
}

/// Leaves out spare columns until the others fit, and shortens the last one if they do not.
fn fitted(mut headings: Vec<&str>, mut rows: Vec<Vec<Cell>>, room: usize) -> Table {
    const GAP: usize = 2;
    let width = |headings: &[&str], rows: &[Vec<Cell>], k: usize| {
        let cells = rows.iter().map(|row| row[k].display().chars().count());
        let widest = cells.chain([headings[k].len()]).max().unwrap_or(0);
        GAP + if k + 1 == headings.len() { widest.min(FLAGS_WIDTH) } else { widest }
    };
    let total = |headings: &[&str], rows: &[Vec<Cell>]| -> usize {
        (0..headings.len()).map(|k| width(headings, rows, k)).sum()
    };
    let room = room.saturating_add(GAP);
    for spare in SPARE {
        if total(&headings, &rows) <= room {
            break;
        }
        if let Some(k) = headings.iter().position(|heading| *heading == spare) {
            headings.remove(k);
            rows.iter_mut().for_each(|row| drop(row.remove(k)));
        }
    }
    let lacking = total(&headings, &rows).saturating_sub(room);
    if lacking > 0 {
        let kept = FLAGS_WIDTH.saturating_sub(lacking).max(FLAGS_WIDTH_MIN);
        rows.iter_mut().filter_map(|row| row.last_mut()).for_each(|cell| *cell = shortened(cell, kept));
    }
    rows.into_iter().fold(Table::new(headings), Table::row)
}

/// A text whose words have at most so many letters.
fn shortened(cell: &Cell, most: usize) -> Cell {
    let text = cell.display();
    let short = |word: &str| match word.char_indices().nth(most) {
        Some(_) => word.chars().take(most - 1).chain(['…']).collect(),
        None => word.to_string(),
    };
    text.split(' ').map(short).collect::<Vec<String>>().join(" ").into()
}

fn protocols(host: &HostReport) -> &'static str {
    match (host.utp, host.tcp) {
        (Some(_), Some(_)) => "both",
        (Some(_), None) => "uTP",
        _ => "TCP",
    }
}

/// Rows of a table that are made and printed at once: there may be a million.
const BATCH_ROWS: usize = 4096;

/// Prints hosts, or flows, for programs.
pub fn print_csv(args: &MeterArgs, findings: &Findings) -> Result<(), Failure> {
    mention_missing(findings);
    if args.flows {
        print_rows(&findings.flows, |batch| flows(args, batch))
    } else {
        print_rows(&findings.report.hosts, hosts)
    }
}

fn print_rows<T>(all: &[T], table: impl Fn(&[T]) -> Table) -> Result<(), Failure> {
    screen::print(&table(&[]).to_csv())?;
    for batch in all.chunks(BATCH_ROWS) {
        let table = table(batch).to_csv();
        let (_headings, rows) = table.split_once('\n').unwrap_or_default();
        screen::print(rows)?;
    }
    Ok(())
}

fn hosts(reports: &[HostReport]) -> Table {
    let fixed = ["host", "protocols", "flows"];
    let headings = fixed.into_iter().chain(SUMMARY_COLUMNS).chain(["rtt_min_ms", "clock_hz", "flags"]);
    let row = |host: &HostReport| {
        let mut cells: Vec<Cell> = vec![host.address.to_string().into(), protocols(host).into()];
        cells.push(Cell::number(f64::from(host.flows), 0));
        cells.extend(numbers(Some(&host.all)));
        cells.push(optional(host.round_trip.map(|trip| trip.min_ms), 1));
        cells.push(optional(host.clock_hz, 0));
        cells.push(names(host.flags).into());
        cells
    };
    reports.iter().map(row).fold(Table::new(headings), Table::row)
}

fn flows(args: &MeterArgs, reports: &[FlowReport]) -> Table {
    let fixed = ["from", "to", "protocol", "packets"];
    let more = ["rtt_min_ms", "clock_hz", "drift_ppm", "flags"];
    let headings = fixed.into_iter().chain(SUMMARY_COLUMNS).chain(more);
    let row = |flow: &FlowReport| {
        let mut cells: Vec<Cell> = vec![socket(flow.source).into(), socket(flow.destination).into()];
        cells.push(flow.protocol.to_string().into());
        cells.push(Cell::number(f64::from(flow.packets), 0));
        cells.extend(numbers(summary_of(args, flow)));
        cells.push(optional(flow.round_trip.map(|trip| trip.min_ms), 1));
        cells.push(optional(flow.clock_hz, 0));
        cells.push(optional(flow.drift_ppm, 1));
        cells.push(names(flow.flags).into());
        cells
    };
    reports.iter().map(row).fold(Table::new(headings), Table::row)
}

/// `192.0.2.1:80`, `[2001:db8::1]:80`.
pub fn socket(socket: cede_meter::Socket) -> String {
    std::net::SocketAddr::new(socket.address, socket.port).to_string()
}

fn numbers(summary: Option<&Summary>) -> Vec<Cell> {
    let Some(s) = summary else { return vec!["".into(); SUMMARY_COLUMNS.len()] };
    let delays =
        [s.time_mean_ms, s.sample_mean_ms, s.p50_ms, s.p95_ms, s.p99_ms, s.max_ms, s.bloated_s, s.covered_s];
    let samples = Cell::number(s.samples as f64, 0);
    std::iter::once(samples).chain(delays.into_iter().map(|value| Cell::number(value, 1))).collect()
}

fn known(value: Option<f64>, decimals: usize) -> Cell {
    value.map_or_else(|| "–".into(), |value| Cell::number(value, decimals))
}

/// For programs.
fn optional(value: Option<f64>, decimals: usize) -> Cell {
    value.map_or_else(|| "".into(), |value| Cell::number(value, decimals))
}

/// The names of flags.
pub fn names(flags: Flags) -> String {
    flags.names().collect::<Vec<_>>().join(" ")
}

/// So many of something, and what is to be said of them.
pub type Count<'a> = (u64, &'a str, &'a str);

const CUT: &str = "cut off within the headers (snapshot length below 118?)";

/// Packets that say nothing, by reason.
pub fn left_out(counters: &Counters) -> [Count<'static>; 7] {
    [
        (counters.other, "packet", "neither of TCP nor of UDP"),
        (counters.fragments, "later fragment", ""),
        (counters.cut, "packet", CUT),
        (counters.timeless, "packet", "without a time"),
        (counters.seen_twice, "packet", "that another interface shows better"),
        (counters.outside, "packet", "outside --since and --until"),
        (counters.filtered, "packet", "held back by --filter"),
    ]
}

/// "1 packet", "27,963 packets".
pub fn many(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", Cell::number(number as f64, 0).display())
}

/// "1 later fragment", "3 packets without a time": what there is any of.
fn words<'a>(counts: impl IntoIterator<Item = Count<'a>>) -> impl Iterator<Item = String> {
    let are_any = counts.into_iter().filter(|count| count.0 > 0);
    are_any.map(|(n, noun, more)| format!("{} {more}", many(n, noun)).trim_end().to_string())
}

/// "3 packets whose link type 105 is not read", where there are any.
fn unread(counters: &Counters) -> Option<String> {
    let number = counters.unknown_link_type?;
    Some(format!("{} whose link type {number} is not read", many(counters.unread, "packet")))
}

/// Why nothing was found: a link type, and what there is any of.
pub fn because<'a>(counters: &Counters, counts: impl IntoIterator<Item = Count<'a>>) -> String {
    let mut why: Vec<String> = unread(counters).into_iter().chain(words(counts)).collect();
    if counters.packets == 0 {
        why.push("no packet was seen".to_string());
    }
    if why.is_empty() { ".".to_string() } else { format!(": {}.", why.join("; ")) }
}

/// "8 packets in 0.7 s, 2 flows", of the time asked for, and what else there is any of: the others where they are not told already.
pub fn in_all<'a>(
    counters: &Counters,
    found: (u64, &str),
    others: Option<impl Iterator<Item = Count<'a>>>,
    given_up: impl IntoIterator<Item = Count<'a>>,
) -> String {
    let span_s = counters.span_ns.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9);
    let decimals = if span_s < 1.0 { 3 } else { 1 };
    let packets = format!("{} in {span_s:.decimals$} s", many(counters.packets - counters.outside, "packet"));
    let mut all = vec![packets, many(found.0, found.1)];
    if let Some(others) = others {
        all.extend(words(others).chain(unread(counters)));
    }
    all.extend(words(given_up));
    all.join(", ")
}

/// Flows and hosts that say nothing, by reason.
const fn silent(report: &Report) -> [Count<'static>; 4] {
    [
        (report.hosts_with_too_little, "host", "with fewer samples than --min-samples asks for"),
        (report.timeless_tcp_flows, "TCP flow", "without timestamps in what is captured"),
        (report.odd_tcp_clocks, "TCP sender", "whose timestamps run at a rate that no system has"),
        (report.other_udp_flows, "UDP flow", "not found to be uTP"),
    ]
}

/// Why there is no host. What was cut off is a reason for what else there is.
fn nothing(args: &MeterArgs, report: &Report) -> String {
    let (cut, others): (Vec<_>, Vec<_>) =
        left_out(&report.counters).into_iter().partition(|count| count.2 == CUT);
    let counts = cut.into_iter().chain(silent(report)).chain(others);
    let whose = if args.host.is_empty() { "No host" } else { "No host that --host asks for" };
    format!("{whose} says anything about its queue{}\n", because(&report.counters, counts))
}

/// What is missing for want of memory or time.
fn given_up(findings: &Findings) -> [Count<'static>; 4] {
    let counters = &findings.report.counters;
    [
        (findings.lost.unwrap_or(0), "packet", "lost before us"),
        (
            counters.taken_again,
            "packet",
            "that may count twice, as several interfaces show more flows than are remembered (--memory)",
        ),
        (counters.thinned, "sample", "left out for want of time or memory"),
        (counters.evicted, "flow", "given up for want of memory"),
    ]
}

/// One line about packets; what says nothing is left out where that is told already.
fn counters(findings: &Findings, is_told: bool) -> String {
    let report = &findings.report;
    let counters = &report.counters;
    let others = (!is_told).then(|| silent(report).into_iter().chain(left_out(counters)));
    in_all(counters, (counters.flows, "flow"), others, given_up(findings))
}

/// What rows alone do not tell, and who reads them has to know.
pub fn mention_missing(findings: &Findings) {
    let unread = unread(&findings.report.counters);
    let missing: Vec<String> = unread.into_iter().chain(words(given_up(findings))).collect();
    if !missing.is_empty() {
        screen::mention(&format!("note: {}\n", missing.join("; ")));
    }
}

/// The delay of the first hosts of the report over time.
pub fn over_time(findings: &Findings, hosts: usize) -> Panel {
    let origin_us = findings.samples.iter().map(|sample| sample.delay.time_us).min().unwrap_or(0);
    let panel = Panel::new("Queueing delay at the sender").x(Axis::new("time").unit("s")).y(Axis::new(
        "queueing delay",
    )
    .unit("ms")
    .from(0.0));
    let addresses: Vec<IpAddr> = findings.report.hosts.iter().take(hosts).map(|host| host.address).collect();
    panel.all_series(
        addresses
            .iter()
            .map(|&address| Series::line(address.to_string(), points(findings, address, None, origin_us))),
    )
}

/// Time in seconds and delay in milliseconds of what a host sent, in the order of time. A silence that is not bridged
/// breaks the line.
pub fn points(
    findings: &Findings,
    address: IpAddr,
    only: Option<Protocol>,
    origin_us: u64,
) -> Vec<(f64, f64)> {
    let is_of_host = |sample: &&QueueSample| {
        sample.source.address == address && only.is_none_or(|only| sample.protocol == only)
    };
    let of_host = findings.samples.iter().filter(is_of_host);
    let mut delays: Vec<Delay> = of_host.map(|sample| sample.delay).collect();
    delays.sort_by_key(|delay| delay.time_us);
    let mut points = Vec::with_capacity(delays.len());
    let point = |delay: &Delay| ((delay.time_us - origin_us) as f64 / 1e6, delay.queue_us / 1e3);
    let mut last: Option<Delay> = None;
    for delay in delays {
        if last.is_some_and(|last| !last.is_bridged_to(&delay)) {
            points.push((point(&delay).0, f64::NAN));
        }
        points.extend(last.and_then(|last| last.drained_before(&delay)).as_ref().map(point));
        points.push(point(&delay));
        last = Some(delay);
    }
    points
}
