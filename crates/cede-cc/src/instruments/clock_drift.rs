//! The drift between two hosts' clocks, seen from the direction that we do not load.
//!
//! Source: RFC 6817, section 2.4.2 and appendix A.2 name the problem (skew makes raw delays creep) and leave the remedy
//! open. libutp and libtorrent watch the reverse direction's base delay, as here, but only act when it falls.
//!
//! A clock that runs `s` faster than the other changes the raw forward delay by `+s` per second and the raw reverse
//! delay by `-s`. We fill the forward direction, so its base hides behind our own queue; the reverse direction carries
//! little of ours, and its minima show the drift undisturbed. Per [`WINDOW`] the smallest reverse sample is one
//! point; the slope through the last [`POINTS`] points is the median of all pairwise slopes (Theil-Sen), which up to
//! 29 % of arbitrarily wrong points do not move. It is believed only where
//! * it is within [`MAX_SKEW`], which is how fast `ntpd` slews a clock at most, and
//! * half of the points lie within [`MAX_SPREAD`] of the line: a reverse path with a changing queue of its own fails
//!   this, and the last believed value stays.
//!
//! A clock that is *set* moves both raw delays at once by opposite amounts: [`ClockDrift::update`] reports such a
//! [`ClockStep`]. Packets that a FIFO delivers in order cannot make a delay fall by more than the time between them, so a
//! jump by more than that, in the direction that falls, is no queue's work. `ntpd` steps a clock only where it is off
//! by more than 128 ms, hence [`MIN_STEP`].
//!
//! *What it leaves out:* a drift seen only in the forward direction (a queue and a skew cannot be told apart there);
//! steps below 100 ms, which look like a changed route.
//! *How it was validated:* unit tests below with noise, outliers, quantised stamps and steps; the 30-minute runs
//! with +-50 ppm in `tests/link.rs`.

use super::push_sparingly;
use alloc::collections::VecDeque;
use cede_units::{Duration, Instant};

/// How long the reverse minimum of one point is gathered.
pub const WINDOW: Duration = Duration::from_secs(10);
/// How many points the slope is taken through (five minutes of them).
pub const POINTS: usize = 30;
/// How many points there must be.
pub const MIN_POINTS: usize = 4;
/// The largest drift that is believed, in seconds per second.
pub const MAX_SKEW: f64 = 500e-6;
/// How far from the line half of the points may lie.
pub const MAX_SPREAD: Duration = Duration::from_millis(2);
/// The smallest jump of both directions, beyond the time between samples, that is taken for a clock being set.
pub const MIN_STEP: Duration = Duration::from_millis(100);

const PAIRS: usize = POINTS * (POINTS - 1) / 2;

/// One clock has been set: raw forward delays now read so much more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockStep {
    /// The change of the forward scale in nanoseconds.
    pub forward_ns: i64,
}

/// Raw samples of both directions, taken together.
#[derive(Clone, Copy, Debug)]
struct Pair {
    at: Instant,
    forward_ns: i64,
    reverse_ns: i64,
}

/// Estimates the drift of the forward delay's scale.
#[derive(Clone, Debug, Default)]
pub struct ClockDrift {
    /// Finished windows: when their smallest sample came, and the sample.
    points: VecDeque<(Instant, i64)>,
    /// The first window begins with the first sample, and is over at once: it holds nothing yet.
    window_end: Instant,
    lowest: Option<(Instant, i64)>,
    last: Option<Pair>,
    skew: f64,
}

impl ClockDrift {
    /// Knows nothing: no drift.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// By how much raw forward delays rise per nanosecond for no reason but the clocks, in ns.
    #[must_use]
    pub const fn skew(&self) -> f64 {
        self.skew
    }

    /// Takes one pair of raw samples in nanoseconds. Answers with a step of `min_step` or more where one clock has been
    /// set; 100 ms is right where both directions were measured.
    pub fn update(
        &mut self,
        now: Instant,
        forward_ns: i64,
        reverse_ns: i64,
        min_step: Duration,
    ) -> Option<ClockStep> {
        let pair = Pair { at: now, forward_ns, reverse_ns };
        let jumped = self.last.filter(|last| has_jumped(*last, pair, min_step));
        self.last = Some(pair);
        let step = jumped.and_then(|last| self.follow_jump(last, pair, min_step));
        self.gather(now, reverse_ns);
        step
    }

    /// The forward direction has jumped, by a clock's step perhaps. The points before a step are on another scale. The
    /// drift itself has not changed.
    #[cold]
    #[inline(never)]
    fn follow_jump(&mut self, last: Pair, now: Pair, min_step: Duration) -> Option<ClockStep> {
        let step = step_between(last, now, min_step)?;
        self.points.clear();
        self.lowest = None;
        self.window_end = now.at + WINDOW;
        Some(step)
    }

    fn gather(&mut self, now: Instant, reverse_ns: i64) {
        if now >= self.window_end {
            self.finish(now);
        }
        if self.lowest.is_none_or(|(_, lowest)| reverse_ns < lowest) {
            self.lowest = Some((now, reverse_ns));
        }
    }

    /// A window is over. Seldom enough to be kept out of the way of each acknowledgement.
    #[cold]
    #[inline(never)]
    fn finish(&mut self, now: Instant) {
        self.window_end = now + WINDOW;
        let Some(point) = self.lowest.take() else { return };
        let oldest = WINDOW * (2 * POINTS as u64);
        while self.points.front().is_some_and(|&(at, _)| now.since(at) > oldest) {
            self.points.pop_front();
        }
        if self.points.len() == POINTS {
            self.points.pop_front();
        }
        push_sparingly(&mut self.points, point, POINTS);
        if let Some(slope) = self.believable_slope() {
            self.skew = -slope;
        }
    }

    /// The slope of the reverse minima in ns per ns, where it is to be believed.
    fn believable_slope(&self) -> Option<f64> {
        if self.points.len() < MIN_POINTS {
            return None;
        }
        let slope = self.median_slope()?;
        let spread = self.spread_around(slope);
        (slope.abs() <= MAX_SKEW && spread <= MAX_SPREAD.as_nanos() as f64).then_some(slope)
    }

    fn median_slope(&self) -> Option<f64> {
        let mut slopes = [0.0; PAIRS];
        let mut len = 0;
        for (i, later) in self.points.iter().enumerate() {
            for earlier in self.points.iter().take(i) {
                let run = later.0.since(earlier.0).as_nanos() as f64;
                if run > 0.0 {
                    slopes[len] = later.1.saturating_sub(earlier.1) as f64 / run;
                    len += 1;
                }
            }
        }
        median(&mut slopes[..len])
    }

    /// The median distance of the points from the line of this slope through their middle.
    fn spread_around(&self, slope: f64) -> f64 {
        let mut offsets = [0.0; POINTS];
        let Some(&(start, level)) = self.points.front() else { return 0.0 };
        for (offset, &(at, delay)) in offsets.iter_mut().zip(&self.points) {
            *offset = delay.saturating_sub(level) as f64 - slope * at.since(start).as_nanos() as f64;
        }
        let offsets = &mut offsets[..self.points.len()];
        let middle = median(offsets).unwrap_or(0.0);
        for offset in offsets.iter_mut() {
            *offset = (*offset - middle).abs();
        }
        median(offsets).unwrap_or(0.0)
    }
}

/// The (upper) median; none of nothing.
fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// A step of `min_step` is more than queues can do between two samples.
fn limit_ns(last: Pair, now: Pair, min_step: Duration) -> u64 {
    (min_step + now.at.since(last.at)).as_nanos()
}

/// Where this is false there was no step: the forward direction has not moved by as much.
fn has_jumped(last: Pair, now: Pair, min_step: Duration) -> bool {
    now.forward_ns.abs_diff(last.forward_ns) >= limit_ns(last, now, min_step)
}

/// Both directions jumped by opposite amounts that agree within an eighth.
fn step_between(last: Pair, now: Pair, min_step: Duration) -> Option<ClockStep> {
    let forward = now.forward_ns.saturating_sub(last.forward_ns);
    let backward = last.reverse_ns.saturating_sub(now.reverse_ns);
    let large = |jump: i64| jump.unsigned_abs() >= limit_ns(last, now, min_step);
    if !large(forward) || !large(backward) || (forward < 0) != (backward < 0) {
        return None;
    }
    let differ = forward.abs_diff(backward);
    // Half of each: what the queues did meanwhile is split between the two.
    let forward_ns = forward / 2 + backward / 2;
    (differ <= forward_ns.unsigned_abs() / 8).then_some(ClockStep { forward_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    /// Feeds `minutes` of samples, 20 a second, of a reverse path that drifts by -`skew`.
    fn run(skew: f64, minutes: u64, mut noise: impl FnMut(u64) -> i64) -> ClockDrift {
        let mut drift = ClockDrift::new();
        for i in 0..minutes * 1200 {
            let now = Instant::from_millis(50 * i);
            let moved = (skew * now.as_nanos() as f64) as i64;
            assert_eq!(drift.update(now, 40_000_000 + moved, noise(i) - moved, MIN_STEP), None);
        }
        drift
    }

    #[test]
    fn drift_of_either_sign_is_found_within_a_minute() {
        for skew in [50e-6, -50e-6, 200e-6, 0.0] {
            let found = run(skew, 1, |_| 7_000_000).skew();
            assert!((found - skew).abs() < 1e-7, "{skew}: {found}");
        }
    }

    #[test]
    fn jitter_and_millisecond_stamps_cost_a_few_millionths() {
        let mut random = Stream::named(1, "jitter");
        let found = run(-50e-6, 5, |_| (random.exponential(3e6)) as i64).skew();
        assert!((found + 50e-6).abs() < 1e-6, "{found}");
        let mut random = Stream::named(2, "stamps");
        let mut drift = ClockDrift::new();
        for i in 0..6000_u64 {
            let now = Instant::from_millis(50 * i);
            let reverse = 50 * i as i64 / 20 * 1000 + random.below(1_000_000) as i64;
            drift.update(now, 0, reverse / 1_000_000 * 1_000_000, MIN_STEP);
        }
        assert!((drift.skew() + 50e-6).abs() < 5e-6, "{}", drift.skew());
    }

    #[test]
    fn a_reverse_queue_is_not_taken_for_drift() {
        // A reverse queue that stands at 80 ms for one minute in five: outliers.
        let found = run(50e-6, 5, |i| if (2400..3600).contains(&i) { 80_000_000 } else { 0 }).skew();
        assert!((found - 50e-6).abs() < 2e-6, "{found}");
        // One that wanders by tens of milliseconds from window to window: not believed at all.
        let mut random = Stream::named(3, "wander");
        let mut level = 0;
        let found = run(0.0, 5, |i| {
            if i % 200 == 0 {
                level = random.below(80_000_000) as i64;
            }
            level
        });
        assert!(found.skew().abs() < 100e-6, "{}", found.skew());
    }

    #[test]
    fn a_clock_that_is_set_is_a_step_and_a_queue_is_none() {
        let mut drift = ClockDrift::new();
        let ms = 1_000_000;
        let mut feed = |at_ms, forward_ms: i64, reverse_ms: i64| {
            let step = drift.update(Instant::from_millis(at_ms), forward_ms * ms, reverse_ms * ms, MIN_STEP);
            step.map(|step| step.forward_ns / ms)
        };
        assert_eq!(feed(1000, 50, 10), None);
        assert_eq!(feed(1100, 900, 10), None, "a queue fills one direction");
        assert_eq!(feed(1200, -4100, 5010), Some(-5000));
        assert_eq!(feed(1300, -3901, 4811), None, "199 ms within 100 ms plus the smallest step: not sure");
        assert_eq!(feed(1310, -3701, 4611), Some(200));
        assert_eq!(feed(9000, -3000, 3910), None, "in eight seconds a queue can drain by 700 ms");
        let at = Instant::from_secs(10);
        assert!(drift.update(at, i64::MAX, i64::MIN, MIN_STEP).is_some());
        assert_eq!(drift.update(at, i64::MIN, i64::MIN, MIN_STEP), None);
    }
}
