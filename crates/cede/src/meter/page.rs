//! What the meter found, as one page that needs nothing but a browser.

use super::show::{brief, over_time, points};
use super::{Findings, MeterArgs};
use crate::failure::Failure;
use crate::screen;
use crate::whole;
use cede_meter::{HostReport, Protocol, Summary};
use cede_plot::html::{Report as Page, Section};
use cede_plot::{Axis, Cell, Figure, Panel, Series};
use std::path::Path;

/// Rows that are listed, the worst first: of a hundred thousand a page has forty megabytes.
const LISTED: usize = 1000;
/// Hosts with a picture of their own.
const PICTURED: usize = 12;

/// Writes a page, or prints it where the path is `-`.
pub fn write(path: &Path, page: &Page) -> Result<(), Failure> {
    let told = |error: std::io::Error| {
        Failure::of_system(format!("cannot write {}: {error}", screen::named(path)), error.kind())
    };
    match path.to_str() {
        Some("-") => screen::print(&page.to_html()),
        _ => whole::write(path, page.to_html().as_bytes()).map_err(told),
    }
}

/// What was found, as a page.
pub fn page(args: &MeterArgs, findings: &Findings) -> Page {
    let counters = &findings.report.counters;
    let span_s = counters.span_ns.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9);
    let hosts = Section::new(if args.flows { "Flows" } else { "Hosts" })
        .prose("Delays in milliseconds that packets spent in queues before the observer saw them, nearly all of it in the sender's uplink. The mean over time comes first; what a flag means: `cede explain NAME`.");
    let rows = if args.flows { findings.flows.len() } else { findings.report.hosts.len() };
    let hosts = if rows > LISTED {
        let [listed, all] = [LISTED, rows].map(|count| Cell::number(count as f64, 0).display());
        hosts.prose(format!("These are the worst {listed} of {all}; `--csv` and `--json` have all."))
    } else {
        hosts
    };
    let hosts = hosts.table(&brief(args, findings, usize::MAX, LISTED));
    let mut page = Page::new("Whose queue is it?")
        .lead("Queueing delays of remote hosts, found in a capture without sending a packet.")
        .fact("captures", args.veil.names(&args.files).join(", "))
        .fact("packets", Cell::number((counters.packets - counters.outside) as f64, 0).display())
        .fact("time", format!("{span_s:.1} s"))
        .fact("counted from", args.counted_from())
        .section(hosts);
    if findings.has_pictures() {
        page = page.section(Section::new("Over time").figure(&series(findings)));
        page = page.section(Section::new("Over hosts").figure(&distributions(findings)));
    }
    let both: Vec<&HostReport> =
        findings.report.hosts.iter().filter(|h| h.utp.is_some() && h.tcp.is_some()).collect();
    if !both.is_empty() {
        page = page.section(Section::new("The same host under both transports").figure(&scatter(&both)));
    }
    page
}

/// A host's lines: of each transport one, as their samples need not agree.
fn lines(host: &HostReport) -> impl Iterator<Item = (&'static str, Option<Protocol>)> {
    let both = [("uTP", Some(Protocol::Utp)), ("TCP", Some(Protocol::Tcp))];
    let are_both = host.utp.is_some() && host.tcp.is_some();
    both.into_iter().filter(move |_| are_both).chain((!are_both).then_some(("delay", None)))
}

fn series(findings: &Findings) -> Figure {
    let hosts: Vec<&HostReport> = findings.report.hosts.iter().take(PICTURED).collect();
    if hosts.len() < 2 {
        return Figure::new("Queueing delay").panel(over_time(findings, 1));
    }
    let origin_us = findings.samples.iter().map(|sample| sample.delay.time_us).min().unwrap_or(0);
    let last_us = findings.samples.iter().map(|sample| sample.delay.time_us).max().unwrap_or(origin_us);
    // Whether two hosts had queues at one time is seen where all have one axis, in both columns.
    let end_s = ((last_us - origin_us) as f64 / 1e6).max(1e-3);
    let panel = |host: &&HostReport| {
        Panel::new(host.address.to_string())
            .x(Axis::new("time").unit("s").range(0.0, end_s))
            .y(Axis::new("queueing delay").unit("ms").from(0.0))
            .all_series(
                lines(host)
                    .map(|(name, only)| Series::line(name, points(findings, host.address, only, origin_us))),
            )
    };
    Figure::new("Queueing delay of the worst hosts").columns(2).share_x().panels(hosts.iter().map(panel))
}

/// A mean of a host's delays, and what it is called.
type Mean = (&'static str, fn(&Summary) -> f64);

/// The mean over time first, as in the table; the paper draws the one over samples.
const MEANS: [Mean; 2] =
    [("over time", |summary| summary.time_mean_ms), ("over samples", |summary| summary.sample_mean_ms)];

/// The paper's Fig. 3: distributions over hosts of their mean delays.
fn distributions(findings: &Findings) -> Figure {
    let hosts = &findings.report.hosts;
    let panel = |(name, mean): Mean| {
        let of = |protocol: fn(&HostReport) -> Option<Summary>| {
            steps(hosts.iter().filter_map(protocol).map(|summary| mean(&summary)))
        };
        let all = [("uTP", of(|host| host.utp)), ("TCP", of(|host| host.tcp))];
        let lines: Vec<_> = all.into_iter().filter(|(_, steps)| steps.len() > 1).collect();
        // One line alone has no legend.
        let whose = if let [(protocol, _)] = lines[..] { format!(", {protocol}") } else { String::new() };
        Panel::new(format!("Mean {name} of each host{whose}"))
            .x(Axis::new(format!("mean {name}")).unit("ms").from(0.0))
            .y(Axis::new("share of hosts").range(0.0, 1.0))
            .all_series(lines.into_iter().map(|(protocol, steps)| Series::steps(protocol, steps)))
    };
    Figure::new("Over hosts").columns(2).share_y().panels(MEANS.map(panel))
}

/// A distribution function as steps.
fn steps(values: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let rising = values.iter().enumerate().map(|(k, &value)| (value, (k + 1) as f64 / n));
    std::iter::once((0.0, 0.0)).chain(rising).collect()
}

fn scatter(both: &[&HostReport]) -> Figure {
    let panel = |(name, mean): Mean| {
        let mean = |summary: Option<Summary>| summary.as_ref().map_or(0.0, mean);
        let points: Vec<(f64, f64)> = both.iter().map(|host| (mean(host.utp), mean(host.tcp))).collect();
        let most = points.iter().map(|point| point.0.max(point.1)).fold(1.0, f64::max) * 1.05;
        Panel::new(format!("Mean {name} under uTP and TCP"))
            .x(Axis::new("uTP").unit("ms").range(0.0, most))
            .y(Axis::new("TCP").unit("ms").range(0.0, most))
            .series(Series::points("hosts", points))
            .series(Series::line("y = x", [(0.0, 0.0), (most, most)]))
            .series(Series::line("y = 2x", [(0.0, 0.0), (most / 2.0, most)]))
    };
    Figure::new("The same host under both").columns(2).panels(MEANS.map(panel))
}
