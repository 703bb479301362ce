//! The current delay: a short filter over one-way delay samples.
//!
//! Source: RFC 6817, section 2.4.2 and 4.2 (CURRENT_FILTER): none, EWMA or the minimum of a short list; entries must
//! not be older than one RTT. Implementations use the minimum of 3 or 4.
//!
//! *What it leaves out:* filters longer than [`MAX_LENGTH`] samples; at four samples per RTT they would not be current.
//! *How it was validated:* unit tests below; the LEDBAT checks run on it.

use alloc::boxed::Box;
use alloc::vec;
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
pub struct DelayFilter(State);

#[derive(Clone, Debug)]
enum State {
    Latest,
    /// As many as the minimum is of, or none after [`DelayFilter::rest`]: a flow that idles costs little. Where there is
    /// no sample, a delay that is no minimum.
    MinOf {
        length: u8,
        newest: u8,
        recent: Box<[(Instant, i64)]>,
    },
    Ewma {
        weight: f64,
        average_ns: Option<f64>,
    },
}

const NO_SAMPLE: (Instant, i64) = (Instant::ZERO, i64::MAX);

impl DelayFilter {
    /// An empty filter.
    #[must_use]
    pub fn new(kind: FilterKind) -> Self {
        Self(match kind {
            FilterKind::Latest => State::Latest,
            FilterKind::MinOf(n) => {
                let length = n.clamp(1, MAX_LENGTH) as u8;
                State::MinOf { length, newest: 0, recent: Box::default() }
            }
            FilterKind::Ewma(weight) => State::Ewma { weight, average_ns: None },
        })
    }

    /// Takes a sample and answers with the filtered delay. `max_age` is the smoothed RTT; zero means that it is not
    /// known yet, so nothing is too old.
    pub fn update(&mut self, now: Instant, delay_ns: i64, max_age: Duration) -> i64 {
        match &mut self.0 {
            State::Latest => delay_ns,
            State::MinOf { length, newest, recent } => {
                if recent.is_empty() {
                    *recent = vec![NO_SAMPLE; usize::from(*length)].into();
                }
                *newest = if *newest + 1 >= *length { 0 } else { *newest + 1 };
                minimum(recent, usize::from(*newest), (now, delay_ns), max_age)
            }
            State::Ewma { weight, average_ns } => {
                let delay = delay_ns as f64;
                let average = average_ns.map_or(delay, |average| average + *weight * (delay - average));
                *average_ns = Some(average);
                average as i64
            }
        }
    }

    /// Nothing has been heard for more than an RTT: samples of a minimum are too old to count, and their room is given
    /// back.
    pub fn rest(&mut self) {
        if let State::MinOf { recent, .. } = &mut self.0 {
            *recent = Box::default();
        }
    }

    /// Forgets all samples: the scale has changed under them.
    pub fn clear(&mut self) {
        match &mut self.0 {
            State::Latest => {}
            State::MinOf { recent, .. } => recent.fill(NO_SAMPLE),
            State::Ewma { average_ns, .. } => *average_ns = None,
        }
    }
}

/// Puts a sample into its place, and answers with the least of those that are not too old.
fn minimum(recent: &mut [(Instant, i64)], place: usize, sample: (Instant, i64), max_age: Duration) -> i64 {
    let (now, delay_ns) = sample;
    let oldest = if max_age.is_zero() { Instant::ZERO } else { now.saturating_sub(max_age) };
    if let Some(slot) = recent.get_mut(place) {
        *slot = sample;
    }
    recent.iter().fold(delay_ns, |least, &(at, delay)| if at >= oldest { least.min(delay) } else { least })
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
