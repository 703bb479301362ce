//! LEDBAT as libutp runs it: integers in octets and microseconds, its quirks included.
//!
//! Source: the behaviour of bittorrent/libutp at 2b364cb (`DelayHist`, congestion control, decay, timeouts), written anew
//! from its description. BEP 29 gives the outline.
//!
//! *What it leaves out:* what `delay_hist.rs` and `utp_window.rs` leave out. libutp lets the window fall to 10 octets and then sends one packet per timeout of a
//! second; here the allowance (not the window) stays at the fraction of a packet that gives this pace.
//! *How it was validated:* the filter and step sequences of `tests/vectors/ledbat.json`; the conformance suite.

use super::delay_window::{SLOW_START_EXIT, target_param};
use super::utp_window::{Held, LOSS_INTERVAL, UtpWindow, min_window_param};
use crate::entry::Entry;
use crate::params::{ParamDoc, ParamError, ParamKind, Params, Settings};
use crate::undo::Undo;
use crate::{Allowance, Controller, Feedback, Path, Snapshot, Timeout};
use alloc::boxed::Box;
use cede_units::{Bytes, Duration, Instant};

/// The smallest retransmission timeout, in seconds: with a window below a packet, the pace of sending.
const MIN_TIMEOUT_S: f64 = 1.0;

const PARAMS: &[ParamDoc] = &[
    target_param("100 ms"),
    ParamDoc {
        name: "max_increase",
        kind: ParamKind::Bytes { min: Bytes(1), max: Bytes(1_000_000) },
        default: "3000 B",
        doc: "Octets by which the window moves per round trip at an empty queue.",
    },
    min_window_param("10 B"),
    LOSS_INTERVAL,
    ParamDoc { default: "0.9", ..SLOW_START_EXIT },
];

pub(crate) const ENTRY: Entry = Entry {
    name: "ledbat-libutp",
    summary: "LEDBAT as libutp (uTorrent, Transmission) deploys it.",
    formula: "W += 3000 B * min(a,W)/max(a,W) * (TARGET - delay)/TARGET; slow start adds at most one packet per \
              round trip; loss: W/2 per 100 ms; timeout: one packet",
    source: "bittorrent/libutp 2b364cb, by behaviour; BEP 29",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Libutp {
    target_us: i64,
    max_increase: f64,
    slow_start_exit: f64,
    state: UtpWindow,
    srtt: Duration,
    /// The window before the last loss or timeout.
    undo: Undo<Held>,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    Ok(Box::new(Libutp {
        target_us: settings.duration("target").as_micros() as i64,
        max_increase: settings.bytes("max_increase") as f64,
        slow_start_exit: settings.number("slow_start_exit"),
        state: UtpWindow::of(&settings, path, 1, true),
        srtt: Duration::ZERO,
        undo: Undo::new(),
    }))
}

impl Libutp {
    fn steer(&mut self, now: Instant, acked: i64, delay_us: i64) {
        let factor = self.state.factor(acked);
        let offset = (self.target_us - delay_us) as f64 / self.target_us as f64;
        let gain = self.state.validated(now, self.max_increase * factor * offset);
        let linear = ((self.state.window as f64 + gain) as i64).max(self.state.floor);
        let next = if self.state.slow_start { self.started(factor, linear, delay_us) } else { linear };
        self.state.set(next);
    }

    /// Slow start: at most one packet per round trip, so the linear rule usually gives more.
    fn started(&mut self, factor: f64, linear: i64, delay_us: i64) -> i64 {
        let state = &mut self.state;
        let grown = (state.window as f64 + factor * state.packet as f64) as i64;
        if grown > state.ssthresh {
            state.slow_start = false;
        } else if delay_us as f64 > self.target_us as f64 * self.slow_start_exit {
            state.slow_start = false;
            state.ssthresh = state.window;
        } else {
            return grown.max(linear);
        }
        state.window
    }
}

impl Controller for Libutp {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        let before = self.state.window;
        self.srtt = feedback.srtt;
        if let Some((acked, delay_us)) = self.state.hear(feedback) {
            self.steer(feedback.now, acked, delay_us);
        }
        if let Some(decay) = self.state.decay(feedback, before).filter(|decay| decay.is_new) {
            self.undo.note_event(feedback, decay.was);
        }
        self.allowance()
    }

    fn on_undo(&mut self) -> Allowance {
        if let Some(was) = self.undo.take() {
            self.state.give_back(&was);
        }
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        self.undo.note_timeout(timeout, self.state.is_repairing(), self.state.present());
        self.state.time_out(timeout, 1);
        self.allowance()
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.state.packet = i64::from(mss_bytes.max(1));
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        let state = &self.state;
        let one_per_timeout = state.packet as f64 * (self.srtt.as_secs_f64() / MIN_TIMEOUT_S).min(1.0);
        Allowance::window((state.window as u64).max(one_per_timeout as u64).min(state.max as u64))
    }

    fn snapshot(&self) -> Snapshot {
        self.state.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{loss, path, timeout};

    fn libutp(window: i64, slow_start: bool, ssthresh: i64) -> Libutp {
        let mut state = UtpWindow::new(&path(1382), 10, 1, true);
        (state.window, state.slow_start, state.ssthresh, state.max) = (window, slow_start, ssthresh, 1 << 20);
        Libutp {
            target_us: 100_000,
            max_increase: 3000.0,
            slow_start_exit: 0.9,
            state,
            srtt: Duration::ZERO,
            undo: Undo::new(),
        }
    }

    fn vectors() -> serde_json::Value {
        serde_json::from_str(include_str!("../../tests/vectors/ledbat.json")).unwrap()
    }

    #[test]
    fn check_4_steps_have_the_vectors_values() {
        for case in vectors()["libutp_step"].as_array().unwrap() {
            let number = |key: &str| case[key].as_i64().unwrap();
            let mut one =
                libutp(number("max_window"), case["slow_start"].as_bool().unwrap(), number("ssthresh"));
            one.steer(Instant::ZERO, number("acked"), number("delay_us"));
            let after = serde_json::json!([one.state.window, one.state.slow_start, one.state.ssthresh]);
            assert_eq!(after, case["after"], "{case}");
        }
    }

    #[test]
    fn losses_halve_once_per_100_ms_and_a_timeout_leaves_one_packet() {
        let mut one = libutp(20_000, true, 1 << 20);
        let lose = |one: &mut Libutp, ms| {
            let mut lost = loss(5, 9);
            lost.feedback.now = Instant::from_millis(ms);
            one.on_feedback(&lost.feedback());
            (one.state.window, one.state.ssthresh, one.state.slow_start)
        };
        assert_eq!(lose(&mut one, 500), (10_000, 10_000, false));
        assert_eq!(lose(&mut one, 599).0, 10_000);
        assert_eq!(lose(&mut one, 600).0, 5_000);
        one.on_timeout(&timeout(0, 1));
        assert_eq!((one.state.window, one.state.ssthresh, one.state.slow_start), (1382, 5_000, true));
        one.state.window = 9_000;
        one.on_timeout(&Timeout { idle: true, ..timeout(0, 0) });
        assert_eq!(one.state.window, 6_000);
    }

    #[test]
    fn losses_that_were_none_give_back_what_all_reductions_of_their_event_took() {
        let mut one = libutp(20_000, true, 1 << 20);
        let lose = |one: &mut Libutp, ms, number| {
            let mut lost = loss(number, 9);
            lost.feedback.now = Instant::from_millis(ms);
            one.on_feedback(&lost.feedback());
            one.state.window
        };
        let undo = |one: &mut Libutp| {
            one.on_undo();
            (one.state.window, one.state.ssthresh, one.state.slow_start)
        };
        assert_eq!((lose(&mut one, 500, 5), lose(&mut one, 600, 6)), (10_000, 5_000));
        assert_eq!(undo(&mut one), (20_000, 1 << 20, true));
        assert_eq!(lose(&mut one, 601, 7), 10_000, "of another event");
        assert_eq!(lose(&mut one, 701, 10), 5_000, "and of another");
        assert_eq!(undo(&mut one), (10_000, 10_000, false));
        one.on_timeout(&timeout(0, 1));
        one.on_timeout(&timeout(0, 2));
        assert_eq!((one.state.window, undo(&mut one)), (1382, (10_000, 10_000, false)));
    }
}
