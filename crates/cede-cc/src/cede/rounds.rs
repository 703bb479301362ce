//! What each round trip showed: the queue, the losses, and the rate that was delivered.
//!
//! A round ends with the first acknowledgement of a packet that was sent after it had begun. Its queue is the smallest of
//! its samples, which leaves out jitter, batches and delayed acknowledgements; its peak is the largest.
//!
//! Source: of this project; rounds as in LEDBAT++ and BBR.
//!
//! *What it leaves out:* rounds of a flow that has not enough to send show no rate.
//! *How it was validated:* unit tests below; by the controller.

use crate::Feedback;
use crate::instruments::{DeliverySample, Round, WindowedMax, WindowedMin};
use cede_units::Rate;

/// Rounds over which the delivered rate is the largest.
const RATE_ROUNDS: u64 = 8;
/// Rounds over which the noise is the smallest range. Of eight, packets that had met left a packet's time or two, not the same for
/// each of two flows.
const NOISE_ROUNDS: u64 = 16;
/// Weight of a round in the part of packets that are lost.
const LOSS_WEIGHT: f64 = 0.25;
/// Per slowdown, what the largest rate of all keeps.
const PEAK_RATE_KEPT: f64 = 0.9;

/// What the last round showed.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Seen {
    /// The smallest and the largest queue in nanoseconds.
    pub(super) queue_ns: i64,
    pub(super) peak_ns: i64,
    /// Something was lost.
    pub(super) lost: bool,
}

/// See the file's head.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    round: Round,
    count: u64,
    least_ns: Option<i64>,
    peak_ns: i64,
    before_peak_ns: i64,
    acked_bytes: u64,
    lost_bytes: u64,
    loss: f64,
    rates: WindowedMax,
    /// From the smallest to the largest queue of each round.
    ranges: WindowedMin,
    peak_rate: f64,
}

impl Rounds {
    pub(super) fn new() -> Self {
        Self {
            round: Round::default(),
            count: 0,
            least_ns: None,
            peak_ns: 0,
            before_peak_ns: 0,
            acked_bytes: 0,
            lost_bytes: 0,
            loss: 0.0,
            rates: WindowedMax::new(RATE_ROUNDS),
            ranges: WindowedMin::new(NOISE_ROUNDS),
            peak_rate: 0.0,
        }
    }

    /// Takes what an acknowledgement says, which may have waited for a timer of the peer; what the round showed, where it ends
    /// with it.
    pub(super) fn on_feedback(
        &mut self,
        feedback: &Feedback<'_>,
        queue_ns: Option<i64>,
        waited: bool,
    ) -> Option<Seen> {
        if let Some(queue_ns) = queue_ns {
            self.least_ns = Some(self.least_ns.map_or(queue_ns, |least| least.min(queue_ns)));
            self.peak_ns = self.peak_ns.max(if waited { 0 } else { queue_ns });
        }
        self.acked_bytes = self.acked_bytes.saturating_add(feedback.acked_bytes);
        self.lost_bytes = self.lost_bytes.saturating_add(feedback.lost_bytes);
        self.take_rate(feedback);
        (self.round.ends(feedback)).then(|| self.finish())?
    }

    fn take_rate(&mut self, feedback: &Feedback<'_>) {
        let Some(newest) = feedback.acked.last() else { return };
        let sample = DeliverySample::of(feedback.now, feedback.delivered_bytes, newest);
        let rate = sample.rate().bits_per_sec();
        if !sample.interval.is_zero()
            && (!sample.app_limited || self.rates.get().is_none_or(|most| rate > most))
        {
            self.rates.update(self.count, rate);
            self.peak_rate = self.peak_rate.max(rate as f64);
        }
    }

    fn finish(&mut self) -> Option<Seen> {
        let lost = self.lost_bytes > 0;
        let (lost_bytes, all) =
            (self.lost_bytes as f64, (self.acked_bytes as f64 + self.lost_bytes as f64).max(1.0));
        self.loss += LOSS_WEIGHT * (lost_bytes / all - self.loss);
        self.count += 1;
        (self.acked_bytes, self.lost_bytes) = (0, 0);
        let seen = Seen { queue_ns: self.least_ns.take()?, peak_ns: self.peak_ns, lost };
        self.ranges.update(self.count, (seen.peak_ns - seen.queue_ns).max(0) as u64);
        self.before_peak_ns = core::mem::take(&mut self.peak_ns);
        Some(seen)
    }

    /// The largest queue of this round and the last one.
    pub(super) fn recent_peak_ns(&self) -> i64 {
        self.peak_ns.max(self.before_peak_ns)
    }

    /// Jitter: the least by which samples of one round have differed in the last rounds. A queue that others fill has
    /// rounds in which it hardly moves.
    pub(super) fn noise_ns(&self) -> u64 {
        self.ranges.get().unwrap_or(0)
    }

    /// The part of what is sent that is lost, smoothed over rounds.
    pub(super) fn loss(&self) -> f64 {
        let all = (self.acked_bytes as f64 + self.lost_bytes as f64).max(1.0);
        self.loss + LOSS_WEIGHT * (self.lost_bytes as f64 / all - self.loss).max(0.0)
    }

    /// The largest rate delivered in the last rounds.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.rates.get().map(Rate::from_bits_per_sec)
    }

    /// The largest rate delivered at all, in bit/s; it fades with each slowdown.
    pub(super) fn peak_rate(&self) -> f64 {
        self.peak_rate
    }

    pub(super) fn fade_peak_rate(&mut self) {
        self.peak_rate *= PEAK_RATE_KEPT;
    }

    /// Begins anew with the packet `next_number`.
    pub(super) fn restart(&mut self, next_number: u64) {
        self.round.restart(next_number);
        (self.least_ns, self.peak_ns, self.before_peak_ns) = (None, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, loss};

    #[test]
    fn a_round_shows_its_least_and_largest_queue() {
        let mut rounds = Rounds::new();
        let mut take = |number, next_number, queue_ns| {
            let mut one = ack(number, 1000);
            one.feedback.next_number = next_number;
            rounds.on_feedback(&one.feedback(), Some(queue_ns), false)
        };
        assert_eq!(take(0, 3, 7), Some(Seen { queue_ns: 7, peak_ns: 7, lost: false }));
        assert_eq!([take(1, 4, 9), take(2, 5, 5)], [None, None]);
        assert_eq!(take(3, 6, 6), Some(Seen { queue_ns: 5, peak_ns: 9, lost: false }));
        assert_eq!(rounds.recent_peak_ns(), 9, "of the round before");
    }

    #[test]
    fn losses_are_smoothed_over_rounds() {
        let mut rounds = Rounds::new();
        rounds.on_feedback(&loss(0, 1).feedback(), Some(0), false);
        assert!((rounds.loss() - 0.25).abs() < 1e-9, "all of a first round: {}", rounds.loss());
        let seen = rounds.on_feedback(&ack(1, 3000).feedback(), Some(0), false).expect("the round ends");
        assert!(seen.lost && (rounds.loss() - 0.0625).abs() < 1e-9, "one in four: {}", rounds.loss());
    }
}
