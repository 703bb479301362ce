//! What the last reduction took, for as long as it may turn out to have been in vain.
//!
//! Source: RFC 4015's idea, with the state itself put back in place of a slow start up to it, as Linux has it
//! (`tcp_init_undo`, `tcp_undo_cwnd_reduction`). A mark is a fact, and never in vain. The repair that a timeout interrupts is taken back
//! with it, and later timeouts in a row with the first.
//!
//! *What it leaves out:* what there is to put back, which each controller knows by itself.
//! *How it was validated:* unit test below; by the tests of the controllers.

use crate::{Feedback, Timeout};

/// The state before the last reduction, where that may be taken back.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Undo<T> {
    before: Option<T>,
}

impl<T> Undo<T> {
    /// Before any reduction.
    pub(crate) const fn new() -> Self {
        Self { before: None }
    }

    /// A new event of losses or marks is about to reduce what is at `present`.
    pub(crate) fn note_event(&mut self, feedback: &Feedback<'_>, present: T) {
        self.before = (!feedback.lost.is_empty()).then_some(present);
    }

    /// The same of a timeout, which may interrupt a repair.
    pub(crate) fn note_timeout(&mut self, timeout: &Timeout, repairing: bool, present: T) {
        if !timeout.idle && timeout.consecutive <= 1 && !repairing {
            self.before = Some(present);
        }
    }

    /// What is put back, to be changed.
    pub(crate) fn pending(&mut self) -> Option<&mut T> {
        self.before.as_mut()
    }

    /// What has happened since cannot be taken back.
    pub(crate) fn forget(&mut self) {
        self.before = None;
    }

    /// The last reduction was in vain: the state before it, once.
    pub(crate) fn take(&mut self) -> Option<T> {
        self.before.take()
    }
}

/// Whether a loss is being repaired, for controllers that go on meanwhile; where the transport does not say, until the next
/// acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Repair {
    under_way: bool,
}

impl Repair {
    /// Takes each feedback, before [`Repair::begin`].
    pub(crate) fn hear(&mut self, feedback: &Feedback<'_>) {
        self.under_way &= feedback.in_recovery || !feedback.acknowledges();
    }

    /// A new event of losses or marks begins; marks need no repair.
    pub(crate) const fn begin(&mut self, feedback: &Feedback<'_>) {
        self.under_way = !feedback.lost.is_empty();
    }

    /// It is over, or given up.
    pub(crate) const fn end(&mut self) {
        self.under_way = false;
    }

    pub(crate) const fn is_under_way(self) -> bool {
        self.under_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, loss, path, timeout};
    use crate::{Controller, Params, Phase, registry};
    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use cede_units::{Duration, Instant};

    #[test]
    fn losses_and_timeouts_can_be_taken_back_once_and_marks_cannot() {
        let mut undo = Undo::new();
        assert_eq!(undo.take(), None);
        undo.note_event(&loss(5, 9).feedback(), 1);
        assert_eq!((undo.take(), undo.take()), (Some(1), None));
        undo.note_event(&loss(5, 9).feedback(), 2);
        let mut marked = ack(10, 1000);
        marked.feedback.ce_marked = 1;
        undo.note_event(&marked.feedback(), 3);
        assert_eq!(undo.take(), None);
        undo.note_event(&loss(15, 19).feedback(), 4);
        undo.note_timeout(&timeout(5000, 1), true, 5);
        undo.note_timeout(&timeout(5000, 2), false, 6);
        assert_eq!(undo.take(), Some(4), "what there was before the repair");
        undo.note_timeout(&timeout(5000, 1), false, 7);
        undo.note_timeout(&Timeout { idle: true, ..timeout(0, 1) }, false, 8);
        assert_eq!(undo.take(), Some(7));
        undo.note_event(&loss(25, 29).feedback(), 9);
        undo.forget();
        assert_eq!(undo.take(), None);
    }

    /// All that hold a window, after ten packets over 100 ms without a queue, the last at 2 s.
    fn all() -> impl Iterator<Item = (&'static str, Box<dyn Controller>)> {
        let with_windows = |entry: &&registry::Entry| {
            entry.responsive && !["vivace", "proteus"].iter().any(|kind| entry.name.starts_with(kind))
        };
        registry::all().iter().filter(with_windows).map(|entry| {
            let mut flow = registry::build(entry.name, &Params::new(), &path(1000)).unwrap();
            for number in 0..10 {
                let mut one = ack(number, 1000);
                one.feedback.now = Instant::from_millis(1100 + 100 * number);
                one.feedback.rtt = Some(Duration::from_millis(100));
                (one.feedback.rtt_min, one.feedback.one_way_delay_ns) = (one.feedback.rtt, Some(0));
                (one.feedback.in_flight_before_bytes, one.feedback.in_flight_bytes) = (30_000, 29_000);
                (one.feedback.delivered_bytes, one.feedback.next_number) = (1000 * (number + 1), 40);
                flow.on_feedback(&one.feedback());
            }
            (entry.name, flow)
        })
    }

    fn state(flow: &dyn Controller) -> (f64, Option<f64>, Phase) {
        let snapshot = flow.snapshot();
        (snapshot.cwnd_bytes, snapshot.ssthresh_bytes, snapshot.phase)
    }

    fn lose(flow: &mut dyn Controller, marked: bool) {
        let mut lost = if marked { ack(30, 0) } else { loss(30, 40) };
        (lost.feedback.now, lost.feedback.in_flight_before_bytes) = (Instant::from_millis(2050), 29_000);
        (lost.feedback.in_flight_bytes, lost.feedback.delivered_bytes) = (2_000, 10_000);
        (lost.feedback.next_number, lost.feedback.ce_marked) = (40, u32::from(marked));
        flow.on_feedback(&lost.feedback());
    }

    #[test]
    fn every_window_comes_back_where_a_loss_was_none_and_nearly_every_slow_start() {
        let mut ended = Vec::new();
        for (name, mut flow) in all() {
            let before = state(&*flow);
            lose(&mut *flow, false);
            assert!(state(&*flow).0 < before.0, "{name}: {before:?}, {:?}", state(&*flow));
            let allowed = flow.on_undo().cwnd_bytes;
            assert_eq!((state(&*flow).0, allowed), (before.0, before.0 as u64), "{name}");
            if state(&*flow) != before {
                ended.push(name);
            }
            lose(&mut *flow, false);
            assert!(state(&*flow).0 < before.0, "{name}: the next one is another event");
        }
        assert_eq!(ended, ["cede"]);
    }

    #[test]
    fn so_it_does_after_a_timeout_but_where_timeouts_stand() {
        let mut stand = Vec::new();
        for (name, mut flow) in all() {
            let before = state(&*flow);
            flow.on_timeout(&timeout(29_000, 1));
            let left = state(&*flow);
            assert!(left.0 < before.0, "{name}");
            flow.on_undo();
            if state(&*flow) == left {
                stand.push(name);
            } else {
                assert_eq!(state(&*flow), before, "{name}");
            }
        }
        assert_eq!(stand, ["ledbat", "cede"]);
    }

    #[test]
    fn a_mark_is_not_taken_back() {
        for (name, mut flow) in all().filter(|(_, flow)| flow.answers_marks()) {
            lose(&mut *flow, true);
            let left = state(&*flow);
            flow.on_undo();
            assert_eq!(state(&*flow), left, "{name}");
        }
    }
}
