//! Captures from files and pipes, plain or compressed, side by side on all processors.

use super::order::{first_ns, sort_known};
use super::unpack::decompressed;
use crate::failure::Failure;
use crate::progress::{self, Pace, StatusLine};
use cede_meter::{Config, Feed, FeedError, FilterError, Meter, Selection};
use cede_wire::pcap::Record;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is read of one file, and what is wrong with it.
type Read1 = (Meter, Option<String>);

/// What `--filter`, `--since` and `--until` ask for.
pub fn selection(
    filter: Option<&str>,
    since: Option<cede_units::Duration>,
    until: Option<cede_units::Duration>,
) -> Result<Selection, Failure> {
    let wrong = |error: FilterError| Failure::Usage(format!("--filter: {error}"));
    Ok(Selection {
        filter: filter.map(str::parse).transpose().map_err(wrong)?,
        since_ns: since.map_or(0, cede_units::Duration::as_nanos),
        until_ns: until.map_or(u64::MAX, cede_units::Duration::as_nanos),
        ..Selection::default()
    })
}

/// Hands the packets of captures over, one file behind the other in the order of their first packets; what is wrong with any is told in the end.
pub fn each(files: &[PathBuf], mut take: impl FnMut(&Record<'_>)) -> Result<Option<String>, Failure> {
    let sources = open_in_order(files)?;
    let progress = Progress::of(files);
    let mut damage = Vec::new();
    for Source { path, octets, .. } in sources {
        let mut packets = 0_u64;
        let take = &mut |record: &Record<'_>| {
            packets += 1;
            take(record);
        };
        damage.extend(feed(octets, take, &progress).err().map(|error| told(&path, &error, packets)));
    }
    progress.status().end();
    Ok((!damage.is_empty()).then(|| damage.join("\nerror: ")))
}

/// Reads captures, the later ones behind the earlier ones, in whatever order they are named; what is wrong with any is told beside what was found.
pub fn read(files: &[PathBuf], config: &Config) -> Result<(Meter, Option<String>), Failure> {
    let progress = Progress::of(files);
    let (meter, damage) = match <[Source; 1]>::try_from(open_in_order(files)?) {
        Ok([source]) => {
            let (meter, damage) = read_one(source, config, &progress);
            (meter, Vec::from_iter(damage))
        }
        Err(sources) => side_by_side(sources, config, &progress),
    };
    progress.status().end();
    Ok((meter, (!damage.is_empty()).then(|| damage.join("\nerror: "))))
}

/// Files that were read, put behind each other in their order.
struct Merge {
    whole: Meter,
    merged: usize,
    waiting: BTreeMap<usize, Read1>,
    damage: Vec<String>,
}

impl Merge {
    fn take(&mut self, k: usize, file: Read1) {
        self.waiting.insert(k, file);
        while let Some((meter, damage)) = self.waiting.remove(&self.merged) {
            self.whole.append(&meter);
            self.damage.extend(damage);
            self.merged += 1;
        }
    }
}

/// Of the memory, the part that is for files that are being read or wait for an earlier one: what a meter alone has for its
/// report, which is made when no file is left.
const SHARE_AHEAD: (usize, usize) = (3, 16);

/// A capture that is to be read.
struct Source {
    path: PathBuf,
    octets: Box<dyn Read + Send>,
    /// When it begins, where that is known beforehand.
    first_ns: Option<u64>,
}

/// One alone is read as it comes; where there are several, those that begin earlier come first.
fn open_in_order(files: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let source = |path: &PathBuf| {
        let octets = open(path)?;
        let first_ns = if files.len() > 1 { first_ns(path) } else { None };
        Ok(Source { path: path.clone(), octets, first_ns })
    };
    let mut sources = files.iter().map(source).collect::<Result<Vec<_>, Failure>>()?;
    sort_known(&mut sources, |source| source.first_ns);
    Ok(sources)
}

/// Each worker takes the next file until there is none, and waits where it would be too far ahead.
fn side_by_side(sources: Vec<Source>, config: &Config, progress: &Progress) -> (Meter, Vec<String>) {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(sources.len());
    // All times are counted from the first packet of all.
    let origin_ns = sources.first().and_then(|source| source.first_ns);
    let selection = Selection { origin_ns, ..config.selection.clone() };
    let memory_ahead = config.memory_bytes / SHARE_AHEAD.1 * SHARE_AHEAD.0;
    let whole = Meter::new(Config { selection: selection.clone(), ..config.clone() });
    // These need none for a report.
    let memory_bytes = memory_ahead / workers * SHARE_AHEAD.1 / (SHARE_AHEAD.1 - SHARE_AHEAD.0);
    let config = Config { memory_bytes, selection, ..config.clone() };
    let merge = Mutex::new(Merge { whole, merged: 0, waiting: BTreeMap::new(), damage: Vec::new() });
    let (moved, queue) = (Condvar::new(), Mutex::new(sources.into_iter().enumerate()));
    let work = || {
        loop {
            let Some((k, source)) = lock(&queue).next() else { break };
            let too_far = |merge: &mut Merge| k >= merge.merged + workers;
            drop(moved.wait_while(lock(&merge), too_far).unwrap_or_else(PoisonError::into_inner));
            let file = read_one(source, &config, progress);
            lock(&merge).take(k, file);
            moved.notify_all();
        }
    };
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let Merge { mut whole, damage, .. } = merge.into_inner().unwrap_or_else(PoisonError::into_inner);
    // What the files took may not have gone back to the system.
    whole.reserve(memory_ahead);
    (whole, damage)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_one(source: Source, config: &Config, progress: &Progress) -> Read1 {
    let mut meter = Meter::new(config.clone());
    let damage = feed(source.octets, &mut |record| meter.record(record), progress).err();
    let damage = damage.map(|error| told(&source.path, &error, meter.counters().packets));
    (meter, damage)
}

/// What is wrong with a file of which so many packets were read.
fn told(path: &Path, error: &FeedError, packets: u64) -> String {
    let kept = match error {
        _ if packets == 0 => "",
        FeedError::Damaged(_) => "; all the rest counts",
        _ => "; what came before counts",
    };
    format!("{}: {error}{kept}", path.display())
}

fn feed(
    source: Box<dyn Read + Send>,
    take: &mut impl FnMut(&Record<'_>),
    progress: &Progress,
) -> Result<(), FeedError> {
    let counted = Counted { source, progress };
    let mut feed = Feed::new(decompressed(Box::new(counted))?);
    while feed.step_into(take)? {
        progress.show();
        if crate::interrupt::is_asked() {
            return Err(FeedError::Io(io::Error::new(ErrorKind::Interrupted, "interrupted")));
        }
    }
    Ok(())
}

fn open(path: &Path) -> Result<Box<dyn Read + Send>, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    let told = |error: io::Error| {
        Failure::of_system(format!("cannot read {}: {error}", path.display()), error.kind())
    };
    let file = File::open(path).map_err(told)?;
    if file.metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(Failure::Usage(format!("{} is a folder; name the captures in it", path.display())));
    }
    Ok(Box::new(file))
}

/// Counts what was read for the line of progress.
struct Counted<'a> {
    source: Box<dyn Read + Send>,
    progress: &'a Progress,
}

impl Read for Counted<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(out)?;
        self.progress.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// How far all files together have come, where there is a terminal.
struct Progress {
    /// Octets of all files; zero where nobody knows.
    total: u64,
    read: AtomicU64,
    status: Mutex<StatusLine>,
}

impl Progress {
    fn of(files: &[PathBuf]) -> Self {
        let total = files.iter().map(|path| std::fs::metadata(path).map_or(0, |meta| meta.len())).sum();
        let status = Mutex::new(StatusLine::begin(Pace::patient(Duration::from_millis(200)), None));
        Self { total, read: AtomicU64::new(0), status }
    }

    fn status(&self) -> MutexGuard<'_, StatusLine> {
        lock(&self.status)
    }

    fn show(&self) {
        self.status().show(|elapsed_s| self.line(elapsed_s));
    }

    fn line(&self, elapsed_s: f64) -> String {
        let read = self.read.load(Ordering::Relaxed) as f64;
        let rate = read / elapsed_s;
        let speed = format!("{:.0} MB read, {:.0} MB/s", read / 1e6, rate / 1e6);
        if self.total == 0 || read > self.total as f64 {
            return speed;
        }
        let left_s = (self.total as f64 - read) / rate.max(1.0);
        format!(
            "{}  {speed}, about {} left",
            progress::bar(read / self.total as f64),
            progress::clock(left_s)
        )
    }
}
