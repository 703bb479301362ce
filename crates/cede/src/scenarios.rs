//! Reading a scenario from wherever it comes.

use crate::failure::Failure;
use crate::interrupt;
use cede_lab::scenario::{BUILT_IN, Overrides, Scenario, built_in, nearest};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// A scenario, its text, and where that came from.
#[derive(Debug)]
pub struct Loaded {
    /// The scenario.
    pub scenario: Scenario,
    /// What its author wrote.
    pub text: String,
    /// A path, a name, or `-`.
    pub source: String,
}

/// Lays overrides over a scenario's text, which came from `source`.
///
/// # Errors
/// [`Failure::Scenario`] where that is no scenario.
pub fn load(source: &str, text: String, overrides: &Overrides) -> Result<Loaded, Failure> {
    let scenario = Scenario::parse_with(source, &text, overrides).map_err(Failure::Scenario)?;
    Ok(Loaded { scenario, text, source: source.to_string() })
}

/// As [`load`], from those built in alone: a file of the same name in the current folder does not come between.
pub fn load_built_in(name: &str, overrides: &Overrides) -> Result<Loaded, Failure> {
    let found = built_in(name).ok_or_else(|| Failure::Usage(format!("no scenario is called {name}")))?;
    let scenario = Scenario::parse_with(name, found.text, overrides).map_err(Failure::Scenario)?;
    Ok(Loaded { scenario, text: found.text.to_string(), source: name.to_string() })
}

/// The text of a scenario or swarm file.
///
/// # Errors
/// [`Failure::NotPermitted`] where it may not be read, [`Failure::Usage`] where nothing can be.
pub fn text_of(source: &str) -> Result<String, Failure> {
    let mut octets = Vec::new();
    let read = interrupt::while_reading(|| match source {
        "-" => std::io::stdin().read_to_end(&mut octets).map(drop),
        path => std::fs::read(path).map(|read| octets = read),
    });
    match read {
        Ok(()) => String::from_utf8(octets)
            .map_err(|error| Failure::Usage(format!("{source} is no text: {}", error.utf8_error()))),
        Err(error) => {
            built_in(source).map(|found| found.text.to_string()).ok_or_else(|| unreadable(source, &error))
        }
    }
}

fn unreadable(source: &str, error: &std::io::Error) -> Failure {
    let names = BUILT_IN.iter().map(|scenario| scenario.name);
    let stem = Path::new(source).file_stem().and_then(|stem| stem.to_str()).unwrap_or(source);
    let guess = nearest(stem, names.clone()).map(|name| format!(" (did you mean the built-in `{name}`?)"));
    let known: Vec<&str> = names.collect();
    let text = format!(
        "cannot read {source}: {error}{}\n  = built-in scenarios: {}",
        guess.unwrap_or_default(),
        known.join(", ")
    );
    match error.kind() {
        ErrorKind::PermissionDenied => Failure::NotPermitted(text),
        _ => Failure::Usage(text),
    }
}

#[cfg(test)]
mod tests {
    use super::unreadable;
    use std::io::ErrorKind;

    #[test]
    fn what_may_not_be_read_is_not_permitted() {
        let code = |kind: ErrorKind| unreadable("my.toml", &kind.into()).exit_code();
        assert_eq!([ErrorKind::PermissionDenied, ErrorKind::NotFound].map(code), [3, 2]);
    }
}
