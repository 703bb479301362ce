//! What arrives: is it plausible, is it new, and in which order does the application get it?
//!
//! Source: BEP 29 for the meaning of the fields; the windows of plausibility are libutp's (`utp_process_incoming`).
//!
//! **What it leaves out.** Nothing of the sheet of rules; what it does otherwise than libutp stands at the place.
//!
//! **How it was validated.** `tests/checks.rs` (checks 3, 6, 8, 9, 10, 14), the replay of a recorded libutp connection,
//! and hostile packets in `tests/fuzz.rs`.

use super::Connection;
use super::tuning::{ReceiveLimit, USUAL_SEQ_WINDOW};
use super::update::Update;
use crate::chunks::Chunks;
use crate::config::{Config, MAX_WINDOW_BYTES};
use crate::reorder::Reorder;
use crate::timers::Timer;
use cede_units::{Instant, Seq16};
use cede_wire::Payload;
use cede_wire::utp::{Header, Kind, Packet};

/// What a packet that waits beyond a gap takes beside its octets: its place, and its buffer's own books.
const BYTES_PER_HELD_PACKET: u32 = 128;
/// What a connection may hold where all of the endpoint together hold too much.
const HELD_BACK_BYTES: u32 = 64 << 10;

/// The receiving half.
#[derive(Debug)]
pub(super) struct Receiving {
    /// The last number received in order.
    pub ack_nr: Seq16,
    pub ready: Chunks,
    pub reorder: Reorder,
    pub fin: RemoteFin,
    pub ack: Ack,
    pub update: Update,
    pub limit: ReceiveLimit,
    /// The window that our last packet advertised.
    pub advertised_bytes: u32,
    /// The largest payload seen, for telling a useful window from a silly one.
    largest_payload_bytes: u32,
    /// All connections of the endpoint together hold too much.
    pub held_back: bool,
    /// The application wants nothing more: what arrives is acknowledged and dropped.
    pub discarding: bool,
    /// The reason that the peer gave for its FIN.
    pub close_reason: Option<u16>,
}

/// How the peer's stream ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RemoteFin {
    None,
    /// The FIN has this number, and data before it are missing.
    Seen(Seq16),
    /// Everything up to the FIN has been delivered.
    Reached(Seq16),
}

/// Whether a STATE is owed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ack {
    None,
    /// This many packets wait for a delayed acknowledgement.
    Delayed(u8),
    /// At the end of the batch.
    Scheduled,
}

/// Where a packet's number lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// This many places beyond the next expected packet.
    Ahead(u16),
    /// Delivered before.
    Old,
}

impl Receiving {
    pub fn new(config: &Config) -> Self {
        Self {
            limit: ReceiveLimit::new(config),
            ack_nr: Seq16(0),
            ready: Chunks::default(),
            reorder: Reorder::default(),
            fin: RemoteFin::None,
            ack: Ack::None,
            update: Update::None,
            advertised_bytes: 0,
            largest_payload_bytes: 0,
            held_back: false,
            discarding: false,
            close_reason: None,
        }
    }

    pub fn schedule_ack(&mut self) {
        self.ack = Ack::Scheduled;
    }

    pub fn is_finished(&self) -> bool {
        matches!(self.fin, RemoteFin::Reached(_))
    }

    /// Octets that have arrived and are not read.
    #[inline]
    fn held_bytes(&self) -> u64 {
        self.ready.len_bytes() + self.reorder.len_bytes()
    }

    /// Octets that it may hold.
    #[inline]
    fn limit_bytes(&self) -> u32 {
        if self.held_back { self.limit.bytes.min(HELD_BACK_BYTES) } else { self.limit.bytes }
    }

    /// The number of the peer's FIN, where it is known.
    fn fin_seq(&self) -> Option<Seq16> {
        match self.fin {
            RemoteFin::None => None,
            RemoteFin::Seen(seq) | RemoteFin::Reached(seq) => Some(seq),
        }
    }
}

impl Connection {
    /// Any packet but SYN and RESET on a connection whose first sequence numbers are known.
    pub(super) fn on_packet(&mut self, now: Instant, packet: &Packet<'_>, payload: Payload) {
        let header = &packet.header;
        if !self.is_ack_plausible(header.ack, 0) || !self.shows_answer_arrived(header) {
            self.counters.rare().discarded_ack += 1;
            return;
        }
        match self.place(header) {
            None => self.discard_misplaced(header),
            Some(Place::Old) => self.on_old_packet(now, packet),
            Some(Place::Ahead(ahead)) => {
                self.on_answer_confirmed(now);
                self.on_repeated_answer(header);
                self.process_ack(now, packet);
                if matches!(header.kind, Kind::Data | Kind::Fin) {
                    self.on_numbered(now, packet, ahead, payload);
                }
            }
        }
        self.extend_wait_for_fin(now);
    }

    /// A packet whose number is out of reach, or beyond the end.
    #[cold]
    fn discard_misplaced(&mut self, header: &Header) {
        self.counters.rare().discarded_seq += 1;
        if self.receiving.fin_seq().is_some_and(|fin| fin.before(header.seq)) {
            self.suspect(|count| count.data_after_fin += 1);
        }
    }

    /// Does `ack` lie between what was acknowledged a few packets ago and what was sent last (plus `beyond`)? The lower
    /// end leaves room for reordering and for keepalives, which acknowledge one less.
    pub(super) fn is_ack_plausible(&self, ack: Seq16, beyond: u16) -> bool {
        let upper = self.next_seq().sub(1).add(beyond);
        let outstanding = self.sending.outbox.len() as u16;
        upper.distance_from(ack) <= outstanding + 3 + beyond
    }

    /// Where the packet's number lies; `None` where it is too far off, or a number beyond the peer's FIN.
    fn place(&self, header: &Header) -> Option<Place> {
        let window = self.seq_window_packets();
        let ahead = header.seq.distance_from(self.receiving.ack_nr.add(1));
        let is_state = header.kind == Kind::State;
        if is_state && self.receiving.fin == RemoteFin::Reached(header.seq) {
            // libtorrent's counter does not go past its FIN, so its STATEs carry that number for ever.
            return Some(Place::Ahead(0));
        }
        // STATEs take no number: libutp's that follow its FIN carry one beyond it, and are as good as others.
        if !is_state && self.receiving.fin_seq().is_some_and(|fin| fin.before(header.seq)) {
            return None;
        }
        if ahead < window {
            Some(Place::Ahead(ahead))
        } else {
            (ahead >= window.wrapping_neg()).then_some(Place::Old)
        }
    }

    /// A packet whose number was delivered before. What it acknowledges counts all the same (libutp drops it, and so
    /// misses that libtorrent has its FIN); it is neither a duplicate acknowledgement nor a delay sample.
    fn on_old_packet(&mut self, now: Instant, packet: &Packet<'_>) {
        if packet.header.kind == Kind::State {
            self.process_old_ack(now, packet);
        } else {
            self.counters.rare().duplicates_received += 1;
            self.receiving.schedule_ack();
        }
    }

    /// DATA or FIN, `ahead` places beyond the next expected number.
    fn on_numbered(&mut self, now: Instant, packet: &Packet<'_>, ahead: u16, payload: Payload) {
        let seq = packet.header.seq;
        let is_held = ahead > 0 && self.receiving.reorder.holds(seq, ahead);
        let contradicts = self.contradicts_fin(&packet.header);
        if contradicts {
            self.suspect(|count| count.data_after_fin += 1);
        }
        if is_held || contradicts {
            self.counters.rare().duplicates_received += u64::from(is_held);
            self.receiving.schedule_ack();
            return;
        }
        let Some(payload) = self.whole_payload(packet, ahead, payload) else { return };
        if ahead > 0 && self.is_crowded() {
            self.suspect(|count| count.crowded_out += 1);
            self.counters.rare().discarded_buffer += 1;
            self.receiving.schedule_ack();
            return;
        }
        if !self.has_room_for(ahead, u64::from(payload.len())) {
            // The acknowledgement tells the window, which is what a probe of a window of zero asks for.
            self.counters.rare().discarded_buffer += 1;
            self.receiving.schedule_ack();
            return;
        }
        if packet.header.kind == Kind::Fin {
            self.receiving.fin = RemoteFin::Seen(seq);
            self.receiving.close_reason = packet.extensions.close_reason();
        }
        self.keep(now, &packet.header, ahead, payload);
    }

    /// A FIN where another number has been announced as the last.
    fn contradicts_fin(&self, header: &Header) -> bool {
        header.kind == Kind::Fin && self.receiving.fin_seq().is_some_and(|fin| fin != header.seq)
    }

    /// More packets wait beyond the gap than the window is worth, though they hold little: each costs memory beside its
    /// octets. As many as libutp would keep, anybody may have there.
    fn is_crowded(&self) -> bool {
        let held = self.receiving.reorder.len();
        held >= u32::from(USUAL_SEQ_WINDOW) && held > self.receiving.limit.bytes / BYTES_PER_HELD_PACKET
    }

    /// Memory for a packet: the next expected one needs room among what waits to be read only, or a full reorder
    /// buffer could never drain; the others need room in the reorder buffer as well.
    pub(super) fn has_room_for(&self, ahead: u16, bytes: u64) -> bool {
        let limit = u64::from(self.receiving.limit_bytes());
        let ready = self.receiving.ready.len_bytes();
        let held = if ahead == 0 { 0 } else { self.receiving.reorder.len_bytes() };
        bytes == 0 || ready + held + bytes <= limit
    }

    /// Delivers or holds a new packet, and owes the peer an acknowledgement.
    fn keep(&mut self, now: Instant, header: &Header, ahead: u16, payload: Payload) {
        let had_gap = !self.receiving.reorder.is_empty();
        self.window_used();
        self.receiving.largest_payload_bytes = self.receiving.largest_payload_bytes.max(payload.len());
        self.counters.data_packets_received += u64::from(!payload.is_empty());
        if ahead > 0 {
            self.counters.rare().out_of_order_received += 1;
            self.receiving.reorder.insert(header.seq, ahead, payload);
        } else {
            self.deliver(payload);
            self.drain_reorder();
            if had_gap && self.receiving.reorder.is_empty() {
                self.gap_filled(now);
            }
        }
        self.tune_receive_limit(now, header);
        self.settle_fin(now);
        self.owe_ack(now, ahead > 0 || had_gap || self.receiving.fin != RemoteFin::None);
    }

    fn deliver(&mut self, payload: Payload) {
        self.receiving.ack_nr = self.receiving.ack_nr.add(1);
        self.counters.bytes_delivered += u64::from(payload.len());
        if !payload.is_empty() {
            self.receiving.ready.push(payload);
            self.events.readable();
        }
    }

    /// Delivers what the gap kept back, up to the next gap or the FIN.
    fn drain_reorder(&mut self) {
        while !self.receiving.reorder.is_empty() && self.receiving.fin_seq() != Some(self.receiving.ack_nr) {
            match self.receiving.reorder.take(self.receiving.ack_nr.add(1)) {
                Some(payload) => self.deliver(payload),
                None => break,
            }
        }
    }

    /// Ends the peer's stream once everything up to its FIN is there.
    fn settle_fin(&mut self, now: Instant) {
        if self.receiving.fin == RemoteFin::Seen(self.receiving.ack_nr) {
            self.receiving.fin = RemoteFin::Reached(self.receiving.ack_nr);
            self.receiving.reorder.clear();
            self.events.peer_finished();
            self.settle_close(now);
        }
    }

    /// Schedules an acknowledgement for a new packet, or lets it wait where that is wanted and does no harm.
    fn owe_ack(&mut self, now: Instant, at_once: bool) {
        let waiting = match self.receiving.ack {
            Ack::Scheduled => return,
            Ack::Delayed(packets) => packets + 1,
            Ack::None => 1,
        };
        match self.config.delayed_ack {
            Some(delayed) if !at_once && waiting < delayed.every_packets => {
                self.receiving.ack = Ack::Delayed(waiting);
                if waiting == 1 {
                    self.timers.set(Timer::DelayedAck, now + delayed.timeout);
                }
            }
            _ => self.receiving.schedule_ack(),
        }
    }

    /// The window to advertise: room for what will be read, less what waits beyond a gap (which libutp forgets).
    pub(super) fn window_bytes(&self) -> u32 {
        u64::from(self.receiving.limit_bytes()).saturating_sub(self.receiving.held_bytes()) as u32
    }

    /// Octets that have arrived and are not read.
    #[inline]
    pub(crate) fn buffered_bytes(&self) -> u64 {
        self.receiving.held_bytes()
    }

    /// The endpoint's budget is exceeded, or is no more.
    #[inline]
    pub(crate) fn hold_back(&mut self, held_back: bool) {
        self.receiving.held_back = held_back;
    }

    /// The peer's window, cut to what makes sense.
    pub(super) fn note_peer_window(&mut self, window_bytes: u32) {
        let window = window_bytes.min(MAX_WINDOW_BYTES);
        self.sending.peer_window_bytes = window;
        self.sending.peer_window_max_bytes = self.sending.peer_window_max_bytes.max(window);
    }

    /// The application has read: a peer that our last window blocked, or nearly, is told at once.
    pub(super) fn after_reading(&mut self) {
        let (advertised, window) = (self.receiving.advertised_bytes, self.window_bytes());
        let limit = self.receiving.limit.bytes;
        let useful = self.receiving.largest_payload_bytes.min(limit / 2).max(1);
        let reopened = advertised < useful && window >= useful;
        let grown = window.saturating_sub(advertised) >= limit.div_ceil(2);
        if (reopened || grown) && !self.receiving.is_finished() && self.is_established() {
            self.receiving.schedule_ack();
            if reopened {
                self.receiving.update = Update::Due;
            }
        }
    }
}
