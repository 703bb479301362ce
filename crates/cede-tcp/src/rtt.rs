//! The retransmission timeout.
//!
//! Source: RFC 6298, sections 2 and 5 ([`cede_cc::instruments::RttEstimator`]); for [`RtoProfile::Linux`] the behaviour of
//! Linux 6.12 (`tcp_rtt_estimator`), which has the smoothed RTT and the backoff in common with it, and a variation of
//! its own.
//!
//! **What it leaves out.** RFC 7323 appendix G (several samples per round trip weigh less each).
//!
//! **How it was validated.** The vectors of both profiles, five and seven samples long, in the tests below.

use crate::config::{Config, RtoProfile};
use cede_cc::instruments::{RttConfig, RttEstimator};
use cede_units::Duration;

/// RFC 6298 (5.7): the timeout when data transmission begins after a lost SYN.
const RTO_AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// A connection's RTT estimate and its timeout.
#[derive(Clone, Debug)]
pub(crate) struct RetransmissionTimeout {
    rtt: RttEstimator,
    linux: Option<LinuxVariation>,
}

impl RetransmissionTimeout {
    pub(crate) fn new(config: &Config) -> Self {
        let rtt = RttEstimator::new(RttConfig {
            initial_rto: config.rto_initial,
            min_rto: config.rto_min,
            max_rto: config.rto_max,
            granularity: Duration::from_nanos(1),
        });
        let linux = match config.rto_profile {
            RtoProfile::Rfc6298 => None,
            RtoProfile::Linux => Some(LinuxVariation::new(config.rto_min)),
        };
        Self { rtt, linux }
    }

    /// Takes in a sample. `end_of_round` says that everything has been acknowledged that was outstanding when this
    /// last was true.
    pub(crate) fn sample(&mut self, rtt: Duration, end_of_round: bool) {
        if let Some(linux) = &mut self.linux {
            let smoothed = self.rtt.has_sample().then(|| self.rtt.srtt());
            linux.sample(rtt, smoothed, end_of_round);
        }
        self.rtt.update(rtt);
    }

    /// RFC 6298 (5.5).
    pub(crate) fn back_off(&mut self) {
        self.rtt.back_off();
    }

    /// RFC 6298 (5.7): the SYN had to be sent again and gave no sample.
    pub(crate) fn syn_was_lost(&mut self) {
        self.rtt.raise_initial_rto(RTO_AFTER_LOST_SYN);
    }

    /// The timeout, backoff included.
    pub(crate) fn rto(&self) -> Duration {
        match &self.linux {
            Some(linux) if self.rtt.has_sample() => self.rtt.backed_off(self.rtt.srtt() + linux.rttvar),
            _ => self.rtt.rto(),
        }
    }

    /// SRTT; zero before the first sample.
    pub(crate) const fn smoothed(&self) -> Duration {
        self.rtt.srtt()
    }

    /// RTTVAR, or Linux's counterpart.
    pub(crate) fn variation(&self) -> Duration {
        self.linux.as_ref().map_or_else(|| self.rtt.rttvar(), |linux| linux.rttvar)
    }
}

/// Linux's variation of the RTT: it rises at once, decays once per round trip, and has the floor in it.
#[derive(Clone, Debug)]
struct LinuxVariation {
    min: Duration,
    /// Four times the mean deviation, and its largest value in this round.
    mdev4: Duration,
    mdev4_max: Duration,
    /// What is added to the smoothed RTT.
    rttvar: Duration,
}

impl LinuxVariation {
    const fn new(min: Duration) -> Self {
        Self { min, mdev4: Duration::ZERO, mdev4_max: min, rttvar: Duration::ZERO }
    }

    /// `smoothed` is the RTT before this sample.
    fn sample(&mut self, rtt: Duration, smoothed: Option<Duration>, end_of_round: bool) {
        let Some(smoothed) = smoothed else {
            self.mdev4 = rtt * 2;
            self.rttvar = self.mdev4.max(self.min);
            self.mdev4_max = self.rttvar;
            return;
        };
        self.smooth(rtt, smoothed);
        self.mdev4_max = self.mdev4_max.max(self.mdev4);
        self.rttvar = self.rttvar.max(self.mdev4_max);
        if end_of_round {
            self.rttvar = self.rttvar - (self.rttvar - self.mdev4_max) / 4;
            self.mdev4_max = self.min;
        }
    }

    fn smooth(&mut self, rtt: Duration, smoothed: Duration) {
        let deviation = smoothed.abs_diff(rtt);
        let mdev = self.mdev4 / 4;
        // A sample far below the average is good news, and must not raise the variation as bad news does.
        self.mdev4 = if rtt < smoothed && deviation > mdev {
            self.mdev4 + (deviation - mdev) / 8
        } else {
            self.mdev4 - mdev + deviation
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator(profile: RtoProfile, rto_min_ms: u64) -> RetransmissionTimeout {
        let rto_min = Duration::from_millis(rto_min_ms);
        RetransmissionTimeout::new(&Config { rto_profile: profile, rto_min, ..Config::default() })
    }

    #[test]
    fn check_1_rfc_6298_follows_its_vectors() {
        let vectors = [
            (100, 100.0, 50.0, 300.0),
            (100, 100.0, 37.5, 250.0),
            (200, 112.5, 53.125, 325.0),
            (100, 110.9375, 42.96875, 282.8125),
            (50, 103.320_312, 47.460_938, 293.164_062),
        ];
        let (mut bare, mut floored) =
            (estimator(RtoProfile::Rfc6298, 0), estimator(RtoProfile::Rfc6298, 1000));
        for (sample, srtt, rttvar, rto) in vectors {
            bare.sample(Duration::from_millis(sample), false);
            floored.sample(Duration::from_millis(sample), false);
            let close = |span: Duration, ms: f64| (span.as_millis_f64() - ms).abs() < 1e-5;
            assert!(
                close(bare.smoothed(), srtt) && close(bare.variation(), rttvar) && close(bare.rto(), rto)
            );
            assert_eq!(floored.rto(), Duration::from_secs(1));
        }
    }

    #[test]
    fn check_1_linux_rto_us_follows_its_vectors() {
        let vectors = [
            (50_000, false, 50_000, 25_000, 200_000, 250_000),
            (50_000, true, 50_000, 18_750, 200_000, 250_000),
            (60_000, false, 51_250, 16_562, 200_000, 251_250),
            (120_000, false, 59_843, 29_609, 200_000, 259_843),
            (50_000, true, 58_613, 24_668, 200_000, 258_613),
            (50_000, true, 57_536, 20_654, 200_000, 257_536),
            (50_000, true, 56_594, 17_374, 200_000, 256_594),
        ];
        let mut estimator = estimator(RtoProfile::Linux, 200);
        for (sample, end_of_round, srtt, mdev, rttvar, rto) in vectors {
            estimator.sample(Duration::from_micros(sample), end_of_round);
            // The kernel drops fractions of a microsecond at every step.
            let close = |span: Duration, us: u64| span.as_micros().abs_diff(us) <= 2;
            assert!(close(estimator.smoothed(), srtt), "{estimator:?}");
            assert!(close(estimator.linux.as_ref().unwrap().mdev4 / 4, mdev), "{estimator:?}");
            assert!(close(estimator.variation(), rttvar) && close(estimator.rto(), rto), "{estimator:?}");
        }
    }

    #[test]
    fn backoff_doubles_up_to_the_ceiling_and_ends_with_a_sample() {
        let mut estimator = estimator(RtoProfile::Rfc6298, 1000);
        let mut seen = Duration::ZERO;
        for seconds in [1, 2, 4, 8, 16, 32, 64, 120, 120] {
            seen = estimator.rto();
            assert_eq!(seen, Duration::from_secs(seconds));
            estimator.back_off();
        }
        assert_eq!(seen, Duration::from_secs(120));
        (0..200).for_each(|_| estimator.back_off());
        assert_eq!(estimator.rto(), Duration::from_secs(120));
        estimator.sample(Duration::from_millis(500), false);
        assert_eq!(estimator.rto(), Duration::from_millis(1500));
    }

    #[test]
    fn a_lost_syn_makes_three_seconds() {
        let mut estimator = estimator(RtoProfile::Rfc6298, 1000);
        estimator.back_off();
        estimator.syn_was_lost();
        assert_eq!(estimator.rto(), Duration::from_secs(3));
    }
}
