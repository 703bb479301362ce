//! `cede explain`: what a controller, a parameter, a metric or an option is, with its formula and its source.

use crate::cli::ExplainArgs;
use crate::failure::Failure;
use crate::screen::{self, Screen};
use cede_cc::{ParamDoc, registry};
use cede_lab::check::{self, Case};
use cede_lab::record;
use cede_lab::scenario::{
    BUILT_IN, BuiltIn, Fallback, Kind, METRICS, MetricDoc, OptionDoc, QueueKind, SWARM_TABLES, TABLES,
    TableDoc, Words, is_swarm, nearest, reference, swarm_reference,
};
use cede_lab::swarm::TABLE_FILES;
use cede_repro::lcn10::FigureNumber;
use serde_json::{Value, json};

/// Something that can be explained.
#[derive(Clone, Copy)]
enum Topic {
    Controller(&'static registry::Entry),
    Parameter(&'static registry::Entry, &'static ParamDoc),
    Metric(&'static MetricDoc),
    /// A queue discipline: its name and what it does.
    Queue(&'static str, &'static str),
    Table(&'static TableDoc),
    Option(&'static TableDoc, &'static OptionDoc),
    Check(&'static Case),
    Scenario(&'static BuiltIn),
    Figure(FigureNumber),
    /// What may be wrong with a figure of the meter: its name, and what it means.
    Flag(&'static str, &'static str),
    /// A column of a table: its name, what it is, and whose table that is.
    Column(&'static str, &'static str, &'static str),
}

/// Explains everything that bears the name.
pub fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    match args.what.as_str() {
        "scenario" if !args.json => return scenario_reference(),
        "swarm" if !args.json => return screen::print(&swarm_reference()),
        _ => {}
    }
    let found: Vec<Topic> = topics().into_iter().filter(|topic| topic.answers_to(&args.what)).collect();
    if found.is_empty() {
        return Err(unknown(&args.what));
    }
    let found: Vec<Topic> = found.iter().filter(|topic| !topic.is_repeated(&found)).copied().collect();
    let text = if args.json {
        format!("{:#}\n", found.iter().map(|topic| topic.to_json()).collect::<Value>())
    } else {
        let screen = Screen::new(false);
        found.iter().map(|topic| topic.to_text(&screen)).collect::<Vec<_>>().join("\n")
    };
    screen::print(&text)
}

/// Prints the reference of the scenario format.
pub fn scenario_reference() -> Result<(), Failure> {
    screen::print(&reference())
}

fn topics() -> Vec<Topic> {
    let controllers = registry::all().iter().flat_map(|entry| {
        let params = entry.params.iter().map(move |param| Topic::Parameter(entry, param));
        [Topic::Controller(entry)].into_iter().chain(params)
    });
    let tables = TABLES.iter().chain(SWARM_TABLES).flat_map(|table| {
        // That a swarm file has a table is said where the table is explained.
        let is_own = |option: &&OptionDoc| !is_of_swarms(table) || !is_table(option);
        let options = table.options().filter(is_own).map(move |option| Topic::Option(table, option));
        [Topic::Table(table)].into_iter().chain(options)
    });
    let metrics = METRICS.iter().map(Topic::Metric);
    let figures = FigureNumber::ALL.into_iter().map(Topic::Figure);
    let scenarios = BUILT_IN.iter().map(Topic::Scenario);
    let queues = QueueKind::WORDS.iter().map(|&(name, _, summary)| Topic::Queue(name, summary));
    let flags = cede_meter::Flags::ALL.iter().map(|&(_, name, text)| Topic::Flag(name, text));
    let of_log = crate::inspect::LOG_COLUMNS.map(|(name, text)| (name, text, "`cede inspect --log --csv`"));
    let of_pieces =
        crate::inspect::PIECES_COLUMNS.map(|(name, text)| (name, text, "`cede inspect --pieces --csv`"));
    let of_inspect = crate::inspect::columns().map(|(name, text)| (name, text, "`cede inspect --csv`"));
    let of_inspect = of_inspect.chain(of_log).chain(of_pieces);
    let of_swarms = TABLE_FILES
        .iter()
        .flat_map(|table| table.columns.iter().map(|&(name, text)| (name, text, table.name)));
    let of_runs = record::TABLES
        .iter()
        .flat_map(|&(file, columns)| columns.iter().map(move |column| (column.name, column.meaning, file)));
    let columns = of_inspect.chain(of_meter()).chain(of_runs).chain(of_swarms);
    let columns = columns.map(|(name, text, of)| Topic::Column(name, text, of));
    let checks = check::cases().map(Topic::Check);
    let named = controllers.chain(checks).chain(queues).chain(flags).chain(metrics);
    named.chain(scenarios).chain(figures).chain(tables).chain(columns).collect()
}

/// Columns of the meter, each with its name, its meaning and whose it is.
fn of_meter() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let for_programs = crate::meter::COLUMNS.iter().map(|&(name, text)| (name, text, "`cede meter --csv`"));
    let for_people = crate::meter::headings().map(|(name, text)| (name, text, "the table of `cede meter`"));
    for_programs.chain(for_people)
}

/// The full name of an option first; a table within another is called by its own name, too, and the links of a graph are `[[link]]`.
fn option_names(table: &TableDoc, option: &OptionDoc) -> Vec<String> {
    let (path, key) = (table.name(), option.key);
    let short = path.rsplit('.').next().unwrap_or(path);
    let short = short.strip_prefix("graph_").unwrap_or(short);
    vec![format!("{path}.{key}"), key.to_string(), format!("{short}.{key}")]
}

fn unknown(what: &str) -> Failure {
    let names: Vec<String> = topics().iter().flat_map(Topic::names).collect();
    let guess = nearest(what, names.iter().map(String::as_str));
    let guess = guess.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    Failure::Usage(format!(
        "nothing is called `{what}`{guess}\n  = `cede list` names controllers, queue disciplines, scenarios, metrics and figures; `cede explain \
         scenario` is the reference of all options, and `cede explain swarm` of those of swarms"
    ))
}

impl Topic {
    /// The names under which it is found: the full one first.
    fn names(&self) -> Vec<String> {
        match self {
            Self::Controller(entry) => vec![entry.name.to_string()],
            Self::Parameter(entry, param) => {
                vec![format!("{}.{}", entry.name, param.name), param.name.to_string()]
            }
            Self::Metric(doc) => {
                vec![
                    doc.pattern(),
                    format!("{}.{}", doc.group, doc.leaf),
                    doc.leaf.to_string(),
                    doc.group.to_string(),
                ]
            }
            Self::Queue(name, _) => vec![(*name).to_string()],
            Self::Table(table) => vec![table.name().to_string()],
            Self::Option(table, option) if table.name().is_empty() => vec![option.key.to_string()],
            Self::Option(table, option) => option_names(table, option),
            Self::Check(case) => vec![case.name.to_string()],
            Self::Scenario(scenario) => vec![scenario.name.to_string()],
            Self::Flag(name, _) | Self::Column(name, ..) => vec![name.to_string()],
            Self::Figure(figure) => vec![format!("lcn10 {}", figure.number()), "lcn10".to_string()],
        }
    }

    /// What all of its kind are called together.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Controller(_) => "controllers",
            Self::Parameter(..) => "parameters",
            Self::Metric(_) => "metrics",
            Self::Queue(..) => "queues",
            Self::Table(_) => "tables",
            Self::Option(..) => "options",
            Self::Check(_) => "checks",
            Self::Scenario(_) => "scenarios",
            Self::Figure(_) => "figures",
            Self::Flag(..) => "flags",
            Self::Column(..) => "columns",
        }
    }

    /// Whether `what` is one of the names, or all of its kind. The middle of a metric's name is that of a flow or a link: any will do.
    fn answers_to(&self, what: &str) -> bool {
        let is_named = self.names().iter().any(|name| !name.is_empty() && name == what);
        let parts: Vec<&str> = what.split('.').collect();
        is_named
            || what == self.kind()
            || matches!((self, &parts[..]), (Self::Metric(doc), [group, _, leaf]) if doc.group == *group && doc.leaf == *leaf)
            || self.is_within(what)
    }

    /// Whether `what` is an option by its way through a file: that of a table within a table.
    fn is_within(&self, what: &str) -> bool {
        let Self::Option(table, option) = self else { return false };
        let outer = what.strip_suffix(&format!(".{}.{}", table.name(), option.key));
        outer.is_some_and(|outer| TABLES.iter().any(|table| table.name() == outer && !outer.is_empty()))
    }

    /// Whether an option or column stands among others of the same meaning, and is not the first of them.
    fn is_repeated(&self, found: &[Self]) -> bool {
        if let Self::Column(name, text, of) = self {
            let is_same =
                |other: &&Self| matches!(other, Self::Column(same, says, _) if (same, says) == (name, text));
            return !matches!(found.iter().find(is_same), Some(Self::Column(.., first)) if first == of);
        }
        let Self::Option(table, option) = self else { return false };
        let first = found.iter().find_map(|other| match other {
            Self::Option(first, same) if is_same(same, option) => Some(first.path),
            _ => None,
        });
        first != Some(table.path)
    }

    fn to_text(self, screen: &Screen) -> String {
        match self {
            Self::Controller(entry) => controller_text(entry, screen),
            Self::Parameter(entry, param) => {
                let head = screen.bold(&format!("{}.{}", entry.name, param.name));
                format!(
                    "{head}  parameter of the controller {}\n\n{}",
                    entry.name,
                    param_text(param, "  ", screen)
                )
            }
            Self::Metric(doc) => metric_text(doc, screen),
            Self::Queue(name, summary) => queue_text(name, summary, screen),
            Self::Check(case) => check_text(case, screen),
            Self::Table(table) => table_text(table, screen),
            Self::Option(table, option) => option_text(&tables_with(table, option), option, screen),
            Self::Scenario(scenario) => {
                let kind = if is_swarm(scenario.text) { "swarm" } else { "scenario" };
                format!("{}  built-in {kind}\n\n{}", screen.bold(scenario.name), scenario.text)
            }
            Self::Figure(figure) => figure_text(figure, screen),
            Self::Flag(name, text) => {
                let head = format!("{}  flag of the meter\n\n", screen.bold(name));
                head + &screen.wrap("  ", text)
            }
            Self::Column(name, text, of) => {
                let head = format!("{}  column of {of}\n\n", screen.bold(name));
                head + &screen.wrap("  ", text)
            }
        }
    }

    fn to_json(self) -> Value {
        match self {
            Self::Figure(figure) => {
                json!({ "kind": "figure", "paper": "lcn10", "number": figure.number(), "summary": figure.summary() })
            }
            Self::Controller(entry) => json!({
                "kind": "controller", "name": entry.name, "summary": entry.summary, "formula": entry.formula,
                "source": entry.source, "responsive": entry.responsive, "answers_marks": entry.answers_marks(), "experimental": entry.experimental,
                "parameters": entry.params.iter().map(param_json).collect::<Value>(),
            }),
            Self::Parameter(entry, param) => {
                json!({ "kind": "parameter", "controller": entry.name, "parameter": param_json(param) })
            }
            Self::Metric(doc) => json!({
                "kind": "metric", "name": doc.pattern(), "summary": doc.summary, "unit": doc.unit,
                "formula": doc.formula, "source": doc.source,
            }),
            Self::Queue(name, summary) => {
                let table = queue_table(name);
                json!({
                    "kind": "queue", "name": name, "summary": summary, "meaning": table.meaning,
                    "parameters": parameters(table).map(|option| option_json(table, option)).collect::<Value>(),
                })
            }
            Self::Table(table) => json!({
                "kind": "table", "name": table.name(), "written": table.heading, "meaning": table.meaning,
                "options": table.options().map(|option| option_json(table, option)).collect::<Value>(),
            }),
            Self::Option(table, option) => option_json(table, option),
            Self::Check(case) => {
                json!({ "kind": "check", "name": case.name, "world": case.world, "story": case.story })
            }
            Self::Scenario(scenario) => {
                json!({ "kind": "scenario", "name": scenario.name, "toml": scenario.text })
            }
            Self::Flag(name, text) => json!({ "kind": "flag", "name": name, "summary": text }),
            Self::Column(name, text, of) => {
                json!({ "kind": "column", "name": name, "of": of, "summary": text })
            }
        }
    }
}

const fn is_table(option: &OptionDoc) -> bool {
    matches!(option.kind, Kind::Table(_) | Kind::Tables(_))
}

fn is_of_swarms(table: &TableDoc) -> bool {
    SWARM_TABLES.iter().any(|other| other.path == table.path)
}

/// Options that tables of one kind share say the same.
fn is_same(a: &OptionDoc, b: &OptionDoc) -> bool {
    (a.key, a.meaning, a.fallback, a.example) == (b.key, b.meaning, b.fallback, b.example)
}

/// The tables that have the option: that one first.
fn tables_with(table: &'static TableDoc, option: &OptionDoc) -> Vec<&'static TableDoc> {
    let others = TABLES.iter().filter(|other| other.path != table.path);
    let same = others.filter(|other| other.find(option.key).is_some_and(|found| is_same(found, option)));
    [table].into_iter().chain(same).collect()
}

fn unit(doc: &MetricDoc) -> &'static str {
    if doc.unit == "1" { "1 (a ratio: 98 % is 0.98)" } else { doc.unit }
}

fn metric_text(doc: &MetricDoc, screen: &Screen) -> String {
    let facts = [("  unit     ", unit(doc)), ("  formula  ", doc.formula), ("  source   ", doc.source)];
    let facts: String = facts.iter().map(|(head, text)| screen.wrap(head, text)).collect();
    format!("{}  metric\n\n{}\n{facts}", screen.bold(&doc.pattern()), screen.wrap("  ", doc.summary))
}

fn figure_text(figure: FigureNumber, screen: &Screen) -> String {
    let number = figure.number();
    let head = screen.bold(&format!("lcn10 {number}"));
    let summary = screen.wrap("  ", figure.summary());
    format!(
        "{head}  figure of the LCN 2010 paper\n\n{summary}\n  draw it  cede repro lcn10 --figure {number}\n"
    )
}

fn controller_text(entry: &registry::Entry, screen: &Screen) -> String {
    let example = entry.params.first().map(|p| format!(", {} = {}", p.name, toml_literal(p)));
    let mut out =
        format!("{}  controller\n\n{}\n", screen.bold(entry.name), screen.wrap("  ", entry.summary));
    out += &screen.wrap("  formula  ", entry.formula);
    out += &screen.wrap("  source   ", entry.source);
    out += &screen.wrap("  marks    ", marks_text(entry));
    let example = example.unwrap_or_default();
    out += &format!("  written  controller = {{ name = \"{}\"{example} }}\n\n", entry.name);
    out += if entry.params.is_empty() { "It has no parameters.\n" } else { "Parameters:\n" };
    for param in entry.params {
        out += &format!("\n  {}\n{}", screen.bold(param.name), param_text(param, "    ", screen));
    }
    out
}

/// What it does with explicit congestion notification.
fn marks_text(entry: &registry::Entry) -> &'static str {
    if entry.answers_marks() {
        "answered as losses are (ECN, over TCP)"
    } else {
        "not answered: over TCP its data is not announced as ECN-capable, and `ecn = true` is refused (RFC 3168, section 5)"
    }
}

fn param_text(param: &ParamDoc, indent: &str, screen: &Screen) -> String {
    let values = format!("default {}; allowed: {}", param.default, param.kind);
    screen.wrap(indent, param.doc) + &screen.wrap(indent, &values)
}

/// The default as a scenario writes it.
fn toml_literal(param: &ParamDoc) -> String {
    let is_bare = matches!(param.kind, cede_cc::ParamKind::Number { .. } | cede_cc::ParamKind::Count { .. });
    match param.default {
        "on" => "true".to_string(),
        "off" => "false".to_string(),
        number if is_bare => number.to_string(),
        text => format!("\"{text}\""),
    }
}

fn param_json(param: &ParamDoc) -> Value {
    json!({
        "name": param.name, "default": param.default, "allowed": param.kind.to_string(), "doc": param.doc,
    })
}

/// The table with a discipline's parameters; those without any share one.
fn queue_table(name: &str) -> &'static TableDoc {
    let path = format!("queue.{name}");
    let own = TABLES.iter().find(|table| table.path == path);
    own.or_else(|| TABLES.iter().find(|table| table.path == "queue")).expect("queues have a table")
}

fn parameters(table: &'static TableDoc) -> impl Iterator<Item = &'static OptionDoc> {
    table.options().filter(|option| option.key != "kind")
}

fn queue_text(name: &str, summary: &str, screen: &Screen) -> String {
    let table = queue_table(name);
    let head = format!("{}  queue discipline", screen.bold(name));
    let rows: String = parameters(table).map(|option| option_row(option, screen)).collect();
    let rows = if rows.is_empty() { "  It has no parameters.\n".to_string() } else { rows };
    let (summary, meaning) = (screen.wrap("  ", summary), screen.wrap("  ", table.meaning));
    format!("{head}\n\n{summary}{meaning}  written  queue = {{ kind = \"{name}\" }} in [link]\n\n{rows}")
}

fn option_row(option: &OptionDoc, screen: &Screen) -> String {
    let text = match option.fallback {
        Fallback::Value(default) => format!("{} Default: {default}.", option.meaning),
        Fallback::Required | Fallback::Absent(_) => option.meaning.to_string(),
    };
    screen.wrap(&format!("  {:18} ", option.key), &text)
}

fn check_text(case: &Case, screen: &Screen) -> String {
    let head = format!("{}  scenario of `cede check`", screen.bold(case.name));
    let (world, story) = (screen.wrap("  ", case.world), screen.wrap("  ", case.story));
    format!("{head}\n\n{world}{story}  run it   cede check CONTROLLER --only {}\n", case.name)
}

fn table_text(table: &TableDoc, screen: &Screen) -> String {
    let rows: String = table.options().map(|option| option_row(option, screen)).collect();
    let meaning = screen.wrap("  ", table.meaning);
    let whole = if is_of_swarms(table) { "swarm file" } else { "scenario" };
    format!("{}  part of a {whole}\n\n{meaning}\n{rows}", screen.bold(table.heading))
}

fn option_text(tables: &[&TableDoc], option: &OptionDoc, screen: &Screen) -> String {
    let headings: Vec<&str> = tables.iter().map(|table| table.heading).collect();
    let head = format!("{}\u{a0} option of {}", screen.bold(option.key), headings.join(", "));
    let mut out = format!("{}\n{}\n", screen.wrap("", &head), screen.wrap("  ", option.meaning));
    out += &screen.wrap("  allowed  ", &option.kind.allowed());
    if let Kind::Word { words } = option.kind {
        for (word, meaning) in words {
            out += &screen.wrap(&format!("           {word}: "), meaning);
        }
    }
    out += &match option.fallback {
        Fallback::Required => "  it must be given\n".to_string(),
        Fallback::Value(text) | Fallback::Absent(text) => screen.wrap("  default  ", text),
    };
    if !option.example.is_empty() {
        out += &format!("  example  {}\n", option.example);
    }
    out
}

fn option_json(table: &TableDoc, option: &OptionDoc) -> Value {
    let (default, required) = match option.fallback {
        Fallback::Required => (Value::Null, true),
        Fallback::Value(text) | Fallback::Absent(text) => (Value::from(text), false),
    };
    json!({
        "kind": "option", "table": table.name(), "key": option.key, "meaning": option.meaning,
        "allowed": option.kind.allowed(), "required": required, "default": default, "example": option.example,
    })
}
