//! Packets that arrive closer together than they were sent: something behind the bottleneck holds them up.
//!
//! Behind a queue no two packets are closer than a packet's time, and one that grows or drains changes a gap by a part. Jitter that keeps
//! the order lets all that wait for one packet arrive with it, whatever was between them when they left. So an arrival is a *meeting*
//! where the gap before it is less than a quarter of what it was at the sender, and packets *meet* where a quarter of the arrivals are
//! meetings, smoothed over rounds. Packets that left together are none.
//!
//! Source: of this project.
//!
//! *What it leaves out:* jitter that lets packets overtake one another; rounds of few packets. Where the peer's stamps are too coarse to tell of
//! arrivals, acknowledgements that are bunched on their way back are taken for packets that meet.
//! *How it was validated:* unit tests below. Over the battery at most 0.17 of the arrivals are meetings (at a gigabit per second over 1 ms; hardly
//! any beside CUBIC, BBR and flows like this one), but where there is jitter (0.6 to 0.9) or the way back bunches what TCP hears.

use cede_units::Instant;

/// The part of its gap at the sender that a meeting has on arrival at most.
const MET: f64 = 0.25;
/// The part of arrivals that are meetings from which on packets meet. Where a round has a dozen packets it is hardly more under jitter.
const MEET: f64 = 0.25;
/// A round of fewer arrivals says nothing.
const LEAST_ARRIVALS: u32 = 8;
/// Weight of a round.
const WEIGHT: f64 = 0.125;

/// See the file's head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bunches {
    /// When the last packet was sent, and when it arrived.
    last: Option<(Instant, i64)>,
    /// Arrivals of this round, and how many of them were meetings.
    arrivals: u32,
    meetings: u32,
    /// The part of them in the last rounds.
    part: f64,
}

impl Bunches {
    pub(super) const fn new() -> Self {
        Self { last: None, arrivals: 0, meetings: 0, part: 0.0 }
    }

    /// A packet that was sent then arrived then, on a scale on which differences mean something.
    pub(super) fn see(&mut self, sent_at: Instant, arrived_ns: i64) {
        let Some((before, before_ns)) = self.last.replace((sent_at, arrived_ns)) else { return };
        let gap_ns = arrived_ns.saturating_sub(before_ns).max(0);
        let sent_gap_ns = sent_at.since(before).as_nanos();
        self.arrivals += 1;
        self.meetings += u32::from((gap_ns as f64) < MET * sent_gap_ns as f64);
    }

    pub(super) fn end_round(&mut self) {
        if self.arrivals >= LEAST_ARRIVALS {
            self.part += WEIGHT * (f64::from(self.meetings) / f64::from(self.arrivals) - self.part);
        }
        (self.arrivals, self.meetings) = (0, 0);
    }

    pub(super) fn meet(&self) -> bool {
        self.part > MEET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of forty packets, a millisecond apart at the sender, that arrive in groups.
    fn rounds(count: u32, arrives_us: impl Fn(u64) -> u64) -> Bunches {
        let mut bunches = Bunches::new();
        for packet in 0..u64::from(40 * count) {
            bunches.see(Instant::from_millis(packet), (arrives_us(packet) * 1000) as i64);
            if packet % 40 == 39 {
                bunches.end_round();
            }
        }
        bunches
    }

    #[test]
    fn packets_that_wait_for_one_another_meet() {
        let held = |packet: u64| 1000 * packet.next_multiple_of(5);
        assert!(!rounds(2, held).meet(), "two rounds say little");
        assert!(rounds(8, held).meet());
        assert!(!rounds(8, |packet| 1000 * packet).meet(), "nobody waits");
    }

    #[test]
    fn behind_a_queue_that_grows_and_drains_none_meet() {
        // For twenty packets the queue grows by half of their gap, and for twenty it drains by half.
        let saw_tooth = |packet: u64| 1000 * packet + 500 * (packet % 40).min(40 - packet % 40);
        assert!(!rounds(40, saw_tooth).meet());
        let mut pairs = Bunches::new();
        for packet in 0..400 {
            pairs.see(Instant::from_millis(2 * (packet / 2)), packet as i64 * 1_000_000);
            if packet % 40 == 39 {
                pairs.end_round();
            }
        }
        assert!(!pairs.meet(), "what leaves in pairs arrives apart");
    }

    #[test]
    fn rounds_of_few_packets_say_nothing() {
        let mut bunches = Bunches::new();
        for packet in 0..700 {
            bunches.see(Instant::from_millis(packet), 0);
            if packet % 7 == 6 {
                bunches.end_round();
            }
        }
        assert!(!bunches.meet());
    }
}
