//! From values to places: axis ranges that follow from the data, and the projection onto a plot area.

use crate::figure::{Axis, Kind, Panel, Scale};
use crate::geometry::{Point, Rect};
use crate::ticks;

/// Values beyond this are not told apart, so that differences of two stay finite.
const LIMIT: f64 = 1e300;
/// Projected coordinates beyond this are as good as infinitely far away.
const FAR: f64 = 1e12;

/// The two ends of an axis; `lo < hi`, both finite, both positive on a logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    pub(crate) scale: Scale,
}

impl Range {
    /// Where a value lies between the ends: 0 at the low one, 1 at the high one; NaN if it has no place.
    pub(crate) fn share(self, value: f64) -> f64 {
        if !value.is_finite() {
            return f64::NAN;
        }
        match self.scale {
            // Halved first: the difference of two finite numbers may not be finite.
            Scale::Linear => (value / 2.0 - self.lo / 2.0) / (self.hi / 2.0 - self.lo / 2.0),
            Scale::Log10 if value > 0.0 => {
                (value.log10() - self.lo.log10()) / (self.hi.log10() - self.lo.log10())
            }
            Scale::Log10 => f64::NAN,
        }
    }

    pub(crate) fn contains(self, value: f64) -> bool {
        value >= self.lo && value <= self.hi
    }

    /// The least range that holds both.
    pub(crate) fn union(self, other: Range) -> Range {
        Range { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi), scale: self.scale }
    }
}

/// Least and greatest of the values seen; empty at first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    lo: f64,
    hi: f64,
    positive_only: bool,
}

impl Extent {
    pub(crate) fn new(scale: Scale) -> Self {
        Extent { lo: f64::INFINITY, hi: f64::NEG_INFINITY, positive_only: scale == Scale::Log10 }
    }

    pub(crate) fn see(&mut self, value: f64) {
        if value.is_finite() && !(self.positive_only && value <= 0.0) {
            self.lo = self.lo.min(value.clamp(-LIMIT, LIMIT));
            self.hi = self.hi.max(value.clamp(-LIMIT, LIMIT));
        }
    }

    fn ends(self) -> Option<(f64, f64)> {
        (self.lo <= self.hi).then_some((self.lo, self.hi))
    }
}

/// The x and y ranges of a panel.
pub(crate) fn ranges(panel: &Panel) -> (Range, Range) {
    let (mut xs, mut ys) = (Extent::new(panel.x.scale), Extent::new(panel.y.scale));
    for series in &panel.series {
        series.points.iter().filter(|p| p.1.is_finite()).for_each(|p| xs.see(p.0));
        series.points.iter().for_each(|p| ys.see(p.1));
        series.band.iter().for_each(|b| {
            xs.see(b.0);
            ys.see(b.1);
            ys.see(b.2);
        });
    }
    panel.lines.iter().filter(|line| !line.upright).for_each(|line| ys.see(line.at));
    let marked = panel.series.iter().any(|s| matches!(s.kind, Kind::Points | Kind::LinePoints));
    let x_room = if marked { 0.03 } else { 0.0 };
    (fit(&panel.x, xs, Room::Even(x_room)), fit(&panel.y, ys, Room::Nice))
}

/// How much room a range leaves about the data where the axis fixes no end.
#[derive(Clone, Copy)]
enum Room {
    /// This share of the span at both ends.
    Even(f64),
    /// Down to zero if zero is near, a little above the top, both rounded to a tick.
    Nice,
}

fn fit(axis: &Axis, extent: Extent, room: Room) -> Range {
    let usable = |v: &f64| v.is_finite() && (axis.scale == Scale::Linear || *v > 0.0);
    let (fixed_lo, fixed_hi) = (axis.lo.filter(usable), axis.hi.filter(usable));
    let (lo, hi) = spread(extent.ends(), axis.scale);
    let (auto_lo, auto_hi) = match axis.scale {
        Scale::Linear => linear_room(lo, hi, room),
        Scale::Log10 => log_room(lo, hi, room),
    };
    apart(fixed_lo.unwrap_or(auto_lo), fixed_hi.unwrap_or(auto_hi), axis.scale)
}

/// Ends that differ, whatever the data.
fn spread(ends: Option<(f64, f64)>, scale: Scale) -> (f64, f64) {
    match (ends, scale) {
        (None, Scale::Linear) => (0.0, 1.0),
        (None, Scale::Log10) => (1.0, 10.0),
        (Some((lo, hi)), Scale::Log10) if hi <= lo * 1.0001 => (lo / 2.0, hi * 2.0),
        (Some((lo, hi)), Scale::Linear) if (hi - lo).abs() <= hi.abs().max(lo.abs()) * 1e-9 => flat(hi),
        (Some(ends), _) => ends,
    }
}

/// A range about a single value.
fn flat(value: f64) -> (f64, f64) {
    match value {
        0.0 => (0.0, 1.0),
        v if v > 0.0 => (0.0, v * 1.2),
        v => (v * 1.2, 0.0),
    }
}

fn linear_room(lo: f64, hi: f64, room: Room) -> (f64, f64) {
    match room {
        Room::Even(0.0) => ticks::snap(lo, hi),
        Room::Even(share) => (lo - (hi - lo) * share, hi + (hi - lo) * share),
        Room::Nice => {
            let lo = if lo > 0.0 && lo < 0.5 * hi { 0.0 } else { lo };
            let hi = if hi < 0.0 && hi > 0.5 * lo { 0.0 } else { hi };
            let pad = (hi - lo) * 0.04;
            let ends = (if lo == 0.0 { lo } else { lo - pad }, if hi == 0.0 { hi } else { hi + pad });
            ticks::round_out(ends.0, ends.1)
        }
    }
}

fn log_room(lo: f64, hi: f64, room: Room) -> (f64, f64) {
    let share = if let Room::Even(share) = room { share } else { 0.04 };
    let factor = 10f64.powf((hi.log10() - lo.log10()) * share);
    ((lo / factor).max(f64::MIN_POSITIVE), (hi * factor).min(LIMIT))
}

/// Moves ends apart that fixed values brought together or crossed.
fn apart(lo: f64, hi: f64, scale: Scale) -> Range {
    let (lo, hi) = (lo.clamp(-LIMIT, LIMIT), hi.clamp(-LIMIT, LIMIT));
    let (lo, hi) = if lo <= hi { (lo, hi) } else { (hi, lo) };
    let close = hi - lo <= hi.abs().max(lo.abs()) * 1e-9;
    let (lo, hi) = match (close, scale) {
        (false, _) => (lo, hi),
        (true, Scale::Log10) => (lo / 2.0, hi * 2.0),
        (true, Scale::Linear) if lo == 0.0 => (0.0, 1.0),
        (true, Scale::Linear) => (lo - lo.abs() * 0.1, hi + hi.abs() * 0.1),
    };
    Range { lo, hi, scale }
}

/// From values to places in a plot area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Projection {
    pub(crate) rect: Rect,
    pub(crate) x: Range,
    pub(crate) y: Range,
}

impl Projection {
    pub(crate) fn x_of(&self, x: f64) -> f64 {
        (self.rect.x + self.x.share(x) * self.rect.w).clamp(-FAR, FAR)
    }

    pub(crate) fn y_of(&self, y: f64) -> f64 {
        (self.rect.bottom() - self.y.share(y) * self.rect.h).clamp(-FAR, FAR)
    }

    /// Where the shown part of a region along the x axis begins and ends; none where nothing of it is.
    pub(crate) fn columns_of(&self, from: f64, to: f64) -> Option<(f64, f64)> {
        let (from, to) = (from.max(self.x.lo), to.min(self.x.hi));
        (from <= to).then(|| (self.x_of(from), self.x_of(to)))
    }

    /// The place of a pair of values; not finite if either has none.
    pub(crate) fn place(&self, (x, y): (f64, f64)) -> Point {
        Point::new(self.x_of(x), self.y_of(y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Series;

    fn y_range(values: &[f64]) -> Range {
        let points = values.iter().enumerate().map(|(i, v)| (i as f64, *v));
        ranges(&Panel::new("").series(Series::line("", points))).1
    }

    #[test]
    fn zero_is_shown_when_near() {
        assert_eq!(y_range(&[1.0, 9.0]).lo, 0.0);
        assert!(y_range(&[100.0, 104.0]).lo > 90.0);
    }

    #[test]
    fn degenerate_data_give_a_usable_range() {
        let cases: [&[f64]; 8] = [
            &[],
            &[0.0],
            &[7.0, 7.0],
            &[-3.0],
            &[f64::NAN, f64::INFINITY],
            &[-1.7e308, 1.7e308],
            &[1e-300, 2e-300],
            &[1e16, 1e16 + 2.0],
        ];
        for values in cases {
            let range = y_range(values);
            assert!(
                range.lo.is_finite() && range.hi.is_finite() && range.lo < range.hi,
                "{values:?}: {range:?}"
            );
            values.iter().filter(|v| v.is_finite()).for_each(|v| assert!(range.share(*v).is_finite()));
        }
    }

    #[test]
    fn fixed_ends_win_and_bad_ones_are_ignored() {
        let panel = Panel::new("")
            .x(Axis::new("x").log10().range(-1.0, 1000.0))
            .y(Axis::new("y").range(5.0, f64::NAN))
            .series(Series::line("", [(1.0, 1.0), (10.0, 20.0)]));
        let (x, y) = ranges(&panel);
        assert_eq!((x.lo, x.hi), (1.0, 1000.0));
        assert!(y.lo == 5.0 && y.hi >= 20.0);
    }

    #[test]
    fn reference_lines_widen_the_y_range() {
        let panel = Panel::new("").series(Series::line("", [(0.0, 1.0)])).hline(100.0, "target");
        assert!(ranges(&panel).1.hi >= 100.0);
    }
}
