//! LEDBAT++ as the draft specifies it.
//!
//! Source: draft-irtf-iccrg-ledbat-plus-plus, as three readers of it agree on its rules (Apple's XNU, the rLEDBAT module of
//! UC3M, the fork of libutp); where they differ, the choice is named below. Windows in packets, q the queueing delay:
//! ```text
//! G = 1 / min(16, ceil(2 TARGET / base))                                  section 4.2
//! slow start:            W += G a              up to q > 3/4 TARGET in the initial one
//! q <= TARGET:           W += G a / W
//! q >  TARGET, once/RTT: W += max(G - K W (q/TARGET - 1), -W/2)           section 4.2, K = 1
//! slowdown:              ssthresh = W, W = 2 for 2 RTT, slow start to ssthresh; the next one after 9 times that
//! ```
//! The first slowdown comes 2 RTT after the initial slow start. The freeze lets the queue run empty, so that all flows of a link
//! measure the same base. Choices: a slowdown lasts from the beginning of its freeze; a q above TARGET ends the slow start after
//! it; a loss in a freeze halves ssthresh and the freeze goes on, one in the slow start after it ends that and the next
//! slowdown is due 2 RTT later; a timeout leaves 2 packets and is a slowdown of its own; so is idleness, and a silence of more
//! than 2 RTT in which a slowdown fell due, since idle flows drain their queue anyway.
//!
//! `signal = rtt` as in the draft (section 4.5); with `owd` the queue of the way back does not count, and G still takes
//! the smallest RTT.
//!
//! A loss or a timeout that was none: `plus_plus/undo.rs`.
//!
//! *What it leaves out:* XNU's deferral by 30 s after a decrease and its doubling of a slowdown that did not regain the window.
//! *How it was validated:* the numbered checks below and in `tests/ledbat_plus_plus.rs`; the conformance suite; beside CUBIC and alone on
//! the test bed of the libutp fork (`docs/validation.md`).

mod undo;

use super::delay_window::{
    BASE_HISTORY, DelayWindow, FILTER_LENGTH, FILTER_WEIGHT, SLOW_START_EXIT, drift_param, filter_param,
    hold_param, packets_param, target_param,
};
use crate::entry::Entry;
use crate::instruments::BaseHistory;
use crate::params::{ParamDoc, ParamError, ParamKind, Params, Settings, count, number};
use crate::signal::signal_param;
use crate::undo::Undo;
use crate::window::congested_number;
use crate::{Allowance, Controller, Feedback, Path, Phase, Snapshot, Timeout};
use alloc::boxed::Box;
use cede_units::{Duration, Instant};

pub(super) const MAX_GAIN_DIVISOR: ParamDoc = count(
    "max_gain_divisor",
    "16",
    (1, 1000),
    "The gain is never below one over this, however short the path.",
);

pub(super) const SLOWDOWNS: ParamDoc = ParamDoc {
    name: "slowdowns",
    kind: ParamKind::Switch,
    default: "on",
    doc: "Drain the queue periodically, so that the base delay shows.",
};

const PARAMS: &[ParamDoc] = &[
    target_param("60 ms"),
    signal_param("rtt"),
    MAX_GAIN_DIVISOR,
    number(
        "decrease",
        "1",
        (0.001, 100.0),
        "K: the part of the window that goes per round trip, over the excess of q over the target.",
    ),
    number("max_decrease", "0.5", (0.0, 0.99), "The part of the window that goes per round trip at most."),
    SLOWDOWNS,
    number(
        "freeze",
        "2",
        (0.1, 100.0),
        "Smoothed RTTs for which a slowdown keeps the window at its smallest.",
    ),
    number(
        "slowdown_spacing",
        "9",
        (0.0, 1000.0),
        "Time to the next slowdown over the duration of the last one.",
    ),
    SLOW_START_EXIT,
    BASE_HISTORY,
    filter_param("min"),
    FILTER_LENGTH,
    FILTER_WEIGHT,
    packets_param("min_cwnd", "2", "The smallest window in packets."),
    packets_param("init_cwnd", "2", "The initial window in packets."),
    drift_param("on"),
    hold_param("off"),
];

pub(crate) const ENTRY: Entry = Entry {
    name: "ledbat++",
    summary: "LEDBAT++ (the IRTF draft): yields by delay, shares evenly, measures its base anew in periodic slowdowns.",
    formula: "G = 1/min(16, ceil(2 TARGET/base)); slow start: W += G a; q <= TARGET: W += G a/W; above, once per RTT: W += \
              max(G - W (q/TARGET - 1), -W/2); slowdown: W = 2 for 2 RTT, slow start back, again after 9 times that; loss: \
              W/2; timeout: 2 packets",
    source: "draft-irtf-iccrg-ledbat-plus-plus section 4",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

#[derive(Clone, Copy, PartialEq, Debug)]
struct Config {
    target: Duration,
    max_divisor: u64,
    decrease: f64,
    max_decrease: f64,
    slowdowns: bool,
    freeze: f64,
    spacing: f64,
    slow_start_exit: f64,
}

/// Where the flow stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    InitialSlowStart,
    CongestionAvoidance,
    /// The window stands at its smallest.
    Frozen {
        until: Instant,
    },
    /// Back to where the slowdown, the timeout or the idleness began.
    RecoverSlowStart,
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct PlusPlus {
    config: Config,
    window: DelayWindow,
    /// RTTs, from which the gain follows.
    rtts: BaseHistory,
    stage: Stage,
    /// When the slowdown began that is under way; after idleness its first acknowledgement.
    slowdown_began: Option<Instant>,
    next_slowdown: Option<Instant>,
    /// From the end of the last slowdown to the next one.
    spacing: Duration,
    next_decrease: Instant,
    last_heard: Option<Instant>,
    srtt: Duration,
    undo: Undo<undo::Before>,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let config = Config {
        target: settings.duration("target"),
        max_divisor: settings.count("max_gain_divisor") as u64,
        decrease: settings.number("decrease"),
        max_decrease: settings.number("max_decrease"),
        slowdowns: settings.switch("slowdowns"),
        freeze: settings.number("freeze"),
        spacing: settings.number("slowdown_spacing"),
        slow_start_exit: settings.number("slow_start_exit"),
    };
    Ok(Box::new(PlusPlus {
        config,
        window: DelayWindow::new(&settings, path, true),
        rtts: BaseHistory::new(settings.count("base_history")),
        stage: Stage::InitialSlowStart,
        slowdown_began: None,
        next_slowdown: None,
        spacing: Duration::ZERO,
        next_decrease: Instant::ZERO,
        last_heard: None,
        srtt: Duration::ZERO,
        undo: Undo::new(),
    }))
}

/// min(largest, ceil(2 TARGET / base)), and at least 1; both in the same unit.
pub(super) fn gain_divisor(target: u64, base: u64, largest: u64) -> u64 {
    target.saturating_mul(2).div_ceil(base.max(1)).clamp(1, largest.max(1))
}

/// What one round trip with a queue of `excess` times the target above the target takes from a window of `cwnd`, or,
/// barely above, still adds to it.
fn steered(cwnd: f64, gain: f64, (decrease, max_decrease): (f64, f64), excess: f64) -> f64 {
    (gain - decrease * cwnd * excess).max(-cwnd * max_decrease)
}

impl PlusPlus {
    fn gain(&self) -> f64 {
        let base_ns = self.rtts.latest_ns().unwrap_or(0).max(0) as u64;
        1.0 / gain_divisor(self.config.target.as_nanos(), base_ns, self.config.max_divisor) as f64
    }

    fn two_rtts(&self) -> Duration {
        self.srtt * 2
    }

    /// Takes down times; a silence of more than 2 RTT has drained the queue, as a slowdown that fell due in it would have.
    fn hear(&mut self, feedback: &Feedback<'_>) {
        let now = feedback.now;
        if let Some(rtt) = feedback.rtt {
            self.rtts.update(now, rtt.as_nanos().min(i64::MAX as u64) as i64);
        }
        let silence = self.last_heard.map_or(Duration::ZERO, |last| now.since(last));
        if silence > self.two_rtts() && self.is_due(now) {
            self.next_slowdown = Some(now + self.spacing.max(self.two_rtts()));
        }
        self.srtt = feedback.srtt;
        self.last_heard = Some(now);
        self.end_freeze(now);
    }

    fn is_due(&self, now: Instant) -> bool {
        self.next_slowdown.is_some_and(|due| now >= due)
    }

    fn end_freeze(&mut self, now: Instant) {
        if matches!(self.stage, Stage::Frozen { until } if now >= until) {
            self.stage = Stage::RecoverSlowStart;
        }
    }

    fn on_ack(&mut self, feedback: &Feedback<'_>, queueing_ns: i64) {
        let now = feedback.now;
        let queueing = queueing_ns as f64 / self.config.target.as_nanos() as f64;
        let may_grow = !feedback.app_limited && !feedback.in_recovery;
        match self.stage {
            Stage::Frozen { .. } => {}
            Stage::InitialSlowStart if queueing > self.config.slow_start_exit => {
                self.window.ssthresh = self.window.cwnd;
                self.schedule(now, self.two_rtts());
            }
            Stage::InitialSlowStart | Stage::RecoverSlowStart if queueing <= 1.0 => {
                if may_grow {
                    self.grow_exponentially(now, feedback.acked_bytes);
                }
            }
            Stage::InitialSlowStart | Stage::RecoverSlowStart => {
                self.end_slowdown(now);
                self.avoid(feedback, queueing, may_grow);
            }
            Stage::CongestionAvoidance => self.avoid(feedback, queueing, may_grow),
        }
    }

    fn grow_exponentially(&mut self, now: Instant, acked_bytes: u64) {
        let grown = self.window.cwnd + self.gain() * acked_bytes as f64;
        self.window.set(grown.min(self.window.ssthresh));
        if self.stage == Stage::RecoverSlowStart {
            self.slowdown_began.get_or_insert(now);
            if grown >= self.window.ssthresh {
                self.end_slowdown(now);
            }
        }
    }

    /// Steady rule and the beginning of slowdowns.
    fn avoid(&mut self, feedback: &Feedback<'_>, queueing: f64, may_grow: bool) {
        let now = feedback.now;
        if self.config.slowdowns && self.is_due(now) && !feedback.in_recovery {
            self.slow_down(now, feedback.app_limited);
            return;
        }
        let (cwnd, mss) = (self.window.cwnd, self.window.bounds.mss);
        if queueing <= 1.0 {
            if may_grow {
                let acked = (feedback.acked_bytes as f64).min(cwnd);
                self.window.set(cwnd + self.gain() * acked * mss / cwnd);
            }
        } else if now >= self.next_decrease {
            let Config { decrease, max_decrease, .. } = self.config;
            let change = steered(cwnd / mss, self.gain(), (decrease, max_decrease), queueing - 1.0);
            if change < 0.0 || may_grow {
                self.window.set(cwnd + change * mss);
            }
            self.next_decrease = now + self.srtt;
        }
    }

    /// A slowdown is due. A flow at its smallest window, or without enough to send, keeps no queue to drain.
    fn slow_down(&mut self, now: Instant, app_limited: bool) {
        if app_limited || self.window.cwnd <= self.window.floor() {
            self.schedule(now, self.two_rtts());
            return;
        }
        self.slowdown_began = Some(now);
        self.window.ssthresh = self.window.cwnd;
        self.window.set(0.0);
        self.stage = Stage::Frozen { until: now + self.srtt.mul_f64(self.config.freeze) };
    }

    /// Congestion avoidance from here, and a slowdown after so long.
    fn schedule(&mut self, now: Instant, wait: Duration) {
        self.stage = Stage::CongestionAvoidance;
        self.slowdown_began = None;
        self.next_slowdown = Some(now + wait);
    }

    /// The slow start after a slowdown is over.
    fn end_slowdown(&mut self, now: Instant) {
        let lasted = self.slowdown_began.map_or(self.two_rtts(), |began| now.since(began));
        self.spacing = lasted.mul_f64(self.config.spacing);
        self.window.ssthresh = self.window.ssthresh.min(self.window.cwnd);
        self.schedule(now, self.spacing);
    }

    /// Once per window of data.
    fn cut(&mut self, now: Instant) {
        let floor = self.window.floor();
        if let Stage::Frozen { .. } = self.stage {
            self.window.ssthresh = (self.window.ssthresh / 2.0).max(floor);
            return;
        }
        let half = (self.window.cwnd / 2.0).max(floor);
        self.window.cwnd = half.min(self.window.cwnd);
        self.window.ssthresh = half;
        if self.stage != Stage::CongestionAvoidance {
            self.schedule(now, self.two_rtts());
        }
    }

    /// Slow start back to `ssthresh`, which counts as a slowdown.
    fn start_over(&mut self, began: Option<Instant>) {
        self.stage = Stage::RecoverSlowStart;
        self.slowdown_began = began;
    }
}

impl Controller for PlusPlus {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        let queueing = self.window.measure(feedback);
        self.hear(feedback);
        if let Some(number) = congested_number(feedback) {
            if self.window.is_new_event(number) {
                self.undo.note_event(feedback, self.before_cut());
                self.window.begin_event(feedback);
                self.cut(feedback.now);
                self.note_left();
            }
        } else if let Some(queueing_ns) = queueing.filter(|_| feedback.acked_bytes > 0) {
            self.on_ack(feedback, queueing_ns);
        }
        self.allowance()
    }

    fn on_undo(&mut self) -> Allowance {
        if let Some(before) = self.undo.take() {
            self.give_back(&before);
        }
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        self.undo.note_timeout(timeout, self.window.is_repairing(), self.before_cut());
        let (before, floor) = (self.window.cwnd, self.window.floor());
        if timeout.idle && self.stage == Stage::CongestionAvoidance {
            self.window.ssthresh = before;
            self.start_over(None);
        }
        self.window.on_timeout(timeout, (before / 2.0).max(floor));
        if !timeout.idle {
            self.window.cwnd = before.min(floor).min(2.0 * self.window.bounds.mss);
            self.start_over(Some(timeout.now));
            self.note_left();
        }
        self.allowance()
    }

    fn on_timer(&mut self, now: Instant) -> Allowance {
        self.end_freeze(now);
        self.allowance()
    }

    fn timer(&self) -> Option<Instant> {
        match self.stage {
            Stage::Frozen { until } => Some(until),
            _ => None,
        }
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.window.on_mss(mss_bytes)
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }

    fn snapshot(&self) -> Snapshot {
        let phase = match self.stage {
            Stage::InitialSlowStart | Stage::RecoverSlowStart => Phase::SlowStart,
            Stage::CongestionAvoidance => Phase::CongestionAvoidance,
            Stage::Frozen { .. } => Phase::Named("slowdown"),
        };
        Snapshot { phase, ..self.window.snapshot() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Owned, ack, loss, path, timeout};
    use crate::{ParamValue, registry};

    const MS: u64 = 1_000_000;

    #[test]
    fn check_1_gain_denominators() {
        let at = |base_us| gain_divisor(60_000, base_us, 16);
        let bases = [1000, 7500, 8000, 10_000, 20_000, 30_000, 40_000, 50_000, 59_999];
        assert_eq!(bases.map(at), [16, 16, 15, 12, 6, 4, 3, 3, 3]);
        assert_eq!([60_000, 60_001, 119_000, 120_000, 500_000].map(at), [2, 2, 2, 1, 1]);
        assert_eq!(at(0), 16, "nothing measured yet");
    }

    #[test]
    fn check_2_per_round_trip() {
        let cases = [
            (20.0, 61.0, 30_u64, 19.91667),
            (20.0, 66.0, 30, 18.25),
            (20.0, 75.0, 30, 15.25),
            (20.0, 90.0, 30, 10.25),
            (20.0, 120.0, 30, 10.0),
            (20.0, 61.0, 120, 20.66667),
            (4.0, 63.0, 30, 4.05),
        ];
        for (window, q_ms, base_ms, after) in cases {
            let gain = 1.0 / gain_divisor(60, base_ms, 16) as f64;
            let found = window + steered(window, gain, (1.0, 0.5), q_ms / 60.0 - 1.0);
            assert!((found - after).abs() < 1e-5, "{window} {q_ms} {base_ms}: {found}");
        }
        assert_eq!(steered(20.0, 0.25, (1.0, 0.1), 1.0), -2.0, "a tenth at most");
    }

    /// A flow of packets of 1000 octets that has left slow start with this window and this base RTT.
    fn in_avoidance(window: f64, base_ms: u64) -> Box<dyn Controller> {
        let params = Params::new()
            .with("init_cwnd", ParamValue::Number(window))
            .with("filter", ParamValue::Word("latest".into()))
            .with("slow_start_exit", ParamValue::Number(0.0));
        let mut flow = registry::build("ledbat++", &params, &path(1000)).unwrap();
        flow.on_feedback(&at(0, base_ms, 0, 0).feedback());
        flow.on_feedback(&at(1, base_ms + 1, 1000, base_ms).feedback());
        assert_eq!(flow.snapshot().phase, Phase::CongestionAvoidance);
        flow
    }

    /// So many octets acknowledged at `now_ms` after a round trip of `rtt_ms`.
    fn at(now_ms: u64, rtt_ms: u64, bytes: u64, srtt_ms: u64) -> Owned {
        let mut one = ack(now_ms, bytes);
        one.feedback.now = Instant::from_millis(now_ms);
        one.feedback.rtt = Some(Duration::from_nanos(rtt_ms * MS));
        one.feedback.srtt = Duration::from_millis(srtt_ms);
        one
    }

    #[test]
    fn check_2_through_the_controller() {
        // The first slowdown is 2 RTT = 60 ms after the exit at 1 ms: both steps come before it.
        let after = |rtt_ms| {
            let mut flow = in_avoidance(20.0, 30);
            let mut one = at(40, rtt_ms, 20_000, 5);
            one.feedback.now = Instant::from_millis(40);
            flow.on_feedback(&one.feedback());
            flow.snapshot().cwnd_bytes / 1000.0
        };
        for (q_ms, window) in [(0, 20.25), (60, 20.25), (61, 19.91667), (90, 10.25), (120, 10.0)] {
            assert!((after(30 + q_ms) - window).abs() < 1e-5, "{q_ms} ms: {}", after(30 + q_ms));
        }
        let mut floor = in_avoidance(2.0, 30);
        floor.on_feedback(&at(40, 230, 2000, 5).feedback());
        assert_eq!(floor.snapshot().cwnd_bytes, 2000.0);
    }

    #[test]
    fn a_decrease_comes_once_per_round_trip() {
        let mut flow = in_avoidance(20.0, 30);
        for (now_ms, window) in [(40, 18.25), (41, 18.25), (44, 18.25), (46, 16.675)] {
            flow.on_feedback(&at(now_ms, 96, 1000, 5).feedback());
            assert!((flow.snapshot().cwnd_bytes / 1000.0 - window).abs() < 1e-9, "{now_ms} ms");
        }
    }

    #[test]
    fn check_3_initial_slow_start_follows_the_base() {
        for (base_ms, factor) in [(40, 4.0 / 3.0), (120, 2.0), (500, 2.0)] {
            let mut flow = registry::build("ledbat++", &Params::new(), &path(1000)).unwrap();
            let mut window: f64 = 2000.0;
            for round in 1..=6 {
                flow.on_feedback(&at(round * base_ms, base_ms, window as u64, base_ms).feedback());
                // Whole octets are acknowledged.
                window += (factor - 1.0) * (window as u64) as f64;
                assert!((flow.snapshot().cwnd_bytes - window).abs() < 1e-6, "base {base_ms}, round {round}");
            }
        }
    }

    /// One acknowledgement per round trip of 40 ms of the whole window from a window of 100 packets on, until the second
    /// slowdown: when the first begins, when its freeze ends, when it is over, and when the second begins.
    fn timeline() -> [u64; 4] {
        let mut flow = in_avoidance(100.0, 40);
        let (mut turns, mut last, mut now_ms) = ([0; 4], flow.snapshot().phase, 0);
        let mut turn = 0;
        while turn < 4 {
            now_ms += 40;
            if flow.timer().is_some_and(|at| at <= Instant::from_millis(now_ms)) {
                flow.on_timer(Instant::from_millis(now_ms));
            }
            let phase = flow.snapshot().phase;
            if phase != last {
                (turns[turn], turn, last) = (now_ms, turn + 1, phase);
            }
            let bytes = flow.snapshot().cwnd_bytes as u64;
            flow.on_feedback(&at(now_ms, 40, bytes, 40).feedback());
            let phase = flow.snapshot().phase;
            if phase != last && turn < 4 {
                (turns[turn], turn, last) = (now_ms, turn + 1, phase);
            }
            assert!(now_ms < 100_000);
        }
        turns
    }

    #[test]
    fn check_4_the_timeline_of_a_slowdown() {
        let [began, thawed, over, again] = timeline();
        assert_eq!(thawed - began, 80, "two round trips of 40 ms");
        // 2 packets to 100 at 4/3 per round trip: 14 of them, the first of which is counted where the freeze ends.
        assert_eq!(over - thawed, 13 * 40);
        assert_eq!(again - over, (9 * (over - began)).div_ceil(40) * 40);
        assert!((over - began) as f64 / (again - began) as f64 <= 0.1);
    }

    #[test]
    fn check_9_an_idle_flow_needs_no_slowdown() {
        let mut flow = in_avoidance(20.0, 40);
        // The first slowdown falls due at 81 ms, in a silence of ten seconds.
        flow.on_feedback(&at(10_000, 40, 1000, 40).feedback());
        assert_eq!(flow.snapshot().phase, Phase::CongestionAvoidance);
        for now_ms in (10_001..10_080).step_by(10) {
            flow.on_feedback(&at(now_ms, 40, 1000, 40).feedback());
            assert_eq!(flow.snapshot().phase, Phase::CongestionAvoidance, "{now_ms}");
        }
        flow.on_feedback(&at(10_081, 40, 1000, 40).feedback());
        assert_eq!(flow.snapshot().phase, Phase::Named("slowdown"), "2 RTT after it is back");

        let mut idle = in_avoidance(20.0, 40);
        idle.on_timeout(&Timeout { idle: true, ..timeout(0, 0) });
        let snapshot = idle.snapshot();
        assert_eq!((snapshot.phase, snapshot.ssthresh_bytes), (Phase::SlowStart, Some(20_000.0)));
    }

    fn frozen() -> Box<dyn Controller> {
        let mut flow = in_avoidance(20.0, 40);
        for now_ms in [41, 81] {
            flow.on_feedback(&at(now_ms, 40, 1000, 40).feedback());
        }
        assert_eq!(flow.snapshot().phase, Phase::Named("slowdown"));
        flow
    }

    #[test]
    fn a_loss_in_a_freeze_halves_what_it_returns_to() {
        let mut flow = frozen();
        let before = flow.snapshot().ssthresh_bytes.unwrap();
        let mut lost = loss(50, 90);
        lost.feedback.now = Instant::from_millis(90);
        lost.feedback.srtt = Duration::from_millis(40);
        flow.on_feedback(&lost.feedback());
        let after = flow.snapshot();
        assert_eq!((after.cwnd_bytes, after.phase), (2000.0, Phase::Named("slowdown")));
        assert_eq!(after.ssthresh_bytes, Some(before / 2.0));
    }

    #[test]
    fn a_timeout_leaves_two_packets_and_slow_start() {
        let mut flow = in_avoidance(20.0, 40);
        flow.on_timeout(&timeout(20_000, 1));
        let snapshot = flow.snapshot();
        assert_eq!((snapshot.cwnd_bytes, snapshot.phase), (2000.0, Phase::SlowStart));
        assert!(snapshot.ssthresh_bytes.unwrap() >= 10_000.0);
    }

    #[test]
    fn one_way_delays_steer_where_they_are_asked_for() {
        let params = Params::new().with("signal", ParamValue::Word("owd".into()));
        let mut flow = registry::build("ledbat++", &params, &path(1000)).unwrap();
        for (now_ms, rtt_ms, owd_ms) in [(0, 40, -500), (40, 340, -500), (80, 340, -500)] {
            let mut one = at(now_ms, rtt_ms, 2000, 40);
            one.feedback.one_way_delay_ns = Some(owd_ms * MS as i64);
            flow.on_feedback(&one.feedback());
        }
        assert_eq!(flow.snapshot().phase, Phase::SlowStart, "300 ms on the way back are not ours");
        assert!((flow.snapshot().cwnd_bytes - 4000.0).abs() < 1e-9, "base RTT 40 ms: G = 1/3");
    }
}
