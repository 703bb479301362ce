//! What came of a plan of swarms, setting by setting.

use super::execute::Job;
use super::measured::Measured;
use crate::swarm::Swarm;
use serde_json::{Value, json};

/// What has a name of its own.
pub trait Keyed {
    /// What it is kept and found under.
    fn key(&self) -> &str;
}

/// Which of the swarms are to be run; of the others what is kept is taken, if it is there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Words of which a setting's name must have one; any name where there are none.
    pub only: Vec<String>,
    /// So many repetitions at most.
    pub repetitions: Option<u32>,
}

impl Selection {
    /// Whether a swarm is to be run.
    #[must_use]
    pub fn takes(&self, job: &Job) -> bool {
        let named = self.only.is_empty() || self.only.iter().any(|word| job.key.contains(word.as_str()));
        named && self.repetitions.is_none_or(|most| job.repetition < most)
    }
}

/// The swarms of settings, each with so many repetitions, in their order.
#[must_use]
pub fn jobs<S: Keyed>(settings: &[(S, u32)], swarm: impl Fn(&S, u32) -> Swarm) -> Vec<Job> {
    let each =
        settings.iter().flat_map(|(setting, repetitions)| (0..*repetitions).map(move |one| (setting, one)));
    each.map(|(setting, one)| Job {
        key: setting.key().to_string(),
        repetition: one,
        swarm: swarm(setting, one),
    })
    .collect()
}

/// The repetitions of each setting.
#[derive(Clone, Debug)]
pub struct Cells<S>(Vec<(S, Vec<Measured>)>);

impl<S: Keyed> Cells<S> {
    /// Sorts what was measured, in the order of [`jobs`]; what was not is left out.
    #[must_use]
    pub fn sorted(settings: Vec<(S, u32)>, measured: Vec<Option<Measured>>) -> Self {
        let mut rest = measured.into_iter();
        let cells = settings.into_iter().map(|(setting, repetitions)| {
            (setting, rest.by_ref().take(repetitions as usize).flatten().collect())
        });
        Self(cells.collect())
    }

    /// The repetitions of the setting with this key.
    #[must_use]
    pub fn of(&self, key: &str) -> &[Measured] {
        self.0.iter().find(|(setting, _)| setting.key() == key).map_or(&[], |(_, runs)| runs)
    }

    /// Each setting with its repetitions.
    pub fn iter(&self) -> impl Iterator<Item = (&S, &[Measured])> {
        self.0.iter().map(|(setting, runs)| (setting, &runs[..]))
    }

    /// Every run.
    pub fn runs(&self) -> impl Iterator<Item = &Measured> {
        self.0.iter().flat_map(|(_, runs)| runs)
    }

    /// Runs there are, and runs there would be with every repetition of everything.
    #[must_use]
    pub fn coverage(&self, settings: &[(S, u32)]) -> [usize; 2] {
        [self.runs().count(), settings.iter().map(|(_, repetitions)| *repetitions as usize).sum()]
    }

    /// For programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let cells = self.0.iter().map(|(setting, runs)| json!({ "key": setting.key(), "runs": runs }));
        cells.collect()
    }
}
