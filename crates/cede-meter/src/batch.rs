//! Many packets at a time: where there are more flows than a processor's caches hold, most of what a packet costs is waiting
//! for its flow's lines of memory. Those of several packets are asked for one behind the other, and come together.
//!
//! **How it was validated.** Against a meter that takes one packet after the other (`tests/batch.rs`).

use crate::flow::Packet;
use crate::key::Key;
use crate::meter::Meter;
use crate::stock::NEAR;
use crate::views::View;
use cede_wire::pcap::Record;

/// Fewer flows stay in a processor's caches.
const FLOWS_MIN: usize = 1 << 13;

/// A packet that was read, and whose flow was not looked up yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub key: Key,
    pub hash: u64,
    pub packet: Packet,
    /// The capture ends before what is looked for.
    pub is_cut: bool,
    pub view: Option<View>,
}

impl Waiting {
    /// None.
    const NONE: Self = Self { key: Key::NONE, hash: 0, packet: Packet::SILENT, is_cut: false, view: None };
}

/// Hands packets to a meter, several at a time; when it is dropped all have been taken.
#[derive(Debug)]
pub struct Batch<'a> {
    meter: &'a mut Meter,
    /// Room for those that wait, which are the first so many.
    waiting: Vec<Waiting>,
    count: usize,
}

impl<'a> Batch<'a> {
    pub(crate) const fn new(meter: &'a mut Meter) -> Self {
        Self { meter, waiting: Vec::new(), count: 0 }
    }

    /// As [`Meter::record`].
    #[inline(always)]
    pub fn record(&mut self, record: &Record<'_>) {
        let are_few = self.count == 0 && self.meter.flows() < FLOWS_MIN;
        if are_few { self.meter.record(record) } else { self.put(record) }
    }

    fn put(&mut self, record: &Record<'_>) {
        let Some(time_ns) = record.time_ns else { return self.meter.record(record) };
        let about = (record.link_type, record.captured, record.original_len);
        if self.waiting.is_empty() {
            self.make_room();
        }
        // It is put together where it waits: a copy would have to wait until all of it is in memory.
        let (place, count) = (&mut self.waiting[self.count], &mut self.count);
        self.meter.read(time_ns, about, |_, waiting| {
            *place = waiting;
            *count += 1;
        });
        if self.count == NEAR {
            self.flush();
        }
    }

    #[cold]
    fn make_room(&mut self) {
        self.waiting.resize(NEAR, Waiting::NONE);
    }

    fn flush(&mut self) {
        self.meter.take_all(&self.waiting[..self.count]);
        self.count = 0;
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}
