//! Running everything on all cores.

use super::measure::{Measured, observe, validate};
use super::peers::Peer;
use super::setting::{Case, Conditions, Household};
use crate::Progress;
use crate::parallel::{Outcome, in_parallel};
use cede_lab::run::RunError;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Where the validation runs.
    pub world: World,
    /// A smaller population, and shorter cases in the real world.
    pub quick: bool,
    /// Peers of captures, in the place of the simulated population.
    pub captured: Option<Vec<Peer>>,
}

/// Where the validation runs. What is real is run by whoever can (`cede-testbed`), and put into [`Results::real`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum World {
    /// In the simulated world, and in the real one where that is possible.
    #[default]
    Both,
    /// In the simulated world alone.
    Simulated,
    /// In network namespaces alone, without the population.
    Real,
}

impl Request {
    fn cases(&self) -> Vec<Case> {
        if self.world == World::Real { Vec::new() } else { Case::all() }
    }

    /// Hosts of the simulated population.
    #[must_use]
    pub const fn households(&self) -> u32 {
        match (&self.captured, self.quick) {
            _ if matches!(self.world, World::Real) => 0,
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
    /// The validation in the simulated world.
    pub cases: Vec<Measured>,
    /// The validation in the real one; empty where it did not run.
    pub real: Vec<Measured>,
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
    let work: Vec<Job> = (request.cases().into_iter().map(Job::Validate))
        .chain(houses.map(|(house, number)| Job::Observe(number, house)))
        .collect();
    let run = |job: &Job| match job {
        Job::Validate(case) => {
            validate(*case, &Conditions::USUAL, stop).map(|measured| Done::Case(Box::new(measured)))
        }
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
    Ok(Results { request, cases, real: Vec::new(), peers })
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
