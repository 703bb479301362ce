//! The picture as metrics in Prometheus' text format.
//!
//! Source: the text-based exposition format, version 0.0.4; names and units after Prometheus' own advice (base units,
//! `_total` for what only grows).

use super::picture::{BUCKETS_S, Picture, Row, Tally};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A host that says nothing for so long gives its label to another.
const LABEL_KEPT: Duration = Duration::from_secs(3600);

/// Which hosts have labels of their own: so many at a time and no more, however many there are. Who has one keeps it
/// until it was silent for an hour, so that labels do not come and go with the order of the worst.
#[derive(Debug)]
pub struct Labels {
    most: usize,
    seen: HashMap<IpAddr, Instant>,
}

impl Labels {
    /// Room for so many.
    pub fn new(most: usize) -> Self {
        Self { most, seen: HashMap::new() }
    }

    /// The rows that have labels; rows come worst first.
    fn choose<'a>(&mut self, rows: &'a [Row], now: Instant) -> Vec<&'a Row> {
        let active = || rows.iter().filter(|row| row.now.is_some());
        for row in active() {
            if let Some(seen) = self.seen.get_mut(&row.host.address) {
                *seen = now;
            }
        }
        self.seen.retain(|_, seen| now.duration_since(*seen) < LABEL_KEPT);
        for row in active() {
            if self.seen.len() < self.most {
                self.seen.entry(row.host.address).or_insert(now);
            }
        }
        rows.iter().filter(|row| self.seen.contains_key(&row.host.address)).collect()
    }
}

/// The text.
pub fn text(picture: &Picture, labels: &mut Labels, shown: impl Fn(IpAddr) -> IpAddr) -> String {
    let mut out = String::new();
    totals(&mut out, picture);
    family(
        &mut out,
        "queue_delay_seconds",
        "histogram",
        "Queueing delay of each sample, in the sender's uplink for the most part",
    );
    for (tally, protocol) in picture.tallies.iter().zip(["utp", "tcp"]) {
        histogram(&mut out, tally, protocol);
    }
    let rows = labels.choose(&picture.rows, Instant::now());
    gauge(&mut out, "labelled_hosts", "Hosts with a label of their own", rows.len() as f64);
    let others = picture.rows.len() - rows.len();
    gauge(&mut out, "unlabelled_hosts", "Hosts that are in the totals only", others as f64);
    for (name, help, value) in OF_HOSTS {
        family(&mut out, name, "gauge", help);
        for row in &rows {
            if let Some(value) = value(row) {
                let _ = writeln!(out, "cede_meter_{name}{{host=\"{}\"}} {value}", shown(row.host.address));
            }
        }
    }
    out
}

type OfHost = (&'static str, &'static str, fn(&Row) -> Option<f64>);

/// What each labelled host has.
const OF_HOSTS: [OfHost; 5] = [
    ("host_queue_delay_now_seconds", "Mean over time since the last interval", |row| {
        row.now.as_ref().map(|now| now.time_mean_ms / 1e3)
    }),
    ("host_queue_delay_mean_seconds", "Mean over time within the window", |row| {
        Some(row.host.all.time_mean_ms / 1e3)
    }),
    ("host_queue_delay_p95_seconds", "95th percentile of the window's samples", |row| {
        Some(row.host.all.p95_ms / 1e3)
    }),
    ("host_bloated_ratio", "Share of the time covered with more than 100 ms", |row| {
        Some(row.host.all.bloated_s / row.host.all.covered_s.max(1e-9))
    }),
    ("host_samples", "Samples within the window", |row| Some(row.host.all.samples as f64)),
];

fn totals(out: &mut String, picture: &Picture) {
    let counters = &picture.counters;
    let grown: [(&str, &str, u64); 9] = [
        ("packets_total", "Packets seen", counters.packets),
        ("bytes_total", "Octets of them on the wire", counters.bytes),
        ("lost_packets_total", "Packets that the kernel had no room for", picture.lost),
        ("other_packets_total", "Packets that are neither TCP nor UDP", counters.other),
        ("fragments_total", "Later parts of fragmented packets", counters.fragments),
        (
            "cut_packets_total",
            "Packets cut within their headers, or with headers that make no sense",
            counters.cut,
        ),
        ("flows_total", "Flows seen", counters.flows),
        ("evicted_flows_total", "Flows given up for want of memory", counters.evicted),
        ("thinned_samples_total", "Samples left out to keep up", counters.thinned),
    ];
    for (name, help, value) in grown {
        family(out, name, "counter", help);
        let _ = writeln!(out, "cede_meter_{name} {value}");
    }
    gauge(out, "remembered_flows", "Flows remembered", picture.flows as f64);
    gauge(out, "hosts", "Hosts with enough samples within the window", picture.rows.len() as f64);
    gauge(out, "memory_bytes", "Octets that flows and samples take", picture.memory_bytes as f64);
    gauge(
        out,
        "sample_spacing_seconds",
        "Least time between two samples of a direction that are kept",
        picture.spacing.as_secs_f64(),
    );
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP cede_meter_{name} {help}\n# TYPE cede_meter_{name} {kind}");
}

fn gauge(out: &mut String, name: &str, help: &str, value: f64) {
    family(out, name, "gauge", help);
    let _ = writeln!(out, "cede_meter_{name} {value}");
}

fn histogram(out: &mut String, tally: &Tally, protocol: &str) {
    let mut total = 0;
    let ends = BUCKETS_S.iter().map(f64::to_string).chain(["+Inf".to_string()]);
    for (count, end) in tally.counts.iter().zip(ends) {
        total += count;
        let _ = writeln!(
            out,
            "cede_meter_queue_delay_seconds_bucket{{protocol=\"{protocol}\",le=\"{end}\"}} {total}"
        );
    }
    let _ = writeln!(out, "cede_meter_queue_delay_seconds_sum{{protocol=\"{protocol}\"}} {}", tally.sum_s);
    let _ = writeln!(out, "cede_meter_queue_delay_seconds_count{{protocol=\"{protocol}\"}} {total}");
}

#[cfg(test)]
mod tests {
    use super::super::picture::testing::picture;
    use super::*;

    fn labels_of(text: &str) -> std::collections::BTreeSet<&str> {
        text.lines()
            .filter_map(|line| line.split_once("host=\"")?.1.split_once('"'))
            .map(|parts| parts.0)
            .collect()
    }

    #[test]
    fn however_many_hosts_there_are_few_have_labels_and_they_keep_them() {
        let mut labels = Labels::new(5);
        let first = text(&picture(1..=40), &mut labels, |address| address);
        let of_first = labels_of(&first);
        assert_eq!(of_first.len(), 5);
        // Others come, and the order changes; those who have a label are shown as long as they are there.
        let second = text(&picture((30..=90).rev().chain(1..=40)), &mut labels, |address| address);
        assert_eq!(labels_of(&second), of_first);
        let third = text(&picture(100..=200), &mut labels, |address| address);
        assert!(labels_of(&third).is_empty(), "room is kept for an hour");
        assert!(third.contains("cede_meter_unlabelled_hosts 101"));
    }

    #[test]
    fn every_line_is_a_comment_or_a_name_with_a_number() {
        let text = text(&picture(1..=3), &mut Labels::new(2), |address| address);
        let mut declared = std::collections::BTreeSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                assert!(declared.insert(rest.split(' ').next().unwrap()), "twice: {line}");
            } else if !line.starts_with("# HELP ") {
                let (name, value) = line.rsplit_once(' ').unwrap();
                let family = name.split('{').next().unwrap();
                let of_histogram =
                    ["_bucket", "_sum", "_count"].iter().find_map(|end| family.strip_suffix(end));
                assert!(
                    declared.contains(family) || of_histogram.is_some_and(|name| declared.contains(name))
                );
                assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
            }
        }
        // Where `_total` is no part of a family's name (OpenMetrics) each must still be there once.
        let mut stems = declared.iter().map(|name| name.trim_end_matches("_total"));
        assert!(stems.all(|stem| !declared.contains(stem) || !declared.contains(&*format!("{stem}_total"))));
        assert!(
            text.contains("le=\"+Inf\"} 3") && text.contains("queue_delay_seconds_count{protocol=\"utp\"} 3")
        );
    }
}
