//! Reno's window, which Vegas, NICE and TCP-LP fall back on for losses and timeouts.
//!
//! Source: RFC 5681, section 3.1 (slow start, congestion avoidance with byte counting, equation 4 for ssthresh), 4.1 (restart
//! after idleness); RFC 6582, section 3.2 (the window at the end of a recovery, option 1); RFC 3168, section 6.1.2 (a
//! mark counts as a loss).
//!
//! A timeout within a repair halves the window, not FlightSize (`window::given_up`).
//!
//! A loss or a timeout that was none gives back window, threshold and event (`undo.rs`).
//!
//! *What it leaves out:* what `reno.rs` leaves out. *How it was validated:* by the tests of the controllers on it.

use crate::instruments::LossEpoch;
use crate::undo::Undo;
use crate::window::{Bounds, MIN_SSTHRESH_PACKETS, congested_number, given_up, phase_of, snapshot_of};
use crate::{Allowance, Feedback, Path, Snapshot, Timeout};

/// What an acknowledgement meant to the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// A new loss event, or a new mark: the window has been cut.
    Cut,
    /// Nothing to move it on: an event that is known already, or a repair under way.
    Held,
    /// A repair has ended.
    Recovered,
    /// Data acknowledged outside of any repair: the controller's own rule may act.
    Acked,
}

#[derive(Clone, Debug)]
pub(crate) struct RenoWindow {
    pub(crate) bounds: Bounds,
    initial: f64,
    /// The smallest window in packets.
    min_packets: f64,
    slow_start_limit: f64,
    /// A window equal to ssthresh is in slow start, too; RFC 5681, section 3.1, leaves that open.
    inclusive: bool,
    /// A loss halves what is left under way, in place of what was outstanding.
    halves_pipe: bool,
    /// Avoidance counts nothing, and adds fractions.
    by_fractions: bool,
    /// Packets per round trip of avoidance, and what a loss leaves: Reno's 1 and a half.
    increase: f64,
    beta: f64,
    pub(crate) cwnd: f64,
    pub(crate) ssthresh: f64,
    /// Octets acknowledged since the window last grew in congestion avoidance.
    counted: f64,
    epoch: LossEpoch,
    repairing: bool,
    /// Window, threshold and epoch before the last loss or timeout.
    undo: Undo<(f64, f64, LossEpoch)>,
}

impl RenoWindow {
    /// `init_packets` packets, or the path's initial window where that is 0; in slow start.
    pub(crate) fn new(path: &Path, init_packets: f64) -> Self {
        let bounds = Bounds::of(path);
        let initial = bounds.initial(init_packets, path);
        Self {
            bounds,
            initial,
            min_packets: 1.0,
            slow_start_limit: 1.0,
            inclusive: false,
            halves_pipe: false,
            by_fractions: false,
            increase: 1.0,
            beta: 0.5,
            cwnd: initial,
            ssthresh: f64::INFINITY,
            counted: 0.0,
            epoch: LossEpoch::new(),
            repairing: false,
            undo: Undo::new(),
        }
    }

    /// With another smallest window than a packet.
    pub(crate) const fn with_min_packets(self, min_packets: f64) -> Self {
        Self { min_packets, ..self }
    }

    /// With another limit, in packets, on what an acknowledgement adds in slow start than one.
    pub(crate) const fn with_slow_start_limit(self, slow_start_limit: f64) -> Self {
        Self { slow_start_limit, ..self }
    }

    /// Where a window equal to ssthresh is in slow start, too.
    pub(crate) const fn with_inclusive_slow_start(self, inclusive: bool) -> Self {
        Self { inclusive, ..self }
    }

    /// Where a loss halves what is under way once arrived and lost packets are taken off, as ns-3 has it.
    pub(crate) const fn with_halved_pipe(self, halves_pipe: bool) -> Self {
        Self { halves_pipe, ..self }
    }

    /// Where avoidance adds a part of a packet with each acknowledgement, as ns-3 has it, in place of a whole one per window.
    pub(crate) const fn with_growth_by_fractions(self, by_fractions: bool) -> Self {
        Self { by_fractions, ..self }
    }

    /// With another increase per round trip of avoidance than a packet, and another part that a loss leaves than half.
    pub(crate) const fn with_law(self, increase: f64, beta: f64) -> Self {
        Self { increase, beta, ..self }
    }

    /// The window in packets.
    pub(crate) fn packets(&self) -> f64 {
        self.cwnd / self.bounds.mss
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh || (self.inclusive && self.cwnd == self.ssthresh)
    }

    /// Moves the window within its bounds.
    pub(crate) fn set(&mut self, cwnd: f64) {
        self.cwnd = self.bounds.bound(cwnd, self.min_packets * self.bounds.mss);
    }

    /// Lowers the window, to its smallest at most; one that is below that already, after a timeout, stays.
    fn lower(&mut self, cwnd: f64) {
        let floor = (self.min_packets * self.bounds.mss).min(self.cwnd);
        self.cwnd = self.bounds.bound(cwnd.min(self.cwnd), floor);
    }

    /// As [`RenoWindow::set`], in packets.
    pub(crate) fn set_packets(&mut self, packets: f64) {
        self.set(packets * self.bounds.mss);
    }

    /// No slow start up to more than the present window.
    pub(crate) fn end_slow_start(&mut self) {
        self.ssthresh = self.ssthresh.min(self.cwnd);
    }

    /// What a loss leaves, half as RFC 5681 has it.
    fn part_of(&self, flight_bytes: u64) -> f64 {
        (flight_bytes as f64 * self.beta).max(MIN_SSTHRESH_PACKETS * self.bounds.mss)
    }

    /// Takes losses, marks and the end of repairs from an acknowledgement.
    pub(crate) fn take(&mut self, feedback: &Feedback<'_>) -> News {
        if let Some(number) = congested_number(feedback) {
            if self.epoch.is_new(number) {
                self.undo.note_event(feedback, self.present());
                self.epoch.start(feedback.next_number);
                self.cut(feedback);
                return News::Cut;
            }
            return News::Held;
        }
        if feedback.in_recovery || feedback.acked_bytes == 0 {
            return News::Held;
        }
        if self.repairing {
            self.end_recovery(feedback.in_flight_bytes);
            return News::Recovered;
        }
        News::Acked
    }

    /// Half of what is under way, but never more than half of the window: without SACK a long recovery leaves data
    /// outstanding that was sent on the inflated window, and half of that can be more than the window itself. RFC 5681
    /// equation 4 says FlightSize alone; Linux and ns-2 halve cwnd. Two NewReno flows never left recovery under the
    /// literal rule.
    fn cut(&mut self, feedback: &Feedback<'_>) {
        let outstanding = feedback.in_flight_before_bytes.min(self.cwnd as u64);
        self.ssthresh = self.part_of(if self.halves_pipe { feedback.in_flight_bytes } else { outstanding });
        self.lower(self.ssthresh);
        self.counted = 0.0;
        self.repairing = !feedback.lost.is_empty();
    }

    /// RFC 6582, section 3.2, step 3, option 1: no burst at the end of a recovery.
    fn end_recovery(&mut self, in_flight_bytes: u64) {
        self.repairing = false;
        let flight = (in_flight_bytes as f64).max(self.bounds.mss) + self.bounds.mss;
        self.lower(self.ssthresh.min(flight));
    }

    /// What the next loss or timeout changes.
    const fn present(&self) -> (f64, f64, LossEpoch) {
        (self.cwnd, self.ssthresh, self.epoch)
    }

    /// A loss is being repaired, as far as the window is concerned.
    pub(crate) const fn is_repairing(&self) -> bool {
        self.repairing
    }

    /// The last loss was none: the window of before, or one that has grown beyond it since (Linux's `tcp_reno_undo_cwnd`).
    pub(crate) fn undo(&mut self) -> Allowance {
        if let Some((cwnd, ssthresh, epoch)) = self.undo.take() {
            self.set(self.cwnd.max(cwnd));
            self.ssthresh = self.ssthresh.max(ssthresh);
            (self.epoch, self.repairing) = (epoch, false);
        }
        self.allowance()
    }

    /// Reno's increase.
    pub(crate) fn grow(&mut self, acked_bytes: u64) {
        let acked = acked_bytes as f64;
        if self.in_slow_start() {
            self.set(self.cwnd + acked.min(self.slow_start_limit * self.bounds.mss));
            return;
        }
        if self.by_fractions {
            self.set(self.cwnd + self.increase * self.bounds.mss * (acked / self.cwnd).min(1.0));
            return;
        }
        self.counted += acked;
        if self.counted >= self.cwnd {
            // An acknowledgement of more than a window is not saved up for later growth.
            self.counted = (self.counted - self.cwnd).min(self.cwnd);
            self.set(self.cwnd + self.increase * self.bounds.mss);
        }
    }

    pub(crate) fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        if timeout.idle {
            self.lower(self.initial);
            return self.allowance();
        }
        self.undo.note_timeout(timeout, self.repairing, self.present());
        if timeout.consecutive <= 1 {
            self.ssthresh = self.part_of(given_up(timeout, self.repairing, self.cwnd));
        }
        self.cwnd = self.bounds.mss.min(self.cwnd);
        self.counted = 0.0;
        self.repairing = false;
        self.epoch.start(timeout.next_number);
        self.allowance()
    }

    pub(crate) fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.bounds.set_mss(mss_bytes);
        self.set(self.cwnd);
        self.allowance()
    }

    /// Whole octets; a fraction of a packet that is none is one.
    pub(crate) fn allowance(&self) -> Allowance {
        Allowance::window((self.cwnd as u64).max(1))
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        snapshot_of(self.cwnd, self.ssthresh, phase_of(self.repairing, self.in_slow_start()))
    }
}
