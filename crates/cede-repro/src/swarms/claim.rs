//! What a paper says, and whether it holds.

use crate::Judgement;
use cede_lab::swarm::mean;
use cede_plot::Verdict;
use std::fmt;

/// A claim of a paper and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// Its number in our list.
    pub id: &'static str,
    /// Where the paper says it.
    pub place: &'static str,
    /// What it says.
    pub says: &'static str,
    /// What must be true of the data for it to hold.
    pub criterion: &'static str,
    /// What was measured and whether that meets the criterion.
    pub judgement: Judgement,
}

impl Claim {
    /// A claim.
    #[must_use]
    pub fn new(
        id: &'static str,
        place: &'static str,
        says: &'static str,
        criterion: &'static str,
        (measured, holds): (String, Option<bool>),
    ) -> Self {
        Self { id, place, says, criterion, judgement: Judgement::new(measured, holds) }
    }

    /// Whether it holds.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        self.judgement.verdict
    }
}

/// A figure as people read it: a mean of nothing is not a number, and was not run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shown(pub f64);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_nan() { f.write_str("not run") } else { self.0.fmt(f) }
    }
}

/// Means with their range: `123 (120-126)`.
#[must_use]
pub fn show(values: &[f64], decimals: usize) -> String {
    let (low, high) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)));
    match values.len() {
        0 => "not measured".to_string(),
        1 => format!("{:.decimals$}", values[0]),
        _ => format!("{:.decimals$} ({low:.decimals$}-{high:.decimals$})", mean(values)),
    }
}

/// Pearson's correlation; not a number for fewer than three points.
#[must_use]
pub fn correlation(points: &[(f64, f64)]) -> f64 {
    let Some((_, _, r)) = line_fit(points) else { return f64::NAN };
    r
}

/// Least squares: intercept, slope and correlation; none for fewer than three points or where all lie at one place.
#[must_use]
pub fn line_fit(points: &[(f64, f64)]) -> Option<(f64, f64, f64)> {
    if points.len() < 3 {
        return None;
    }
    let xs: Vec<f64> = points.iter().map(|point| point.0).collect();
    let ys: Vec<f64> = points.iter().map(|point| point.1).collect();
    let (mx, my) = (mean(&xs), mean(&ys));
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(x, y)| of(x - mx, y - my)).sum::<f64>();
    let (sxx, syy, sxy) = (sum(&|x, _| x * x), sum(&|_, y| y * y), sum(&|x, y| x * y));
    (sxx > 0.0).then(|| (my - sxy / sxx * mx, sxy / sxx, sxy / (sxx * syy).sqrt().max(f64::MIN_POSITIVE)))
}

/// Where nothing was run, nothing is judged, and nothing is shown as a number.
#[cfg(test)]
pub fn assert_open(claims: &[Claim]) {
    for claim in claims {
        assert_eq!(claim.verdict(), Verdict::Open, "{claim:?}");
        assert!(!claim.judgement.measured.contains("NaN"), "{claim:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found() {
        let (intercept, slope, r) = line_fit(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]).unwrap();
        assert!((intercept - 1.0).abs() < 1e-9 && (slope - 2.0).abs() < 1e-9 && (r - 1.0).abs() < 1e-9);
        assert!(correlation(&[(0.0, 1.0)]).is_nan());
        assert_eq!(show(&[1.0, 2.0], 1), "1.5 (1.0-2.0)");
        assert_eq!(format!("{:+.1} {:+.1} {:.0}", Shown(1.0), Shown(f64::NAN), Shown(2.6)), "+1.0 not run 3");
    }
}
