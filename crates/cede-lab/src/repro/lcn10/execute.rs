//! Running a plan on all cores.

use super::measure::{Measured, measure};
use super::plan::Plan;
use super::results::Results;
use super::store::{Store, StoreError};
use crate::run::RunError;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How far the runs have come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Runs that are done, those included that were found in the store.
    pub done: usize,
    /// Of these, found in the store.
    pub reused: usize,
    /// All runs.
    pub total: usize,
    /// Time since the beginning.
    pub elapsed: Duration,
    /// An estimate of the time left; none before the first run is done.
    pub left: Option<Duration>,
}

impl Progress {
    pub(in crate::repro) fn of(done: usize, reused: usize, total: usize, elapsed: Duration) -> Self {
        let run = done - reused;
        let left = (run > 0).then(|| elapsed.mul_f64((total - done) as f64 / run as f64));
        Self { done, reused, total, elapsed, left }
    }
}

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

/// What the threads share.
struct Work<'a> {
    plan: &'a Plan,
    store: &'a Store,
    stop: &'a (dyn Fn() -> bool + Sync),
    next: AtomicUsize,
    done: Mutex<Done>,
    began: Instant,
}

#[derive(Default)]
struct Done {
    measured: Vec<Option<Measured>>,
    done: usize,
    reused: usize,
    error: Option<ExecuteError>,
}

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
    let done = Done { measured: vec![None; plan.runs.len()], ..Done::default() };
    let (next, done) = (AtomicUsize::new(0), Mutex::new(done));
    let work = Work { plan, store, stop, next, done, began: Instant::now() };
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, plan.runs.len().max(1)) {
            scope.spawn(|| work.go(hear));
        }
    });
    let done = work.done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    match (done.error, done.measured.into_iter().collect::<Option<Vec<Measured>>>()) {
        (Some(error), _) => Err(error),
        (None, Some(measured)) => Ok(Results::new(plan, &measured)),
        (None, None) => Err(ExecuteError::Interrupted),
    }
}

impl Work<'_> {
    fn go(&self, hear: &(dyn Fn(Progress) + Sync)) {
        while !(self.stop)() {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(setting) = self.plan.runs.get(place) else { return };
            let found = self.store.load(setting);
            let reused = found.is_some();
            let result = found.map_or_else(|| self.run(place), Ok);
            if !self.enter(place, result, reused, hear) {
                return;
            }
        }
    }

    fn run(&self, place: usize) -> Result<Measured, ExecuteError> {
        let setting = &self.plan.runs[place];
        let measured = measure(setting, self.stop).map_err(|error| match error {
            RunError::Interrupted => ExecuteError::Interrupted,
            other => ExecuteError::Run(other),
        })?;
        self.store.save(setting, &measured).map_err(ExecuteError::Store)?;
        Ok(measured)
    }

    /// Takes down a result; answers whether to go on.
    fn enter(
        &self,
        place: usize,
        result: Result<Measured, ExecuteError>,
        reused: bool,
        hear: &(dyn Fn(Progress) + Sync),
    ) -> bool {
        let mut done = self.done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match result {
            Ok(measured) => {
                done.measured[place] = Some(measured);
                done.done += 1;
                done.reused += usize::from(reused);
                hear(Progress::of(done.done, done.reused, self.plan.runs.len(), self.began.elapsed()));
                true
            }
            Err(error) => {
                done.error.get_or_insert(error);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Point, Request};
    use super::super::setting::{Choices, Kind, Part};
    use super::*;

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

    #[test]
    fn the_time_left_counts_only_what_was_run() {
        let progress = Progress::of(60, 50, 100, Duration::from_secs(10));
        assert_eq!(progress.left, Some(Duration::from_secs(40)));
        assert_eq!(Progress::of(50, 50, 100, Duration::from_secs(1)).left, None);
    }
}
