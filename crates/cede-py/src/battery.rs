//! The battery.

use crate::controller::entry;
use crate::errors::ScenarioError;
use crate::scenario::{name_of, params, raised};
use crate::slots::{Fault, Place};
use cede_cc::registry;
use cede_lab::check::{Battery, Findings, Subject};
use cede_lab::scenario::ProtocolKind;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often it is looked whether somebody wants it to end.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the battery, or a part of it, and gives the findings as JSON. `controller` is a name of the registry or a class.
#[pyfunction]
pub fn check(
    py: Python<'_>,
    controller: &Bound<'_, PyAny>,
    only: Vec<String>,
    over: &str,
    settings: Vec<String>,
    vary: Option<u64>,
    jobs: Option<usize>,
) -> PyResult<String> {
    let fault = Fault::default();
    let (subject, place) = subject(controller, &fault)?;
    if place.is_some() && !settings.is_empty() {
        let text = "a controller of Python's has no parameters to set: give them to whatever makes it";
        return Err(PyValueError::new_err(text));
    }
    let over = match over {
        "utp" => ProtocolKind::Utp,
        "tcp" => ProtocolKind::Tcp,
        _ => return Err(PyValueError::new_err(format!("over is {over:?}: \"utp\" or \"tcp\""))),
    };
    let mut battery = Battery::new(subject).over(over);
    if !only.is_empty() {
        battery = battery.only(&only).map_err(PyValueError::new_err)?;
    }
    battery = battery.set_all(settings.iter().map(String::as_str)).map_err(ScenarioError::new_err)?;
    battery = vary.into_iter().fold(battery, Battery::vary);
    // One interpreter runs one of its threads at a time.
    let jobs = if place.is_some() { Some(1) } else { jobs };
    battery = jobs.into_iter().fold(battery, Battery::jobs);
    let findings = run(py, &battery, &fault)?;
    serde_json::to_string(&findings).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Ctrl-C ends it, and whatever a controller raises. Only the thread that called hears of the former, so the work is done on others.
fn run(py: Python<'_>, battery: &Battery, fault: &Fault) -> PyResult<Vec<Findings>> {
    let stop = AtomicBool::new(false);
    let hear = |_| !stop.load(Ordering::Relaxed) && !fault.is_there();
    let (findings, interrupt) = py.detach(|| {
        std::thread::scope(|scope| {
            let work = scope.spawn(|| battery.run(&hear));
            let mut interrupt = None;
            while !work.is_finished() {
                std::thread::sleep(LOOK);
                interrupt = interrupt.or_else(|| Python::attach(|py| py.check_signals()).err());
                stop.store(interrupt.is_some(), Ordering::Relaxed);
            }
            (work.join(), interrupt)
        })
    });
    let findings =
        findings.map_err(|_| PyRuntimeError::new_err("the battery panicked: a fault of cede's"))?;
    let findings = findings.map_err(|error| raised(fault, interrupt, &error))?;
    // It may have come with the last case's last call.
    fault.take().map_or(Ok(findings), Err)
}

/// What is checked, and the place that a class has meanwhile.
fn subject(controller: &Bound<'_, PyAny>, fault: &Fault) -> PyResult<(Subject, Option<Place>)> {
    if let Ok(name) = controller.extract::<String>() {
        let known = registry::find(&name);
        let entry = known.ok_or_else(|| {
            PyValueError::new_err(format!("no controller is called {name}: see cede.controllers()"))
        })?;
        return Ok((Subject::new(entry), None));
    }
    let place = Place::of(controller.clone().unbind(), fault.clone());
    let subject = Subject { params: params(&place), ..Subject::new(&entry(name_of(controller))) };
    Ok((subject, Some(place)))
}
