//! How each flow stands, interval by interval.

use super::folder::Folder;
use super::output::RecordError;
use super::rows::{Column, Format, Rows, Value, number, text, time, whole};
use crate::run::FlowSample;
use cede_cc::Phase;
use cede_units::Duration;

pub(super) const FLOW_COLUMNS: &[Column] = &[
    time("t_s", "The end of the interval, in seconds since the beginning of the run."),
    text("flow", "The flow's name."),
    number("rate_mbps", "What reached the flow's receiver in the interval, headers included, in Mbit/s."),
    number("cwnd_bytes", "The congestion window in octets; not known before the connection is made."),
    number("ssthresh_bytes", "The slow-start threshold in octets, where the controller has one."),
    number("srtt_ms", "The smoothed round-trip time in milliseconds, once there is a sample."),
    number(
        "believed_queue_ms",
        "The queueing delay that the controller believes in, in milliseconds, where it has a notion of one.",
    ),
    whole("in_flight_bytes", "Octets that are under way."),
    whole("data_packets_sent", "Data packets sent since the beginning, those that were sent again included."),
    whole("retransmissions", "Data packets sent again since the beginning."),
    whole("losses", "Packets that acknowledgements declared lost, since the beginning."),
    whole("timeouts", "Retransmission timeouts since the beginning."),
];
pub(super) const CONTROLLER_COLUMNS: &[Column] = &[
    time("t_s", "The end of the interval, in seconds since the beginning of the run."),
    text("flow", "The flow's name."),
    text(
        "phase",
        "Where the controller stands, such as slow_start, congestion_avoidance, recovery or a phase of its own.",
    ),
    number("cwnd_bytes", "The congestion window in octets; not known before the connection is made."),
    number("pacing_mbps", "The rate at which the controller paces, in Mbit/s, where it does."),
    number(
        "base_delay_ms",
        "The delay of the empty path that the controller believes in, in milliseconds; of one-way delays it contains the clocks' unknown offset.",
    ),
    number(
        "believed_queue_ms",
        "The queueing delay that the controller believes in, in milliseconds, where it has a notion of one.",
    ),
    text("note", "What else the controller says of itself."),
];

/// `flows` and, where asked for, `controllers`.
#[derive(Debug)]
pub(super) struct FlowRows {
    flows: Rows,
    controllers: Option<Rows>,
}

impl FlowRows {
    pub fn create(folder: &Folder, formats: &[Format], controllers: bool) -> Result<Self, RecordError> {
        let open = |stem, columns| Rows::create(folder.path(), stem, columns, formats);
        let flows = open("flows", FLOW_COLUMNS)?;
        let controllers = controllers.then(|| open("controllers", CONTROLLER_COLUMNS)).transpose()?;
        Ok(Self { flows, controllers })
    }

    pub fn sample(&mut self, sample: &FlowSample<'_>) {
        let view = sample.view;
        let known = |value: f64| Value::Number(if view.connected { value } else { f64::NAN });
        let srtt = (!view.srtt.is_zero()).then(|| view.srtt.as_millis_f64());
        self.flows.push(&[
            Value::Time(sample.now),
            Value::Text(&sample.flow.name),
            Value::Number(sample.rate_mbps),
            known(view.cwnd_bytes),
            optional(view.controller.ssthresh_bytes),
            optional(srtt),
            optional(view.controller.queueing_delay.map(Duration::as_millis_f64)),
            Value::Whole(view.in_flight_bytes),
            Value::Whole(view.data_packets_sent),
            Value::Whole(view.retransmissions),
            Value::Whole(view.losses),
            Value::Whole(view.timeouts),
        ]);
        if let Some(controllers) = self.controllers.as_mut().filter(|_| view.connected) {
            push_controller(controllers, sample);
        }
    }

    pub fn has_failed(&self) -> bool {
        self.flows.has_failed() || self.controllers.as_ref().is_some_and(Rows::has_failed)
    }

    pub fn finish(&mut self) -> Result<Vec<String>, RecordError> {
        let mut names = self.flows.finish()?;
        if let Some(controllers) = &mut self.controllers {
            names.extend(controllers.finish()?);
        }
        Ok(names)
    }
}

fn push_controller(rows: &mut Rows, sample: &FlowSample<'_>) {
    let controller = &sample.view.controller;
    rows.push(&[
        Value::Time(sample.now),
        Value::Text(&sample.flow.name),
        Value::Text(&phase_name(controller.phase)),
        Value::Number(controller.cwnd_bytes),
        optional(controller.pacing_rate.map(|rate| rate.as_mbit_f64())),
        optional(controller.base_delay_ns.map(|ns| ns as f64 / 1e6)),
        optional(controller.queueing_delay.map(Duration::as_millis_f64)),
        Value::Text(controller.note.as_deref().unwrap_or("")),
    ]);
}

fn optional(value: Option<f64>) -> Value<'static> {
    Value::Number(value.unwrap_or(f64::NAN))
}

/// A phase as records write it.
pub(super) fn phase_name(phase: Phase) -> String {
    let name = match phase {
        Phase::SlowStart => "slow start",
        Phase::CongestionAvoidance => "congestion avoidance",
        Phase::Recovery => "recovery",
        Phase::Named(name) => name,
    };
    name.replace(' ', "_")
}
