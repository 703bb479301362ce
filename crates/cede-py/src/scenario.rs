//! Scenarios and swarms.

use crate::controller::{SLOT, entry};
use crate::errors::ScenarioError;
use crate::slots::{Fault, Place, interned};
use cede_cc::{ParamValue, Params};
use cede_lab::outcome::Outcome;
use cede_lab::run::{Run, RunError, Watcher};
use cede_lab::scenario::{Overrides, Problem, Scenario, built_in, is_swarm, parse_swarm, render};
use cede_lab::swarm::{self, SwarmWatcher};
use cede_units::Instant;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::{Value, json};

/// The text of a built-in scenario, or None.
#[pyfunction]
pub fn built_in_text(name: &str) -> Option<&'static str> {
    built_in(name).map(|found| found.text)
}

/// Runs a scenario or a swarm: what came of it as JSON, and a scenario's series. `controllers` are pairs of a flow's name and a class.
#[pyfunction]
pub fn run<'py>(
    py: Python<'py>,
    source: &str,
    text: &str,
    overrides: Vec<String>,
    controllers: Vec<(String, Py<PyAny>)>,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let overrides = Overrides::new(overrides);
    if is_swarm(text) {
        if !controllers.is_empty() {
            return Err(ScenarioError::new_err(
                "a swarm's peers take no controllers of Python's: run a scenario of flows",
            ));
        }
        let json = run_swarm(py, source, text, &overrides)?;
        return Ok((json.to_string(), PyDict::new(py)));
    }
    let scenario = Scenario::parse_with(source, text, &overrides).map_err(|problems| error_of(&problems))?;
    let fault = Fault::default();
    let stand_ins = stand_ins(py, &scenario, controllers, &fault)?;
    let mut watch = Watch { fault: &fault, interrupt: None };
    let done = py.detach(|| {
        let run = stand_ins.iter().fold(Run::new(&scenario), |run, StandIn { flow, name, place }| {
            run.stand_in_of(flow, entry(name), params(place))
        });
        run.go(&mut watch).map(|(outcome, _)| outcome)
    });
    let interrupt = watch.interrupt.take();
    let outcome = done.map_err(|error| raised(&fault, interrupt, &error))?;
    Ok((summary(&scenario, &outcome).to_string(), columns(py, &outcome)?))
}

/// A class in the place of the controller of a flow.
struct StandIn {
    flow: String,
    name: &'static str,
    place: Place,
}

fn stand_ins(
    py: Python<'_>,
    scenario: &Scenario,
    controllers: Vec<(String, Py<PyAny>)>,
    fault: &Fault,
) -> PyResult<Vec<StandIn>> {
    let known: Vec<&str> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    let stand_in = |(flow, class): (String, Py<PyAny>)| {
        if !known.contains(&flow.as_str()) {
            let text = format!("no flow is called {flow}; there are {}", known.join(", "));
            return Err(ScenarioError::new_err(text));
        }
        let name = name_of(class.bind(py));
        Ok(StandIn { flow, name, place: Place::of(class, fault.clone()) })
    };
    controllers.into_iter().map(stand_in).collect()
}

/// All but the series.
fn summary(scenario: &Scenario, outcome: &Outcome) -> Value {
    let mut json = serde_json::to_value(outcome).unwrap_or(Value::Null);
    json["name"] = scenario.name.as_str().into();
    json["seed"] = scenario.seed.into();
    json["assertions"] = json!(outcome.verdicts(scenario));
    json
}

/// The parameters of a controller in this place.
pub fn params(place: &Place) -> Params {
    let mut params = Params::new();
    params.set(SLOT, ParamValue::Number(f64::from(place.0)));
    params
}

/// What a class calls itself.
pub fn name_of(class: &Bound<'_, PyAny>) -> &'static str {
    let name = class.getattr("__name__").and_then(|name| name.extract::<String>());
    interned(&name.unwrap_or_else(|_| "python".to_string()))
}

/// What a run that was ended is raised as.
pub fn raised(fault: &Fault, interrupt: Option<PyErr>, error: &RunError) -> PyErr {
    fault.take().or(interrupt).unwrap_or_else(|| PyRuntimeError::new_err(error.to_string()))
}

fn error_of(problems: &[Problem]) -> PyErr {
    ScenarioError::new_err(render(problems))
}

fn run_swarm(py: Python<'_>, source: &str, text: &str, overrides: &Overrides) -> PyResult<Value> {
    let swarm = parse_swarm(source, text, overrides).map_err(|problems| error_of(&problems))?;
    let fault = Fault::default();
    let mut watch = Watch { fault: &fault, interrupt: None };
    let done = py.detach(|| swarm::run(&swarm, &mut watch));
    let interrupt = watch.interrupt.take();
    let outcome = done.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    if outcome.is_interrupted {
        return Err(interrupt.unwrap_or_else(|| PyKeyboardInterrupt::new_err(())));
    }
    Ok(swarm::to_json(&swarm, &outcome))
}

/// Ends a run for Ctrl-C, and where a controller has failed.
struct Watch<'a> {
    fault: &'a Fault,
    interrupt: Option<PyErr>,
}

impl Watch<'_> {
    fn goes_on(&mut self) -> bool {
        self.interrupt = Python::attach(|py| py.check_signals()).err();
        self.interrupt.is_none() && !self.fault.is_there()
    }
}

impl Watcher for Watch<'_> {
    fn progress(&mut self, _: Instant, _: Instant) -> bool {
        self.goes_on()
    }
}

impl SwarmWatcher for Watch<'_> {
    fn progress(&mut self, _: Instant, _: usize, _: usize) -> bool {
        self.goes_on()
    }
}

/// Series as octets of 64-bit numbers: `t_s`, `links` by name and `flows` by name.
fn columns<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let Outcome { series, links, flows, .. } = outcome;
    let all = PyDict::new(py);
    all.set_item("t_s", octets(py, &series.t_s))?;
    let by_link = PyDict::new(py);
    for ((link, mean), max) in links.iter().zip(&series.queue_mean_ms).zip(&series.queue_max_ms) {
        let of = [("queue_mean_ms", mean), ("queue_max_ms", max)];
        by_link.set_item(&link.name, dict(py, &of)?)?;
    }
    all.set_item("links", by_link)?;
    let by_flow = PyDict::new(py);
    for (of_flow, flow) in flows.iter().zip(&series.flows) {
        let of = [
            ("rate_mbps", &flow.rate_mbps),
            ("cwnd_bytes", &flow.cwnd_bytes),
            ("ssthresh_bytes", &flow.ssthresh_bytes),
            ("srtt_ms", &flow.srtt_ms),
            ("believed_queue_ms", &flow.believed_queue_ms),
            ("in_flight_bytes", &flow.in_flight_bytes),
            ("retransmissions", &flow.retransmissions),
        ];
        by_flow.set_item(&of_flow.name, dict(py, &of)?)?;
    }
    all.set_item("flows", by_flow)?;
    Ok(all)
}

fn dict<'py>(py: Python<'py>, columns: &[(&str, &Vec<f64>)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    columns.iter().try_for_each(|(name, values)| dict.set_item(name, octets(py, values)))?;
    Ok(dict)
}

/// As `array.array("d").frombytes` takes them.
pub fn octets<'py>(py: Python<'py>, values: &[f64]) -> Bound<'py, PyBytes> {
    let all: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    PyBytes::new(py, &all)
}
