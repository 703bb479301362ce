//! Slowdowns: the window stands at its smallest for two round trips, so that the base is seen, and a late-comer sees it.
//!
//! Source: LEDBAT++, section 4.4, whose window is regrown; here it is restored, and paced.
//! *What it leaves out, how it was validated:* see `mod.rs`.

use super::{AHEAD_TARGETS, Cede, Stage};
use crate::Feedback;
use cede_units::Duration;

impl Cede {
    pub(super) fn slow_down_if_due(&mut self, feedback: &Feedback<'_>) {
        let due = self.next_slowdown.is_some_and(|at| feedback.now >= at);
        if !due || !self.config.slowdowns || self.stage != Stage::Steady || feedback.in_recovery {
            return;
        }
        let now = feedback.now;
        // Who has little under way, or has seen no queue for long, keeps none to drain. Where trains limit the flow there is none by that
        // alone, and the next train, which may say otherwise, follows a slowdown.
        let climbs = self.ahead_targets > AHEAD_TARGETS && self.trains.share().is_none();
        if feedback.app_limited || self.cwnd <= self.floor() || climbs {
            self.next_slowdown = Some(now + self.srtt * 2);
            return;
        }
        let until = now + self.freeze();
        self.stage = Stage::Slowdown { began: now, until, before: self.cwnd };
        self.slowdown_least_ns = i64::MAX;
        if self.config.allow_jitter {
            let wanted_ns = self.target.wanted_ns(self.queue.base_rtt());
            self.jitter.begin_slowdown(
                now,
                self.next_number,
                self.srtt,
                self.rounds.noise_ns() as f64 > wanted_ns,
            );
        }
        self.cwnd = self.bounds.bound(0.0, self.floor());
    }

    /// How long a slowdown lasts that begins now.
    fn freeze(&self) -> Duration {
        Duration::from_secs_f64(self.rtt_s() * self.config.freeze)
    }

    /// Ends a slowdown that is over, and says whether it did.
    pub(super) fn end_slowdown(&mut self, feedback: &Feedback<'_>) -> bool {
        let Stage::Slowdown { began, until, before } = self.stage else { return false };
        let now = feedback.now;
        // A queue of minutes that has gone meanwhile is not waited for.
        let until = until.min(now + self.freeze());
        if now < until || self.jitter.looks(self.target.wanted_ns(self.queue.base_rtt())) {
            self.stage = Stage::Slowdown { began, until, before };
            return false;
        }
        self.queue.end_epoch();
        self.rounds.fade_peak_rate();
        self.jitter.end_slowdown();
        self.stage = Stage::Steady;
        let lasted = if self.jitter.end_look(now) { self.freeze() } else { now.since(began) };
        self.next_slowdown = Some(now + lasted.mul_f64(self.config.spacing));
        // The least that it showed: with two packets under way a receiver that answers pairs waits for a timer.
        let queue_ns = if self.slowdown_least_ns == i64::MAX { 0.0 } else { self.slowdown_least_ns as f64 };
        // Where somebody else keeps a queue, half; else what was delivered lately, which slow start may have left above.
        let after = if queue_ns > self.target_ns(now) {
            before / 2.0
        } else {
            before.max(self.bdp().unwrap_or(0.0).min(2.0 * before))
        };
        self.set(after);
        self.end_growth();
        self.rounds.restart(self.next_number);
        self.restoring = true;
        self.begin_train(feedback);
        true
    }

    /// The flow's queue is empty: what leaves back to back now shows whether the link is divided.
    fn begin_train(&mut self, feedback: &Feedback<'_>) {
        let train = self.config.train as f64 * self.bounds.mss;
        // A window that trains have made smaller than one must not keep the next from leaving.
        let holds = self.cwnd >= train || self.trains.share().is_some();
        if !self.config.fair_queueing || !self.config.pace || !holds {
            return;
        }
        let hold = self.delivered().map_or(0.0, |rate| train / rate.max(1.0)).min(self.rtt_s());
        let hold = Duration::from_secs_f64(hold);
        if self.pairs.answers() {
            let rtt = Duration::from_secs_f64(self.rtt_s());
            self.trains.begin_pairs(self.next_number, feedback.in_flight_bytes, hold, rtt);
        } else {
            self.trains.begin(self.next_number, feedback.in_flight_bytes, hold);
        }
    }
}
