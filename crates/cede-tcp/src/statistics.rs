//! Counters and the state of a connection, for whoever records.

use cede_units::Duration;

/// Counts since the connection began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Segments sent, of every kind.
    pub segments_sent: u64,
    /// Segments received, of every kind, dropped ones included.
    pub segments_received: u64,
    /// Segments with payload sent, retransmissions included.
    pub data_segments_sent: u64,
    /// Their payload octets.
    pub data_bytes_sent: u64,
    /// Segments with payload or FIN sent again.
    pub retransmissions: u64,
    /// Their payload octets.
    pub retransmitted_bytes: u64,
    /// Payload octets that the peer has acknowledged, cumulatively or selectively.
    pub delivered_bytes: u64,
    /// Segments taken for lost on the strength of acknowledgements.
    pub losses: u64,
    /// Times that fast retransmit began a repair.
    pub recoveries: u64,
    /// Of these, those that were taken back: nothing had been lost.
    pub taken_back: u64,
    /// Segments that the peer reported to have arrived twice (RFC 2883).
    pub reported_twice: u64,
    /// Times that the retransmission timer ran out, handshake excluded.
    pub timeouts: u64,
    /// Tail-loss probes sent.
    pub tail_probes: u64,
    /// Duplicate acknowledgements received.
    pub duplicate_acks: u64,
    /// Segments sent that carried nothing but an acknowledgement.
    pub acks_sent: u64,
    /// Payload octets received in order.
    pub received_bytes: u64,
    /// Segments that arrived beyond a gap.
    pub out_of_order: u64,
    /// Segments with payload of which nothing was new or nothing fitted the window.
    pub duplicates: u64,
    /// Segments dropped for an old timestamp (PAWS, RFC 7323 section 5).
    pub old_timestamps: u64,
}

/// How a sender repairs losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RepairMode {
    /// Nothing to repair.
    #[default]
    Open,
    /// Fast recovery (RFC 6675, or RFC 6582 without SACK).
    Recovery,
    /// After a timeout, until all that was outstanding then is acknowledged.
    Loss,
}

/// Where a connection stands.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// The state of RFC 9293, section 3.3.2.
    pub state: crate::State,
    /// How losses are being repaired.
    pub repair: RepairMode,
    /// What the sender may have under way: the congestion window with what RFC 6582 adds to it in recovery.
    pub window_bytes: u64,
    /// The peer's window beyond what it has acknowledged.
    pub peer_window_bytes: u64,
    /// Octets sent and not cumulatively acknowledged.
    pub flight_bytes: u64,
    /// Octets under way, by RFC 6675's estimate.
    pub pipe_bytes: u64,
    /// Octets written and not sent.
    pub unsent_bytes: u64,
    /// The smoothed RTT; zero before the first sample.
    pub srtt: Duration,
    /// Its variation.
    pub rttvar: Duration,
    /// The retransmission timeout, backoff included.
    pub rto: Duration,
    /// Payload octets of a full segment.
    pub mss_bytes: u32,
    /// The controller's own state.
    pub controller: cede_cc::Snapshot,
}
