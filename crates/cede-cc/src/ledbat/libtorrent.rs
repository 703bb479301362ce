//! LEDBAT as libtorrent runs it: the window in 16.16 fixed-point octets, its quirks included.
//!
//! Source: the behaviour of arvidn/libtorrent at 069017e33 (`utp_stream.cpp`, `timestamp_history.cpp`), written anew
//! from its description; where samples come from and what idleness does, of 2.0.8. BEP 29 gives the outline.
//!
//! A loss or a timeout that was none is taken back as in `crate::undo`, of which libtorrent's transport does not learn.
//!
//! *What it leaves out:* the 32-bit wrap of the stamps (samples arrive unwrapped). The transport's packet size stands for the MTU, and that an
//! acknowledgement with a selective part counts only that part is its choice (`masks_count_alone` of `cede-utp`).
//! *How it was validated:* the steps of check 5 in the tests below; the conformance suite; single flows and swarms of real
//! clients (`docs/swarms.md`), whose queues come out as measured only with the samples of handshakes.

use super::delay_window::target_param;
use super::utp_window::LOSS_INTERVAL;
use crate::entry::Entry;
use crate::instruments::LossEpoch;
use crate::params::{ParamDoc, ParamError, ParamKind, Params, Settings, count};
use crate::undo::{Repair, Undo};
use crate::window::congested_number;
use crate::{Allowance, Controller, DelaySamples, Feedback, Path, Phase, Snapshot, Timeout};
use alloc::boxed::Box;
use cede_units::{Bytes, Duration, Instant};

/// Slots of the base history.
const BASE_SLOTS: usize = 20;
/// A new slot is considered after so long.
const SLOT: Duration = Duration::from_secs(60);
/// A slot with no more samples than this is kept on: the connection was all but idle.
const MIN_SLOT_SAMPLES: u32 = 120;
/// The current delay is the minimum of so many.
const CURRENT_SLOTS: usize = 3;
/// A fall of the reverse base by less than this is taken for drift.
const MAX_SHIFT_US: i64 = 10_000;
/// The initial window.
const INITIAL_BYTES: i64 = 1500;
/// Clamp on raw samples, so that no sum of them overflows: 142 years. The timestamps of TCP, whose clocks begin anywhere, are up to fifty
/// days apart where they tick every millisecond.
const MAX_RAW_US: i64 = 1 << 52;
/// Clamp on delays, which are moved up by sixteen bits.
const MAX_DELAY_US: i64 = 1 << 40;
/// Clamp on octets per acknowledgement, so that no product overflows.
const MAX_ACKED: u64 = 1 << 30;

const PARAMS: &[ParamDoc] = &[
    target_param("100 ms"),
    ParamDoc {
        name: "gain_factor",
        kind: ParamKind::Bytes { min: Bytes(1), max: Bytes(100_000) },
        default: "3000 B",
        doc: "Octets by which the window moves per round trip at an empty queue (utp_gain_factor).",
    },
    count(
        "loss_multiplier",
        "50",
        (1, 99),
        "Per cent of the window that a loss leaves (utp_loss_multiplier).",
    ),
    ParamDoc {
        doc: "At most one reduction in so long, and per window (utp_cwnd_reduce_timer).",
        ..LOSS_INTERVAL
    },
    ParamDoc {
        name: "min_timeout",
        kind: ParamKind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(60) },
        default: "500 ms",
        doc: "Where nothing is heard for so long while nothing is under way, a third of the window goes (utp_min_timeout).",
    },
];

pub(crate) const ENTRY: Entry = Entry {
    name: "ledbat-libtorrent",
    summary: "LEDBAT as libtorrent (qBittorrent, Deluge) deploys it.",
    formula: "cwnd += 3000 B * acked/in_flight * (TARGET - delay)/TARGET while the window is full; exponential slow \
              start up to TARGET; loss: cwnd/2; timeout: one packet",
    source: "arvidn/libtorrent 069017e33, by behaviour; BEP 29",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

/// The base delay of one direction, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BaseDelay {
    slots: [i64; BASE_SLOTS],
    slot: usize,
    slot_start: Instant,
    samples: u32,
    base_us: Option<i64>,
}

impl BaseDelay {
    const fn new() -> Self {
        Self { slots: [0; BASE_SLOTS], slot: 0, slot_start: Instant::ZERO, samples: 0, base_us: None }
    }

    /// Takes a sample and answers with its delay over the base.
    fn add(&mut self, now: Instant, sample_us: i64) -> i64 {
        let known = match self.base_us {
            Some(base) => base,
            None => {
                *self = Self { slots: [sample_us; BASE_SLOTS], slot_start: now, ..*self };
                sample_us
            }
        };
        let base = known.min(sample_us);
        self.base_us = Some(base);
        self.samples = self.samples.saturating_add(1);
        self.slots[self.slot] = self.slots[self.slot].min(sample_us);
        self.step(now, sample_us);
        sample_us - base
    }

    fn step(&mut self, now: Instant, sample_us: i64) {
        if now.since(self.slot_start) <= SLOT {
            return;
        }
        self.slot_start = now;
        if self.samples > MIN_SLOT_SAMPLES {
            self.samples = 0;
            self.slot = (self.slot + 1) % BASE_SLOTS;
            self.slots[self.slot] = sample_us;
            self.base_us = self.slots.into_iter().min();
        }
    }

    /// Lifts the base; entries below the new one are lifted to it.
    fn lift(&mut self, offset_us: i64) {
        let Some(base) = self.base_us else { return };
        let base = (base + offset_us).min(MAX_RAW_US);
        self.base_us = Some(base);
        for slot in &mut self.slots {
            *slot = (*slot).max(base);
        }
    }
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Libtorrent {
    target_us: i64,
    gain_factor: i64,
    /// Per cent that a loss leaves.
    loss_multiplier: i64,
    loss_interval: Duration,
    min_timeout: Duration,
    mtu: i64,
    max_cwnd: i64,
    ours: BaseDelay,
    theirs: BaseDelay,
    recent: [i64; CURRENT_SLOTS],
    next: usize,
    /// The window in 16.16 fixed point.
    cwnd: i64,
    /// In octets; 0: none.
    ssthresh: i64,
    slow_start: bool,
    epoch: LossEpoch,
    last_loss: Option<Instant>,
    delay_us: Option<i64>,
    /// When a packet came.
    heard_at: Instant,
    /// Timeouts since then with nothing under way.
    idled: u64,
    repair: Repair,
    undo: Undo<Before>,
}

/// What there was before the last loss or timeout.
#[derive(Clone, Copy, Debug)]
struct Before {
    cwnd: i64,
    ssthresh: i64,
    slow_start: bool,
    epoch: LossEpoch,
    last_loss: Option<Instant>,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let mtu = i64::from(path.mss_bytes.clamp(1, 1 << 30));
    let max_cwnd = path.max_cwnd_bytes.min(1 << 40) as i64;
    Ok(Box::new(Libtorrent {
        target_us: settings.duration("target").as_micros() as i64,
        gain_factor: settings.bytes("gain_factor") as i64,
        loss_multiplier: settings.count("loss_multiplier") as i64,
        loss_interval: settings.duration(LOSS_INTERVAL.name),
        min_timeout: settings.duration("min_timeout"),
        mtu,
        max_cwnd,
        ours: BaseDelay::new(),
        theirs: BaseDelay::new(),
        recent: [i64::MAX; CURRENT_SLOTS],
        next: 0,
        cwnd: INITIAL_BYTES.max(mtu).min(max_cwnd.max(mtu)) << 16,
        ssthresh: 0,
        slow_start: true,
        epoch: LossEpoch::new(),
        last_loss: None,
        delay_us: None,
        heard_at: Instant::ZERO,
        idled: 0,
        repair: Repair::default(),
        undo: Undo::new(),
    }))
}

/// A raw sample in whole microseconds.
fn micros(ns: i64) -> i64 {
    ns.div_euclid(1000).clamp(-MAX_RAW_US, MAX_RAW_US)
}

impl Libtorrent {
    fn follow_reverse(&mut self, now: Instant, reverse_us: i64) {
        let before = self.theirs.base_us;
        self.theirs.add(now, reverse_us);
        if let (Some(before), Some(after)) = (before, self.theirs.base_us)
            && before > after
            && before - after < MAX_SHIFT_US
        {
            self.ours.lift(before - after);
        }
    }

    /// Takes what one packet tells, in the order of libtorrent: the reverse direction first.
    fn take(&mut self, samples: &DelaySamples) {
        (self.heard_at, self.idled) = (samples.now, 0);
        if let Some(reverse) = samples.reverse_delay_ns {
            self.follow_reverse(samples.now, micros(reverse));
        }
        if let Some(forward) = samples.one_way_delay_ns {
            self.recent[self.next] = self.ours.add(samples.now, micros(forward));
            self.next = (self.next + 1) % CURRENT_SLOTS;
        }
    }

    /// The delay to steer by; none without a sample in this packet.
    fn measure(&mut self, feedback: &Feedback<'_>) -> Option<i64> {
        self.take(&DelaySamples::of(feedback));
        feedback.one_way_delay_ns?;
        let filtered = self.recent.into_iter().min()?;
        let most = MAX_DELAY_US as u64;
        let rtt = feedback.rtt_min.map_or(most, |rtt| rtt.as_micros().min(most)) as i64;
        Some(filtered.min(rtt))
    }

    fn steer(&mut self, acked: i64, in_flight_before: i64, in_flight_after: i64, delay_us: i64) {
        let left_slow_start = self.slow_start && delay_us >= self.target_us;
        if left_slow_start {
            self.ssthresh = (self.cwnd >> 16) / 2;
            self.slow_start = false;
        }
        // A window that is not full neither grows nor shrinks.
        if in_flight_after + acked + self.mtu <= self.cwnd >> 16 {
            return;
        }
        let linear = self.linear(acked, in_flight_before, delay_us);
        let gain = if self.slow_start { self.started(acked, linear) } else { linear };
        self.set(self.cwnd + gain);
    }

    fn linear(&self, acked: i64, in_flight: i64, delay_us: i64) -> i64 {
        let window_factor = (acked << 16) / in_flight.max(acked).max(1);
        let delay_factor = ((self.target_us - delay_us) << 16) / self.target_us;
        (window_factor.saturating_mul(delay_factor) >> 16)
            .saturating_mul(self.gain_factor)
            .clamp(-(1 << 60), 1 << 60)
    }

    fn started(&mut self, acked: i64, linear: i64) -> i64 {
        if self.ssthresh != 0 && (self.cwnd >> 16) + acked > self.ssthresh {
            self.slow_start = false;
            return linear;
        }
        (acked << 16).max(linear)
    }

    /// The floor is one packet, and clears the fraction.
    fn set(&mut self, cwnd: i64) {
        self.cwnd = cwnd.min(self.max_cwnd << 16).max(self.mtu << 16);
    }

    fn lose(&mut self, now: Instant) {
        self.last_loss = Some(now);
        let before = self.cwnd;
        self.set(before * self.loss_multiplier / 100);
        self.cwnd = self.cwnd.min(before);
        if self.slow_start {
            self.ssthresh = self.cwnd >> 16;
            self.slow_start = false;
        }
    }

    /// Each timeout of an idle connection takes a third of the window, and lets it begin with slow start.
    fn idle(&mut self, now: Instant) {
        let due = now.since(self.heard_at).as_nanos() / self.min_timeout.as_nanos().max(1);
        while self.idled < due && self.cwnd >> 16 > self.mtu {
            self.idled += 1;
            self.set(self.cwnd * 2 / 3);
            self.slow_start = true;
        }
    }

    const fn present(&self) -> Before {
        let Self { cwnd, ssthresh, slow_start, epoch, last_loss, .. } = *self;
        Before { cwnd, ssthresh, slow_start, epoch, last_loss }
    }

    /// A threshold of 0 is none.
    fn give_back(&mut self, was: &Before) {
        self.set(self.cwnd.max(was.cwnd));
        self.ssthresh = if was.ssthresh == 0 { 0 } else { self.ssthresh.max(was.ssthresh) };
        (self.slow_start, self.epoch, self.last_loss) = (was.slow_start, was.epoch, was.last_loss);
        self.repair.end();
    }

    fn is_new_loss(&self, now: Instant, number: u64) -> bool {
        self.epoch.is_new(number) && self.last_loss.is_none_or(|last| now.since(last) >= self.loss_interval)
    }
}

impl Controller for Libtorrent {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        let before = self.cwnd;
        self.repair.hear(feedback);
        if let Some(delay_us) = self.measure(feedback) {
            self.delay_us = Some(delay_us);
            let octets = |n: u64| n.min(MAX_ACKED) as i64;
            let acked = octets(feedback.acked_bytes);
            if acked > 0 {
                let (in_flight, after) = (feedback.in_flight_before_bytes, feedback.in_flight_bytes);
                self.steer(acked, octets(in_flight), octets(after), delay_us);
            }
        }
        if let Some(number) = congested_number(feedback) {
            self.cwnd = self.cwnd.min(before);
            if self.is_new_loss(feedback.now, number) {
                self.undo.note_event(feedback, self.present());
                self.epoch.start(feedback.next_number);
                self.repair.begin(feedback);
                self.lose(feedback.now);
            }
        }
        self.allowance()
    }

    fn on_delays(&mut self, samples: &DelaySamples) {
        self.take(samples);
    }

    fn on_undo(&mut self) -> Allowance {
        if let Some(before) = self.undo.take() {
            self.give_back(&before);
        }
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        if timeout.idle {
            self.idle(timeout.now);
            return self.allowance();
        }
        self.undo.note_timeout(timeout, self.repair.is_under_way(), self.present());
        self.repair.end();
        self.set(0);
        self.slow_start = true;
        self.epoch.start(timeout.next_number);
        self.allowance()
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.mtu = i64::from(mss_bytes.clamp(1, 1 << 30));
        self.set(self.cwnd);
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        Allowance::window((self.cwnd >> 16) as u64)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd_bytes: self.cwnd as f64 / 65_536.0,
            ssthresh_bytes: (self.ssthresh != 0).then_some(self.ssthresh as f64),
            base_delay_ns: self.ours.base_us.map(|us| us * 1000),
            queueing_delay: self.delay_us.map(|us| Duration::from_nanos(us.unsigned_abs() * 1000)),
            phase: if self.slow_start { Phase::SlowStart } else { Phase::CongestionAvoidance },
            ..Snapshot::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, loss, path, timeout};
    use crate::{ParamValue, registry};

    /// Feeds one acknowledgement to a flow with this window, by way of its fields' rules.
    fn step(cwnd: i64, acked: u64, in_flight: u64, delay_us: i64) -> f64 {
        let mut one = Libtorrent {
            target_us: 100_000,
            gain_factor: 3000,
            loss_multiplier: 50,
            loss_interval: Duration::from_millis(100),
            min_timeout: Duration::from_millis(500),
            mtu: 1451,
            max_cwnd: 1 << 30,
            ours: BaseDelay::new(),
            theirs: BaseDelay::new(),
            recent: [i64::MAX; CURRENT_SLOTS],
            next: 0,
            cwnd: cwnd << 16,
            ssthresh: 0,
            slow_start: false,
            epoch: LossEpoch::new(),
            last_loss: None,
            delay_us: None,
            heard_at: Instant::ZERO,
            idled: 0,
            repair: Repair::default(),
            undo: Undo::new(),
        };
        one.steer(acked as i64, in_flight as i64, (in_flight - acked) as i64, delay_us);
        one.snapshot().cwnd_bytes
    }

    #[test]
    fn check_5_steps() {
        for (delay_us, after) in [(0, 15_009.97), (50_000, 14_859.96), (300_000, 14_110.05)] {
            let cwnd = step(14_710, 1451, 14_510, delay_us);
            assert!((cwnd - after).abs() < 0.02, "{delay_us}: {cwnd}");
        }
    }

    #[test]
    fn a_window_that_is_not_full_stays() {
        assert_eq!(step(14_710, 1451, 10_000, 300_000), 14_710.0);
        assert_eq!(step(14_710, 1451, 10_000, 0), 14_710.0);
    }

    #[test]
    fn slow_start_is_exponential_and_ends_at_the_target() {
        let mut one = fresh();
        let mut feed = |number: u64, delay_ms: i64, acked: u64, in_flight: u64| {
            let mut feedback = ack(number, acked);
            feedback.feedback.now = Instant::from_secs(number);
            feedback.feedback.one_way_delay_ns = Some(delay_ms * 1_000_000);
            feedback.feedback.in_flight_before_bytes = in_flight;
            feedback.feedback.in_flight_bytes = in_flight - acked;
            one.on_feedback(&feedback.feedback()).cwnd_bytes
        };
        assert_eq!(feed(0, 0, 1500, 1500), 4500, "the linear term is larger at first");
        assert_eq!(feed(1, 0, 4500, 4500), 9000, "then it doubles");
        assert_eq!(feed(2, 150, 1500, 9000), 10_500, "the minimum of three is still 0");
        assert_eq!(feed(3, 150, 1500, 10_500), 12_000);
        assert_eq!(feed(4, 150, 1500, 12_000), 12_000 - 188);
        assert_eq!(one.snapshot().ssthresh_bytes, Some(6000.0));
        assert_eq!(one.on_feedback(&loss(10, 20).feedback()).cwnd_bytes, 5906);
        assert_eq!(one.snapshot().ssthresh_bytes, Some(6000.0), "only a slow start sets it");
    }

    fn fresh() -> Box<dyn Controller> {
        registry::build("ledbat-libtorrent", &Params::new(), &path(1500)).unwrap()
    }

    #[test]
    fn the_base_is_that_of_the_handshake() {
        let mut one = fresh();
        let samples = DelaySamples {
            now: Instant::from_secs(1),
            one_way_delay_ns: Some(7_000_000),
            reverse_delay_ns: None,
        };
        one.on_delays(&samples);
        let mut feedback = ack(0, 1500);
        feedback.feedback.one_way_delay_ns = Some(60_000_000);
        one.on_feedback(&feedback.feedback());
        assert_eq!(one.snapshot().base_delay_ns, Some(7_000_000));
        assert_eq!(one.snapshot().queueing_delay, Some(Duration::ZERO), "the minimum of both");
    }

    #[test]
    fn idleness_takes_a_third_each_half_second_and_brings_slow_start_back() {
        let mut one = fresh();
        for number in 0..20 {
            let mut feedback = ack(number, 1500);
            feedback.feedback.now = Instant::from_secs(1);
            feedback.feedback.one_way_delay_ns = Some(if number < 15 { 0 } else { 200_000_000 });
            feedback.feedback.in_flight_before_bytes = 1 << 20;
            feedback.feedback.in_flight_bytes = 1 << 20;
            one.on_feedback(&feedback.feedback());
        }
        let before = one.allowance().cwnd_bytes as f64;
        assert_eq!(one.snapshot().phase, Phase::CongestionAvoidance);
        let mut idle = |ms| {
            let timeout = Timeout { now: Instant::from_millis(ms), idle: true, ..timeout(0, 1) };
            one.on_timeout(&timeout).cwnd_bytes as f64
        };
        assert_eq!(idle(1_400), before, "too early");
        assert!((idle(1_500) - before * 2.0 / 3.0).abs() < 1.0);
        assert!((idle(2_600) - before * (2.0_f64 / 3.0).powi(3)).abs() < 1.0, "one was not told");
        assert_eq!(idle(60_000), 1500.0);
        assert_eq!(one.snapshot().phase, Phase::SlowStart);
    }

    #[test]
    fn what_a_loss_leaves_and_when_idleness_begins_to_tell_can_be_set() {
        let with = |name: &str, value: ParamValue| {
            registry::build("ledbat-libtorrent", &Params::new().with(name, value), &path(1500)).unwrap()
        };
        let grown = |one: &mut dyn Controller| {
            for number in 0..20 {
                let mut feedback = ack(number, 1500);
                feedback.feedback.now = Instant::from_secs(1);
                feedback.feedback.one_way_delay_ns = Some(0);
                (feedback.feedback.in_flight_before_bytes, feedback.feedback.in_flight_bytes) =
                    (1 << 20, 1 << 20);
                one.on_feedback(&feedback.feedback());
            }
            one.allowance().cwnd_bytes as f64
        };
        for (percent, left) in [(50.0, 0.5), (90.0, 0.9)] {
            let mut one = with("loss_multiplier", ParamValue::Number(percent));
            let before = grown(&mut *one);
            one.on_feedback(&loss(30, 40).feedback());
            assert!((one.allowance().cwnd_bytes as f64 - left * before).abs() < 1.0, "{percent}");
        }
        for (ms, times) in [(500, 2), (300, 3)] {
            let mut one = with("min_timeout", ParamValue::Duration(Duration::from_millis(ms)));
            let before = grown(&mut *one);
            let idle = Timeout { now: Instant::from_secs(2), idle: true, ..timeout(0, 1) };
            let left = one.on_timeout(&idle).cwnd_bytes as f64;
            assert!((left - before * (2.0_f64 / 3.0).powi(times)).abs() < 2.0, "{ms} ms");
        }
    }

    #[test]
    fn a_slot_with_few_samples_is_kept_on() {
        let mut base = BaseDelay::new();
        base.add(Instant::ZERO, 0);
        for minute in 1..100 {
            base.add(Instant::from_secs(61 * minute), 500);
        }
        assert_eq!(base.base_us, Some(0));
        for i in 0..200_000_u64 {
            base.add(Instant::from_secs(6100) + Duration::from_millis(100 * i), 500);
        }
        assert_eq!(base.base_us, Some(500));
    }
}
