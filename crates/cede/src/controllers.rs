//! Controllers by the names that people type.

use crate::failure::Failure;
use cede_cc::registry::{self, Entry};
use cede_lab::scenario::nearest;

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
