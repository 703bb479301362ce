//! Windows of less than two packets, of which two leave at a time.
//!
//! Source: Venkataramani, Kokku, Dahlin, "TCP Nice" (OSDI 2002), on its prototype: below a window of two the flow waits for
//! the appropriate number of smoothed round trips and sends two packets, one of 1/16 two after 32 round trips. A receiver that
//! waits for a second packet before it answers then never waits, and no round trip has its timer in it.
//!
//! *What it leaves out:* nothing. *How it was validated:* unit test below; behind receivers that answer pairs (`nice.rs`).

use crate::window::Bounds;
use cede_units::{Duration, Instant};

/// Packets of a turn, and the window below which there are turns.
const TURN_PACKETS: f64 = 2.0;
/// A window of next to nothing still lets packets go this often, so that a connection can recover.
const MAX_WAIT_NS: f64 = 60e9;

/// When two packets may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PairTurns {
    /// When the last packet left.
    left_at: Instant,
    /// The next turn, which is not yet.
    next_at: Option<Instant>,
    /// Whether there are turns at all.
    taken: bool,
}

impl PairTurns {
    pub(crate) const fn on_sent(&mut self, now: Instant) {
        self.left_at = now;
    }

    /// Whether a window of so many packets is that small.
    pub(crate) fn are_needed(packets: f64) -> bool {
        packets < TURN_PACKETS
    }

    /// Looks at the clock under a window of so many packets.
    pub(crate) fn update(&mut self, now: Instant, packets: f64, srtt: Duration) {
        self.taken = Self::are_needed(packets);
        let wait_ns = (TURN_PACKETS / packets * srtt.as_nanos() as f64).min(MAX_WAIT_NS);
        let next_at = self.left_at + Duration::from_nanos(wait_ns as u64);
        self.next_at = (self.taken && next_at > now).then_some(next_at);
    }

    /// There are none, whatever the window is.
    pub(crate) const fn end(&mut self) {
        (self.taken, self.next_at) = (false, None);
    }

    /// When to look at the clock again.
    pub(crate) const fn timer(&self) -> Option<Instant> {
        self.next_at
    }

    /// What may be under way in place of the window, where there are turns: two packets, or nothing more for now.
    pub(crate) fn window_bytes(&self, bounds: &Bounds) -> Option<u64> {
        let turn = if self.next_at.is_none() { TURN_PACKETS * bounds.mss } else { 0.0 };
        self.taken.then(|| (bounds.bound(turn, 1.0) as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::path;

    #[test]
    fn a_window_of_a_sixteenth_is_two_packets_after_32_round_trips() {
        let (mut turns, bounds) = (PairTurns::default(), Bounds::of(&path(1000)));
        let mut at = |ms: u64, packets: f64| {
            turns.update(Instant::from_millis(ms), packets, Duration::from_millis(10));
            turns.on_sent(Instant::from_millis(1000));
            (turns.window_bytes(&bounds), turns.timer())
        };
        at(1000, 1.0 / 16.0);
        let next = Instant::from_millis(1320);
        assert_eq!(at(1010, 1.0 / 16.0), (Some(1), Some(next)));
        assert_eq!(at(1320, 1.0 / 16.0), (Some(2000), None));
        assert_eq!(at(1020, 1.5), (Some(2000), None), "13 ms after the last");
        assert_eq!(at(1001, 2.0), (None, None));
    }
}
