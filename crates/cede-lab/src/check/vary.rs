//! The same cases on other links: whoever passes only with the pinned numbers has learnt the numbers.
//!
//! A variation scales the rates, the delays and the buffers of all bottlenecks, each by a factor between [`LEAST`] and its
//! inverse that is drawn from a seed and the case's name, and gives the run that seed. Rates that are measured are divided by
//! their factor again, so that the marks hold as they stand. What a foreground application sends, times, losses, jitter and
//! clocks stay: they are not the link's.
//!
//! *What it leaves out:* the shape of a case: when something changes, who else is there.
//! *How it was validated:* unit tests below.

use crate::scenario::{Buffer, Link, Scenario, Topology};
use cede_units::{Duration, Rate, Stream};

/// The smallest factor.
const LEAST: f64 = 0.7;
/// Links from this rate on, and buffers of so many packets, are no bottleneck.
const WIDE_MBPS: f64 = 5_000.0;
const DEEP_PACKETS: u64 = 100_000;

/// Factors for one case.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Variation {
    seed: Option<u64>,
    pub(super) rate: f64,
    delay: f64,
    buffer: f64,
}

impl Variation {
    /// The pinned numbers.
    pub(super) const NONE: Self = Self { seed: None, rate: 1.0, delay: 1.0, buffer: 1.0 };

    pub(super) fn of(seed: u64, case: &str) -> Self {
        let mut random = Stream::named(seed, &format!("check {case}"));
        // As often a third more as a third less.
        let mut factor = || LEAST.powf(1.0 - 2.0 * random.unit());
        Self { seed: Some(seed), rate: factor(), delay: factor(), buffer: factor() }
    }

    /// The scenario on the varied links, and its text.
    pub(super) fn apply(&self, mut scenario: Scenario, text: &str) -> (Scenario, String) {
        let Some(seed) = self.seed else { return (scenario, text.to_string()) };
        scenario.seed = seed;
        match &mut scenario.topology {
            Topology::Dumbbell(dumbbell) => {
                self.link(&mut dumbbell.link);
                self.link(&mut dumbbell.return_link);
            }
            Topology::Graph(graph) => graph.links.iter_mut().for_each(|link| self.link(&mut link.link)),
            Topology::Star => {}
        }
        for change in &mut scenario.changes {
            change.what.rate = change.what.rate.map(|rate| self.rate(rate));
            change.what.delay = change.what.delay.map(|delay| self.delay(delay));
        }
        for flow in &mut scenario.flows {
            flow.access.delay = flow.access.delay.map(|delay| self.delay(delay));
            flow.access.return_delay = flow.access.return_delay.map(|delay| self.delay(delay));
        }
        let text = scenario.to_toml();
        (scenario, text)
    }

    fn rate(&self, rate: Rate) -> Rate {
        if rate.as_mbit_f64() >= WIDE_MBPS { rate } else { rate.mul_f64(self.rate) }
    }

    /// In whole microseconds, which a text holds exactly.
    fn delay(&self, delay: Duration) -> Duration {
        Duration::from_micros(delay.mul_f64(self.delay).as_micros())
    }

    fn bytes(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.buffer * self.rate) as u64
    }

    fn link(&self, link: &mut Link) {
        link.rate = self.rate(link.rate);
        link.delay = self.delay(link.delay);
        link.buffer = match link.buffer {
            Buffer::Packets(packets) if packets < DEEP_PACKETS => {
                Buffer::Packets((packets as f64 * self.buffer).round().max(1.0) as u64)
            }
            Buffer::Bytes(bytes) => Buffer::Bytes(cede_units::Bytes(self.bytes(bytes.0))),
            Buffer::Time(time) => Buffer::Time(Duration::from_micros(time.mul_f64(self.buffer).as_micros())),
            other => other,
        };
        if let Some(policer) = &mut link.policer {
            (policer.rate, policer.burst_bytes) = (self.rate(policer.rate), self.bytes(policer.burst_bytes));
        }
        if let Some(shaper) = &mut link.shaper {
            shaper.burst_bytes = self.bytes(shaper.burst_bytes);
            shaper.peak = shaper.peak.map(|peak| self.rate(peak));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"varied\"\nduration = \"10 s\"\n[topology]\naccess_rate = \"10 Gbit/s\"\n[link]\nrate = \"20 Mbit/s\"\n\
        delay = \"20 ms\"\nbuffer = \"200 ms\"\n[[flow]]\nname = \"own\"\ncontroller = \"reno\"\n[[change]]\nat = \"5 s\"\ndelay = \"60 ms\"\n";

    fn scenario() -> Scenario {
        Scenario::parse("varied", TEXT).expect("it is in order")
    }

    #[test]
    fn a_seed_gives_other_links_and_the_same_ones_each_time() {
        let of = |seed| Variation::of(seed, "yields/cubic");
        assert_eq!(of(1), of(1));
        assert!(of(1) != of(2) && of(1) != Variation::of(1, "yields/reno"));
        for seed in 0..200 {
            let drawn = of(seed);
            let within = |factor: f64| (LEAST..=1.0 / LEAST).contains(&factor);
            assert!(within(drawn.rate) && within(drawn.delay) && within(drawn.buffer), "{drawn:?}");
        }
    }

    #[test]
    fn links_and_their_changes_are_scaled_alike_and_the_text_says_so() {
        let varied = Variation { seed: Some(7), rate: 0.5, delay: 2.0, buffer: 0.5 };
        let (scenario, text) = varied.apply(scenario(), TEXT);
        let Topology::Dumbbell(dumbbell) = &scenario.topology else { panic!("a dumbbell") };
        assert_eq!(
            (dumbbell.link.rate, dumbbell.link.delay),
            (Rate::from_mbit(10), Duration::from_millis(40))
        );
        assert_eq!(dumbbell.link.buffer, Buffer::Time(Duration::from_millis(100)));
        assert_eq!(dumbbell.access_rate, Rate::from_mbit(10_000));
        assert_eq!(scenario.changes[0].what.delay, Some(Duration::from_millis(120)));
        assert_eq!(Scenario::parse("varied", &text).expect("the text is in order"), scenario);
    }

    #[test]
    fn without_a_seed_nothing_changes() {
        assert_eq!(Variation::NONE.apply(scenario(), TEXT), (scenario(), TEXT.to_string()));
    }
}
