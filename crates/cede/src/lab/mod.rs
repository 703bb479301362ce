//! `cede lab`: experiments in real time, each beside what the simulated world predicts.

mod gentle;
mod kernel;
mod path;
mod show;

pub use show::unmeasured;

use crate::failure::Failure;
use crate::screen;
use cede_plot::{Table, terminal};
use clap::Subcommand;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  cede lab path                                      60 MB over 100 Mbit/s at 100 ms
  cede lab path --rate 50Mbit --rtt 30ms --buffer 4bdp
  cede lab path --rate 50Mbit --rtt 20ms --mtu 1280  a black hole for larger packets
  cede lab path -C ledbat++ --loss 0.1% --json | jq .measured.goodput_mbps
  sudo cede lab gentle                               a kernel TCP flow comes and goes
  sudo cede lab kernel reno bbr --rtt 80ms           the kernel's TCP beside its models";

/// `cede lab`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Which experiment.
    #[command(subcommand)]
    experiment: Experiment,
}

/// The experiments.
#[derive(Subcommand, Debug)]
enum Experiment {
    /// Send over an emulated path on this machine, without root
    Path(path::Args),
    /// Let a uTP flow meet kernel TCP at a bottleneck of the kernel's, in network namespaces; needs root
    Gentle(gentle::Args),
    /// Let two of the kernel's TCP congestion controls meet, beside their models; needs root
    Kernel(kernel::Args),
    /// List the experiments
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs one.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.experiment {
        Experiment::Path(args) => path::run(args),
        Experiment::Gentle(args) => gentle::run(args),
        Experiment::Kernel(args) => kernel::run(args),
        Experiment::List { json } => list(*json),
    }
}

const LIST: [[&str; 3]; 3] = [
    [
        "path",
        "a transfer through a relay on the loopback, whose physics are the simulator's links",
        "nothing",
    ],
    [
        "gentle",
        "a uTP flow, a TCP flow of the kernel's that comes and goes, and a token bucket between them",
        "Linux, root, iproute2",
    ],
    [
        "kernel",
        "two TCP flows of the kernel's, each alone and both, beside the model TCP's",
        "Linux, root, iproute2, TUN",
    ],
];

fn list(json: bool) -> Result<(), Failure> {
    if json {
        let item =
            |[name, summary, needs]: [&str; 3]| json!({ "name": name, "summary": summary, "needs": needs });
        return screen::print_json(&LIST.map(item).to_vec().into());
    }
    let rows = LIST.iter().map(|row| row.map(Into::into));
    let table = rows.fold(Table::new(["experiment", "what it is", "needs"]), Table::row);
    let screen = screen::Screen::new(false);
    screen::print(&terminal::table(&table, screen.columns, screen.colour))
}
