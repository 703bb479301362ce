//! Losses that time tells of: segments that others have overtaken, and the last of a flight, which nothing overtakes.
//!
//! Source: RFC 8985, sections 6.2 step 5 and 6.3 (the reordering timer), 7 (tail-loss probes), as Linux 6.18 has them: a probe
//! leaves after two smoothed round trips, with the smallest timeout on top where a single segment is under way, and in the place of
//! the timeout where that would come first; it is new data where there are some, whatever the window, else the last
//! segment again. Acknowledgements that go beyond a segment that was sent again so say that it was lost; one that
//! repeats itself says that both have arrived.
//!
//! **How it was validated.** Event by event (tests of repair).

use super::Connection;
use super::acknowledge::Times;
use crate::facts::Facts;
use crate::rack::TailProbe;
use crate::statistics::RepairMode;
use cede_units::{Duration, Instant};
use cede_wire::Transmit;

/// A probe waits so much longer than two round trips where several segments are under way: two ticks of Linux's clock.
const PROBE_SLACK: Duration = Duration::from_millis(2);

impl Connection {
    /// Marks what is late, and begins an episode where one is due.
    pub(super) fn detect_by_time(&mut self, now: Instant) {
        let is_sure = self.repair.mode != RepairMode::Open || self.board.has_many_sacked();
        let Some(rack) = &mut self.rack else { return };
        let srtt = self.rtt.smoothed();
        let next = rack.find(now, (is_sure, srtt), &mut self.board, &mut self.scratch.lost);
        self.timers.reordering = next.unwrap_or(Instant::NEVER);
        // What was found beyond the end of the last episode begins one of its own.
        if self.repair.mode == RepairMode::Open && rack.next_lost(&self.board).is_some() {
            self.enter_recovery();
        }
    }

    /// Something that others have overtaken may be late by now.
    pub(super) fn on_reordering_deadline(&mut self, now: Instant) {
        let before = self.before();
        self.undo.hold(false);
        self.detect_by_time(now);
        if !self.scratch.lost.is_empty() {
            self.tell_controller(now, (&before, &Facts::default()), &Times::default(), false);
        }
        self.plan_tail_probe(now);
    }

    /// Sets or stops the timer of the tail-loss probe: nothing is in disorder, and no probe is under way.
    pub(super) fn plan_tail_probe(&mut self, now: Instant) {
        let is_calm = self.repair.mode == RepairMode::Open && !self.board.is_empty();
        let is_calm = is_calm && !self.board.has_sacked() && !self.is_peer_window_closed();
        let is_planned = is_calm && self.rack.as_ref().is_some_and(|rack| rack.probe.is_none());
        self.timers.tail = if is_planned { self.probe_at(now) } else { Instant::NEVER };
    }

    fn probe_at(&self, now: Instant) -> Instant {
        let srtt = self.rtt.smoothed();
        let is_alone = self.board.next_number() == self.board.first_number() + 1;
        let slack = if is_alone { self.config.rto_min } else { PROBE_SLACK };
        let wait = if srtt.is_zero() { self.config.rto_initial } else { srtt * 2 + slack };
        (now + wait).min(self.timers.rto)
    }

    /// A probe is due: the timeout waits for what comes of it.
    pub(super) fn on_tail_deadline(&mut self, now: Instant) {
        self.timers.tail = Instant::NEVER;
        self.timers.rto = now + self.rtt.rto();
        self.repair.tail_due = true;
    }

    /// The probe: new data where the peer takes them, else the last segment again.
    pub(super) fn transmit_tail_probe(&mut self, now: Instant) -> Option<Transmit> {
        let len = self.buffer.len().min(u64::from(self.segment_bytes())) as u32;
        let has_room = self.peer.window_end.saturating_sub(self.board.next()) >= u64::from(len);
        let original = if len > 0 && has_room { None } else { self.board.last_fact() };
        let transmit = match original {
            Some(fact) => self.transmit_again(now, fact.number, true)?,
            None if len > 0 => self.transmit_cut(now, len, false),
            None => return None,
        };
        let (end, end_offset) = (self.board.next_number(), self.board.next());
        if let Some(rack) = &mut self.rack {
            rack.probe = Some(TailProbe { end, end_offset, original });
        }
        self.timers.tail = Instant::NEVER;
        self.statistics.tail_probes += 1;
        Some(transmit)
    }

    /// What an acknowledgement says of the probe under way: nothing yet, or what became of the segment that it repeated.
    pub(super) fn settle_tail_probe(&mut self, is_repeated: bool) {
        let first = self.board.first_number();
        let Some(rack) = &mut self.rack else { return };
        let Some(probe) = rack.probe.as_ref().filter(|probe| first >= probe.end) else { return };
        match probe.original {
            Some(fact) if first > probe.end => self.scratch.lost.push(fact),
            Some(fact) if is_repeated => self.controller.on_forgotten(&fact),
            Some(_) => return,
            None => {}
        }
        rack.probe = None;
    }
}
