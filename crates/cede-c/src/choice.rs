//! Controllers by their names.

use crate::fault::Fault;
use cede_real::{ControllerChoice, StreamConfig};

/// What "ledbat target=25ms" stands for; `None` where nothing is given.
pub fn stream(text: Option<&str>) -> Result<Option<StreamConfig>, Fault> {
    let mut words = text.unwrap_or_default().split_whitespace();
    let Some(name) = words.next() else { return Ok(None) };
    let settings = words
        .map(|word| word.split_once('=').ok_or_else(|| Fault::said(format!("{word} is no PARAMETER=VALUE"))))
        .collect::<Result<Vec<_>, _>>()?;
    let controller = ControllerChoice::written(name, settings).map_err(Fault::of)?;
    Ok(Some(StreamConfig { controller, ..StreamConfig::default() }))
}
