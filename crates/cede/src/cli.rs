//! The commands and their options: help, completions and man pages are all made from this.

use crate::carry::args::{MakeKeyArgs, PipeArgs, ProxyArgs, RecvArgs, SendArgs, ServeArgs};
use crate::run::args::RunArgs;
use crate::torrent::args::TorrentArgs;
use crate::{check, inspect, lab, meter, repro};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0    done; every assertion holds
  1    the run failed, or an assertion does not hold
  2    the command line or the scenario is wrong
  3    not permitted, such as a folder that may not be written to
  130  interrupted (Ctrl-C, SIGTERM, a closed terminal); what was recorded until then is kept,
       of a run that `repro` has begun nothing

Environment:
  NO_COLOR         no colours
  CLICOLOR_FORCE   colours even where the output is no terminal
  CEDE_KEY         the text of a key, for what has an option --key and was not given it

First steps:
  cede demo                             what a transport that yields looks like
  cede list                             what there is
  cede explain scenario                 how to write an experiment of your own";

/// Transport that yields: carry with it, simulate it, measure it, compare it.
///
/// Cede sends data over uTP with congestion controllers such as LEDBAT, which use only what nobody else wants; runs the very
/// same protocol code in virtual time, over links and queues that a scenario file describes; and says from captures how
/// long packets queue at remote hosts. The same scenario and seed give the same run to the bit.
#[derive(Parser, Debug)]
#[command(name = "cede", version, after_help = EXIT_CODES, disable_help_subcommand = true, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Show a LEDBAT flow that yields to a CUBIC flow and takes the link back
    Demo(DemoArgs),
    /// Run a scenario and keep what it showed in a folder
    Run(RunArgs),
    /// Repeat a paper's experiments and compare with what it says
    Repro(repro::Args),
    /// Check a controller in pinned scenarios with pass marks
    Check(check::Args),
    /// Experiments in real time, beside what the simulated world predicts
    Lab(lab::Args),
    /// Answer tests and take or give files, over uTP
    Serve(ServeArgs),
    /// Test the way to another machine over uTP, or send it a file
    Send(SendArgs),
    /// Wait for a file over uTP, or fetch one
    Recv(RecvArgs),
    /// Connect standard input and output to another machine over uTP
    Pipe(PipeArgs),
    /// Carry TCP connections over uTP between two machines
    Proxy(ProxyArgs),
    /// Make a key by which serve, send, recv, pipe and proxy encrypt and authenticate
    Key(MakeKeyArgs),
    /// Download, seed, make and show torrents, over TCP and uTP
    Torrent(Box<TorrentArgs>),
    /// Say from a capture what BitTorrent peers said to each other, message by message
    Inspect(Box<inspect::InspectArgs>),
    /// Say from a capture how long packets queue at remote hosts, without sending any
    Meter(Box<meter::MeterArgs>),
    /// List controllers, queue disciplines, scenarios, metrics and figures
    List(ListArgs),
    /// Explain a controller, a parameter, a metric, an option or the scenario format
    Explain(ExplainArgs),
    /// Print the reference of the scenario format (the same as `cede explain scenario`)
    #[command(hide = true)]
    ScenarioReference,
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the man page, or write one for each command
    Man(ManArgs),
}

const DEMO_EXAMPLES: &str = "\
Examples:
  cede demo                     pictures, a table and a report in cede-out/demo
  cede demo --seed 7 -o first   another seed, another folder
  cede demo --json | jq '.results.flows[] | {name, share}'";

/// `cede demo`.
#[derive(Args, Debug)]
#[command(after_help = DEMO_EXAMPLES)]
pub struct DemoArgs {
    /// The seed of every random stream [example: --seed 7]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The run folder; an earlier run in it is replaced [default: cede-out/demo]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Print the manifest as JSON on standard output, and words on standard error
    #[arg(long)]
    pub json: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  cede list                     everything
  cede list controllers
  cede list metrics --json | jq -r '.[].name'";

/// `cede list`.
#[derive(Args, Debug)]
#[command(after_help = LIST_EXAMPLES)]
pub struct ListArgs {
    /// What to list; everything where it is left out
    #[arg(value_name = "WHAT")]
    pub what: Option<Catalogue>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Catalogue {
    /// Congestion controllers
    #[value(alias = "cc")]
    Controllers,
    /// Queue disciplines of links
    #[value(alias = "aqm")]
    Queues,
    /// Built-in scenarios
    Scenarios,
    /// Scenarios of `cede check`
    Checks,
    /// What can be measured and asserted
    Metrics,
    /// Figures that `cede repro` draws
    Figures,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  cede explain ledbat           a controller, its rule, its source and its parameters
  cede explain ledbat.target    one parameter
  cede explain queue.p95_ms     a metric
  cede explain link.buffer      an option of a scenario
  cede explain demo             a built-in scenario
  cede explain scenario         the whole scenario format, as Markdown";

/// `cede explain`.
#[derive(Args, Debug)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub struct ExplainArgs {
    /// A controller, CONTROLLER.PARAMETER, a metric, TABLE.OPTION, a built-in scenario, `scenario` or `swarm`; or all `controllers`,
    /// `metrics`, `flags` (of the meter), `queues`, `columns` ...
    #[arg(value_name = "WHAT")]
    pub what: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  cede completions bash > ~/.local/share/bash-completion/completions/cede
  cede completions zsh  > ~/.zfunc/_cede
  cede completions fish > ~/.config/fish/completions/cede.fish";

/// `cede completions`.
#[derive(Args, Debug)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

const MAN_EXAMPLES: &str = "\
Examples:
  cede man | man -l -                        read it
  cede man -o ~/.local/share/man/man1        cede.1, cede-run.1 and so on";

/// `cede man`.
#[derive(Args, Debug)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// Write the pages of all commands into this folder in place of printing the first
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// What is wider than help is shown would be broken within a line that was laid out by hand.
    fn assert_fits(command: &clap::Command) {
        const WIDTH: usize = 100;
        let texts = [command.get_after_help(), command.get_after_long_help(), command.get_before_help()];
        for text in texts.into_iter().flatten().map(ToString::to_string) {
            for line in text.lines() {
                assert!(line.chars().count() <= WIDTH, "{}: {line}", command.get_name());
            }
        }
        command.get_subcommands().for_each(assert_fits);
    }

    #[test]
    fn help_fits_the_width_that_it_is_shown_in() {
        assert_fits(&Cli::command());
    }
}
