//! Running everything on all cores.

use super::measure::{Measured, measure};
use super::setting::{Contender, Duel, Setting, duels};
use crate::Progress;
use crate::parallel::{Outcome, in_parallel};
use cede_lab::run::RunError;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Fewer repetitions.
    pub quick: bool,
}

impl Request {
    /// Repetitions of the script for each contender: 0 with starts as published, the others moved.
    #[must_use]
    pub const fn repetitions(self) -> u32 {
        if self.quick { 3 } else { 10 }
    }

    /// Repetitions of each duel.
    #[must_use]
    pub const fn duel_repetitions(self) -> u32 {
        if self.quick { 1 } else { 3 }
    }

    fn settings(self) -> Vec<Setting> {
        let scripts = Contender::ALL.into_iter().flat_map(move |contender| {
            (0..self.repetitions()).map(move |repetition| Setting::script(contender, repetition))
        });
        let duels = duels().into_iter().flat_map(move |duel| {
            let one = move |repetition| Setting::duel(&duel, repetition);
            (1..=self.duel_repetitions()).map(one)
        });
        scripts.chain(duels).collect()
    }
}

/// What all runs showed.
#[derive(Clone, Debug)]
pub struct Results {
    /// What was asked for.
    pub request: Request,
    /// The repetitions of the script for each contender.
    pub scripts: Vec<(Contender, Vec<Measured>)>,
    /// The repetitions of each duel.
    pub duels: Vec<(Duel, Vec<Measured>)>,
}

impl Results {
    fn of(request: Request, measured: Vec<Measured>) -> Self {
        let mut rest = measured.into_iter();
        let mut next = |count: u32| rest.by_ref().take(count as usize).collect::<Vec<Measured>>();
        let scripts = Contender::ALL.map(|contender| (contender, next(request.repetitions())));
        let duels = duels().into_iter().map(|duel| (duel, next(request.duel_repetitions())));
        Self { request, scripts: scripts.into(), duels: duels.collect() }
    }

    /// The repetitions with this contender.
    #[must_use]
    pub fn script(&self, contender: Contender) -> &[Measured] {
        self.scripts.iter().find(|(known, _)| *known == contender).map_or(&[], |(_, runs)| runs)
    }

    /// Every run.
    pub fn runs(&self) -> impl Iterator<Item = &Measured> {
        let scripts = self.scripts.iter().flat_map(|(_, runs)| runs);
        scripts.chain(self.duels.iter().flat_map(|(_, runs)| runs))
    }
}

/// Runs everything, `jobs` runs at a time (at least one). `hear` is called after each run; nothing starts, and what runs
/// is given up, once `stop` says so.
///
/// # Errors
/// The first [`RunError`] that occurred.
pub fn execute(
    request: Request,
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    hear: &(dyn Fn(Progress) + Sync),
) -> Result<Results, RunError> {
    let settings = request.settings();
    let measured = in_parallel(&settings, jobs, stop, hear, |one| measure(one, stop).map(Outcome::fresh));
    measured
        .map(|measured| Results::of(request, measured))
        .map_err(|error| error.unwrap_or(RunError::Interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_finds_its_place() {
        let request = Request { quick: true };
        let count = 4 * request.repetitions() as usize + duels().len() * request.duel_repetitions() as usize;
        assert_eq!(request.settings().len(), count);
        let numbered = (0..count).map(|n| {
            let run = super::super::measure::tests::run("bbr", |_| 1.0);
            Measured { timeouts: n as u64, ..run }
        });
        let results = Results::of(request, numbered.collect());
        assert_eq!(results.script(Contender::ProteusS)[2].timeouts, 11);
        assert_eq!(results.duels.last().unwrap().1[0].timeouts, count as u64 - 1);
        assert!(results.runs().count() == count);
    }

    #[test]
    fn what_is_stopped_is_interrupted() {
        let stopped = execute(Request { quick: true }, 2, &|| true, &|_| ());
        assert!(matches!(stopped, Err(RunError::Interrupted)));
    }
}
