//! Thinning of long lines to what can be seen, and clipping to the plot area.
//!
//! Source of the thinning: U. Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation"
//! (VLDB 2014): of all points in one column of pixels, the first, the lowest, the highest and the last draw
//! the same picture as all of them. A line whose x values fall back is left as it is.

use crate::geometry::{Point, Rect};

/// Width of a column in figure units: two to a unit, so that nothing is lost at two pixels a unit.
const COLUMN: f64 = 0.5;

/// Cuts a sequence into runs at points that are not finite, and thins each run.
pub(crate) fn runs(points: impl Iterator<Item = Point>) -> Vec<Vec<Point>> {
    let mut thinner = Thinner::default();
    for point in points {
        if point.is_finite() { thinner.push(point) } else { thinner.end_run() }
    }
    thinner.end_run();
    thinner.done
}

/// One column's points that matter, each with its rank in the sequence.
#[derive(Clone, Copy)]
struct Column {
    index: i64,
    count: usize,
    first: Point,
    lowest: (usize, Point),
    highest: (usize, Point),
    last: Point,
}

impl Column {
    fn new(index: i64, p: Point) -> Self {
        Column { index, count: 1, first: p, lowest: (0, p), highest: (0, p), last: p }
    }

    fn see(&mut self, p: Point) {
        if p.y < self.lowest.1.y {
            self.lowest = (self.count, p);
        }
        if p.y > self.highest.1.y {
            self.highest = (self.count, p);
        }
        self.last = p;
        self.count += 1;
    }

    fn emit(&self, out: &mut Vec<Point>) {
        let last = self.count - 1;
        let (a, b) = (self.lowest, self.highest);
        let (early, late) = if a.0 <= b.0 { (a, b) } else { (b, a) };
        out.push(self.first);
        if early.0 > 0 && early.0 < last {
            out.push(early.1);
        }
        if late.0 > early.0 && late.0 < last {
            out.push(late.1);
        }
        if last > 0 {
            out.push(self.last);
        }
    }
}

#[derive(Default)]
struct Thinner {
    done: Vec<Vec<Point>>,
    run: Vec<Point>,
    column: Option<Column>,
}

impl Thinner {
    fn push(&mut self, p: Point) {
        let index = (p.x / COLUMN).floor() as i64;
        match &mut self.column {
            Some(column) if column.index == index && p.x >= column.last.x => column.see(p),
            open => {
                if let Some(column) = open.take() {
                    column.emit(&mut self.run);
                }
                *open = Some(Column::new(index, p));
            }
        }
    }

    fn end_run(&mut self) {
        if let Some(column) = self.column.take() {
            column.emit(&mut self.run);
            self.done.push(std::mem::take(&mut self.run));
        }
    }
}

/// The parts of a polyline inside a rectangle. A run of one point stays one if it is inside.
pub(crate) fn clip_run(run: &[Point], rect: Rect) -> Vec<Vec<Point>> {
    if let [only] = run {
        return if rect.contains(*only) { vec![vec![*only]] } else { Vec::new() };
    }
    let mut parts: Vec<Vec<Point>> = Vec::new();
    for pair in run.windows(2) {
        let Some((a, b)) = clip_segment(pair[0], pair[1], rect) else { continue };
        match parts.last_mut() {
            Some(part) if part.last() == Some(&a) => part.push(b),
            _ => parts.push(vec![a, b]),
        }
    }
    parts
}

/// Liang-Barsky: the part of a segment inside a rectangle.
fn clip_segment(a: Point, b: Point, rect: Rect) -> Option<(Point, Point)> {
    if rect.contains(a) && rect.contains(b) {
        return Some((a, b));
    }
    let (dx, dy) = (b.x - a.x, b.y - a.y);
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    let sides =
        [(-dx, a.x - rect.x), (dx, rect.right() - a.x), (-dy, a.y - rect.y), (dy, rect.bottom() - a.y)];
    for (toward, room) in sides {
        if toward == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if toward < 0.0 {
            enter = enter.max(room / toward);
        } else {
            leave = leave.min(room / toward);
        }
    }
    let at = |t: f64| if t == 1.0 { b } else { Point::new(a.x + t * dx, a.y + t * dy) };
    (enter <= leave).then(|| (at(enter), at(leave)))
}

/// Sutherland-Hodgman: the part of a polygon inside a rectangle.
pub(crate) fn clip_ring(ring: Vec<Point>, rect: Rect) -> Vec<Point> {
    type Inside = fn(Point, Rect) -> f64;
    let sides: [Inside; 4] =
        [|p, r| p.x - r.x, |p, r| r.right() - p.x, |p, r| p.y - r.y, |p, r| r.bottom() - p.y];
    sides.into_iter().fold(ring, |ring, depth| clip_side(&ring, |p| depth(p, rect)))
}

/// Keeps the part of a polygon where `depth` is not negative.
fn clip_side(ring: &[Point], depth: impl Fn(Point) -> f64) -> Vec<Point> {
    let mut out = Vec::with_capacity(ring.len() + 2);
    let Some(&last) = ring.last() else { return out };
    let mut from = last;
    for &to in ring {
        let (d_from, d_to) = (depth(from), depth(to));
        if (d_from < 0.0) != (d_to < 0.0) {
            let t = d_from / (d_from - d_to);
            out.push(Point::new(from.x + t * (to.x - from.x), from.y + t * (to.y - from.y)));
        }
        if d_to >= 0.0 {
            out.push(to);
        }
        from = to;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Rect = Rect::new(0.0, 0.0, 10.0, 10.0);

    fn wave(count: usize) -> Vec<Point> {
        let at = |i: usize| Point::new(i as f64 * 100.0 / count as f64, (i as f64 * 0.7).sin() * 50.0);
        (0..count).map(at).collect()
    }

    #[test]
    fn every_column_keeps_its_least_and_greatest() {
        let mut points = wave(20_000);
        points[7_777].y = 999.0;
        points[12_345].y = -999.0;
        let thin = runs(points.iter().copied()).concat();
        assert!(thin.len() <= 4 * 200, "{}", thin.len());
        for column in 0..200i64 {
            let inside = |p: &&Point| (p.x / COLUMN).floor() as i64 == column;
            let ends = |ps: &[Point]| {
                let ys = ps.iter().filter(inside).map(|p| p.y);
                ys.fold((f64::MAX, f64::MIN), |(lo, hi), y| (lo.min(y), hi.max(y)))
            };
            assert_eq!(ends(&points), ends(&thin), "column {column}");
        }
        assert_eq!((thin.first(), thin.last()), (points.first(), points.last()));
        assert!(thin.windows(2).all(|p| p[0].x <= p[1].x));
    }

    #[test]
    fn sparse_lines_stay_as_they_are() {
        let points = wave(50);
        assert_eq!(runs(points.iter().copied()), [points]);
    }

    #[test]
    fn a_line_that_turns_back_keeps_its_turns() {
        let there_and_back: Vec<Point> =
            [0.0, 10.0, 20.0, 10.0, 0.0].iter().map(|&x| Point::new(x, x * x)).collect();
        assert_eq!(runs(there_and_back.iter().copied()), [there_and_back]);
    }

    #[test]
    fn a_value_that_is_not_finite_breaks_the_line() {
        let mut points = wave(10);
        points[4].y = f64::NAN;
        points[5].y = f64::INFINITY;
        let parts = runs(points.into_iter());
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4]);
        assert!(runs(std::iter::empty()).is_empty());
    }

    #[test]
    fn lines_are_cut_at_the_border() {
        let run: Vec<Point> = [(-5.0, 5.0), (5.0, 5.0), (5.0, 25.0), (8.0, 25.0), (8.0, 5.0)]
            .map(|(x, y)| Point::new(x, y))
            .to_vec();
        let parts = clip_run(&run, UNIT);
        let expected = [[(0.0, 5.0), (5.0, 5.0), (5.0, 10.0)].as_slice(), &[(8.0, 10.0), (8.0, 5.0)]];
        let expected: Vec<Vec<Point>> =
            expected.iter().map(|part| part.iter().map(|&(x, y)| Point::new(x, y)).collect()).collect();
        assert_eq!(parts, expected);
    }

    #[test]
    fn polygons_are_cut_at_the_border() {
        let ring =
            [(-5.0, -5.0), (5.0, -5.0), (5.0, 5.0), (-5.0, 5.0)].map(|(x, y)| Point::new(x, y)).to_vec();
        let cut = clip_ring(ring, UNIT);
        assert!(cut.iter().all(|p| UNIT.contains(*p)));
        for corner in [(0.0, 0.0), (5.0, 0.0), (5.0, 5.0), (0.0, 5.0)] {
            assert!(cut.contains(&Point::new(corner.0, corner.1)), "{corner:?} in {cut:?}");
        }
        let far = [(20.0, 20.0), (30.0, 20.0), (30.0, 30.0)].map(|(x, y)| Point::new(x, y)).to_vec();
        assert!(clip_ring(far, UNIT).is_empty());
    }
}
