//! Controllers by the names that people type.

use crate::failure::Failure;
use cede_cc::registry::{self, Entry};
use cede_lab::scenario::nearest;
use cede_real::StreamConfig;
use cede_units::Duration;

/// The controller of this name.
///
/// # Errors
/// [`Failure::Usage`] with the name that was probably meant.
pub fn find(name: &str) -> Result<&'static Entry, Failure> {
    registry::find(name).ok_or_else(|| {
        let guess = nearest(name, registry::all().iter().map(|entry| entry.name));
        let guess = guess.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        let text = format!("no controller is called `{name}`{guess}\n  = `cede list controllers` names them");
        Failure::Usage(text)
    })
}

/// Streams with the controller of this name, which aims at this queueing delay where one is given.
///
/// # Errors
/// [`Failure::Usage`] where there is no such controller, it has no target, or that one is out of range.
pub fn stream(name: &str, target: Option<Duration>) -> Result<StreamConfig, Failure> {
    find(name)?;
    let plain = StreamConfig::with_controller(name);
    let stream = target.map_or(plain.clone(), |target| plain.target(target));
    let path = stream.transport.path();
    stream.controller.build(&path).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(stream)
}
