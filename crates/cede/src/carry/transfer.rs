//! Files: what `cede send FILE` and `cede recv` have in common, and the former.

use super::args::SendArgs;
use super::gauge::Gauge;
use super::{broken, key, numbers, stream_config, target, unreached};
use crate::failure::Failure;
use crate::interrupt;
use crate::screen;
use cede_carry::file::{self, Attendant, Moved, Source, TransferError};
use cede_carry::message::Purpose;
use cede_carry::{Key, Line, Link, Stop, Target, WireError, dial, greeting};
use cede_real::StreamConfig;
use cede_units::Duration;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::Path;

/// `cede send FILE HOST:PORT`.
pub fn send_file(args: &SendArgs, file: &OsStr, host: &str) -> Result<(), Failure> {
    let target = target(host, args.port)?;
    let (_, config) = stream_config(&args.controller)?;
    let is_json = args.json || args.json_stream;
    let mut source = source(file).map_err(|failure| tell_failure(failure, is_json))?;
    if let Some(name) = &args.name {
        source = source.named(name);
    }
    let key = key::load(&args.key)?;
    super::run(|stop| carry_out(target, config, key, source, is_json, stop))
}

fn source(file: &OsStr) -> Result<Source, Failure> {
    if file == "-" {
        let stdin = std::io::stdin();
        if stdin.is_terminal() {
            screen::mention("reading from the terminal; Ctrl-D ends it\n");
        }
        return Ok(Source::stream(Box::new(stdin), "stdin", "standard input".to_owned()));
    }
    interrupt::while_reading(|| Source::file(Path::new(file))).map_err(|text| {
        let is_forbidden = text.contains("ermission denied");
        if is_forbidden { Failure::NotPermitted(text) } else { Failure::Failed(text) }
    })
}

async fn carry_out(
    target: Target,
    config: StreamConfig,
    key: Option<Key>,
    source: Source,
    is_json: bool,
    mut stop: Stop,
) -> Result<(), Failure> {
    let mut gauge = Gauge::new();
    let opened = open(&target, &config, key.as_ref(), Purpose::Put, "cede recv", &mut stop).await;
    let (_socket, mut link) = match opened {
        Ok(opened) => opened,
        Err(failure) => return Err(tell_failure(failure, is_json)),
    };
    let mut watch = |progress: &file::Progress| gauge.update(progress);
    let outcome = file::send(&mut link, source, &mut Attendant { stop, watch: &mut watch }).await;
    part(link, &outcome).await;
    conclude(&outcome, gauge.end(), key.as_ref(), is_json, "sent")
}

/// A link to the other end, on which both have greeted.
pub async fn open(
    target: &Target,
    config: &StreamConfig,
    key: Option<&Key>,
    purpose: Purpose,
    there: &str,
    stop: &mut Stop,
) -> Result<(cede_real::UtpSocket, Link), Failure> {
    let opening = async {
        let (socket, stream) = dial(target, config).await.map_err(|error| unreached(&error, there))?;
        let mut link = Link::new(Line::call(stream, key).await.map_err(|error| broken(&error))?);
        let greeted = greeting::greet(&mut link.reader, &mut link.writer, purpose).await;
        greeted.map_err(|error| broken(&error))?;
        Ok((socket, link))
    };
    tokio::select! {
        opened = opening => opened,
        () = stop.asked() => Err(Failure::Interrupted("nothing was moved".to_owned())),
    }
}

/// Ends a link: in full where all went well, and else without waiting long for who may be gone.
pub async fn part(link: Link, outcome: &Result<Moved, TransferError>) {
    match outcome {
        Ok(_) => link.part().await,
        Err(_) => drop(tokio::time::timeout(std::time::Duration::from_secs(1), link.part()).await),
    }
}

/// Says what came of it.
pub fn conclude(
    outcome: &Result<Moved, TransferError>,
    took: std::time::Duration,
    key: Option<&Key>,
    is_json: bool,
    verb: &str,
) -> Result<(), Failure> {
    match outcome {
        Ok(moved) => {
            let took = Duration::from_secs_f64(took.as_secs_f64());
            if is_json {
                screen::print_json(&document(moved, Some(took), key.is_some()))?;
            }
            screen::mention(&sentence(moved, took, key, verb));
            Ok(())
        }
        Err(error) => Err(tell_failure(failure(error), is_json)),
    }
}

fn sentence(moved: &Moved, took: Duration, key: Option<&Key>, verb: &str) -> String {
    let new = moved.bytes - moved.resumed;
    let what = match &moved.path {
        Some(path) => screen::named(path),
        None => screen::named(Path::new(&moved.name)),
    };
    let earlier = match moved.resumed {
        0 => String::new(),
        bytes => format!(" (after {} of an earlier time)", numbers::amount(bytes)),
    };
    let digest = numbers::hex(&moved.digest[..8]);
    let (moved, under) = (numbers::moved(new, took), key::under(key));
    format!("{verb} {what}: {moved}{earlier}{under}; BLAKE3 {digest}... at both ends\n")
}

/// What was moved, as JSON.
pub fn document(moved: &Moved, took: Option<Duration>, is_protected: bool) -> Value {
    json!({
        "name": moved.name,
        "path": moved.path.as_ref().map(|path| path.display().to_string()),
        "bytes": moved.bytes,
        "resumed_bytes": moved.resumed,
        "blake3": numbers::hex(&moved.digest),
        "seconds": took.map(Duration::as_secs_f64),
        "protected": is_protected,
    })
}

/// What to do about it.
pub fn failure(error: &TransferError) -> Failure {
    match error {
        TransferError::Stopped => Failure::Interrupted(
            "the receiver keeps what it has; the same commands go on where this ended".to_owned(),
        ),
        TransferError::Source(text) | TransferError::Destination(text) => {
            let is_forbidden = text.contains("ermission denied") || text.contains("ead-only file system");
            if is_forbidden { Failure::NotPermitted(text.clone()) } else { Failure::Failed(text.clone()) }
        }
        TransferError::Wire(WireError::Lost(_) | WireError::Silent) => Failure::Failed(format!(
            "{error}; the receiver keeps what it has: the same commands go on from there"
        )),
        _ => Failure::Failed(error.to_string()),
    }
}

/// What went wrong, as a document too where one is wanted.
pub fn tell_failure(failure: Failure, is_json: bool) -> Failure {
    if is_json && let Some(text) = failure.text() {
        let _ = screen::print_json(&json!({ "error": text }));
    }
    failure
}
