//! What a controller is told, as Python sees it: times in seconds, amounts in octets.

use cede_cc::{Feedback as Told, PacketFact};
use cede_units::Instant;
use pyo3::prelude::*;

const NS_PER_S: f64 = 1e9;

/// Seconds since the run began.
pub fn seconds(at: Instant) -> f64 {
    at.as_secs_f64()
}

/// What a controller knows of the path before the first packet.
#[pyclass(frozen, get_all, module = "cede")]
pub struct Path {
    /// Payload octets of a full packet.
    mss_bytes: u32,
    /// The initial window that the transport prescribes.
    initial_cwnd_bytes: u32,
    /// The largest window worth having.
    max_cwnd_bytes: u64,
}

impl From<&cede_cc::Path> for Path {
    fn from(path: &cede_cc::Path) -> Self {
        let cede_cc::Path { mss_bytes, initial_cwnd_bytes, max_cwnd_bytes } = *path;
        Self { mss_bytes, initial_cwnd_bytes, max_cwnd_bytes }
    }
}

/// A packet whose fate was learnt.
#[pyclass(frozen, get_all, module = "cede")]
pub struct Packet {
    /// Counts transmissions of new data from 0 on; a retransmission keeps its number.
    number: u64,
    /// Payload octets.
    bytes: u32,
    /// When it last left.
    sent_at_s: f64,
    /// It was sent more than once.
    retransmitted: bool,
    /// What `on_sent` answered for it.
    tag: u32,
}

impl From<&PacketFact> for Packet {
    fn from(fact: &PacketFact) -> Self {
        let PacketFact { number, bytes, sent_at, retransmitted, tag, .. } = *fact;
        Self { number, bytes, sent_at_s: seconds(sent_at), retransmitted, tag }
    }
}

/// Everything that one arriving acknowledgement says (`cede_cc::Feedback`).
#[pyclass(frozen, module = "cede")]
pub struct Feedback {
    /// Now.
    #[pyo3(get)]
    now_s: f64,
    /// Payload octets that are acknowledged for the first time.
    #[pyo3(get)]
    acked_bytes: u64,
    /// Payload octets that are declared lost.
    #[pyo3(get)]
    lost_bytes: u64,
    /// Octets under way before this acknowledgement.
    #[pyo3(get)]
    in_flight_before_bytes: u64,
    /// Octets under way after it.
    #[pyo3(get)]
    in_flight_bytes: u64,
    /// Octets delivered on the connection so far.
    #[pyo3(get)]
    delivered_bytes: u64,
    /// The number that the next new packet will carry.
    #[pyo3(get)]
    next_number: u64,
    /// The round trip of the newest packet acknowledged, or None.
    #[pyo3(get)]
    rtt_s: Option<f64>,
    /// The shortest round trip of the packets acknowledged, or None.
    #[pyo3(get)]
    rtt_min_s: Option<f64>,
    /// The smoothed round trip; 0 before the first.
    #[pyo3(get)]
    srtt_s: f64,
    /// The receiver's clock less ours, for what we send: only differences mean anything.
    #[pyo3(get)]
    one_way_delay_s: Option<f64>,
    /// Our clock less the peer's, for what it sends.
    #[pyo3(get)]
    reverse_delay_s: Option<f64>,
    /// Acknowledged packets that arrived with Congestion Experienced.
    #[pyo3(get)]
    ce_marked: u32,
    /// The application, not the window, limited what was under way.
    #[pyo3(get)]
    app_limited: bool,
    /// An earlier loss event is being repaired.
    #[pyo3(get)]
    in_recovery: bool,
    packets: [Vec<PacketFact>; 2],
}

#[pymethods]
impl Feedback {
    /// Packets acknowledged for the first time, by rising number.
    #[getter]
    fn acked(&self) -> Vec<Packet> {
        self.packets[0].iter().map(Packet::from).collect()
    }

    /// Packets declared lost, by rising number.
    #[getter]
    fn lost(&self) -> Vec<Packet> {
        self.packets[1].iter().map(Packet::from).collect()
    }
}

impl From<&Told<'_>> for Feedback {
    fn from(told: &Told<'_>) -> Self {
        let of_ns = |ns: i64| ns as f64 / NS_PER_S;
        Self {
            now_s: seconds(told.now),
            acked_bytes: told.acked_bytes,
            lost_bytes: told.lost_bytes,
            in_flight_before_bytes: told.in_flight_before_bytes,
            in_flight_bytes: told.in_flight_bytes,
            delivered_bytes: told.delivered_bytes,
            next_number: told.next_number,
            rtt_s: told.rtt.map(cede_units::Duration::as_secs_f64),
            rtt_min_s: told.rtt_min.map(cede_units::Duration::as_secs_f64),
            srtt_s: told.srtt.as_secs_f64(),
            one_way_delay_s: told.one_way_delay_ns.map(of_ns),
            reverse_delay_s: told.reverse_delay_ns.map(of_ns),
            ce_marked: told.ce_marked,
            app_limited: told.app_limited,
            in_recovery: told.in_recovery,
            packets: [told.acked.to_vec(), told.lost.to_vec()],
        }
    }
}

/// A packet is leaving.
#[pyclass(frozen, get_all, module = "cede")]
pub struct Sent {
    /// Now.
    now_s: f64,
    /// The packet's number.
    number: u64,
    /// Payload octets.
    bytes: u32,
    /// Octets under way, this packet included.
    in_flight_bytes: u64,
    /// It has been sent before.
    retransmission: bool,
}

impl From<&cede_cc::Sent> for Sent {
    fn from(sent: &cede_cc::Sent) -> Self {
        let cede_cc::Sent { now, number, bytes, in_flight_bytes, retransmission } = *sent;
        Self { now_s: seconds(now), number, bytes, in_flight_bytes, retransmission }
    }
}

/// The retransmission timer ran out.
#[pyclass(frozen, get_all, module = "cede")]
pub struct Timeout {
    /// Now.
    now_s: f64,
    /// Octets that were under way, all of which are taken for lost.
    in_flight_bytes: u64,
    /// Timeouts in a row, this one included.
    consecutive: u32,
    /// The number that the next new packet will carry.
    next_number: u64,
    /// Nothing was outstanding: the connection has idled for one timeout.
    idle: bool,
}

impl From<&cede_cc::Timeout> for Timeout {
    fn from(timeout: &cede_cc::Timeout) -> Self {
        let cede_cc::Timeout { now, in_flight_bytes, consecutive, next_number, idle } = *timeout;
        Self { now_s: seconds(now), in_flight_bytes, consecutive, next_number, idle }
    }
}
