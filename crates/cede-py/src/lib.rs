//! The Python package `cede`, as far as it is not Python: scenarios and swarms run, controllers written in Python put into them and through
//! the battery, captures metered, uTP sockets.
//!
//! What is found is handed over as JSON, series as octets of 64-bit numbers; `python/cede` makes dictionaries and arrays of both.
//! While something is computed, other threads of Python go on, and Ctrl-C ends it.
//!
//! **Invariant:** nothing here knows how anything is computed; nothing is decided here that a command of `cede` decides, too.

#![expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]

mod battery;
mod capture;
mod controller;
mod errors;
mod feedback;
mod scenario;
mod slots;
mod sockets;

use cede_cc::registry;
use pyo3::prelude::*;
use serde_json::json;

/// Every controller of the registry, as JSON.
#[pyfunction]
fn controllers() -> String {
    let one = |entry: &registry::Entry| {
        let parameter =
            |doc: &cede_cc::ParamDoc| json!({ "name": doc.name, "default": doc.default, "doc": doc.doc });
        json!({
            "name": entry.name,
            "summary": entry.summary,
            "formula": entry.formula,
            "source": entry.source,
            "responsive": entry.responsive,
            "experimental": entry.experimental,
            "parameters": entry.params.iter().map(parameter).collect::<Vec<_>>(),
        })
    };
    json!(registry::all().iter().map(one).collect::<Vec<_>>()).to_string()
}

#[pymodule]
fn _cede(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(controllers, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::built_in_text, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::run, module)?)?;
    module.add_function(wrap_pyfunction!(battery::check, module)?)?;
    module.add_function(wrap_pyfunction!(capture::meter, module)?)?;
    module.add_class::<sockets::Socket>()?;
    module.add_class::<sockets::Stream>()?;
    module.add_class::<feedback::Path>()?;
    module.add_class::<feedback::Feedback>()?;
    module.add_class::<feedback::Packet>()?;
    module.add_class::<feedback::Sent>()?;
    module.add_class::<feedback::Timeout>()?;
    module.add("ScenarioError", module.py().get_type::<errors::ScenarioError>())
}
