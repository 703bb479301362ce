//! CUBIC.
//!
//! Source: RFC 9438. Section 4.1: C = 0.4, beta = 0.7; 4.2: the cubic; 4.3: the Reno-friendly region; 4.4, 4.5: concave and convex
//! regions; 4.6: multiplicative decrease; 4.7: fast convergence; 4.8: timeouts; 4.10: slow start, here with HyStart++ (RFC
//! 9406, file `hystart.rs`) in the first one. Windows in packets, times in seconds.
//!
//! One reading is ours: where the estimate W_est rules, the RFC sets cwnd to it; we never lower the window by that
//! (it can lie below a window that followed W_cubic(t + RTT)), as Linux does not either.
//!
//! `rules = linux` is what the kernel does instead (file `cubic_linux.rs`).
//!
//! Where the transport finds out that a loss was none, the state before it comes back (section 4.9.2); in Linux window and threshold
//! do, and a new epoch begins.
//!
//! *What it leaves out:* pacing; Linux's integer arithmetic.
//! *How it was validated:* the curves and the run of `tests/vectors/tcp.json`; the conformance suite; `tests/link.rs`; beside the
//! kernel's (`docs/validation.md`).

use crate::cubic_linux::Linux;
use crate::entry::Entry;
use crate::hystart::{HyStart, HyStartConfig, Verdict};
use crate::instruments::LossEpoch;
use crate::params::{ParamDoc, ParamError, ParamKind, Params, Settings, count, number};
use crate::reno::INIT_CWND;
use crate::undo::Undo;
use crate::window::{Bounds, MIN_SSTHRESH_PACKETS, congested_number, given_up, phase_of, snapshot_of};
use crate::{Allowance, Controller, Feedback, Path, Phase, Snapshot, Timeout};
use alloc::boxed::Box;
use cede_units::{Duration, Instant, math};

const PARAMS: &[ParamDoc] = &[
    INIT_CWND,
    number("c", "0.4", (0.001, 100.0), "Aggressiveness C in packets/s^3 (RFC 9438 section 5.1)."),
    number("beta", "0.7", (0.1, 0.99), "What a loss multiplies the window by (RFC 9438 section 4.6)."),
    ParamDoc {
        name: "fast_convergence",
        kind: ParamKind::Switch,
        default: "on",
        doc: "Release more of the link to newcomers (RFC 9438 section 4.7).",
    },
    ParamDoc {
        name: "hystart",
        kind: ParamKind::Switch,
        default: "on",
        doc: "Leave the first slow start by HyStart++ (RFC 9406); with `rules = linux` any by HyStart.",
    },
    ParamDoc {
        name: "rules",
        kind: ParamKind::Word(&["rfc9438", "linux"]),
        default: "rfc9438",
        doc: "Where Linux leaves the RFC: it looks the smallest RTT ahead in place of the smoothed one, its Reno estimate never grows as fast as Reno, what a loss leaves is of the window, and HyStart is not HyStart++.",
    },
    ParamDoc {
        name: "hystart_rise_min",
        kind: RISE,
        default: "4 ms",
        doc: "The least rise of the RTT that ends slow start (MIN_RTT_THRESH).",
    },
    ParamDoc {
        name: "hystart_rise_max",
        kind: RISE,
        default: "16 ms",
        doc: "The largest rise that is asked for (MAX_RTT_THRESH); hystart_rise_min at least.",
    },
    count(
        "hystart_divisor",
        "8",
        (1, 1000),
        "Between the two the rise is the RTT over this (MIN_RTT_DIVISOR).",
    ),
    count(
        "hystart_samples",
        "8",
        (0, 1000),
        "RTT samples of a round before it is judged (N_RTT_SAMPLE; HYSTART_MIN_SAMPLES).",
    ),
    number(
        "css_divisor",
        "4",
        (1.0, 1000.0),
        "What growth is divided by in HyStart++'s Conservative Slow Start (CSS_GROWTH_DIVISOR).",
    ),
    count("css_rounds", "5", (1, 1000), "Rounds that Conservative Slow Start lasts (CSS_ROUNDS)."),
    number(
        "hystart_limit",
        "8",
        (1.0, 1e6),
        "Packets by which one acknowledgement raises the window at most under HyStart++ (L; without limit for senders that pace).",
    ),
    number(
        "hystart_low_window",
        "16",
        (0.0, 1e6),
        "With `rules = linux`: the window in packets from which on HyStart may end slow start (hystart_low_window).",
    ),
    ParamDoc {
        name: "hystart_train_gap",
        kind: RISE,
        default: "2 ms",
        doc: "With `rules = linux`: acknowledgements no further apart are a train (hystart_ack_delta_us).",
    },
];

const RISE: ParamKind = ParamKind::Duration { min: Duration::ZERO, max: Duration::from_secs(60) };

pub(crate) const ENTRY: Entry = Entry {
    name: "cubic",
    summary: "CUBIC: the window follows a cubic of the time since the last loss.",
    formula: "W(t) = C (t - K)^3 + W_max, K = cbrt((W_max - cwnd_epoch)/C); not below W_est, Reno's estimate; \
              loss: cwnd = beta * flight",
    source: "RFC 9438 section 4; RFC 9406 for slow start",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

/// The cubic of one congestion-avoidance epoch.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Epoch {
    /// Moved forward by the time in which the application limited the flow.
    start: Instant,
    k: f64,
    w_max: f64,
    w_est: f64,
}

impl Epoch {
    /// W_cubic at `t` seconds after the start.
    fn window(&self, c: f64, t: f64) -> f64 {
        let x = t - self.k;
        c * x * x * x + self.w_max
    }
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Cubic {
    bounds: Bounds,
    initial: f64,
    c: f64,
    beta: f64,
    fast_convergence: bool,
    hystart: Option<HyStart>,
    /// Where Linux's rules are followed.
    linux: Option<Linux>,
    /// Octets, as everywhere; divided by the packet size where the cubic is evaluated.
    cwnd: f64,
    ssthresh: f64,
    /// In packets; 0 where the next epoch starts without a loss behind it.
    w_max: f64,
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    losses: LossEpoch,
    repairing: bool,
    last_feedback: Instant,
    undo: Undo<Before>,
}

/// What a loss that was none gives back.
#[derive(Clone, Copy, Debug)]
struct Before {
    cwnd: f64,
    ssthresh: f64,
    w_max: f64,
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    losses: LossEpoch,
    hystart: Option<HyStart>,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let (hystart, beta) = (HyStartConfig::of(&settings)?, settings.number("beta"));
    let bounds = Bounds::of(path);
    let initial = bounds.initial(settings.number("init_cwnd"), path);
    let is_linux = settings.word("rules") == "linux";
    Ok(Box::new(Cubic {
        bounds,
        initial,
        c: settings.number("c"),
        beta,
        fast_convergence: settings.switch("fast_convergence"),
        hystart: settings.switch("hystart").then(|| HyStart::new(hystart)),
        linux: is_linux.then(|| Linux::new(hystart, beta)),
        cwnd: initial,
        ssthresh: f64::INFINITY,
        w_max: 0.0,
        cwnd_prior: 0.0,
        epoch: None,
        losses: LossEpoch::new(),
        repairing: false,
        last_feedback: Instant::ZERO,
        undo: Undo::new(),
    }))
}

impl Cubic {
    fn packets(&self) -> f64 {
        self.cwnd / self.bounds.mss
    }

    fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = self.bounds.bound(cwnd, self.bounds.mss);
    }

    /// Sections 4.6 and 4.7, up to the window itself.
    fn note_congestion(&mut self, flight_bytes: u64) {
        let cwnd = self.packets();
        self.cwnd_prior = cwnd;
        let converge = self.fast_convergence && cwnd < self.w_max;
        self.w_max = if converge { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd };
        self.ssthresh = (self.beta * flight_bytes as f64).max(MIN_SSTHRESH_PACKETS * self.bounds.mss);
        self.epoch = None;
        self.end_hystart();
    }

    /// The RFC has it in the first slow start alone, Linux in any.
    fn end_hystart(&mut self) {
        if self.linux.is_none() {
            self.hystart = None;
        }
    }

    /// Of what is under way, but never of more than the window: without SACK a long recovery leaves data outstanding that
    /// was sent on the inflated window, and seven tenths of that can be more than the window itself. Linux takes the window.
    fn cut(&mut self, feedback: &Feedback<'_>) {
        let window = self.cwnd as u64;
        let flight = if self.linux.is_some() { window } else { feedback.in_flight_before_bytes.min(window) };
        self.note_congestion(flight);
        self.set_cwnd(self.ssthresh.min(self.cwnd));
        self.repairing = !feedback.lost.is_empty();
    }

    const fn before_cut(&self) -> Before {
        Before {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            w_max: self.w_max,
            cwnd_prior: self.cwnd_prior,
            epoch: self.epoch,
            losses: self.losses,
            hystart: self.hystart,
        }
    }

    /// Section 4.9.2.
    fn give_back(&mut self, before: &Before) {
        self.set_cwnd(self.cwnd.max(before.cwnd));
        self.ssthresh = self.ssthresh.max(before.ssthresh);
        (self.losses, self.hystart, self.repairing) = (before.losses, before.hystart, false);
        if self.linux.is_some() {
            self.epoch = None;
        } else {
            (self.w_max, self.cwnd_prior, self.epoch) = (before.w_max, before.cwnd_prior, before.epoch);
        }
    }

    fn grow(&mut self, feedback: &Feedback<'_>) {
        if self.cwnd < self.ssthresh {
            self.slow_start(feedback);
        } else {
            self.avoid_congestion(feedback);
        }
    }

    fn slow_start(&mut self, feedback: &Feedback<'_>) {
        let (packets, acked) = (self.packets(), feedback.acked_bytes as f64);
        let verdict = match (&mut self.linux, &mut self.hystart) {
            (Some(linux), hystart) => {
                let ends = hystart.is_some() && linux.ends_slow_start(feedback, packets);
                if ends { Verdict::Leave } else { Verdict::Grow(acked) }
            }
            (None, Some(hystart)) => hystart.on_ack(feedback, self.bounds.mss),
            (None, None) => Verdict::Grow(acked.min(self.bounds.mss)),
        };
        match verdict {
            Verdict::Grow(octets) => self.set_cwnd(self.cwnd + octets),
            Verdict::Leave => {
                self.ssthresh = self.cwnd;
                self.end_hystart();
            }
        }
    }

    /// Section 4.2: where no loss set a maximum above the window, the epoch starts on its plateau.
    fn start_epoch(&self, now: Instant) -> Epoch {
        let cwnd = self.packets();
        let w_max = self.w_max.max(cwnd);
        Epoch { start: now, k: math::cbrt((w_max - cwnd) / self.c), w_max, w_est: cwnd }
    }

    fn avoid_congestion(&mut self, feedback: &Feedback<'_>) {
        let mut epoch = self.epoch.unwrap_or_else(|| self.start_epoch(feedback.now));
        let acked = feedback.acked_bytes as f64 / self.bounds.mss;
        let next = match &self.linux {
            Some(linux) => {
                let ahead = linux.ahead();
                self.grown_by_linux(linux, &mut epoch, feedback.now + ahead, acked)
            }
            None => self.grown(&mut epoch, feedback, acked),
        };
        self.set_cwnd(next * self.bounds.mss);
        // The estimate must not run away from a window that a limit holds.
        epoch.w_est = epoch.w_est.min(self.bounds.max / self.bounds.mss);
        self.epoch = Some(epoch);
    }

    /// The window in packets after `acked` packets, by the RFC.
    fn grown(&self, epoch: &mut Epoch, feedback: &Feedback<'_>, acked: f64) -> f64 {
        let cwnd = self.packets();
        // Section 4.3: alpha makes the average window Reno's; once back at the window before the loss, Reno's own 1.
        let reno_like = 3.0 * (1.0 - self.beta) / (1.0 + self.beta);
        let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { reno_like };
        epoch.w_est += alpha * acked / cwnd;
        let t = feedback.now.since(epoch.start).as_secs_f64();
        if epoch.window(self.c, t) < epoch.w_est {
            return epoch.w_est.max(cwnd);
        }
        let target = epoch.window(self.c, t + feedback.srtt.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
        cwnd + acked * (target - cwnd) / cwnd
    }

    /// The same as Linux has it, where the cubic is looked up at `at`.
    fn grown_by_linux(&self, linux: &Linux, epoch: &mut Epoch, at: Instant, acked: f64) -> f64 {
        let cwnd = self.packets();
        epoch.w_est += linux.reno_step(acked, cwnd);
        let target = epoch.window(self.c, at.since(epoch.start).as_secs_f64());
        Linux::grown(cwnd, acked, target, epoch.w_est, self.w_max == 0.0)
    }

    /// Section 4.2: the time in which the application limited the flow does not count.
    fn skip_limited_time(&mut self, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += now.since(self.last_feedback);
        }
    }

    /// There is data again after idleness: RFC 5681, section 4.1.
    fn restart(&mut self, timeout: &Timeout) {
        let least = self.cwnd.min(self.initial);
        if self.linux.is_none() {
            self.epoch = None;
            return self.set_cwnd(least);
        }
        self.ssthresh = self.ssthresh.max(Linux::threshold_after_idleness(self.cwnd));
        self.set_cwnd(Linux::after_idleness(self.cwnd, timeout.consecutive).max(least));
        self.skip_limited_time(timeout.now);
        self.last_feedback = timeout.now.max(self.last_feedback);
    }

    fn react(&mut self, feedback: &Feedback<'_>) {
        let age = self.epoch.map(|epoch| feedback.now.since(epoch.start));
        if let Some(linux) = &mut self.linux {
            linux.sample(feedback, age);
        }
        let congested = congested_number(feedback);
        if congested.is_some_and(|number| self.losses.is_new(number)) {
            self.undo.note_event(feedback, self.before_cut());
            self.losses.start(feedback.next_number);
            self.cut(feedback);
        } else if congested.is_none() && !feedback.in_recovery && feedback.acked_bytes > 0 {
            self.repairing = false;
            if feedback.app_limited {
                self.skip_limited_time(feedback.now);
            } else {
                self.grow(feedback);
            }
        }
    }
}

impl Controller for Cubic {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        self.react(feedback);
        self.last_feedback = feedback.now.max(self.last_feedback);
        self.allowance()
    }

    fn on_undo(&mut self) -> Allowance {
        if let Some(before) = self.undo.take() {
            self.give_back(&before);
        }
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        if timeout.idle {
            self.restart(timeout);
            return self.allowance();
        }
        self.undo.note_timeout(timeout, self.repairing, self.before_cut());
        if timeout.consecutive <= 1 {
            self.note_congestion(given_up(timeout, self.repairing, self.cwnd));
        }
        // Section 4.8: the next epoch starts with K = 0 and W_max = cwnd.
        self.w_max = 0.0;
        self.set_cwnd(self.bounds.mss);
        self.repairing = false;
        self.losses.start(timeout.next_number);
        self.allowance()
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        let before = self.bounds.mss;
        self.bounds.set_mss(mss_bytes);
        self.w_max *= before / self.bounds.mss;
        self.cwnd_prior *= before / self.bounds.mss;
        self.epoch = None;
        self.set_cwnd(self.cwnd);
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(self.cwnd as u64)
    }

    fn snapshot(&self) -> Snapshot {
        let conservative = self.hystart.is_some_and(|hystart| hystart.is_conservative());
        let phase = match phase_of(self.repairing, self.cwnd < self.ssthresh) {
            Phase::SlowStart if conservative => Phase::Named("conservative slow start"),
            phase => phase,
        };
        snapshot_of(self.cwnd, self.ssthresh, phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use crate::testing::{ack, loss, path, timeout};
    use alloc::vec::Vec;

    fn after_loss_at(packets: u64) -> Box<dyn Controller> {
        let params = Params::new().with("init_cwnd", crate::ParamValue::Number(packets as f64));
        let mut cubic = registry::build("cubic", &params, &path(1000)).unwrap();
        let mut lost = loss(5, 1000);
        lost.feedback.in_flight_before_bytes = 1000 * packets;
        cubic.on_feedback(&lost.feedback());
        cubic
    }

    fn vectors() -> serde_json::Value {
        serde_json::from_str(include_str!("../tests/vectors/tcp.json")).unwrap()
    }

    #[test]
    fn a_loss_that_was_none_gives_back_what_there_was() {
        for rules in ["rfc9438", "linux"] {
            let params = Params::new().with("rules", crate::ParamValue::Word(rules.into()));
            let mut cubic = registry::build("cubic", &params, &path(1000)).unwrap();
            let mut lost = loss(5, 1000);
            lost.feedback.in_flight_before_bytes = 4000;
            assert!(cubic.on_feedback(&lost.feedback()).cwnd_bytes < 4000);
            assert_eq!(
                (cubic.on_undo().cwnd_bytes, cubic.snapshot().ssthresh_bytes),
                (4000, None),
                "{rules}"
            );
            let grown = cubic.on_feedback(&ack(1000, 1000).feedback());
            assert_eq!((grown.cwnd_bytes, cubic.snapshot().phase), (5000, Phase::SlowStart), "{rules}");
        }
    }

    #[test]
    fn the_curves_have_the_vectors_values() {
        for case in vectors()["cubic"].as_array().unwrap() {
            let number = |key: &str| case[key].as_f64().unwrap();
            let (w_max, cwnd) = (number("Wmax"), number("cwnd_epoch"));
            let k = math::cbrt((w_max - cwnd) / 0.4);
            assert!((k - number("K")).abs() < 1e-9);
            let epoch = Epoch { start: Instant::ZERO, k, w_max, w_est: cwnd };
            for (t, window) in case["W_at"].as_object().unwrap() {
                let found = epoch.window(0.4, t.parse().unwrap());
                assert!((found - window.as_f64().unwrap()).abs() < 1e-6, "{w_max} {t}: {found}");
            }
        }
    }

    #[test]
    fn check_4_for_tcp_the_run_has_the_vectors_values() {
        let mut cubic = after_loss_at(100);
        let mut number = 1000;
        let mut rounds = Vec::new();
        for round in 0..61_u64 {
            // One window of acknowledgements, spread over the round trip of 100 ms.
            let window = (cubic.snapshot().cwnd_bytes / 1000.0) as u64;
            for i in 0..window {
                let mut one = ack(number, 1000);
                one.feedback.now = Instant::from_nanos(round * 100_000_000 + i * 100_000_000 / window);
                cubic.on_feedback(&one.feedback());
                number += 1;
            }
            rounds.push(cubic.snapshot().cwnd_bytes / 1000.0);
        }
        for row in vectors()["cubic_run_Wmax100_rtt100ms[t,cwnd,west]"].as_array().unwrap() {
            let (t, cwnd) = (row[0].as_f64().unwrap(), row[1].as_f64().unwrap());
            let found = rounds[(t * 10.0 + 0.5) as usize - 1];
            assert!((found - cwnd).abs() < 1e-3, "{t} s: {found}, not {cwnd}");
        }
    }

    #[test]
    fn an_inflated_flight_does_not_keep_the_window_from_falling() {
        let mut cubic = after_loss_at(100);
        let mut again = loss(2000, 3000);
        again.feedback.in_flight_before_bytes = 140_000;
        cubic.on_feedback(&again.feedback());
        let snapshot = cubic.snapshot();
        assert!(
            (snapshot.cwnd_bytes - 49_000.0).abs() < 1e-6
                && snapshot.ssthresh_bytes == Some(snapshot.cwnd_bytes)
        );
    }

    fn ack_at(number: u64, ms: u64) -> crate::testing::Owned {
        let mut one = ack(number, 1000);
        one.feedback.now = Instant::from_millis(ms);
        one
    }

    #[test]
    fn a_loss_takes_three_tenths_and_fast_convergence_more() {
        let mut cubic = after_loss_at(100);
        assert_eq!(cubic.snapshot().cwnd_bytes, 70_000.0);
        // A loss below the last maximum: the flight gives 49, and the plateau is 0.85 * 70 = 59.5.
        let mut again = loss(2000, 3000);
        again.feedback.in_flight_before_bytes = 70_000;
        cubic.on_feedback(&again.feedback());
        assert!((cubic.snapshot().cwnd_bytes - 49_000.0).abs() < 1e-6);
        let mut number = 3000;
        let mut ms = 1000;
        // K = cbrt(10.5 / 0.4) = 2.97 s: after 3 s the window has come close to the plateau and not passed it.
        while ms < 3990 {
            ms += 10;
            number += 1;
            cubic.on_feedback(&ack_at(number, ms).feedback());
        }
        assert!((cubic.snapshot().cwnd_bytes / 1000.0 - 59.5).abs() < 0.6, "{}", cubic.snapshot().cwnd_bytes);
    }

    #[test]
    fn after_a_timeout_the_next_epoch_starts_on_its_plateau() {
        let mut cubic = after_loss_at(100);
        cubic.on_feedback(&ack_at(1000, 1000).feedback());
        cubic.on_timeout(&timeout(70_000, 1));
        assert_eq!((cubic.allowance().cwnd_bytes, cubic.snapshot().ssthresh_bytes), (1000, Some(49_000.0)));
        cubic.on_timeout(&timeout(1_000, 2));
        assert_eq!(cubic.snapshot().ssthresh_bytes, Some(49_000.0));
        for number in 2000..2048 {
            cubic.on_feedback(&ack_at(number, 3000).feedback());
        }
        assert_eq!(cubic.allowance().cwnd_bytes, 49_000, "slow start up to ssthresh");
        let before = cubic.snapshot().cwnd_bytes;
        cubic.on_feedback(&ack_at(2048, 3000).feedback());
        let growth = cubic.snapshot().cwnd_bytes - before;
        assert!(growth > 0.0 && growth < 25.0, "Reno-friendly growth on the plateau: {growth}");
    }

    #[test]
    fn a_timeout_within_a_repair_reduces_the_window_again_and_not_what_is_left_under_way() {
        let mut cubic = after_loss_at(100);
        cubic.on_timeout(&timeout(1_000, 1));
        assert_eq!((cubic.allowance().cwnd_bytes, cubic.snapshot().ssthresh_bytes), (1000, Some(49_000.0)));
    }

    #[test]
    fn time_without_data_does_not_count() {
        let mut cubic = after_loss_at(100);
        cubic.on_feedback(&ack_at(1000, 1000).feedback());
        let mut limited = ack_at(1001, 61_000);
        limited.feedback.app_limited = true;
        limited.feedback.srtt = Duration::from_millis(100);
        cubic.on_feedback(&limited.feedback());
        let before = cubic.snapshot().cwnd_bytes;
        cubic.on_feedback(&ack_at(1002, 61_001).feedback());
        let growth = cubic.snapshot().cwnd_bytes - before;
        assert!(growth < 50.0, "a minute of silence must not show as growth: {growth}");
    }
}
