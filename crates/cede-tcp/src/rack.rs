//! Finding losses by time: what left before something that has been delivered since, and is late, is lost.
//!
//! Source: RFC 8985 (RACK), sections 6.2 and 6.3, as Linux has it since 4.18: a window for reordering of a quarter of the smallest
//! round trip, and as much again for each round trip in which something arrived twice that was sent again, at most the smoothed one
//! ([`ReorderingWindow`]); none while something is being repaired, or once three segments are SACKed, as long as no reordering was
//! seen.
//!
//! Counting finds a loss where three segments arrive beyond it. Flows whose windows are two or three segments, as many have
//! on a small buffer, wait for a timeout then; by time one segment is enough, and what was sent again can be found lost again.
//!
//! Transmissions stand in a row by their time, so that those which are late are at its front: each is looked at once, but for the
//! first that is not late yet.
//!
//! **What it leaves out.** The smallest round trip is that of the whole connection, where Linux's is that of five minutes; the
//! deadline for reordering is that of the first segment, and not of the last.
//!
//! **How it was validated.** Event by event (tests of repair), beside real swarms of Linux's TCP (docs/swarms.md), and beside the
//! kernel's on a path that reorders (docs/validation.md).

use crate::scoreboard::Scoreboard;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use cede_cc::PacketFact;
use cede_cc::instruments::ReorderingWindow;
use cede_units::{Duration, Instant};
use core::cmp::Reverse;

/// A tail-loss probe under way.
#[derive(Clone, Debug)]
pub(crate) struct TailProbe {
    /// The number after the newest segment when it left, and the stream offset.
    pub(crate) end: u64,
    pub(crate) end_offset: u64,
    /// What was known of the segment that it sent again; none where it was new data.
    pub(crate) original: Option<PacketFact>,
}

/// What is known of times, and what follows.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Of the segments delivered, the one that left last: when, and its number.
    newest: (Instant, u64),
    /// How long that took which was delivered last: where segments overtake one another, it is not always the newest (RFC 8985,
    /// section 6.2, step 2).
    rtt: Duration,
    min_rtt: Duration,
    pub(crate) reordering: ReorderingWindow,
    /// Departures, and of which segment; those of segments that are gone, or left again later, are passed over.
    sent: VecDeque<(Instant, u64)>,
    /// Segments that were found lost; passed over once they are delivered or have left again.
    lost: BinaryHeap<Reverse<u64>>,
    pub(crate) probe: Option<TailProbe>,
}

impl Rack {
    pub(crate) fn new() -> Self {
        Self {
            newest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            min_rtt: Duration::MAX,
            reordering: ReorderingWindow::default(),
            sent: VecDeque::new(),
            lost: BinaryHeap::new(),
            probe: None,
        }
    }

    /// A tail probe is under way that repeated something.
    pub(crate) fn repeats_tail(&self) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.original.is_some())
    }

    /// Segment `number` leaves, for the first time or again.
    pub(crate) fn on_sent(&mut self, now: Instant, number: u64) {
        self.sent.push_back((now, number));
    }

    /// Takes in what an acknowledgement says to be delivered.
    pub(crate) fn on_delivered(&mut self, now: Instant, facts: &[PacketFact]) {
        let mut last = (Instant::ZERO, 0);
        for fact in facts {
            let rtt = now.since(fact.sent_at);
            if fact.retransmitted && rtt < self.min_rtt {
                // Of an earlier transmission, most likely.
                continue;
            }
            if !fact.retransmitted {
                self.min_rtt = self.min_rtt.min(rtt);
                self.reordering.note_first(fact.number);
            }
            let sent = (fact.sent_at, fact.number);
            if sent >= last {
                (last, self.rtt) = (sent, rtt);
            }
            self.newest = self.newest.max(sent);
        }
    }

    /// How much later than the newest a segment may arrive that left before it.
    fn window(&self, is_sure: bool, srtt: Duration) -> Duration {
        if is_sure && !self.reordering.is_seen() {
            return Duration::ZERO;
        }
        self.reordering.window(self.min_rtt, srtt)
    }

    /// Marks what is late, and adds it to `lost`. Answers when the next will be late.
    ///
    /// `is_sure` says that something is being repaired, or that three segments are SACKed.
    pub(crate) fn find(
        &mut self,
        now: Instant,
        (is_sure, srtt): (bool, Duration),
        board: &mut Scoreboard,
        lost: &mut Vec<PacketFact>,
    ) -> Option<Instant> {
        let patience = self.rtt + self.window(is_sure, srtt);
        while let Some(&(sent_at, number)) = self.sent.front() {
            if board.under_way_since(number) == Some(sent_at) {
                if (sent_at, number) >= self.newest {
                    return None;
                }
                if now < sent_at + patience {
                    return Some(sent_at + patience);
                }
                board.mark_lost_again(number, lost);
                self.lost.push(Reverse(number));
            }
            self.sent.pop_front();
        }
        None
    }

    /// A timeout took everything for lost.
    pub(crate) fn on_timeout(&mut self, board: &Scoreboard) {
        self.probe = None;
        self.sent.clear();
        self.lost.clear();
        let all = board.first_number()..board.next_number();
        self.lost.extend(all.filter(|&number| board.is_to_resend(number)).map(Reverse));
    }

    /// The lowest segment that was found lost and has not left again.
    pub(crate) fn next_lost(&mut self, board: &Scoreboard) -> Option<u64> {
        while let Some(&Reverse(number)) = self.lost.peek() {
            if board.is_to_resend(number) {
                return Some(number);
            }
            self.lost.pop();
        }
        None
    }
}
