//! What the peer lacks.
//!
//! Source: BEP 29 ("packet loss"): a packet is lost once three packets sent after it have been selectively acknowledged,
//! or, with libtorrent, once three duplicate STATEs ask for it. As in libutp a packet is found lost in this way once;
//! if its repetition is lost too, the retransmission timer finds out.
//!
//! Numbers only rise, so the third-highest selectively acknowledged one divides the packets: whatever is outstanding
//! below it is lost. The border only moves up, and each packet is looked at once.
//!
//! Losses that time tells are found in `rack.rs`, where [`Config::rack`](crate::Config::rack) wants it.
//!
//! **What it leaves out.** Telling from later selective acknowledgements that a repetition was lost too: its loss asks
//! for a second reduction (RFC 5681 section 4.3), which controllers, who know a loss event by the packet's number, would
//! not make; the timer does both. libutp's "fast timeout" mode, in which each acknowledgement after a timeout lets one more
//! packet out regardless of the window: after a timeout everything outstanding counts as lost here and leaves again as
//! the window allows, which comes to the same with the window of one packet that a timeout leaves.
//!
//! **How it was validated.** `tests/checks.rs` (checks 3, 9, 14); the masks of a recorded libutp connection
//! make this send the same packets again, in the same order, as libutp did (`tests/replay.rs`).

use super::Connection;
use crate::config::MAX_SACK_THRESHOLD;
use crate::outbox::Fate;
use cede_units::Instant;

/// What the search for losses remembers.
#[derive(Debug)]
pub(super) struct LossDetection {
    /// Packets below this have been judged.
    judged_below: u64,
    /// The highest numbers selectively acknowledged, each plus one, falling; zero for none.
    highest: [u64; MAX_SACK_THRESHOLD],
    duplicates: u8,
    /// A loss event is being repaired until this number is acknowledged; zero for none.
    pub recovery_until: u64,
    /// Retransmission timeouts since the last progress.
    pub timeouts: u32,
    /// Of these, since the peer was last heard.
    pub unheard: u8,
    /// The low bits of the packet that the timer ran out for last: outstanding ones differ in them.
    pub timed_out: u16,
}

impl LossDetection {
    pub fn new() -> Self {
        Self {
            judged_below: 0,
            highest: [0; MAX_SACK_THRESHOLD],
            duplicates: 0,
            recovery_until: 0,
            timeouts: 0,
            unheard: 0,
            timed_out: 0,
        }
    }

    /// Packet `number` was selectively acknowledged for the first time.
    #[inline]
    pub fn note_selective(&mut self, number: u64) {
        let mut carried = number + 1;
        for place in &mut self.highest {
            if carried > *place {
                core::mem::swap(place, &mut carried);
            }
        }
    }

    /// What is outstanding was never taken in: acknowledgements that repeated so far were about that.
    pub fn forget_duplicates(&mut self) {
        self.duplicates = 0;
    }

    /// Everything outstanding was taken for lost from `una` on. What was acknowledged before the timeout says nothing
    /// about what leaves after it.
    pub fn on_timeout(&mut self, una: u64) {
        (self.judged_below, self.highest) = (una, [0; MAX_SACK_THRESHOLD]);
        (self.duplicates, self.recovery_until) = (0, 0);
    }
}

impl Connection {
    /// Looks for losses after a packet's acknowledgements have been taken in.
    pub(super) fn find_losses(&mut self, now: Instant, una_before: u64, duplicate: bool) {
        let una = self.sending.outbox.una();
        if una > una_before {
            self.loss.duplicates = 0;
        } else if duplicate {
            self.counters.rare().duplicate_acks_received += 1;
            self.loss.duplicates = self.loss.duplicates.saturating_add(1);
        }
        let lost_before = self.sending.lost_packets;
        self.find_by_duplicates(una);
        self.find_by_selective_acks(una);
        self.find_by_time(now);
        let found = self.sending.lost_packets - lost_before;
        if found > 0 {
            let at_once = found.min(u32::from(self.config.resends_beyond_window));
            self.sending.resends_beyond_window = self.sending.resends_beyond_window.max(at_once);
        }
        self.open_loss_event(now);
    }

    fn find_by_duplicates(&mut self, una: u64) {
        let Some(threshold) = self.config.duplicate_ack_threshold else { return };
        if self.loss.duplicates >= threshold.max(1) && una >= self.loss.judged_below {
            self.loss.judged_below = una + 1;
            self.count_lost(una);
        }
    }

    fn find_by_selective_acks(&mut self, una: u64) {
        let threshold = usize::from(self.config.sack_threshold);
        let border = self.loss.highest[threshold - 1].saturating_sub(1);
        let mut left = self.config.max_losses_per_ack.unwrap_or(u16::MAX);
        let mut number = self.loss.judged_below.max(una);
        while number < border && left > 0 {
            left -= u16::from(self.count_lost(number));
            number += 1;
            self.loss.judged_below = number;
        }
    }

    /// As [`Self::mark_lost`], for counting. Where time tells of losses, it alone tells of repetitions, since what is acknowledged above
    /// one may have left before it, and of anything where packets overtake one another.
    fn count_lost(&mut self, number: u64) -> bool {
        let again = self.sending.outbox.get(number).is_some_and(|slot| slot.transmissions > 1);
        let time_tells = self.rack.as_ref().is_some_and(|rack| again || rack.sees_reordering());
        !time_tells && self.mark_lost(number)
    }

    /// Takes an outstanding packet for lost; false where it is not outstanding. A lost path-MTU probe is too large,
    /// not a sign of congestion, and so is kept from the controller.
    pub(super) fn mark_lost(&mut self, number: u64) -> bool {
        let Some(slot) = self.sending.outbox.get_mut(number) else { return false };
        if slot.fate != Fate::Outstanding {
            return false;
        }
        slot.fate = Fate::Lost;
        let lost = slot.fact(number);
        let fin = slot.fin;
        self.sending.enter_lost(number, lost.bytes);
        self.forget_repeated(number);
        if self.mtu.lost(number) {
            self.counters.rare().mtu_probes_lost += 1;
            self.controller.on_forgotten(&lost);
            return true;
        }
        self.counters.rare().losses += 1;
        self.mtu.forget_probe();
        if !fin {
            self.scratch().lost.push(lost);
        }
        true
    }

    /// The path-MTU probe under way is known not to arrive: its payload leaves again at once, and nothing is made of it.
    pub(super) fn return_mtu_probe(&mut self) {
        let Some(number) = self.mtu.probe_number() else { return };
        if self.forget(number) {
            self.sending.resends_beyond_window = self.sending.resends_beyond_window.max(1);
            self.counters.rare().mtu_probes_lost += 1;
        }
    }

    /// A packet under way leaves the flight, to leave again, without a word about a loss; false where it is not under way.
    pub(super) fn forget(&mut self, number: u64) -> bool {
        let Some(slot) = self.sending.outbox.get_mut(number) else { return false };
        if slot.fate != Fate::Outstanding {
            return false;
        }
        slot.fate = Fate::Lost;
        let (packet, fin) = (slot.fact(number), slot.fin);
        self.sending.enter_lost(number, packet.bytes);
        if !fin {
            self.controller.on_forgotten(&packet);
        }
        self.forget_repeated(number);
        true
    }

    /// A loss beyond what is being repaired opens a new event, which lasts until all that is out now is acknowledged.
    fn open_loss_event(&mut self, now: Instant) {
        let newest = self.scratch().lost.last().map(|fact| fact.number);
        if newest.is_some_and(|number| number >= self.loss.recovery_until) {
            self.loss.recovery_until = self.sending.outbox.next();
            self.rack.iter_mut().for_each(|rack| rack.note_event(now));
        }
    }
}
