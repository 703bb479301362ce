//! What can be seen of a socket from outside, whatever its transport.

use cede_units::Duration;

/// What can be seen of a socket from outside.
#[derive(Clone, Debug, Default)]
pub struct SocketView {
    /// There is a connection.
    pub connected: bool,
    /// Congestion window in octets.
    pub cwnd_bytes: f64,
    /// What the transport takes from it, in octets: the window that the controller answered last; with TCP, what RFC 6582 adds in
    /// a repair too.
    pub allowed_bytes: u64,
    /// The controller's state.
    pub controller: cede_cc::Snapshot,
    /// The smoothed RTT; zero before the first sample.
    pub srtt: Duration,
    /// Octets under way.
    pub in_flight_bytes: u64,
    /// Data packets sent, retransmissions included.
    pub data_packets_sent: u64,
    /// Of these, sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Packets declared lost by acknowledgements.
    pub losses: u64,
    /// How far the connection has come, as the transport says it.
    pub state: String,
    /// Why it ended, where it ended badly.
    pub error: Option<String>,
}

impl SocketView {
    /// Of a uTP connection.
    pub(crate) fn of_utp(connection: &cede_utp::Connection) -> Self {
        let (snapshot, statistics) = (connection.snapshot(), connection.statistics());
        Self {
            connected: true,
            cwnd_bytes: snapshot.controller.cwnd_bytes,
            allowed_bytes: snapshot.cwnd_bytes,
            srtt: snapshot.srtt,
            in_flight_bytes: snapshot.in_flight_bytes,
            data_packets_sent: statistics.data_packets_sent,
            retransmissions: statistics.retransmissions,
            timeouts: statistics.timeouts,
            losses: statistics.losses,
            state: format!("{:?}", snapshot.state),
            error: None,
            controller: snapshot.controller,
        }
    }

    /// Of a TCP connection.
    pub(crate) fn of_tcp(connection: &cede_tcp::Connection) -> Self {
        let (snapshot, statistics) = (connection.snapshot(), connection.statistics());
        Self {
            connected: true,
            cwnd_bytes: snapshot.controller.cwnd_bytes,
            allowed_bytes: snapshot.window_bytes,
            srtt: snapshot.srtt,
            in_flight_bytes: snapshot.pipe_bytes,
            data_packets_sent: statistics.data_segments_sent,
            retransmissions: statistics.retransmissions,
            timeouts: statistics.timeouts,
            losses: statistics.losses,
            state: format!("{:?}", snapshot.state),
            error: None,
            controller: snapshot.controller,
        }
    }
}
