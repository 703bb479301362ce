//! Parameters of controllers: what there is to set, within what bounds, and what is wrong with a value.
//!
//! A controller documents each of its parameters in a table of [`ParamDoc`]; [`Settings::resolve`] checks what a
//! person gave against that table and fills in the defaults, so that documentation, validation and construction
//! cannot disagree.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use cede_units::{Bytes, Duration, Rate};
use core::fmt;

/// The value of one parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamValue {
    /// A span of time.
    Duration(Duration),
    /// A rate.
    Rate(Rate),
    /// An amount of data.
    Bytes(Bytes),
    /// A bare number.
    Number(f64),
    /// On or off.
    Switch(bool),
    /// One word of a list.
    Word(String),
}

/// What kind of value a parameter takes, and within what bounds (both ends allowed).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ParamKind {
    /// A span of time.
    Duration {
        /// The shortest allowed.
        min: Duration,
        /// The longest allowed.
        max: Duration,
    },
    /// A rate.
    Rate {
        /// The lowest allowed.
        min: Rate,
        /// The highest allowed.
        max: Rate,
    },
    /// An amount of data.
    Bytes {
        /// The least allowed.
        min: Bytes,
        /// The most allowed.
        max: Bytes,
    },
    /// A real number.
    Number {
        /// The least allowed.
        min: f64,
        /// The most allowed.
        max: f64,
    },
    /// A whole number, carried by [`ParamValue::Number`].
    Count {
        /// The least allowed.
        min: u32,
        /// The most allowed.
        max: u32,
    },
    /// `on` or `off`.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// One parameter of a controller, as people read of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ParamDoc {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: ParamKind,
    /// The value where none is given, in the form that [`ParamKind::parse`] reads.
    pub default: &'static str,
    /// One sentence on what it does, with its source.
    pub doc: &'static str,
}

/// A parameter that is a number, and the least and the most it may be.
pub(crate) const fn number(
    name: &'static str,
    default: &'static str,
    (min, max): (f64, f64),
    doc: &'static str,
) -> ParamDoc {
    ParamDoc { name, kind: ParamKind::Number { min, max }, default, doc }
}

/// A parameter that counts something, and the least and the most it may be.
pub(crate) const fn count(
    name: &'static str,
    default: &'static str,
    (min, max): (u32, u32),
    doc: &'static str,
) -> ParamDoc {
    ParamDoc { name, kind: ParamKind::Count { min, max }, default, doc }
}

/// What is wrong with a set of parameters. Each says what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParamError {
    /// No controller has this name.
    UnknownController {
        /// The name that stood there.
        name: String,
        /// The names that there are.
        allowed: String,
    },
    /// The controller has no such parameter.
    UnknownParameter {
        /// The name that stood there.
        name: String,
        /// The names that there are.
        allowed: String,
    },
    /// The parameter is given twice.
    Duplicate {
        /// The parameter.
        name: String,
    },
    /// The value is of another kind than the parameter.
    WrongKind {
        /// The parameter.
        name: String,
        /// What stood there.
        given: String,
        /// What is allowed.
        allowed: String,
    },
    /// The value is outside the parameter's bounds.
    OutOfRange {
        /// The parameter.
        name: String,
        /// What stood there.
        given: String,
        /// What is allowed.
        allowed: String,
    },
    /// The value makes no sense beside that of another parameter.
    Conflict {
        /// The parameter.
        name: String,
        /// What stood there.
        given: String,
        /// What is allowed beside the other.
        allowed: String,
    },
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownController { name, allowed } => {
                write!(f, "there is no controller \"{name}\"; there are: {allowed}")
            }
            Self::UnknownParameter { name, allowed } => {
                write!(f, "there is no parameter \"{name}\"; there are: {allowed}")
            }
            Self::Duplicate { name } => write!(f, "the parameter \"{name}\" is given twice"),
            Self::WrongKind { name, given, allowed } => {
                write!(f, "the parameter \"{name}\" cannot be {given}; allowed: {allowed}")
            }
            Self::OutOfRange { name, given, allowed } => {
                write!(
                    f,
                    "the parameter \"{name}\" cannot be {given}, which is out of range; allowed: {allowed}"
                )
            }
            Self::Conflict { name, given, allowed } => {
                write!(f, "the parameter \"{name}\" cannot be {given} here; allowed: {allowed}")
            }
        }
    }
}

impl core::error::Error for ParamError {}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duration(span) => write!(f, "{span}"),
            Self::Rate(rate) => write!(f, "{rate}"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl ParamKind {
    /// The values at the ends of its range; every word where words are enumerated.
    #[must_use]
    pub fn extremes(&self) -> Vec<ParamValue> {
        match *self {
            Self::Duration { min, max } => [min, max].map(ParamValue::Duration).into(),
            Self::Rate { min, max } => [min, max].map(ParamValue::Rate).into(),
            Self::Bytes { min, max } => [min, max].map(ParamValue::Bytes).into(),
            Self::Number { min, max } => [min, max].map(ParamValue::Number).into(),
            Self::Count { min, max } => [min, max].map(|n| ParamValue::Number(f64::from(n))).into(),
            Self::Switch => [true, false].map(ParamValue::Switch).into(),
            Self::Word(words) => words.iter().map(|&word| ParamValue::Word(word.to_owned())).collect(),
        }
    }
}

impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duration { min, max } => write!(f, "a time from {min} to {max}"),
            Self::Rate { min, max } => write!(f, "a rate from {min} to {max}"),
            Self::Bytes { min, max } => write!(f, "a size from {min} to {max}"),
            Self::Number { min, max } => write!(f, "a number from {min} to {max}"),
            Self::Count { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::Switch => f.write_str("on or off"),
            Self::Word(words) => f.write_str(&words.join(", ")),
        }
    }
}

/// How a value stands to a kind.
enum Fit {
    Fits,
    OutOfRange,
    WrongKind,
}

fn within<T: PartialOrd>(value: &T, min: &T, max: &T) -> Fit {
    if min <= value && value <= max { Fit::Fits } else { Fit::OutOfRange }
}

impl ParamKind {
    fn fit(&self, value: &ParamValue) -> Fit {
        match (self, value) {
            (Self::Duration { min, max }, ParamValue::Duration(span)) => within(span, min, max),
            (Self::Rate { min, max }, ParamValue::Rate(rate)) => within(rate, min, max),
            (Self::Bytes { min, max }, ParamValue::Bytes(bytes)) => within(bytes, min, max),
            (Self::Number { min, max }, ParamValue::Number(number)) => within(number, min, max),
            (Self::Count { min, max }, ParamValue::Number(number)) => {
                let whole = *number == f64::from(*number as u32);
                if whole { within(&(*number as u32), min, max) } else { Fit::OutOfRange }
            }
            (Self::Switch, ParamValue::Switch(_)) => Fit::Fits,
            (Self::Word(words), ParamValue::Word(word)) if words.contains(&word.as_str()) => Fit::Fits,
            (Self::Word(_), ParamValue::Word(_)) => Fit::OutOfRange,
            _ => Fit::WrongKind,
        }
    }

    /// Reads a value of this kind as people write it: "25 ms", "10 Mbit/s", "0.5", "on", a word.
    ///
    /// # Errors
    /// [`ParamError::WrongKind`] where the text is no such value, [`ParamError::OutOfRange`] where it is outside the
    /// bounds; both name `name`.
    pub fn parse(&self, name: &str, text: &str) -> Result<ParamValue, ParamError> {
        let value = match self {
            Self::Duration { .. } => text.parse().ok().map(ParamValue::Duration),
            Self::Rate { .. } => text.parse().ok().map(ParamValue::Rate),
            Self::Bytes { .. } => text.parse().ok().map(ParamValue::Bytes),
            Self::Number { .. } | Self::Count { .. } => text.trim().parse().ok().map(ParamValue::Number),
            Self::Switch => parse_switch(text).map(ParamValue::Switch),
            Self::Word(_) => Some(ParamValue::Word(text.trim().to_owned())),
        };
        let Some(value) = value else {
            let given = alloc::format!("\"{text}\"");
            return Err(ParamError::WrongKind { name: name.to_owned(), given, allowed: self.to_string() });
        };
        self.check(name, &value)?;
        Ok(value)
    }

    /// Checks a value against this kind.
    ///
    /// # Errors
    /// As [`ParamKind::parse`].
    pub fn check(&self, name: &str, value: &ParamValue) -> Result<(), ParamError> {
        // Each connection of a swarm of thousands has its parameters checked: words are for errors alone.
        let words = || (name.to_owned(), value.to_string(), self.to_string());
        match self.fit(value) {
            Fit::Fits => Ok(()),
            Fit::OutOfRange => {
                let (name, given, allowed) = words();
                Err(ParamError::OutOfRange { name, given, allowed })
            }
            Fit::WrongKind => {
                let (name, given, allowed) = words();
                Err(ParamError::WrongKind { name, given, allowed })
            }
        }
    }
}

fn parse_switch(text: &str) -> Option<bool> {
    match text.trim() {
        "on" | "true" | "yes" => Some(true),
        "off" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// Named parameters, in the order in which they were given.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Params(Vec<(String, ParamValue)>);

impl Params {
    /// No parameter: every default.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The same parameters and one more.
    #[must_use]
    pub fn with(mut self, name: &str, value: ParamValue) -> Self {
        self.set(name, value);
        self
    }

    /// Adds a parameter at the end. Giving one twice is an error, which [`Settings::resolve`] reports.
    pub fn set(&mut self, name: &str, value: ParamValue) {
        self.0.push((name.to_owned(), value));
    }

    /// The value given under a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ParamValue> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// All parameters in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ParamValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// True where none is given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the parameter `name` with the value that `text` writes, by the table `docs`.
    ///
    /// # Errors
    /// [`ParamError::UnknownParameter`], [`ParamError::WrongKind`] or [`ParamError::OutOfRange`].
    pub fn parse_and_set(&mut self, docs: &[ParamDoc], name: &str, text: &str) -> Result<(), ParamError> {
        let value = find_doc(docs, name)?.kind.parse(name, text)?;
        self.set(name, value);
        Ok(())
    }
}

fn find_doc<'a>(docs: &'a [ParamDoc], name: &str) -> Result<&'a ParamDoc, ParamError> {
    docs.iter().find(|doc| doc.name == name).ok_or_else(|| {
        let names: Vec<&str> = docs.iter().map(|doc| doc.name).collect();
        let allowed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        ParamError::UnknownParameter { name: name.to_owned(), allowed }
    })
}

/// Parameters that have been checked against a table, with every default filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings(Vec<(&'static str, ParamValue)>);

impl Settings {
    /// Checks `params` against the table `docs` and fills in its defaults.
    ///
    /// # Errors
    /// [`ParamError::UnknownParameter`], [`ParamError::Duplicate`], [`ParamError::WrongKind`] or
    /// [`ParamError::OutOfRange`].
    pub fn resolve(params: &Params, docs: &[ParamDoc]) -> Result<Self, ParamError> {
        for (i, (name, value)) in params.0.iter().enumerate() {
            find_doc(docs, name)?.kind.check(name, value)?;
            if params.0[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(ParamError::Duplicate { name: name.clone() });
            }
        }
        let value_of = |doc: &ParamDoc| match params.get(doc.name) {
            Some(value) => Ok((doc.name, value.clone())),
            None => doc.kind.parse(doc.name, doc.default).map(|value| (doc.name, value)),
        };
        docs.iter().map(value_of).collect::<Result<_, _>>().map(Self)
    }

    /// All settings in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &ParamValue)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    fn get(&self, name: &str) -> Option<&ParamValue> {
        let found = self.0.iter().find(|(n, _)| *n == name).map(|(_, value)| value);
        debug_assert!(found.is_some(), "{name} is not in the controller's table");
        found
    }

    /// A parameter that the table calls a duration.
    #[must_use]
    pub fn duration(&self, name: &str) -> Duration {
        if let Some(ParamValue::Duration(span)) = self.get(name) { *span } else { Duration::ZERO }
    }

    /// A parameter that the table calls a rate.
    #[must_use]
    pub fn rate(&self, name: &str) -> Rate {
        if let Some(ParamValue::Rate(rate)) = self.get(name) { *rate } else { Rate::default() }
    }

    /// A parameter that the table calls an amount of data.
    #[must_use]
    pub fn bytes(&self, name: &str) -> u64 {
        if let Some(ParamValue::Bytes(bytes)) = self.get(name) { bytes.0 } else { 0 }
    }

    /// A parameter that the table calls a number or a count.
    #[must_use]
    pub fn number(&self, name: &str) -> f64 {
        if let Some(ParamValue::Number(number)) = self.get(name) { *number } else { 0.0 }
    }

    /// A parameter that the table calls a count.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        self.number(name) as usize
    }

    /// A parameter that the table calls a switch.
    #[must_use]
    pub fn switch(&self, name: &str) -> bool {
        matches!(self.get(name), Some(ParamValue::Switch(true)))
    }

    /// A parameter that the table calls a word.
    #[must_use]
    pub fn word(&self, name: &str) -> &str {
        if let Some(ParamValue::Word(word)) = self.get(name) { word } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCS: &[ParamDoc] = &[
        ParamDoc {
            name: "target",
            kind: ParamKind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(1) },
            default: "100 ms",
            doc: "",
        },
        ParamDoc { name: "slots", kind: ParamKind::Count { min: 1, max: 60 }, default: "10", doc: "" },
        ParamDoc { name: "filter", kind: ParamKind::Word(&["min", "ewma"]), default: "min", doc: "" },
        ParamDoc { name: "hold", kind: ParamKind::Switch, default: "on", doc: "" },
    ];

    #[test]
    fn defaults_fill_what_is_not_given() {
        let given = Params::new().with("target", ParamValue::Duration(Duration::from_millis(25)));
        let settings = Settings::resolve(&given, DOCS).unwrap();
        assert_eq!(settings.duration("target"), Duration::from_millis(25));
        assert_eq!(
            (settings.count("slots"), settings.word("filter"), settings.switch("hold")),
            (10, "min", true)
        );
    }

    #[test]
    fn each_mistake_has_its_error_and_says_what_is_allowed() {
        let resolve = |name, value| Settings::resolve(&Params::new().with(name, value), DOCS).unwrap_err();
        let unknown = resolve("traget", ParamValue::Number(1.0));
        assert!(matches!(unknown, ParamError::UnknownParameter { .. }));
        assert!(unknown.to_string().contains("target, slots, filter, hold"), "{unknown}");
        let wrong = resolve("target", ParamValue::Number(25.0));
        assert!(matches!(wrong, ParamError::WrongKind { .. }));
        assert!(wrong.to_string().contains("a time from 1 ms to 1 s"), "{wrong}");
        for (name, value) in [
            ("slots", ParamValue::Number(2.5)),
            ("slots", ParamValue::Number(61.0)),
            ("slots", ParamValue::Number(-1.0)),
            ("slots", ParamValue::Number(f64::NAN)),
            ("filter", ParamValue::Word("max".into())),
            ("target", ParamValue::Duration(Duration::from_secs(2))),
        ] {
            assert!(matches!(resolve(name, value), ParamError::OutOfRange { .. }), "{name}");
        }
        let twice =
            Params::new().with("hold", ParamValue::Switch(true)).with("hold", ParamValue::Switch(false));
        assert!(matches!(Settings::resolve(&twice, DOCS), Err(ParamError::Duplicate { .. })));
    }

    #[test]
    fn texts_are_read_by_the_table() {
        let mut params = Params::new();
        params.parse_and_set(DOCS, "target", "60 ms").unwrap();
        params.parse_and_set(DOCS, "hold", "off").unwrap();
        assert_eq!(params.get("target"), Some(&ParamValue::Duration(Duration::from_millis(60))));
        assert!(matches!(params.parse_and_set(DOCS, "target", "60"), Err(ParamError::WrongKind { .. })));
        assert!(matches!(params.parse_and_set(DOCS, "slots", "99"), Err(ParamError::OutOfRange { .. })));
        assert!(matches!(params.parse_and_set(DOCS, "hold", "maybe"), Err(ParamError::WrongKind { .. })));
    }
}
