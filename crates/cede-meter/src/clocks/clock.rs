//! What can be told of strangers' clocks: the drift of one clock against another.
//!
//! Sources: the lower convex hull after Moon, Skelly, Towsley, "Estimation and removal of clock skew from network delay
//! measurements" (INFOCOM 1999).
//!
//! **What it leaves out.** Clocks that speed up or slow down on the way.
//!
//! **How it was validated.** Synthetic clocks (below), the recorded captures.

/// Fewer points tell neither rate nor drift.
pub(crate) const POINTS_MIN: usize = 20;
/// What it takes to believe in a drift, and the most that crystals do.
pub(crate) const DRIFT_SPAN_US_MIN: f64 = 60e6;
/// Of what is seen for less, but for so long, where it is known how well it is told.
pub(crate) const DRIFT_SPAN_US_SHORT: f64 = 15e6;
/// So much the drift that others tell, or a short flow, must make of a TCP flow: taking it out leaves open where ticks lie.
pub(crate) const DRIFT_US_MIN: f64 = 500.0;
const DRIFT_POINTS_MIN: usize = 20;
const DRIFT_PPM_MAX: f64 = 200.0;
/// Below this a drift makes no difference, and is within the error of its own measurement.
pub(crate) const DRIFT_PPM_MIN: f64 = 5.0;
/// Of more points, the lowest of each few are looked at.
const EDGE_POINTS_MAX: usize = 4096;
/// A quarter of a series with fewer points tells nothing of its edge; in a short one there must be so many.
const QUARTER_POINTS_MIN: usize = 10;
const QUARTER_POINTS_SHORT: usize = 3;
/// Half of the points must lie this near the hull, or the path was never empty.
const DRIFT_RESIDUAL_US_MAX: f64 = 3_000.0;

/// A point of a series: time and value in microseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    pub t: f64,
    pub x: f64,
}

impl Point {
    /// A value at a time in microseconds. Times are those of 64 bits of nanoseconds, so that their sign, which takes longer to
    /// leave out, is never set.
    #[inline]
    pub(crate) const fn at(time_us: u64, x: f64) -> Self {
        Self { t: time_us.cast_signed() as f64, x }
    }

    /// Its time.
    #[inline]
    pub(crate) const fn time_us(&self) -> u64 {
        (self.t as i64).cast_unsigned()
    }
}

/// By time.
pub(crate) fn put_in_order(points: &mut [Point]) {
    if !points.is_sorted_by(|a, b| a.t <= b.t) {
        points.sort_by(|a, b| a.t.total_cmp(&b.t));
    }
}

/// Whether a series is long enough to tell a drift.
pub(crate) fn is_long_enough(points: &[Point]) -> bool {
    points.len() >= DRIFT_POINTS_MIN && span_s(points) * 1e6 >= DRIFT_SPAN_US_MIN
}

/// Whether it may tell one all the same, where it is not; or what is said of it is not, which begins later.
pub(crate) fn is_short(points: &[Point]) -> bool {
    let span_us = span_s(points) * 1e6;
    points.len() >= DRIFT_POINTS_MIN && (DRIFT_SPAN_US_SHORT..1.5 * DRIFT_SPAN_US_MIN).contains(&span_us)
}

/// The slope in parts per million of the lower edge of a series; `None` where it cannot be told.
pub(crate) fn drift_ppm(points: &[Point]) -> Option<f64> {
    let group = points.len() / EDGE_POINTS_MAX + 1;
    if group > 1 {
        // An edge is made of the lowest.
        let lowest = |group: &[Point]| group.iter().copied().min_by(|a, b| a.x.total_cmp(&b.x));
        return drift_ppm(&points.chunks(group).filter_map(lowest).collect::<Vec<_>>());
    }
    let (ppm, mut residuals) = lower_edge(points).filter(|_| is_long_enough(points))?;
    let half = residuals.len() / 2;
    let (_, median, _) = residuals.select_nth_unstable_by(half, f64::total_cmp);
    (*median <= DRIFT_RESIDUAL_US_MAX).then_some(ppm)
}

/// The slope of an edge that is beyond what a few points near it leave open. So far alone is an edge believed of a direction that is not
/// the queued one, whose packets answer after times that vary (a heartbeat carries an echo that is up to its period old): echoes whose age
/// follows the queue's length from heartbeat to heartbeat, by a millisecond or two in a minute, are as near to each other as those
/// of an empty path.
pub(crate) fn sharp_drift_ppm(points: &[Point], tick_us: f64) -> Option<f64> {
    edge_beyond(points, tick_us, 0.0)
}

/// As [`sharp_drift_ppm`]; also where the edge is so sharp that there can be none that is worth taking out. Whether two clocks run alike
/// tells as much of a third as how they differ.
pub(crate) fn known_drift_ppm(points: &[Point], tick_us: f64) -> Option<f64> {
    edge_beyond(points, tick_us, DRIFT_PPM_MIN)
}

/// The slope of an edge; what is left open must be less than half of that, or of so much.
fn edge_beyond(points: &[Point], tick_us: f64, least_ppm: f64) -> Option<f64> {
    let (ppm, mut residuals) = lower_edge(points).filter(|_| is_long_enough(points))?;
    let span_us = points.last()?.t - points.first()?.t;
    let beyond_ppm = ppm.abs().max(least_ppm);
    let near_us = beyond_ppm / 1e6 * span_us / 8.0;
    if !is_near_throughout(points, &residuals, near_us) {
        return None;
    }
    (beyond_ppm >= 2.0 * open_ppm(&mut residuals, tick_us, span_us)).then_some(ppm)
}

/// An edge's slope, and how far the points near it leave that open, in parts per million: it is rarely off by twice as much.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Edge {
    pub ppm: f64,
    pub open_ppm: f64,
}

impl Edge {
    pub(crate) const fn negative(self) -> Self {
        Self { ppm: -self.ppm, ..self }
    }

    /// Both together.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self { ppm: self.ppm + other.ppm, open_ppm: self.open_ppm + other.open_ppm }
    }
}

/// The lower edge of a series of less than a minute, where it has one throughout.
pub(crate) fn short_edge(points: &[Point], tick_us: f64) -> Option<Edge> {
    let span_us = span_s(points) * 1e6;
    if points.len() < DRIFT_POINTS_MIN || span_us < DRIFT_SPAN_US_SHORT {
        return None;
    }
    let (ppm, mut residuals) = lower_edge(points)?;
    let quarters = quarters(points, &residuals);
    // It is that of all the time.
    let least_us = quarters.iter().map(|quarter| quarter.1).fold(0.0, f64::max);
    let open_ppm = open_ppm(&mut residuals, tick_us, span_us) + least_us / (span_us / 2.0) * 1e6;
    quarters.iter().all(|quarter| quarter.0 >= QUARTER_POINTS_SHORT).then_some(Edge { ppm, open_ppm })
}

/// How far a slope may be from that of the points near it.
fn open_ppm(residuals: &mut [f64], tick_us: f64, span_us: f64) -> f64 {
    let half = residuals.len() / 2;
    let (early, late) = residuals.split_at_mut(half);
    let open_us: f64 = [early, late].map(|half| open_us(half, tick_us)).iter().sum();
    open_us / (span_us / 2.0) * 1e6
}

/// Whether an edge is that of each quarter of a series in which anything is told: two moments in which ages happen to stay the same are near
/// to some edge, too, however many points they have.
fn is_near_throughout(points: &[Point], residuals: &[f64], near_us: f64) -> bool {
    quarters(points, residuals).iter().all(|&(count, least)| count < QUARTER_POINTS_MIN || least <= near_us)
}

/// How many points each quarter of a series has, and how near the nearest of them is to its edge.
fn quarters(points: &[Point], residuals: &[f64]) -> [(usize, f64); 4] {
    let mut quarters = [(0, f64::INFINITY); 4];
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return quarters };
    let quarter_us = (last.t - first.t) / 4.0;
    for (point, residual) in points.iter().zip(residuals) {
        let quarter = &mut quarters[(((point.t - first.t) / quarter_us) as usize).min(3)];
        *quarter = (quarter.0 + 1, quarter.1.min(*residual));
    }
    quarters
}

/// How far from the points nearest to it an edge may be: as far as the third of them, and as the least of so many that lie anywhere
/// within a tick is from its end.
fn open_us(residuals: &mut [f64], tick_us: f64) -> f64 {
    let near = residuals.iter().filter(|&&residual| residual <= tick_us).count();
    *residuals.select_nth_unstable_by(2, f64::total_cmp).1 + tick_us / (near as f64 + 1.0)
}

/// The slope of the lower edge in parts per million, and how far each point is above it.
fn lower_edge(points: &[Point]) -> Option<(f64, Vec<f64>)> {
    let hull = lower_hull(points);
    let middle = points.iter().map(|point| point.t).sum::<f64>() / points.len() as f64;
    let edge = hull.windows(2).find(|edge| edge[0].t <= middle && middle <= edge[1].t)?;
    let slope = (edge[1].x - edge[0].x) / (edge[1].t - edge[0].t);
    let residuals = points.iter().map(|p| p.x - edge[0].x - slope * (p.t - edge[0].t)).collect();
    ((slope * 1e6).abs() <= DRIFT_PPM_MAX).then_some((slope * 1e6, residuals))
}

/// The lower convex hull of points in the order of time (Andrew's monotone chain).
fn lower_hull(points: &[Point]) -> Vec<Point> {
    let mut hull: Vec<Point> = Vec::new();
    for &point in points {
        while let [.., a, b] = hull[..]
            && (b.x - a.x) * (point.t - a.t) >= (point.x - a.x) * (b.t - a.t)
        {
            hull.pop();
        }
        // Of points at one time the lowest counts.
        if hull.last().is_some_and(|last| last.t >= point.t) {
            if hull.last().is_some_and(|last| last.x <= point.x) {
                continue;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// How long readings go on, in seconds.
pub(crate) fn span_s(points: &[Point]) -> f64 {
    points.first().zip(points.last()).map_or(0.0, |(first, last)| (last.t - first.t) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    #[test]
    fn drift_is_that_of_the_lower_edge() {
        let mut stream = Stream::named(3, "drift");
        for ppm in [-100.0, -3.0, 0.0, 20.0, 100.0] {
            let mut point = |k: u32| {
                let t = f64::from(k) * 50_000.0;
                Point { t, x: 1e9 + ppm * t / 1e6 + stream.exponential(500.0) }
            };
            let points: Vec<Point> = (0..3000).map(&mut point).collect();
            let found = drift_ppm(&points).unwrap();
            assert!((found - ppm).abs() < 1.0, "{ppm}: {found}");
            assert_eq!(drift_ppm(&points[..500]), None, "too short");
        }
    }

    #[test]
    fn of_half_a_minute_a_drift_is_told_with_how_well_it_is() {
        let mut stream = Stream::named(6, "short");
        for ppm in [-100.0, -3.0, 0.0, 20.0, 100.0] {
            for (spread_us, open_ppm_max) in [(20.0, 0.5), (500.0, 6.0), (20_000.0, f64::INFINITY)] {
                let mut point = |k: u32| {
                    let t = f64::from(k) * 50_000.0;
                    Point { t, x: 1e9 + ppm * t / 1e6 + stream.exponential(spread_us) }
                };
                let points: Vec<Point> = (0..600).map(&mut point).collect();
                let told = short_edge(&points, 0.0);
                assert!(
                    told.is_none_or(|edge| (edge.ppm - ppm).abs() <= 2.0 * edge.open_ppm),
                    "{ppm} {told:?}"
                );
                assert!(
                    told.is_some_and(|edge| edge.open_ppm <= open_ppm_max) || spread_us > 500.0,
                    "{told:?}"
                );
                assert_eq!(short_edge(&points[..300], 0.0), None, "too short");
            }
        }
        // Nothing of the half in the middle.
        let gap = |k: u32| f64::from(if k < 200 { k } else { k + 400 }) * 50_000.0;
        let points: Vec<Point> = (0..400).map(|k| Point { t: gap(k), x: 7.0 }).collect();
        assert_eq!(short_edge(&points, 0.0), None);
    }

    #[test]
    fn answers_of_any_age_tell_a_drift_that_is_beyond_their_edge() {
        let mut stream = Stream::named(4, "answers");
        // The least of five ages below 200 ms, once a second.
        let mut age = || (0..5).map(|_| stream.unit() * 200_000.0).fold(f64::INFINITY, f64::min);
        let mut found = |ppm: f64| {
            let mut point = |k: u32| Point { t: f64::from(k) * 1e6, x: ppm * f64::from(k) + age() };
            let points: Vec<Point> = (0..330).map(&mut point).collect();
            assert_eq!(drift_ppm(&points), None);
            sharp_drift_ppm(&points, 1_000.0)
        };
        let drift = found(60.0).unwrap();
        assert!((drift - 60.0).abs() < 10.0, "{drift}");
        assert_eq!((found(0.0), found(5.0)), (None, None));
    }

    /// Where the queue stays as long for three seconds, so does the age of what is echoed: twice in a minute.
    #[test]
    fn two_moments_of_equal_ages_tell_no_drift() {
        let age = |k: u32| match k {
            100..130 => 5_000.0 + f64::from(k % 3) * 10.0,
            560..590 => 1_000.0 + f64::from(k % 3) * 10.0,
            _ => 20_000.0 + 60_000.0 * (f64::from(k) / 7.0).sin().abs(),
        };
        let points: Vec<Point> = (0..700).map(|k| Point { t: f64::from(k) * 1e5, x: age(k) }).collect();
        let (ppm, _) = lower_edge(&points).unwrap();
        assert!((ppm + 87.0).abs() < 2.0, "{ppm}");
        assert_eq!(sharp_drift_ppm(&points, 1_000.0), None);
    }

    #[test]
    fn a_path_that_is_never_empty_tells_no_drift() {
        let wave =
            |k: u32| Point { t: f64::from(k) * 50_000.0, x: 20_000.0 * (1.0 + (f64::from(k) / 40.0).sin()) };
        let points: Vec<Point> = (0..3000).map(wave).collect();
        assert_eq!((drift_ppm(&points), sharp_drift_ppm(&points, 0.0)), (None, None));
    }
}
