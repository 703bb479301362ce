//! Tables row by row, as comma-separated values and as JSON lines.

use super::output::{Output, RecordError};
use cede_units::Instant;
use std::fmt::Write;
use std::path::Path;

/// The form of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Comma-separated values (RFC 4180) with a line of headings; what is not known is an empty field.
    Csv,
    /// A JSON object per line; what is not known is `null`.
    JsonLines,
}

impl Format {
    const fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
        }
    }
}

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Text(&'a str),
    /// In seconds with nine decimals.
    Time(Instant),
    /// With up to six decimals; not known where it is not finite.
    Number(f64),
    Whole(u64),
}

/// A table in one file per format.
#[derive(Debug)]
pub(super) struct Rows {
    columns: &'static [&'static str],
    files: Vec<(Format, Output)>,
    /// Scratch: the row in the making.
    line: String,
}

impl Rows {
    /// Opens `STEM.csv`, `STEM.jsonl` or both.
    pub fn create(
        folder: &Path,
        stem: &str,
        columns: &'static [&'static str],
        formats: &[Format],
    ) -> Result<Self, RecordError> {
        let open = |&format: &Format| {
            let mut output = Output::create(folder, &format!("{stem}.{}", format.extension()))?;
            if format == Format::Csv {
                output.write(format!("{}\n", columns.join(",")).as_bytes());
            }
            Ok((format, output))
        };
        let files = formats.iter().map(open).collect::<Result<_, RecordError>>()?;
        Ok(Self { columns, files, line: String::new() })
    }

    pub fn push(&mut self, values: &[Value<'_>]) {
        for (format, output) in &mut self.files {
            self.line.clear();
            match format {
                Format::Csv => put_csv(&mut self.line, values),
                Format::JsonLines => put_json(&mut self.line, self.columns, values),
            }
            output.write(self.line.as_bytes());
        }
    }

    pub fn has_failed(&self) -> bool {
        self.files.iter().any(|(_, output)| output.has_failed())
    }

    pub fn finish(&mut self) -> Result<Vec<String>, RecordError> {
        self.files.iter_mut().map(|(_, output)| output.finish()).collect()
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

fn put_json(line: &mut String, columns: &[&str], values: &[Value<'_>]) {
    for (index, (column, value)) in columns.iter().zip(values).enumerate() {
        let _ = write!(line, "{}\"{column}\":", if index == 0 { '{' } else { ',' });
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
        put_json(&mut line, &["t", "s", "x", "y", "z", "n"], &VALUES);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["s"], "a,\"b\"");
        assert_eq!((value["t"].as_f64(), value["z"].as_f64()), (Some(1.000_000_007), None));
        assert_eq!(value["n"].as_u64(), Some(u64::MAX));
    }
}
