//! What the LEDBAT family shares: a window that is steered by a queueing delay, and the parameters of both.
//!
//! Source: RFC 6817, section 2.4.2 (delay, loss, timeout) and 2.5 (parameters); RFC 5681, section 4.1, for the restart after
//! idleness; `undo.rs` for a loss that was none. How the window moves is each controller's own: `rfc6817.rs`, `draft.rs`, `fledbat.rs`,
//! `plus_plus.rs`.
//!
//! *What it leaves out:* the fixed-point windows of libutp and libtorrent, which have their own files.
//! *How it was validated:* by the tests of the four controllers.

use crate::instruments::{FilterKind, LossEpoch, QueueingDelay, QueueingDelayConfig};
use crate::params::{ParamDoc, ParamKind, Settings, count, number};
use crate::signal::signal_of;
use crate::undo::Repair;
use crate::window::{Bounds, phase_of, snapshot_of};
use crate::{Allowance, Feedback, Path, Snapshot, Timeout};
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

pub(crate) const BASE_HISTORY: ParamDoc = count(
    "base_history",
    "10",
    (1, 1440),
    "Minutes over which the base delay is the minimum (BASE_HISTORY).",
);

pub(crate) const fn filter_param(default: &'static str) -> ParamDoc {
    ParamDoc {
        name: "filter",
        kind: ParamKind::Word(&["min", "latest", "ewma"]),
        default,
        doc: "How samples become the current delay: min of the last few, latest, or ewma (CURRENT_FILTER).",
    }
}

pub(crate) const FILTER_LENGTH: ParamDoc = count(
    "filter_length",
    "4",
    (1, 32),
    "Samples of the filter min; those older than one smoothed RTT are left out.",
);

pub(crate) const FILTER_WEIGHT: ParamDoc =
    number("filter_weight", "0.125", (0.001, 1.0), "Weight of the newest sample in the filter ewma.");

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

pub(crate) const fn slow_start_param(default: &'static str) -> ParamDoc {
    ParamDoc { name: "slow_start", kind: ParamKind::Switch, default, doc: "Grow as TCP at first." }
}

pub(crate) const SLOW_START_EXIT: ParamDoc = number(
    "slow_start_exit",
    "0.75",
    (0.0, 100.0),
    "Queueing delay, as a share of the target, at which slow start ends.",
);

/// Reads the filter's three parameters.
fn filter_of(settings: &Settings) -> FilterKind {
    match settings.word("filter") {
        "latest" => FilterKind::Latest,
        "ewma" => FilterKind::Ewma(settings.number("filter_weight")),
        _ => FilterKind::MinOf(settings.count("filter_length")),
    }
}

/// Reads the parameters of the delay estimator.
fn delay_config_of(settings: &Settings) -> QueueingDelayConfig {
    QueueingDelayConfig {
        signal: signal_of(settings),
        base_minutes: settings.count("base_history"),
        filter: filter_of(settings),
        correct_drift: settings.switch("correct_drift"),
        hold_base: settings.switch("hold_base"),
    }
}

/// A window in octets, the delay that steers it, and the events that cut it.
#[derive(Clone, Debug)]
pub(crate) struct DelayWindow {
    pub(crate) bounds: Bounds,
    pub(crate) cwnd: f64,
    /// Below it the window grows as TCP's: 0 for never, infinite before the first exit.
    pub(crate) ssthresh: f64,
    epoch: LossEpoch,
    repair: Repair,
    delay: QueueingDelay,
    min_packets: f64,
    init_packets: f64,
}

/// What a loss or a timeout changes of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Steered {
    pub(crate) cwnd: f64,
    pub(crate) ssthresh: f64,
    epoch: LossEpoch,
}

impl DelayWindow {
    /// The initial window, with the parameters that all of the family have.
    pub(crate) fn new(settings: &Settings, path: &Path, slow_start: bool) -> Self {
        let bounds = Bounds::of(path);
        let init_packets = settings.number("init_cwnd");
        Self {
            bounds,
            cwnd: bounds.initial(init_packets, path),
            ssthresh: if slow_start { f64::INFINITY } else { 0.0 },
            epoch: LossEpoch::new(),
            repair: Repair::default(),
            delay: QueueingDelay::new(delay_config_of(settings)),
            min_packets: settings.number("min_cwnd"),
            init_packets,
        }
    }

    /// MIN_CWND in octets.
    pub(crate) fn floor(&self) -> f64 {
        self.min_packets * self.bounds.mss
    }

    /// MIN_CWND in packets.
    pub(crate) const fn min_packets(&self) -> f64 {
        self.min_packets
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The queueing delay in nanoseconds that this acknowledgement shows, where it has a sample.
    pub(crate) fn measure(&mut self, feedback: &Feedback<'_>) -> Option<i64> {
        self.repair.hear(feedback);
        self.delay.update(feedback, self.cwnd <= self.floor())
    }

    /// Moves the window within its bounds.
    pub(crate) fn set(&mut self, cwnd: f64) {
        self.cwnd = self.bounds.bound(cwnd, self.floor());
    }

    /// Whether feedback in which the packet `number` is lost or marked, as the highest, begins a new event.
    pub(crate) const fn is_new_event(&self, number: u64) -> bool {
        self.epoch.is_new(number)
    }

    /// A new event begins, by which the window is to be cut.
    pub(crate) fn begin_event(&mut self, feedback: &Feedback<'_>) {
        self.epoch.start(feedback.next_number);
        self.repair.begin(feedback);
    }

    pub(crate) const fn is_repairing(&self) -> bool {
        self.repair.is_under_way()
    }

    /// What the next event or timeout changes.
    pub(crate) const fn present(&self) -> Steered {
        Steered { cwnd: self.cwnd, ssthresh: self.ssthresh, epoch: self.epoch }
    }

    /// The last event was none: what there was before it, or a window that has grown beyond it since. A threshold of 0 is none.
    pub(crate) fn give_back(&mut self, was: &Steered) {
        self.cwnd = self.bounds.bound(self.cwnd.max(was.cwnd), self.bounds.mss);
        self.ssthresh = if was.ssthresh > 0.0 { self.ssthresh.max(was.ssthresh) } else { 0.0 };
        self.end_event(was);
    }

    /// What is lost from now on is another event than the last, before which there was `was`.
    pub(crate) const fn end_event(&mut self, was: &Steered) {
        self.epoch = was.epoch;
        self.repair.end();
    }

    /// A timeout leaves one packet, and `ssthresh` where it is the first in a row. After idleness the acknowledgement
    /// clock is lost: the window starts again from the initial one, where that is smaller.
    pub(crate) fn on_timeout(&mut self, timeout: &Timeout, ssthresh: f64) -> Allowance {
        if timeout.idle {
            self.delay.rest();
            self.cwnd = self.cwnd.min(self.init_packets * self.bounds.mss);
            return self.allowance();
        }
        if timeout.consecutive <= 1 {
            self.ssthresh = ssthresh;
        }
        self.cwnd = self.bounds.mss;
        self.repair.end();
        self.epoch.start(timeout.next_number);
        self.allowance()
    }

    pub(crate) fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.bounds.set_mss(mss_bytes);
        self.cwnd = self.bounds.bound(self.cwnd, self.bounds.mss);
        self.allowance()
    }

    pub(crate) fn allowance(&self) -> Allowance {
        Allowance::window(self.cwnd as u64)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            base_delay_ns: self.delay.base_ns(),
            queueing_delay: self.delay.queueing(),
            ..snapshot_of(self.cwnd, self.ssthresh, phase_of(false, self.in_slow_start()))
        }
    }
}
