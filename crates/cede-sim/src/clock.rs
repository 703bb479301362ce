//! A host's own clock: the world's time with an offset and a constant drift.

use cede_units::Instant;

/// How a host's clock relates to the world's: `local = world + offset + world * drift`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// What the clock shows when the world begins, in nanoseconds.
    pub offset_ns: u64,
    /// How much faster it runs, in parts per billion (1 ppm = 1000); slower where negative.
    pub drift_ppb: i64,
}

impl Clock {
    /// What the clock shows at `world` time.
    #[must_use]
    pub fn local(&self, world: Instant) -> Instant {
        let shown = world.as_nanos().saturating_add(self.offset_ns);
        if self.drift_ppb == 0 {
            return Instant::from_nanos(shown);
        }
        let gained = i128::from(world.as_nanos()) * i128::from(self.drift_ppb) / 1_000_000_000;
        Instant::from_nanos(u64::try_from(i128::from(shown) + gained).unwrap_or(0))
    }

    /// The first world time at which the clock shows `local` or more.
    #[must_use]
    pub fn world(&self, local: Instant) -> Instant {
        if local == Instant::NEVER {
            return Instant::NEVER;
        }
        let since_start = local.as_nanos().saturating_sub(self.offset_ns);
        if self.drift_ppb == 0 {
            return Instant::from_nanos(since_start);
        }
        let scaled = i128::from(since_start) * 1_000_000_000 / i128::from(1_000_000_000 + self.drift_ppb);
        let mut world = u64::try_from(scaled).unwrap_or(u64::MAX - 2).min(u64::MAX - 2);
        // The divisions of the two directions round differently; step to the first instant that satisfies both.
        while world > 0 && self.local(Instant::from_nanos(world - 1)) >= local {
            world -= 1;
        }
        while self.local(Instant::from_nanos(world)) < local {
            world += 1;
        }
        Instant::from_nanos(world)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drifting_clock_gains_its_parts_per_million() {
        let clock = Clock { offset_ns: 500, drift_ppb: 50_000 };
        assert_eq!(clock.local(Instant::ZERO), Instant::from_nanos(500));
        assert_eq!(clock.local(Instant::from_secs(1_800)).as_nanos(), 1_800_090_000_500);
    }

    #[test]
    fn a_deadline_is_never_reached_early_and_never_late_by_more_than_a_tick() {
        for drift_ppb in [-500_000, -50_000, -1, 0, 1, 50_000, 500_000] {
            let clock = Clock { offset_ns: 123_456_789, drift_ppb };
            for at in [123_456_789, 200_000_000, 1_000_000_007, 3_600_000_000_001] {
                let local = Instant::from_nanos(at);
                let world = clock.world(local);
                assert!(clock.local(world) >= local);
                let before = Instant::from_nanos(world.as_nanos().saturating_sub(1));
                assert!(world == Instant::ZERO || clock.local(before) < local);
            }
        }
        assert_eq!(Clock::default().world(Instant::NEVER), Instant::NEVER);
    }
}
