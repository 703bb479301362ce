//! An acknowledgement arrives.
//!
//! Source: RFC 9293 section 3.10.7.4 (which acknowledgements count), RFC 5681 section 2 and RFC 6675 section 2
//! (duplicates), RFC 6298 sections 3 and 5, RFC 7323 section 4 (samples).
//!
//! RTT samples are times between a packet's departure and its acknowledgement by our own clock, in nanoseconds. The
//! timeout follows the oldest of the packets acknowledged, which has the delay of the acknowledgement in it; the
//! controller gets the newest.
//!
//! Where something that is acknowledged was sent twice (Karn) the timeout follows the echoed timestamp, in its ticks. For
//! a controller that is too coarse: stamps of 1 ms read up to a tick too short, and the shortest round trip of all would be
//! one that never was. It gets the time of the retransmission whose tick is echoed, by our own clock (the comparison of
//! RFC 3522 and of Linux's RACK), and nothing where the echo is of an earlier transmission. (Linux gives
//! controllers the stamp's sample there, `tcp_ack_update_rtt`.)
//!
//! **What it leaves out.** Several samples per round trip weighed less each (RFC 7323 appendix G).
//!
//! **How it was validated.** Samples against a channel of known delays, by clocks of 1 us and 1 ms; which acknowledgements
//! hold the controller's window, and what a timeout calls under way (tests of time and of the contract).

use super::recovery::DUP_THRESH;
use super::{Connection, Event};
use crate::facts::Facts;
use crate::statistics::RepairMode;
use cede_cc::{Feedback, PacketFact};
use cede_units::{Duration, Instant, Seq32};
use cede_wire::tcp::{Flags, Segment, Timestamps};

/// The sender's state before an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    una: u64,
    mode: RepairMode,
    flight_bytes: u64,
    in_flight_bytes: u64,
    limited_bytes: u64,
}

/// What an acknowledgement says of time, and of marks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    ce_marked: u32,
    rtt: Option<Duration>,
    one_way_delay_ns: Option<i64>,
    reverse_delay_ns: Option<i64>,
}

impl Connection {
    /// The stream offset of our sequence number `seq`; negative below the first octet.
    pub(super) fn our_offset(&self, seq: Seq32) -> i64 {
        let una = self.board.una();
        una as i64 + i64::from(seq.offset_from(self.seq(una)))
    }

    pub(super) fn on_ack(&mut self, now: Instant, segment: &Segment, is_pure: bool) {
        let ack = self.our_offset(segment.ack);
        if ack > self.board.next() as i64 {
            self.acks.on_immediate();
            return;
        }
        self.take_report(segment);
        if ack < self.board.una() as i64 {
            return;
        }
        let moved_window = self.update_peer_window(ack as u64, segment.window);
        let is_same = is_pure && !moved_window;
        if self.board.is_empty() {
            return self.settle_tail_probe(is_same);
        }
        let before = self.before();
        let mut acked = Facts::in_buffer(core::mem::take(&mut self.scratch.acked));
        let advanced = self.board.acknowledge(ack as u64, &mut acked);
        let sacked = if self.peer.sack { self.take_blocks(segment, &mut acked) } else { 0 };
        if advanced {
            self.repair_on_advance(ack as u64 - before.una, self.echoes_original(segment));
        } else if self.is_duplicate(segment, is_same, sacked) {
            self.repair_on_duplicate();
        }
        if let Some(rack) = &mut self.rack {
            rack.on_delivered(now, &acked);
            self.settle_tail_probe(is_same && !advanced && sacked == 0);
        }
        self.look_for_losses(now);
        self.digest(now, segment, (&before, &acked), advanced);
        self.scratch.acked = acked.into_buffer();
        if self.rack.is_some() && (advanced || sacked > 0) {
            self.plan_tail_probe(now);
        }
    }

    pub(super) fn before(&mut self) -> Before {
        self.scratch.lost.clear();
        Before {
            una: self.board.una(),
            mode: self.repair.mode,
            flight_bytes: self.board.flight_bytes(),
            in_flight_bytes: self.in_flight_bytes(),
            limited_bytes: self.repair.limited_bytes,
        }
    }

    /// Takes in the window; answers whether the field changed. The edge never moves back: what was promised holds.
    fn update_peer_window(&mut self, ack: u64, field: u16) -> bool {
        let was_closed = self.is_peer_window_closed();
        let end = ack + (u64::from(field) << self.peer.window_shift);
        self.peer.window_end = self.peer.window_end.max(end);
        if was_closed {
            // The peer answers: it is alive, however long its window stays closed.
            self.timers.retries = 0;
            // An octet that probed the closed window was refused and is to go again at once.
            self.repair.resend_first |= !self.is_peer_window_closed() && !self.board.is_empty();
        }
        self.timers.probe = Instant::NEVER;
        core::mem::replace(&mut self.peer.window_raw, field) != field
    }

    /// RFC 6675: something was SACKed that was not before. RFC 5681: outstanding data, no payload, no SYN or FIN, the
    /// same acknowledgement and window. Answers to probes of a closed window are neither.
    fn is_duplicate(&self, segment: &Segment, is_same: bool, sacked: u32) -> bool {
        if self.is_peer_window_closed() {
            return false;
        }
        if self.peer.sack { sacked > 0 } else { is_same && !segment.flags.has(Flags::FIN) }
    }

    /// Takes in the SACK blocks by rising offset, so that facts come by rising number; answers how many segments are
    /// newly SACKed.
    fn take_blocks(&mut self, segment: &Segment, acked: &mut Facts) -> u32 {
        let blocks = segment.options.sack.as_slice();
        if blocks.is_empty() {
            return 0;
        }
        let mut offsets = [(i64::MAX, i64::MAX); 4];
        for (offset, &(start, end)) in offsets.iter_mut().zip(blocks) {
            *offset = (self.our_offset(start), self.our_offset(end));
        }
        offsets.sort_unstable();
        let within = offsets.iter().filter(|&&(start, end)| start >= 0 && end < i64::MAX);
        within.map(|&(start, end)| self.board.sack(start as u64, end as u64, acked)).sum()
    }

    /// Draws the consequences of an acknowledgement once its facts are sorted out.
    fn digest(
        &mut self,
        now: Instant,
        segment: &Segment,
        (before, acked): (&Before, &Facts),
        advanced: bool,
    ) {
        let times = self.measure(now, segment.options.timestamps, acked, advanced);
        if !acked.is_empty() || !self.scratch.lost.is_empty() {
            let ce_marked = self.on_echo(segment, acked);
            self.tell_controller(now, (before, acked), &Times { ce_marked, ..times }, advanced);
        }
        if advanced {
            self.after_advance(now);
        }
    }

    fn measure(&mut self, now: Instant, stamps: Option<Timestamps>, acked: &Facts, advanced: bool) -> Times {
        // Only an acknowledgement that advances echoes the segment that caused it (RFC 7323, section 4.1).
        let stamps = stamps.filter(|_| advanced && self.peer.timestamps);
        let mut times = Times { rtt: self.sample_rtt(now, stamps, acked), ..Times::default() };
        if let Some(Timestamps { value, echo }) = stamps {
            let ours = self.clock.ticks(now);
            times.one_way_delay_ns = Some(self.forward_delay.delay_ns(&self.clock, value, echo));
            times.reverse_delay_ns = Some(self.reverse_delay.delay_ns(&self.clock, ours, value));
        }
        times
    }

    fn sample_rtt(
        &mut self,
        now: Instant,
        stamps: Option<Timestamps>,
        acked: &[PacketFact],
    ) -> Option<Duration> {
        let (oldest, newest) = (acked.first()?, acked.last()?);
        let (slow, fast) = if acked.iter().any(|fact| fact.retransmitted) {
            let echo = stamps?.echo;
            let echoed = self.clock.between(echo, self.clock.ticks(now))?;
            let departures = acked.iter().map(|fact| fact.sent_at);
            // The first of a tick: the sample may be long by what is left of it, and is never short.
            let departure = departures.filter(|&at| self.clock.ticks(at) == echo).min();
            (echoed, departure.map(|at| now.since(at)))
        } else {
            (now.since(oldest.sent_at), Some(now.since(newest.sent_at)))
        };
        let end_of_round = self.board.una() >= self.rtt_round_end;
        if end_of_round {
            self.rtt_round_end = self.board.next();
        }
        self.rtt.sample(slow, end_of_round);
        fast
    }

    pub(super) fn tell_controller(
        &mut self,
        now: Instant,
        (before, acked): (&Before, &Facts),
        times: &Times,
        advanced: bool,
    ) {
        let lost = &self.scratch.lost;
        let bytes = |facts: &[PacketFact]| facts.iter().map(|fact| u64::from(fact.bytes)).sum();
        let (acked_bytes, lost_bytes) = (bytes(acked), bytes(lost));
        acked.iter().for_each(|fact| self.delivery.on_delivered(now, fact));
        self.statistics.delivered_bytes += acked_bytes;
        self.statistics.losses += lost.len() as u64;
        let was_repairing = before.mode == RepairMode::Recovery;
        let allowance = self.controller.on_feedback(&Feedback {
            now,
            acked,
            lost,
            acked_bytes,
            lost_bytes,
            in_flight_before_bytes: if lost.is_empty() || was_repairing {
                before.in_flight_bytes
            } else {
                // FlightSize, as RFC 5681 section 3.2 wants it for ssthresh.
                before.flight_bytes.saturating_sub(before.limited_bytes)
            },
            in_flight_bytes: self.in_flight_bytes(),
            delivered_bytes: self.delivery.delivered_bytes(),
            next_number: self.board.next_number(),
            rtt: times.rtt,
            rtt_min: times.rtt,
            srtt: self.rtt.smoothed(),
            one_way_delay_ns: times.one_way_delay_ns,
            reverse_delay_ns: times.reverse_delay_ns,
            ce_marked: times.ce_marked,
            app_limited: self.is_limited_elsewhere(),
            in_recovery: self.holds_window(was_repairing, advanced),
        });
        let prior_bytes = self.allowance.cwnd_bytes;
        self.adopt(allowance);
        self.lift_window_cap();
        // As in Linux, a controller that sets the rate itself decides alone what leaves in a repair.
        let is_window_based = allowance.pacing_rate.is_none();
        let reduces = (self.config.prr || self.config.rate_halving) && self.peer.sack;
        if self.repair.mode == RepairMode::Recovery && reduces && is_window_based {
            let is_progress = advanced && self.scratch.lost.is_empty();
            self.reduce((!was_repairing).then_some(prior_bytes), acked_bytes, is_progress);
        }
    }

    /// Loss-based windows hold still during a repair, and while acknowledgements do not advance: only those that
    /// acknowledge new data cumulatively raise a window (RFC 5681, section 3.1). Where segments are late by more than three,
    /// most of them are acknowledged selectively first, and count as they do in Linux (`tcp_may_raise_cwnd`).
    fn holds_window(&self, was_repairing: bool, advanced: bool) -> bool {
        match self.repair.mode {
            RepairMode::Recovery => was_repairing,
            RepairMode::Open | RepairMode::Loss => {
                !advanced && self.rack.as_ref().is_none_or(|rack| rack.reordering.degree() <= DUP_THRESH)
            }
        }
    }

    /// SND.UNA advanced: timers, room for the writer, the end.
    fn after_advance(&mut self, now: Instant) {
        self.timers.retries = 0;
        if self.board.is_empty() {
            self.timers.rto = Instant::NEVER;
            if self.fin_sent {
                self.on_fin_acknowledged(now);
            }
        } else if self.repair.restarts_timer(self.peer.sack) {
            self.timers.rto = now + self.rtt.rto();
        }
        self.note_partial_ack();
        if self.write_blocked {
            self.note_writable();
        }
    }

    /// A writer that was cut short hears of room once there is a quarter of the buffer, or little left to send.
    fn note_writable(&mut self) {
        let (room, segment) = (self.write_room(), self.board.mss_bytes());
        let scarce = self.buffer.len() <= 16 * u64::from(segment) && room >= segment;
        if scarce || room >= self.config.send_buffer_bytes / 4 {
            self.write_blocked = false;
            self.events.push(Event::Writable);
        }
    }
}
