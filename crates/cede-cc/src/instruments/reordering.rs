//! How much later than what was sent after it a packet may arrive.
//!
//! Source: RFC 8985, section 6.2, steps 3 and 4. The window is a quarter of the smallest round trip. Each round trip in which a
//! packet was taken for lost in vain widens it by as much again, up to the smoothed round trip; sixteen loss events in a row
//! without one narrow it again. Once packets have been seen to overtake one another, three that did are no sign of a loss.
//!
//! What was in vain the transport finds out: by a receiver that reports what arrived twice, as the RFC has it, or by its own clock.
//!
//! **How it was validated.** By hand below; paths that reorder, in the tests of the transports.

use cede_units::Duration;

/// Loss events in a row, none of them in vain, after which the window is the first again (RFC 8985: 16).
const CALM_EVENTS: u8 = 16;

/// The reordering window, and what it was learnt from.
#[derive(Clone, Debug)]
pub struct ReorderingWindow {
    is_seen: bool,
    /// How many later ones had arrived before a packet, at most, by their numbers.
    degree: u32,
    /// The number after the highest of those that left once and have arrived.
    highest: u64,
    /// The window, in quarters of the smallest round trip.
    quarters: u8,
    /// Loss events since a packet was last taken for lost in vain.
    calm: u8,
    /// The window stays while packets below this are told of: they were judged by the one before, or by a timeout.
    settled_at: u64,
}

impl Default for ReorderingWindow {
    fn default() -> Self {
        Self { is_seen: false, degree: 0, highest: 0, quarters: 1, calm: 0, settled_at: 0 }
    }
}

impl ReorderingWindow {
    /// How much later a packet may arrive than one that was sent after it; never more than the smoothed round trip.
    #[must_use]
    pub fn window(&self, min_rtt: Duration, srtt: Duration) -> Duration {
        (min_rtt / 4 * u64::from(self.quarters)).min(srtt)
    }

    /// Packets are known to overtake one another here.
    #[must_use]
    pub const fn is_seen(&self) -> bool {
        self.is_seen
    }

    /// By how many packets, counted by their numbers, one was late at most.
    #[must_use]
    pub const fn degree(&self) -> u32 {
        self.degree
    }

    /// Packets were seen to overtake one another.
    pub const fn note_seen(&mut self) {
        self.is_seen = true;
    }

    /// Packet `number`, which left once, has arrived: late where a higher number came before it.
    pub const fn note_first(&mut self, number: u64) {
        if number >= self.highest {
            self.highest = number + 1;
            return;
        }
        let degree = self.highest - 1 - number;
        if degree > self.degree as u64 {
            self.degree = if degree < u32::MAX as u64 { degree as u32 } else { u32::MAX };
        }
        self.is_seen = true;
    }

    /// Packet `number` was taken for lost and had not been; `next` is the number of the next new one.
    pub const fn note_in_vain(&mut self, number: u64, next: u64) {
        if number < self.settled_at {
            return;
        }
        (self.is_seen, self.calm, self.settled_at) = (true, 0, next);
        self.quarters = self.quarters.saturating_add(1);
    }

    /// The peer reports that something arrived twice; `next` is the number of the next new packet. It counts once something has
    /// arrived that left after the window was last widened, which is when Linux does (RFC 8985 waits until all below that is
    /// acknowledged, and packets that overtake one another make that long).
    pub const fn note_reported(&mut self, next: u64) {
        self.note_in_vain(self.highest.saturating_sub(1), next);
    }

    /// A loss event begins.
    pub const fn note_event(&mut self) {
        self.calm = self.calm.saturating_add(1);
        if self.calm >= CALM_EVENTS {
            self.quarters = 1;
        }
    }

    /// A loss event was in vain, and does not count as one.
    pub const fn note_undone(&mut self) {
        self.calm = self.calm.saturating_sub(1);
    }

    /// Everything below `next` was taken for lost by a timeout, which says nothing of the order.
    pub const fn on_timeout(&mut self, next: u64) {
        self.settled_at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Duration = Duration::from_millis(40);
    const SRTT: Duration = Duration::from_millis(50);

    fn window_ms(reordering: &ReorderingWindow) -> u64 {
        reordering.window(MIN, SRTT).as_nanos() / 1_000_000
    }

    #[test]
    fn the_window_widens_once_a_round_trip_and_no_further_than_one() {
        let mut reordering = ReorderingWindow::default();
        assert_eq!(window_ms(&reordering), 10);
        reordering.note_in_vain(5, 20);
        reordering.note_in_vain(19, 30);
        assert_eq!(window_ms(&reordering), 20, "of one round trip");
        for round in 1..300 {
            reordering.note_in_vain(20 * round, 20 * (round + 1));
        }
        assert_eq!(window_ms(&reordering), 50);
        let srtt = Duration::from_millis(1);
        assert_eq!(reordering.window(MIN, srtt), srtt, "as RFC 8985 and Linux have it");
    }

    #[test]
    fn it_narrows_after_sixteen_events_that_were_true() {
        let mut reordering = ReorderingWindow::default();
        reordering.note_in_vain(5, 20);
        (0..15).for_each(|_| reordering.note_event());
        assert_eq!(window_ms(&reordering), 20);
        reordering.note_event();
        assert_eq!(window_ms(&reordering), 10);
    }

    #[test]
    fn a_timeout_in_vain_is_no_sign() {
        let mut reordering = ReorderingWindow::default();
        reordering.on_timeout(20);
        reordering.note_in_vain(19, 25);
        assert_eq!(window_ms(&reordering), 10);
    }

    #[test]
    fn late_is_what_comes_after_a_higher_number() {
        let mut reordering = ReorderingWindow::default();
        [0, 1, 3].iter().for_each(|&number| reordering.note_first(number));
        assert!(!reordering.is_seen());
        reordering.note_first(2);
        assert!(reordering.is_seen());
        [9, 4, 8].iter().for_each(|&number| reordering.note_first(number));
        assert_eq!(reordering.degree(), 5, "4 after 9");
    }
}
