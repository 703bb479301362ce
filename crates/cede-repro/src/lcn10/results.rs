//! What all runs showed, by curve and place.

use super::measure::{Measured, Traces};
use super::plan::{Plan, Point, Request};
use serde::Serialize;

/// One of the paper's metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// eta: octets that left the bottleneck over its capacity.
    Efficiency,
    /// The same with payload that was received in order.
    Goodput,
    /// The first flow's part of everything, in percent.
    TcpPercent,
    /// The mean part of one of the other flows, in percent.
    OtherPercent,
    /// The part of everything that the first third of the flows has, in percent: one protocol of three.
    FirstThirdPercent,
    /// Jain's index over the whole run.
    FairnessLong,
    /// Mean of Jain's index over windows of 1 s.
    FairnessShort,
    /// Jain's index among all flows but the first.
    FairnessOthers,
    /// B: mean queue after each enqueue over the buffer.
    QueueIndex,
    /// `P_l`: drops over arrivals, in percent.
    LossPercent,
    /// The first flow's rate in kbit/s.
    FirstRate,
}

impl Metric {
    /// Its value in a run.
    #[must_use]
    pub fn of(self, run: &Measured) -> f64 {
        match self {
            Self::Efficiency => run.efficiency,
            Self::Goodput => run.goodput_efficiency,
            Self::TcpPercent => run.tcp_percent(),
            Self::OtherPercent => (100.0 - run.tcp_percent()) / (run.rates_mbps.len() - 1).max(1) as f64,
            Self::FirstThirdPercent => {
                let third: f64 = run.rates_mbps[..run.rates_mbps.len() / 3].iter().sum();
                third / run.rates_mbps.iter().sum::<f64>() * 100.0
            }
            Self::FairnessLong => run.fairness_long,
            Self::FairnessShort => run.fairness_short,
            Self::FairnessOthers => run.fairness_others,
            Self::QueueIndex => run.queue_index,
            Self::LossPercent => run.loss * 100.0,
            Self::FirstRate => run.rates_mbps[0] * 1000.0,
        }
    }

    /// How many decimals tell repetitions apart.
    #[must_use]
    pub const fn decimals(self) -> usize {
        match self {
            Self::TcpPercent | Self::OtherPercent | Self::FirstThirdPercent => 2,
            Self::FirstRate => 0,
            Self::QueueIndex | Self::FairnessLong | Self::FairnessShort | Self::FairnessOthers => 3,
            Self::Efficiency | Self::Goodput | Self::LossPercent => 4,
        }
    }
}

/// Mean and range over repetitions.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// How many repetitions.
    pub runs: usize,
}

impl Spread {
    /// Of these values; all NaN where there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let runs = values.len();
        let fold = |start: f64, pick: fn(f64, f64) -> f64| values.iter().copied().fold(start, pick);
        Self {
            mean: values.iter().sum::<f64>() / runs as f64,
            min: if runs == 0 { f64::NAN } else { fold(f64::INFINITY, f64::min) },
            max: if runs == 0 { f64::NAN } else { fold(f64::NEG_INFINITY, f64::max) },
            runs,
        }
    }

    /// "mean", or "mean (min to max)" where the repetitions differ in what is shown.
    #[must_use]
    pub fn show(&self, decimals: usize) -> String {
        let (mean, min, max) = (self.mean, self.min, self.max);
        let (low, high) = (format!("{min:.decimals$}"), format!("{max:.decimals$}"));
        if low == high { low } else { format!("{mean:.decimals$} ({low} to {high})") }
    }
}

/// What all runs of a plan showed.
#[derive(Clone, Debug)]
pub struct Results {
    /// What was asked for.
    pub request: Request,
    points: Vec<(Point, Vec<Measured>)>,
}

impl Results {
    pub(super) fn new(plan: &Plan, measured: &[Measured]) -> Self {
        let runs = |places: &Vec<usize>| places.iter().map(|&place| measured[place].clone()).collect();
        let points = plan.points.iter().cloned().zip(plan.places.iter().map(runs)).collect();
        Self { request: plan.request.clone(), points }
    }

    /// From points whose runs are known already.
    #[must_use]
    pub const fn from_points(request: Request, points: Vec<(Point, Vec<Measured>)>) -> Self {
        Self { request, points }
    }

    /// All points.
    #[must_use]
    pub fn points(&self) -> &[(Point, Vec<Measured>)] {
        &self.points
    }

    /// The repetitions of a point; none where it was not planned.
    #[must_use]
    pub fn runs(&self, curve: &str, x: f64) -> &[Measured] {
        let is_it = |point: &Point| point.curve == curve && (point.x - x).abs() < 1e-9;
        self.points.iter().find(|(point, _)| is_it(point)).map_or(&[], |(_, runs)| runs)
    }

    /// A metric at a point; NaN where the point was not planned.
    #[must_use]
    pub fn at(&self, curve: &str, x: f64, metric: Metric) -> Spread {
        Spread::of(&self.runs(curve, x).iter().map(|run| metric.of(run)).collect::<Vec<f64>>())
    }

    /// A metric along a curve.
    #[must_use]
    pub fn along(&self, curve: &str, metric: Metric) -> Vec<(f64, Spread)> {
        let on_curve = self.points.iter().filter(|(point, _)| point.curve == curve);
        let spread =
            |runs: &[Measured]| Spread::of(&runs.iter().map(|run| metric.of(run)).collect::<Vec<f64>>());
        let mut along: Vec<(f64, Spread)> = on_curve.map(|(point, runs)| (point.x, spread(runs))).collect();
        along.sort_by(|a, b| a.0.total_cmp(&b.0));
        along
    }

    /// A point over time, where its series was asked for.
    #[must_use]
    pub fn traces(&self, curve: &str, x: f64) -> Option<&Traces> {
        self.runs(curve, x).first()?.series.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_show_their_range_only_where_there_is_one() {
        assert_eq!(Spread::of(&[1.0, 2.0, 4.5]).show(1), "2.5 (1.0 to 4.5)");
        assert_eq!(Spread::of(&[1.0, 1.001]).show(1), "1.0");
        assert!(Spread::of(&[]).mean.is_nan() && Spread::of(&[]).min.is_nan());
    }
}
