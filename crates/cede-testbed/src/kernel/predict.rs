//! What the simulated world makes of the experiment.

use super::showing::{INTERVAL, Sample, Showing};
use super::spec::KernelSpec;
use crate::predict::{outcome_of, payload_shares};
use cede_lab::run::RunError;
use cede_lab::scenario::{Buffer, ControllerSpec, Scenario, Topology};

/// Access links as good as none, as between namespaces; receivers that acknowledge as the kernel does.
const SCENARIO: &str = r#"
name = "kernel"
description = "Two TCP flows: the first alone, both, the second alone"
duration = "160 s"
[topology]
access_rate = "10 Gbit/s"
access_delay = "0 s"
[link]
rate = "20 Mbit/s"
delay = "20 ms"
buffer = "200 ms"
[[flow]]
name = "first"
protocol = "tcp"
controller = "cubic"
tcp = { ack = "linux", min_rto = "200 ms", send_buffer = "8 MiB" }
stop = "120 s"
[[flow]]
name = "second"
protocol = "tcp"
controller = "bbr"
tcp = { ack = "linux", min_rto = "200 ms", send_buffer = "8 MiB" }
"#;

/// Runs it in virtual time. `go_on` is asked now and then.
///
/// # Errors
/// [`RunError::Interrupted`] where `go_on` said no.
pub fn predict(spec: &KernelSpec, go_on: &mut dyn FnMut() -> bool) -> Result<Showing, RunError> {
    let outcome = outcome_of(&scenario(spec), go_on)?;
    let series = &outcome.series;
    let payload = payload_shares(&outcome);
    let sample = |(k, &t_s): (usize, &f64)| {
        let queue = series.queue_mean_ms[0][k];
        Sample {
            t_s,
            span_s: INTERVAL.as_secs_f64(),
            queue_ms: if queue.is_finite() { queue } else { 0.0 },
            mbps: [0, 1].map(|flow: usize| series.flows[flow].rate_mbps[k] * payload[flow]),
        }
    };
    Ok(Showing::of(spec, series.t_s.iter().enumerate().map(sample).collect()))
}

fn scenario(spec: &KernelSpec) -> Scenario {
    let mut scenario = Scenario::parse("kernel", SCENARIO).expect("the scenario of two flows is sound");
    scenario.duration = spec.duration();
    scenario.record.interval = INTERVAL;
    if let Topology::Dumbbell(dumbbell) = &mut scenario.topology {
        dumbbell.link.rate = spec.rate;
        // The way back was read as a copy of the way there.
        (dumbbell.link.delay, dumbbell.return_link.delay) = (spec.rtt / 2, spec.rtt / 2);
        dumbbell.link.buffer = Buffer::Time(spec.buffer);
    }
    for (index, [start, stop]) in spec.flows().into_iter().enumerate() {
        let flow = &mut scenario.flows[index];
        flow.controller = ControllerSpec::of_kernel(&spec.controls[index]);
        (flow.start, flow.stop) = (start, Some(stop));
    }
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Duration;

    #[test]
    fn the_round_trip_is_the_one_that_was_asked_for() {
        let rtt = Duration::from_millis(80);
        let Topology::Dumbbell(dumbbell) = scenario(&KernelSpec { rtt, ..KernelSpec::default() }).topology
        else {
            panic!("a dumbbell")
        };
        assert_eq!(dumbbell.link.delay + dumbbell.return_link.delay, rtt);
    }
}
