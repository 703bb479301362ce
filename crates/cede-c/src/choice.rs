//! Controllers by their names.

use crate::fault::Fault;
use cede_cc::registry;
use cede_cc::{ParamKind, Params};
use cede_real::{ControllerChoice, StreamConfig};

/// What "ledbat target=25ms" stands for; `None` where nothing is given.
pub fn stream(text: Option<&str>) -> Result<Option<StreamConfig>, Fault> {
    let mut words = text.unwrap_or_default().split_whitespace();
    let Some(name) = words.next() else { return Ok(None) };
    let entry = registry::find(name).ok_or_else(|| {
        let known: Vec<&str> = registry::all().iter().map(|entry| entry.name).collect();
        Fault::said(format!("no controller is called {name}; there are {}", known.join(", ")))
    })?;
    let mut params = Params::new();
    for word in words {
        let setting = word.split_once('=');
        let (parameter, value) =
            setting.ok_or_else(|| Fault::said(format!("{word} is no PARAMETER=VALUE")))?;
        let is_word =
            entry.params.iter().any(|doc| doc.name == parameter && matches!(doc.kind, ParamKind::Word(_)));
        let value = if is_word { value.trim_matches('"') } else { value };
        params.parse_and_set(entry.params, parameter, value).map_err(Fault::of)?;
    }
    let controller = ControllerChoice::Named { name: name.to_owned(), params };
    controller.build(&cede_real::StreamConfig::default().transport.path()).map_err(Fault::of)?;
    Ok(Some(StreamConfig { controller, ..StreamConfig::default() }))
}
