//! Smoothed RTT and retransmission timeout.
//!
//! Source: RFC 6298, section 2 and 5.5: the first sample R gives SRTT = R, RTTVAR = R/2; later ones
//! RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R| and then SRTT = 7/8 SRTT + 1/8 R; RTO = SRTT + max(G, 4 RTTVAR), within
//! [minimum, maximum]; each timeout doubles it until the next sample.
//!
//! libtorrent's rule (`utp_stream.cpp` and `sliding_average.hpp` of 2.0.8): the mean of all samples so far, then over sixteen, and two mean
//! deviations; each timeout in a row adds twice as much, from a second on. It holds back for less time than RFC 6298's, and runs out in vain more often.
//!
//! *What it leaves out:* Karn's rule (which samples are unambiguous is the transport's to know), and Linux's variation,
//! which stands beside its only user in `cede-tcp`.
//! *How it was validated:* the sequence of `tests/vectors/tcp.json`; unit tests below.

use cede_units::Duration;

/// How samples make a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RttRule {
    /// RFC 6298.
    #[default]
    Rfc6298,
    /// libtorrent's.
    Libtorrent,
}

/// Bounds and start of an estimator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RttConfig {
    /// The timeout before any sample (RFC 6298, 2.1: 1 s).
    pub initial_rto: Duration,
    /// The smallest timeout (RFC 6298, 2.4: 1 s; implementations 200 ms to 1 s).
    pub min_rto: Duration,
    /// The largest timeout (RFC 6298, 2.5: 60 s or more).
    pub max_rto: Duration,
    /// The clock's granularity G.
    pub granularity: Duration,
}

impl Default for RttConfig {
    /// RFC 6298's values with a granularity of 1 ms.
    fn default() -> Self {
        Self {
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_secs(1),
            max_rto: Duration::from_secs(60),
            granularity: Duration::from_millis(1),
        }
    }
}

/// SRTT, RTTVAR and the timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RttEstimator {
    config: RttConfig,
    rule: RttRule,
    /// SRTT and RTTVAR in 1/8 and 1/4 ns, so that the smoothing loses nothing.
    srtt8_ns: u64,
    rttvar4_ns: u64,
    min: Duration,
    latest: Duration,
    /// Samples taken, as far as they are counted ([`GAIN`]).
    samples: u8,
    backoff: u8,
    /// What `rto` answers, worked out where something changes: it is asked several times for each packet.
    rto: Duration,
}

/// Samples are clamped to this (a month): the scaled sums then fit.
const MAX_SAMPLE: Duration = Duration::from_secs(30 * 86_400);
/// The timeout is never doubled more often than this; the maximum has long been reached.
const MAX_BACKOFF: u8 = 32;
/// Samples that libtorrent's mean runs over.
const GAIN: u8 = 16;

impl RttEstimator {
    /// An estimator without a sample.
    #[must_use]
    pub const fn new(config: RttConfig) -> Self {
        Self {
            config,
            rule: RttRule::Rfc6298,
            srtt8_ns: 0,
            rttvar4_ns: 0,
            min: Duration::MAX,
            latest: Duration::ZERO,
            samples: 0,
            backoff: 0,
            rto: if config.initial_rto.as_nanos() < config.max_rto.as_nanos() {
                config.initial_rto
            } else {
                config.max_rto
            },
        }
    }

    /// The same by another rule than RFC 6298's.
    #[must_use]
    pub const fn with_rule(self, rule: RttRule) -> Self {
        Self { rule, ..self }
    }

    /// Takes an unambiguous sample and ends the backing off.
    pub fn update(&mut self, sample: Duration) {
        let sample = sample.min(MAX_SAMPLE);
        self.min = self.min.min(sample);
        self.latest = sample;
        self.update_ambiguous(sample);
    }

    /// Takes a sample of which it is not known which transmission it belongs to: it counts for the mean, and not for the smallest.
    pub fn update_ambiguous(&mut self, sample: Duration) {
        let sample = sample.min(MAX_SAMPLE);
        match self.rule {
            RttRule::Rfc6298 => self.smooth(sample.as_nanos()),
            RttRule::Libtorrent => self.slide(sample.as_nanos()),
        }
        self.samples = (self.samples + 1).min(GAIN);
        self.set_backoff(0);
    }

    fn smooth(&mut self, r: u64) {
        if !self.has_sample() {
            self.srtt8_ns = 8 * r;
            self.rttvar4_ns = 2 * r;
        } else {
            let error = (self.srtt8_ns / 8).abs_diff(r);
            self.rttvar4_ns = self.rttvar4_ns - self.rttvar4_ns / 4 + error;
            self.srtt8_ns = self.srtt8_ns - self.srtt8_ns / 8 + r;
        }
    }

    /// The mean of as many samples as there are, and of their distances from the means before them.
    fn slide(&mut self, r: u64) {
        let before = u64::from(self.samples.min(GAIN - 1));
        let mean = |of: u64, new: u64, weight: u64| of - of / weight + new / weight;
        if before > 0 {
            let error = (self.srtt8_ns / 8).abs_diff(r);
            self.rttvar4_ns = mean(self.rttvar4_ns, 4 * error, before);
        }
        self.srtt8_ns = mean(self.srtt8_ns, 8 * r, before + 1);
    }

    fn set_backoff(&mut self, backoff: u8) {
        self.backoff = backoff;
        let floor = if self.has_sample() { self.config.min_rto } else { Duration::ZERO };
        self.rto = self.backed_off(self.raw_rto().max(floor));
    }

    /// The timer ran out: double the timeout (RFC 6298, 5.5).
    pub fn back_off(&mut self) {
        self.set_backoff((self.backoff + 1).min(MAX_BACKOFF));
    }

    /// Ends the backing off without a sample, as an acknowledgement of new data under timestamps may.
    pub fn reset_backoff(&mut self) {
        self.set_backoff(0);
    }

    /// The smoothed RTT; zero before the first sample.
    #[must_use]
    pub const fn srtt(&self) -> Duration {
        Duration::from_nanos(self.srtt8_ns / 8)
    }

    /// The smoothed deviation; zero before the first sample.
    #[must_use]
    pub const fn rttvar(&self) -> Duration {
        Duration::from_nanos(self.rttvar4_ns / 4)
    }

    /// The smallest unambiguous sample so far.
    #[must_use]
    pub fn min(&self) -> Option<Duration> {
        (self.min < Duration::MAX).then_some(self.min)
    }

    /// The newest unambiguous sample.
    #[must_use]
    pub fn latest(&self) -> Option<Duration> {
        self.min().map(|_| self.latest)
    }

    /// True once there has been a sample.
    #[must_use]
    pub const fn has_sample(&self) -> bool {
        self.samples > 0
    }

    /// The timeout before bounds and doubling: SRTT + max(G, 4 RTTVAR), or 2 of them by libtorrent's rule; the initial one without a
    /// sample.
    #[must_use]
    pub fn raw_rto(&self) -> Duration {
        if !self.has_sample() {
            return self.config.initial_rto;
        }
        let variation = match self.rule {
            RttRule::Rfc6298 => self.rttvar4_ns,
            RttRule::Libtorrent => self.rttvar4_ns / 2,
        };
        self.srtt() + Duration::from_nanos(variation).max(self.config.granularity)
    }

    /// The timeout to set now.
    #[must_use]
    pub const fn rto(&self) -> Duration {
        self.rto
    }

    /// `timeout` doubled as often as the timer ran out in a row, up to the maximum: for those who derive theirs by another
    /// rule from the smoothed RTT. By libtorrent's rule a second is added instead, doubled with each timeout in a row after the first.
    #[must_use]
    pub fn backed_off(&self, timeout: Duration) -> Duration {
        let backed_off = match (self.rule, self.backoff) {
            (RttRule::Libtorrent, 1..) => timeout + Duration::from_secs(1 << (self.backoff - 1)),
            _ => timeout * (1_u64 << self.backoff),
        };
        backed_off.min(self.config.max_rto)
    }

    /// Before the first sample: a new initial timeout, of at least this, not doubled (RFC 6298, 5.7, after a lost SYN).
    pub fn raise_initial_rto(&mut self, least: Duration) {
        if !self.has_sample() {
            self.config.initial_rto = self.config.initial_rto.max(least);
            self.set_backoff(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smoothing_has_the_vectors_values() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/vectors/tcp.json")).unwrap();
        let mut rtt = RttEstimator::new(RttConfig { min_rto: Duration::ZERO, ..RttConfig::default() });
        let mut floored = RttEstimator::new(RttConfig::default());
        for row in vectors["rfc6298_ms[sample,srtt,rttvar,raw_rto,rto_min1000]"].as_array().unwrap() {
            let number = |i: usize| row[i].as_f64().unwrap();
            let sample = Duration::from_millis(number(0) as u64);
            rtt.update(sample);
            floored.update(sample);
            let found = [rtt.srtt(), rtt.rttvar(), rtt.rto(), floored.rto()].map(Duration::as_millis_f64);
            for (i, found) in found.into_iter().enumerate() {
                assert!((found - number(i + 1)).abs() < 1e-5, "{row}: {found}");
            }
        }
    }

    #[test]
    fn timeouts_double_up_to_the_maximum_and_a_sample_ends_it() {
        let mut rtt = RttEstimator::new(RttConfig::default());
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_secs(2));
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Duration::from_secs(60));
        rtt.update(Duration::from_millis(100));
        assert_eq!(rtt.rto(), Duration::from_secs(1));
    }

    #[test]
    fn a_lost_syn_makes_three_seconds_of_the_first_timeout_only() {
        let mut rtt = RttEstimator::new(RttConfig::default());
        rtt.back_off();
        rtt.raise_initial_rto(Duration::from_secs(3));
        assert_eq!(rtt.rto(), Duration::from_secs(3));
        rtt.back_off();
        assert_eq!(rtt.backed_off(Duration::from_millis(250)), Duration::from_millis(500));
        rtt.update(Duration::from_millis(100));
        rtt.raise_initial_rto(Duration::from_secs(3));
        assert_eq!(rtt.rto(), Duration::from_secs(1));
    }

    #[test]
    fn libtorrents_timeout_is_the_mean_and_two_deviations() {
        let bounds =
            RttConfig { min_rto: Duration::ZERO, granularity: Duration::ZERO, ..RttConfig::default() };
        let mut rtt = RttEstimator::new(bounds).with_rule(RttRule::Libtorrent);
        // Means of 100, 150 and 200 ms; distances of 100 and 150 ms from those before.
        for (sample_ms, rto_ms) in [(100, 100), (200, 150 + 2 * 100), (300, 200 + 2 * 125)] {
            rtt.update(Duration::from_millis(sample_ms));
            assert_eq!(rtt.rto(), Duration::from_millis(rto_ms));
        }
        // One second more, then two; no factor.
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_millis(1450));
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_millis(2450));
        (0..32).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), Duration::from_secs(60));
        // What is new counts a sixteenth, once there are so many.
        (0..300).for_each(|_| rtt.update(Duration::from_millis(320)));
        rtt.update(Duration::ZERO);
        assert_eq!(rtt.srtt().as_millis(), 300);
    }

    #[test]
    fn what_may_be_of_another_transmission_counts_for_the_mean_alone() {
        let mut rtt = RttEstimator::new(RttConfig::default()).with_rule(RttRule::Libtorrent);
        rtt.update_ambiguous(Duration::from_millis(1));
        assert_eq!((rtt.srtt(), rtt.min(), rtt.latest()), (Duration::from_millis(1), None, None));
        rtt.update(Duration::from_millis(3));
        let sure = Some(Duration::from_millis(3));
        assert_eq!((rtt.srtt(), rtt.min(), rtt.latest()), (Duration::from_millis(2), sure, sure));
    }

    #[test]
    fn the_granularity_bounds_the_variance_term() {
        let config = RttConfig { min_rto: Duration::ZERO, ..RttConfig::default() };
        let mut rtt = RttEstimator::new(config);
        for _ in 0..200 {
            rtt.update(Duration::from_millis(50));
        }
        assert_eq!(rtt.rto(), Duration::from_millis(51));
        assert_eq!(
            (rtt.min(), rtt.latest()),
            (Some(Duration::from_millis(50)), Some(Duration::from_millis(50)))
        );
    }

    #[test]
    fn absurd_samples_do_not_overflow() {
        let mut rtt = RttEstimator::new(RttConfig::default());
        for sample in [Duration::MAX, Duration::ZERO, Duration::MAX] {
            rtt.update(sample);
        }
        assert_eq!(rtt.rto(), Duration::from_secs(60));
    }
}
