//! A loss or a timeout that was none: what it took from LEDBAT++ is given back.
//!
//! Source: as in `crate::undo`; the draft has no word on it. What a reduction took is the window, or, in a slowdown, that to which slow
//! start is to lead back; and the slow start that it ended. Where a slowdown has begun or ended since, that is left as it is: its slow
//! start leads on to what was taken, and after it the window is given back by itself.
//!
//! *What it leaves out, how it was validated:* see `plus_plus.rs`; unit tests below.

use super::super::delay_window::Steered;
use super::{PlusPlus, Stage};
use cede_units::Instant;

/// Where the flow stands: the stage, when its slowdown began, and when the next one is due.
type Course = (Stage, Option<Instant>, Option<Instant>);

/// What there was before the last loss or timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    window: Steered,
    course: Course,
    /// Where the reduction left the flow.
    left: Course,
}

impl Before {
    /// The window that there was, or that slow start led back to.
    fn whole(&self) -> f64 {
        let Steered { cwnd, ssthresh, .. } = self.window;
        let returns = matches!(self.course.0, Stage::Frozen { .. } | Stage::RecoverSlowStart);
        if returns && ssthresh.is_finite() { ssthresh } else { cwnd }
    }
}

impl PlusPlus {
    const fn course(&self) -> Course {
        (self.stage, self.slowdown_began, self.next_slowdown)
    }

    pub(super) const fn before_cut(&self) -> Before {
        Before { window: self.window.present(), course: self.course(), left: self.course() }
    }

    /// A reduction has been made.
    pub(super) fn note_left(&mut self) {
        let left = self.course();
        if let Some(before) = self.undo.pending() {
            before.left = left;
        }
    }

    pub(super) fn give_back(&mut self, was: &Before) {
        if self.course() == was.left {
            self.window.give_back(&was.window);
            (self.stage, self.slowdown_began, self.next_slowdown) = was.course;
            return;
        }
        self.window.end_event(&was.window);
        match self.stage {
            Stage::Frozen { .. } | Stage::RecoverSlowStart => {
                self.window.ssthresh = self.window.ssthresh.max(was.whole());
            }
            Stage::InitialSlowStart | Stage::CongestionAvoidance => {
                self.window.set(self.window.cwnd.max(was.whole()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Owned, ack, loss, path, timeout};
    use crate::{Controller, ParamValue, Params, Phase, registry};
    use alloc::boxed::Box;
    use cede_units::{Duration, Instant};

    /// Twenty packets of 1000 octets in the initial slow start, over 100 ms without a queue.
    fn starting() -> Box<dyn Controller> {
        let params = Params::new().with("init_cwnd", ParamValue::Number(20.0));
        let params = params.with("filter", ParamValue::Word("latest".into()));
        let mut flow = registry::build("ledbat++", &params, &path(1000)).unwrap();
        flow.on_feedback(&at(1000, 0, 0).feedback());
        flow
    }

    /// So many octets acknowledged at this time with a queue of `queueing_ms`.
    fn at(now_ms: u64, bytes: u64, queueing_ms: u64) -> Owned {
        let mut one = ack(now_ms, bytes);
        one.feedback.now = Instant::from_millis(now_ms);
        one.feedback.rtt = Some(Duration::from_millis(100 + queueing_ms));
        one
    }

    fn lose(flow: &mut dyn Controller, now_ms: u64) -> f64 {
        let mut lost = loss(now_ms, now_ms);
        lost.feedback.now = Instant::from_millis(now_ms);
        flow.on_feedback(&lost.feedback());
        flow.snapshot().cwnd_bytes
    }

    fn undo(flow: &mut dyn Controller) -> (f64, Phase) {
        flow.on_undo();
        (flow.snapshot().cwnd_bytes, flow.snapshot().phase)
    }

    /// The same in congestion avoidance; a slowdown is due 200 ms after 1100.
    fn avoiding() -> Box<dyn Controller> {
        let mut flow = starting();
        flow.on_feedback(&at(1100, 1000, 50).feedback());
        assert_eq!(
            (flow.snapshot().cwnd_bytes, flow.snapshot().phase),
            (20_000.0, Phase::CongestionAvoidance)
        );
        flow
    }

    #[test]
    fn the_window_the_threshold_and_the_event_come_back_once() {
        let mut flow = avoiding();
        assert_eq!(lose(&mut *flow, 1110), 10_000.0);
        assert_eq!(undo(&mut *flow), (20_000.0, Phase::CongestionAvoidance));
        assert_eq!(undo(&mut *flow).0, 20_000.0);
        assert_eq!(lose(&mut *flow, 1109), 10_000.0, "of another event, though sent before that one");
        let mut marked = at(1150, 1000, 0);
        marked.feedback.ce_marked = 1;
        flow.on_feedback(&marked.feedback());
        assert_eq!(undo(&mut *flow).0, 5_000.0, "a mark is never in vain");
    }

    #[test]
    fn the_initial_slow_start_goes_on_and_so_does_that_after_a_slowdown() {
        let mut flow = starting();
        assert_eq!(lose(&mut *flow, 1010), 10_000.0);
        assert_eq!(flow.snapshot().phase, Phase::CongestionAvoidance);
        assert_eq!(undo(&mut *flow), (20_000.0, Phase::SlowStart));
        assert_eq!(flow.snapshot().ssthresh_bytes, None);
        let mut flow = avoiding();
        flow.on_feedback(&at(1300, 1000, 0).feedback());
        flow.on_feedback(&at(1500, 4000, 0).feedback());
        assert_eq!((flow.snapshot().cwnd_bytes, flow.snapshot().phase), (4_000.0, Phase::SlowStart));
        assert_eq!(lose(&mut *flow, 1510), 2_000.0);
        assert_eq!(
            (undo(&mut *flow), flow.snapshot().ssthresh_bytes),
            ((4_000.0, Phase::SlowStart), Some(20_000.0))
        );
    }

    #[test]
    fn a_timeout_is_taken_back_and_the_repair_that_it_interrupts_with_it() {
        for repairing in [false, true] {
            let mut flow = avoiding();
            if repairing {
                lose(&mut *flow, 1110);
            }
            flow.on_timeout(&timeout(5000, 1));
            flow.on_timeout(&timeout(5000, 2));
            assert_eq!((flow.snapshot().cwnd_bytes, flow.snapshot().phase), (2_000.0, Phase::SlowStart));
            assert_eq!(undo(&mut *flow), (20_000.0, Phase::CongestionAvoidance));
        }
    }

    #[test]
    fn a_freeze_that_has_begun_since_goes_on_and_slow_start_leads_to_what_was_taken() {
        let mut flow = avoiding();
        lose(&mut *flow, 1290);
        flow.on_feedback(&at(1300, 1000, 0).feedback());
        assert_eq!(undo(&mut *flow), (2_000.0, Phase::Named("slowdown")));
        assert_eq!(flow.snapshot().ssthresh_bytes, Some(20_000.0));
        assert_eq!(lose(&mut *flow, 1310), 2_000.0, "in the freeze");
        assert_eq!(flow.snapshot().ssthresh_bytes, Some(10_000.0));
        // It ends, and the slow start after it.
        flow.on_feedback(&at(1500, 6000, 0).feedback());
        flow.on_feedback(&at(1600, 12_000, 0).feedback());
        assert_eq!(
            (flow.snapshot().cwnd_bytes, flow.snapshot().phase),
            (10_000.0, Phase::CongestionAvoidance)
        );
        assert_eq!(undo(&mut *flow), (20_000.0, Phase::CongestionAvoidance));
    }
}
