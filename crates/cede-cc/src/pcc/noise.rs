//! What of an interval's RTT is noise.
//!
//! Source: PCC-Uspace (30c2cfe), `PccUtilityManager::DetermineTolerance...` and `ProcessRttTrend`; Meng et al., SIGCOMM 2020,
//! section 5. An interval whose regression errs by more than its gradient tells nothing: gradient and deviation count as zero.
//! The trend of the mean RTT over six intervals, and the deviation against its own average, may revoke that. [`Noise::fixed`] is the
//! older rule of Vivace: gradients below a threshold count as zero.
//!
//! The code's gains are 2 and 2 where the paper is said to have 2 and 4; the code's are the defaults. The second is for intervals
//! whose RTT deviates by more than a millisecond.
//!
//! *What it leaves out:* nothing of those two functions.
//! *How it was validated:* unit tests below, by hand from the rules.

use super::interval::Statistics;
use super::utility::Observation;
use alloc::collections::VecDeque;

/// Averages below this are none.
const EMPTY: f64 = 1e-6;

/// What can be set on trends. Names in brackets are PCC-Uspace's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct TrendTuning {
    /// The weight of the newest in averages: 0.1 (`kAlpha`).
    pub weight: f64,
    /// Intervals in a trend: 6 (`kRttHistoryLen`).
    pub intervals: usize,
    /// Deviations of the trend that are tolerated, where the RTT's is below `deviation_min_us` and where not: 2 both
    /// (`kInflationToleranceGain...`).
    pub trend_gains: [f64; 2],
    /// The part of the smallest trend below which all begins anew: 1/100 (`kBeta`).
    pub reset: f64,
    /// Deviations of the RTT's deviation that are tolerated: 4.
    pub deviation_gain: f64,
    /// RTT deviations up to this are never intolerable by themselves: 1000.
    pub deviation_min_us: f64,
    /// The share of intolerable intervals at which the deviation's average begins anew: 0.95 (`kTrendingResetIntervalRatio`).
    pub reset_share: f64,
}

/// How an interval's noise is judged.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Noise {
    rule: Rule,
    /// In STARTING gradients below this many microseconds per interval count as zero.
    starting_rise_us: f64,
}

#[derive(Clone, PartialEq, Debug)]
enum Rule {
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
    /// By the interval's own regression and by trends.
    pub(super) const fn adaptive(tuning: TrendTuning, starting_rise_us: f64) -> Self {
        Self { rule: Rule::Adaptive(Trends::new(tuning)), starting_rise_us }
    }

    /// Gradients below `threshold` are noise.
    pub(super) const fn fixed(threshold: f64, starting_rise_us: f64) -> Self {
        Self { rule: Rule::Fixed(threshold), starting_rise_us }
    }

    /// What is left of an interval's statistics.
    pub(super) fn observe(&mut self, seen: &Statistics, starting: bool) -> Observation {
        let tolerance = match &mut self.rule {
            Rule::Adaptive(trends) => trends.judge(seen),
            Rule::Fixed(threshold) => {
                Tolerance { gradient: seen.gradient.abs() < *threshold, deviation: false }
            }
        };
        let small = starting && seen.gradient.abs() < self.starting_rise_us / seen.duration_us;
        Observation {
            rate_mbit: seen.rate_mbit,
            gradient: if tolerance.gradient || small { 0.0 } else { seen.gradient },
            loss: seen.loss,
            deviation_us: if tolerance.deviation || starting { 0.0 } else { seen.deviation_us },
        }
    }
}

/// The state of the trends.
#[derive(Clone, PartialEq, Debug)]
struct Trends {
    tuning: TrendTuning,
    /// The mean RTTs of the last intervals.
    means: VecDeque<f64>,
    average: f64,
    deviation: f64,
    smallest: f64,
    last: f64,
    spread_average: f64,
    spread_deviation: f64,
    intolerable_share: f64,
}

impl Trends {
    const fn new(tuning: TrendTuning) -> Self {
        Self {
            tuning,
            means: VecDeque::new(),
            average: -1.0,
            deviation: -1.0,
            smallest: -1.0,
            last: -1.0,
            spread_average: -1.0,
            spread_deviation: -1.0,
            intolerable_share: 0.0,
        }
    }

    /// A moving average after one more value.
    fn blend(&self, average: f64, newest: f64) -> f64 {
        average * (1.0 - self.tuning.weight) + newest * self.tuning.weight
    }

    fn judge(&mut self, seen: &Statistics) -> Tolerance {
        let tolerable = seen.error >= seen.gradient.abs();
        let mut tolerance = Tolerance { gradient: tolerable, deviation: tolerable };
        if seen.has_rtt {
            self.remember(seen.rtt_us);
            if self.means.len() == self.tuning.intervals {
                self.judge_trend(seen.deviation_us, &mut tolerance);
                self.judge_deviation(seen.deviation_us, &mut tolerance);
            }
        }
        tolerance
    }

    fn remember(&mut self, rtt_us: f64) {
        if self.means.len() == self.tuning.intervals {
            self.means.pop_front();
        }
        self.means.push_back(rtt_us);
    }

    /// The slope of the mean RTT over the intervals, in us per interval.
    fn slope(&self) -> f64 {
        let n = self.means.len() as f64;
        let mid = (n - 1.0) / 2.0;
        let mean = self.means.iter().sum::<f64>() / n;
        let terms = self.means.iter().enumerate().map(|(i, rtt)| (i as f64 - mid, rtt - mean));
        let (xy, xx) = terms.fold((0.0, 0.0), |(xy, xx), (x, y)| (xy + x * y, xx + x * x));
        xy / xx
    }

    fn judge_trend(&mut self, spread_us: f64, tolerance: &mut Tolerance) {
        let trend = self.slope();
        if self.smallest < EMPTY || trend.abs() < self.smallest / self.tuning.reset {
            (self.average, self.deviation, self.smallest) = (0.0, trend.abs(), trend.abs());
            self.last = trend;
            return;
        }
        let [low, high] = self.tuning.trend_gains;
        let gain = if spread_us < self.tuning.deviation_min_us { low } else { high };
        if (trend - self.average).abs() > gain * self.deviation {
            tolerance.deviation = false;
            tolerance.gradient &= trend <= 0.0;
        } else {
            self.deviation = self.blend(self.deviation, (trend - self.last).abs());
            self.average = self.blend(self.average, trend);
            self.last = trend;
        }
        self.smallest = self.smallest.min(trend.abs());
    }

    fn judge_deviation(&mut self, spread_us: f64, tolerance: &mut Tolerance) {
        let TrendTuning { weight, deviation_gain, deviation_min_us, reset_share, .. } = self.tuning;
        self.intolerable_share *= 1.0 - weight;
        if self.spread_average < EMPTY {
            (self.spread_average, self.spread_deviation) = (spread_us, spread_us / 2.0);
        } else if spread_us > self.spread_average + deviation_gain * self.spread_deviation
            && spread_us > deviation_min_us
        {
            tolerance.deviation = false;
            self.intolerable_share += weight;
        } else {
            let off = (spread_us - self.spread_average).abs();
            self.spread_deviation = self.blend(self.spread_deviation, off);
            self.spread_average = self.blend(self.spread_average, spread_us);
        }
        if self.intolerable_share > reset_share {
            (self.spread_average, self.spread_deviation) = (-1.0, -1.0);
            self.intolerable_share = 0.0;
        }
    }
}

#[cfg(test)]
pub(in crate::pcc) mod tests {
    use super::*;

    pub(in crate::pcc) const USUAL: TrendTuning = TrendTuning {
        weight: 0.1,
        intervals: 6,
        trend_gains: [2.0, 2.0],
        reset: 100.0,
        deviation_gain: 4.0,
        deviation_min_us: 1000.0,
        reset_share: 0.95,
    };

    fn adaptive(tuning: TrendTuning) -> Noise {
        Noise::adaptive(tuning, 1000.0)
    }

    fn seen(rtt_us: f64, gradient: f64, error: f64, deviation_us: f64) -> Statistics {
        let (rate_mbit, duration_us) = (10.0, 50_000.0);
        Statistics { rate_mbit, duration_us, loss: 0.0, gradient, error, rtt_us, deviation_us, has_rtt: true }
    }

    #[test]
    fn a_regression_that_errs_by_more_than_its_gradient_is_noise() {
        let mut noise = adaptive(USUAL);
        let quiet = noise.observe(&seen(5e4, 0.01, 0.02, 900.0), false);
        assert_eq!((quiet.gradient, quiet.deviation_us), (0.0, 0.0));
        let clear = noise.observe(&seen(5e4, 0.03, 0.02, 900.0), false);
        assert_eq!((clear.gradient, clear.deviation_us), (0.03, 900.0));
    }

    #[test]
    fn a_trend_that_leaves_its_band_revokes_tolerance_and_falling_only_that_of_the_deviation() {
        let run = |step: f64| {
            let mut noise = adaptive(USUAL);
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
        let mut noise = adaptive(USUAL);
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
        let mut noise = Noise::fixed(0.0, 1000.0);
        let early = noise.observe(&seen(5e4, 0.019, 0.0, 900.0), true);
        assert_eq!((early.gradient, early.deviation_us), (0.0, 0.0));
        assert_eq!(noise.observe(&seen(5e4, 0.021, 0.0, 900.0), true).gradient, 0.021);
        assert_eq!(Noise::fixed(0.01, 1000.0).observe(&seen(5e4, 0.0099, 0.0, 0.0), false).gradient, 0.0);
    }

    #[test]
    fn each_number_of_the_trends_can_be_set() {
        // A wobble, and a last interval that is off by `step`; what is left of its gradient and deviation.
        let run = |tuning: TrendTuning, step: f64, spread_us: f64| {
            let mut noise = adaptive(tuning);
            for i in 0..20 {
                noise.observe(&seen(5e4 + f64::from(i % 3) * 30.0, 0.01, 0.02, 100.0), false);
            }
            let last = noise.observe(&seen(5e4 + step, 0.01, 0.02, spread_us), false);
            (last.gradient > 0.0, last.deviation_us > 0.0)
        };
        assert_eq!(run(USUAL, 5000.0, 100.0), (true, true));
        assert_eq!(run(TrendTuning { trend_gains: [1e4, 2.0], ..USUAL }, 5000.0, 100.0), (false, false));
        assert_eq!(run(TrendTuning { trend_gains: [1e4, 2.0], ..USUAL }, 5000.0, 1500.0), (true, true));
        assert_eq!(run(TrendTuning { trend_gains: [2.0, 1e4], ..USUAL }, 5000.0, 1500.0), (false, true));
        let far = TrendTuning { trend_gains: [1e4, 1e4], ..USUAL };
        assert_eq!(run(far, 30.0, 1500.0), (false, true), "1.5 ms are far above the average");
        assert_eq!(run(TrendTuning { deviation_min_us: 2000.0, ..far }, 30.0, 1500.0), (false, false));
        assert_eq!(run(TrendTuning { deviation_gain: 1000.0, ..far }, 30.0, 1500.0), (false, false));
        assert_eq!(
            run(TrendTuning { intervals: 32, ..USUAL }, 5000.0, 100.0),
            (false, false),
            "not so many yet"
        );
    }
}
