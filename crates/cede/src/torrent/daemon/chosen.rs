//! Which torrents an order is about.

use super::entry::Entry;
use super::roster::Daemon;
use super::terms::{Arguments, RECENTLY_S};
use crate::failure::Failure;
use serde_json::Value;
use std::rc::Rc;
use std::time::Instant;

/// The torrents that `ids` names: a number, an info-hash, a list of these, or those that were active lately; all where there is none.
pub fn chosen(daemon: &Rc<Daemon>, arguments: &Arguments) -> Result<Vec<Rc<Entry>>, Failure> {
    let one = |id: &Value| match id {
        Value::Number(number) => {
            let id = number.as_u64();
            Ok(daemon.entries().into_iter().find(|entry| Some(u64::from(entry.id)) == id))
        }
        Value::String(hash) => Ok(daemon.find(hash)),
        _ => Err(Failure::Usage("ids: take numbers or info-hashes".to_owned())),
    };
    match arguments.get("ids") {
        None | Some(Value::Null) => Ok(daemon.entries()),
        Some(Value::String(word)) if word == "recently-active" => {
            let is_active = |entry: &Rc<Entry>| entry.active_at.get().is_some_and(is_recent);
            Ok(daemon.entries().into_iter().filter(is_active).collect())
        }
        Some(Value::Array(ids)) => {
            let found: Result<Vec<_>, Failure> = ids.iter().map(one).collect();
            Ok(found?.into_iter().flatten().collect())
        }
        Some(id) => Ok(one(id)?.into_iter().collect()),
    }
}

fn is_recent(at: Instant) -> bool {
    at.elapsed().as_secs() < RECENTLY_S
}
