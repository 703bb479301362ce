//! What leaves next.
//!
//! Source: RFC 6675 sections 4 and 5 (NextSeg), RFC 9293 sections 3.8.6.1 and 3.8.6.2.1 (window probes, silly window),
//! RFC 896 (Nagle), RFC 6298 section 5.
//!
//! **What it leaves out.** The sender's side of silly-window avoidance beyond full segments (RFC 1122 section 4.2.3.4, its
//! half of the largest window).
//!
//! **How it was validated.** NextSeg event by event (tests of repair), windows below a segment and pacing (tests of the contract),
//! no allocation once under way (tests of allocation).

use super::{Connection, Limit};
use crate::scoreboard::Outgoing;
use cede_cc::instruments::sub_packet_interval;
use cede_cc::{PacketFact, Sent};
use cede_units::{Instant, Seq32};
use cede_wire::tcp::{Flags, Options, Segment, Timestamps};
use cede_wire::{Ecn, Payload, Transmit};

impl Connection {
    /// The sequence number of our stream's octet at `offset`.
    pub(super) const fn seq(&self, offset: u64) -> Seq32 {
        self.isn.add(1).add(offset as u32)
    }

    /// The acknowledgement number, the peer's FIN counted.
    pub(super) const fn ack_number(&self) -> Seq32 {
        self.peer.irs.add(1).add(self.reassembly.next() as u32).add(self.peer_finished as u32)
    }

    pub(super) fn next_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if self.reset_due {
            return self.transmit_reset();
        }
        match self.state {
            super::State::SynSent | super::State::SynReceived => return self.transmit_syn(now),
            super::State::Closed => return None,
            _ => {}
        }
        // Duplicates leave first and alone: with data they would not count (RFC 5681, section 2).
        if self.acks.owes_duplicate() {
            return Some(self.transmit_ack(now));
        }
        if self.state.may_send()
            && !self.at_rest
            && let Some(transmit) = self.transmit_data(now)
        {
            return Some(transmit);
        }
        self.acks.owes().then(|| self.transmit_ack(now))
    }

    fn transmit_ack(&mut self, now: Instant) -> Transmit {
        self.statistics.acks_sent += 1;
        // In FIN's wake the next octet's number lies beyond it.
        let header = self.header(now, self.board.next(), 0, Flags::ACK);
        Transmit {
            head: header.encode(),
            payload: Payload::Empty,
            dont_fragment: false,
            may_fragment: false,
            ecn: Ecn::NotEct,
        }
    }

    /// The header of a segment with so many octets from `offset` on, with the acknowledgement, which is thereby sent, unless
    /// what there is to report has no room.
    fn header(&mut self, now: Instant, offset: u64, payload_bytes: u32, flags: Flags) -> Segment {
        let window = self.advertise_window();
        let blocks = self.write_blocks(payload_bytes);
        if blocks.is_some() {
            self.acks.on_sent();
        }
        let options = Options {
            timestamps: self.peer.timestamps.then(|| self.stamps(now)),
            sack: blocks.unwrap_or_default(),
            ..Options::default()
        };
        let flags = flags.with(self.echo_flags());
        self.last_ack_sent = self.reassembly.next() + u64::from(self.peer_finished);
        Segment {
            src_port: self.ports.local,
            dst_port: self.ports.remote,
            seq: self.seq(offset),
            ack: self.ack_number(),
            flags,
            window,
            options,
        }
    }

    const fn stamps(&self, now: Instant) -> Timestamps {
        Timestamps { value: self.clock.ticks(now), echo: self.recent_stamp.value() }
    }

    /// The next segment with data or FIN.
    fn transmit_data(&mut self, now: Instant) -> Option<Transmit> {
        self.timers.send = Instant::NEVER;
        if core::mem::take(&mut self.repair.resend_first) {
            let number = self.first_repair();
            return self.transmit_again(now, number, false);
        }
        if core::mem::take(&mut self.repair.tail_due) {
            return self.transmit_tail_probe(now);
        }
        if let Some(number) = self.next_repair() {
            return self.transmit_repair(now, number, false);
        }
        if let Some(transmit) = self.transmit_new(now) {
            return Some(transmit);
        }
        let (number, rescue) = self.next_rescue()?;
        let transmit = self.transmit_repair(now, number, rescue)?;
        if rescue {
            self.note_rescue();
        }
        Some(transmit)
    }

    /// Segment `number` again, where the window allows it.
    fn transmit_repair(&mut self, now: Instant, number: u64, rescue: bool) -> Option<Transmit> {
        let bytes = self.board.outgoing(number)?.payload.len();
        if !self.permits(now, bytes) {
            return None;
        }
        self.transmit_again(now, number, rescue)
    }

    pub(super) fn transmit_again(&mut self, now: Instant, number: u64, rescue: bool) -> Option<Transmit> {
        let outgoing = self.board.outgoing(number)?;
        let bytes = outgoing.payload.len();
        let record = self.delivery.record(now, self.board.pipe_bytes());
        self.board.resend(number, rescue)?;
        let tag = self.tell_sent(now, number, bytes, true);
        if let Some(fact) = self.board.fact_mut(number) {
            (fact.sent_at, fact.tag, fact.record) = (now, tag, record);
        }
        if let Some(rack) = &mut self.rack {
            rack.on_sent(now, number);
        }
        if !rescue {
            self.undo.note_resent(self.clock.ticks(now));
        }
        self.statistics.retransmissions += 1;
        self.statistics.retransmitted_bytes += u64::from(bytes);
        self.count_data(bytes);
        if number == self.board.first_number() && self.repair.restarts_timer(self.peer.sack) {
            // What an entry means to the timer, the RFCs leave open; as most implementations do, a full timeout is
            // given to the retransmission that everything waits for.
            self.timers.rto = now + self.rtt.rto();
        }
        Some(self.transmit_outgoing(now, outgoing, false))
    }

    /// New data, a probe of a closed window, or FIN.
    fn transmit_new(&mut self, now: Instant) -> Option<Transmit> {
        if self.buffer.is_empty() {
            return self.transmit_fin(now);
        }
        if self.board.is_empty() {
            self.note_idle(now);
        }
        let len = self.sendable_bytes(now)?;
        let is_probe = core::mem::take(&mut self.repair.probe_due);
        if !is_probe && !self.permits(now, len) {
            return None;
        }
        Some(self.transmit_cut(now, len, is_probe))
    }

    /// The next `len` octets of the stream, with FIN where they are the last.
    pub(super) fn transmit_cut(&mut self, now: Instant, len: u32, is_probe: bool) -> Transmit {
        let payload = self.buffer.cut(len);
        let fin = self.fin_wanted && self.buffer.is_empty();
        self.transmit_first(now, payload, fin, is_probe)
    }

    /// How long the next new segment is; none where the peer's window or Nagle's rule holds it back.
    fn sendable_bytes(&mut self, now: Instant) -> Option<u32> {
        let segment = self.segment_bytes();
        let len = self.buffer.len().min(u64::from(segment)) as u32;
        let room = self.peer.window_end.saturating_sub(self.board.next());
        if room < u64::from(len) {
            return self.sendable_in_small_window(now, room as u32);
        }
        self.repair.probe_due = false;
        let holds_back = self.config.nagle && len < segment && !self.board.is_empty() && !self.fin_wanted;
        if holds_back {
            self.limit = Limit::Application;
            return None;
        }
        Some(len)
    }

    /// Less than a segment fits: that is sent only where nothing is outstanding, and one octet to probe a closed
    /// window.
    fn sendable_in_small_window(&mut self, now: Instant, room: u32) -> Option<u32> {
        self.limit = Limit::PeerWindow;
        if !self.board.is_empty() {
            return None;
        }
        if room > 0 || self.repair.probe_due {
            return Some(room.max(1));
        }
        if self.timers.probe == Instant::NEVER {
            self.timers.probe = now + self.rtt.rto();
        }
        None
    }

    /// FIN on its own, where it is wanted and all data has left; FIN rides on the last data otherwise.
    fn transmit_fin(&mut self, now: Instant) -> Option<Transmit> {
        if self.fin_wanted && !self.fin_sent {
            return Some(self.transmit_first(now, Payload::Empty, true, false));
        }
        self.limit = Limit::Application;
        if self.board.pipe_bytes() < self.window_bytes() && !self.fin_sent {
            self.delivery.on_app_limited(self.board.pipe_bytes());
            self.at_rest = self.board.is_empty();
        }
        None
    }

    /// Sends new data: its boundaries stay for all its retransmissions.
    fn transmit_first(&mut self, now: Instant, payload: Payload, fin: bool, is_probe: bool) -> Transmit {
        let (number, bytes) = (self.board.next_number(), payload.len());
        let outgoing = Outgoing { offset: self.board.next(), payload, fin };
        let record = self.delivery.record(now, self.board.pipe_bytes());
        let fact = PacketFact { number, bytes, sent_at: now, retransmitted: false, tag: 0, record };
        self.board.push(fact, &outgoing);
        if let Some(rack) = &mut self.rack {
            rack.on_sent(now, number);
        }
        if bytes > 0 {
            let tag = self.tell_sent(now, number, bytes, false);
            if tag != 0
                && let Some(fact) = self.board.fact_mut(number)
            {
                fact.tag = tag;
            }
            self.count_data(bytes);
        }
        if self.repair.is_limited_transmit() {
            self.repair.limited_bytes += u64::from(bytes);
        }
        self.note_usage();
        if self.timers.rto == Instant::NEVER {
            self.timers.rto = now + self.rtt.rto();
        }
        if fin {
            self.on_fin_sent();
        }
        if self.rack.is_some() {
            self.plan_tail_probe(now);
        }
        self.transmit_outgoing(now, outgoing, !is_probe)
    }

    fn count_data(&mut self, bytes: u32) {
        self.statistics.data_segments_sent += u64::from(bytes > 0);
        self.statistics.data_bytes_sent += u64::from(bytes);
    }

    /// Tells controller and pacer of a departure; pipe counts it already.
    fn tell_sent(&mut self, now: Instant, number: u64, bytes: u32, retransmission: bool) -> cede_cc::Tag {
        self.last_data_sent_at = Some(now);
        self.pacer.on_sent(now, u64::from(bytes));
        self.note_reduced_sending(bytes);
        let in_flight_bytes = self.board.pipe_bytes();
        let tag = self.controller.on_sent(&Sent { now, number, bytes, in_flight_bytes, retransmission });
        self.controller_timer = self.controller.timer();
        tag
    }

    fn transmit_outgoing(&mut self, now: Instant, outgoing: Outgoing, is_new: bool) -> Transmit {
        let mut flags = Flags::ACK;
        if outgoing.fin {
            flags = flags.with(Flags::FIN);
        }
        if self.buffer.is_empty() && !outgoing.payload.is_empty() {
            flags = flags.with(Flags::PSH);
        }
        let (ecn, told) = self.ecn_of_data(is_new && !outgoing.payload.is_empty());
        let header = self.header(now, outgoing.offset, outgoing.payload.len(), flags.with(told));
        Transmit {
            head: header.encode(),
            payload: outgoing.payload,
            dont_fragment: false,
            may_fragment: false,
            ecn,
        }
    }

    /// Whether the window and its pacing let `bytes` leave now. Where time will, the deadline is set.
    fn permits(&mut self, now: Instant, bytes: u32) -> bool {
        let window = self.window_bytes();
        let under_way = self.under_way_bytes();
        let at = if under_way + u64::from(bytes) <= window {
            self.pacer.departure(now, u64::from(bytes))
        } else if under_way == 0 {
            self.sub_packet_departure(now, bytes, window)
        } else {
            self.limit = if self.repair.window_cap.is_some() { Limit::Cap } else { Limit::Window };
            self.note_full_window();
            return false;
        };
        if at > now {
            self.limit = Limit::Window;
            self.timers.send = at;
        }
        at <= now
    }

    /// Under a window of less than one segment: one at a time, at intervals.
    #[cold]
    fn sub_packet_departure(&self, now: Instant, bytes: u32, window: u64) -> Instant {
        let interval = sub_packet_interval(bytes, window, self.rtt.smoothed());
        self.last_data_sent_at.map_or(now, |last_at| last_at + interval)
    }
}
