//! The scenarios that are part of the laboratory.

use super::Scenario;

/// A scenario that is part of the laboratory.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        &[$(BuiltIn { name: $name, text: include_str!(concat!("../../../../scenarios/", $name, ".toml")) }),+]
    };
}

/// Every built-in scenario; `demo` is the first.
pub const BUILT_IN: &[BuiltIn] =
    built_in!["demo", "alone", "drift", "graph", "latecomer", "rtt-heterogeneity", "star"];

/// The built-in scenario of this name.
#[must_use]
pub fn built_in(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|scenario| scenario.name == name)
}

impl BuiltIn {
    /// What it shows, in a sentence.
    #[must_use]
    pub fn description(&self) -> String {
        Scenario::parse(self.name, self.text).map(|scenario| scenario.description).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_scenario_parses_under_its_own_name() {
        for built_in in BUILT_IN {
            let scenario = Scenario::parse(built_in.name, built_in.text).unwrap();
            assert_eq!(scenario.name, built_in.name);
            assert!(!scenario.description.is_empty());
        }
    }
}
