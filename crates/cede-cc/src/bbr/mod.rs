//! BBR, version 1.
//!
//! Source: draft-cardwell-iccrg-bbr-congestion-control-00, section 4, with the constants and the order of steps of Linux's
//! `tcp_bbr.c` (4.9 to 6.12). The model of the path is in `model.rs`, the window in `window.rs`, constants in `params.rs`, the walk
//! through the four modes here. Windows and gains are counted in whole packets as in Linux, and given in octets.
//!
//! Three differences. Feedback that reports a loss, or a timer, never raises the window, where Linux may after the first round
//! of a recovery and at the end of PROBE_RTT in a flow that was idle; the next acknowledgement raises it. A packet may leave at least every second, so that one sample of a path that
//! slept cannot silence the connection. "Limited by the application" in PROBE_RTT is kept here, not in the transport.
//!
//! Where a recovery was in vain, whether the pipe is full is judged anew (`bbr_undo_cwnd`), and the window is that of before at once, which in
//! Linux the same acknowledgement brings about.
//!
//! *What it leaves out:* marks (ECN), which BBR v1 ignores (`Controller::answers_marks`); the detection of policers (`bbr_lt_bw_sampling`); the correction of
//! inflight for packets that wait in a pacing queue; whether an acknowledgement was delayed, when the RTT estimate expires.
//! *How it was validated:* the numbers of the window's rule in `window.rs`; the conformance suite; `tests/rate.rs`: alone (a
//! short queue, and a dip every ten seconds), with another, beside Reno, under random loss; and in the simulated world beside
//! CUBIC on 50 Mbit/s and 30 ms: nine tenths of the link with a buffer of one bandwidth-delay product, half with two, and two
//! fifths with eight, as is published of BBR v1 (Hock et al., ICNP 2017; Ware et al., IMC 2019).

mod model;
mod params;
mod window;

use crate::entry::Entry;
use crate::params::{ParamError, Params, Settings};
use crate::window::Bounds;
use crate::{Allowance, Controller, Feedback, Path, Phase, Sent, Snapshot, Tag, Timeout};
use alloc::boxed::Box;
use cede_units::{Duration, Instant, Rate, Stream};
use model::{Lesson, Model};
use params::{PARAMS, Tuning};
use window::Window;

pub(crate) const ENTRY: Entry = Entry {
    name: "bbr",
    summary: "BBR v1: paces at the largest delivery rate of ten rounds, with at most two bandwidth-delay products under way.",
    formula: "rate = gain * max(delivery rate); cwnd = 2 * max(delivery rate) * min(RTT); gains 2.89, then 0.34, then \
              1.25, 0.75, 1 x 6; every 10 s a window of 4 for 200 ms",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00; Linux net/ipv4/tcp_bbr.c",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

/// Where BBR stands (section 4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw { phase: usize, since: Instant },
    ProbeRtt { done_at: Option<Instant>, round_done: bool },
}

impl Mode {
    fn pacing_gain(self, tuning: &Tuning) -> f64 {
        match self {
            Self::Startup => tuning.startup_gain,
            Self::Drain => tuning.drain_gain,
            Self::ProbeBw { phase, .. } => tuning.cycle_gain(phase),
            Self::ProbeRtt { .. } => 1.0,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::ProbeBw { .. } => "probe bandwidth",
            Self::ProbeRtt { .. } => "probe RTT",
        }
    }
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Bbr {
    tuning: Tuning,
    model: Model,
    window: Window,
    mode: Mode,
    pacing_rate: Rate,
    /// The first rate has been worked out from an RTT.
    paced_by_rtt: bool,
    random: Stream,
    app_limited: bool,
    idle_restart: bool,
    timer: Option<Instant>,
    queueing_delay: Option<Duration>,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let tuning = Tuning::of(&settings);
    let bounds = Bounds::of(path);
    let initial = bounds.initial(settings.number("init_cwnd"), path);
    let mut bbr = Bbr {
        tuning,
        model: Model::new(&tuning),
        window: Window::new(bounds, initial, settings.number("min_cwnd"), settings.number("window_bursts")),
        mode: Mode::Startup,
        pacing_rate: Rate::default(),
        paced_by_rtt: false,
        random: Stream::named(settings.number("seed") as u64, "bbr/cycle"),
        app_limited: false,
        idle_restart: false,
        timer: None,
        queueing_delay: None,
    };
    bbr.pace_from(tuning.initial_rtt);
    Ok(Box::new(bbr))
}

impl Bbr {
    /// One packet a second at least.
    fn floor_rate(&self) -> Rate {
        Rate::from_bits_per_sec((self.window.mss() * 8.0) as u64)
    }

    /// Before anything has been delivered: the window per RTT, at the gain of STARTUP.
    fn pace_from(&mut self, rtt: Duration) {
        let rate = Rate::from_bytes_over(self.window.cwnd() as u64, rtt.max(self.tuning.initial_rtt));
        self.pacing_rate = rate.mul_f64(self.tuning.startup_gain * self.tuning.pacing).max(self.floor_rate());
    }

    /// Section 4.2.1: before the pipe is full the rate only rises.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = self.model.bandwidth().mul_f64(gain * self.tuning.pacing);
        if self.model.is_full() || rate > self.pacing_rate {
            self.pacing_rate = rate.max(self.floor_rate());
        }
    }

    /// The octets under way that stand for `gain` bandwidth-delay products.
    fn inflight(&self, gain: f64, aggregated: f64) -> f64 {
        let rate = self.model.bandwidth().bits_per_sec() as f64 / 8.0;
        let bdp = self.model.min_rtt().map(|rtt| rate * rtt.as_secs_f64());
        let probing = matches!(self.mode, Mode::ProbeBw { phase: 0, .. });
        self.window.inflight(bdp, gain, aggregated, self.pacing_rate, probing)
    }

    fn target(&self) -> f64 {
        let gain = match self.mode {
            Mode::Startup | Mode::Drain => self.tuning.startup_cwnd_gain,
            Mode::ProbeBw { .. } => self.tuning.cwnd_gain,
            Mode::ProbeRtt { .. } => 1.0,
        };
        let allow = self.tuning.aggregation && self.model.is_full();
        self.inflight(gain, if allow { self.model.extra_acked() } else { 0.0 })
    }

    /// Section 4.3.4.3: on to the next gain, where this one has done its work.
    fn cycle(&mut self, feedback: &Feedback<'_>) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        let gain = self.tuning.cycle_gain(phase);
        let lasted = feedback.now.since(since) > self.model.min_rtt().unwrap_or_default();
        let before = feedback.in_flight_before_bytes as f64;
        let done = if gain > 1.0 {
            let burst = self.window.burst_packets(self.pacing_rate) * self.window.mss();
            lasted && (!feedback.lost.is_empty() || before + burst >= self.inflight(gain, 0.0))
        } else {
            lasted || (gain < 1.0 && before <= self.inflight(1.0, 0.0))
        };
        if done {
            self.mode = Mode::ProbeBw { phase: (phase + 1) % self.tuning.cycle_length, since: feedback.now };
        }
    }

    /// Any phase but that which drains.
    fn enter_probe_bw(&mut self, now: Instant) {
        let phases = self.tuning.cycle_length;
        let drawn = self.random.below(phases as u64 - 1) as usize;
        self.mode = Mode::ProbeBw { phase: (phases - drawn) % phases, since: now };
    }

    /// Sections 4.3.2 and 4.3.3.
    fn check_drain(&mut self, feedback: &Feedback<'_>) {
        if self.mode == Mode::Startup && self.model.is_full() {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && feedback.in_flight_bytes as f64 <= self.inflight(1.0, 0.0) {
            self.enter_probe_bw(feedback.now);
        }
    }

    /// Section 4.3.5.
    fn check_probe_rtt(&mut self, feedback: &Feedback<'_>, lesson: Lesson) {
        let expired = self.model.take_rtt(feedback, self.tuning.probe_rtt_interval);
        if expired && !self.idle_restart && !self.in_probe_rtt() {
            self.window.save(false);
            self.mode = Mode::ProbeRtt { done_at: None, round_done: false };
        }
        let Mode::ProbeRtt { done_at, round_done } = &mut self.mode else { return };
        self.model.limit_until_delivered(feedback);
        if done_at.is_none() && feedback.in_flight_bytes as f64 <= self.window.minimum() {
            *done_at = Some(feedback.now + self.tuning.probe_rtt_duration);
            self.model.restart_round(feedback.delivered_bytes);
        } else if done_at.is_some() {
            *round_done |= lesson.round_start;
            if *round_done && feedback.acknowledges() {
                self.leave_probe_rtt(feedback.now);
            }
        }
    }

    fn leave_probe_rtt(&mut self, now: Instant) {
        let Mode::ProbeRtt { done_at: Some(done_at), .. } = self.mode else { return };
        if now <= done_at {
            return;
        }
        self.model.renew_min_rtt(now);
        self.window.restore();
        if self.model.is_full() {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    const fn in_probe_rtt(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt { .. })
    }

    /// Section 4.1 and 4.3, in the order of `bbr_update_model`.
    fn update_model(&mut self, feedback: &Feedback<'_>) {
        let lesson = self.model.take_delivery(feedback);
        if lesson.round_start {
            self.window.on_round();
        }
        if self.tuning.aggregation && feedback.acked_bytes > 0 {
            self.model.take_aggregation(feedback, self.window.cwnd());
        }
        self.cycle(feedback);
        self.model.check_full(lesson);
        self.check_drain(feedback);
        self.check_probe_rtt(feedback, lesson);
        self.idle_restart &= feedback.acked_bytes == 0;
    }
}

impl Controller for Bbr {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    /// After idleness the pipe is empty: going on at the bandwidth itself fills it in one round trip (section 4.3.4.4).
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        if self.app_limited && sent.in_flight_bytes <= u64::from(sent.bytes) {
            self.idle_restart = true;
            self.model.restart_epoch(sent.now);
            self.timer = Some(sent.now);
        }
        0
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        let before = self.window.cwnd();
        self.app_limited = feedback.app_limited;
        self.update_model(feedback);
        if !self.paced_by_rtt && !feedback.srtt.is_zero() {
            self.paced_by_rtt = true;
            self.pace_from(feedback.srtt);
        }
        self.set_pacing_rate(self.mode.pacing_gain(&self.tuning));
        let (target, full) = (self.target(), self.model.is_full());
        if self.window.take(feedback, target, full, self.in_probe_rtt()) {
            self.model.restart_round(feedback.delivered_bytes);
        }
        if !feedback.lost.is_empty() || !feedback.acknowledges() {
            self.window.cap(before);
        }
        if let (Some(rtt), Some(least)) = (feedback.rtt, self.model.min_rtt()) {
            self.queueing_delay = Some(rtt.saturating_sub(least));
        }
        self.allowance()
    }

    /// `bbr_undo_cwnd`; the window follows by `bbr_set_cwnd_to_recover_or_restore`.
    fn on_undo(&mut self) -> Allowance {
        self.model.forget_growth();
        self.window.undo(self.in_probe_rtt());
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        if !timeout.idle {
            self.window.on_timeout(timeout, self.in_probe_rtt());
            self.model.forget_growth();
        }
        self.allowance()
    }

    fn on_timer(&mut self, now: Instant) -> Allowance {
        self.timer = None;
        match &mut self.mode {
            Mode::ProbeBw { .. } => self.set_pacing_rate(1.0),
            // The kernel gives the window back here; we do with the first acknowledgement.
            Mode::ProbeRtt { done_at: Some(done_at), round_done } => *round_done |= now > *done_at,
            Mode::ProbeRtt { .. } | Mode::Startup | Mode::Drain => {}
        }
        self.allowance()
    }

    fn timer(&self) -> Option<Instant> {
        self.timer
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.window.set_mss(mss_bytes);
        self.pacing_rate = self.pacing_rate.max(self.floor_rate());
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        let burst = self.window.burst_packets(self.pacing_rate) * self.window.mss();
        Allowance {
            cwnd_bytes: self.window.cwnd() as u64,
            pacing_rate: Some(self.pacing_rate),
            burst_bytes: burst as u32,
        }
    }

    fn answers_marks(&self) -> bool {
        false
    }

    fn snapshot(&self) -> Snapshot {
        let phase = if self.window.is_repairing() { Phase::Recovery } else { Phase::Named(self.mode.name()) };
        Snapshot {
            cwnd_bytes: self.window.cwnd(),
            pacing_rate: Some(self.pacing_rate),
            base_delay_ns: self.model.min_rtt().map(|rtt| i64::try_from(rtt.as_nanos()).unwrap_or(i64::MAX)),
            queueing_delay: self.queueing_delay,
            phase,
            ..Snapshot::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, path};
    use crate::{PacketFact, SendRecord, registry};

    /// In which round of the same bandwidth STARTUP is over, where a recovery in vain is taken back in the third.
    fn rounds_of_startup(undone: bool) -> Option<u64> {
        let mut bbr = registry::build("bbr", &Params::new(), &path(1000)).unwrap();
        (1..20).find(|&round| {
            let now = Instant::from_millis(1000 + 100 * round);
            let sent_at = now.saturating_sub(Duration::from_millis(100));
            let delivered_bytes = 10_000 * (round - 1);
            let record = SendRecord {
                delivered_bytes,
                delivered_at: sent_at,
                first_sent_at: sent_at,
                app_limited: false,
            };
            let fact =
                PacketFact { number: round, bytes: 1000, sent_at, retransmitted: false, tag: 0, record };
            let mut news = ack(round, 10_000).feedback;
            (news.now, news.rtt, news.delivered_bytes) =
                (now, Some(Duration::from_millis(100)), 10_000 * round);
            bbr.on_feedback(&Feedback { acked: &[fact], ..news });
            if undone && round == 3 {
                bbr.on_undo();
            }
            bbr.snapshot().phase != Phase::Named("startup")
        })
    }

    #[test]
    fn after_a_recovery_in_vain_three_more_rounds_without_growth_are_asked_for() {
        let [kept, undone] = [false, true].map(rounds_of_startup);
        assert_eq!((kept, undone), (Some(4), Some(7)));
    }
}
