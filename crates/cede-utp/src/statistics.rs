//! Counters of a connection, and a look at where it stands.

use alloc::boxed::Box;
use cede_cc::Snapshot as ControllerSnapshot;
use cede_units::{Duration, Rate};

/// What a connection has done since its first packet. Octets are of payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Packets of all kinds that left.
    pub packets_sent: u64,
    /// DATA packets that left, retransmissions included.
    pub data_packets_sent: u64,
    /// Their payload.
    pub data_bytes_sent: u64,
    /// STATE packets that left.
    pub states_sent: u64,
    /// SYN, DATA and FIN packets that left again.
    pub retransmissions: u64,
    /// Their payload.
    pub retransmitted_bytes: u64,
    /// Packets declared lost by acknowledgements, or by what has not been acknowledged in time (path-MTU probes are not among them).
    pub losses: u64,
    /// Packets sent because nothing was heard of the last ones (RFC 8985 section 7).
    pub tail_probes: u64,
    /// Retransmission timeouts with something under way.
    pub timeouts: u64,
    /// Of these, in vain: what was waited for was on its way, as the peer's stamps have shown.
    pub timeouts_in_vain: u64,
    /// Packets of ours acknowledged for the first time.
    pub packets_acked: u64,
    /// Payload of ours acknowledged for the first time.
    pub bytes_acked: u64,
    /// Loss events that were none, as packets had overtaken one another: what they took of the window was given back.
    pub events_in_vain: u64,
    /// Path-MTU probes that left.
    pub mtu_probes_sent: u64,
    /// Path-MTU probes that were lost.
    pub mtu_probes_lost: u64,
    /// Times that the search for the path's MTU began anew because large packets were repeated in vain.
    pub mtu_black_holes: u64,
    /// Probes of a window of zero.
    pub zero_window_probes: u64,
    /// Keepalives that left.
    pub keepalives_sent: u64,
    /// Packets that arrived and decoded.
    pub packets_received: u64,
    /// DATA packets that arrived for the first time and were kept.
    pub data_packets_received: u64,
    /// Payload delivered in order, read or not.
    pub bytes_delivered: u64,
    /// DATA and FIN packets that had arrived before.
    pub duplicates_received: u64,
    /// DATA and FIN packets that arrived ahead of a gap.
    pub out_of_order_received: u64,
    /// Duplicate STATEs.
    pub duplicate_acks_received: u64,
    /// Packets dropped because they acknowledge what was never sent, or what has long been acknowledged.
    pub discarded_ack: u64,
    /// Packets dropped for a number outside of the window, or beyond the FIN.
    pub discarded_seq: u64,
    /// DATA packets dropped because the receive buffer is full.
    pub discarded_buffer: u64,
    /// RESETs dropped because their acknowledgement proves nothing.
    pub discarded_resets: u64,
    /// Octets that are no packet, or a packet of a kind that has no place here.
    pub discarded_other: u64,
}

/// The counters as a connection keeps them: what an idle one on a sound path has never counted takes no room.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub packets_sent: u64,
    pub data_packets_sent: u64,
    pub data_bytes_sent: u64,
    pub states_sent: u64,
    pub packets_acked: u64,
    pub bytes_acked: u64,
    pub mtu_probes_sent: u64,
    pub keepalives_sent: u64,
    pub packets_received: u64,
    pub data_packets_received: u64,
    pub bytes_delivered: u64,
    /// Of these, the fields that are not above.
    rare: Option<Box<Statistics>>,
}

impl Counters {
    #[cold]
    pub fn rare(&mut self) -> &mut Statistics {
        self.rare.get_or_insert_default()
    }

    pub fn all(&self) -> Statistics {
        Statistics {
            packets_sent: self.packets_sent,
            data_packets_sent: self.data_packets_sent,
            data_bytes_sent: self.data_bytes_sent,
            states_sent: self.states_sent,
            packets_acked: self.packets_acked,
            bytes_acked: self.bytes_acked,
            mtu_probes_sent: self.mtu_probes_sent,
            keepalives_sent: self.keepalives_sent,
            packets_received: self.packets_received,
            data_packets_received: self.data_packets_received,
            bytes_delivered: self.bytes_delivered,
            ..self.rare.as_deref().copied().unwrap_or_default()
        }
    }
}

/// What arrived that no sound peer sends, as far as it is not among what [`Statistics`] calls discarded. None of it does
/// harm; much of it says that somebody tries. Most connections never count any, and have no room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Suspicions {
    /// Masks that acknowledge packets never sent. The rest of such a mask counts.
    pub unsent_selective_acks: u64,
    /// Acknowledgements that came in less than half of the smallest round trip before: of packets that may not have
    /// arrived yet (Savage et al., "TCP congestion control with a misbehaving receiver", 1999), or over a path that
    /// has changed. They are believed, because the second would stall otherwise; a receiver that lies about what
    /// it has loses data of its own, and the limit of the send buffer bounds what it can draw. (Leaving out numbers now and
    /// then would catch it; but uTP's numbers leave no room for that.)
    pub early_acks: u64,
    /// DATA beyond the FIN, and FINs that contradict it.
    pub data_after_fin: u64,
    /// SYNs with this connection's ids that are not its own.
    pub stray_syns: u64,
    /// Times that a window too small to be useful was waited out.
    pub silly_windows: u64,
    /// Packets dropped because too many small ones wait beyond a gap.
    pub crowded_out: u64,
}

/// How far a connection has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConnectionState {
    /// A SYN is on its way.
    SynSent,
    /// A SYN has been answered.
    SynReceived,
    /// Data may flow.
    Established,
    /// Our FIN is queued or sent; the peer's may have arrived or not.
    Closing,
    /// Both directions have ended; repeated FINs are still answered.
    Lingering,
    /// Over.
    Closed,
}

/// Where a connection stands.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// How far it has come.
    pub state: ConnectionState,
    /// What the controller says.
    pub controller: ControllerSnapshot,
    /// The window in force, in octets.
    pub cwnd_bytes: u64,
    /// Octets under way.
    pub in_flight_bytes: u64,
    /// Packets under way.
    pub in_flight_packets: u32,
    /// Octets written and never sent.
    pub queued_bytes: u64,
    /// Octets sent and not acknowledged, those taken for lost included.
    pub unacked_bytes: u64,
    /// Octets in order that wait to be read.
    pub readable_bytes: u64,
    /// Octets that wait beyond a gap.
    pub reordered_bytes: u64,
    /// The window that the peer advertised last, in octets.
    pub peer_window_bytes: u32,
    /// The window that we would advertise now, in octets.
    pub window_bytes: u32,
    /// Payload octets of a full packet.
    pub payload_bytes: u32,
    /// The smoothed RTT (RFC 6298); zero before the first sample.
    pub srtt: Duration,
    /// The RTT variation (RFC 6298).
    pub rtt_variation: Duration,
    /// The latest RTT sample.
    pub rtt_latest: Duration,
    /// The smallest RTT sample.
    pub rtt_min: Option<Duration>,
    /// The retransmission timeout, backoff included.
    pub rto: Duration,
    /// The latest raw one-way delay of what we send, in nanoseconds: the peer's clock less ours.
    pub one_way_delay_ns: Option<i64>,
    /// The latest raw one-way delay of what arrives, in nanoseconds: our clock less the peer's.
    pub reverse_delay_ns: Option<i64>,
    /// What the one-way delay of what we send is above its smallest value so far: what queues there, as far as the
    /// clocks keep pace. Controllers that steer by it know it better ([`ControllerSnapshot::queueing_delay`]).
    pub one_way_delay_above_min: Option<Duration>,
    /// The rate at which the latest acknowledgement found data delivered, over about a round trip
    /// (draft-cheng-iccrg-delivery-rate-estimation); zero before the first.
    pub delivery_rate: Rate,
    /// A loss event is being repaired.
    pub in_recovery: bool,
}

impl Snapshot {
    /// Octets written that the peer has not acknowledged, sent or not.
    #[must_use]
    pub const fn undelivered_bytes(&self) -> u64 {
        self.queued_bytes + self.unacked_bytes
    }
}
