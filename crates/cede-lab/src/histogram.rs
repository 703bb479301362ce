//! Durations counted in bins of constant relative width, for percentiles of any number of samples in fixed memory.
//!
//! 64 bins per doubling: a percentile is off by at most 1/128 of its value; mean, minimum and maximum are exact.

use cede_units::Duration;

const BINS_PER_OCTAVE_LOG2: u32 = 6;
const BINS_PER_OCTAVE: u64 = 1 << BINS_PER_OCTAVE_LOG2;
/// Durations below 64 ns have a bin each; 58 octaves above reach the end of 64 bits.
const BINS: usize = (BINS_PER_OCTAVE as usize) * 59;

/// A histogram of durations.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u32; BINS]>,
    samples: u64,
    sum_ns: u128,
    max: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: Box::new([0; BINS]), samples: 0, sum_ns: 0, max: Duration::ZERO }
    }
}

impl Histogram {
    /// Counts one sample.
    pub fn record(&mut self, sample: Duration) {
        self.counts[bin(sample.as_nanos())] += 1;
        self.samples += 1;
        self.sum_ns += u128::from(sample.as_nanos());
        self.max = self.max.max(sample);
    }

    /// Adds another histogram's samples.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts.iter()).for_each(|(mine, theirs)| *mine += theirs);
        self.samples += other.samples;
        self.sum_ns += other.sum_ns;
        self.max = self.max.max(other.max);
    }

    /// How many samples there were.
    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// The mean in milliseconds; `None` without samples.
    #[must_use]
    pub fn mean_ms(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum_ns as f64 / self.samples as f64 / 1e6)
    }

    /// The largest sample in milliseconds; `None` without samples.
    #[must_use]
    pub fn max_ms(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.max.as_millis_f64())
    }

    /// The smallest value that at least `percent` per cent of the samples do not exceed, in milliseconds, as the middle
    /// of its bin and never above the maximum; `None` without samples.
    #[must_use]
    pub fn percentile_ms(&self, percent: f64) -> Option<f64> {
        let wanted = (self.samples as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reached = self.counts.iter().position(|&count| {
            seen += u64::from(count);
            seen >= wanted
        })?;
        Some((middle_ns(reached) / 1e6).min(self.max.as_millis_f64()))
    }
}

fn bin(ns: u64) -> usize {
    if ns < BINS_PER_OCTAVE {
        return ns as usize;
    }
    let octave = u64::from(63 - ns.leading_zeros() - BINS_PER_OCTAVE_LOG2);
    ((octave + 1) * BINS_PER_OCTAVE + ((ns >> octave) - BINS_PER_OCTAVE)) as usize
}

fn middle_ns(bin: usize) -> f64 {
    let bin = bin as u64;
    if bin < BINS_PER_OCTAVE {
        return bin as f64;
    }
    let octave = bin / BINS_PER_OCTAVE - 1;
    let width = (1_u64 << octave) as f64;
    ((BINS_PER_OCTAVE + bin % BINS_PER_OCTAVE) as f64 + 0.5) * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_one_part_in_a_hundred_and_twenty_eight() {
        let mut histogram = Histogram::default();
        (1..=100_000).for_each(|us| histogram.record(Duration::from_micros(us)));
        for percent in [1.0, 50.0, 95.0, 99.0, 100.0] {
            let found = histogram.percentile_ms(percent).unwrap();
            assert!((found / percent - 1.0).abs() < 1.0 / 128.0, "{percent}: {found}");
        }
        assert!((histogram.mean_ms().unwrap() - 50.0005).abs() < 1e-9);
        assert_eq!(histogram.max_ms(), Some(100.0));
    }

    #[test]
    fn extremes_have_a_bin_and_nothing_gives_nothing() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile_ms(50.0), None);
        histogram.record(Duration::ZERO);
        assert_eq!(histogram.percentile_ms(50.0), Some(0.0));
        histogram.record(Duration::MAX);
        assert!(histogram.percentile_ms(99.0).unwrap() > 1e12);
    }

    #[test]
    fn bins_are_continuous_and_rising() {
        for ns in (0..100_000_u64).chain((0..64).map(|shift| 1 << shift)) {
            assert!(bin(ns) < BINS);
            assert!(bin(ns.saturating_add(1)) - bin(ns) <= 1);
        }
    }
}
