//! The smallest and the largest delay seen, and a threshold between them.
//!
//! Source: TCP-LP (equation 2 of "A hands-on assessment of transport protocols with lower than best effort priority", LCN
//! 2010: `d_min + (d_max - d_min) delta`) and TCP-NICE (section II-B of the same).
//!
//! *What it leaves out:* which samples are fit to be extremes, which is the caller's to say.
//! *How it was validated:* unit tests below; the vectors of `tests/vectors/tcp_lp.json`.

use super::BaseHistory;
use cede_units::{Duration, Instant};

/// Extremes of delays in nanoseconds on any scale.
#[derive(Clone, Debug)]
pub struct DelayRange {
    min_ns: Option<i64>,
    max_ns: Option<i64>,
    /// Minima of the delays and of their negatives, where only the last minutes count.
    recent: Option<(BaseHistory, BaseHistory)>,
    min_spread_ns: i64,
}

impl DelayRange {
    /// An empty range. `minutes`: how long a sample counts, 0 for ever. There is no threshold below a spread of
    /// `min_spread`.
    #[must_use]
    pub fn new(minutes: usize, min_spread: Duration) -> Self {
        let recent = (minutes > 0).then(|| (BaseHistory::new(minutes), BaseHistory::new(minutes)));
        let min_spread_ns = min_spread.as_nanos().min(i64::MAX as u64) as i64;
        Self { min_ns: None, max_ns: None, recent, min_spread_ns }
    }

    /// Takes a sample.
    pub fn update(&mut self, now: Instant, delay_ns: i64) {
        if let Some((smallest, largest)) = &mut self.recent {
            smallest.update(now, delay_ns);
            largest.update(now, delay_ns.saturating_neg());
            self.min_ns = smallest.latest_ns();
            self.max_ns = largest.latest_ns().map(i64::saturating_neg);
            return;
        }
        self.min_ns = Some(self.min_ns.map_or(delay_ns, |min| min.min(delay_ns)));
        self.max_ns = Some(self.max_ns.map_or(delay_ns, |max| max.max(delay_ns)));
    }

    /// Takes a sample that may be too large, and is no largest one.
    pub fn update_min(&mut self, now: Instant, delay_ns: i64) {
        if let Some((smallest, _)) = &mut self.recent {
            smallest.update(now, delay_ns);
            self.min_ns = smallest.latest_ns();
        } else {
            self.min_ns = Some(self.min_ns.map_or(delay_ns, |min| min.min(delay_ns)));
        }
    }

    /// Moves the largest by this part of the way towards `delay_ns`.
    pub fn decay_max(&mut self, delay_ns: i64, part: f64) {
        if let Some(max) = self.max_ns {
            let step = delay_ns.saturating_sub(max) as f64 * part;
            self.max_ns = Some(max.saturating_add(step as i64));
        }
    }

    /// The delay that lies this part of the way from the smallest to the largest; none while they are too near.
    #[must_use]
    pub fn threshold_ns(&self, part: f64) -> Option<f64> {
        let (min, max) = (self.min_ns?, self.max_ns?);
        let spread = max.saturating_sub(min);
        (spread >= self.min_spread_ns).then_some(min as f64 + spread as f64 * part)
    }

    /// The smallest.
    #[must_use]
    pub const fn min_ns(&self) -> Option<i64> {
        self.min_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_threshold_lies_between_the_extremes_once_they_are_apart() {
        let mut range = DelayRange::new(0, Duration::from_millis(1));
        assert_eq!(range.threshold_ns(0.2), None);
        for delay in [50 * MS, 50 * MS + 900_000] {
            range.update(Instant::ZERO, delay);
            assert_eq!(range.threshold_ns(0.2), None);
        }
        range.update(Instant::ZERO, 170 * MS);
        assert_eq!(range.threshold_ns(0.2), Some(74e6), "minRTT 50 ms, maxRTT 170 ms");
    }

    #[test]
    fn old_extremes_are_forgotten_where_minutes_are_given() {
        let mut range = DelayRange::new(2, Duration::ZERO);
        for (s, delay) in [(0, 10), (1, 100), (70, 50), (130, 60)] {
            range.update(Instant::from_secs(s), delay * MS);
        }
        assert_eq!((range.min_ns(), range.threshold_ns(1.0)), (Some(50 * MS), Some(60e6)));
    }

    #[test]
    fn a_sample_that_may_be_too_large_is_no_largest_one() {
        for minutes in [0, 2] {
            let mut range = DelayRange::new(minutes, Duration::ZERO);
            [50, 170].into_iter().for_each(|delay| range.update(Instant::ZERO, delay * MS));
            [40, 400].into_iter().for_each(|delay| range.update_min(Instant::ZERO, delay * MS));
            assert_eq!((range.min_ns(), range.threshold_ns(1.0)), (Some(40 * MS), Some(170e6)));
        }
    }

    #[test]
    fn the_largest_decays_only_where_it_is_told_to() {
        let mut range = DelayRange::new(0, Duration::ZERO);
        range.update(Instant::ZERO, 0);
        range.update(Instant::ZERO, 640);
        range.decay_max(0, 1.0 / 64.0);
        assert_eq!(range.threshold_ns(1.0), Some(630.0));
        range.update(Instant::ZERO, i64::MIN);
        range.decay_max(i64::MAX, 1.0);
        assert!(range.threshold_ns(0.5).is_some());
    }
}
