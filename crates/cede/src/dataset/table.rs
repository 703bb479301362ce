//! Tables in columns, and the files that they are written to.

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that are gathered before they are written.
const GROUP_ROWS: usize = 1 << 16;
/// Files that are open at a time, one for each date: a capture with arbitrary times has arbitrarily many.
const OPEN_MAX: usize = 32;

/// A value of a row.
pub enum Value {
    Int(i64),
    Float(f64),
    Maybe(Option<f64>),
    MaybeInt(Option<i64>),
    Text(ByteArray),
}

/// The values of a column.
enum Column {
    Int(Vec<i64>),
    Float(Vec<f64>),
    /// Those that are there, and for each row whether it is.
    Maybe(Vec<f64>, Vec<i16>),
    MaybeInt(Vec<i64>, Vec<i16>),
    Text(Vec<ByteArray>),
}

/// Rows of one date that wait to be written.
#[derive(Default)]
struct Rows {
    columns: Vec<Column>,
    len: usize,
}

/// A file in the making: it bears its name once it is whole.
struct Part {
    writer: SerializedFileWriter<File>,
    path: PathBuf,
}

/// A table in a folder of its own, with a folder for each date in it.
pub struct Table {
    folder: PathBuf,
    /// Columns as Parquet writes a schema.
    schema: String,
    /// What files of this run are called.
    name: String,
    waiting: HashMap<String, Rows>,
    open: HashMap<String, Part>,
    /// Files begun for each date.
    begun: HashMap<String, u32>,
}

impl Table {
    pub fn new(folder: PathBuf, schema: impl Into<String>, name: &str) -> Self {
        let (waiting, open, begun) = Default::default();
        Self { folder, schema: schema.into(), name: name.to_string(), waiting, open, begun }
    }

    /// Adds a row to what is of a date.
    pub fn push(&mut self, date: &str, row: impl IntoIterator<Item = Value>) -> Result<(), ParquetError> {
        if !self.waiting.contains_key(date) {
            if self.waiting.len() >= OPEN_MAX {
                self.finish()?;
            }
            self.waiting.insert(date.to_string(), Rows::default());
        }
        let Some(rows) = self.waiting.get_mut(date) else { return Ok(()) };
        rows.push(row);
        if rows.len < GROUP_ROWS {
            return Ok(());
        }
        let full = std::mem::take(rows);
        self.write(date, &full)
    }

    /// Writes what waits and gives all files their names.
    pub fn finish(&mut self) -> Result<(), ParquetError> {
        for (date, rows) in std::mem::take(&mut self.waiting) {
            if rows.len > 0 {
                self.write(&date, &rows)?;
            }
        }
        for (_, part) in self.open.drain() {
            part.writer.close()?;
            fs::rename(unfinished(&part.path), &part.path)?;
        }
        Ok(())
    }

    fn write(&mut self, date: &str, rows: &Rows) -> Result<(), ParquetError> {
        if !self.open.contains_key(date) {
            let part = self.begin(date)?;
            self.open.insert(date.to_string(), part);
        }
        let Some(part) = self.open.get_mut(date) else { return Ok(()) };
        let mut group = part.writer.next_row_group()?;
        for column in &rows.columns {
            let Some(mut writer) = group.next_column()? else { break };
            match column {
                Column::Int(values) => writer.typed::<Int64Type>().write_batch(values, None, None)?,
                Column::Float(values) => writer.typed::<DoubleType>().write_batch(values, None, None)?,
                Column::Maybe(values, there) => {
                    writer.typed::<DoubleType>().write_batch(values, Some(there), None)?
                }
                Column::MaybeInt(values, there) => {
                    writer.typed::<Int64Type>().write_batch(values, Some(there), None)?
                }
                Column::Text(values) => writer.typed::<ByteArrayType>().write_batch(values, None, None)?,
            };
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    fn begin(&mut self, date: &str) -> Result<Part, ParquetError> {
        let folder = self.folder.join(format!("date={date}"));
        fs::create_dir_all(&folder)?;
        let count = self.begun.entry(date.to_string()).or_insert(0);
        *count += 1;
        let more = if *count > 1 { format!("-{count}") } else { String::new() };
        let path = folder.join(format!("part-{}{more}.parquet", self.name));
        let schema = Arc::new(parse_message_type(&self.schema)?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("cede ", env!("CARGO_PKG_VERSION")).to_string())
            .build();
        let writer =
            SerializedFileWriter::new(File::create(unfinished(&path))?, schema, Arc::new(properties))?;
        Ok(Part { writer, path })
    }
}

/// Readers of data sets pass over names that begin with a dot.
fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.unfinished"))
}

impl Rows {
    fn push(&mut self, row: impl IntoIterator<Item = Value>) {
        for (k, value) in row.into_iter().enumerate() {
            if k == self.columns.len() {
                self.columns.push(Column::of(&value));
            }
            self.columns[k].push(value);
        }
        self.len += 1;
    }
}

impl Column {
    const fn of(value: &Value) -> Self {
        match value {
            Value::Int(_) => Self::Int(Vec::new()),
            Value::Float(_) => Self::Float(Vec::new()),
            Value::Maybe(_) => Self::Maybe(Vec::new(), Vec::new()),
            Value::MaybeInt(_) => Self::MaybeInt(Vec::new(), Vec::new()),
            Value::Text(_) => Self::Text(Vec::new()),
        }
    }

    fn push(&mut self, value: Value) {
        match (self, value) {
            (Self::Int(values), Value::Int(value)) => values.push(value),
            (Self::Float(values), Value::Float(value)) => values.push(value),
            (Self::Maybe(values, there), Value::Maybe(value)) => {
                values.extend(value);
                there.push(i16::from(value.is_some()));
            }
            (Self::MaybeInt(values, there), Value::MaybeInt(value)) => {
                values.extend(value);
                there.push(i16::from(value.is_some()));
            }
            (Self::Text(values), Value::Text(value)) => values.push(value),
            // Rows of a table are all made by one function.
            _ => unreachable!("a column changes its type"),
        }
    }
}

/// What a table's errors are to the system.
pub fn kind(error: &ParquetError) -> io::ErrorKind {
    match error {
        ParquetError::External(source) => {
            source.downcast_ref::<io::Error>().map_or(io::ErrorKind::Other, io::Error::kind)
        }
        _ => io::ErrorKind::Other,
    }
}
