//! The command line of `cede run`.

use cede_lab::record::Vantage;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

const RUN_EXAMPLES: &str = "\
Examples:
  cede run scenarios/latecomer.toml
  cede run latecomer -s flow.*.controller.target='60 ms' --seed 3 -o late
  cede run - < my.toml                                   a scenario from standard input
  cede run flash-crowd -s group.leecher.count=20         a swarm of BitTorrent peers
  cede run demo --pcap && tshark -r cede-out/demo/packets.pcapng
  cede run my.toml --json | jq .results.links

The exit code is 1 where an assertion of the scenario does not hold.
The format: cede explain scenario, cede explain swarm. Those that are built in: cede list scenarios.";

/// `cede run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// The file of a scenario or a swarm, the name of a built-in one, or - for standard input
    #[arg(value_name = "FILE.toml|NAME|-", value_hint = ValueHint::FilePath)]
    pub scenario: String,
    /// Set an option of the scenario; may be repeated [example: -s link.rate='5 Mbit/s']
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The seed of every random stream, in place of the scenario's [example: --seed 7]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The run folder; an earlier run in it is replaced [default: cede-out/NAME]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Write the octets of every packet to packets.pcapng, as seen from there [default: sent] [example: --pcap=senders]
    #[arg(long, value_name = "WHERE", num_args = 0..=1, require_equals = true, default_missing_value = "sent")]
    pub pcap: Option<VantageArg>,
    /// The forms in which the run folder keeps tables [example: --format csv,parquet,flent]
    #[arg(short, long, value_name = "FORM", value_delimiter = ',', default_value = "csv")]
    pub format: Vec<TableForm>,
    /// Draw the figures as files too [example: --plot svg,png]
    #[arg(long, value_name = "FORM", value_delimiter = ',')]
    pub plot: Vec<PictureForm>,
    /// Print the manifest as JSON on standard output, and words on standard error
    #[arg(long)]
    pub json: bool,
}

/// Where the packets of a capture are seen.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum VantageArg {
    /// Every packet once, as it leaves its host
    Sent,
    /// Data as they leave, acknowledgements as they arrive
    Senders,
    /// Data as they arrive, acknowledgements as they leave
    Receivers,
}

impl From<VantageArg> for Vantage {
    fn from(argument: VantageArg) -> Self {
        match argument {
            VantageArg::Sent => Self::Sent,
            VantageArg::Senders => Self::Senders,
            VantageArg::Receivers => Self::Receivers,
        }
    }
}

/// The form in which a run is kept for other programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum TableForm {
    /// Comma-separated values
    Csv,
    /// A JSON object per line
    Jsonl,
    /// Apache Parquet
    Parquet,
    /// All flows and the queue in one file for flent
    Flent,
}

/// The form of pictures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PictureForm {
    /// Scalable
    Svg,
    /// Pixels, two to a point
    Png,
}
