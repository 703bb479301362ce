//! Running everything on all cores.

use super::measure::{Measured, observe, validate};
use super::peers::Peer;
use super::setting::{Case, Household};
use crate::repro::Progress;
use crate::repro::parallel::{Outcome, in_parallel};
use crate::run::RunError;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A smaller population.
    pub quick: bool,
    /// Peers of captures, in the place of the simulated population.
    pub captured: Option<Vec<Peer>>,
}

impl Request {
    /// Hosts of the simulated population.
    #[must_use]
    pub const fn households(&self) -> u32 {
        match (&self.captured, self.quick) {
            (Some(_), _) => 0,
            (None, true) => 60,
            (None, false) => 300,
        }
    }
}

/// What all runs showed.
#[derive(Clone, Debug)]
pub struct Results {
    /// What was asked for.
    pub request: Request,
    /// The validation.
    pub cases: Vec<Measured>,
    /// The peers.
    pub peers: Vec<Peer>,
}

enum Job {
    Validate(Case),
    Observe(u32, Household),
}

enum Done {
    Case(Box<Measured>),
    Peer(Option<Peer>),
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
    let houses = Household::population(request.households()).into_iter().zip(1..);
    let work: Vec<Job> = (Case::all().into_iter().map(Job::Validate))
        .chain(houses.map(|(house, number)| Job::Observe(number, house)))
        .collect();
    let run = |job: &Job| match job {
        Job::Validate(case) => validate(*case, stop).map(|measured| Done::Case(Box::new(measured))),
        Job::Observe(number, house) => observe(house, stop).map(|(remote, report)| {
            let host = report.hosts.iter().find(|host| host.address == remote);
            Done::Peer(host.and_then(|host| Peer::of(number.to_string(), host)))
        }),
    };
    let done = in_parallel(&work, jobs, stop, hear, |job| run(job).map(Outcome::fresh));
    let done = done.map_err(|error| error.unwrap_or(RunError::Interrupted))?;
    let (mut cases, mut peers) = (Vec::new(), request.captured.clone().unwrap_or_default());
    for one in done {
        match one {
            Done::Case(measured) => cases.push(*measured),
            Done::Peer(peer) => peers.extend(peer),
        }
    }
    Ok(Results { request, cases, peers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stopped_is_interrupted() {
        let stopped = execute(Request::default(), 2, &|| true, &|_| ());
        assert!(matches!(stopped, Err(RunError::Interrupted)));
    }
}
