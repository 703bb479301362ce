//! Captures from files and pipes, plain or compressed, side by side on all processors.

use crate::failure::Failure;
use crate::progress::{self, Pace, StatusLine};
use cede_meter::{Config, Feed, FeedError, Meter};
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is read of one file, and what is wrong with it.
type Read1 = (Meter, Option<String>);

/// Reads captures, the later ones behind the earlier ones; what is wrong with any is told beside what was found.
pub fn read(files: &[PathBuf], config: &Config) -> Result<(Meter, Option<String>), Failure> {
    let sources = files.iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
    let total = files.iter().map(|path| std::fs::metadata(path).map_or(0, |meta| meta.len())).sum();
    let status = Mutex::new(StatusLine::begin(Pace::patient(Duration::from_millis(200)), None));
    let progress = Progress { total, read: AtomicU64::new(0), status };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(files.len());
    let config = Config { memory_bytes: config.memory_bytes / workers.max(1), ..config.clone() };
    let mut results = side_by_side(sources, files, &config, workers, &progress);
    progress.status().end();
    let damage: Vec<String> = results.iter_mut().filter_map(|(_, damage)| damage.take()).collect();
    let mut meters = results.into_iter().map(|(meter, _)| meter);
    let mut meter = meters.next().unwrap_or_default();
    meters.for_each(|later| meter.append(&later));
    Ok((meter, (!damage.is_empty()).then(|| damage.join("\nerror: "))))
}

/// Each worker takes the next file until there is none.
fn side_by_side(
    sources: Vec<Box<dyn Read + Send>>,
    files: &[PathBuf],
    config: &Config,
    workers: usize,
    progress: &Progress,
) -> Vec<Read1> {
    let sources: Vec<Mutex<Option<Box<dyn Read + Send>>>> =
        sources.into_iter().map(|s| Mutex::new(Some(s))).collect();
    let results: Vec<Mutex<Option<Read1>>> = files.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slot) = sources.get(k) else { break };
                    let source = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
                    let Some(source) = source else { break };
                    let result = read_one(source, &files[k], config, progress);
                    *results[k].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                }
            });
        }
    });
    results.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

fn read_one(source: Box<dyn Read + Send>, path: &Path, config: &Config, progress: &Progress) -> Read1 {
    let mut meter = Meter::new(config.clone());
    let damage = feed(source, &mut meter, progress).err().map(|error| {
        let kept = if meter.counters().packets > 0 { "; what came before counts" } else { "" };
        format!("{}: {error}{kept}", path.display())
    });
    (meter, damage)
}

fn feed(source: Box<dyn Read + Send>, meter: &mut Meter, progress: &Progress) -> Result<(), FeedError> {
    let counted = Counted { source, progress };
    let mut feed = Feed::new(decompressed(Box::new(counted))?);
    while feed.step(meter)? {
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

/// What is inside, by the first octets: gzip (RFC 1952), zstd (RFC 8878), or the octets themselves.
fn decompressed<'a>(mut source: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    let mut front = Vec::new();
    source.by_ref().take(4).read_to_end(&mut front)?;
    let magic = front.clone();
    let whole = io::Cursor::new(front).chain(source);
    Ok(match magic[..] {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(whole)),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(StreamingDecoder::new(whole).map_err(io::Error::other)?),
        _ => Box::new(whole),
    })
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
    fn status(&self) -> MutexGuard<'_, StatusLine> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
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
