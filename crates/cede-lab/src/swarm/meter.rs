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
    /// Time that the octets take to send which wait as each packet's turn comes, its own among them (see [`QueueEntry`]).
    pub backlog: Histogram,
    /// How long each packet waited.
    pub waits: Histogram,
    /// Packets whose turn came.
    pub dequeues: u64,
    /// Those that had waited for it.
    pub busy_dequeues: u64,
    /// Octets on the wire, by protocol: TCP, UDP.
    pub bytes: [u64; 2],
    /// Packets that found no room: what the wire loses had room.
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

/// What one packet leaves behind as the next one's turn comes.
///
/// A token bucket such as Linux's `tbf` takes a packet from its queue once it may leave, and what its log tells after that are all who still
/// wait, the next one among them. Here a packet leaves the queue as its turn comes and is on the line for as long as it would have waited there
/// for its tokens. So the same is told at that moment: a packet that had to wait for its turn counts itself, and one that found the link free
/// finds nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueEntry {
    /// When a packet's turn came: as the one before had left, or as it arrived.
    pub at: Instant,
    /// Which of the uplinks and, behind these, of the downlinks, in their order.
    pub link: u32,
    /// Packets that waited until then.
    pub packets: u32,
    /// Octets that waited until then.
    pub bytes: u64,
    /// Octets that had left by then.
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
        let (packets, bytes) = waiting(event);
        let record = &mut self.links[index];
        record.backlog.record(record.rate.time_to_send(bytes));
        record.waits.record(event.waited);
        record.dequeues += 1;
        if let Some(log) = &mut self.log {
            log.push(QueueEntry {
                at: event.at,
                link: index as u32,
                packets,
                bytes,
                served_bytes: event.served_bytes - u64::from(event.bytes),
                dropped: event.dropped_packets,
            });
        }
        record.busy_dequeues += u64::from(packets > 0);
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

    fn dropped(&mut self, link: LinkId, _: &Datagram, at: Instant, cause: DropCause) {
        // What the wire lost was in the queue and has left it; the log of dequeues does not count it, either.
        if !self.counts(at) || cause == DropCause::Wire {
            return;
        }
        if let Some(index) = self.place[link.0 as usize] {
            self.links[index].dropped += 1;
        }
    }
}

/// Packets and octets that wait as a packet's turn comes, its own among them if it had to wait.
const fn waiting(event: &Dequeue) -> (u32, u64) {
    if event.waited.is_zero() {
        return (0, 0);
    }
    (event.queued_packets + 1, event.queued_bytes + event.bytes as u64)
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

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Duration;

    #[test]
    fn who_waited_for_its_turn_was_left_behind_and_counts() {
        let turn = |waited_ms, queued_packets, queued_bytes| {
            waiting(&Dequeue {
                at: Instant::from_secs(1),
                bytes: 1500,
                waited: Duration::from_millis(waited_ms),
                queued_packets,
                queued_bytes,
                served_bytes: 1500,
                dropped_packets: 0,
            })
        };
        assert_eq!(turn(0, 0, 0), (0, 0));
        assert_eq!(turn(12, 0, 0), (1, 1500));
        assert_eq!(turn(36, 2, 2048), (3, 3548));
    }
}
