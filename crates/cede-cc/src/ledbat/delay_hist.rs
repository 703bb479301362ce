//! The delays of both directions as libutp measures them: integers in microseconds, quirks included.
//!
//! Source: the behaviour of bittorrent/libutp at 2b364cb (`DelayHist`, the shifts of the base, the drift penalty),
//! written anew from its description. Its LEDBAT++ fork has the same but for the clamp by the RTT.
//!
//! *What it leaves out:* the 32-bit wrap of the stamps (samples arrive unwrapped).
//! *How it was validated:* the filter sequence of `tests/vectors/ledbat.json`; unit tests below.

use crate::Feedback;
use cede_units::{Duration, Instant};

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
/// Clamp on raw samples, so that no sum of them overflows: 142 years of microseconds.
const MAX_RAW_US: i64 = 1 << 52;

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

/// A raw sample in whole microseconds.
fn micros(ns: i64) -> i64 {
    ns.div_euclid(1000).clamp(-MAX_RAW_US, MAX_RAW_US)
}

/// A span in whole microseconds.
fn span_us(span: Duration) -> i64 {
    span.as_micros().min(MAX_RAW_US as u64) as i64
}

/// Both directions and the penalty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Delays {
    ours: DelayHist,
    theirs: DelayHist,
    drift: DriftPenalty,
}

impl Delays {
    pub(super) const fn new() -> Self {
        let drift = DriftPenalty {
            origin_us: None,
            sum_us: 0,
            samples: 0,
            period_end: None,
            average_us: 0,
            drift_us: 0,
        };
        Self { ours: DelayHist::new(), theirs: DelayHist::new(), drift }
    }

    /// A falling reverse base means that our samples drift upwards: move our base along.
    fn follow_reverse(&mut self, now: Instant, reverse_us: i64) {
        let (known, before) = (self.theirs.started, self.theirs.base_us);
        self.theirs.add(now, reverse_us);
        let fallen = before - self.theirs.base_us;
        if known && fallen > 0 && fallen <= MAX_SHIFT_US {
            self.ours.shift(fallen);
        }
    }

    /// The queueing delay to steer by, in microseconds, where there is a sample. A queueing delay above the whole RTT
    /// cannot be: the base is too low and moves up. With `clamp` the present delay is cut to the RTT as well.
    pub(super) fn measure(&mut self, feedback: &Feedback<'_>, clamp: bool) -> Option<i64> {
        let now = feedback.now;
        if let Some(reverse) = feedback.reverse_delay_ns {
            self.follow_reverse(now, micros(reverse));
        }
        let sample = micros(feedback.one_way_delay_ns?);
        self.ours.add(now, sample);
        self.drift.add(now, sample);
        let filtered = self.ours.filtered();
        let mut delay = filtered;
        if let Some(rtt_us) = feedback.rtt_min.map(span_us)
            && filtered > rtt_us
        {
            self.ours.shift(filtered - rtt_us);
            delay = if clamp { rtt_us } else { filtered };
        }
        Some(delay + self.drift.penalty_us())
    }

    /// The base of our direction on the raw scale; none before the first sample.
    pub(super) fn base_ns(&self) -> Option<i64> {
        self.ours.started.then(|| self.ours.base_us * 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_4_the_delay_filter_has_the_vectors_values_across_the_wrap() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/vectors/ledbat.json")).unwrap();
        let mut hist = DelayHist::new();
        let mut unwrapped = None;
        for row in vectors["libutp_delay_filter(now_ms,sample_hex,delay_us,filtered_us,base_hex)"]
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
}
