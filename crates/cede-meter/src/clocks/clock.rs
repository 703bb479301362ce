//! What can be told of strangers' clocks: the rate of TCP's timestamp clock, and the drift of one clock against another.
//!
//! Sources: RFC 7323 section 5.4 (a tick of 1 ms to 1 s; current systems also have 1 us); the lower convex hull for
//! the drift after Moon, Skelly, Towsley, "Estimation and removal of clock skew from network delay measurements"
//! (INFOCOM 1999).
//!
//! **What it leaves out.** Clocks that speed up or slow down on the way; a fingerprint by TTL, which names systems of
//! long ago.
//!
//! **How it was validated.** Synthetic clocks with growing queues (below), the recorded captures.

/// Rates that systems have, in ticks per second: 10 (Windows long ago), 100, 200, 250 and 300 (kernels' own ticks), 500,
/// 1000 (nearly everything today), 10 and 100 kHz, 1 MHz (Linux with the route's feature).
const RATES_HZ: [f64; 10] = [10.0, 100.0, 200.0, 250.0, 300.0, 500.0, 1e3, 1e4, 1e5, 1e6];
/// Rates that few have, too near to one of those for anything but minutes to tell: 1,024 (Linux on Alpha and IA-64).
const RATES_RARE_HZ: [f64; 1] = [1_024.0];
/// In the long run no clock of a rate is off by more, in parts: crystals are by a fiftieth of that.
const RATE_MISFIT_LONG: f64 = 0.01;
/// What is assumed where a flow is too short to tell.
pub(crate) const RATE_ASSUMED_HZ: f64 = 1e3;
/// What it takes to tell a rate.
const RATE_SAMPLES_MIN: usize = 20;
/// Fewer tell neither rate nor drift.
pub(crate) const POINTS_MIN: usize = RATE_SAMPLES_MIN;
const RATE_SPAN_US_MIN: f64 = 1e6;
/// A longer silence tells no more than one that lasts this long.
const RATE_SILENCE_US_MAX: f64 = 10e6;
/// Pieces that a flow is cut into, if they are no shorter than that.
const RATE_PIECES: f64 = 32.0;
/// A rate this near is meant. Packets come the later the longer a queue grows, so that a clock looks slower: in slow start a queue
/// grows by a second each second, and a clock seems to run at half its rate. One that shrinks does not do so for long.
const RATE_MISFIT_EXACT: f64 = 0.05;
const RATE_MISFIT_GROWING: f64 = 0.45;
const RATE_MISFIT_SHRINKING: f64 = 0.25;
/// A clock of up to so many times the rate may look like this one.
const RATE_SLOWED_MAX: f64 = 2.2;
/// A rate told by echoes is one that systems have if it is this near.
const RATE_MISFIT_TOLD: f64 = 0.25;
/// And one that fits by itself stays, unless they say quite another.
const RATE_MISFIT_TOLD_EXACT: f64 = 0.4;

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

/// How many ticks a second a clock has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Rate {
    /// One of those that systems have.
    Snapped(f64),
    /// Too short to tell.
    Unknown,
    /// Too short to tell; other flows of the address have this one.
    Lent(f64),
    /// It runs at this rate, which nobody's clock has; or it does not run.
    Odd(f64),
}

impl Rate {
    /// Ticks per second that it stands for, where it can be used.
    pub(crate) const fn hz(self) -> Option<f64> {
        match self {
            Self::Snapped(hz) | Self::Lent(hz) => Some(hz),
            Self::Unknown => Some(RATE_ASSUMED_HZ),
            Self::Odd(_) => None,
        }
    }

    /// What others have, where it is too short to tell.
    pub(crate) fn or_lent(self, hz: impl FnOnce() -> Option<f64>) -> Self {
        if self == Self::Unknown { hz().map_or(self, Self::Lent) } else { self }
    }
}

/// The rate of a clock from readings (`x` in ticks) over time. A growing queue makes it look slower, as times are those of
/// arrivals; it grows by no more than `growth_us_max` in all. Where that leaves it open which rate it is, `told` is asked for the
/// rate that echoes tell.
pub(crate) fn rate(readings: &[Point], growth_us_max: f64, told: impl FnOnce() -> Option<f64>) -> Rate {
    let span_us = span_us(readings);
    if readings.len() < RATE_SAMPLES_MIN || span_us < RATE_SPAN_US_MIN {
        return Rate::Unknown;
    }
    let raw_hz = median_slope(readings, (span_us / RATE_PIECES).max(RATE_SPAN_US_MIN)) * 1e6;
    if raw_hz <= 0.0 {
        return Rate::Odd(raw_hz);
    }
    match likely_rate(raw_hz, span_us, growth_us_max, told) {
        Rate::Snapped(hz) => rate_after_all(readings, hz, raw_hz, growth_us_max),
        rate => rate,
    }
}

/// The rate that systems have and that looks like this one, of so long.
fn likely_rate(raw_hz: f64, span_us: f64, growth_us_max: f64, told: impl FnOnce() -> Option<f64>) -> Rate {
    let rates = || RATES_HZ.iter().copied();
    let is_it = |hz: &f64| misfit(*hz, raw_hz) <= RATE_MISFIT_EXACT;
    let is_other = |hz: &f64| *hz > raw_hz && *hz <= raw_hz * RATE_SLOWED_MAX && !is_it(hz);
    let exact = rates().find(is_it);
    if (exact.is_none() || rates().any(|hz| is_other(&hz)))
        && let Some(hz) = told().and_then(|told_hz| confirmed(exact, told_hz))
    {
        return Rate::Snapped(hz);
    }
    // A queue that grows all the time is more usual than one that shrinks all the time.
    let is_slowed = |hz: &f64| {
        let growth = 1.0 - raw_hz / hz;
        growth > 0.0 && growth <= RATE_MISFIT_GROWING && growth * span_us <= growth_us_max
    };
    let is_hurried = |hz: &f64| raw_hz > *hz && raw_hz <= *hz * (1.0 + RATE_MISFIT_SHRINKING);
    let found = exact.or_else(|| rates().find(is_slowed)).or_else(|| rates().rev().find(is_hurried));
    let growth = 1.0 - raw_hz / RATE_ASSUMED_HZ;
    // Nearly everything has the usual rate: no other is told by what that one looks like in slow start.
    if (0.0..=1.0 - 1.0 / RATE_SLOWED_MAX).contains(&growth)
        && growth * span_us <= growth_us_max
        && found != Some(RATE_ASSUMED_HZ)
    {
        return Rate::Unknown;
    }
    found.map_or(Rate::Odd(raw_hz), Rate::Snapped)
}

/// The rate of a clock that looked like one of `hz`: another one where each third of the time tells the same other, and so does the middle
/// of all pieces, and no queue makes it so: none grows so much in each third, or shrinks so much altogether. A clock that was set is
/// in one of them alone.
fn rate_after_all(readings: &[Point], hz: f64, raw_hz: f64, growth_us_max: f64) -> Rate {
    let rates_hz = readings.chunks(readings.len().div_ceil(3)).filter_map(|third| {
        let (first, last) = (third.first()?, third.last()?);
        let (ticks, us) = (last.x - first.x, last.t - first.t);
        let ahead_us = ticks / hz * 1e6 - us;
        let by_queue_us = if ahead_us > 0.0 { growth_us_max / 3.0 } else { growth_us_max };
        (ahead_us.abs() > by_queue_us.max(RATE_MISFIT_LONG * us)).then_some(ticks / us * 1e6)
    });
    let rates_hz: Vec<f64> = rates_hz.collect();
    let long_hz = rates_hz.iter().sum::<f64>() / 3.0;
    let is_long_rate = |hz: &f64| misfit(long_hz, *hz) <= RATE_MISFIT_LONG;
    if rates_hz.len() < 3 || !rates_hz.iter().chain([&raw_hz]).all(is_long_rate) {
        return Rate::Snapped(hz);
    }
    let known_hz = RATES_HZ.into_iter().chain(RATES_RARE_HZ).find(is_long_rate);
    known_hz.map_or(Rate::Odd(long_hz), Rate::Snapped)
}

/// The rate that echoes tell, where it is one that systems have or near the one that fits by itself.
fn confirmed(exact: Option<f64>, told_hz: f64) -> Option<f64> {
    let nearest = || RATES_HZ.into_iter().min_by(|a, b| misfit(*a, told_hz).total_cmp(&misfit(*b, told_hz)));
    let told = || nearest().filter(|hz| misfit(*hz, told_hz) <= RATE_MISFIT_TOLD);
    exact.filter(|hz| misfit(*hz, told_hz) <= RATE_MISFIT_TOLD_EXACT).or_else(told)
}

/// How long readings last, long silences counted as short ones: what follows one may have come later by a clock that was set.
fn span_us(readings: &[Point]) -> f64 {
    let gap = |pair: &[Point]| (pair[1].t - pair[0].t).clamp(0.0, RATE_SILENCE_US_MAX);
    readings.windows(2).map(gap).sum()
}

/// How far a rate is off, in parts.
fn misfit(hz: f64, measured_hz: f64) -> f64 {
    (measured_hz / hz - 1.0).abs()
}

/// The rate at which a sender's clock runs, from that of the receiver: from `differences`, its readings less those of the
/// receiver's that they echo, and its own `readings`, both in ticks. Both clocks were read at one moment, so that what packets met
/// afterwards slows both alike.
pub(crate) fn rate_by_echoes(differences: &[Point], readings: &[Point], receiver_hz: f64) -> Option<f64> {
    let (first, last) = (differences.first()?.t, differences.last()?.t);
    let third = (last - first) / 3.0;
    // What is echoed after a silence is old, which makes a difference too large, never too small.
    let least = |from: f64, to: f64| {
        let within = differences.iter().filter(|point| point.t >= from && point.t <= to);
        within.min_by(|a, b| a.x.total_cmp(&b.x))
    };
    let (early, late) = (least(first, first + third)?, least(last - third, last)?);
    let at = |t: f64| readings.get(readings.partition_point(|point| point.t < t));
    let (own, other) = (at(late.t)?.x - at(early.t)?.x, late.x - early.x);
    let is_long = late.t - early.t >= RATE_SPAN_US_MIN;
    (is_long && own > 0.0 && own > other).then(|| receiver_hz * own / (own - other))
}

/// The middle of the slopes of pieces at least this long: a clock that was set, or a queue that grew, is in few of them.
fn median_slope(readings: &[Point], piece_us: f64) -> f64 {
    let mut slopes = Vec::new();
    let mut from = readings[0];
    for point in readings {
        if point.t < from.t {
            // The clock was set back.
            from = *point;
        } else if point.t - from.t >= piece_us {
            slopes.push((point.x - from.x) / (point.t - from.t));
            from = *point;
        }
    }
    let middle = slopes.len() / 2;
    // The whole is at least as long as a piece, but where the clock was set back within it.
    if slopes.is_empty() { 0.0 } else { *slopes.select_nth_unstable_by(middle, f64::total_cmp).1 }
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

    fn of(readings: &[Point]) -> Rate {
        rate(readings, 1e7, || None)
    }

    #[test]
    fn rates_are_told_under_queues_that_grow_and_shrink() {
        for hz in RATES_HZ {
            for queue_us in [0.0, 200_000.0, -200_000.0] {
                let point = |k: u32| {
                    let sent = f64::from(k) * 40_000.0;
                    Point { t: sent + queue_us * f64::from(k) / 1000.0, x: (sent * hz / 1e6).floor() }
                };
                let readings: Vec<Point> = (0..1000).map(point).collect();
                assert_eq!(of(&readings), Rate::Snapped(hz), "{queue_us}");
                assert_eq!(of(&readings[..15]), Rate::Unknown);
            }
        }
        // Five seconds at half the usual rate may be slow start.
        let halved: Vec<Point> =
            (0..500).map(|k| Point { t: f64::from(k) * 1e4, x: f64::from(k * 5) }).collect();
        assert_eq!((of(&halved), rate(&halved, 2e6, || None)), (Rate::Unknown, Rate::Snapped(500.0)));
        // A buffer that fills for the whole of a short capture.
        for (growth, hz) in [(0.3, 1e3), (0.4, 1e3), (0.3, 100.0)] {
            let point = |k: u32| {
                let sent = f64::from(k) * 10_000.0;
                Point { t: sent * (1.0 + growth / (1.0 - growth)), x: (sent * hz / 1e6).floor() }
            };
            let readings: Vec<Point> = (0..1000).map(point).collect();
            assert_eq!(of(&readings), Rate::Snapped(hz), "{growth}");
        }
        let stopped: Vec<Point> = (0..100).map(|k| Point { t: f64::from(k) * 1e5, x: 7.0 }).collect();
        assert_eq!(of(&stopped), Rate::Odd(0.0));
    }

    /// Slow start fills the buffer by a second each second, and more behind it.
    #[test]
    fn a_clock_at_half_its_rate_is_told_by_echoes() {
        for (hz, receiver_hz, slowness) in
            [(1e3, 1e3, 2.0), (1e3, 250.0, 2.0), (250.0, 1e3, 2.0), (250.0, 250.0, 1.6), (500.0, 1e3, 1.0)]
        {
            let t = |k: u32| f64::from(k) * 10_000.0 * slowness;
            let ticks = |k: u32, hz: f64| (f64::from(k) * 10_000.0 * hz / 1e6).floor();
            let readings: Vec<Point> = (0..1000).map(|k| Point { t: t(k), x: ticks(k, hz) }).collect();
            // Once a second, of an acknowledgement that came up to 50 ms before.
            let difference = |k: u32| ticks(k, hz) - ticks(k.saturating_sub(k % 5), receiver_hz);
            let differences: Vec<Point> =
                (0..1000).step_by(93).map(|k| Point { t: t(k), x: difference(k) }).collect();
            let told = rate_by_echoes(&differences, &readings, receiver_hz).unwrap();
            assert!((told / hz - 1.0).abs() < 0.02, "{told}");
            assert_eq!(rate(&readings, 1e7, || Some(told)), Rate::Snapped(hz));
            assert_eq!(rate_by_echoes(&differences[..1], &readings, receiver_hz), None);
        }
    }

    #[test]
    fn a_clock_that_nobody_has_is_odd_where_no_queue_explains_it() {
        for hz in [60.0, 64.0, 128.0, 400.0, 700.0] {
            let point = |k: u32| Point { t: f64::from(k) * 1e5, x: (f64::from(k) * hz / 10.0).floor() };
            let readings: Vec<Point> = (0..600).map(point).collect();
            assert!(matches!(of(&readings), Rate::Odd(found) if (found / hz - 1.0).abs() < 0.02), "{hz}");
            // For a second or two it may be.
            assert!(matches!(of(&readings[..21]), Rate::Snapped(_)), "{hz}");
        }
    }

    /// Kernels of 1,024 ticks a second, in a queue that grows and drains: half a minute does not tell them from the usual ones.
    #[test]
    fn minutes_tell_a_rate_from_one_that_is_near() {
        let after = |hz: f64, seconds: u32, growth_us_max: f64| {
            let queue_us = |k: u32| f64::from(k % 70) * 3_000.0;
            let point = |k: u32| {
                let sent = f64::from(k) * 1e5;
                Point { t: sent + queue_us(k), x: (sent * hz / 1e6).floor() }
            };
            rate(&(0..seconds * 10).map(point).collect::<Vec<_>>(), growth_us_max, || None)
        };
        assert_eq!(after(1_024.0, 30, 1.2e6), Rate::Snapped(1e3));
        assert_eq!(after(1_024.0, 240, 1.2e6), Rate::Snapped(1_024.0));
        assert_eq!(after(1_024.0, 240, 1e7), Rate::Snapped(1e3), "nothing is known of its queue");
        assert_eq!(after(1_024.0, 600, 1e7), Rate::Snapped(1_024.0));
        assert!(matches!(after(1_040.0, 240, 1.2e6), Rate::Odd(hz) if (hz - 1_040.0).abs() < 3.0));
        for hz in [999.0, 1e3, 1_002.0] {
            assert_eq!(after(hz, 3_600, 1.2e6), Rate::Snapped(1e3));
        }
    }

    /// A clock is set forward and back, or does not run while its host sleeps: it is the same all the rest of the time.
    #[test]
    fn a_clock_that_was_set_has_the_rate_that_it_had() {
        let set = |k: u32| f64::from(k / 600) * 9e3 * if k > 3_000 { -1.0 } else { 1.0 };
        let asleep = |k: u32| f64::from(k / 400) * -5e3;
        for shift in [&set as &dyn Fn(u32) -> f64, &asleep] {
            let point = |k: u32| Point { t: f64::from(k) * 1e5, x: f64::from(k) * 100.0 + shift(k) };
            let readings: Vec<Point> = (0..4_000).map(point).collect();
            assert_eq!(rate(&readings, 1.2e6, || None), Rate::Snapped(1e3));
        }
    }

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
