//! What may leave, and when.
//!
//! Source: BEP 29 ("a packet is sent if in flight + packet <= min(cwnd, peer's window)"), libutp's send buffer and Nagle
//! rules, RFC 6675 section 5 (the first lost packet leaves whatever the window says), RFC 7661 for the question who
//! limits the flow.
//!
//! Where this goes beyond libutp: a window below a packet sends one packet every `packet / cwnd` round trips; a peer
//! whose window is open but smaller than a packet gets a packet cut to it once nothing is under way (libutp waits for
//! ever), at most five a second where the window has been larger; the oldest lost packet may leave whatever the peer's window says, since it was within an earlier one.
//!
//! **What it leaves out.** Fairness between connections, which is the endpoint's.
//! **How it was validated.** `tests/sending.rs`, and check 10 of `tests/checks.rs`.

use super::Connection;
use super::pacing::Pacing;
use crate::chunks::Chunks;
use crate::config::{Config, SubPacketWindow};
use crate::outbox::{Fate, Outbox, Slot};
use crate::timers::Timer;
use cede_cc::instruments::{DeliveryRate, DeliverySample};
use cede_cc::{Allowance, PacketFact, Sent};
use cede_units::{Duration, Instant, Rate, Seq16};
use cede_wire::utp::{HEADER_BYTES, Kind};
use cede_wire::{Ecn, Transmit};

/// The pause between packets that a window too small to be useful cuts (RFC 1122 section 4.2.3.4: 0.1 to 1 s).
const SILLY_WINDOW_PAUSE: Duration = Duration::from_millis(200);

/// Payload of the packet that leaves before the initiator has shown that it receives: together with the header, the
/// smallest datagram that every host takes (RFC 791: 576 octets) less 28 of IP and UDP.
const EARLY_PAYLOAD_BYTES: u32 = 548 - HEADER_BYTES as u32;

/// The sending half.
#[derive(Debug)]
pub(super) struct Sending {
    pub outbox: Outbox,
    /// Written and not yet cut into packets.
    pub queue: Chunks,
    pub fin: LocalFin,
    pub in_flight_bytes: u64,
    /// What was under way when everything had left that might: what the window was used for.
    flight_bytes: u32,
    pub in_flight_packets: u32,
    /// Payload in the outbox that is not acknowledged.
    pub unacked_bytes: u64,
    pub peer_window_bytes: u32,
    /// Packets taken for lost that have not left again.
    pub lost_packets: u32,
    /// No lost packet has a smaller number.
    lost_from: u64,
    pub resends_beyond_window: u32,
    /// A write was refused, or cut short.
    pub refused: bool,
    /// The next packet may ignore a window of zero.
    pub zero_window_credit: bool,
    /// The one packet under way probes a window of zero.
    pub probing_zero_window: bool,
    pub idle_timeouts: u32,
    /// The controller is to hear of the next of them, once there is something to send.
    pub idle_due: Instant,
    /// The application waits for the peer's FIN, but not for ever.
    pub closing: bool,
    /// Why, in the peer's terms.
    pub close_reason: Option<u16>,
    /// Nothing has left for so long that a STATE should.
    pub keepalive_due: bool,
    /// [`Sending::closing`] is news.
    pub close_due: bool,
    pub last_sent_at: Instant,
    last_data_sent_at: Instant,
    pub pacing: Pacing,
    limit: Limit,
    pub delivery: DeliveryRate,
    /// What the latest acknowledgement says of it.
    latest_delivery: (u64, Duration),
    /// The largest window that the peer has advertised.
    pub peer_window_max_bytes: u32,
    /// Probes of a window of zero in a row.
    pub zero_window_probes: u8,
    /// The window has been too small since then.
    pub zero_window_since: Instant,
}

/// How our stream ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LocalFin {
    None,
    /// It follows the data that are queued.
    Queued,
    Sent(Seq16),
    Acked(Seq16),
}

/// What kept the last packet from leaving.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Limit {
    /// There was nothing to send.
    Application,
    /// The congestion window or the controller's pacing rate.
    Controller,
    /// Our own pacing of a window.
    Pacing,
    /// The peer's window, or the number of packets it can tell apart.
    Peer,
}

impl Sending {
    pub fn new(config: &Config, allowance: &Allowance) -> Self {
        Self {
            outbox: Outbox::new(),
            queue: Chunks::default(),
            fin: LocalFin::None,
            in_flight_bytes: 0,
            flight_bytes: 0,
            in_flight_packets: 0,
            unacked_bytes: 0,
            peer_window_bytes: config.initial_peer_window_bytes,
            lost_packets: 0,
            lost_from: 0,
            resends_beyond_window: 0,
            refused: false,
            zero_window_credit: false,
            probing_zero_window: false,
            idle_timeouts: 0,
            idle_due: Instant::NEVER,
            closing: false,
            close_reason: None,
            keepalive_due: false,
            close_due: false,
            last_sent_at: Instant::ZERO,
            last_data_sent_at: Instant::ZERO,
            pacing: Pacing::new(allowance, config),
            limit: Limit::Application,
            delivery: DeliveryRate::new(),
            latest_delivery: (0, Duration::ZERO),
            peer_window_max_bytes: 0,
            zero_window_probes: 0,
            zero_window_since: Instant::ZERO,
        }
    }

    /// What was under way before an arriving packet. Of several that arrive together, the later ones find less, since
    /// nothing could leave in between: what the first found counts for all.
    pub fn flight_bytes(&self) -> u64 {
        self.in_flight_bytes.max(self.flight_bytes.into())
    }

    /// Something other than the controller limited what was under way.
    pub fn is_app_limited(&self) -> bool {
        !matches!(self.limit, Limit::Controller | Limit::Pacing)
    }

    /// Everything has left that might for now. What our own pacing holds back for a moment counts as under way: the
    /// controller has nothing to do with that.
    fn note_flight(&mut self, cwnd_bytes: u64) {
        let flight = match self.limit {
            Limit::Pacing => self.in_flight_bytes.max(cwnd_bytes),
            _ => self.in_flight_bytes,
        };
        // Windows are bounded far below this.
        self.flight_bytes = u32::try_from(flight).unwrap_or(u32::MAX);
    }

    /// Nothing is outstanding, nothing waits.
    pub fn is_idle(&self) -> bool {
        self.outbox.is_empty() && self.queue.is_empty()
    }

    pub fn is_ended(&self) -> bool {
        self.fin != LocalFin::None
    }

    pub fn is_fin_acked(&self) -> bool {
        matches!(self.fin, LocalFin::Acked(_))
    }

    /// Everything sent is acknowledged; true where the FIN was among it.
    pub fn fin_acked(&mut self) -> bool {
        let LocalFin::Sent(seq) = self.fin else { return false };
        self.fin = LocalFin::Acked(seq);
        true
    }

    /// An outstanding packet is acknowledged.
    #[inline]
    pub fn leave_flight(&mut self, slot: &Slot) {
        self.in_flight_packets -= 1;
        self.in_flight_bytes -= u64::from(slot.payload_bytes);
    }

    /// An outstanding packet is taken for lost.
    pub fn enter_lost(&mut self, number: u64, bytes: u32) {
        self.in_flight_packets -= 1;
        self.in_flight_bytes -= u64::from(bytes);
        self.lost_packets += 1;
        self.lost_from = self.lost_from.min(number);
    }

    /// The oldest packet that waits to leave again.
    fn oldest_lost(&mut self) -> Option<u64> {
        if self.lost_packets == 0 {
            return None;
        }
        let from = self.lost_from.max(self.outbox.una());
        let number = (from..self.outbox.next())
            .find(|&number| self.outbox.get(number).is_some_and(|slot| slot.fate == Fate::Lost))?;
        self.lost_from = number;
        Some(number)
    }

    /// The newest packet that was acknowledged tells the rate of delivery, unless in less time than a round trip takes.
    #[inline]
    pub fn note_delivery(&mut self, now: Instant, newest: Option<&PacketFact>, least: Duration) {
        let Some(newest) = newest else { return };
        let sample = DeliverySample::of(now, self.delivery.delivered_bytes(), newest);
        if sample.interval >= least {
            self.latest_delivery = (sample.delivered_bytes, sample.interval);
        }
    }

    pub fn delivery_rate(&self) -> Rate {
        Rate::from_bytes_over(self.latest_delivery.0, self.latest_delivery.1)
    }

    /// The same without rounding, zero before the first sample.
    pub fn delivery_bits_per_sec(&self) -> f64 {
        let (bytes, span) = self.latest_delivery;
        if span.is_zero() { 0.0 } else { bytes as f64 * 8e9 / span.as_nanos() as f64 }
    }

    /// Forgets everything that was to be sent.
    pub fn forget(&mut self) {
        self.outbox.clear();
        self.queue.clear();
        (self.in_flight_bytes, self.in_flight_packets) = (0, 0);
        (self.unacked_bytes, self.lost_packets) = (0, 0);
    }
}

impl Connection {
    /// The application has nothing to send. Where a full packet would have been allowed, it is what limits the flow,
    /// and what is under way gives no measure of the path.
    fn limited_by_application(&mut self) {
        let sending = &mut self.sending;
        if sending.in_flight_bytes + u64::from(self.mtu.payload_bytes()) > self.allowance.cwnd_bytes {
            sending.limit = Limit::Controller;
        } else {
            sending.limit = Limit::Application;
            sending.delivery.on_app_limited(sending.in_flight_bytes);
        }
    }

    /// The next packet of whatever kind; what has a number goes first. Each is moved once: it is large.
    #[inline]
    pub(super) fn transmit_any(&mut self, now: Instant) -> Option<Transmit> {
        let packet = self.next_packet(now);
        if packet.is_some() {
            return packet;
        }
        self.sending.note_flight(self.allowance.cwnd_bytes);
        if self.owes_state() {
            return self.transmit_state(now);
        }
        if self.sending.close_due || self.sending.keepalive_due {
            return self.transmit_rarity(now);
        }
        None
    }

    /// The next DATA or FIN, old ones first.
    #[inline]
    fn next_packet(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(part) = self.transmit_next_part(now) {
            return Some(part);
        }
        let is_tail_probe = self.is_tail_probe_due() && self.begin_tail_probe();
        if !is_tail_probe && let Some(number) = self.sending.oldest_lost() {
            return self.transmit_lost(now, number);
        }
        match self.transmit_new(now, is_tail_probe) {
            None if is_tail_probe => self.transmit_last_again(now),
            packet => packet,
        }
    }

    /// Sends a lost packet again, as the window allows.
    fn transmit_lost(&mut self, now: Instant, number: u64) -> Option<Transmit> {
        let slot = self.sending.outbox.get_mut(number)?;
        slot.tail_probe = false;
        let bytes = slot.payload_bytes;
        if self.sending.resends_beyond_window > 0 {
            self.sending.resends_beyond_window -= 1;
        } else {
            let is_oldest = number == self.sending.outbox.una();
            let zero_window = self.sending.peer_window_bytes == 0 && self.loss.timeouts == 0;
            if bytes > 0 && !self.may_leave(now, bytes, is_oldest && !zero_window) {
                return None;
            }
        }
        self.sending.lost_packets -= 1;
        self.counters.rare().retransmissions += 1;
        self.counters.rare().retransmitted_bytes += u64::from(bytes);
        self.transmit_numbered(now, number)
    }

    /// Cuts and sends the next new packet, or the FIN behind the last; as a tail probe whatever the congestion window says.
    #[inline]
    fn transmit_new(&mut self, now: Instant, is_tail_probe: bool) -> Option<Transmit> {
        if self.sending.queue.is_empty() {
            self.limited_by_application();
            return self.transmit_fin(now);
        }
        if self.sending.idle_due <= now {
            self.tell_idle_belatedly(now);
        }
        let bytes = self.next_payload_bytes()?;
        if self.sending.outbox.len() >= self.max_outstanding_packets() {
            self.sending.limit = Limit::Peer;
            return None;
        }
        let leaves = match is_tail_probe {
            true => self.has_peer_room(bytes),
            false => !self.is_silly(now, bytes) && self.may_leave(now, bytes, false),
        };
        if !leaves {
            return None;
        }
        let number = self.cut(bytes);
        self.transmit_numbered(now, number)
    }

    /// Has the acceptor something to send that has not left yet?
    pub(super) fn has_early(&self) -> bool {
        let sending = &self.sending;
        sending.outbox.is_empty() && (sending.queue.len_bytes() > 0 || sending.fin == LocalFin::Queued)
    }

    /// The acceptor's first packet, or its repetition, while nothing shows that the initiator is there.
    pub(super) fn transmit_early(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(number) = self.sending.oldest_lost() {
            return self.transmit_lost(now, number);
        }
        if !self.sending.outbox.is_empty() {
            return None;
        }
        let most = EARLY_PAYLOAD_BYTES.min(self.mtu.payload_bytes());
        let bytes = self.sending.queue.len_bytes().min(u64::from(most)) as u32;
        let leaves = match bytes {
            0 => self.sending.fin == LocalFin::Queued,
            _ => self.may_leave(now, bytes, false),
        };
        if !leaves {
            return None;
        }
        if self.holds_early(now) {
            return self.transmit_state(now);
        }
        // From now on it is that of this packet.
        self.timers.stop(Timer::Retransmission);
        match bytes {
            0 => self.transmit_fin(now),
            _ => {
                let number = self.cut(bytes);
                self.transmit_numbered(now, number)
            }
        }
    }

    /// Cuts the next new packet, and returns its number.
    #[inline]
    fn cut(&mut self, bytes: u32) -> u64 {
        let payload = self.sending.queue.take(bytes);
        let payload_bytes = payload.len();
        let number = self.sending.outbox.next();
        self.sending.unacked_bytes += u64::from(payload_bytes);
        let probe = self.begin_mtu_probe(number, payload_bytes);
        self.sending.outbox.push(Slot { payload, payload_bytes, probe, ..Slot::default() });
        number
    }

    fn has_peer_room(&self, bytes: u32) -> bool {
        self.sending.in_flight_bytes + u64::from(bytes) <= u64::from(self.sending.peer_window_bytes)
    }

    /// Makes a new packet a path-MTU probe, where one is due and the packet is a full one.
    fn begin_mtu_probe(&mut self, number: u64, payload_bytes: u32) -> bool {
        let Some(probe_bytes) = self.mtu.probe_due(self.allowance.cwnd_bytes) else { return false };
        let full = payload_bytes + self.mask_bytes() as u32 >= self.mtu.payload_bytes();
        let probes = full && self.is_established();
        if probes {
            self.mtu.sent_probe(number, probe_bytes);
            self.counters.mtu_probes_sent += 1;
        }
        probes
    }

    /// The FIN goes as soon as all data have, whatever the windows say: it has no payload.
    fn transmit_fin(&mut self, now: Instant) -> Option<Transmit> {
        if self.sending.fin != LocalFin::Queued {
            return None;
        }
        let number = self.sending.outbox.next();
        self.sending.fin = LocalFin::Sent(self.next_seq());
        self.sending.outbox.push(Slot { fin: true, ..Slot::default() });
        self.transmit_numbered(now, number)
    }

    /// The payload of the next new packet, where there is enough of it for one to leave.
    fn next_payload_bytes(&mut self) -> Option<u32> {
        let queued = u32::try_from(self.sending.queue.len_bytes()).unwrap_or(u32::MAX);
        // Room for the mask of a selective acknowledgement comes out of the payload.
        let full = (self.mtu.payload_bytes().saturating_sub(self.mask_bytes() as u32)).max(1);
        let alone = self.sending.in_flight_packets == 0;
        if self.config.nagle && queued < full && !self.sending.outbox.is_empty() && !self.sending.is_ended() {
            self.limited_by_application();
            return None;
        }
        let peer_window = self.sending.peer_window_bytes;
        let cut = if alone && peer_window > 0 { peer_window } else { u32::MAX };
        Some(full.min(queued).min(cut))
    }

    /// The peer's window cuts the next packet to less than it could take, and has been twice as large: such packets leave
    /// seldom, or a peer could make us send its octets one by one (RFC 1122 section 4.2.3.4).
    #[inline]
    fn is_silly(&mut self, now: Instant, bytes: u32) -> bool {
        bytes == self.sending.peer_window_bytes && self.waits_for_useful_window(now, bytes)
    }

    #[cold]
    fn waits_for_useful_window(&mut self, now: Instant, bytes: u32) -> bool {
        let window = self.sending.peer_window_bytes;
        let cut = u64::from(bytes) < self.sending.queue.len_bytes();
        if !cut || bytes >= self.mtu.payload_bytes() || window >= self.sending.peer_window_max_bytes / 2 {
            return false;
        }
        let waits = !self.wait_until(now, self.sending.last_data_sent_at + SILLY_WINDOW_PAUSE);
        if waits {
            self.sending.limit = Limit::Peer;
            self.suspect(|count| count.silly_windows += 1);
        }
        waits
    }

    /// May a packet leave now? If not, notes what limits the flow and sets the timer that will ask again.
    fn may_leave(&mut self, now: Instant, bytes: u32, ignore_peer: bool) -> bool {
        if !self.peer_allows(now, bytes, ignore_peer) {
            self.sending.limit = Limit::Peer;
            return false;
        }
        if !self.window_allows(now, bytes) {
            self.sending.limit = Limit::Controller;
            return false;
        }
        let is_time = self.wait_until(now, self.sending.pacing.departure(now, bytes));
        if !is_time {
            let is_ours = self.allowance.pacing_rate.is_none();
            self.sending.limit = if is_ours { Limit::Pacing } else { Limit::Controller };
        }
        is_time
    }

    fn peer_allows(&mut self, now: Instant, bytes: u32, ignore_peer: bool) -> bool {
        if self.has_peer_room(bytes) || ignore_peer || self.sending.zero_window_credit {
            return true;
        }
        if self.sending.in_flight_packets == 0 && !self.timers.is_set(Timer::ZeroWindow) {
            self.await_window(now);
        }
        false
    }

    fn window_allows(&mut self, now: Instant, bytes: u32) -> bool {
        let cwnd = self.allowance.cwnd_bytes.min(self.config.max_cwnd_bytes());
        if self.sending.in_flight_bytes + u64::from(bytes) <= cwnd {
            return true;
        }
        if self.sending.in_flight_packets > 0 {
            return false;
        }
        // A packet cut when full ones were larger counts as a full one of today once it is alone: else a window of one
        // packet would never let it out again.
        if cwnd >= u64::from(self.mtu.payload_bytes()) {
            return true;
        }
        match self.config.sub_packet_window {
            SubPacketWindow::Paced => self.sub_packet_window_allows(now, bytes, cwnd),
            SubPacketWindow::Blocked => {
                if !self.timers.is_set(Timer::Retransmission) {
                    self.set_retransmission(now, self.rtt.rto());
                }
                false
            }
        }
    }

    /// A window of a fraction of a packet is one packet every `packet / cwnd` round trips.
    fn sub_packet_window_allows(&mut self, now: Instant, bytes: u32, cwnd: u64) -> bool {
        if cwnd == 0 {
            return false;
        }
        let round_trip = if self.rtt.srtt().is_zero() { self.rtt.rto() } else { self.rtt.srtt() };
        let at = self.sending.last_data_sent_at + round_trip * u64::from(bytes) / cwnd;
        self.wait_until(now, at)
    }

    fn wait_until(&mut self, now: Instant, at: Instant) -> bool {
        if at > now {
            self.timers.set(Timer::Pacing, at);
        }
        at <= now
    }

    /// Sends the packet in the outbox with this number, for the first time or again.
    pub(super) fn transmit_numbered(&mut self, now: Instant, number: u64) -> Option<Transmit> {
        let record = self.sending.delivery.record(now, self.sending.in_flight_bytes);
        let slot = self.sending.outbox.get_mut(number)?;
        let again = slot.transmissions > 0;
        slot.fate = Fate::Outstanding;
        slot.transmissions = slot.transmissions.saturating_add(1);
        slot.sent_at = now;
        slot.record = record;
        // A probe that was lost goes again as an ordinary packet.
        slot.probe &= !again;
        let (payload, bytes, fin, probe) = (slot.payload.clone(), slot.payload_bytes, slot.fin, slot.probe);
        self.sending.in_flight_packets += 1;
        self.sending.in_flight_bytes += u64::from(bytes);
        if again {
            self.note_resent(now, number);
        }
        if !fin {
            self.on_data_leaving(now, number, bytes, again);
        }
        if !self.timers.is_set(Timer::Retransmission) {
            self.set_retransmission(now, self.rtt.rto());
        }
        self.expect_news(now, false);
        if probe {
            return Some(self.probe(now, number, &payload));
        }
        let may_fragment = self.is_outgrown(bytes, again);
        if may_fragment && self.is_peer_known() {
            return self.transmit_in_parts(now, number);
        }
        let head = self.head_of_numbered(now, if fin { Kind::Fin } else { Kind::Data }, number, bytes, again);
        Some(Transmit { head, payload, dont_fragment: false, may_fragment, ecn: Ecn::NotEct })
    }

    /// Books of a DATA packet: the controller's, the pacer's, the zero-window probe's, the statistics.
    fn on_data_leaving(&mut self, now: Instant, number: u64, bytes: u32, again: bool) {
        let sent =
            Sent { now, number, bytes, in_flight_bytes: self.sending.in_flight_bytes, retransmission: again };
        let tag = self.controller.on_sent(&sent);
        if let Some(slot) = self.sending.outbox.get_mut(number) {
            slot.tag = tag;
        }
        self.refresh_controller_timer();
        self.sending.pacing.on_sent(now, bytes);
        self.timers.stop(Timer::Idle);
        self.sending.idle_due = Instant::NEVER;
        self.sending.last_data_sent_at = now;
        self.sending.probing_zero_window |= core::mem::take(&mut self.sending.zero_window_credit);
        self.counters.data_packets_sent += 1;
        self.counters.data_bytes_sent += u64::from(bytes);
    }
}
