//! What libutp and its LEDBAT++ fork share: a window of whole octets and the events that cut it.
//!
//! Source: the behaviour of bittorrent/libutp at 2b364cb (growth only where the window was full within a second, halving
//! once per 100 ms, the restart after idleness), written anew from its description.
//!
//! A loss or a timeout that was none is taken back as in `crate::undo`, which none of the two does (their transport does not learn
//! of it): reductions by losses that left before the last one belong to its event.
//!
//! *What it leaves out:* the user's window and send buffer, which are the transport's.
//! *How it was validated:* by the tests of the two controllers.

use super::delay_hist::Delays;
use crate::instruments::LossEpoch;
use crate::params::{ParamDoc, ParamKind, Settings};
use crate::undo::Repair;
use crate::window::congested_number;
use crate::{Feedback, Path, Phase, Snapshot, Timeout};
use cede_units::{Bytes, Duration, Instant};

/// The smallest window.
pub(super) const fn min_window_param(default: &'static str) -> ParamDoc {
    ParamDoc {
        name: "min_window",
        kind: ParamKind::Bytes { min: Bytes(1), max: Bytes(1_000_000) },
        default,
        doc: "Octets below which the window never falls.",
    }
}

pub(super) const LOSS_INTERVAL: ParamDoc = ParamDoc {
    name: "loss_interval",
    kind: ParamKind::Duration { min: Duration::ZERO, max: Duration::from_secs(60) },
    default: "100 ms",
    doc: "Losses within this of one that halved the window change nothing.",
};

/// No growth where the window has not been full for so long.
const FULL_WINDOW_MEMORY: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(super) struct UtpWindow {
    /// The window never falls below so many octets but by a timeout.
    pub(super) floor: i64,
    /// At most one reduction in so long.
    loss_interval: Duration,
    /// Clamp the measured delay to the RTT.
    clamp_delay: bool,
    pub(super) packet: i64,
    pub(super) max: i64,
    pub(super) window: i64,
    pub(super) ssthresh: i64,
    pub(super) slow_start: bool,
    last_full: Instant,
    last_decay: Option<Instant>,
    /// Which losses were sent before the last one that may turn out to be none.
    event: LossEpoch,
    repair: Repair,
    delays: Delays,
    delay_us: Option<i64>,
}

/// What a loss or a timeout changes of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Held {
    pub(super) window: i64,
    pub(super) ssthresh: i64,
    slow_start: bool,
    last_decay: Option<Instant>,
    event: LossEpoch,
}

/// A reduction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Decay {
    /// What there was before it.
    pub(super) was: Held,
    /// It belongs to no earlier loss.
    pub(super) is_new: bool,
}

impl UtpWindow {
    /// By the parameters above; the delay is clamped to the RTT where `clamp_delay`.
    pub(super) fn of(settings: &Settings, path: &Path, init_packets: i64, clamp_delay: bool) -> Self {
        let floor = settings.bytes("min_window") as i64;
        let loss_interval = settings.duration(LOSS_INTERVAL.name);
        Self { loss_interval, ..Self::new(path, floor, init_packets, clamp_delay) }
    }

    pub(super) fn new(path: &Path, floor: i64, init_packets: i64, clamp_delay: bool) -> Self {
        let packet = i64::from(path.mss_bytes.max(1));
        let max = path.max_cwnd_bytes.clamp(1, 1 << 50) as i64;
        Self {
            floor,
            loss_interval: Duration::from_millis(100),
            clamp_delay,
            packet,
            max,
            window: (init_packets * packet).min(max),
            ssthresh: max,
            slow_start: true,
            last_full: Instant::ZERO,
            last_decay: None,
            event: LossEpoch::new(),
            repair: Repair::default(),
            delays: Delays::new(),
            delay_us: None,
        }
    }

    /// Takes down what an acknowledgement says; octets acknowledged and queueing delay in microseconds where both are
    /// there.
    pub(super) fn hear(&mut self, feedback: &Feedback<'_>) -> Option<(i64, i64)> {
        self.repair.hear(feedback);
        if !feedback.app_limited {
            self.last_full = feedback.now;
        }
        self.delay_us = self.delays.measure(feedback, self.clamp_delay).or(self.delay_us);
        feedback.one_way_delay_ns?;
        let acked = feedback.acked_bytes.min(1 << 40) as i64;
        self.delay_us.filter(|_| acked > 0).map(|delay_us| (acked, delay_us))
    }

    /// The part of the window that was acknowledged, or the other way round: at most 1.
    pub(super) fn factor(&self, acked: i64) -> f64 {
        acked.min(self.window) as f64 / acked.max(self.window) as f64
    }

    /// A gain as it may be applied: none upwards where the window has not been full.
    pub(super) fn validated(&self, now: Instant, gain: f64) -> f64 {
        if gain > 0.0 && now.since(self.last_full) > FULL_WINDOW_MEMORY { 0.0 } else { gain }
    }

    pub(super) fn set(&mut self, window: i64) {
        self.window = window.max(self.floor).min(self.max);
    }

    /// What the next loss or timeout changes.
    pub(super) const fn present(&self) -> Held {
        let Self { window, ssthresh, slow_start, last_decay, event, .. } = *self;
        Held { window, ssthresh, slow_start, last_decay, event }
    }

    pub(super) const fn is_repairing(&self) -> bool {
        self.repair.is_under_way()
    }

    /// The last loss or timeout was none: what there was before it, or a window that has grown beyond it since.
    pub(super) fn give_back(&mut self, was: &Held) {
        self.set(self.window.max(was.window));
        self.ssthresh = self.ssthresh.max(was.ssthresh);
        self.slow_start = was.slow_start;
        self.end_event(was);
    }

    /// What is lost from now on is another event.
    pub(super) const fn end_event(&mut self, was: &Held) {
        (self.last_decay, self.event) = (was.last_decay, was.event);
        self.repair.end();
    }

    /// Halves once per 100 ms where there is a loss or mark. libutp lets the same packet's growth
    /// stand within the 100 ms; no window here grows by a loss.
    pub(super) fn decay(&mut self, feedback: &Feedback<'_>, before: i64) -> Option<Decay> {
        let number = congested_number(feedback)?;
        self.window = self.window.min(before);
        if self.last_decay.is_some_and(|last| feedback.now.since(last) < self.loss_interval) {
            return None;
        }
        let was = self.present();
        self.last_decay = Some(feedback.now);
        self.window = (self.window / 2).max(self.floor).min(self.window);
        self.ssthresh = self.window;
        self.slow_start = false;
        self.repair.begin(feedback);
        let is_new = self.event.try_start(number, feedback.next_number) || feedback.lost.is_empty();
        Some(Decay { was, is_new })
    }

    /// After idleness, two thirds; after a timeout, so many packets and slow start.
    pub(super) fn time_out(&mut self, timeout: &Timeout, packets: i64) {
        if timeout.idle && self.window > self.packet {
            self.window = (self.window * 2 / 3).max(self.packet);
        } else {
            self.window = (packets * self.packet).min(self.max);
            self.slow_start = true;
            self.repair.end();
            self.event.start(timeout.next_number);
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd_bytes: self.window as f64,
            ssthresh_bytes: Some(self.ssthresh as f64),
            base_delay_ns: self.delays.base_ns(),
            queueing_delay: self.delay_us.map(|us| Duration::from_nanos(us.unsigned_abs() * 1000)),
            phase: if self.slow_start { Phase::SlowStart } else { Phase::CongestionAvoidance },
            ..Snapshot::default()
        }
    }
}
