//! Captures from files and pipes, plain or compressed, on all processors: few octets are read and unpacked ahead, many looked at in parts.

use super::ahead::{Counted, PIECE_BYTES, PIECES_MAX, unpacked_ahead};
use super::capture::{Source, open_in_order};
use super::lacking::{Lacking, asked};
use super::lots::{Lots, Sorter};
use super::reading::Progress;
use super::together;
use super::unpack::decompressed;
use crate::captures::Captures;
use crate::failure::Failure;
use cede_meter::{Config, Feed, FeedError, FilterError, Meter, Selection};
use cede_wire::pcap::Record;
use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

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

/// Hears of packets while captures are read.
pub trait Hearer {
    /// Takes a packet.
    fn record(&mut self, record: &Record<'_>);

    /// A part has been read: whether more is wanted.
    fn goes_on(&mut self) -> bool {
        true
    }
}

impl<F: FnMut(&Record<'_>)> Hearer for F {
    fn record(&mut self, record: &Record<'_>) {
        self(record);
    }
}

/// Hands the packets of captures over, one file behind the other in the order of their first packets; what of any was not read is told in the end.
pub fn each(captures: &Captures, hearer: &mut impl Hearer) -> Result<Lacking, Failure> {
    let progress = Arc::new(Progress::of(captures, true));
    let sources = open_in_order(&captures.files)?;
    let mut lacking = Lacking::default();
    for source in sources {
        if crate::interrupt::is_asked() {
            lacking.give_up(&source.path);
            continue;
        }
        let path = source.path.clone();
        let mut counted = Counting { hearer, packets: 0 };
        let end = feed(source, &mut counted, &progress);
        lacking.note(&path, end, counted.packets);
        if !hearer.goes_on() {
            break;
        }
    }
    progress.end();
    Ok(lacking)
}

/// Counts packets on their way.
struct Counting<'a, H> {
    hearer: &'a mut H,
    packets: u64,
}

impl<H: Hearer> Hearer for Counting<'_, H> {
    fn record(&mut self, record: &Record<'_>) {
        self.packets += 1;
        self.hearer.record(record);
    }

    fn goes_on(&mut self) -> bool {
        self.hearer.goes_on()
    }
}

/// Reads captures in the order of time, in whatever order they are named: the later ones behind the earlier ones, and those of the same time
/// together. What of any was not read is told beside what was found.
///
/// Whether files overlap in time is seen where that begins, mostly at their front, and so is whether interfaces stand in lots: then all are
/// begun again. Pipes, which can be read once, are put where they belong from the start.
pub fn read(captures: &Captures, config: &Config) -> Result<(Meter, Lacking), Failure> {
    let sources = open_in_order(&captures.files)?;
    let again: Option<Vec<Source>> = sources.iter().map(Source::again).collect();
    let progress = Arc::new(Progress::of(captures, again.is_none()));
    let read = |sources: Vec<Source>, by_time: bool| match <[Source; 1]>::try_from(sources) {
        Ok([source]) => read_one(source, config, &progress),
        Err(sources) if by_time => together::read(sources, config, &progress),
        Err(sources) => in_parts(sources, config, &progress),
    };
    let mut found = read(sources, again.is_none());
    while progress.is_vain() {
        progress.begin_again();
        let sources = again.iter().flatten().filter_map(Source::again).collect();
        found = read(sources, progress.do_overlap());
    }
    if again.is_none() && progress.are_in_lots() {
        progress.remark(
            "what several interfaces showed stands in lots, which a pipe cannot be put in order of: where flows begin,\n  \
             much may be told wrong; give it as a file"
                .to_owned(),
        );
    }
    progress.end();
    Ok(found)
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

/// Files one behind the other; many octets in as many parts as there are processors, which are put behind each other when they are read.
fn in_parts(sources: Vec<Source>, config: &Config, progress: &Arc<Progress>) -> (Meter, Lacking) {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let total: u64 = sources.iter().map(|source| source.bytes).sum();
    let count = usize::try_from(total / PART_BYTES).unwrap_or(usize::MAX).min(processors);
    // What is put in order goes on from file to file.
    if count < 2 || progress.is_to_be_sorted() {
        return one_behind_the_other(sources, config, progress);
    }
    // All times are counted from the first packet of all.
    let origin_ns = sources.first().and_then(|source| source.front.first_ns);
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
    let mut row = Row::new(progress);
    loop {
        let more = sources.by_ref().take(ahead - under_way.len());
        under_way.extend(more.map(|source| {
            let (path, limit_ns) = (source.path.clone(), source.limit_ns);
            (path, limit_ns, source.octets().map(|octets| unpacked_ahead(octets, pieces, progress)))
        }));
        let Some((path, limit_ns, octets)) = under_way.pop_front() else { break };
        let before = row.packets;
        let end = octets.map_err(FeedError::Io);
        let end = end.and_then(|octets| row.feed(octets, &mut meter, limit_ns));
        lacking.note(&path, end, row.packets - before);
        if progress.is_vain() {
            break;
        }
        if crate::interrupt::is_asked() {
            under_way.iter().for_each(|(path, ..)| lacking.give_up(path));
            sources.for_each(|source| lacking.give_up(&source.path));
            break;
        }
    }
    row.end(&mut meter);
    (meter, lacking)
}

fn read_one(source: Source, config: &Config, progress: &Arc<Progress>) -> (Meter, Lacking) {
    let mut meter = Meter::new(config.clone());
    let path = source.path.clone();
    let (mut row, mut lacking) = (Row::new(progress), Lacking::default());
    let end = unpacked(source, progress).and_then(|octets| row.feed(octets, &mut meter, u64::MAX));
    lacking.note(&path, end, row.packets);
    row.end(&mut meter);
    (meter, lacking)
}

fn feed(source: Source, hearer: &mut impl Hearer, progress: &Arc<Progress>) -> Result<(), FeedError> {
    feed_octets(unpacked(source, progress)?, hearer, progress)
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

/// Files that are read one behind the other, as one capture.
struct Row<'a> {
    progress: &'a Progress,
    /// Packets that were read.
    packets: u64,
    lots: Lots,
    /// Where interfaces stand in lots, which may go on in the next file.
    sorter: Option<Sorter>,
}

impl<'a> Row<'a> {
    fn new(progress: &'a Progress) -> Self {
        let sorter = progress.is_to_be_sorted().then(Sorter::default);
        Self { progress, packets: 0, lots: Lots::default(), sorter }
    }

    /// Reads a file, until it shows that another one has begun meanwhile, or that interfaces stand in lots; what is read for the last
    /// time is put in order.
    fn feed(&mut self, octets: impl Read, meter: &mut Meter, limit_ns: u64) -> Result<(), FeedError> {
        let Self { progress, packets, lots, sorter } = self;
        let mut batch = meter.batch();
        let mut beyond = 0_u32;
        let mut note = |record: &Record<'_>| {
            *packets += 1;
            if record.time_ns.is_some_and(|time_ns| time_ns > limit_ns) {
                beyond += 1;
                if beyond == OVERLAP_PACKETS {
                    progress.note_overlap();
                }
            }
            progress.look_for_lots(lots, record);
        };
        let Some(sorter) = sorter else {
            let take = &mut |record: &Record<'_>| {
                note(record);
                batch.record(record);
            };
            return feed_octets(octets, take, progress);
        };
        let take = &mut |record: &Record<'_>| {
            note(record);
            sorter.take(record, &mut |record| batch.record(record));
        };
        feed_octets(octets, take, progress)
    }

    /// Hands over what waits.
    fn end(self, meter: &mut Meter) {
        if let Some(mut sorter) = self.sorter {
            let mut batch = meter.batch();
            sorter.end(&mut |record| batch.record(record));
        }
    }
}

fn feed_octets(octets: impl Read, hearer: &mut impl Hearer, progress: &Progress) -> Result<(), FeedError> {
    let mut feed = Feed::new(octets);
    loop {
        let goes_on = feed.step_into(&mut |record: &Record<'_>| hearer.record(record));
        // What looks like the end then may be none.
        if crate::interrupt::is_asked() {
            return Err(asked());
        }
        if !goes_on? || progress.is_vain() || !hearer.goes_on() {
            return Ok(());
        }
        progress.show();
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Front;
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn parts_are_runs_of_files_of_about_equal_length() {
        let lengths = |sizes: &[u64], count| {
            let source = |&bytes: &u64| Source {
                path: PathBuf::new(),
                pipe: None,
                bytes,
                front: Front::default(),
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
