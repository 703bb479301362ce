//! Reading a flow's controller: its name and parameters, checked against the registry of `cede-cc`.

use super::document::{Node, Table, Value};
use super::flow::{ControllerSpec, ProtocolKind};
use super::problem::{Origin, word_help};
use super::reader::Reader;
use super::words::Words;
use cede_cc::registry::{self, Entry};
use cede_cc::{ParamDoc, ParamKind, ParamValue, Params};

/// What a flow's controller is where it does not say.
fn default_name(protocol: ProtocolKind) -> &'static str {
    match protocol {
        ProtocolKind::Utp => "ledbat",
        ProtocolKind::Tcp => "cubic",
    }
}

/// The name of the controller of the flow in this table, as far as it can be told.
pub(crate) fn name_in(flow: &Table) -> &str {
    let long =
        flow.get("controller").and_then(|entry| entry.node.table()).and_then(|table| table.text("name"));
    let protocol = flow.text("protocol").and_then(ProtocolKind::from_word).unwrap_or(ProtocolKind::Utp);
    flow.text("controller").or(long).unwrap_or(default_name(protocol))
}

/// Reads `controller = "NAME"` or `controller = { name = "NAME", ... }`.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    node: Option<&Node>,
    flow: Origin,
    protocol: ProtocolKind,
) -> Option<ControllerSpec> {
    read_or(reader, node, flow, default_name(protocol))
}

/// The same, where without a name it is another controller.
pub(crate) fn read_or(
    reader: &mut Reader<'_>,
    node: Option<&Node>,
    flow: Origin,
    default: &str,
) -> Option<ControllerSpec> {
    let origin = node.map_or(flow, |node| node.origin);
    let (name, name_origin) = match node.map(|node| &node.value) {
        None => (default, origin),
        Some(Value::Text(name)) => (name.as_str(), origin),
        Some(Value::Table(table)) => match table.get("name").map(|entry| &entry.node) {
            None => (default, origin),
            Some(Node { origin, value: Value::Text(name) }) => (name.as_str(), *origin),
            Some(other) => return refuse_name(reader, other),
        },
        Some(_) => return refuse_name(reader, node?),
    };
    let Some(entry) = registry::find(name) else {
        let names: Vec<&str> = registry::all().iter().map(|entry| entry.name).collect();
        reader.report_unknown(name_origin, "controller", name, &names);
        return None;
    };
    let params = read_params(reader, node, entry)?;
    try_build(reader, origin, entry, &params)?;
    Some(ControllerSpec { name: name.to_string(), params })
}

fn refuse_name(reader: &mut Reader<'_>, node: &Node) -> Option<ControllerSpec> {
    let help = vec!["allowed: a controller's name, or { name = \"...\", PARAMETER = ... }".to_string()];
    reader.report(node.origin, format!("the controller is {}", node.describe()), help);
    None
}

fn read_params(reader: &mut Reader<'_>, node: Option<&Node>, entry: &Entry) -> Option<Params> {
    let mut params = Some(Params::new());
    let is_named = node.and_then(Node::table).is_some_and(|table| table.get("name").is_some());
    for given in node.and_then(Node::table).iter().flat_map(|table| &table.entries) {
        if given.key == "name" {
            continue;
        }
        let Some(doc) = entry.params.iter().find(|doc| doc.name == given.key) else {
            let (message, help) = unknown_key(&given.key, entry, is_named);
            reader.report(given.key_origin, message, help);
            params = None;
            continue;
        };
        match read_value(doc, &given.node) {
            Ok(value) => {
                if let Some(params) = &mut params {
                    params.set(doc.name, value);
                }
            }
            Err(complaint) => {
                let message = format!("the parameter `{}` of `{}` {complaint}", doc.name, entry.name);
                reader.report(given.node.origin, message, vec![format!("allowed: {}", doc.kind)]);
                params = None;
            }
        }
    }
    params
}

/// What to say of a key that is no parameter. Where no controller is named, the name itself may be what was meant.
fn unknown_key(key: &str, entry: &Entry, is_named: bool) -> (String, Vec<String>) {
    let params = entry.params.iter().map(|doc| doc.name);
    if is_named {
        let message = format!("the controller `{}` has no parameter `{key}`", entry.name);
        return (message, word_help(key, &params.collect::<Vec<_>>()));
    }
    let names: Vec<&str> = ["name"].into_iter().chain(params).collect();
    let mut help = word_help(key, &names);
    help.push(format!("without `name`, the parameters are those of the default here, `{}`", entry.name));
    (format!("unknown key `{key}` in a controller without a `name`"), help)
}

/// One parameter. Numbers stand without quotes, quantities with them and with their unit.
fn read_value(doc: &ParamDoc, node: &Node) -> Result<ParamValue, String> {
    let is_number = matches!(doc.kind, ParamKind::Number { .. } | ParamKind::Count { .. });
    let is_quantity =
        matches!(doc.kind, ParamKind::Duration { .. } | ParamKind::Rate { .. } | ParamKind::Bytes { .. });
    let value = match &node.value {
        Value::Integer(number) if is_number => ParamValue::Number(*number as f64),
        Value::Number(number) if is_number => ParamValue::Number(*number),
        Value::Integer(_) | Value::Number(_) if is_quantity => {
            return Err(format!("lacks its unit: it is {}", node.describe()));
        }
        // Of the words some are numbers: the 32 of `bits = 32` is one.
        Value::Integer(number) if matches!(doc.kind, ParamKind::Word(_)) => {
            ParamValue::Word(number.to_string())
        }
        Value::Switch(switch) => ParamValue::Switch(*switch),
        Value::Text(text) if !is_number => {
            return doc.kind.parse(doc.name, text).map_err(|_| format!("cannot be {}", node.describe()));
        }
        _ => return Err(format!("cannot be {}", node.describe())),
    };
    doc.kind.check(doc.name, &value).map_err(|_| format!("cannot be {}", node.describe()))?;
    Ok(value)
}

/// Builds the controller once and drops it, so that what the registry refuses is refused at the file's line.
fn try_build(reader: &mut Reader<'_>, at: Origin, entry: &Entry, params: &Params) -> Option<()> {
    let path = cede_cc::Path { mss_bytes: 1_400, initial_cwnd_bytes: 14_000, max_cwnd_bytes: 1 << 24 };
    match registry::build(entry.name, params, &path) {
        Ok(_) => Some(()),
        Err(error) => {
            reader.report(at, format!("the controller `{}` refuses: {error}", entry.name), Vec::new());
            None
        }
    }
}
