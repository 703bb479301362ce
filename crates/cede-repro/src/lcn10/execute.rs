//! Running a plan on all cores.

use super::measure::{Measured, measure};
use super::plan::Plan;
use super::results::Results;
use super::setting::Setting;
use super::store::{Store, StoreError};
use crate::Progress;
use crate::parallel::{Outcome, in_parallel};
use cede_lab::run::RunError;
use std::fmt;

/// Why the runs of a plan are not complete. What was done by then is in the store.
#[derive(Debug)]
pub enum ExecuteError {
    /// It was stopped.
    Interrupted,
    /// A result could not be kept.
    Store(StoreError),
    /// A scenario could not be run.
    Run(RunError),
}

impl fmt::Display for ExecuteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted"),
            Self::Store(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ExecuteError {}

/// Runs what the store does not hold yet, `jobs` runs at a time (at least one), and keeps each result. `hear` is
/// called after each run; nothing starts, and what runs is given up, once `stop` says so.
///
/// # Errors
/// [`ExecuteError`], the first one that occurred.
pub fn execute(
    plan: &Plan,
    store: &Store,
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    hear: &(dyn Fn(Progress) + Sync),
) -> Result<Results, ExecuteError> {
    let run = |setting: &Setting| match store.load(setting) {
        Some(measured) => Ok(Outcome { measured, reused: true }),
        None => fresh(setting, store, stop).map(Outcome::fresh),
    };
    let measured = in_parallel(&plan.runs, jobs, stop, hear, run);
    measured
        .map(|measured| Results::new(plan, &measured))
        .map_err(|error| error.unwrap_or(ExecuteError::Interrupted))
}

fn fresh(
    setting: &Setting,
    store: &Store,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Measured, ExecuteError> {
    let measured = measure(setting, stop).map_err(|error| match error {
        RunError::Interrupted => ExecuteError::Interrupted,
        other => ExecuteError::Run(other),
    })?;
    store.save(setting, &measured).map_err(ExecuteError::Store)?;
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Point, Request};
    use super::super::setting::{Choices, Kind, Part};
    use super::*;
    use std::sync::Mutex;

    fn short_plan() -> Plan {
        let choices = Choices { duration_s: 2, ..Choices::PRIMARY };
        let point =
            |x| Point::new("test", x, vec![Part::one("tcp", Kind::Reno).times(x as u32)]).with(choices);
        let request = Request { figures: Vec::new(), sensitivity: false, quick: true };
        Plan::of(request, vec![point(1.0), point(2.0)])
    }

    fn counted(store: &Store, stop: bool) -> (Result<Results, ExecuteError>, usize, usize) {
        let last = Mutex::new((0, 0));
        let hear = |progress: Progress| *last.lock().unwrap() = (progress.done, progress.reused);
        let results = execute(&short_plan(), store, 2, &|| stop, &hear);
        let (done, reused) = *last.lock().unwrap();
        (results, done, reused)
    }

    #[test]
    fn a_second_call_runs_nothing_and_finds_the_same() {
        let folder = std::env::temp_dir().join(format!("cede-lcn10-{}", std::process::id()));
        let store = Store::open(&folder).unwrap();
        let (first, done, reused) = counted(&store, false);
        assert_eq!((done, reused), (6, 0));
        let (second, done, reused) = counted(&store, false);
        assert_eq!((done, reused), (6, 6));
        let share = |results: &Results| results.runs("test", 2.0)[1].tcp_percent();
        assert_eq!(share(&first.unwrap()), share(&second.unwrap()));

        // A result of another program does not count.
        let one = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        let text = std::fs::read_to_string(&one).unwrap();
        std::fs::write(&one, text.replace("\"version\":\"", "\"version\":\"0.0.")).unwrap();
        assert_eq!(counted(&store, false).2, 5);
        std::fs::write(&one, "half a li").unwrap();
        assert_eq!(counted(&store, false).2, 5);
        assert_eq!(counted(&store, false).2, 6);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_stopped_says_so() {
        let folder = std::env::temp_dir().join(format!("cede-lcn10-stop-{}", std::process::id()));
        let store = Store::open(&folder).unwrap();
        let (results, done, _) = counted(&store, true);
        assert!(matches!(results, Err(ExecuteError::Interrupted)));
        assert_eq!(done, 0);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
