//! What the peer says that it has, and what that tells the controller.
//!
//! Source: BEP 29, "Selective ACK" and the acknowledgement rules; RFC 6298 for when the timer starts anew;
//! draft-cheng-iccrg-delivery-rate-estimation for the state of delivery that packets take along.
//!
//! A timeout that was in vain is found by the stamps, as RFC 3522 (Eifel) does by TCP's, and the round trip taken from them.
//!
//! One RTT sample per arriving packet is taken, of the newest packet that it acknowledges and that was sent once (Karn); by libtorrent's
//! rule ([`RttRule`]) one of each packet, those that were sent twice among them.
//!
//! **What it leaves out.** Congestion marks: uTP has no field to report them in. RFC 4015's answer to a timeout in vain, to take the
//! reduction back: controllers are not asked to. libutp's samples, one of each packet that was sent once.
//!
//! **How it was validated.** `tests/checks.rs` (checks 3, 4, 5, 9), `tests/feedback.rs` for every field of the feedback.

use super::Connection;
use crate::bits::{BitRing, WORD_BITS};
use crate::mask::MAX_MASK_BYTES;
use crate::outbox::{Fate, MAX_PACKETS, Slot};
use crate::timers::Timer;
use alloc::vec::Vec;
use cede_cc::instruments::RttRule;
use cede_cc::{DelaySamples, Feedback, PacketFact};
use cede_units::{Duration, Instant, Seq16};
use cede_wire::utp::{Header, Kind, Packet, SelectiveAck};

/// Packets of which [`Scratch::selective`] knows: more than the longest mask and what it can be late by,
const SELECTIVE_BITS: usize = 4096;
/// or twice as many as can be outstanding, where far masks tell of all of them.
const FAR_SELECTIVE_BITS: usize = 2 * MAX_PACKETS as usize;

/// The coarsest clock that a peer stamps with (Windows: 15.6 ms): stamps are no nearer to the truth.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// Facts of one arriving packet; kept so that their memory is.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub acked: Vec<PacketFact>,
    pub lost: Vec<PacketFact>,
    /// Outstanding packets that have been selectively acknowledged, by their numbers: a long mask repeats most of the one
    /// before. Made with the first mask. What it does not know of is found out at the packet itself.
    selective: BitRing,
    /// The packet that leaves in parts, and where its next part begins.
    pub next_part: Option<(u64, u32)>,
}

impl Scratch {
    fn clear(&mut self) {
        self.acked.clear();
        self.lost.clear();
    }

    fn is_empty(&self) -> bool {
        self.acked.is_empty() && self.lost.is_empty()
    }
}

/// What a packet tells of packets beyond a gap.
struct Told<'a> {
    sack: Option<SelectiveAck<'a>>,
    /// The place of its first bit, and the far mask.
    far: Option<(u16, SelectiveAck<'a>)>,
}

impl<'a> Told<'a> {
    #[inline]
    fn by(packet: &Packet<'a>) -> Self {
        let sack = packet.extensions.selective_ack();
        Self { sack, far: sack.and_then(|_| packet.extensions.far_ack()) }
    }
}

/// The state before an arriving packet was taken into account.
#[derive(Clone, Copy)]
struct Before {
    una: u64,
    in_flight_bytes: u64,
    app_limited: bool,
    recovery_until: u64,
}

/// What one arriving packet acknowledged for the first time.
#[derive(Clone, Copy, Default)]
struct Progress {
    packets: u64,
    bytes: u64,
    /// The newest of those packets that was sent once gives the RTT.
    rtt: Option<Duration>,
    /// The round trip of the packet that the peer answered, where it is asked for.
    echo: Option<Duration>,
    /// A path-MTU probe got through.
    mtu_raised: bool,
}

impl Connection {
    /// Takes in timestamps, window and acknowledgements of a packet with a current number.
    pub(super) fn process_ack(&mut self, now: Instant, packet: &Packet<'_>) {
        let header = &packet.header;
        let samples = self.samples(now, header);
        let acked_below = self.acked_below(header.ack);
        let is_latest = acked_below >= self.sending.outbox.una() as i64;
        // A window that opens is an update, not a sign of loss; a mask is one whatever the window does. The answer to
        // a probe of a window of zero repeats by nature.
        let opens = header.window_bytes > self.sending.peer_window_bytes;
        let repeats = acked_below == self.sending.outbox.una() as i64
            && header.kind == Kind::State
            && !self.sending.probing_zero_window;
        if is_latest {
            self.note_peer_window(header.window_bytes);
        }
        let mut is_news = false;
        if !self.sending.outbox.is_empty() {
            let told = Told::by(packet);
            let duplicate = repeats && (!opens || told.sack.is_some());
            let echo = self.echo(header);
            is_news = self.digest(acked_below, &told, duplicate, &samples, echo);
        }
        self.loss.unheard = 0;
        if !is_news {
            // The answer to a SYN, or data of the peer's.
            self.controller.on_delays(&samples);
        }
        self.settle_zero_window(now);
        if self.config.rto_after_silence {
            self.wait_on(now);
        }
    }

    /// The peer has said something: what is under way is waited for anew.
    fn wait_on(&mut self, now: Instant) {
        self.loss.timeouts = 0;
        self.rtt.reset_backoff();
        if self.sending.in_flight_packets > 0 && self.is_established() {
            self.set_retransmission(now, self.rtt.rto());
        }
    }

    /// The raw one-way delays that came with a packet.
    fn samples(&mut self, now: Instant, header: &Header) -> DelaySamples {
        DelaySamples {
            now,
            reverse_delay_ns: self.delays.arrived(header.timestamp_us),
            one_way_delay_ns: self.delays.told(header.timestamp_difference_us),
        }
    }

    /// A SYN shows the delay of the way to us, before there is anything to acknowledge. The answer to it tells the peer, as
    /// libtorrent's does (libutp's does not): the queue is shortest now.
    pub(super) fn take_syn_delay(&mut self, now: Instant, header: &Header) {
        self.delays.arrived_at = now;
        let samples = self.samples(now, header);
        self.controller.on_delays(&samples);
    }

    /// Takes in the acknowledgements of a STATE with an old number, if they say anything new. None has one before the
    /// handshake is over.
    pub(super) fn process_old_ack(&mut self, now: Instant, packet: &Packet<'_>) {
        if self.is_established() && !self.sending.outbox.is_empty() {
            let acked_below = self.acked_below(packet.header.ack);
            let echo = self.echo(&packet.header);
            self.digest(acked_below, &Told::by(packet), false, &DelaySamples::none(now), echo);
        }
    }

    /// The round trip of the packet that this one answers, while there are timeouts or repetitions to be judged by it.
    #[inline]
    fn echo(&self, header: &Header) -> Option<Duration> {
        let is_wanted = self.sending.outbox.una() as u16 == self.loss.timed_out
            || self.rack.as_ref().is_some_and(|rack| rack.has_resent());
        if is_wanted { self.delays.echoed(header.timestamp_us, header.timestamp_difference_us) } else { None }
    }

    #[inline]
    pub(super) fn scratch(&mut self) -> &mut Scratch {
        self.scratch.get_or_insert_default()
    }

    /// The packet number below which `ack` acknowledges everything: at most the next number, and below the oldest
    /// outstanding one (even below zero) for late packets and keepalives.
    fn acked_below(&self, ack: Seq16) -> i64 {
        let behind = self.next_seq().sub(1).distance_from(ack);
        self.sending.outbox.next() as i64 - i64::from(behind)
    }

    fn before(&self) -> Before {
        Before {
            una: self.sending.outbox.una(),
            in_flight_bytes: self.sending.flight_bytes(),
            app_limited: self.sending.is_app_limited(),
            recovery_until: self.loss.recovery_until,
        }
    }

    /// What was sent before something that has arrived has not arrived in time.
    pub(super) fn on_reordering_timeout(&mut self, now: Instant) {
        let before = self.before();
        self.scratch().clear();
        self.find_losses(now, before.una, false);
        if !self.scratch().is_empty() {
            self.report(before, &Progress::default(), &DelaySamples::none(now));
        }
    }

    /// Whether the controller was told of it.
    fn digest(
        &mut self,
        acked_below: i64,
        told: &Told<'_>,
        duplicate: bool,
        samples: &DelaySamples,
        echo: Option<Duration>,
    ) -> bool {
        let (now, before) = (samples.now, self.before());
        self.scratch().clear();
        self.rack.iter_mut().for_each(|rack| rack.begin_arrivals());
        let mut progress = Progress { echo, ..Progress::default() };
        self.take_cumulative(now, acked_below, &mut progress);
        let hidden = if told.sack.is_some() && self.config.masks_count_alone { progress.bytes } else { 0 };
        self.take_masks(now, acked_below, told, &mut progress);
        self.undo_event();
        self.find_losses(now, before.una, duplicate);
        self.after_progress(now, &progress);
        let is_news = self.scratch.as_ref().is_some_and(|scratch| !scratch.is_empty());
        if is_news {
            self.report(before, &Progress { bytes: progress.bytes - hidden, ..progress }, samples);
        }
        if progress.mtu_raised {
            self.on_packet_size_changed();
        }
        self.plan_mtu_search(now);
        is_news
    }

    /// Also takes off what was selectively acknowledged directly above: a peer that has it and does not say so is not
    /// waited for.
    fn take_cumulative(&mut self, now: Instant, acked_below: i64, progress: &mut Progress) {
        loop {
            let number = self.sending.outbox.una();
            let covered = (number as i64) < acked_below;
            if !covered && self.sending.outbox.get(number).is_none_or(|slot| slot.fate != Fate::Acked) {
                break;
            }
            let Some(mut slot) = self.sending.outbox.pop() else { break };
            if slot.fate == Fate::Acked {
                self.scratch().selective.clear(number as usize);
            }
            self.take_packet(now, number, &mut slot, progress);
        }
    }

    /// Takes in the mask, and the far one behind it.
    fn take_masks(&mut self, now: Instant, acked_below: i64, told: &Told<'_>, progress: &mut Progress) {
        let Some(sack) = told.sack else { return };
        if self.scratch().selective.is_empty() {
            let far = self.max_outstanding_packets() > SELECTIVE_BITS as u64 / 2;
            self.scratch().selective = BitRing::new(if far { FAR_SELECTIVE_BITS } else { SELECTIVE_BITS });
        }
        let rtt = progress.rtt;
        self.take_selective(now, acked_below + 1, sack, progress);
        if sack.as_bytes().len() >= MAX_MASK_BYTES {
            // What comes into the reach of such a mask may have arrived long ago.
            progress.rtt = rtt;
        }
        if let Some((start, far)) = told.far {
            self.take_selective(now, acked_below + 1 + i64::from(start), far, progress);
        }
    }

    /// Bit i of the mask is packet number `first` plus i, `first` being two beyond the acknowledged one. Bits for packets that
    /// were never sent, or are acknowledged already, say nothing, and none can be set for the oldest: it is missing by
    /// definition.
    fn take_selective(
        &mut self,
        now: Instant,
        mut first: i64,
        sack: SelectiveAck<'_>,
        progress: &mut Progress,
    ) {
        let (above, next) = (self.sending.outbox.una() as i64, self.sending.outbox.next() as i64);
        for word in sack.words() {
            let mut fresh = word & !self.scratch().selective.word_from(first as usize);
            while fresh != 0 {
                let number = first + i64::from(fresh.trailing_zeros());
                fresh &= fresh - 1;
                if number >= next {
                    self.suspect(|count| count.unsent_selective_acks += 1);
                    return;
                }
                if number > above {
                    self.take_selected(now, number as u64, progress);
                }
            }
            first += WORD_BITS as i64;
        }
    }

    /// A mask says that this outstanding packet has arrived, perhaps not for the first time.
    fn take_selected(&mut self, now: Instant, number: u64, progress: &mut Progress) {
        let Some(slot) = self.sending.outbox.get_mut(number) else { return };
        if slot.fate != Fate::Acked {
            // The slot stays as a place marker; its payload is not needed any more.
            let marker = Slot { fate: Fate::Acked, ..Slot::default() };
            let mut slot = core::mem::replace(slot, marker);
            self.take_packet(now, number, &mut slot, progress);
            self.loss.note_selective(number);
        }
        self.scratch().selective.set(number as usize);
    }

    /// A packet is acknowledged, unless it has been before.
    fn take_packet(&mut self, now: Instant, number: u64, slot: &mut Slot, progress: &mut Progress) {
        match slot.fate {
            Fate::Acked => return,
            Fate::Outstanding => self.sending.leave_flight(slot),
            Fate::Lost => self.sending.lost_packets -= 1,
        }
        let bytes = u64::from(slot.payload_bytes);
        self.sending.unacked_bytes -= bytes;
        let earlier = self.earlier(number, slot, progress.echo);
        self.note_arrival(now, number, slot, earlier.is_some());
        let fact = slot.fact(number);
        self.sending.delivery.on_delivered(now, &fact);
        self.counters.packets_acked += 1;
        self.counters.bytes_acked += bytes;
        progress.packets += 1;
        progress.bytes += bytes;
        let since_sent = self.delays.arrived_at.since(slot.sent_at);
        if self.config.rto_rule == RttRule::Libtorrent {
            match slot.transmissions {
                1 => self.take_round_trip(since_sent),
                _ => self.rtt.update_ambiguous(since_sent),
            }
        }
        if slot.transmissions == 1 {
            progress.rtt = Some(since_sent);
        } else if let Some(echo) = earlier {
            self.note_earlier(number);
            progress.rtt.get_or_insert(echo);
        }
        progress.mtu_raised |= self.mtu.acked(number);
        if !slot.fin {
            self.scratch().acked.push(fact);
        }
    }

    /// A packet is acknowledged that left more than once. Where the peer answers one that left before its last departure, an earlier
    /// transmission had arrived: the timeout, or the loss, was in vain, and the round trip longer than what has passed since, and
    /// known. Without it, no packet of a path whose round trip grew beyond the timeout would ever be sent once, and give a sample (Karn).
    /// (Where counting alone finds losses it is asked of the packet that the timer ran out for.)
    fn earlier(&self, number: u64, slot: &Slot, echo: Option<Duration>) -> Option<Duration> {
        if self.rack.is_none() && number as u16 != self.loss.timed_out {
            return None;
        }
        let since_resent = self.delays.arrived_at.since(slot.sent_at);
        echo.filter(|echo| slot.transmissions > 1 && *echo > since_resent + CLOCK_STEP)
    }

    /// An earlier transmission of this packet had arrived: where the timer ran out for it, that was in vain.
    fn note_earlier(&mut self, number: u64) {
        let rare = self.counters.rare();
        let has_timed_out = rare.timeouts > 0 && number as u16 == self.loss.timed_out;
        rare.timeouts_in_vain += u64::from(has_timed_out);
    }

    /// New data were acknowledged: timers and buffer room follow.
    fn after_progress(&mut self, now: Instant, progress: &Progress) {
        if progress.packets == 0 {
            return;
        }
        match progress.rtt {
            Some(rtt) if self.config.rto_rule == RttRule::Rfc6298 => self.take_round_trip(rtt),
            _ => self.rtt.reset_backoff(),
        }
        self.loss.timeouts = 0;
        self.expect_news(now, true);
        self.sending.probing_zero_window = false;
        self.timers.stop(Timer::Retransmission);
        if self.sending.in_flight_packets > 0 {
            self.set_retransmission(now, self.patience(now));
        } else if self.sending.is_idle() {
            self.sending.idle_timeouts = 0;
            self.timers.set(Timer::Idle, now + self.rtt.rto());
        }
        self.offer_room();
        // The FIN is the last packet; that it has arrived means nothing while others have not.
        if self.sending.outbox.is_empty() && self.sending.fin_acked() {
            self.settle_close(now);
        }
    }

    fn take_round_trip(&mut self, rtt: Duration) {
        if self.rtt.min().is_some_and(|min| rtt < min / 2) {
            self.suspect(|count| count.early_acks += 1);
        }
        self.rtt.update(rtt);
    }

    /// How long the retransmission timer runs after progress. Progress above the oldest packet does not put it off for
    /// ever where that one has been sent again: a lost retransmission is found out by nothing else, and with a small
    /// window, selective acknowledgements go on for a long time. It has a round trip and a timeout since it left.
    /// (libutp restarts the timer at every packet acknowledged, and waits.)
    fn patience(&self, now: Instant) -> Duration {
        let full = self.rtt.rto();
        match self.sending.outbox.get(self.sending.outbox.una()) {
            Some(slot) if slot.fate == Fate::Outstanding && slot.transmissions > 1 => {
                full.min((slot.sent_at + self.rtt.srtt() + full).since(now))
            }
            _ => full,
        }
    }

    /// Tells the application that there is room again, once it is worth its while.
    fn offer_room(&mut self) {
        let worthwhile = (self.send_limit_bytes() / 8).min(8 * self.mtu.payload_bytes()).max(1);
        if self.sending.refused && !self.sending.is_ended() && self.writable_bytes() >= worthwhile {
            self.sending.refused = false;
            self.events.writable();
        }
    }

    /// One call of the controller with everything that the packet said.
    fn report(&mut self, before: Before, progress: &Progress, samples: &DelaySamples) {
        let DelaySamples { now, one_way_delay_ns, reverse_delay_ns } = *samples;
        let una = self.sending.outbox.una();
        let Some(scratch) = &self.scratch else { return };
        self.sending.note_delivery(now, scratch.acked.last(), self.rtt.min().unwrap_or_default());
        let feedback = Feedback {
            now,
            acked: &scratch.acked,
            lost: &scratch.lost,
            acked_bytes: progress.bytes,
            lost_bytes: scratch.lost.iter().map(|fact| u64::from(fact.bytes)).sum(),
            in_flight_before_bytes: before.in_flight_bytes,
            in_flight_bytes: self.sending.in_flight_bytes,
            delivered_bytes: self.sending.delivery.delivered_bytes(),
            next_number: self.sending.outbox.next(),
            rtt: progress.rtt,
            // The newest packet waited least: what else was acknowledged along with it was sent before.
            rtt_min: progress.rtt,
            srtt: self.rtt.srtt(),
            one_way_delay_ns,
            reverse_delay_ns,
            ce_marked: 0,
            app_limited: before.app_limited,
            in_recovery: before.una < before.recovery_until && una < before.recovery_until,
        };
        let allowance = self.controller.on_feedback(&feedback);
        let grown = allowance.cwnd_bytes.saturating_sub(self.allowance.cwnd_bytes);
        self.sending.pacing.note_growth(progress.bytes, grown);
        self.apply(allowance);
    }
}
