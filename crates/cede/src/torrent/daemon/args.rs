//! The options of `cede torrent daemon`.

use crate::torrent::duty::UntilArgs;
use crate::torrent::swarm_args::SwarmArgs;
use clap::{Args, ValueHint};
use std::net::SocketAddr;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  cede torrent daemon -o /srv/torrents --up 2Mbit/s
  transmission-remote -a photos.torrent           to it: fetch this (Debian: transmission-cli)
  transmission-remote -l                          what there is
  transmission-remote -t 3 --remove-and-delete    away with it, and with its files
  curl -s http://127.0.0.1:9091/metrics           for Prometheus

It speaks Transmission's RPC protocol, so that its tools, and whatever steers Transmission 3.00,
steer this too. Torrents are remembered (--state) and go on when it is begun anew. Where others
than this machine may ask (--rpc 0.0.0.0:9091), a name and a password are needed (--rpc-auth). Over
HTTP these are sent in the clear: on a network that is not yours, put them in a tunnel.";

/// How many torrents are fetched at a time.
fn queue(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "take a number from 1 on; leave it out to fetch all at once".to_owned())
}

/// `cede torrent daemon`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct DaemonArgs {
    /// The folder that torrents are fetched into, unless one is added with another
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".")]
    pub output: PathBuf,
    /// Where it takes orders; port 0 takes a free one and says which
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9091")]
    pub rpc: SocketAddr,
    /// A file with one line, NAME:PASSWORD, that whoever gives orders has to know
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub rpc_auth: Option<PathBuf>,
    /// Where torrents are remembered [default: cede/torrents in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    /// Set all room of a torrent aside when it begins
    #[arg(long)]
    pub preallocate: bool,
    /// Fetch so many torrents at a time, and let the others wait [default: all at once]
    #[arg(long, value_name = "N", value_parser = queue)]
    pub queue: Option<usize>,
    /// When giving ends
    #[command(flatten)]
    pub until: UntilArgs,
    /// How torrents are fetched and given
    #[command(flatten)]
    pub swarm: SwarmArgs,
}
