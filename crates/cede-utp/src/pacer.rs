//! Packets at a rate: the generic cell rate algorithm (ITU-T I.371), which is a token bucket kept as one instant.
//!
//! **What it leaves out.** Timers of limited resolution; a host that wakes late finds the packets it missed allowed, up
//! to the burst.
//! **How it was validated.** A long run leaves at the rate, and its beginning within the burst.

use cede_units::{Instant, Rate};

/// The time at which everything sent so far will have left at the rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacer {
    due: Instant,
}

impl Pacer {
    /// When a packet of `bytes` may leave, `burst_bytes` being allowed back to back.
    #[inline]
    pub fn earliest(&self, rate: Rate, burst_bytes: u32, bytes: u32) -> Instant {
        let ahead = rate.time_to_send(u64::from(burst_bytes)) - rate.time_to_send(u64::from(bytes));
        self.due.saturating_sub(ahead)
    }

    /// A packet of `bytes` leaves.
    #[inline]
    pub fn sent(&mut self, now: Instant, rate: Rate, bytes: u32) {
        self.due = self.due.max(now) + rate.time_to_send(u64::from(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
        let (mut pacer, rate) = (Pacer::default(), Rate::from_mbit(8));
        let mut now = Instant::from_secs(1);
        let mut times = alloc::vec::Vec::new();
        for _ in 0..10 {
            now = now.max(pacer.earliest(rate, 3000, 1000));
            pacer.sent(now, rate, 1000);
            times.push(now.since(Instant::from_secs(1)).as_millis());
        }
        assert_eq!(times, [0, 0, 0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_burst_below_a_packet_lets_single_packets_through() {
        let (mut pacer, rate) = (Pacer::default(), Rate::from_mbit(8));
        pacer.sent(Instant::ZERO, rate, 1000);
        assert_eq!(pacer.earliest(rate, 0, 1000), Instant::from_millis(1));
    }
}
