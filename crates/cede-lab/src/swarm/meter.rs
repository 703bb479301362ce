//! What is heard of the access links.

use crate::histogram::Histogram;
use crate::meter::PacketTap;
use crate::record::Capture;
use cede_net::{Datagram, Dequeue, DropCause, Protocol};
use cede_sim::{LinkId, Observer, PacketEvent};
use cede_units::{Instant, Rate};
use std::cell::RefCell;
use std::rc::Rc;

/// What a link carried and how long its queue was.
#[derive(Clone, Debug)]
pub struct LinkRecord {
    /// Time that the octets left in the queue after each dequeue take to send.
    pub backlog: Histogram,
    /// How long each packet waited.
    pub waits: Histogram,
    /// Dequeues, and those that left something behind.
    pub dequeues: u64,
    /// Dequeues that left something behind.
    pub busy_dequeues: u64,
    /// Octets on the wire, by protocol: TCP, UDP.
    pub bytes: [u64; 2],
    /// Packets dropped.
    pub dropped: u64,
    rate: Rate,
}

impl LinkRecord {
    fn new(rate: Rate) -> Self {
        Self {
            backlog: Histogram::default(),
            waits: Histogram::default(),
            dequeues: 0,
            busy_dequeues: 0,
            bytes: [0; 2],
            dropped: 0,
            rate,
        }
    }

    /// The link's rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }
}

/// A dequeue, as the queue was afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueEntry {
    /// When it began to be sent.
    pub at: Instant,
    /// Which of the uplinks and, behind these, of the downlinks, in their order.
    pub link: u32,
    /// Packets left in the queue.
    pub packets: u32,
    /// Octets left in the queue.
    pub bytes: u64,
    /// Octets served so far.
    pub served_bytes: u64,
    /// Packets dropped so far.
    pub dropped: u64,
}

/// Hears every access link.
#[derive(Clone, Debug, Default)]
pub struct SwarmMeter {
    links: Vec<LinkRecord>,
    place: Vec<Option<usize>>,
    /// Nothing is counted after this.
    closed_at: Option<Instant>,
    /// Nothing is counted before this.
    opened_at: Instant,
    log: Option<Vec<QueueEntry>>,
    capture: Option<Rc<RefCell<Capture>>>,
}

impl SwarmMeter {
    /// A meter of these links, of `links` in all.
    #[must_use]
    pub fn new(links: usize, watched: &[(LinkId, Rate)]) -> Self {
        let mut place = vec![None; links];
        for (index, (link, _)) in watched.iter().enumerate() {
            place[link.0 as usize] = Some(index);
        }
        let links = watched.iter().map(|&(_, rate)| LinkRecord::new(rate)).collect();
        Self { links, place, ..Self::default() }
    }

    /// The links in the order in which they were named.
    #[must_use]
    pub fn links(&self) -> &[LinkRecord] {
        &self.links
    }

    /// Hands every packet at a host to a capture as well.
    pub(super) fn tap(&mut self, capture: Rc<RefCell<Capture>>) {
        self.capture = Some(capture);
    }

    /// Logs each dequeue from now on.
    pub fn keep_log(&mut self) {
        self.log.get_or_insert_default();
    }

    /// Each dequeue, where they are logged.
    #[must_use]
    pub fn log(&self) -> &[QueueEntry] {
        self.log.as_deref().unwrap_or_default()
    }

    /// Counts nothing after this.
    pub const fn close(&mut self, at: Instant) {
        self.closed_at = Some(at);
    }

    /// Whether what happens then counts.
    fn counts(&self, at: Instant) -> bool {
        at >= self.opened_at && self.closed_at.is_none_or(|closed| at <= closed)
    }

    /// Counts from here on.
    pub const fn open(&mut self, at: Instant) {
        self.opened_at = at;
    }
}

impl Observer for SwarmMeter {
    fn watches(&self, link: LinkId) -> bool {
        self.place.get(link.0 as usize).is_some_and(Option::is_some)
    }

    fn dequeued(&mut self, link: LinkId, datagram: &Datagram, event: &Dequeue) {
        let Some(index) = self.place[link.0 as usize] else { return };
        if !self.counts(event.at) {
            return;
        }
        let record = &mut self.links[index];
        let backlog = record.rate.time_to_send(event.queued_bytes);
        record.backlog.record(backlog);
        record.waits.record(event.waited);
        record.dequeues += 1;
        if let Some(log) = &mut self.log {
            log.push(QueueEntry {
                at: event.at,
                link: index as u32,
                packets: event.queued_packets,
                bytes: event.queued_bytes,
                served_bytes: event.served_bytes,
                dropped: event.dropped_packets,
            });
        }
        record.busy_dequeues += u64::from(event.queued_packets > 0);
        record.bytes[usize::from(datagram.protocol == Protocol::Udp)] += u64::from(event.bytes);
    }

    fn sent(&mut self, event: &PacketEvent<'_>) {
        if let Some(capture) = &mut self.capture {
            capture.packet(event.at, event.host, true, event.datagram);
        }
    }

    fn delivered(&mut self, event: &PacketEvent<'_>) {
        if let Some(capture) = &mut self.capture {
            capture.packet(event.at, event.host, false, event.datagram);
        }
    }

    fn dropped(&mut self, link: LinkId, _: &Datagram, at: Instant, _: DropCause) {
        if !self.counts(at) {
            return;
        }
        if let Some(index) = self.place[link.0 as usize] {
            self.links[index].dropped += 1;
        }
    }
}

/// All samples of several histograms' means, weighted by their samples.
pub(super) fn joint_mean_ms<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Option<f64> {
    let (mut sum, mut samples) = (0.0, 0);
    for histogram in histograms {
        sum += histogram.mean_ms().unwrap_or(0.0) * histogram.samples() as f64;
        samples += histogram.samples();
    }
    (samples > 0).then(|| sum / samples as f64)
}
