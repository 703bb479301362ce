//! What the choices change that the paper leaves open: the same probes with one choice altered at a time.

use super::plan::Point;
use super::results::{Metric, Results};
use super::setting::{Carrier, Choices, Kind, Ledbat, Part, target_ms};
use cede_plot::{Cell, Table};

/// A way to fill the gaps of the paper.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The curve that its probes make.
    pub curve: &'static str,
    /// What is altered.
    pub name: &'static str,
    /// All choices.
    pub choices: Choices,
}

const PRIMARY: Choices = Choices::PRIMARY;
const TCP_1_MS: Choices = Choices { carrier: Carrier::Tcp { tick_us: 1000 }, ..PRIMARY };

const fn variant(curve: &'static str, name: &'static str, choices: Choices) -> Variant {
    Variant { curve, name, choices }
}

/// The figures' choices first.
pub const VARIANTS: &[Variant] = &[
    variant("s-primary", "as in the figures", PRIMARY),
    variant("s-tcp-1ms", "over TCP, timestamps of 1 ms", TCP_1_MS),
    variant(
        "s-tcp-1us",
        "over TCP, timestamps of 1 us",
        Choices { carrier: Carrier::Tcp { tick_us: 1 }, ..PRIMARY },
    ),
    variant("s-newreno", "NewReno without SACK", Choices { sack: false, ..PRIMARY }),
    variant("s-pause", "repairs begin with a pause (RFC 6675)", Choices { prr: false, ..PRIMARY }),
    variant("s-delayed", "delayed acknowledgements", Choices { delayed_acks: true, ..PRIMARY }),
    variant("s-free", "no clamp on the gain", Choices { clamp: false, ..PRIMARY }),
    variant("s-floor-2", "smallest window 2 packets", Choices { min_window_packets: 2, ..PRIMARY }),
    variant("s-jitter-0", "no start jitter", Choices { start_jitter_ms: 0, ..PRIMARY }),
    variant("s-jitter-1000", "start jitter of 1 s", Choices { start_jitter_ms: 1000, ..PRIMARY }),
    variant("s-filter", "minimum of the last 4 delay samples", Choices { filter: true, ..PRIMARY }),
    variant("s-whole", "window in whole packets", Choices { whole_packets: true, ..PRIMARY }),
    variant("s-code", "last 4 and whole packets", Choices { filter: true, whole_packets: true, ..PRIMARY }),
    variant(
        "s-authors",
        "all of the authors' code: TCP, 1 ms, last 4, whole packets",
        Choices { filter: true, whole_packets: true, ..TCP_1_MS },
    ),
    variant("s-600s", "600 s in place of 120 s", Choices { duration_s: 600, ..PRIMARY }),
];

/// An experiment that every variant repeats: what it is, its flows, and the metric that is read.
struct Probe {
    heading: &'static str,
    short: &'static str,
    metric: Metric,
    parts: fn() -> Vec<Part>,
}

fn beside_reno(percent: f64) -> Vec<Part> {
    let ledbat = Kind::Ledbat(Ledbat::with_target_ms(target_ms(percent)));
    vec![Part::one("tcp", Kind::Reno), Part::one("lbe", ledbat)]
}

fn two_ledbat(first: Ledbat, rtt_ratio: f64) -> Vec<Part> {
    let first = Part::one("a", Kind::Ledbat(first)).rtt_ratio(rtt_ratio);
    vec![first, Part::one("b", Kind::Ledbat(Ledbat::PAPER))]
}

const PROBES: &[Probe] = &[
    Probe {
        heading: "alone: B",
        short: "B",
        metric: Metric::QueueIndex,
        parts: || vec![Part::one("lbe", Kind::Ledbat(Ledbat::PAPER))],
    },
    Probe { heading: "T 20: TCP %", short: "T20", metric: Metric::TcpPercent, parts: || beside_reno(20.0) },
    Probe { heading: "T 65: TCP %", short: "T65", metric: Metric::TcpPercent, parts: || beside_reno(65.0) },
    Probe { heading: "T 80: TCP %", short: "T80", metric: Metric::TcpPercent, parts: || beside_reno(80.0) },
    Probe {
        heading: "T 100: TCP %",
        short: "T100",
        metric: Metric::TcpPercent,
        parts: || beside_reno(100.0),
    },
    Probe {
        heading: "N 10: TCP %",
        short: "N10",
        metric: Metric::TcpPercent,
        parts: || vec![Part::one("tcp", Kind::Reno), Part::one("lbe", Kind::Ledbat(Ledbat::PAPER)).times(10)],
    },
    Probe {
        heading: "two LEDBAT: F",
        short: "F two",
        metric: Metric::FairnessLong,
        parts: || two_ledbat(Ledbat::PAPER, 1.0),
    },
    Probe {
        heading: "G1/G2 10: F",
        short: "F G10",
        metric: Metric::FairnessLong,
        parts: || two_ledbat(Ledbat::with_gain(10.0), 1.0),
    },
    Probe {
        heading: "RTT 5: F",
        short: "F R5",
        metric: Metric::FairnessLong,
        parts: || two_ledbat(Ledbat::PAPER, 5.0),
    },
    Probe {
        heading: "RTT 5, Reno: F",
        short: "F R5 Reno",
        metric: Metric::FairnessLong,
        parts: || vec![Part::one("a", Kind::Reno).rtt_ratio(5.0), Part::one("b", Kind::Reno)],
    },
    Probe {
        heading: "RTT 10: F",
        short: "F R10",
        metric: Metric::FairnessLong,
        parts: || two_ledbat(Ledbat::PAPER, 10.0),
    },
];

/// A quick request leaves out the long runs.
pub(super) fn points(quick: bool) -> Vec<Point> {
    let wanted = VARIANTS.iter().filter(|variant| !quick || variant.choices.duration_s <= 120);
    let probes = |variant: &Variant| {
        let (curve, choices) = (variant.curve, variant.choices);
        PROBES
            .iter()
            .enumerate()
            .map(move |(k, probe)| Point::new(curve, k as f64, (probe.parts)()).with(choices))
    };
    wanted.flat_map(probes).collect()
}

/// One row for each variant that was run: the mean, and with `ranges` the range where repetitions differ.
pub(super) fn table(results: &Results, ranges: bool) -> Table {
    let heading = |probe: &Probe| if ranges { probe.heading } else { probe.short };
    let headings = core::iter::once("choice").chain(PROBES.iter().map(heading));
    let mut table = Table::new(headings);
    for variant in VARIANTS {
        if results.runs(variant.curve, 0.0).is_empty() {
            continue;
        }
        let cell = |(k, probe): (usize, &Probe)| {
            let decimals = if probe.metric == Metric::TcpPercent { 1 } else { 3 };
            let spread = results.at(variant.curve, k as f64, probe.metric);
            if ranges { Cell::from(spread.show(decimals)) } else { Cell::number(spread.mean, decimals) }
        };
        let cells = core::iter::once(Cell::from(variant.name)).chain(PROBES.iter().enumerate().map(cell));
        table.push(cells);
    }
    table
}
