//! BBR's window: the target for a number of bandwidth-delay products, and how the window moves towards it, in a recovery
//! and out of it.
//!
//! Source: draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.3; `bbr_set_cwnd` and its helpers in Linux.
//!
//! *What it leaves out:* see `mod.rs`. *How it was validated:* the numbers below.

use crate::window::Bounds;
use crate::{Feedback, Timeout};
use cede_units::Rate;

/// `bbr_min_tso_rate` and the shift of `sk_pacing_shift`: bursts are what the rate sends in 1/1024 s, two packets at least
/// from 1.2 Mbit/s on, 127 at most.
const MIN_TSO_RATE: Rate = Rate::from_bits_per_sec(1_200_000);
const BURSTS_PER_SECOND: f64 = 1024.0;
const BURST_MAX_PACKETS: f64 = 127.0;
/// Added in the phase that probes for bandwidth, so that a small window can grow.
const PROBE_PACKETS: f64 = 2.0;

/// The repair of losses, as far as the window is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Recovery {
    Open,
    /// A loss was found; until the transport says that it has been repaired.
    Fast,
    /// A timeout; until the number that was next then is acknowledged.
    Timeout {
        until: u64,
    },
}

/// See the file's head. Octets.
#[derive(Clone, Debug)]
pub(super) struct Window {
    bounds: Bounds,
    cwnd: f64,
    initial: f64,
    min_packets: f64,
    /// `bbr_quantization_budget`: room for bursts that the sender, the receiver's host and its stack hold back.
    bursts: f64,
    /// What to go back to after a recovery or PROBE_RTT.
    prior: f64,
    recovery: Recovery,
    /// The first round of a recovery: one packet out for one in.
    conserve: bool,
}

/// `x` or the next whole number above it.
fn ceil(x: f64) -> f64 {
    let whole = x as u64 as f64;
    if whole < x { whole + 1.0 } else { whole }
}

impl Window {
    pub(super) fn new(bounds: Bounds, initial: f64, min_packets: f64, bursts: f64) -> Self {
        let (prior, recovery) = (0.0, Recovery::Open);
        Self { bounds, cwnd: initial, initial, min_packets, bursts, prior, recovery, conserve: false }
    }

    pub(super) const fn cwnd(&self) -> f64 {
        self.cwnd
    }

    pub(super) const fn mss(&self) -> f64 {
        self.bounds.mss
    }

    pub(super) const fn is_repairing(&self) -> bool {
        !matches!(self.recovery, Recovery::Open)
    }

    /// The window of PROBE_RTT.
    pub(super) const fn minimum(&self) -> f64 {
        self.min_packets * self.bounds.mss
    }

    fn set(&mut self, cwnd: f64) {
        self.cwnd = self.bounds.bound(cwnd, self.bounds.mss);
    }

    pub(super) fn set_mss(&mut self, mss_bytes: u32) {
        self.bounds.set_mss(mss_bytes);
        self.set(self.cwnd);
    }

    /// The packets that leave back to back at a rate (`bbr_tso_segs_goal`).
    pub(super) fn burst_packets(&self, rate: Rate) -> f64 {
        let bytes = rate.bits_per_sec() as f64 / 8.0 / BURSTS_PER_SECOND;
        let whole = (bytes / self.bounds.mss) as u64 as f64;
        let least = if rate < MIN_TSO_RATE { 1.0 } else { 2.0 };
        whole.max(least).min(BURST_MAX_PACKETS)
    }

    /// The octets under way that stand for `gain` bandwidth-delay products of `bdp` octets (`bbr_inflight`).
    pub(super) fn inflight(
        &self,
        bdp: Option<f64>,
        gain: f64,
        aggregated: f64,
        rate: Rate,
        probing: bool,
    ) -> f64 {
        let Some(bdp) = bdp else { return self.initial };
        let packets = ceil(bdp * gain / self.bounds.mss) + (aggregated / self.bounds.mss) as u64 as f64;
        let packets = packets + self.bursts * self.burst_packets(rate);
        let even = 2.0 * ceil(packets / 2.0);
        let packets = if probing { even + PROBE_PACKETS } else { even };
        packets * self.bounds.mss
    }

    /// Notes the window before a recovery or PROBE_RTT lowers it.
    pub(super) fn save(&mut self, in_probe_rtt: bool) {
        self.prior = if self.is_repairing() || in_probe_rtt { self.prior.max(self.cwnd) } else { self.cwnd };
    }

    /// Goes back to it.
    pub(super) fn restore(&mut self) {
        self.set(self.cwnd.max(self.prior));
    }

    /// A round has begun: the first one of a recovery is over.
    pub(super) const fn on_round(&mut self) {
        self.conserve = false;
    }

    /// All that was under way is lost: one packet, and from there by what is acknowledged.
    pub(super) fn on_timeout(&mut self, timeout: &Timeout, in_probe_rtt: bool) {
        self.save(in_probe_rtt);
        self.recovery = Recovery::Timeout { until: timeout.next_number };
        self.conserve = false;
        self.set(self.bounds.mss);
    }

    /// The recovery was in vain and is over.
    pub(super) fn undo(&mut self, in_probe_rtt: bool) {
        if self.is_repairing() {
            self.end_recovery();
            if in_probe_rtt {
                self.set(self.cwnd.min(self.minimum()));
            }
        }
    }

    fn end_recovery(&mut self) {
        self.recovery = Recovery::Open;
        self.conserve = false;
        self.restore();
    }

    /// Moves the window for one acknowledgement. Answers whether a recovery was entered, which begins a round.
    pub(super) fn take(
        &mut self,
        feedback: &Feedback<'_>,
        target: f64,
        full: bool,
        in_probe_rtt: bool,
    ) -> bool {
        let entered = self.follow_recovery(feedback, in_probe_rtt);
        if feedback.acked_bytes > 0 && !self.conserve {
            self.approach(feedback, target, full);
        }
        if in_probe_rtt {
            self.set(self.cwnd.min(self.minimum()));
        }
        entered
    }

    /// Feedback that reports a loss, or acknowledges nothing, does not raise the window above what it was.
    pub(super) fn cap(&mut self, before: f64) {
        self.set(self.cwnd.min(before));
    }

    /// `bbr_set_cwnd_to_recover_or_restore`.
    fn follow_recovery(&mut self, feedback: &Feedback<'_>, in_probe_rtt: bool) -> bool {
        let conserved = feedback.in_flight_bytes as f64 + feedback.acked_bytes as f64;
        if !feedback.lost.is_empty() && self.recovery == Recovery::Open {
            self.save(in_probe_rtt);
            self.recovery = Recovery::Fast;
            self.conserve = true;
            self.set(conserved);
            return true;
        }
        self.set(self.cwnd - feedback.lost_bytes as f64);
        if self.is_over(feedback) {
            self.end_recovery();
        }
        if self.conserve {
            self.set(self.cwnd.max(conserved));
        }
        false
    }

    fn is_over(&self, feedback: &Feedback<'_>) -> bool {
        match self.recovery {
            Recovery::Open => false,
            Recovery::Fast => feedback.lost.is_empty() && feedback.acknowledges() && !feedback.in_recovery,
            Recovery::Timeout { until } => feedback.acked.iter().any(|packet| packet.number >= until),
        }
    }

    /// Towards the target by what was acknowledged, never below the minimum.
    fn approach(&mut self, feedback: &Feedback<'_>, target: f64, full: bool) {
        let acked = feedback.acked_bytes as f64;
        if full {
            self.set((self.cwnd + acked).min(target));
        } else if self.cwnd < target || (feedback.delivered_bytes as f64) < self.initial {
            self.set(self.cwnd + acked);
        }
        self.set(self.cwnd.max(self.minimum()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, loss, path, timeout};

    fn window(packets: f64) -> Window {
        let bounds = Bounds::of(&path(1500));
        Window::new(bounds, packets * 1500.0, 4.0, 3.0)
    }

    #[test]
    fn the_target_has_room_for_three_bursts_and_is_even() {
        let window = window(10.0);
        // 10 Mbit/s * 40 ms = 50 kB = 33.3 packets; bursts of 2: 34 + 6 = 40; with gain 2: 67 + 6, made even.
        let (bdp, rate) = (Some(50_000.0), Rate::from_mbit(10));
        assert_eq!(window.inflight(bdp, 1.0, 0.0, rate, false), 40.0 * 1500.0);
        assert_eq!(window.inflight(bdp, 2.0, 0.0, rate, false), 74.0 * 1500.0);
        assert_eq!(window.inflight(bdp, 1.25, 0.0, rate, true), 50.0 * 1500.0);
        assert_eq!(window.inflight(None, 2.0, 0.0, rate, false), 10.0 * 1500.0);
    }

    #[test]
    fn bursts_are_a_millisecond_of_the_rate() {
        let window = window(10.0);
        let at = |kbit: u64| window.burst_packets(Rate::from_bits_per_sec(1000 * kbit));
        assert_eq!((at(1_199), at(1_200), at(50_000)), (1.0, 2.0, 4.0));
        assert_eq!((at(1_000_000), at(100_000_000)), (81.0, 127.0));
    }

    #[test]
    fn a_recovery_conserves_packets_for_a_round_and_goes_back() {
        let mut window = window(100.0);
        let mut lost = loss(1, 101);
        (lost.feedback.in_flight_bytes, lost.feedback.lost_bytes) = (90_000, 1500);
        assert!(window.take(&lost.feedback(), 1e6, true, false));
        assert_eq!(window.cwnd(), 90_000.0);
        let mut next = ack(2, 1500);
        (next.feedback.in_flight_bytes, next.feedback.in_recovery) = (88_500, true);
        window.take(&next.feedback(), 1e6, true, false);
        assert_eq!(window.cwnd(), 90_000.0, "one out for one in");
        window.on_round();
        window.take(&next.feedback(), 1e6, true, false);
        assert_eq!(window.cwnd(), 91_500.0);
        next.feedback.in_recovery = false;
        window.take(&next.feedback(), 1e6, true, false);
        assert_eq!(window.cwnd(), 151_500.0);
    }

    #[test]
    fn a_timeout_leaves_one_packet_and_what_was_before_comes_back_after_it() {
        let mut window = window(100.0);
        window.on_timeout(&timeout(150_000, 1), false);
        assert_eq!(window.cwnd(), 1500.0);
        window.take(&ack(500, 1500).feedback(), 1e6, true, false);
        assert_eq!(window.cwnd(), 6000.0, "the minimum");
        window.take(&ack(1000, 1500).feedback(), 1e6, true, false);
        assert_eq!(window.cwnd(), 151_500.0);
    }

    #[test]
    fn a_recovery_in_vain_and_a_timeout_in_vain_are_over_at_once() {
        let mut window = window(100.0);
        let mut lost = loss(1, 101);
        (lost.feedback.in_flight_bytes, lost.feedback.lost_bytes) = (90_000, 1500);
        for in_probe_rtt in [false, true] {
            window.take(&lost.feedback(), 1e6, true, false);
            window.undo(in_probe_rtt);
            assert_eq!(
                (window.cwnd(), window.is_repairing()),
                (if in_probe_rtt { 6000.0 } else { 150_000.0 }, false)
            );
        }
        window.restore();
        window.on_timeout(&timeout(150_000, 1), false);
        window.undo(false);
        assert_eq!((window.cwnd(), window.is_repairing()), (150_000.0, false));
        window.take(&ack(2, 1500).feedback(), 1e6, true, false);
        assert_eq!(window.cwnd(), 151_500.0, "no round of conservation is left");
        window.undo(false);
        assert_eq!(window.cwnd(), 151_500.0, "outside of a recovery there is nothing to give back");
    }

    #[test]
    fn probe_rtt_holds_four_packets() {
        let mut window = window(100.0);
        window.save(false);
        window.take(&ack(500, 1500).feedback(), 1e6, true, true);
        assert_eq!(window.cwnd(), 6000.0);
        window.restore();
        assert_eq!(window.cwnd(), 150_000.0);
    }
}
