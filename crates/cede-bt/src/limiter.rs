//! The upload limit.
//!
//! Sources: mainline 4.0.2's RateLimiter: connections with something to send form a ring, each turn sends at most one
//! unit of 1,380 octets, and the next turn comes when the rate has paid for it; libtorrent 2.0.8: a bucket that is
//! refilled each tick of 500 ms.
//!
//! **What it leaves out.** libtorrent's classes of peers and its counting of TCP/IP headers.
//! **How it was validated.** Gaps between sends at 10 and 20 kB/s below, as the P2P 2010 study states them (section III-A).

use cede_units::{Duration, Instant};

/// How the upload limit is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimiterRule {
    /// Turns of at most so many octets, evenly spaced.
    RoundRobin {
        /// Octets of a turn.
        unit_bytes: u32,
    },
    /// A bucket that holds what the rate brings in one tick.
    Bucket {
        /// The tick.
        tick: Duration,
    },
}

/// The state of an upload limit.
#[derive(Clone, Copy, Debug)]
pub struct Limiter {
    rule: LimiterRule,
    bytes_per_second: Option<u64>,
    /// Everything sent so far has been paid for at this time.
    paid_at: Instant,
    idle: bool,
}

impl Limiter {
    /// A limit in octets per second, or none.
    #[must_use]
    pub const fn new(rule: LimiterRule, bytes_per_second: Option<u64>) -> Self {
        Self { rule, bytes_per_second, paid_at: Instant::ZERO, idle: true }
    }

    /// Changes the limit.
    pub const fn set(&mut self, bytes_per_second: Option<u64>) {
        self.bytes_per_second = bytes_per_second;
    }

    /// The limit in octets per second.
    #[must_use]
    pub const fn limit(&self) -> Option<u64> {
        self.bytes_per_second
    }

    /// Whether control messages leave without a turn: mainline's limiter knows blocks alone, with what waits behind them.
    #[must_use]
    pub const fn spares_control(&self) -> bool {
        self.bytes_per_second.is_some() && matches!(self.rule, LimiterRule::RoundRobin { .. })
    }

    /// How many octets may leave in the next turn: 0 before [`Limiter::next_turn`].
    #[must_use]
    pub fn turn(&self, now: Instant) -> u32 {
        match (self.bytes_per_second, self.rule) {
            (None, _) => u32::MAX,
            (Some(_), LimiterRule::RoundRobin { unit_bytes }) if self.paid_at <= now => unit_bytes,
            (Some(_), LimiterRule::RoundRobin { .. }) => 0,
            // Waits until there is something worth sending.
            (Some(_), LimiterRule::Bucket { .. }) if self.next_turn() > now => 0,
            (Some(rate), LimiterRule::Bucket { tick }) => {
                let earned = now.since(self.paid_at.max(now.saturating_sub(self.at_least_an_octet(tick))));
                (rate.max(1) as f64 * earned.as_secs_f64()) as u32
            }
        }
    }

    /// So many octets left.
    pub fn spend(&mut self, now: Instant, bytes: u32) {
        let Some(rate) = self.bytes_per_second else { return };
        // Credit is not saved up while nobody has anything to send; a turn that comes late is made up for otherwise.
        let floor = match self.rule {
            LimiterRule::RoundRobin { .. } if self.idle => now,
            LimiterRule::RoundRobin { .. } => Instant::ZERO,
            LimiterRule::Bucket { tick } => now.saturating_sub(self.at_least_an_octet(tick)),
        };
        self.idle = false;
        let cost = Duration::from_secs_f64(f64::from(bytes) / (rate.max(1)) as f64);
        self.paid_at = self.paid_at.max(floor) + cost;
    }

    /// Nobody has anything to send.
    pub const fn rest(&mut self) {
        self.idle = true;
    }

    /// When there is a turn again, where there is none now.
    #[must_use]
    pub fn next_turn(&self) -> Instant {
        match self.rule {
            LimiterRule::RoundRobin { .. } => self.paid_at,
            LimiterRule::Bucket { tick } => self.paid_at + self.at_least_an_octet(tick / 2),
        }
    }

    /// A time, or the longer one that an octet takes: a turn that is due and brings less would be due again at once, without end.
    fn at_least_an_octet(&self, time: Duration) -> Duration {
        let Some(rate) = self.bytes_per_second else { return time };
        // A nanosecond longer, lest rounding leave a little less than one.
        time.max(Duration::from_nanos(1_000_000_000 / rate.max(1) + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times in milliseconds at which a busy ring sends in the first second.
    fn turns_ms(kib_per_second: u64) -> alloc::vec::Vec<u64> {
        let mut limiter =
            Limiter::new(LimiterRule::RoundRobin { unit_bytes: 1380 }, Some(kib_per_second << 10));
        let mut now = Instant::from_secs(9);
        let mut turns = alloc::vec::Vec::new();
        while now < Instant::from_secs(10) {
            assert_eq!(limiter.turn(now), 1380);
            limiter.spend(now, 1380);
            assert_eq!(limiter.turn(now), 0);
            turns.push(now.as_micros() / 1000 - 9000);
            now = limiter.next_turn();
        }
        turns
    }

    #[test]
    fn the_ring_sends_a_unit_every_135_and_67_ms() {
        assert_eq!(turns_ms(10)[..4], [0, 134, 269, 404]);
        assert_eq!(turns_ms(20)[..4], [0, 67, 134, 202]);
    }

    #[test]
    fn credit_is_not_saved_up_by_resting() {
        let mut limiter = Limiter::new(LimiterRule::RoundRobin { unit_bytes: 1380 }, Some(1380));
        limiter.spend(Instant::from_secs(1), 1380);
        limiter.rest();
        limiter.spend(Instant::from_secs(10), 1380);
        assert_eq!(limiter.next_turn(), Instant::from_secs(11));
        // Without a rest, a turn that was late does not delay the next.
        limiter.spend(Instant::from_millis(11_500), 1380);
        assert_eq!(limiter.next_turn(), Instant::from_secs(12));
    }

    #[test]
    fn a_bucket_keeps_its_rate() {
        let mut limiter =
            Limiter::new(LimiterRule::Bucket { tick: Duration::from_millis(500) }, Some(10_000));
        let mut sent = 0;
        for ms in (0..10_000).step_by(10) {
            let now = Instant::from_millis(60_000 + ms);
            let n = limiter.turn(now).min(1_000);
            if n > 0 {
                limiter.spend(now, n);
                sent += n;
            }
        }
        assert!((99_000..=111_000).contains(&sent), "{sent}");
    }

    #[test]
    fn a_turn_that_is_due_brings_something_at_the_slowest_rates_too() {
        for rate in [0, 1, 2, 3, 4, 7, 1000] {
            let rule = LimiterRule::Bucket { tick: Duration::from_millis(500) };
            let (mut limiter, mut now, mut sent) =
                (Limiter::new(rule, Some(rate)), Instant::from_secs(60), 0);
            while now < Instant::from_secs(160) {
                let n = limiter.turn(now);
                assert!(n > 0, "{rate} B/s at {now}");
                limiter.spend(now, n);
                sent += u64::from(n);
                now = limiter.next_turn();
            }
            let due = rate.max(1) * 100;
            assert!(sent >= due * 9 / 10 && sent <= due + rate + 1, "{sent} of {due}");
        }
    }
}
