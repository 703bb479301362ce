//! How each series is told from the others: dashes where a line is smooth, beads where it is not.
//!
//! A dash pattern follows the length of a line, so on a noisy one it is no pattern but a ragged edge. Such a
//! line is drawn unbroken, with its marker set on it at wide intervals, in every panel of its figure, so that the legend
//! shows what is drawn.

use crate::figure::{Kind, Panel, Series};
use crate::geometry::{Point, Rect};
use crate::scale::Range;
use crate::style::{Dash, Marker};
use std::collections::BTreeSet;

/// A line is noisy if it goes up and down by this multiple of its width on paper ...
const ROUGH_RATIO: f64 = 3.0;
/// ... which is reckoned as this many units, before the layout is known ...
const NOMINAL_WIDTH: f64 = 500.0;
/// ... and has at least this many points.
const ROUGH_POINTS: usize = 150;
/// Distance between two beads.
const BEAD_EVERY: f64 = 96.0;

/// What is drawn for a series beside its shading.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// The dash of its line, if it has one.
    pub(super) dash: Option<&'static [f64]>,
    /// The marker on its points.
    pub(super) marker: Option<Marker>,
    /// The marker set on its line at intervals.
    pub(super) beads: Option<Marker>,
}

fn is_lined(series: &Series) -> bool {
    matches!(series.kind, Kind::Line | Kind::LinePoints | Kind::Steps)
}

/// Whether nothing has to be told from a panel's only line: it stands alone in the whole figure under its name, or all
/// lines of the figure have one name and stand alone in their panels.
pub(super) fn stands_alone(panel: &Panel, all: &[Panel]) -> bool {
    let lines_of = |panel: &'_ Panel| panel.series.iter().filter(|s| is_lined(s)).count();
    let Some(only) = panel.series.iter().find(|s| is_lined(s)).filter(|_| lines_of(panel) == 1) else {
        return false;
    };
    let lined = || all.iter().flat_map(|p| &p.series).filter(|s| is_lined(s));
    let bearers = lined().filter(|s| s.name == only.name).count();
    let no_other = bearers == lined().count() && all.iter().all(|p| lines_of(p) <= 1);
    only.name.is_empty() || bearers == 1 || no_other
}

/// The names of lines that are noisy in one of the panels.
pub(super) fn rough_names<'a>(
    panels: &'a [Panel],
    ranges: &[(Range, Range)],
    height: f64,
) -> BTreeSet<&'a str> {
    let of = |(panel, &ranges): (&'a Panel, &(Range, Range))| {
        panel.series.iter().filter(move |series| is_rough(series, ranges, height))
    };
    let rough = panels.iter().zip(ranges).flat_map(of);
    rough.map(|series| series.name.as_str()).filter(|name| !name.is_empty()).collect()
}

/// The look of each series of a panel.
pub(super) fn looks(
    panel: &Panel,
    slots: &[usize],
    ranges: (Range, Range),
    height: f64,
    (rough_names, alone): (&BTreeSet<&str>, bool),
) -> Vec<Look> {
    let look = |(series, &slot): (&Series, &usize)| {
        let own = series.marker.unwrap_or(Marker::of_slot(slot));
        let rough = series.kind != Kind::LinePoints
            && (rough_names.contains(series.name.as_str()) || is_rough(series, ranges, height));
        let dash = match series.dash {
            Some(dash) => dash,
            None if alone || rough => Dash::Solid,
            None => Dash::of_slot(slot),
        };
        let beaded = is_lined(series) && rough && !alone && series.dash.is_none() && slot > 0;
        let marked = matches!(series.kind, Kind::Points | Kind::LinePoints);
        Look {
            dash: is_lined(series).then_some(dash.lengths()),
            marker: marked.then_some(own),
            beads: beaded.then_some(own),
        }
    };
    panel.series.iter().zip(slots).map(look).collect()
}

fn is_rough(series: &Series, (x, y): (Range, Range), height: f64) -> bool {
    if !is_lined(series) || series.points.len() < ROUGH_POINTS {
        return false;
    }
    let (mut climb, mut width) = (0.0, 0.0);
    for pair in series.points.windows(2) {
        let (dx, dy) = (x.share(pair[1].0) - x.share(pair[0].0), y.share(pair[1].1) - y.share(pair[0].1));
        if dx.is_finite() && dy.is_finite() {
            width += dx.abs() * NOMINAL_WIDTH;
            climb += dy.abs() * height;
        }
    }
    climb > width * ROUGH_RATIO
}

/// Places on a drawn line at equal distances across, those of different slots apart; on a line too short for one its middle.
pub(super) fn bead_places(runs: &[Vec<Point>], slot: usize, rect: Rect) -> Vec<Point> {
    let first = rect.x + BEAD_EVERY * (0.3 + 0.35 * slot as f64).fract();
    let columns = (0..).map(|k| first + f64::from(k) * BEAD_EVERY).take_while(|x| *x < rect.right());
    let at = |x: f64| {
        let pair = runs.iter().flat_map(|run| run.windows(2)).find(|p| p[0].x <= x && x <= p[1].x)?;
        let (dx, dy) = (pair[1].x - pair[0].x, pair[1].y - pair[0].y);
        Some(Point::new(x, pair[0].y + if dx > 0.0 { dy * (x - pair[0].x) / dx } else { 0.0 }))
    };
    let places: Vec<Point> = columns.filter_map(at).collect();
    if !places.is_empty() {
        return places;
    }
    let longest = runs.iter().max_by_key(|run| run.len());
    longest.and_then(|run| run.get(run.len() / 2)).into_iter().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::ranges;

    fn looks_of(series: Vec<Series>) -> Vec<Look> {
        let panel = Panel::new("").all_series(series);
        let slots: Vec<usize> = (0..panel.series.len()).collect();
        looks(&panel, &slots, ranges(&panel), 200.0, (&BTreeSet::new(), false))
    }

    #[test]
    fn noise_is_beaded_and_smooth_lines_are_dashed() {
        let noise = (0..1000u32).map(|i| (f64::from(i), f64::from(i.wrapping_mul(2_654_435_761) >> 20)));
        let smooth = (0..1000u32).map(|i| (f64::from(i), f64::from(i)));
        let looks = looks_of(vec![
            Series::line("a", smooth.clone()),
            Series::line("b", noise.clone()),
            Series::line("c", smooth),
            Series::line("d", noise).dash(Dash::Dotted),
        ]);
        assert!(looks[1].dash == Some(&[]) && looks[1].beads == Some(Marker::Square));
        assert!(looks[2].dash == Some(Dash::DashDot.lengths()) && looks[2].beads.is_none());
        assert!(looks[3].dash == Some(Dash::Dotted.lengths()) && looks[3].beads.is_none());
    }

    #[test]
    fn a_line_alone_needs_no_dash() {
        let line = |name: &str| Panel::new("").series(Series::line(name, []));
        assert!(stands_alone(&line("a"), &[line("a"), line("b")]));
        assert!(stands_alone(&line("a"), &[line("a"), line("a")]), "nothing else is to be told from it");
        assert!(!stands_alone(&line("a"), &[line("a"), line("a"), line("b")]));
    }

    #[test]
    fn what_is_noisy_in_one_panel_looks_the_same_in_all() {
        let noise = (0..1000u32).map(|i| (f64::from(i), f64::from(i.wrapping_mul(2_654_435_761) >> 20)));
        let smooth = || (0..1000u32).map(|i| (f64::from(i), f64::from(i)));
        let panels = [
            Panel::new("").series(Series::line("a", smooth())).series(Series::line("b", noise)),
            Panel::new("").series(Series::line("a", smooth())).series(Series::line("b", smooth())),
        ];
        let all: Vec<_> = panels.iter().map(ranges).collect();
        let rough = rough_names(&panels, &all, 200.0);
        assert_eq!(rough, BTreeSet::from(["b"]));
        let of = |k: usize| looks(&panels[k], &[0, 1], all[k], 200.0, (&rough, false));
        for k in 0..2 {
            assert!(of(k)[1].dash == Some(&[]) && of(k)[1].beads == Some(Marker::Square), "panel {k}");
        }
    }

    #[test]
    fn a_short_line_has_a_bead_too() {
        let rect = Rect::new(0.0, 0.0, 500.0, 100.0);
        let run: Vec<Point> = (0..=20).map(|k| Point::new(100.0 + f64::from(k), 50.0)).collect();
        for slot in 0..8 {
            assert!(!bead_places(std::slice::from_ref(&run), slot, rect).is_empty(), "{slot}");
        }
        assert!(bead_places(&[], 1, rect).is_empty());
    }
}
