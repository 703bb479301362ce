//! What a run folder says about itself.

use crate::outcome::{Outcome, Verdict};
use crate::scenario::Scenario;
use cede_units::Stream;
use serde::Serialize;

/// How far a run has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It goes on, or was ended by force.
    Running,
    /// It went to its end and every assertion holds.
    Complete,
    /// It went to its end and an assertion does not hold.
    AssertionFailed,
    /// It was stopped; what is here is what there was until then.
    Interrupted,
    /// It could not go on, for instance because the disk is full.
    Failed,
}

/// The scenario of a run.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioRecord {
    /// Its name.
    pub name: String,
    /// The file that it was read from; `-` for standard input.
    pub source: String,
    /// A hash of what it says, however it is laid out.
    pub hash: String,
    /// The whole scenario with every default filled in.
    pub toml: String,
}

/// What a run showed.
#[derive(Debug, Serialize)]
pub struct Results<'a> {
    /// Totals and metrics.
    #[serde(flatten)]
    pub outcome: &'a Outcome,
    /// The scenario's assertions with what was measured.
    pub assertions: &'a [Verdict],
}

/// `manifest.json`.
#[derive(Debug, Serialize)]
pub struct Manifest<'a> {
    /// The version that ran it.
    pub cede: &'static str,
    /// How far it has come.
    pub status: Status,
    /// What was run.
    pub scenario: ScenarioRecord,
    /// The seed of every random stream.
    pub seed: u64,
    /// The generator of random numbers.
    pub generator: &'static str,
    /// The command line.
    pub command: &'a [String],
    /// How long the simulated world ran, in seconds.
    pub simulated_s: f64,
    /// How long that took, in seconds.
    pub wall_s: f64,
    /// How long a processor worked on it, in seconds; none where the system does not tell.
    pub cpu_s: Option<f64>,
    /// What it showed; none while it runs and where it was stopped.
    pub results: Option<Results<'a>>,
    /// The other files of the folder.
    pub files: Vec<String>,
}

impl<'a> Manifest<'a> {
    /// The manifest of a run that begins.
    #[must_use]
    pub fn begin(scenario: &Scenario, source: &str, command: &'a [String]) -> Self {
        Self {
            cede: env!("CARGO_PKG_VERSION"),
            status: Status::Running,
            scenario: ScenarioRecord {
                name: scenario.name.clone(),
                source: source.to_string(),
                hash: scenario.content_hash().to_string(),
                toml: scenario.to_toml(),
            },
            seed: scenario.seed,
            generator: Stream::GENERATOR,
            command,
            simulated_s: 0.0,
            wall_s: 0.0,
            cpu_s: None,
            results: None,
            files: Vec::new(),
        }
    }

    /// The same with what the run showed.
    #[must_use]
    pub fn with_results(self, results: Results<'a>) -> Self {
        Self { results: Some(results), ..self }
    }
}
