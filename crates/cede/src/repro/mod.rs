//! `cede repro`: a paper's experiments.

use crate::failure::Failure;
use crate::lab::unmeasured;
use crate::progress::{Pace, StatusLine};
use crate::screen::{self, Screen};
use crate::{interrupt, meter, progress};
use cede_lab::repro::bufferbloat;
use cede_lab::repro::lcn10::{self, ARITHMETIC, ExecuteError, FigureNumber, Report, Request, Results, Store};
use cede_lab::repro::swarms::{self, ExecuteSwarmsError};
use cede_lab::repro::{Progress, Tally, ledbatpp, rao10, tma12};
use cede_lab::run::RunError;
use cede_plot::{Table, terminal};
use cede_testbed::{NetnsError, bloat};
use clap::ValueHint;
use std::fmt::Write as _;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  cede repro lcn10                         every figure, and what the paper leaves open
  cede repro lcn10 --figure 2 --quick      one figure, with fewer points and repetitions
  cede repro lcn10 --figure 1 --figure 3 -o paper --jobs 4
  cede repro ledbatpp                      LEDBAT++ beside CUBIC, BBR and Proteus-P, and why it takes BBR's link
  cede repro tma12 --quick                 BitTorrent swarms over TCP and uTP, smaller than the paper's
  cede repro tma12 --sweep                 which of its claims hold under which reading of what it leaves open
  cede repro rao10                         BitTorrent swarms under latency and loss, at full size
  cede repro rao10 --iterations 1 --only 'RTT 400 ms'  one run of each of these; another command goes on from there
  cede repro rao10 --sweep --quick         what piece size, slots and the client's release move in it
  cede repro bufferbloat                   the passive meter beside the queue's own log, and the analysis of many peers
  cede repro bufferbloat --capture a.pcap  the analysis of the peers in captures of one's own";

const LCN10_FOLDER: &str = "cede-out/lcn10";
const LEDBATPP_FOLDER: &str = "cede-out/ledbatpp";
const TMA12_FOLDER: &str = "cede-out/tma12";
const RAO10_FOLDER: &str = "cede-out/rao10";
const BUFFERBLOAT_FOLDER: &str = "cede-out/bufferbloat";

/// Arguments of `cede repro`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The paper
    #[arg(value_name = "PAPER")]
    pub paper: Paper,
    /// A figure of lcn10; may be repeated; all where it is left out [example: --figure 2]
    #[arg(long, value_name = "N")]
    pub figure: Vec<u32>,
    /// Also measure what the paper leaves open (delayed acks, timestamps, clamp, jitter and more); done for all figures
    #[arg(long)]
    pub sensitivity: bool,
    /// bufferbloat: analyse the peers in this capture, in the place of the simulated population; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub capture: Vec<PathBuf>,
    /// bufferbloat: where the validation runs; netns is in network namespaces and needs root; both, as far as possible, where
    /// it is left out
    #[arg(long, value_name = "WORLD")]
    pub world: Option<WorldArg>,
    /// tma12, rao10: in the place of the claims, what each choice moves that the paper leaves open
    #[arg(long)]
    pub sweep: bool,
    /// tma12, rao10: run only swarms with this in their name; may be repeated; of the others what is in the folder is
    /// taken [example: --only '20 kB/s, RTT 400 ms']
    #[arg(long, value_name = "TEXT")]
    pub only: Vec<String>,
    /// tma12, rao10: so many repetitions of each swarm at most; with 0 nothing is run, and what is in the folder is
    /// reported [example: --iterations 1]
    #[arg(long, value_name = "N")]
    pub iterations: Option<u32>,
    /// Fewer points and repetitions
    #[arg(long)]
    pub quick: bool,
    /// The folder for figures, tables and results; but for ledbatpp, what is there already is not computed again
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Runs at a time; as many as there are processors where it is left out [example: --jobs 4]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZero<usize>>,
    /// Print claims and verdicts as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// A paper whose experiments can be repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Paper {
    /// A hands-on assessment of transport protocols with lower than best effort priority (LCN 2010)
    Lcn10,
    /// The evaluation published with LEDBAT++ for libutp (2020)
    Ledbatpp,
    /// BitTorrent completion time in heterogeneous TCP/uTP swarms (TMA 2012)
    Tma12,
    /// BitTorrent swarms under network latency and packet loss (P2P 2010)
    Rao10,
    /// Passive bufferbloat measurement exploiting transport layer information (GLOBECOM 2013)
    Bufferbloat,
}

/// Where the validation of the meter runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum WorldArg {
    /// In the simulated world
    Sim,
    /// In network namespaces: the kernel's TCP, real uTP, the kernel's queue
    Netns,
    /// In both; without the right to namespaces that is said, and the simulated world remains
    Both,
}

impl WorldArg {
    const fn world(self) -> bufferbloat::World {
        match self {
            Self::Sim => bufferbloat::World::Simulated,
            Self::Netns => bufferbloat::World::Real,
            Self::Both => bufferbloat::World::Both,
        }
    }
}

/// Repeats the experiments.
pub fn run(args: &Args) -> Result<(), Failure> {
    refuse_strays(args)?;
    match args.paper {
        Paper::Lcn10 => run_lcn10(args),
        Paper::Ledbatpp => run_ledbatpp(args),
        Paper::Tma12 if args.sweep => {
            let request = tma12::Request { quick: args.quick };
            run_swarms(args, TMA12_FOLDER, &tma12::sweep_jobs(request), |measured| {
                tma12::sweep_report(request, &measured)
            })
        }
        Paper::Tma12 => {
            let request = tma12::Request { quick: args.quick };
            run_swarms(args, TMA12_FOLDER, &request.jobs(), |measured| {
                tma12::report(&tma12::Results::sorted(request, measured))
            })
        }
        Paper::Rao10 if args.sweep => {
            let request = rao10::Request { quick: args.quick };
            run_swarms(args, RAO10_FOLDER, &rao10::sweep_jobs(request), |measured| {
                rao10::sweep_report(request, measured)
            })
        }
        Paper::Rao10 => {
            let request = rao10::Request { quick: args.quick };
            run_swarms(args, RAO10_FOLDER, &request.jobs(), |measured| {
                rao10::report(&rao10::Results::sorted(request, measured))
            })
        }
        Paper::Bufferbloat => run_bufferbloat(args),
    }
}

/// Options that belong to another paper are refused.
fn refuse_strays(args: &Args) -> Result<(), Failure> {
    if args.paper != Paper::Lcn10 && (!args.figure.is_empty() || args.sensitivity) {
        return Err(Failure::Usage("`--figure` and `--sensitivity` are for lcn10".to_string()));
    }
    if !matches!(args.paper, Paper::Tma12 | Paper::Rao10) && args.sweep {
        return Err(Failure::Usage("`--sweep` is for tma12 and rao10".to_string()));
    }
    if !matches!(args.paper, Paper::Tma12 | Paper::Rao10)
        && (!args.only.is_empty() || args.iterations.is_some())
    {
        return Err(Failure::Usage("`--only` and `--iterations` are for tma12 and rao10".to_string()));
    }
    if args.paper != Paper::Bufferbloat && (!args.capture.is_empty() || args.world.is_some()) {
        return Err(Failure::Usage("`--capture` and `--world` are for bufferbloat".to_string()));
    }
    Ok(())
}

fn run_lcn10(args: &Args) -> Result<(), Failure> {
    let request = request(args)?;
    let folder = args.output.clone().unwrap_or_else(|| LCN10_FOLDER.into());
    let results = measured(&request, &folder, jobs(args))?;
    let report = Report::of(results);
    let files = report.write(&folder).map_err(|error| failed(&folder, &error))?;
    let screen = Screen::new(args.json);
    screen.say(&summary(&screen, &report, &files))?;
    if args.json {
        print_json(&report.to_json())?;
    }
    judge_runs(report.broken_runs())
}

fn run_ledbatpp(args: &Args) -> Result<(), Failure> {
    let folder = args.output.clone().unwrap_or_else(|| LEDBATPP_FOLDER.into());
    let request = ledbatpp::Request { quick: args.quick };
    let results = metered(|hear| ledbatpp::execute(request, jobs(args), &interrupt::is_asked, hear));
    let report = ledbatpp::Report::of(results.map_err(not_run)?);
    let files = report.write(&folder).map_err(|error| failed(&folder, &error))?;
    let screen = Screen::new(args.json);
    screen.say(&ledbatpp_summary(&screen, &report, &files))?;
    if args.json {
        print_json(&report.to_json())?;
    }
    judge_runs(report.broken_runs())
}

/// A paper about swarms: runs what has not been run, draws and judges.
fn run_swarms(
    args: &Args,
    otherwise: &str,
    swarms: &[swarms::Job],
    report: impl FnOnce(Vec<Option<swarms::Measured>>) -> swarms::Report,
) -> Result<(), Failure> {
    #[cfg(unix)]
    crate::pages::prefer_large();
    let folder = args.output.clone().unwrap_or_else(|| otherwise.into());
    let store = folder.join("runs");
    let selection = selection(args, swarms)?;
    let results =
        metered(|hear| swarms::execute(swarms, &selection, &store, jobs(args), &interrupt::is_asked, hear));
    let report = report(results.map_err(|error| match error {
        ExecuteSwarmsError::Interrupted => Failure::Interrupted(format!(
            "what was measured is in {}; the same command goes on from there",
            folder.display()
        )),
        ExecuteSwarmsError::Store(path, cause) => failed(&path, &cause),
        error @ ExecuteSwarmsError::Swarm(_) => Failure::Failed(error.to_string()),
    })?);
    let files = report.write(&folder).map_err(|error| failed(&folder, &error))?;
    let screen = Screen::new(args.json);
    screen.say(&swarms_summary(&screen, &report, &files))?;
    if args.json {
        print_json(&report.to_json())?;
    }
    judge_runs(report.broken_runs)
}

/// Which of the swarms are asked for. Words that no swarm has in its name are refused.
fn selection(args: &Args, swarms: &[swarms::Job]) -> Result<swarms::Selection, Failure> {
    for word in &args.only {
        if !swarms.iter().any(|job| job.key.contains(word.as_str())) {
            let mut names: Vec<&str> = swarms.iter().map(|job| job.key.as_str()).collect();
            names.dedup();
            let text = format!(
                "no swarm has \"{word}\" in its name\n  there are: {}",
                names.join("\n             ")
            );
            return Err(Failure::Usage(text));
        }
    }
    Ok(swarms::Selection { only: args.only.clone(), repetitions: args.iterations })
}

fn swarms_summary(screen: &Screen, report: &swarms::Report, files: &[PathBuf]) -> String {
    let parts = report.parts.iter().filter_map(|part| Some((part.heading.as_str(), part.table.clone()?)));
    let tables = std::iter::once(("Claims", report.short_table())).chain(parts);
    titled(screen, tables) + &tally_and_page("claims", report.tally(), files)
}

fn run_bufferbloat(args: &Args) -> Result<(), Failure> {
    let folder = args.output.clone().unwrap_or_else(|| BUFFERBLOAT_FOLDER.into());
    let captured = (!args.capture.is_empty()).then(|| captured(&args.capture)).transpose()?;
    let world = args.world.unwrap_or(WorldArg::Both).world();
    let request = bufferbloat::Request { world, quick: args.quick, captured };
    let results = metered(|hear| bufferbloat::execute(request, jobs(args), &interrupt::is_asked, hear));
    let mut results = results.map_err(not_run)?;
    if world != bufferbloat::World::Simulated {
        results.real = in_namespaces(world, args.quick)?;
    }
    let report = bufferbloat::Report::of(results);
    let files = report.write(&folder).map_err(|error| failed(&folder, &error))?;
    let screen = Screen::new(args.json);
    let tables = [("What the paper says", report.short_table()), ("Every case", report.cases_table())];
    screen.say(&(titled(&screen, tables) + &tally_and_page("statements", report.tally(), &files)))?;
    if args.json { print_json(&report.to_json()) } else { Ok(()) }
}

/// The validation with real sockets; empty where it cannot be and is not insisted on, which is said.
fn in_namespaces(world: bufferbloat::World, quick: bool) -> Result<Vec<bufferbloat::Measured>, Failure> {
    let pace = if quick { bloat::Pace::QUICK } else { bloat::Pace::FULL };
    let cases = bufferbloat::setting::Case::all();
    let status = Mutex::new(StatusLine::begin(Pace::patient(Duration::from_secs(1)), None));
    let status_line = || status.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let watch = |elapsed: Duration| {
        let (now, whole) = (elapsed.as_secs(), pace.duration.as_secs());
        status_line().show(|_| format!("{} cases in network namespaces, {now} of {whole} s", cases.len()));
        !interrupt::is_asked()
    };
    interrupt::insist_on_order();
    let measured = bloat::measure_all(&cases, &pace, &watch);
    status_line().end();
    match measured {
        Err(NetnsError::Impossible(why)) if world == bufferbloat::World::Both => {
            eprintln!("cede: SKIPPED, the validation in network namespaces: {why}");
            Ok(Vec::new())
        }
        other => other.map_err(unmeasured),
    }
}

/// The peers in captures.
fn captured(files: &[PathBuf]) -> Result<Vec<bufferbloat::Peer>, Failure> {
    let (meter, damage) = meter::read_captures(files, &cede_meter::Config::default())?;
    if let Some(damage) = damage {
        eprintln!("cede: {damage}");
    }
    let peers = bufferbloat::Peer::all(&meter.report());
    if peers.is_empty() {
        let text =
            "no peer in these captures has 50 samples; see what there is with: cede meter FILE".to_string();
        return Err(Failure::Failed(text));
    }
    Ok(peers)
}

fn not_run(error: RunError) -> Failure {
    match error {
        RunError::Interrupted => Failure::Interrupted("nothing was kept".to_string()),
        error => Failure::Failed(error.to_string()),
    }
}

fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    screen::print(&format!("{value:#}\n"))
}

fn judge_runs(broken: usize) -> Result<(), Failure> {
    match broken {
        0 => Ok(()),
        broken => Err(Failure::Failed(format!("{broken} runs ended with a broken connection or wrong data"))),
    }
}

/// Shows progress while something runs.
fn metered<T>(run: impl FnOnce(&(dyn Fn(Progress) + Sync)) -> T) -> T {
    let elsewhere = Pace::patient(Duration::from_secs(10));
    let status = Mutex::new(StatusLine::begin(Pace::patient(Duration::from_millis(200)), Some(elsewhere)));
    let status_line = || status.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let result = run(&|progress: Progress| status_line().show(|_| line(&progress)));
    status_line().end();
    result
}

/// The figures that can be drawn, each with what it shows.
pub fn figures() -> Vec<(String, String)> {
    let figure = |figure: FigureNumber| (format!("lcn10 {}", figure.number()), figure.summary().to_string());
    FigureNumber::ALL.into_iter().map(figure).collect()
}

fn request(args: &Args) -> Result<Request, Failure> {
    let known = |&number: &u32| {
        FigureNumber::from_number(number).ok_or_else(|| {
            let numbers = FigureNumber::ALL.map(|figure| figure.number().to_string()).join(", ");
            Failure::Usage(format!("there is no figure {number} to draw\n  allowed: {numbers}"))
        })
    };
    let figures = args.figure.iter().map(known).collect::<Result<Vec<FigureNumber>, Failure>>()?;
    Ok(Request { figures, sensitivity: args.sensitivity, quick: args.quick })
}

fn jobs(args: &Args) -> usize {
    args.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZero::get)
}

fn failed(folder: &Path, error: &io::Error) -> Failure {
    Failure::of_system(format!("{}: {error}", folder.display()), error.kind())
}

fn measured(request: &Request, folder: &Path, jobs: usize) -> Result<Results, Failure> {
    let store = Store::open(&folder.join("runs")).map_err(|error| failed(&error.path, &error.cause))?;
    let results =
        metered(|hear| lcn10::execute(&lcn10::plan(request), &store, jobs, &interrupt::is_asked, hear));
    results.map_err(|error| match error {
        ExecuteError::Interrupted => Failure::Interrupted(format!(
            "what was measured is in {}; the same command goes on from there",
            folder.display()
        )),
        ExecuteError::Store(error) => failed(&error.path, &error.cause),
        ExecuteError::Run(error) => Failure::Failed(error.to_string()),
    })
}

fn line(progress: &Progress) -> String {
    let part = progress.done as f64 / progress.total.max(1) as f64;
    let mut text = progress::bar(part);
    let _ = write!(text, "  {} of {} runs", progress.done, progress.total);
    if progress.reused > 0 {
        let _ = write!(text, " ({} of an earlier time)", progress.reused);
    }
    if let Some(left) = progress.left {
        let _ = write!(text, ", about {} left", progress::clock(left.as_secs_f64()));
    }
    text
}

fn summary(screen: &Screen, report: &Report, files: &[PathBuf]) -> String {
    let mut text = String::new();
    for figure in &report.figures {
        let heading = format!("Figure {}: {}", figure.figure.number(), figure.figure.summary());
        text += &titled(screen, [(heading.as_str(), figure.short_table())]);
    }
    let more = [
        ("What the paper leaves open", &report.short_sensitivity),
        ("Which TCP-LP, which NICE", &report.short_background),
        (ARITHMETIC, &report.short_arithmetic),
    ];
    text += &titled(screen, more.into_iter().filter_map(|(heading, table)| Some((heading, table.clone()?))));
    text + &match report.figures.is_empty() {
        true => page(files),
        false => tally_and_page("claims", report.tally(), files),
    }
}

fn ledbatpp_summary(screen: &Screen, report: &ledbatpp::Report, files: &[PathBuf]) -> String {
    let tables = [
        ("What was published", report.short_table()),
        ("Every phase", report.phases_table()),
        ("Duels with BBR", report.duels_table()),
    ];
    titled(screen, tables) + &tally_and_page("statements", report.tally(), files)
}

/// Tables under their headings.
fn titled<'a>(screen: &Screen, tables: impl IntoIterator<Item = (&'a str, Table)>) -> String {
    let mut text = String::new();
    for (heading, table) in tables {
        let table = terminal::table(&table, screen.columns, screen.colour);
        let _ = write!(text, "{}\n\n{table}\n", screen.bold(heading));
    }
    text
}

/// How many of the claims, or what they are called, hold, and where the page is.
fn tally_and_page(what: &str, (hold, fail, open): Tally, files: &[PathBuf]) -> String {
    format!("{} {what}: {hold} hold, {fail} do not hold, {open} open\n{}", hold + fail + open, page(files))
}

fn page(files: &[PathBuf]) -> String {
    let words = |page: &PathBuf| format!("Report: {} (figures as SVG and PNG beside it)\n", page.display());
    files.first().map(words).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_done_reused_and_left() {
        let progress = Progress {
            done: 30,
            reused: 10,
            total: 120,
            elapsed: Duration::from_secs(20),
            left: Some(Duration::from_secs(90)),
        };
        let text = line(&progress);
        assert!(text.contains("30 of 120 runs (10 of an earlier time), about 1 min 30 s left"), "{text}");
        assert!(text.contains("25 %"), "{text}");
    }

    #[test]
    fn ledbatpp_has_no_figures_to_choose() {
        let args = Args {
            paper: Paper::Ledbatpp,
            figure: vec![1],
            sensitivity: false,
            capture: Vec::new(),
            world: None,
            sweep: false,
            only: Vec::new(),
            iterations: None,
            quick: true,
            output: None,
            jobs: None,
            json: false,
        };
        assert!(matches!(run(&args), Err(Failure::Usage(_))));
    }

    #[test]
    fn figures_that_the_paper_does_not_have_are_refused() {
        let args = |figure| Args {
            paper: Paper::Lcn10,
            figure,
            sensitivity: false,
            capture: Vec::new(),
            world: None,
            sweep: false,
            only: Vec::new(),
            iterations: None,
            quick: true,
            output: None,
            jobs: None,
            json: false,
        };
        assert!(
            matches!(request(&args(vec![7])), Err(Failure::Usage(text)) if text.contains("1, 2, 3, 4, 5, 6"))
        );
        assert_eq!(request(&args(vec![2])).unwrap().figures(), [FigureNumber::Fig2]);
        assert_eq!(request(&args(Vec::new())).unwrap().figures().len(), figures().len());
    }
}
