//! A distribution of delays in a few figures.

use cede_lab::histogram::Histogram;
use std::fmt;

/// Delays in milliseconds; all zero where there were none. Percentiles are off by at most 1 %.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Summary {
    /// How many there were.
    pub samples: u64,
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

impl Summary {
    /// What a histogram shows.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        Self {
            samples: histogram.samples(),
            mean_ms: histogram.mean_ms().unwrap_or_default(),
            p50_ms: histogram.percentile_ms(50.0).unwrap_or_default(),
            p99_ms: histogram.percentile_ms(99.0).unwrap_or_default(),
            max_ms: histogram.max_ms().unwrap_or_default(),
        }
    }

    /// The sum of all samples, in milliseconds.
    #[must_use]
    pub fn total_ms(&self) -> f64 {
        self.mean_ms * self.samples as f64
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {:.3}, p99 {:.3}, max {:.3} ms", self.p50_ms, self.p99_ms, self.max_ms)
    }
}
