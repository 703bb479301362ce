//! The experiment with the kernel's TCP.

use super::showing::{INTERVAL, Sample, Showing};
use super::spec::KernelSpec;
use crate::netns::{Bulk, DelayLine, Namespaces, NetnsError, Pattern, RECEIVER};
use std::time::{Duration, Instant};

/// The experiment as it was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What came of it.
    pub showing: Showing,
    /// Packets that the bottleneck dropped.
    pub drops: u64,
    /// The longest time between two samples, in seconds: far above a tenth, the machine was too slow.
    pub longest_gap_s: f64,
    /// How much later than it should the latest acknowledgement left the delay line, in milliseconds.
    pub latest_ms: f64,
}

/// Runs the experiment; `watch` sees each sample and says whether to go on. Whatever was made is gone afterwards.
///
/// # Errors
/// [`NetnsError`].
pub fn measure(spec: &KernelSpec, watch: &mut dyn FnMut(&Sample) -> bool) -> Result<Measured, NetnsError> {
    let namespaces = Namespaces::where_possible(spec.rate, spec.buffer)?;
    let delay = DelayLine::insert(&namespaces, Duration::from(spec.rtt))?;
    let mut experiment = Experiment {
        spec,
        began: Instant::now(),
        flows: [None, None],
        delay,
        namespaces,
        last: (0.0, [0, 0]),
        samples: Vec::new(),
    };
    experiment.run(watch)?;
    let drops = experiment.namespaces.bottleneck()?.drops;
    let latest_ms = experiment.delay.latest().as_secs_f64() * 1e3;
    let showing = Showing::of(spec, experiment.samples);
    let longest_gap_s = showing.samples.iter().map(|sample| sample.span_s).fold(0.0, f64::max);
    Ok(Measured { showing, drops, longest_gap_s, latest_ms })
}

/// The fields go in this order: the flows first, then what they run in.
struct Experiment<'a> {
    spec: &'a KernelSpec,
    began: Instant,
    flows: [Option<Bulk>; 2],
    delay: DelayLine,
    namespaces: Namespaces,
    /// Seconds, and octets that had arrived by then.
    last: (f64, [u64; 2]),
    samples: Vec<Sample>,
}

impl Experiment<'_> {
    fn run(&mut self, watch: &mut dyn FnMut(&Sample) -> bool) -> Result<(), NetnsError> {
        let end_s = self.spec.duration().as_secs_f64();
        for tick in 0.. {
            self.come_and_go()?;
            let next = self.began + Duration::from(INTERVAL) * (tick + 1);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            let sample = self.sample()?;
            if !watch(&sample) {
                return Err(NetnsError::Interrupted);
            }
            self.samples.push(sample);
            if sample.t_s >= end_s {
                break;
            }
        }
        Ok(())
    }

    fn come_and_go(&mut self) -> Result<(), NetnsError> {
        let now_s = self.began.elapsed().as_secs_f64();
        let spans = self.spec.flows();
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let [start, stop] = spans[index].map(cede_units::Duration::as_secs_f64);
            let is_there = (start..stop).contains(&now_s);
            match flow {
                None if is_there => {
                    let control = &self.spec.controls[index];
                    *flow = Some(Bulk::tcp(&self.namespaces, control, RECEIVER, Pattern::Backlogged)?);
                }
                Some(_) if !is_there => *flow = None,
                _ => {}
            }
            if let Some(error) = flow.as_mut().and_then(Bulk::failure) {
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn sample(&mut self) -> Result<Sample, NetnsError> {
        let backlog_bytes = self.namespaces.bottleneck()?.backlog_bytes;
        let now = (
            self.began.elapsed().as_secs_f64(),
            self.flows.each_ref().map(|flow| flow.as_ref().map_or(0, Bulk::received_bytes)),
        );
        let last = std::mem::replace(&mut self.last, now);
        let span_s = (now.0 - last.0).max(1e-9);
        // A flow that has left counts from zero again.
        let mbps = |index: usize| now.1[index].saturating_sub(last.1[index]) as f64 * 8e-6 / span_s;
        Ok(Sample {
            t_s: now.0,
            span_s,
            queue_ms: self.spec.rate.time_to_send(backlog_bytes).as_millis_f64(),
            mbps: [mbps(0), mbps(1)],
        })
    }
}
