//! What came of a plan of swarms, setting by setting.

use super::measured::Measured;
use super::plan::Keyed;
use serde_json::{Value, json};

/// The repetitions of each setting.
#[derive(Clone, Debug)]
pub struct Cells<S> {
    cells: Vec<(S, Vec<Measured>)>,
    /// Runs there would be with every repetition of everything.
    planned: usize,
}

impl<S: Keyed> Cells<S> {
    /// Sorts what was measured, in the order of [`super::jobs`]; what was not is left out.
    #[must_use]
    pub fn sorted(settings: Vec<(S, u32)>, measured: Vec<Option<Measured>>) -> Self {
        let planned = settings.iter().map(|(_, repetitions)| *repetitions as usize).sum();
        let mut rest = measured.into_iter();
        let cells = settings.into_iter().map(|(setting, repetitions)| {
            (setting, rest.by_ref().take(repetitions as usize).flatten().collect())
        });
        Self { cells: cells.collect(), planned }
    }

    /// The repetitions of the setting with this key.
    #[must_use]
    pub fn of(&self, key: &str) -> &[Measured] {
        self.cells.iter().find(|(setting, _)| setting.key() == key).map_or(&[], |(_, runs)| runs)
    }

    /// Each setting with its repetitions.
    pub fn iter(&self) -> impl Iterator<Item = (&S, &[Measured])> {
        self.cells.iter().map(|(setting, runs)| (setting, &runs[..]))
    }

    /// Every run.
    pub fn runs(&self) -> impl Iterator<Item = &Measured> {
        self.cells.iter().flat_map(|(_, runs)| runs)
    }

    /// Runs there are, and runs there would be with every repetition of everything.
    #[must_use]
    pub fn coverage(&self) -> [usize; 2] {
        [self.runs().count(), self.planned]
    }

    /// For programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let cells = self.cells.iter().map(|(setting, runs)| json!({ "key": setting.key(), "runs": runs }));
        cells.collect()
    }
}

/// As many runs as there are jobs, each with a number of its own for its events.
#[cfg(test)]
pub fn numbered(jobs: &[super::Job]) -> Vec<Option<Measured>> {
    (0..jobs.len()).map(|n| Some(Measured { events: n as u64, ..Measured::default() })).collect()
}

/// Each of the [`numbered`] runs is found under the key of its job.
#[cfg(test)]
pub fn assert_in_place<S: Keyed>(cells: &Cells<S>, jobs: &[super::Job]) {
    for (place, job) in jobs.iter().enumerate() {
        assert!(cells.of(&job.key).iter().any(|run| run.events == place as u64), "{}", job.key);
    }
    assert_eq!(cells.coverage(), [jobs.len(); 2]);
}
