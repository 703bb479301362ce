//! The form of the table of options: what a key may hold, its default, an example and its meaning.
//!
//! The table itself is in `tables`. It drives the reading of scenarios (known keys, kinds, defaults) and the
//! generated reference, so the two cannot disagree.

/// A table of the format.
#[derive(Clone, Copy, Debug)]
pub struct TableDoc {
    /// Its path, without brackets: `flow.tcp`; empty for the top of the file.
    pub path: &'static str,
    /// How it is written.
    pub heading: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// The options that it has alone.
    pub own: &'static [OptionDoc],
    /// The options that it shares with tables of the same kind; those in `own` come first.
    pub shared: &'static [OptionDoc],
}

/// An option of the format.
#[derive(Clone, Copy, Debug)]
pub struct OptionDoc {
    /// Its key.
    pub key: &'static str,
    /// What it may hold.
    pub kind: Kind,
    /// What holds where it is not given.
    pub fallback: Fallback,
    /// A value as it would be written, without the quotes of a text.
    pub example: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// What holds where an option is not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fallback {
    /// It must be given.
    Required,
    /// This value, as it would be written, without the quotes of a text.
    Value(&'static str),
    /// No value; the text says what that means.
    Absent(&'static str),
}

/// What an option may hold.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any text.
    Text,
    /// A name: letters, digits, `-`, `_` and `+`, not digits alone.
    Name,
    /// A span of time, zero included.
    Time,
    /// A span of time above zero.
    Span,
    /// A span of time with a sign.
    Offset,
    /// A ratio in ppm or ppb with a sign.
    Drift,
    /// Bits per second, above zero.
    Rate,
    /// An amount of data between two numbers of octets.
    Size {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A number of packets above zero.
    Packets,
    /// A buffer: packets, an amount of data, time or BDPs.
    Buffer,
    /// A number from 0 to 1.
    Probability,
    /// A number between two others, both included.
    Number {
        /// The least.
        min: f64,
        /// The most.
        max: f64,
    },
    /// A whole number between two others, both included.
    Integer {
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
    /// True or false.
    Switch,
    /// One of these words, each with its meaning.
    Word {
        /// The words.
        words: &'static [(&'static str, &'static str)],
    },
    /// A queue discipline, or a table with `kind` and its parameters.
    Queue,
    /// A list of names.
    Names,
    /// The table with this path.
    Table(&'static str),
    /// A list of tables with this path.
    Tables(&'static str),
    /// A table where the topology is no graph, and a list of tables where it is.
    LinkOrLinks,
    /// A controller's name, or a table with `name` and its parameters.
    Controller,
    /// A kind of traffic, or a table with `kind` and its options.
    Traffic,
    /// A list of assertions, or a table from a metric to what must hold of it.
    Assertions,
}

/// The longest time that an option may hold: below 2^52 ns, up to which a quantity is read exactly.
pub(crate) const TIME_MAX_HOURS: u64 = 1_000;
/// The highest rate, in bits per second.
pub(crate) const RATE_MAX_BITS: u64 = 1_000_000_000_000;
/// The largest amount of data, in octets.
pub(crate) const SIZE_MAX_BYTES: u64 = 1 << 50;
/// The largest number of packets.
pub(crate) const PACKETS_MAX: u64 = 1_000_000_000;

/// What the table with this path is called in a file. Swarm files have tables that are called as those of scenarios, so that
/// their paths have more to them.
pub(crate) fn name_of(path: &'static str) -> &'static str {
    match path.strip_prefix("swarm_") {
        Some("file") => "",
        Some(name) => name,
        None => path,
    }
}

impl TableDoc {
    /// Every option, those of its own first, each key once.
    pub fn options(&self) -> impl Iterator<Item = &'static OptionDoc> + use<> {
        let own = self.own;
        let shared = self.shared.iter().filter(move |option| own.iter().all(|o| o.key != option.key));
        own.iter().chain(shared)
    }

    /// What it is called in a file; the top of one has no name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        name_of(self.path)
    }

    /// The option with this key.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<&'static OptionDoc> {
        self.options().find(|option| option.key == key)
    }
}

impl Kind {
    /// What kind of value this is, in a word or two.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Name => "name",
            Self::Time | Self::Span => "time",
            Self::Offset => "time with sign",
            Self::Drift => "ratio with sign",
            Self::Rate => "rate",
            Self::Size { .. } => "size",
            Self::Packets => "packets",
            Self::Buffer => "buffer",
            Self::Probability => "probability",
            Self::Number { .. } => "number",
            Self::Integer { .. } => "whole number",
            Self::Switch => "switch",
            Self::Word { .. } => "word",
            Self::Names => "list of names",
            Self::Table(_) => "table",
            Self::Tables(_) => "list of tables",
            Self::LinkOrLinks => "table or list of tables",
            Self::Controller | Self::Traffic | Self::Queue => "word or table",
            Self::Assertions => "list or table",
        }
    }

    /// What is allowed, as help for whoever wrote something else.
    #[must_use]
    pub fn allowed(&self) -> String {
        match self {
            Self::Text => "a text in quotes".to_string(),
            Self::Name => "letters, digits, `-`, `_` and `+`, not digits alone, at most 64".to_string(),
            Self::Time => format!("a time of at most {TIME_MAX_HOURS} h {TIME_UNITS}"),
            Self::Span => format!("a time above zero, at most {TIME_MAX_HOURS} h {TIME_UNITS}"),
            Self::Offset => format!("a time with or without `-` {TIME_UNITS}"),
            Self::Drift => "a ratio in ppm or ppb, at most 100000 ppm, for instance \"50 ppm\" or \"-50 ppm\"".to_string(),
            Self::Rate => "a rate above zero and of at most 1000 Gbit/s in bit/s, kbit/s, Mbit/s, Gbit/s, kB/s, MB/s, KiB/s or MiB/s, for instance \"10 Mbit/s\"".to_string(),
            Self::Size { min, max } => size_allowed(*min, *max),
            Self::Packets => "a number of packets above zero, for instance \"10 packets\"".to_string(),
            Self::Buffer => "\"100 packets\", \"64 KiB\", \"200 ms\" (at the link's rate) or \"2 BDP\", above zero".to_string(),
            Self::Probability => "a number from 0 to 1".to_string(),
            Self::Number { min, max } => format!("a number from {min} to {max}"),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Switch => "true or false".to_string(),
            Self::Word { words } => {
                words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
            }
            Self::Names => "a list of names, for instance [\"a\", \"b\"]".to_string(),
            Self::Table(path) => format!("a table: [{}]", name_of(path)),
            Self::Tables(path) => format!("a list of tables, each [[{}]]", name_of(path)),
            Self::LinkOrLinks => "a table [link], or in a graph a list of tables [[link]]".to_string(),
            Self::Controller => "a controller's name, or { name = \"...\", PARAMETER = ... }".to_string(),
            Self::Queue => "a queue discipline, or { kind = \"...\", PARAMETER = ... }".to_string(),
            Self::Traffic => "a kind of traffic, or { kind = \"...\", ... }".to_string(),
            Self::Assertions => {
                "a list such as [\"queue.p95_ms < 70\"], or a table such as queue.p95_ms = \"< 70\"".to_string()
            }
        }
    }

    /// True where the value is written without quotes.
    pub(crate) fn is_bare(&self) -> bool {
        matches!(self, Self::Probability | Self::Number { .. } | Self::Integer { .. } | Self::Switch)
    }
}

const TIME_UNITS: &str = "in ns, us, ms, s, min or h, for instance \"25 ms\"";

fn size_allowed(min: u64, max: u64) -> String {
    let bounds = format!("from {} to {}", cede_units::Bytes(min), cede_units::Bytes(max));
    format!("a size {bounds} in B, kB, MB, GB, KiB, MiB or GiB, for instance \"64 KiB\"")
}

/// An option, for the tables.
pub(crate) const fn option(
    key: &'static str,
    kind: Kind,
    fallback: Fallback,
    example: &'static str,
    meaning: &'static str,
) -> OptionDoc {
    OptionDoc { key, kind, fallback, example, meaning }
}

/// A table that shares no options with others.
pub(crate) const fn table(
    path: &'static str,
    heading: &'static str,
    meaning: &'static str,
    own: &'static [OptionDoc],
) -> TableDoc {
    TableDoc { path, heading, meaning, own, shared: &[] }
}

/// One of these words, for the tables.
pub(crate) const fn words(words: &'static [(&'static str, &'static str)]) -> Kind {
    Kind::Word { words }
}
