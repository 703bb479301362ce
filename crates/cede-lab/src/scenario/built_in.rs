//! The scenarios and swarms that are part of the laboratory.

use super::document::described;

/// A scenario or a swarm that is part of the laboratory.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! built_in {
    ($($folder:literal: $($name:literal),+;)+) => {
        &[$($(BuiltIn {
            name: $name,
            text: include_str!(concat!("../../../../scenarios/", $folder, $name, ".toml")),
        }),+),+]
    };
}

/// Every built-in scenario, of which `demo` is the first, and then every swarm.
pub const BUILT_IN: &[BuiltIn] = built_in![
    "": "demo", "alone", "drift", "graph", "latecomer", "rtt-heterogeneity", "star";
    "swarms/": "churn", "flash-crowd", "mixed", "systems";
];

/// The built-in scenario or swarm of this name.
#[must_use]
pub fn built_in(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|scenario| scenario.name == name)
}

impl BuiltIn {
    /// What it shows, in a sentence.
    #[must_use]
    pub fn description(&self) -> String {
        described(self.text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Overrides, Scenario, is_swarm, parse_swarm};
    use super::*;

    #[test]
    fn every_built_in_scenario_and_swarm_parses_under_its_own_name() {
        for built_in in BUILT_IN {
            assert!(!built_in.description().is_empty(), "{}", built_in.name);
            if is_swarm(built_in.text) {
                let swarm = parse_swarm(built_in.name, built_in.text, &Overrides::none()).unwrap();
                assert_eq!(swarm.name, built_in.name);
            } else {
                let scenario = Scenario::parse(built_in.name, built_in.text).unwrap();
                assert_eq!(
                    (scenario.name, scenario.description),
                    (built_in.name.into(), built_in.description())
                );
            }
        }
        assert_eq!(BUILT_IN.iter().filter(|built_in| is_swarm(built_in.text)).count(), 4);
    }
}
