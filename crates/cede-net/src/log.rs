//! What a link tells: its counters, and each event to whoever listens.

use cede_units::{Duration, Instant};

/// What a link has done so far. Always `arrived = served + dropped + queued`, in packets and in octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets offered.
    pub arrived_packets: u64,
    /// Packets whose transmission began.
    pub served_packets: u64,
    /// Octets whose transmission began.
    pub served_bytes: u64,
    /// Packets that the queue refused or dropped, for whatever reason.
    pub dropped_packets: u64,
    /// Octets that the queue refused or dropped.
    pub dropped_bytes: u64,
    /// `dropped_packets` by their causes.
    pub drops: Drops,
    /// Packets that the queue marked in place of dropping them. They are served.
    pub marked_packets: u64,
    /// Packets lost on the wire after transmission.
    pub lost_packets: u64,
}

/// A packet joined the queue (or, on an idle link, passed through it).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enqueue {
    /// When.
    pub at: Instant,
    /// Octets of the packet.
    pub bytes: u32,
    /// Packets that wait afterwards, this one included unless its transmission begins at once.
    pub queued_packets: u32,
    /// Octets that wait afterwards.
    pub queued_bytes: u64,
}

/// A packet left the queue: its transmission begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dequeue {
    /// When.
    pub at: Instant,
    /// Octets of the packet.
    pub bytes: u32,
    /// How long it waited.
    pub waited: Duration,
    /// Packets that wait afterwards.
    pub queued_packets: u32,
    /// Octets that wait afterwards.
    pub queued_bytes: u64,
    /// Octets served since the beginning, this packet included.
    pub served_bytes: u64,
    /// Packets dropped since the beginning.
    pub dropped_packets: u64,
}

/// Why a packet did not get through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropCause {
    /// It found the queue full.
    QueueFull,
    /// It waited in a full queue and had to make room for another.
    PushedOut,
    /// The queue's discipline refused it, though there was room.
    Early,
    /// It waited, and the queue's discipline dropped it for the time that packets wait.
    Sojourn,
    /// The policer refused it: it was beyond the agreed rate.
    Policed,
    /// The wire lost it after transmission.
    Wire,
}

impl DropCause {
    /// Every cause.
    pub const ALL: [Self; 6] =
        [Self::QueueFull, Self::PushedOut, Self::Early, Self::Sojourn, Self::Policed, Self::Wire];

    /// The packet never joined the queue: nothing else was heard of its arrival.
    #[must_use]
    pub const fn is_at_arrival(self) -> bool {
        matches!(self, Self::QueueFull | Self::Early | Self::Policed)
    }

    /// What records call it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::PushedOut => "pushed_out",
            Self::Early => "early",
            Self::Sojourn => "sojourn",
            Self::Policed => "policed",
            Self::Wire => "wire",
        }
    }
}

/// Packets that did not get through, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drops([u64; DropCause::ALL.len()]);

impl Drops {
    /// How many were dropped for this cause.
    #[must_use]
    pub const fn of(&self, cause: DropCause) -> u64 {
        self.0[cause as usize]
    }

    /// Counts one more.
    pub const fn note(&mut self, cause: DropCause) {
        self.0[cause as usize] += 1;
    }
}

impl Counters {
    pub(crate) fn note_drop(&mut self, bytes: u32, cause: DropCause) {
        self.dropped_packets += 1;
        self.dropped_bytes += u64::from(bytes);
        self.drops.note(cause);
    }
}

/// Hears what happens on a link, in the order of its virtual times, and answers for its packets: a link knows them by
/// their tokens alone. The unit type hears nothing and knows nothing, at no cost.
pub trait LinkLog<T> {
    /// A packet was admitted.
    fn enqueued(&mut self, packet: &T, event: &Enqueue) {
        let _ = (packet, event);
    }
    /// A packet's transmission began.
    fn dequeued(&mut self, packet: &T, event: &Dequeue) {
        let _ = (packet, event);
    }
    /// A packet was dropped or lost.
    fn dropped(&mut self, packet: &T, at: Instant, cause: DropCause) {
        let _ = (packet, at, cause);
    }
    /// The queue wants to signal congestion through this packet. Marks it "congestion experienced" and answers true
    /// where its transport understands that (RFC 3168, section 5); otherwise it is dropped.
    fn mark(&mut self, packet: &mut T, at: Instant) -> bool {
        let _ = (packet, at);
        false
    }
    /// A number that the packets of one flow share, for queues that keep flows apart.
    fn flow_key(&self, packet: &T) -> u64 {
        let _ = packet;
        0
    }
}

impl<T> LinkLog<T> for () {}
