//! What a wire does to packets besides taking time: loss, reordering, duplication, jitter.
//!
//! Source: the models of Linux netem (`sch_netem`), each drawn from a random stream of its own so that switching
//! one on leaves the draws of the others alone.
//!
//! What it leaves out: netem's correlated draws, its distribution tables, corruption, its 4-state loss chain,
//! and its limit, which counts packets that are merely delayed.
//!
//! How it was validated: the long-run loss rate p/(p+r) and the mean burst 1/r of the two-state chain, and the rates
//! of the independent draws, are tests below.

use cede_units::{Duration, Instant, Stream};

/// The two-state loss chain of Gilbert and Elliott: each packet is lost with the probability of the state it finds,
/// and the state may change after it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GilbertElliott {
    /// Probability of leaving the good state.
    pub good_to_bad: f64,
    /// Probability of leaving the bad state.
    pub bad_to_good: f64,
    /// Probability of loss in the good state.
    pub loss_in_good: f64,
    /// Probability of loss in the bad state.
    pub loss_in_bad: f64,
}

/// Some packets take a detour and are overtaken.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reordering {
    /// The probability that a packet is delayed.
    pub probability: f64,
    /// By how much it is.
    pub extra_delay: Duration,
}

/// What a link does to packets. The default does nothing.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Impairments {
    /// The probability that a packet is lost on the wire, each independently.
    pub loss: f64,
    /// Losses in bursts, on top of `loss`.
    pub burst_loss: Option<GilbertElliott>,
    /// Overtaking.
    pub reordering: Option<Reordering>,
    /// The probability that a packet enters the link twice.
    pub duplication: f64,
    /// Extra delay of each packet, uniform between zero and this.
    pub jitter: Duration,
    /// Packets with unequal jitter overtake each other; otherwise a packet waits for the one before it.
    pub jitter_reorders: bool,
    /// Packets arrive in batches, at multiples of this: what the time slots of radio and cable links do, which on the way
    /// back compresses acknowledgements. Zero for each at its own time.
    pub batching: Duration,
}

impl Impairments {
    /// A perfect wire.
    pub const NONE: Self = Self {
        loss: 0.0,
        burst_loss: None,
        reordering: None,
        duplication: 0.0,
        jitter: Duration::ZERO,
        jitter_reorders: false,
        batching: Duration::ZERO,
    };

    /// Whether packets can overtake each other behind the transmitter.
    #[must_use]
    pub fn can_reorder(&self) -> bool {
        self.reordering.is_some() || (self.jitter_reorders && !self.jitter.is_zero())
    }
}

/// What becomes of a packet on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Lost,
    Delayed(Duration),
}

/// The impairments of one link with their random streams.
#[derive(Clone, Debug)]
pub(crate) struct Impairer {
    rules: Impairments,
    bad: bool,
    /// So many packets are lost next, whatever the chances.
    doomed: u64,
    loss: Stream,
    reordering: Stream,
    duplication: Stream,
    jitter: Stream,
}

impl Impairer {
    /// The impairer of the link called `name` in the run with this `seed`.
    pub(crate) fn new(rules: Impairments, seed: u64, name: &str) -> Self {
        let stream = |what: &str| Stream::named(seed, &alloc::format!("link {name}/{what}"));
        Self {
            rules,
            bad: false,
            doomed: 0,
            loss: stream("loss"),
            reordering: stream("reordering"),
            duplication: stream("duplication"),
            jitter: stream("jitter"),
        }
    }

    pub(crate) const fn set_loss(&mut self, loss: f64) {
        self.rules.loss = loss;
    }

    /// Loses the next `packets`.
    pub(crate) const fn lose_next(&mut self, packets: u64) {
        self.doomed = self.doomed.saturating_add(packets);
    }

    /// When a packet arrives that would arrive at `direct` over a perfect wire; none where it is lost.
    pub(crate) fn arrival(&mut self, direct: Instant) -> Option<Instant> {
        let Fate::Delayed(extra) = self.fate() else { return None };
        let arrival = direct + extra;
        let step = self.rules.batching.as_nanos();
        Some(if step == 0 { arrival } else { Instant::from_nanos(arrival.as_nanos().next_multiple_of(step)) })
    }

    /// Whether the packet that is entering shall enter twice.
    pub(crate) fn duplicates(&mut self) -> bool {
        self.rules.duplication > 0.0 && self.duplication.chance(self.rules.duplication)
    }

    /// What becomes of the packet that has just been sent.
    fn fate(&mut self) -> Fate {
        if self.is_lost() { Fate::Lost } else { Fate::Delayed(self.extra_delay()) }
    }

    fn is_lost(&mut self) -> bool {
        let doomed = self.doomed > 0;
        self.doomed -= u64::from(doomed);
        let lost = self.rules.loss > 0.0 && self.loss.chance(self.rules.loss);
        doomed | lost | self.rules.burst_loss.is_some_and(|chain| self.chain_loses(chain))
    }

    fn chain_loses(&mut self, chain: GilbertElliott) -> bool {
        let (loss, leave) = match self.bad {
            true => (chain.loss_in_bad, chain.bad_to_good),
            false => (chain.loss_in_good, chain.good_to_bad),
        };
        let lost = self.loss.chance(loss);
        self.bad ^= self.loss.chance(leave);
        lost
    }

    fn extra_delay(&mut self) -> Duration {
        let detour = match self.rules.reordering {
            Some(rule) if self.reordering.chance(rule.probability) => rule.extra_delay,
            _ => Duration::ZERO,
        };
        if self.rules.jitter.is_zero() {
            return detour;
        }
        detour + Duration::from_nanos(self.jitter.below(self.rules.jitter.as_nanos() + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn impairer(rules: Impairments) -> Impairer {
        Impairer::new(rules, 1, "test")
    }

    #[test]
    fn independent_loss_has_its_rate() {
        let mut wire = impairer(Impairments { loss: 0.05, ..Impairments::default() });
        let lost = (0..100_000).filter(|_| wire.fate() == Fate::Lost).count();
        assert!((4_700..5_300).contains(&lost), "{lost}");
    }

    #[test]
    fn the_chain_loses_p_over_p_plus_r_in_bursts_of_one_over_r() {
        let chain =
            GilbertElliott { good_to_bad: 0.01, bad_to_good: 0.25, loss_in_good: 0.0, loss_in_bad: 1.0 };
        let mut wire = impairer(Impairments { burst_loss: Some(chain), ..Impairments::default() });
        let fates: alloc::vec::Vec<bool> = (0..400_000).map(|_| wire.fate() == Fate::Lost).collect();
        let lost = fates.iter().filter(|&&lost| lost).count() as f64;
        let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        assert!((lost / 400_000.0 - 0.01 / 0.26).abs() < 0.002, "{lost}");
        assert!((lost / bursts - 4.0).abs() < 0.2, "{}", lost / bursts);
    }

    #[test]
    fn jitter_is_bounded_and_duplication_has_its_rate() {
        let jitter = Duration::from_millis(5);
        let mut wire = impairer(Impairments { jitter, duplication: 0.1, ..Impairments::default() });
        let within = |fate| matches!(fate, Fate::Delayed(delay) if delay <= jitter);
        assert!((0..10_000).all(|_| within(wire.fate())));
        let twice = (0..10_000).filter(|_| wire.duplicates()).count();
        assert!((850..1_150).contains(&twice), "{twice}");
    }

    #[test]
    fn an_unimpaired_wire_draws_nothing() {
        let mut wire = impairer(Impairments::default());
        assert!((0..100).all(|_| wire.fate() == Fate::Delayed(Duration::ZERO) && !wire.duplicates()));
    }
}
