//! Tells a controller's timer that waits from one that never does.
//!
//! A controller that asks for a timer which is due at once after each that ran out would keep its transport from everything
//! else, for ever where time is virtual. A transport counts them, and gives such a connection up.
//!
//! *What it leaves out:* a call that does not return.
//! *How it was validated:* the unit test below; `tests/controllers_gone_wrong.rs` of the laboratory.

use cede_units::Instant;

/// More timers than this within a millisecond are no use of time: at 100 Gbit/s, packets of 1,250 octets are 100 ns apart.
const MOST: u16 = 10_000;

/// Counts a controller's timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimerGuard {
    /// It wraps: an idle connection has room for no more.
    millisecond: u16,
    fired: u16,
}

impl TimerGuard {
    /// A timer ran out: is it one of too many?
    pub fn spins(&mut self, now: Instant) -> bool {
        let millisecond = (now.as_micros() / 1_000) as u16;
        if millisecond != self.millisecond {
            *self = Self { millisecond, fired: 0 };
        }
        self.fired = self.fired.saturating_add(1);
        self.fired > MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Duration;

    /// How many timers are let through in a second, at most a million of them.
    fn within_a_second(apart: Duration) -> u32 {
        let (mut guard, mut now) = (TimerGuard::default(), Instant::ZERO);
        (0..1_000_000)
            .find(|_| {
                now += apart;
                guard.spins(now)
            })
            .unwrap_or(1_000_000)
    }

    #[test]
    fn timers_that_take_no_time_are_found_and_others_are_not() {
        assert_eq!(within_a_second(Duration::ZERO), u32::from(MOST));
        assert_eq!(within_a_second(Duration::from_nanos(1)), u32::from(MOST));
        assert_eq!(within_a_second(Duration::from_nanos(100)), 1_000_000);
        assert_eq!(within_a_second(Duration::from_micros(1)), 1_000_000);
    }
}
