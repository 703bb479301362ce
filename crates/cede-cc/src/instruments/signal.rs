//! Which delay a controller listens to.
//!
//! Source: RFC 6817, section 2.1, asks for one-way delays; draft-irtf-iccrg-ledbat-plus-plus, section 4.5, and RFC 9840 take
//! the RTT where the peer sends no stamps.
//!
//! *What it leaves out:* telling a queue of the way back from one of the way there: with the RTT both count.
//! *How it was validated:* unit test below; by the controllers.

use crate::Feedback;

/// The delay that steers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// The raw one-way delay of what we send: two clocks, one direction.
    OneWay,
    /// The round-trip time: one clock, both directions, and what the peer waits before it acknowledges.
    RoundTrip,
}

impl Signal {
    /// This acknowledgement's sample in nanoseconds, where it carries one.
    #[must_use]
    pub fn sample_ns(self, feedback: &Feedback<'_>) -> Option<i64> {
        match self {
            Self::OneWay => feedback.one_way_delay_ns,
            Self::RoundTrip => feedback.rtt.map(|rtt| rtt.as_nanos().min(i64::MAX as u64) as i64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ack;
    use cede_units::Duration;

    #[test]
    fn each_signal_reads_its_own_field() {
        let mut one = ack(0, 1000);
        assert_eq!(Signal::OneWay.sample_ns(&one.feedback()), None);
        (one.feedback.one_way_delay_ns, one.feedback.rtt) = (Some(-5), Some(Duration::MAX));
        assert_eq!(Signal::OneWay.sample_ns(&one.feedback()), Some(-5));
        assert_eq!(Signal::RoundTrip.sample_ns(&one.feedback()), Some(i64::MAX));
    }
}
