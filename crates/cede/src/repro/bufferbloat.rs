//! The paper of GLOBECOM 2013.

use super::{Args, WorldArg, failed, folder, jobs, metered, not_run, tally_and_page, tell, titled};
use crate::captures::Captures;
use crate::failure::Failure;
use crate::lab::unmeasured;
use crate::progress::{Pace, StatusLine};
use crate::{interrupt, meter, screen};
use cede_repro::bufferbloat;
use cede_testbed::{NetnsError, bloat};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

impl WorldArg {
    const fn world(self) -> bufferbloat::World {
        match self {
            Self::Sim => bufferbloat::World::Simulated,
            Self::Netns => bufferbloat::World::Real,
            Self::Both => bufferbloat::World::Both,
        }
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let folder = folder(args, "bufferbloat");
    let captured = (!args.capture.is_empty()).then(|| captured(&args.capture)).transpose()?;
    let (captured, damage) = captured.unzip();
    let world = args.world.unwrap_or(WorldArg::Both).world();
    let request = bufferbloat::Request { world, quick: args.quick, captured };
    let results = metered(|hear| bufferbloat::execute(request, jobs(args), &interrupt::is_asked, hear));
    let mut results = results.map_err(not_run)?;
    if world != bufferbloat::World::Simulated {
        results.real = in_namespaces(world, args.quick)?;
    }
    let report = bufferbloat::Report::of(results);
    let files = report.write(&folder).map_err(|error| failed(&folder, &error))?;
    let tables =
        [("What the paper says", report.statements.short_table()), ("Every case", report.cases_table())];
    let tally = tally_and_page("statements", report.statements.tally(), &files);
    tell(args, |screen| titled(screen, tables) + &tally, || report.to_json())?;
    damage.flatten().map_or(Ok(()), Err)
}

/// The validation with real sockets; empty where it cannot be and is not insisted on, which is said.
fn in_namespaces(world: bufferbloat::World, quick: bool) -> Result<Vec<bufferbloat::Measured>, Failure> {
    let pace = if quick { bloat::Pace::QUICK } else { bloat::Pace::FULL };
    let cases = bufferbloat::setting::Case::all();
    let status = Mutex::new(StatusLine::begin(Pace::patient(Duration::from_secs(1)), None));
    let status_line = || status.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let watch = |elapsed: Duration| {
        let (now, whole) = (elapsed.as_secs(), pace.duration.as_secs());
        status_line().show(|_| format!("{} cases in network namespaces, {now} of {whole} s", cases.len()));
        !interrupt::is_asked()
    };
    interrupt::insist_on_order();
    let measured = bloat::measure_all(&cases, &pace, &watch);
    status_line().end();
    match measured {
        Err(NetnsError::Impossible(why)) if world == bufferbloat::World::Both => {
            screen::complain(&format!("cede: SKIPPED, the validation in network namespaces: {why}"));
            Ok(Vec::new())
        }
        other => other.map_err(unmeasured),
    }
}

/// The peers in captures, and what of these could not be read.
fn captured(files: &[PathBuf]) -> Result<(Vec<bufferbloat::Peer>, Option<Failure>), Failure> {
    let (meter, lacking) = meter::read_captures(&Captures::named(files), &cede_meter::Config::default())?;
    let [damage, cut] = lacking.failures();
    if let Some(cut) = cut {
        return Err(cut);
    }
    let mut pairs = bufferbloat::Pairs::default();
    let report = meter.report_to(&mut pairs);
    let observers = pairs.observers(&report);
    for address in &observers {
        screen::mention(&format!("{address} is where was observed, and no peer\n"));
    }
    let peers = bufferbloat::Peer::all(&report, &observers);
    if peers.is_empty() {
        let text =
            "no peer in these captures has 50 samples; see what there is with: cede meter FILE".to_string();
        damage.iter().for_each(|damage| screen::complain(&damage.words()));
        return Err(Failure::Failed(text));
    }
    Ok((peers, damage))
}
