//! The options of `cede torrent`.

use cede_bt::metainfo::{MAX_PIECE_BYTES, MIN_PIECE_BYTES};
use cede_units::Bytes;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  cede torrent make photos -t http://tracker.example:6969/announce
  cede torrent show photos.torrent";

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
    /// Make a torrent of a file or folder
    Make(MakeArgs),
    /// Show what a torrent file or magnet link says
    Show(ShowArgs),
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
    #[arg(short, long = "tracker", visible_alias = "announce", value_name = "URL")]
    pub trackers: Vec<String>,
    /// Where to put the torrent; - for standard output [default: PATH's name with .torrent]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Octets of a piece, a power of two [default: by the size] [example: -l 256KiB]
    #[arg(short = 'l', long, value_name = "SIZE", value_parser = piece_length)]
    pub piece_length: Option<u32>,
    /// Peers come from the trackers alone: no DHT, no peer exchange (BEP 27)
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

Torrents of v2 alone are shown, and cannot be downloaded yet; hybrid ones are used by their v1 side.";

/// `cede torrent show`.
#[derive(Args, Debug)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct ShowArgs {
    /// A torrent file, - for standard input, or a magnet link
    #[arg(value_name = "FILE|MAGNET|-", value_hint = ValueHint::FilePath)]
    pub what: String,
    /// Print a JSON document
    #[arg(short = 'J', long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_powers_of_two() {
        assert_eq!(piece_length("256KiB"), Ok(1 << 18));
        assert_eq!(piece_length("16384"), Ok(1 << 14));
        for text in ["250kB", "8KiB", "128MiB", "0", "x"] {
            assert!(piece_length(text).is_err(), "{text}");
        }
    }
}
