//! What of an interval's RTT is noise.
//!
//! Source: PCC-Uspace (30c2cfe), `PccUtilityManager::DetermineTolerance...` and `ProcessRttTrend`; Meng et al., SIGCOMM 2020,
//! section 5. An interval whose regression errs by more than its gradient tells nothing: gradient and deviation count as zero.
//! The trend of the mean RTT over six intervals, and the deviation against its own average, may revoke that. [`Fixed`] is the
//! older rule of Vivace: gradients below a threshold count as zero.
//!
//! The code's gains are 2 and 2 where the paper is said to have 2 and 4; the code's are taken.
//!
//! *What it leaves out:* nothing of those two functions.
//! *How it was validated:* unit tests below, by hand from the rules.
//!
//! [`Fixed`]: Noise::Fixed

use super::interval::Statistics;
use super::utility::Observation;

/// Intervals in a trend (`kRttHistoryLen`).
const HISTORY: usize = 6;
/// The weight of the newest in averages (`kAlpha`), and the smallest trend's part below which all begins anew (`kBeta`).
const ALPHA: f64 = 0.1;
const BETA: f64 = 100.0;
/// Deviations of the trend that are tolerated (`kInflationToleranceGain...`), and of the deviation.
const TREND_GAIN: f64 = 2.0;
const DEVIATION_GAIN: f64 = 4.0;
/// Deviations up to this are never intolerable by themselves.
const DEVIATION_MIN_US: f64 = 1000.0;
/// The share of intolerable intervals at which the deviation's average begins anew (`kTrendingResetIntervalRatio`).
const RESET_SHARE: f64 = 0.95;
const EMPTY: f64 = 1e-6;
/// In STARTING gradients below this many microseconds per interval count as zero.
const STARTING_RISE_US: f64 = 1000.0;

/// How an interval's noise is judged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Noise {
    /// By the interval's own regression and by trends.
    Adaptive(Trends),
    /// Gradients below a threshold are noise.
    Fixed(f64),
}

/// What may count as zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tolerance {
    gradient: bool,
    deviation: bool,
}

impl Noise {
    /// What is left of an interval's statistics.
    pub(super) fn observe(&mut self, seen: &Statistics, starting: bool) -> Observation {
        let tolerance = match self {
            Self::Adaptive(trends) => trends.judge(seen),
            Self::Fixed(threshold) => {
                Tolerance { gradient: seen.gradient.abs() < *threshold, deviation: false }
            }
        };
        let small = starting && seen.gradient.abs() < STARTING_RISE_US / seen.duration_us;
        Observation {
            rate_mbit: seen.rate_mbit,
            gradient: if tolerance.gradient || small { 0.0 } else { seen.gradient },
            loss: seen.loss,
            deviation_us: if tolerance.deviation || starting { 0.0 } else { seen.deviation_us },
        }
    }
}

/// A moving average after one more value.
fn blend(average: f64, newest: f64) -> f64 {
    average * (1.0 - ALPHA) + newest * ALPHA
}

/// The state of the trends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Trends {
    means: [f64; HISTORY],
    count: usize,
    average: f64,
    deviation: f64,
    smallest: f64,
    last: f64,
    spread_average: f64,
    spread_deviation: f64,
    intolerable_share: f64,
}

impl Default for Trends {
    fn default() -> Self {
        Self {
            means: [0.0; HISTORY],
            count: 0,
            average: -1.0,
            deviation: -1.0,
            smallest: -1.0,
            last: -1.0,
            spread_average: -1.0,
            spread_deviation: -1.0,
            intolerable_share: 0.0,
        }
    }
}

impl Trends {
    fn judge(&mut self, seen: &Statistics) -> Tolerance {
        let tolerable = seen.error >= seen.gradient.abs();
        let mut tolerance = Tolerance { gradient: tolerable, deviation: tolerable };
        if seen.has_rtt {
            self.remember(seen.rtt_us);
            if self.count == HISTORY {
                self.judge_trend(&mut tolerance);
                self.judge_deviation(seen.deviation_us, &mut tolerance);
            }
        }
        tolerance
    }

    fn remember(&mut self, rtt_us: f64) {
        if self.count == HISTORY {
            self.means.rotate_left(1);
            self.means[HISTORY - 1] = rtt_us;
        } else {
            self.means[self.count] = rtt_us;
            self.count += 1;
        }
    }

    /// The slope of the mean RTT over the intervals, in us per interval.
    fn slope(&self) -> f64 {
        let n = HISTORY as f64;
        let mid = (n - 1.0) / 2.0;
        let mean = self.means.iter().sum::<f64>() / n;
        let terms = self.means.iter().enumerate().map(|(i, rtt)| (i as f64 - mid, rtt - mean));
        let (xy, xx) = terms.fold((0.0, 0.0), |(xy, xx), (x, y)| (xy + x * y, xx + x * x));
        xy / xx
    }

    fn judge_trend(&mut self, tolerance: &mut Tolerance) {
        let trend = self.slope();
        if self.smallest < EMPTY || trend.abs() < self.smallest / BETA {
            (self.average, self.deviation, self.smallest) = (0.0, trend.abs(), trend.abs());
            self.last = trend;
            return;
        }
        if (trend - self.average).abs() > TREND_GAIN * self.deviation {
            tolerance.deviation = false;
            tolerance.gradient &= trend <= 0.0;
        } else {
            self.deviation = blend(self.deviation, (trend - self.last).abs());
            self.average = blend(self.average, trend);
            self.last = trend;
        }
        self.smallest = self.smallest.min(trend.abs());
    }

    fn judge_deviation(&mut self, spread_us: f64, tolerance: &mut Tolerance) {
        self.intolerable_share *= 1.0 - ALPHA;
        if self.spread_average < EMPTY {
            (self.spread_average, self.spread_deviation) = (spread_us, spread_us / 2.0);
        } else if spread_us > self.spread_average + DEVIATION_GAIN * self.spread_deviation
            && spread_us > DEVIATION_MIN_US
        {
            tolerance.deviation = false;
            self.intolerable_share += ALPHA;
        } else {
            let off = (spread_us - self.spread_average).abs();
            self.spread_deviation = blend(self.spread_deviation, off);
            self.spread_average = blend(self.spread_average, spread_us);
        }
        if self.intolerable_share > RESET_SHARE {
            (self.spread_average, self.spread_deviation) = (-1.0, -1.0);
            self.intolerable_share = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(rtt_us: f64, gradient: f64, error: f64, deviation_us: f64) -> Statistics {
        let (rate_mbit, duration_us) = (10.0, 50_000.0);
        Statistics { rate_mbit, duration_us, loss: 0.0, gradient, error, rtt_us, deviation_us, has_rtt: true }
    }

    #[test]
    fn a_regression_that_errs_by_more_than_its_gradient_is_noise() {
        let mut noise = Noise::Adaptive(Trends::default());
        let quiet = noise.observe(&seen(5e4, 0.01, 0.02, 900.0), false);
        assert_eq!((quiet.gradient, quiet.deviation_us), (0.0, 0.0));
        let clear = noise.observe(&seen(5e4, 0.03, 0.02, 900.0), false);
        assert_eq!((clear.gradient, clear.deviation_us), (0.03, 900.0));
    }

    #[test]
    fn a_trend_that_leaves_its_band_revokes_tolerance_and_falling_only_that_of_the_deviation() {
        let run = |step: f64| {
            let mut noise = Noise::Adaptive(Trends::default());
            // A wobble gives the trend a small positive minimum and a band.
            for i in 0..20 {
                noise.observe(&seen(5e4 + f64::from(i % 3) * 30.0, 0.01, 0.02, 100.0), false);
            }
            noise.observe(&seen(5e4 + step, 0.01, 0.02, 100.0), false)
        };
        assert_eq!((run(5000.0).gradient, run(5000.0).deviation_us), (0.01, 100.0));
        assert_eq!((run(-5000.0).gradient, run(-5000.0).deviation_us), (0.0, 100.0));
        assert_eq!((run(30.0).gradient, run(30.0).deviation_us), (0.0, 0.0));
    }

    #[test]
    fn a_deviation_far_above_its_average_counts_until_it_has_become_usual() {
        let mut noise = Noise::Adaptive(Trends::default());
        for _ in 0..10 {
            noise.observe(&seen(5e4, 0.0, 0.01, 400.0), false);
        }
        let mut counted = 0;
        for _ in 0..60 {
            counted += u32::from(noise.observe(&seen(5e4, 0.0, 0.01, 5000.0), false).deviation_us > 0.0);
        }
        // 1 - 0.9^n exceeds 0.95 at n = 29: then it is the new average.
        assert_eq!(counted, 29);
    }

    #[test]
    fn starting_overlooks_what_rises_by_less_than_a_millisecond() {
        let mut noise = Noise::Fixed(0.0);
        let early = noise.observe(&seen(5e4, 0.019, 0.0, 900.0), true);
        assert_eq!((early.gradient, early.deviation_us), (0.0, 0.0));
        assert_eq!(noise.observe(&seen(5e4, 0.021, 0.0, 900.0), true).gradient, 0.021);
        assert_eq!(Noise::Fixed(0.01).observe(&seen(5e4, 0.0099, 0.0, 0.0), false).gradient, 0.0);
    }
}
