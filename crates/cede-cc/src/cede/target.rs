//! The queue that is aimed at: what was asked for, what jitter and the time of packets make of it, and what a short queue
//! that overflowed leaves of it.
//!
//! Source: of this project; a target in milliseconds as in LEDBAT (RFC 6817).
//! *What it leaves out, how it was validated:* see `mod.rs`.

use super::config::Config;
use cede_units::{Duration, Instant};

/// What a target that has adapted to a short queue grows back by per second.
const ADAPTED_GROWTH_PER_S: f64 = 0.005;
/// What jitter adds to the target at most, over the target.
const MAX_NOISE: f64 = 2.0;
/// The smallest target.
pub(super) const MIN_TARGET_NS: f64 = 1e6;
/// The largest that packets' time makes of it.
const MAX_PACKET_TARGET_NS: f64 = 60e6;
/// Packets' time that the target is at least, and that one which has adapted is.
const TARGET_PACKETS: f64 = 2.0;
const ADAPTED_PACKETS: f64 = 1.0;

/// See the file's head.
#[derive(Clone, Debug)]
pub(super) struct Target {
    wanted: Duration,
    /// The part of the base RTT that it is at most.
    base_part: f64,
    /// What a target that has adapted to a short queue is of it.
    adapted_part: f64,
    /// What it has adapted to, in nanoseconds, and when.
    adapted_ns: f64,
    adapted_at: Instant,
}

impl Target {
    pub(super) const fn new(config: &Config) -> Self {
        let Config { target: wanted, base_part, adapted_part, .. } = *config;
        Self { wanted, base_part, adapted_part, adapted_ns: f64::INFINITY, adapted_at: Instant::ZERO }
    }

    /// What a short queue leaves, in nanoseconds; it grows back.
    fn adapted_ns_at(&self, now: Instant) -> f64 {
        let grown = now.since(self.adapted_at).as_secs_f64() * ADAPTED_GROWTH_PER_S;
        self.adapted_ns + grown * self.wanted.as_nanos() as f64
    }

    /// On a path of this base RTT: whoever keeps a queue of about that, as BBR does, must not find a longer one.
    pub(super) fn wanted_ns(&self, base: Duration) -> f64 {
        let wanted_ns = self.wanted.as_nanos() as f64;
        if base.is_zero() { wanted_ns } else { wanted_ns.min(self.base_part * base.as_nanos() as f64) }
    }

    /// In nanoseconds, where a packet takes so long at the largest rate that was seen, and delays jitter by so much.
    pub(super) fn ns(&self, now: Instant, packet_ns: f64, noise_ns: u64, base: Duration) -> f64 {
        let wanted_ns = self.wanted_ns(base);
        let packets_ns = |packets: f64| (packets * packet_ns).min(MAX_PACKET_TARGET_NS);
        let usual_ns =
            (wanted_ns + (noise_ns as f64).min(MAX_NOISE * wanted_ns)).max(packets_ns(TARGET_PACKETS));
        usual_ns.min(self.adapted_ns_at(now)).max(packets_ns(ADAPTED_PACKETS)).max(MIN_TARGET_NS)
    }

    /// Whether it is shorter than was asked for.
    pub(super) fn is_adapted(&self, now: Instant) -> bool {
        self.adapted_ns_at(now) < self.wanted.as_nanos() as f64
    }

    /// It was no queue that overflowed.
    pub(super) fn forget(&mut self) {
        self.adapted_ns = f64::INFINITY;
    }

    /// A queue of no more than that overflowed.
    pub(super) fn adapt(&mut self, now: Instant, queue_ns: f64) {
        (self.adapted_ns, self.adapted_at) = (self.adapted_part * queue_ns, now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::PARAMS;
    use super::*;
    use crate::params::{Params, Settings};

    fn usual() -> Target {
        let settings = Settings::resolve(&Params::new(), PARAMS).unwrap();
        Target::new(&Config::of(&settings))
    }

    const BASE: Duration = Duration::from_millis(50);

    #[test]
    fn it_shrinks_to_a_third_of_a_queue_that_overflowed_and_grows_back() {
        let mut target = usual();
        let ns = |target: &Target, at_s| target.ns(Instant::from_secs(at_s), 0.0, 0, BASE);
        assert_eq!(ns(&target, 0), 15e6);
        assert!(!target.is_adapted(Instant::ZERO));
        target.adapt(Instant::from_secs(1), 9e6);
        assert!((ns(&target, 1) - 2.97e6).abs() < 1.0 && target.is_adapted(Instant::from_secs(1)));
        assert!((ns(&target, 101) - (2.97e6 + 7.5e6)).abs() < 1.0, "half of what was asked for in 100 s");
        assert_eq!(ns(&target, 1001), 15e6);
    }

    #[test]
    fn a_short_path_has_a_shorter_one() {
        let target = usual();
        let ns = |base_ms| target.ns(Instant::ZERO, 0.0, 0, Duration::from_millis(base_ms));
        assert_eq!((ns(0), ns(1), ns(8), ns(20), ns(600)), (15e6, 1e6, 6e6, 15e6, 15e6));
    }

    #[test]
    fn packets_and_jitter_raise_it_within_bounds() {
        let target = usual();
        let ns = |packet_ns, noise_ns| target.ns(Instant::ZERO, packet_ns, noise_ns, BASE);
        assert_eq!((ns(12e6, 0), ns(100e6, 0)), (24e6, 60e6));
        assert_eq!((ns(0.0, 5_000_000), ns(0.0, 100_000_000)), (20e6, 45e6));
    }
}
