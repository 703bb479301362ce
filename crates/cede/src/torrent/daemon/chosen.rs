//! Which torrents an order is about.

use super::entry::Entry;
use super::roster::Daemon;
use super::terms::Arguments;
use crate::failure::Failure;
use serde_json::Value;
use std::collections::BTreeSet;
use std::rc::Rc;

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
            Ok(daemon.entries().into_iter().filter(|entry| entry.is_active()).collect())
        }
        Some(Value::Array(ids)) => {
            let found: Result<Vec<_>, Failure> = ids.iter().map(one).collect();
            // One that is named twice is removed, and counted, once.
            let mut seen = BTreeSet::new();
            Ok(found?.into_iter().flatten().filter(|entry| seen.insert(entry.id)).collect())
        }
        Some(id) => Ok(one(id)?.into_iter().collect()),
    }
}
