//! How fast packets leave: what was delivered lately, and so much more or less as brings the queue to its target.
//!
//! Source: of this project; pacing above the delivered rate as in BBR (Cardwell et al., ACM Queue 2016).
//! *What it leaves out, how it was validated:* see `mod.rs`.

use super::{Cede, Stage};
use cede_units::{Duration, Rate};

/// The pacing gain of slow start.
const SLOW_START_PACE: f64 = 2.0;
/// A round trip's packets that are too few to make a queue that matters: these are spread over it in any case.
const FEW_PACKETS: f64 = 8.0;
/// Pacing lets a packet leave this often at least: where a link has all but stopped, round trips say nothing of what it will
/// carry, and the window of two packets is bound enough (RFC 8085, section 3.1.1, has three seconds where nothing is known).
const LEAST_PACE: Duration = Duration::from_secs(1);
/// The smallest window is spread over this at least where somebody else keeps a queue.
const LEAST_SPREAD: Duration = Duration::from_millis(40);
/// A burst that is worth a timer: so much time at the rate, and not more than this.
const BURST: Duration = Duration::from_micros(500);
const MAX_BURST_BYTES: u64 = 64 * 1024;

impl Cede {
    /// None where nothing is paced yet.
    pub(super) fn pacing(&self) -> Option<Rate> {
        if !self.config.pace || self.srtt.is_zero() {
            return None;
        }
        let window = self.cwnd / self.rtt_s().max(1e-9);
        let bytes_per_s =
            if self.stage == Stage::SlowStart { SLOW_START_PACE * window } else { self.steady_pace(window) };
        let least = self.bounds.mss / LEAST_PACE.as_secs_f64();
        Some(Rate::from_bits_per_sec(((8.0 * bytes_per_s.max(least)) as u64).max(1)))
    }

    /// `window` is a window per round trip, in octets per second. Acknowledgements that wait on a congested way back arrive
    /// in bursts, and what they let out is a queue that shows a round trip later. So no more leaves than was delivered
    /// lately, and so much more, or less, as brings the queue to the target in a round trip. Where most of a round trip is the
    /// way back the window says little of the queue, and a round is long: less must leave before it ends.
    fn steady_pace(&self, window: f64) -> f64 {
        let missing_ns = self.ahead_targets * self.target_ns(self.now) - self.recent_ns as f64;
        let away = self.config.steady_pace - 1.0;
        let most_ahead = if self.restoring { 0.0 } else { away };
        let ahead = (missing_ns / self.srtt.as_nanos() as f64).clamp(-away, most_ahead);
        let few = FEW_PACKETS * self.bounds.mss / self.rtt_s().max(1e-9);
        let delivered = self.delivered().unwrap_or(window);
        // Two packets in a round trip of milliseconds are a part of the link that shows.
        let yields = self.loud_rounds > 1 && self.cwnd <= self.floor();
        let window = if yields { window.min(self.floor() / LEAST_SPREAD.as_secs_f64()) } else { window };
        ((1.0 + ahead) * delivered).max(few).min((1.0 + most_ahead) * window)
    }

    /// What may leave at once at a rate: what is worth a timer, two packets in any case.
    pub(super) fn burst_bytes(&self, rate: Rate) -> u32 {
        let two_packets = (2.0 * self.bounds.mss).min(f64::from(u32::MAX)) as u32;
        let timely = rate.bytes_in(BURST).min(MAX_BURST_BYTES) as u32;
        two_packets.max(timely)
    }
}
