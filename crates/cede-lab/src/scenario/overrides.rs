//! `key=value` from the command line, laid over the document before it is given types.
//!
//! A key is a path with dots: `link.rate`, `flow.0.controller.target` (a list's element by its place, from 0),
//! `flow.ledbat.start` (by its name), `flow.*.stop` (every element). A value is TOML, or else a text without its
//! quotes: `5 Mbit/s`.

use super::document::{Node, Table, Value, shortened};
use super::problem::{Origin, Problem, Sources, word_help};

/// Keys whose short form is a word, and the key of that word in the long form.
const SHORT_FORMS: &[(&str, &str)] =
    &[("controller", "name"), ("tcp_controller", "name"), ("traffic", "kind"), ("queue", "kind")];

/// Overrides of a scenario's options, each `key=value`; later ones win.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Overrides(Vec<String>);

impl Overrides {
    /// No overrides.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Overrides as they stand on the command line. They are checked when they are applied.
    pub fn new<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self(texts.into_iter().map(Into::into).collect())
    }

    /// The overrides as they were given.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        &self.0
    }
}

/// One step of a path.
struct Step<'a> {
    name: &'a str,
    origin: Origin,
}

/// A document with overrides laid over it. Those that cannot be are problems; the others count.
///
/// # Errors
/// What is wrong with the text as TOML.
pub(crate) fn overridden<'a>(
    sources: &mut Sources<'a>,
    (file_name, text): (&'a str, &'a str),
    overrides: &'a Overrides,
) -> Result<(Node, Vec<Problem>), Vec<Problem>> {
    let file = sources.add(file_name, text);
    let indices: Vec<usize> = overrides.texts().iter().map(|text| sources.add("-s", text)).collect();
    let mut root = Node::parse(sources, file, text)?;
    let mut problems = Vec::new();
    for (text, index) in overrides.texts().iter().zip(indices) {
        problems.extend(apply(&mut root, sources, index, text).err());
    }
    Ok((root, problems))
}

/// A place in the document that an override goes to, or why there is none.
type Applied = Result<(), (Origin, String, Vec<String>)>;

/// Lays the override with this index in `sources` over the document.
fn apply(root: &mut Node, sources: &Sources<'_>, source: usize, text: &str) -> Result<(), Problem> {
    let whole = Origin { source, start: 0, end: text.len() };
    let refuse = |(at, message, help)| sources.problem(at, message, help);
    let Some((path, value_text)) = text.split_once('=') else {
        let help = vec!["allowed: KEY=VALUE, for instance `link.rate=5 Mbit/s`".to_string()];
        return Err(refuse((whole, format!("the override \"{}\" has no `=`", shortened(text)), help)));
    };
    let value = value_of(value_text, source, path.len() + 1);
    place(root, "", &steps_of(path, source), &value).map_err(refuse)
}

fn steps_of(path: &str, source: usize) -> Vec<Step<'_>> {
    let mut start = 0;
    let step = |piece| {
        let origin = Origin { source, start, end: start + str::len(piece) };
        start = origin.end + 1;
        Step { name: str::trim(piece), origin }
    };
    path.split('.').map(step).collect()
}

/// A value as TOML where it is TOML, and as a text otherwise.
fn value_of(text: &str, source: usize, start: usize) -> Node {
    let trimmed = text.trim();
    let start = start + (text.len() - text.trim_start().len());
    let origin = Origin { source, start, end: start + trimmed.len() };
    // Nothing in a scenario is a date, so what looks like one is a text.
    match Node::parse_value(trimmed, source, start) {
        Some(node) if !matches!(node.value, Value::Strange(_)) => node,
        _ => Node { origin, value: Value::Text(trimmed.to_string()) },
    }
}

/// Puts the value where the steps lead from the node, which stands under `key`.
fn place(node: &mut Node, key: &str, steps: &[Step<'_>], value: &Node) -> Applied {
    let Some((step, rest)) = steps.split_first() else {
        *node = value.clone();
        return Ok(());
    };
    match &mut node.value {
        Value::Table(table) => {
            let next = table.get_or_insert(step.name, step.origin, || Node {
                origin: step.origin,
                value: Value::Table(Table::default()),
            });
            lengthen(next, step.name, !rest.is_empty());
            place(next, step.name, rest, value)
        }
        Value::List(items) => place_in_list(items, key, step, rest, value),
        _ => Err((
            step.origin,
            format!("there is no `{}` in {}", shortened(step.name), node.describe()),
            vec!["allowed: a path to a table's key".to_string()],
        )),
    }
}

/// Turns the short form of a controller or of traffic into the long one, whose keys can then be set.
fn lengthen(node: &mut Node, key: &str, goes_on: bool) {
    let long_key = SHORT_FORMS.iter().find(|(short, _)| *short == key).map(|&(_, long)| long);
    if let (true, Some(long_key), Value::Text(_)) = (goes_on, long_key, &node.value) {
        let mut table = Table::default();
        table.get_or_insert(long_key, node.origin, || node.clone());
        node.value = Value::Table(table);
    }
}

fn place_in_list(items: &mut [Node], key: &str, step: &Step<'_>, rest: &[Step<'_>], value: &Node) -> Applied {
    let names: Vec<String> = items.iter().map(|item| name_of(item, key)).collect();
    let chosen: Vec<usize> = match (step.name, step.name.parse::<usize>()) {
        ("*", _) => (0..items.len()).collect(),
        (_, Ok(index)) if index < items.len() => vec![index],
        (name, _) => names.iter().position(|n| n == name).into_iter().collect(),
    };
    if chosen.is_empty() {
        let names: Vec<&str> = names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let mut help = word_help(step.name, &names);
        help.push(format!("or a place: 0 to {}, or * for all", items.len().saturating_sub(1)));
        return Err((step.origin, format!("there is no element `{}`", shortened(step.name)), help));
    }
    chosen.into_iter().try_for_each(|index| place(&mut items[index], key, rest, value))
}

/// The name of an element of the list under `key`: what it says, or what it is called where it says nothing.
fn name_of(item: &Node, key: &str) -> String {
    let Some(table) = item.table() else { return String::new() };
    match (table.text("name"), key) {
        (Some(name), _) => name.to_string(),
        (None, "flow") => super::read_controller::name_in(table).to_string(),
        (None, "link") => {
            format!("{}-{}", table.text("from").unwrap_or_default(), table.text("to").unwrap_or_default())
        }
        _ => String::new(),
    }
}
