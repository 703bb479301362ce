//! Explicit congestion notification.
//!
//! Source: RFC 3168, section 6.1: negotiation (6.1.1), the sender (6.1.2), the receiver (6.1.3), what is not marked
//! (6.1.4 to 6.1.6: acknowledgements, retransmissions, window probes).
//!
//! How much the window comes down is the controller's business: it hears of a mark once per window of data, as of a
//! loss. What a controller sends that does not answer marks may not be marked (section 5: a mark has the effect of a loss); the peer's
//! marks are echoed all the same.
//!
//! **What it leaves out.** The retry of a SYN without ECN after a timeout (RFC 3168, 6.1.1.1), which is for broken
//! middleboxes; ECN nonces; accurate feedback (RFC 9768) and L4S.
//!
//! **How it was validated.** Packet scripts for negotiation, echo until CWR, one reduction per window, and what may not
//! be marked, that of a controller that ignores marks included (tests of ECN); a flow through a marking queue loses nothing (tests of the laboratory).

use super::Connection;
use cede_cc::PacketFact;
use cede_wire::Ecn;
use cede_wire::tcp::{Flags, Segment};

/// What a connection knows of marks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// Both ends understand them.
    negotiated: bool,
    /// A marked segment arrived, and the sender has not yet said that it knows (6.1.3).
    echoing: bool,
    /// The next new segment tells the peer that the window came down (6.1.2).
    cwr_due: bool,
    /// The number of the first segment sent after the last reduction: marks of earlier ones belong to it.
    reduced_at: u64,
}

impl Connection {
    /// ECN bits of our SYN, or of the answer to one.
    pub(super) fn ecn_of_syn(&self, answer: bool) -> Flags {
        match (answer, self.config.ecn, self.marks.negotiated) {
            (false, true, _) => Flags::ECE.with(Flags::CWR),
            (true, _, true) => Flags::ECE,
            _ => Flags::default(),
        }
    }

    /// The peer's SYN says whether it takes part: both bits in a first SYN, ECE alone in the answer.
    pub(super) fn negotiate_ecn(&mut self, syn: &Segment) {
        let answer = syn.flags.has(Flags::ACK);
        let (echo, reduced) = (syn.flags.has(Flags::ECE), syn.flags.has(Flags::CWR));
        self.marks.negotiated = self.config.ecn && echo && reduced != answer;
    }

    /// A segment with payload arrived that had this codepoint.
    pub(super) fn on_marked_arrival(&mut self, segment: &Segment, ecn: Ecn) {
        if !self.marks.negotiated {
            return;
        }
        if segment.flags.has(Flags::CWR) {
            self.marks.echoing = false;
        }
        self.marks.echoing |= ecn == Ecn::Ce;
    }

    /// Bits that every acknowledgement carries while a mark is being echoed.
    pub(super) const fn echo_flags(&self) -> Flags {
        if self.marks.echoing { Flags::ECE } else { Flags(0) }
    }

    /// An acknowledgement echoes a mark: how many packets the controller hears of as marked, one per window of data.
    pub(super) fn on_echo(&mut self, segment: &Segment, acked: &[PacketFact]) -> u32 {
        let echoes = self.marks.negotiated && segment.flags.has(Flags::ECE);
        let newest = acked.last().map(|fact| fact.number);
        if !echoes || newest.is_none_or(|number| number < self.marks.reduced_at) {
            return 0;
        }
        self.note_reduction();
        self.undo.clear();
        1
    }

    /// The window comes down, for a mark, a loss or a timeout: the peer is to know.
    pub(super) fn note_reduction(&mut self) {
        self.marks.cwr_due = self.marks.negotiated;
        self.marks.reduced_at = self.board.next_number();
    }

    /// The window went up again: nothing is to be told of.
    pub(super) const fn withdraw_reduction(&mut self) {
        self.marks.cwr_due = false;
    }

    /// The codepoint and the bits of a segment with payload that leaves.
    pub(super) fn ecn_of_data(&mut self, is_new: bool) -> (Ecn, Flags) {
        if !self.marks.negotiated || !is_new || !self.controller.answers_marks() {
            return (Ecn::NotEct, Flags(0));
        }
        let cwr = core::mem::replace(&mut self.marks.cwr_due, false);
        (Ecn::Ect0, if cwr { Flags::CWR } else { Flags(0) })
    }
}
