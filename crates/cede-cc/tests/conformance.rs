//! Every registered controller passes the conformance suite, with default and with unusual parameters.

use cede_cc::conformance::{Subject, check};
use cede_cc::{Allowance, Controller, Feedback, Params, Path, Sent, Snapshot, Tag, Timeout, registry};
use cede_units::Rate;

const SEEDS: u64 = 120;
const STEPS: u32 = 2000;

fn run(entry: &registry::Entry, params: &Params, seeds: u64) {
    let build = |path: &Path| (entry.build)(params, path).expect("the parameters are within their bounds");
    let subject = Subject { responsive: entry.responsive, build: &build };
    for seed in 0..seeds {
        if let Err(violation) = check(&subject, seed, STEPS) {
            panic!("{} with {params:?}: {violation}", entry.name);
        }
    }
}

#[test]
fn every_registered_controller_conforms() {
    assert!(registry::all().len() >= 8);
    for entry in registry::all() {
        run(entry, &Params::new(), SEEDS);
    }
}

#[test]
fn and_does_so_at_the_ends_of_each_parameter() {
    for entry in registry::all() {
        for param in entry.params {
            for value in param.kind.extremes() {
                run(entry, &Params::new().with(param.name, value), 6);
            }
        }
    }
}

/// A controller with one fault, to see that the suite finds it.
struct Faulty {
    window: f64,
    largest: f64,
    fault: Fault,
    calls: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    GrowsOnLoss,
    GrowsBySending,
    GrowsByItself,
    IgnoresTimeouts,
    ReachesZero,
    Stalls,
    NotANumber,
    Unbounded,
    Forgetful,
    Panics,
}

impl Controller for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn on_sent(&mut self, sent: &Sent) -> Tag {
        if self.fault == Fault::GrowsBySending {
            self.window = (self.window + f64::from(sent.bytes)).min(self.largest);
        }
        0
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        self.calls += 1;
        if self.fault == Fault::GrowsByItself {
            self.window = (self.window + 1.0).min(self.largest);
        }
        assert!(self.fault != Fault::Panics || self.calls < 500, "the fault");
        if !feedback.lost.is_empty() {
            self.window *= if self.fault == Fault::GrowsOnLoss { 1.5 } else { 0.5 };
        }
        match (self.fault, self.calls) {
            (Fault::ReachesZero, 300..) => self.window = 0.0,
            (Fault::NotANumber, 300..) => self.window = f64::NAN,
            (Fault::Unbounded, 300..) => self.window = 1e30,
            _ => self.window = self.window.clamp(1.0, self.largest),
        }
        let allowance = self.allowance();
        if self.fault == Fault::Forgetful && self.calls == 300 {
            self.window += 1.0;
        }
        allowance
    }

    fn on_timeout(&mut self, _: &Timeout) -> Allowance {
        if self.fault != Fault::IgnoresTimeouts {
            self.window = 1.0;
        }
        self.allowance()
    }

    fn on_mss(&mut self, _: u32) -> Allowance {
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        let stalled = self.fault == Fault::Stalls && self.calls >= 300;
        let pacing_rate = stalled.then_some(Rate::from_bits_per_sec(1));
        Allowance { pacing_rate, ..Allowance::window(self.window as u64) }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { cwnd_bytes: self.window, ..Snapshot::default() }
    }
}

fn faulty(fault: Fault) -> Result<(), String> {
    let build = |path: &Path| -> Box<dyn Controller> {
        let largest = path.max_cwnd_bytes.clamp(1, 100_000) as f64;
        Box::new(Faulty { window: (largest / 2.0).max(1.0), largest, fault, calls: 0 })
    };
    let subject = Subject { responsive: true, build: &build };
    let all = || (0..20).try_for_each(|seed| check(&subject, seed, 2000));
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(all)) {
        Ok(result) => result.map_err(|violation| violation.rule.to_owned()),
        Err(_) => Err("panic".to_owned()),
    }
}

#[test]
fn the_suite_finds_each_fault_that_is_planted() {
    assert_eq!(faulty(Fault::None), Ok(()));
    let rule = |fault| faulty(fault).expect_err("a fault was planted");
    assert!(rule(Fault::GrowsOnLoss).contains("a loss does not raise"));
    assert!(rule(Fault::GrowsBySending).contains("acknowledges nothing"));
    assert!(rule(Fault::GrowsByItself).contains("acknowledges nothing"));
    assert!(rule(Fault::IgnoresTimeouts).contains("timeout"));
    assert!(rule(Fault::ReachesZero).contains("at least one octet"));
    assert!(rule(Fault::Stalls).contains("once a minute"));
    assert!(rule(Fault::NotANumber).contains("octet") || rule(Fault::NotANumber).contains("finite"));
    assert!(rule(Fault::Unbounded).contains("largest"));
    assert!(rule(Fault::Forgetful).contains("allowance()"));
    assert_eq!(rule(Fault::Panics), "panic");
}
