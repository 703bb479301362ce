//! Reading a table of the document by its description: unknown keys are refused, values are read by their kind,
//! defaults come from the description.

use super::document::{Node, Table, Value, shortened};
use super::problem::{MAX_PROBLEMS, Origin, Problem, Sources, nearest, word_help};
use super::schema::{Fallback, Kind, OptionDoc, TableDoc};
use super::tables;
use super::values::FromNode;

/// Collects what is wrong while a scenario is read.
pub(crate) struct Reader<'a> {
    sources: &'a Sources<'a>,
    found: Vec<(Origin, Problem)>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(sources: &'a Sources<'a>) -> Self {
        Self { sources, found: Vec::new() }
    }

    /// Takes down a problem.
    pub(crate) fn report(&mut self, at: Origin, message: impl Into<String>, help: Vec<String>) {
        if self.found.len() < MAX_PROBLEMS {
            let problem = self.sources.problem(at, message.into(), help);
            self.found.push((at, problem));
        }
    }

    /// Takes down that a name is not known.
    pub(crate) fn report_unknown(&mut self, at: Origin, what: &str, name: &str, known: &[&str]) {
        let help = word_help(name, &known[..known.len().min(40)]);
        self.report(at, format!("unknown {what} `{}`", shortened(name)), help);
    }

    /// The problems by their place.
    pub(crate) fn into_problems(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|(at, _)| *at);
        // A table that several others inherit from is read once for each.
        self.found.dedup();
        self.found.into_iter().map(|(_, problem)| problem).collect()
    }
}

/// A table that is being read.
///
/// The methods give None where a problem has been taken down, so that a caller can go on with the other options and
/// give up at the end.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    doc: &'static TableDoc,
    table: Option<&'a Table>,
    /// Where the table begins.
    pub at: Origin,
}

impl<'a> Fields<'a> {
    /// Opens the table of this path; `node` is none where the document does not have it.
    pub(crate) fn open(
        reader: &mut Reader<'_>,
        path: &str,
        node: Option<&'a Node>,
        parent: Origin,
    ) -> Option<Self> {
        let doc = tables::get(path);
        let at = node.map_or(parent, |node| node.origin);
        let table = match node.map(|node| (node, &node.value)) {
            None => None,
            Some((_, Value::Table(table))) => Some(table),
            Some((node, _)) => {
                let help = vec![format!("allowed: a table {}", doc.heading)];
                reader.report(at, format!("`{}` is {}, not a table", doc.name(), node.describe()), help);
                return None;
            }
        };
        let fields = Self { doc, table, at };
        fields.refuse_unknown_keys(reader);
        Some(fields)
    }

    /// Opens a table that was opened before, without a second report of what is wrong with it.
    pub(crate) fn quiet(path: &str, node: Option<&'a Node>, parent: Origin) -> Option<Self> {
        let at = node.map_or(parent, |node| node.origin);
        node.and_then(Node::table).map(|table| Self { doc: tables::get(path), table: Some(table), at })
    }

    fn refuse_unknown_keys(&self, reader: &mut Reader<'_>) {
        let known: Vec<&str> = self.doc.options().map(|option| option.key).collect();
        for entry in self.table.iter().flat_map(|table| &table.entries) {
            if known.contains(&entry.key.as_str()) {
                continue;
            }
            let guess = nearest(&entry.key, known.iter().copied()).map(|c| format!("did you mean `{c}`?"));
            let elsewhere = guess.is_none().then(|| tables::homes_of(&entry.key)).flatten();
            let all = format!("allowed: {}", known.join(", "));
            let message = format!("unknown key `{}` {}", shortened(&entry.key), self.place());
            reader.report(
                entry.key_origin,
                message,
                guess.into_iter().chain(elsewhere).chain([all]).collect(),
            );
        }
    }

    /// "in [link]".
    pub(crate) fn place(&self) -> String {
        if self.doc.path.is_empty() { "at the top".to_string() } else { format!("in {}", self.doc.heading) }
    }

    /// The node of an option, if it is given.
    pub(crate) fn node(&self, key: &str) -> Option<&'a Node> {
        self.table?.get(key).map(|entry| &entry.node)
    }

    /// True where the document gives the option.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.node(key).is_some()
    }

    /// Where an option's key stands, or the table where it is not given.
    pub(crate) fn key_origin(&self, key: &str) -> Origin {
        self.table.and_then(|table| table.get(key)).map_or(self.at, |entry| entry.key_origin)
    }

    /// Where an option's value stands, or the table where it is not given.
    pub(crate) fn origin(&self, key: &str) -> Origin {
        self.node(key).map_or(self.at, |node| node.origin)
    }

    /// Refuses options that have no meaning here.
    pub(crate) fn refuse(&self, reader: &mut Reader<'_>, keys: &[&str], why: &str) {
        for key in keys.iter().filter(|key| self.has(key)) {
            reader.report(self.key_origin(key), format!("`{key}` has no meaning here: {why}"), Vec::new());
        }
    }

    fn option(&self, key: &str) -> &'static OptionDoc {
        self.doc.find(key).expect("every key that is read is in the table of options")
    }

    /// The value of an option, or its default.
    pub(crate) fn get<T: FromNode>(&self, reader: &mut Reader<'_>, key: &str) -> Option<T> {
        let option = self.option(key);
        match (self.node(key), option.fallback) {
            (Some(node), _) => self.read(reader, option, node),
            (None, Fallback::Value(text)) => {
                T::from_node(&default_node(&option.kind, text), &option.kind).ok()
            }
            (None, _) => {
                let help = vec![format!("allowed: {}", option.kind.allowed())];
                reader.report(self.at, format!("`{key}` is missing {}", self.place()), help);
                None
            }
        }
    }

    /// The value of an option that may be absent: the outer None is a problem, the inner absence.
    pub(crate) fn maybe<T: FromNode>(&self, reader: &mut Reader<'_>, key: &str) -> Option<Option<T>> {
        let option = self.option(key);
        match self.node(key) {
            Some(node) => self.read(reader, option, node).map(Some),
            None => Some(None),
        }
    }

    fn read<T: FromNode>(&self, reader: &mut Reader<'_>, option: &OptionDoc, node: &Node) -> Option<T> {
        match T::from_node(node, &option.kind) {
            Ok(value) => Some(value),
            Err(complaint) => {
                let help = help_for(&option.kind, node);
                reader.report(node.origin, format!("`{}` {} {complaint}", option.key, self.place()), help);
                None
            }
        }
    }

    /// The tables of a list; absent means none.
    pub(crate) fn list(&self, reader: &mut Reader<'_>, key: &str) -> &'a [Node] {
        match self.node(key).map(|node| (node, &node.value)) {
            None => &[],
            Some((_, Value::List(items))) => items,
            Some((node, _)) => {
                let help = vec![format!("allowed: {}", self.option(key).kind.allowed())];
                reader.report(node.origin, format!("`{key}` is {}, not a list", node.describe()), help);
                &[]
            }
        }
    }
}

fn help_for(kind: &Kind, node: &Node) -> Vec<String> {
    match (kind, &node.value) {
        (Kind::Word { words }, Value::Text(text)) => {
            word_help(text, &words.iter().map(|(word, _)| *word).collect::<Vec<_>>())
        }
        _ => vec![format!("allowed: {}", kind.allowed())],
    }
}

/// A default as the node that it would be in a file.
pub(crate) fn default_node(kind: &Kind, text: &str) -> Node {
    let bare = kind.is_bare() || matches!(kind, Kind::Names);
    let parsed = if bare { Node::parse_value(text, 0, 0) } else { None };
    parsed.unwrap_or_else(|| Node { origin: Origin::default(), value: Value::Text(text.to_string()) })
}
