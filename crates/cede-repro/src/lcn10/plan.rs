//! What is asked for, and the runs that points of figures need.

use super::setting::{Choices, Part, Setting};
use std::collections::BTreeMap;

/// The figures of the paper.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FigureNumber {
    /// Windows and queue over time.
    Fig1,
    /// Target and gain of one LEDBAT flow beside one Reno flow.
    Fig2,
    /// Two LEDBAT flows with different targets or gains.
    Fig3,
    /// One Reno flow beside N others.
    Fig4,
    /// N flows each of TCP-LP, NICE and LEDBAT.
    Fig5,
    /// Two flows with different round-trip times.
    Fig6,
}

impl FigureNumber {
    /// All of them, in the paper's order.
    pub const ALL: [Self; 6] = [Self::Fig1, Self::Fig2, Self::Fig3, Self::Fig4, Self::Fig5, Self::Fig6];

    /// Its number in the paper.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Fig1 => 1,
            Self::Fig2 => 2,
            Self::Fig3 => 3,
            Self::Fig4 => 4,
            Self::Fig5 => 5,
            Self::Fig6 => 6,
        }
    }

    /// What it shows.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Fig1 => {
                "Congestion windows and queue over time: Reno, LEDBAT, NICE and TCP-LP, alone and beside Reno."
            }
            Self::Fig2 => "One LEDBAT flow beside one Reno flow, over LEDBAT's target and its gain.",
            Self::Fig3 => "Two LEDBAT flows with different targets or gains.",
            Self::Fig4 => "One Reno flow beside 1 to 10 LEDBAT, NICE, TCP-LP or Reno flows.",
            Self::Fig5 => "1 to 5 flows each of TCP-LP, NICE and LEDBAT on one link.",
            Self::Fig6 => "Two flows of one protocol whose round-trip times differ.",
        }
    }

    /// The figure with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|figure| figure.number() == number)
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The figures; none stands for all of them, and for the sensitivity as well.
    pub figures: Vec<FigureNumber>,
    /// What the paper leaves open is to be measured too.
    pub sensitivity: bool,
    /// Fewer points and repetitions.
    pub quick: bool,
}

impl Request {
    /// Repetitions of each point: 0 without start jitter, the others with.
    #[must_use]
    pub const fn repetitions(&self) -> u32 {
        if self.quick { 3 } else { 10 }
    }

    /// The figures that are meant.
    #[must_use]
    pub fn figures(&self) -> Vec<FigureNumber> {
        if self.figures.is_empty() && !self.sensitivity {
            return FigureNumber::ALL.to_vec();
        }
        let mut figures = self.figures.clone();
        figures.sort_unstable();
        figures.dedup();
        figures
    }

    /// Whether the sensitivity is meant.
    #[must_use]
    pub fn with_sensitivity(&self) -> bool {
        self.sensitivity || self.figures.is_empty()
    }
}

/// A point of a curve: all repetitions of one setting.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// The curve it belongs to.
    pub curve: &'static str,
    /// Its place on the horizontal axis.
    pub x: f64,
    /// The flows.
    pub parts: Vec<Part>,
    /// What the paper leaves open.
    pub choices: Choices,
    /// Repetition 0 is wanted over time.
    pub series: bool,
}

impl Point {
    /// A point with the choices of the figures.
    #[must_use]
    pub const fn new(curve: &'static str, x: f64, parts: Vec<Part>) -> Self {
        Self { curve, x, parts, choices: Choices::PRIMARY, series: false }
    }

    /// With other choices.
    #[must_use]
    pub const fn with(mut self, choices: Choices) -> Self {
        self.choices = choices;
        self
    }

    /// One of its runs.
    #[must_use]
    pub fn example(&self) -> Setting {
        self.setting(1)
    }

    fn setting(&self, repetition: u32) -> Setting {
        let series = self.series && repetition == 0;
        Setting { parts: self.parts.clone(), choices: self.choices, repetition, series }
    }
}

/// The points, and the runs that they need: runs that several points share stand there once.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What was asked for.
    pub request: Request,
    /// The points of all figures.
    pub points: Vec<Point>,
    /// The different runs.
    pub runs: Vec<Setting>,
    /// For each point the places of its repetitions among the runs.
    pub(super) places: Vec<Vec<usize>>,
}

impl Plan {
    /// The runs of these points.
    #[must_use]
    pub fn of(request: Request, points: Vec<Point>) -> Self {
        let mut plan = Self { request, points: Vec::new(), runs: Vec::new(), places: Vec::new() };
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        for point in points {
            let repetitions = 0..plan.request.repetitions();
            let places = repetitions.map(|repetition| plan.place(&mut known, point.setting(repetition)));
            let places = places.collect();
            plan.places.push(places);
            plan.points.push(point);
        }
        plan
    }

    /// The place of a run, which is appended where it is new.
    fn place(&mut self, known: &mut BTreeMap<String, usize>, setting: Setting) -> usize {
        *known.entry(format!("{} {}", setting.series, setting.to_toml())).or_insert_with(|| {
            self.runs.push(setting);
            self.runs.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(figures: &[FigureNumber]) -> Request {
        Request { figures: figures.to_vec(), sensitivity: false, quick: true }
    }

    #[test]
    fn no_figure_means_all() {
        assert_eq!(request(&[]).figures().len(), 6);
        assert!(request(&[]).with_sensitivity());
        assert!(!request(&[FigureNumber::Fig6]).with_sensitivity());
        assert_eq!(FigureNumber::from_number(7), None);
        assert_eq!(FigureNumber::from_number(6), Some(FigureNumber::Fig6));
    }
}
