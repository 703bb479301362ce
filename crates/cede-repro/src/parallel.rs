//! Many runs, several at a time.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How far the runs have come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Runs that are done, those included that had been kept from an earlier time.
    pub done: usize,
    /// Of these, kept from an earlier time.
    pub reused: usize,
    /// All runs.
    pub total: usize,
    /// Time since the beginning.
    pub elapsed: Duration,
    /// An estimate of the time left; none before the first run is done.
    pub left: Option<Duration>,
}

impl Progress {
    fn of(done: usize, reused: usize, total: usize, elapsed: Duration) -> Self {
        let run = done - reused;
        let left = (run > 0).then(|| elapsed.mul_f64((total - done) as f64 / run as f64));
        Self { done, reused, total, elapsed, left }
    }
}

/// What one run came to.
pub(super) struct Outcome<M> {
    /// What was measured.
    pub measured: M,
    /// It had been kept from an earlier time.
    pub reused: bool,
}

impl<M> Outcome<M> {
    /// Of a run that was made now.
    pub(super) const fn fresh(measured: M) -> Self {
        Self { measured, reused: false }
    }
}

/// What the threads share.
struct Done<M, E> {
    measured: Vec<Option<M>>,
    count: usize,
    reused: usize,
    error: Option<E>,
}

impl<M, E> Done<M, E> {
    /// Takes a result in; false where it is an error.
    fn take(&mut self, place: usize, result: Result<Outcome<M>, E>) -> bool {
        match result {
            Ok(outcome) => {
                self.measured[place] = Some(outcome.measured);
                self.reused += usize::from(outcome.reused);
                self.count += 1;
                true
            }
            Err(error) => {
                self.error.get_or_insert(error);
                false
            }
        }
    }
}

/// Runs every setting, `jobs` at a time (at least one), and answers in the order of the settings. `hear` is called after
/// each; nothing starts once `stop` says so.
///
/// # Errors
/// The first that occurred; none where `stop` left something undone.
pub(super) fn in_parallel<S: Sync, M: Send, E: Send>(
    settings: &[S],
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    hear: &(dyn Fn(Progress) + Sync),
    run: impl Fn(&S) -> Result<Outcome<M>, E> + Sync,
) -> Result<Vec<M>, Option<E>> {
    let measured = settings.iter().map(|_| None).collect();
    let done = Mutex::new(Done { measured, count: 0, reused: 0, error: None });
    let (next, began) = (AtomicUsize::new(0), Instant::now());
    let work = || {
        while !stop() {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(setting) = settings.get(place) else { return };
            let result = run(setting);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            if !done.take(place, result) {
                return;
            }
            hear(Progress::of(done.count, done.reused, settings.len(), began.elapsed()));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, settings.len().max(1)) {
            scope.spawn(work);
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (done.error, done.measured.into_iter().collect()) {
        (None, Some(measured)) => Ok(measured),
        (error, _) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_counts_only_what_was_run() {
        let progress = Progress::of(60, 50, 100, Duration::from_secs(10));
        assert_eq!(progress.left, Some(Duration::from_secs(40)));
        assert_eq!(Progress::of(50, 50, 100, Duration::from_secs(1)).left, None);
    }
}
