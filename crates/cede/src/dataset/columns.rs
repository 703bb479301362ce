//! Rows, gathered in columns, and the Parquet file that they go to.

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Rows that are gathered before they are written.
const GROUP_ROWS: usize = 1 << 16;

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

/// Rows that wait to be written.
#[derive(Default)]
pub struct Rows {
    columns: Vec<Column>,
    len: usize,
}

/// Begins a file with the columns of a schema, as Parquet writes one.
pub fn begin(file: File, schema: &str) -> Result<SerializedFileWriter<File>, ParquetError> {
    let schema = Arc::new(parse_message_type(schema)?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("cede ", env!("CARGO_PKG_VERSION")).to_string())
        .build();
    SerializedFileWriter::new(file, schema, Arc::new(properties))
}

/// The system's own error, where it is one.
pub fn of_system(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}

impl Rows {
    /// As many as are written together.
    pub const fn is_group(&self) -> bool {
        self.len >= GROUP_ROWS
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a row.
    pub fn push(&mut self, row: impl IntoIterator<Item = Value>) {
        for (k, value) in row.into_iter().enumerate() {
            if k == self.columns.len() {
                self.columns.push(Column::of(&value));
            }
            self.columns[k].push(value);
        }
        self.len += 1;
    }

    /// Writes all of them as a group.
    pub fn write(&self, file: &mut SerializedFileWriter<File>) -> Result<(), ParquetError> {
        let mut group = file.next_row_group()?;
        for column in &self.columns {
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
