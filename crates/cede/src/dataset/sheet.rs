//! Tables of a run, each in one Parquet file beside the others (`cede run --format parquet`).

use super::columns::{Rows, Value, begin, of_system};
use cede_lab::record::{self, Column, Format, Kind, OtherFormat};
use parquet::file::writer::SerializedFileWriter;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io;
use std::path::Path;

/// Tables of a run as Parquet. Times are seconds since the beginning of the run; what is not known is null.
pub const PARQUET: Format = Format::Other(OtherFormat { extension: "parquet", create });

/// A file in the making.
struct Sheet {
    rows: Rows,
    /// None once it is whole.
    writer: Option<SerializedFileWriter<File>>,
}

fn create(path: &Path, columns: &[Column]) -> io::Result<Box<dyn record::Sheet>> {
    let writer = begin(File::create(path)?, &schema(columns)).map_err(of_system)?;
    Ok(Box::new(Sheet { rows: Rows::default(), writer: Some(writer) }))
}

/// Columns as Parquet writes a schema.
fn schema(columns: &[Column]) -> String {
    let mut text = "message rows {".to_string();
    for column in columns {
        let kind = match column.kind {
            Kind::Text => "REQUIRED BINARY",
            Kind::Time => "REQUIRED DOUBLE",
            Kind::Number => "OPTIONAL DOUBLE",
            Kind::Whole => "REQUIRED INT64",
        };
        let annotation = if column.kind == Kind::Text { " (UTF8)" } else { "" };
        // Writing into a string cannot fail.
        let _ = write!(text, " {kind} {}{annotation};", column.name);
    }
    text + " }"
}

impl Sheet {
    fn write(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.writer.as_mut().map_or(Ok(()), |writer| rows.write(writer)).map_err(of_system)
    }
}

impl record::Sheet for Sheet {
    fn push(&mut self, row: &[record::Value<'_>]) -> io::Result<()> {
        self.rows.push(row.iter().map(value));
        if self.rows.is_group() { self.write() } else { Ok(()) }
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.rows.is_empty() {
            self.write()?;
        }
        self.writer.take().map_or(Ok(()), |writer| writer.close().map(drop)).map_err(of_system)
    }
}

impl fmt::Debug for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sheet").finish_non_exhaustive()
    }
}

fn value(value: &record::Value<'_>) -> Value {
    match *value {
        record::Value::Text(text) => Value::Text(text.into()),
        record::Value::Time(at) => Value::Float(at.as_secs_f64()),
        record::Value::Number(number) => Value::Maybe(Some(number).filter(|number| number.is_finite())),
        // Counts of a simulation stay far below 2^63.
        record::Value::Whole(count) => Value::Int(i64::try_from(count).unwrap_or(i64::MAX)),
    }
}
