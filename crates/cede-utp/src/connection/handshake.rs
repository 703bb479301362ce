//! Opening a connection.
//!
//! Source: BEP 29, "connection setup", as every implementation reads it: the initiator's SYN carries its receive id R,
//! all else that it sends R + 1, and all that the acceptor sends R. The answer is a STATE, which takes no sequence
//! number (the diagram of BEP 29 says otherwise; nobody follows it).
//!
//! Where this goes beyond BEP 29, so that no side waits for a packet that was lost:
//! * a repeated SYN gets the same answer again (libutp stays silent, libtorrent opens a second connection);
//! * the initiator acknowledges the answer even when it has nothing to send, so that the acceptor may speak first;
//! * the acceptor repeats its answer twice before it gives up, and the initiator acknowledges such a repetition;
//! * the acceptor may send before the initiator has: librqbit and utp-rs say nothing after the answer until their
//!   application does, and libutp's acceptor waits for them for ever. libtorrent, whose initiator speaks at once, drops the
//!   octets of DATA that overtake the answer, and acknowledges them: so they wait a quarter of a second for the
//!   initiator's first word, and then leave behind a second answer.
//!
//! Until the initiator has shown that it receives, which takes the number of our answer, the address may be forged. It is
//! then sent the 20 octets of the answer, four times at most unasked, and one packet of 548 octets at most, three times:
//! 1724 octets. How many such connections there are at a time, the endpoint bounds
//! ([`Limits::early`](crate::Limits::early)).
//!
//! **What it leaves out.** Data on the answer itself: libtorrent would take its number for delivered, and drop it.
//!
//! **How it was validated.** `tests/checks.rs`, check 7, and the scripts beside it; `tests/early.rs`.

use super::{Connection, Ids, State};
use crate::config::Config;
use crate::event::ConnectionError;
use crate::timers::Timer;
use alloc::boxed::Box;
use alloc::sync::Arc;
use cede_cc::Controller;
use cede_units::{Duration, Instant, Seq16, Stream};
use cede_wire::utp::{Header, Kind, Packet};
use cede_wire::{Payload, Transmit};

/// Times that the acceptor repeats its answer, `Config::syn_rto` apart.
const MAX_ANSWER_REPEATS: u8 = 2;
/// What the acceptor has to say waits this long for the initiator to speak: most do within a round trip.
const EARLY_WAIT: Duration = Duration::from_millis(250);

impl Connection {
    /// Opens a connection: the SYN leaves with the next [`Connection::poll_transmit`].
    ///
    /// `random` gives the connection id and the first sequence number, where `config` does not. Connections that are
    /// made from clones of one `Arc` share their configuration's memory.
    #[must_use]
    pub fn connect(
        now: Instant,
        config: impl Into<Arc<Config>>,
        controller: Box<dyn Controller>,
        random: &mut Stream,
    ) -> Self {
        let config = Config::checked(config.into());
        let receive = config.connection_id.unwrap_or_else(|| random.next_u16());
        Self::connect_as(now, receive, config, controller, random)
    }

    /// As [`Connection::connect`], with a receive id that the endpoint has chosen and a configuration in good order.
    pub(crate) fn connect_as(
        now: Instant,
        receive: u16,
        config: Arc<Config>,
        controller: Box<dyn Controller>,
        random: &mut Stream,
    ) -> Self {
        let syn_seq = config.initial_seq.unwrap_or_else(|| Seq16(random.next_u16()));
        let ids = Ids { receive, send: receive.wrapping_add(1) };
        let state = State::SynSent { transmissions: 0, sent_at: now, due: true };
        Self::new(config, controller, ids, state, syn_seq.add(1))
    }

    /// Takes up a connection that a peer's SYN opens; `None` where `syn` is none. The answer leaves with the next
    /// [`Connection::poll_transmit`].
    #[must_use]
    pub fn accept(
        now: Instant,
        syn: &Packet<'_>,
        config: impl Into<Arc<Config>>,
        controller: Box<dyn Controller>,
        random: &mut Stream,
    ) -> Option<Self> {
        if syn.header.kind != Kind::Syn {
            return None;
        }
        let config = Config::checked(config.into());
        let send = syn.header.connection_id;
        let first_seq = config.initial_seq.unwrap_or_else(|| Seq16(random.next_u16()));
        let ids = Ids { receive: send.wrapping_add(1), send };
        let state = State::SynReceived { repeats: 0, held_until: Some(now + EARLY_WAIT) };
        let mut connection = Self::new(config, controller, ids, state, first_seq);
        connection.receiving.ack_nr = syn.header.seq;
        connection.receiving.schedule_ack();
        connection.note_peer_limits(syn);
        connection.take_syn_delay(now, &syn.header);
        connection.timers.set(Timer::Handshake, now + connection.config.handshake_timeout);
        connection.timers.set(Timer::Retransmission, now + connection.config.syn_rto);
        connection.counters.packets_received = 1;
        Some(connection)
    }

    /// The SYN's own number, or for the acceptor the number before its first packet.
    fn seq_before_first(&self) -> Seq16 {
        self.first_seq.sub(1)
    }

    /// Writes the SYN, the one packet that carries our receive id.
    pub(super) fn transmit_syn(&mut self, now: Instant) -> Transmit {
        let State::SynSent { transmissions, .. } = self.state else { return Transmit::default() };
        self.state = State::SynSent { transmissions: transmissions + 1, sent_at: now, due: false };
        let doubled = self.config.syn_rto * (1 << transmissions.min(16));
        self.set_retransmission(now, doubled.min(self.config.max_rto));
        let header = Header {
            connection_id: self.ids.receive,
            ack: Seq16(0),
            ..self.header(now, Kind::Syn, self.seq_before_first())
        };
        let encoded = self.encode_with_limits(&header);
        self.send_head(now, encoded)
    }

    /// The SYN's timeout.
    pub(super) fn on_syn_timeout(&mut self) {
        let State::SynSent { transmissions, sent_at, .. } = self.state else { return };
        self.counters.rare().timeouts += 1;
        if transmissions > self.config.max_syn_retransmissions {
            self.end(Some(ConnectionError::TimedOut));
        } else {
            self.counters.rare().retransmissions += 1;
            self.state = State::SynSent { transmissions, sent_at, due: true };
        }
    }

    /// Any packet but SYN and RESET while our SYN is out: an answer if it acknowledges the SYN.
    pub(super) fn on_first_answer(&mut self, now: Instant, packet: &Packet<'_>, payload: Payload) {
        let State::SynSent { transmissions, sent_at, .. } = self.state else { return };
        if transmissions == 0 || packet.header.ack != self.seq_before_first() {
            self.counters.rare().discarded_ack += 1;
            return;
        }
        if transmissions == 1 {
            self.rtt.update(self.delays.arrived_at.since(sent_at));
        }
        // Also where DATA or FIN comes instead of a STATE (libtorrent joins them): that number is consumed below.
        self.receiving.ack_nr = packet.header.seq.sub(1);
        self.note_peer_limits(packet);
        self.search_larger(now);
        self.establish(now, true);
        self.receiving.schedule_ack();
        self.on_packet(now, packet, payload);
    }

    /// A SYN for a connection that exists: the answer was lost, or is still under way.
    pub(super) fn on_repeated_syn(&mut self, packet: &Packet<'_>) {
        match self.state {
            State::SynReceived { .. } if packet.header.seq == self.receiving.ack_nr => {
                self.receiving.schedule_ack();
            }
            State::Established { initiator: false } if packet.header.seq == self.receiving.ack_nr => {
                // Late, and answered by whatever has been sent since.
                self.counters.rare().duplicates_received += 1;
            }
            _ => {
                self.counters.rare().discarded_other += 1;
                self.suspect(|count| count.stray_syns += 1);
            }
        }
    }

    /// The answer to the SYN is not repeated unasked: it may go to somebody who never asked at all.
    pub(crate) fn answer_once(&mut self) {
        self.timers.stop(Timer::Retransmission);
    }

    /// The acceptor's answer has had no reply, nor what was sent behind it.
    pub(super) fn on_answer_timeout(&mut self, now: Instant) {
        let State::SynReceived { repeats, held_until } = self.state else { return };
        if repeats >= MAX_ANSWER_REPEATS {
            return;
        }
        if held_until.is_some() && self.has_early() {
            // What waited leaves now, and sets the timer.
            return self.timers.set(Timer::Retransmission, now + self.config.syn_rto);
        }
        self.receiving.schedule_ack();
        self.state = State::SynReceived { repeats: repeats + 1, held_until };
        if !self.sending.outbox.is_empty() {
            // It sets the timer as it leaves again.
            self.counters.rare().timeouts += 1;
            self.rtt.back_off();
            self.forget_all();
        } else if repeats + 1 < MAX_ANSWER_REPEATS {
            self.timers.set(Timer::Retransmission, now + self.config.syn_rto);
        }
    }

    /// The acceptor has something to say: does it have to wait? When the wait is over, the answer leaves once more first.
    pub(super) fn holds_early(&mut self, now: Instant) -> bool {
        let State::SynReceived { repeats, held_until: Some(until) } = self.state else { return false };
        if now < until {
            self.timers.set(Timer::Retransmission, until);
        } else {
            self.receiving.schedule_ack();
            self.state = State::SynReceived { repeats, held_until: None };
        }
        true
    }

    /// While the acceptor waits, only a packet that acknowledges its answer, or what it sent behind it, is one of the
    /// peer's: it alone knows the number. Afterwards any is.
    pub(super) fn shows_answer_arrived(&self, header: &Header) -> bool {
        let beyond = header.ack.distance_from(self.seq_before_first());
        !matches!(self.state, State::SynReceived { .. }) || u64::from(beyond) <= self.sending.outbox.next()
    }

    /// The peer has the acceptor's answer.
    pub(super) fn on_answer_confirmed(&mut self, now: Instant) {
        if matches!(self.state, State::SynReceived { .. }) {
            self.establish(now, false);
        }
    }

    /// The initiator, still without news: an answer that is repeated wants to be acknowledged.
    pub(super) fn on_repeated_answer(&mut self, header: &Header) {
        let unused = self.sending.outbox.next() == 0 && self.counters.bytes_delivered == 0;
        let initiator = matches!(self.state, State::Established { initiator: true });
        if initiator && unused && header.kind == Kind::State && header.ack == self.seq_before_first() {
            self.receiving.schedule_ack();
        }
    }

    fn establish(&mut self, now: Instant, initiator: bool) {
        self.state = State::Established { initiator };
        self.timers.stop(Timer::Handshake);
        self.timers.stop(Timer::Retransmission);
        if self.sending.in_flight_packets > 0 {
            self.set_retransmission(now, self.rtt.rto());
        }
        self.refresh_controller_timer();
        if let Some(at) = self.keepalive_after(now) {
            self.timers.set(Timer::Keepalive, at);
        }
        self.events.connected();
    }
}
