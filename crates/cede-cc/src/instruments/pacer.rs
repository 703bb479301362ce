//! When the next packet may leave under a pacing rate, and under a window of less than a packet.
//!
//! Source: the earliest-departure-time form of a token bucket (as Linux's `fq` and quinn's and quiche's pacers use):
//! each packet moves the next departure on by its size over the rate; a sender that fell behind may catch up by at
//! most one burst.
//!
//! *What it leaves out:* timers; the transport asks [`Pacer::departure`] and waits by its own.
//! *How it was validated:* unit tests below.

use crate::Allowance;
use cede_units::{Duration, Instant, Rate};

/// A window of next to nothing still lets a packet go this often, so that a connection can recover.
const MAX_INTERVAL: Duration = Duration::from_secs(60);
/// How many times as fast a rate must be for departures that were put off by the one before to be put off by less.
const MUCH_MORE: u64 = 2;

/// The time between packets of so many octets under a window below one of them ([`Allowance::cwnd_bytes`]): one packet
/// in every `packet / cwnd` round trips; at most a minute.
#[must_use]
pub fn sub_packet_interval(packet_bytes: u32, cwnd_bytes: u64, round_trip: Duration) -> Duration {
    (round_trip * u64::from(packet_bytes) / cwnd_bytes.max(1)).min(MAX_INTERVAL)
}

/// Spaces departures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pacer {
    /// When a packet may leave if no burst is allowed.
    next: Instant,
    /// When the last one left, and the rate that `next` follows from; zero where none has.
    last: Instant,
    last_rate: Rate,
    rate: Option<Rate>,
    burst_bytes: u32,
}

impl Pacer {
    /// A pacer that lets everything pass until told otherwise.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            next: Instant::ZERO,
            last: Instant::ZERO,
            last_rate: Rate::from_bits_per_sec(0),
            rate: None,
            burst_bytes: 0,
        }
    }

    /// Takes over an allowance's rate and burst.
    pub fn set(&mut self, allowance: &Allowance) {
        self.rate = allowance.pacing_rate;
        self.burst_bytes = allowance.burst_bytes;
        if let Some(rate) = self.rate
            && rate.bits_per_sec() / MUCH_MORE > self.last_rate.bits_per_sec()
        {
            self.hasten(rate);
        }
    }

    /// What the last departures wait for is counted again by a rate that is far above the one that they were sent at.
    #[cold]
    fn hasten(&mut self, rate: Rate) {
        let part = self.last_rate.bits_per_sec() as f64 / rate.bits_per_sec() as f64;
        self.next = self.last + self.next.since(self.last).mul_f64(part);
        self.last_rate = rate;
    }

    /// How far ahead of its time a packet may leave: the burst, less the packet that is always allowed, at the rate.
    fn lead(&self, rate: Rate, bytes: u64) -> Duration {
        rate.time_to_send(u64::from(self.burst_bytes).saturating_sub(bytes))
    }

    /// When a packet of so many octets may leave: `now`, or an instant after it. [`Instant::NEVER`] at a rate of zero.
    #[inline]
    #[must_use]
    pub fn departure(&self, now: Instant, bytes: u64) -> Instant {
        // Most flows have no rate: for them this is one comparison where the transport asks.
        self.rate.map_or(now, |rate| self.paced_departure(now, bytes, rate))
    }

    #[inline(never)]
    fn paced_departure(&self, now: Instant, bytes: u64, rate: Rate) -> Instant {
        if rate.bits_per_sec() == 0 {
            return Instant::NEVER;
        }
        self.next.saturating_sub(self.lead(rate, bytes)).max(now)
    }

    /// A packet of so many octets leaves.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64) {
        if let Some(rate) = self.rate {
            self.advance(now, bytes, rate);
        }
    }

    #[inline(never)]
    fn advance(&mut self, now: Instant, bytes: u64, rate: Rate) {
        self.next = self.next.max(now) + rate.time_to_send(bytes);
        (self.last, self.last_rate) = (now, rate);
    }
}

impl Default for Pacer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(mbit: u64, burst_bytes: u32) -> Pacer {
        let mut pacer = Pacer::new();
        pacer.set(&Allowance { cwnd_bytes: 1 << 20, pacing_rate: Some(Rate::from_mbit(mbit)), burst_bytes });
        pacer
    }

    /// The departures of `n` packets of 1250 octets that all want to leave at once.
    fn departures(mut pacer: Pacer, start: Instant, n: usize) -> alloc::vec::Vec<u64> {
        let mut now = start;
        let mut one = || {
            now = pacer.departure(now, 1250);
            pacer.on_sent(now, 1250);
            now.as_micros()
        };
        (0..n).map(|_| one()).collect()
    }

    #[test]
    fn packets_are_spaced_by_the_rate() {
        assert_eq!(departures(pacer(10, 1250), Instant::ZERO, 4), [0, 1000, 2000, 3000]);
    }

    #[test]
    fn a_burst_may_leave_together_and_idleness_earns_no_more() {
        assert_eq!(departures(pacer(10, 3750), Instant::ZERO, 5), [0, 0, 0, 1000, 2000]);
        assert_eq!(departures(pacer(10, 3750), Instant::from_millis(9), 4), [9000, 9000, 9000, 10_000]);
    }

    #[test]
    fn what_left_at_a_crawl_does_not_hold_up_what_a_better_rate_allows() {
        let allow = |pacer: &mut Pacer, kbit: u64| {
            let pacing_rate = Some(Rate::from_bits_per_sec(1000 * kbit));
            pacer.set(&Allowance { cwnd_bytes: 1 << 20, pacing_rate, burst_bytes: 1250 });
            pacer.departure(Instant::from_secs(1), 1250).as_micros()
        };
        let mut pacer = Pacer::new();
        allow(&mut pacer, 1);
        pacer.on_sent(Instant::from_secs(1), 1250);
        // 10 kbit at 1 kbit/s.
        assert_eq!(allow(&mut pacer, 1), 11_000_000);
        assert_eq!(allow(&mut pacer, 2), 11_000_000, "twice is not much more");
        assert_eq!(allow(&mut pacer, 100), 1_100_000);
        assert_eq!(allow(&mut pacer, 1), 1_100_000, "what has been paid stays paid");
        assert_eq!(allow(&mut pacer, 10_000), 1_001_000);
    }

    #[test]
    fn half_a_packet_of_window_means_one_in_two_round_trips() {
        let round_trip = Duration::from_millis(100);
        assert_eq!(sub_packet_interval(1000, 500, round_trip), Duration::from_millis(200));
        assert_eq!(sub_packet_interval(1000, 0, round_trip), MAX_INTERVAL);
    }

    #[test]
    fn no_rate_lets_pass_and_rate_zero_never() {
        assert_eq!(Pacer::new().departure(Instant::from_millis(3), 1250), Instant::from_millis(3));
        assert_eq!(pacer(0, 1250).departure(Instant::ZERO, 1250), Instant::NEVER);
    }
}
