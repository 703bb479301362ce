//! A run as flent reads it.
//!
//! Sources: flent's data file, version 4 (a JSON document; `flent/resultset.py` of flent 2.3.0), and its test `tcp_nup`, of
//! whose series the run takes the names, so that all plots of that test draw it: each flow is an upload, by its number from 1 in
//! the order of the scenario; sums, means and Jain's index are over all flows, and the ping is what one would have met at the
//! main link, the round trip without queues included where it is the same for all (a dumbbell).
//!
//! **What it leaves out.** flent draws no names of flows: these stand, with their transports and controllers, in `SERIES_META`
//! alone. Times count from the beginning of 1970, so that the same run is the same file.

use super::Subject;
use crate::meter::jain;
use crate::scenario::{Scenario, Topology};
use serde_json::{Map, Value, json};

const BEGIN: &str = "1970-01-01T00:00:00.000000Z";
const PING: &str = "Ping (ms) ICMP";

/// The document; packed by gzip it is a `.flent.gz` file.
#[must_use]
pub fn flent(subject: &Subject<'_>) -> Value {
    let scenario = subject.scenario;
    let series = &subject.outcome.series;
    let names: Vec<String> = (1..=series.flows.len()).map(|number| format!("TCP upload::{number}")).collect();
    let rates: Vec<&[f64]> = series.flows.iter().map(|flow| flow.rate_mbps.as_slice()).collect();
    let mut results = Map::new();
    for (name, rates) in names.iter().zip(&rates) {
        results.insert(name.clone(), known(rates.iter().copied()));
    }
    let at = |index: usize| rates.iter().filter_map(move |flow| flow.get(index).copied());
    let over_flows = |of: &dyn Fn(usize) -> f64| known((0..series.t_s.len()).map(of));
    let flows = rates.len() as f64;
    results.insert(upload_of_all("sum"), over_flows(&|index| at(index).sum()));
    results.insert(upload_of_all("avg"), over_flows(&|index| at(index).sum::<f64>() / flows));
    results.insert(upload_of_all("fairness"), over_flows(&|index| jain(at(index)).unwrap_or(f64::NAN)));
    results.insert(PING.to_string(), known(pings(subject)));
    json!({
        "version": 4,
        "metadata": metadata(subject, &names),
        "x_values": series.t_s,
        "results": results,
        "raw_values": raw_values(subject, &names),
        "cede": { "version": env!("CARGO_PKG_VERSION"), "scenario": scenario.to_toml() },
    })
}

fn upload_of_all(what: &str) -> String {
    format!("TCP upload {what}")
}

/// Numbers, null where they are none.
fn known(values: impl Iterator<Item = f64>) -> Value {
    values.map(Value::from).collect()
}

/// What a ping would have taken in each interval.
fn pings<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = f64> + use<'a> {
    let base_ms = base_rtt_ms(subject.scenario).unwrap_or(0.0);
    let queues = subject.outcome.series.queue_mean_ms.get(subject.main_link());
    queues.into_iter().flatten().map(move |queue_ms| base_ms + queue_ms)
}

/// The round trip of all flows without queues, where it is the same.
fn base_rtt_ms(scenario: &Scenario) -> Option<f64> {
    match &scenario.topology {
        Topology::Dumbbell(dumbbell) => Some(dumbbell.base_rtt().as_millis_f64()),
        _ => None,
    }
}

fn metadata(subject: &Subject<'_>, names: &[String]) -> Value {
    let scenario = subject.scenario;
    let length_s = scenario.duration.as_secs_f64();
    let about = |(flow, name): (&crate::outcome::FlowOutcome, &String)| {
        let meta = json!({
            "UNITS": "Mbits/s", "FLOW": flow.name, "PROTOCOL": flow.protocol, "CONG_CONTROL": flow.controller,
            "MEAN_VALUE": flow.rate_mbps,
        });
        (name.clone(), meta)
    };
    let mut meta: Map<String, Value> = subject.outcome.flows.iter().zip(names).map(about).collect();
    meta.insert(PING.to_string(), json!({ "UNITS": "ms", "RTT_WITHOUT_QUEUES": base_rtt_ms(scenario) }));
    json!({
        "NAME": "tcp_nup",
        "TITLE": scenario.name,
        "NOTE": scenario.description,
        "TIME": BEGIN,
        "T0": BEGIN,
        "LENGTH": length_s,
        "TOTAL_LENGTH": length_s,
        "STEP_SIZE": scenario.record.interval.as_secs_f64(),
        "DELAY": 0,
        "HOST": "simulated",
        "LOCAL_HOST": "simulated",
        "HOSTS": ["simulated"],
        "TEST_PARAMETERS": { "upload_streams": names.len().to_string() },
        "SERIES_META": meta,
    })
}

/// Rates with the round trip that each transport estimates.
fn raw_values(subject: &Subject<'_>, names: &[String]) -> Value {
    let series = &subject.outcome.series;
    let points = |(name, flow): (&String, &crate::outcome::FlowSeries)| {
        let values = series.t_s.iter().zip(&flow.rate_mbps).zip(&flow.srtt_ms);
        let points = values.map(|((t, rate), rtt)| json!({ "t": t, "val": rate, "tcp_rtt": rtt }));
        (name.clone(), points.collect::<Value>())
    };
    let mut raw: Map<String, Value> = names.iter().zip(&series.flows).map(points).collect();
    let seen = series.t_s.iter().zip(pings(subject)).filter(|(_, ping)| ping.is_finite());
    raw.insert(PING.to_string(), seen.map(|(t, ping)| json!({ "t": t, "val": ping })).collect());
    Value::Object(raw)
}
