//! What the simulated world makes of a path.

use super::series::{Sample, Showing};
use super::spec::PathSpec;
use crate::predict::outcome_of;
use cede_lab::outcome::Outcome;
use cede_lab::run::RunError;
use cede_units::Duration;

/// Headers of a data packet: IP, UDP, uTP.
const OVERHEAD_BYTES: f64 = 48.0;

/// Runs a path in virtual time. `go_on` is asked now and then.
///
/// # Errors
/// [`RunError::Interrupted`] where `go_on` said no.
pub fn predict(spec: &PathSpec, go_on: &mut dyn FnMut() -> bool) -> Result<Showing, RunError> {
    // Most transfers end soon: the long run is for those that do not.
    for patience in [spec.ideal() * 3 + Duration::from_secs(10), spec.patience()] {
        let scenario = spec.scenario(patience);
        let outcome = outcome_of(&scenario, go_on)?;
        if outcome.flows[0].finish_s.is_some() || patience == spec.patience() {
            return Ok(showing(spec, &outcome, scenario.flows[0].packet_bytes));
        }
    }
    Err(RunError::Interrupted)
}

fn showing(spec: &PathSpec, outcome: &Outcome, packet_bytes: u32) -> Showing {
    let (series, flow) = (&outcome.series, &outcome.flows[0]);
    // The simulated world knows when the last octet was acknowledged; the receiver had it half a round trip before.
    let finish_s = flow.finish_s.map(|acked| acked - spec.rtt.as_secs_f64() / 2.0);
    let end = finish_s.unwrap_or(f64::INFINITY);
    // The series count octets of IP datagrams, the receiver of a measurement payload.
    let payload_share = 1.0 - OVERHEAD_BYTES / f64::from(packet_bytes);
    let sample = |(k, &t_s): (usize, &f64)| Sample {
        t_s,
        rate_mbps: series.flows[0].rate_mbps[k] * payload_share,
        queue_ms: Some(series.queue_mean_ms[0][k]).filter(|queue| queue.is_finite()),
        cwnd_bytes: series.flows[0].cwnd_bytes[k],
        retransmissions: series.flows[0].retransmissions[k] as u64,
    };
    let step = super::series::INTERVAL.as_secs_f64();
    let samples = series.t_s.iter().enumerate().map(sample).take_while(|sample| sample.t_s < end + step);
    let mut showing = Showing::of(samples.collect(), spec.bytes, finish_s);
    showing.timeouts = flow.timeouts;
    showing
}
