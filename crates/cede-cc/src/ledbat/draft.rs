//! LEDBAT as the older draft had it and as the paper "A hands-on assessment of transport protocols with lower than best
//! effort priority" (Carofiglio, Muscariello, Rossi, Testa; LCN 2010) studies it.
//!
//! Source: that paper, equations 4 and 5, per acknowledged packet, the window W in packets:
//! ```text
//! Delta = tau - (D - Dmin)
//! W     = W + gamma * Delta / W        gamma = G / tau
//! ```
//! tau = 25 ms; losses as Reno: halve on a fast retransmit; after a timeout 1 packet and Reno's slow start. No initial
//! slow start, no filter, no growth validation. A loss that was none is taken back (`undo.rs`), which the paper knows nothing of.
//!
//! The code behind the paper's figures (a Linux module run in ns-2) differs from its text in three points, each a
//! parameter here: the product G * Delta is capped at tau (`clamp`, on), samples pass a minimum of four (`filter = min`,
//! off), and the window moves in whole packets (`whole_packets`, off): a counter gathers the offsets; at W it adds a
//! packet and starts from 0, below 0 it takes one and starts from the new W less 1, which is our reading.
//!
//! *What it leaves out:* millisecond timestamps, which are the transport's.
//! *How it was validated:* the steps of `tests/vectors/ledbat.json`; the conformance suite; `tests/link.rs`.

use super::delay_window::{
    BASE_HISTORY, CLAMP, DelayWindow, FILTER_LENGTH, FILTER_WEIGHT, Steered, drift_param, filter_param,
    hold_param, packets_param, target_param,
};
use crate::entry::Entry;
use crate::params::{ParamDoc, ParamError, ParamKind, Params, Settings, number};
use crate::signal::signal_param;
use crate::undo::Undo;
use crate::window::{MIN_SSTHRESH_PACKETS, congested_number};
use crate::{Allowance, Controller, Feedback, Path, Snapshot, Timeout};
use alloc::boxed::Box;

const PARAMS: &[ParamDoc] = &[
    target_param("25 ms"),
    signal_param("owd"),
    number(
        "gain",
        "1",
        (0.001, 100.0),
        "G: packets per round trip by which an empty queue raises the window; gamma = G / target.",
    ),
    CLAMP,
    BASE_HISTORY,
    filter_param("latest"),
    FILTER_LENGTH,
    FILTER_WEIGHT,
    packets_param("min_cwnd", "1", "The smallest window in packets."),
    packets_param("init_cwnd", "2", "The initial window in packets."),
    ParamDoc {
        name: "whole_packets",
        kind: ParamKind::Switch,
        default: "off",
        doc: "Move the window in whole packets by a counter, as the paper's code does.",
    },
    drift_param("off"),
    hold_param("off"),
];

pub(crate) const ENTRY: Entry = Entry {
    name: "ledbat-draft",
    summary: "LEDBAT of the LCN 2010 paper and the draft of its day (target 25 ms).",
    formula: "Delta = tau - (D - Dmin); W += gamma * Delta / W per packet, gamma = G / tau; loss as Reno",
    source: "Carofiglio et al., LCN 2010, equations 4 and 5; draft-ietf-ledbat-congestion-00 to -02",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

#[derive(Clone, Copy, PartialEq, Debug)]
struct Config {
    target_ns: f64,
    gain: f64,
    clamp: bool,
    whole_packets: bool,
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct LedbatDraft {
    config: Config,
    window: DelayWindow,
    /// With `whole_packets`: offsets gathered towards the next packet.
    counter: f64,
    /// The window before the last loss or timeout.
    undo: Undo<Steered>,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let config = Config {
        target_ns: settings.duration("target").as_nanos() as f64,
        gain: settings.number("gain"),
        clamp: settings.switch("clamp"),
        whole_packets: settings.switch("whole_packets"),
    };
    let window = DelayWindow::new(&settings, path, false);
    Ok(Box::new(LedbatDraft { config, window, counter: 0.0, undo: Undo::new() }))
}

impl LedbatDraft {
    fn on_ack(&mut self, feedback: &Feedback<'_>, queueing_ns: i64) {
        let (cwnd, mss) = (self.window.cwnd, self.window.bounds.mss);
        let packets = feedback.acked_bytes as f64 / mss;
        if self.window.in_slow_start() {
            if !feedback.app_limited {
                self.window.set(cwnd + packets.min(1.0) * mss);
            }
            return;
        }
        let delta = (self.config.target_ns - queueing_ns as f64) / self.config.target_ns;
        let offset = self.config.gain * delta;
        let offset = if self.config.clamp { offset.min(1.0) } else { offset };
        // A window that was not used says nothing for a larger one.
        if offset > 0.0 && feedback.app_limited {
            return;
        }
        let step = if self.config.whole_packets {
            self.count(offset * packets)
        } else {
            // Equation 5, in octets.
            offset * packets * mss * mss / cwnd
        };
        self.window.set(cwnd + step);
    }

    fn count(&mut self, offset: f64) -> f64 {
        let mss = self.window.bounds.mss;
        let window = self.window.cwnd / mss;
        self.counter += offset;
        if self.counter >= window {
            self.counter = 0.0;
            mss
        } else if self.counter < 0.0 {
            let smaller = (window - 1.0).max(self.window.min_packets());
            self.counter = smaller - 1.0;
            (smaller - window) * mss
        } else {
            0.0
        }
    }

    /// As `tcp_reno_ssthresh` of the paper's code: of the window, not of what is under way.
    fn half(&self) -> f64 {
        let packets = self.window.cwnd / self.window.bounds.mss / 2.0;
        let packets = if self.config.whole_packets { packets as u64 as f64 } else { packets };
        packets.max(MIN_SSTHRESH_PACKETS) * self.window.bounds.mss
    }

    fn cut(&mut self) {
        let (half, window) = (self.half(), &mut self.window);
        window.ssthresh = half;
        window.cwnd = window.bounds.bound(half.min(window.cwnd), window.floor().min(window.cwnd));
        self.counter = 0.0;
    }
}

impl Controller for LedbatDraft {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        let queueing = self.window.measure(feedback);
        if let Some(number) = congested_number(feedback) {
            if self.window.is_new_event(number) {
                self.undo.note_event(feedback, self.window.present());
                self.window.begin_event(feedback);
                self.cut();
            }
        } else if let Some(queueing_ns) = queueing
            && feedback.acked_bytes > 0
            && !feedback.in_recovery
        {
            self.on_ack(feedback, queueing_ns);
        }
        self.allowance()
    }

    fn on_undo(&mut self) -> Allowance {
        if let Some(was) = self.undo.take() {
            self.window.give_back(&was);
        }
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        self.undo.note_timeout(timeout, self.window.is_repairing(), self.window.present());
        if !timeout.idle {
            self.counter = 0.0;
        }
        let half = self.half();
        self.window.on_timeout(timeout, half)
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.window.on_mss(mss_bytes)
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }

    fn snapshot(&self) -> Snapshot {
        self.window.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Phase;
    use crate::testing::{ack, loss, path, timeout};
    use crate::{ParamValue, registry};
    use cede_units::Instant;

    const MS: i64 = 1_000_000;

    /// A window of ten packets of 1000 octets whose base delay is 0.
    fn draft(params: Params) -> Box<dyn Controller> {
        let params = params.with("init_cwnd", ParamValue::Number(10.0));
        let mut draft = registry::build("ledbat-draft", &params, &path(1000)).unwrap();
        let mut base = ack(0, 0);
        base.feedback.one_way_delay_ns = Some(0);
        draft.on_feedback(&base.feedback());
        draft
    }

    fn step(draft: &mut dyn Controller, number: u64, queueing_ms: f64) -> f64 {
        let mut one = ack(number, 1000);
        one.feedback.now = Instant::from_millis(1000 + number);
        one.feedback.one_way_delay_ns = Some((queueing_ms * MS as f64) as i64);
        draft.on_feedback(&one.feedback());
        draft.snapshot().cwnd_bytes / 1000.0
    }

    #[test]
    fn check_3_equation_5_has_the_vectors_values() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/vectors/ledbat.json")).unwrap();
        for case in vectors["draft_eq5_packets"].as_array().unwrap() {
            let number = |key: &str| case[key].as_f64().unwrap();
            assert_eq!((number("cwnd"), number("tau_ms")), (10.0, 25.0));
            // The paper's text has no clamp; the vector with G = 10 is of the text.
            let params = Params::new()
                .with("gain", ParamValue::Number(number("G")))
                .with("clamp", ParamValue::Switch(false));
            let after = step(&mut *draft(params), 1, number("q_ms"));
            assert!((after - number("after")).abs() < 1e-9, "{case}: {after}");
        }
    }

    #[test]
    fn the_clamp_holds_growth_at_tcps_pace_but_not_the_decrease() {
        let gain = || Params::new().with("gain", ParamValue::Number(10.0));
        assert!((step(&mut *draft(gain()), 1, 0.0) - 10.1).abs() < 1e-9);
        assert!((step(&mut *draft(gain()), 1, 50.0) - 9.0).abs() < 1e-9);
    }

    #[test]
    fn losses_and_timeouts_are_renos() {
        let mut draft = draft(Params::new());
        assert_eq!(draft.on_feedback(&loss(5, 20).feedback()).cwnd_bytes, 5000);
        assert_eq!(draft.on_feedback(&loss(6, 20).feedback()).cwnd_bytes, 5000);
        assert_eq!(draft.on_timeout(&timeout(5000, 1)).cwnd_bytes, 1000);
        assert_eq!(draft.snapshot().phase, Phase::SlowStart);
        assert_eq!(step(&mut *draft, 1000, 0.0), 2.0);
        assert_eq!(step(&mut *draft, 1001, 0.0), 3.0, "slow start passes ssthresh = 2.5");
        assert!((step(&mut *draft, 1002, 0.0) - (3.0 + 1.0 / 3.0)).abs() < 1e-9);
    }

    #[test]
    fn whole_packets_move_after_a_window_of_offsets() {
        let mut draft = draft(Params::new().with("whole_packets", ParamValue::Switch(true)));
        for number in 1..10 {
            assert_eq!(step(&mut *draft, number, 0.0), 10.0);
        }
        assert_eq!(step(&mut *draft, 10, 0.0), 11.0);
        assert_eq!(step(&mut *draft, 11, 50.0), 10.0, "below zero");
        assert_eq!(step(&mut *draft, 12, 0.0), 11.0, "the counter stood at W - 1");
    }
}
