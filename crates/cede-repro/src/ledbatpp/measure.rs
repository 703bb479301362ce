//! What one run showed, second by second.
//!
//! Throughput is of payload, as the published plots have it: what reaches the receivers, less headers. A run's numbers are
//! means over windows of its seconds.

use super::setting::{CONTENDER, Setting};
use cede_lab::run::{FlowSample, Run, RunError, Watcher};
use cede_units::Instant;

/// The part of a packet of 1,500 octets that is payload, over uTP and over TCP with timestamps.
const UTP_PAYLOAD: f64 = 1452.0 / 1500.0;
const TCP_PAYLOAD: f64 = 1448.0 / 1500.0;
/// A level counts as reached once it has been held for so many seconds.
const HELD_S: usize = 3;

/// One flow of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowTrace {
    /// Its name.
    pub name: String,
    /// Throughput of each second in Mbit/s.
    pub mbps: Vec<f64>,
    /// The base delay that its controller believes in, at the end of each second, in milliseconds; NaN where it has none.
    pub base_ms: Vec<f64>,
    /// Its window at the end of each second, as octets of payload.
    pub window_bytes: Vec<f64>,
}

/// What one run showed.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The ends of the seconds.
    pub t_s: Vec<f64>,
    /// The flows.
    pub flows: Vec<FlowTrace>,
    /// Mean wait at the bottleneck in each second, in milliseconds.
    pub queue_ms: Vec<f64>,
    /// Retransmission timeouts of all flows.
    pub timeouts: u64,
    /// Every connection lived to the end and delivered what was sent.
    pub intact: bool,
}

/// The mean of what is a number; NaN where nothing is.
#[must_use]
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let known = values.into_iter().filter(|value| value.is_finite());
    let (sum, count) = known.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

impl Measured {
    fn trace(&self, flow: &str) -> Option<&FlowTrace> {
        self.flows.iter().find(|trace| trace.name == flow)
    }

    /// The values of the seconds that end in `from_s..=to_s`, the one that ends at `from_s` left out.
    fn window<'a>(&'a self, values: &'a [f64], from_s: f64, to_s: f64) -> impl Iterator<Item = f64> + 'a {
        let within = move |t: f64| t > from_s + 1e-6 && t <= to_s + 1e-6;
        self.t_s.iter().zip(values).filter(move |&(&t, _)| within(t)).map(|(_, &value)| value)
    }

    /// A flow's mean throughput in Mbit/s; NaN where there is no such flow.
    #[must_use]
    pub fn mbps(&self, flow: &str, from_s: f64, to_s: f64) -> f64 {
        self.trace(flow).map_or(f64::NAN, |trace| mean(self.window(&trace.mbps, from_s, to_s)))
    }

    /// The contender's seconds.
    #[must_use]
    pub fn seconds(&self, from_s: f64, to_s: f64) -> Vec<f64> {
        self.trace(CONTENDER)
            .map(|trace| self.window(&trace.mbps, from_s, to_s).collect())
            .unwrap_or_default()
    }

    /// The contender's part of what it and a rival carry.
    #[must_use]
    pub fn share(&self, rival: &str, from_s: f64, to_s: f64) -> f64 {
        let (own, other) = (self.mbps(CONTENDER, from_s, to_s), self.mbps(rival, from_s, to_s));
        own / (own + other)
    }

    /// The mean wait at the bottleneck in milliseconds.
    #[must_use]
    pub fn queue_ms(&self, from_s: f64, to_s: f64) -> f64 {
        mean(self.window(&self.queue_ms, from_s, to_s))
    }

    /// The mean of a controller's base delay in milliseconds.
    #[must_use]
    pub fn base_ms(&self, flow: &str, from_s: f64, to_s: f64) -> f64 {
        self.trace(flow).map_or(f64::NAN, |trace| mean(self.window(&trace.base_ms, from_s, to_s)))
    }

    /// The queue in milliseconds that a flow's window would hold at the throughput that it has, over the base delay that its
    /// controller believes in: the mean, and what one sample in twenty exceeds.
    #[must_use]
    pub fn allowed_queue_ms(&self, flow: &str, from_s: f64, to_s: f64) -> (f64, f64) {
        let base_ms = self.base_ms(flow, from_s, to_s);
        let bytes_per_ms = self.mbps(flow, from_s, to_s) * 1e3 / 8.0;
        let windows = self.trace(flow).into_iter().flat_map(|trace| {
            self.window(&trace.window_bytes, from_s, to_s).filter(|window| window.is_finite())
        });
        let mut queues: Vec<f64> = windows.map(|window| window / bytes_per_ms - base_ms).collect();
        queues.sort_by(f64::total_cmp);
        let place = queues.len() * 19 / 20;
        (mean(queues.iter().copied()), queues.get(place).copied().unwrap_or(f64::NAN))
    }

    /// How many seconds after `from_s` the contender first carries `mbps`, and goes on to; none before `to_s`.
    #[must_use]
    pub fn time_to_reach(&self, mbps: f64, from_s: f64, to_s: f64) -> Option<f64> {
        let seconds = self.seconds(from_s, to_s);
        let held = |part: &[f64]| part.iter().all(|&value| value >= mbps);
        seconds.windows(HELD_S).position(held).map(|place| place as f64 + 1.0)
    }
}

/// Listens for the base delays that controllers believe in.
struct Listener<'a> {
    stop: &'a (dyn Fn() -> bool + Sync),
    base_ms: Vec<(String, Vec<f64>)>,
}

impl Watcher for Listener<'_> {
    fn progress(&mut self, _: Instant, _: Instant) -> bool {
        !(self.stop)()
    }

    fn sample(&mut self, sample: &FlowSample<'_>) {
        let base_ms = sample.view.controller.base_delay_ns.map_or(f64::NAN, |ns| ns as f64 / 1e6);
        match self.base_ms.iter_mut().find(|(name, _)| *name == sample.flow.name) {
            Some((_, values)) => values.push(base_ms),
            None => self.base_ms.push((sample.flow.name.clone(), vec![base_ms])),
        }
    }
}

/// Runs a setting; stops as soon as `stop` says so.
///
/// # Errors
/// [`RunError::Interrupted`] where it was stopped.
pub fn measure(setting: &Setting, stop: &(dyn Fn() -> bool + Sync)) -> Result<Measured, RunError> {
    let scenario = setting.scenario();
    let mut listener = Listener { stop, base_ms: Vec::new() };
    let (outcome, _) = Run::new(&scenario).go(&mut listener)?;
    let series = &outcome.series;
    let trace = |(flow, own): (&cede_lab::outcome::FlowOutcome, &cede_lab::outcome::FlowSeries)| {
        let payload = if flow.protocol == "utp" { UTP_PAYLOAD } else { TCP_PAYLOAD };
        let heard = listener.base_ms.iter().find(|(name, _)| *name == flow.name);
        FlowTrace {
            name: flow.name.clone(),
            mbps: own.rate_mbps.iter().map(|rate| rate * payload).collect(),
            base_ms: heard.map(|(_, values)| values.clone()).unwrap_or_default(),
            window_bytes: own.cwnd_bytes.clone(),
        }
    };
    Ok(Measured {
        t_s: series.t_s.clone(),
        flows: outcome.flows.iter().zip(&series.flows).map(trace).collect(),
        queue_ms: series.queue_mean_ms[0].clone(),
        timeouts: outcome.flows.iter().map(|flow| flow.timeouts).sum(),
        intact: outcome.flows.iter().all(|flow| flow.intact && flow.error.is_none()),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A run of 450 s in which the contender has `own` and the rival the rest.
    pub(in super::super) fn run(rival: &str, own: impl Fn(f64) -> f64) -> Measured {
        let t_s: Vec<f64> = (1..=450).map(f64::from).collect();
        let trace = |name: &str, mbps: Vec<f64>| FlowTrace {
            name: name.to_string(),
            base_ms: vec![30.0; mbps.len()],
            window_bytes: (0..mbps.len()).map(|k| if k % 10 == 9 { 400_000.0 } else { 300_000.0 }).collect(),
            mbps,
        };
        let mine: Vec<f64> = t_s.iter().map(|&t| own(t)).collect();
        let theirs = mine.iter().map(|mbps| 48.0 - mbps).collect();
        let flows = vec![trace(CONTENDER, mine), trace(rival, theirs)];
        Measured { queue_ms: vec![20.0; t_s.len()], t_s, flows, timeouts: 0, intact: true }
    }

    #[test]
    fn windows_leave_out_the_second_that_ends_at_their_beginning() {
        let run = run("bbr", |t| if t <= 200.0 { 48.0 } else { 12.0 });
        assert_eq!(run.mbps(CONTENDER, 200.0, 300.0), 12.0);
        assert_eq!((run.mbps("bbr", 200.0, 300.0), run.share("bbr", 200.0, 300.0)), (36.0, 0.25));
        assert!(run.mbps("cubic", 0.0, 100.0).is_nan());
        assert_eq!((run.queue_ms(0.0, 10.0), run.base_ms("bbr", 0.0, 10.0)), (20.0, 30.0));
    }

    #[test]
    fn a_window_allows_the_queue_that_it_would_hold() {
        // 300 kB at 48 Mbit/s, which are 6 kB/ms, take 50 ms, of which 30 are the path; one sample in ten has 100 kB more.
        let (usual, most) = run("bbr", |_| 0.0).allowed_queue_ms("bbr", 100.0, 200.0);
        assert!((usual - (20.0 + 100.0 / 60.0)).abs() < 1e-9 && (most - (400.0 / 6.0 - 30.0)).abs() < 1e-9);
    }

    #[test]
    fn a_level_is_reached_where_it_is_held() {
        let run = run("bbr", |t| if t == 155.0 || t >= 160.0 { 45.0 } else { 10.0 });
        assert_eq!(run.time_to_reach(40.0, 150.0, 200.0), Some(10.0));
        assert_eq!(run.time_to_reach(46.0, 150.0, 200.0), None);
    }
}
