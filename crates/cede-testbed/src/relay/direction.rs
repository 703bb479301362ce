//! One direction of the relay: a [`Link`] that carries datagrams with their octets.
//!
//! The link is brought from one of its own events to the next, so every departure has the time that the schedule gives
//! it, not the time at which somebody looked. Datagrams are offered at the time at which the kernel had them. A relay
//! that wakes up late therefore delivers late, and counts it, but does not change the path's rate, nor what it drops.

use super::{DirectionReport, Wire};
use crate::summary::Summary;
use cede_lab::histogram::Histogram;
use cede_net::{Dequeue, Link, LinkLog};
use cede_units::Instant;

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(super) struct Parcel {
    pub client: usize,
    pub octets: Vec<u8>,
}

pub(super) struct Direction {
    link: Link<Parcel>,
    mtu_bytes: u32,
    /// What IP and UDP add to each datagram.
    header_bytes: u32,
    waits: Waits,
    last_arrival: Instant,
    /// Buffers for datagrams to come.
    spare: Vec<Vec<u8>>,
    report: DirectionReport,
}

/// How long each packet waited in the queue.
#[derive(Default)]
struct Waits(Histogram);

impl LinkLog<Parcel> for Waits {
    fn dequeued(&mut self, _: &Parcel, event: &Dequeue) {
        self.0.record(event.waited);
    }
}

impl Direction {
    pub fn new(wire: &Wire, seed: u64, name: &str, header_bytes: u32) -> Self {
        Self {
            link: Link::new(wire.link, seed, name),
            mtu_bytes: wire.mtu_bytes.unwrap_or(u32::MAX),
            header_bytes,
            waits: Waits::default(),
            last_arrival: Instant::ZERO,
            spare: Vec::new(),
            report: DirectionReport::default(),
        }
    }

    /// Offers a datagram to the link as of `arrival`; never earlier than the one before it.
    pub fn take_in(&mut self, arrival: Instant, client: usize, octets: &[u8]) {
        let bytes = octets.len() as u32 + self.header_bytes;
        self.report.arrived_datagrams += 1;
        self.report.arrived_bytes += u64::from(bytes);
        if bytes > self.mtu_bytes {
            self.report.too_large += 1;
            return;
        }
        self.last_arrival = self.last_arrival.max(arrival);
        if self.link.duplicates() {
            self.report.duplicated += 1;
            self.offer(client, octets, bytes);
        }
        self.offer(client, octets, bytes);
    }

    fn offer(&mut self, client: usize, octets: &[u8], bytes: u32) {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(octets);
        let parcel = Parcel { client, octets: buffer };
        if let Err(refused) = self.link.offer(self.last_arrival, parcel, bytes, &mut self.waits) {
            self.give_back(refused.octets);
        }
    }

    /// The next datagram whose time has come by `now`, and that time.
    pub fn next_departure(&mut self, now: Instant) -> Option<(Instant, Parcel)> {
        loop {
            let due = self.link.next_event();
            if due > now {
                return None;
            }
            let departed = self.link.take_arrived(due, &mut self.waits);
            while let Some(lost) = self.link.take_lost() {
                self.give_back(lost.octets);
            }
            if let Some(parcel) = departed {
                return Some((due, parcel));
            }
        }
    }

    /// When the link wants to be looked at next.
    pub fn next_event(&self) -> Instant {
        self.link.next_event()
    }

    /// A buffer that is free again.
    pub fn give_back(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.push(buffer);
    }

    /// What became of datagrams that were sent on, or of the attempt.
    pub fn count(&mut self, datagrams: u64, bytes: u64, sent: bool) {
        if sent {
            self.report.delivered_datagrams += datagrams;
            self.report.delivered_bytes += bytes + datagrams * u64::from(self.header_bytes);
        } else {
            self.report.send_failures += datagrams;
        }
    }

    pub fn report(&self) -> DirectionReport {
        DirectionReport {
            link: *self.link.counters(),
            queued_packets: self.link.queued_packets(),
            queueing: Summary::of(&self.waits.0),
            ..self.report
        }
    }
}
