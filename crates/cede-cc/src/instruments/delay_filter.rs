//! The current delay: a short filter over one-way delay samples.
//!
//! Source: RFC 6817, section 2.4.2 and 4.2 (CURRENT_FILTER): none, EWMA or the minimum of a short list; entries must
//! not be older than one RTT. Implementations use the minimum of 3 or 4.
//!
//! *What it leaves out:* filters longer than [`MAX_LENGTH`] samples; at four samples per RTT they would not be current.
//! *How it was validated:* unit tests below; the LEDBAT checks run on it.

use cede_units::{Duration, Instant};

/// The longest list that is kept.
const MAX_LENGTH: usize = 32;

/// How samples become the current delay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FilterKind {
    /// The latest sample as it is.
    Latest,
    /// The minimum of the last so many samples (1 to 32), none older than one smoothed RTT.
    MinOf(usize),
    /// An exponentially weighted moving average with this weight on the newest sample.
    Ewma(f64),
}

/// A filter with its state. Delays are nanoseconds on any scale.
#[derive(Clone, Debug)]
pub struct DelayFilter {
    kind: FilterKind,
    recent: [(Instant, i64); MAX_LENGTH],
    len: usize,
    newest: usize,
    average_ns: f64,
}

impl DelayFilter {
    /// An empty filter.
    #[must_use]
    pub fn new(kind: FilterKind) -> Self {
        let kind = match kind {
            FilterKind::MinOf(n) => FilterKind::MinOf(n.clamp(1, MAX_LENGTH)),
            other => other,
        };
        Self { kind, recent: [(Instant::ZERO, 0); MAX_LENGTH], len: 0, newest: 0, average_ns: 0.0 }
    }

    /// Takes a sample and answers with the filtered delay. `max_age` is the smoothed RTT; zero means that it is not
    /// known yet, so nothing is too old.
    pub fn update(&mut self, now: Instant, delay_ns: i64, max_age: Duration) -> i64 {
        match self.kind {
            FilterKind::Latest => delay_ns,
            FilterKind::MinOf(n) => self.minimum(n, now, delay_ns, max_age),
            FilterKind::Ewma(weight) => self.average(delay_ns, weight),
        }
    }

    /// Forgets all samples: the scale has changed under them.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    fn average(&mut self, delay_ns: i64, weight: f64) -> i64 {
        let first = self.len == 0;
        self.len = 1;
        let delay = delay_ns as f64;
        self.average_ns = if first { delay } else { self.average_ns + weight * (delay - self.average_ns) };
        self.average_ns as i64
    }

    fn minimum(&mut self, n: usize, now: Instant, delay_ns: i64, max_age: Duration) -> i64 {
        self.newest = if self.newest + 1 >= n { 0 } else { self.newest + 1 };
        self.recent[self.newest] = (now, delay_ns);
        self.len = (self.len + 1).min(n);
        let fresh = |at: Instant| max_age.is_zero() || now.since(at) <= max_age;
        // The first `len` samples after `clear` do not start at slot 0, so walk backwards from the newest.
        let (mut least, mut slot) = (delay_ns, self.newest);
        for _ in 1..self.len {
            slot = if slot == 0 { n - 1 } else { slot - 1 };
            let (at, delay) = self.recent[slot];
            if fresh(at) {
                least = least.min(delay);
            }
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kind: FilterKind, delays: &[i64]) -> alloc::vec::Vec<i64> {
        let mut filter = DelayFilter::new(kind);
        let sample = |(i, &d): (usize, &i64)| {
            filter.update(Instant::from_millis(10 * i as u64), d, Duration::from_millis(100))
        };
        delays.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn minimum_of_the_last_n() {
        assert_eq!(run(FilterKind::MinOf(3), &[5, 9, 7, 8, 9, 9]), [5, 5, 5, 7, 7, 8]);
        assert_eq!(run(FilterKind::MinOf(1), &[5, 9, 7]), [5, 9, 7]);
        assert_eq!(run(FilterKind::Latest, &[5, 9, 7]), [5, 9, 7]);
    }

    #[test]
    fn samples_older_than_one_rtt_do_not_count() {
        let mut filter = DelayFilter::new(FilterKind::MinOf(4));
        let srtt = Duration::from_millis(50);
        assert_eq!(filter.update(Instant::from_millis(0), 3, srtt), 3);
        assert_eq!(filter.update(Instant::from_millis(50), 9, srtt), 3);
        assert_eq!(filter.update(Instant::from_millis(51), 9, srtt), 9);
        assert_eq!(
            filter.update(Instant::from_millis(52), 9, Duration::ZERO),
            3,
            "no RTT known: no age limit"
        );
    }

    #[test]
    fn the_average_starts_at_the_first_sample() {
        assert_eq!(run(FilterKind::Ewma(0.25), &[100, 200, 200]), [100, 125, 143]);
    }

    #[test]
    fn a_cleared_filter_knows_nothing() {
        let mut filter = DelayFilter::new(FilterKind::MinOf(3));
        for d in [1, 2] {
            filter.update(Instant::ZERO, d, Duration::ZERO);
        }
        filter.clear();
        assert_eq!(filter.update(Instant::ZERO, 70, Duration::ZERO), 70);
        assert_eq!(filter.update(Instant::ZERO, 80, Duration::ZERO), 70);
    }
}
