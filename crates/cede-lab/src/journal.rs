//! What happens to the two ends of a flow, event by event, for records.
//!
//! A socket without a journal pays for one look at an empty option per input; one with a journal compares its
//! connection's counters and phase after each input.

use cede_cc::Phase;
use cede_units::Instant;
use std::cell::RefCell;

/// Something that happened to one end of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Happening {
    /// The sender began to open its connection.
    Opening,
    /// The handshake is over.
    Connected,
    /// The controller is in this phase now.
    Phase(Phase),
    /// This many packets were found lost by acknowledgements.
    Loss(u64),
    /// The retransmission timer ran out, so often that it has done so this many times in all.
    Timeout(u64),
    /// The application has no more to send.
    Stopped,
    /// Everything that was sent has been acknowledged.
    Finished,
    /// The peer will send nothing more.
    PeerFinished,
    /// Both directions have ended in good order.
    Closed,
    /// The connection ended otherwise, for this reason.
    Failed(String),
}

/// A happening and when it was, by the host's own clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// When.
    pub at: Instant,
    /// What.
    pub happening: Happening,
}

/// Where a sender stands, as far as a journal tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// Packets found lost so far.
    pub losses: u64,
    /// Timeouts so far.
    pub timeouts: u64,
    /// The controller's phase; none while there is no connection.
    pub phase: Option<Phase>,
    /// The application has no more to send.
    pub stopped: bool,
    /// All has been acknowledged.
    pub finished: bool,
}

/// The journal of one end of a flow. Whoever reads it empties it.
#[derive(Debug, Default)]
pub struct Journal {
    entries: RefCell<Vec<Entry>>,
    last: Standing,
}

impl Journal {
    /// Takes an event down.
    pub fn note(&mut self, at: Instant, happening: Happening) {
        self.entries.get_mut().push(Entry { at, happening });
    }

    /// Takes down in what way a sender stands otherwise than before.
    pub fn compare(&mut self, at: Instant, standing: Standing) {
        let last = core::mem::replace(&mut self.last, standing);
        if last == standing {
            return;
        }
        if standing.losses > last.losses {
            self.note(at, Happening::Loss(standing.losses - last.losses));
        }
        if standing.timeouts > last.timeouts {
            self.note(at, Happening::Timeout(standing.timeouts));
        }
        if let Some(phase) = standing.phase.filter(|_| standing.phase != last.phase) {
            self.note(at, Happening::Phase(phase));
        }
        if standing.stopped && !last.stopped {
            self.note(at, Happening::Stopped);
        }
        if standing.finished && !last.finished {
            self.note(at, Happening::Finished);
        }
    }

    /// All entries since this was last called.
    pub fn take(&self) -> Vec<Entry> {
        self.entries.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_taken_down() {
        let mut journal = Journal::default();
        let mut standing = Standing { losses: 2, phase: Some(Phase::SlowStart), ..Standing::default() };
        journal.compare(Instant::from_millis(1), standing);
        journal.compare(Instant::from_millis(2), standing);
        standing.losses = 5;
        standing.phase = Some(Phase::Recovery);
        journal.compare(Instant::from_millis(3), standing);
        let happenings: Vec<Happening> = journal.take().into_iter().map(|entry| entry.happening).collect();
        let expected = [
            Happening::Loss(2),
            Happening::Phase(Phase::SlowStart),
            Happening::Loss(3),
            Happening::Phase(Phase::Recovery),
        ];
        assert_eq!(happenings, expected);
        assert!(journal.take().is_empty());
    }
}
