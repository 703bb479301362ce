//! RTT samples without the peer's acknowledgement delay.
//!
//! Source: RFC 9002, section 5.3, as quinn-proto 0.11 computes it: `smoothed = (7 smoothed + adjusted) / 8`, where
//! `adjusted` is the sample less the delay that the peer reported. quinn tells a controller only `smoothed`, so `adjusted`
//! is recovered as `8 smoothed' - 7 smoothed`, to within the 8 ns that the division may drop. quinn updates its average after it
//! has told of the packets acknowledged, so what is recovered belongs to the acknowledgement before.
//!
//! *What it leaves out:* an acknowledgement that takes no sample repeats the average.
//! *How it was validated:* the unit tests below run quinn's formula forwards and this one back.

use std::time::Duration;

/// What to do about the time for which the peer holds an acknowledgement back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AckDelay {
    /// Take the sample that quinn has freed of the delay that the peer reported. It arrives one acknowledgement late.
    #[default]
    Removed,
    /// Take the time from sending to acknowledgement as it is.
    Included,
}

/// What quinn's estimator says at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Estimate {
    /// The average; the configured initial RTT before the first sample.
    pub smoothed: Duration,
    /// The smallest sample.
    pub min: Duration,
    /// The larger of average and newest sample.
    pub conservative: Duration,
}

/// Recovers samples from successive averages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Inversion {
    /// Nothing has been seen.
    #[default]
    Begin,
    /// The configured initial RTT stands where the average will be.
    Initial(Duration),
    /// The last average.
    Average(Duration),
}

impl Inversion {
    /// The newest sample that the average has taken in; none while it has taken none.
    pub(crate) fn observe(&mut self, now: Estimate) -> Option<Duration> {
        let sample = match *self {
            Self::Begin => None,
            Self::Initial(initial) if initial == now.smoothed => None,
            // The first sample is taken as it is, as is one after which the average stands where it was.
            Self::Initial(_) => Some(now.smoothed),
            Self::Average(last) => Some((8 * now.smoothed).saturating_sub(7 * last)),
        };
        *self = match sample {
            None => Self::Initial(now.smoothed),
            Some(_) => Self::Average(now.smoothed),
        };
        // quinn never adjusts a sample to below the smallest; beyond that range the estimator was another path's.
        sample.map(|sample| sample.max(now.min).min(now.conservative.max(now.min)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// quinn-proto's `RttEstimator`, in the parts that matter.
    struct Estimator {
        latest: Duration,
        smoothed: Option<Duration>,
        min: Duration,
    }

    impl Estimator {
        fn new() -> Self {
            Self { latest: 333 * MS, smoothed: None, min: 333 * MS }
        }

        fn update(&mut self, ack_delay: Duration, rtt: Duration) {
            self.latest = rtt;
            self.min = self.min.min(rtt);
            let Some(smoothed) = self.smoothed else {
                (self.smoothed, self.min) = (Some(rtt), rtt);
                return;
            };
            let adjusted = if self.min + ack_delay <= rtt { rtt - ack_delay } else { rtt };
            self.smoothed = Some((7 * smoothed + adjusted) / 8);
        }

        fn estimate(&self) -> Estimate {
            let smoothed = self.smoothed.unwrap_or(self.latest);
            Estimate { smoothed, min: self.min, conservative: smoothed.max(self.latest) }
        }
    }

    #[test]
    fn samples_come_back_without_the_delay_that_the_peer_reported() {
        let (mut estimator, mut inversion) = (Estimator::new(), Inversion::default());
        assert_eq!(inversion.observe(estimator.estimate()), None, "the initial RTT is no sample");
        assert_eq!(inversion.observe(estimator.estimate()), None);
        estimator.update(Duration::ZERO, 40 * MS);
        assert_eq!(inversion.observe(estimator.estimate()), Some(40 * MS));
        for step in 0..200_u32 {
            let (true_rtt, held) = ((40 + step % 60) * MS, (step * 7 % 26) * MS);
            estimator.update(held, true_rtt + held);
            let sample = inversion.observe(estimator.estimate()).expect("a sample was taken");
            assert!(sample.abs_diff(true_rtt) <= Duration::from_nanos(8), "{sample:?} for {true_rtt:?}");
        }
    }

    #[test]
    fn an_acknowledgement_without_a_sample_repeats_the_average() {
        let (mut estimator, mut inversion) = (Estimator::new(), Inversion::default());
        inversion.observe(estimator.estimate());
        estimator.update(Duration::ZERO, 40 * MS);
        inversion.observe(estimator.estimate());
        estimator.update(Duration::ZERO, 80 * MS);
        inversion.observe(estimator.estimate());
        assert_eq!(inversion.observe(estimator.estimate()), Some(45 * MS));
    }

    #[test]
    fn another_estimator_does_not_give_samples_out_of_its_range() {
        let mut inversion = Inversion::Average(900 * MS);
        let other = Estimate { smoothed: 20 * MS, min: 18 * MS, conservative: 21 * MS };
        assert_eq!(inversion.observe(other), Some(18 * MS));
        assert_eq!(inversion.observe(other), Some(20 * MS));
    }
}
