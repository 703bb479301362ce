//! The experiment with the kernel's own bottleneck.

use super::showing::{INTERVAL, Sample, Showing};
use super::spec::GentleSpec;
use crate::netns::{Bottleneck, Bulk, DelayLine, Namespaces, NetnsError, Pattern, RECEIVER};
use std::io;
use std::time::Instant;

/// The experiment as it was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What came of it.
    pub showing: Showing,
    /// Packets that the bottleneck dropped.
    pub drops: u64,
    /// The longest time between two samples, in seconds: far above a tenth, the machine was too slow.
    pub longest_gap_s: f64,
    /// How much later than it should the latest acknowledgement left the delay line, in milliseconds; none without one.
    pub latest_ms: Option<f64>,
}

/// Runs the experiment; `watch` sees each sample and says whether to go on. Whatever was made is gone afterwards.
///
/// # Errors
/// [`NetnsError`].
pub fn measure(spec: &GentleSpec, watch: &mut dyn FnMut(&Sample) -> bool) -> Result<Measured, NetnsError> {
    let namespaces = Namespaces::where_possible(spec.rate, spec.buffer)?;
    let delay = (!spec.rtt.is_zero()).then(|| DelayLine::insert(&namespaces, spec.rtt.into())).transpose()?;
    let mut experiment = Experiment {
        spec,
        began: Instant::now(),
        utp: Bulk::utp(&namespaces, &spec.stream(), Pattern::Backlogged)?,
        tcp: None,
        delay,
        namespaces,
        last: Counters::default(),
        samples: Vec::new(),
        longest_gap_s: 0.0,
    };
    experiment.run(watch)?;
    let drops = experiment.last.bottleneck.drops;
    let latest_ms = experiment.delay.as_ref().map(|delay| delay.latest().as_secs_f64() * 1e3);
    let showing = Showing::of(spec, experiment.samples);
    Ok(Measured { showing, drops, longest_gap_s: experiment.longest_gap_s, latest_ms })
}

/// The fields go in this order: the flows first, then what they run in.
struct Experiment<'a> {
    spec: &'a GentleSpec,
    began: Instant,
    utp: Bulk,
    tcp: Option<Bulk>,
    delay: Option<DelayLine>,
    namespaces: Namespaces,
    last: Counters,
    samples: Vec<Sample>,
    longest_gap_s: f64,
}

/// What had been counted at a moment.
#[derive(Clone, Copy, Default)]
struct Counters {
    t_s: f64,
    bottleneck: Bottleneck,
    utp_bytes: u64,
    tcp_bytes: u64,
}

impl Experiment<'_> {
    fn run(&mut self, watch: &mut dyn FnMut(&Sample) -> bool) -> Result<(), NetnsError> {
        let interval = std::time::Duration::from(INTERVAL);
        let joins = self.spec.alone.as_secs_f64();
        let leaves = joins + self.spec.joined.as_secs_f64();
        for tick in 1.. {
            let next = self.began + interval * tick;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            let sample = self.sample()?;
            if !watch(&sample) {
                return Err(NetnsError::Interrupted);
            }
            let is_joined = (joins..leaves).contains(&sample.t_s);
            match &self.tcp {
                None if is_joined => {
                    self.tcp =
                        Some(Bulk::tcp(&self.namespaces, &self.spec.against, RECEIVER, Pattern::Backlogged)?);
                }
                Some(_) if !is_joined => self.tcp = None,
                _ => {}
            }
            let failure = self.utp.failure().or_else(|| self.tcp.as_mut()?.failure());
            if let Some(error) = failure {
                return Err(error.into());
            }
            if sample.t_s >= self.spec.duration().as_secs_f64() {
                break;
            }
        }
        Ok(())
    }

    fn sample(&mut self) -> io::Result<Sample> {
        let bottleneck = self.namespaces.bottleneck()?;
        let last = self.last;
        self.last = Counters {
            t_s: self.began.elapsed().as_secs_f64(),
            bottleneck,
            utp_bytes: self.utp.received_bytes(),
            tcp_bytes: self.tcp.as_ref().map_or(0, Bulk::received_bytes),
        };
        let now = &self.last;
        let span_s = (now.t_s - last.t_s).max(1e-9);
        let mbps = |now: u64, last: u64| now.saturating_sub(last) as f64 * 8e-6 / span_s;
        let rate = self.spec.rate;
        let sample = Sample {
            t_s: now.t_s,
            span_s,
            queue_ms: rate.time_to_send(bottleneck.backlog_bytes).as_millis_f64(),
            utilisation: mbps(bottleneck.sent_bytes, last.bottleneck.sent_bytes) / rate.as_mbit_f64(),
            utp_mbps: mbps(now.utp_bytes, last.utp_bytes),
            tcp_mbps: mbps(now.tcp_bytes, last.tcp_bytes),
        };
        self.longest_gap_s = self.longest_gap_s.max(span_s);
        self.samples.push(sample);
        Ok(sample)
    }
}
