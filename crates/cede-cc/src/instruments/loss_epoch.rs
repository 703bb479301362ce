//! One reduction per window of data.
//!
//! Source: the `recover` rule of RFC 6582, section 3.2, which RFC 6817, section 2.4.2 ("at most once per RTT") and RFC
//! 3168, section 6.1.2 ask for as well. Losses of packets that had been sent before the last reduction belong to
//! the event that caused it.
//!
//! *What it leaves out:* undoing a reduction that turns out to have been spurious (RFC 4015): who does so puts back the copy that it
//! made before.
//! *How it was validated:* unit tests below.

/// Remembers which packets had been sent at the last reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LossEpoch {
    /// The number of the first packet that was sent after the last reduction.
    recover: u64,
}

impl LossEpoch {
    /// Before any reduction: every loss is new.
    #[must_use]
    pub const fn new() -> Self {
        Self { recover: 0 }
    }

    /// Is the loss (or the mark) of the packet `number` a new event?
    #[must_use]
    pub const fn is_new(&self, number: u64) -> bool {
        number >= self.recover
    }

    /// Notes a reduction, made when `next_number` was the number of the next new packet.
    pub fn start(&mut self, next_number: u64) {
        self.recover = self.recover.max(next_number);
    }

    /// True, and notes the reduction, where the event is new.
    pub fn try_start(&mut self, number: u64, next_number: u64) -> bool {
        let new = self.is_new(number);
        if new {
            self.start(next_number);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_one_window_are_one_event() {
        let mut epoch = LossEpoch::new();
        assert!(epoch.try_start(5, 12));
        assert!(!epoch.try_start(7, 13), "7 was sent before the cut");
        assert!(!epoch.is_new(11));
        assert!(epoch.try_start(12, 20), "12 left after it");
    }

    #[test]
    fn a_claim_that_time_runs_backwards_does_not_reopen_an_event() {
        let mut epoch = LossEpoch::new();
        epoch.start(100);
        epoch.start(3);
        assert!(!epoch.is_new(50));
    }
}
