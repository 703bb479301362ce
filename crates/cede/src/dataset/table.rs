//! Tables in folders by date, and the files that they are written to.

use super::columns::{Rows, Value, begin};
use crate::whole::unfinished;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// Files that are open at a time, one for each date: a capture with arbitrary times has arbitrarily many.
const OPEN_MAX: usize = 32;

/// A file in the making: it bears its name once it is whole, and where it does not become so, nothing of it stays.
struct Part {
    writer: SerializedFileWriter<File>,
    // Behind the writer, which has it open.
    draft: Draft,
}

/// What a file is until then, under the name that it will have.
struct Draft(PathBuf);

impl Draft {
    fn complete(self) -> io::Result<()> {
        fs::rename(unfinished(&self.0), &self.0)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Nothing is there that has got its name.
        let _ = fs::remove_file(unfinished(&self.0));
    }
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
        if !rows.is_group() {
            return Ok(());
        }
        let full = std::mem::take(rows);
        self.write(date, &full)
    }

    /// Writes what waits and gives all files their names.
    fn finish(&mut self) -> Result<(), ParquetError> {
        for (date, rows) in std::mem::take(&mut self.waiting) {
            if !rows.is_empty() {
                self.write(&date, &rows)?;
            }
        }
        for (_, part) in self.open.drain() {
            part.writer.close()?;
            part.draft.complete()?;
        }
        Ok(())
    }

    /// Ends the table: writes what waits, and removes what an earlier run over the same captures had rows for and this one,
    /// asked for less, has not.
    pub fn conclude(&mut self) -> Result<(), ParquetError> {
        self.finish()?;
        let Ok(folders) = fs::read_dir(&self.folder) else { return Ok(()) };
        for folder in folders {
            let folder = folder?;
            let name = folder.file_name();
            let Some(date) = name.to_str().and_then(|name| name.strip_prefix("date=")) else { continue };
            for file in fs::read_dir(folder.path())? {
                let file = file?;
                if file.file_name().to_str().is_some_and(|name| self.is_stale(date, name)) {
                    fs::remove_file(file.path())?;
                }
            }
        }
        Ok(())
    }

    /// Whether a file of this run's name is none that it has written.
    fn is_stale(&self, date: &str, name: &str) -> bool {
        let more =
            name.strip_prefix(&format!("part-{}", self.name)).and_then(|rest| rest.strip_suffix(".parquet"));
        let number = match more {
            None => return false,
            Some("") => Some(1),
            Some(more) => more.strip_prefix('-').and_then(|number| number.parse().ok()),
        };
        number.is_some_and(|number: u32| number > self.begun.get(date).copied().unwrap_or(0))
    }

    fn write(&mut self, date: &str, rows: &Rows) -> Result<(), ParquetError> {
        if !self.open.contains_key(date) {
            let part = self.begin(date)?;
            self.open.insert(date.to_string(), part);
        }
        match self.open.get_mut(date) {
            Some(part) => rows.write(&mut part.writer),
            None => Ok(()),
        }
    }

    fn begin(&mut self, date: &str) -> Result<Part, ParquetError> {
        let folder = self.folder.join(format!("date={date}"));
        fs::create_dir_all(&folder)?;
        let count = self.begun.entry(date.to_string()).or_insert(0);
        *count += 1;
        let more = if *count > 1 { format!("-{count}") } else { String::new() };
        let path = folder.join(format!("part-{}{more}.parquet", self.name));
        let (file, draft) = (File::create(unfinished(&path))?, Draft(path));
        Ok(Part { writer: begin(file, &self.schema)?, draft })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_files_that_cannot_be_finished_nothing_stays() {
        let folder = std::env::temp_dir().join(format!("cede-table-{}", std::process::id()));
        let dates = ["2026-01-01", "2026-01-02"];
        let begun = || {
            let mut table = Table::new(folder.clone(), "message t { REQUIRED INT64 n; }", "run");
            dates.iter().for_each(|date| table.push(date, [Value::Int(1)]).unwrap());
            table
        };
        let files = |date: &str| fs::read_dir(folder.join(format!("date={date}"))).unwrap().count();
        begun().conclude().unwrap();
        assert_eq!(dates.map(files), [1, 1]);
        // Folders have the names that the files are to get.
        for date in dates {
            let path = folder.join(format!("date={date}/part-run.parquet"));
            fs::remove_file(&path).unwrap();
            fs::create_dir(path).unwrap();
        }
        begun().conclude().unwrap_err();
        assert_eq!(dates.map(files), [1, 1], "the folders alone");
        fs::remove_dir_all(folder).unwrap();
    }
}
