//! Questions about a connection that change nothing.

use super::send::LocalFin;
use super::{Connection, State};
use crate::event::ConnectionError;
use crate::statistics::{ConnectionState, Snapshot, Statistics, Suspicions};
use cede_units::Seq16;
use core::fmt;

impl Connection {
    /// The id in packets that this side receives.
    #[must_use]
    pub fn receive_id(&self) -> u16 {
        self.ids.receive
    }

    /// The id in packets that this side sends, SYNs aside.
    #[must_use]
    pub fn send_id(&self) -> u16 {
        self.ids.send
    }

    /// How far the connection has come.
    #[must_use]
    pub fn state(&self) -> ConnectionState {
        match self.state {
            State::SynSent { .. } => ConnectionState::SynSent,
            State::SynReceived { .. } => ConnectionState::SynReceived,
            State::Closed { .. } => ConnectionState::Closed,
            State::Established { .. } if self.is_finished() => ConnectionState::Lingering,
            State::Established { .. } if self.sending.fin != LocalFin::None => ConnectionState::Closing,
            State::Established { .. } => ConnectionState::Established,
        }
    }

    /// The handshake is over, and the connection is not.
    #[must_use]
    pub fn is_established(&self) -> bool {
        matches!(self.state, State::Established { .. })
    }

    /// Nothing more will be sent or received for the application: both streams have ended, or the connection is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. }) || self.is_finished()
    }

    /// The connection is over and can be dropped: no packet of it wants to be sent or answered any more.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        matches!(self.state, State::Closed { reset_due: false, .. })
    }

    /// A packet of ours with this number has left and is not acknowledged.
    #[must_use]
    pub fn is_under_way(&self, seq: Seq16) -> bool {
        match self.state {
            State::SynSent { .. } => seq.add(1) == self.first_seq,
            _ => u64::from(self.next_seq().sub(1).distance_from(seq)) < self.sending.outbox.len(),
        }
    }

    /// Why the connection is over, where it is and did not end in good order.
    #[must_use]
    pub fn error(&self) -> Option<ConnectionError> {
        match self.state {
            State::Closed { error, .. } => error,
            _ => None,
        }
    }

    /// The reason that the peer gave with its FIN (extension 3). It means nothing to this code.
    #[must_use]
    pub fn peer_close_reason(&self) -> Option<u16> {
        self.receiving.close_reason
    }

    /// What the connection has done so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.counters.all()
    }

    /// What arrived that no sound peer sends.
    #[must_use]
    pub fn suspicions(&self) -> Suspicions {
        self.suspicions.as_deref().copied().unwrap_or_default()
    }

    /// Counts something suspicious.
    #[cold]
    pub(super) fn suspect(&mut self, count: impl FnOnce(&mut Suspicions)) {
        count(self.suspicions.get_or_insert_default());
    }

    /// The smoothed round-trip time, once there is a sample (RFC 6298).
    #[must_use]
    pub fn smoothed_rtt(&self) -> Option<cede_units::Duration> {
        Some(self.rtt.srtt()).filter(|rtt| !rtt.is_zero())
    }

    /// Where the connection stands, for records. The controller may allocate for its part.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            state: self.state(),
            controller: self.controller.snapshot(),
            cwnd_bytes: self.allowance.cwnd_bytes,
            in_flight_bytes: self.sending.in_flight_bytes,
            in_flight_packets: self.sending.in_flight_packets,
            queued_bytes: self.sending.queue.len_bytes(),
            unacked_bytes: self.sending.unacked_bytes,
            readable_bytes: self.receiving.ready.len_bytes(),
            reordered_bytes: self.receiving.reorder.len_bytes(),
            peer_window_bytes: self.sending.peer_window_bytes,
            window_bytes: self.window_bytes(),
            payload_bytes: self.mtu.payload_bytes(),
            srtt: self.rtt.srtt(),
            rtt_variation: self.rtt.rttvar(),
            rtt_latest: self.rtt.latest().unwrap_or_default(),
            rtt_min: self.rtt.min(),
            rto: self.rtt.rto(),
            one_way_delay_ns: self.delays.latest_ns(),
            reverse_delay_ns: self.delays.latest_reverse_ns(),
            one_way_delay_above_min: self.delays.above_min(),
            delivery_rate: self.sending.delivery_rate(),
            in_recovery: self.sending.outbox.una() < self.loss.recovery_until,
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("state", &self.state)
            .field("ids", &self.ids)
            .field("controller", &self.controller.name())
            .field("cwnd_bytes", &self.allowance.cwnd_bytes)
            .field("in_flight_bytes", &self.sending.in_flight_bytes)
            .finish_non_exhaustive()
    }
}
