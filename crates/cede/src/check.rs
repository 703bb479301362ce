//! `cede check`: the battery that any background controller should survive.

use crate::controllers;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Pace, StatusLine, bar, clock};
use crate::screen::{self, Screen};
use crate::shell::quoted;
use cede_cc::registry::{self, Entry};
use cede_lab::check::{Battery, Finding, Findings, Progress, Subject, ablations, differences};
use cede_lab::run::RunError;
use cede_lab::scenario::ProtocolKind;
use cede_plot::{Cell, Table, Verdict, terminal};
use serde_json::{Value, json};
use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  cede check ledbat                              every scenario, over uTP
  cede check bbr --over tcp
  cede check ledbat --only yields --only path/longer
  cede check ledbat -s target='25 ms' --json | jq '.[].findings'
  cede check ledbat --only path/longer --toml | cede run -
  cede check ledbat --only yields/web --toml=without | cede run -
  cede check ledbat --vary 7                     on other links, drawn by this seed
  cede check cede --ablate                       what each part of a controller is worth
  cede check --all                               every controller, scenario by scenario

In JSON, `measured` is a number or null; where it is null, `missing` is \"never\" (what was waited
for did not happen while the run lasted) or \"nothing\" (there was nothing to measure, or to measure
by). Where the controller kept a case from being measured, `failure` says how, and `findings` is
empty.

The exit code is 1 where a mark is missed; with --ablate, where the controller misses one as it is.";

/// Arguments of `cede check`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The controller [example: ledbat]
    #[arg(value_name = "CONTROLLER", required_unless_present = "all", conflicts_with = "all")]
    pub controller: Option<String>,
    /// Every controller of the registry that responds to congestion
    #[arg(long)]
    pub all: bool,
    /// The transport [example: --over tcp]
    #[arg(long, value_name = "TRANSPORT", default_value = "utp")]
    pub over: Over,
    /// A scenario or a family of them; may be repeated; all where it is left out [example: --only path/longer]
    #[arg(long, value_name = "SCENARIO")]
    pub only: Vec<String>,
    /// Set a parameter of the controller; may be repeated [example: -s target='25 ms']
    #[arg(short, long = "set", value_name = "PARAMETER=VALUE", conflicts_with = "all")]
    pub set: Vec<String>,
    /// Run on links whose rates, delays and buffers are varied by this seed [example: --vary 7]
    #[arg(long, value_name = "SEED")]
    pub vary: Option<u64>,
    /// Run once more for each part of the controller, with that part switched off or set otherwise
    #[arg(long, conflicts_with_all = ["all", "json", "toml"])]
    pub ablate: bool,
    /// Print the findings as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Print a table in Markdown, as in docs/controllers.md
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print a scenario of the one case that --only names, for `cede run -`: that with the controller under test, or the case's
    /// other runs by their names [example: --toml=without]
    #[arg(
        long,
        value_name = "RUN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "own",
        conflicts_with_all = ["json", "markdown", "all"]
    )]
    pub toml: Option<String>,
    /// Scenarios at a time; as many as there are processors where it is left out [example: --jobs 1]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZero<usize>>,
}

/// A transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Over {
    /// uTP
    Utp,
    /// The model TCP
    Tcp,
}

/// A controller and what came of it.
struct Checked {
    name: &'static str,
    findings: Vec<Findings>,
}

/// Checks one controller, or all.
pub fn run(args: &Args) -> Result<(), Failure> {
    let entries: Vec<&'static Entry> = match &args.controller {
        Some(name) => vec![controllers::find(name)?],
        None => registry::all().iter().filter(|entry| entry.responsive).collect(),
    };
    if let (true, [entry]) = (args.ablate, entries.as_slice()) {
        return ablate(args, entry);
    }
    if let (Some(name), [entry]) = (&args.toml, entries.as_slice()) {
        return screen::print(&toml(args, entry, name)?);
    }
    let mut checked = Vec::new();
    for (index, &entry) in entries.iter().enumerate() {
        let ticker = Ticker::new(entry.name, index, entries.len());
        let findings = battery(args, entry)?.run(&|progress| ticker.hear(progress));
        ticker.clear();
        checked.push(Checked { name: entry.name, findings: findings.map_err(|error| failure(&error))? });
    }
    screen::print(&output(args, &checked))?;
    judge(checked.iter().flat_map(|one| &one.findings))
}

/// An error where marks are missed.
fn judge<'a>(findings: impl IntoIterator<Item = &'a Findings>) -> Result<(), Failure> {
    match findings.into_iter().filter(|findings| !findings.passed).count() {
        0 => Ok(()),
        missed => Err(Failure::MarksMissed(missed)),
    }
}

/// The battery as it is, and once for each part that is set otherwise.
fn ablate(args: &Args, entry: &'static Entry) -> Result<(), Failure> {
    let parts = ablations(entry);
    let run = |label: &str, index: usize, battery: Battery| {
        let ticker = Ticker::new(label, index, parts.len() + 1);
        let findings = battery.run(&|progress| ticker.hear(progress));
        ticker.clear();
        findings.map_err(|error| failure(&error))
    };
    let whole = run(entry.name, 0, battery(args, entry)?)?;
    let mut table = Table::new(["part", "passed", "lost", "gained"]);
    table.push([Cell::from("as it is"), passed(&whole).into(), "".into(), "".into()]);
    for (index, part) in (1..).zip(&parts) {
        let findings = run(part, index, battery(args, entry)?.set(part).map_err(Failure::Usage)?)?;
        let differences = differences(&whole, &findings);
        let told = |gained: bool| {
            let of = differences.iter().filter(|difference| difference.gained == gained);
            of.map(|difference| format!("{} ({})", difference.case, difference.what))
                .collect::<Vec<_>>()
                .join("; ")
        };
        table.push([
            Cell::from(part.as_str()),
            passed(&findings).into(),
            told(false).into(),
            told(true).into(),
        ]);
    }
    let screen = Screen::new(false);
    let wide = || terminal::table(&table, screen.columns, screen.colour);
    screen::print(&if args.markdown { table.to_markdown() } else { wide() })?;
    judge(&whole)
}

fn passed(findings: &[Findings]) -> String {
    format!("{} of {}", findings.iter().filter(|findings| findings.passed).count(), findings.len())
}

fn battery(args: &Args, entry: &Entry) -> Result<Battery, Failure> {
    let over = match args.over {
        Over::Utp => ProtocolKind::Utp,
        Over::Tcp => ProtocolKind::Tcp,
    };
    let mut battery =
        Battery::new(Subject::new(entry)).over(over).only(&args.only).map_err(Failure::Usage)?;
    if !args.set.is_empty() {
        battery = battery.set_all(args.set.iter().map(String::as_str)).map_err(Failure::Usage)?;
    }
    if let Some(seed) = args.vary {
        battery = battery.vary(seed);
    }
    Ok(args.jobs.map_or(battery.clone(), |jobs| battery.jobs(jobs.get())))
}

fn failure(error: &RunError) -> Failure {
    match error {
        RunError::Interrupted => Failure::Interrupted("the battery is not complete".to_string()),
        other => Failure::Failed(other.to_string()),
    }
}

fn output(args: &Args, checked: &[Checked]) -> String {
    match checked {
        _ if args.json => as_json(checked),
        [one] if args.markdown => single(one).to_markdown() + &stories(one),
        [one] => report(args, one),
        _ if args.markdown => grid(checked).to_markdown(),
        many => signs(many),
    }
}

fn as_json(checked: &[Checked]) -> String {
    let values: Vec<Value> = match checked {
        [one] => one.findings.iter().map(|findings| json!(findings)).collect(),
        many => many.iter().map(|one| json!({ "controller": one.name, "findings": one.findings })).collect(),
    };
    format!("{:#}\n", Value::from(values))
}

/// One row per figure.
fn single(one: &Checked) -> Table {
    let of_finding = |case: &'static str, finding: &Finding| -> [Cell; 4] {
        [case.into(), finding.what.into(), finding.figure().into(), Verdict::from(finding.holds).into()]
    };
    let rows = one.findings.iter().flat_map(|findings| {
        let figures = findings.findings.iter().map(|finding| of_finding(findings.case, finding));
        let failure = findings.failure.iter().map(|_| -> [Cell; 4] {
            [findings.case.into(), "nothing: it failed".into(), "".into(), Verdict::from(false).into()]
        });
        figures.chain(failure).collect::<Vec<_>>()
    });
    rows.fold(Table::new(["scenario", "measured", "figure (mark)", "verdict"]), Table::row)
}

/// In Markdown, what each case that failed guards against, and how the controller kept one from being measured.
fn stories(one: &Checked) -> String {
    let failed = one.findings.iter().filter(|findings| !findings.passed);
    let story = |it: &Findings| {
        let why = it.failure.iter().map(|why| format!(" **{why}**")).collect::<String>();
        format!("\n* `{}` ({}): {}{why}", it.case, it.world, it.story)
    };
    let list = failed.map(story).collect::<String>();
    if list.is_empty() { list } else { list + "\n" }
}

/// A table, then the stories of what failed.
fn report(args: &Args, one: &Checked) -> String {
    let screen = Screen::new(false);
    let mut out = terminal::table(&single(one), screen.columns, screen.colour);
    for findings in one.findings.iter().filter(|findings| !findings.passed) {
        let head = format!("{}  {}", screen.bold(findings.case), findings.world);
        out += &format!("\n{}{}", screen.wrap("", &head), screen.wrap("  ", findings.story));
        out += &findings.failure.iter().map(|why| screen.wrap("  ", &screen.bold(why))).collect::<String>();
    }
    let passed = one.findings.iter().filter(|findings| findings.passed).count();
    let total = one.findings.len();
    let again = one.findings.iter().find(|findings| !findings.passed).map_or(String::new(), |findings| {
        format!("\nlook into one: {} --toml | cede run -\n", command(args, one.name, findings.case))
    });
    out + &format!("\n{}: {passed} of {total} scenarios passed\n{again}", screen.bold(one.name))
}

/// The command that checks one case, as this one did.
fn command(args: &Args, controller: &str, case: &str) -> String {
    let mut words = vec!["cede".to_string(), "check".to_string(), controller.to_string()];
    if args.over == Over::Tcp {
        words.extend(["--over", "tcp"].map(String::from));
    }
    args.set.iter().for_each(|text| words.extend(["-s".to_string(), text.clone()]));
    args.vary.iter().for_each(|seed| words.extend(["--vary".to_string(), seed.to_string()]));
    words.extend(["--only", case].map(String::from));
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// One scenario of one case: `cede run` takes one at a time.
fn toml(args: &Args, entry: &Entry, name: &str) -> Result<String, Failure> {
    let scenarios = battery(args, entry)?.scenarios().map_err(|error| failure(&error))?;
    let [(case, staged)] = scenarios.as_slice() else {
        let first = scenarios.first().map_or("path/longer", |(case, _)| case.name);
        let one = format!("{} --toml", command(args, entry.name, first));
        let text =
            format!("--toml prints one scenario, and {} are chosen\n  = for example: {one}", scenarios.len());
        return Err(Failure::Usage(text));
    };
    let Some(found) = staged.iter().find(|staged| staged.name == name) else {
        let names: Vec<&str> = staged.iter().map(|staged| staged.name.as_str()).collect();
        let text = format!("{} has no run `{name}`\n  = allowed: {}", case.name, names.join(", "));
        return Err(Failure::Usage(text));
    };
    let others: Vec<String> = staged
        .iter()
        .filter(|other| other.name != name)
        .map(|other| format!("--toml={}", other.name))
        .collect();
    let others = if others.is_empty() { String::new() } else { format!("; others: {}", others.join(" ")) };
    Ok(format!("# {}, run `{name}`{others}\n{}", case.name, found.text))
}

/// Controllers by scenarios as signs, narrow enough for a terminal: a column for each controller, by number.
fn signs(checked: &[Checked]) -> String {
    let numbers = (1..=checked.len()).map(|number| format!("{number:>3}")).collect::<String>();
    let mut out = format!("{:28}{numbers}\n", "scenario");
    let first = checked.first().map(|one| one.findings.as_slice()).unwrap_or_default();
    for (row, findings) in first.iter().enumerate() {
        let sign = |one: &Checked| if one.findings[row].passed { "  ✓" } else { "  ✗" };
        out += &format!("{:28}{}\n", findings.case, checked.iter().map(sign).collect::<String>());
    }
    let passed = |one: &Checked| one.findings.iter().filter(|findings| findings.passed).count();
    out += &format!(
        "{:28}{}\n\n",
        "passed",
        checked.iter().map(|one| format!("{:>3}", passed(one))).collect::<String>()
    );
    for (number, one) in (1..).zip(checked) {
        out += &format!("{number:>3} {} ({} of {})\n", one.name, passed(one), one.findings.len());
    }
    out + "\nThe figures: --markdown or --json; one controller with its marks: cede check CONTROLLER\n"
}

/// Controllers by scenarios: the deciding figure, in bold where it misses its mark.
fn grid(checked: &[Checked]) -> Table {
    let headings = ["scenario", "mark"].into_iter().chain(checked.iter().map(|one| one.name));
    let mut table = Table::new(headings);
    let first = checked.first().map(|one| one.findings.as_slice()).unwrap_or_default();
    for (row, findings) in first.iter().enumerate() {
        let mark = findings.findings.iter().map(|f| format!("{} {}", f.what, f.mark)).collect::<Vec<_>>();
        let cells = checked.iter().map(|one| cell(&one.findings[row]));
        table.push([Cell::from(findings.case), mark.join("; ").into()].into_iter().chain(cells));
    }
    let passed = checked.iter().map(|one| {
        let passed = one.findings.iter().filter(|findings| findings.passed).count();
        Cell::from(format!("{passed} of {}", one.findings.len()))
    });
    table.push([Cell::from("passed"), "".into()].into_iter().chain(passed));
    table
}

fn cell(findings: &Findings) -> Cell {
    let none = if findings.failure.is_some() { "failed" } else { "nothing" };
    let figure = findings.decisive().map_or(none.to_string(), |finding| {
        let text = finding.figure();
        text.split(" (").next().unwrap_or_default().to_string()
    });
    if findings.passed { Cell::from(figure) } else { Cell::from(format!("✗ {figure}")) }
}

/// How far a battery has come, where there is a terminal.
struct Ticker {
    label: String,
    status: Mutex<StatusLine>,
}

impl Ticker {
    fn new(name: &str, index: usize, total: usize) -> Self {
        let label = if total > 1 { format!("{name} ({} of {total})", index + 1) } else { name.to_string() };
        let pace = Pace { every: Duration::from_millis(200), ..Pace::UNHURRIED };
        Self { label, status: Mutex::new(StatusLine::begin(pace, None)) }
    }

    fn status(&self) -> MutexGuard<'_, StatusLine> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, progress: Progress) -> bool {
        self.status().show(|elapsed_s| self.line(elapsed_s, progress));
        !interrupt::is_asked()
    }

    fn line(&self, elapsed_s: f64, progress: Progress) -> String {
        let part = progress.done as f64 / progress.total.max(1) as f64;
        let left_s = elapsed_s * (1.0 - part) / part.max(1e-9);
        let left = if progress.done > 0 { format!(", about {} left", clock(left_s)) } else { String::new() };
        format!("{}  {}: {} of {} scenarios{left}", bar(part), self.label, progress.done, progress.total)
    }

    fn clear(&self) {
        self.status().end();
    }
}
