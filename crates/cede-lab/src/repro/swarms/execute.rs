//! Running many swarms, several at a time, and keeping what was measured.

use super::measured::Measured;
use crate::repro::Progress;
use crate::repro::parallel::{Outcome, in_parallel};
use crate::swarm::{Swarm, SwarmError, SwarmWatcher, run};
use cede_units::Instant as Virtual;
use std::fmt;
use std::path::{Path, PathBuf};

/// A swarm to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// What it is kept under.
    pub key: String,
    /// The swarm.
    pub swarm: Swarm,
}

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

/// Runs everything, `threads` swarms at a time (at least one), and answers in the order of the jobs. Results are kept in
/// `store`, one file for each key; what is there already is not run again. `hear` is called after each swarm; nothing
/// starts, and what runs is given up, once `stop` says so.
///
/// # Errors
/// The first [`ExecuteSwarmsError`] that occurred.
pub fn execute(
    jobs: &[Job],
    store: &Path,
    threads: usize,
    stop: &(dyn Fn() -> bool + Sync),
    hear: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<Measured>, ExecuteSwarmsError> {
    std::fs::create_dir_all(store).map_err(|error| ExecuteSwarmsError::Store(store.into(), error))?;
    let measured = in_parallel(jobs, threads, stop, hear, |job| one(job, store, stop));
    measured.map_err(|error| error.unwrap_or(ExecuteSwarmsError::Interrupted))
}

/// One job, unless it had been run before.
fn one(
    job: &Job,
    store: &Path,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Outcome<Measured>, ExecuteSwarmsError> {
    let path = store.join(file_name(job));
    let kept = std::fs::read(&path).ok().and_then(|octets| serde_json::from_slice(&octets).ok());
    if let Some(measured) = kept {
        return Ok(Outcome { measured, reused: true });
    }
    let outcome = run(&job.swarm, &mut Listener(stop)).map_err(|error| match error {
        SwarmError::Interrupted => ExecuteSwarmsError::Interrupted,
        error => ExecuteSwarmsError::Swarm(error),
    })?;
    let measured = Measured::of(&job.swarm, &outcome);
    let octets = serde_json::to_vec(&measured).unwrap_or_default();
    // Whole or not at all, should the program be ended meanwhile.
    let draft = path.with_extension("part");
    std::fs::write(&draft, octets)
        .and_then(|()| std::fs::rename(&draft, &path))
        .map_err(|error| ExecuteSwarmsError::Store(path, error))?;
    Ok(Outcome::fresh(measured))
}

/// A name that says what was run, and with what: any change of the swarm or of the program's version gives another.
fn file_name(job: &Job) -> String {
    let described = format!("{} {:?}", env!("CARGO_PKG_VERSION"), job.swarm);
    let hash = described.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let plain: String = job.key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{plain}-{:03}-{hash:016x}.json", job.swarm.seed)
}
