//! The options of `cede torrent`.

use super::daemon::args::DaemonArgs;
use super::duty::UntilArgs;
use super::forms::{address, tracker_url, web_url};
use super::swarm_args::SwarmArgs;
use cede_bt::metainfo::{MAX_PIECE_BYTES, MIN_PIECE_BYTES};
use cede_units::{Bytes, Duration};
use clap::{Args, Subcommand, ValueHint};
use std::net::IpAddr;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  cede torrent make photos -t http://tracker.example:6969/announce
  cede torrent seed photos.torrent                      from this folder, until Ctrl-C
  cede torrent get photos.torrent -o inbox              and elsewhere, this fetches it
  cede torrent get 'magnet:?xt=urn:btih:...' --transport utp
  cede torrent tracker -p 6969                          a tracker of one's own";

/// `cede torrent`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct TorrentArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with torrents.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Download a torrent from its file, its URL or a magnet link
    Get(GetArgs),
    /// Give a torrent's content to others
    Seed(SeedArgs),
    /// Fetch and give torrents as others ask for it: by Transmission's tools and its RPC protocol
    Daemon(DaemonArgs),
    /// Run a tracker, over HTTP and UDP
    Tracker(TrackerArgs),
    /// Make a torrent of a file or folder
    Make(MakeArgs),
    /// Show what a torrent file, its URL or a magnet link says
    Show(ShowArgs),
    /// Check whether files are what a torrent says, and call nobody
    Verify(VerifyArgs),
}

/// The length of pieces: a power of two.
fn piece_length(text: &str) -> Result<u32, String> {
    let bytes = match text.parse::<u64>() {
        Ok(number) => number,
        Err(_) => text.parse::<Bytes>().map_err(|error| error.to_string())?.0,
    };
    let length = u32::try_from(bytes).ok().filter(|length| length.is_power_of_two());
    length
        .filter(|length| (MIN_PIECE_BYTES..=MAX_PIECE_BYTES).contains(length))
        .ok_or_else(|| "take a power of two from 16KiB to 64MiB, such as 256KiB".to_owned())
}

const MAKE_EXAMPLES: &str = "\
Examples:
  cede torrent make film.mkv                            film.mkv.torrent, without a tracker
  cede torrent make photos -t http://a/announce -t udp://b:6969 -o trip.torrent
  cede torrent make photos -t http://a/announce --private --comment 'only for us'
  cede torrent make photos --web-seed http://mirror.example/pub/     photos is in pub

Files are taken in the order of their names; links, pipes and devices are passed over. The length of
pieces is chosen so that there are about 1,500, from 16 KiB to 16 MiB.";

/// `cede torrent make`.
#[derive(Args, Debug)]
#[command(after_help = MAKE_EXAMPLES)]
pub struct MakeArgs {
    /// The file or folder
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
    /// A tracker's URL (http, https or udp); may be repeated, each is a tier of its own
    #[arg(short, long = "tracker", visible_alias = "announce", value_name = "URL", value_parser = tracker_url)]
    pub trackers: Vec<String>,
    /// A server that has the content: the file's URL, or that of the folder which it is in, with a / at its end; may be repeated
    #[arg(long = "web-seed", value_name = "URL", value_parser = web_url)]
    pub web_seeds: Vec<String>,
    /// Where to put the torrent; - for standard output [default: PATH's name with .torrent]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Octets of a piece, a power of two [default: by the size] [example: -l 256KiB]
    #[arg(short = 'l', long, value_name = "SIZE", value_parser = piece_length)]
    pub piece_length: Option<u32>,
    /// Make a torrent of v2 (BEP 52): SHA-256, a tree of hashes for each file; older clients cannot use it
    #[arg(long)]
    pub v2: bool,
    /// Peers come from the trackers alone: no DHT, no peer exchange, nothing said in the local network (BEP 27)
    #[arg(long)]
    pub private: bool,
    /// Something to say
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// Makes the info-hash another one for the same content, as private trackers ask for
    #[arg(long, value_name = "TEXT")]
    pub source: Option<String>,
    /// Leave the date out, so that the same content gives the same file
    #[arg(long)]
    pub no_date: bool,
    /// Do not say which files are executable (BEP 47), so that the info-hash does not depend on it
    #[arg(long)]
    pub no_attributes: bool,
    /// Replace a file that is there
    #[arg(long)]
    pub force: bool,
    /// Print what was made as a JSON document
    #[arg(short = 'J', long)]
    pub json: bool,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  cede torrent show photos.torrent
  cede torrent show photos.torrent --json | jq -r .magnet
  cede torrent show 'magnet:?xt=urn:btih:...'

Hybrid torrents are used by their v1 side.";

/// `cede torrent show`.
#[derive(Args, Debug)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct ShowArgs {
    /// A torrent file, - for standard input, a magnet link, or the URL of either
    #[arg(value_name = "FILE|MAGNET|URL|-", value_hint = ValueHint::FilePath)]
    pub what: String,
    /// Print a JSON document
    #[arg(short = 'J', long)]
    pub json: bool,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  cede torrent verify photos.torrent                    photos in this folder
  cede torrent verify photos.torrent --data /mnt/archive --json

Exit code 0 where all files are right, 1 where one is not.";

/// `cede torrent verify`.
#[derive(Args, Debug)]
#[command(after_help = VERIFY_EXAMPLES)]
pub struct VerifyArgs {
    /// A torrent file, - for standard input
    #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub what: PathBuf,
    /// The folder that the content is in
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".")]
    pub data: PathBuf,
    /// Print a JSON document
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// What peers wait between two announces.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = text.parse::<Duration>().map_err(|error| error.to_string())?;
    if interval < Duration::from_secs(1) {
        return Err("take at least 1s: peers would ask without a pause".to_owned());
    }
    Ok(interval)
}

const GET_EXAMPLES: &str = "\
Examples:
  cede torrent get photos.torrent -o inbox
  cede torrent get *.torrent -o inbox --down 20Mbit/s   all of them at once, 20 Mbit/s together
  cede torrent get 'magnet:?xt=urn:btih:...&tr=udp://tracker.example:6969'
  cede torrent get http://example.org/photos.torrent --files 0,3-5
  cede torrent get photos.torrent --first index,7 --last raw   what comes before and after the rest
  cede torrent get photos.torrent --transport utp --utp-target-delay 25ms -C ledbat++
  cede torrent get photos.torrent --up 100kB/s --seed   goes on giving when it has everything
  cede torrent get photos.torrent --seed-ratio 1.5      until half as much again was sent

An interrupted download goes on where it ended when the same command is given again: what is there
is checked by its hashes. Nothing is written outside of the folder. The numbers of files are those
of `cede torrent show`. Ctrl-C, SIGTERM or a closed terminal (SIGHUP) ends it in order (exit code
130) and keeps what has come, also where everything has; one more, 2 s later, ends it at once.";

/// `cede torrent get`.
#[derive(Args, Clone, Debug)]
#[command(after_help = GET_EXAMPLES)]
pub struct GetArgs {
    /// A torrent file, its http URL, or a magnet link; several share the port and the limits
    #[arg(value_name = "FILE|MAGNET|URL", value_hint = ValueHint::FilePath, required = true)]
    pub what: Vec<String>,
    /// The folder to put it into
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".")]
    pub output: PathBuf,
    /// Which files, by their numbers or a part of their names [default: all] [example: --files 0,3-5,readme]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub files: Vec<String>,
    /// Files to fetch before all others, as --files has them [example: --first sample,0]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub first: Vec<String>,
    /// Files to fetch after all others
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub last: Vec<String>,
    /// Fetch from the beginning on, to look at what has come meanwhile; it spreads worse among peers than the rarest first
    #[arg(long)]
    pub in_order: bool,
    /// Set all room aside at the beginning
    #[arg(long)]
    pub preallocate: bool,
    /// Write over files that are there already, though they hold no piece of this torrent
    #[arg(long)]
    pub overwrite: bool,
    /// Write the torrent file of a link or URL there [example: --save-torrent photos.torrent]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub save_torrent: Option<PathBuf>,
    /// Go on giving when everything is there
    #[arg(long)]
    pub seed: bool,
    /// Until when
    #[command(flatten)]
    pub until: UntilArgs,
    /// How it is fetched
    #[command(flatten)]
    pub swarm: SwarmArgs,
}

const SEED_EXAMPLES: &str = "\
Examples:
  cede torrent seed photos.torrent                      from photos in this folder
  cede torrent seed photos.torrent --data /mnt/archive --up 2Mbit/s
  cede torrent seed *.torrent --data /mnt/archive       all of them, at one port
  cede torrent seed photos.torrent --super-seed         the first seed: little is sent twice
  cede torrent seed photos.torrent --seed-time 8h       for a night

The content is checked first; pieces that are missing or different are not given. Ctrl-C, SIGTERM or
a closed terminal (SIGHUP) ends it in order (exit code 130); one more, 2 s later, ends it at once.";

/// `cede torrent seed`.
#[derive(Args, Clone, Debug)]
#[command(after_help = SEED_EXAMPLES)]
pub struct SeedArgs {
    /// A torrent file; several share the port and the limits
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required = true)]
    pub what: Vec<String>,
    /// The folder that the content is in
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".", alias = "output", short_alias = 'o')]
    pub data: PathBuf,
    /// Seem to have nothing, and tell each peer of two pieces at a time: for the first seed of a new torrent (BEP 16)
    #[arg(long)]
    pub super_seed: bool,
    /// Until when
    #[command(flatten)]
    pub until: UntilArgs,
    /// How it is given
    #[command(flatten)]
    pub swarm: SwarmArgs,
}

const TRACKER_EXAMPLES: &str = "\
Examples:
  cede torrent tracker                       http://HOST:6969/announce and udp://HOST:6969
  cede torrent tracker --interval 60s --json | tee announces.jsonl
  cede torrent tracker --only photos.torrent

Each announce is a line: when (UTC), who, over what, which torrent, why, what is left, how many
peers it heard of. Ctrl-C, SIGTERM or a closed terminal (SIGHUP) ends it (exit code 130).";

/// `cede torrent tracker`.
#[derive(Args, Debug)]
#[command(after_help = TRACKER_EXAMPLES)]
pub struct TrackerArgs {
    /// TCP and UDP port; 0 takes a free one and says which
    #[arg(short, long, value_name = "PORT", default_value_t = 6969)]
    pub port: u16,
    /// The address [default: all, IPv4 and IPv6]
    #[arg(short = 'B', long, value_name = "ADDRESS", value_parser = address)]
    pub bind: Option<IpAddr>,
    /// What peers are told to wait between two announces
    #[arg(long, value_name = "TIME", default_value = "30 min", value_parser = interval)]
    pub interval: Duration,
    /// Only for these torrents; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub only: Vec<PathBuf>,
    /// Print one JSON document per line for each announce
    #[arg(short = 'J', long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracker_is_not_asked_without_a_pause() {
        assert!(interval("1s").is_ok() && interval("0s").is_err() && interval("soon").is_err());
    }

    #[test]
    fn pieces_are_powers_of_two() {
        assert_eq!(piece_length("256KiB"), Ok(1 << 18));
        assert_eq!(piece_length("16384"), Ok(1 << 14));
        for text in ["250kB", "8KiB", "128MiB", "0", "x"] {
            assert!(piece_length(text).is_err(), "{text}");
        }
    }
}
