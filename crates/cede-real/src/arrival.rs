//! When a datagram came, on the socket's own clock.
//!
//! The kernel stamps datagrams by the system's clock (`SO_TIMESTAMPNS`), which is set now and then and slewed; ours is
//! monotonic. Each time the socket is read both clocks are looked at together, and a stamp is taken for an age: so long
//! before this reading the datagram came. What the kernel has put together of several has one stamp, that of the first.
//!
//! **What it leaves out.** Stamps by network cards (`SO_TIMESTAMPING`).
//! **How it was validated.** Beside this code for steps of the clock; `tests/timestamps.rs` for a driver that is late.

use cede_units::{Duration, Instant};
use std::time::SystemTime;

/// A datagram that seems to have waited longer has a stamp from before a step of the clock.
const MAX_AGE: Duration = Duration::from_secs(10);
/// What the clocks may drift apart between two readings: this much at once, and that much of the time between.
const MAX_DRIFT: Duration = Duration::from_millis(1);
const MAX_SLEW: u64 = 1000;

/// Turns stamps into arrival times.
#[derive(Debug, Default)]
pub(crate) struct ArrivalClock {
    /// Both clocks at the latest reading.
    latest: Option<Reading>,
    /// Nothing arrives before what came before it.
    last: Instant,
    /// The system's clock was set since the reading before: its stamps mean nothing this time.
    stepped: bool,
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    now: Instant,
    system: std::time::Duration,
}

impl ArrivalClock {
    /// Looks at the system's clock: `now` is the moment on ours.
    pub fn read(&mut self, now: Instant) {
        if let Ok(system) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            self.note(Reading { now, system });
        }
    }

    fn note(&mut self, reading: Reading) {
        self.stepped = self.latest.is_some_and(|latest| is_step(latest, reading));
        self.latest = Some(reading);
    }

    /// When a datagram came that was stamped so; the latest reading where that cannot be told.
    pub fn arrival(&mut self, stamp: Option<std::time::Duration>) -> Instant {
        let Some(Reading { now, system }) = self.latest else { return self.last };
        let age = stamp
            .and_then(|stamp| system.checked_sub(stamp))
            .map(|age| Duration::from_nanos(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)))
            .filter(|&age| age <= MAX_AGE && !self.stepped)
            .unwrap_or(Duration::ZERO);
        let at = Instant::from_nanos(now.as_nanos().saturating_sub(age.as_nanos()));
        self.last = self.last.max(at);
        self.last
    }
}

/// Have the clocks moved apart by more than drift explains?
fn is_step(earlier: Reading, later: Reading) -> bool {
    let ours = later.now.since(earlier.now).as_nanos();
    let theirs = later.system.as_nanos() as i128 - earlier.system.as_nanos() as i128;
    let apart = theirs.abs_diff(i128::from(ours));
    apart > u128::from(MAX_DRIFT.as_nanos() + ours / MAX_SLEW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration as SystemDuration;

    fn reading(now_ms: u64, system_ms: u64) -> Reading {
        Reading { now: Instant::from_millis(now_ms), system: SystemDuration::from_millis(system_ms) }
    }

    fn stamp(ms: u64) -> Option<SystemDuration> {
        Some(SystemDuration::from_millis(ms))
    }

    #[test]
    fn a_stamp_is_an_age() {
        let mut clock = ArrivalClock::default();
        clock.note(reading(5_000, 1_000_000));
        assert_eq!(clock.arrival(stamp(999_970)), Instant::from_millis(4_970));
        assert_eq!(clock.arrival(None), Instant::from_millis(5_000));
        assert_eq!(clock.arrival(stamp(999_980)), Instant::from_millis(5_000), "time does not run backwards");
    }

    #[test]
    fn stamps_across_a_step_of_the_clock_mean_nothing() {
        for stepped_ms in [1_050_000, 950_000, 1_000_150] {
            let mut clock = ArrivalClock::default();
            clock.note(reading(5_000, 1_000_000));
            clock.note(reading(5_100, stepped_ms));
            assert_eq!(clock.arrival(stamp(1_000_060)), Instant::from_millis(5_100), "{stepped_ms}");
            clock.note(reading(5_200, stepped_ms + 100));
            assert_eq!(clock.arrival(stamp(stepped_ms + 70)), Instant::from_millis(5_170), "{stepped_ms}");
        }
    }

    #[test]
    fn a_clock_that_is_slewed_is_believed() {
        let mut clock = ArrivalClock::default();
        clock.note(reading(5_000, 1_000_000));
        clock.note(reading(65_000, 1_060_030));
        assert_eq!(clock.arrival(stamp(1_060_020)), Instant::from_millis(64_990));
    }

    #[test]
    fn the_future_and_the_distant_past_are_now() {
        let mut clock = ArrivalClock::default();
        clock.note(reading(50_000, 1_000_000));
        assert_eq!(clock.arrival(stamp(1_000_001)), Instant::from_millis(50_000));
        assert_eq!(clock.arrival(stamp(900_000)), Instant::from_millis(50_000));
    }
}
