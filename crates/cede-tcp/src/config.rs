//! What can be set on a connection. Congestion control is not here: it is the controller's.

use cede_cc::Path;
use cede_units::Duration;

/// Octets that the timestamps option takes with its padding (RFC 7323, appendix A).
pub const TIMESTAMP_OPTION_BYTES: u32 = 12;

/// How a received segment's acknowledgement is scheduled, as long as segments arrive in order. Out-of-order segments,
/// and those that fill a gap, are acknowledged at once under every policy (RFC 5681, section 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckPolicy {
    /// One acknowledgement for each segment.
    Every,
    /// One for every `every` segments, or after `timeout` (RFC 1122, section 4.2.3.2: 2, at most 500 ms).
    Delayed {
        /// How many segments one acknowledgement covers.
        every: u32,
        /// How long a segment waits for the next.
        timeout: Duration,
    },
    /// As Linux does: at once for the first 16 segments and after idling, then for more than one full segment, with
    /// a timeout between 40 and 200 ms that follows the spacing of the data.
    Linux,
}

impl AckPolicy {
    /// Every second segment, or after 200 ms.
    pub const DELAYED: Self = Self::Delayed { every: 2, timeout: Duration::from_millis(200) };
}

/// The initial congestion window, handed to the controller in [`Path::initial_cwnd_bytes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InitialWindow {
    /// Two to four segments by their size (RFC 5681, section 3.1).
    Rfc5681,
    /// Ten segments (RFC 6928).
    Rfc6928,
    /// This many segments.
    Segments(u32),
}

impl InitialWindow {
    /// The window in octets for segments of `mss_bytes`.
    #[must_use]
    pub const fn bytes(self, mss_bytes: u32) -> u32 {
        let segments = match self {
            Self::Rfc5681 if mss_bytes > 2190 => 2,
            Self::Rfc5681 if mss_bytes > 1095 => 3,
            Self::Rfc5681 => 4,
            Self::Rfc6928 => 10,
            Self::Segments(n) => n,
        };
        segments.saturating_mul(mss_bytes)
    }
}

/// How the retransmission timeout follows the RTT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtoProfile {
    /// SRTT + 4 RTTVAR, not below [`Config::rto_min`] (RFC 6298).
    Rfc6298,
    /// SRTT + a variation that is not below [`Config::rto_min`], rises at once and decays once per round trip.
    Linux,
}

/// A connection's parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The MSS option: payload and options of the largest segment (RFC 6691); 1460 makes IPv4 packets of 1500 octets.
    pub mss_bytes: u16,
    /// The initial congestion window.
    pub initial_window: InitialWindow,
    /// Offer selective acknowledgements, and repair losses by RFC 6675 where the peer offers them too; otherwise by
    /// NewReno (RFC 6582).
    pub sack: bool,
    /// Forget selective acknowledgements at a timeout, as RFC 2018 section 8 asks; most stacks keep them.
    pub sack_forgotten_at_timeout: bool,
    /// Find losses by time, and probe for the last of a flight, where SACK is in force: RACK-TLP (RFC 8985), in place of RFC
    /// 6675's counting. Report what arrives twice (RFC 2883), learn from such reports, and take back repairs and timeouts that were in vain.
    pub rack: bool,
    /// Send new data on the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Come down to the controller's window in proportion to what is delivered (RFC 6937) during a repair with SACK;
    /// otherwise nothing leaves until pipe has fallen below the window (RFC 6675).
    pub prr: bool,
    /// Come down to the controller's window by a segment for each second acknowledgement, and never have more than one
    /// segment above what is under way, during a repair with SACK (Linux before 3.2). Rules over [`Self::prr`].
    pub rate_halving: bool,
    /// Take the window for what limits the sender by what whole flights made of it, as Linux does since 3.16. Otherwise it is
    /// while there is more to send than it lets leave.
    pub usage_by_flight: bool,
    /// Hold a short segment back while data is outstanding (RFC 896).
    pub nagle: bool,
    /// Offer explicit congestion notification (RFC 3168): data may be marked by queues in place of dropping it, where the
    /// controller answers marks ([`cede_cc::Controller::answers_marks`]).
    pub ecn: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// The length of one tick of the timestamp clock; RFC 7323 allows 1 ms to 1 s, finer ones show the effect of the
    /// resolution on delay-based controllers.
    pub timestamp_granularity: Duration,
    /// The timestamp clock begins at a random value for each connection (RFC 7323, section 5.4, allows it; Linux since
    /// 4.10), so that one-way delays have an arbitrary offset. Without, it reads what the host's clock reads, as it did
    /// before.
    pub timestamp_random: bool,
    /// When acknowledgements leave.
    pub ack_policy: AckPolicy,
    /// Written octets that may await their acknowledgement.
    pub send_buffer_bytes: u32,
    /// The largest window to advertise. Up to twice as much is held for a slow reader, so that the window stays still
    /// while the reader keeps up within one window.
    pub receive_window_bytes: u32,
    /// Begin with a window of 64 KiB, which grows to twice what the reader takes in a round trip, and count what has not been
    /// read against it: as Linux does, which shows where a reader is slow. Otherwise the largest stands open from the first.
    pub receive_tuning: bool,
    /// How the retransmission timeout is derived.
    pub rto_profile: RtoProfile,
    /// Its floor: 1 s by RFC 6298 (2.4), 200 ms in most stacks.
    pub rto_min: Duration,
    /// Its ceiling, backoff included; at least 60 s by RFC 6298 (2.5).
    pub rto_max: Duration,
    /// Before the first RTT sample (RFC 6298 (2.1)).
    pub rto_initial: Duration,
    /// Timeouts in a row after which the connection fails.
    pub retries_max: u32,
    /// The same for SYN.
    pub syn_retries_max: u32,
    /// How long the side that closed first answers late segments. The standard's four minutes serve to keep old
    /// duplicates out of a new connection between the same ports, of which a simulated network has few.
    pub time_wait: Duration,
}

impl Default for Config {
    /// The RFCs' values: SACK, timestamps of 1 ms, delayed acknowledgements, ten segments to begin with, and a
    /// timeout of at least 1 s.
    fn default() -> Self {
        Self {
            mss_bytes: 1460,
            initial_window: InitialWindow::Rfc6928,
            sack: true,
            sack_forgotten_at_timeout: false,
            rack: false,
            limited_transmit: true,
            prr: false,
            rate_halving: false,
            usage_by_flight: false,
            nagle: false,
            ecn: false,
            timestamps: true,
            timestamp_granularity: Duration::from_millis(1),
            timestamp_random: true,
            ack_policy: AckPolicy::DELAYED,
            send_buffer_bytes: 4 << 20,
            receive_window_bytes: 4 << 20,
            receive_tuning: false,
            rto_profile: RtoProfile::Rfc6298,
            rto_min: Duration::from_secs(1),
            rto_max: Duration::from_secs(120),
            rto_initial: Duration::from_secs(1),
            retries_max: 15,
            syn_retries_max: 6,
            time_wait: Duration::from_secs(1),
        }
    }
}

impl Config {
    /// What Linux does, 3.2 to 4.17: its acknowledgements, its timeout and its reduction; not that it reports what arrives
    /// twice, and takes repairs in vain back, then, too.
    #[must_use]
    pub fn linux() -> Self {
        Self {
            ack_policy: AckPolicy::Linux,
            rto_profile: RtoProfile::Linux,
            rto_min: Duration::from_millis(200),
            prr: true,
            ..Self::default()
        }
    }

    /// What Linux does since 4.18: [`Self::linux`] that finds losses by time, and tells by its flights whether
    /// the window limits it.
    #[must_use]
    pub fn linux_4_18() -> Self {
        Self { rack: true, usage_by_flight: true, ..Self::linux() }
    }

    /// What Linux did in 2009, 2.6.25 to 2.6.38: [`Self::linux`] but for what came later: ten segments to begin with (2.6.39;
    /// three before), one second before the first sample (3.1; three before) and RFC 6937 (3.2; rate halving before).
    #[must_use]
    pub fn linux_2_6() -> Self {
        Self {
            initial_window: InitialWindow::Rfc5681,
            rto_initial: Duration::from_secs(3),
            prr: false,
            rate_halving: true,
            ..Self::linux()
        }
    }

    /// NewReno as simulators of the 2000s have it: no SACK, no timestamps, one acknowledgement per segment, two
    /// segments to begin with and a timeout of at least 200 ms.
    #[must_use]
    pub fn newreno() -> Self {
        Self {
            initial_window: InitialWindow::Segments(2),
            sack: false,
            timestamps: false,
            ack_policy: AckPolicy::Every,
            rto_min: Duration::from_millis(200),
            ..Self::default()
        }
    }

    /// Payload octets of a full segment, provided that the peer takes part in the options offered here.
    #[must_use]
    pub const fn payload_bytes(&self) -> u32 {
        segment_payload_bytes(self.mss_bytes, self.timestamps)
    }

    /// What a controller of this connection needs to know before the first packet.
    #[must_use]
    pub const fn path(&self) -> Path {
        let mss_bytes = self.payload_bytes();
        Path {
            mss_bytes,
            initial_cwnd_bytes: self.initial_window.bytes(mss_bytes),
            max_cwnd_bytes: self.send_buffer_bytes as u64,
        }
    }

    /// The shift that lets the largest window be written in 16 bits (RFC 7323, section 2.3: at most 14).
    pub(crate) const fn window_shift(&self) -> u8 {
        let mut shift = 0;
        while shift < 14 && self.receive_window_bytes >> shift > 0xffff {
            shift += 1;
        }
        shift
    }
}

/// Payload octets of a full segment under an MSS option of `mss_bytes`.
pub(crate) const fn segment_payload_bytes(mss_bytes: u16, timestamps: bool) -> u32 {
    let options = if timestamps { TIMESTAMP_OPTION_BYTES } else { 0 };
    let payload = (mss_bytes as u32).saturating_sub(options);
    // A peer that announces next to nothing must not stop the stream.
    if payload == 0 { 1 } else { payload }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_segment_fills_an_ethernet_packet() {
        assert_eq!(Config::default().payload_bytes() + 12 + 20 + 20, 1500);
        assert_eq!(Config::newreno().payload_bytes() + 20 + 20, 1500);
    }

    #[test]
    fn the_initial_window_is_that_of_rfc_5681() {
        assert_eq!(InitialWindow::Rfc5681.bytes(1095), 4 * 1095);
        assert_eq!(InitialWindow::Rfc5681.bytes(1448), 3 * 1448);
        assert_eq!(InitialWindow::Rfc5681.bytes(2190), 3 * 2190);
        assert_eq!(InitialWindow::Rfc5681.bytes(9000), 2 * 9000);
        assert_eq!(InitialWindow::Rfc6928.bytes(1448), 14_480);
        let old = Config::linux_2_6();
        assert_eq!(old.initial_window.bytes(old.payload_bytes()), 3 * 1448);
    }

    #[test]
    fn the_window_shift_is_the_smallest_that_fits() {
        let shift =
            |receive_window_bytes| Config { receive_window_bytes, ..Config::default() }.window_shift();
        assert_eq!((shift(65_535), shift(65_536), shift(4 << 20), shift(u32::MAX)), (0, 1, 7, 14));
    }
}
