//! Repairs and timeouts that were in vain: nothing had been lost, segments had overtaken one another or were slow.
//!
//! Source: RFC 2883 (the peer reports what arrived twice), RFC 3522 (it echoes a timestamp that is older than the first
//! retransmission), RFC 8985 section 6.2 step 4 and 7.4 (what RACK makes of such reports), as Linux 6.18 has them
//! (`tcp_check_dsack`, `tcp_dsack_seen`, `tcp_packet_delayed`, `tcp_try_undo_recovery`, `tcp_try_undo_partial`,
//! `tcp_try_undo_dsack`): a repair is taken back where each of its retransmissions arrived twice, during it or after it, or where an
//! acknowledgement that advances echoes a stamp from before the first of them; and so is a timeout (`tcp_try_undo_loss`). A report
//! widens RACK's window once in a round trip, where segments have been seen to overtake one another and it does not answer a tail
//! probe.
//!
//! Only senders that find losses by time take back; what becomes of the window is the controller's business.
//!
//! **What it leaves out.** F-RTO (RFC 5682), which Linux has too. With timestamps the first acknowledgement that advances tells the same:
//! of 108 timeouts that ten of Linux's peers took back four were told by F-RTO. Without them a timeout in vain is told when all that left
//! again has been reported twice.
//!
//! **How it was validated.** Event by event (tests of repairs in vain), beside the kernel's on a path that reorders
//! (docs/validation.md), and in swarms beside real ones (docs/swarms.md).

use super::Connection;
use crate::statistics::RepairMode;
use cede_units::{Instant, Seq32};
use cede_wire::tcp::Segment;

/// What it takes to tell that a repair was in vain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// SND.UNA when the last repair began; none where nothing can be taken back.
    marker: Option<u64>,
    /// Segments sent again in it of which nobody has said that they arrived twice; none before the first.
    unexplained: Option<u64>,
    /// Our clock when the first left again of those of which nothing is known, in this repair or before.
    first_stamp: Option<u32>,
    /// The acknowledgement at hand says that an original filled the hole while repetitions are under way: nothing more is taken
    /// for lost or sent again by it.
    holds: bool,
}

impl Undo {
    /// A repair begins, with so many repetitions under way, and with none before it where `is_first`.
    pub(super) fn begin(&mut self, una: u64, resent: u64, is_first: bool) {
        let unexplained = (resent > 0).then_some(resent);
        let first_stamp = self.first_stamp.filter(|_| !is_first);
        *self = Self { marker: Some(una), unexplained, first_stamp, holds: false };
    }

    /// A segment left again.
    pub(super) const fn note_resent(&mut self, stamp: u32) {
        self.unexplained = Some(if let Some(count) = self.unexplained { count + 1 } else { 1 });
        if self.first_stamp.is_none() {
            self.first_stamp = Some(stamp);
        }
    }

    /// Nothing can be taken back any more.
    pub(super) const fn clear(&mut self) {
        (self.marker, self.holds) = (None, false);
    }

    /// Whether nothing is to be taken for lost, or sent again, for now.
    pub(super) const fn hold(&mut self, holds: bool) {
        self.holds = holds;
    }

    /// Nothing is to be taken for lost, or sent again, before the next acknowledgement.
    pub(super) const fn holds(&self) -> bool {
        self.holds
    }

    /// `count` segments below `end` arrived twice.
    fn explain(&mut self, end: u64, count: u64) {
        if self.marker.is_some_and(|marker| end > marker) {
            self.unexplained = self.unexplained.map(|left| left.saturating_sub(count));
        }
    }

    const fn is_explained(&self) -> bool {
        self.marker.is_some() && matches!(self.unexplained, Some(0))
    }
}

impl Connection {
    /// An acknowledgement's first block may report what arrived twice: it lies below the acknowledgement, or within the second
    /// (RFC 2883, section 4.2).
    pub(super) fn take_report(&mut self, segment: &Segment) {
        self.undo.hold(false);
        let blocks = segment.options.sack.as_slice();
        let Some(&(start, end)) = blocks.first().filter(|_| self.rack.is_some()) else { return };
        let is_below = segment.ack.offset_from(start) > 0;
        let within =
            |outer: &(Seq32, Seq32)| start.offset_from(outer.0) >= 0 && outer.1.offset_from(end) >= 0;
        if !is_below && !blocks.get(1).is_some_and(within) {
            return;
        }
        let (start, end) = (self.our_offset(start), self.our_offset(end));
        if start < 0 || start >= end || end > self.board.next() as i64 {
            return;
        }
        self.note_twice(start as u64, end as u64);
    }

    fn note_twice(&mut self, start: u64, end: u64) {
        let count = (end - start).div_ceil(u64::from(self.board.mss_bytes()));
        self.statistics.reported_twice += count;
        // What the network doubled says nothing of what was sent again.
        if self.statistics.reported_twice > self.statistics.retransmissions {
            return;
        }
        let next = self.board.next_number();
        if let Some(rack) = &mut self.rack
            && rack.reordering.is_seen()
            && rack.probe.as_ref().is_none_or(|probe| probe.end_offset != end)
        {
            rack.reordering.note_reported(next);
        }
        self.undo.explain(end, count);
        if self.undo.is_explained() && self.repair.mode != RepairMode::Loss {
            self.take_back();
        }
    }

    /// An acknowledgement that advances echoes a stamp from before anything was sent again, or nothing was.
    pub(super) fn echoes_original(&self, segment: &Segment) -> bool {
        let Some(stamps) = segment.options.timestamps.filter(|_| self.peer.timestamps) else { return false };
        self.undo.marker.is_some()
            && self.undo.first_stamp.is_none_or(|first| (stamps.echo.wrapping_sub(first) as i32) < 0)
    }

    /// An acknowledgement that advances, by a segment that was sent once where `is_original`, says that nothing had been lost.
    pub(super) const fn was_in_vain(&self, is_original: bool) -> bool {
        is_original || self.undo.is_explained()
    }

    /// A repair is over: taken back where it was in vain, counted where not.
    pub(super) fn settle_recovery(&mut self, is_original: bool) {
        if self.was_in_vain(is_original) {
            self.take_back();
        } else if let Some(rack) = &mut self.rack {
            rack.reordering.note_event();
        }
    }

    /// An acknowledgement of a part, in a repair: where an original brought it, segments overtake one another here.
    pub(super) fn on_original_in_repair(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.reordering.note_seen();
        }
        if self.board.resent() > 0 {
            self.undo.hold(true);
            return;
        }
        self.take_back_in_midst();
    }

    /// A timeout begins what may be taken back, unless it interrupts a repair, which did.
    pub(super) fn begin_undo_of_timeout(&mut self) {
        if self.rack.is_some() && self.repair.mode == RepairMode::Open {
            self.undo.begin(self.board.una(), self.board.resent(), !self.board.has_repeated());
        }
    }

    /// What was taken for lost and has not left again is under way: the repair is taken back.
    pub(super) fn take_back_in_midst(&mut self) {
        self.board.unmark_lost();
        self.take_back();
    }

    /// The reduction of the last repair is taken back, and the repair ends where it goes on.
    fn take_back(&mut self) {
        self.undo.clear();
        self.statistics.taken_back += 1;
        match self.repair.mode {
            RepairMode::Recovery => self.leave_recovery(),
            RepairMode::Loss => (self.repair.mode, self.repair.resend_first) = (RepairMode::Open, false),
            RepairMode::Open => {}
        }
        self.withdraw_reduction();
        let allowance = self.controller.on_undo();
        self.adopt(allowance);
    }

    /// Marks what is lost by an acknowledgement, unless that says that nothing is.
    pub(super) fn look_for_losses(&mut self, now: Instant) {
        if !self.undo.holds {
            self.detect_losses(now);
        }
    }
}
