//! Captures of the same time, such as those of a router's interfaces, put together by it as they are read.
//!
//! Each is taken as an interface of its own, and so is each row of files that follow one another (`tcpdump -C`, `-G`): a file that begins where
//! another one ends goes on from it, and where several end, from the one that is called most alike. Of each file a bit is read ahead, and files
//! are opened when they begin; where interfaces stand in lots, what follows begins within the last one, and is read beside it.

use super::ahead::{PIECE_BYTES, Pieces, unpacked_ahead};
use super::capture::Source;
use super::lacking::{Lacking, asked};
use super::lots::{Lots, Sorter, WINDOW_NS};
use super::order::{overlap_ns, sort_known};
use super::reading::Progress;
use super::show::many;
use crate::screen;
use cede_meter::{Batch, Config, Feed, FeedError, Meter};
use cede_wire::link::LinkType;
use cede_wire::pcap::Record;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Pieces of a file that wait, and octets that it takes in all while it is read.
const PIECES: usize = 4;
const LANE_BYTES: usize = 8 * PIECE_BYTES;
/// Of the memory, in sixteenths, what files take that are read at the same time, and how many these are at most and at least.
const SHARES: usize = 3;
const LANES: Range<usize> = 2..64;
/// What begins so long after a file's end may still follow it.
const ENDED_NS: u64 = 1_000_000_000;
/// Where a file is held against the beginning of another one, so many octets of it are read ahead at most.
const HELD_BYTES_MAX: usize = 1 << 22;

/// Reads captures, all in the order of time.
pub(super) fn read(sources: Vec<Source>, config: &Config, progress: &Arc<Progress>) -> (Meter, Lacking) {
    let lanes_max = (config.memory_bytes / 16 * SHARES / LANE_BYTES).clamp(LANES.start, LANES.end);
    let mut meter = Meter::new(config.clone());
    meter.reserve(lanes_max.min(sources.len()) * LANE_BYTES);
    let mut merge = Merge::new(sources, lanes_max, progress);
    merge.play(&mut meter.batch());
    merge.tell(&meter);
    (meter, merge.lacking)
}

/// A packet in [`Tape::octets`].
struct Held {
    time_ns: Option<u64>,
    interface: u32,
    link_type: LinkType,
    original_len: u32,
    captured: Range<usize>,
}

/// A file that is being read.
struct Tape {
    path: PathBuf,
    feed: Feed<Pieces>,
    /// Where its interfaces may stand in lots.
    sorter: Option<Sorter>,
    /// What was read of it and not handed over, and the octets of that.
    held: VecDeque<Held>,
    octets: Vec<u8>,
    packets: u64,
    /// How its reading ended, once it has.
    end: Option<Result<(), FeedError>>,
}

impl Tape {
    fn open(source: Source, progress: &Arc<Progress>) -> std::io::Result<Self> {
        let path = source.path.clone();
        let feed = Feed::new(unpacked_ahead(source.octets()?, PIECES, progress));
        let sorter = progress.is_to_be_sorted().then(Sorter::default);
        Ok(Self { path, feed, sorter, held: VecDeque::new(), octets: Vec::new(), packets: 0, end: None })
    }

    /// Reads on by a piece.
    fn step(&mut self, progress: &Progress) {
        let Self { feed, sorter, held, octets, .. } = self;
        if held.is_empty() {
            octets.clear();
        }
        let mut hold = |record: &Record<'_>| {
            let at = octets.len();
            octets.extend_from_slice(record.captured);
            let Record { time_ns, interface, link_type, original_len, .. } = *record;
            held.push_back(Held { time_ns, interface, link_type, original_len, captured: at..octets.len() });
        };
        let goes_on = feed.step_into(&mut |record| match sorter {
            Some(sorter) => sorter.take(record, &mut hold),
            None => hold(record),
        });
        if let Some(sorter) = sorter.as_mut().filter(|_| !matches!(goes_on, Ok(true))) {
            sorter.end(&mut hold);
        }
        self.end = match goes_on {
            // What looks like the end then may be none.
            _ if crate::interrupt::is_asked() => Some(Err(asked())),
            Ok(true) => None,
            Ok(false) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        };
        progress.show();
    }

    /// Reads until there is a packet, or none any more.
    fn fill(&mut self, progress: &Progress) {
        while self.held.is_empty() && self.end.is_none() {
            self.step(progress);
        }
    }

    /// The time of the next packet. What has none comes at once.
    fn head_ns(&self) -> Option<u64> {
        self.held.front().map(|held| held.time_ns.unwrap_or(0))
    }

    /// Whether it shows anything later than a time; as far as that can be told, else it is taken to.
    fn goes_on_after(&mut self, time_ns: u64, progress: &Progress) -> bool {
        loop {
            if self.held.iter().any(|held| held.time_ns.is_some_and(|of| of > time_ns)) {
                return true;
            }
            if self.end.is_some() {
                return false;
            }
            if self.octets.len() > HELD_BYTES_MAX {
                return true;
            }
            self.step(progress);
        }
    }

    /// Hands packets over up to a time, at least one if there is any; the time of the last one.
    fn play(&mut self, until_ns: u64, take: &mut impl FnMut(&Record<'_>)) -> Option<u64> {
        let mut last_ns = None;
        while let Some(held) = self.held.pop_front() {
            let Held { time_ns, interface, link_type, original_len, captured } = held;
            let captured = &self.octets[captured];
            take(&Record { time_ns, interface, link_type, captured, original_len });
            self.packets += 1;
            last_ns = time_ns.or(last_ns);
            if self.head_ns().is_some_and(|next_ns| next_ns > until_ns) {
                break;
            }
        }
        last_ns
    }
}

/// Files that follow one another, as an interface of their own.
struct Lane {
    number: u16,
    /// What of them is open.
    tapes: VecDeque<Tape>,
    /// The last one, how many interfaces it has, and the time of the last packet of all.
    path: PathBuf,
    interfaces: usize,
    last_ns: u64,
    lots: Lots,
    /// Another lane goes on from it, of the same number.
    is_followed: bool,
}

impl Lane {
    fn head_ns(&self) -> Option<u64> {
        self.tapes.front().and_then(Tape::head_ns)
    }

    /// As [`Tape::play`], until it shows that interfaces stand in lots.
    fn play(&mut self, until_ns: u64, batch: &mut Batch<'_>, progress: &Progress) {
        let Self { tapes, lots, last_ns, .. } = self;
        let mut take = |record: &Record<'_>| {
            progress.look_for_lots(lots, record);
            batch.record(record);
        };
        let last = tapes.front_mut().and_then(|tape| tape.play(until_ns, &mut take));
        *last_ns = last.unwrap_or(*last_ns);
    }

    fn may_be_followed(&self, interfaces: usize) -> bool {
        !self.is_followed && self.interfaces == interfaces
    }

    /// From when on nothing is taken to follow any more.
    const fn ends_ns(&self) -> u64 {
        self.last_ns.saturating_add(ENDED_NS)
    }
}

/// What is not open yet; a pipe is, as nothing else tells when it begins.
enum Waiting {
    File(Source),
    Pipe(Box<Tape>),
}

struct Merge<'a> {
    progress: &'a Arc<Progress>,
    /// In the order of time.
    waiting: VecDeque<Waiting>,
    lanes: Vec<Lane>,
    /// Those that have no file any more, and whether that was told.
    over: Vec<(Lane, bool)>,
    lanes_max: usize,
    /// Files that had to wait for others to end.
    late: Vec<PathBuf>,
    lacking: Lacking,
}

impl<'a> Merge<'a> {
    fn new(sources: Vec<Source>, lanes_max: usize, progress: &'a Arc<Progress>) -> Self {
        let (lanes, over, late, lacking) = (Vec::new(), Vec::new(), Vec::new(), Lacking::default());
        let mut merge = Self { progress, waiting: VecDeque::new(), lanes, over, lanes_max, late, lacking };
        let mut waiting: Vec<Waiting> =
            sources.into_iter().filter_map(|source| merge.wait_for(source)).collect();
        sort_known(&mut waiting, Waiting::first_ns);
        merge.waiting = waiting.into();
        merge
    }

    fn wait_for(&mut self, source: Source) -> Option<Waiting> {
        if !source.is_pipe() {
            return Some(Waiting::File(source));
        }
        let mut tape = self.open(source)?;
        tape.fill(self.progress);
        Some(Waiting::Pipe(Box::new(tape)))
    }

    fn open(&mut self, source: Source) -> Option<Tape> {
        let path = source.path.clone();
        match Tape::open(source, self.progress) {
            Ok(tape) => Some(tape),
            Err(error) => {
                self.lacking.note(&path, Err(FeedError::Io(error)), 0);
                None
            }
        }
    }

    /// Hands over all packets.
    fn play(&mut self, batch: &mut Batch<'_>) {
        while !crate::interrupt::is_asked() && !self.progress.is_vain() {
            self.begin_what_is_due();
            let Some(at) = self.earliest(None) else { break };
            let next = self.earliest(Some(at)).and_then(|next| self.lanes[next].head_ns());
            let begins = self.next_due_ns().filter(|_| !self.is_full());
            let ends = self.over.iter().filter(|(_, is_told)| !is_told).map(|(lane, _)| lane.ends_ns());
            let until_ns = next.into_iter().chain(begins).chain(ends).min().unwrap_or(u64::MAX);
            let lane = &mut self.lanes[at];
            batch.go_to_capture(lane.number);
            lane.play(until_ns, batch, self.progress);
            let now_ns = lane.last_ns;
            self.go_on(at);
            self.tell_ends(now_ns, batch);
        }
        self.give_up();
    }

    /// The lane whose next packet comes first, but for one.
    fn earliest(&self, but: Option<usize>) -> Option<usize> {
        let others = (0..self.lanes.len()).filter(|&at| Some(at) != but);
        others.min_by_key(|&at| self.lanes[at].head_ns())
    }

    /// From when on what waits next is read.
    fn next_due_ns(&self) -> Option<u64> {
        // It may show something earlier behind its first packet.
        let early_ns = if self.progress.is_to_be_sorted() { WINDOW_NS } else { 0 };
        self.waiting.front().and_then(Waiting::first_ns).map(|first_ns| first_ns.saturating_sub(early_ns))
    }

    fn is_full(&self) -> bool {
        self.lanes.len() >= self.lanes_max
    }

    /// Reads on what a lane's packets are used up of; one that has no more is over.
    fn go_on(&mut self, at: usize) {
        let lane = &mut self.lanes[at];
        while let Some(tape) = lane.tapes.front_mut() {
            tape.fill(self.progress);
            if !tape.held.is_empty() {
                return;
            }
            let end = tape.end.take().unwrap_or(Ok(()));
            self.lacking.note(&tape.path, end, tape.packets);
            lane.tapes.pop_front();
        }
        let lane = self.lanes.swap_remove(at);
        // Of what another lane goes on from this is no end.
        let is_told = lane.is_followed;
        self.over.push((lane, is_told));
    }

    /// Tells of lanes that nothing follows in.
    fn tell_ends(&mut self, now_ns: u64, batch: &mut Batch<'_>) {
        for (lane, is_told) in &mut self.over {
            if !*is_told && lane.ends_ns() < now_ns {
                batch.end_capture(lane.number);
                *is_told = true;
            }
        }
    }

    /// Opens what begins before all that is open goes on.
    fn begin_what_is_due(&mut self) {
        while !self.waiting.is_empty() {
            let now_ns = self.earliest(None).and_then(|at| self.lanes[at].head_ns());
            let is_due = self.next_due_ns().zip(now_ns).is_none_or(|(due_ns, now_ns)| due_ns <= now_ns);
            if !is_due {
                return;
            }
            if self.is_full() {
                return self.note_late();
            }
            let tape = match self.waiting.pop_front() {
                Some(Waiting::File(source)) => self.open(source),
                Some(Waiting::Pipe(tape)) => Some(*tape),
                None => None,
            };
            if let Some(tape) = tape {
                self.begin(tape);
            }
        }
    }

    /// A file goes on from one that ends where it begins, of several from the one that is called most alike; else it is seen elsewhere.
    fn begin(&mut self, mut tape: Tape) {
        tape.fill(self.progress);
        let Some(first_ns) = tape.head_ns() else {
            return self.lacking.note(&tape.path, tape.end.take().unwrap_or(Ok(())), tape.packets);
        };
        let (path, interfaces) = (tape.path.clone(), tape.feed.interfaces());
        let of = |number, last_ns| {
            let (tapes, lots) = Default::default();
            Lane { number, tapes, path: path.clone(), interfaces, last_ns, lots, is_followed: false }
        };
        let lane = match self.ends_at(first_ns, interfaces, &path) {
            // What both show of the same moment is put in order.
            Some(End::Open(at)) if self.progress.is_to_be_sorted() => {
                let before = &mut self.lanes[at];
                before.is_followed = true;
                let lane = of(before.number, before.last_ns);
                self.lanes.push_mut(lane)
            }
            Some(End::Open(at)) => &mut self.lanes[at],
            Some(End::Over(at)) => {
                let (lane, _) = self.over.swap_remove(at);
                self.lanes.push_mut(lane)
            }
            None => {
                let number = u16::try_from(self.lanes.len() + self.over.len()).unwrap_or(u16::MAX);
                self.lanes.push_mut(of(number, first_ns))
            }
        };
        lane.path = path;
        lane.tapes.push_back(tape);
    }

    /// A lane that ends where a file of so many interfaces begins, but for what two files that follow one another may both show.
    fn ends_at(&mut self, first_ns: u64, interfaces: usize, path: &Path) -> Option<End> {
        let limit_ns = first_ns.saturating_add(overlap_ns([interfaces; 2]));
        let mut best = None;
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            let ends = lane.may_be_followed(interfaces)
                && !lane.tapes.iter_mut().any(|tape| tape.goes_on_after(limit_ns, self.progress));
            if ends {
                best = best.max(Some((alike(&lane.path, path), lane.last_ns, End::Open(at))));
            }
        }
        for (at, (lane, _)) in self.over.iter().enumerate() {
            if lane.may_be_followed(interfaces) {
                best = best.max(Some((alike(&lane.path, path), lane.last_ns, End::Over(at))));
            }
        }
        best.map(|(.., end)| end)
    }

    fn note_late(&mut self) {
        let Some(path) = self.waiting.front().map(Waiting::path) else { return };
        if self.late.last() != Some(path) {
            self.late.push(path.clone());
        }
    }

    /// Where somebody asked for the end: what was not read.
    fn give_up(&mut self) {
        let open = self.lanes.drain(..).flat_map(|lane| lane.tapes).map(|tape| tape.path);
        let closed = self.waiting.drain(..).map(|waiting| waiting.path().clone());
        open.chain(closed).for_each(|path| self.lacking.give_up(&path));
    }

    /// What is to be known of it.
    fn tell(&self, meter: &Meter) {
        let lanes = self.over.iter().map(|(lane, _)| lane.number).collect::<BTreeSet<_>>().len();
        if lanes < 2 {
            return;
        }
        self.progress.remark(format!(
            "captures of the same time are put together by it, as those of {lanes} interfaces: of a flow that several of them show, each\n  \
             direction counts as the last one does"
        ));
        if let Some(path) = self.late.first() {
            self.progress.remark(format!(
                "no more than {} captures of the same time are read at once: {} and {} more had to wait for the end of another one, \n  \
                 and their packets are out of order",
                self.lanes_max,
                screen::named(path),
                self.late.len() - 1
            ));
        }
        self.tell_of_flows(meter);
    }

    /// Which of them do not count as one would expect.
    fn tell_of_flows(&self, meter: &Meter) {
        let early = meter.counters().early;
        if early > 0 {
            self.progress.remark(format!(
                "of {} only what stands in them counts, and not when they came: they were yet to wait in a queue when the capture\n  \
                 behind it had ended already (--until cuts all at one time)",
                many(early, "packet")
            ));
        }
        let apart = meter.flows_apart();
        if apart > 0 {
            let whom = if apart == 1 { "it" } else { "them" };
            self.progress.remark(format!(
                "of {} nothing tells which of several captures shows {whom} last, as the clocks of two machines differ:\n  \
                 what one of the captures shows counts",
                many(apart as u64, "flow")
            ));
        }
    }
}

/// A lane that ends where a file begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Over(usize),
    Open(usize),
}

impl Waiting {
    fn path(&self) -> &PathBuf {
        match self {
            Self::File(source) => &source.path,
            Self::Pipe(tape) => &tape.path,
        }
    }

    fn first_ns(&self) -> Option<u64> {
        match self {
            Self::File(source) => source.front.first_ns,
            Self::Pipe(tape) => tape.head_ns(),
        }
    }
}

/// How much of two names is the same, at their fronts and ends, and at their fronts.
fn alike(one: &Path, other: &Path) -> (usize, usize) {
    let (one, other) = (one.as_os_str().as_encoded_bytes(), other.as_os_str().as_encoded_bytes());
    let same = |pairs: &mut dyn Iterator<Item = (&u8, &u8)>| pairs.take_while(|(a, b)| a == b).count();
    let front = same(&mut one.iter().zip(other));
    let end = same(&mut one[front..].iter().rev().zip(other[front..].iter().rev()));
    (front + end, front)
}
