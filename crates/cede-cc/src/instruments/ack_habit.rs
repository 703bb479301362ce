//! Whether the receiver answers several packets at once, and which acknowledgements it may have kept back.
//!
//! Source: RFC 1122, section 4.2.3.2, and RFC 5681, section 4.2: a receiver may answer every second packet, and where no
//! second one comes it answers after half a second at most (Linux: 40 to 200 ms); what arrives beyond a gap is answered at once.
//!
//! Nothing in an acknowledgement says that it was kept back. But a receiver that does so shows it while packets follow each
//! other closely: it answers several at once. One that answers each keeps nothing back.
//!
//! *What it leaves out:* how long an acknowledgement was kept; a receiver that changes its habit while few packets are
//! under way (Linux answers each of the first sixteen, and again after a pause) is taken for what it was before.
//! *How it was validated:* unit tests below; by the controllers.

use crate::Feedback;

/// Of fewer packets under way each may be one that no other follows.
const MIN_UNDER_WAY: u64 = 4;
/// So many acknowledgements of a kind in a row make a habit; a loss makes one answer for two, and seldom two such in a row.
const IN_A_ROW: u32 = 4;

/// What acknowledgements have been like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckHabit {
    answers_several: bool,
    /// Acknowledgements in a row that speak against it.
    against: u32,
}

impl AckHabit {
    /// Takes what an acknowledgement says. During a repair all of them are immediate, and tell nothing.
    pub fn update(&mut self, feedback: &Feedback<'_>) {
        let Some(newest) = feedback.acked.last() else { return };
        let under_way = feedback.in_flight_before_bytes / u64::from(newest.bytes.max(1));
        if is_immediate(feedback) || under_way < MIN_UNDER_WAY {
            return;
        }
        let several = feedback.acked.len() > 1;
        self.against = if several == self.answers_several { 0 } else { self.against + 1 };
        if self.against >= IN_A_ROW {
            *self = Self { answers_several: several, against: 0 };
        }
    }

    /// Acknowledgements have been of two packets or more.
    #[must_use]
    pub const fn answers_several(&self) -> bool {
        self.answers_several
    }

    /// It is of one packet, from a receiver that waits for a second one.
    #[must_use]
    pub const fn may_have_kept_back(&self, feedback: &Feedback<'_>) -> bool {
        self.answers_several && feedback.acked.len() == 1 && !is_immediate(feedback)
    }
}

const fn is_immediate(feedback: &Feedback<'_>) -> bool {
    feedback.in_recovery || !feedback.lost.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Owned, ack, ack_of_two};

    fn with(mut one: Owned, under_way: u64) -> Owned {
        one.feedback.in_flight_before_bytes = 1000 * under_way;
        one
    }

    fn after(acknowledgements: &[Owned]) -> AckHabit {
        let mut habit = AckHabit::default();
        acknowledgements.iter().for_each(|one| habit.update(&one.feedback()));
        habit
    }

    #[test]
    fn one_of_one_packet_may_have_been_kept_back_by_a_receiver_that_answers_pairs() {
        let pairs: alloc::vec::Vec<_> = (0..4).map(|k| with(ack_of_two(2 * k, 1000), 10)).collect();
        let habit = after(&pairs);
        assert!(habit.answers_several());
        assert!(habit.may_have_kept_back(&ack(16, 1000).feedback()));
        assert!(!habit.may_have_kept_back(&ack_of_two(16, 1000).feedback()));
        let mut beyond_a_gap = ack(16, 1000);
        beyond_a_gap.feedback.in_recovery = true;
        assert!(!habit.may_have_kept_back(&beyond_a_gap.feedback()), "answered at once");
    }

    #[test]
    fn a_receiver_that_answers_each_keeps_nothing_back_though_one_in_five_is_lost() {
        let four_of_five = |k: u64| if k % 4 == 3 { ack_of_two(k, 1000) } else { ack(k, 1000) };
        let each: alloc::vec::Vec<_> = (0..40).map(|k| with(four_of_five(k), 10)).collect();
        assert!(!after(&each).answers_several());
    }

    #[test]
    fn few_packets_under_way_tell_nothing() {
        let mut lone: alloc::vec::Vec<_> = (0..4).map(|k| with(ack_of_two(2 * k, 1000), 4)).collect();
        lone.extend((8..64).map(|k| with(ack(k, 1000), 3)));
        assert!(after(&lone).answers_several(), "as it was before");
        lone.extend((64..68).map(|k| with(ack(k, 1000), 4)));
        assert!(!after(&lone).answers_several(), "until it answers each of four");
    }
}
