//! PCC's rate control: doubling, probing up and down, and moving along the gradient of utility.
//!
//! Source: PCC-Uspace (30c2cfe), `pcc_vivace_sender.cpp` and `pcc_sender.cpp`. Rates in bit/s. A Mbit has 10^6 bits in utilities
//! and 2^20 in gradients, as there.
//!
//! Its sending rate moves between the probes and back; here the central rate stands by itself. Where all probes are evaluated
//! before another packet has left, that code goes on from the last probe's rate; here, from the central rate.
//!
//! *What it leaves out:* leaving STARTING early when the mean RTT has grown a hundredfold.
//! *How it was validated:* check 3 and the walk through the modes below.

use super::utility::Role;
use cede_units::{Stream, math};

/// A Mbit in gradients (`kMegabit`).
const MEGABIT: f64 = 1_048_576.0;
/// The RTT that the initial rate was meant for.
pub(super) const INITIAL_RTT_S: f64 = 0.1;
/// No rate is above this: beyond any link, and far from where arithmetic ends.
const RATE_MAX: f64 = 1e12;

/// What does not change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Tuning {
    /// The lowest rate: 500 kbit/s.
    pub min_rate: f64,
    /// The smallest change: 500 kbit/s.
    pub min_change: f64,
    /// How far probes lie from the central rate: 0.05.
    pub step: f64,
    /// Before the first RTT: ten packets of 1,400 octets in 100 ms.
    pub initial_rate: f64,
    /// How changes grow over rounds: 1.2.
    pub amplify_exponent: f64,
    /// What the first change may take of the rate, and what each further one that is bounded so adds to that: 0.05 both.
    pub max_step: f64,
    pub max_step_more: f64,
    /// Pairs of probes of a primary and of a scavenger: 3 and 2.
    pub pairs: [usize; 2],
    pub role: Role,
}

/// An evaluated interval.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Evaluated {
    pub rate: f64,
    pub utility: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    Up,
    Down,
}

impl Direction {
    const fn of(up: bool) -> Self {
        if up { Self::Up } else { Self::Down }
    }

    const fn sign(self) -> f64 {
        match self {
            Self::Up => 1.0,
            Self::Down => -1.0,
        }
    }
}

/// Where the control stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Starting,
    Probing,
    DecisionMade,
}

/// The better of two results, and whether it is the one with the higher rate.
fn better(pair: &[Evaluated]) -> (Evaluated, bool) {
    let [a, b] = [pair[0], pair[1]];
    let (good, bad) = if a.utility > b.utility { (a, b) } else { (b, a) };
    (good, good.rate > bad.rate)
}

/// See the file's head.
#[derive(Clone, Debug)]
pub(super) struct Control {
    tuning: Tuning,
    mode: Mode,
    /// The central rate.
    rate: f64,
    direction: Direction,
    probe: Direction,
    rounds: u32,
    allowance: u32,
    latest: Evaluated,
    /// A hybrid's probes lie above its threshold.
    yielding: bool,
}

impl Control {
    pub(super) fn new(tuning: Tuning) -> Self {
        Self {
            tuning,
            mode: Mode::Starting,
            rate: tuning.initial_rate.max(tuning.min_rate),
            direction: Direction::Up,
            probe: Direction::Up,
            rounds: 1,
            allowance: 0,
            latest: Evaluated::default(),
            yielding: tuning.role == Role::Scavenger,
        }
    }

    pub(super) const fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    /// The first RTT: below the 100 ms assumed, more can be sent from the start.
    pub(super) fn on_first_rtt(&mut self, rtt_s: f64) {
        if rtt_s < INITIAL_RTT_S {
            self.set_rate(self.rate * INITIAL_RTT_S / rtt_s.max(1e-6));
        }
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate.min(RATE_MAX);
    }

    fn pairs(&self) -> usize {
        self.tuning.pairs[usize::from(self.yielding)]
    }

    /// How many intervals that count may be pending.
    pub(super) fn max_useful(&self) -> usize {
        if self.mode == Mode::Probing { 2 * self.pairs() } else { 1 }
    }

    /// The rate of the interval that counts and opens while `pending` others do.
    pub(super) fn next_rate(&mut self, pending: usize, random: &mut Stream) -> f64 {
        if self.mode != Mode::Probing {
            return self.rate;
        }
        let up = if pending.is_multiple_of(2) { random.chance(0.5) } else { self.probe == Direction::Down };
        self.probe = Direction::of(up);
        self.rate * (1.0 + self.probe.sign() * self.tuning.step)
    }

    /// Draws the consequences of a batch.
    pub(super) fn decide(&mut self, results: &[Evaluated]) {
        let Some(&first) = results.first() else { return };
        match self.mode {
            Mode::Starting if first.utility > self.latest.utility => {
                self.set_rate(self.rate * 2.0);
                self.latest = first;
                self.rounds = self.rounds.saturating_add(1);
            }
            Mode::Starting => {
                self.set_rate((self.rate * 0.5).max(self.tuning.min_rate));
                self.enter_probing();
            }
            Mode::Probing => self.decide_probes(results),
            Mode::DecisionMade => self.decide_step(first),
        }
    }

    fn enter_probing(&mut self) {
        self.mode = Mode::Probing;
        self.rounds = 1;
        if let Role::Hybrid { threshold_mbit } = self.tuning.role {
            self.yielding = self.rate * (1.0 + self.tuning.step) / MEGABIT > threshold_mbit;
        }
    }

    fn decide_probes(&mut self, results: &[Evaluated]) {
        if let Some(direction) = self.vote(results) {
            self.direction = direction;
            self.follow(results);
        } else {
            self.rounds = self.rounds.saturating_add(1);
        }
        let moved = self.rounds > 1 || self.mode == Mode::DecisionMade;
        if moved && self.rate <= self.tuning.min_rate {
            self.rate = self.tuning.min_rate;
            (self.allowance, self.rounds, self.mode) = (0, 1, Mode::Starting);
        }
    }

    /// A majority of pairs moves a primary up and a scavenger down; the other way takes all of them.
    fn vote(&self, results: &[Evaluated]) -> Option<Direction> {
        let pairs = self.pairs();
        if results.len() < 2 * pairs {
            return None;
        }
        let ups = results.chunks_exact(2).take(pairs).filter(|pair| better(pair).1).count();
        let (easy, hard) = if self.yielding { (pairs - ups, ups) } else { (ups, pairs - ups) };
        (easy > pairs / 2 || hard == pairs).then(|| Direction::of(ups > pairs - ups))
    }

    /// From the probes on in the direction that they voted for.
    fn follow(&mut self, results: &[Evaluated]) {
        let up = self.direction == Direction::Up;
        let pairs = self.pairs();
        let agreeing = results.chunks_exact(2).take(pairs).filter(|pair| better(pair).1 == up);
        let mut gain = 0.0;
        for pair in agreeing {
            gain += (pair[0].utility - pair[1].utility).abs();
            self.latest = better(pair).0;
        }
        self.set_rate(self.rate * (1.0 + self.direction.sign() * self.tuning.step));
        self.rounds = 1;
        let apart = (results[0].rate - results[1].rate).abs();
        self.step_on(gain / pairs as f64, apart);
    }

    /// One more interval in the direction that was decided on.
    fn decide_step(&mut self, seen: Evaluated) {
        let (better, higher) = (seen.utility > self.latest.utility, seen.rate > self.latest.rate);
        let distinct = seen.utility != self.latest.utility && seen.rate != self.latest.rate;
        let says = Direction::of(better == higher);
        let gain = (seen.utility - self.latest.utility).abs();
        let apart = (seen.rate - self.latest.rate).abs();
        if distinct && says == self.direction {
            self.rounds = self.rounds.saturating_add(1);
            self.step_on(gain, apart);
            self.latest = seen;
        } else {
            self.rounds = 1;
            let change = self.change(gain, apart);
            self.set_rate(self.rate - self.direction.sign() * change);
            if self.rate < self.tuning.min_rate {
                self.rate = self.tuning.min_rate;
                self.allowance = 0;
            }
            self.enter_probing();
        }
    }

    fn step_on(&mut self, gain: f64, apart: f64) {
        let change = self.change(gain, apart);
        self.set_rate(self.rate + self.direction.sign() * change);
        if self.rate < self.tuning.min_rate {
            self.rate = self.tuning.min_rate;
            (self.mode, self.rounds, self.allowance) = (Mode::Probing, 1, 0);
        } else {
            self.mode = Mode::DecisionMade;
        }
    }

    /// The change of rate that a difference in utility over a difference in rate calls for.
    fn change(&mut self, gain: f64, apart: f64) -> f64 {
        let mut change = MEGABIT * gain / apart.max(1.0) * MEGABIT;
        if self.mode == Mode::DecisionMade {
            change *= math::pow(f64::from(self.rounds.saturating_add(1) / 2), self.tuning.amplify_exponent);
        } else {
            self.allowance = 0;
        }
        let Tuning { max_step, max_step_more, .. } = self.tuning;
        let cap = self.rate * (max_step + max_step_more * f64::from(self.allowance));
        if change > cap {
            change = cap;
            self.allowance = self.allowance.saturating_add(1);
        } else {
            self.allowance = self.allowance.saturating_sub(1);
        }
        change.max(self.tuning.min_change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn tuning(role: Role) -> Tuning {
        Tuning {
            min_rate: 5e5,
            min_change: 5e5,
            step: 0.05,
            initial_rate: 1.12e6,
            amplify_exponent: 1.2,
            max_step: 0.05,
            max_step_more: 0.05,
            pairs: [3, 2],
            role,
        }
    }

    fn control(role: Role) -> Control {
        Control::new(tuning(role))
    }

    fn result(rate: f64, utility: f64) -> Evaluated {
        Evaluated { rate, utility }
    }

    fn at(mode: Mode, rate: f64, rounds: u32, allowance: u32) -> Control {
        Control { mode, rate, rounds, allowance, ..control(Role::Primary) }
    }

    #[test]
    fn check_3_changes_of_rate_have_the_published_values() {
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 0.1, "{found}, {wanted}");
        let mut probing = at(Mode::Probing, 10.5e6, 1, 0);
        near(probing.change(0.3, 1e6), 500_000.0);
        let exact = &mut Control { tuning: Tuning { min_change: 0.0, ..probing.tuning }, ..probing.clone() };
        assert!((exact.change(0.3, 1e6) - 329_853.0).abs() < 1.0);
        near(probing.change(3.0, 1e6), 525_000.0);
        assert_eq!(probing.allowance, 1);
        for (rounds, allowance, wanted, left) in
            [(2, 1, 549_755.8, 0), (3, 1, 1_200_000.0, 2), (5, 0, 600_000.0, 1)]
        {
            let mut decided = at(Mode::DecisionMade, 12e6, rounds, allowance);
            near(decided.change(0.5, 1e6), wanted);
            assert_eq!(decided.allowance, left);
        }
    }

    #[test]
    fn starting_doubles_until_utility_falls_and_probes_from_half() {
        let mut control = control(Role::Primary);
        assert_eq!(control.rate(), 1_120_000.0);
        control.on_first_rtt(0.05);
        for (rate, utility) in [(2.24e6, 2.0), (4.48e6, 3.8), (8.96e6, 7.0)] {
            assert_eq!(control.rate(), rate);
            control.decide(&[result(rate, utility)]);
        }
        control.decide(&[result(17.92e6, -50.0)]);
        assert_eq!((control.mode(), control.rate()), (Mode::Probing, 8.96e6));
    }

    /// Pairs of probes around 10 Mbit/s, each of which says up or down.
    fn probes(ups: &[bool]) -> Vec<Evaluated> {
        let pair = |&up: &bool| {
            let better = if up { 8.0 } else { 7.0 };
            [result(10.5e6, better), result(9.5e6, 7.5)]
        };
        ups.iter().flat_map(pair).collect()
    }

    #[test]
    fn a_primary_goes_up_by_majority_and_down_by_all() {
        let decide = |ups: &[bool]| {
            let mut control = at(Mode::Probing, 10e6, 1, 0);
            control.decide(&probes(ups));
            (control.mode(), control.direction == Direction::Up)
        };
        assert_eq!(decide(&[true, true, false]), (Mode::DecisionMade, true));
        assert_eq!(decide(&[true, false, false]).0, Mode::Probing);
        assert_eq!(decide(&[false, false, false]), (Mode::DecisionMade, false));
        assert_eq!(decide(&[true, true]).0, Mode::Probing, "a pair is missing");
    }

    #[test]
    fn a_scavenger_moves_only_where_both_pairs_agree() {
        let decide = |ups: &[bool]| {
            let mut control = Control { mode: Mode::Probing, rate: 10e6, ..control(Role::Scavenger) };
            control.decide(&probes(ups));
            control.mode()
        };
        assert_eq!(decide(&[true, true]), Mode::DecisionMade);
        assert_eq!(decide(&[false, false]), Mode::DecisionMade);
        assert_eq!(decide(&[true, false]), Mode::Probing);
    }

    #[test]
    fn it_goes_on_while_utility_rises_and_steps_back_when_it_falls() {
        let mut control = at(Mode::Probing, 10e6, 1, 0);
        control.decide(&probes(&[true, true, true]));
        let first = control.rate();
        // 0.5 over 1 Mbit/s calls for 549,756 bit/s, of which 5 % of 10.5 Mbit/s are allowed.
        assert!((first - (10.5e6 + 525_000.0)).abs() < 1.0, "{first}");
        control.decide(&[result(first, 8.6)]);
        assert_eq!(control.mode(), Mode::DecisionMade);
        let second = control.rate();
        assert!(second > first);
        control.decide(&[result(second, 3.0)]);
        assert_eq!(control.mode(), Mode::Probing);
        assert!(control.rate() < second && control.latest.utility == 8.6);
    }

    #[test]
    fn at_the_floor_it_starts_again() {
        let mut control = at(Mode::Probing, 5e5, 1, 0);
        let down = |high: f64, low: f64| [result(525_000.0, high), result(475_000.0, low)];
        let batch: Vec<Evaluated> = [down(0.0, 1.0), down(0.0, 1.0), down(0.0, 1.0)].concat();
        control.decide(&batch);
        assert_eq!((control.mode(), control.rate()), (Mode::Probing, 5e5));
        control.decide(&[down(1.0, 0.0), down(0.0, 1.0), down(0.0, 1.0)].concat());
        assert_eq!((control.mode(), control.rate()), (Mode::Starting, 5e5));
    }

    #[test]
    fn a_hybrid_probes_as_a_scavenger_above_its_threshold() {
        let mut hybrid = Control { rate: 8e6, ..control(Role::Hybrid { threshold_mbit: 5.0 }) };
        hybrid.enter_probing();
        assert_eq!((hybrid.yielding, hybrid.max_useful()), (true, 4));
        hybrid.rate = 4e6;
        hybrid.enter_probing();
        assert_eq!((hybrid.yielding, hybrid.max_useful()), (false, 6));
    }

    #[test]
    fn each_pair_of_probes_has_one_above_and_one_below() {
        let mut control = at(Mode::Probing, 10e6, 1, 0);
        let mut random = Stream::named(1, "probes");
        let rates: Vec<f64> = (0..60).map(|k| control.next_rate(k % 6, &mut random)).collect();
        assert!(rates.chunks(2).all(|pair| (pair[0] + pair[1] - 20e6).abs() < 1.0 && pair[0] != pair[1]));
        let ups = rates.iter().step_by(2).filter(|&&rate| rate > 10e6).count();
        assert!((8..=22).contains(&ups), "{ups} of 30");
    }
}
