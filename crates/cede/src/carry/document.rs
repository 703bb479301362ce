//! Tests as JSON: the names are iperf3's where the meaning is (`rtt` in microseconds, `snd_cwnd` in octets), and what
//! iperf3 does not have carries its unit.

use super::table::{Path, Row, Rows};
use cede_carry::bench::{ControllerSpec, Limit, Outcome, Peer, Plan, Sample};
use cede_carry::{Target, message};
use cede_units::Rate;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is known when the streams stand.
pub fn start(target: &Target, peer: &Peer, plan: &Plan, spec: &ControllerSpec, is_protected: bool) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "connected": (1..=plan.streams).map(|stream| connected(stream, peer)).collect::<Vec<_>>(),
        "version": concat!("cede ", env!("CARGO_PKG_VERSION")),
        "protocol_version": message::VERSION,
        "protected": is_protected,
        "timestamp": { "timesecs": now.as_secs() },
        "connecting_to": { "host": target.host, "port": target.port },
        "test_start": test_start(plan, spec),
    })
}

fn connected(stream: u16, peer: &Peer) -> Value {
    json!({
        "socket": stream,
        "local_host": peer.local.ip().to_string(),
        "local_port": peer.local.port(),
        "remote_host": peer.remote.ip().to_canonical().to_string(),
        "remote_port": peer.remote.port(),
    })
}

fn test_start(plan: &Plan, spec: &ControllerSpec) -> Value {
    let (seconds, bytes) = match plan.limit {
        Limit::Time(span) => (span.as_secs_f64(), 0),
        Limit::Bytes(bytes) => (0.0, bytes),
    };
    json!({
        "protocol": "uTP",
        "num_streams": plan.streams,
        "duration": seconds,
        "bytes": bytes,
        "reverse": u8::from(plan.reverse),
        "target_bitrate": plan.rate.map_or(0, Rate::bits_per_sec),
        "interval_s": plan.interval.as_secs_f64(),
        "controller": spec.name,
        "controller_parameters": spec.params.iter().cloned().collect::<BTreeMap<_, _>>(),
    })
}

/// One interval.
pub fn interval(rows: &Rows, is_sender: bool) -> Value {
    let numbered = rows.streams.iter().enumerate();
    let streams: Vec<Value> =
        numbered.map(|(index, row)| with_socket(index, of_row(row, is_sender))).collect();
    json!({ "streams": streams, "sum": of_row(&rows.sum, is_sender) })
}

/// The end: what the sender knows, and what the receiver counted.
pub fn end(outcome: &Outcome, is_sender: bool, cpu_s: Option<f64>) -> Value {
    let (sent, received) =
        if is_sender { (&outcome.here, &outcome.there) } else { (&outcome.there, &outcome.here) };
    let sent = Rows::between([&[], sent], [&[], &[]], true);
    let received = totals(received);
    let streams: Vec<Value> = (0..sent.streams.len().max(received.streams.len()))
        .map(|index| {
            let side =
                |rows: &Rows| rows.streams.get(index).map(|row| with_socket(index, of_row(row, is_sender)));
            json!({ "sender": side(&sent), "receiver": side(&received) })
        })
        .collect();
    let sum = |rows: &Rows| (!rows.streams.is_empty()).then(|| of_row(&rows.sum, is_sender));
    json!({
        "streams": streams,
        "sum_sent": sum(&sent),
        "sum_received": sum(&received),
        "cpu_s": cpu_s,
        "interrupted": outcome.was_stopped,
    })
}

/// What a receiver counted; it knows nothing of the path.
pub fn totals(samples: &[Sample]) -> Rows {
    Rows::between([&[], samples], [&[], &[]], false)
}

fn with_socket(index: usize, mut row: Value) -> Value {
    if let Value::Object(row) = &mut row {
        row.insert("socket".to_owned(), Value::from(index + 1));
    }
    row
}

fn of_row(row: &Row, is_sender: bool) -> Value {
    let mut object = Map::new();
    object.insert("start".into(), row.start.as_secs_f64().into());
    object.insert("end".into(), row.end.as_secs_f64().into());
    object.insert("seconds".into(), row.span().as_secs_f64().into());
    object.insert("bytes".into(), row.bytes.into());
    object.insert("bits_per_second".into(), row.rate().bits_per_sec().into());
    object.insert("sender".into(), is_sender.into());
    if let Some(path) = &row.path {
        of_path(path, &mut object);
    }
    Value::Object(object)
}

fn of_path(path: &Path, object: &mut Map<String, Value>) {
    object.insert("retransmits".into(), path.retransmissions.into());
    object.insert("snd_cwnd".into(), path.cwnd_bytes.into());
    object.insert("rtt".into(), (path.rtt.as_nanos() / 1000).into());
    let queue_ms = path.queueing_delay.map(cede_units::Duration::as_millis_f64);
    object.insert("queueing_delay_ms".into(), queue_ms.into());
    let source = if path.is_queue_estimated { "rtt" } else { "controller" };
    object.insert("queueing_delay_source".into(), source.into());
}
