//! Reading the assertions: `assert`.

use super::document::{Node, Value, shortened};
use super::metric_names::{Assertion, COMPARISONS, METRICS, Metric, MetricDoc};
use super::problem::{Origin, word_help};
use super::reader::{Fields, Reader};

/// The names that assertions may use.
pub(crate) struct Known {
    /// Flows, with and without the numbers of their replicates.
    pub flows: Vec<String>,
    /// Links.
    pub links: Vec<String>,
    /// `queue.LEAF` means something: there is one bottleneck.
    pub has_bottleneck: bool,
}

/// What is wrong with an assertion, and help.
type Refusal = (String, Vec<String>);

/// Reads the list or table of assertions. Without known names, those of flows and links are not checked.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    root: &Fields<'_>,
    known: Option<&Known>,
) -> Option<Vec<Assertion>> {
    let Some(node) = root.node("assert") else { return Some(Vec::new()) };
    let mut texts = Vec::new();
    let mut whole = match &node.value {
        Value::List(items) => collect(reader, "", items, &mut texts),
        Value::Table(_) => flatten(reader, node, "", &mut texts),
        _ => {
            refuse_form(reader, node);
            false
        }
    };
    let mut assertions = Vec::new();
    for (text, at) in texts {
        match parse(&text, known) {
            Ok(assertion) => assertions.push(assertion),
            Err((message, help)) => {
                whole = false;
                reader.report(at, message, help);
            }
        }
    }
    whole.then_some(assertions)
}

fn refuse_form(reader: &mut Reader<'_>, node: &Node) {
    let help =
        vec!["allowed: [\"queue.p95_ms < 70\"], or a table such as queue.p95_ms = \"< 70\"".to_string()];
    reader.report(node.origin, format!("an assertion cannot be {}", node.describe()), help);
}

/// Takes the texts of a list, each behind `prefix`.
fn collect(reader: &mut Reader<'_>, prefix: &str, items: &[Node], texts: &mut Vec<(String, Origin)>) -> bool {
    let mut whole = true;
    for item in items {
        match &item.value {
            Value::Text(text) => texts.push((format!("{prefix} {text}"), item.origin)),
            _ => {
                whole = false;
                refuse_form(reader, item);
            }
        }
    }
    whole
}

/// Takes the entries of a table, whose keys make up the metric's name: dotted keys are tables in tables.
fn flatten(reader: &mut Reader<'_>, node: &Node, prefix: &str, texts: &mut Vec<(String, Origin)>) -> bool {
    let mut whole = true;
    for entry in node.table().iter().flat_map(|table| &table.entries) {
        let name = if prefix.is_empty() { entry.key.clone() } else { format!("{prefix}.{}", entry.key) };
        match &entry.node.value {
            Value::Table(_) => whole &= flatten(reader, &entry.node, &name, texts),
            Value::List(items) => whole &= collect(reader, &name, items, texts),
            Value::Text(text) => texts.push((format!("{name} {text}"), entry.node.origin)),
            _ => {
                whole = false;
                refuse_form(reader, &entry.node);
            }
        }
    }
    whole
}

fn parse(text: &str, known: Option<&Known>) -> Result<Assertion, Refusal> {
    let text = text.trim();
    let found = COMPARISONS.iter().filter_map(|(sign, c)| text.find(sign).map(|at| (at, *sign, *c)));
    // The first operator; of two at the same place the longer, which stands first.
    let Some((at, sign, comparison)) = found.min_by_key(|&(at, sign, _)| (at, 2 - sign.len())) else {
        let help = vec!["allowed: METRIC < NUMBER, with <, <=, > or >=".to_string()];
        return Err((format!("the assertion \"{text}\" compares nothing"), help));
    };
    let bound_text = text[at + sign.len()..].trim();
    let metric = parse_metric(text[..at].trim(), known)?;
    match bound_text.parse::<f64>() {
        Ok(bound) if bound.is_finite() => Ok(Assertion { metric, comparison, bound }),
        _ => Err(no_number(bound_text, &metric)),
    }
}

fn no_number(text: &str, metric: &Metric) -> Refusal {
    let unit = metric.doc.unit;
    let help = match unit {
        "1" => format!("allowed: a number; `{metric}` is a ratio, so 98 % is 0.98"),
        _ => format!("allowed: a number; the name says that it counts {unit}"),
    };
    (format!("\"{text}\" is no number to compare `{metric}` with"), vec![help])
}

fn parse_metric(name: &str, known: Option<&Known>) -> Result<Metric, Refusal> {
    let parts: Vec<&str> = name.split('.').collect();
    let (group, subject, leaf) = match parts[..] {
        [group, leaf] => (group, None, leaf),
        [group, subject, leaf] => (group, Some(subject), leaf),
        _ => return Err(unknown_metric(name)),
    };
    let doc = METRICS
        .iter()
        .find(|doc| doc.group == group && doc.leaf == leaf)
        .ok_or_else(|| unknown_metric(name))?;
    if let Some(known) = known {
        check_subject(doc, subject, known)?;
    }
    Ok(Metric { doc, subject: subject.map(str::to_string) })
}

/// Whether the metric needs, allows or refuses the name of a flow or link, and whether there is one like that.
fn check_subject(doc: &MetricDoc, subject: Option<&str>, known: &Known) -> Result<(), Refusal> {
    let names = if doc.group == "flow" { &known.flows } else { &known.links };
    let names: Vec<&str> = names.iter().map(String::as_str).take(40).collect();
    match (doc.group, subject) {
        ("flow", None) => {
            Err((format!("`{}.{}` lacks the flow's name", doc.group, doc.leaf), word_help("", &names)))
        }
        ("queue" | "link", None) if !known.has_bottleneck => {
            let message = format!(
                "`{}.{}` lacks the link's name: only a dumbbell has a bottleneck",
                doc.group, doc.leaf
            );
            Err((message, word_help("", &names)))
        }
        ("flow", Some(flow)) if !known.flows.iter().any(|name| name == flow) => {
            Err((format!("unknown flow `{flow}`"), word_help(flow, &names)))
        }
        ("queue" | "link", Some(link)) if !known.links.iter().any(|name| name == link) => {
            Err((format!("unknown link `{link}`"), word_help(link, &names)))
        }
        ("fairness" | "share", Some(_)) => Err(unknown_metric(&format!("{}.{}", doc.group, doc.leaf))),
        _ => Ok(()),
    }
}

/// Refuses a name, with the metrics of its group where the group is known.
fn unknown_metric(name: &str) -> Refusal {
    let group = name.split('.').next().unwrap_or("");
    let leaf = name.rsplit('.').next().unwrap_or("");
    let in_group: Vec<&MetricDoc> = METRICS.iter().filter(|doc| doc.group == group).collect();
    let help = if in_group.is_empty() {
        word_help(group, &["queue", "link", "flow", "fairness", "share"])
    } else {
        word_help(leaf, &in_group.iter().map(|doc| doc.leaf).collect::<Vec<_>>())
    };
    (format!("unknown metric `{}`", shortened(name)), help)
}
