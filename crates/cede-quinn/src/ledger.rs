//! What left and has not been heard of: quinn tells of a packet's fate by the time at which it left.

use cede_cc::{SendRecord, Tag};
use cede_units::Instant;
use std::collections::VecDeque;

/// Departures beyond these push out the oldest. Acknowledgements that are sent are never acknowledged themselves, so an
/// end that only receives would remember them for ever.
const MAX_DEPARTURES: usize = 65_536;

/// Datagrams that left together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Departure {
    pub at: Instant,
    /// The number of the last packet among them.
    pub number: u64,
    pub tag: Tag,
    pub record: SendRecord,
}

/// Departures in the order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    departures: VecDeque<Departure>,
}

impl Ledger {
    pub(crate) fn push(&mut self, departure: Departure) {
        if self.departures.len() == MAX_DEPARTURES {
            self.departures.pop_front();
        }
        self.departures.push_back(departure);
    }

    /// The last departure at or before `at`; the oldest that is known where all are later.
    pub(crate) fn find(&self, at: Instant) -> Option<&Departure> {
        let after = self.departures.partition_point(|departure| departure.at <= at);
        self.departures.get(after.saturating_sub(1))
    }

    /// Forgets what left before `at`, except the newest of it.
    pub(crate) fn forget_before(&mut self, at: Instant) {
        while self.departures.get(1).is_some_and(|second| second.at < at) {
            self.departures.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departure(ms: u64, number: u64) -> Departure {
        Departure { at: Instant::from_millis(ms), number, tag: 0, record: SendRecord::default() }
    }

    #[test]
    fn a_packet_is_found_by_the_time_at_which_it_left() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.find(Instant::from_millis(5)), None);
        for (ms, number) in [(10, 3), (20, 5), (20, 6), (30, 9)] {
            ledger.push(departure(ms, number));
        }
        let number = |ms| ledger.find(Instant::from_millis(ms)).map(|found| found.number);
        assert_eq!([number(5), number(10), number(20), number(25), number(99)], [3, 3, 6, 6, 9].map(Some));
    }

    #[test]
    fn what_is_old_is_forgotten_and_what_never_ends_is_bounded() {
        let mut ledger = Ledger::default();
        for step in 0..70_000 {
            ledger.push(departure(step, step));
        }
        assert_eq!(ledger.departures.len(), MAX_DEPARTURES);
        ledger.forget_before(Instant::from_millis(69_000));
        assert_eq!(ledger.departures.len(), 1_001);
        assert_eq!(ledger.find(Instant::from_millis(69_000)).map(|found| found.number), Some(69_000));
    }
}
