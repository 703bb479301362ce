//! `cede repro`: a paper's experiments.

mod bufferbloat;
mod lcn10;
mod ledbatpp;
mod swarms;

pub use lcn10::figures;

use crate::failure::Failure;
use crate::progress::{self, Pace, StatusLine};
use crate::screen::{self, Screen};
use cede_lab::run::RunError;
use cede_plot::{Table, terminal};
use cede_repro::{Progress, Tally};
use clap::ValueHint;
use serde_json::Value;
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
  cede repro ledbatpp                      LEDBAT++ beside others, and why it takes BBR's link
  cede repro tma12 --quick                 swarms over TCP and uTP, smaller than the paper's
  cede repro tma12 --sweep                 which claims hold under which reading of it
  cede repro tma12 --reading '2 upload slots'   all of its claims under one of these
  cede repro rao10                         BitTorrent swarms under latency and loss, at full size
  cede repro rao10 --iterations 1 --only 'RTT 400 ms'     one run of each; a later command goes on
  cede repro rao10 --sweep --quick         what piece size, slots and the release move in it
  cede repro bufferbloat                   the passive meter beside the queue's own log
  cede repro bufferbloat --capture a.pcap  the analysis of the peers in captures of one's own";

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
    /// tma12: all swarms and claims under one of the sweep's readings, by a part of its name, or under several where it is repeated; a report of its own, one to a folder; with
    /// --sweep each other reading on top of these [example: --reading '2 upload slots']
    #[arg(long, value_name = "TEXT")]
    pub reading: Vec<String>,
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

/// Repeats the experiments.
pub fn run(args: &Args) -> Result<(), Failure> {
    refuse_strays(args)?;
    match args.paper {
        Paper::Lcn10 => lcn10::run(args),
        Paper::Ledbatpp => ledbatpp::run(args),
        Paper::Tma12 if args.sweep => swarms::run_tma12_sweep(args),
        Paper::Tma12 if !args.reading.is_empty() => swarms::run_tma12_reading(args),
        Paper::Tma12 => swarms::run_tma12(args),
        Paper::Rao10 if args.sweep => swarms::run_rao10_sweep(args),
        Paper::Rao10 => swarms::run_rao10(args),
        Paper::Bufferbloat => bufferbloat::run(args),
    }
}

/// Options that belong to another paper are refused.
fn refuse_strays(args: &Args) -> Result<(), Failure> {
    if args.paper != Paper::Lcn10 && (!args.figure.is_empty() || args.sensitivity) {
        return Err(Failure::Usage("`--figure` and `--sensitivity` are for lcn10".to_string()));
    }
    if args.paper != Paper::Tma12 && !args.reading.is_empty() {
        return Err(Failure::Usage("`--reading` is for tma12".to_string()));
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

/// Where the figures, tables and results of a paper go.
fn folder(args: &Args, paper: &str) -> PathBuf {
    args.output.clone().unwrap_or_else(|| Path::new("cede-out").join(paper))
}

/// It was ended before its end; each run that was made is there.
fn goes_on(folder: &Path) -> Failure {
    let folder = screen::named(folder);
    Failure::Interrupted(format!("what was measured is in {folder}; the same command goes on from there"))
}

/// Says what was found, and prints it for programs where that is asked for.
fn tell(
    args: &Args,
    summary: impl FnOnce(&Screen) -> String,
    json: impl FnOnce() -> Value,
) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    screen.say(&summary(&screen))?;
    if args.json { screen::print_json(&json()) } else { Ok(()) }
}

fn not_run(error: RunError) -> Failure {
    match error {
        RunError::Interrupted => Failure::Interrupted("nothing was kept".to_string()),
        error => Failure::Failed(error.to_string()),
    }
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

fn jobs(args: &Args) -> usize {
    args.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZero::get)
}

fn failed(folder: &Path, error: &io::Error) -> Failure {
    Failure::of_system(format!("{}: {error}", screen::named(folder)), error.kind())
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
    let words =
        |page: &PathBuf| format!("Report: {} (figures as SVG and PNG beside it)\n", screen::named(page));
    files.first().map(words).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_repro::lcn10::FigureNumber;

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

    fn args(paper: Paper, figure: Vec<u32>) -> Args {
        Args {
            paper,
            figure,
            sensitivity: false,
            capture: Vec::new(),
            world: None,
            sweep: false,
            reading: Vec::new(),
            only: Vec::new(),
            iterations: None,
            quick: true,
            output: None,
            jobs: None,
            json: false,
        }
    }

    #[test]
    fn ledbatpp_has_no_figures_to_choose() {
        assert!(matches!(run(&args(Paper::Ledbatpp, vec![1])), Err(Failure::Usage(_))));
    }

    #[test]
    fn figures_that_the_paper_does_not_have_are_refused() {
        let request = |figure| lcn10::request(&args(Paper::Lcn10, figure));
        assert!(matches!(request(vec![7]), Err(Failure::Usage(text)) if text.contains("1, 2, 3, 4, 5, 6")));
        assert_eq!(request(vec![2]).unwrap().figures(), [FigureNumber::Fig2]);
        assert_eq!(request(Vec::new()).unwrap().figures().len(), figures().len());
    }
}
