//! The passive meter beside the log of a simulated queue under many conditions: every drift, seed, loss both ways and reordering
//! that is named, each with every other, in all thirteen cases. The estimates that miss a bound are told, and how many there were.
//!
//! ```text
//! cargo run --release -p cede-repro --example bufferbloat_sweep
//! cargo run --release -p cede-repro --example bufferbloat_sweep -- --drifts=60 --seeds=1,2,3,4
//! cargo run --release -p cede-repro --example bufferbloat_sweep -- --case='TCP chirp' --seeds=7 --all
//! ```
//! Without options it makes the 2,080 runs at -30 and 100 ppm of `docs/bufferbloat.md`, in a minute or two. The exit
//! code is 1 where a bound is missed.

use cede_repro::bufferbloat::bounds::Judged;
use cede_repro::bufferbloat::measure::validate;
use cede_repro::bufferbloat::setting::{Case, Conditions};
use std::fmt::Write;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const USAGE: &str = "bufferbloat_sweep [--drifts=PPM,...] [--seeds=N,...] [--losses=PART,...] [--losses-back=PART,...] \
                     [--held-back=PART,...] [--case=PART OF A TITLE] [--delayed-acks] [--all] [--jobs=N]";

/// What is to be run.
struct Asked {
    drifts_ppm: Vec<i32>,
    seeds: Vec<u32>,
    losses: Vec<f64>,
    losses_back: Vec<f64>,
    held_back: Vec<f64>,
    case: String,
    delayed_acks: bool,
    /// Also what keeps to all bounds is told.
    all: bool,
    jobs: usize,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            drifts_ppm: vec![-30, 100],
            seeds: vec![1, 2, 3, 4, 5],
            losses: vec![0.0, 0.01, 0.03, 0.05],
            losses_back: vec![0.0, 0.03],
            held_back: vec![0.0, 0.02],
            case: String::new(),
            delayed_acks: false,
            all: false,
            jobs: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        }
    }
}

fn list<T: FromStr>(text: &str) -> Option<Vec<T>> {
    text.split(',').map(|part| part.trim().parse().ok()).collect()
}

impl Asked {
    fn parse(arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut asked = Self::default();
        for argument in arguments {
            match argument.split_once('=').unwrap_or((&argument, "")) {
                ("--drifts", text) => asked.drifts_ppm = list(text)?,
                ("--seeds", text) => asked.seeds = list(text)?,
                ("--losses", text) => asked.losses = list(text)?,
                ("--losses-back", text) => asked.losses_back = list(text)?,
                ("--held-back", text) => asked.held_back = list(text)?,
                ("--case", text) => text.clone_into(&mut asked.case),
                ("--jobs", text) => asked.jobs = text.parse().ok().filter(|jobs| *jobs > 0)?,
                ("--delayed-acks", "") => asked.delayed_acks = true,
                ("--all", "") => asked.all = true,
                _ => return None,
            }
        }
        Some(asked)
    }

    fn runs(&self) -> Vec<(Case, Conditions)> {
        let cases = Case::all().into_iter().filter(|case| case.title().contains(&self.case));
        let mut runs: Vec<(Case, Conditions)> = cases
            .map(|case| (case, Conditions { delayed_acks: self.delayed_acks, ..Conditions::USUAL }))
            .collect();
        runs =
            with_each(&runs, &self.drifts_ppm, |it, &clock_drift_ppm| Conditions { clock_drift_ppm, ..it });
        runs = with_each(&runs, &self.losses, |it, &loss| Conditions { loss, ..it });
        runs = with_each(&runs, &self.losses_back, |it, &loss_back| Conditions { loss_back, ..it });
        runs = with_each(&runs, &self.held_back, |it, &held_back| Conditions { held_back, ..it });
        with_each(&runs, &self.seeds, |it, &seed| Conditions { seed, ..it })
    }
}

/// Each run with each of some values.
fn with_each<T>(
    runs: &[(Case, Conditions)],
    values: &[T],
    with: impl Fn(Conditions, &T) -> Conditions + Copy,
) -> Vec<(Case, Conditions)> {
    let each = |&(case, it): &(Case, Conditions)| values.iter().map(move |value| (case, with(it, value)));
    runs.iter().flat_map(each).collect()
}

/// What one run came to: how many estimates there were, how many of them miss a bound, and what is to be told.
#[derive(Default)]
struct Told {
    estimates: usize,
    missed: usize,
    lines: String,
}

fn run((case, conditions): &(Case, Conditions), all: bool) -> Told {
    let Conditions { clock_drift_ppm, loss, loss_back, held_back, seed, .. } = conditions;
    let name = format!("{clock_drift_ppm} ppm, lost {loss} back {loss_back}, held {held_back}, seed {seed}");
    let Ok(measured) = validate(*case, conditions, &|| false) else { return Told::default() };
    let mut told = Told { estimates: measured.estimates.len(), ..Told::default() };
    for estimate in &measured.estimates {
        let judged = Judged::of(case, estimate, conditions);
        told.missed += usize::from(!judged.is_good());
        if all || !judged.is_good() {
            let _ = writeln!(told.lines, "{}", judged.line(&measured, estimate, &name));
        }
    }
    told
}

fn main() -> ExitCode {
    let Some(asked) = Asked::parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let (runs, next, sum) = (asked.runs(), AtomicUsize::new(0), Mutex::new(Told::default()));
    let work = || {
        while let Some(one) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let told = run(one, asked.all);
            print!("{}", told.lines);
            let mut sum = sum.lock().expect("nobody panics with it");
            (sum.estimates, sum.missed) = (sum.estimates + told.estimates, sum.missed + told.missed);
        }
    };
    std::thread::scope(|scope| (0..asked.jobs).for_each(|_| drop(scope.spawn(work))));
    let Told { estimates, missed, .. } = sum.into_inner().expect("nobody panics with it");
    println!("{} runs, {estimates} estimates: {missed} miss a bound", runs.len());
    ExitCode::from(u8::from(missed > 0))
}
