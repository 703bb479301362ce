//! LEDBAT as libutp runs it: integers in octets and microseconds, its quirks included.
//!
//! Source: the behaviour of bittorrent/libutp at 2b364cb (`DelayHist`, congestion control, decay, timeouts), written anew
//! from its description. BEP 29 gives the outline.
//!
//! *What it leaves out:* the 32-bit wrap of the stamps (samples arrive unwrapped); the user's window and send buffer,
//! which are the transport's. libutp lets the window fall to 10 octets and then sends one packet per timeout of a
//! second; here the allowance (not the window) stays at the fraction of a packet that gives this pace.
//! *How it was validated:* the filter and step sequences of `tests/vectors/ledbat.json`; the conformance suite.

use crate::delay_window::target_param;
use crate::entry::Entry;
use crate::params::{ParamDoc, ParamError, ParamKind, Params, Settings};
use crate::window::congested_number;
use crate::{Allowance, Controller, Feedback, Path, Phase, Snapshot, Timeout};
use alloc::boxed::Box;
use cede_units::{Bytes, Duration, Instant};

/// Slots of the base history, about a minute each.
const BASE_SLOTS: usize = 13;
/// A new slot after so long.
const SLOT: Duration = Duration::from_secs(60);
/// The current delay is the minimum of so many.
const CURRENT_SLOTS: usize = 3;
/// A fall of the reverse base by up to this much is taken for drift.
const MAX_SHIFT_US: i64 = 10_000;
/// Raw samples are averaged over this for the drift penalty.
const DRIFT_PERIOD: Duration = Duration::from_secs(5);
/// Microseconds per period beyond which drift is punished.
const DRIFT_LIMIT_US: i64 = 200_000;
/// The window never falls below so many octets.
const MIN_WINDOW_BYTES: i64 = 10;
/// At most one reduction in so long.
const DECAY_INTERVAL: Duration = Duration::from_millis(100);
/// No growth where the window has not been full for so long.
const FULL_WINDOW_MEMORY: Duration = Duration::from_secs(1);
/// The smallest retransmission timeout, in seconds: with a window below a packet, the pace of sending.
const MIN_TIMEOUT_S: f64 = 1.0;
/// Clamp on raw samples, so that no sum of them overflows: about three years of microseconds.
const MAX_RAW_US: i64 = 1 << 46;

const PARAMS: &[ParamDoc] = &[
    target_param("100 ms"),
    ParamDoc {
        name: "max_increase",
        kind: ParamKind::Bytes { min: Bytes(1), max: Bytes(1_000_000) },
        default: "3000 B",
        doc: "Octets by which the window moves per round trip at an empty queue.",
    },
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

/// Base and current delay of one direction, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DelayHist {
    slots: [i64; BASE_SLOTS],
    slot: usize,
    slot_start: Instant,
    base_us: i64,
    started: bool,
    current: [i64; CURRENT_SLOTS],
    next: usize,
}

impl DelayHist {
    /// The list of current delays starts as zeros: the first two filtered values are 0.
    const fn new() -> Self {
        Self {
            slots: [0; BASE_SLOTS],
            slot: 0,
            slot_start: Instant::ZERO,
            base_us: 0,
            started: false,
            current: [0; CURRENT_SLOTS],
            next: 0,
        }
    }

    /// Takes a sample and answers with its delay over the base.
    fn add(&mut self, now: Instant, sample_us: i64) -> i64 {
        if !self.started {
            *self = Self {
                slots: [sample_us; BASE_SLOTS],
                base_us: sample_us,
                slot_start: now,
                started: true,
                ..*self
            };
        }
        self.slots[self.slot] = self.slots[self.slot].min(sample_us);
        self.base_us = self.base_us.min(sample_us);
        let delay = sample_us - self.base_us;
        self.current[self.next] = delay;
        self.next = (self.next + 1) % CURRENT_SLOTS;
        if now.since(self.slot_start) > SLOT {
            self.slot_start = now;
            self.slot = (self.slot + 1) % BASE_SLOTS;
            self.slots[self.slot] = sample_us;
            self.base_us = self.slots.into_iter().min().unwrap_or(sample_us);
        }
        delay
    }

    fn filtered(&self) -> i64 {
        self.current.into_iter().min().unwrap_or(0)
    }

    fn shift(&mut self, offset_us: i64) {
        for slot in &mut self.slots {
            *slot = (*slot + offset_us).min(MAX_RAW_US);
        }
        self.base_us = (self.base_us + offset_us).min(MAX_RAW_US);
    }
}

/// The trend of raw samples, which punishes a clock that hides a growing queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct DriftPenalty {
    origin_us: Option<i64>,
    sum_us: i64,
    samples: i64,
    period_end: Option<Instant>,
    average_us: i64,
    drift_us: i64,
}

impl DriftPenalty {
    fn add(&mut self, now: Instant, sample_us: i64) {
        let origin = *self.origin_us.get_or_insert(sample_us);
        let end = *self.period_end.get_or_insert(now + DRIFT_PERIOD);
        self.sum_us = self.sum_us.saturating_add(sample_us - origin);
        self.samples += 1;
        if now > end {
            let average = self.sum_us / self.samples;
            self.drift_us = (7 * self.drift_us + (average - self.average_us)) / 8;
            *self = Self {
                sum_us: 0,
                samples: 0,
                average_us: average,
                period_end: Some(end + DRIFT_PERIOD),
                ..*self
            };
        }
    }

    fn penalty_us(&self) -> i64 {
        if self.drift_us < -DRIFT_LIMIT_US { (-self.drift_us - DRIFT_LIMIT_US) / 7 } else { 0 }
    }
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Libutp {
    target_us: i64,
    max_increase: f64,
    packet: i64,
    max_window: i64,
    ours: DelayHist,
    theirs: DelayHist,
    drift: DriftPenalty,
    window: i64,
    ssthresh: i64,
    slow_start: bool,
    last_full: Instant,
    last_decay: Option<Instant>,
    delay_us: Option<i64>,
    srtt: Duration,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let packet = i64::from(path.mss_bytes.max(1));
    let max_window = path.max_cwnd_bytes.clamp(1, 1 << 50) as i64;
    Ok(Box::new(Libutp {
        target_us: settings.duration("target").as_micros() as i64,
        max_increase: settings.bytes("max_increase") as f64,
        packet,
        max_window,
        ours: DelayHist::new(),
        theirs: DelayHist::new(),
        drift: DriftPenalty::default(),
        window: packet.min(max_window),
        ssthresh: max_window,
        slow_start: true,
        last_full: Instant::ZERO,
        last_decay: None,
        delay_us: None,
        srtt: Duration::ZERO,
    }))
}

/// A raw sample in whole microseconds.
fn micros(ns: i64) -> i64 {
    ns.div_euclid(1000).clamp(-MAX_RAW_US, MAX_RAW_US)
}

impl Libutp {
    /// A falling reverse base means that our samples drift upwards: move our base along.
    fn follow_reverse(&mut self, now: Instant, reverse_us: i64) {
        let (known, before) = (self.theirs.started, self.theirs.base_us);
        self.theirs.add(now, reverse_us);
        let fallen = before - self.theirs.base_us;
        if known && fallen > 0 && fallen <= MAX_SHIFT_US {
            self.ours.shift(fallen);
        }
    }

    /// The queueing delay to steer by, in microseconds.
    fn measure(&mut self, feedback: &Feedback<'_>) -> Option<i64> {
        let now = feedback.now;
        if let Some(reverse) = feedback.reverse_delay_ns {
            self.follow_reverse(now, micros(reverse));
        }
        let sample = micros(feedback.one_way_delay_ns?);
        self.ours.add(now, sample);
        self.drift.add(now, sample);
        let filtered = self.ours.filtered();
        let mut delay = filtered;
        if let Some(rtt) = feedback.rtt_min {
            // A queueing delay above the whole RTT cannot be: the base is too low.
            let rtt_us = (rtt.as_micros()).min(MAX_RAW_US as u64) as i64;
            if filtered > rtt_us {
                self.ours.shift(filtered - rtt_us);
                delay = rtt_us;
            }
        }
        Some(delay + self.drift.penalty_us())
    }

    fn steer(&mut self, now: Instant, acked: i64, delay_us: i64) {
        let (smaller, larger) = (acked.min(self.window) as f64, acked.max(self.window) as f64);
        let factor = smaller / larger;
        let offset = (self.target_us - delay_us) as f64 / self.target_us as f64;
        let mut gain = self.max_increase * factor * offset;
        if gain > 0.0 && now.since(self.last_full) > FULL_WINDOW_MEMORY {
            gain = 0.0;
        }
        let linear = ((self.window as f64 + gain) as i64).max(MIN_WINDOW_BYTES);
        self.window = if self.slow_start { self.started(factor, linear, delay_us) } else { linear };
        self.window = self.window.max(MIN_WINDOW_BYTES).min(self.max_window);
    }

    /// Slow start: at most one packet per round trip, so the linear rule usually gives more.
    fn started(&mut self, factor: f64, linear: i64, delay_us: i64) -> i64 {
        let grown = (self.window as f64 + factor * self.packet as f64) as i64;
        if grown > self.ssthresh {
            self.slow_start = false;
        } else if delay_us as f64 > self.target_us as f64 * 0.9 {
            self.slow_start = false;
            self.ssthresh = self.window;
        } else {
            return grown.max(linear);
        }
        self.window
    }

    fn decay(&mut self, now: Instant) {
        if self.last_decay.is_some_and(|last| now.since(last) < DECAY_INTERVAL) {
            return;
        }
        self.last_decay = Some(now);
        self.window = (self.window / 2).max(MIN_WINDOW_BYTES).min(self.window);
        self.ssthresh = self.window;
        self.slow_start = false;
    }
}

impl Controller for Libutp {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        let before = self.window;
        self.srtt = feedback.srtt;
        if !feedback.app_limited {
            self.last_full = feedback.now;
        }
        if let Some(delay_us) = self.measure(feedback) {
            self.delay_us = Some(delay_us);
            let acked = feedback.acked_bytes.min(1 << 40) as i64;
            if acked > 0 {
                self.steer(feedback.now, acked, delay_us);
            }
        }
        if congested_number(feedback).is_some() {
            // libutp lets the same packet's growth stand within the 100 ms; no window here grows by a loss.
            self.window = self.window.min(before);
            self.decay(feedback.now);
        }
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        if timeout.idle && self.window > self.packet {
            self.window = (self.window * 2 / 3).max(self.packet);
        } else {
            self.window = self.packet.min(self.max_window);
            self.slow_start = true;
        }
        self.allowance()
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.packet = i64::from(mss_bytes.max(1));
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        let one_per_timeout = self.packet as f64 * (self.srtt.as_secs_f64() / MIN_TIMEOUT_S).min(1.0);
        Allowance::window((self.window as u64).max(one_per_timeout as u64).min(self.max_window as u64))
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd_bytes: self.window as f64,
            ssthresh_bytes: Some(self.ssthresh as f64),
            base_delay_ns: self.ours.started.then(|| self.ours.base_us * 1000),
            queueing_delay: self.delay_us.map(|us| Duration::from_nanos(us.unsigned_abs() * 1000)),
            phase: if self.slow_start { Phase::SlowStart } else { Phase::CongestionAvoidance },
            ..Snapshot::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libutp(window: i64, slow_start: bool, ssthresh: i64) -> Libutp {
        Libutp {
            target_us: 100_000,
            max_increase: 3000.0,
            packet: 1382,
            max_window: 1 << 20,
            ours: DelayHist::new(),
            theirs: DelayHist::new(),
            drift: DriftPenalty::default(),
            window,
            ssthresh,
            slow_start,
            last_full: Instant::ZERO,
            last_decay: None,
            delay_us: None,
            srtt: Duration::ZERO,
        }
    }

    fn vectors() -> serde_json::Value {
        serde_json::from_str(include_str!("../tests/vectors/ledbat.json")).unwrap()
    }

    #[test]
    fn check_4_steps_have_the_vectors_values() {
        for case in vectors()["libutp_step"].as_array().unwrap() {
            let number = |key: &str| case[key].as_i64().unwrap();
            let mut one =
                libutp(number("max_window"), case["slow_start"].as_bool().unwrap(), number("ssthresh"));
            one.steer(Instant::ZERO, number("acked"), number("delay_us"));
            let after = serde_json::json!([one.window, one.slow_start, one.ssthresh]);
            assert_eq!(after, case["after"], "{case}");
        }
    }

    #[test]
    fn check_4_the_delay_filter_has_the_vectors_values_across_the_wrap() {
        let mut hist = DelayHist::new();
        let mut unwrapped = None;
        for row in vectors()["libutp_delay_filter(now_ms,sample_hex,delay_us,filtered_us,base_hex)"]
            .as_array()
            .unwrap()
        {
            let hex = |i: usize| u32::from_str_radix(row[i].as_str().unwrap(), 16).unwrap();
            // What a transport hands in: the 32-bit stamps unwrapped the shorter way round.
            let sample = match unwrapped {
                None => i64::from(hex(1)),
                Some(last) => last + i64::from(hex(1).wrapping_sub(last as u32) as i32),
            };
            unwrapped = Some(sample);
            let delay = hist.add(Instant::from_millis(row[0].as_u64().unwrap()), sample);
            assert_eq!(
                (delay, hist.filtered()),
                (row[2].as_i64().unwrap(), row[3].as_i64().unwrap()),
                "{row}"
            );
            assert_eq!(hist.base_us as u32, hex(4), "{row}");
        }
    }

    #[test]
    fn the_base_expires_after_thirteen_slots() {
        let mut hist = DelayHist::new();
        hist.add(Instant::ZERO, 0);
        let mut now = Instant::ZERO;
        for _ in 0..12 {
            now += Duration::from_millis(60_001);
            hist.add(now, 500);
            assert_eq!(hist.base_us, 0);
        }
        hist.add(now + Duration::from_millis(60_001), 500);
        assert_eq!(hist.base_us, 500);
    }

    #[test]
    fn a_clock_that_runs_away_downwards_is_punished() {
        let mut drift = DriftPenalty::default();
        // Raw samples fall by 100 ms per second.
        for i in 0..4000_i64 {
            drift.add(Instant::from_millis(50 * i as u64), -5_000 * i);
        }
        assert!(drift.drift_us < -450_000, "{}", drift.drift_us);
        assert_eq!(drift.penalty_us(), (-drift.drift_us - 200_000) / 7);
    }

    #[test]
    fn losses_halve_once_per_100_ms_and_a_timeout_leaves_one_packet() {
        let mut one = libutp(20_000, true, 1 << 20);
        one.decay(Instant::from_millis(500));
        assert_eq!((one.window, one.ssthresh, one.slow_start), (10_000, 10_000, false));
        one.decay(Instant::from_millis(599));
        assert_eq!(one.window, 10_000);
        one.decay(Instant::from_millis(600));
        assert_eq!(one.window, 5_000);
        one.on_timeout(&crate::testing::timeout(0, 1));
        assert_eq!((one.window, one.ssthresh, one.slow_start), (1382, 5_000, true));
        one.window = 9_000;
        one.on_timeout(&Timeout { idle: true, ..crate::testing::timeout(0, 0) });
        assert_eq!(one.window, 6_000);
    }
}
