//! Reading when peers of a swarm come and go.

use super::reader::{Fields, Reader};
use crate::swarm::{Arrival, Departure, Group};
use cede_units::Duration;

/// Times between commas.
pub(super) fn times(text: &str) -> Option<Vec<Duration>> {
    text.split(',').map(|time| time.trim().parse().ok()).collect()
}

pub(super) fn read_arrival(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Arrival> {
    let word: Option<String> = fields.get(reader, "arrival");
    let at = fields.get(reader, "at");
    let within = fields.get(reader, "within");
    let gap = fields.get(reader, "gap");
    let listed: Option<String> = fields.get(reader, "times");
    let word = word?;
    let others: &[&str] = match word.as_str() {
        "poisson" => &["within", "times"],
        "trace" => &["at", "within", "gap"],
        _ => &["gap", "times"],
    };
    fields.refuse(reader, others, &format!("arrival is \"{word}\""));
    match word.as_str() {
        "poisson" => Some(Arrival::Poisson { from: at?, gap: gap? }),
        "trace" => match listed.map(|text| times(&text).ok_or(text))? {
            Ok(times) => Some(Arrival::Trace(times)),
            Err(text) => {
                let help = vec!["allowed: times between commas, as \"0 s, 5 s, 20 s\"".into()];
                let none = "arrival is \"trace\", and there are no `times`";
                let what = if text.is_empty() { none } else { "`times` is no list of times" };
                reader.report(fields.origin("times"), what, help);
                None
            }
        },
        _ => Some(Arrival::Together { at: at?, within: within? }),
    }
}

pub(super) fn read_departure(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Departure> {
    let word: Option<String> = fields.get(reader, "departure");
    let after: Option<Duration> = fields.get(reader, "after");
    let word = word?;
    if word == "stay" {
        fields.refuse(reader, &["after"], "departure is \"stay\"");
    }
    if word == "churn" && after == Some(Duration::ZERO) {
        let help = vec!["allowed: a time above 0".into()];
        reader.report(fields.origin("after"), "`after` is missing: how long peers stay, on the mean", help);
    }
    Some(match word.as_str() {
        "when-done" => Departure::WhenDone(after?),
        "churn" => Departure::Churn(after?),
        _ => Departure::Stay,
    })
}

/// A trace that goes on when everybody has come is a mistake in one of the two.
pub(super) fn check_trace(reader: &mut Reader<'_>, fields: &Fields<'_>, group: &Group) {
    let Arrival::Trace(times) = &group.arrival else { return };
    if times.len() > group.count as usize {
        let help =
            vec!["allowed: as many as `count` says at most; the last serves for whoever is left".into()];
        let text = format!("`times` has {} times for {} peers", times.len(), group.count);
        reader.report(fields.origin("times"), text, help);
    }
}
