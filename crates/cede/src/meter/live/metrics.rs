//! The picture as metrics in Prometheus' text format.
//!
//! Source: the text-based exposition format, version 0.0.4; names and units after Prometheus' own advice (base units,
//! `_total` for what only grows).

use super::picture::{BUCKETS_S, Picture, Row, Tally};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A host that says nothing for so long has no label any more.
const LABEL_KEPT: Duration = Duration::from_secs(3600);
/// A label changes hands as often as would give each another host within that time, and at least as often as the other says.
const ALL_CHANGE: Duration = Duration::from_secs(3600);
const CHANGE_EVERY_MOST: Duration = Duration::from_secs(300);
/// A host that says nothing for so long, or whose queue is this many times shorter, gives its label to one without.
const QUIET: Duration = Duration::from_secs(300);
const TIMES_WORSE: f64 = 2.0;

/// Which hosts have labels of their own: so many at a time and no more, however many there are. Who has one keeps it while it is
/// among the worst or nearly, so that labels do not come and go with their order. One at a time may change hands, every
/// [`Self::change_every`]; so, of N labels, no more than 2 N + 12 hosts get one within an hour, and the worst host of all waits for no
/// more than one such time.
#[derive(Debug)]
pub struct Labels {
    most: usize,
    seen: HashMap<IpAddr, Instant>,
    changed: Option<Instant>,
}

impl Labels {
    /// Room for so many.
    pub fn new(most: usize) -> Self {
        Self { most, seen: HashMap::new(), changed: None }
    }

    /// The time between two changes of hands.
    fn change_every(&self) -> Duration {
        let labels = u32::try_from(self.most).unwrap_or(u32::MAX).max(1);
        (ALL_CHANGE / labels).min(CHANGE_EVERY_MOST)
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
        self.change(rows, now);
        rows.iter().filter(|row| self.seen.contains_key(&row.host.address)).collect()
    }

    /// Gives the label of the host that needs it least to the worst one without.
    fn change(&mut self, rows: &[Row], now: Instant) {
        let since = self.changed.get_or_insert(now);
        if now.duration_since(*since) < self.change_every() {
            return;
        }
        let has_label = |row: &&Row| self.seen.contains_key(&row.host.address);
        let is_waiting = |row: &&Row| row.now.is_some() && !has_label(row);
        let Some(place) = rows.iter().position(|row| is_waiting(&row)) else { return };
        let worse = rows[place].host.all.time_mean_ms;
        // The one that is silent for longest; else the one whose queue is shortest.
        let silent = self.seen.iter().filter(|(_, seen)| now.duration_since(**seen) >= QUIET);
        let silent = silent.min_by_key(|(_, seen)| **seen).map(|(address, _)| *address);
        let is_worst = !rows[..place].iter().any(|row| has_label(&row));
        let least = rows.iter().rev().find(has_label);
        let least = least
            .filter(|row| is_worst || worse >= TIMES_WORSE * row.host.all.time_mean_ms)
            .map(|row| row.host.address);
        if let Some(address) = silent.or(least) {
            self.seen.remove(&address);
            self.seen.insert(rows[place].host.address, now);
            self.changed = Some(now);
        }
    }
}

/// The text.
pub fn text(picture: &Picture, labels: &mut Labels) -> String {
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
                let _ = writeln!(out, "cede_meter_{name}{{host=\"{}\"}} {value}", row.host.address);
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
        ("other_packets_total", "Packets that are neither TCP nor UDP", counters.other + counters.unread),
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
    gauge(out, "interface_up", "Whether it is up, or all are", f64::from(u8::from(picture.is_up())));
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

    const SECOND: Duration = Duration::from_secs(1);

    fn chosen(labels: &mut Labels, hosts: impl Iterator<Item = u8>, now: Instant) -> Vec<u8> {
        let picture = picture(hosts);
        labels.choose(&picture.rows, now).iter().map(|row| row.host.all.max_ms as u8).collect()
    }

    #[test]
    fn however_many_hosts_there_are_few_have_labels_and_they_keep_them() {
        let mut labels = Labels::new(5);
        let first = text(&picture(1..=40), &mut labels);
        let of_first = labels_of(&first);
        assert_eq!(of_first.len(), 5);
        // Others come, and the order changes; those who have a label are shown as long as they are there.
        let second = text(&picture((30..=90).rev().chain(1..=40)), &mut labels);
        assert_eq!(labels_of(&second), of_first);
        let third = text(&picture(100..=200), &mut labels);
        assert!(labels_of(&third).is_empty(), "room is kept");
        assert!(third.contains("cede_meter_unlabelled_hosts 101"));
    }

    #[test]
    fn the_worst_host_gets_a_label_soon_and_hosts_of_a_moment_do_not_keep_theirs() {
        let (mut labels, begun) = (Labels::new(5), Instant::now());
        // Five that are there for a moment only.
        assert_eq!(chosen(&mut labels, (11..=15).rev(), begun), [15, 14, 13, 12, 11]);
        // Then ten others, of which the worst has a label within the time of one change, and all labels are theirs before long.
        let (mut at, mut first) = (begun, None);
        let shown = loop {
            at += SECOND;
            let shown = chosen(&mut labels, (21..=30).rev(), at);
            if first.is_none() && shown.contains(&30) {
                first = Some(at - begun);
            }
            if shown.len() == 5 {
                break shown;
            }
            assert!(at < begun + 30 * 60 * SECOND, "{shown:?}");
        };
        assert!(first.unwrap() <= CHANGE_EVERY_MOST, "{first:?}");
        assert_eq!(shown, [30, 29, 28, 27, 26]);
        // A worse one takes the label of the least, and those that are nearly as bad as others leave them theirs.
        at += CHANGE_EVERY_MOST;
        assert_eq!(chosen(&mut labels, (25..=30).chain([200]).rev(), at), [200, 30, 29, 28, 27]);
        for _ in 0..3_600 {
            at += SECOND;
            let same = chosen(&mut labels, (25..=35).filter(|host| *host != 31).chain([200]).rev(), at);
            assert_eq!(same, [200, 30, 29, 28, 27], "35 is not twice as bad as 27");
        }
    }

    #[test]
    fn no_flood_of_hosts_makes_more_labels_than_so_many_an_hour() {
        for most in [1, 3, 50] {
            let (mut labels, begun) = (Labels::new(most), Instant::now());
            let mut shown = std::collections::BTreeSet::new();
            // Each second others, each worse than all before.
            for second in 0..3_600_u32 {
                let rows = picture(1..=2).rows.into_iter().enumerate().map(|(k, mut row)| {
                    row.host.address = std::net::Ipv4Addr::from_bits(2 * second + k as u32).into();
                    row.host.all.time_mean_ms = f64::from(2 * second) - k as f64;
                    row
                });
                let rows: Vec<Row> = rows.collect();
                let chosen = labels.choose(&rows, begun + second * SECOND);
                shown.extend(chosen.iter().map(|row| row.host.address));
                assert!(chosen.len() <= most && labels.seen.len() <= most);
            }
            assert!(shown.len() <= 2 * most + 12, "{} of {most}", shown.len());
        }
    }

    #[test]
    fn every_line_is_a_comment_or_a_name_with_a_number() {
        let text = text(&picture(1..=3), &mut Labels::new(2));
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
