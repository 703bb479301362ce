//! What the experiment showed, measured or predicted alike.

use super::spec::{KernelSpec, Phase};
use cede_units::Duration;
use serde::Serialize;

/// From one sample to the next.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);
/// Of each phase, this part is left out at its beginning: flows find their places.
const SETTLING: f64 = 0.25;

/// One interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// Its end, in seconds since the beginning.
    pub t_s: f64,
    /// Its length, in seconds.
    pub span_s: f64,
    /// How long a packet that came to the bottleneck had to wait.
    pub queue_ms: f64,
    /// What arrived of each flow, in Mbit/s.
    pub mbps: [f64; 2],
}

/// What one phase showed, after its first quarter.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PhaseShowing {
    /// Mean goodput of each flow, in Mbit/s.
    pub mbps: [f64; 2],
    /// Mean queueing delay.
    pub queue_mean_ms: f64,
    /// 95th percentile of the queueing delay over time.
    pub queue_p95_ms: f64,
}

/// What the experiment showed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Showing {
    /// The phases, in the order of [`Phase::ALL`].
    pub phases: [PhaseShowing; 3],
    /// Interval by interval.
    pub samples: Vec<Sample>,
}

impl Showing {
    pub(super) fn of(spec: &KernelSpec, samples: Vec<Sample>) -> Self {
        let phases = Phase::ALL.map(|phase| {
            let [from, to] = spec.span(phase).map(Duration::as_secs_f64);
            let from = from + SETTLING * (to - from);
            PhaseShowing::of(samples.iter().filter(|sample| sample.t_s > from && sample.t_s <= to))
        });
        Self { phases, samples }
    }
}

impl PhaseShowing {
    /// Means are over time: where the machine stalls, intervals are not all of one length.
    fn of<'a>(samples: impl Iterator<Item = &'a Sample>) -> Self {
        let mut samples: Vec<&Sample> = samples.collect();
        samples.sort_by(|a, b| a.queue_ms.total_cmp(&b.queue_ms));
        let whole_s = samples.iter().map(|sample| sample.span_s).sum::<f64>().max(1e-9);
        let mean = |value: &dyn Fn(&Sample) -> f64| {
            samples.iter().map(|sample| value(sample) * sample.span_s).sum::<f64>() / whole_s
        };
        let mut seen_s = 0.0;
        let p95 = samples.iter().find(|sample| {
            seen_s += sample.span_s;
            seen_s >= 0.95 * whole_s
        });
        Self {
            mbps: [mean(&|sample| sample.mbps[0]), mean(&|sample| sample.mbps[1])],
            queue_mean_ms: mean(&|sample| sample.queue_ms),
            queue_p95_ms: p95.map_or(0.0, |sample| sample.queue_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_told_apart_and_their_beginnings_left_out() {
        let spec = KernelSpec::default();
        let samples = (1..=1600).map(|k| {
            let t_s = f64::from(k) / 10.0;
            let (mbps, queue_ms) = match t_s {
                t if t <= 10.0 => ([1.0, 0.0], 0.0),
                t if t <= 40.0 => ([19.0, 0.0], 150.0),
                t if t <= 60.0 => ([9.0, 1.0], 0.0),
                t if t <= 120.0 => ([12.0, 7.0], if t <= 114.0 { 100.0 } else { 180.0 }),
                _ => ([0.0, 19.0], 20.0),
            };
            Sample { t_s, span_s: 0.1, queue_ms, mbps }
        });
        let [first, both, second] = Showing::of(&spec, samples.collect()).phases;
        let close = |a: f64, b: f64| (a - b).abs() < 0.2;
        assert!(close(first.mbps[0], 19.0) && close(first.queue_mean_ms, 150.0), "{first:?}");
        assert!(close(both.mbps[0], 12.0) && close(both.mbps[1], 7.0), "{both:?}");
        assert!(close(both.queue_p95_ms, 180.0) && close(both.queue_mean_ms, 108.0), "{both:?}");
        assert!(close(second.mbps[1], 19.0) && close(second.queue_p95_ms, 20.0), "{second:?}");
    }
}
