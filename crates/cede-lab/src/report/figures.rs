//! Panels over time: rates, queueing delay, windows.

use super::{Group, MAX_SINGLE_FLOWS, Subject};
use crate::network::Watched;
use crate::outcome::FlowSeries;
use cede_cc::ParamValue;
use cede_plot::{Axis, Dash, Figure, Panel, Series};
use cede_units::{Duration, Instant};

/// Rate of each flow over time, each value over one recording interval.
#[must_use]
pub fn rates(subject: &Subject<'_>) -> Panel {
    let panel = Panel::new("Rate of each flow")
        .x(time_axis(subject))
        .y(Axis::new("rate").unit("Mbit/s").from(0.0))
        .all_series(flow_series(subject, |flow| while_there(flow, &flow.rate_mbps), 1.0, Together::Sum));
    match subject.network.watched.as_slice() {
        [bottleneck] => with_capacity(panel, bottleneck, subject.scenario.duration),
        _ => panel,
    }
}

/// A line at the link's rate, or steps where that changes.
fn with_capacity(panel: Panel, link: &Watched, end: Duration) -> Panel {
    if let [(_, rate)] = link.rates[..] {
        return panel.hline(rate.as_mbit_f64(), "capacity");
    }
    let last = (Instant::ZERO + end, link.rate_at(Instant::ZERO + end));
    let steps = link.rates.iter().copied().chain([last]);
    let points = steps.map(|(at, rate)| (at.as_secs_f64(), rate.as_mbit_f64()));
    // Slots of flows come first. There are no more colours: beside eight flows this is the eighth's, and dotted.
    panel.series(Series::steps("capacity", points).slot(MAX_SINGLE_FLOWS - 1).dash(Dash::Dotted))
}

/// Queueing delay over time at the metered links in which packets wait: the mean over each recording interval, and where
/// there is one such link the range up to the longest wait.
#[must_use]
pub fn queues(subject: &Subject<'_>) -> Panel {
    let series = &subject.outcome.series;
    let links = subject.drawn_links();
    let alone = links.len() == 1;
    let line = |(place, &link): (usize, &usize)| {
        let (name, means) = (&subject.network.watched[link].name, &series.queue_mean_ms[link]);
        // Slots of flows come first, so that a link rarely looks like a flow above it.
        let line = Series::line(format!("queue of {name}"), zip(&series.t_s, means)).slot(6 + place);
        let longest = &series.queue_max_ms[link];
        let band = series.t_s.iter().zip(means).zip(longest).map(|((&t, &mean), &max)| (t, mean, max));
        if alone { line.with_band(band) } else { line }
    };
    let panel =
        Panel::new(if alone { "Queueing delay: mean, and up to the longest" } else { "Mean queueing delay" })
            .x(time_axis(subject))
            .y(Axis::new("delay").unit("ms").from(0.0))
            .all_series(links.iter().enumerate().map(line));
    match target(subject) {
        Some(target) if alone => panel.hline(target.as_millis_f64(), format!("target {target}")),
        _ => panel,
    }
}

/// Congestion window of each flow over time.
#[must_use]
pub fn windows(subject: &Subject<'_>) -> Panel {
    Panel::new("Congestion window of each flow")
        .x(time_axis(subject))
        .y(Axis::new("window").unit("kB").from(0.0))
        .all_series(flow_series(subject, |flow| while_there(flow, &flow.cwnd_bytes), 1e-3, Together::Mean))
}

/// All three, one under the other.
#[must_use]
pub fn overview(subject: &Subject<'_>) -> Figure {
    let scenario = subject.scenario;
    let (seed, interval) = (scenario.seed, scenario.record.interval);
    let caption =
        format!("{}. Seed {seed}; each value over {interval}.", scenario.description.trim_end_matches('.'));
    Figure::new(format!("{} over time", scenario.name))
        .caption(caption.trim_start_matches(['.', ' ']))
        .share_x()
        .panels([rates(subject), queues(subject), windows(subject)])
}

fn time_axis(subject: &Subject<'_>) -> Axis {
    Axis::new("time").unit("s").range(0.0, subject.scenario.duration.as_secs_f64())
}

/// The target delay, where all controllers that have one have the same.
fn target(subject: &Subject<'_>) -> Option<Duration> {
    let targets = subject.scenario.flows.iter().filter_map(|flow| {
        let settings = cede_cc::registry::resolve(&flow.controller.name, &flow.controller.params).ok()?;
        settings.iter().find_map(|(name, value)| match value {
            ParamValue::Duration(target) if name == "target" => Some(*target),
            _ => None,
        })
    });
    let targets: Vec<Duration> = targets.collect();
    let first = *targets.first()?;
    targets.iter().all(|&target| target == first).then_some(first)
}

/// What a line shows of several flows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Together {
    /// What they have in all.
    Sum,
    /// What they have on average, and the range.
    Mean,
}

/// A line per flow, or per group where there are many.
fn flow_series(
    subject: &Subject<'_>,
    pick: fn(&FlowSeries) -> Vec<f64>,
    scale: f64,
    together: Together,
) -> Vec<Series> {
    let times = &subject.outcome.series.t_s;
    let picked: Vec<Vec<f64>> = subject.outcome.series.flows.iter().map(pick).collect();
    let line = |(slot, group): (usize, Group<'_>)| {
        let count = group.flows.len();
        let values: Vec<Vec<f64>> = (0..times.len()).map(|at| known(&picked, &group, at, scale)).collect();
        let points =
            |of: fn(&[f64]) -> f64| times.iter().zip(&values).map(move |(&t, values)| (t, of(values)));
        let line = match (count, together) {
            (1, _) => Series::line(group.name, points(mean)),
            (_, Together::Sum) => Series::line(format!("{} (all {count})", group.name), points(sum)),
            (_, Together::Mean) => {
                let range = times.iter().zip(&values).map(|(&t, values)| {
                    let fold = |pick: fn(f64, f64) -> f64| values.iter().copied().fold(f64::NAN, pick);
                    (t, fold(f64::min), fold(f64::max))
                });
                Series::line(format!("{} (mean of {count})", group.name), points(mean)).with_band(range)
            }
        };
        line.slot(slot)
    };
    subject.groups().into_iter().enumerate().map(line).collect()
}

/// The values of a group's flows in one interval, as far as they are known.
fn known(picked: &[Vec<f64>], group: &Group<'_>, at: usize, scale: f64) -> Vec<f64> {
    let each = group.flows.iter().map(|&flow| picked[flow][at] * scale);
    each.filter(|value| value.is_finite()).collect()
}

/// The values of a flow from the interval before its first packet arrived to the one after its last did.
fn while_there(flow: &FlowSeries, values: &[f64]) -> Vec<f64> {
    let first = flow.rate_mbps.iter().position(|&rate| rate > 0.0).unwrap_or(0);
    let last = flow.rate_mbps.iter().rposition(|&rate| rate > 0.0).unwrap_or(0);
    let is_there = |place: usize| place + 1 >= first && place <= last + 1;
    values.iter().enumerate().map(|(place, &value)| if is_there(place) { value } else { f64::NAN }).collect()
}

/// Not a number where there are none.
fn sum(values: &[f64]) -> f64 {
    if values.is_empty() { f64::NAN } else { values.iter().sum() }
}

/// Not a number where there are none.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn zip<'s>(times: &'s [f64], values: &'s [f64]) -> impl Iterator<Item = (f64, f64)> + 's {
    times.iter().copied().zip(values.iter().copied())
}
