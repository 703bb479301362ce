//! Ending a connection.
//!
//! Source: BEP 29 (FIN, RESET); libutp and libtorrent for half-closed connections, the acceptance of RESETs and the
//! meaning of one that answers a FIN. Unlike libutp, which accepts a RESET for its 16-bit id alone, a RESET must
//! acknowledge something plausible, so that guessing takes more than 65,536 packets.
//!
//! **What it leaves out.** ICMP: the endpoint's host tells [`Connection::unreachable`], [`Connection::nobody_there`] and
//! [`Connection::packet_too_big`] what concerns a connection.
//!
//! **How it was validated.** `tests/checks.rs` (checks 8 and 11), `tests/closing.rs`.

use super::receive::RemoteFin;
use super::send::LocalFin;
use super::{Connection, State};
use crate::event::ConnectionError;
use crate::timers::Timer;
use cede_units::{Instant, Seq16};
use cede_wire::utp::Packet;

impl Connection {
    /// Ends our stream behind what has been written. What the peer still sends can be read; once ours is acknowledged
    /// and the peer is silent for [`Config::fin_timeout`](crate::Config::fin_timeout), its FIN is awaited no longer.
    pub fn close(&mut self) {
        // Where our FIN has been acknowledged already, only the wait for the peer's is left to begin.
        let waits = !self.sending.closing && self.sending.is_fin_acked() && !self.is_finished();
        self.sending.close_due |= waits;
        self.sending.closing = true;
        self.shutdown();
        // A SYN with nothing behind it has promised nothing to anyone: there is nobody to tell.
        if matches!(self.state, State::SynSent { .. }) && self.sending.queue.is_empty() {
            self.end(None);
        }
    }

    /// As [`Connection::close`], telling the peer why (extension 3 of libtorrent; the numbers are BitTorrent's).
    pub fn close_with_reason(&mut self, reason: u16) {
        self.sending.close_reason = Some(reason);
        self.close();
    }

    /// Ends our stream behind what has been written, and goes on receiving for as long as the peer wishes.
    pub fn shutdown(&mut self) {
        if self.sending.fin == LocalFin::None {
            self.sending.fin = LocalFin::Queued;
            self.timers.stop(Timer::Idle);
        }
    }

    /// Drops what has arrived and all that will arrive; it is acknowledged all the same.
    pub fn stop_reading(&mut self) {
        self.receiving.discarding = true;
        self.receiving.ready.clear();
        self.after_reading();
    }

    /// Gives up at once; the peer gets a RESET.
    pub fn abort(&mut self) {
        if matches!(self.state, State::Closed { .. }) {
            return;
        }
        let tell = !matches!(self.state, State::SynSent { transmissions: 0, .. });
        self.end(Some(ConnectionError::Aborted));
        self.state = State::Closed { error: Some(ConnectionError::Aborted), reset_due: tell };
    }

    /// The host learnt that the peer cannot be reached (ICMP) from a packet of this connection.
    pub fn unreachable(&mut self) {
        let opening = matches!(self.state, State::SynSent { .. });
        self.end(Some(if opening { ConnectionError::Refused } else { ConnectionError::Reset }));
    }

    /// The host learnt that a packet was too large for the path (ICMP, or the local system's refusal), perhaps with the
    /// octets of UDP payload that would have passed.
    pub fn packet_too_big(&mut self, now: Instant, fits_bytes: Option<u32>) {
        self.return_mtu_probe();
        if self.mtu.too_big(fits_bytes) {
            self.on_packet_size_changed();
            self.return_outgrown();
        }
        self.plan_mtu_search(now);
    }

    /// The reason for our FIN.
    pub(super) fn close_reason_to_send(&self) -> Option<u16> {
        self.sending.close_reason
    }

    /// True once, where a RESET is to leave.
    pub(super) fn take_reset_due(&mut self) -> bool {
        match &mut self.state {
            State::Closed { reset_due, .. } => core::mem::take(reset_due),
            _ => false,
        }
    }

    /// Both streams have ended.
    pub(super) fn is_finished(&self) -> bool {
        self.sending.is_fin_acked() && self.receiving.is_finished()
    }

    /// One of the streams has ended: is it time to go?
    pub(super) fn settle_close(&mut self, now: Instant) {
        if self.is_finished() {
            self.events.closed();
            let rto = self.rtt.rto() * 2;
            let linger = rto.max(self.config.linger_min).min(self.config.linger_max);
            self.timers.stop_all();
            self.timers.set(Timer::Close, now + linger);
        } else if self.sending.closing && self.sending.is_fin_acked() {
            self.timers.set(Timer::Close, now + self.config.fin_timeout);
        }
    }

    /// The peer, whose FIN is awaited, still sends, if only what has arrived before: the wait begins anew.
    #[inline]
    pub(super) fn extend_wait_for_fin(&mut self, now: Instant) {
        if self.timers.is_set(Timer::Close) && !self.is_finished() {
            self.timers.set(Timer::Close, now + self.config.fin_timeout);
        }
    }

    /// Lingering is over, or the wait for the peer's FIN; that the stream was not ended is an error to those only who
    /// would have read it.
    pub(super) fn on_close_timeout(&mut self) {
        let cut_off = !self.is_finished() && !self.receiving.discarding;
        self.end(cut_off.then_some(ConnectionError::Unfinished));
    }

    /// A RESET that carries one of our ids.
    pub(super) fn on_reset(&mut self, packet: &Packet<'_>) {
        let ack = packet.header.ack;
        // The upper end is one more than for other packets: a RESET that answers our STATE echoes the next number.
        let harmless = self.has_nothing_to_lose();
        if !harmless && !self.is_ack_plausible(ack, 1) {
            self.counters.rare().discarded_resets += 1;
            return;
        }
        let error = match self.state {
            State::SynSent { .. } => Some(ConnectionError::Refused),
            _ if harmless || self.is_finished() || self.answers_fin(ack) => None,
            _ => Some(ConnectionError::Reset),
        };
        self.end(error);
    }

    /// All that either side wrote has arrived, or is not wanted; our FIN alone is not acknowledged. utp-rs forgets a
    /// connection at that point, and answers the FIN with RESETs that acknowledge nothing: they can do no harm.
    fn has_nothing_to_lose(&self) -> bool {
        self.is_fin_alone() && (self.receiving.is_finished() || self.receiving.discarding)
    }

    /// The peer has ended its stream and has all of ours: only that it has is missing.
    pub(super) fn awaits_last_ack(&self) -> bool {
        self.is_fin_alone() && self.receiving.is_finished()
    }

    /// Our FIN is the one packet that is not acknowledged.
    fn is_fin_alone(&self) -> bool {
        matches!(self.sending.fin, LocalFin::Sent(_)) && self.sending.outbox.len() == 1
    }

    /// libtorrent answers packets to a connection that it has finished with RESETs: one for our FIN is a normal end.
    fn answers_fin(&self, ack: Seq16) -> bool {
        matches!(self.sending.fin, LocalFin::Sent(fin) | LocalFin::Acked(fin) if fin == ack)
    }

    /// The number of the peer's FIN, once everything before it has been delivered.
    #[must_use]
    pub fn peer_fin(&self) -> Option<Seq16> {
        match self.receiving.fin {
            RemoteFin::Reached(seq) => Some(seq),
            _ => None,
        }
    }
}
