//! The battery survives controllers from elsewhere that do what none may, says what they did, and keeps what else it found.

use cede_cc::registry::{Entry, find};
use cede_cc::{Allowance, Controller, Feedback, ParamError, Params, Path, Snapshot, Timeout};
use cede_lab::check::{Battery, Findings, Subject};
use cede_lab::scenario::ProtocolKind;
use cede_units::{Duration, Instant, Rate};

/// What it does.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    PanicsAtALoss,
    /// Its timer is due at the beginning of time, again and again.
    LivesInThePast,
    /// Its timer is due at once.
    LivesNow,
    /// Its timer is due in a nanosecond.
    Crawls,
    NotANumberAfterALoss,
    InfiniteThreshold,
    NoWindowAfterALoss,
    NoPaceAfterALoss,
}

/// A window of so many packets that is in order but for one fault.
struct Wrong {
    fault: Fault,
    window_bytes: f64,
    now: Instant,
    has_lost: bool,
}

impl Controller for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        self.now = feedback.now;
        let is_loss = feedback.lost_bytes > 0;
        assert!(!(is_loss && self.fault == Fault::PanicsAtALoss), "a packet was lost");
        if is_loss && self.fault == Fault::NotANumberAfterALoss {
            self.window_bytes = f64::NAN;
        }
        self.has_lost |= is_loss;
        self.allowance()
    }

    fn on_timeout(&mut self, _: &Timeout) -> Allowance {
        self.allowance()
    }

    fn on_timer(&mut self, now: Instant) -> Allowance {
        self.now = now;
        self.allowance()
    }

    fn timer(&self) -> Option<Instant> {
        match self.fault {
            Fault::LivesInThePast => Some(Instant::ZERO),
            Fault::LivesNow => Some(self.now),
            Fault::Crawls => Some(self.now + Duration::from_nanos(1)),
            _ => None,
        }
    }

    fn on_mss(&mut self, _: u32) -> Allowance {
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        let holds = self.has_lost && self.fault == Fault::NoWindowAfterALoss;
        let window = Allowance::window(if holds { 0 } else { self.window_bytes as u64 });
        Allowance { pacing_rate: self.pace(), ..window }
    }

    fn snapshot(&self) -> Snapshot {
        let ssthresh_bytes = (self.fault == Fault::InfiniteThreshold).then_some(f64::INFINITY);
        let pacing_rate = self.pace();
        Snapshot { cwnd_bytes: self.window_bytes, ssthresh_bytes, pacing_rate, ..Snapshot::default() }
    }
}

impl Wrong {
    fn pace(&self) -> Option<Rate> {
        (self.has_lost && self.fault == Fault::NoPaceAfterALoss).then(Rate::default)
    }
}

fn build<const FAULT: usize>(_: &Params, _: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let fault = FAULTS[FAULT];
    Ok(Box::new(Wrong { fault, window_bytes: 40_000.0, now: Instant::ZERO, has_lost: false }))
}

const FAULTS: [Fault; 8] = [
    Fault::PanicsAtALoss,
    Fault::LivesInThePast,
    Fault::LivesNow,
    Fault::Crawls,
    Fault::NotANumberAfterALoss,
    Fault::InfiniteThreshold,
    Fault::NoWindowAfterALoss,
    Fault::NoPaceAfterALoss,
];

fn check(build: cede_cc::registry::Build, over: ProtocolKind) -> Vec<Findings> {
    let reno = find("reno").expect("it is there");
    let entry = Entry { name: "wrong", params: &[], build, ..*reno };
    // An application that says little, and a loss that a window of 40 kB meets.
    let only = ["application/limited", "loss/single"].map(String::from);
    let battery = Battery::new(Subject::new(&entry)).over(over).only(&only).expect("they are there");
    battery.run(&|_| true).expect("it goes on")
}

/// All cases fail, and say so; or those with a loss alone.
fn fails(build: cede_cc::registry::Build, says: &str, without_loss_too: bool) {
    for over in [ProtocolKind::Utp, ProtocolKind::Tcp] {
        let found = check(build, over);
        let said = |case: &str| {
            let found = found.iter().find(|found| found.case == case).expect("it was asked for");
            assert_eq!(found.findings.is_empty(), found.failure.is_some());
            assert!(found.failure.is_none() || !found.passed);
            assert!(!found.scenarios.is_empty(), "to look into it");
            found.failure.clone()
        };
        let loss = said("loss/single").unwrap_or_else(|| panic!("{says}: nothing was said over {over:?}"));
        assert!(loss.contains(says), "{loss}");
        assert_eq!(said("application/limited").is_some(), without_loss_too, "{says}, {over:?}");
    }
}

#[test]
fn a_panic_fails_its_case_alone() {
    fails(build::<0>, "panicked: a packet was lost", false);
}

#[test]
fn a_panic_when_it_is_built_fails_every_case() {
    fails(|_, _| panic!("cannot be"), "panicked: cannot be", true);
    fails(
        |_, _| Err(ParamError::Duplicate { name: "x".to_string() }),
        "panicked: `wrong` cannot be built: the parameter \"x\" is given twice",
        true,
    );
}

#[test]
fn timers_that_let_no_time_pass_end() {
    let says =
        "the controller `wrong`: the congestion controller's timer runs out without end (flow `own`, at ";
    fails(build::<1>, says, true);
    fails(build::<2>, says, true);
    fails(build::<3>, says, true);
}

#[test]
fn what_is_no_number_is_said() {
    fails(build::<4>, "the controller `wrong`: its snapshot says that the window is NaN", false);
    fails(build::<5>, "its snapshot says that the slow-start threshold is inf", true);
}

#[test]
fn what_lets_nothing_leave_is_said() {
    fails(build::<6>, "the controller `wrong`: it allows a window of no octet (flow `own`, at ", false);
    fails(build::<7>, "it paces at 0 bit/s, at which nothing leaves", false);
}
