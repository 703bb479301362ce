//! Tables row by row, as comma-separated values, as JSON lines, and in forms that others write ([`Sheet`]).

use super::output::{Output, RecordError};
use cede_units::Instant;
use std::fmt::{self, Write};
use std::io;
use std::path::{Path, PathBuf};

/// The form of a table.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// Comma-separated values (RFC 4180) with a line of headings; what is not known is an empty field.
    Csv,
    /// A JSON object per line; what is not known is `null`.
    JsonLines,
    /// What somebody else writes: so that this crate needs no library for it.
    Other(OtherFormat),
}

/// A form of tables that somebody else writes.
#[derive(Clone, Copy, Debug)]
pub struct OtherFormat {
    /// What ends the names of its files, without the dot.
    pub extension: &'static str,
    /// Begins a file that is not there, or anew.
    pub create: CreateSheet,
}

/// Begins a table at a path, with these columns.
pub type CreateSheet = fn(&Path, &[Column]) -> io::Result<Box<dyn Sheet>>;

/// A table in the making, in somebody else's form. After an error nothing more is handed to it.
pub trait Sheet: fmt::Debug {
    /// Adds a row, whose values are of the columns' kinds.
    ///
    /// # Errors
    /// What the system says.
    fn push(&mut self, row: &[Value<'_>]) -> io::Result<()>;

    /// Writes out the rest; nothing follows.
    ///
    /// # Errors
    /// What the system says.
    fn finish(&mut self) -> io::Result<()>;
}

/// A column of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name, with the unit at its end.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// What it says, in a sentence.
    pub meaning: &'static str,
}

/// What the values of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Words.
    Text,
    /// Times since the beginning of the run, in seconds.
    Time,
    /// Numbers, some of which may not be known.
    Number,
    /// Counts.
    Whole,
}

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Words.
    Text(&'a str),
    /// In seconds with nine decimals.
    Time(Instant),
    /// With up to six decimals; not known where it is not finite.
    Number(f64),
    /// A count.
    Whole(u64),
}

pub(super) const fn text(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Text, meaning }
}

pub(super) const fn time(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Time, meaning }
}

pub(super) const fn number(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Number, meaning }
}

pub(super) const fn whole(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Whole, meaning }
}

/// A table in one form.
#[derive(Debug)]
enum File {
    Csv(Output),
    JsonLines(Output),
    Other(OtherFile),
}

/// A file in somebody else's form. After the first error nothing more is tried, as with [`Output`].
#[derive(Debug)]
struct OtherFile {
    name: String,
    path: PathBuf,
    sheet: Box<dyn Sheet>,
    error: Option<io::Error>,
}

/// A table in one file per format.
#[derive(Debug)]
pub(super) struct Rows {
    columns: &'static [Column],
    files: Vec<File>,
    /// Scratch: the row in the making.
    line: String,
}

impl Rows {
    /// Opens `STEM.csv`, `STEM.jsonl` and so on.
    pub fn create(
        folder: &Path,
        stem: &str,
        columns: &'static [Column],
        formats: &[Format],
    ) -> Result<Self, RecordError> {
        let open = |format: &Format| File::create(folder, stem, columns, *format);
        let files = formats.iter().map(open).collect::<Result<_, RecordError>>()?;
        Ok(Self { columns, files, line: String::new() })
    }

    pub fn push(&mut self, values: &[Value<'_>]) {
        for file in &mut self.files {
            self.line.clear();
            match file {
                File::Csv(output) => {
                    put_csv(&mut self.line, values);
                    output.write(self.line.as_bytes());
                }
                File::JsonLines(output) => {
                    put_json(&mut self.line, self.columns, values);
                    output.write(self.line.as_bytes());
                }
                File::Other(other) => other.push(values),
            }
        }
    }

    pub fn has_failed(&self) -> bool {
        self.files.iter().any(|file| match file {
            File::Csv(output) | File::JsonLines(output) => output.has_failed(),
            File::Other(other) => other.error.is_some(),
        })
    }

    pub fn finish(&mut self) -> Result<Vec<String>, RecordError> {
        let finish = |file: &mut File| match file {
            File::Csv(output) | File::JsonLines(output) => output.finish(),
            File::Other(other) => other.finish(),
        };
        self.files.iter_mut().map(finish).collect()
    }
}

impl File {
    fn create(
        folder: &Path,
        stem: &str,
        columns: &'static [Column],
        format: Format,
    ) -> Result<Self, RecordError> {
        match format {
            Format::Csv => {
                let mut output = Output::create(folder, &format!("{stem}.csv"))?;
                let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
                output.write(format!("{}\n", names.join(",")).as_bytes());
                Ok(Self::Csv(output))
            }
            Format::JsonLines => Ok(Self::JsonLines(Output::create(folder, &format!("{stem}.jsonl"))?)),
            Format::Other(OtherFormat { extension, create }) => {
                let name = format!("{stem}.{extension}");
                let path = folder.join(&name);
                let sheet =
                    create(&path, columns).map_err(|error| RecordError::new("create", &path, error))?;
                Ok(Self::Other(OtherFile { name, path, sheet, error: None }))
            }
        }
    }
}

impl OtherFile {
    fn push(&mut self, row: &[Value<'_>]) {
        if self.error.is_none() {
            self.error = self.sheet.push(row).err();
        }
    }

    fn finish(&mut self) -> Result<String, RecordError> {
        let outcome = match self.error.take() {
            Some(error) => Err(error),
            None => self.sheet.finish(),
        };
        outcome.map_err(|error| RecordError::new("write", &self.path, error))?;
        Ok(self.name.clone())
    }
}

fn put_csv(line: &mut String, values: &[Value<'_>]) {
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            line.push(',');
        }
        match value {
            Value::Text(text) if text.contains([',', '"', '\n', '\r']) => {
                // Writing into a string cannot fail.
                let _ = write!(line, "\"{}\"", text.replace('"', "\"\""));
            }
            Value::Text(text) => line.push_str(text),
            number => put_number(line, *number, ""),
        }
    }
    line.push('\n');
}

fn put_json(line: &mut String, columns: &[Column], values: &[Value<'_>]) {
    for (index, (column, value)) in columns.iter().zip(values).enumerate() {
        let _ = write!(line, "{}\"{}\":", if index == 0 { '{' } else { ',' }, column.name);
        match value {
            Value::Text(text) => line.push_str(&serde_json::Value::from(*text).to_string()),
            number => put_number(line, *number, "null"),
        }
    }
    line.push_str("}\n");
}

fn put_number(line: &mut String, value: Value<'_>, unknown: &str) {
    let _ = match value {
        Value::Time(at) => {
            write!(line, "{}.{:09}", at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000)
        }
        Value::Whole(number) => write!(line, "{number}"),
        Value::Number(number) if number.is_finite() => {
            let start = line.len();
            let written = write!(line, "{number:.6}");
            let kept = line[start..].trim_end_matches('0').trim_end_matches('.').len();
            line.truncate(start + kept);
            written
        }
        Value::Number(_) | Value::Text(_) => write!(line, "{unknown}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [Value<'static>; 6] = [
        Value::Time(Instant::from_nanos(1_000_000_007)),
        Value::Text("a,\"b\""),
        Value::Number(10.25),
        Value::Number(300.0),
        Value::Number(f64::NAN),
        Value::Whole(u64::MAX),
    ];

    #[test]
    fn csv_quotes_and_leaves_the_unknown_empty() {
        let mut line = String::new();
        put_csv(&mut line, &VALUES);
        assert_eq!(line, "1.000000007,\"a,\"\"b\"\"\",10.25,300,,18446744073709551615\n");
    }

    #[test]
    fn json_lines_parse() {
        let mut line = String::new();
        let columns =
            [time("t", ""), text("s", ""), number("x", ""), number("y", ""), number("z", ""), whole("n", "")];
        put_json(&mut line, &columns, &VALUES);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["s"], "a,\"b\"");
        assert_eq!((value["t"].as_f64(), value["z"].as_f64()), (Some(1.000_000_007), None));
        assert_eq!(value["n"].as_u64(), Some(u64::MAX));
    }
}
