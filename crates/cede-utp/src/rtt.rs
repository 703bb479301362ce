//! Round-trip time and retransmission timeout.
//!
//! Source: RFC 6298. Samples come from packets that were sent once (Karn's rule).
//!
//! **What it leaves out.** The clock granularity G of rule 2.2: the clock steps in nanoseconds. libutp's integer
//! milliseconds and libtorrent's average of sixteen samples: the limits of the timeout, not its digits, are what a
//! peer can tell.
//!
//! **How it was validated.** Samples of 100, 100, 200, 100 and 50 ms give the values of the RFC's recurrence.

use cede_units::Duration;

/// The estimator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    srtt: Option<Duration>,
    variation: Duration,
    latest: Duration,
    min: Duration,
    initial_rto: Duration,
    rto_bounds: (Duration, Duration),
}

impl RttEstimator {
    /// An estimator without samples; timeouts lie within `rto_bounds`.
    pub fn new(initial_rto: Duration, rto_bounds: (Duration, Duration)) -> Self {
        Self {
            srtt: None,
            variation: Duration::ZERO,
            latest: Duration::ZERO,
            min: Duration::MAX,
            initial_rto,
            rto_bounds,
        }
    }

    /// Rules 2.2 and 2.3.
    #[inline]
    pub fn sample(&mut self, rtt: Duration) {
        (self.latest, self.min) = (rtt, self.min.min(rtt));
        match self.srtt {
            None => (self.srtt, self.variation) = (Some(rtt), rtt / 2),
            Some(srtt) => {
                self.variation = (self.variation * 3 + srtt.abs_diff(rtt)) / 4;
                self.srtt = Some((srtt * 7 + rtt) / 8);
            }
        }
    }

    /// The smoothed RTT; zero before the first sample.
    pub fn srtt(&self) -> Duration {
        self.srtt.unwrap_or_default()
    }

    /// The RTT variation.
    pub fn variation(&self) -> Duration {
        self.variation
    }

    /// The latest sample; zero before the first.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// The smallest sample, where there is one.
    pub fn min(&self) -> Option<Duration> {
        self.srtt.map(|_| self.min)
    }

    /// The timeout after `backoff` expiries in a row.
    pub fn rto(&self, backoff: u32) -> Duration {
        let (min, max) = self.rto_bounds;
        let single = self.srtt.map_or(self.initial_rto, |srtt| srtt + self.variation * 4);
        (single.max(min) * (1_u64 << backoff.min(32))).min(max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recurrence_of_rfc_6298_is_followed() {
        let ms = Duration::from_millis;
        let mut rtt = RttEstimator::new(ms(1000), (ms(500), ms(60_000)));
        assert_eq!((rtt.rto(0), rtt.rto(2), rtt.rto(40)), (ms(1000), ms(4000), ms(60_000)));
        for sample in [100, 100, 200, 100, 50] {
            rtt.sample(ms(sample));
        }
        assert_eq!(rtt.srtt(), Duration::from_nanos(103_320_312));
        assert_eq!(rtt.variation(), Duration::from_nanos(47_460_937));
        assert_eq!(rtt.rto(0), ms(500));
        assert_eq!(rtt.min(), Some(ms(50)));
    }
}
