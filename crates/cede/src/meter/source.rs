//! Captures from files and pipes, plain or compressed, read and unpacked ahead on all processors.

use super::order::{first_ns, sort_known};
use super::unpack::decompressed;
use crate::failure::Failure;
use crate::progress::{self, Pace, StatusLine};
use cede_meter::{Config, Feed, FeedError, FilterError, Meter, Selection};
use cede_wire::pcap::Record;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    let progress = Arc::new(Progress::of(files));
    let (meter, damage) = match <[Source; 1]>::try_from(open_in_order(files)?) {
        Ok([source]) => {
            let (meter, damage) = read_one(source, config, &progress);
            (meter, Vec::from_iter(damage))
        }
        Err(sources) => one_behind_the_other(sources, config, &progress),
    };
    progress.status().end();
    Ok((meter, (!damage.is_empty()).then(|| damage.join("\nerror: "))))
}

/// Octets of a piece that is handed from who unpacks a file to who looks at its packets, and pieces that wait at most.
const PIECE_BYTES: usize = 1 << 18;
const PIECES_MAX: usize = 16;
/// Of the memory, the part that such pieces take at most.
const SHARE_AHEAD: usize = 16;

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

/// Packets are looked at one behind the other, whatever file they are in: an answer may be in another one than its question. The
/// files are read and unpacked ahead, one on each processor.
fn one_behind_the_other(
    sources: Vec<Source>,
    config: &Config,
    progress: &Arc<Progress>,
) -> (Meter, Vec<String>) {
    let ahead = std::thread::available_parallelism().map_or(1, usize::from).min(sources.len());
    let pieces = (config.memory_bytes / SHARE_AHEAD / PIECE_BYTES / ahead).clamp(1, PIECES_MAX);
    let (mut meter, mut damage) = (Meter::new(config.clone()), Vec::new());
    meter.reserve(ahead * (pieces + 1) * PIECE_BYTES);
    let (mut sources, mut under_way) = (sources.into_iter(), VecDeque::new());
    loop {
        let more = sources.by_ref().take(ahead - under_way.len());
        under_way.extend(more.map(|source| (source.path, unpacked_ahead(source.octets, pieces, progress))));
        let Some((path, octets)) = under_way.pop_front() else { break };
        let before = meter.counters().packets;
        let wrong = feed_octets(octets, &mut |record| meter.record(record), progress).err();
        damage.extend(wrong.map(|error| told(&path, &error, meter.counters().packets - before)));
        if crate::interrupt::is_asked() {
            break;
        }
    }
    (meter, damage)
}

/// What is inside of a file, read by a thread of its own up to so many pieces ahead.
fn unpacked_ahead(source: Box<dyn Read + Send>, pieces: usize, progress: &Arc<Progress>) -> Pieces {
    let (sender, receiver) = sync_channel(pieces);
    let progress = Arc::clone(progress);
    std::thread::spawn(move || {
        let counted = Box::new(Counted { source, progress: &progress });
        let mut octets = match decompressed(counted) {
            Ok(octets) => octets,
            Err(error) => return drop(sender.send(Err(error))),
        };
        loop {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            let read = octets.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece);
            // What was read before it went wrong counts; nobody may want any more.
            let is_over = read.is_err() || piece.is_empty();
            if (!piece.is_empty() && sender.send(Ok(piece)).is_err()) || is_over {
                return drop(read.map_err(|error| sender.send(Err(error))));
            }
        }
    });
    Pieces { receiver, piece: io::Cursor::default() }
}

/// Octets that come in pieces from another thread.
struct Pieces {
    receiver: Receiver<io::Result<Vec<u8>>>,
    piece: io::Cursor<Vec<u8>>,
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.piece.read(out)?;
        if read > 0 {
            return Ok(read);
        }
        match self.receiver.recv() {
            Ok(piece) => {
                self.piece = io::Cursor::new(piece?);
                self.piece.read(out)
            }
            // There is no more.
            Err(_) => Ok(0),
        }
    }
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
    feed_octets(decompressed(Box::new(Counted { source, progress }))?, take, progress)
}

fn feed_octets(
    octets: impl Read,
    take: &mut impl FnMut(&Record<'_>),
    progress: &Progress,
) -> Result<(), FeedError> {
    let mut feed = Feed::new(octets);
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
