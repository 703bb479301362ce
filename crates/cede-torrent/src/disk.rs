//! A thread that writes what arrives and hashes it, so that no connection waits for a disk.
//!
//! A piece is hashed as its octets come, as long as they come in order, while they are still in the processor's cache, and
//! with those of the next piece where that comes at once ([`crate::hashing`]); what came out of order, or twice, is read back.
//! At most [`MAX_WAITING_BYTES`] wait to be written: beyond that connections are not read from, so a slow disk slows the peers
//! and not the memory.

use crate::check::is_whole;
use crate::hashing::{Hashing, Partial};
use crate::storage::{Storage, StorageError};
use cede_bt::metainfo::Info;
use cede_bt::wire::BlockRef;
use cede_wire::Payload;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// What may wait to be written: no more than a processor's cache holds, so that it is read from there to be hashed and written.
pub const MAX_WAITING_BYTES: u64 = 2 << 20;
/// What is hashed and then written by one call, while it is still in the nearest cache.
const RUN_BYTES: u32 = 256 << 10;
/// A piece that is to be checked waits so long for another to be hashed with: no peer notices, and at the rates at which
/// hashing counts another comes.
const COMPANY: Duration = Duration::from_millis(10);
/// Where as much comes together, more comes at once.
const MUCH_BYTES: u64 = 64 << 10;
/// What waits to be written when nothing more is to be fetched is waited for so long: it is little, and may come again, but some disks take
/// seconds for a single write.
const PARTING: Duration = Duration::from_secs(2);
/// How often it is looked whether what is written to still is where it belongs.
const LOOK: Duration = Duration::from_secs(1);
/// Read back at once.
const CHUNK_BYTES: usize = 64 << 10;

/// What the thread is to do.
enum Job {
    Store(Vec<Part>),
    Check(u32),
    Sync,
}

/// Octets of a block.
pub struct Part {
    /// Which block.
    pub block: BlockRef,
    /// Where in the block they begin.
    pub at: u32,
    /// They.
    pub payload: Payload,
}

/// What it tells.
#[derive(Debug)]
pub enum Report {
    /// A piece has its hash, or has not.
    Checked {
        /// Which.
        piece: u32,
        /// It has.
        good: bool,
    },
    /// Less waits to be written than may.
    Eased,
    /// All that was stored before is on the disk.
    Synced,
    /// It went wrong; nothing more is written.
    Failed(StorageError),
}

/// The way to the thread, which ends when this is dropped and all jobs are done. That is waited for, but not for long.
pub struct Disk {
    jobs: Option<mpsc::Sender<Job>>,
    waiting: Arc<AtomicU64>,
    thread: Thread,
    /// When it was said that nothing more is to be fetched.
    left_at: Option<Instant>,
}

/// A thread whose end can be waited for with an end to the patience.
struct Thread {
    handle: Option<JoinHandle<()>>,
    /// Nothing is ever sent: its other end goes with the thread.
    end: mpsc::Receiver<()>,
}

impl Thread {
    fn start(work: impl FnOnce() + Send + 'static) -> Self {
        let (running, end) = mpsc::channel();
        let work = move || {
            work();
            drop(running);
        };
        Self { handle: std::thread::Builder::new().name("disk".to_owned()).spawn(work).ok(), end }
    }

    /// Waits until it has ended, but no longer; whether it has. One that has not goes on for as long as the process does.
    fn join_until(&mut self, until: Instant) -> bool {
        let patience = until.saturating_duration_since(Instant::now());
        let has_ended = self.end.recv_timeout(patience) != Err(RecvTimeoutError::Timeout);
        if has_ended {
            let _ = self.handle.take().map(JoinHandle::join);
        }
        has_ended
    }
}

impl Disk {
    /// Starts the thread. `whole` are the pieces that are there and are not written again.
    #[must_use]
    pub fn start(
        storage: Arc<Storage>,
        info: Arc<Info>,
        whole: Vec<bool>,
        reports: UnboundedSender<Report>,
    ) -> Self {
        let (jobs, inbox) = mpsc::channel();
        let waiting = Arc::new(AtomicU64::new(0));
        let (hashing, scratch) = (Hashing::new(info.clone()), vec![0; CHUNK_BYTES]);
        let (due, looked, count) = (None, Instant::now(), waiting.clone());
        let worker = Worker { storage, info, whole, hashing, due, looked, scratch, waiting: count, reports };
        let thread = Thread::start(move || worker.run(&inbox));
        Self { jobs: Some(jobs), waiting, thread, left_at: None }
    }

    /// Writes octets of blocks. What arrived together goes together: to wake the thread costs more than to write.
    pub fn store(&self, parts: Vec<Part>) {
        let octets = parts.iter().map(|part| u64::from(part.payload.len())).sum();
        self.waiting.fetch_add(octets, Ordering::Relaxed);
        self.send(Job::Store(parts));
    }

    /// Checks a piece of which everything has been stored.
    pub fn check(&self, piece: u32) {
        self.send(Job::Check(piece));
    }

    /// Waits until everything is on the disk and every file where it belongs, and reports [`Report::Synced`].
    pub fn sync(&self) {
        self.send(Job::Sync);
    }

    /// Nothing more is to be fetched, and nothing more is taken: what is still to be written is waited for from now on.
    pub fn leave(&mut self) {
        self.jobs = None;
        self.left_at.get_or_insert_with(Instant::now);
    }

    /// Waits until nothing is left to be written, for as long as that is waited for; whether it came to that.
    pub fn finish(&mut self) -> bool {
        self.leave();
        let since = self.left_at.unwrap_or_else(Instant::now);
        self.thread.join_until(since + PARTING)
    }

    /// Whether more waits than may.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > MAX_WAITING_BYTES
    }

    fn send(&self, job: Job) {
        // A thread that is gone has reported why, or is to take nothing more.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Where octets belong.
struct Place {
    start: u64,
    /// The piece is there, and is not written again.
    is_whole: bool,
}

struct Worker {
    storage: Arc<Storage>,
    info: Arc<Info>,
    whole: Vec<bool>,
    hashing: Hashing,
    /// A piece that is to be checked, and waits for another until then.
    due: Option<(u32, Instant)>,
    /// When it was last looked whether files are where they belong.
    looked: Instant,
    scratch: Vec<u8>,
    waiting: Arc<AtomicU64>,
    reports: UnboundedSender<Report>,
}

impl Worker {
    fn run(mut self, inbox: &mpsc::Receiver<Job>) {
        loop {
            let done = match self.next(inbox) {
                Ok(job) => self.work(job),
                Err(RecvTimeoutError::Timeout) => self.check_due(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if let Err(error) = done {
                self.tell(Report::Failed(error));
                return;
            }
        }
    }

    /// What is to be done; a timeout once the piece that is due has waited for long enough.
    fn next(&self, inbox: &mpsc::Receiver<Job>) -> Result<Job, RecvTimeoutError> {
        match self.due {
            Some((_, until)) => inbox.recv_timeout(until.saturating_duration_since(Instant::now())),
            None => Ok(inbox.recv()?),
        }
    }

    fn work(&mut self, job: Job) -> Result<(), StorageError> {
        match job {
            Job::Store(parts) => {
                self.store(&parts)?;
                let has_waited = self.due.is_some_and(|(piece, _)| !self.hashing.is_waiting(piece));
                if has_waited { self.check_due() } else { Ok(()) }
            }
            Job::Check(piece) if self.hashing.is_waiting(piece) => {
                self.check_due()?;
                self.due = Some((piece, Instant::now() + COMPANY));
                Ok(())
            }
            Job::Check(piece) => self.check(piece),
            Job::Sync => {
                self.check_due()?;
                self.storage.settle().map(|()| self.tell(Report::Synced))
            }
        }
    }

    fn check_due(&mut self) -> Result<(), StorageError> {
        self.due.take().map_or(Ok(()), |(piece, _)| self.check(piece))
    }

    fn tell(&self, report: Report) {
        let _ = self.reports.send(report);
    }

    /// Stores what has come, in as few calls as that takes.
    fn store(&mut self, parts: &[Part]) -> Result<(), StorageError> {
        let is_much = parts.iter().map(|part| u64::from(part.payload.len())).sum::<u64>() >= MUCH_BYTES;
        let mut len = 0;
        let runs = parts.chunk_by(|a, b| {
            len += a.payload.len();
            let (place, next) = (self.place(a), self.place(b));
            let adjoin =
                place.start + u64::from(a.payload.len()) == next.start && place.is_whole == next.is_whole;
            let is_one = adjoin && len < RUN_BYTES;
            len *= u32::from(is_one);
            is_one
        });
        for run in runs.collect::<Vec<_>>() {
            self.store_run(run, is_much)?;
        }
        Ok(())
    }

    /// Where a part belongs.
    fn place(&self, part: &Part) -> Place {
        let piece = part.block.piece;
        let start = self.storage.layout().piece_range(piece).start + u64::from(part.block.begin + part.at);
        Place { start, is_whole: self.whole.get(piece as usize).copied().unwrap_or(true) }
    }

    /// Stores parts that lie one behind the other, unless they are there already.
    fn store_run(&mut self, run: &[Part], is_much: bool) -> Result<(), StorageError> {
        let Some(Place { start, is_whole }) = run.first().map(|first| self.place(first)) else {
            return Ok(());
        };
        let octets: Vec<&[u8]> = run.iter().map(|part| part.payload.as_slice().unwrap_or_default()).collect();
        if !is_whole {
            for part in run {
                let begin = part.block.begin + part.at;
                self.hashing.take(part.block.piece, begin, &part.payload, is_much);
            }
            self.storage.write_parts(start, &octets)?;
        }
        let len = octets.iter().map(|part| part.len() as u64).sum();
        let before = self.waiting.fetch_sub(len, Ordering::Relaxed);
        if before > MAX_WAITING_BYTES && before - len <= MAX_WAITING_BYTES {
            self.tell(Report::Eased);
        }
        Ok(())
    }

    fn check(&mut self, piece: u32) -> Result<(), StorageError> {
        let good = match self.hashing.remove(piece) {
            Some(partial) => self.finish(piece, partial)?,
            None => is_whole(&self.storage, &self.info, piece, &mut self.scratch),
        };
        if let Some(whole) = self.whole.get_mut(piece as usize) {
            *whole = good;
        }
        if good && self.looked.elapsed() >= LOOK {
            self.storage.find_files_of(piece)?;
            self.looked = Instant::now();
        }
        self.tell(Report::Checked { piece, good });
        Ok(())
    }

    /// Hashes what is left of a piece.
    fn finish(&mut self, piece: u32, mut partial: Partial) -> Result<bool, StorageError> {
        let range = self.storage.layout().piece_range(piece);
        let mut at = range.start + u64::from(partial.at());
        while at < range.end {
            let len = self.scratch.len().min((range.end - at) as usize);
            self.storage.read(at, &mut self.scratch[..len])?;
            partial.update(&self.scratch[..len]);
            at += len as u64;
        }
        Ok(self.info.piece_hash(piece) == Some(partial.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_does_not_come_back_is_not_waited_for_to_its_end() {
        let (release, held) = mpsc::channel::<()>();
        let (ended, is_ended) = mpsc::channel();
        let mut thread = Thread::start(move || {
            let _ = held.recv();
            let _ = ended.send(());
        });
        // It would be waited for for ever.
        assert!(!thread.join_until(Instant::now() + COMPANY));
        drop(release);
        assert!(thread.join_until(Instant::now() + Duration::from_secs(3600)));
        is_ended.try_recv().unwrap();
    }
}
