//! A controller whose rules are a Python object's.
//!
//! The object is told of what happens, and its attributes say what is allowed: `cwnd_bytes`, and where it has them `pacing_bits_per_s`,
//! `burst_bytes` and `timer_s`. They are read after each call. `answers_marks` is read once.
//!
//! What an object raises ends the run, and is raised there ([`Fault`]); until then its last allowance holds.

use crate::feedback::{Feedback, Path, Sent, Timeout, seconds};
use crate::slots::{self, Fault};
use cede_cc::registry::Entry;
use cede_cc::{
    Allowance, Controller, ParamDoc, ParamError, ParamKind, Params, Phase, Settings, Snapshot, Tag,
};
use cede_units::{Duration, Instant, Rate};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The parameter that says which class it is.
pub const SLOT: &str = "slot";
const PARAMS: &[ParamDoc] = &[ParamDoc {
    name: SLOT,
    kind: ParamKind::Number { min: 0.0, max: u32::MAX as f64 },
    default: "0",
    doc: "Which class of Python's it is.",
}];

/// What the laboratory needs to know of a controller of this name.
pub fn entry(name: &'static str) -> Entry {
    Entry {
        name,
        summary: "A controller written in Python.",
        formula: "what its object says",
        source: "Python",
        params: PARAMS,
        responsive: true,
        experimental: true,
        build,
    }
}

fn build(params: &Params, path: &cede_cc::Path) -> Result<Box<dyn Controller>, ParamError> {
    let number = Settings::resolve(params, PARAMS)?.number(SLOT) as u32;
    let built = Python::attach(|py| {
        slots::with(number, |slot| slot.handles(py)).map(|found| Scripted::new(py, found, path))
    });
    Ok(Box::new(built.expect("a run holds the places of its controllers")))
}

/// What an object need not have.
#[derive(Clone, Copy, Default)]
struct Abilities {
    hears_sent: bool,
    hears_undo: bool,
    hears_timer: bool,
    hears_mss: bool,
    answers_marks: bool,
}

impl Abilities {
    fn of(object: &Bound<'_, PyAny>) -> Self {
        let has = |name: &str| object.hasattr(name).unwrap_or(false);
        let is_true = |name: &str| object.getattr(name).is_ok_and(|value| value.is_truthy().unwrap_or(false));
        Self {
            hears_sent: has("on_sent"),
            hears_undo: has("on_undo"),
            hears_timer: has("on_timer"),
            hears_mss: has("on_mss"),
            answers_marks: is_true("answers_marks"),
        }
    }
}

/// See the file's head.
struct Scripted {
    /// None where it could not be made.
    object: Option<Py<PyAny>>,
    abilities: Abilities,
    fault: Fault,
    allowance: Allowance,
    max_cwnd_bytes: u64,
    timer: Option<Instant>,
}

impl Scripted {
    fn new(py: Python<'_>, (class, fault): (Py<PyAny>, Fault), path: &cede_cc::Path) -> Self {
        let initial = u64::from(path.initial_cwnd_bytes.max(path.mss_bytes));
        let mut scripted = Self {
            object: None,
            abilities: Abilities::default(),
            fault,
            allowance: Allowance::window(initial.min(path.max_cwnd_bytes)),
            max_cwnd_bytes: path.max_cwnd_bytes,
            timer: None,
        };
        let made = class.bind(py).call1((Path::from(path),));
        let read = made.and_then(|object| {
            scripted.abilities = Abilities::of(&object);
            scripted.read(&object)?;
            scripted.object = Some(object.unbind());
            Ok(())
        });
        read.unwrap_or_else(|error| scripted.fault.put(error));
        scripted
    }

    /// Takes from the object's attributes what is allowed.
    fn read(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        let cwnd_bytes: f64 = number(object, intern!(py, "cwnd_bytes"))?.ok_or_else(|| {
            PyTypeError::new_err("a controller has an attribute cwnd_bytes: the octets that may be under way")
        })?;
        let pacing = number(object, intern!(py, "pacing_bits_per_s"))?;
        let burst_bytes = number(object, intern!(py, "burst_bytes"))?;
        self.allowance = Allowance {
            cwnd_bytes: (cwnd_bytes as u64).clamp(1, self.max_cwnd_bytes.max(1)),
            pacing_rate: pacing.map(|bits| Rate::from_bits_per_sec((bits as u64).max(1))),
            burst_bytes: burst_bytes.map_or(u32::MAX, |bytes| bytes as u32),
        };
        let timer_s = number(object, intern!(py, "timer_s"))?;
        self.timer = timer_s.map(|at_s| Instant::ZERO + Duration::from_secs_f64(at_s));
        Ok(())
    }

    /// Calls a method, and reads what is allowed since.
    fn call<T>(&mut self, tell: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        if self.fault.is_there() {
            return None;
        }
        let object = self.object.take()?;
        let told = Python::attach(|py| {
            let bound = object.bind(py);
            tell(py, bound).and_then(|answer| self.read(bound).map(|()| answer))
        });
        self.object = Some(object);
        told.map_err(|error| self.fault.put(error)).ok()
    }
}

/// A number that an attribute is, if it is there and not None.
fn number(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyResult<Option<f64>> {
    let Some(value) = object.getattr_opt(name)?.filter(|value| !value.is_none()) else { return Ok(None) };
    let number: f64 = value.extract()?;
    if number.is_finite() && number >= 0.0 {
        return Ok(Some(number));
    }
    Err(PyValueError::new_err(format!("{name} is {number}: it must be a finite number, and not below 0")))
}

impl Controller for Scripted {
    fn name(&self) -> &'static str {
        "python"
    }

    fn on_sent(&mut self, sent: &cede_cc::Sent) -> Tag {
        if !self.abilities.hears_sent {
            return 0;
        }
        let tell = |py: Python<'_>, object: &Bound<'_, PyAny>| {
            let tag = object.call_method1(intern!(py, "on_sent"), (Sent::from(sent),))?;
            if tag.is_none() { Ok(0) } else { tag.extract() }
        };
        self.call(tell).unwrap_or(0)
    }

    fn on_feedback(&mut self, feedback: &cede_cc::Feedback<'_>) -> Allowance {
        self.call(|py, object| {
            object.call_method1(intern!(py, "on_feedback"), (Feedback::from(feedback),)).map(drop)
        });
        self.allowance
    }

    fn on_undo(&mut self) -> Allowance {
        if self.abilities.hears_undo {
            self.call(|py, object| object.call_method0(intern!(py, "on_undo")).map(drop));
        }
        self.allowance
    }

    fn on_timeout(&mut self, timeout: &cede_cc::Timeout) -> Allowance {
        self.call(|py, object| {
            object.call_method1(intern!(py, "on_timeout"), (Timeout::from(timeout),)).map(drop)
        });
        self.allowance
    }

    fn on_timer(&mut self, now: Instant) -> Allowance {
        if self.abilities.hears_timer {
            self.call(|py, object| object.call_method1(intern!(py, "on_timer"), (seconds(now),)).map(drop));
        } else {
            self.timer = None;
        }
        self.allowance
    }

    fn timer(&self) -> Option<Instant> {
        self.timer.filter(|_| !self.fault.is_there())
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        if self.abilities.hears_mss {
            self.call(|py, object| object.call_method1(intern!(py, "on_mss"), (mss_bytes,)).map(drop));
        }
        self.allowance
    }

    fn allowance(&self) -> Allowance {
        self.allowance
    }

    fn answers_marks(&self) -> bool {
        self.abilities.answers_marks
    }

    fn snapshot(&self) -> Snapshot {
        let believed = self.object.as_ref().map_or(Ok(None), |object| {
            Python::attach(|py| number(object.bind(py), intern!(py, "queueing_delay_s")))
        });
        let queueing_delay = believed.unwrap_or_else(|error| {
            self.fault.put(error);
            None
        });
        Snapshot {
            cwnd_bytes: self.allowance.cwnd_bytes as f64,
            pacing_rate: self.allowance.pacing_rate,
            queueing_delay: queueing_delay.map(Duration::from_secs_f64),
            phase: Phase::CongestionAvoidance,
            ..Snapshot::default()
        }
    }
}
