//! A congestion controller written outside of Cede's workspace, checked by the same battery as Cede's own:
//!
//! ```sh
//! cargo run --release -p cede-lab --example check_my_controller
//! cargo run --release -p cede-lab --example check_my_controller -- loss yields/cubic
//! ```
//!
//! A crate elsewhere needs `cede-cc` for the contract, `cede-units` for its quantities and `cede-lab` for the battery.
//! The controller below holds as many packets under way as the path takes at its base RTT, plus a few: too simple to
//! pass everything, and short enough to read.

use cede_cc::registry::Entry;
use cede_cc::{
    Allowance, Controller, Feedback, ParamDoc, ParamError, ParamKind, Params, Path, Phase, Snapshot, Timeout,
};
use cede_lab::check::{Battery, Findings, Subject};
use cede_units::Duration;
use std::process::ExitCode;

const PARAMS: &[ParamDoc] = &[ParamDoc {
    name: "spare",
    kind: ParamKind::Number { min: 1.0, max: 1_000.0 },
    default: "4",
    doc: "Packets beyond what the path holds.",
}];

/// What the laboratory needs to know of the controller.
pub const ENTRY: Entry = Entry {
    name: "spare",
    summary: "A window of the path's content and a few packets.",
    formula: "cwnd += (base / rtt * cwnd + spare - cwnd) / 8 per round trip; half after a loss",
    source: "this example",
    params: PARAMS,
    responsive: true,
    experimental: true,
    build,
};

/// Adapts its window by the RTT alone.
struct Spare {
    mss_bytes: f64,
    max_bytes: f64,
    spare_packets: f64,
    cwnd_bytes: f64,
    base: Duration,
    /// Losses of packets below this number belong to the cut that was made for another.
    cut_at: u64,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = cede_cc::Settings::resolve(params, PARAMS)?;
    Ok(Box::new(Spare {
        mss_bytes: f64::from(path.mss_bytes),
        max_bytes: path.max_cwnd_bytes as f64,
        spare_packets: settings.number("spare"),
        cwnd_bytes: f64::from(path.mss_bytes)
            .max((path.max_cwnd_bytes as f64).min(2.0 * f64::from(path.mss_bytes))),
        base: Duration::MAX,
        cut_at: 0,
    }))
}

impl Spare {
    fn set(&mut self, bytes: f64) {
        let largest = self.max_bytes.max(self.mss_bytes);
        self.cwnd_bytes = bytes.clamp((2.0 * self.mss_bytes).min(largest), largest);
    }
}

impl Controller for Spare {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        if feedback.lost.last().is_some_and(|lost| lost.number >= self.cut_at) {
            self.cut_at = feedback.next_number;
            self.set(self.cwnd_bytes / 2.0);
        } else if let Some(rtt) = feedback.rtt
            && !feedback.app_limited
        {
            self.base = self.base.min(rtt);
            let fits = self.cwnd_bytes * self.base.as_secs_f64() / rtt.as_secs_f64().max(1e-9);
            let step = (fits + self.spare_packets * self.mss_bytes - self.cwnd_bytes) / 8.0;
            // A whole step per window's worth of acknowledgements.
            self.set(self.cwnd_bytes + step * feedback.acked_bytes as f64 / self.cwnd_bytes);
        }
        self.allowance()
    }

    fn on_timeout(&mut self, _: &Timeout) -> Allowance {
        self.set(0.0);
        self.allowance()
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.mss_bytes = f64::from(mss_bytes);
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(self.cwnd_bytes as u64)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { cwnd_bytes: self.cwnd_bytes, phase: Phase::CongestionAvoidance, ..Snapshot::default() }
    }
}

/// The battery, or those scenarios and families of it that are named.
///
/// # Errors
/// The names there are, where one is unknown; what kept a scenario from running.
pub fn check(only: &[String]) -> Result<Vec<Findings>, String> {
    let battery = Battery::new(Subject::new(&ENTRY)).only(only)?;
    battery.run(&|_| true).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let findings = match check(&only) {
        Ok(findings) => findings,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    for found in &findings {
        let sign = if found.passed { "✓" } else { "✗" };
        let figures = found.findings.iter().map(|finding| format!("{} {}", finding.what, finding.figure()));
        println!("{sign} {:26} {}", found.case, figures.collect::<Vec<_>>().join(", "));
    }
    let passed = findings.iter().filter(|found| found.passed).count();
    println!("{}: {passed} of {} scenarios passed", ENTRY.name, findings.len());
    ExitCode::from(u8::from(passed < findings.len()))
}
