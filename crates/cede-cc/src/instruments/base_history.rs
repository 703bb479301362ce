//! The base delay: minima of one-way delay samples, one per minute.
//!
//! Source: RFC 6817, section 2.4.2 (`update_base_delay`) and 4.2; BASE_HISTORY minutes, a minute being
//! `floor(t / 60 s)` of a monotonic clock. Minutes without a sample count as +infinity, as the RFC's text asks (its
//! pseudo-code shifts once per rollover; both agree where no minute is skipped).
//!
//! Two additions, neither active in [`BaseHistory::update`]'s plain form:
//! * **Skew.** Each minimum is kept with the time at which it was taken, and is carried to the present along the
//!   clock skew handed in (nanoseconds of drift per nanosecond). A better estimate of the skew thereby corrects old
//!   minima too. Minima older than the history's length, which only exist while minutes are blind, are re-based
//!   every minute, so that an error of the present estimate is not stretched over hours.
//! * **Blind minutes.** A minute in which the flow itself kept a queue standing cannot have shown the base. Told so,
//!   the history does not move on: the blind minute's samples join the newest slot, and the list stays one of
//!   minima of minutes that could tell.
//!
//! *What it leaves out:* histories in units other than minutes (libutp's and libtorrent's are in their own files).
//! *How it was validated:* the sequences of `tests/vectors/ledbat.json`; unit tests below.

use super::push_sparingly;
use alloc::collections::VecDeque;
use cede_units::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// One minute's minimum.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Minimum {
    delay_ns: i64,
    at: Instant,
}

impl Minimum {
    /// What the same delay would read at `now` if the clocks drift apart by `skew`.
    fn at(self, now: Instant, skew: f64) -> i64 {
        if skew == 0.0 {
            return self.delay_ns;
        }
        // By way of i64, whose conversion is one instruction; the ages that it cuts off are centuries.
        let age_ns = now.since(self.at).as_nanos().min(i64::MAX as u64) as i64;
        self.delay_ns.saturating_add((skew * age_ns as f64) as i64)
    }
}

/// Minima of the last minutes, newest at the back; `None` for a minute without samples.
#[derive(Clone, Debug)]
pub struct BaseHistory {
    slots: VecDeque<Option<Minimum>>,
    length: usize,
    /// The end of the newest sample's minute.
    minute_end: Instant,
    /// The least of the slots at this skew: all move along one slope, so it stays the least until one of them changes.
    lowest: Option<Minimum>,
    /// What `lowest` read at the newest sample.
    latest_ns: Option<i64>,
    skew: f64,
}

impl BaseHistory {
    /// An empty history of so many minutes (at least one).
    #[must_use]
    pub fn new(minutes: usize) -> Self {
        let length = minutes.max(1);
        Self {
            slots: VecDeque::new(),
            length,
            minute_end: Instant::ZERO + MINUTE,
            lowest: None,
            latest_ns: None,
            skew: 0.0,
        }
    }

    /// Takes a sample, as RFC 6817 has it: no skew, every minute tells.
    pub fn update(&mut self, now: Instant, delay_ns: i64) {
        self.update_with(now, delay_ns, 0.0, false);
    }

    /// Takes a sample. `skew` is the drift of the samples' scale in ns per ns; `was_blind` says of the minute that
    /// ends, if one ends with this sample, that it cannot have shown the base. True where a minute ended.
    pub fn update_with(&mut self, now: Instant, delay_ns: i64, skew: f64, was_blind: bool) -> bool {
        let rolled = now >= self.minute_end;
        if rolled {
            self.roll(now, skew, was_blind);
        }
        if rolled || skew != self.skew {
            self.find_lowest(now, skew);
        }
        let newest = Minimum { delay_ns, at: now };
        self.latest_ns = match self.lowest.map(|lowest| lowest.at(now, skew)) {
            Some(base_ns) if base_ns <= delay_ns => Some(base_ns),
            _ => {
                self.lowest = Some(newest);
                Some(delay_ns)
            }
        };
        match self.slots.back_mut() {
            Some(Some(minimum)) if minimum.at(now, skew) <= delay_ns => {}
            Some(slot) => *slot = Some(newest),
            None => self.push(Some(newest)),
        }
        rolled
    }

    /// Once per minute, and where the skew changes.
    #[cold]
    #[inline(never)]
    fn find_lowest(&mut self, now: Instant, skew: f64) {
        self.skew = skew;
        self.lowest = self.slots.iter().flatten().copied().min_by_key(|minimum| minimum.at(now, skew));
    }

    /// The base delay at the newest sample; none before the first.
    #[must_use]
    pub const fn latest_ns(&self) -> Option<i64> {
        self.latest_ns
    }

    /// Moves on to the minute of `now`, which is a later one.
    #[cold]
    #[inline(never)]
    fn roll(&mut self, now: Instant, skew: f64, was_blind: bool) {
        let minute = now.as_nanos() / MINUTE.as_nanos();
        let passed = (minute + 1).saturating_sub(self.minute_end.as_nanos() / MINUTE.as_nanos()).max(1);
        self.minute_end = Instant::ZERO + MINUTE * (minute + 1);
        if self.slots.is_empty() {
            return;
        }
        let shifts = passed - u64::from(was_blind);
        for _ in 0..shifts.min(self.length as u64) {
            self.push(None);
            if self.slots.len() > self.length {
                self.slots.pop_front();
            }
        }
        self.rebase(now, skew);
    }

    fn push(&mut self, slot: Option<Minimum>) {
        push_sparingly(&mut self.slots, slot, self.length + 1);
    }

    /// Brings minima that have outlived the history's length to the present.
    fn rebase(&mut self, now: Instant, skew: f64) {
        let limit = MINUTE * self.length as u64;
        for minimum in self.slots.iter_mut().flatten().filter(|m| now.since(m.at) > limit) {
            *minimum = Minimum { delay_ns: minimum.at(now, skew), at: now };
        }
    }

    /// The base delay at `now`; none before the first sample.
    #[must_use]
    pub fn base_ns(&self, now: Instant, skew: f64) -> Option<i64> {
        if skew == self.skew {
            return self.lowest.map(|lowest| lowest.at(now, skew));
        }
        self.slots.iter().flatten().map(|minimum| minimum.at(now, skew)).min()
    }

    /// Moves the whole history by `step_ns`: the scale of the samples has jumped.
    pub fn shift(&mut self, step_ns: i64) {
        let minima =
            self.slots.iter_mut().flatten().chain(&mut self.lowest).map(|minimum| &mut minimum.delay_ns);
        for delay_ns in minima.chain(&mut self.latest_ns) {
            *delay_ns = delay_ns.saturating_add(step_ns);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.slots.clear();
        (self.lowest, self.latest_ns) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_2_the_sequences_have_the_vectors_values() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/vectors/ledbat.json")).unwrap();
        for case in vectors["base_history"].as_array().unwrap() {
            let mut history = BaseHistory::new(case["slots"].as_u64().unwrap() as usize);
            for row in case["sequence_t_delay_base"].as_array().unwrap() {
                let now = Instant::from_secs(row[0].as_u64().unwrap());
                history.update(now, row[1].as_i64().unwrap());
                assert_eq!(history.base_ns(now, 0.0), row[2].as_i64(), "{row}");
            }
        }
    }

    #[test]
    fn a_lower_sample_counts_at_once_and_a_higher_one_after_the_history() {
        let mut history = BaseHistory::new(3);
        let mut base = |s: u64, d: i64| {
            history.update(Instant::from_secs(s), d);
            history.base_ns(Instant::from_secs(s), 0.0).unwrap()
        };
        assert_eq!([base(0, 100), base(10, 90), base(70, 120), base(130, 120)], [100, 90, 90, 90]);
        assert_eq!([base(190, 120), base(195, 10)], [120, 10]);
    }

    #[test]
    fn minima_follow_the_skew() {
        let mut history = BaseHistory::new(10);
        history.update(Instant::from_secs(0), 1_000_000);
        let base = history.base_ns(Instant::from_secs(100), 50e-6);
        assert_eq!(base, Some(6_000_000), "50 us/s for 100 s are 5 ms");
        // A sample that only looks higher because the scale has moved is a new minimum.
        history.update_with(Instant::from_secs(100), 5_500_000, 50e-6, false);
        assert_eq!(history.base_ns(Instant::from_secs(100), 50e-6), Some(5_500_000));
    }

    #[test]
    fn blind_minutes_do_not_move_the_history_but_lower_samples_still_count() {
        let mut history = BaseHistory::new(2);
        history.update(Instant::from_secs(0), 50);
        for minute in 1..30 {
            history.update_with(Instant::from_secs(60 * minute), 150, 0.0, true);
            assert_eq!(history.base_ns(Instant::from_secs(60 * minute), 0.0), Some(50));
        }
        history.update_with(Instant::from_secs(1801), 40, 0.0, true);
        assert_eq!(history.base_ns(Instant::from_secs(1801), 0.0), Some(40));
        history.update_with(Instant::from_secs(1861), 150, 0.0, false);
        history.update_with(Instant::from_secs(1921), 150, 0.0, false);
        assert_eq!(history.base_ns(Instant::from_secs(1921), 0.0), Some(150));
    }

    #[test]
    fn extreme_samples_and_a_clock_running_backwards_do_no_harm() {
        let mut history = BaseHistory::new(3);
        history.update_with(Instant::NEVER, i64::MIN, -1.0, true);
        history.update_with(Instant::ZERO, i64::MAX, 1.0, false);
        history.shift(i64::MIN);
        assert_eq!(history.base_ns(Instant::NEVER, -1.0), Some(i64::MIN));
    }
}
