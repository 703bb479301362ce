//! What happens when time has passed.
//!
//! Source: RFC 6298 section 5 for the retransmission timer, with the numbers of attempts, the idle timeout, the window
//! probe and the keepalive of libutp (`check_timeouts`). Which timeouts end the connection: those without a word from the
//! peer, as with libtorrent.
//!
//! **What it leaves out.** libutp polls its timers every 500 ms; timeouts are exact here unless
//! [`Config::rto_polling`](crate::Config::rto_polling) says otherwise.
//!
//! **How it was validated.** `tests/slow_link.rs` of the laboratory, `tests/closing.rs` and `tests/feedback.rs`, checks 7, 8, 10 and 14 of `tests/checks.rs`.

use super::{Connection, State};
use crate::config::SubPacketWindow;
use crate::event::ConnectionError;
use crate::outbox::Fate;
use crate::timers::Timer;
use cede_cc::Timeout;
use cede_units::{Duration, Instant};

/// Times that a FIN is sent again to a stranger that has ended its own stream and has everything else (libtorrent's
/// `fin_resends`): librqbit and utp-rs forget a connection then, and answer nothing.
const MAX_LAST_FIN_RESENDS: u32 = 2;
/// The same for one of our own kind, which answers as long as it is there, and may still be reading for the end that the
/// FIN tells. Where it is gone, so are all who would miss anything.
const MAX_LAST_FIN_RESENDS_TO_OURS: u32 = 5;

/// A peer that is heard, and acknowledges nothing new for so many timeouts, never will: doubled from half a second up to a minute
/// they take four minutes.
const MAX_TIMEOUTS_WITH_A_TALKER: u32 = 9;

impl Connection {
    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.take_expired(now) {
            match timer {
                Timer::Retransmission => self.on_retransmission_timeout(now),
                // The next `poll_transmit` looks at the clock itself.
                Timer::Pacing => {}
                Timer::DelayedAck => self.receiving.schedule_ack(),
                Timer::ZeroWindow => self.on_zero_window_timeout(now),
                Timer::Keepalive => self.on_keepalive_timeout(now),
                Timer::Handshake => self.end(Some(ConnectionError::TimedOut)),
                Timer::Close => self.on_close_timeout(),
                Timer::Idle => self.on_idle_timeout(now),
                Timer::MtuSearch => self.on_mtu_search_timeout(now),
                Timer::Reordering => self.on_reordering_timeout(now),
                Timer::WindowUpdate => self.on_window_update_timeout(now),
                Timer::TailProbe => self.on_tail_probe_timeout(now),
                Timer::Controller => self.on_controller_timer(now),
            }
        }
    }

    fn on_controller_timer(&mut self, now: Instant) {
        if self.timer_guard.spins(now) {
            return self.end(Some(ConnectionError::ControllerSpins));
        }
        let allowance = self.controller.on_timer(now);
        self.apply(allowance);
    }

    /// Sets the retransmission timer, rounded up to where it is polled.
    pub(super) fn set_retransmission(&mut self, now: Instant, timeout: Duration) {
        let at = now + timeout;
        let at = match self.config.rto_polling {
            Some(step) if !step.is_zero() => {
                Instant::from_nanos(at.as_nanos().div_ceil(step.as_nanos()).saturating_mul(step.as_nanos()))
            }
            _ => at,
        };
        self.timers.set(Timer::Retransmission, at);
    }

    fn on_retransmission_timeout(&mut self, now: Instant) {
        match self.state {
            State::SynSent { .. } => self.on_syn_timeout(),
            State::SynReceived { .. } => self.on_answer_timeout(now),
            State::Established { .. } if self.sending.in_flight_packets == 0 => self.lift_blocked_window(now),
            State::Established { .. } => self.on_data_timeout(now),
            State::Closed { .. } => {}
        }
    }

    /// Packets have been under way for too long.
    fn on_data_timeout(&mut self, now: Instant) {
        let una = self.sending.outbox.una();
        if self.sending.in_flight_packets == 1 && self.mtu.lost(una) {
            // The only packet under way was a path-MTU probe: it was too large, and that is all that is known.
            self.counters.rare().mtu_probes_lost += 1;
            self.forget_all();
            self.plan_mtu_search(now);
            return;
        }
        if self.gives_up() {
            self.end((!self.awaits_last_ack()).then_some(ConnectionError::TimedOut));
            return;
        }
        self.loss.timeouts += 1;
        self.loss.unheard = self.loss.unheard.saturating_add(1);
        self.loss.timed_out = una as u16;
        self.rtt.back_off();
        self.counters.rare().timeouts += 1;
        self.mtu.forget_probe();
        let in_flight_bytes = self.sending.in_flight_bytes;
        self.take_all_for_lost();
        self.suspect_packet_size(una);
        self.loss.on_timeout(una);
        if let Some(rack) = &mut self.rack {
            rack.on_timeout(self.sending.outbox.next());
        }
        self.tell_timeout(now, in_flight_bytes, self.loss.timeouts, false);
    }

    /// A timeout while the peer still answers what it has says that the path is slower than was thought, or loses what we repeat:
    /// only those count during which nothing was heard, as with libtorrent, up to a limit. Where there is a bound to how often one
    /// packet leaves, that ends it all the same.
    fn gives_up(&self) -> bool {
        let oldest = self.sending.outbox.get(self.sending.outbox.una());
        let left = oldest.map_or(0, |slot| slot.transmissions);
        if self.config.max_transmissions.is_some_and(|most| left >= u16::from(most)) {
            return true;
        }
        let allowed = self.timeouts_allowed();
        let is_heard = u32::from(self.loss.unheard) < allowed && !self.awaits_last_ack();
        let allowed = if is_heard { allowed.max(MAX_TIMEOUTS_WITH_A_TALKER) } else { allowed };
        self.loss.timeouts >= allowed
    }

    /// Timeouts in a row that end the connection with the next one.
    fn timeouts_allowed(&self) -> u32 {
        let usual = u32::from(self.config.max_retransmissions);
        match (self.awaits_last_ack(), self.is_peer_known()) {
            (false, _) => usual,
            (true, true) => usual.min(MAX_LAST_FIN_RESENDS_TO_OURS),
            (true, false) => usual.min(MAX_LAST_FIN_RESENDS),
        }
    }

    /// Everything outstanding is to leave again, the oldest packet at once.
    fn take_all_for_lost(&mut self) {
        for number in self.sending.outbox.una()..self.sending.outbox.next() {
            let Some(slot) = self.sending.outbox.get_mut(number) else { break };
            if slot.fate == Fate::Outstanding {
                slot.fate = Fate::Lost;
                let bytes = slot.payload_bytes;
                self.sending.enter_lost(number, bytes);
            }
        }
        self.sending.resends_beyond_window = 1;
    }

    /// What is under way leaves the flight without a word about losses; the oldest packet leaves again at once.
    pub(super) fn forget_all(&mut self) {
        for number in self.sending.outbox.una()..self.sending.outbox.next() {
            self.forget(number);
        }
        self.sending.resends_beyond_window = 1;
    }

    /// Nothing is under way because the window is smaller than a packet: the timeout lifts it, as in libutp.
    fn lift_blocked_window(&mut self, now: Instant) {
        let blocks = self.config.sub_packet_window == SubPacketWindow::Blocked;
        let too_small = self.allowance.cwnd_bytes < u64::from(self.mtu.payload_bytes());
        if blocks && too_small && !self.sending.is_idle() {
            self.tell_timeout(now, 0, 1, false);
        }
    }

    /// Nothing has been outstanding for a timeout.
    fn on_idle_timeout(&mut self, now: Instant) {
        if !self.sending.is_idle() || self.sending.is_ended() {
            return;
        }
        self.release_memory();
        let next = self.tell_idle(now);
        match self.config.idle_told_late {
            true => self.sending.idle_due = next,
            false => self.timers.set(Timer::Idle, next),
        }
    }

    /// The controller hears of a timeout without anything outstanding, and when it will again: at doubled intervals, until it
    /// is down to a packet; from then on an idle connection costs nothing.
    fn tell_idle(&mut self, now: Instant) -> Instant {
        self.sending.idle_timeouts += 1;
        self.tell_timeout(now, 0, self.sending.idle_timeouts, true);
        let pause = self.rtt.rto() * (1 << self.sending.idle_timeouts.min(32));
        let goes_on = self.allowance.cwnd_bytes > u64::from(self.mtu.payload_bytes());
        if goes_on && pause < self.config.max_rto { now + pause } else { Instant::NEVER }
    }

    /// There is something to send again: the controller hears of the timeouts that it was not told.
    #[cold]
    pub(super) fn tell_idle_belatedly(&mut self, now: Instant) {
        while self.sending.idle_due <= now {
            self.sending.idle_due = self.tell_idle(self.sending.idle_due);
        }
    }

    /// Gives back the room that a busy time has taken, as far as nothing is in it: connections that idle are many.
    pub(super) fn release_memory(&mut self) {
        self.sending.outbox.release();
        self.sending.queue.release();
        self.receiving.reorder.release();
        self.receiving.ready.release();
        self.scratch = None;
        if self.sending.outbox.is_empty() {
            self.rack.take_if(|rack| !rack.sees_reordering());
            self.rack.iter_mut().for_each(|rack| rack.release());
            self.timers.stop(Timer::TailProbe);
        }
    }

    fn tell_timeout(&mut self, now: Instant, in_flight_bytes: u64, consecutive: u32, idle: bool) {
        let next_number = self.sending.outbox.next();
        let timeout = Timeout { now, in_flight_bytes, consecutive, next_number, idle };
        let allowance = self.controller.on_timeout(&timeout);
        self.apply(allowance);
    }

    /// The peer's window has been too small for long: one packet asks whether it still is.
    fn on_zero_window_timeout(&mut self, now: Instant) {
        let patience = self.config.zero_window_limit;
        if patience.is_some_and(|patience| now.since(self.sending.zero_window_since) >= patience) {
            self.end(Some(ConnectionError::TimedOut));
        } else if self.sending.in_flight_packets == 0
            && (self.sending.lost_packets > 0 || !self.sending.queue.is_empty())
        {
            self.sending.zero_window_credit = true;
            self.counters.rare().zero_window_probes += 1;
        }
    }

    /// The window is too small for anything: asks again after a pause, which doubles from probe to probe.
    pub(super) fn await_window(&mut self, now: Instant) {
        let sending = &mut self.sending;
        if sending.zero_window_probes == 0 {
            sending.zero_window_since = now;
        }
        let pause = self.config.zero_window_probe * (1 << sending.zero_window_probes.min(16));
        sending.zero_window_probes = sending.zero_window_probes.saturating_add(1);
        self.timers.set(Timer::ZeroWindow, now + pause.min(self.config.zero_window_probe_max));
    }

    /// After a packet has stated the peer's window. One that is open ends the probing. One that is shut, while probes
    /// or retransmissions go unheeded, means that the peer lives and has no room: what is under way counts as not sent,
    /// and the next probe waits its time instead of the retransmission timer's.
    pub(super) fn settle_zero_window(&mut self, now: Instant) {
        if self.sending.peer_window_bytes > 0 {
            self.timers.stop(Timer::ZeroWindow);
            self.sending.zero_window_probes = 0;
            self.sending.zero_window_credit = false;
            if core::mem::take(&mut self.sending.probing_zero_window) {
                self.unsend_probe();
            }
            return;
        }
        let unheeded = self.sending.probing_zero_window || self.loss.timeouts > 0;
        if unheeded && self.sending.in_flight_packets > 0 {
            self.unsend_probe();
            self.loss.timeouts = 0;
            self.rtt.reset_backoff();
            self.await_window(now);
        }
    }

    /// The packets under way, which the peer had no room for, go back among those that wait.
    fn unsend_probe(&mut self) {
        self.forget_all();
        self.loss.forget_duplicates();
        self.sending.resends_beyond_window = 0;
        self.sending.probing_zero_window = false;
        self.timers.stop(Timer::Retransmission);
    }

    /// Nothing has left for long: the next packet is a keepalive, after our FIN too, as long as we read. A NAT on the way
    /// then knows us still when the peer speaks; and a peer that has forgotten us, since all its FINs were lost, says so.
    fn on_keepalive_timeout(&mut self, now: Instant) {
        let Some(due) = self.keepalive_after(self.sending.last_sent_at) else { return };
        if due > now && !self.doubts_peer() {
            return self.timers.set(Timer::Keepalive, due);
        }
        self.timers.set(Timer::Keepalive, self.keepalive_after(now).unwrap_or(Instant::NEVER));
        // A FIN under way is repeated, and keeps us known.
        if !self.sending.is_ended() || self.sending.is_fin_acked() {
            self.release_memory();
            self.sending.keepalive_due = true;
        }
    }

    fn on_mtu_search_timeout(&mut self, now: Instant) {
        if self.mtu.restart() {
            self.on_packet_size_changed();
        }
        self.plan_mtu_search(now);
    }

    /// The path-MTU search has found another size for full packets.
    pub(super) fn on_packet_size_changed(&mut self) {
        let allowance = self.controller.on_mss(self.mtu.mss_bytes());
        self.apply(allowance);
    }

    /// A search that has ended begins again some time.
    pub(super) fn plan_mtu_search(&mut self, now: Instant) {
        if self.mtu.is_settled() && !self.timers.is_set(Timer::MtuSearch) {
            self.timers.set(Timer::MtuSearch, now + crate::mtu::RESTART);
        }
    }
}
