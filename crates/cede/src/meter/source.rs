//! Captures from files and pipes, plain or compressed, on all processors: few octets are read and unpacked ahead, many looked at in parts.

use super::ahead::{Counted, PIECE_BYTES, PIECES_MAX, unpacked_ahead};
use super::lacking::{Lacking, asked};
use super::lots::{Lots, Sorter};
use super::order::{first_ns, limits, sort_known};
use super::together;
use super::unpack::decompressed;
use crate::captures::Captures;
use crate::failure::Failure;
use crate::progress::{self, Pace, StatusLine};
use crate::screen;
use cede_meter::{Config, Feed, FeedError, FilterError, Meter, Selection};
use cede_wire::pcap::Record;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What `--filter`, `--since` and `--until` ask for.
pub fn selection(
    filter: Option<&str>,
    since: Option<cede_units::Duration>,
    until: Option<cede_units::Duration>,
) -> Result<Selection, Failure> {
    let wrong = |error: FilterError| Failure::Usage(format!("--filter: {error}"));
    if let Some((since, until)) = since.zip(until).filter(|(since, until)| since >= until) {
        return Err(Failure::Usage(format!("--since: {since} is not before --until, {until}")));
    }
    Ok(Selection {
        filter: filter.map(str::parse).transpose().map_err(wrong)?,
        since_ns: since.map_or(0, cede_units::Duration::as_nanos),
        until_ns: until.map_or(u64::MAX, cede_units::Duration::as_nanos),
        ..Selection::default()
    })
}

/// Hands the packets of captures over, one file behind the other in the order of their first packets; what of any was not read is told in the end.
pub fn each(captures: &Captures, mut take: impl FnMut(&Record<'_>)) -> Result<Lacking, Failure> {
    let progress = Arc::new(Progress::of(captures));
    let sources = open_in_order(&captures.files)?;
    let mut lacking = Lacking::default();
    for source in sources {
        if crate::interrupt::is_asked() {
            lacking.give_up(&source.path);
            continue;
        }
        let mut packets = 0_u64;
        let take = &mut |record: &Record<'_>| {
            packets += 1;
            take(record);
        };
        let path = source.path.clone();
        lacking.note(&path, feed(source, take, &progress), packets);
    }
    progress.end();
    Ok(lacking)
}

/// Reads captures in the order of time, in whatever order they are named: the later ones behind the earlier ones, and those of the same time
/// together. What of any was not read is told beside what was found.
pub fn read(captures: &Captures, config: &Config) -> Result<(Meter, Lacking), Failure> {
    let progress = Arc::new(Progress::of(captures));
    let read = match <[Source; 1]>::try_from(open_in_order(&captures.files)?) {
        Ok([source]) => read_one(source, config, &progress),
        Err(sources) => read_several(sources, config, &progress),
    };
    progress.end();
    Ok(read)
}

/// Whether files overlap in time is seen where that begins, mostly at their front, and so is whether interfaces stand in lots: then all are
/// begun again. Pipes, which can be read once, are put where they belong from the start.
fn read_several(sources: Vec<Source>, config: &Config, progress: &Arc<Progress>) -> (Meter, Lacking) {
    let again: Vec<Source> = sources.iter().filter_map(Source::again).collect();
    if again.len() < sources.len() {
        progress.is_last.store(true, Ordering::Relaxed);
        return together::read(sources, config, progress);
    }
    let mut read = in_parts(sources, config, progress);
    if progress.is_vain() {
        let sources = again.iter().filter_map(Source::again).collect();
        progress.begin_again();
        let do_overlap = progress.overlap.load(Ordering::Relaxed);
        read = (if do_overlap { together::read } else { in_parts })(sources, config, progress);
        // What was in lots may have hidden it.
        if !do_overlap && progress.overlap.load(Ordering::Relaxed) {
            progress.begin_again();
            read = together::read(again, config, progress);
        }
    }
    read
}

/// Of the memory, the part that such pieces take at most.
const SHARE_AHEAD: usize = 16;
/// So many packets of a file from the time of the next one on are more than clocks that are set, and damage, put there.
const OVERLAP_PACKETS: u32 = 8;

/// Octets of files from which on a part of them is worth a processor of its own. Answers are not joined to questions across the
/// border of two parts, which are few and long.
const PART_BYTES: u64 = 64 << 20;
/// Of the memory, what parts take while they are read.
const SHARE_OF_PARTS: (usize, usize) = (5, 8);

/// A capture that is to be read.
pub(super) struct Source {
    pub path: PathBuf,
    /// A file is opened when it is its turn: there may be more of them than a process may have open.
    pipe: Option<Box<dyn Read + Send>>,
    /// Of the file; zero where nobody knows.
    bytes: u64,
    /// When it begins, where that is known beforehand.
    pub first_ns: Option<u64>,
    /// When the next one does, and a bit: what it shows from then on, both do.
    limit_ns: u64,
}

impl Source {
    pub(super) const fn is_pipe(&self) -> bool {
        self.pipe.is_some()
    }

    /// The same to be read once more, where that is possible.
    fn again(&self) -> Option<Self> {
        let Self { path, pipe, bytes, first_ns, limit_ns } = self;
        let is_file = pipe.is_none();
        let again = || Self {
            path: path.clone(),
            pipe: None,
            bytes: *bytes,
            first_ns: *first_ns,
            limit_ns: *limit_ns,
        };
        is_file.then(again)
    }

    pub(super) fn octets(self) -> io::Result<Box<dyn Read + Send>> {
        self.pipe.map_or_else(|| Ok(Box::new(File::open(self.path)?) as Box<dyn Read + Send>), Ok)
    }
}

/// One alone is read as it comes; where there are several, those that begin earlier come first.
fn open_in_order(files: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let source = |path: &PathBuf| {
        let pipe = open(path)?;
        let first_ns = if files.len() > 1 && pipe.is_none() { first_ns(path) } else { None };
        Ok(Source { path: path.clone(), pipe, bytes: file_bytes(path), first_ns, limit_ns: u64::MAX })
    };
    let mut sources = files.iter().map(source).collect::<Result<Vec<_>, Failure>>()?;
    sort_known(&mut sources, |source| source.first_ns);
    let limits = limits(sources.iter().map(|source| source.first_ns));
    sources.iter_mut().zip(limits).for_each(|(source, limit_ns)| source.limit_ns = limit_ns);
    Ok(sources)
}

fn file_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |meta| meta.len())
}

/// Files one behind the other; many octets in as many parts as there are processors, which are put behind each other when they are read.
fn in_parts(sources: Vec<Source>, config: &Config, progress: &Arc<Progress>) -> (Meter, Lacking) {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let total: u64 = sources.iter().map(|source| source.bytes).sum();
    let count = usize::try_from(total / PART_BYTES).unwrap_or(usize::MAX).min(processors);
    if count < 2 {
        return one_behind_the_other(sources, config, progress);
    }
    // All times are counted from the first packet of all.
    let origin_ns = sources.first().and_then(|source| source.first_ns);
    let selection = Selection { origin_ns, ..config.selection.clone() };
    let config = Config { selection, ..config.clone() };
    let memory_of_parts = config.memory_bytes / SHARE_OF_PARTS.1 * SHARE_OF_PARTS.0;
    let of_part = Config { memory_bytes: memory_of_parts / count, ..config.clone() };
    let work = |part| one_behind_the_other(part, &of_part, progress);
    let parts = std::thread::scope(|scope| {
        let begun: Vec<_> =
            split(sources, total, count).into_iter().map(|part| scope.spawn(move || work(part))).collect();
        let joined = |part: std::thread::ScopedJoinHandle<'_, _>| {
            part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        begun.into_iter().map(joined).collect::<Vec<_>>()
    });
    let (mut whole, mut lacking) = (Meter::new(config), Lacking::default());
    for (meter, of_part) in parts {
        whole.append(&meter);
        lacking.add(of_part);
    }
    // What the parts took may not have gone back to the system.
    whole.reserve(memory_of_parts / count);
    (whole, lacking)
}

/// Files in so many runs of about equal length.
fn split(sources: Vec<Source>, total: u64, count: usize) -> Vec<Vec<Source>> {
    let mut parts: Vec<Vec<Source>> = Vec::new();
    let (mut before, mut last) = (0, usize::MAX);
    for source in sources {
        // Its middle tells which part it is in.
        let at = (before + source.bytes / 2) as f64 / total.max(1) as f64 * count as f64;
        before += source.bytes;
        let part = (at as usize).min(count - 1);
        match parts.last_mut() {
            Some(files) if part == last => files.push(source),
            _ => parts.push(vec![source]),
        }
        last = part;
    }
    parts
}

/// Packets are looked at one behind the other, whatever file they are in: an answer may be in another one than its question. The
/// files are read and unpacked ahead, one on each processor.
fn one_behind_the_other(sources: Vec<Source>, config: &Config, progress: &Arc<Progress>) -> (Meter, Lacking) {
    let ahead = std::thread::available_parallelism().map_or(1, usize::from).min(sources.len());
    let pieces = (config.memory_bytes / SHARE_AHEAD / PIECE_BYTES / ahead).clamp(1, PIECES_MAX);
    let (mut meter, mut lacking) = (Meter::new(config.clone()), Lacking::default());
    meter.reserve(ahead * (pieces + 1) * PIECE_BYTES);
    let (mut sources, mut under_way) = (sources.into_iter(), VecDeque::new());
    loop {
        let more = sources.by_ref().take(ahead - under_way.len());
        under_way.extend(more.map(|source| {
            let (path, limit_ns) = (source.path.clone(), source.limit_ns);
            (path, limit_ns, source.octets().map(|octets| unpacked_ahead(octets, pieces, progress)))
        }));
        let Some((path, limit_ns, octets)) = under_way.pop_front() else { break };
        let before = meter.counters().packets;
        let end = octets.map_err(FeedError::Io);
        let end = end.and_then(|octets| feed_until(octets, &mut meter, limit_ns, progress));
        lacking.note(&path, end, meter.counters().packets - before);
        if progress.is_vain() {
            break;
        }
        if crate::interrupt::is_asked() {
            under_way.iter().for_each(|(path, ..)| lacking.give_up(path));
            sources.for_each(|source| lacking.give_up(&source.path));
            break;
        }
    }
    (meter, lacking)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_one(source: Source, config: &Config, progress: &Arc<Progress>) -> (Meter, Lacking) {
    let again = source.again();
    progress.is_last.store(again.is_none(), Ordering::Relaxed);
    let read = read_through(source, config, progress);
    match again {
        Some(source) if progress.is_vain() => {
            progress.begin_again();
            return read_through(source, config, progress);
        }
        None if progress.in_lots.load(Ordering::Relaxed) => progress.remark(
            "what several interfaces showed stands in lots, which a pipe cannot be put in order of: where flows begin,\n  \
             much may be told wrong; give it as a file"
                .to_owned(),
        ),
        _ => {}
    }
    read
}

fn read_through(source: Source, config: &Config, progress: &Arc<Progress>) -> (Meter, Lacking) {
    let mut meter = Meter::new(config.clone());
    let path = source.path.clone();
    let end = unpacked(source, progress).and_then(|octets| feed_meter(octets, &mut meter, progress));
    let mut lacking = Lacking::default();
    lacking.note(&path, end, meter.counters().packets);
    (meter, lacking)
}

fn feed(
    source: Source,
    take: &mut impl FnMut(&Record<'_>),
    progress: &Arc<Progress>,
) -> Result<(), FeedError> {
    feed_octets(unpacked(source, progress)?, take, progress)
}

/// What is inside of a file, as it is read; of a pipe, which may be silent for long, by a thread that can wait for it.
fn unpacked<'a>(source: Source, progress: &'a Arc<Progress>) -> Result<Box<dyn Read + 'a>, FeedError> {
    let bytes = source.bytes;
    let source = source.octets()?;
    if bytes == 0 {
        return Ok(Box::new(unpacked_ahead(source, PIECES_MAX, progress)));
    }
    Ok(decompressed(Box::new(Counted { source, progress }))?)
}

fn feed_meter(octets: impl Read, meter: &mut Meter, progress: &Progress) -> Result<(), FeedError> {
    feed_until(octets, meter, u64::MAX, progress)
}

/// As [`feed_meter`], until it shows that another file has begun meanwhile, or that interfaces stand in lots; what is read for the last
/// time is put in order.
fn feed_until(
    octets: impl Read,
    meter: &mut Meter,
    limit_ns: u64,
    progress: &Progress,
) -> Result<(), FeedError> {
    let mut batch = meter.batch();
    let (mut beyond, mut lots) = (0_u32, Lots::default());
    let take = &mut |record: &Record<'_>| {
        if record.time_ns.is_some_and(|time_ns| time_ns > limit_ns) {
            beyond += 1;
            if beyond == OVERLAP_PACKETS {
                progress.overlap.store(true, Ordering::Relaxed);
            }
        }
        if lots.note(record) {
            progress.in_lots.store(true, Ordering::Relaxed);
        }
        batch.record(record);
    };
    if !progress.is_to_be_sorted() {
        return feed_octets(octets, take, progress);
    }
    let mut sorter = Sorter::default();
    let end = feed_octets(octets, &mut |record| sorter.take(record, take), progress);
    sorter.end(take);
    end
}

fn feed_octets(
    octets: impl Read,
    take: &mut impl FnMut(&Record<'_>),
    progress: &Progress,
) -> Result<(), FeedError> {
    let mut feed = Feed::new(octets);
    loop {
        let goes_on = feed.step_into(take);
        // What looks like the end then may be none.
        if crate::interrupt::is_asked() {
            return Err(asked());
        }
        if !goes_on? || progress.is_vain() {
            return Ok(());
        }
        progress.show();
    }
}

/// What can be read once alone; whether a file can be read at all.
fn open(path: &Path) -> Result<Option<Box<dyn Read + Send>>, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Some(Box::new(io::stdin())));
    }
    let told = |error: io::Error| {
        Failure::of_system(format!("cannot read {}: {error}", screen::named(path)), error.kind())
    };
    let file = File::open(path).map_err(told)?;
    let meta = file.metadata().map_err(told)?;
    if meta.is_dir() {
        return Err(Failure::Usage(format!("{} is a folder; name the captures in it", screen::named(path))));
    }
    Ok(if meta.is_file() { None } else { Some(Box::new(file)) })
}

/// How far all files together have come, where there is a terminal.
#[derive(Debug)]
pub(super) struct Progress {
    /// Octets of all files; zero where nobody knows.
    total: u64,
    read: AtomicU64,
    /// Files were found to overlap while they were read one behind the other.
    overlap: AtomicBool,
    /// Packets of several interfaces were found to stand in lots.
    in_lots: AtomicBool,
    /// What is read now is not read again.
    is_last: AtomicBool,
    status: Mutex<StatusLine>,
    /// What is to be known of them, told in the end.
    remarks: Mutex<Vec<String>>,
}

impl Progress {
    fn of(Captures { files, again }: &Captures) -> Self {
        let total = files.iter().map(|path| file_bytes(path)).sum();
        let status = Mutex::new(StatusLine::begin(Pace::patient(Duration::from_millis(200)), None));
        let remarks =
            again.iter().map(|path| format!("{} is named more than once and read once", screen::named(path)));
        let (read, remarks) = (AtomicU64::new(0), Mutex::new(remarks.collect()));
        let [overlap, in_lots, is_last] = [false; 3].map(AtomicBool::new);
        Self { total, read, overlap, in_lots, is_last, status, remarks }
    }

    /// Whether what is read now is to be read again.
    fn is_vain(&self) -> bool {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        !is(&self.is_last) && (is(&self.overlap) || is(&self.in_lots))
    }

    /// All is read once more, and for the last time.
    fn begin_again(&self) {
        self.read.store(0, Ordering::Relaxed);
        self.is_last.store(true, Ordering::Relaxed);
    }

    /// Whether what is read is to be put in the order of time.
    pub(super) fn is_to_be_sorted(&self) -> bool {
        self.is_last.load(Ordering::Relaxed) && self.in_lots.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, octets: usize) {
        self.read.fetch_add(octets as u64, Ordering::Relaxed);
    }

    /// Takes down what is to be known.
    pub(super) fn remark(&self, words: String) {
        lock(&self.remarks).push(words);
    }

    /// Ends the line, and says what is to be known.
    fn end(&self) {
        self.status().end();
        for remark in lock(&self.remarks).drain(..) {
            screen::mention(&format!("note: {remark}\n"));
        }
    }

    fn status(&self) -> MutexGuard<'_, StatusLine> {
        lock(&self.status)
    }

    pub(super) fn show(&self) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_runs_of_files_of_about_equal_length() {
        let lengths = |sizes: &[u64], count| {
            let source = |&bytes: &u64| Source {
                path: PathBuf::new(),
                pipe: None,
                bytes,
                first_ns: None,
                limit_ns: u64::MAX,
            };
            let parts = split(sizes.iter().map(source).collect(), sizes.iter().sum(), count);
            parts.iter().map(|part| part.iter().map(|source| source.bytes).collect()).collect::<Vec<Vec<_>>>()
        };
        assert_eq!(lengths(&[5, 5, 5, 5], 2), [[5, 5], [5, 5]]);
        assert_eq!(lengths(&[9, 1, 1, 1], 2), [vec![9], vec![1, 1, 1]]);
        assert_eq!(lengths(&[1, 1, 9], 2), [vec![1, 1], vec![9]]);
        assert_eq!(lengths(&[0, 20], 4), [vec![0], vec![20]]);
    }
}
