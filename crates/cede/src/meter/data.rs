//! What the meter found, for other programs.

use super::show::socket;
use super::{Findings, MeterArgs};
use crate::failure::Failure;
use crate::screen;
pub use cede_meter::json::{counters, host, summary};
use cede_meter::json::{estimator, flow};
use cede_meter::{QueueSample, Report};
use cede_units::Duration;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Lines that are printed at once.
const BATCH_LINES: usize = 4096;

/// One document: counters, hosts, and flows where they were asked for. It is printed as it is made: of a million hosts it has
/// 800 MB, and as much of a million flows.
pub fn print_json(args: &MeterArgs, findings: &Findings) -> Result<(), Failure> {
    screen::print_with(|out| {
        serde_json::to_writer_pretty(&mut *out, &Document { args, findings })?;
        out.write_all(b"\n")
    })
}

/// The same in one line.
pub fn print_json_line(args: &MeterArgs, findings: &Findings) -> Result<(), Failure> {
    screen::print_with(|out| {
        serde_json::to_writer(&mut *out, &Document { args, findings })?;
        out.write_all(b"\n")
    })
}

struct Document<'a> {
    args: &'a MeterArgs,
    findings: &'a Findings,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { args, findings } = self;
        let mut members = members(args, &findings.report);
        if let Some(lost) = findings.lost {
            members.insert("lost_packets".to_string(), lost.into());
        }
        members.insert("hosts".to_string(), Value::Null);
        if args.flows {
            members.insert("flows".to_string(), Value::Null);
        }
        let mut map = serializer.serialize_map(Some(members.len()))?;
        for (name, value) in &members {
            match name.as_str() {
                "flows" => map.serialize_entry(name, &Each(&findings.flows, flow))?,
                "hosts" => map.serialize_entry(name, &Each(&findings.report.hosts, host))?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

/// Values that are made one after the other.
struct Each<'a, T>(&'a [T], fn(&T) -> Value);

impl<T> Serialize for Each<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(self.1))
    }
}

/// All but hosts and flows.
fn members(args: &MeterArgs, report: &Report) -> Map<String, Value> {
    let members = json!({
        "cede": env!("CARGO_PKG_VERSION"),
        "files": args.veil.names(&args.files),
        "interface": (!args.live.interfaces.is_empty()).then(|| args.live.interfaces.join(" ")),
        "estimator": estimator(args.estimator()),
        "base_window_s": args.base.map(Duration::as_secs_f64),
        "counters": counters(&report.counters),
        "hosts_with_too_few_samples": report.hosts_with_too_little,
        "udp_flows_that_are_no_utp": report.other_udp_flows,
        "tcp_flows_without_timestamps": report.timeless_tcp_flows,
        "tcp_senders_at_no_known_rate": report.odd_tcp_clocks,
    });
    if let Value::Object(members) = members { members } else { Map::new() }
}

/// Every sample, a line each.
pub fn series(samples: &[QueueSample], as_json: bool) -> Result<(), Failure> {
    if !as_json {
        screen::print("time_us,from,to,protocol,estimator,queue_us\n")?;
    }
    for batch in samples.chunks(BATCH_LINES) {
        let mut out = String::new();
        for sample in batch {
            let line = if as_json { json_line(sample) } else { csv_line(sample) };
            let _ = writeln!(out, "{line}");
        }
        screen::print(&out)?;
    }
    Ok(())
}

fn csv_line(sample: &QueueSample) -> String {
    let (from, to) = (socket(sample.source), socket(sample.destination));
    let (time_us, queue_us) = (sample.delay.time_us, sample.delay.queue_us);
    format!("{time_us},{from},{to},{},{},{queue_us:.1}", sample.protocol, estimator(sample.estimator))
}

fn json_line(sample: &QueueSample) -> String {
    let line = json!({
        "time_us": sample.delay.time_us,
        "from": socket(sample.source),
        "to": socket(sample.destination),
        "protocol": sample.protocol.to_string(),
        "estimator": estimator(sample.estimator),
        "queue_us": sample.delay.queue_us,
    });
    line.to_string()
}
