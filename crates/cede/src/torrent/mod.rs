//! `cede torrent`: BitTorrent on real sockets and files.

mod alone;
pub mod args;
mod asking;
mod board;
mod control;
mod daemon;
mod duty;
mod filter;
mod forms;
mod gauge;
mod get;
mod hub;
mod job;
mod make;
mod notes;
mod place;
mod port;
mod said;
mod seek;
mod show;
mod source;
mod swarm;
mod swarm_args;
mod tracker;
mod verify;

use crate::failure::Failure;
use crate::screen;
use args::{TorrentArgs, Verb};
use cede_bt::metainfo::{MAX_FILE_BYTES, Metainfo};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Runs a verb.
pub fn run(args: &TorrentArgs) -> Result<(), Failure> {
    match &args.verb {
        Verb::Get(args) => get::get(args),
        Verb::Seed(args) => get::seed(args),
        Verb::Daemon(args) => daemon::daemon(args),
        Verb::Tracker(args) => tracker::tracker(args),
        Verb::Make(args) => make::make(args),
        Verb::Show(args) => show::show(args),
        Verb::Verify(args) => verify::verify(args),
    }
}

/// Reads a torrent file; `-` is standard input. What is wrong with it does not name it.
fn read_metainfo(path: &Path) -> Result<Metainfo, Failure> {
    let octets = read_limited(path)
        .map_err(|error| Failure::of_system(format!("cannot be read: {error}"), error.kind()))?;
    Metainfo::parse(&octets).map_err(|error| Failure::Failed(error.to_string()))
}

/// What a torrent is asked for by, in a line.
fn source_name(what: &str) -> String {
    match what {
        "-" => "standard input".to_owned(),
        _ => screen::printable(what),
    }
}

/// All octets of a file, or one more than a torrent file may have.
fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    let limit = MAX_FILE_BYTES as u64 + 1;
    if path.as_os_str() == "-" {
        io::stdin().lock().take(limit).read_to_end(&mut octets)?;
    } else {
        File::open(path)?.take(limit).read_to_end(&mut octets)?;
    }
    Ok(octets)
}

/// A folder by its own name, as it may have several.
fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf())
}

/// How a file of a torrent is shown.
fn shown(path: &[String]) -> String {
    screen::printable(&path.join("/"))
}
