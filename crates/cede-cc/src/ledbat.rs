//! LEDBAT as RFC 6817 specifies it.
//!
//! Source: RFC 6817, section 2.4.2, per acknowledgement of `a` octets with flight size `f` before it:
//! ```text
//! q    = FILTER(current_delays) - MIN(base_delays)
//! off  = (TARGET - q) / TARGET
//! cwnd = cwnd + GAIN * off * a * MSS / cwnd
//! cwnd = min(cwnd, f + ALLOWED_INCREASE * MSS)
//! cwnd = max(cwnd, MIN_CWND * MSS)
//! ```
//! loss or mark, once per window: `cwnd = min(cwnd, max(cwnd / 2, MIN_CWND * MSS))`; timeout: `cwnd = MSS`.
//!
//! Where it leaves the plain rule, each by a parameter: `correct_drift` and `hold_base` (on; the reasons are at the
//! head of `instruments/queueing_delay.rs`), and `slow_start` (off), which the RFC permits without saying how: growth
//! as TCP's up to the first loss or to `slow_start_exit` times TARGET.
//!
//! *What it leaves out:* the late-comer's advantage is not mended here (see `fledbat` and, later, LEDBAT++); a flow
//! whose floor of two packets is itself a queue beyond the target cannot see its base.
//! *How it was validated:* the steps of `tests/vectors/ledbat.json`; the conformance suite; the link runs of
//! `tests/link.rs`, which hold checks on target, utilisation, drift and route changes.

use crate::instruments::{FilterKind, LossEpoch, QueueingDelay, QueueingDelayConfig};
use crate::params::{ParamDoc, ParamError, ParamKind, Params, Settings};
use crate::registry::Entry;
use crate::window::{Bounds, congested_number};
use crate::{Allowance, Controller, Feedback, Path, Phase, Snapshot, Timeout};
use alloc::boxed::Box;
use cede_units::Duration;

/// RFC 6817, section 2.5: TARGET is 100 ms at most; up to a second is allowed for experiments.
pub(crate) const fn target_param(default: &'static str) -> ParamDoc {
    ParamDoc {
        name: "target",
        kind: ParamKind::Duration { min: Duration::from_micros(100), max: Duration::from_secs(1) },
        default,
        doc: "The queueing delay aimed at (RFC 6817: at most 100 ms).",
    }
}

pub(crate) const BASE_HISTORY: ParamDoc = ParamDoc {
    name: "base_history",
    kind: ParamKind::Count { min: 1, max: 1440 },
    default: "10",
    doc: "Minutes over which the base delay is the minimum (BASE_HISTORY).",
};

pub(crate) const fn filter_param(default: &'static str) -> ParamDoc {
    ParamDoc {
        name: "filter",
        kind: ParamKind::Word(&["min", "latest", "ewma"]),
        default,
        doc: "How samples become the current delay: min of the last few, latest, or ewma (CURRENT_FILTER).",
    }
}

pub(crate) const FILTER_LENGTH: ParamDoc = ParamDoc {
    name: "filter_length",
    kind: ParamKind::Count { min: 1, max: 32 },
    default: "4",
    doc: "Samples of the filter min; those older than one smoothed RTT are left out.",
};

pub(crate) const FILTER_WEIGHT: ParamDoc = ParamDoc {
    name: "filter_weight",
    kind: ParamKind::Number { min: 0.001, max: 1.0 },
    default: "0.125",
    doc: "Weight of the newest sample in the filter ewma.",
};

pub(crate) const fn packets_param(name: &'static str, default: &'static str, doc: &'static str) -> ParamDoc {
    ParamDoc { name, kind: ParamKind::Number { min: 1.0, max: 1000.0 }, default, doc }
}

pub(crate) const fn drift_param(default: &'static str) -> ParamDoc {
    ParamDoc {
        name: "correct_drift",
        kind: ParamKind::Switch,
        default,
        doc: "Measure the clocks' drift on the reverse direction and take it out; follow clocks that are set.",
    }
}

pub(crate) const fn hold_param(default: &'static str) -> ParamDoc {
    ParamDoc {
        name: "hold_base",
        kind: ParamKind::Switch,
        default,
        doc: "Minutes in which the flow kept its own queue standing do not age the base delay.",
    }
}

pub(crate) const CLAMP: ParamDoc = ParamDoc {
    name: "clamp",
    kind: ParamKind::Switch,
    default: "on",
    doc: "Cap gain times offset at one packet per round trip: never ramp faster than TCP.",
};

const PARAMS: &[ParamDoc] = &[
    target_param("100 ms"),
    ParamDoc {
        name: "gain",
        kind: ParamKind::Number { min: 0.001, max: 100.0 },
        default: "1",
        doc: "Packets per round trip by which an empty queue raises the window (RFC 6817: at most 1).",
    },
    ParamDoc {
        name: "decrease_gain",
        kind: ParamKind::Number { min: 0.0, max: 100.0 },
        default: "0",
        doc: "The gain above the target; 0 takes that of gain.",
    },
    CLAMP,
    ParamDoc {
        name: "allowed_increase",
        kind: ParamKind::Number { min: 0.001, max: 1000.0 },
        default: "1",
        doc: "Packets by which the window may exceed what is under way (ALLOWED_INCREASE).",
    },
    BASE_HISTORY,
    filter_param("min"),
    FILTER_LENGTH,
    FILTER_WEIGHT,
    packets_param("min_cwnd", "2", "The smallest window in packets, but after a timeout (MIN_CWND)."),
    packets_param("init_cwnd", "2", "The initial window in packets (INIT_CWND)."),
    ParamDoc { name: "slow_start", kind: ParamKind::Switch, default: "off", doc: "Grow as TCP at first." },
    SLOW_START_EXIT,
    drift_param("on"),
    hold_param("on"),
];

pub(crate) const SLOW_START_EXIT: ParamDoc = ParamDoc {
    name: "slow_start_exit",
    kind: ParamKind::Number { min: 0.0, max: 100.0 },
    default: "0.75",
    doc: "Queueing delay, as a share of the target, at which slow start ends.",
};

pub(crate) const ENTRY: Entry = Entry {
    name: "ledbat",
    summary: "LEDBAT (RFC 6817): yields as the queueing delay nears its target.",
    formula: "q = filtered delay - base delay; cwnd += GAIN * (TARGET - q)/TARGET * acked * MSS/cwnd; \
              cwnd <= flight + ALLOWED_INCREASE * MSS; loss: cwnd/2; timeout: MSS",
    source: "RFC 6817 section 2.4.2",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

/// Reads the filter's three parameters.
pub(crate) fn filter_of(settings: &Settings) -> FilterKind {
    match settings.word("filter") {
        "latest" => FilterKind::Latest,
        "ewma" => FilterKind::Ewma(settings.number("filter_weight")),
        _ => FilterKind::MinOf(settings.count("filter_length")),
    }
}

/// Reads the parameters of the delay estimator.
pub(crate) fn delay_config_of(settings: &Settings) -> QueueingDelayConfig {
    QueueingDelayConfig {
        base_minutes: settings.count("base_history"),
        filter: filter_of(settings),
        correct_drift: settings.switch("correct_drift"),
        hold_base: settings.switch("hold_base"),
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Config {
    target_ns: f64,
    gain: f64,
    decrease_gain: f64,
    clamp: bool,
    allowed_increase: f64,
    min_packets: f64,
    init_packets: f64,
    slow_start: bool,
    slow_start_exit: f64,
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Ledbat {
    config: Config,
    bounds: Bounds,
    delay: QueueingDelay,
    cwnd: f64,
    /// Below it, and only with `slow_start`, the window grows as TCP's.
    ssthresh: f64,
    epoch: LossEpoch,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let gain = settings.number("gain");
    let decrease_gain = settings.number("decrease_gain");
    let config = Config {
        target_ns: settings.duration("target").as_nanos() as f64,
        gain,
        decrease_gain: if decrease_gain > 0.0 { decrease_gain } else { gain },
        clamp: settings.switch("clamp"),
        allowed_increase: settings.number("allowed_increase"),
        min_packets: settings.number("min_cwnd"),
        init_packets: settings.number("init_cwnd"),
        slow_start: settings.switch("slow_start"),
        slow_start_exit: settings.number("slow_start_exit"),
    };
    Ok(Box::new(Ledbat::new(config, delay_config_of(&settings), path)))
}

impl Ledbat {
    fn new(config: Config, delay: QueueingDelayConfig, path: &Path) -> Self {
        let bounds = Bounds::of(path);
        Self {
            config,
            bounds,
            delay: QueueingDelay::new(delay),
            cwnd: bounds.initial(config.init_packets, path),
            ssthresh: if config.slow_start { f64::INFINITY } else { 0.0 },
            epoch: LossEpoch::new(),
        }
    }

    fn floor(&self) -> f64 {
        self.config.min_packets * self.bounds.mss
    }

    /// How far off the target, in [-infinity, 1], times the gain.
    fn scaled_offset(&self, queueing_ns: i64) -> f64 {
        let offset = (self.config.target_ns - queueing_ns as f64) / self.config.target_ns;
        let gain = if offset < 0.0 { self.config.decrease_gain } else { self.config.gain };
        if self.config.clamp { (gain * offset).min(1.0) } else { gain * offset }
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The window after an acknowledgement, before its validation.
    fn steered(&mut self, acked: f64, queueing_ns: i64) -> f64 {
        if self.in_slow_start() {
            if queueing_ns as f64 <= self.config.slow_start_exit * self.config.target_ns {
                return self.cwnd + acked.min(self.bounds.mss);
            }
            self.ssthresh = self.cwnd;
        }
        self.cwnd + self.scaled_offset(queueing_ns) * acked * self.bounds.mss / self.cwnd
    }

    fn on_ack(&mut self, feedback: &Feedback<'_>, queueing_ns: i64) {
        let steered = self.steered(feedback.acked_bytes as f64, queueing_ns);
        let validated =
            feedback.in_flight_before_bytes as f64 + self.config.allowed_increase * self.bounds.mss;
        self.cwnd = self.bounds.bound(steered.min(validated), self.floor());
    }

    /// Section 2.4.2, `on data loss`, and no higher than it stood before this feedback.
    fn cut(&mut self, before: f64) {
        let half = (before / 2.0).max(self.floor());
        self.cwnd = before.min(half);
        self.ssthresh = self.ssthresh.min(self.cwnd);
    }
}

impl Controller for Ledbat {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        let before = self.cwnd;
        let queueing = self.delay.update(feedback, self.cwnd <= self.floor());
        if let Some(queueing_ns) = queueing.filter(|_| feedback.acked_bytes > 0) {
            self.on_ack(feedback, queueing_ns);
        }
        if let Some(number) = congested_number(feedback) {
            self.cwnd = self.cwnd.min(before);
            if self.epoch.try_start(number, feedback.next_number) {
                self.cut(before);
            }
        }
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        if timeout.idle {
            // As RFC 5681, section 4.1: the acknowledgement clock is lost, so start again with the initial window.
            self.cwnd = self.cwnd.min(self.config.init_packets * self.bounds.mss);
            return self.allowance();
        }
        if self.config.slow_start && timeout.consecutive <= 1 {
            self.ssthresh = (timeout.in_flight_bytes as f64 / 2.0).max(self.floor());
        }
        self.cwnd = self.bounds.mss;
        self.epoch.start(timeout.next_number);
        self.allowance()
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.bounds.set_mss(mss_bytes);
        self.cwnd = self.bounds.bound(self.cwnd, self.bounds.mss);
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(self.cwnd as u64)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd_bytes: self.cwnd,
            ssthresh_bytes: (self.ssthresh.is_finite() && self.ssthresh > 0.0).then_some(self.ssthresh),
            base_delay_ns: self.delay.base_ns(),
            queueing_delay: self.delay.queueing(),
            phase: if self.in_slow_start() { Phase::SlowStart } else { Phase::CongestionAvoidance },
            ..Snapshot::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Owned, ack, loss, path, timeout};
    use crate::{ParamValue, registry};
    use cede_units::Instant;

    const MS: i64 = 1_000_000;

    fn ledbat(params: &Params) -> Box<dyn Controller> {
        let mut ledbat = registry::build("ledbat", params, &path(1500)).unwrap();
        let mut base = ack(0, 0);
        base.feedback.one_way_delay_ns = Some(-7 * MS);
        ledbat.on_feedback(&base.feedback());
        ledbat
    }

    /// One packet acknowledged with this queueing delay, an hour of RTTs apart so that the filter keeps nothing old.
    fn at(number: u64, queueing_ms: i64, in_flight_before_bytes: u64) -> Owned {
        let mut one = ack(number, 1500);
        one.feedback.now = Instant::from_millis(1000 + 200 * number);
        one.feedback.one_way_delay_ns = Some((queueing_ms - 7) * MS);
        one.feedback.in_flight_before_bytes = in_flight_before_bytes;
        one
    }

    /// A flow with this window, with the RFC's parameters but for those named.
    fn with_window(cwnd: f64, target_ns: f64, gain: f64) -> Ledbat {
        let config = Config {
            target_ns,
            gain,
            decrease_gain: gain,
            clamp: true,
            allowed_increase: 1.0,
            min_packets: 2.0,
            init_packets: 2.0,
            slow_start: false,
            slow_start_exit: 0.75,
        };
        let settings = Settings::resolve(&Params::new(), PARAMS).unwrap();
        Ledbat { cwnd, ..Ledbat::new(config, delay_config_of(&settings), &path(1500)) }
    }

    fn step(cwnd: f64, flight: u64, acked: u64, queueing_s: f64, target_s: f64, gain: f64) -> f64 {
        let mut one = with_window(cwnd, target_s * 1e9, gain);
        let mut feedback = ack(1, acked);
        feedback.feedback.in_flight_before_bytes = flight;
        one.on_ack(&feedback.feedback(), (queueing_s * 1e9) as i64);
        one.cwnd
    }

    #[test]
    fn check_1_steps_have_the_vectors_values() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../tests/vectors/ledbat.json")).unwrap();
        for case in vectors["rfc6817_step"].as_array().unwrap() {
            let number = |key: &str| case[key].as_f64().unwrap();
            let octets = |key: &str| case[key].as_u64().unwrap();
            assert_eq!(
                (number("mss"), number("allowed_increase"), number("min_cwnd_pkts")),
                (1500.0, 1.0, 2.0)
            );
            let (flight, acked) = (octets("flightsize_before"), octets("acked"));
            let after = step(number("cwnd"), flight, acked, number("q"), number("target"), number("gain"));
            assert!((after - number("cwnd_after")).abs() < 1e-6, "{case}: {after}");
        }
    }

    #[test]
    fn check_1_ten_acknowledgements() {
        let ten =
            |queueing_s| (0..10).fold(15_000.0, |cwnd, _| step(cwnd, 1 << 20, 1500, queueing_s, 0.1, 1.0));
        assert!((ten(0.0) - 16_437.97).abs() < 0.01, "{}", ten(0.0));
        assert!((ten(0.2) - 13_425.65).abs() < 0.01, "{}", ten(0.2));
    }

    #[test]
    fn gains_below_and_above_the_target_are_separate_and_clamped() {
        let with = |name, value| Params::new().with(name, value).with("init_cwnd", ParamValue::Number(10.0));
        let step = |params: &Params, queueing_ms| {
            ledbat(params).on_feedback(&at(1, queueing_ms, 15_000).feedback()).cwnd_bytes
        };
        assert_eq!(step(&with("decrease_gain", ParamValue::Number(4.0)), 150), 15_000 - 300);
        assert_eq!(step(&with("decrease_gain", ParamValue::Number(4.0)), 50), 15_000 + 75);
        assert_eq!(step(&with("gain", ParamValue::Number(4.0)), 0), 15_000 + 150, "clamped to TCP's pace");
        let wild = with("gain", ParamValue::Number(4.0)).with("clamp", ParamValue::Switch(false));
        assert_eq!(step(&wild, 0), 15_000 + 600);
    }

    #[test]
    fn a_loss_halves_once_per_window_down_to_the_floor() {
        let mut ledbat = ledbat(&Params::new().with("init_cwnd", ParamValue::Number(10.0)));
        assert_eq!(ledbat.on_feedback(&loss(5, 20).feedback()).cwnd_bytes, 7500);
        assert_eq!(ledbat.on_feedback(&loss(19, 25).feedback()).cwnd_bytes, 7500);
        assert_eq!(ledbat.on_feedback(&loss(25, 40).feedback()).cwnd_bytes, 3750);
        assert_eq!(ledbat.on_feedback(&loss(40, 50).feedback()).cwnd_bytes, 3000);
        assert_eq!(ledbat.on_feedback(&loss(50, 60).feedback()).cwnd_bytes, 3000);
    }

    #[test]
    fn a_timeout_leaves_one_packet_and_the_next_acknowledgement_lifts_it_to_the_floor() {
        let mut ledbat = ledbat(&Params::new().with("init_cwnd", ParamValue::Number(10.0)));
        assert_eq!(ledbat.on_timeout(&timeout(15_000, 1)).cwnd_bytes, 1500);
        assert_eq!(ledbat.on_feedback(&at(1, 400, 1500).feedback()).cwnd_bytes, 3000);
        assert_eq!(
            ledbat.on_feedback(&loss(900, 1001).feedback()).cwnd_bytes,
            3000,
            "sent before the timeout"
        );
    }

    #[test]
    fn slow_start_ends_at_three_quarters_of_the_target() {
        let mut ledbat = ledbat(&Params::new().with("slow_start", ParamValue::Switch(true)));
        assert_eq!(ledbat.on_feedback(&at(1, 10, 3000).feedback()).cwnd_bytes, 4500);
        assert_eq!(ledbat.snapshot().phase, Phase::SlowStart);
        assert_eq!(ledbat.on_feedback(&at(2, 80, 4500).feedback()).cwnd_bytes, 4600);
        assert_eq!(ledbat.snapshot().phase, Phase::CongestionAvoidance);
        assert_eq!(ledbat.snapshot().queueing_delay, Some(Duration::from_millis(80)));
    }
}
