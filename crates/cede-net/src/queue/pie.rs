//! PIE: packets are dropped at arrival with a probability that a controller of the queueing delay sets.
//!
//! Source: RFC 8033. [`PieProfile::Rfc`] is its sections 4 and appendix A; [`PieProfile::Linux`] adds what `sch_pie` of
//! Linux 6.12 has from appendix B and of its own: de-randomised drops (section 5.4), steps of at most two per cent
//! (5.5), two per cent more while the delay is above 250 ms, a slower decay, no update while the delay is zero
//! and packets wait, a first update 500 ms after the queue began, and an allowance for bursts that is used up by the
//! time from one departure to the next in place of that between updates.
//!
//! The delay is that of the packet that left last, by its time of arrival (section 4.2 allows it), and zero once
//! the queue has run empty.
//!
//! What it leaves out: the departure-rate estimator (section 4.3, for queues without time stamps), the byte mode, and
//! the activation at a third of the limit (5.2: Linux has it not either). The Linux profile renews the allowance for bursts
//! at arrivals, as the RFC does, where Linux does so at updates. Linux's fixed-point numbers are not copied.
//!
//! How it was validated: appendix A's update over a sequence of delays against an independent implementation, the
//! allowance for bursts in both profiles, Linux's first update, and the probability of drops (tests below).

use super::Waiting;
use cede_units::{Duration, Instant, Stream};

/// Section 4.2: below each of these probabilities a step is divided by so much.
const SCALES: [(f64, f64); 6] =
    [(1e-6, 2_048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0)];
/// Section 4.2: the decay per update of an idle queue; Linux's.
const DECAY: f64 = 0.98;
const DECAY_LINUX: f64 = 1.0 - 1.0 / 64.0;
/// Section 5.4: accumulated probability below which nothing is dropped, and at which something is.
const ACCUMULATED_MIN: f64 = 0.85;
const ACCUMULATED_MAX: f64 = 8.5;
/// Section 5.5: from this probability on steps are limited; Linux's limit, its extra step and the delay above which it is taken.
const TAMED_FROM: f64 = 0.1;
const STEP_MAX_LINUX: f64 = 0.02;
const HIGH_DELAY_STEP: f64 = 0.02;
const HIGH_DELAY_LINUX: Duration = Duration::from_millis(250);
/// Linux: the first update comes so long after the queue began (`pie_init`).
const FIRST_UPDATE_LINUX: Duration = Duration::from_millis(500);
/// After so many updates of an idle queue nothing of its past is left.
const FORGETTING_UPDATES: u64 = 4_096;

/// Which PIE.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PieProfile {
    /// RFC 8033, sections 4 and appendix A.
    #[default]
    Rfc,
    /// With the enhancements that Linux 6.12 has.
    Linux,
}

/// What can be set on PIE.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PieConfig {
    /// The delay to hold (`QDELAY_REF`).
    pub target: Duration,
    /// From one update to the next (`T_UPDATE`).
    pub update: Duration,
    /// How long a burst is let through (`MAX_BURST`).
    pub burst: Duration,
    /// Which PIE.
    pub profile: PieProfile,
    /// The weight of the delay's distance from the target, per second of delay (section 4.2).
    pub alpha: f64,
    /// The weight of its change, per second of delay.
    pub beta: f64,
    /// Above this probability packets are dropped though they could be marked (section 5.1).
    pub mark_max: f64,
    /// Two packets of this size always fit (section 4.1).
    pub mean_packet_bytes: u32,
    /// What an update of an idle queue leaves of the probability; none: the profile's.
    pub decay: Option<f64>,
    /// The largest step once a tenth is dropped (section 5.5); none: the profile's, which the RFC's basic algorithm has not.
    pub max_step: Option<f64>,
    /// Above this delay each update takes two per cent more; none: the profile's, which the RFC has not.
    pub high_delay: Option<Duration>,
    /// The first update comes so long after the queue began; none: the profile's.
    pub first_update: Option<Duration>,
}

impl Default for PieConfig {
    /// Sections 4.1, 4.2 and 5.1: 15 ms, 15 ms and 150 ms; 1/8 and 1 1/4; a tenth, and 1,500 octets.
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            target: ms(15),
            update: ms(15),
            burst: ms(150),
            profile: PieProfile::Rfc,
            alpha: 0.125,
            beta: 1.25,
            mark_max: 0.1,
            mean_packet_bytes: 1_500,
            decay: None,
            max_step: None,
            high_delay: None,
            first_update: None,
        }
    }
}

impl PieConfig {
    const fn is_linux(&self) -> bool {
        matches!(self.profile, PieProfile::Linux)
    }

    /// What was set, or what the profile has.
    const fn or<T: Copy>(&self, set: Option<T>, rfc: T, linux: T) -> T {
        match set {
            Some(value) => value,
            None if self.is_linux() => linux,
            None => rfc,
        }
    }

    /// The step as the limits leave it, at this probability and delay.
    fn tamed(&self, step: f64, drop_prob: f64, delay: Duration) -> f64 {
        let most = self.or(self.max_step, f64::INFINITY, STEP_MAX_LINUX);
        let step = if drop_prob >= TAMED_FROM { step.min(most) } else { step };
        let high = self.or(self.high_delay, Duration::MAX, HIGH_DELAY_LINUX);
        if delay > high { step + HIGH_DELAY_STEP } else { step }
    }
}

/// The state of a PIE queue.
#[derive(Clone, Debug)]
pub(crate) struct Pie {
    config: PieConfig,
    drop_prob: f64,
    /// What is left of the burst that is let through.
    burst: Duration,
    delay: Duration,
    delay_old: Duration,
    next_update: Instant,
    /// The last departure.
    left_at: Option<Instant>,
    accumulated: f64,
    random: Stream,
}

impl Pie {
    pub(crate) const fn new(config: PieConfig, random: Stream) -> Self {
        Self {
            drop_prob: 0.0,
            burst: config.burst,
            delay: Duration::ZERO,
            delay_old: Duration::ZERO,
            next_update: Instant::from_nanos(
                config.or(config.first_update, Duration::ZERO, FIRST_UPDATE_LINUX).as_nanos(),
            ),
            left_at: None,
            accumulated: 0.0,
            random,
            config,
        }
    }

    /// Does the updates that are due by `now`, while `queued` octets have waited since the last event.
    pub(crate) fn catch_up(&mut self, now: Instant, queued: u64) {
        if now < self.next_update {
            return;
        }
        let step = self.config.update.as_nanos().max(1);
        let due = now.since(self.next_update).as_nanos() / step + 1;
        (0..due.min(FORGETTING_UPDATES)).for_each(|_| self.update(queued));
        self.next_update += Duration::from_nanos(step * due);
    }

    /// `calculate_drop_prob` of appendix A.
    fn update(&mut self, queued: u64) {
        let (delay_s, old_s) = (self.delay.as_secs_f64(), self.delay_old.as_secs_f64());
        let idle = self.delay.is_zero() && self.delay_old.is_zero();
        let holds = self.config.is_linux() && self.delay.is_zero() && queued > 0;
        if !holds {
            let PieConfig { alpha, beta, target, .. } = self.config;
            let step = alpha * (delay_s - target.as_secs_f64()) + beta * (delay_s - old_s);
            let scale = SCALES.iter().find(|(below, _)| self.drop_prob < *below).map_or(1.0, |&(_, by)| by);
            let tamed = self.config.tamed(step / scale, self.drop_prob, self.delay);
            self.drop_prob = (self.drop_prob + tamed).clamp(0.0, 1.0);
            if idle {
                self.drop_prob *= self.config.or(self.config.decay, DECAY, DECAY_LINUX);
            }
        }
        self.delay_old = self.delay;
        if !self.config.is_linux() {
            self.burst = self.burst.saturating_sub(self.config.update);
        }
    }

    /// A packet arrives at a queue of `queued` octets: whether it is to be dropped or marked.
    pub(crate) fn signals(&mut self, queued: u64) -> bool {
        let half = self.config.target / 2;
        if self.drop_prob == 0.0 && self.delay < half && self.delay_old < half {
            self.burst = self.config.burst;
        }
        self.burst.is_zero() && self.drops_early(queued, half)
    }

    /// `drop_early` of appendix A.
    fn drops_early(&mut self, queued: u64, half: Duration) -> bool {
        let two_packets = 2 * u64::from(self.config.mean_packet_bytes);
        if (self.delay_old < half && self.drop_prob < 0.2) || queued <= two_packets {
            return false;
        }
        if !self.config.is_linux() {
            return self.random.chance(self.drop_prob);
        }
        self.accumulated = if self.drop_prob == 0.0 { 0.0 } else { self.accumulated + self.drop_prob };
        if self.accumulated < ACCUMULATED_MIN {
            return false;
        }
        let drops = self.accumulated >= ACCUMULATED_MAX || self.random.chance(self.drop_prob);
        if drops {
            self.accumulated = 0.0;
        }
        drops
    }

    /// A signal may be a mark.
    pub(crate) fn may_mark(&self) -> bool {
        self.drop_prob < self.config.mark_max
    }

    /// A packet leaves; `left` octets stay.
    pub(crate) fn on_departure<T>(&mut self, now: Instant, packet: &Waiting<T>, left: u64) {
        self.delay = if left == 0 { Duration::ZERO } else { now.since(packet.since) };
        if self.config.is_linux() {
            let between = self.left_at.map_or(Duration::ZERO, |before| now.since(before));
            self.burst = self.burst.saturating_sub(between);
        }
        self.left_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{number, vector, waiting};

    fn pie(profile: PieProfile) -> Pie {
        Pie::new(PieConfig { profile, ..PieConfig::default() }, Stream::named(1, "pie"))
    }

    #[test]
    fn pie_rfc8033_appendix_a() {
        let mut pie = pie(PieProfile::Rfc);
        for step in vector("pie_rfc8033_appA[qdelay_s,drop_prob]") {
            pie.delay = Duration::from_secs_f64(number(&step[0]));
            pie.update(10_000);
            assert!((pie.drop_prob - number(&step[1])).abs() < 1e-15, "{step}: {}", pie.drop_prob);
        }
    }

    #[test]
    fn a_burst_passes_and_what_lasts_does_not() {
        let mut pie = pie(PieProfile::Rfc);
        let mut first = None;
        for ms in 0..2_000 {
            pie.catch_up(Instant::from_millis(ms), 50_000);
            pie.delay = Duration::from_millis(100);
            if pie.signals(50_000) {
                first.get_or_insert(ms);
            }
        }
        assert!(first.is_some_and(|ms| ms >= 150), "{first:?}");
    }

    #[test]
    fn an_idle_queue_forgets_and_catches_up_in_bounded_time() {
        let mut pie = pie(PieProfile::Rfc);
        pie.drop_prob = 0.9;
        pie.catch_up(Instant::from_secs(1_000_000), 0);
        assert_eq!(pie.drop_prob, 0.0);
        assert!(pie.next_update > Instant::from_secs(1_000_000));
    }

    #[test]
    fn drops_come_with_their_probability_in_both_profiles() {
        for (profile, low, high) in [(PieProfile::Rfc, 4_800, 5_200), (PieProfile::Linux, 2_400, 5_200)] {
            let mut pie = pie(profile);
            (pie.drop_prob, pie.burst) = (0.05, Duration::ZERO);
            (pie.delay, pie.delay_old) = (Duration::from_millis(20), Duration::from_millis(20));
            let drops = (0..100_000).filter(|_| pie.signals(50_000)).count();
            // De-randomised, a drop comes after 1 / p packets on top of the 17 in which none may: 1 in 37.
            assert!((low..high).contains(&drops), "{profile:?} {drops}");
        }
    }

    /// A packet that has waited 20 ms leaves while others wait.
    fn departs(pie: &mut Pie, ms: u64) {
        let since = Instant::from_millis(ms - 20);
        pie.on_departure(Instant::from_millis(ms), &waiting(0, 1_500, since), 50_000);
    }

    #[test]
    fn linux_uses_its_allowance_up_from_one_departure_to_the_next() {
        let mut pie = pie(PieProfile::Linux);
        departs(&mut pie, 1_000);
        assert_eq!(pie.burst, Duration::from_millis(150), "nothing left before it");
        departs(&mut pie, 1_040);
        assert_eq!(pie.burst, Duration::from_millis(110));
        pie.update(50_000);
        assert_eq!(pie.burst, Duration::from_millis(110), "an update takes nothing");
        departs(&mut pie, 9_000);
        assert!(pie.burst.is_zero());
    }

    #[test]
    fn linux_updates_for_the_first_time_after_half_a_second() {
        for (profile, first_ms) in [(PieProfile::Rfc, 0), (PieProfile::Linux, 500)] {
            let mut pie = pie(profile);
            pie.delay = Duration::from_millis(50);
            let updated = |ms: &u64| {
                pie.catch_up(Instant::from_millis(*ms), 50_000);
                pie.drop_prob > 0.0
            };
            assert_eq!((0..1_000).find(updated), Some(first_ms), "{profile:?}");
        }
    }

    #[test]
    fn linux_takes_small_steps_when_much_is_dropped() {
        let mut pie = pie(PieProfile::Linux);
        pie.drop_prob = 0.2;
        (pie.delay, pie.delay_old) = (Duration::from_millis(200), Duration::ZERO);
        pie.update(10_000);
        assert!((pie.drop_prob - 0.22).abs() < 1e-12, "{}", pie.drop_prob);
    }

    /// The probability after an update at 100 ms of delay, 20 ms before it.
    fn updated(config: PieConfig, drop_prob: f64) -> f64 {
        let mut pie = Pie::new(config, Stream::named(1, "pie"));
        (pie.drop_prob, pie.delay, pie.delay_old) =
            (drop_prob, Duration::from_millis(100), Duration::from_millis(20));
        pie.update(50_000);
        pie.drop_prob
    }

    #[test]
    fn the_weights_can_be_set() {
        let usual = PieConfig::default();
        let near = |config, expected: f64| {
            let found = updated(config, 0.5) - 0.5;
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        };
        near(usual, 0.125 * 0.085 + 1.25 * 0.08);
        near(PieConfig { alpha: 1.0, ..usual }, 0.085 + 1.25 * 0.08);
        near(PieConfig { beta: 0.0, ..usual }, 0.125 * 0.085);
        near(PieConfig { max_step: Some(0.02), ..usual }, 0.02);
        near(
            PieConfig { high_delay: Some(Duration::from_millis(99)), beta: 0.0, ..usual },
            0.125 * 0.085 + 0.02,
        );
        let linux = PieConfig { profile: PieProfile::Linux, ..usual };
        near(PieConfig { max_step: Some(1.0), ..linux }, 0.125 * 0.085 + 1.25 * 0.08);
    }

    #[test]
    fn what_profiles_fix_can_be_set_under_either() {
        for profile in [PieProfile::Rfc, PieProfile::Linux] {
            let usual = PieConfig { profile, ..PieConfig::default() };
            let mut pie = Pie::new(PieConfig { decay: Some(0.5), ..usual }, Stream::named(1, "pie"));
            pie.drop_prob = 0.8;
            pie.update(0);
            // Half of what the distance below the target has left of it.
            let left = 0.8 - 0.125 * 0.015;
            assert!((pie.drop_prob - left / 2.0).abs() < 1e-12, "{}", pie.drop_prob);
            let late = PieConfig { first_update: Some(Duration::from_millis(80)), ..usual };
            let mut pie = Pie::new(late, Stream::named(1, "pie"));
            pie.delay = Duration::from_millis(50);
            let updated = |ms: &u64| {
                pie.catch_up(Instant::from_millis(*ms), 50_000);
                pie.drop_prob > 0.0
            };
            assert_eq!((0..1_000).find(updated), Some(80));
        }
    }

    #[test]
    fn what_is_marked_and_what_always_fits_can_be_set() {
        let with = |config: PieConfig| {
            let mut pie = Pie::new(config, Stream::named(1, "pie"));
            (pie.drop_prob, pie.burst) = (0.3, Duration::ZERO);
            (pie.delay, pie.delay_old) = (Duration::from_millis(20), Duration::from_millis(20));
            (pie.may_mark(), (0..100).filter(|_| pie.signals(5_000)).count() > 0)
        };
        let usual = PieConfig::default();
        assert_eq!(with(usual), (false, true));
        assert_eq!(with(PieConfig { mark_max: 0.5, ..usual }), (true, true));
        assert_eq!(with(PieConfig { mean_packet_bytes: 2_500, ..usual }), (false, false));
    }
}
