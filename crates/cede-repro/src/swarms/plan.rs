//! Which swarms a paper needs, and which of them are to be run.

use cede_lab::swarm::Swarm;

/// What has a name of its own.
pub trait Keyed {
    /// What it is kept and found under.
    fn key(&self) -> &str;
}

/// A swarm to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// What it is kept under.
    pub key: String,
    /// Which repetition it is, from 0.
    pub repetition: u32,
    /// The swarm.
    pub swarm: Swarm,
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
