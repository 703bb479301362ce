//! Where a controller is checked: runs scenarios, and measures what they showed.

use super::setup::Setup;
use super::vary::Variation;
use crate::outcome::{FlowOutcome, LinkOutcome, Outcome};
use crate::run::{FlowSample, Run, RunError, Watcher};
use crate::scenario::{ProtocolKind, Scenario, nearest, render};
use crate::view::SocketView;
use cede_cc::registry::{self, Entry};
use cede_cc::{ParamKind, ParamValue, Params, Snapshot};
use cede_tcp::Failure;
use cede_units::{Duration, Instant};
use cede_utp::ConnectionError;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What is checked: a controller with its parameters, over a transport.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The controller.
    pub entry: Entry,
    /// Its parameters; defaults hold for those that are not given.
    pub params: Params,
    /// The transport.
    pub over: ProtocolKind,
    /// The seed of links other than the pinned ones; none for those.
    pub vary: Option<u64>,
}

impl Subject {
    /// The controller with its defaults, over uTP.
    #[must_use]
    pub fn new(entry: &Entry) -> Self {
        Self { entry: *entry, params: Params::new(), over: ProtocolKind::Utp, vary: None }
    }

    /// Whether scenarios can name the controller. One from elsewhere may go by a name of ours.
    fn is_registered(&self) -> bool {
        let told = |entry: &Entry| (entry.summary, entry.formula, entry.source, entry.params);
        registry::find(self.entry.name).is_some_and(|known| told(known) == told(&self.entry))
    }
}

/// The flows under test: all flows whose name begins so.
pub(super) const OWN: &str = "own";
/// The flow that serves as a measure.
pub(super) const RENO: &str = "measure";
/// What a scenario calls a controller that the registry does not know; a run puts the controller under test in its place anyhow.
const PLACEHOLDER: &str = "reno";

/// A scenario of a case, as a text for `cede run -`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Staged {
    /// Which of the case's scenarios it is: `own` has the flow under test, `without` has the others alone, `reno` has Reno in its
    /// place; a number follows where there are several of a kind.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Where one case is measured.
pub(super) struct Bench<'a> {
    subject: &'a Subject,
    case: &'static str,
    variation: Variation,
    /// Asked now and then whether to go on.
    go_on: &'a (dyn Fn() -> bool + Sync),
    /// Scenarios end where they begin: only their texts are asked for.
    staging: bool,
    /// What has been begun, in order.
    staged: RefCell<Vec<Staged>>,
    /// What has been run, by text: a case may look at one run from several sides.
    seen: RefCell<BTreeMap<String, Rc<Seen>>>,
    /// What the controller under test did that no controller may.
    fault: RefCell<Option<String>>,
}

/// What a run showed.
pub(super) struct Seen {
    outcome: Outcome,
    /// By how much the links were faster than the case says: rates are divided by it.
    rate_factor: f64,
}

/// Stops a run where that is asked for, and where the controller under test is at fault.
struct Patience<'a> {
    go_on: &'a (dyn Fn() -> bool + Sync),
    fault: Option<String>,
}

impl Watcher for Patience<'_> {
    fn progress(&mut self, _: Instant, _: Instant) -> bool {
        self.fault.is_none() && (self.go_on)()
    }

    fn sample(&mut self, sample: &FlowSample<'_>) {
        if self.fault.is_none() && sample.flow.name.starts_with(OWN) {
            let what = fault_of(sample.view);
            self.fault = what.map(|what| format!("{what} (flow `{}`, at {})", sample.flow.name, sample.now));
        }
    }
}

/// What a controller shows that none may.
fn fault_of(view: &SocketView) -> Option<String> {
    let spins = [ConnectionError::ControllerSpins.to_string(), Failure::ControllerSpins.to_string()];
    if let Some(error) = view.error.as_ref().filter(|error| spins.contains(error)) {
        return Some(error.clone());
    }
    let Snapshot { cwnd_bytes, ssthresh_bytes, pacing_rate, .. } = view.controller;
    let figures = [("window", Some(cwnd_bytes)), ("slow-start threshold", ssthresh_bytes)];
    let wrong = |figure: &f64| !figure.is_finite() || *figure < 0.0;
    if let Some((what, figure)) =
        figures.into_iter().find_map(|(what, figure)| Some((what, figure.filter(wrong)?)))
    {
        return Some(format!("its snapshot says that the {what} is {figure}"));
    }
    if pacing_rate.is_some_and(|rate| rate.bits_per_sec() == 0) {
        return Some("it paces at 0 bit/s, at which nothing leaves".to_string());
    }
    // TCP deflates what a repair has inflated, by RFC 6582 to nothing for a moment, while packets are under way.
    let holds = view.connected && view.allowed_bytes == 0 && view.in_flight_bytes == 0;
    holds.then(|| "it allows a window of no octet".to_string())
}

/// Long enough for a run to be a run.
const STAGED_FOR: Duration = Duration::from_millis(1);

impl<'a> Bench<'a> {
    pub(super) fn new(
        subject: &'a Subject,
        case: &'static str,
        go_on: &'a (dyn Fn() -> bool + Sync),
    ) -> Self {
        let variation = subject.vary.map_or(Variation::NONE, |seed| Variation::of(seed, case));
        let (staged, seen, fault) = (RefCell::default(), RefCell::default(), RefCell::default());
        Self { subject, case, variation, go_on, staging: false, staged, seen, fault }
    }

    /// The same, for the texts of the scenarios alone.
    pub(super) fn staging(self) -> Self {
        Self { staging: true, ..self }
    }

    /// What the controller under test did that no controller may.
    pub(super) fn take_fault(&self) -> Option<String> {
        self.fault.borrow_mut().take()
    }

    /// All scenarios that were begun, in order.
    pub(super) fn into_scenarios(self) -> Vec<Staged> {
        self.staged.into_inner()
    }

    /// A flow of the controller under test, with these further options.
    pub(super) fn own(&self, options: &str) -> String {
        self.flow(OWN, &self.controller(), options)
    }

    /// Another one beside it.
    pub(super) fn own_too(&self, name: &str, options: &str) -> String {
        self.flow(name, &self.controller(), options)
    }

    /// A flow of Reno over the same transport, as a measure.
    pub(super) fn reno(&self, options: &str) -> String {
        self.flow(RENO, "\"reno\"", options)
    }

    fn flow(&self, name: &str, controller: &str, options: &str) -> String {
        let transport = match self.subject.over {
            ProtocolKind::Utp => "protocol = \"utp\"",
            ProtocolKind::Tcp => "protocol = \"tcp\"\ntcp.min_rto = \"200 ms\"",
        };
        // As a current system answers, like the foreground's receiver; a case may have another.
        let tcp = self.subject.over == ProtocolKind::Tcp;
        let ack = if tcp && !options.contains("tcp.ack ") { "\ntcp.ack = \"linux\"" } else { "" };
        format!("[[flow]]\nname = \"{name}\"\n{transport}{ack}\ncontroller = {controller}\n{options}\n")
    }

    /// A receiver that answers pairs, or by a timer: options of a flow.
    pub(super) fn lazy_receiver(&self) -> &'static str {
        match self.subject.over {
            ProtocolKind::Utp => "utp = { ack = \"delayed\", ack_packets = 2, ack_delay = \"100 ms\" }",
            ProtocolKind::Tcp => "tcp.ack = \"linux\"",
        }
    }

    /// The transport under test.
    pub(super) fn over(&self) -> ProtocolKind {
        self.subject.over
    }

    fn controller(&self) -> String {
        if !self.subject.is_registered() {
            return format!("\"{PLACEHOLDER}\"");
        }
        let params = self.subject.params.iter().map(|(name, value)| format!(", {name} = {}", literal(value)));
        format!("{{ name = \"{}\"{} }}", self.subject.entry.name, params.collect::<String>())
    }

    /// Runs a set-up, or remembers it.
    pub(super) fn run(&self, setup: &Setup) -> Result<Rc<Seen>, RunError> {
        self.run_text(&setup.text(&self.case.replace('/', "-")))
    }

    /// Runs a scenario, or remembers it.
    pub(super) fn run_text(&self, text: &str) -> Result<Rc<Seen>, RunError> {
        let scenario = Scenario::parse(self.case, text)
            .unwrap_or_else(|problems| panic!("a pinned scenario is wrong:\n{}\n{text}", render(&problems)));
        let (mut scenario, text) = self.variation.apply(scenario, text);
        if let Some(seen) = self.seen.borrow().get(&text) {
            return Ok(Rc::clone(seen));
        }
        self.stage(&scenario, &text);
        if self.staging {
            (scenario.duration, scenario.warmup) = (STAGED_FOR, Duration::ZERO);
        }
        // What the scenario names may be another of that name.
        let Subject { entry, params, .. } = self.subject;
        let run = Run::new(&scenario).without_tape().stand_in(OWN, *entry, params.clone());
        let mut patience = Patience { go_on: self.go_on, fault: None };
        let gone = run.go(&mut patience);
        *self.fault.borrow_mut() = patience.fault;
        let (outcome, _) = gone?;
        let seen = Rc::new(Seen { outcome, rate_factor: self.variation.rate });
        self.seen.borrow_mut().insert(text, Rc::clone(&seen));
        Ok(seen)
    }
}

impl Bench<'_> {
    /// Notes a scenario under a name of its own.
    fn stage(&self, scenario: &Scenario, text: &str) {
        let has = |name: &str| scenario.flows.iter().any(|flow| flow.name.starts_with(name));
        let kind = match (has(OWN), has(RENO)) {
            (true, _) => "own",
            (false, true) => "reno",
            (false, false) => "without",
        };
        let mut staged = self.staged.borrow_mut();
        let earlier = staged.iter().filter(|other| other.name.trim_end_matches(is_suffix) == kind).count();
        let name = if earlier == 0 { kind.to_string() } else { format!("{kind}-{}", earlier + 1) };
        staged.push(Staged { name, text: text.to_string() });
    }
}

fn is_suffix(c: char) -> bool {
    c == '-' || c.is_ascii_digit()
}

/// A parameter as TOML.
fn literal(value: &ParamValue) -> String {
    match value {
        ParamValue::Number(number) => format!("{number:?}"),
        ParamValue::Switch(switch) => switch.to_string(),
        other => format!("\"{other}\""),
    }
}

impl Seen {
    /// The bottleneck.
    pub(super) fn bottleneck(&self) -> &LinkOutcome {
        &self.outcome.links[0]
    }

    /// The link of this name.
    pub(super) fn link(&self, name: &str) -> Option<&LinkOutcome> {
        self.outcome.links.iter().find(|link| link.name == name)
    }

    /// The flows whose name or group this is.
    pub(super) fn flows<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s FlowOutcome> {
        self.outcome.flows.iter().filter(move |flow| flow.name == name || flow.group == name)
    }

    /// What the flows of this name got through together in the measured time, in Mbit/s.
    pub(super) fn rate_mbps(&self, name: &str) -> f64 {
        self.flows(name).map(|flow| flow.rate_mbps).sum::<f64>() / self.rate_factor
    }

    /// The share of the flows of this name in what all flows got through.
    pub(super) fn share(&self, name: &str) -> f64 {
        self.outcome.share_of(|flow| flow.group == name)
    }

    /// Jain's index of all flows' rates.
    pub(super) fn jain(&self) -> f64 {
        self.outcome.fairness_long.unwrap_or(f64::NAN)
    }

    /// The first time after `from_s` from which the flows of this name have `rate_mbps` for two seconds on average, in
    /// seconds after `from_s`; infinite where they never do.
    pub(super) fn time_to_reach_s(&self, name: &str, rate_mbps: f64, from_s: f64) -> f64 {
        let last = self.outcome.series.t_s.last().copied().unwrap_or(0.0);
        let mut at = from_s;
        while at + 2.0 <= last {
            if self.mean_rate_mbps(name, at, at + 2.0) >= rate_mbps {
                return at - from_s;
            }
            at += 0.25;
        }
        f64::INFINITY
    }

    /// The mean rate of the flows of this name in a window, in Mbit/s.
    pub(super) fn mean_rate_mbps(&self, name: &str, from_s: f64, until_s: f64) -> f64 {
        let series = &self.outcome.series;
        let within = |t: &f64| *t > from_s + 1e-9 && *t <= until_s + 1e-9;
        let intervals = series.t_s.iter().filter(|t| within(t)).count();
        let of_flow = |(index, flow): (usize, &FlowOutcome)| -> f64 {
            let counts = flow.name == name || flow.group == name;
            let rates = series.t_s.iter().zip(&series.flows[index].rate_mbps);
            rates.filter(|(t, _)| counts && within(t)).map(|(_, rate)| rate).sum()
        };
        self.outcome.flows.iter().enumerate().map(of_flow).sum::<f64>() / intervals as f64 / self.rate_factor
    }

    /// How long each flow of this name took to send what it had, in seconds; not-a-number where it did not finish.
    pub(super) fn completions_s(&self, name: &str) -> Vec<f64> {
        let took = |flow: &FlowOutcome| flow.finish_s.map_or(f64::NAN, |finish_s| finish_s - flow.start_s);
        self.flows(name).map(took).collect()
    }
}

/// That there is no `name`, what was probably meant, and what there is.
pub(super) fn unknown(what: &str, name: &str, there_are: &[&str]) -> String {
    let guess = nearest(name, there_are.iter().copied());
    let guess = guess.map_or_else(String::new, |guess| format!("; did you mean `{guess}`?"));
    format!("{what}{guess}\n  = allowed: {}", there_are.join(", "))
}

/// Reads `PARAMETER=VALUE` for a controller.
///
/// # Errors
/// What is wrong, and what is allowed.
pub(super) fn set_parameter(subject: &mut Subject, text: &str) -> Result<(), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!("`{text}` has no `=`; allowed: PARAMETER=VALUE"));
    };
    let (name, docs) = (name.trim(), subject.entry.params);
    if !docs.iter().any(|doc| doc.name == name) {
        let names: Vec<&str> = docs.iter().map(|doc| doc.name).collect();
        let controller = subject.entry.name;
        return Err(unknown(&format!("`{controller}` has no parameter `{name}`"), name, &names));
    }
    // As in scenarios, all but numbers may stand in quotes.
    let value = value.trim();
    let is_number = |kind| matches!(kind, ParamKind::Number { .. } | ParamKind::Count { .. });
    let is_text = docs.iter().any(|doc| doc.name == name && !is_number(doc.kind));
    let bare = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|_| is_text);
    let value = bare.unwrap_or(value);
    subject.params.parse_and_set(docs, name, value).map_err(|error| error.to_string())
}
