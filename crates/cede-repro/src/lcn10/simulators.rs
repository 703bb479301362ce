//! Points of two other simulators for the same scenarios.
//!
//! ns-2 2.35 with the LEDBAT code of the paper's authors, Linux 2.6's Reno and TCP-LP (with the rate of the peer's clock
//! known, estimated, and estimated in 32-bit numbers) and a NICE on Linux's Vegas, and ns-3 3.37 with two
//! defects of its LEDBAT repaired (window growth in congestion avoidance, and a subtraction that wrapped below zero),
//! NewReno and its own TCP-LP.
//! Means over 4 to 6 (ns-2) or 2 to 3 (ns-3) repetitions with starts jittered by up to 100 ms. Both have timestamps in
//! milliseconds and filter delay samples by a minimum; ns-3 does not clamp gain times offset.

use super::results::{Metric, Results, Spread};
use cede_plot::{Cell, Table};

const POINTS: &str = include_str!("../../tests/data/lcn10-simulators.csv");

/// A simulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Simulator {
    /// ns-2 with the code of the paper's authors.
    Ns2,
    /// ns-3, repaired.
    Ns3,
}

impl Simulator {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns2 => "ns-2",
            Self::Ns3 => "ns-3",
        }
    }

    const fn column(self) -> &'static str {
        match self {
            Self::Ns2 => "ns2",
            Self::Ns3 => "ns3",
        }
    }
}

/// Which of their experiments a curve corresponds to.
struct Counterpart {
    curve: &'static str,
    experiment: &'static str,
    ns2: &'static str,
    ns3: &'static str,
}

const fn counterpart(
    curve: &'static str,
    experiment: &'static str,
    ns2: &'static str,
    ns3: &'static str,
) -> Counterpart {
    Counterpart { curve, experiment, ns2, ns3 }
}

/// An empty label: that simulator has not run it.
const COUNTERPARTS: &[Counterpart] = &[
    counterpart("reno", "e", "reno", "newreno"),
    counterpart("ledbat", "e", "ledbat-25", "ledbatfix-25"),
    counterpart("ledbat-100", "e", "ledbat-100", "ledbatfix-100"),
    counterpart("target", "a_T", "reno+ledbat", "newreno+ledbatfix"),
    counterpart("target-newreno", "a_T", "newreno+ledbat", "newreno+ledbatfix"),
    counterpart("gain", "a_G", "reno+ledbat", "newreno+ledbatfix"),
    counterpart("target-ratio", "c_T", "ledbat+ledbat", "ledbatfix+ledbatfix"),
    counterpart("gain-ratio", "c_G", "ledbat+ledbat", ""),
    counterpart("gain-ratio-free", "c_G", "", "ledbatfix+ledbatfix"),
    counterpart("n-ledbat", "b", "reno+ledbat", "newreno+ledbatfix"),
    counterpart("n-reno", "b", "reno+reno", "newreno+newreno"),
    counterpart("n-nice", "b", "reno+nice_ss", ""),
    counterpart("n-lp", "b", "reno+lp32", ""),
    counterpart("n-lp-known", "b", "reno+lpfix", "newreno+lp"),
    counterpart("nice", "e", "nice_ss", ""),
    counterpart("lp", "e", "lp32", ""),
    counterpart("lp-known", "e", "lpfix", "lp"),
    counterpart("all-reno", "fig5", "reno", ""),
    counterpart("mix", "fig5", "lp32/nice_ss/ledbat", ""),
    counterpart("mix-known", "fig5", "lpfix/nice_ss/ledbat", ""),
    counterpart("rtt-ledbat", "d", "ledbat-25", "ledbatfix-25"),
    counterpart("rtt-reno", "d", "reno", "newreno"),
    counterpart("rtt-nice", "d", "nice_ss", ""),
    counterpart("rtt-vegas", "d", "", "vegas"),
    counterpart("rtt-vegas-linux", "d", "vegas", ""),
    counterpart("rtt-lp", "d", "lp32", ""),
    counterpart("rtt-lp-known", "d", "lpfix", "lp"),
    counterpart("b-lp-known", "b", "reno+lpfix", ""),
    counterpart("b-lp-ns3", "b", "", "newreno+lp"),
    counterpart("b-lp-ns3-start", "b", "", "newreno+lp"),
    counterpart("b-lp-ns3-window", "b", "", "newreno+lp"),
    counterpart("b-lp-ns3-window-1", "e", "", "lp"),
    counterpart("b-lp-estimated", "b", "reno+lp", ""),
    counterpart("b-lp-32", "b", "reno+lp32", ""),
    counterpart("b-lp-ns2-64", "b", "reno+lp", ""),
    counterpart("b-lp-ns2-32", "b", "reno+lp32", ""),
    counterpart("b-nice-linux26-at-once", "b", "reno+nice", ""),
    counterpart("b-nice-linux26", "b", "reno+nice_ss", ""),
    counterpart("b-vegas", "b", "reno+vegas", "newreno+vegas"),
    counterpart("newreno", "e", "newreno", ""),
    counterpart("cubic", "e", "cubic", "cubic"),
    counterpart("bbr", "e", "", "bbr"),
    counterpart("vegas", "e", "", "vegas"),
    counterpart("vegas-linux", "e", "vegas", ""),
    counterpart("two-reno", "e2", "reno x2", "newreno x2"),
    counterpart("two-newreno", "e2", "newreno x2", ""),
    counterpart("two-cubic", "e2", "cubic x2", "cubic x2"),
    counterpart("two-bbr", "e2", "", "bbr x2"),
    counterpart("two-vegas", "e2", "", "vegas x2"),
    counterpart("two-vegas-linux", "e2", "vegas x2", ""),
    counterpart("two-ledbat", "e2", "ledbat-25 x2", "ledbatfix-25 x2"),
    counterpart("two-ledbat-100", "e2", "ledbat-100 x2", "ledbatfix-100 x2"),
    counterpart("two-nice", "e2", "nice_ss x2", ""),
    counterpart("two-lp", "e2", "lp32 x2", ""),
    counterpart("two-lp-known", "e2", "lpfix x2", "lp x2"),
    counterpart("g-cubic-100", "g", "cubic(30-80)+ledbat100", "cubic(30-80)+ledbatfix100"),
    counterpart("g-reno-100", "g", "reno(30-80)+ledbat100", "newreno(30-80)+ledbatfix100"),
    counterpart("g-bbr-100", "g", "", "bbr(30-80)+ledbatfix100"),
    counterpart("g-cubic-25", "g", "cubic(30-80)+ledbat25", ""),
    counterpart("g-reno-25", "g", "reno(30-80)+ledbat25", ""),
];

/// The values of a metric that a simulator has for a curve, with their places.
#[must_use]
pub fn points(simulator: Simulator, curve: &str, metric: Metric) -> Vec<(f64, f64)> {
    let Some(counterpart) = COUNTERPARTS.iter().find(|counterpart| counterpart.curve == curve) else {
        return Vec::new();
    };
    let label = match simulator {
        Simulator::Ns2 => counterpart.ns2,
        Simulator::Ns3 => counterpart.ns3,
    };
    let wanted = [counterpart.experiment, simulator.column(), label];
    let rows = POINTS.lines().skip(1).map(|line| line.split(',').collect::<Vec<&str>>());
    rows.filter(|row| row.starts_with(&wanted))
        .filter_map(|row| Some((number(&row, 3)?, value(&row, metric)?)))
        .collect()
}

fn number(row: &[&str], column: usize) -> Option<f64> {
    row.get(column)?.parse().ok()
}

/// A metric in a row of the table of points; the names of its columns stand in its first line.
fn value(row: &[&str], metric: Metric) -> Option<f64> {
    let alone = matches!(row[0], "c_T" | "c_G" | "d" | "e" | "e2");
    match metric {
        Metric::Efficiency => number(row, 5),
        // Between flows of one kind the table has no share.
        Metric::TcpPercent | Metric::OtherPercent | Metric::FirstThirdPercent if alone => None,
        // Of the mix it has the part of all TCP-LP flows, and no part of a single one.
        Metric::TcpPercent | Metric::OtherPercent if row[0] == "fig5" => None,
        Metric::TcpPercent | Metric::FirstThirdPercent => number(row, 6),
        Metric::OtherPercent => Some((100.0 - number(row, 6)?) / number(row, 3)?),
        Metric::FairnessLong => number(row, 9),
        Metric::FairnessShort => number(row, 10),
        Metric::QueueIndex => number(row, 11),
        Metric::LossPercent => Some(number(row, 12)? * 100.0),
        Metric::FairnessOthers => number(row, 13),
        Metric::FirstRate => number(row, 14),
        Metric::Goodput => None,
    }
}

/// The value at one place.
#[must_use]
pub fn at(simulator: Simulator, curve: &str, x: f64, metric: Metric) -> Option<f64> {
    let points = points(simulator, curve, metric);
    points.into_iter().find(|(place, _)| (place - x).abs() < 1e-9).map(|(_, value)| value)
}

/// A curve that is compared: its name, what its places are, and the metrics.
pub(super) struct Compared {
    pub(super) curve: &'static str,
    pub(super) axis: &'static str,
    pub(super) metrics: &'static [(Metric, &'static str)],
}

/// Ours beside theirs, where at least one of them has a point.
pub(super) fn table(results: &Results, compared: &[Compared]) -> Table {
    let headings = ["run", "metric", "Cede", "range", "ns-2", "ns-3", "to ns-2", "to ns-3"];
    let mut table = Table::new(headings);
    for Compared { curve, axis, metrics } in compared {
        for &(metric, name) in *metrics {
            for (x, ours) in results.along(curve, metric) {
                let theirs =
                    [Simulator::Ns2, Simulator::Ns3].map(|simulator| at(simulator, curve, x, metric));
                if theirs.iter().any(Option::is_some) {
                    let run = axis.replace("{}", &super::claim::place(x));
                    table.push(row(run, name, &ours, theirs, metric.decimals()));
                }
            }
        }
    }
    table
}

fn row(run: String, name: &str, ours: &Spread, theirs: [Option<f64>; 2], decimals: usize) -> Vec<Cell> {
    let number = |value: Option<f64>| value.map_or(Cell::from("–"), |value| Cell::number(value, decimals));
    let difference = |value: Option<f64>| {
        value.map_or(Cell::from("–"), |value| Cell::from(format!("{:+.decimals$}", ours.mean - value)))
    };
    let range = format!("{:.decimals$} to {:.decimals$}", ours.min, ours.max);
    let [ns2, ns3] = theirs;
    vec![
        run.into(),
        name.into(),
        Cell::number(ours.mean, decimals),
        range.into(),
        number(ns2),
        number(ns3),
        difference(ns2),
        difference(ns3),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counterpart_has_points() {
        for counterpart in COUNTERPARTS {
            for (simulator, label) in [(Simulator::Ns2, counterpart.ns2), (Simulator::Ns3, counterpart.ns3)] {
                let found = points(simulator, counterpart.curve, Metric::Efficiency);
                assert_eq!(found.is_empty(), label.is_empty(), "{} {}", counterpart.curve, simulator.name());
            }
        }
    }

    #[test]
    fn values_come_from_their_columns() {
        let at = |metric| at(Simulator::Ns2, "target", 65.0, metric).unwrap();
        assert_eq!(at(Metric::TcpPercent), 95.48);
        assert_eq!(at(Metric::QueueIndex), 0.7169);
        assert!((at(Metric::LossPercent) - 0.149).abs() < 1e-9);
        assert_eq!(super::at(Simulator::Ns2, "rtt-ledbat", 5.0, Metric::TcpPercent), None);
        assert_eq!(super::at(Simulator::Ns3, "all-reno", 1.0, Metric::Efficiency), None);
    }
}
