//! One uTP connection.
//!
//! Each room of the protocol has a file of its own: [`handshake`] opens, [`receive`] judges what arrives and puts it in
//! order, [`acknowledge`] reads what the peer has and [`loss`] infers what it lacks, [`send`] decides what may leave and
//! [`pacing`] when, [`assemble`] writes it, [`timeout`] acts when time has passed, [`close`] ends.

mod absence;
mod acknowledge;
mod assemble;
mod close;
mod handshake;
mod inspect;
mod loss;
mod pacing;
mod parts;
mod peer;
mod rack;
mod receive;
mod send;
mod stream;
mod timeout;
mod tuning;
mod update;

use crate::config::Config;
use crate::delay::Delays;
use crate::event::{ConnectionError, Event, Pending};
use crate::mtu::PathMtu;
use crate::reorder::Reorder;
use crate::statistics::{Counters, Suspicions};
use crate::timers::{Timer, Timers};
use acknowledge::Scratch;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use cede_cc::instruments::{RttConfig, RttEstimator, TimerGuard};
use cede_cc::{Allowance, Controller, Path};
use cede_units::{Instant, Seq16};
use cede_wire::utp::{DecodeError, Kind, Packet};
use cede_wire::{Payload, Transmit};
use loss::LossDetection;
use receive::Receiving;
use send::Sending;

/// One uTP connection, as a value that is handed packets and the time, and asked for packets, events and its next
/// deadline.
///
/// # Drive rule
/// After any call that changes something ([`handle`](Self::handle), [`handle_timeout`](Self::handle_timeout),
/// [`write`](Self::write), [`read`](Self::read), [`close`](Self::close) and their kin): call
/// [`poll_transmit`](Self::poll_transmit) until it gives `None`, drain [`poll_event`](Self::poll_event), then ask
/// [`poll_timeout`](Self::poll_timeout) and call `handle_timeout` once that instant has come. Acknowledgements leave
/// with `poll_transmit`, so packets handed in as one batch are answered by one.
///
/// # Time
/// `now` is the host's own clock. It must not run backwards from call to call; it need not agree with the peer's clock
/// in value or, beyond what the protocol's delay measurement can bear, in rate. Nothing happens by itself: a connection
/// that is never called does nothing, and calls that come late act late.
///
/// # Limits
/// The send buffer holds [`Config::send_buffer_bytes`]; what has arrived in order, and again what has arrived out of
/// order, [`Config::receive_buffer_bytes`]. Nothing else grows with what a peer sends. An end that idles costs
/// 1.5 KiB of heap at most, its `ledbat` controller and its part of an [`Endpoint`](crate::Endpoint)'s books included:
/// the rings of packets grow while there are packets, and are given back once nothing has been outstanding for a
/// retransmission timeout, or sent for [`Config::keepalive`]; controllers' histories grow with what they hold.
pub struct Connection {
    config: Arc<Config>,
    controller: Box<dyn Controller>,
    timer_guard: TimerGuard,
    allowance: Allowance,
    state: State,
    ids: Ids,
    /// The sequence number of packet number 0, the first after the handshake.
    first_seq: Seq16,
    sending: Sending,
    receiving: Receiving,
    loss: LossDetection,
    /// Made with the first packet where it is wanted, and given back with the rings.
    rack: Option<Box<rack::Rack>>,
    delays: Delays,
    rtt: RttEstimator,
    mtu: PathMtu,
    peer: peer::Peer,
    timers: Timers,
    events: Pending,
    counters: Counters,
    suspicions: Option<Box<Suspicions>>,
    /// Made when it is needed, and given back with the rings.
    scratch: Option<Box<Scratch>>,
}

/// How far the connection has come. What each direction still has to do stands in `Sending` and `Receiving`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The SYN has left `transmissions` times, or is due to.
    SynSent {
        transmissions: u8,
        sent_at: Instant,
        due: bool,
    },
    /// The SYN was answered; the answer is repeated while nothing shows that it arrived.
    SynReceived {
        repeats: u8,
        /// Before this nothing but the answer leaves; `None` once something has.
        held_until: Option<Instant>,
    },
    Established {
        initiator: bool,
    },
    /// Over: in good order or not, with a RESET yet to leave or not.
    Closed {
        error: Option<ConnectionError>,
        reset_due: bool,
    },
}

/// The two numbers that packets of a connection carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ids {
    /// In packets that we receive.
    receive: u16,
    /// In packets that we send, SYNs aside.
    send: u16,
}

impl Connection {
    fn new(
        config: Arc<Config>,
        controller: Box<dyn Controller>,
        ids: Ids,
        state: State,
        first_seq: Seq16,
    ) -> Self {
        let allowance = controller.allowance();
        Self {
            allowance,
            state,
            ids,
            first_seq,
            sending: Sending::new(&config, &allowance),
            receiving: Receiving::new(&config),
            loss: LossDetection::new(),
            rack: None,
            delays: Delays::new(config.timestamp_resolution),
            rtt: RttEstimator::new(rtt_config(&config)).with_rule(config.rto_rule),
            mtu: PathMtu::new(config.mtu),
            peer: peer::Peer::default(),
            timers: Timers::new(),
            events: Pending::default(),
            counters: Counters::default(),
            suspicions: None,
            scratch: None,
            config,
            controller,
            timer_guard: TimerGuard::default(),
        }
    }

    /// Takes one datagram: `head` is what the header and its extensions are read from, `payload` what follows them.
    /// Worlds that move whole datagrams pass them as `head` and leave `payload` empty: octets behind the extensions
    /// are then copied out; they do not count where a payload is given. A `head` that ends within its extensions goes on
    /// in `payload`.
    ///
    /// Datagrams that are no uTP, or belong to another connection, change nothing but a counter.
    pub fn handle(&mut self, now: Instant, head: &[u8], payload: Payload) {
        match Packet::decode(head) {
            Ok(packet) => self.handle_packet(now, &packet, payload),
            Err(error) => match WholeDatagram::of(error, head, &payload) {
                Some(whole) => self.handle(now, whole.octets(), Payload::Empty),
                None => self.counters.rare().discarded_other += 1,
            },
        }
    }

    /// As [`Connection::handle`], for who has decoded the packet already.
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet<'_>, payload: Payload) {
        self.handle_stamped(now, now, packet, payload);
    }

    /// As [`Connection::handle_packet`], for a host that knows when the packet came, which may be earlier than `now`, the
    /// time at which it gets round to it: RTT and one-way delays are measured by `arrived_at`.
    pub fn handle_stamped(
        &mut self,
        now: Instant,
        arrived_at: Instant,
        packet: &Packet<'_>,
        payload: Payload,
    ) {
        self.delays.arrived_at = arrived_at.min(now);
        self.counters.packets_received += 1;
        let id = packet.header.connection_id;
        let ours = match packet.header.kind {
            Kind::Syn => id.wrapping_add(1) == self.ids.receive,
            Kind::Reset => id == self.ids.receive || id == self.ids.send,
            _ => id == self.ids.receive,
        };
        if !ours {
            self.counters.rare().discarded_other += 1;
            return;
        }
        self.heard_of_peer();
        match (self.state, packet.header.kind) {
            (State::Closed { .. }, _) => self.counters.rare().discarded_other += 1,
            (_, Kind::Reset) => self.on_reset(packet),
            (_, Kind::Syn) => self.on_repeated_syn(packet),
            (State::SynSent { .. }, _) => self.on_first_answer(now, packet, payload),
            _ => self.on_packet(now, packet, payload),
        }
    }

    /// Takes the next packet to send; `None` where nothing may leave now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        match self.state {
            State::Established { .. } => self.transmit_any(now),
            State::SynSent { due, .. } => due.then(|| self.transmit_syn(now)),
            State::SynReceived { .. } => self.transmit_state(now).or_else(|| self.transmit_early(now)),
            State::Closed { .. } => self.transmit_reset(now),
        }
    }

    /// When [`Connection::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let earliest = self.timers.earliest();
        (earliest != Instant::NEVER).then_some(earliest)
    }

    /// When, and what for.
    #[must_use]
    pub fn poll_timeout_reason(&self) -> Option<(Instant, Timer)> {
        self.timers.earliest_with_reason()
    }

    /// True where [`Connection::poll_event`] has something to give.
    #[must_use]
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Takes the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.events.is_empty() {
            return None;
        }
        self.events.take(self.error())
    }

    /// The sequence number of the next new packet.
    fn next_seq(&self) -> Seq16 {
        self.seq_of(self.sending.outbox.next())
    }

    /// The sequence number of a packet number.
    fn seq_of(&self, number: u64) -> Seq16 {
        self.first_seq.add(number as u16)
    }

    /// Caches what the controller allows and when it wants to be called.
    fn apply(&mut self, allowance: Allowance) {
        self.allowance = allowance;
        self.pace();
        self.refresh_controller_timer();
    }

    /// Hands the connection to another controller, which begins where it sees fit: most do with the window that the former
    /// one had, some with one of their own.
    pub fn set_controller(&mut self, make: impl FnOnce(&Path) -> Box<dyn Controller>) {
        let cwnd_bytes = u32::try_from(self.allowance.cwnd_bytes).unwrap_or(u32::MAX);
        let mss_bytes = self.mtu.mss_bytes();
        self.controller = make(&Path { mss_bytes, initial_cwnd_bytes: cwnd_bytes, ..self.config.path() });
        let allowance = self.controller.allowance();
        self.apply(allowance);
    }

    fn refresh_controller_timer(&mut self) {
        self.timers.set(Timer::Controller, self.controller.timer().unwrap_or(Instant::NEVER));
    }

    /// Ends the connection, with an error or in good order. What has arrived stays readable.
    fn end(&mut self, error: Option<ConnectionError>) {
        if matches!(self.state, State::Closed { .. }) {
            return;
        }
        let finished = self.is_finished();
        self.state = State::Closed { error, reset_due: false };
        self.timers.stop_all();
        self.sending.forget();
        self.receiving.reorder = Reorder::default();
        match error {
            Some(_) => self.events.failed(),
            // The event of the good end came when the second direction ended.
            None if !finished => self.events.closed(),
            None => {}
        }
    }
}

/// Head and payload as one, where extensions reach from one into the other: those of a path-MTU probe do, and the mask of
/// a STATE that is longer than a head.
#[expect(
    clippy::large_enum_variant,
    reason = "it lives for one call, and short ones shall cost no allocation"
)]
pub(crate) enum WholeDatagram {
    Short([u8; SHORT_DATAGRAM_BYTES], usize),
    Long(Vec<u8>),
}

/// A STATE with the longest mask is shorter.
const SHORT_DATAGRAM_BYTES: usize = 548;

impl WholeDatagram {
    /// `None` where `error` means that the two as one would be no better.
    pub fn of(error: DecodeError, head: &[u8], payload: &Payload) -> Option<Self> {
        let cut = matches!(error, DecodeError::TruncatedExtensionHeader | DecodeError::ExtensionOverrun);
        if !cut || payload.is_empty() {
            return None;
        }
        let len = head.len() + payload.len() as usize;
        let mut whole = match len {
            ..=SHORT_DATAGRAM_BYTES => Self::Short([0; SHORT_DATAGRAM_BYTES], len),
            _ => Self::Long(vec![0; len]),
        };
        let (front, back) = whole.octets_mut().split_at_mut(head.len());
        front.copy_from_slice(head);
        payload.copy_to(back);
        Some(whole)
    }

    fn octets_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Short(octets, len) => &mut octets[..*len],
            Self::Long(octets) => octets,
        }
    }

    pub fn octets(&self) -> &[u8] {
        match self {
            Self::Short(octets, len) => &octets[..*len],
            Self::Long(octets) => octets,
        }
    }
}

/// The margin stands where RFC 6298 has the clock's granularity, which is nothing beside it.
fn rtt_config(config: &Config) -> RttConfig {
    RttConfig {
        initial_rto: config.initial_rto,
        min_rto: config.min_rto,
        max_rto: config.max_rto,
        granularity: config.rto_margin,
    }
}
