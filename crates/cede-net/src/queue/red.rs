//! RED: packets are dropped at arrival with a probability that rises with the average length of the queue.
//!
//! Source: S. Floyd, V. Jacobson, "Random Early Detection gateways for congestion avoidance", IEEE/ACM Transactions on
//! Networking 1(4), 1993 (average, probabilities, uniform spacing); the gentle variant by Floyd (2000) and the
//! adaptation of `max_p` by Linux's `adaptive` (Floyd, Gummadi, Shenker 2001) as options.
//!
//! What it leaves out: queue lengths in octets and drops by octets, weighted RED with several classes, and Linux's
//! average in powers of two.
//!
//! How it was validated: averages and probabilities against an independent implementation; the uniform spacing of
//! drops (tests below).

use cede_units::{Duration, Instant, Rate, Stream};

/// How `max_probability` follows the average: additively up and multiplicatively down, so that the average stays in the middle.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedAdaptation {
    /// From one step to the next.
    pub every: Duration,
    /// What a step adds at most; a quarter of the probability is the other bound.
    pub up: f64,
    /// What a step down leaves.
    pub down: f64,
    /// Above this probability no step goes up, and below that one none down.
    pub ceiling: f64,
    /// See there.
    pub floor: f64,
    /// Where the average is to be, as parts of the way from `min_packets` to `max_packets`.
    pub low: f64,
    /// The other end.
    pub high: f64,
}

impl Default for RedAdaptation {
    /// As Linux (`red_adaptative_algo`), after Floyd, Gummadi and Shenker.
    fn default() -> Self {
        let every = Duration::from_millis(500);
        Self { every, up: 0.01, down: 0.9, ceiling: 0.5, floor: 0.01, low: 0.4, high: 0.6 }
    }
}

/// What can be set on RED. Lengths are in packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedConfig {
    /// Below this average nothing is dropped.
    pub min_packets: f64,
    /// Above it everything is, or with `gentle` more and more.
    pub max_packets: f64,
    /// The probability at `max_packets`.
    pub max_probability: f64,
    /// The weight of a sample in the average.
    pub weight: f64,
    /// Between `max_packets` and twice as many the probability rises to 1.
    pub gentle: bool,
    /// `max_probability` follows the average.
    pub adaptive: bool,
    /// How, where it does.
    pub adaptation: RedAdaptation,
    /// The size of a usual packet: while the queue is idle the average decays as if such packets had passed.
    pub mean_packet_bytes: u32,
}

impl Default for RedConfig {
    /// As ns-2 and the literature have it: 5 and 15 packets, 0.1, 0.002, gentle.
    fn default() -> Self {
        Self {
            min_packets: 5.0,
            max_packets: 15.0,
            max_probability: 0.1,
            weight: 0.002,
            gentle: true,
            adaptive: false,
            adaptation: RedAdaptation::default(),
            mean_packet_bytes: 1_000,
        }
    }
}

/// The state of a RED queue.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    config: RedConfig,
    average: f64,
    /// Packets since the last drop; none below the lower threshold (the paper's -1).
    count: Option<u32>,
    /// Since when an empty queue has been so, as far as the average knows.
    idle_since: Instant,
    packet_time: Duration,
    next_adaptation: Instant,
    random: Stream,
}

impl Red {
    pub(crate) fn new(config: RedConfig, rate: Rate, random: Stream) -> Self {
        Self {
            average: 0.0,
            count: None,
            idle_since: Instant::ZERO,
            packet_time: rate.time_to_send(u64::from(config.mean_packet_bytes)),
            next_adaptation: Instant::ZERO + config.adaptation.every,
            random,
            config,
        }
    }

    /// The link has another rate.
    pub(crate) const fn on_rate(&mut self, rate: Rate) {
        self.packet_time = rate.time_to_send(self.config.mean_packet_bytes as u64);
    }

    /// A packet arrives where `queued` wait: whether it is to be dropped or marked.
    pub(crate) fn signals(&mut self, now: Instant, queued: usize) -> bool {
        self.average_in(now, queued);
        if self.config.adaptive {
            self.adapt(now);
        }
        let Some(probability) = self.probability() else {
            self.count = None;
            return false;
        };
        let count = self.count.map_or(0, |count| count.saturating_add(1));
        self.count = Some(count);
        let signals = probability >= 1.0 || self.random.chance(spaced(probability, count));
        if signals {
            self.count = Some(0);
        }
        signals
    }

    fn average_in(&mut self, now: Instant, queued: usize) {
        // Also a packet that is dropped on arrival leaves the queue empty, and the average to decay from here.
        if queued == 0 {
            let idle = now.since(core::mem::replace(&mut self.idle_since, now));
            let packets = idle.as_nanos() / self.packet_time.as_nanos().max(1);
            self.average *= power(1.0 - self.config.weight, packets);
        }
        self.average += self.config.weight * (queued as f64 - self.average);
    }

    /// `p_b` of the paper's section 4; none below the lower threshold.
    fn probability(&self) -> Option<f64> {
        let RedConfig { min_packets: min, max_packets: max, max_probability, gentle, .. } = self.config;
        match self.average {
            average if average < min => None,
            average if average < max => Some(max_probability * (average - min) / (max - min)),
            average if gentle && average < 2.0 * max => {
                Some(max_probability + (1.0 - max_probability) * (average - max) / max)
            }
            _ => Some(1.0),
        }
    }

    fn adapt(&mut self, now: Instant) {
        if now < self.next_adaptation {
            return;
        }
        let RedConfig { min_packets: min, max_packets: max, max_probability, adaptation: by, .. } =
            self.config;
        self.next_adaptation = now + by.every;
        let span = max - min;
        if self.average > min + by.high * span && max_probability <= by.ceiling {
            self.config.max_probability += by.up.min(max_probability / 4.0);
        } else if self.average < min + by.low * span && max_probability >= by.floor {
            self.config.max_probability *= by.down;
        }
    }

    /// A packet left, and `left` wait.
    pub(crate) const fn on_departure(&mut self, now: Instant, left: usize) {
        if left == 0 {
            self.idle_since = now;
        }
    }
}

/// `p_a`: with `p_b` alone drops would cluster; so they are spread evenly.
fn spaced(probability: f64, count: u32) -> f64 {
    let rest = 1.0 - f64::from(count) * probability;
    if rest <= 0.0 { 1.0 } else { (probability / rest).min(1.0) }
}

/// `base` to the power of a whole number, by squaring.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{number, vector, vectors};

    fn red(config: RedConfig) -> Red {
        Red::new(config, Rate::from_mbit(8), Stream::named(1, "red"))
    }

    #[test]
    fn red_average_w_0_002_q_50() {
        let mut red = red(RedConfig::default());
        for expected in vector("red_avg_w0.002_q50") {
            red.signals(Instant::ZERO, 50);
            assert!((red.average - number(&expected)).abs() < 1e-4, "{} {expected}", red.average);
        }
    }

    #[test]
    fn red_p_b_and_p_a() {
        let mut red = red(RedConfig::default());
        let vectors = vectors();
        for (average, expected) in vectors["red_pb_min5_max15_maxp0.1"].as_object().expect("a table") {
            red.average = average.parse().expect("a number");
            assert!((red.probability().unwrap() - number(expected)).abs() < 1e-9);
        }
        for case in vector("red_pa") {
            red.average = number(&case[0]);
            let found = spaced(red.probability().unwrap(), number(&case[1]) as u32);
            assert!((found - number(&case[2])).abs() < 1e-6, "{case}");
        }
    }

    #[test]
    fn gentle_rises_to_one_at_twice_the_threshold() {
        let mut red = red(RedConfig::default());
        for (average, expected) in [(15.0, 0.1), (22.5, 0.55), (30.0, 1.0), (99.0, 1.0)] {
            red.average = average;
            assert!((red.probability().unwrap() - expected).abs() < 1e-9, "{average}");
        }
        red.config.gentle = false;
        red.average = 15.0;
        assert_eq!(red.probability(), Some(1.0));
    }

    #[test]
    fn drops_are_spread_evenly() {
        let mut red = red(RedConfig { weight: 1e-12, ..RedConfig::default() });
        red.average = 10.0;
        let (mut gaps, mut gap) = (alloc::vec::Vec::new(), 0);
        for _ in 0..20_000 {
            gap += 1;
            if red.signals(Instant::ZERO, 10) {
                gaps.push(gap);
                gap = 0;
            }
        }
        // Uniform over 1 to 1/p = 20 packets: none is longer, and the mean is near 10.5.
        let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        assert!(gaps.iter().all(|&gap| gap <= 20) && (10.0..11.0).contains(&mean), "{mean}");
    }

    #[test]
    fn an_idle_queue_loses_its_average() {
        let mut red = red(RedConfig::default());
        red.average = 10.0;
        red.on_departure(Instant::ZERO, 0);
        // 8 Mbit/s and 1,000 B: a packet a millisecond.
        red.signals(Instant::from_millis(500), 0);
        assert!((red.average - 10.0 * power(0.998, 501)).abs() < 1e-9, "{}", red.average);
        // Whether or not that packet was let in, the next pause counts as well.
        red.signals(Instant::from_millis(1_000), 0);
        assert!((red.average - 10.0 * power(0.998, 1_002)).abs() < 1e-9, "{}", red.average);
    }

    #[test]
    fn the_adaptation_holds_the_average_between_the_thresholds() {
        let mut red = red(RedConfig { adaptive: true, ..RedConfig::default() });
        red.average = 14.0;
        red.adapt(Instant::from_secs(1));
        assert!((red.config.max_probability - 0.11).abs() < 1e-12);
        red.average = 6.0;
        red.adapt(Instant::from_secs(2));
        assert!((red.config.max_probability - 0.099).abs() < 1e-12);
    }

    #[test]
    fn each_number_of_the_adaptation_can_be_set() {
        let usual = RedAdaptation::default();
        let after = |adaptation: RedAdaptation, average: f64, ms: u64| {
            let mut red = red(RedConfig { adaptive: true, adaptation, ..RedConfig::default() });
            red.average = average;
            red.adapt(Instant::from_millis(ms));
            (red.config.max_probability * 1e4) as u32
        };
        assert_eq!(
            [after(usual, 14.0, 600), after(usual, 6.0, 600), after(usual, 10.5, 600)],
            [1_100, 900, 1_000]
        );
        let slower = RedAdaptation { every: Duration::from_secs(1), ..usual };
        assert_eq!([after(slower, 14.0, 600), after(slower, 14.0, 1_000)], [1_000, 1_100]);
        assert_eq!(after(RedAdaptation { up: 0.005, ..usual }, 14.0, 600), 1_050);
        assert_eq!(after(RedAdaptation { down: 0.5, ..usual }, 6.0, 600), 500);
        assert_eq!(after(RedAdaptation { ceiling: 0.05, ..usual }, 14.0, 600), 1_000);
        assert_eq!(after(RedAdaptation { floor: 0.2, ..usual }, 6.0, 600), 1_000);
        assert_eq!(after(RedAdaptation { high: 0.5, ..usual }, 10.5, 600), 1_100);
        assert_eq!(after(RedAdaptation { low: 0.56, ..usual }, 10.5, 600), 900);
    }
}
