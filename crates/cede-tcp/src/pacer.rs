//! When a segment may leave: under a pacing rate, and under a window smaller than a segment.

use cede_cc::Allowance;
use cede_units::{Duration, Instant};

/// A window of next to nothing still lets a segment go this often, so that a connection can recover.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// The times of departure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    /// The next departure under the pacing rate; the past counts as credit up to the allowed burst.
    next_at: Instant,
    /// When the last segment left.
    last_at: Option<Instant>,
}

impl Pacer {
    /// When the pacing rate lets a segment leave; at once where there is none.
    pub(crate) fn release_at(&self, allowance: &Allowance) -> Instant {
        if allowance.pacing_rate.is_some() { self.next_at } else { Instant::ZERO }
    }

    /// When a window below one segment lets `bytes` leave while nothing is under way: one segment in every
    /// `bytes / cwnd` smoothed round trips.
    pub(crate) fn fraction_at(&self, bytes: u32, window_bytes: u64, srtt: Duration) -> Instant {
        let factor = f64::from(bytes) / window_bytes.max(1) as f64;
        self.last_at.unwrap_or(Instant::ZERO) + srtt.mul_f64(factor).min(INTERVAL_MAX)
    }

    /// When the last segment left; none before the first.
    pub(crate) const fn last_at(&self) -> Option<Instant> {
        self.last_at
    }

    /// `bytes` leave, headers not counted.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: u32, allowance: &Allowance) {
        self.last_at = Some(now);
        if let Some(rate) = allowance.pacing_rate {
            // Credit for the past lets a burst leave; without any, a late caller would fall behind the rate.
            let burst = rate.time_to_send(u64::from(allowance.burst_bytes.saturating_sub(bytes)));
            let from = self.next_at.max(now.saturating_sub(burst));
            self.next_at = from + rate.time_to_send(u64::from(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Rate;

    #[test]
    fn packets_leave_at_the_rate_after_the_burst() {
        let allowance =
            Allowance { cwnd_bytes: 1 << 20, pacing_rate: Some(Rate::from_mbit(8)), burst_bytes: 3000 };
        let (mut pacer, mut now, mut left) = (Pacer::default(), Instant::from_secs(1), 0);
        while now < Instant::from_millis(1010) {
            if pacer.release_at(&allowance) <= now {
                pacer.on_sent(now, 1000, &allowance);
                left += 1;
            } else {
                now = pacer.release_at(&allowance);
            }
        }
        // 10 ms at 1000 octets a millisecond, and a burst of three.
        assert!((12..=13).contains(&left), "{left}");
    }

    #[test]
    fn half_a_segment_of_window_means_one_in_two_round_trips() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Instant::from_secs(1), 1000, &Allowance::window(500));
        assert_eq!(pacer.fraction_at(1000, 500, Duration::from_millis(100)), Instant::from_millis(1200));
        assert_eq!(pacer.fraction_at(1000, 0, Duration::from_secs(9)), Instant::from_secs(61));
    }
}
