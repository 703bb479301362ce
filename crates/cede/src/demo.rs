//! `cede demo`: the built-in scenario `demo`, and what it shows.

use crate::cli::DemoArgs;
use crate::execute::{Job, execute};
use crate::failure::Failure;
use crate::scenarios;
use cede_lab::record;
use cede_lab::scenario::Overrides;

/// Runs the demo.
pub fn demo(args: &DemoArgs) -> Result<(), Failure> {
    let overrides = Overrides::new(args.seed.map(|seed| format!("seed={seed}")));
    let loaded = scenarios::load_built_in("demo", &overrides)?;
    execute(&Job {
        loaded: &loaded,
        folder: args.output.clone().unwrap_or_else(|| "cede-out/demo".into()),
        repeat: format!("cede demo --seed {}", loaded.scenario.seed),
        record: record::Options::default(),
        flent: false,
        plots: &[],
        json: args.json,
    })
}
