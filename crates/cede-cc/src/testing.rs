//! Feedback for unit tests: plausible defaults, which a test then changes where it matters.

use crate::{Feedback, PacketFact, Path, SendRecord, Timeout};
use alloc::vec::Vec;
use cede_units::{Duration, Instant};

/// A path with this packet size, an initial window of four packets and no limit worth mentioning.
pub(crate) fn path(mss_bytes: u32) -> Path {
    Path { mss_bytes, initial_cwnd_bytes: 4 * mss_bytes, max_cwnd_bytes: 1 << 30 }
}

/// Feedback that owns its packets.
pub(crate) struct Owned {
    pub(crate) feedback: Feedback<'static>,
    acked: Vec<PacketFact>,
    lost: Vec<PacketFact>,
}

impl Owned {
    pub(crate) fn feedback(&self) -> Feedback<'_> {
        Feedback { acked: &self.acked, lost: &self.lost, ..self.feedback }
    }
}

fn packet(number: u64, bytes: u64) -> PacketFact {
    PacketFact {
        number,
        bytes: bytes as u32,
        sent_at: Instant::ZERO,
        retransmitted: false,
        tag: 0,
        record: SendRecord::default(),
    }
}

fn blank(next_number: u64) -> Feedback<'static> {
    Feedback {
        now: Instant::from_secs(1),
        acked: &[],
        lost: &[],
        acked_bytes: 0,
        lost_bytes: 0,
        in_flight_before_bytes: 0,
        in_flight_bytes: 0,
        delivered_bytes: 0,
        next_number,
        rtt: None,
        rtt_min: None,
        srtt: Duration::from_millis(100),
        one_way_delay_ns: None,
        reverse_delay_ns: None,
        ce_marked: 0,
        app_limited: false,
        in_recovery: false,
    }
}

/// The packet `number` of so many octets is acknowledged.
pub(crate) fn ack(number: u64, bytes: u64) -> Owned {
    let mut feedback = blank(number + 1);
    feedback.acked_bytes = bytes;
    Owned { feedback, acked: alloc::vec![packet(number, bytes)], lost: Vec::new() }
}

/// The packets `number` and the next are acknowledged together.
pub(crate) fn ack_of_two(number: u64, bytes: u64) -> Owned {
    let mut both = ack(number + 1, 2 * bytes);
    both.acked = alloc::vec![packet(number, bytes), packet(number + 1, bytes)];
    both
}

/// The packet `number` is found lost while the next new one is `next_number`.
pub(crate) fn loss(number: u64, next_number: u64) -> Owned {
    let mut feedback = blank(next_number);
    feedback.lost_bytes = 1000;
    Owned { feedback, acked: Vec::new(), lost: alloc::vec![packet(number, 1000)] }
}

/// The `consecutive`-th timeout in a row.
pub(crate) fn timeout(in_flight_bytes: u64, consecutive: u32) -> Timeout {
    Timeout { now: Instant::from_secs(2), in_flight_bytes, consecutive, next_number: 1000, idle: false }
}
