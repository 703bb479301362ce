//! What the paper says, and whether it holds: criteria that are computed from curves.
//!
//! A criterion sees spreads over repetitions. It says what it measured in words, so that a reader can judge for
//! themselves, and holds, does not hold, or is open where the runs for it were not made.

use super::plan::FigureNumber;
use super::results::Spread;
pub use crate::{Judgement, known};

/// A statement of the paper and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// The figure whose runs decide it.
    pub figure: FigureNumber,
    /// Where the paper says it.
    pub place: &'static str,
    /// What it says.
    pub says: &'static str,
    /// What must be true of the data for it to hold.
    pub criterion: &'static str,
    /// What was measured and whether that meets the criterion.
    pub judgement: Judgement,
    /// What else a reader should know: other simulators, limits of the comparison.
    pub note: &'static str,
    /// The paper's statement that it belongs to, by its number in `statements.rs`; 0 for none.
    pub statement: u32,
}

impl Claim {
    /// A claim without a note.
    #[must_use]
    pub const fn new(
        figure: FigureNumber,
        place: &'static str,
        says: &'static str,
        criterion: &'static str,
        judgement: Judgement,
    ) -> Self {
        Self { figure, place, says, criterion, judgement, note: "", statement: 0 }
    }

    /// As a part of the paper's statement with this number.
    #[must_use]
    pub const fn of(mut self, statement: u32) -> Self {
        self.statement = statement;
        self
    }

    /// With a note.
    #[must_use]
    pub const fn note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }
}

/// A curve: places and spreads.
pub type Curve = [(f64, Spread)];

/// The part of a curve from `low` to `high`, ends included.
#[must_use]
pub fn within(curve: &Curve, low: f64, high: f64) -> Vec<(f64, Spread)> {
    curve.iter().copied().filter(|&(x, _)| x >= low - 1e-9 && x <= high + 1e-9).collect()
}

/// The spread of all repetitions of all points together.
#[must_use]
pub fn overall(curve: &Curve) -> Spread {
    let means: Vec<f64> = curve.iter().map(|(_, spread)| spread.mean).collect();
    let runs = curve.iter().map(|(_, spread)| spread.runs).sum();
    let min = curve.iter().map(|(_, spread)| spread.min).fold(f64::INFINITY, f64::min);
    let max = curve.iter().map(|(_, spread)| spread.max).fold(f64::NEG_INFINITY, f64::max);
    let empty = means.is_empty();
    let known = |value: f64| if empty { f64::NAN } else { value };
    Spread { mean: Spread::of(&means).mean, min: known(min), max: known(max), runs }
}

/// Every mean lies in `low..=high`.
#[must_use]
pub fn stays_within(curve: &Curve, low: f64, high: f64, decimals: usize) -> Judgement {
    let means = means(curve);
    let holds = means.iter().all(|&mean| mean >= low && mean <= high);
    Judgement::new(means_shown(&means, decimals), known(&means, holds))
}

/// The means differ by at most `tolerance`.
#[must_use]
pub fn is_flat(curve: &Curve, tolerance: f64, decimals: usize) -> Judgement {
    let means = means(curve);
    let range = Spread::of(&means);
    Judgement::new(means_shown(&means, decimals), known(&means, range.max - range.min <= tolerance))
}

/// The single repetitions differ by at least `least`.
#[must_use]
pub fn is_shaky(curve: &Curve, least: f64, decimals: usize) -> Judgement {
    let all = overall(curve);
    let text = format!("single runs between {:.decimals$} and {:.decimals$}", all.min, all.max);
    Judgement::new(text, known(&[all.min, all.max], all.max - all.min >= least))
}

/// No mean is below the one before it by more than `tolerance`.
#[must_use]
pub fn rises(curve: &Curve, tolerance: f64, decimals: usize) -> Judgement {
    follows(curve, decimals, &|before, after| after >= before - tolerance)
}

/// No mean is above the one before it by more than `tolerance`.
#[must_use]
pub fn falls(curve: &Curve, tolerance: f64, decimals: usize) -> Judgement {
    follows(curve, decimals, &|before, after| after <= before + tolerance)
}

fn follows(curve: &Curve, decimals: usize, ordered: &dyn Fn(f64, f64) -> bool) -> Judgement {
    let means = means(curve);
    let holds = means.windows(2).all(|pair| ordered(pair[0], pair[1]));
    let (low, high) = (extreme(curve, |a, b| a < b), extreme(curve, |a, b| a > b));
    let (Some(first), Some(last), Some(low), Some(high)) = (curve.first(), curve.last(), low, high) else {
        return Judgement::open("no runs");
    };
    let at = |(x, spread): (f64, Spread)| format!("{:.decimals$} at {}", spread.mean, place(x));
    let text = format!("{} to {}; smallest {}, largest {}", at(*first), at(*last), at(low), at(high));
    Judgement::new(text, known(&means, holds))
}

/// The last mean is below the first by `least` or more, N flows beside one.
#[must_use]
pub fn ends_lower(curve: &Curve, least: f64, decimals: usize) -> Judgement {
    let (Some(first), Some(last)) = (curve.first(), curve.last()) else { return Judgement::open("not run") };
    let text = format!(
        "{} at N = {:.0}, {} at N = {:.0}",
        first.1.show(decimals),
        first.0,
        last.1.show(decimals),
        last.0
    );
    Judgement::new(text, known(&means(curve), first.1.mean - last.1.mean >= least))
}

/// Jain's index among N flows and one more is at most a quarter above the least that it can be, 1 / (N + 1).
#[must_use]
pub fn near_least(fairness: &Curve) -> Judgement {
    let excess = fairness.iter().map(|(n, spread)| spread.mean * (n + 1.0));
    let largest = excess.fold(f64::NEG_INFINITY, f64::max);
    let last = fairness.last().map_or(f64::NAN, |(_, spread)| spread.mean);
    Judgement::new(
        format!("at most {largest:.2} / (N + 1); {last:.3} at the largest N"),
        known(&[largest, last], largest <= 1.25),
    )
}

/// N scavengers lose less than N Reno flows do, from N = 5 on at most half as much.
#[must_use]
pub fn loses_less(scavengers: &Curve, reno: &Curve) -> Judgement {
    let pairs: Vec<(f64, f64, f64)> =
        scavengers.iter().zip(reno).map(|(l, r)| (l.0, l.1.mean, r.1.mean)).collect();
    let Some(&(n, last, last_reno)) = pairs.last() else { return Judgement::open("not run") };
    let lower = pairs.iter().all(|&(n, l, r)| l < r && (n < 5.0 || l <= r / 2.0));
    let text = format!("{last:.3} % against {last_reno:.3} % at N = {n:.0}");
    Judgement::new(text, known(&[last, last_reno], lower))
}

/// The point whose mean is extreme.
#[must_use]
pub fn extreme(curve: &Curve, better: fn(f64, f64) -> bool) -> Option<(f64, Spread)> {
    curve.iter().copied().reduce(|best, next| if better(next.1.mean, best.1.mean) { next } else { best })
}

/// The means of a curve.
#[must_use]
pub fn means(curve: &Curve) -> Vec<f64> {
    curve.iter().map(|(_, spread)| spread.mean).collect()
}

fn means_shown(means: &[f64], decimals: usize) -> String {
    let range = Spread::of(means);
    let (low, high) = (format!("{:.decimals$}", range.min), format!("{:.decimals$}", range.max));
    if low == high { low } else { format!("{low} to {high}") }
}

/// A place on an axis in words.
#[must_use]
pub fn place(x: f64) -> String {
    if x.fract() == 0.0 { format!("{x:.0}") } else { format!("{x}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_plot::Verdict;

    fn curve(means: &[f64]) -> Vec<(f64, Spread)> {
        let point = |(k, &mean): (usize, &f64)| {
            (k as f64, Spread { mean, min: mean - 1.0, max: mean + 1.0, runs: 3 })
        };
        means.iter().enumerate().map(point).collect()
    }

    #[test]
    fn rising_and_falling_are_told_apart_and_forgive_only_the_tolerance() {
        assert_eq!(rises(&curve(&[1.0, 2.0, 1.95, 3.0]), 0.1, 1).verdict, Verdict::Holds);
        assert_eq!(rises(&curve(&[1.0, 2.0, 1.5, 3.0]), 0.1, 1).verdict, Verdict::Fails);
        assert_eq!(falls(&curve(&[3.0, 2.0, 1.0]), 0.0, 1).verdict, Verdict::Holds);
        assert_eq!(falls(&curve(&[3.0, 3.2]), 0.1, 1).verdict, Verdict::Fails);
        let text = rises(&curve(&[1.0, 4.0, 2.0]), 0.1, 0).measured;
        assert_eq!(text, "1 at 0 to 2 at 2; smallest 1 at 0, largest 4 at 1");
    }

    #[test]
    fn ranges_of_means_and_of_single_runs_are_different_things() {
        assert_eq!(is_flat(&curve(&[5.0, 5.05]), 0.1, 2).verdict, Verdict::Holds);
        assert_eq!(is_flat(&curve(&[5.0, 5.2]), 0.1, 2).verdict, Verdict::Fails);
        assert_eq!(is_shaky(&curve(&[5.0, 5.0]), 1.5, 1).verdict, Verdict::Holds);
        assert_eq!(is_shaky(&curve(&[5.0, 5.0]), 2.5, 1).verdict, Verdict::Fails);
        assert_eq!(stays_within(&curve(&[5.0, 6.0]), 5.0, 6.0, 1).verdict, Verdict::Holds);
        assert_eq!(stays_within(&curve(&[5.0, 6.1]), 5.0, 6.0, 1).verdict, Verdict::Fails);
    }

    #[test]
    fn what_was_not_run_is_open() {
        for judgement in [
            rises(&[], 0.1, 1),
            is_flat(&[], 0.1, 1),
            is_shaky(&[], 0.1, 1),
            stays_within(&curve(&[f64::NAN]), 0.0, 1.0, 1),
        ] {
            assert_eq!(judgement.verdict, Verdict::Open);
        }
    }

    #[test]
    fn parts_of_a_curve_have_their_ends() {
        let whole = curve(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(within(&whole, 1.0, 2.0).len(), 2);
        assert_eq!(overall(&whole).min, 0.0);
        assert_eq!(overall(&whole).max, 5.0);
        assert_eq!(extreme(&whole, |a, b| a > b).map(|(x, _)| x), Some(3.0));
    }

    /// A curve of single runs.
    fn points(means: &[(f64, f64)]) -> Vec<(f64, Spread)> {
        means.iter().map(|&(x, mean)| (x, Spread { mean, min: mean, max: mean, runs: 1 })).collect()
    }

    #[test]
    fn fairness_is_measured_against_its_least_value() {
        assert_eq!(near_least(&points(&[(1.0, 0.51), (10.0, 0.11)])).verdict, Verdict::Holds);
        assert_eq!(near_least(&points(&[(1.0, 0.51), (10.0, 0.14)])).verdict, Verdict::Fails);
    }

    #[test]
    fn losses_and_ends_are_compared() {
        let reno = points(&[(1.0, 0.19), (5.0, 0.5), (10.0, 1.2)]);
        assert_eq!(
            loses_less(&points(&[(1.0, 0.15), (5.0, 0.12), (10.0, 0.09)]), &reno).verdict,
            Verdict::Holds
        );
        assert_eq!(
            loses_less(&points(&[(1.0, 0.15), (5.0, 0.4), (10.0, 0.9)]), &reno).verdict,
            Verdict::Fails
        );
        assert_eq!(ends_lower(&points(&[(1.0, 0.99), (10.0, 0.98)]), 0.005, 3).verdict, Verdict::Holds);
        assert_eq!(ends_lower(&points(&[(1.0, 0.99), (10.0, 0.99)]), 0.005, 3).verdict, Verdict::Fails);
    }
}
