//! Many packets at a time: where there are more flows than a processor's caches hold, most of what a packet costs is waiting
//! for its flow's lines of memory. Those of several packets are asked for one behind the other, and come together.
//!
//! **How it was validated.** Against a meter that takes one packet after the other (`tests/batch.rs`).

use crate::meter::Meter;
use crate::packet::Packet;
use crate::store::stock::NEAR;
use crate::waiting::Waiting;
use cede_wire::pcap::Record;

/// Fewer flows stay in a processor's caches.
const FLOWS_MIN: usize = 1 << 13;

/// Hands packets to a meter, several at a time; when it is dropped all have been taken.
#[derive(Debug)]
pub struct Batch<'a> {
    meter: &'a mut Meter,
    /// Room for those that wait, which are the first so many.
    waiting: Vec<Waiting>,
    count: usize,
}

impl Meter {
    /// As [`Self::record`], for many packets: several of them are looked up together, which is faster where flows are many.
    pub const fn batch(&mut self) -> Batch<'_> {
        Batch { meter: self, waiting: Vec::new(), count: 0 }
    }
}

impl Batch<'_> {
    /// As [`Meter::record`].
    #[inline(always)]
    pub fn record(&mut self, record: &Record<'_>) {
        let are_few = self.count == 0 && self.meter.flows() < FLOWS_MIN;
        if are_few { self.meter.record(record) } else { self.put(record) }
    }

    /// As [`Meter::go_to_capture`].
    pub fn go_to_capture(&mut self, capture: u16) {
        self.meter.go_to_capture(capture);
    }

    /// As [`Meter::end_capture`].
    pub fn end_capture(&mut self, capture: u16) {
        self.flush();
        self.meter.end_capture(capture);
    }

    fn put(&mut self, record: &Record<'_>) {
        let Some(time_ns) = record.time_ns else { return self.meter.record(record) };
        self.meter.go_to_interface(record.interface);
        let about = (record.link_type, record.captured, record.original_len);
        if self.waiting.is_empty() {
            self.make_room();
        }
        // It is put together where it waits: a copy would have to wait until all of it is in memory.
        let (waiting, count) = (&mut self.waiting, &mut self.count);
        self.meter.read(time_ns, about, |_, one| {
            waiting[*count] = one;
            *count += 1;
        });
        if self.count >= NEAR {
            self.flush();
        }
    }

    #[cold]
    fn make_room(&mut self) {
        self.waiting.resize(NEAR + Packet::JOINED_MAX, Waiting::NONE);
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
