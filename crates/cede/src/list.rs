//! `cede list`: what there is, by name.

use crate::cli::{Catalogue, ListArgs};
use crate::failure::Failure;
use crate::screen::{self, Screen};
use cede_cc::registry;
use cede_lab::check;
use cede_lab::scenario::{BUILT_IN, BuiltIn, METRICS, QueueKind, Words};
use cede_plot::{Table, terminal};
use serde_json::{Value, json};

/// A thing with a name.
struct Item {
    kind: &'static str,
    name: String,
    summary: String,
}

/// Prints names with a sentence on each.
pub fn list(args: &ListArgs) -> Result<(), Failure> {
    let catalogues = match args.what {
        Some(what) => vec![what],
        None => vec![
            Catalogue::Controllers,
            Catalogue::Queues,
            Catalogue::Scenarios,
            Catalogue::Checks,
            Catalogue::Metrics,
            Catalogue::Figures,
        ],
    };
    let text = if args.json { as_json(&catalogues) } else { as_tables(&catalogues) };
    screen::print(&text)
}

fn as_json(catalogues: &[Catalogue]) -> String {
    let items = catalogues.iter().flat_map(|&catalogue| items(catalogue));
    let values: Vec<Value> =
        items.map(|item| json!({ "kind": item.kind, "name": item.name, "summary": item.summary })).collect();
    format!("{:#}\n", Value::from(values))
}

fn as_tables(catalogues: &[Catalogue]) -> String {
    let screen = Screen::new(false);
    let mut out = String::new();
    for &catalogue in catalogues {
        let (heading, how) = heading(catalogue);
        let rows = items(catalogue).into_iter().map(|item| [item.name.into(), item.summary.into()]);
        let table = rows.fold(Table::new([heading, "what it is"]), Table::row);
        out += &terminal::table(&table, screen.columns, screen.colour);
        out += &(screen.wrap("", how) + "\n");
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

const fn heading(catalogue: Catalogue) -> (&'static str, &'static str) {
    match catalogue {
        Catalogue::Controllers => ("controller", "More on one: cede explain NAME"),
        Catalogue::Queues => {
            ("queue discipline", "More on one: cede explain NAME. Take one: -s link.queue=NAME")
        }
        Catalogue::Scenarios => ("scenario", "Run one: cede run NAME. Read it: cede explain NAME"),
        Catalogue::Checks => {
            ("check", "More on one: cede explain NAME. Take one: cede check CONTROLLER --only NAME")
        }
        Catalogue::Metrics => ("metric", "More on one: cede explain NAME"),
        Catalogue::Figures => ("figure", "Draw them: cede repro PAPER --figure N"),
    }
}

fn items(catalogue: Catalogue) -> Vec<Item> {
    match catalogue {
        Catalogue::Controllers => registry::all().iter().map(controller).collect(),
        Catalogue::Queues => {
            QueueKind::WORDS.iter().map(|&(name, _, summary)| item("queue", name, summary)).collect()
        }
        Catalogue::Scenarios => {
            let built_in = |scenario: &BuiltIn| item("scenario", scenario.name, scenario.description());
            BUILT_IN.iter().map(built_in).collect()
        }
        Catalogue::Checks => check::cases().map(|case| item("check", case.name, case.world)).collect(),
        Catalogue::Metrics => {
            METRICS.iter().map(|metric| item("metric", metric.pattern(), metric.summary)).collect()
        }
        Catalogue::Figures => {
            crate::repro::figures().into_iter().map(|(name, summary)| item("figure", name, summary)).collect()
        }
    }
}

fn item(kind: &'static str, name: impl Into<String>, summary: impl Into<String>) -> Item {
    Item { kind, name: name.into(), summary: summary.into() }
}

fn controller(entry: &registry::Entry) -> Item {
    let note = match (entry.responsive, entry.experimental) {
        (false, _) => " (does not respond to congestion: for tests)",
        (true, true) => " (experimental)",
        (true, false) => "",
    };
    let summary = format!("{}{note}", entry.summary);
    Item { kind: "controller", name: entry.name.to_string(), summary }
}
