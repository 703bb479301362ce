//! Finding and repairing losses.
//!
//! Source: RFC 6675 section 5 (with SACK), RFC 6582 section 3.2 and RFC 3042 (without), RFC 5681 section 3.2.
//!
//! RFC 6582 writes the inflation of the window into cwnd. Here cwnd stays the controller's; the transport adds the
//! inflation on top: `min(dup acks, 2)` segments while limited transmit lasts, three at the entry, one for each further
//! duplicate, less what a partial acknowledgement takes away. After a full acknowledgement RFC 6582 sets cwnd to
//! `min(ssthresh, max(FlightSize, SMSS) + SMSS)`, to grow back in slow start; that is a cap on the controller's window
//! which grows by what is acknowledged until it no longer binds.
//!
//! With SACK the sender waits after the controller's cut until pipe has fallen below the window, as RFC 6675 has it, or
//! sends in proportion to what is delivered (see `prr`).
//!
//! With RACK ([`crate::rack`]) losses are found by time in place of IsLost, also of what was sent again and after a timeout, and
//! nothing is sent again that is not lost; a repair or a timeout that was in vain is taken back (see `undo`).
//!
//! **How it was validated.** RFC 6582's behaviour on a worked example, event by event; several losses in one window
//! with and without SACK (tests of the connection).

use super::Connection;
use super::prr::Reduction;
use crate::statistics::RepairMode;
use cede_units::Instant;

/// RFC 5681, section 3.2.
pub(super) const DUP_THRESH: u32 = 3;

/// Where the repair of losses stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Repair {
    pub(super) mode: RepairMode,
    /// `recover`, RecoveryPoint: the number that the next new segment had when the last episode began.
    point: Option<u64>,
    dup_acks: u32,
    /// What RFC 6582 adds to cwnd.
    pub(super) inflation_bytes: i64,
    /// What RFC 6582 and a lost SYN leave of cwnd.
    pub(super) window_cap: Option<u64>,
    /// The first outstanding segment is to leave whatever the window.
    pub(super) resend_first: bool,
    /// RescueRxt.
    rescue_point: u64,
    /// A partial acknowledgement has arrived in this episode.
    partial: bool,
    /// New data sent on the first duplicate acknowledgements.
    pub(super) limited_bytes: u64,
    /// Proportional rate reduction, where it is in force.
    pub(super) reduction: Option<Reduction>,
    /// The last of the flight is to be probed for.
    pub(super) tail_due: bool,
    /// An octet is to be sent into a closed window.
    pub(super) probe_due: bool,
}

impl Repair {
    /// A timeout: everything below `next_number` is to be sent again.
    pub(super) const fn on_timeout(&mut self, next_number: u64) {
        self.mode = RepairMode::Loss;
        self.point = Some(next_number);
        (self.dup_acks, self.inflation_bytes, self.limited_bytes) = (0, 0, 0);
        (self.window_cap, self.reduction) = (None, None);
        self.resend_first = true;
        self.tail_due = false;
        self.partial = false;
    }

    /// Data sent now goes beyond the window, by limited transmit.
    pub(super) const fn is_limited_transmit(&self) -> bool {
        matches!(self.mode, RepairMode::Open) && self.dup_acks > 0
    }

    /// Whether an acknowledgement of new data, or the first segment sent again, restarts the retransmission timer:
    /// always, but under RFC 6582 not after the first partial acknowledgement (its "impatient" variant).
    pub(super) const fn restarts_timer(&self, sack: bool) -> bool {
        sack || !matches!(self.mode, RepairMode::Recovery) || !self.partial
    }
}

impl Connection {
    /// SND.UNA advanced by `bytes`, by a segment that was sent once where `is_original`.
    pub(super) fn repair_on_advance(&mut self, bytes: u64, is_original: bool) {
        self.repair.dup_acks = 0;
        self.repair.limited_bytes = 0;
        self.raise_window_cap(bytes);
        let covered = self.repair.point.is_none_or(|point| self.board.first_number() >= point);
        match self.repair.mode {
            RepairMode::Open => self.repair.inflation_bytes = 0,
            RepairMode::Recovery if covered => {
                self.leave_recovery();
                self.settle_recovery(is_original);
            }
            RepairMode::Recovery if is_original => self.on_original_in_repair(),
            RepairMode::Recovery if !self.peer.sack => self.on_partial_ack(bytes),
            RepairMode::Loss if self.was_in_vain(is_original) => self.take_back_in_midst(),
            RepairMode::Loss if covered => self.repair.mode = RepairMode::Open,
            RepairMode::Recovery | RepairMode::Loss => {}
        }
    }

    /// A duplicate acknowledgement.
    pub(super) fn repair_on_duplicate(&mut self) {
        self.statistics.duplicate_acks += 1;
        self.repair.dup_acks += 1;
        if self.peer.sack {
            return;
        }
        let segment = i64::from(self.board.mss_bytes());
        match self.repair.mode {
            RepairMode::Open if self.config.limited_transmit => {
                self.repair.inflation_bytes = segment * i64::from(self.repair.dup_acks.min(2));
            }
            RepairMode::Recovery => self.repair.inflation_bytes += segment,
            RepairMode::Open | RepairMode::Loss => {}
        }
    }

    /// Marks what is lost, and begins an episode where one is due.
    pub(super) fn detect_losses(&mut self, now: Instant) {
        if self.rack.is_some() {
            return self.detect_by_time(now);
        }
        // After a timeout everything outstanding then is lost already, and nothing sent since begins a new episode
        // before all of it is acknowledged (RFC 6675, section 5.1).
        if self.peer.sack && self.repair.mode != RepairMode::Loss {
            self.board.detect_losses(&mut self.scratch.lost);
        }
        let found = self.repair.dup_acks >= DUP_THRESH || !self.scratch.lost.is_empty();
        if self.repair.mode == RepairMode::Open && found && self.may_recover() {
            self.enter_recovery();
        }
    }

    /// RFC 6582, section 3.2, step 2: without SACK the acknowledgement must cover more than `recover`, lest the
    /// duplicates of needless retransmissions start another episode.
    fn may_recover(&self) -> bool {
        self.peer.sack || self.repair.point.is_none_or(|point| self.board.first_number() > point)
    }

    pub(super) fn enter_recovery(&mut self) {
        if self.scratch.lost.is_empty() && self.rack.is_none() {
            self.board.mark_first_lost(&mut self.scratch.lost);
        }
        self.board.begin_episode();
        if let Some(rack) = &self.rack {
            let resent = self.board.resent() + u64::from(rack.repeats_tail());
            self.undo.begin(self.board.una(), resent, !self.board.has_repeated());
        }
        let repair = &mut self.repair;
        repair.mode = RepairMode::Recovery;
        repair.point = Some(self.board.next_number());
        repair.rescue_point = self.board.first_number() + 1;
        repair.resend_first = true;
        repair.partial = false;
        repair.inflation_bytes =
            if self.peer.sack { 0 } else { i64::from(DUP_THRESH * self.board.mss_bytes()) };
        self.statistics.recoveries += 1;
        self.note_reduction();
    }

    /// RFC 6582, section 3.2, step 3, "partial acknowledgments".
    fn on_partial_ack(&mut self, bytes: u64) {
        let segment = i64::from(self.board.mss_bytes());
        self.repair.inflation_bytes -= bytes as i64;
        if bytes as i64 >= segment {
            self.repair.inflation_bytes += segment;
        }
        self.board.mark_first_lost(&mut self.scratch.lost);
        self.repair.resend_first = true;
    }

    /// Notes that the timer has been restarted for this acknowledgement.
    pub(super) fn note_partial_ack(&mut self) {
        self.repair.partial |= self.repair.mode == RepairMode::Recovery;
    }

    /// RFC 6582, section 3.2, step 3, "full acknowledgments", option 1; RFC 6675, section 5, step A.
    pub(super) fn leave_recovery(&mut self) {
        self.repair.mode = RepairMode::Open;
        self.repair.inflation_bytes = 0;
        let reduction = self.repair.reduction.take();
        if self.config.rate_halving {
            self.repair.window_cap = reduction.map(|reduction| reduction.window_bytes);
        }
        self.repair.resend_first = false;
        if !self.peer.sack {
            let segment = u64::from(self.board.mss_bytes());
            self.repair.window_cap = Some(self.board.flight_bytes().max(segment) + segment);
        }
    }

    /// The cap grows as a window in slow start does.
    fn raise_window_cap(&mut self, bytes: u64) {
        if let Some(cap) = &mut self.repair.window_cap {
            *cap += bytes.min(u64::from(self.board.mss_bytes()));
        }
    }

    /// Lifts a cap that no longer binds.
    pub(super) fn lift_window_cap(&mut self) {
        self.repair.window_cap = self.repair.window_cap.filter(|&cap| cap < self.allowance.cwnd_bytes);
    }

    /// What may be under way.
    pub(super) fn window_bytes(&self) -> u64 {
        if let Some(reduction) = &self.repair.reduction {
            return reduction.window_bytes;
        }
        let cwnd = self.allowance.cwnd_bytes.saturating_add_signed(self.repair.inflation_bytes);
        self.repair.window_cap.map_or(cwnd, |cap| cwnd.min(cap))
    }

    /// Octets under way, for the controller. Each duplicate acknowledgement means a segment that has left the network:
    /// SACK takes it off pipe, and without SACK the inflation stands for it. FlightSize would count all that arrives
    /// beyond a gap, and a timeout in a long repair would leave a threshold of more than the path holds.
    pub(super) fn in_flight_bytes(&self) -> u64 {
        self.board.pipe_bytes().saturating_add_signed(self.repair.inflation_bytes.saturating_neg())
    }

    /// The window counts what is outstanding by pipe, which falls as segments are SACKed; without limited transmit
    /// that must not let new data out before a repair begins.
    pub(super) fn under_way_bytes(&self) -> u64 {
        if self.repair.mode == RepairMode::Open && !self.config.limited_transmit {
            self.board.flight_bytes()
        } else {
            self.board.pipe_bytes()
        }
    }

    /// What is to be sent again next (NextSeg, rule 1).
    pub(super) fn next_repair(&mut self) -> Option<u64> {
        match &mut self.rack {
            _ if self.repair.mode == RepairMode::Open || self.undo.holds() => None,
            Some(rack) => rack.next_lost(&self.board),
            _ => self.board.next_lost(),
        }
    }

    /// What a repair begins with, whatever the window.
    pub(super) fn first_repair(&mut self) -> u64 {
        let found = self.rack.as_mut().and_then(|rack| rack.next_lost(&self.board));
        found.unwrap_or(self.board.first_number())
    }

    /// What may be sent again where there is no new data: NextSeg, rules 3 and 4. The second value marks a rescue.
    pub(super) fn next_rescue(&mut self) -> Option<(u64, bool)> {
        if self.repair.mode != RepairMode::Recovery || !self.peer.sack || self.rack.is_some() {
            return None;
        }
        if let Some(number) = self.board.next_hole() {
            return Some((number, false));
        }
        if self.board.first_number() <= self.repair.rescue_point {
            return None;
        }
        self.board.highest_unsacked().map(|number| (number, true))
    }

    /// A rescue left: the only one of this episode.
    pub(super) fn note_rescue(&mut self) {
        self.repair.rescue_point = self.repair.point.unwrap_or(u64::MAX);
    }
}
