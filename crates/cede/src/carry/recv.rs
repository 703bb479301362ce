//! `cede recv`: waits for a file, or fetches one.

use super::args::RecvArgs;
use super::gauge::Gauge;
use super::serve::answer_all;
use super::transfer::{conclude, open, part, tell_failure};
use super::{key, listen, place, target};
use crate::failure::Failure;
use crate::screen;
use cede_carry::file::{self, Attendant, Destination, TransferError, safe_name};
use cede_carry::message::Purpose;
use cede_carry::{Allowed, Event, Key, Server, Stop};
use cede_real::StreamConfig;
use std::net::SocketAddr;
use std::path::{PathBuf, is_separator};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::mpsc;

/// Waits, or fetches.
pub fn recv(args: &RecvArgs) -> Result<(), Failure> {
    let destination = destination(args).map_err(|failure| tell_failure(failure, args.json))?;
    let key = key::load(&args.key)?;
    match &args.from {
        Some(from) => {
            let target = target(from, args.port)?;
            super::run(|stop| fetch(args, target, destination, key, stop))
        }
        None => super::run(|stop| wait(args, destination, key, stop)),
    }
}

fn destination(args: &RecvArgs) -> Result<Destination, Failure> {
    let force = args.force;
    let Some(output) = &args.output else {
        return Ok(Destination::Folder { folder: PathBuf::from("."), force });
    };
    if output.as_os_str() == "-" {
        return Ok(Destination::Stdout);
    }
    // What will not work later is better said before anybody waits.
    let is_folder =
        output.as_os_str().as_encoded_bytes().last().is_some_and(|last| is_separator(char::from(*last)));
    let folder = if is_folder { Some(output.as_path()) } else { output.parent() };
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let folder = screen::named(folder);
        return Err(Failure::Usage(format!("-o: there is no folder {folder}; make it: mkdir -p {folder}")));
    }
    if output.is_file() && !force {
        return Err(Failure::Failed(format!(
            "{} is there already, and is not replaced without --force",
            screen::named(output)
        )));
    }
    Ok(Destination::Path { path: output.clone(), force })
}

async fn wait(
    args: &RecvArgs,
    destination: Destination,
    key: Option<Key>,
    stop: Stop,
) -> Result<(), Failure> {
    let socket = listen(args.bind, args.port, StreamConfig::default()).await?;
    screen::mention(&format!("waiting for a file at {}{}\n", place(&socket), key::under(key.as_ref())));
    let (over, ended) = mpsc::unbounded_channel();
    let state = Mutex::new((Gauge::new(), Instant::now()));
    let (is_json, asked) = (args.json, key.clone());
    let tell = move |_: u64, peer: SocketAddr, event: Event| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::FileBegins { name, .. } => {
                *state = (Gauge::new(), Instant::now());
                screen::mention(&format!("{peer} sends {name}\n"));
            }
            Event::FileMoves(progress) => state.0.update(&progress),
            // The sender that came again tells the end.
            Event::FileEnds(Err(TransferError::Superseded)) => drop(state.0.end()),
            Event::FileEnds(outcome) => {
                state.0.end();
                let _ = over.send(conclude(&outcome, state.1.elapsed(), key.as_ref(), is_json, "received"));
            }
            Event::Refused(why) => screen::mention(&format!("{peer} was not served: {why}\n")),
            Event::TestBegins(_) | Event::TestRuns(_) | Event::TestEnds(_) => {}
        }
    };
    let server = Server::new(allowed(args, destination), asked, Box::new(tell));
    answer_all(&socket, server, ended, true, stop).await
}

fn allowed(args: &RecvArgs, destination: Destination) -> Allowed {
    Allowed {
        name: "`cede recv`".to_owned(),
        takes: Some(destination),
        takes_one: true,
        most_bytes: args.max_size,
        ..Allowed::default()
    }
}

async fn fetch(
    args: &RecvArgs,
    target: cede_carry::Target,
    destination: Destination,
    key: Option<Key>,
    mut stop: Stop,
) -> Result<(), Failure> {
    let name = args.name.as_deref().map(safe_name).unwrap_or_default();
    let config = StreamConfig::default();
    let purpose = Purpose::Get { name };
    let key = key.as_ref();
    let opened = open(&target, &config, key, purpose, "cede serve FILE", &mut stop).await;
    let (_socket, mut link) = opened.map_err(|failure| tell_failure(failure, args.json))?;
    let mut gauge = Gauge::new();
    let mut watch = |progress: &file::Progress| gauge.update(progress);
    let mut attendant = Attendant { stop, watch: &mut watch };
    let outcome = file::receive(&mut link, &destination, args.max_size, &mut attendant).await;
    part(link, &outcome).await;
    conclude(&outcome, gauge.end(), key, args.json, "received")
}
