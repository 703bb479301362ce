//! Timestamps and one-way delays.
//!
//! Source: BEP 29, "timestamp_microseconds" and "timestamp_difference_microseconds". Each packet carries its sender's
//! clock, and as a difference what the packet before told about the other direction: the receiver's clock less the
//! timestamp. The clocks are not synchronised and both fields wrap every 71 minutes, so only differences between
//! samples mean anything; samples are unwrapped to 64 bits here so that whoever keeps minima of them need not mind.
//!
//! **What it leaves out.** Histories, minima and the correction of clock drift: they are the controller's
//! (`cede-cc`), which is handed both directions' samples.
//!
//! **How it was validated.** `check_06_wrap` runs both clocks and sequence numbers over their edge.

use cede_units::{Duration, Instant};

/// What very old peers send before they have a sample; libutp and libtorrent ignore it.
const UNINITIALISED: u32 = 0x7fff_ffff;

/// Twice the longest timeout of RFC 6298.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(120);

/// Both directions of one connection.
#[derive(Debug)]
pub(crate) struct Delays {
    resolution_us: u64,
    /// When the packet that is being handled came to the host.
    pub arrived_at: Instant,
    /// What the next packet carries as its difference; zero is none.
    reply_us: u32,
    forward: Unwrapped,
    /// The smallest sample of our own direction.
    forward_min_us: i64,
    reverse: Unwrapped,
}

/// A 32-bit count of microseconds that wraps, followed round the circle.
#[derive(Debug)]
struct Unwrapped {
    total_us: i64,
}

/// Before the first sample. No sum of microseconds gets there in 290,000 years.
const NONE: i64 = i64::MIN;

impl Unwrapped {
    fn latest_ns(&self) -> Option<i64> {
        (self.total_us != NONE).then_some(self.total_us.saturating_mul(1000))
    }

    /// Follows to `sample`, the shorter way round.
    fn follow(&mut self, sample: u32) -> i64 {
        self.total_us = match self.total_us {
            NONE => i64::from(sample as i32),
            total => total + i64::from(sample.wrapping_sub(total as u32) as i32),
        };
        self.total_us
    }
}

impl Delays {
    pub fn new(resolution: Duration) -> Self {
        Self {
            resolution_us: resolution.as_micros().max(1),
            arrived_at: Instant::ZERO,
            reply_us: 0,
            forward: Unwrapped { total_us: NONE },
            forward_min_us: i64::MAX,
            reverse: Unwrapped { total_us: NONE },
        }
    }

    /// The clock as it goes into a packet.
    #[inline]
    pub fn clock_us(&self, now: Instant) -> u32 {
        let us = now.as_micros();
        match self.resolution_us {
            1 => us as u32,
            step => (us - us % step) as u32,
        }
    }

    /// The difference as it goes into a packet.
    #[inline]
    pub fn reply_us(&self) -> u32 {
        self.reply_us
    }

    /// The packet with this timestamp has arrived: remembers what to reply and returns the raw delay of the peer's
    /// direction in nanoseconds. A timestamp of zero is none and leaves the reply as it was, as libtorrent does.
    #[inline]
    pub fn arrived(&mut self, timestamp_us: u32) -> Option<i64> {
        if timestamp_us == 0 {
            return None;
        }
        let difference = self.clock_us(self.arrived_at).wrapping_sub(timestamp_us);
        // Zero means "none" to every receiver, so a difference of zero is told as one microsecond.
        self.reply_us = difference.max(1);
        Some(self.reverse.follow(difference) * 1000)
    }

    /// The raw delay of our own direction in nanoseconds, where the peer's packet tells one.
    #[inline]
    pub fn told(&mut self, difference_us: u32) -> Option<i64> {
        if difference_us == 0 || difference_us == UNINITIALISED {
            return None;
        }
        let delay_us = self.forward.follow(difference_us);
        self.forward_min_us = self.forward_min_us.min(delay_us);
        Some(delay_us * 1000)
    }

    /// How long ago that packet left which the peer answered with these stamps: its clock at the answer, less the difference, is our
    /// clock at the departure, later by what the peer sat on the answer, whatever the clocks' offset. A round trip that holds
    /// however often a packet was sent, as with TCP's timestamps (RFC 7323, section 4).
    pub fn echoed(&self, timestamp_us: u32, difference_us: u32) -> Option<Duration> {
        if timestamp_us == 0 || difference_us == 0 || difference_us == UNINITIALISED {
            return None;
        }
        let departure_us = timestamp_us.wrapping_sub(difference_us);
        let ago = Duration::from_micros(self.clock_us(self.arrived_at).wrapping_sub(departure_us).into());
        // Beyond that the stamps are no clock's.
        (ago <= LONGEST_ROUND_TRIP).then_some(ago)
    }

    /// The latest raw delay of our own direction, in nanoseconds.
    pub fn latest_ns(&self) -> Option<i64> {
        self.forward.latest_ns()
    }

    /// The latest raw delay of the peer's direction, in nanoseconds.
    pub fn latest_reverse_ns(&self) -> Option<i64> {
        self.reverse.latest_ns()
    }

    /// The latest delay of our own direction above the smallest.
    pub fn above_min(&self) -> Option<Duration> {
        let above_ns = self.latest_ns()? - self.forward_min_us * 1000;
        Some(Duration::from_nanos(above_ns.unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(delays: &mut Delays, at_us: u64, timestamp_us: u32) -> Option<i64> {
        delays.arrived_at = Instant::from_micros(at_us);
        delays.arrived(timestamp_us)
    }

    #[test]
    fn samples_go_on_over_the_edge_of_32_bits() {
        let mut delays = Delays::new(Duration::from_micros(1));
        assert_eq!(delays.told(u32::MAX - 9), Some(-10_000));
        assert_eq!(delays.told(5), Some(5_000));
        assert_eq!(delays.told(0x7000_0000), Some(0x7000_0000 * 1000));
        assert_eq!(delays.told(0x9000_0000), Some(0x9000_0000 * 1000));
    }

    #[test]
    fn no_sample_is_none() {
        let mut delays = Delays::new(Duration::from_micros(1));
        assert_eq!(delays.told(0), None);
        assert_eq!(delays.told(UNINITIALISED), None);
        assert_eq!(arrived(&mut delays, 1000, 0), None);
        assert_eq!(delays.reply_us(), 0);
        arrived(&mut delays, 500, 100);
        assert_eq!((arrived(&mut delays, 600, 0), delays.reply_us()), (None, 400));
    }

    #[test]
    fn a_difference_of_zero_is_told_as_one() {
        let mut delays = Delays::new(Duration::from_micros(1));
        assert_eq!(arrived(&mut delays, 77, 77), Some(0));
        assert_eq!(delays.reply_us(), 1);
        assert_eq!(arrived(&mut delays, 77, 100), Some(-23_000));
        assert_eq!(delays.reply_us(), 0_u32.wrapping_sub(23));
    }

    #[test]
    fn a_coarse_clock_moves_in_steps() {
        let delays = Delays::new(Duration::from_millis(1));
        assert_eq!(delays.clock_us(Instant::from_micros(12_999)), 12_000);
    }
}
