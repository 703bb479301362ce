//! Deadlines.
//!
//! Source: RFC 6298 section 5 (retransmission), RFC 9293 section 3.8.6.1 (probing a closed window).
//!
//! **What it leaves out.** Keep-alives.
//!
//! **How it was validated.** Deadlines event by event (tests of repair), probes of a closed window (tests of life), a
//! controller's timer that a departure sets (tests of the contract).

use super::{Connection, Failure, Limit, State};
use cede_cc::Timeout;
use cede_units::Instant;

/// What a deadline is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeoutReason {
    /// Data, SYN or FIN is to be sent again.
    Retransmission,
    /// A segment that others have overtaken is late.
    Reordering,
    /// The last of what is under way is to be probed for.
    TailProbe,
    /// A delayed acknowledgement is due.
    DelayedAck,
    /// A closed window is to be probed.
    WindowProbe,
    /// Pacing, or a window below one segment, lets the next segment leave.
    Pacing,
    /// The controller wants to be called.
    Controller,
    /// The waiting after closing is over.
    TimeWait,
}

/// The deadlines; [`Instant::NEVER`] where one is not set.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    pub(super) rto: Instant,
    pub(super) reordering: Instant,
    pub(super) tail: Instant,
    pub(super) probe: Instant,
    pub(super) send: Instant,
    pub(super) time_wait: Instant,
    /// Timeouts in a row without an answer.
    pub(super) retries: u32,
}

impl Default for Timers {
    fn default() -> Self {
        let never = Instant::NEVER;
        Self {
            rto: never,
            reordering: never,
            tail: never,
            probe: never,
            send: never,
            time_wait: never,
            retries: 0,
        }
    }
}

impl Timers {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Connection {
    /// When [`Self::handle_timeout`] is wanted next; none where nothing is pending. A host may keep one deadline per
    /// connection and re-arm it only when it fires too early.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timers = &self.timers;
        let earliest = timers.rto.min(timers.probe).min(timers.send).min(timers.time_wait);
        let earliest = earliest.min(timers.reordering).min(timers.tail);
        let earliest = earliest.min(self.ack_deadline()).min(self.controller_deadline());
        (earliest < Instant::NEVER).then_some(earliest)
    }

    /// [`Self::poll_timeout`] with what the deadline is for.
    #[must_use]
    pub fn poll_timeout_reason(&self) -> Option<(Instant, TimeoutReason)> {
        let candidates = [
            (self.timers.reordering, TimeoutReason::Reordering),
            (self.timers.tail, TimeoutReason::TailProbe),
            (self.timers.rto, TimeoutReason::Retransmission),
            (self.ack_deadline(), TimeoutReason::DelayedAck),
            (self.timers.probe, TimeoutReason::WindowProbe),
            (self.timers.send, TimeoutReason::Pacing),
            (self.controller_deadline(), TimeoutReason::Controller),
            (self.timers.time_wait, TimeoutReason::TimeWait),
        ];
        let earliest = candidates.into_iter().min_by_key(|&(at, _)| at)?;
        (earliest.0 < Instant::NEVER).then_some(earliest)
    }

    fn ack_deadline(&self) -> Instant {
        if self.state == State::Closed { Instant::NEVER } else { self.acks.deadline() }
    }

    fn controller_deadline(&self) -> Instant {
        let wanted = self.controller_timer.filter(|_| self.state.may_send());
        wanted.unwrap_or(Instant::NEVER)
    }

    /// Acts on the deadlines that `now` has reached. Calls that come too early do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.timers.time_wait <= now {
            self.timers.clear();
            self.state = State::Closed;
        }
        self.acks.on_deadline(now);
        if self.controller_deadline() <= now {
            if self.timer_guard.spins(now) {
                return self.fail(Failure::ControllerSpins);
            }
            let allowance = self.controller.on_timer(now);
            self.adopt(allowance);
        }
        if self.timers.send <= now {
            self.timers.send = Instant::NEVER;
        }
        if self.timers.probe <= now {
            self.timers.probe = Instant::NEVER;
            self.repair.probe_due = true;
        }
        if self.timers.reordering <= now {
            self.on_reordering_deadline(now);
        }
        if self.timers.tail <= now {
            self.on_tail_deadline(now);
        }
        if self.timers.rto <= now {
            self.on_retransmission_timeout(now);
        }
    }

    fn on_retransmission_timeout(&mut self, now: Instant) {
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.on_handshake_timeout();
            return;
        }
        self.timers.rto = Instant::NEVER;
        if self.board.is_empty() {
            return;
        }
        self.timers.retries += 1;
        if self.timers.retries > self.config.retries_max {
            self.fail(Failure::TimedOut);
            return;
        }
        // A probe that a closed window refuses is no sign of congestion.
        if self.is_peer_window_closed() {
            self.undo.clear();
        } else {
            self.begin_undo_of_timeout();
            self.tell_timeout(now);
        }
        self.board.mark_all_lost(self.config.sack_forgotten_at_timeout);
        if let Some(rack) = &mut self.rack {
            rack.on_timeout(&self.board);
            (self.timers.reordering, self.timers.tail) = (Instant::NEVER, Instant::NEVER);
        }
        self.repair.on_timeout(self.board.next_number());
        self.note_reduction();
        self.rtt.back_off();
        self.timers.rto = now + self.rtt.rto();
    }

    fn tell_timeout(&mut self, now: Instant) {
        self.statistics.timeouts += 1;
        let allowance = self.controller.on_timeout(&Timeout {
            now,
            in_flight_bytes: self.in_flight_bytes(),
            consecutive: self.timers.retries,
            next_number: self.board.next_number(),
            idle: false,
        });
        self.adopt(allowance);
    }

    /// RFC 5681, section 4.1: nothing was outstanding for longer than a timeout, and now there is data again. What pacing or
    /// a window below one segment has held back does not come after idleness.
    pub(super) fn note_idle(&mut self, now: Instant) {
        let Some(last_at) = self.last_data_sent_at.filter(|_| self.limit != Limit::Window) else { return };
        let idle = now.since(last_at);
        if idle <= self.rtt.rto() {
            return;
        }
        let allowance = self.controller.on_timeout(&Timeout {
            now,
            in_flight_bytes: 0,
            consecutive: u32::try_from(idle.as_nanos() / self.rtt.rto().as_nanos()).unwrap_or(u32::MAX),
            next_number: self.board.next_number(),
            idle: true,
        });
        self.adopt(allowance);
    }

    /// The peer lets nothing more be sent, not even what is outstanding.
    pub(super) const fn is_peer_window_closed(&self) -> bool {
        self.peer.window_end <= self.board.una()
    }
}
