//! Losses that time tells, and probes of a tail.
//!
//! Source: RFC 8985. RACK (section 6): a packet is lost once one that was sent later has arrived and a round trip and the
//! reordering window (a quarter of one at first) have passed since it was sent itself. So a lost repetition is found, which
//! counting packets above it cannot do, and so is a loss near the end, above which there are no three packets. TLP (section 7):
//! where nothing has been heard for two round trips, the next packet, or the last one again, leaves to be acknowledged
//! selectively, long before the retransmission timeout, which takes the window with it.
//!
//! Where this leaves the RFC: uTP cannot tell that something arrived twice (section 7.4), so a probe that is acknowledged no
//! sooner than the path allows counts as the repair of a loss; and the wait for the peer's delayed acknowledgement of a
//! single packet is what deployed peers take (40 ms at most), not TCP's 200 ms. The reordering window adapts
//! ([`ReorderingWindow`]) by what clocks tell: a packet was lost in vain where it is acknowledged before it has left again, or
//! sooner after that than any round trip, or where the stamps of the acknowledgement answer a packet that left before it did.
//!
//! Packets leave for the first time in the order of their numbers, and those that leave again are noted in the order in
//! which they do: both lists are looked at from the front, and each of their entries is judged once.
//!
//! **What it leaves out.** Section 8's changes to congestion control: a lost repetition is reported, and asks for no second
//! reduction within a loss event.
//!
//! **How it was validated.** `tests/rack.rs`.

use super::Connection;
use crate::outbox::{Fate, MAX_PACKETS, Slot};
use crate::timers::Timer;
use alloc::collections::VecDeque;
use cede_cc::PacketFact;
use cede_cc::instruments::ReorderingWindow;
use cede_units::{Duration, Instant};
use cede_wire::Transmit;

/// Packets that have left again and are not judged: more than can be outstanding, so that none is missed.
const MAX_RESENT: usize = 2 * MAX_PACKETS as usize;
/// What a single packet's acknowledgement may wait at a peer of whom nothing is known (librqbit: 40 ms).
const PEER_ACK_DELAY: Duration = Duration::from_millis(50);
/// What any acknowledgement may wait for its turn: a busy host's scheduler gives others turns of some milliseconds, and a
/// probe that leaves meanwhile is in vain and costs both ends a turn.
const HOST_DELAY: Duration = Duration::from_millis(10);

/// What is known of the packet that was sent last of all that have arrived.
#[derive(Debug, Default)]
pub(super) struct Rack {
    newest: (Instant, u64),
    /// Of the packets that the last acknowledgement told of, when the one left that left last, and how long that took: where packets
    /// overtake one another, it is not always the newest (RFC 8985, section 6.2, step 2).
    latest_at: Instant,
    round_trip: Duration,
    reordering: ReorderingWindow,
    /// When the last loss event began, whether it is still to be seen if it was one, and that it was none.
    event_at: Instant,
    in_doubt: bool,
    undo_due: bool,
    /// Packets below this have been judged, as far as they have left once.
    judged_below: u64,
    /// Packets that have left again, and when.
    resent: VecDeque<(u64, Instant)>,
    /// Something was sent or newly acknowledged last.
    active_at: Instant,
    /// A tail probe has left, and nothing has been newly acknowledged since.
    probed: bool,
    /// A tail probe is to leave.
    probe_due: bool,
    /// What the last tail probe repeated, as it was sent before: the probe's fate will tell its own.
    repeated: Option<PacketFact>,
}

impl Rack {
    /// A timeout starts everything anew; `next` is the number of the next new packet.
    pub fn on_timeout(&mut self, next: u64) {
        (self.probed, self.probe_due, self.repeated) = (false, false, None);
        self.resent.clear();
        (self.in_doubt, self.undo_due) = (false, false);
        self.reordering.on_timeout(next);
    }

    /// Something has left again of which nothing is known, perhaps.
    pub fn has_resent(&self) -> bool {
        !self.resent.is_empty()
    }

    /// Gives back the room of a busy time.
    pub fn release(&mut self) {
        self.resent = VecDeque::new();
    }

    /// Packets are known to overtake one another here, which outlasts idleness.
    pub const fn sees_reordering(&self) -> bool {
        self.reordering.is_seen()
    }

    /// A loss event begins.
    pub const fn note_event(&mut self, now: Instant) {
        (self.event_at, self.in_doubt, self.undo_due) = (now, true, false);
        self.reordering.note_event();
    }

    /// The first of the event's packets to arrive tells whether it was one: `slot` was taken for lost, in vain or not.
    fn judge_event(&mut self, slot: &Slot, in_vain: bool) {
        if self.in_doubt && (slot.fate == Fate::Lost || slot.sent_at >= self.event_at) {
            (self.in_doubt, self.undo_due) = (false, in_vain);
        }
    }

    /// The last loss event turned out to be none, just now.
    fn take_undo(&mut self) -> bool {
        let is_due = core::mem::take(&mut self.undo_due);
        if is_due {
            self.reordering.note_undone();
        }
        is_due
    }

    /// The transmission before that a tail probe with this number repeated, once.
    fn take_repeated(&mut self, number: u64) -> Option<PacketFact> {
        self.repeated.take_if(|repeated| repeated.number == number)
    }

    /// A packet leaves again.
    fn note_resent(&mut self, now: Instant, number: u64) {
        if self.resent.len() >= MAX_RESENT {
            self.resent.pop_front();
        }
        self.resent.push_back((number, now));
    }

    /// An acknowledgement is about to be taken in.
    pub const fn begin_arrivals(&mut self) {
        self.latest_at = Instant::ZERO;
    }

    fn note_arrival(&mut self, now: Instant, number: u64, slot: &Slot) {
        if slot.sent_at >= self.latest_at {
            (self.latest_at, self.round_trip) = (slot.sent_at, now.since(slot.sent_at));
        }
        self.newest = self.newest.max((slot.sent_at, number));
        if slot.transmissions == 1 {
            self.reordering.note_first(number);
        }
    }
}

impl Connection {
    /// A packet is acknowledged for the first time, where `is_earlier` an earlier transmission than the last by what the stamps say.
    #[inline]
    pub(super) fn note_arrival(&mut self, now: Instant, number: u64, slot: &Slot, is_earlier: bool) {
        let Some(rack) = &mut self.rack else { return };
        // Sooner than any round trip it can only be an earlier transmission that has arrived.
        let too_soon = self.rtt.min().is_some_and(|min| now.since(slot.sent_at) < min);
        let again_in_vain = slot.transmissions > 1 && (too_soon || is_earlier);
        let in_vain = slot.fate == Fate::Lost || again_in_vain;
        if (in_vain || slot.transmissions > 1) && !slot.probe && !slot.tail_probe {
            rack.judge_event(slot, in_vain);
            if in_vain {
                rack.reordering.note_in_vain(number, self.sending.outbox.next());
            }
        }
        if again_in_vain {
            self.forget_repeated(number);
            return;
        }
        rack.note_arrival(now, number, slot);
        if slot.tail_probe {
            let lost = rack.take_repeated(number);
            self.counters.rare().losses += 1;
            self.scratch().lost.extend(lost);
        }
    }

    /// Where the last loss event was none, its reduction is taken back; what is lost from now on is another.
    pub(super) fn undo_event(&mut self) {
        if self.rack.as_mut().is_some_and(|rack| rack.take_undo()) {
            self.loss.recovery_until = 0;
            self.counters.rare().events_in_vain += 1;
            let allowance = self.controller.on_undo();
            self.apply(allowance);
        }
    }

    /// Of what a tail probe repeated nothing more will be known.
    pub(super) fn forget_repeated(&mut self, number: u64) {
        if let Some(repeated) = self.rack.as_mut().and_then(|rack| rack.take_repeated(number)) {
            self.controller.on_forgotten(&repeated);
        }
    }

    /// A tail probe is about to repeat a packet; of one that was too large nothing is to be learnt.
    fn note_repeated(&mut self, repeated: PacketFact, too_large: bool) {
        let kept = (!too_large).then_some(repeated);
        let before = self.rack.as_mut().and_then(|rack| core::mem::replace(&mut rack.repeated, kept));
        for forgotten in before.into_iter().chain(too_large.then_some(repeated)) {
            self.controller.on_forgotten(&forgotten);
        }
    }

    /// A packet leaves again.
    pub(super) fn note_resent(&mut self, now: Instant, number: u64) {
        if let Some(rack) = &mut self.rack {
            rack.note_resent(now, number);
        }
    }

    /// Takes for lost what should have arrived by now, and asks to be called for what should arrive soon.
    #[inline]
    pub(super) fn find_by_time(&mut self, now: Instant) {
        if let Some(newest) = self.rack.as_ref().map(|rack| rack.newest)
            && !self.is_in_order(newest)
        {
            self.find_overdue(now);
        }
    }

    fn find_overdue(&mut self, now: Instant) {
        let earliest = self.find_overdue_first(now).min(self.find_overdue_again(now));
        self.timers.set(Timer::Reordering, earliest);
    }

    /// Among packets that have left once: when the first of those that are not judged is due.
    fn find_overdue_first(&mut self, now: Instant) -> Instant {
        let Some(rack) = &self.rack else { return Instant::NEVER };
        let mut number = rack.judged_below.max(self.sending.outbox.una());
        let mut due = Instant::NEVER;
        while let Some(slot) = self.sending.outbox.get(number) {
            if slot.fate == Fate::Outstanding && slot.transmissions == 1 {
                due = self.due(slot.sent_at, number);
                if due > now {
                    break;
                }
                self.mark_lost(number);
            }
            number += 1;
        }
        if let Some(rack) = &mut self.rack {
            rack.judged_below = number;
        }
        if self.sending.outbox.get(number).is_some() { due } else { Instant::NEVER }
    }

    /// The same among packets that have left again.
    fn find_overdue_again(&mut self, now: Instant) -> Instant {
        while let Some((number, sent_at)) = self.rack.as_ref().and_then(|rack| rack.resent.front().copied()) {
            let slot = self.sending.outbox.get(number);
            if slot.is_some_and(|slot| slot.fate == Fate::Outstanding && slot.sent_at == sent_at) {
                let due = self.due(sent_at, number);
                if due > now {
                    return due;
                }
                self.mark_lost(number);
            }
            if let Some(rack) = &mut self.rack {
                rack.resent.pop_front();
            }
        }
        Instant::NEVER
    }

    /// When a packet is overdue; never, while nothing that was sent later has arrived.
    fn due(&self, sent_at: Instant, number: u64) -> Instant {
        match &self.rack {
            Some(rack) if (sent_at, number) < rack.newest => {
                let min = self.rtt.min().unwrap_or_default();
                sent_at + rack.round_trip + rack.reordering.window(min, self.rtt.srtt()).max(min / 4)
            }
            _ => Instant::NEVER,
        }
    }

    /// True where nothing outstanding was sent before what has arrived: packets are sent in the order of their
    /// numbers, but for those that are sent again.
    fn is_in_order(&self, newest: (Instant, u64)) -> bool {
        let una = self.sending.outbox.una();
        let oldest = self.sending.outbox.get(una);
        oldest.is_none_or(|slot| slot.transmissions == 1 && (slot.sent_at, una) > newest)
    }

    /// Something has left, or was newly acknowledged: the wait for news begins anew. The timer stays where it is, and is
    /// put off once it runs out: most often it is in vain.
    #[inline]
    pub(super) fn expect_news(&mut self, now: Instant, is_progress: bool) {
        if !self.config.rack {
            return;
        }
        let rack = self.rack.get_or_insert_default();
        rack.active_at = now;
        rack.probed &= !is_progress;
        if !self.timers.is_set(Timer::TailProbe) && self.may_probe_tail() {
            self.timers.set(Timer::TailProbe, now + self.probe_timeout());
        }
    }

    fn may_probe_tail(&self) -> bool {
        let in_recovery = self.sending.outbox.una() < self.loss.recovery_until;
        let unheard =
            self.sending.in_flight_packets > 0 && self.rack.as_ref().is_some_and(|rack| !rack.probed);
        unheard && !in_recovery && self.loss.timeouts == 0 && !self.rtt.srtt().is_zero()
    }

    /// RFC 8985, section 7.2.
    fn probe_timeout(&self) -> Duration {
        let alone = self.sending.in_flight_packets == 1 && !self.is_peer_known();
        self.rtt.srtt() * 2 + if alone { PEER_ACK_DELAY } else { HOST_DELAY }
    }

    pub(super) fn on_tail_probe_timeout(&mut self, now: Instant) {
        if !self.may_probe_tail() || self.sending.peer_window_bytes == 0 {
            return;
        }
        let timeout = self.probe_timeout();
        let Some(rack) = &mut self.rack else { return };
        let due = rack.active_at + timeout;
        rack.probe_due = due <= now;
        if due > now {
            self.timers.set(Timer::TailProbe, due);
        }
    }

    #[inline]
    pub(super) fn is_tail_probe_due(&self) -> bool {
        self.rack.as_ref().is_some_and(|rack| rack.probe_due)
    }

    /// The next packet is a tail probe: the next new one if there is any, the last one again otherwise.
    #[cold]
    pub(super) fn begin_tail_probe(&mut self) -> bool {
        if let Some(rack) = &mut self.rack {
            (rack.probe_due, rack.probed) = (false, true);
        }
        let probes = self.sending.in_flight_packets > 0;
        if probes {
            self.counters.rare().tail_probes += 1;
            self.timers.stop(Timer::Retransmission);
        }
        probes
    }

    #[cold]
    pub(super) fn transmit_last_again(&mut self, now: Instant) -> Option<Transmit> {
        let outbox = &self.sending.outbox;
        let last = (outbox.una()..outbox.next())
            .rev()
            .find(|&number| outbox.get(number).is_some_and(|slot| slot.fate == Fate::Outstanding))?;
        // A path-MTU probe was too large, which is no sign of congestion, whoever repeats it.
        let too_large = self.mtu.lost(last);
        self.counters.rare().mtu_probes_lost += u64::from(too_large);
        let slot = self.sending.outbox.get_mut(last)?;
        slot.tail_probe = !too_large;
        let bytes = slot.payload_bytes;
        let repeated = slot.is_data_outstanding().then(|| slot.fact(last));
        // It leaves the flight to enter it again.
        self.sending.in_flight_packets -= 1;
        self.sending.in_flight_bytes -= u64::from(bytes);
        if let Some(repeated) = repeated {
            self.note_repeated(repeated, too_large);
        }
        self.counters.rare().retransmissions += 1;
        self.counters.rare().retransmitted_bytes += u64::from(bytes);
        self.transmit_numbered(now, last)
    }
}
