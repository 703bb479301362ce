//! uTP sockets, which block: `python/cede/sockets.py` makes files of streams.

use cede_real::blocking::{self, Error, Patience};
use cede_real::{BindError, ConnectError, ControllerChoice, StreamConfig};
use pyo3::exceptions::{PyOSError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::io;
use std::time::Duration;

/// So much is read at a time at most.
const MOST_READ: usize = 1 << 20;

/// A controller's name, and its parameters as they are written; the default one where there is none.
type Choice = Option<(String, Vec<(String, String)>)>;

/// A UDP socket.
#[pyclass(frozen)]
pub struct Socket(blocking::Socket);

#[pymethods]
impl Socket {
    #[new]
    fn new(py: Python<'_>, address: &str, choice: Choice) -> PyResult<Self> {
        let config = config(choice)?.unwrap_or_default();
        py.detach(|| blocking::Socket::bind(address, config)).map(Self).map_err(raised)
    }

    #[getter]
    fn address(&self) -> (String, u16) {
        let address = self.0.local_addr();
        (address.ip().to_string(), address.port())
    }

    fn accept(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Stream> {
        wait(py, timeout_s, |patience| self.0.accept(patience)).map(Stream)
    }

    fn connect(
        &self,
        py: Python<'_>,
        peer: &str,
        choice: Choice,
        timeout_s: Option<f64>,
    ) -> PyResult<Stream> {
        let config = config(choice)?;
        wait(py, timeout_s, |patience| self.0.connect(peer, config.as_ref(), patience)).map(Stream)
    }
}

/// One end of a stream.
#[pyclass(frozen)]
pub struct Stream(blocking::Stream);

#[pymethods]
impl Stream {
    #[new]
    fn new(py: Python<'_>, peer: &str, choice: Choice, timeout_s: Option<f64>) -> PyResult<Self> {
        let config = config(choice)?.unwrap_or_default();
        wait(py, timeout_s, |patience| blocking::Stream::connect(peer, config, patience)).map(Self)
    }

    #[getter]
    fn peer(&self) -> (String, u16) {
        let peer = self.0.view().peer_addr();
        (peer.ip().to_string(), peer.port())
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        most: usize,
        timeout_s: Option<f64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut room = vec![0; most.min(MOST_READ)];
        let n = wait(py, timeout_s, |patience| self.0.read(&mut room, patience))?;
        Ok(PyBytes::new(py, &room[..n]))
    }

    fn write(&self, py: Python<'_>, octets: &[u8], timeout_s: Option<f64>) -> PyResult<usize> {
        wait(py, timeout_s, |patience| self.0.write(octets, patience))
    }

    fn finish(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<()> {
        wait(py, timeout_s, |patience| self.0.finish(patience))
    }

    fn abort(&self) {
        self.0.abort();
    }

    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let view = self.0.view();
        let snapshot = view.snapshot().ok_or_else(|| raised(blocking::socket_closed()))?;
        let statistics = view.statistics();
        let seconds = cede_units::Duration::as_secs_f64;
        let status = PyDict::new(py);
        status.set_item("cwnd_bytes", snapshot.cwnd_bytes)?;
        status.set_item("in_flight_bytes", snapshot.in_flight_bytes)?;
        status.set_item("unsent_bytes", snapshot.queued_bytes)?;
        status.set_item("srtt_s", Some(snapshot.srtt).filter(|srtt| !srtt.is_zero()).map(seconds))?;
        status.set_item("rtt_min_s", snapshot.rtt_min.map(seconds))?;
        status.set_item("queueing_delay_s", snapshot.controller.queueing_delay.map(seconds))?;
        status.set_item("delivery_bits_per_s", snapshot.delivery_rate.bits_per_sec())?;
        status.set_item("bytes_acked", statistics.bytes_acked)?;
        status.set_item("bytes_received", statistics.bytes_delivered)?;
        status.set_item("retransmissions", statistics.retransmissions)?;
        status.set_item("timeouts", statistics.timeouts)?;
        Ok(status)
    }
}

fn config(choice: Choice) -> PyResult<Option<StreamConfig>> {
    let Some((name, settings)) = choice else { return Ok(None) };
    let settings = settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let controller = ControllerChoice::written(&name, settings);
    let controller = controller.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(Some(StreamConfig { controller, ..StreamConfig::default() }))
}

/// Waits with the interpreter free for others; Ctrl-C ends it.
fn wait<T: Send>(
    py: Python<'_>,
    timeout_s: Option<f64>,
    call: impl FnOnce(Patience<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let limit = timeout_s.map(Duration::try_from_secs_f64).transpose();
    let limit = limit.map_err(|error| PyValueError::new_err(format!("timeout_s: {error}")))?;
    let mut interrupt = None;
    let done = py.detach(|| {
        let mut go_on = || {
            interrupt = Python::attach(|py| py.check_signals()).err();
            interrupt.is_none()
        };
        call(Patience::while_asked(limit, &mut go_on))
    });
    done.map_err(|error| interrupt.unwrap_or_else(|| raised(error)))
}

/// What went wrong, as Python's own sockets would raise it.
fn raised(error: Error) -> PyErr {
    match error {
        Error::TooLate => PyTimeoutError::new_err(error.to_string()),
        Error::Name(_) | Error::Interrupted => PyOSError::new_err(error.to_string()),
        Error::Bind(BindError::Controller(error)) | Error::Connect(ConnectError::Controller(error)) => {
            PyValueError::new_err(error.to_string())
        }
        Error::Bind(error) => io::Error::from(error).into(),
        Error::Connect(error) => io::Error::from(error).into(),
        Error::Io(error) => error.into(),
    }
}
