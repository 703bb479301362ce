//! Which TCP-LP and which NICE: the same probes with one rule altered at a time.
//!
//! Neither protocol is one thing. TCP-LP hangs on the width of the host's numbers, on whether the rate of the peer's clock is
//! known, and on how far apart the clocks are; NICE on its smallest window. Each variant runs beside one Reno flow, N = 1, 5
//! and 10 of them, and alone.

use super::plan::Point;
use super::results::{Metric, Results};
use super::setting::{Background, Choices, Kind, Part};
use super::simulators::Compared;
use cede_plot::{Cell, Table};

/// A variant: the curve of its runs beside Reno, that of its runs alone, and what it is.
struct Variant {
    beside: &'static str,
    alone: &'static str,
    name: &'static str,
    protocol: Background,
    choices: Choices,
}

impl Variant {
    /// Where repairs begin with a pause.
    const fn pausing(self) -> Self {
        Self { choices: Choices { prr: false, ..Choices::PRIMARY }, ..self }
    }
}

const fn variant(
    beside: &'static str,
    alone: &'static str,
    name: &'static str,
    protocol: Background,
) -> Variant {
    Variant { beside, alone, name, protocol, choices: Choices::PRIMARY }
}

const KNOWN: Background = Background::LP_KNOWN_RATE;
/// Linux's, with 64 bits.
const ESTIMATED: Background = Background::new("\"lp-linux\"");
const ESTIMATED_32: Background = Background::new("\"lp-linux26\"");

const VARIANTS: &[Variant] = &[
    variant("b-lp", "b-lp-1", "LP, equations", Background::LP_EQUATIONS),
    variant(
        "b-lp-at-once",
        "b-lp-at-once-1",
        "LP, equations, judged at once",
        Background::new("{ name = \"lp\", begin = \"at_once\" }"),
    ),
    variant("b-lp-known", "b-lp-known-1", "LP, Linux, rate known", KNOWN),
    variant("b-lp-25", "b-lp-25-1", "the same, clocks 25 ms apart", KNOWN.clock_offset_ms(25)),
    variant("b-lp-100", "b-lp-100-1", "the same, clocks 100 ms apart", KNOWN.clock_offset_ms(100)),
    variant("b-lp-200", "b-lp-200-1", "the same, clocks 200 ms apart", KNOWN.clock_offset_ms(200)),
    variant("b-lp-1000", "b-lp-1000-1", "the same, clocks 1 s apart", KNOWN.clock_offset_ms(1000)),
    variant("b-lp-ns3", "b-lp-ns3-1", "LP, rate known, equality is no congestion (ns-3)", Background::LP_NS3),
    variant(
        "b-lp-ns3-start",
        "b-lp-ns3-start-1",
        "the same, slow start goes on in inference (ns-3)",
        Background::new(
            "{ name = \"lp-linux\", clock_rate = \"known\", boundary = \"inclusive\", inference_holds = \"avoidance\" }",
        ),
    ),
    variant(
        "b-lp-ns3-window",
        "b-lp-ns3-window-1",
        "the same, growth by fractions, losses halve what is under way (ns-3)",
        Background::LP_NS3_WINDOW,
    ),
    variant(
        "b-lp-kept",
        "b-lp-kept-1",
        "LP, Linux, rate known, extremes kept",
        Background::new("{ name = \"lp-linux\", clock_rate = \"known\", reset_extremes = false }"),
    ),
    variant("b-lp-estimated", "b-lp-estimated-1", "LP, Linux, rate estimated, 64 bits", ESTIMATED),
    variant(
        "b-lp-32-delay",
        "b-lp-32-delay-1",
        "LP, Linux, rate estimated, delays of 32 bits",
        Background::new("{ name = \"lp-linux\", bits = \"32-delay\" }"),
    ),
    variant("b-lp-32", "b-lp-32-1", "LP, Linux, rate estimated, 32 bits", ESTIMATED_32),
    variant(
        "b-lp-ns2-64",
        "b-lp-ns2-64-1",
        "LP, rate estimated, 64 bits, ns-2's stamps and rules",
        Background::LP_NS2,
    ),
    variant("b-lp-ns2-32", "b-lp-ns2-32-1", "the same, 32 bits", Background::LP_32_BITS),
    variant(
        "b-lp-pause-64",
        "b-lp-pause-64-1",
        "LP, rate estimated, 64 bits, repairs begin with a pause",
        ESTIMATED,
    )
    .pausing(),
    variant("b-lp-pause-32", "b-lp-pause-32-1", "the same, 32 bits", ESTIMATED_32).pausing(),
    variant("b-nice-48", "b-nice-48-1", "NICE, floor 1/48", Background::NICE_FRACTIONAL),
    variant(
        "b-nice-1",
        "b-nice-1-1",
        "NICE, floor 1",
        Background::new("{ name = \"nice\", min_cwnd = 1.0 }"),
    ),
    variant(
        "b-nice-2",
        "b-nice-2-1",
        "NICE, floor 2",
        Background::new("{ name = \"nice\", min_cwnd = 2.0 }"),
    ),
    variant(
        "b-nice-linux26",
        "b-nice-linux26-1",
        "NICE, floor 2, slow start at ssthresh",
        Background::NICE_LINUX26,
    ),
    variant(
        "b-nice-linux26-at-once",
        "b-nice-linux26-at-once-1",
        "the same, judged at once",
        Background::new(
            "{ name = \"nice\", min_cwnd = 2.0, slow_start_at_ssthresh = true, backlog = \"ns3\", window = \"present\", alpha = 2.0, beta = 4.0, begin = \"at_once\" }",
        ),
    ),
    variant("b-vegas", "b-vegas-1", "Vegas, 2 to 4 packets", Background::VEGAS_NS3),
];

const COUNTS: &[u32] = &[1, 5, 10];
const QUICK_COUNTS: &[u32] = &[1, 10];

pub(super) fn points(quick: bool) -> Vec<Point> {
    let counts = if quick { QUICK_COUNTS } else { COUNTS };
    let points = |variant: &'static Variant| {
        let other = Part::one("lbe", Kind::Background(variant.protocol));
        let alone = Point::new(variant.alone, 1.0, vec![other.clone()]).with(variant.choices);
        let beside = counts.iter().map(move |&count| {
            let parts = vec![Part::one("tcp", Kind::Reno), other.clone().times(count)];
            Point::new(variant.beside, f64::from(count), parts).with(variant.choices)
        });
        beside.chain(core::iter::once(alone))
    };
    VARIANTS.iter().flat_map(points).collect()
}

const COLUMNS: [(&str, Metric, f64); 5] = [
    ("N 1: TCP %", Metric::TcpPercent, 1.0),
    ("N 5: TCP %", Metric::TcpPercent, 5.0),
    ("N 10: TCP %", Metric::TcpPercent, 10.0),
    ("N 10: each %", Metric::OtherPercent, 10.0),
    ("N 10: P_l %", Metric::LossPercent, 10.0),
];

/// One row for each variant that was run: the mean, and with `ranges` the range where repetitions differ.
pub(super) fn table(results: &Results, ranges: bool) -> Table {
    let headings = core::iter::once("variant").chain(COLUMNS.iter().map(|column| column.0));
    let mut table = Table::new(headings.chain(core::iter::once("alone: eta")));
    for variant in VARIANTS.iter().filter(|variant| !results.runs(variant.alone, 1.0).is_empty()) {
        let beside = COLUMNS.iter().map(|&(_, metric, count)| (variant.beside, metric, count));
        let all = beside.chain(core::iter::once((variant.alone, Metric::Efficiency, 1.0)));
        let cell = |(curve, metric, x): (&str, Metric, f64)| {
            let spread = results.at(curve, x, metric);
            let decimals = if metric == Metric::TcpPercent { 1 } else { metric.decimals().min(3) };
            match (spread.mean.is_finite(), ranges) {
                (false, _) => Cell::from("–"),
                (true, true) => Cell::from(spread.show(decimals)),
                (true, false) => Cell::number(spread.mean, decimals),
            }
        };
        table.push(core::iter::once(Cell::from(variant.name)).chain(all.map(cell)));
    }
    table
}

pub(super) const COMPARED: &[Compared] = &[
    Compared { curve: "b-lp-known", axis: "N = {} LP, rate known", metrics: FOUR },
    Compared { curve: "b-lp-ns3", axis: "N = {} LP, rate known, as ns-3", metrics: FOUR },
    Compared {
        curve: "b-lp-ns3-start",
        axis: "N = {} LP, rate known, as ns-3, slow start in inference",
        metrics: FOUR,
    },
    Compared { curve: "b-lp-ns3-window", axis: "N = {} LP, ns-3's rules", metrics: FOUR },
    Compared { curve: "b-lp-ns3-window-1", axis: "LP alone, ns-3's rules", metrics: ALONE },
    Compared { curve: "b-lp-estimated", axis: "N = {} LP, estimated, 64 bits", metrics: FOUR },
    Compared { curve: "b-lp-32", axis: "N = {} LP, estimated, 32 bits", metrics: FOUR },
    Compared { curve: "b-lp-ns2-64", axis: "N = {} LP, 64 bits, ns-2's rules", metrics: FOUR },
    Compared { curve: "b-lp-ns2-32", axis: "N = {} LP, 32 bits, ns-2's rules", metrics: FOUR },
    Compared { curve: "b-nice-linux26", axis: "N = {} NICE, floor 2", metrics: FOUR },
    Compared { curve: "b-nice-linux26-at-once", axis: "N = {} NICE, judged at once", metrics: FOUR },
    Compared { curve: "b-vegas", axis: "N = {} Vegas", metrics: FOUR },
];

const ALONE: &[(Metric, &str)] = &[(Metric::Efficiency, "eta"), (Metric::QueueIndex, "B")];
const FOUR: &[(Metric, &str)] = &[
    (Metric::TcpPercent, "TCP %"),
    (Metric::QueueIndex, "B"),
    (Metric::LossPercent, "P_l (%)"),
    (Metric::FairnessOthers, "F of the N"),
];
