//! What goes wrong, in Python's terms.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;

create_exception!(
    cede,
    ScenarioError,
    PyValueError,
    "A scenario says something that means nothing; the text shows where."
);
