//! `cede torrent get` and `cede torrent seed`: one torrent or several.

use super::args::{GetArgs, SeedArgs};
use super::board::Board;
use super::duty::Duty;
use super::hub::Hub;
use super::job::{self, Job, Verb};
use super::place::{Place, Written, check_data, check_folder, make_folder};
use super::swarm_args::SwarmArgs;
use super::{source, source_name, swarm};
use crate::carry::numbers;
use crate::failure::Failure;
use crate::{interrupt, screen};
use cede_torrent::session::Turns;
use cede_torrent::storage::Allocation;
use std::rc::Rc;
use tokio::task::JoinSet;

/// Downloads torrents.
pub fn get(args: &GetArgs) -> Result<(), Failure> {
    check(args).inspect_err(|failure| tell_of_none(&args.swarm, &args.what, failure))?;
    let choices = args.clone();
    let gives_on = args.seed || args.until.is_any();
    let verb = Verb {
        place: Box::new(move |source| {
            let wanted = source::wanted(&choices, source)?;
            let turns = source::turns(&choices, source, &wanted)?;
            choices.save_torrent.as_deref().map_or(Ok(()), |path| source::save(path, &source.metainfo))?;
            let allocation = if choices.preallocate { Allocation::Full } else { Allocation::Sparse };
            make_folder(&choices.output)?;
            let written = Some(Written { allocation, over_others: choices.overwrite });
            Ok(Place { folder: choices.output.clone(), wanted, turns, written, is_super: false, known: None })
        }),
        duty: if gives_on { Duty::get_and_give(args.until) } else { Duty::Get },
        known: None,
    };
    swarm::run(run(&args.swarm, &args.what, verb))
}

fn check(args: &GetArgs) -> Result<(), Failure> {
    let lists = [("--files", &args.files), ("--first", &args.first), ("--last", &args.last)];
    if let Some((option, _)) = lists.iter().find(|(_, list)| args.what.len() > 1 && !list.is_empty()) {
        let text =
            format!("{option} picks files of one torrent, and there are several; give them one by one");
        return Err(Failure::Usage(text));
    }
    if args.what.len() > 1 && args.save_torrent.is_some() {
        let text = "--save-torrent names the file of one torrent, and there are several; get them one by one";
        return Err(Failure::Usage(text.to_owned()));
    }
    if let Some(path) = &args.save_torrent {
        source::check_saving(path)?;
    }
    check_folder(&args.output)
}

/// Gives the content of torrents.
pub fn seed(args: &SeedArgs) -> Result<(), Failure> {
    check_data(&args.data).inspect_err(|failure| tell_of_none(&args.swarm, &args.what, failure))?;
    let (folder, is_super) = (args.data.clone(), args.super_seed);
    let verb = Verb {
        place: Box::new(move |_| {
            let (wanted, turns) = (Vec::new(), Turns::default());
            Ok(Place { folder: folder.clone(), wanted, turns, written: None, is_super, known: None })
        }),
        duty: Duty::give(args.until),
        known: None,
    };
    swarm::run(run(&args.swarm, &args.what, verb))
}

/// What all of them failed at, before any was begun.
fn tell_of_none(args: &SwarmArgs, whats: &[String], failure: &Failure) {
    whats.iter().for_each(|what| job::tell_of_nothing(args.json, what, failure));
}

/// All torrents, each to its end.
async fn run(args: &SwarmArgs, whats: &[String], verb: Verb) -> Result<(), Failure> {
    // Programs are told of each end, and trackers of each departure.
    interrupt::bear_with_several();
    let hub = Hub::begin(args, whats.len()).await;
    let hub = hub.inspect_err(|failure| tell_of_none(args, whats, failure))?;
    let verb = Rc::new(verb);
    let mut jobs = JoinSet::new();
    for (row, what) in whats.iter().enumerate() {
        jobs.spawn_local(carry_out(hub.clone(), (row, what.clone()), verb.clone()));
    }
    let mut failures = Vec::new();
    while let Some(ended) = jobs.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => failures.push(failure),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    let done =
        if hub.is_shared() { sum_up(failures, whats.len()) } else { failures.pop().map_or(Ok(()), Err) };
    done.and_then(|()| screen::all_told())
}

/// What becomes of one.
async fn carry_out(hub: Rc<Hub>, (row, what): (usize, String), verb: Rc<Verb>) -> Result<(), Failure> {
    let outcome = match Job::begin(&hub, (row, &what), &verb).await {
        Ok(mut job) => {
            let outcome = job.run(interrupt::asked()).await;
            job.end(outcome).await
        }
        Err(failure) => {
            job::tell_of_nothing(hub.args.json, &what, &failure);
            hub.leave().await;
            Err(failure)
        }
    };
    hub.board(|board| board.over(row));
    if let Some(text) = outcome.as_ref().err().filter(|_| hub.is_shared()).and_then(Failure::text) {
        let is_asked = matches!(outcome, Err(Failure::Interrupted(_)));
        let head = if is_asked { "" } else { "error: " };
        hub.board(Board::clear);
        screen::complain(&format!("{head}{}: {text}", source_name(&what)));
    }
    outcome
}

/// What is said of several, after each was said for itself.
fn sum_up(failures: Vec<Failure>, count: usize) -> Result<(), Failure> {
    let is_interrupted = failures.iter().any(|failure| matches!(failure, Failure::Interrupted(_)));
    let failed = failures.iter().filter(|failure| !matches!(failure, Failure::Interrupted(_))).count();
    let text = format!("{failed} of {} failed", numbers::count(count, "torrent"));
    match failures.into_iter().next() {
        None => Ok(()),
        Some(_) if is_interrupted && failed > 0 => Err(Failure::Interrupted(text)),
        Some(_) if is_interrupted => Err(Failure::Interrupted("the same command goes on".to_owned())),
        Some(Failure::Usage(_)) => Err(Failure::Usage(text)),
        Some(Failure::NotPermitted(_)) => Err(Failure::NotPermitted(text)),
        Some(_) => Err(Failure::Failed(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_the_first_failure_and_any_interruption_decide() {
        let failed = || Failure::Failed(String::new());
        let asked = || Failure::Interrupted(String::new());
        let code = |failures| sum_up(failures, 3).map_err(|failure| (failure.exit_code(), failure.words()));
        assert_eq!(code(vec![]), Ok(()));
        assert_eq!(code(vec![failed(), failed()]), Err((1, "error: 2 of 3 torrents failed".to_owned())));
        let usage = Failure::Usage(String::new());
        assert_eq!(code(vec![usage, failed()]).unwrap_err().0, 2);
        let both = code(vec![failed(), asked(), asked()]).unwrap_err();
        assert_eq!(both, (130, "interrupted: 1 of 3 torrents failed".to_owned()));
        assert_eq!(code(vec![asked()]).unwrap_err().1, "interrupted: the same command goes on");
    }
}
