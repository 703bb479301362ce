//! `cede serve`: answers tests, takes files, gives files.

use super::args::ServeArgs;
use super::document;
use super::table::{HEAD, Rows};
use super::{key, listen, numbers, place, stream_config};
use crate::failure::Failure;
use crate::interrupt;
use crate::screen::{self, Screen};
use cede_carry::bench::{Limit, Plan, Sample};
use cede_carry::file::{Destination, Moved, TransferError, safe_name};
use cede_carry::{Allowed, Event, Server, Share, Stop};
use cede_real::UtpSocket;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Waits and answers.
pub fn serve(args: &ServeArgs) -> Result<(), Failure> {
    let (_, config) = stream_config(&args.controller)?;
    let allowed = allowed(args)?;
    let key = key::load(&args.key)?;
    let about = about(&allowed) + &key::under(key.as_ref());
    super::run(async |stop| {
        let socket = listen(args.bind, args.port, config).await?;
        let screen = Screen::new(args.json);
        screen.say(&format!("waiting at {}: {about}\n", place(&socket)))?;
        if args.json {
            let data = json!({ "address": socket.local_addr().to_string(), "protected": key.is_some() });
            screen::print_json_line(&json!({ "event": "waiting", "data": data }))?;
        }
        let (over, ended) = mpsc::unbounded_channel();
        let (json, is_protected) = (args.json, key.is_some());
        let teller = Teller { screen, json, is_protected, running: Mutex::default(), over };
        let tell = Box::new(move |number, peer, event| teller.tell(number, peer, &event));
        answer_all(&socket, Server::new(allowed, key, tell), ended, args.once, stop).await
    })
}

fn allowed(args: &ServeArgs) -> Result<Allowed, Failure> {
    if let Some(folder) = &args.dir
        && !folder.is_dir()
    {
        let folder = screen::named(folder);
        return Err(Failure::Usage(format!(
            "--dir {folder}: there is no such folder; make it: mkdir -p {folder}"
        )));
    }
    let takes = args.dir.clone().map(|folder| Destination::Folder { folder, force: args.force });
    let shares = args.files.iter().map(|path| share(path)).collect::<Result<Vec<_>, _>>()?;
    refuse_namesakes(&shares)?;
    let name = "`cede serve`".to_owned();
    Ok(Allowed { name, tests: true, takes, takes_one: false, most_bytes: args.max_size, shares })
}

fn share(path: &Path) -> Result<Share, Failure> {
    // What cannot be read is better said now than to whoever asks for it.
    readable(path).map_err(|error| {
        let text = format!("cannot read {}: {error}", screen::named(path));
        match error.kind() {
            ErrorKind::PermissionDenied => Failure::NotPermitted(text),
            _ => Failure::Usage(text),
        }
    })?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match path.is_dir() {
        true => Err(Failure::Usage(format!("{} is a folder: name its files", screen::named(path)))),
        false => Ok(Share { name: safe_name(&name), path: path.to_path_buf() }),
    }
}

/// Opens what can be opened again. Who writes to a pipe would take this for its reader, and end with it.
fn readable(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_file() {
        interrupt::while_reading(|| File::open(path))?;
    }
    Ok(())
}

/// Each file is asked for by its name alone.
fn refuse_namesakes(shares: &[Share]) -> Result<(), Failure> {
    for (index, share) in shares.iter().enumerate() {
        if let Some(other) = shares[..index].iter().find(|other| other.name == share.name) {
            let [one, two] = [other, share].map(|share| screen::named(&share.path));
            let name = &share.name;
            return Err(Failure::Usage(format!("{one} and {two} would both be asked for as {name}")));
        }
    }
    Ok(())
}

fn about(allowed: &Allowed) -> String {
    let mut parts = vec!["tests".to_owned()];
    if let Some(Destination::Folder { folder, .. }) = &allowed.takes {
        parts.push(format!("files into {}", screen::named(folder)));
    }
    if !allowed.shares.is_empty() {
        let names: Vec<&str> = allowed.shares.iter().map(|share| share.name.as_str()).collect();
        parts.push(format!("gives {}", names.join(", ")));
    }
    parts.join(", ")
}

/// Answers whoever comes until the end is asked for, or until the first test or file is over.
pub async fn answer_all(
    socket: &UtpSocket,
    server: Server,
    mut ended: mpsc::UnboundedReceiver<Result<(), Failure>>,
    once: bool,
    mut stop: Stop,
) -> Result<(), Failure> {
    let server = Arc::new(server);
    let mut conversations = JoinSet::new();
    let outcome = loop {
        tokio::select! {
            accepted = socket.accept() => {
                let stream = accepted.map_err(|error| Failure::Failed(format!("the socket is gone: {error}")))?;
                let (server, stop) = (Arc::clone(&server), stop.clone());
                conversations.spawn(async move { server.answer(stream, stop).await });
            }
            Some(_) = conversations.join_next(), if !conversations.is_empty() => {}
            Some(outcome) = ended.recv() => if once {
                // What was cut off because somebody asked for the end may be told before that is seen here.
                break outcome.map_err(|failure| match failure {
                    Failure::Interrupted(_) => failure,
                    _ if stop.is_asked() => no_longer(),
                    _ => failure,
                });
            },
            () = stop.asked() => break Err(no_longer()),
        }
    };
    server.close_door();
    // Last words are still to arrive; who does not listen to them is not waited for.
    let patience = std::time::Duration::from_secs(if once { 10 } else { 2 });
    let _ =
        tokio::time::timeout(patience, async { while conversations.join_next().await.is_some() {} }).await;
    outcome
}

fn no_longer() -> Failure {
    Failure::Interrupted("no longer waiting".to_owned())
}

/// A test that runs, or a file.
#[derive(Default)]
struct Running {
    plan: Option<Plan>,
    before: Vec<Sample>,
}

/// Says what happens.
struct Teller {
    screen: Screen,
    json: bool,
    is_protected: bool,
    running: Mutex<HashMap<u64, Running>>,
    over: mpsc::UnboundedSender<Result<(), Failure>>,
}

impl Teller {
    fn tell(&self, number: u64, peer: SocketAddr, event: &Event) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = running.entry(number).or_default();
        let Some((words, data)) = said(entry, event) else { return };
        let is_over = matches!(event, Event::Refused(_) | Event::TestEnds(_) | Event::FileEnds(_));
        if is_over {
            running.remove(&number);
        }
        self.say(number, peer, &words, data);
        let outcome = match event {
            Event::TestEnds(Ok(_)) | Event::FileEnds(Ok(_)) => Ok(()),
            Event::TestEnds(Err(error)) => Err(Failure::Failed(error.to_string())),
            Event::FileEnds(Err(error)) => Err(super::transfer::failure(error)),
            _ => return,
        };
        let _ = self.over.send(outcome);
    }

    fn say(&self, number: u64, peer: SocketAddr, words: &str, mut data: Value) {
        if self.json {
            data["conversation"] = number.into();
            data["peer"] = peer.to_string().into();
            // Who was refused has shown no key.
            data["protected"] = (self.is_protected && data["event"] != "refused").into();
            screen::report_json_line(&data);
        } else {
            let text: String = words.lines().map(|line| format!("#{number} {peer}  {line}\n")).collect();
            let _ = self.screen.say(&text);
        }
    }
}

/// What is said of an event: in words, and as JSON.
fn said(entry: &mut Running, event: &Event) -> Option<(String, Value)> {
    Some(match event {
        Event::Refused(why) => (format!("not served: {why}\n"), json!({ "event": "refused", "error": why })),
        Event::TestBegins(plan) => begins(entry, plan),
        Event::TestRuns(samples) => runs(entry, samples),
        Event::TestEnds(Ok(samples)) => {
            (sentence(entry, samples), json!({ "event": "end", "sum": totals(entry, samples) }))
        }
        Event::TestEnds(Err(error)) => {
            (format!("the test broke: {error}\n"), json!({ "event": "error", "error": error.to_string() }))
        }
        Event::FileBegins { name, bytes, is_given } => file_begins(name, *bytes, *is_given),
        Event::FileMoves(_) => return None,
        Event::FileEnds(Ok(moved)) => file_ends(moved),
        Event::FileEnds(Err(error)) => {
            (file_breaks(error), json!({ "event": "file_error", "error": error.to_string() }))
        }
    })
}

fn begins(entry: &mut Running, plan: &Plan) -> (String, Value) {
    entry.plan = Some(plan.clone());
    let way = if plan.reverse { "sends from here" } else { "sends to here" };
    let limit = match plan.limit {
        Limit::Time(span) => format!("{:.1} s", span.as_secs_f64()),
        Limit::Bytes(bytes) => format!("{} each", numbers::amount(bytes)),
    };
    let streams = plan.streams;
    let text = format!("a test {way}: {streams} stream(s), {limit}\n{HEAD}\n");
    (text, json!({ "event": "start", "streams": streams, "reverse": plan.reverse }))
}

fn is_sender(entry: &Running) -> bool {
    entry.plan.as_ref().is_some_and(|plan| plan.reverse)
}

fn rows(entry: &Running, before: &[Sample], samples: &[Sample]) -> Rows {
    Rows::between([before, samples], [&[], &[]], is_sender(entry))
}

fn runs(entry: &mut Running, samples: &[Sample]) -> (String, Value) {
    let rows = rows(entry, &entry.before, samples);
    entry.before = samples.to_vec();
    (rows.lines(), json!({ "event": "interval", "data": document::interval(&rows, is_sender(entry)) }))
}

fn totals(entry: &Running, samples: &[Sample]) -> Value {
    document::interval(&rows(entry, &[], samples), is_sender(entry))["sum"].clone()
}

fn sentence(entry: &Running, samples: &[Sample]) -> String {
    let sum = rows(entry, &[], samples).sum;
    let what = if is_sender(entry) { "sent" } else { "received" };
    format!("the test is over: {what} {}\n", numbers::moved(sum.bytes, sum.span()))
}

fn file_begins(name: &str, bytes: Option<u64>, is_given: bool) -> (String, Value) {
    let way = if is_given { "gives" } else { "takes" };
    let size = bytes.map_or("of unknown size".to_owned(), numbers::amount);
    let event = json!({ "event": "file_begins", "name": name, "bytes": bytes, "given": is_given });
    (format!("{way} {name}, {size}\n"), event)
}

fn file_ends(moved: &Moved) -> (String, Value) {
    let mut data = super::transfer::document(moved, None, false);
    data["event"] = "file_ends".into();
    (format!("{} is complete: {}, digest as sent\n", moved.name, numbers::amount(moved.bytes)), data)
}

fn file_breaks(error: &TransferError) -> String {
    format!("the file is not complete: {error}\n")
}
