//! How far the reading of captures has come, and what it has shown of them.

use super::capture::file_bytes;
use super::lots::Lots;
use crate::captures::Captures;
use crate::progress::{self, Pace, StatusLine};
use crate::screen;
use cede_wire::pcap::Record;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What was found out of captures while they were read, and whether the reading goes by it.
#[derive(Default, Debug)]
struct Finding {
    is_made: AtomicBool,
    is_heeded: AtomicBool,
}

impl Finding {
    fn note(&self) {
        self.is_made.store(true, Ordering::Relaxed);
    }

    fn heed(&self) {
        self.is_heeded.store(self.is_made(), Ordering::Relaxed);
    }

    fn is_made(&self) -> bool {
        self.is_made.load(Ordering::Relaxed)
    }

    fn is_new(&self) -> bool {
        self.is_made() && !self.is_heeded.load(Ordering::Relaxed)
    }
}

/// How far all files together have come, where there is a terminal.
#[derive(Debug)]
pub(super) struct Progress {
    /// Octets of all files; zero where nobody knows.
    total: u64,
    read: AtomicU64,
    /// Captures are read once, whatever they show.
    is_once: bool,
    /// Files were found to overlap while they were read one behind the other.
    overlap: Finding,
    /// Packets of several interfaces were found to stand in lots.
    lots: Finding,
    status: Mutex<StatusLine>,
    /// What is to be known of them, told in the end.
    remarks: Mutex<Vec<String>>,
}

impl Progress {
    pub(super) fn of(Captures { files, again }: &Captures, is_once: bool) -> Self {
        let total = files.iter().map(|path| file_bytes(path)).sum();
        let status = Mutex::new(StatusLine::begin(Pace::patient(Duration::from_millis(200)), None));
        let remarks =
            again.iter().map(|path| format!("{} is named more than once and read once", screen::named(path)));
        let (read, remarks) = (AtomicU64::new(0), Mutex::new(remarks.collect()));
        let (overlap, lots) = Default::default();
        Self { total, read, is_once, overlap, lots, status, remarks }
    }

    /// Whether what is read now is to be read again, in another way.
    pub(super) fn is_vain(&self) -> bool {
        !self.is_once && (self.overlap.is_new() || self.lots.is_new())
    }

    /// All is read from its beginning, by what has been found out.
    pub(super) fn begin_again(&self) {
        self.read.store(0, Ordering::Relaxed);
        self.overlap.heed();
        self.lots.heed();
    }

    pub(super) fn note_overlap(&self) {
        self.overlap.note();
    }

    pub(super) fn do_overlap(&self) -> bool {
        self.overlap.is_made()
    }

    /// Notes a packet, and lots, once there are some.
    #[inline]
    pub(super) fn look_for_lots(&self, lots: &mut Lots, record: &Record<'_>) {
        if lots.note(record) {
            self.lots.note();
        }
    }

    pub(super) fn are_in_lots(&self) -> bool {
        self.lots.is_made()
    }

    /// Whether what is read is to be put in the order of time.
    pub(super) fn is_to_be_sorted(&self) -> bool {
        self.lots.is_made() && !self.lots.is_new()
    }

    pub(super) fn count(&self, octets: usize) {
        self.read.fetch_add(octets as u64, Ordering::Relaxed);
    }

    /// Takes down what is to be known.
    pub(super) fn remark(&self, words: String) {
        lock(&self.remarks).push(words);
    }

    /// Ends the line, and says what is to be known.
    pub(super) fn end(&self) {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
