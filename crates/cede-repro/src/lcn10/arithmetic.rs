//! TCP-LP's share beside one Reno flow at N = 10, by the arithmetic of its delays, its smallest window, and how far apart
//! the hosts' clocks are.
//!
//! The paper has about 5 % for each of ten flows and does not say which TCP-LP it ran. Each of the three moves the share by
//! several points, so all of them are crossed here. The smallest window is what a second early congestion within an
//! inference phase leaves: "zero" by the paper, one packet in Linux.

use super::plan::Point;
use super::results::{Metric, Results};
use super::setting::{Background, Kind, Part};
use cede_plot::{Cell, Table};

/// An arithmetic with a smallest window.
struct Row {
    curve: &'static str,
    arithmetic: &'static str,
    floor: &'static str,
    controller: &'static str,
}

const fn row(
    curve: &'static str,
    arithmetic: &'static str,
    floor: &'static str,
    controller: &'static str,
) -> Row {
    Row { curve, arithmetic, floor, controller }
}

const ROWS: &[Row] = &[
    row("lp-equations-1", "equations of the paper", "1", "\"lp\""),
    row("lp-known-1", "Linux, rate known", "1", "{ name = \"lp-linux\", clock_rate = \"known\" }"),
    row(
        "lp-known-2",
        "Linux, rate known",
        "2",
        "{ name = \"lp-linux\", clock_rate = \"known\", min_cwnd = 2.0 }",
    ),
    row("lp-64-1", "Linux, rate estimated, 64 bits", "1", "\"lp-linux\""),
    row("lp-64-2", "Linux, rate estimated, 64 bits", "2", "{ name = \"lp-linux\", min_cwnd = 2.0 }"),
    row(
        "lp-32-delay-1",
        "Linux, rate estimated, delays of 32 bits",
        "1",
        "{ name = \"lp-linux\", bits = \"32-delay\" }",
    ),
    row(
        "lp-32-delay-2",
        "Linux, rate estimated, delays of 32 bits",
        "2",
        "{ name = \"lp-linux\", bits = \"32-delay\", min_cwnd = 2.0 }",
    ),
    row("lp-32-1", "Linux, rate estimated, 32 bits", "1", "\"lp-linux26\""),
    row("lp-32-2", "Linux, rate estimated, 32 bits", "2", "{ name = \"lp-linux26\", min_cwnd = 2.0 }"),
];

/// The flows beside Reno.
const FLOWS: u32 = 10;
/// How far the receivers' clocks are ahead, in milliseconds.
const OFFSETS_MS: &[u32] = &[0, 25, 100, 200, 1000];
const QUICK_OFFSETS_MS: &[u32] = &[0, 1000];

pub(super) fn points(quick: bool) -> Vec<Point> {
    let offsets_ms = if quick { QUICK_OFFSETS_MS } else { OFFSETS_MS };
    let point = |row: &Row, offset_ms: u32| {
        let other = Background::new(row.controller).clock_offset_ms(offset_ms);
        let parts =
            vec![Part::one("tcp", Kind::Reno), Part::one("lbe", Kind::Background(other)).times(FLOWS)];
        Point::new(row.curve, f64::from(offset_ms), parts)
    };
    ROWS.iter().flat_map(|row| offsets_ms.iter().map(move |&offset_ms| point(row, offset_ms))).collect()
}

/// What each of the ten flows has, in per cent of the link's throughput: the mean, with `ranges` over repetitions.
pub(super) fn table(results: &Results, ranges: bool) -> Table {
    let is_there = |offset_ms: &u32| !results.runs(ROWS[0].curve, f64::from(*offset_ms)).is_empty();
    let offsets_ms: Vec<u32> = OFFSETS_MS.iter().copied().filter(is_there).collect();
    let headings = offsets_ms.iter().map(|offset_ms| format!("{offset_ms} ms apart: each %"));
    let fixed = ["arithmetic", "smallest window"].map(String::from);
    let mut table = Table::new(fixed.into_iter().chain(headings));
    for row in ROWS {
        let cell = |offset_ms: &u32| {
            let spread = results.at(row.curve, f64::from(*offset_ms), Metric::OtherPercent);
            if ranges { Cell::from(spread.show(2)) } else { Cell::number(spread.mean, 2) }
        };
        let figures: Vec<Cell> = offsets_ms.iter().map(cell).collect();
        table.push([Cell::from(row.arithmetic), Cell::from(row.floor)].into_iter().chain(figures));
    }
    table
}
