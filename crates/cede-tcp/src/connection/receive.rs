//! A segment arrives at a synchronised connection.
//!
//! Source: RFC 9293 section 3.10.7.4; RFC 7323 sections 4.3 (TS.Recent) and 5.3 (PAWS); RFC 5961 sections 3 and 4 (RST
//! and SYN must be exact, or are challenged); RFC 5681 section 4.2 (which segments are acknowledged at once).
//!
//! **What it leaves out.** Urgent data; the limit on challenge acknowledgements of RFC 5961 section 7.
//!
//! **How it was validated.** Packet scripts for TS.Recent, PAWS and SACK blocks (tests of time), a reader that stops (tests of
//! life), arbitrary channels (tests of delivery).

use super::{Connection, Event, Failure, State};
use crate::reassembly::Arrival;
use cede_units::Instant;
use cede_wire::tcp::{Flags, Segment, Timestamps};
use cede_wire::{Ecn, Payload};

/// TS.Recent of RFC 7323.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentStamp {
    value: u32,
    set_at: Option<Instant>,
}

impl RecentStamp {
    /// TS.Recent; zero before the first.
    pub(super) const fn value(&self) -> u32 {
        self.value
    }

    pub(super) const fn set(&mut self, now: Instant, value: u32) {
        (self.value, self.set_at) = (value, Some(now));
    }
}

/// The window that follows the reader (Linux, `tcp_rcv_space_adjust`).
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    window_bytes: u64,
    /// What the reader took in the busiest round trip so far.
    most_bytes: u64,
    /// Where the reader was, and when.
    read_to: u64,
    looked_at: Instant,
}

impl Tuning {
    /// Linux's default buffer is 128 KiB, half of it for payload; it grows once ten segments are taken in a round trip.
    pub(super) const fn new(mss_bytes: u32) -> Self {
        let most_bytes = 10 * mss_bytes as u64;
        Self { window_bytes: 64 << 10, most_bytes, read_to: 0, looked_at: Instant::ZERO }
    }

    /// A round trip is over, in which the reader came to `read_to`.
    fn on_round_trip(&mut self, now: Instant, read_to: u64, mss_bytes: u32) {
        let taken = read_to - self.read_to;
        (self.read_to, self.looked_at) = (read_to, now);
        if taken > self.most_bytes {
            // What will be taken in the next, with room for a window that doubles.
            let wanted = 2 * taken + 16 * u64::from(mss_bytes);
            let growth = wanted * (taken - self.most_bytes) / self.most_bytes;
            self.window_bytes = self.window_bytes.max(wanted + 2 * growth);
            self.most_bytes = taken;
        }
    }
}

impl Connection {
    /// The stream offset of the peer's sequence number `seq`; negative below its first octet.
    fn peer_offset(&self, seq: cede_units::Seq32) -> i64 {
        let next = self.reassembly.next();
        let expected = self.peer.irs.add(1).add(next as u32);
        next as i64 + i64::from(seq.offset_from(expected))
    }

    pub(super) fn handle_synchronised(
        &mut self,
        now: Instant,
        segment: &Segment,
        payload: Payload,
        ecn: Ecn,
    ) {
        let start = self.peer_offset(segment.seq);
        if !self.admit(now, segment, start, &payload) {
            return;
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        self.on_ack(now, segment, payload.is_empty());
        if segment.flags.has(Flags::FIN) {
            self.peer_fin_at.get_or_insert(start.max(0) as u64 + u64::from(payload.len()));
            self.acks.on_immediate();
        }
        if !payload.is_empty() {
            self.on_marked_arrival(segment, ecn);
            self.on_data(now, start, payload);
        }
        self.note_peer_finished(now);
    }

    /// The checks before a segment counts: timestamp, place in the window, RST and SYN.
    fn admit(&mut self, now: Instant, segment: &Segment, start: i64, payload: &Payload) -> bool {
        let in_window = self.is_in_window(start, payload.len());
        if segment.flags.has(Flags::RST) {
            // RFC 5961: only the exact number resets.
            if in_window && start == (self.reassembly.next() + u64::from(self.peer_finished)) as i64 {
                self.fail(Failure::Reset);
            }
            return false;
        }
        if !self.admit_stamp(now, segment, (start, payload.len())) {
            self.statistics.old_timestamps += 1;
            self.reassembly.note_old(start, payload.len());
            self.acks.on_immediate();
            return false;
        }
        if segment.flags.has(Flags::SYN) {
            self.acks.on_immediate();
            return false;
        }
        if !in_window && !payload.is_empty() {
            self.reassembly.note_old(start, payload.len());
            self.acks.on_immediate();
        }
        in_window
    }

    /// Something of the segment lies within what we have ever advertised and may still be asked for again.
    fn is_in_window(&self, start: i64, len: u32) -> bool {
        let below =
            (self.reassembly.next() as i64).saturating_sub(2 * i64::from(self.config.receive_window_bytes));
        // One octet beyond the window is FIN's.
        start <= self.window_edge as i64 + 1 && start + i64::from(len) >= below - 1
    }

    /// RFC 7323, sections 5.3 and 4.3: refuses what is older than TS.Recent, and moves TS.Recent on where the segment
    /// reaches down to what was last acknowledged. One that lies below it altogether moves nothing: it is out of the window, and
    /// with the stamp of a repetition in vain what left before that and is late would be refused.
    fn admit_stamp(&mut self, now: Instant, segment: &Segment, (start, len): (i64, u32)) -> bool {
        if !self.peer.timestamps {
            return true;
        }
        let Some(Timestamps { value, .. }) = segment.options.timestamps else { return false };
        let comparable =
            self.recent_stamp.set_at.is_some_and(|at| now.since(at) < self.clock.comparable_for());
        if comparable && (value.wrapping_sub(self.recent_stamp.value) as i32) < 0 {
            return false;
        }
        let last_ack_sent = self.last_ack_sent as i64;
        if start <= last_ack_sent && start.saturating_add(i64::from(len)) >= last_ack_sent {
            self.recent_stamp.set(now, value);
        }
        true
    }

    fn on_data(&mut self, now: Instant, start: i64, payload: Payload) {
        let (before, len) = (self.reassembly.next(), payload.len());
        let limit = self.window_edge.min(self.peer_fin_at.unwrap_or(u64::MAX));
        let arrival = self.reassembly.insert(start, payload, limit);
        self.statistics.received_bytes += self.reassembly.next() - before;
        match arrival {
            Arrival::InOrder => {
                let (mss_bytes, srtt, rto) = (self.board.mss_bytes(), self.rtt.smoothed(), self.rtt.rto());
                self.acks.on_in_order(now, len, mss_bytes, srtt, rto);
            }
            Arrival::FilledGap => self.acks.on_immediate(),
            Arrival::OutOfOrder => {
                self.statistics.out_of_order += 1;
                self.acks.on_duplicate();
            }
            Arrival::Nothing => {
                self.statistics.duplicates += 1;
                self.acks.on_duplicate();
            }
        }
        if self.reassembly.next() > before {
            self.events.push(Event::Readable);
        }
        self.tune(now);
    }

    fn tune(&mut self, now: Instant) {
        let Some(tuning) = &mut self.tuning else { return };
        if now.since(tuning.looked_at) >= self.rtt.smoothed() {
            let read_to = self.reassembly.next() - self.reassembly.unread_bytes();
            tuning.on_round_trip(now, read_to, self.board.mss_bytes());
        }
    }

    /// The peer's FIN has been reached in order.
    fn note_peer_finished(&mut self, now: Instant) {
        if self.peer_finished {
            // FIN again: our acknowledgement was lost, and the wait begins anew.
            if self.state == State::TimeWait && self.acks.owes() {
                self.timers.time_wait = now + self.config.time_wait;
            }
            return;
        }
        if self.peer_fin_at.is_some_and(|at| at <= self.reassembly.next()) {
            self.peer_finished = true;
            self.on_peer_fin(now);
        }
    }

    /// What the reader leaves room for. Up to twice the window is held: so it stays the same from one acknowledgement
    /// to the next while the reader keeps up, and a duplicate acknowledgement can be told by it (RFC 5681, section 2).
    fn window_wanted_bytes(&self) -> u64 {
        let window = u64::from(self.config.receive_window_bytes).min(0xffff << self.peer.our_shift);
        if let Some(tuning) = &self.tuning {
            return window.min(tuning.window_bytes).saturating_sub(self.reassembly.unread_bytes());
        }
        window.min((2 * window).saturating_sub(self.reassembly.unread_bytes()))
    }

    /// The window field of the next segment, and the edge that it promises. An edge once promised is kept
    /// (RFC 9293, section 3.8.6).
    pub(super) fn advertise_window(&mut self) -> u16 {
        let next = self.reassembly.next();
        let edge = self.window_edge.max(next + self.window_wanted_bytes());
        let field = ((edge - next) >> self.peer.our_shift).min(0xffff);
        self.window_edge = self.window_edge.max(next + (field << self.peer.our_shift));
        field as u16
    }

    /// After a read: tells the peer of a window that had closed, or shrunk to less than half (RFC 9293, section
    /// 3.8.6.2.2).
    pub(super) fn offer_window(&mut self) {
        if !self.state.may_receive() {
            return;
        }
        let next = self.reassembly.next();
        let offered = self.window_edge - next;
        let window = self.window_wanted_bytes();
        let segment = u64::from(self.board.mss_bytes());
        let closed = offered < segment && window >= segment;
        if closed || window.saturating_sub(offered) > window / 2 {
            self.acks.on_immediate();
        }
    }
}

impl State {
    /// The peer may still send data.
    const fn may_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}
