//! How fast octets come or go.
//!
//! Source: the mainline client's rate measure: an average over a window that begins when counting began, five seconds
//! in the past, and never reaches back further than twenty.
//!
//! **What it leaves out.** Nothing.
//! **How it was validated.** By hand-computed values below.

use cede_units::{Duration, Instant};

/// How far back the average reaches.
const WINDOW: Duration = Duration::from_secs(20);
/// How far in the past the average begins, so that the first octets make no huge rate.
const FUDGE: Duration = Duration::from_secs(5);

/// A running average of octets per second.
#[derive(Clone, Copy, Debug)]
pub struct RateMeasure {
    since_s: f64,
    last_s: f64,
    rate: f64,
    total: u64,
}

impl RateMeasure {
    /// An average that begins now.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        let now_s = now.as_secs_f64();
        Self { since_s: now_s - FUDGE.as_secs_f64(), last_s: now_s, rate: 0.0, total: 0 }
    }

    /// So many octets more.
    pub fn add(&mut self, now: Instant, bytes: u32) {
        self.total += u64::from(bytes);
        self.update(now.as_secs_f64(), f64::from(bytes));
    }

    /// Octets per second.
    #[must_use]
    pub fn rate(&self, now: Instant) -> f64 {
        let mut brought_up = *self;
        brought_up.update(now.as_secs_f64(), 0.0);
        brought_up.rate
    }

    /// All octets so far.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    fn update(&mut self, now_s: f64, bytes: f64) {
        let span = now_s - self.since_s;
        if span > 0.0 {
            self.rate = (self.rate * (self.last_s - self.since_s) + bytes) / span;
        }
        self.last_s = now_s;
        let earliest = now_s - WINDOW.as_secs_f64();
        if self.since_s < earliest {
            self.since_s = earliest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_an_average_over_twenty_seconds_and_five_before_the_first() {
        let mut measure = RateMeasure::new(Instant::from_secs(100));
        assert_eq!(measure.rate(Instant::from_secs(101)), 0.0);
        measure.add(Instant::from_secs(105), 10_000);
        assert!((measure.rate(Instant::from_secs(105)) - 1_000.0).abs() < 1e-6);
        // Fifteen seconds of silence later the window is twenty seconds and still holds all 10,000.
        assert!((measure.rate(Instant::from_secs(115)) - 500.0).abs() < 1e-6);
        for second in 116..200 {
            measure.add(Instant::from_secs(second), 20_000);
        }
        let rate = measure.rate(Instant::from_secs(199));
        assert!((19_000.0..20_100.0).contains(&rate), "{rate}");
        assert_eq!(measure.total(), 10_000 + 84 * 20_000);
    }
}
