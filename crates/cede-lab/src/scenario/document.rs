//! A TOML text as a tree whose every key and value knows where it stands.
//!
//! The parser of the `toml` crate gives the places; this tree also holds values that came from overrides, whose
//! places lie in another text.

use super::problem::{MAX_PROBLEMS, Origin, Problem, Sources};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its place.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Node {
    pub origin: Origin,
    pub value: Value,
}

impl Node {
    /// `key = "word"` as the table that it is short for, `key = { kind = "word" }`; anything else as it is.
    pub fn long_form(&self) -> Self {
        let mut long = self.clone();
        if let Value::Text(_) = self.value {
            let mut table = Table::default();
            table.get_or_insert("kind", self.origin, || self.clone());
            long.value = Value::Table(table);
        }
        long
    }
}

/// A TOML value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Number(f64),
    Switch(bool),
    /// A value that no option takes; the text says what it is.
    Strange(&'static str),
    List(Vec<Node>),
    Table(Table),
}

/// A table: its entries in the order of the text.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub key_origin: Origin,
    pub node: Node,
}

impl Table {
    /// The entry of this key.
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The value of this key, made by `make` where there is none yet.
    pub(crate) fn get_or_insert(
        &mut self,
        key: &str,
        key_origin: Origin,
        make: impl FnOnce() -> Node,
    ) -> &mut Node {
        let found = self.entries.iter().position(|entry| entry.key == key);
        let index = found.unwrap_or_else(|| {
            self.entries.push(Entry { key: key.to_string(), key_origin, node: make() });
            self.entries.len() - 1
        });
        &mut self.entries[index].node
    }

    /// The text under this key, if it is one.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.node.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Node {
    /// The tree of a whole document, or every error of syntax in it.
    pub(crate) fn parse(sources: &Sources<'_>, source: usize, text: &str) -> Result<Self, Vec<Problem>> {
        let (table, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            let origin = Origin { source, start: 0, end: 0 };
            return Ok(Self { origin, value: Value::Table(table_of(table.get_ref(), source, 0)) });
        }
        let problem = |error: &toml::de::Error| {
            let span = error.span().unwrap_or(0..0);
            let at = Origin { source, start: span.start, end: span.end };
            sources.problem(at, format!("not TOML: {}", error.message()), Vec::new())
        };
        Err(errors.iter().take(MAX_PROBLEMS).map(problem).collect())
    }

    /// The tree of one value that stands at `start` of a text, if it is TOML.
    pub(crate) fn parse_value(text: &str, source: usize, start: usize) -> Option<Self> {
        DeValue::parse(text).ok().map(|value| node_of(&value, source, start))
    }

    /// A text by itself, where nobody is to be told what is wrong with it.
    pub(crate) fn parse_alone(text: &str) -> Option<Self> {
        let mut sources = Sources::default();
        let file = sources.add("", text);
        Self::parse(&sources, file, text).ok()
    }

    /// The table in this node, if it is one.
    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// What stands here, in words.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("the text \"{}\"", shortened(text)),
            Value::Integer(number) => format!("the number {number}"),
            Value::Number(number) => format!("the number {number}"),
            Value::Switch(switch) => format!("`{switch}`"),
            Value::Strange(what) => (*what).to_string(),
            Value::List(_) => "a list".to_string(),
            Value::Table(_) => "a table".to_string(),
        }
    }
}

/// What a scenario's or a swarm's text says of itself.
pub(crate) fn described(text: &str) -> Option<String> {
    Node::parse_alone(text)?.table()?.text("description").map(str::to_string)
}

/// A text short enough for a message, on one line.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN: usize = 40;
    let clean: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() { format!("{clean}...") } else { clean }
}

fn origin_of(span: core::ops::Range<usize>, source: usize, shift: usize) -> Origin {
    Origin { source, start: span.start + shift, end: span.end + shift }
}

fn table_of(table: &DeTable<'_>, source: usize, shift: usize) -> Table {
    let entry = |(key, value): (&Spanned<toml::de::DeString<'_>>, &Spanned<DeValue<'_>>)| Entry {
        key: key.get_ref().to_string(),
        key_origin: origin_of(key.span(), source, shift),
        node: node_of(value, source, shift),
    };
    let mut entries: Vec<Entry> = table.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.key_origin);
    Table { entries }
}

fn node_of(value: &Spanned<DeValue<'_>>, source: usize, shift: usize) -> Node {
    let plain = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => integer_of(integer.as_str(), integer.radix()),
        DeValue::Float(float) => {
            float.as_str().replace('_', "").parse().map_or(Value::Strange("no number"), Value::Number)
        }
        DeValue::Boolean(switch) => Value::Switch(*switch),
        DeValue::Datetime(_) => Value::Strange("a date"),
        DeValue::Array(items) => Value::List(items.iter().map(|item| node_of(item, source, shift)).collect()),
        DeValue::Table(table) => Value::Table(table_of(table, source, shift)),
    };
    Node { origin: origin_of(value.span(), source, shift), value: plain }
}

fn integer_of(digits: &str, radix: u32) -> Value {
    let parsed = i64::from_str_radix(&digits.replace('_', ""), radix);
    parsed.map_or(Value::Strange("a number too large for 64 bits"), Value::Integer)
}
