//! The timestamp clock, and one-way delays from the peer's.
//!
//! Source: RFC 7323, sections 4 and 5.
//!
//! A data segment carries our clock (TSval); its acknowledgement carries it back (TSecr) beside the peer's clock at the
//! time of the acknowledgement. TSval - TSecr is therefore the way of the segment by two clocks that are not
//! synchronised, plus the time for which the peer delayed the acknowledgement, in whole ticks: with the usual clock of
//! 1 ms a queue shorter than that is invisible, and the readings jump by a tick.
//!
//! **What it leaves out.** Clocks of the two ends with different granularity: a model network sets both.
//!
//! **How it was validated.** Unwrapping over many turns of the clock, both signs (tests below).

use cede_units::{Duration, Instant};

/// Our clock, as the peer sees it.
#[derive(Clone, Debug)]
pub(crate) struct TimestampClock {
    granularity_ns: u64,
    offset: u32,
}

impl TimestampClock {
    /// A clock that is ahead of the host's by `offset` ticks; random ones make connections unlike each other.
    pub(crate) fn new(granularity: Duration, offset: u32) -> Self {
        Self { granularity_ns: granularity.as_nanos().max(1), offset }
    }

    /// The reading at `now`.
    pub(crate) const fn ticks(&self, now: Instant) -> u32 {
        ((now.as_nanos() / self.granularity_ns) as u32).wrapping_add(self.offset)
    }

    /// The time between two readings; none where `later` is in fact earlier.
    pub(crate) fn between(&self, earlier: u32, later: u32) -> Option<Duration> {
        let ticks = i32::try_from(later.wrapping_sub(earlier)).ok()?;
        Some(Duration::from_nanos(u64::from(ticks.unsigned_abs()) * self.granularity_ns))
    }

    /// How long a reading of the peer can be compared with its successors: a little less than half a turn (24 days of
    /// 1 ms; RFC 7323, section 5.5).
    pub(crate) const fn comparable_for(&self) -> Duration {
        Duration::from_nanos(self.granularity_ns.saturating_mul((1 << 31) - (1 << 26)))
    }
}

/// Differences of two 32-bit clocks, unwrapped.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayUnwrapper {
    last: Option<(u32, i64)>,
}

impl DelayUnwrapper {
    /// `theirs - ours` in nanoseconds, continuous over the wrap of either clock.
    pub(crate) fn delay_ns(&mut self, clock: &TimestampClock, theirs: u32, ours: u32) -> i64 {
        let raw = theirs.wrapping_sub(ours);
        let ticks = match self.last {
            None => i64::from(raw as i32),
            Some((last, ticks)) => ticks + i64::from(raw.wrapping_sub(last) as i32),
        };
        self.last = Some((raw, ticks));
        ticks.saturating_mul(clock.granularity_ns as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_count_ticks_from_the_offset() {
        let clock = TimestampClock::new(Duration::from_millis(1), u32::MAX);
        assert_eq!(clock.ticks(Instant::ZERO), u32::MAX);
        assert_eq!(clock.ticks(Instant::from_micros(2_999)), 1);
        assert_eq!(clock.between(u32::MAX, 1), Some(Duration::from_millis(2)));
        assert_eq!(clock.between(1, u32::MAX), None);
        assert_eq!(clock.comparable_for().as_secs_f64() as u64 / 86_400, 24);
    }

    #[test]
    fn delays_stay_continuous_while_both_clocks_turn() {
        let clock = TimestampClock::new(Duration::from_micros(1), 0);
        let mut unwrapper = DelayUnwrapper::default();
        let first = unwrapper.delay_ns(&clock, 5, 10);
        assert_eq!(first, -5_000);
        // The peer's clock runs ahead by a quarter turn per sample: the difference grows past every wrap.
        for i in 1..40_u32 {
            let theirs = 5_u32.wrapping_add(i.wrapping_mul(1 << 30));
            assert_eq!(unwrapper.delay_ns(&clock, theirs, 10), first + i64::from(i) * (1 << 30) * 1_000);
        }
    }
}
