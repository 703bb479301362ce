//! Running many swarms, several at a time, and keeping what was measured.

use super::measured::Measured;
use super::plan::{Job, Selection};
use crate::Progress;
use crate::parallel::{Outcome, in_parallel};
use cede_lab::swarm::{SwarmError, SwarmWatcher, run};
use cede_units::Instant as Virtual;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why not everything was run.
#[derive(Debug)]
pub enum ExecuteSwarmsError {
    /// It was stopped. What was measured is kept.
    Interrupted,
    /// A swarm cannot be run.
    Swarm(SwarmError),
    /// A result cannot be kept.
    Store(PathBuf, std::io::Error),
}

impl fmt::Display for ExecuteSwarmsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted"),
            Self::Swarm(error) => error.fmt(f),
            Self::Store(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for ExecuteSwarmsError {}

struct Listener<'a>(&'a (dyn Fn() -> bool + Sync));

impl SwarmWatcher for Listener<'_> {
    fn progress(&mut self, _: Virtual, _: usize, _: usize) -> bool {
        !(self.0)()
    }
}

/// Runs what is selected, `threads` swarms at a time (at least one): the first repetition of everything, then the second,
/// and so on. Answers in the order of the jobs, with nothing for what is neither selected nor kept. Results are kept in
/// `store`, one file for each; what is there already is not run again. `hear` is called after each swarm; nothing
/// starts, and what runs is given up, once `stop` says so.
///
/// # Errors
/// The first [`ExecuteSwarmsError`] that occurred.
pub fn execute(
    jobs: &[Job],
    selection: &Selection,
    store: &Path,
    threads: usize,
    stop: &(dyn Fn() -> bool + Sync),
    hear: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<Option<Measured>>, ExecuteSwarmsError> {
    std::fs::create_dir_all(store).map_err(|error| ExecuteSwarmsError::Store(store.into(), error))?;
    let (mut chosen, others): (Vec<_>, Vec<_>) =
        jobs.iter().enumerate().partition(|(_, job)| selection.takes(job));
    chosen.sort_by_key(|(_, job)| job.repetition);
    let measured = in_parallel(&chosen, threads, stop, hear, |(_, job)| one(job, store, stop));
    let measured = measured.map_err(|error| error.unwrap_or(ExecuteSwarmsError::Interrupted))?;
    let mut all: Vec<Option<Measured>> = jobs.iter().map(|_| None).collect();
    chosen.iter().zip(measured).for_each(|(&(place, _), measured)| all[place] = Some(measured));
    others.into_iter().for_each(|(place, job)| all[place] = kept(&store.join(file_name(job))));
    Ok(all)
}

/// What was measured at an earlier time.
fn kept(path: &Path) -> Option<Measured> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// One job, unless it had been run before.
fn one(
    job: &Job,
    store: &Path,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Outcome<Measured>, ExecuteSwarmsError> {
    let path = store.join(file_name(job));
    if let Some(measured) = kept(&path) {
        return Ok(Outcome { measured, reused: true });
    }
    let outcome = run(&job.swarm, &mut Listener(stop)).map_err(ExecuteSwarmsError::Swarm)?;
    if outcome.is_interrupted {
        return Err(ExecuteSwarmsError::Interrupted);
    }
    let measured = Measured::of(&job.swarm, &outcome);
    let octets = serde_json::to_vec(&measured).unwrap_or_default();
    // Whole or not at all, should the program be ended meanwhile.
    let draft = path.with_extension("part");
    std::fs::write(&draft, octets)
        .and_then(|()| std::fs::rename(&draft, &path))
        .map_err(|error| ExecuteSwarmsError::Store(path, error))?;
    Ok(Outcome::fresh(measured))
}

/// Letters of a swarm's name in that of its file: file systems have room for 255 in all, and the rest tells them apart.
const NAME_MAX: usize = 200;

/// A name that says what was run, and with what: any change of the swarm or of the program's version gives another.
fn file_name(job: &Job) -> String {
    let described = format!("{} {:?}", env!("CARGO_PKG_VERSION"), job.swarm);
    let hash = described.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let plain = job.key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let plain: String = plain.take(NAME_MAX).collect();
    format!("{plain}-{:03}-{hash:016x}.json", job.swarm.seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tma12;

    /// A swarm of two that is over at once.
    fn job(key: &str, repetition: u32) -> Job {
        let setting = tma12::setting::Setting::homogeneous(5, 1, 1, 50_000);
        Job { key: key.to_string(), repetition, swarm: setting.swarm(repetition) }
    }

    #[test]
    fn what_is_selected_is_run_and_what_is_kept_is_found_again() {
        let store = std::env::temp_dir().join(format!("cede-execute-{}", std::process::id()));
        let jobs = [job("a", 0), job("a", 1), job("b", 0)];
        let there = |selection: &Selection| {
            let all = execute(&jobs, selection, &store, 2, &|| false, &|_| {}).unwrap();
            all.iter().map(Option::is_some).collect::<Vec<bool>>()
        };
        let some = |only: &[&str], repetitions| Selection {
            only: only.iter().map(ToString::to_string).collect(),
            repetitions,
        };
        assert_eq!(there(&some(&["a"], Some(1))), [true, false, false]);
        // Nothing is run, and what is kept is there.
        assert_eq!(there(&some(&[], Some(0))), [true, false, false]);
        assert_eq!(there(&some(&["b", "c"], None)), [true, false, true]);
        assert_eq!(there(&Selection::default()), [true, true, true]);
        std::fs::remove_dir_all(&store).unwrap();
    }
}
