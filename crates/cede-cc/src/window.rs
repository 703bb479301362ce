//! Arithmetic on windows that every controller shares. Windows are `f64` octets, so that no fraction is lost.

use crate::{Feedback, PacketFact, Path, Phase, Snapshot, Timeout};

/// RFC 5681, equation 4, and RFC 9438, section 4.6: ssthresh is never below this many packets.
pub(crate) const MIN_SSTHRESH_PACKETS: f64 = 2.0;

/// The packet size and the bounds that a path sets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Bounds {
    /// Octets of a full packet, at least 1.
    pub(crate) mss: f64,
    /// The largest window.
    pub(crate) max: f64,
}

impl Bounds {
    pub(crate) fn of(path: &Path) -> Self {
        let mut bounds = Self { mss: 1.0, max: path.max_cwnd_bytes as f64 };
        bounds.set_mss(path.mss_bytes);
        bounds
    }

    pub(crate) fn set_mss(&mut self, mss_bytes: u32) {
        self.mss = f64::from(mss_bytes.max(1));
    }

    /// `window` within [`floor`, largest], the largest being the path's limit or one packet, whichever is more; it
    /// wins where the two cross. What is not a number becomes the floor.
    pub(crate) fn bound(&self, window: f64, floor: f64) -> f64 {
        let largest = self.max.max(self.mss);
        let floor = floor.min(largest);
        if window > floor { window.min(largest) } else { floor }
    }

    /// The start: so many packets, or the path's initial window where that is 0.
    pub(crate) fn initial(&self, packets: f64, path: &Path) -> f64 {
        let wanted = if packets > 0.0 { packets * self.mss } else { f64::from(path.initial_cwnd_bytes) };
        self.bound(wanted, self.mss)
    }
}

/// The highest number that this feedback calls lost or marked: what a loss epoch is asked about.
pub(crate) fn congested_number(feedback: &Feedback<'_>) -> Option<u64> {
    let marked = if feedback.ce_marked > 0 { feedback.acked.last() } else { None };
    let number = |packet: Option<&PacketFact>| packet.map(|packet| packet.number);
    match feedback.lost.last() {
        // Nearly always.
        None => number(marked),
        lost => number(lost).max(number(marked)),
    }
}

/// What a timeout reduces: the octets that were under way. Within a repair it is the window at least, which ns-2 takes as well: once all
/// else is known to have arrived or to be lost, next to nothing is under way, and a part of that would hold a fast path in avoidance
/// for minutes.
pub(crate) fn given_up(timeout: &Timeout, repairing: bool, cwnd: f64) -> u64 {
    timeout.in_flight_bytes.max(if repairing { cwnd as u64 } else { 0 })
}

/// Where a controller with a slow-start threshold stands.
pub(crate) const fn phase_of(repairing: bool, in_slow_start: bool) -> Phase {
    match (repairing, in_slow_start) {
        (true, _) => Phase::Recovery,
        (false, true) => Phase::SlowStart,
        (false, false) => Phase::CongestionAvoidance,
    }
}

/// A snapshot of a window and its threshold, in octets. 0 and infinity stand for none.
pub(crate) fn snapshot_of(cwnd: f64, ssthresh: f64, phase: Phase) -> Snapshot {
    let ssthresh_bytes = (ssthresh.is_finite() && ssthresh > 0.0).then_some(ssthresh);
    Snapshot { cwnd_bytes: cwnd, ssthresh_bytes, phase, ..Snapshot::default() }
}
