//! Peers that answer pairs of packets, as TCP's receivers do (RFC 9293, section 3.8.6.3; RFC 5681, section 4.2).
//!
//! They acknowledge each second packet at once, and a single one when a timer has run: 40 to 200 ms later, which is no queue.
//! Where packets leave pair by pair the timer never runs. So at the smallest window a peer that is seen to answer pairs is
//! sent pairs: the next one when nothing is under way. Above that an acknowledgement of one packet alone counts as one that has waited.
//!
//! Source: of this project.
//!
//! *What it leaves out:* receivers that answer more than two at once: their last packets wait.
//! *How it was validated:* unit tests below; the battery over TCP (`loss/no-crawl`, `path/longer-delayed`, `feedback/delayed-far`).

use crate::Feedback;

/// Packets that leave together, where no more are asked for.
pub(super) const PAIR: f64 = 2.0;
/// Weight of an acknowledgement in the part that covers more than one packet.
const WEIGHT: f64 = 1.0 / 16.0;
/// From this part on the peer answers pairs.
const ANSWERS: f64 = 0.25;

/// See the file's head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pairs {
    /// The part of acknowledgements that cover more than one packet, smoothed.
    part: f64,
    /// A pair may leave, or is leaving.
    open: bool,
}

impl Pairs {
    pub(super) const fn new() -> Self {
        Self { part: 0.0, open: true }
    }

    /// Whether the peer answers pairs.
    pub(super) fn answers(&self) -> bool {
        self.part > ANSWERS
    }

    pub(super) fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        if !feedback.acked.is_empty() {
            let more = f64::from(u8::from(feedback.acked.len() > 1));
            self.part += WEIGHT * (more - self.part);
        }
        self.open |= feedback.in_flight_bytes == 0;
    }

    /// Whether this acknowledgement was held back by a timer.
    pub(super) fn has_waited(&self, feedback: &Feedback<'_>) -> bool {
        feedback.acked.len() == 1 && self.answers()
    }

    /// A packet has left; so much is under way with it. So many, an even number, may leave together.
    pub(super) fn on_sent(&mut self, in_flight_bytes: u64, together: f64, mss: f64) {
        self.open &= (in_flight_bytes as f64) < together * mss;
    }

    pub(super) fn on_timeout(&mut self) {
        self.open = true;
    }

    /// The window that lets pairs leave, where it is so small that single packets would.
    pub(super) fn window(&self, cwnd: f64, together: f64, mss: f64) -> f64 {
        let closes = self.answers() && !self.open && cwnd < (together + 1.0) * mss;
        if closes { cwnd.min(mss) } else { cwnd }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, ack_of_two};

    #[test]
    fn a_peer_that_answers_pairs_is_sent_pairs_at_the_smallest_window() {
        let mut pairs = Pairs::new();
        let mut one = ack(1, 1000);
        one.feedback.in_flight_bytes = 1000;
        pairs.on_sent(2000, PAIR, 1000.0);
        pairs.on_feedback(&one.feedback());
        assert_eq!(pairs.window(2000.0, PAIR, 1000.0), 2000.0, "this one answers each packet");
        for _ in 0..8 {
            pairs.on_feedback(&ack_of_two(1, 1000).feedback());
        }
        assert!(pairs.has_waited(&one.feedback()));
        assert_eq!(pairs.window(2000.0, PAIR, 1000.0), 2000.0, "nothing is under way");
        pairs.on_sent(1000, PAIR, 1000.0);
        assert_eq!(pairs.window(2000.0, PAIR, 1000.0), 2000.0, "the second may follow");
        pairs.on_sent(2000, PAIR, 1000.0);
        pairs.on_feedback(&one.feedback());
        assert_eq!(pairs.window(2000.0, PAIR, 1000.0), 1000.0, "one is still under way");
        assert_eq!(pairs.window(3000.0, PAIR, 1000.0), 3000.0);
    }
}
