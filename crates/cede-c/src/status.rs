//! Where a stream stands, as C sees it.

use cede_real::StreamView;
use cede_units::Duration;

/// What is not known.
const UNKNOWN: u64 = u64::MAX;

/// `cede_status` of `cede.h`: the same fields in the same order.
#[repr(C)]
pub struct Status {
    cwnd_bytes: u64,
    in_flight_bytes: u64,
    unsent_bytes: u64,
    srtt_us: u64,
    rtt_min_us: u64,
    queueing_delay_us: u64,
    delivery_bits_per_s: u64,
    bytes_acked: u64,
    bytes_received: u64,
    retransmissions: u64,
    timeouts: u64,
}

impl Status {
    /// `None` once the socket has closed.
    pub fn of(view: &StreamView) -> Option<Self> {
        let (snapshot, statistics) = (view.snapshot()?, view.statistics());
        let known = |span: Option<Duration>| span.map_or(UNKNOWN, Duration::as_micros);
        Some(Self {
            cwnd_bytes: snapshot.cwnd_bytes,
            in_flight_bytes: snapshot.in_flight_bytes,
            unsent_bytes: snapshot.queued_bytes,
            srtt_us: known(Some(snapshot.srtt).filter(|srtt| !srtt.is_zero())),
            rtt_min_us: known(snapshot.rtt_min),
            queueing_delay_us: known(snapshot.controller.queueing_delay),
            delivery_bits_per_s: snapshot.delivery_rate.bits_per_sec(),
            bytes_acked: statistics.bytes_acked,
            bytes_received: statistics.bytes_delivered,
            retransmissions: statistics.retransmissions,
            timeouts: statistics.timeouts,
        })
    }
}
