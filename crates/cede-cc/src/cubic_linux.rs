//! What Linux's CUBIC does otherwise than RFC 9438.
//!
//! Source: the behaviour of Linux's `net/ipv4/tcp_cubic.c` (5.6 to 6.18), written anew from its description:
//! * the cubic is looked up the *smallest* RTT ahead, where the RFC looks a smoothed one ahead, which has the queue in it;
//! * Reno's estimate grows by a packet in 15/8 windows for good, where the RFC lets it grow as Reno does from the last maximum on,
//!   and the window closes up on it within a round trip;
//! * before any loss, and after a timeout, the window grows by a twentieth per round trip at least;
//! * slow start ends by HyStart, not HyStart++: from 16 packets on, as soon as acknowledgements less than 2 ms apart have come for
//!   half of the smallest RTT, or the smallest of a round's RTTs is an eighth (4 to 16 ms) above it;
//! * after idleness the window is halved for each timeout that has passed, not below the initial one, where the RFC's is the initial one
//!   after the first, and three quarters of it come back in slow start.
//!
//! *What it leaves out:* whole packets and jiffies; the trains' allowance of a millisecond for hosts that hold acknowledgements back.
//! *How it was validated:* unit tests below; beside the kernel's own (`cede lab kernel`, `docs/validation.md`).

use crate::Feedback;
use crate::hystart::HyStartConfig;
use cede_units::{Duration, Instant};

/// Acknowledgements that a packet of growth costs at least; at most before any loss; and past the cubic, in windows.
const ACKS_MIN: f64 = 2.0;
const ACKS_MAX_UNKNOWN: f64 = 20.0;
const WINDOWS_ON_PLATEAU: f64 = 100.0;
/// Samples in this time after an epoch begins belong to the queue before it.
const STALE: Duration = Duration::from_secs(1);
/// The smallest RTT, and HyStart's round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linux {
    hystart: HyStartConfig,
    /// Windows of acknowledgements for a packet of Reno's estimate: `beta_scale` over 8.
    reno_windows: f64,
    rtt_min: Option<Duration>,
    round_end: u64,
    round_start: Instant,
    train_end: Instant,
    round_min: Option<Duration>,
    samples: u32,
}

/// `beta_scale` over 8 where a loss leaves the part `beta`, in the kernel's whole numbers: 15/8 where that is 717/1024.
fn reno_windows(beta: f64) -> f64 {
    let beta = (1024.0 * beta + 0.5) as u64;
    let scale = 8 * (1024 + beta) / 3 / 1024_u64.saturating_sub(beta).max(1);
    scale as f64 / 8.0
}

impl Linux {
    /// Where a loss leaves the part `beta`.
    pub(crate) fn new(hystart: HyStartConfig, beta: f64) -> Self {
        Self {
            hystart,
            reno_windows: reno_windows(beta),
            rtt_min: None,
            round_end: 0,
            round_start: Instant::ZERO,
            train_end: Instant::ZERO,
            round_min: None,
            samples: 0,
        }
    }

    /// Takes an acknowledgement's RTT; `epoch` is how old the cubic is.
    pub(crate) fn sample(&mut self, feedback: &Feedback<'_>, epoch: Option<Duration>) {
        if epoch.is_none_or(|age| age >= STALE)
            && let Some(rtt) = feedback.rtt
        {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// How far ahead the cubic is looked up.
    pub(crate) fn ahead(&self) -> Duration {
        self.rtt_min.unwrap_or_default()
    }

    /// Packets that `acked` packets add to Reno's estimate.
    pub(crate) fn reno_step(&self, acked: f64, cwnd: f64) -> f64 {
        acked / (cwnd * self.reno_windows)
    }

    /// What is left of a window after idleness of so many timeouts, but for the initial one at least (`tcp_cwnd_restart`).
    pub(crate) fn after_idleness(cwnd: f64, timeouts: u32) -> f64 {
        cwnd / f64::from(1_u32 << timeouts.min(31))
    }

    /// How far it comes back in slow start (`tcp_current_ssthresh`).
    pub(crate) fn threshold_after_idleness(cwnd: f64) -> f64 {
        0.75 * cwnd
    }

    /// The window after `acked` packets, where the cubic says `target` and Reno's estimate `reno`.
    pub(crate) fn grown(cwnd: f64, acked: f64, target: f64, reno: f64, is_lossless: bool) -> f64 {
        let acks_to = |goal: f64| cwnd / (goal - cwnd);
        let mut acks = if target > cwnd { acks_to(target) } else { WINDOWS_ON_PLATEAU * cwnd };
        if is_lossless {
            acks = acks.min(ACKS_MAX_UNKNOWN);
        }
        if reno > cwnd {
            acks = acks.min(acks_to(reno));
        }
        cwnd + acked / acks.max(ACKS_MIN)
    }

    /// Slow start is over: HyStart.
    pub(crate) fn ends_slow_start(&mut self, feedback: &Feedback<'_>, packets: f64) -> bool {
        if feedback.acked.last().is_some_and(|packet| packet.number >= self.round_end) {
            self.round_end = feedback.next_number;
            (self.round_start, self.train_end) = (feedback.now, feedback.now);
            (self.round_min, self.samples) = (None, 0);
        }
        let (Some(rtt_min), true) = (self.rtt_min, packets >= self.hystart.low_window) else { return false };
        // Neither is judged without the other being kept up.
        let by_train = self.has_train(feedback.now, rtt_min);
        self.has_delay(feedback, rtt_min) || by_train
    }

    fn has_train(&mut self, now: Instant, rtt_min: Duration) -> bool {
        if now.since(self.train_end) > self.hystart.train_gap {
            return false;
        }
        self.train_end = now;
        now.since(self.round_start) > rtt_min / 2
    }

    fn has_delay(&mut self, feedback: &Feedback<'_>, rtt_min: Duration) -> bool {
        let Some(rtt) = feedback.rtt else { return false };
        let least = self.round_min.map_or(rtt, |least| least.min(rtt));
        self.round_min = Some(least);
        if self.samples < self.hystart.samples {
            self.samples += 1;
            return false;
        }
        least > rtt_min + self.hystart.threshold(rtt_min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, loss, path, timeout};

    fn usual() -> Linux {
        Linux::new(HyStartConfig::default(), 0.7)
    }

    #[test]
    fn renos_estimate_follows_from_what_a_loss_leaves() {
        assert_eq!(reno_windows(0.7), 15.0 / 8.0);
        assert_eq!(reno_windows(0.5), 1.0, "Reno itself");
        assert_eq!(reno_windows(0.8), 23.0 / 8.0);
        assert!((usual().reno_step(15.0, 8.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn hystarts_constants_can_be_set() {
        let of = |config| Linux::new(config, 0.7);
        let config = HyStartConfig::default();
        let gap = Duration::from_millis(3);
        assert_eq!(round(&mut of(HyStartConfig { train_gap: gap, ..config }), 0, 2_100, 40), Some(10));
        assert_eq!(round(&mut of(HyStartConfig { low_window: 21.0, ..config }), 0, 1_200, 40), None);
        let mut early = of(HyStartConfig { samples: 3, ..config });
        assert_eq!(round(&mut early, 0, 2_100, 80), None);
        assert_eq!(round(&mut early, 20, 2_100, 91), Some(3));
    }

    /// Acknowledgements of one round, `gap_us` apart and with this RTT; after how many slow start was over.
    fn round(linux: &mut Linux, start: u64, gap_us: u64, rtt_ms: u64) -> Option<u64> {
        (0..20).find(|k| {
            let mut one = ack(start + k, 1000);
            one.feedback.now = Instant::from_micros(1_000_000 + start * 10_000 + k * gap_us);
            one.feedback.rtt = Some(Duration::from_millis(rtt_ms));
            one.feedback.next_number = start + 20;
            linux.sample(&one.feedback(), None);
            linux.ends_slow_start(&one.feedback(), 20.0)
        })
    }

    #[test]
    fn a_train_of_half_the_smallest_rtt_ends_slow_start() {
        // 20 ms of acknowledgements 1.2 ms apart: more than 20 with the 17th gap.
        assert_eq!(round(&mut usual(), 0, 1_200, 40), Some(17));
        assert_eq!(round(&mut usual(), 0, 2_100, 40), None, "too far apart for a train");
    }

    #[test]
    fn the_ninth_sample_of_a_round_an_eighth_above_the_smallest_ends_slow_start() {
        let mut linux = usual();
        assert_eq!(round(&mut linux, 0, 2_100, 80), None);
        assert_eq!(round(&mut linux, 20, 2_100, 90), None, "a rise of exactly an eighth");
        assert_eq!(round(&mut linux, 40, 2_100, 91), Some(8));
    }

    #[test]
    fn a_small_window_is_left_alone() {
        let mut linux = usual();
        let mut one = ack(0, 1000);
        one.feedback.rtt = Some(Duration::from_millis(500));
        linux.sample(&one.feedback(), None);
        assert!((0..50).all(|_| !linux.ends_slow_start(&one.feedback(), 15.0)));
    }

    #[test]
    fn samples_right_after_an_epoch_began_do_not_lower_the_smallest_rtt() {
        let mut linux = usual();
        let mut one = ack(0, 1000);
        one.feedback.rtt = Some(Duration::from_millis(80));
        linux.sample(&one.feedback(), None);
        one.feedback.rtt = Some(Duration::from_millis(50));
        linux.sample(&one.feedback(), Some(Duration::from_millis(999)));
        assert_eq!(linux.ahead(), Duration::from_millis(80));
        linux.sample(&one.feedback(), Some(STALE));
        assert_eq!(linux.ahead(), Duration::from_millis(50));
    }

    #[test]
    fn growth_per_acknowledgement() {
        let grown = |target, reno, lossless| Linux::grown(100.0, 1.0, target, reno, lossless) - 100.0;
        assert!((grown(110.0, 90.0, false) - 0.1).abs() < 1e-9, "ten packets in a round trip");
        assert!((grown(110.0, 120.0, false) - 0.2).abs() < 1e-9, "Reno's estimate is further");
        assert!((grown(500.0, 0.0, false) - 0.5).abs() < 1e-9, "half a packet at most");
        assert!((grown(90.0, 0.0, false) - 1e-4).abs() < 1e-9, "past its plateau, hardly");
        assert!((grown(90.0, 0.0, true) - 0.05).abs() < 1e-9, "before any loss");
    }

    #[test]
    fn idleness_halves_the_window_for_each_timeout_down_to_the_initial_one() {
        let after = |timeouts: u32| {
            let path = crate::Path { initial_cwnd_bytes: 10_000, ..path(1000) };
            let mut cubic = crate::registry::build("cubic", &linux_rules(), &path).unwrap();
            for number in 0..70 {
                cubic.on_feedback(&ack(number, 1000).feedback());
            }
            cubic.on_feedback(&loss(71, 72).feedback());
            let mut idle = timeout(0, timeouts);
            idle.idle = true;
            let before = cubic.snapshot().cwnd_bytes;
            let after = cubic.on_timeout(&idle).cwnd_bytes;
            assert_eq!(cubic.snapshot().ssthresh_bytes, Some(before), "that of the loss is more");
            (before as u64 / after, after)
        };
        assert_eq!([1, 2].map(|timeouts| after(timeouts).0), [2, 4]);
        assert_eq!(after(9).1, 10_000, "the initial one");
    }

    #[test]
    fn after_idleness_three_quarters_of_a_window_beyond_the_threshold_come_back() {
        let mut cubic = crate::registry::build("cubic", &linux_rules(), &path(1000)).unwrap();
        cubic.on_timeout(&timeout(4_000, 1));
        let mut number = 0;
        while cubic.allowance().cwnd_bytes < 16_000 {
            number += 1;
            cubic.on_feedback(&ack(number, 1000).feedback());
        }
        let mut idle = timeout(0, 1);
        idle.idle = true;
        cubic.on_timeout(&idle);
        let threshold = cubic.snapshot().ssthresh_bytes.unwrap();
        assert!((threshold - 12_000.0).abs() < 20.0, "{threshold}");
    }

    fn linux_rules() -> crate::Params {
        crate::Params::new().with("rules", crate::ParamValue::Word("linux".into()))
    }
}
