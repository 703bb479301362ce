//! BBR's model of the path: bottleneck bandwidth, round-trip propagation time, rounds, whether the pipe is full, and how
//! far acknowledgements are aggregated.
//!
//! Source: draft-cardwell-iccrg-bbr-congestion-control-00, section 4.1; `bbr_update_model` and what it calls in Linux.
//!
//! *What it leaves out, how it was validated:* see `mod.rs`, which walks through the modes on this model.

use super::params::Tuning;
use crate::instruments::{DeliverySample, WindowedMax, WindowedMin};
use crate::{Feedback, PacketFact};
use cede_units::{Duration, Instant, Rate};

/// A sample that spans less than the smallest RTT of this long is no sample (`tcp_rate_gen`, `tcp_min_rtt_wlen`).
const SHORTEST_INTERVAL_WINDOW: Duration = Duration::from_secs(300);
/// Acknowledgement aggregation, as in Linux since 5.1: the epoch's length in octets. (Linux keeps two maxima of five rounds each, where
/// here one of ten is.)
const EXTRA_ACKED_EPOCH_BYTES: f64 = (1 << 20) as f64 * 1448.0;

/// What an acknowledgement told the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Lesson {
    /// The acknowledgement begins a round.
    pub round_start: bool,
    /// The newest packet acknowledged left while data was lacking.
    pub app_limited: bool,
}

/// The newest packet acknowledged, by departure.
fn newest<'a>(feedback: &Feedback<'a>) -> Option<&'a PacketFact> {
    feedback.acked.iter().max_by_key(|packet| (packet.sent_at, packet.number))
}

/// See the file's head.
#[derive(Clone, Debug)]
pub(super) struct Model {
    tuning: Tuning,
    bandwidth: WindowedMax,
    round: u64,
    next_round_delivered: u64,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    shortest_interval: WindowedMin,
    full_bandwidth: f64,
    full_rounds: u32,
    full: bool,
    /// What left before this was delivered, and at or after the instant, counts as limited by the application.
    limited_until: (u64, Instant),
    extra_acked: WindowedMax,
    epoch_start: Instant,
    epoch_bytes: f64,
}

impl Model {
    pub(super) fn new(tuning: &Tuning) -> Self {
        Self {
            tuning: *tuning,
            bandwidth: WindowedMax::new(tuning.bandwidth_rounds),
            round: 0,
            next_round_delivered: 0,
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            shortest_interval: WindowedMin::new(SHORTEST_INTERVAL_WINDOW.as_nanos()),
            full_bandwidth: 0.0,
            full_rounds: 0,
            full: false,
            limited_until: (0, Instant::NEVER),
            extra_acked: WindowedMax::new(tuning.aggregation_rounds),
            epoch_start: Instant::ZERO,
            epoch_bytes: 0.0,
        }
    }

    /// The bottleneck's bandwidth; zero before the first sample.
    pub(super) fn bandwidth(&self) -> Rate {
        Rate::from_bits_per_sec(self.bandwidth.get().unwrap_or(0))
    }

    /// The round-trip propagation time.
    pub(super) const fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    pub(super) const fn is_full(&self) -> bool {
        self.full
    }

    /// Section 4.1.1: rounds and bandwidth.
    pub(super) fn take_delivery(&mut self, feedback: &Feedback<'_>) -> Lesson {
        if let Some(rtt) = feedback.rtt {
            self.shortest_interval.update(feedback.now.as_nanos(), rtt.as_nanos());
        }
        let Some(newest) = newest(feedback) else { return Lesson::default() };
        let sample = DeliverySample::of(feedback.now, feedback.delivered_bytes, newest);
        let too_short = self.shortest_interval.get().is_some_and(|least| sample.interval.as_nanos() < least);
        if sample.interval.is_zero() || too_short {
            return Lesson::default();
        }
        let (until, from) = self.limited_until;
        let drained = newest.record.delivered_bytes < until && newest.sent_at >= from;
        let app_limited = sample.app_limited || drained;
        let round_start = newest.record.delivered_bytes >= self.next_round_delivered;
        if round_start {
            self.restart_round(feedback.delivered_bytes);
            self.round += 1;
        }
        let rate = sample.rate();
        if !app_limited || rate >= self.bandwidth() {
            self.bandwidth.update(self.round, rate.bits_per_sec());
        }
        Lesson { round_start, app_limited }
    }

    /// The present round ends with the first packet that leaves from now on.
    pub(super) const fn restart_round(&mut self, delivered_bytes: u64) {
        self.next_round_delivered = delivered_bytes;
    }

    /// What leaves from now on until everything under way has been delivered does not show what the path can do.
    pub(super) const fn limit_until_delivered(&mut self, feedback: &Feedback<'_>) {
        let until = feedback.delivered_bytes.saturating_add(feedback.in_flight_bytes);
        let from =
            if self.limited_until.0 > feedback.delivered_bytes { self.limited_until.1 } else { feedback.now };
        self.limited_until = (until, from);
    }

    /// Section 4.3.2.2, once per round that the application did not limit: the pipe is full once bandwidth has grown by less than a
    /// quarter in each of three rounds.
    pub(super) fn check_full(&mut self, lesson: Lesson) {
        if self.full || !lesson.round_start || lesson.app_limited {
            return;
        }
        let bandwidth = self.bandwidth().bits_per_sec() as f64;
        if bandwidth >= self.full_bandwidth * self.tuning.full_growth {
            self.full_bandwidth = bandwidth;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= self.tuning.full_rounds;
    }

    /// After a timeout, and after a recovery in vain, growth is judged anew: three more rounds without it are asked for.
    pub(super) const fn forget_growth(&mut self) {
        self.full_bandwidth = 0.0;
    }

    /// Section 4.1.2: takes an RTT sample; true where the estimate had not been lowered or renewed for `window`.
    pub(super) fn take_rtt(&mut self, feedback: &Feedback<'_>, window: Duration) -> bool {
        let expired = feedback.now > self.min_rtt_at + window;
        if let Some(rtt) = feedback.rtt
            && (expired || self.min_rtt.is_none_or(|least| rtt < least))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = feedback.now;
        }
        expired
    }

    /// The estimate has just been measured with a short queue.
    pub(super) const fn renew_min_rtt(&mut self, now: Instant) {
        self.min_rtt_at = now;
    }

    /// How many octets more than bandwidth predicts have been acknowledged since the epoch began: a receiver or link that
    /// gathers acknowledgements lets that many be outstanding without a queue.
    pub(super) fn take_aggregation(&mut self, feedback: &Feedback<'_>, cwnd: f64) {
        let rate = self.bandwidth().bits_per_sec() as f64 / 8.0;
        let expected = rate * feedback.now.since(self.epoch_start).as_secs_f64();
        let too_long = self.epoch_bytes + feedback.acked_bytes as f64 >= EXTRA_ACKED_EPOCH_BYTES;
        let restart = self.epoch_bytes <= expected || too_long;
        if restart {
            self.epoch_bytes = 0.0;
            self.epoch_start = feedback.now;
        }
        let expected = if restart { 0.0 } else { expected };
        self.epoch_bytes += feedback.acked_bytes as f64;
        let extra = (self.epoch_bytes - expected).min(cwnd);
        self.extra_acked.update(self.round, extra as u64);
    }

    /// Octets to allow for aggregation.
    pub(super) fn extra_acked(&self) -> f64 {
        let most = self.bandwidth().bits_per_sec() as f64 / 8.0 * self.tuning.aggregation_time.as_secs_f64();
        (self.extra_acked.get().unwrap_or(0) as f64).min(most)
    }

    /// An idle connection goes on: what was aggregated before says nothing.
    pub(super) const fn restart_epoch(&mut self, now: Instant) {
        self.epoch_start = now;
        self.epoch_bytes = 0.0;
    }
}
