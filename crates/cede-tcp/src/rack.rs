//! Finding losses by time: what left before something that has been delivered since, and is late, is lost.
//!
//! Source: RFC 8985 (RACK), sections 6.2 and 6.3, as Linux has it since 4.18: a window for reordering of a quarter of the smallest
//! round trip, at most the smoothed one; none while something is being repaired, or once three segments are SACKed, as long as
//! no reordering was seen.
//!
//! Counting finds a loss where three segments arrive beyond it. Flows whose windows are two or three segments, as many have
//! on a small buffer, wait for a timeout then; by time one segment is enough, and what was sent again can be found lost again.
//!
//! Transmissions stand in a row by their time, so that those which are late are at its front: each is looked at once, but for the
//! first that is not late yet.
//!
//! **What it leaves out.** The window that grows with each D-SACK, which our receiver does not send; the smallest round trip is that
//! of the whole connection, where Linux's is that of five minutes; the deadline for reordering is that of the first
//! segment, and not of the last.
//!
//! **How it was validated.** Event by event (tests of repair), and beside real swarms of Linux's TCP (docs/swarms.md).

use crate::scoreboard::Scoreboard;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use cede_cc::PacketFact;
use cede_units::{Duration, Instant};
use core::cmp::Reverse;

/// A tail-loss probe under way.
#[derive(Clone, Debug)]
pub(crate) struct TailProbe {
    /// The number after the newest segment when it left.
    pub(crate) end: u64,
    /// What was known of the segment that it sent again; none where it was new data.
    pub(crate) original: Option<PacketFact>,
}

/// What is known of times, and what follows.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Of the segments delivered, the one that left last: when, and its number.
    newest: (Instant, u64),
    /// How long that took.
    rtt: Duration,
    min_rtt: Duration,
    /// The number after the highest delivered.
    highest: u64,
    is_reordered: bool,
    /// Departures, and of which segment; those of segments that are gone, or left again later, are passed over.
    sent: VecDeque<(Instant, u64)>,
    /// Segments that were found lost; passed over once they are delivered or have left again.
    lost: BinaryHeap<Reverse<u64>>,
    pub(crate) probe: Option<TailProbe>,
}

impl Rack {
    pub(crate) const fn new() -> Self {
        Self {
            newest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            min_rtt: Duration::MAX,
            highest: 0,
            is_reordered: false,
            sent: VecDeque::new(),
            lost: BinaryHeap::new(),
            probe: None,
        }
    }

    /// Segment `number` leaves, for the first time or again.
    pub(crate) fn on_sent(&mut self, now: Instant, number: u64) {
        self.sent.push_back((now, number));
    }

    /// Takes in what an acknowledgement says to be delivered.
    pub(crate) fn on_delivered(&mut self, now: Instant, facts: &[PacketFact]) {
        let highest = self.highest;
        for fact in facts {
            let rtt = now.since(fact.sent_at);
            if fact.retransmitted && rtt < self.min_rtt {
                // Of an earlier transmission, most likely.
                continue;
            }
            if !fact.retransmitted {
                self.min_rtt = self.min_rtt.min(rtt);
                self.is_reordered |= fact.number < highest;
                self.highest = self.highest.max(fact.number + 1);
            }
            if (fact.sent_at, fact.number) > self.newest {
                (self.newest, self.rtt) = ((fact.sent_at, fact.number), rtt);
            }
        }
    }

    /// How much later than the newest a segment may arrive that left before it.
    fn window(&self, is_sure: bool, srtt: Duration) -> Duration {
        if is_sure && !self.is_reordered { Duration::ZERO } else { (self.min_rtt / 4).min(srtt) }
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
