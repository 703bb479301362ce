//! Data sets of Parquet files, in folders by table and date, to which any number of runs on any number of machines can add.
//!
//! Sources: the Apache Parquet format; folders in Hive's manner (`date=2026-01-31`), which Spark, Dask, DuckDB, Polars and
//! pyarrow all read as a column. `cede meter` and `cede inspect` fill them; the tables of one `cede run` are single files.

mod columns;
mod sheet;
mod table;

pub use columns::Value;
pub use sheet::PARQUET;
pub use table::Table;

use crate::captures::Captures;
use crate::failure::Failure;
use crate::screen;
use crate::veil::Veil;
use parquet::errors::ParquetError;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Microseconds of a day.
pub const DAY_US: u64 = 86_400_000_000;
/// Octets of a capture's front that it is known by.
const FRONT_BYTES: u64 = 1 << 16;

/// A data set could not be written.
pub fn unwritten(folder: &Path, error: ParquetError) -> Failure {
    let error = columns::of_system(error);
    Failure::of_system(format!("cannot write the data set {}: {error}", screen::named(folder)), error.kind())
}

/// What files of a run over these captures are called: after one of them, the first by its name, and a digest of all, so that whoever
/// reads the same captures again, in whatever order they are named, replaces the files, and nothing counts twice.
pub fn name_of_run(captures: &Captures, veil: &Veil) -> String {
    let mut captures: Vec<&PathBuf> = captures.files.iter().collect();
    captures.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    let first = captures.first().and_then(|path| path.file_name());
    let first = first.map_or_else(String::new, |name| veil.named(name.to_string_lossy()).into_owned());
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let stem: String = first.split('.').next().unwrap_or("").chars().filter(is_plain).take(40).collect();
    // Fixed keys: the same on every machine.
    let mut digests: Vec<u64> = captures.iter().map(|path| digest(path)).collect();
    digests.sort_unstable();
    let mut all = DefaultHasher::new();
    digests.hash(&mut all);
    format!("{stem}-{:016x}", all.finish())
}

/// What a capture is known by, wherever it lies: its name, its size and its first octets. What comes through a pipe is
/// like nothing else.
fn digest(path: &Path) -> u64 {
    let mut digest = DefaultHasher::new();
    path.file_name().hash(&mut digest);
    match File::open(path).and_then(|file| Ok((file.metadata()?, file))) {
        Ok((meta, file)) if meta.is_file() => {
            meta.len().hash(&mut digest);
            let mut front = Vec::new();
            let _ = file.take(FRONT_BYTES).read_to_end(&mut front);
            front.hash(&mut digest);
        }
        _ => (std::process::id(), std::time::SystemTime::now()).hash(&mut digest),
    }
    digest.finish()
}

/// The date of a time since 1970 in UTC, as ISO 8601 writes it. After Hinnant, "chrono-compatible low-level date
/// algorithms": years begin in March, so that leap days end them.
pub fn date(time_us: u64) -> String {
    let days = time_us / DAY_US + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + u64::from(month <= 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        for (days, wanted) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (19_782, "2024-02-29"),
            (20_514, "2026-03-02"),
        ] {
            assert_eq!(date(days * DAY_US + DAY_US - 1), wanted);
        }
    }
}
