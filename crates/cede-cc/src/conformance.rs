//! What every controller must satisfy, whatever it is fed.
//!
//! [`check`] drives a controller through a generated sequence of feedback and verifies the [`RULES`] after every call. Half of the
//! sequences come from a plausible transport (packets that were sent are acknowledged or lost in order, delays
//! wander, timers run out), half from a hostile one (any field may hold anything its type can, time stands still or
//! leaps). The same seed gives the same sequence, so a [`Violation`] can be replayed.
//!
//! [`check_on_a_link`] runs it on a small link of its own for half a minute, for what no single call shows, and [`check_unused`] with little to send.
//!
//! The crate's own test runs this for every entry of the [`registry`](crate::registry). To check a controller of
//! your own:
//!
//! ```
//! use cede_cc::conformance::{Subject, check, check_on_a_link};
//! use cede_cc::{Params, registry};
//!
//! let subject = Subject { responsive: true, build: &|path| registry::build("reno", &Params::new(), path).unwrap() };
//! assert_eq!(check(&subject, 1, 1000), Ok(()));
//! assert_eq!(check_on_a_link(&subject, 1), Ok(()));
//! ```

mod link;
mod transport;

pub use link::{LINK_RULES, check_on_a_link, check_unused};

use crate::{Allowance, Controller, Path, Snapshot, Tag};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use cede_units::{Duration, Stream};
use core::fmt;
use transport::{Call, Model};

/// The rules, in the words that a [`Violation`] quotes. That no call panics goes without saying.
pub const RULES: &[&str] = &[BOUNDS, FINITE, AGREE, PACING, STALL, GROWTH, LOSS, TIMEOUT, TIMER, DETERMINISM];

const BOUNDS: &str =
    "the window is at least one octet and at most the path's largest, or one packet where that is more";
const FINITE: &str = "windows and thresholds in snapshots are finite and not negative";
const AGREE: &str = "allowance() repeats what the last call answered";
const PACING: &str = "a pacing rate is not zero, and a burst not either";
const STALL: &str = "where feedback is plausible, pacing lets a packet leave at least once a minute";
const GROWTH: &str = "what acknowledges nothing (a departure, an empty feedback, delays alone, a timer) does not raise a window above two packets";
const LOSS: &str = "feedback that reports a loss does not raise the window";
const TIMEOUT: &str = "a timeout does not raise the window above two packets, and lowers one above four";
const TIMER: &str = "on_timer moves the timer on";
const DETERMINISM: &str = "the same calls give the same state";

/// Who lets nothing leave for longer than this has stopped.
const STALLED: Duration = Duration::from_secs(60);

/// What is checked.
pub struct Subject<'a> {
    /// It responds to congestion: the rules on loss and timeouts apply.
    pub responsive: bool,
    /// Builds a fresh one.
    pub build: &'a dyn Fn(&Path) -> Box<dyn Controller>,
}

/// A rule that did not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// The seed of the sequence.
    pub seed: u64,
    /// The number of the call.
    pub step: u32,
    /// What was seen.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} of seed {}: not kept: {}: {}", self.step, self.seed, self.rule, self.detail)
    }
}

impl core::error::Error for Violation {}

/// Feeds a controller `steps` calls of the sequence `seed`; even seeds are plausible, odd ones hostile.
///
/// # Errors
/// The first [`Violation`].
pub fn check(subject: &Subject<'_>, seed: u64, steps: u32) -> Result<(), Violation> {
    let mut random = Stream::named(seed, "conformance");
    let path = random_path(&mut random);
    let mut trial = Trial {
        first: (subject.build)(&path),
        second: (subject.build)(&path),
        responsive: subject.responsive,
        hostile: seed % 2 == 1,
        path,
        mss: path.mss_bytes,
        seed,
        step: 0,
    };
    let mut model = Model::new(random, &path, trial.hostile);
    trial.inspect(trial.first.allowance())?;
    for step in 0..steps {
        trial.step = step;
        let call = model.next_call(trial.first.allowance(), trial.first.timer());
        let tag = trial.make(&call)?;
        if matches!(call, Call::Sent(_)) {
            model.note_tag(tag);
        }
    }
    Ok(())
}

fn random_path(random: &mut Stream) -> Path {
    let mss_bytes = [1, 150, 536, 1382, 1448, 8948, 65_000][random.below(7) as usize];
    let initial_cwnd_bytes = mss_bytes * [0, 1, 2, 3, 10][random.below(5) as usize];
    let max_cwnd_bytes = [0, 1, 100_000, 1 << 20, 1 << 30, u64::MAX][random.below(6) as usize];
    Path { mss_bytes, initial_cwnd_bytes, max_cwnd_bytes }
}

/// Two controllers of one kind that are called alike.
struct Trial {
    first: Box<dyn Controller>,
    second: Box<dyn Controller>,
    responsive: bool,
    hostile: bool,
    path: Path,
    mss: u32,
    seed: u64,
    step: u32,
}

impl Trial {
    fn require(
        &self,
        kept: bool,
        rule: &'static str,
        detail: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        if kept {
            return Ok(());
        }
        Err(Violation { rule, seed: self.seed, step: self.step, detail: detail() })
    }

    /// Makes a call, and answers with the tag that a departing packet is given.
    fn make(&mut self, call: &Call) -> Result<Tag, Violation> {
        if let Call::Mss(mss_bytes) = call {
            self.mss = *mss_bytes;
        }
        let (before, allowed) = (self.first.snapshot().cwnd_bytes, self.first.allowance().cwnd_bytes);
        let (allowance, tag) = call.apply(&mut *self.first);
        let (_, other_tag) = call.apply(&mut *self.second);
        self.inspect(allowance)?;
        self.inspect_reaction(call, before)?;
        self.inspect_growth(call, before, allowed)?;
        let same = tag == other_tag
            && self.first.snapshot() == self.second.snapshot()
            && self.first.timer() == self.second.timer();
        self.require(same, DETERMINISM, || {
            format!("{:?}, {:?}", self.first.snapshot(), self.second.snapshot())
        })?;
        Ok(tag)
    }

    fn inspect(&self, allowance: Allowance) -> Result<(), Violation> {
        let largest = self.path.max_cwnd_bytes.max(u64::from(self.mss.max(1)));
        let (window, snapshot) = (allowance.cwnd_bytes, self.first.snapshot());
        self.require((1..=largest).contains(&window), BOUNDS, || format!("{window} of {:?}", self.path))?;
        self.require(is_finite(&snapshot), FINITE, || format!("{snapshot:?}"))?;
        let again = self.first.allowance();
        self.require(allowance == again, AGREE, || format!("{allowance:?}, then {again:?}"))?;
        let paced =
            allowance.burst_bytes > 0 && allowance.pacing_rate.is_none_or(|rate| rate.bits_per_sec() > 0);
        self.require(paced, PACING, || format!("{allowance:?}"))?;
        let packet = u64::from(self.mss.max(1));
        let moves =
            self.hostile || allowance.pacing_rate.is_none_or(|rate| rate.time_to_send(packet) <= STALLED);
        self.require(moves, STALL, || format!("{allowance:?}, packet {packet}"))
    }

    /// What may be sent may fall short of the window for a while (a train of packets), and catch up with it; or go beyond a
    /// small one, where two packets leave at a time (NICE).
    fn inspect_growth(&self, call: &Call, before: f64, allowed: u64) -> Result<(), Violation> {
        if call.acknowledges() {
            return Ok(());
        }
        let (after, now_allowed) = (self.first.snapshot().cwnd_bytes, self.first.allowance().cwnd_bytes);
        let two = 2 * u64::from(self.mss.max(1));
        let most = allowed.max(before as u64).max(two);
        self.require(after <= before.max(two as f64) && now_allowed <= most, GROWTH, || {
            format!("{}: {before} -> {after}, allowed {allowed} -> {now_allowed}", call.word())
        })
    }

    fn inspect_reaction(&self, call: &Call, before: f64) -> Result<(), Violation> {
        let after = self.first.snapshot().cwnd_bytes;
        let moved = || format!("{before} -> {after}, packet {}", self.mss);
        let packet = f64::from(self.mss.max(1));
        match call {
            Call::Feedback { lost, .. } if self.responsive && !lost.is_empty() => {
                self.require(after <= before, LOSS, moved)
            }
            Call::Timeout(timeout) if self.responsive => {
                let lowered = timeout.idle || before <= 4.0 * packet || after < before;
                self.require(after <= before.max(2.0 * packet) && lowered, TIMEOUT, moved)
            }
            Call::Timer(now) => {
                let later = self.first.timer().is_none_or(|at| at > *now);
                self.require(later, TIMER, || format!("{:?} at {now}", self.first.timer()))
            }
            _ => Ok(()),
        }
    }
}

fn is_finite(snapshot: &Snapshot) -> bool {
    let fine = |octets: f64| octets.is_finite() && octets >= 0.0;
    fine(snapshot.cwnd_bytes) && snapshot.ssthresh_bytes.is_none_or(fine)
}
