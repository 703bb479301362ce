//! The parts of a run between which flows come and go.

use super::Subject;
use crate::outcome::FlowOutcome;

/// A time during which the same flows were there.
#[derive(Clone, PartialEq, Debug)]
pub struct Phase {
    /// Its beginning in seconds.
    pub from_s: f64,
    /// Its end in seconds.
    pub to_s: f64,
    /// What each flow of the scenario did, replicates taken together.
    pub flows: Vec<PhaseFlow>,
    /// Mean queueing delay in milliseconds at the metered link in which packets wait longest over the whole run; none
    /// where nothing passed.
    pub queue_mean_ms: Option<f64>,
}

/// A flow of the scenario, with its replicates, during a phase.
#[derive(Clone, PartialEq, Debug)]
pub struct PhaseFlow {
    /// Its name.
    pub name: String,
    /// It was there: between its start and the time at which it stopped or had finished.
    pub is_active: bool,
    /// What reached its receivers, in Mbit/s.
    pub rate_mbps: f64,
    /// Its part of what reached any receiver; zero where nothing did.
    pub share: f64,
}

/// Runs in which flows come and go more often are not told phase by phase.
const MAX_CHANGES: usize = 6;
/// Changes that are nearer to each other than this part of the run count as one.
const NEAR: f64 = 0.02;

/// The phases of a run; none where flows come and go too often to be told.
#[must_use]
pub fn phases(subject: &Subject<'_>) -> Vec<Phase> {
    let end = subject.scenario.duration.as_secs_f64();
    let changes = changes(subject, end);
    if changes.len() > MAX_CHANGES {
        return Vec::new();
    }
    let edges: Vec<f64> = [0.0].into_iter().chain(changes).chain([end]).collect();
    edges.windows(2).map(|edge| phase(subject, edge[0], edge[1])).collect()
}

/// When flows come and go, neighbours merged, beginning and end left out.
fn changes(subject: &Subject<'_>, end: f64) -> Vec<f64> {
    let flows = subject.outcome.flows.iter();
    let mut times: Vec<f64> =
        flows.flat_map(|flow| [Some(flow.start_s), stop_s(subject, flow)]).flatten().collect();
    times.retain(|&time| time > end * NEAR && time < end * (1.0 - NEAR));
    times.sort_by(f64::total_cmp);
    let mut changes: Vec<f64> = Vec::new();
    for time in times {
        if changes.last().is_none_or(|&last| time - last > end * NEAR) {
            changes.push(time);
        }
    }
    changes
}

/// When a flow left; none where it stayed.
fn stop_s(subject: &Subject<'_>, flow: &FlowOutcome) -> Option<f64> {
    let told = subject.scenario.flows.iter().find(|told| told.name == flow.group)?.stop;
    let told = told.map(|stop| stop.as_secs_f64());
    match (told, flow.finish_s) {
        (Some(told), Some(finished)) => Some(told.min(finished)),
        (told, finished) => told.or(finished),
    }
}

fn phase(subject: &Subject<'_>, from_s: f64, to_s: f64) -> Phase {
    let series = &subject.outcome.series;
    let starts = [0.0].into_iter().chain(series.t_s.iter().copied());
    let middles = starts.zip(&series.t_s).map(|(start, &end)| f64::midpoint(start, end));
    let places: Vec<usize> =
        middles.enumerate().filter(|&(_, t)| t >= from_s && t < to_s).map(|(place, _)| place).collect();
    let mut flows: Vec<PhaseFlow> = subject
        .scenario_groups()
        .into_iter()
        .map(|group| {
            let members = || group.flows.iter().map(|&index| &subject.outcome.flows[index]);
            let rates =
                group.flows.iter().map(|&index| mean(&series.flows[index].rate_mbps, &places).unwrap_or(0.0));
            let is_there = |flow: &FlowOutcome| {
                let middle = f64::midpoint(from_s, to_s);
                flow.start_s < middle && stop_s(subject, flow).is_none_or(|stop| stop > middle)
            };
            let is_active = members().any(is_there);
            PhaseFlow { name: group.name.to_string(), is_active, rate_mbps: rates.sum(), share: 0.0 }
        })
        .collect();
    let total: f64 = flows.iter().map(|flow| flow.rate_mbps).sum();
    if total > 0.0 {
        flows.iter_mut().for_each(|flow| flow.share = flow.rate_mbps / total);
    }
    let queue_mean_ms = series.queue_mean_ms.get(subject.main_link()).and_then(|queue| mean(queue, &places));
    Phase { from_s, to_s, flows, queue_mean_ms }
}

/// The mean of the values at some places that are known.
fn mean(values: &[f64], places: &[usize]) -> Option<f64> {
    let known: Vec<f64> =
        places.iter().map(|&place| values[place]).filter(|value| value.is_finite()).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}
