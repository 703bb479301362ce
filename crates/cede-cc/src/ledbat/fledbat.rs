//! fLEDBAT: LEDBAT with a multiplicative decrease, which removes the late-comer's advantage.
//!
//! Source: Carofiglio, Muscariello, Rossi, Testa, Valenti, "Rethinking the Low Extra Delay Background Transport (LEDBAT)
//! Protocol", Computer Networks 57 (2013), equation 5; arXiv:1010.5623 is an earlier version. Per acknowledged packet, the window W
//! in packets, q the queueing delay:
//! ```text
//! W = W + alpha / W                                  where q <= tau
//! W = W + alpha / W - zeta * (q - tau) / tau         where q >  tau
//! ```
//! loss: halve. alpha = 1 throughout the paper, "at most as aggressive as TCP"; zeta = 5 for flows that always have data (section 7.2), 0.1
//! for those that send pieces of 250 kB one after the other (sections 6 and 9); tau = 25 ms, or 100, which it calls as good. "The
//! quest for LEDBAT fairness" (GLOBECOM 2010) has another rule still: W shrinks to a fixed part with each packet that is late.
//!
//! Ours: slow start at first, up to 3/4 of tau, the base held while the flow's own queue stands, and losses that were none taken back
//! (`undo.rs`).
//!
//! *What it leaves out:* the paper's closed forms for how fast flows converge.
//! *How it was validated:* in `tests/link.rs` the queue of one to three flows is that of the paper's equilibrium (equation 10) within 3 per
//! cent, where the round-trip time counts the queue; two flows of which one comes late share evenly, where plain LEDBAT's do not; the
//! conformance suite. Without slow start a second flow that comes late stays ahead for minutes at zeta = 5, which the paper does not
//! say; from three flows on they share evenly, at some cost of throughput, as it does say.

use super::delay_window::{
    BASE_HISTORY, DelayWindow, FILTER_LENGTH, FILTER_WEIGHT, SLOW_START_EXIT, Steered, drift_param,
    filter_param, hold_param, packets_param, slow_start_param, target_param,
};
use crate::entry::Entry;
use crate::params::{ParamDoc, ParamError, Params, Settings, number};
use crate::signal::signal_param;
use crate::undo::Undo;
use crate::window::congested_number;
use crate::{Allowance, Controller, Feedback, Path, Snapshot, Timeout};
use alloc::boxed::Box;

const PARAMS: &[ParamDoc] = &[
    target_param("100 ms"),
    signal_param("owd"),
    number("alpha", "1", (0.001, 100.0), "Packets per round trip by which the window grows (section 8.1)."),
    number(
        "zeta",
        "5",
        (0.001, 1000.0),
        "Strength of the multiplicative decrease above the target (section 7.2; 0.1 where short transfers follow each other).",
    ),
    BASE_HISTORY,
    filter_param("min"),
    FILTER_LENGTH,
    FILTER_WEIGHT,
    packets_param("min_cwnd", "1", "The smallest window in packets."),
    packets_param("init_cwnd", "2", "The initial window in packets."),
    slow_start_param("on"),
    SLOW_START_EXIT,
    drift_param("on"),
    hold_param("on"),
];

pub(crate) const ENTRY: Entry = Entry {
    name: "fledbat",
    summary: "fLEDBAT: LEDBAT with a multiplicative decrease, fair to late-comers.",
    formula: "W += alpha/W; above the target also W -= zeta * (q - tau)/tau, per packet; loss: W/2",
    source: "Carofiglio et al., Computer Networks 57 (2013), equation 5; arXiv:1010.5623",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

#[derive(Clone, Copy, PartialEq, Debug)]
struct Config {
    target_ns: f64,
    alpha: f64,
    zeta: f64,
    slow_start_exit: f64,
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Fledbat {
    config: Config,
    window: DelayWindow,
    /// The window before the last loss or timeout.
    undo: Undo<Steered>,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let config = Config {
        target_ns: settings.duration("target").as_nanos() as f64,
        alpha: settings.number("alpha"),
        zeta: settings.number("zeta"),
        slow_start_exit: settings.number("slow_start_exit"),
    };
    let slow_start = settings.switch("slow_start");
    let window = DelayWindow::new(&settings, path, slow_start);
    Ok(Box::new(Fledbat { config, window, undo: Undo::new() }))
}

impl Fledbat {
    fn on_ack(&mut self, feedback: &Feedback<'_>, queueing_ns: i64) {
        let (cwnd, mss) = (self.window.cwnd, self.window.bounds.mss);
        let acked = feedback.acked_bytes as f64;
        let queueing = queueing_ns as f64 / self.config.target_ns;
        if self.window.in_slow_start() && queueing > self.config.slow_start_exit {
            self.window.ssthresh = cwnd;
        }
        let growth = match (feedback.app_limited, self.window.in_slow_start()) {
            (true, _) => 0.0,
            (false, true) => acked.min(mss),
            (false, false) => self.config.alpha * acked * mss / cwnd,
        };
        let decrease = self.config.zeta * (queueing - 1.0).max(0.0) * acked;
        self.window.set(cwnd + growth - decrease);
    }

    fn half(&self) -> f64 {
        (self.window.cwnd / 2.0).max(self.window.floor())
    }

    fn cut(&mut self) {
        self.window.ssthresh = self.half();
        self.window.cwnd = self.window.ssthresh.min(self.window.cwnd);
    }
}

impl Controller for Fledbat {
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
        } else if let Some(queueing_ns) = queueing.filter(|_| feedback.acked_bytes > 0) {
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
    use crate::testing::{ack, loss, path};
    use crate::{ParamValue, registry};
    use cede_units::Instant;

    #[test]
    fn the_rule_per_packet() {
        let step = |queueing_ms: i64, bytes| {
            let params = Params::new()
                .with("init_cwnd", ParamValue::Number(20.0))
                .with("slow_start", ParamValue::Switch(false));
            let mut fledbat = registry::build("fledbat", &params, &path(1000)).unwrap();
            for (number, delay) in [(0, 0), (1, queueing_ms)] {
                let mut one = ack(number, number * bytes);
                one.feedback.now = Instant::from_secs(number);
                one.feedback.one_way_delay_ns = Some(delay * 1_000_000);
                fledbat.on_feedback(&one.feedback());
            }
            fledbat.snapshot().cwnd_bytes / 1000.0
        };
        assert!((step(0, 1000) - 20.05).abs() < 1e-9);
        assert!((step(100, 1000) - 20.05).abs() < 1e-9, "no linear term below the target");
        assert!((step(110, 1000) - 19.55).abs() < 1e-9);
        assert!((step(110, 2000) - 19.1).abs() < 1e-9, "two packets, twice the step");
        assert!((step(5000, 1000) - 1.0).abs() < 1e-9, "floor");
    }

    #[test]
    fn slow_start_ends_at_three_quarters_of_the_target_or_at_a_loss() {
        let mut fledbat = registry::build("fledbat", &Params::new(), &path(1000)).unwrap();
        for (number, queueing_ms) in [(0, 0), (1, 50), (2, 76)] {
            let mut one = ack(number, 1000);
            one.feedback.now = Instant::from_secs(number);
            one.feedback.one_way_delay_ns = Some(queueing_ms * 1_000_000);
            fledbat.on_feedback(&one.feedback());
        }
        assert_eq!(fledbat.snapshot().cwnd_bytes, 4250.0, "2 + 1 + 1 + 1/4");
        assert_eq!(fledbat.snapshot().phase, Phase::CongestionAvoidance);
        assert_eq!(fledbat.on_feedback(&loss(3, 9).feedback()).cwnd_bytes, 2125);
    }
}
