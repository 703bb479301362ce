//! Opening a connection.
//!
//! Source: RFC 9293 section 3.5 and 3.10.7.3, RFC 6691 (MSS), RFC 7323 sections 2 and 3, RFC 2018 section 2.
//!
//! **What it leaves out.** Simultaneous open and data on SYN: a SYN without ACK in answer to ours is ignored.
//!
//! **How it was validated.** Lost SYNs, refusal, a silent peer, options that one side alone offers, a smaller MSS (tests of
//! life).

use super::ecn::Marks;
use super::event::Events;
use super::receive::{RecentStamp, Tuning};
use super::recovery::Repair;
use super::timers::Timers;
use super::undo::Undo;
use super::usage::Usage;
use super::{AcceptError, Connection, Event, Failure, Limit, Ports, Scratch, State};
use crate::buffer::SendBuffer;
use crate::clock::{DelayUnwrapper, TimestampClock};
use crate::config::{Config, segment_payload_bytes};
use crate::delayed_ack::AckScheduler;
use crate::rack::Rack;
use crate::reassembly::Reassembly;
use crate::rtt::RetransmissionTimeout;
use crate::scoreboard::Scoreboard;
use crate::statistics::Statistics;
use alloc::boxed::Box;
use alloc::vec::Vec;
use cede_cc::Controller;
use cede_cc::instruments::{DeliveryRate, Pacer, TimerGuard};
use cede_units::{Instant, Seq32, Stream};
use cede_wire::tcp::{Flags, Options, SackBlocks, Segment, Timestamps};
use cede_wire::{Ecn, Payload, Transmit};

/// RFC 9293, section 3.7.1: assumed where the peer names none.
const MSS_DEFAULT_BYTES: u16 = 536;
/// RFC 7323, section 2.3.
const WINDOW_SHIFT_MAX: u8 = 14;

/// How far the handshake is.
#[derive(Clone, Debug)]
pub(super) struct Handshake {
    /// Our SYN is to be sent.
    due: bool,
    /// When it left first.
    sent_at: Option<Instant>,
    /// It left more than once.
    resent: bool,
}

/// What the peer said of itself.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// The number of its SYN.
    pub(super) irs: Seq32,
    /// The options in force on both sides.
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    /// It named a window scale.
    scaling: bool,
    /// The shift of its window, and that of ours.
    pub(super) window_shift: u8,
    pub(super) our_shift: u8,
    /// The stream offset up to which we may send.
    pub(super) window_end: u64,
    /// The window as it stood in the last header.
    pub(super) window_raw: u16,
}

impl Connection {
    /// A connection that begins by sending SYN. `controller` should have been built for [`Config::path`]; `random`
    /// gives the initial sequence number and the timestamp clock's offset.
    #[must_use]
    pub fn connect(
        config: Config,
        controller: Box<dyn Controller>,
        ports: Ports,
        random: &mut Stream,
    ) -> Self {
        Self::new(config, controller, ports, State::SynSent, random)
    }

    /// A connection that answers `syn`, which arrived at `now`.
    ///
    /// # Errors
    /// [`AcceptError`] where `syn` is not a first SYN.
    pub fn accept(
        now: Instant,
        config: Config,
        controller: Box<dyn Controller>,
        syn: &Segment,
        random: &mut Stream,
    ) -> Result<Self, AcceptError> {
        if !syn.flags.has(Flags::SYN) || syn.flags.0 & (Flags::ACK.0 | Flags::RST.0 | Flags::FIN.0) != 0 {
            return Err(AcceptError::NotSyn);
        }
        let ports = Ports { local: syn.dst_port, remote: syn.src_port };
        let mut connection = Self::new(config, controller, ports, State::SynReceived, random);
        connection.statistics.segments_received = 1;
        connection.learn_peer(now, syn);
        Ok(connection)
    }

    fn new(
        config: Config,
        controller: Box<dyn Controller>,
        ports: Ports,
        state: State,
        random: &mut Stream,
    ) -> Self {
        let isn = Seq32(random.next_u32());
        // Drawn whether it is used or not: what else comes from this stream stays the same.
        let drawn = random.next_u32();
        let offset = if config.timestamp_random { drawn } else { 0 };
        let clock = TimestampClock::new(config.timestamp_granularity, offset);
        let (allowance, mut pacer) = (controller.allowance(), Pacer::new());
        pacer.set(&allowance);
        Self {
            ports,
            state,
            handshake: Handshake { due: true, sent_at: None, resent: false },
            peer: Peer::unknown(),
            events: Events::default(),
            statistics: Statistics::default(),
            scratch: Scratch { acked: Vec::new(), lost: Vec::new() },
            timers: Timers::default(),
            clock,
            allowance,
            controller_timer: controller.timer(),
            timer_guard: TimerGuard::default(),
            controller,
            isn,
            buffer: SendBuffer::default(),
            board: Scoreboard::new(config.payload_bytes()),
            repair: Repair::default(),
            undo: Undo::default(),
            rack: config.rack.then(|| Box::new(Rack::new())),
            rtt: RetransmissionTimeout::new(&config),
            rtt_round_end: 0,
            pacer,
            last_data_sent_at: None,
            delivery: DeliveryRate::new(),
            forward_delay: DelayUnwrapper::default(),
            limit: Limit::Application,
            usage: Usage::default(),
            at_rest: false,
            marks: Marks::default(),
            write_blocked: false,
            fin_wanted: false,
            fin_sent: false,
            reset_due: false,
            reassembly: Reassembly::new(),
            tuning: config.receive_tuning.then(|| Tuning::new(config.payload_bytes())),
            acks: AckScheduler::new(config.ack_policy),
            recent_stamp: RecentStamp::default(),
            reverse_delay: DelayUnwrapper::default(),
            window_edge: u64::from(config.receive_window_bytes.min(0xffff)),
            last_ack_sent: 0,
            peer_fin_at: None,
            peer_finished: false,
            config,
        }
    }

    /// SYN, or SYN and ACK, where it is due.
    pub(super) fn transmit_syn(&mut self, now: Instant) -> Option<Transmit> {
        if !core::mem::take(&mut self.handshake.due) {
            return None;
        }
        self.handshake.resent |= self.handshake.sent_at.is_some();
        self.handshake.sent_at = Some(now);
        self.timers.rto = now + self.rtt.rto();
        let segment = self.syn_segment(now);
        Some(Transmit {
            head: segment.encode(),
            payload: Payload::Empty,
            dont_fragment: false,
            may_fragment: false,
            ecn: Ecn::NotEct,
        })
    }

    /// What is offered in a SYN; in the answer to one, what the peer offered too.
    fn syn_segment(&self, now: Instant) -> Segment {
        let answer = self.state == State::SynReceived;
        let (config, peer) = (&self.config, &self.peer);
        let stamps = Timestamps { value: self.clock.ticks(now), echo: self.recent_stamp.value() };
        Segment {
            src_port: self.ports.local,
            dst_port: self.ports.remote,
            seq: self.isn,
            ack: if answer { peer.irs.add(1) } else { Seq32(0) },
            flags: if answer { Flags::SYN.with(Flags::ACK) } else { Flags::SYN }
                .with(self.ecn_of_syn(answer)),
            // The window of a SYN is never scaled (RFC 7323, section 2.2).
            window: config.receive_window_bytes.min(0xffff) as u16,
            options: Options {
                mss: Some(config.mss_bytes),
                window_scale: peer.scaled(answer).then(|| config.window_shift()),
                sack_permitted: if answer { peer.sack } else { config.sack },
                timestamps: (if answer { peer.timestamps } else { config.timestamps }).then_some(stamps),
                sack: SackBlocks::NONE,
            },
        }
    }

    /// Takes over what the peer's SYN says.
    fn learn_peer(&mut self, now: Instant, syn: &Segment) {
        self.negotiate_ecn(syn);
        let options = &syn.options;
        let peer = &mut self.peer;
        peer.irs = syn.seq;
        peer.sack = self.config.sack && options.sack_permitted;
        self.rack = self.rack.take().filter(|_| peer.sack);
        peer.timestamps = self.config.timestamps && options.timestamps.is_some();
        if let Some(shift) = options.window_scale {
            peer.window_shift = shift.min(WINDOW_SHIFT_MAX);
            peer.our_shift = self.config.window_shift();
        }
        peer.scaling = options.window_scale.is_some();
        peer.window_end = u64::from(syn.window);
        peer.window_raw = syn.window;
        if let (true, Some(stamps)) = (peer.timestamps, options.timestamps) {
            self.recent_stamp.set(now, stamps.value);
        }
        self.settle_mss(options.mss.unwrap_or(MSS_DEFAULT_BYTES));
    }

    /// The smaller of the two MSS counts; the controller hears of it where it differs from what was expected.
    fn settle_mss(&mut self, peer_mss_bytes: u16) {
        let mss_bytes =
            segment_payload_bytes(peer_mss_bytes.min(self.config.mss_bytes), self.peer.timestamps);
        if mss_bytes != self.board.mss_bytes() {
            self.board.set_mss_bytes(mss_bytes);
            let allowance = self.controller.on_mss(mss_bytes);
            self.adopt(allowance);
        }
    }

    /// We sent SYN (RFC 9293, section 3.10.7.3).
    pub(super) fn handle_in_syn_sent(&mut self, now: Instant, segment: &Segment) {
        let acknowledges = segment.flags.has(Flags::ACK) && segment.ack == self.isn.add(1);
        if !acknowledges {
            return;
        }
        if segment.flags.has(Flags::RST) {
            self.fail(Failure::Refused);
        } else if segment.flags.has(Flags::SYN) {
            self.learn_peer(now, segment);
            self.acks.on_immediate();
            self.establish(now);
        }
    }

    /// We answered a SYN.
    pub(super) fn handle_in_syn_received(&mut self, now: Instant, segment: &Segment, payload: Payload) {
        if segment.flags.has(Flags::RST) {
            if segment.seq == self.peer.irs.add(1) {
                self.fail(Failure::Reset);
            }
        } else if segment.flags.has(Flags::SYN) {
            // Our answer was lost, or is late.
            self.handshake.due |= segment.seq == self.peer.irs;
        } else if segment.flags.has(Flags::ACK) && segment.ack == self.isn.add(1) {
            self.establish(now);
            self.handle_synchronised(now, segment, payload, Ecn::NotEct);
        }
    }

    fn establish(&mut self, now: Instant) {
        self.state = State::Established;
        self.handshake.due = false;
        self.timers.rto = Instant::NEVER;
        self.timers.retries = 0;
        match self.handshake.sent_at {
            // Karn: an answer to a SYN sent twice says nothing of the RTT.
            Some(sent_at) if !self.handshake.resent => self.rtt.sample(now.since(sent_at), false),
            _ => self.begin_cautiously(),
        }
        self.events.push(Event::Connected);
    }

    /// RFC 5681, section 3.1: after a lost SYN the initial window is one segment.
    fn begin_cautiously(&mut self) {
        self.rtt.syn_was_lost();
        self.repair.window_cap = Some(u64::from(self.board.mss_bytes()));
    }

    /// The timer ran out before the handshake was complete.
    pub(super) fn on_handshake_timeout(&mut self) {
        self.timers.rto = Instant::NEVER;
        self.timers.retries += 1;
        if self.timers.retries > self.config.syn_retries_max {
            self.fail(Failure::TimedOut);
            return;
        }
        self.rtt.back_off();
        self.handshake.due = true;
    }

    /// The answer to a segment for which there is no connection (RFC 9293, section 3.10.7.1): a RST, none for a RST.
    #[must_use]
    pub fn refuse(segment: &Segment, payload_bytes: u32) -> Option<Transmit> {
        if segment.flags.has(Flags::RST) {
            return None;
        }
        let counted = payload_bytes
            + u32::from(segment.flags.has(Flags::SYN))
            + u32::from(segment.flags.has(Flags::FIN));
        let acknowledged = segment.flags.has(Flags::ACK);
        let reset = Segment {
            src_port: segment.dst_port,
            dst_port: segment.src_port,
            seq: if acknowledged { segment.ack } else { Seq32(0) },
            ack: if acknowledged { Seq32(0) } else { segment.seq.add(counted) },
            flags: if acknowledged { Flags::RST } else { Flags::RST.with(Flags::ACK) },
            window: 0,
            options: Options::default(),
        };
        Some(Transmit {
            head: reset.encode(),
            payload: Payload::Empty,
            dont_fragment: false,
            may_fragment: false,
            ecn: Ecn::NotEct,
        })
    }
}

impl Peer {
    const fn unknown() -> Self {
        Self {
            irs: Seq32(0),
            sack: false,
            timestamps: false,
            scaling: false,
            window_shift: 0,
            our_shift: 0,
            window_end: 0,
            window_raw: 0,
        }
    }

    /// Whether our SYN names a window scale: in an answer only where the peer's did.
    const fn scaled(&self, answer: bool) -> bool {
        !answer || self.scaling
    }
}
