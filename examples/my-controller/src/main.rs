//! A congestion controller written outside of Cede's workspace, checked by the same battery as Cede's own:
//!
//! ```sh
//! cd examples/my-controller
//! cargo run --release                                  # the whole battery over uTP
//! cargo run --release -- --over tcp --vary 7           # over the model TCP, on other links
//! cargo run --release -- loss yields/cubic             # a family and a case
//! cargo run --release -- run ../../scenarios/latecomer.toml late     # for the flow `late` of a scenario
//! cargo test --release                                 # the conformance suite, and two cases
//! ```
//!
//! It needs `cede-cc` for the contract, `cede-units` for its quantities and `cede-lab` for the battery; nothing else of Cede
//! knows of it. The controller holds as many packets under way as the path takes at its base RTT, plus a few: too simple to
//! pass everything, and short enough to read. The exit code is 1 where a mark is missed, 2 where an argument is not known.

use cede_cc::registry::Entry;
use cede_cc::{
    Allowance, Controller, Feedback, ParamDoc, ParamError, ParamKind, Params, Path, Phase, Snapshot, Timeout,
};
use cede_lab::check::{Battery, Findings, Subject};
use cede_lab::outcome::FlowOutcome;
use cede_lab::run::Run;
use cede_lab::scenario::{ProtocolKind, Scenario, render};
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
        let largest = self.max_bytes.max(self.mss_bytes).max(1.0);
        self.cwnd_bytes = bytes.clamp((2.0 * self.mss_bytes).clamp(1.0, largest), largest);
    }
}

impl Controller for Spare {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        if let Some(lost) = feedback.lost.last() {
            if lost.number >= self.cut_at {
                self.cut_at = feedback.next_number;
                self.set(self.cwnd_bytes / 2.0);
            }
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
        self.set(self.cwnd_bytes);
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(self.cwnd_bytes as u64)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { cwnd_bytes: self.cwnd_bytes, phase: Phase::CongestionAvoidance, ..Snapshot::default() }
    }
}

/// The battery, or a part of it: `--over tcp`, `--vary SEED`, `--set PARAMETER=VALUE`, names of cases and families.
///
/// # Errors
/// What is not known, and what there is.
fn battery(args: &[String]) -> Result<Battery, String> {
    let mut battery = Battery::new(Subject::new(&ENTRY));
    let (mut only, mut args) = (Vec::new(), args.iter());
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        battery = match arg.as_str() {
            "--over" => match value()?.as_str() {
                "utp" => battery.over(ProtocolKind::Utp),
                "tcp" => battery.over(ProtocolKind::Tcp),
                other => return Err(format!("--over {other}: there are utp and tcp")),
            },
            "--vary" => battery.vary(value()?.parse().map_err(|error| format!("--vary: {error}"))?),
            "--set" => battery.set(value()?)?,
            _ => {
                only.push(arg.clone());
                battery
            }
        };
    }
    battery.only(&only)
}

/// What comes of a scenario in which a flow has the controller, whatever the file says.
///
/// # Errors
/// What is wrong with the file, and that there is no such flow.
fn in_scenario(file: &str, flow: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let scenario = Scenario::parse(file, &text).map_err(|problems| render(&problems))?;
    let run = Run::new(&scenario).stand_in_of(flow, ENTRY, Params::new());
    let (outcome, _) = run.go(&mut ()).map_err(|error| error.to_string())?;
    Ok(outcome.flows.iter().map(line).collect())
}

/// What a flow had, and why its connection ended where it ended badly: a timer without end is told here, too.
fn line(flow: &FlowOutcome) -> String {
    let ended = flow.error.as_ref().map_or(String::new(), |error| format!("; it failed: {error}"));
    let queue_ms = flow.delays.p95_ms;
    format!(
        "{:12} {:10} {:6.2} Mbit/s, queue {queue_ms:.1} ms (p95){ended}\n",
        flow.name, flow.controller, flow.rate_mbps
    )
}

fn show(found: &Findings) -> String {
    let sign = if found.passed { "✓" } else { "✗" };
    let figures = found.findings.iter().map(|finding| format!("{} {}", finding.what, finding.figure()));
    let failure = found.failure.iter().cloned();
    format!("{sign} {:26} {}", found.case, figures.chain(failure).collect::<Vec<_>>().join(", "))
}

/// The battery's findings, a line each, and whether all marks are kept.
///
/// # Errors
/// What is not known, and what there is.
fn checked(args: &[String]) -> Result<(String, bool), String> {
    let findings = battery(args)?.run(&|_| true).map_err(|error| error.to_string())?;
    let passed = findings.iter().filter(|found| found.passed).count();
    let lines: String = findings.iter().map(|found| show(found) + "\n").collect();
    let sum = format!("{}: {passed} of {} scenarios passed\n", ENTRY.name, findings.len());
    Ok((lines + &sum, passed == findings.len()))
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let answer = match args.as_slice() {
        [verb, file, flow] if verb == "run" => in_scenario(file, flow).map(|shown| (shown, true)),
        _ => checked(&args),
    };
    match answer {
        Ok((shown, passed)) => {
            print!("{shown}");
            ExitCode::from(u8::from(!passed))
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_cc::conformance;

    #[test]
    fn it_conforms() {
        let build = |path: &Path| (ENTRY.build)(&Params::new(), path).expect("the defaults are in order");
        let subject = conformance::Subject { responsive: ENTRY.responsive, build: &build };
        for seed in 0..40 {
            assert_eq!(conformance::check(&subject, seed, 2000), Ok(()));
        }
        assert_eq!(conformance::check_on_a_link(&subject, 1), Ok(()));
        assert_eq!(conformance::check_unused(&subject, 1), Ok(()));
    }

    #[test]
    fn the_battery_measures_it() {
        let names = ["application/limited", "yields/reno", "buffers/bloated"].map(String::from);
        let found = battery(&names).expect("they are known").run(&|_| true).expect("it runs");
        let passed: Vec<(&str, bool)> = found.iter().map(|found| (found.case, found.passed)).collect();
        let expected = [("yields/reno", true), ("buffers/bloated", true), ("application/limited", true)];
        assert_eq!(passed, expected, "{found:?}");
    }

    #[test]
    fn a_flow_of_a_scenario_has_it() {
        let file = std::env::temp_dir().join(format!("my-controller-{}.toml", std::process::id()));
        let text = cede_lab::scenario::built_in("latecomer").expect("it is there").text;
        std::fs::write(&file, text).expect("it can be written");
        let in_it = |flow| in_scenario(&file.to_string_lossy(), flow);
        assert!(in_it("late").expect("it runs").contains("late         spare"));
        let dead = text.replacen("[link]", "[link]\nloss = 1.0", 1).replacen("200 s", "600 s", 1);
        std::fs::write(&file, dead).expect("it can be written");
        assert!(in_it("late").is_ok_and(|shown| shown.contains("it failed: ")), "nothing arrives");
        assert!(in_it("early").is_err_and(|error| error.contains("no flow is called `early`")));
        std::fs::remove_file(&file).expect("it is there");
        assert!(in_it("late").is_err_and(|error| error.contains("my-controller-")));
    }

    #[test]
    fn what_is_not_known_is_said() {
        let fails = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            battery(&args).expect_err("it is not known")
        };
        assert!(fails(&["--over", "sctp"]).contains("utp and tcp"));
        assert!(fails(&["--set", "spare=0"]).contains("spare"));
        assert!(fails(&["yield"]).contains("yields/reno"));
    }
}
