//! Rounds: a round trip's worth of packets, and what was measured in it.
//!
//! Source: Vegas and NICE as their readers have them: a round ends with the first acknowledgement of a packet that was sent
//! after the round had begun. The RTT of a round is the smallest of its samples, which leaves out delayed acknowledgements.
//!
//! With [`Signal::OneWay`] a sample is the smallest RTT plus what the one-way delay is above its own smallest: the queue of
//! the way back does not count.
//!
//! *What it leaves out:* rounds counted in delivered octets (BBR); the drift of two clocks under one-way delays.
//! *How it was validated:* unit tests below.

use super::Signal;
use crate::Feedback;

/// Says where rounds end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Round {
    /// The number of the first packet that was sent after the round had begun.
    end: u64,
}

impl Round {
    /// True where this acknowledgement ends the round; the next one begins with it.
    pub fn ends(&mut self, feedback: &Feedback<'_>) -> bool {
        let ends = feedback.acked.last().is_some_and(|packet| packet.number >= self.end);
        if ends {
            self.end = feedback.next_number;
        }
        ends
    }

    /// Begins a round when `next_number` is the number of the next new packet.
    pub fn restart(&mut self, next_number: u64) {
        self.end = next_number;
    }
}

/// What a round measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundSummary {
    /// Its smallest RTT in nanoseconds, where there is a sample.
    pub rtt_ns: Option<i64>,
    /// How many samples there were.
    pub samples: u32,
}

/// Gathers the samples of a round, and the smallest of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundRtts {
    signal: Signal,
    rtt_min_ns: Option<i64>,
    one_way_min_ns: Option<i64>,
    round: RoundSummary,
}

/// Samples are clamped to this, so that no sum of two overflows.
const MAX_SAMPLE_NS: i64 = i64::MAX / 4;

fn least(known: Option<i64>, sample: i64) -> Option<i64> {
    Some(known.map_or(sample, |known| known.min(sample)))
}

impl RoundRtts {
    /// Has seen nothing.
    #[must_use]
    pub fn new(signal: Signal) -> Self {
        Self { signal, rtt_min_ns: None, one_way_min_ns: None, round: RoundSummary::default() }
    }

    /// Takes what an acknowledgement says; its sample on the scale of RTTs in nanoseconds, where it has one.
    pub fn add(&mut self, feedback: &Feedback<'_>) -> Option<i64> {
        if let Some(rtt_ns) = Signal::RoundTrip.sample_ns(feedback).map(|ns| ns.min(MAX_SAMPLE_NS)) {
            self.rtt_min_ns = least(self.rtt_min_ns, rtt_ns);
        }
        let raw_ns = self.signal.sample_ns(feedback)?.clamp(-MAX_SAMPLE_NS, MAX_SAMPLE_NS);
        let sample_ns = match self.signal {
            Signal::RoundTrip => raw_ns,
            Signal::OneWay => {
                self.one_way_min_ns = least(self.one_way_min_ns, raw_ns);
                self.rtt_min_ns? + raw_ns.saturating_sub(self.one_way_min_ns?)
            }
        };
        self.round = RoundSummary {
            rtt_ns: least(self.round.rtt_ns, sample_ns),
            samples: self.round.samples.saturating_add(1),
        };
        Some(sample_ns)
    }

    /// The smallest RTT of all.
    #[must_use]
    pub const fn base_ns(&self) -> Option<i64> {
        self.rtt_min_ns
    }

    /// Ends the round.
    pub fn finish(&mut self) -> RoundSummary {
        core::mem::take(&mut self.round)
    }

    /// Forgets the smallest of all: the path may be another one.
    pub fn forget_base(&mut self) {
        (self.rtt_min_ns, self.one_way_min_ns) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Owned, ack};
    use cede_units::Duration;

    fn sample(number: u64, rtt_ms: u64, one_way_ms: i64) -> Owned {
        let mut one = ack(number, 1000);
        one.feedback.rtt = Some(Duration::from_millis(rtt_ms));
        one.feedback.one_way_delay_ns = Some(one_way_ms * 1_000_000);
        one
    }

    #[test]
    fn a_round_ends_with_a_packet_that_left_after_it_began() {
        let mut round = Round::default();
        let mut ends = |number, next_number| {
            let mut one = ack(number, 1000);
            one.feedback.next_number = next_number;
            round.ends(&one.feedback())
        };
        assert_eq!(
            [ends(0, 4), ends(1, 5), ends(3, 7), ends(4, 8), ends(7, 9), ends(8, 9)],
            [true, false, false, true, false, true]
        );
    }

    #[test]
    fn a_round_has_its_smallest_sample_and_the_base_is_of_all() {
        let mut rtts = RoundRtts::new(Signal::RoundTrip);
        for rtt_ms in [60, 50, 70] {
            rtts.add(&sample(0, rtt_ms, 0).feedback());
        }
        assert_eq!(rtts.finish(), RoundSummary { rtt_ns: Some(50_000_000), samples: 3 });
        rtts.add(&sample(0, 80, 0).feedback());
        assert_eq!(rtts.finish().rtt_ns, Some(80_000_000));
        assert_eq!((rtts.finish().samples, rtts.base_ns()), (0, Some(50_000_000)));
    }

    #[test]
    fn one_way_delays_leave_out_the_way_back() {
        let mut rtts = RoundRtts::new(Signal::OneWay);
        assert_eq!(rtts.add(&sample(0, 50, -900).feedback()), Some(50_000_000));
        assert_eq!(rtts.add(&sample(0, 200, -890).feedback()), Some(60_000_000), "150 ms on the way back");
        assert_eq!(rtts.add(&sample(0, 50, i64::MAX / 1_000_000).feedback()).map(|ns| ns > 0), Some(true));
    }
}
