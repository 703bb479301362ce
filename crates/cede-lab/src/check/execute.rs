//! Running the battery on all cores.

use super::bench::{Bench, Staged, Subject, set_parameter, unknown};
use super::case::{Case, Family, Finding};
use super::cases;
use crate::run::RunError;
use crate::scenario::ProtocolKind;
use serde::Serialize;
use std::any::Any;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What came of a case.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Findings {
    /// The case's name.
    pub case: &'static str,
    /// Its family.
    pub family: Family,
    /// What the world was like.
    pub world: &'static str,
    /// What it guards against.
    pub story: &'static str,
    /// Every figure is within its mark.
    pub passed: bool,
    /// The figures with their marks.
    pub findings: Vec<Finding>,
    /// Why the case could not be measured, where the controller kept it from being; there are no figures then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The scenarios that were run, in order.
    #[serde(skip)]
    pub scenarios: Vec<Staged>,
}

impl Findings {
    /// The figure that decides: the one that is furthest beyond its mark, or nearest to it.
    #[must_use]
    pub fn decisive(&self) -> Option<&Finding> {
        let margin = |finding: &&Finding| finding.mark.margin(finding.measured);
        self.findings.iter().min_by(|a, b| margin(a).total_cmp(&margin(b)))
    }
}

/// How far the battery has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Cases that are done.
    pub done: usize,
    /// All cases.
    pub total: usize,
}

/// A battery, ready to run.
#[derive(Clone, Debug)]
pub struct Battery {
    subject: Subject,
    chosen: Vec<&'static Case>,
    jobs: usize,
}

impl Battery {
    /// All cases, on all cores.
    #[must_use]
    pub fn new(subject: Subject) -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { subject, chosen: cases().collect(), jobs }
    }

    /// Those cases alone whose name or family this is.
    ///
    /// # Errors
    /// The names there are, where nothing is called so.
    pub fn only(mut self, names: &[String]) -> Result<Self, String> {
        let is = |case: &Case, name: &str| case.name == name || case.family.word() == name;
        if let Some(wrong) = names.iter().find(|name| !cases().any(|case| is(case, name))) {
            let mut all: Vec<&str> = cases().map(|case| case.family.word()).collect();
            all.dedup();
            all.extend(cases().map(|case| case.name));
            return Err(unknown(&format!("no scenario is called `{wrong}`"), wrong, &all));
        }
        if !names.is_empty() {
            self.chosen.retain(|case| names.iter().any(|name| is(case, name)));
        }
        Ok(self)
    }

    /// Over this transport in place of uTP.
    #[must_use]
    pub fn over(mut self, over: ProtocolKind) -> Self {
        self.subject.over = over;
        self
    }

    /// On links that are varied by this seed in place of the pinned ones.
    #[must_use]
    pub fn vary(mut self, seed: u64) -> Self {
        self.subject.vary = Some(seed);
        self
    }

    /// So many cases at a time, one at least.
    #[must_use]
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = jobs.max(1);
        self
    }

    /// Sets a parameter of the controller: `PARAMETER=VALUE`.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    pub fn set(self, text: &str) -> Result<Self, String> {
        self.set_all([text])
    }

    /// Sets several parameters at once, which may hold only together.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    pub fn set_all<'t>(mut self, texts: impl IntoIterator<Item = &'t str>) -> Result<Self, String> {
        texts.into_iter().try_for_each(|text| set_parameter(&mut self.subject, text))?;
        let path = cede_cc::Path { mss_bytes: 1_400, initial_cwnd_bytes: 14_000, max_cwnd_bytes: 1 << 24 };
        (self.subject.entry.build)(&self.subject.params, &path).map_err(|error| error.to_string())?;
        Ok(self)
    }

    /// The scenarios of the cases, without what they show: each is run for a millisecond only.
    ///
    /// # Errors
    /// [`RunError`] where a scenario could not be run.
    pub fn scenarios(&self) -> Result<Vec<(&'static Case, Vec<Staged>)>, RunError> {
        let stage = |case: &&'static Case| {
            let bench = Bench::new(&self.subject, case.name, &|| true).staging();
            (case.measure)(&bench)?;
            Ok((*case, bench.into_scenarios()))
        };
        self.chosen.iter().map(stage).collect()
    }

    /// Runs the cases; the findings are in the cases' order whatever finished first. `hear` is told of each case that
    /// is done, and asked now and then whether to go on. A case that the controller keeps from being measured, since it panics,
    /// lets no time pass, shows what is no number, or lets nothing leave at all (a window of no octet, a pace of nothing), is one that failed: [`Findings::failure`] says why. Only a call that never
    /// returns is not survived.
    ///
    /// # Errors
    /// [`RunError::Interrupted`] where `hear` says no; others where a scenario could not be run.
    pub fn run(&self, hear: &(dyn Fn(Progress) -> bool + Sync)) -> Result<Vec<Findings>, RunError> {
        let total = self.chosen.len();
        let (next, done, stopped) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        let results = Mutex::new((0..total).map(|_| None).collect::<Vec<_>>());
        let go_on = || {
            let answer = hear(Progress { done: done.load(Ordering::Relaxed), total });
            stopped.fetch_or(!answer, Ordering::Relaxed);
            !stopped.load(Ordering::Relaxed)
        };
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.min(total) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(case) = self.chosen.get(index).filter(|_| go_on()) else { return };
                        let result = self.examine(case, &go_on);
                        stopped.fetch_or(result.is_err(), Ordering::Relaxed);
                        done.fetch_add(1, Ordering::Relaxed);
                        results.lock().expect("no thread panics while it holds this")[index] = Some(result);
                    }
                });
            }
        });
        let results = results.into_inner().expect("all threads are done");
        // What was not begun was stopped; what failed comes before it.
        let failed = results.iter().flatten().find_map(|result| result.as_ref().err().cloned());
        let complete: Option<Vec<Findings>> = results.into_iter().map(|result| result?.ok()).collect();
        complete.ok_or(failed.unwrap_or(RunError::Interrupted))
    }

    fn examine(&self, case: &'static Case, go_on: &(dyn Fn() -> bool + Sync)) -> Result<Findings, RunError> {
        let bench = Bench::new(&self.subject, case.name, go_on);
        // What a panic leaves half done is the run's own, and goes with it.
        let measured = catch_unwind(AssertUnwindSafe(|| (case.measure)(&bench)));
        let culprit = |what: String| format!("the controller `{}`: {what}", self.subject.entry.name);
        let (findings, failure) = match (measured, bench.take_fault()) {
            (Err(panic), _) => (Vec::new(), Some(format!("panicked: {}", said_by(&*panic)))),
            (Ok(_), Some(fault)) => (Vec::new(), Some(culprit(fault))),
            (Ok(measured), None) => (measured?, None),
        };
        Ok(Findings {
            case: case.name,
            family: case.family,
            world: case.world,
            story: case.story,
            passed: !findings.is_empty() && findings.iter().all(|finding| finding.holds),
            findings,
            failure,
            scenarios: bench.into_scenarios(),
        })
    }
}

/// The words of a panic.
fn said_by(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}
