//! Reports as JSON, for programs (feature `json`); the names are those of `docs/meter.md`.

use crate::{Counters, Estimator, FlowReport, HostReport, RoundTrip, Socket, Summary};
use core::net::SocketAddr;
use serde_json::{Value, json};

/// What an estimate is called.
#[must_use]
pub const fn estimator(estimator: Estimator) -> &'static str {
    match estimator {
        Estimator::Direct => "direct",
        Estimator::Echoed => "echoed",
    }
}

/// What became of the packets.
#[must_use]
pub fn counters(counters: &Counters) -> Value {
    json!({
        "packets": counters.packets,
        "bytes": counters.bytes,
        "flows": counters.flows,
        "other_packets": counters.other,
        "packets_of_unknown_link_types": counters.unread,
        "fragments": counters.fragments,
        "cut_packets": counters.cut,
        "packets_without_time": counters.timeless,
        "packets_seen_twice": counters.seen_twice,
        "packets_before_a_queue_alone": counters.early,
        "packets_that_may_count_twice": counters.taken_again,
        "packets_outside_time": counters.outside,
        "packets_that_do_not_pass": counters.filtered,
        "flows_given_up": counters.evicted,
        "samples_left_out": counters.thinned,
        "unknown_link_type": counters.unknown_link_type,
        "first_ns": counters.span_ns.map(|span| span.0),
        "last_ns": counters.span_ns.map(|span| span.1),
    })
}

/// A host.
#[must_use]
pub fn host(host: &HostReport) -> Value {
    json!({
        "address": host.address.to_string(),
        "flows": host.flows,
        "queue": summary(&host.all),
        "utp": host.utp.as_ref().map(summary),
        "tcp": host.tcp.as_ref().map(summary),
        "clock_hz": host.clock_hz,
        "round_trip": host.round_trip.as_ref().map(round_trip),
        "flags": host.flags.names().collect::<Vec<_>>(),
    })
}

/// A direction of a flow.
#[must_use]
pub fn flow(flow: &FlowReport) -> Value {
    json!({
        "from": socket(flow.source),
        "to": socket(flow.destination),
        "protocol": flow.protocol.to_string(),
        "packets": flow.packets,
        "bytes": flow.bytes,
        "first_us": flow.span_us.0,
        "last_us": flow.span_us.1,
        "direct": flow.direct.as_ref().map(summary),
        "echoed": flow.echoed.as_ref().map(summary),
        "clock_hz": flow.clock_hz,
        "drift_ppm": flow.drift_ppm,
        "round_trip": flow.round_trip.as_ref().map(round_trip),
        "flags": flow.flags.names().collect::<Vec<_>>(),
    })
}

/// Delays in numbers.
#[must_use]
pub fn summary(summary: &Summary) -> Value {
    json!({
        "samples": summary.samples,
        "time_mean_ms": summary.time_mean_ms,
        "sample_mean_ms": summary.sample_mean_ms,
        "p50_ms": summary.p50_ms,
        "p95_ms": summary.p95_ms,
        "p99_ms": summary.p99_ms,
        "max_ms": summary.max_ms,
        "above_100ms_s": summary.bloated_s,
        "covered_s": summary.covered_s,
    })
}

fn round_trip(trip: &RoundTrip) -> Value {
    json!({ "samples": trip.samples, "min_ms": trip.min_ms, "mean_ms": trip.mean_ms })
}

/// `192.0.2.1:80`, `[2001:db8::1]:80`.
fn socket(socket: Socket) -> String {
    SocketAddr::new(socket.address, socket.port).to_string()
}
