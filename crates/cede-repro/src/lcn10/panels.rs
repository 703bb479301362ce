//! Panels from curves: means with the range over repetitions, and the other simulators' points beside them.

use super::results::{Metric, Results};
use super::simulators::{self, Simulator};
use cede_plot::{Axis, Legend, Marker, Panel, Series};

/// A curve of a panel: which, under which name, in which style.
#[derive(Clone, Copy)]
pub(super) struct Drawn {
    pub(super) curve: &'static str,
    pub(super) name: &'static str,
    pub(super) slot: usize,
}

/// The colour of the other simulators' points, which no curve has; their markers differ.
const SIMULATOR_SLOT: usize = 6;

/// What a panel shows.
pub(super) struct Plot<'a> {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) metric: Metric,
    pub(super) curves: &'a [Drawn],
    /// The curves beside which the other simulators' points stand.
    pub(super) compared: &'a [&'static str],
}

impl Plot<'_> {
    pub(super) fn panel(self, results: &Results) -> Panel {
        let curves = self.curves.iter().map(|drawn| curve(results, *drawn, self.metric));
        let theirs = [Simulator::Ns2, Simulator::Ns3].map(|simulator| self.theirs(simulator));
        Panel::new(self.title.clone())
            .x(self.x.clone())
            .y(self.y.clone())
            .all_series(curves)
            .all_series(theirs.into_iter().flatten())
            .legend(Legend::Auto)
    }

    fn theirs(&self, simulator: Simulator) -> Option<Series> {
        let points: Vec<(f64, f64)> = self
            .compared
            .iter()
            .flat_map(|curve| simulators::points(simulator, curve, self.metric))
            .collect();
        let marker = match simulator {
            Simulator::Ns2 => Marker::Plus,
            Simulator::Ns3 => Marker::Diamond,
        };
        (!points.is_empty())
            .then(|| Series::points(simulator.name(), points).slot(SIMULATOR_SLOT).marker(marker))
    }
}

/// A metric along a curve, with its range.
pub(super) fn curve(results: &Results, drawn: Drawn, metric: Metric) -> Series {
    let along = results.along(drawn.curve, metric);
    let means = along.iter().map(|&(x, spread)| (x, spread.mean));
    let range = along.iter().map(|&(x, spread)| (x, spread.min, spread.max));
    Series::line_points(drawn.name, means).with_band(range).slot(drawn.slot)
}

/// An axis of ratios or counts from 1 to 10.
pub(super) fn one_to_ten(label: &str) -> Axis {
    let ticks = (1..=10).map(|tick| (f64::from(tick), tick.to_string()));
    Axis::new(label).range(0.5, 10.5).ticks(ticks)
}

/// The caption that every sweep has.
pub(super) fn caption(results: &Results) -> String {
    format!(
        "10 Mbit/s, 25 ms one way, 100 packets of buffer, 1500-octet packets, 120 s. Means of {} repetitions (one with \
         simultaneous starts, the others jittered by up to 100 ms); shading: smallest to largest. ns-2, ns-3: points of \
         two other simulators for the same scenario.",
        results.request.repetitions()
    )
}
