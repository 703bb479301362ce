//! Captures.

use crate::scenario::octets;
use cede_meter::{
    Base, Config, Estimator, Feed, FeedError, Filter, FlowReport, Meter, Protocol, QueueSample, Selection,
    Visitor, Wants, json,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// So many pieces of a capture are read before Python is asked whether somebody wants it to end.
const PIECES: u32 = 64;

/// What is asked of captures.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Wish {
    estimator: String,
    base_s: Option<f64>,
    protocol: Option<String>,
    filter: Option<String>,
    min_samples: u64,
    memory_bytes: usize,
    flows: bool,
    samples: bool,
}

impl Wish {
    fn config(&self) -> PyResult<Config> {
        let parse =
            |text: &String| Filter::parse(text).map_err(|error| PyValueError::new_err(error.to_string()));
        let filter = self.filter.as_ref().map(parse).transpose()?;
        Ok(Config {
            memory_bytes: self.memory_bytes,
            selection: Selection { filter, ..Selection::default() },
            samples_min: self.min_samples,
            base: self.base()?,
            estimator: self.estimator()?,
            protocol: self.protocol()?,
            pseudonyms: None,
        })
    }

    fn base(&self) -> PyResult<Base> {
        match self.base_s {
            None => Ok(Base::Whole),
            Some(s) if s.is_finite() && s > 0.0 => Ok(Base::Sliding((s * 1e6) as u64)),
            Some(s) => Err(wrong("base_s", &s.to_string(), "a number of seconds above 0, or None")),
        }
    }

    fn estimator(&self) -> PyResult<Estimator> {
        match self.estimator.as_str() {
            "direct" => Ok(Estimator::Direct),
            "echoed" => Ok(Estimator::Echoed),
            other => Err(wrong("estimator", other, "direct or echoed")),
        }
    }

    fn protocol(&self) -> PyResult<Option<Protocol>> {
        match self.protocol.as_deref() {
            None => Ok(None),
            Some("utp") => Ok(Some(Protocol::Utp)),
            Some("tcp") => Ok(Some(Protocol::Tcp)),
            Some(other) => Err(wrong("protocol", other, "utp, tcp or None")),
        }
    }
}

fn wrong(name: &str, value: &str, allowed: &str) -> PyErr {
    PyValueError::new_err(format!("{name} is {value}; it can be {allowed}"))
}

/// Meters captures, each a path or an object with a method `read`, one behind the other as one: hosts and flows as JSON, and samples.
#[pyfunction]
pub fn meter<'py>(
    py: Python<'py>,
    sources: Vec<Bound<'py, PyAny>>,
    wish: Wish,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let mut meter = Meter::new(wish.config()?);
    let mut damage = Vec::new();
    for source in &sources {
        let name = || source.to_string();
        let said = if let Ok(path) = source.extract::<PathBuf>() {
            feed(py, &mut meter, Named::open(path)?, name)?
        } else {
            feed(py, &mut meter, Readable(source.clone().unbind()), name)?
        };
        damage.extend(said.map(|text| format!("{source}: {text}")));
    }
    let mut found = Found { wants: wants(&wish), flows: Vec::new(), columns: Columns::default() };
    let report = py.detach(|| meter.report_to(&mut found));
    let flows = wish.flows.then(|| found.flows.iter().map(json::flow).collect::<Vec<Value>>());
    let json = json!({
        "counters": json::counters(&report.counters),
        "hosts": report.hosts.iter().map(json::host).collect::<Vec<_>>(),
        "flows": flows,
        "hosts_with_too_few_samples": report.hosts_with_too_little,
        "damage": damage,
    });
    Ok((json.to_string(), found.columns.dict(py)?))
}

const fn wants(wish: &Wish) -> Wants {
    match (wish.flows, wish.samples) {
        (_, true) => Wants::Samples,
        (true, false) => Wants::Flows,
        (false, false) => Wants::Nothing,
    }
}

/// Reads a capture to its end; what is wrong with it, where some of it can be read.
fn feed(
    py: Python<'_>,
    meter: &mut Meter,
    source: impl Read + Send,
    name: impl Fn() -> String,
) -> PyResult<Option<String>> {
    let mut feed = Feed::new(source);
    loop {
        let pieces = py.detach(|| {
            let mut batch = meter.batch();
            for _ in 0..PIECES {
                if !feed.step_into(&mut |record| batch.record(record))? {
                    return Ok(false);
                }
            }
            Ok(true)
        });
        match pieces {
            Ok(true) => py.check_signals()?,
            Ok(false) => return Ok(None),
            // What an object raised is raised as it is.
            Err(FeedError::Io(error)) => return Err(error.into()),
            // It began as no capture: nothing was read of it.
            Err(error @ FeedError::Capture { offset: 0, .. }) => {
                return Err(PyValueError::new_err(format!("{}: {error}", name())));
            }
            Err(error) => return Ok(Some(error.to_string())),
        }
    }
}

/// A file whose errors say which it is.
struct Named {
    path: PathBuf,
    file: File,
}

impl Named {
    fn open(path: PathBuf) -> io::Result<Self> {
        let opened = File::open(&path).map_err(|error| of_path(&path, &error));
        opened.map(|file| Self { path, file })
    }
}

impl Read for Named {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer).map_err(|error| of_path(&self.path, &error))
    }
}

fn of_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// An object of Python's that can be read from.
struct Readable(Py<PyAny>);

impl Read for Readable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let read = self.0.bind(py).call_method1("read", (buffer.len(),)).map_err(io::Error::other)?;
            let octets: &[u8] = read.extract().map_err(|_| io::Error::other("read gave no bytes"))?;
            let Some(room) = buffer.get_mut(..octets.len()) else {
                return Err(io::Error::other("read gave more than was asked for"));
            };
            room.copy_from_slice(octets);
            Ok(octets.len())
        })
    }
}

/// What was handed out.
struct Found {
    wants: Wants,
    flows: Vec<FlowReport>,
    columns: Columns,
}

/// Samples; each belongs to the flow that comes after it.
#[derive(Default)]
struct Columns {
    flow_of: Vec<u32>,
    echoed: Vec<u8>,
    time_s: Vec<f64>,
    queue_ms: Vec<f64>,
}

impl Visitor for Found {
    fn wants(&self) -> Wants {
        self.wants
    }

    fn sample(&mut self, sample: &QueueSample) {
        let columns = &mut self.columns;
        columns.flow_of.push(self.flows.len() as u32);
        columns.echoed.push(u8::from(sample.estimator == Estimator::Echoed));
        columns.time_s.push(sample.delay.time_us as f64 / 1e6);
        columns.queue_ms.push(sample.delay.queue_us / 1e3);
    }

    fn flow(&mut self, flow: &FlowReport) {
        self.flows.push(flow.clone());
    }
}

impl Columns {
    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let flow_of: Vec<u8> = self.flow_of.iter().flat_map(|flow| flow.to_ne_bytes()).collect();
        let dict = PyDict::new(py);
        dict.set_item("flow", PyBytes::new(py, &flow_of))?;
        dict.set_item("echoed", PyBytes::new(py, &self.echoed))?;
        dict.set_item("time_s", octets(py, &self.time_s))?;
        dict.set_item("queue_ms", octets(py, &self.queue_ms))?;
        Ok(dict)
    }
}
