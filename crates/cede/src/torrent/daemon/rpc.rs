//! Transmission's RPC protocol, version 16 (Transmission 3.00): which method does what.
//!
//! Source: `extras/rpc-spec.txt` of Transmission 3.00. **What it leaves out**: a queue of those that are given, port tests, fetching of block lists, moving and
//! renaming of content, priorities of torrents and limits of their peers. What is asked for and is not there is refused in words, and changes nothing;
//! arguments that are not known are refused likewise. How it was validated: `transmission-remote` (`tests/torrent_daemon.rs`).

use super::chosen::chosen;
use super::entry::Entry;
use super::queue::{Move, rank};
use super::roster::Daemon;
use super::terms::Arguments;
use super::{change, fields, session};
use crate::failure::Failure;
use serde_json::{Map, Value, json};
use std::rc::Rc;

/// Answers a request: whatever octets they are.
pub async fn answer(daemon: &Rc<Daemon>, request: &[u8]) -> Value {
    let request: Value = match serde_json::from_slice(request) {
        Ok(request) => request,
        Err(error) => return json!({ "result": format!("no JSON: {error}"), "arguments": {} }),
    };
    let none = Map::new();
    let arguments = request["arguments"].as_object().unwrap_or(&none);
    let outcome = match request["method"].as_str() {
        Some(method) => carry_out(daemon, method, arguments).await,
        None => Err(Failure::Usage("no method".to_owned())),
    };
    let (result, arguments) = match outcome {
        Ok(arguments) => ("success".to_owned(), arguments),
        Err(failure) => (failure.text().unwrap_or("failed").to_owned(), Map::new()),
    };
    let mut answer = json!({ "result": result, "arguments": arguments });
    if let Some(tag) = request.get("tag") {
        answer["tag"] = tag.clone();
    }
    answer
}

async fn carry_out(daemon: &Rc<Daemon>, method: &str, arguments: &Arguments) -> Result<Arguments, Failure> {
    match method {
        "torrent-get" => fields::torrents(daemon, arguments),
        "torrent-add" => change::add(daemon, arguments).await,
        "torrent-set" => change::set(daemon, arguments),
        "torrent-remove" => change::remove(daemon, arguments),
        "session-get" => Ok(fields::chosen(session::told(daemon), arguments)),
        "session-set" => session::set(daemon, arguments),
        "session-stats" => Ok(fields::statistics(daemon)),
        "free-space" => change::free_space(arguments),
        "session-close" => {
            daemon.close();
            Ok(Map::new())
        }
        _ => match (for_each(method), Move::named(method)) {
            (_, Some(to)) => daemon.move_in_queue(&chosen(daemon, arguments)?, to),
            (Some(act), None) => {
                let mut chosen = chosen(daemon, arguments)?;
                chosen.sort_by_key(|entry| rank(entry));
                if method == "torrent-verify" && !chosen.iter().all(|entry| entry.is_under_way()) {
                    let text = "what is there of a stopped torrent is checked when it is started";
                    return Err(Failure::Usage(text.to_owned()));
                }
                // All of them, whatever becomes of one.
                let outcomes: Vec<_> = chosen.iter().map(|entry| act(daemon, entry)).collect();
                outcomes.into_iter().collect::<Result<(), Failure>>().map(|()| Map::new())
            }
            (None, None) => Err(Failure::Usage(format!("no such method here: {method}"))),
        },
    }
}

/// What is done to a torrent.
type Act = fn(&Rc<Daemon>, &Rc<Entry>) -> Result<(), Failure>;

/// What is done to each of the torrents that are named.
fn for_each(method: &str) -> Option<Act> {
    match method {
        "torrent-start" => Some(|daemon, entry| daemon.set_paused(entry, false)),
        "torrent-start-now" => Some(|daemon, entry| daemon.start_now(entry)),
        "torrent-stop" => Some(|daemon, entry| daemon.set_paused(entry, true)),
        "torrent-verify" => Some(|daemon, entry| {
            daemon.verify(entry);
            Ok(())
        }),
        "torrent-reannounce" => Some(|_, entry| {
            entry.sight.borrow().iter().for_each(|sight| sight.session.announce_again());
            Ok(())
        }),
        _ => None,
    }
}
