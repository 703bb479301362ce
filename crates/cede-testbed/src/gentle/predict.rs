//! What the simulated world makes of the experiment.

use super::showing::{INTERVAL, Sample, Showing};
use super::spec::GentleSpec;
use crate::predict::{outcome_of, payload_shares};
use cede_lab::run::RunError;
use cede_lab::scenario::{Buffer, ControllerSpec, Scenario, Topology};
use cede_real::ControllerChoice;

/// Access links as good as none, as between namespaces; a receiver that acknowledges as the kernel does.
const SCENARIO: &str = r#"
name = "gentle"
description = "A uTP flow, joined for a while by a TCP flow"
duration = "110 s"
[topology]
access_rate = "10 Gbit/s"
access_delay = "0 s"
[link]
rate = "10 Mbit/s"
delay = "50 us"
buffer = "1 s"
[[flow]]
name = "utp"
[flow.utp]
mtu_search = true
[[flow]]
name = "tcp"
protocol = "tcp"
controller = "cubic"
start = "30 s"
stop = "70 s"
[flow.tcp]
ack = "linux"
min_rto = "200 ms"
send_buffer = "1 MiB"
"#;

/// Runs it in virtual time. `go_on` is asked now and then.
///
/// # Errors
/// [`RunError::Interrupted`] where `go_on` said no.
pub fn predict(spec: &GentleSpec, go_on: &mut dyn FnMut() -> bool) -> Result<Showing, RunError> {
    let outcome = outcome_of(&scenario(spec), go_on)?;
    let series = &outcome.series;
    let payload = payload_shares(&outcome);
    let sample = |(k, &t_s): (usize, &f64)| {
        let (utp_mbps, tcp_mbps) = (series.flows[0].rate_mbps[k], series.flows[1].rate_mbps[k]);
        let queue = series.queue_mean_ms[0][k];
        Sample {
            t_s,
            span_s: INTERVAL.as_secs_f64(),
            queue_ms: if queue.is_finite() { queue } else { 0.0 },
            utilisation: (utp_mbps + tcp_mbps) / spec.rate.as_mbit_f64(),
            utp_mbps: utp_mbps * payload[0],
            tcp_mbps: tcp_mbps * payload[1],
        }
    };
    Ok(Showing::of(spec, series.t_s.iter().enumerate().map(sample).collect()))
}

fn scenario(spec: &GentleSpec) -> Scenario {
    let mut scenario = Scenario::parse("gentle", SCENARIO).expect("the scenario of gentleness is sound");
    scenario.duration = spec.duration();
    scenario.record.interval = INTERVAL;
    if let Topology::Dumbbell(dumbbell) = &mut scenario.topology {
        dumbbell.link.rate = spec.rate;
        // The way back was read as a copy of the way there.
        let delay = dumbbell.link.delay.max(spec.rtt / 2);
        (dumbbell.link.delay, dumbbell.return_link.delay) = (delay, delay);
        dumbbell.link.buffer = Buffer::Time(spec.buffer);
    }
    if let ControllerChoice::Named { name, params } = spec.controller() {
        scenario.flows[0].controller = ControllerSpec { name, params };
    }
    scenario.flows[1].controller = ControllerSpec::of_kernel(&spec.against);
    scenario.flows[1].start = spec.alone;
    scenario.flows[1].stop = Some(spec.alone + spec.joined);
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Duration;

    #[test]
    fn the_round_trip_is_the_one_that_was_asked_for_and_so_is_the_other_flow() {
        let rtt = Duration::from_millis(80);
        let spec = GentleSpec { rtt, against: "bbr".to_string(), ..GentleSpec::default() };
        let scenario = scenario(&spec);
        assert_eq!(scenario.flows[1].controller.name, "bbr");
        let Topology::Dumbbell(dumbbell) = scenario.topology else { panic!("a dumbbell") };
        assert_eq!(dumbbell.link.delay + dumbbell.return_link.delay, rtt);
    }
}
