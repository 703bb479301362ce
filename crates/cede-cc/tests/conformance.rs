//! Every registered controller passes the conformance suite, with default and with unusual parameters.

use cede_cc::conformance::{Subject, check, check_on_a_link, check_unused};
use cede_cc::{
    Allowance, Controller, DelaySamples, Feedback, Params, Path, Sent, Snapshot, Tag, Timeout, registry,
};
use cede_units::{Instant, Rate};

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
fn every_responsive_controller_bears_a_link_of_its_own() {
    for entry in registry::all() {
        let build = |path: &Path| (entry.build)(&Params::new(), path).unwrap();
        let subject = Subject { responsive: entry.responsive, build: &build };
        for seed in 0..2 {
            if let Err(violation) = check_on_a_link(&subject, seed) {
                panic!("{}: {violation}", entry.name);
            }
        }
    }
}

/// As their authors' code does: libutp's slow start and PCC's first phase grow however little is sent.
const GROW_UNUSED: &[&str] =
    &["ledbat-libutp", "ledbat++-libutp", "vivace", "proteus-p", "proteus-s", "proteus-h"];

#[test]
fn windows_that_are_not_used_stay_small_but_for_those_named() {
    for entry in registry::all() {
        let build = |path: &Path| (entry.build)(&Params::new(), path).unwrap();
        let found = check_unused(&Subject { responsive: entry.responsive, build: &build }, 1);
        assert_eq!(found.is_err(), GROW_UNUSED.contains(&entry.name), "{}: {found:?}", entry.name);
    }
}

#[test]
fn and_does_so_at_the_ends_of_each_parameter() {
    for entry in registry::all() {
        let path = Path { mss_bytes: 1_400, initial_cwnd_bytes: 14_000, max_cwnd_bytes: 1 << 24 };
        for params in entry.at_the_ends(&path) {
            run(entry, &params, 6);
        }
    }
}

/// A controller with one fault, to see that the suite finds it.
struct Faulty {
    window: f64,
    largest: f64,
    fault: Fault,
    calls: u32,
    last_ns: u64,
    /// It grows at all, as a link of its own needs.
    grows: bool,
    starts: bool,
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
    OverflowsOnRtt,
    PanicsOnTime,
    NeverLeavesSlowStart,
    DoublesThroughMarks,
    GrowsUnused,
    GrowsByDelays,
    Spins,
}

impl Faulty {
    fn take_time(&mut self, feedback: &Feedback<'_>) {
        let now_ns = feedback.now.as_nanos();
        if self.fault == Fault::PanicsOnTime {
            let _ = now_ns.checked_sub(self.last_ns).expect("the fault");
        }
        if let (Fault::OverflowsOnRtt, Some(rtt)) = (self.fault, feedback.rtt) {
            let _ = rtt.as_nanos().checked_mul(8).expect("the fault");
        }
        self.last_ns = now_ns;
    }

    /// Doubles until the first loss or mark, then one packet in a round trip; not while the application is slow.
    fn grow(&mut self, feedback: &Feedback<'_>) {
        let marked = feedback.ce_marked > 0 && self.fault != Fault::DoublesThroughMarks;
        self.starts &= feedback.lost.is_empty() && !marked || self.fault == Fault::NeverLeavesSlowStart;
        if marked && !feedback.in_recovery {
            self.window *= 0.9;
        }
        let unused = feedback.app_limited && self.fault != Fault::GrowsUnused;
        if !self.grows || unused || marked || !feedback.lost.is_empty() {
            return;
        }
        let acked = feedback.acked_bytes as f64;
        self.window += if self.starts { acked } else { acked * 1000.0 / self.window };
    }
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
        self.take_time(feedback);
        self.grow(feedback);
        if !feedback.lost.is_empty() && self.fault != Fault::NeverLeavesSlowStart {
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

    fn on_delays(&mut self, _: &DelaySamples) {
        if self.fault == Fault::GrowsByDelays {
            self.window = (self.window + 1.0).min(self.largest);
        }
    }

    fn on_timeout(&mut self, _: &Timeout) -> Allowance {
        if self.fault != Fault::IgnoresTimeouts {
            self.window = 1.0;
        }
        self.allowance()
    }

    /// Due at once, whatever was done.
    fn timer(&self) -> Option<Instant> {
        (self.fault == Fault::Spins && self.calls >= 300).then_some(Instant::ZERO)
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
        let window = (largest / 2.0).max(1.0);
        Box::new(Faulty { window, largest, fault, calls: 0, last_ns: 0, grows: false, starts: true })
    };
    let on_a_link = |path: &Path| -> Box<dyn Controller> {
        let (window, largest) = (f64::from(path.initial_cwnd_bytes), path.max_cwnd_bytes as f64);
        Box::new(Faulty { window, largest, fault, calls: 0, last_ns: 0, grows: true, starts: true })
    };
    let subject = Subject { responsive: true, build: &build };
    let all = || {
        (0..20).try_for_each(|seed| check(&subject, seed, 2000))?;
        let subject = Subject { responsive: true, build: &on_a_link };
        check_on_a_link(&subject, 1)?;
        check_unused(&subject, 1)
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(all)) {
        Ok(result) => result.map_err(|violation| violation.rule.to_owned()),
        Err(_) => Err("panic".to_owned()),
    }
}

#[test]
fn a_timer_that_never_moves_on_is_found_and_ends() {
    let spins = |path: &Path| -> Box<dyn Controller> {
        let (window, largest) = (f64::from(path.initial_cwnd_bytes), path.max_cwnd_bytes as f64);
        let fault = Fault::Spins;
        Box::new(Faulty { window, largest, fault, calls: 0, last_ns: 0, grows: true, starts: true })
    };
    let subject = Subject { responsive: true, build: &spins };
    for found in [check_on_a_link(&subject, 1), check_unused(&subject, 1)] {
        let violation = found.expect_err("it never moves on");
        assert_eq!(violation.rule, "on_timer moves the timer on");
        assert!(violation.detail.starts_with("0.000000000 s again and again"), "{violation}");
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
    assert!(rule(Fault::GrowsByDelays).contains("acknowledges nothing"));
    assert!(rule(Fault::NeverLeavesSlowStart).contains("does not lose more"));
    assert!(rule(Fault::DoublesThroughMarks).contains("a queue that marks"));
    assert!(rule(Fault::GrowsUnused).contains("does not use"));
    assert!(rule(Fault::Spins).contains("moves the timer on"));
    for fault in [Fault::Panics, Fault::OverflowsOnRtt, Fault::PanicsOnTime] {
        assert_eq!(rule(fault), "panic", "{fault:?}");
    }
}
