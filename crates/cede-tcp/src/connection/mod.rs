//! One end of a TCP connection: its state and its public face. The rooms behind it: handshake, receive, acknowledge,
//! recovery, undo, send, usage, timers, close.

mod acknowledge;
mod blocks;
mod by_time;
mod close;
mod ecn;
mod event;
mod handshake;
mod prr;
mod receive;
mod recovery;
mod send;
mod timers;
mod undo;
mod usage;

use crate::buffer::SendBuffer;
use crate::clock::{DelayUnwrapper, TimestampClock};
use crate::config::Config;
use crate::delayed_ack::AckScheduler;
use crate::rack::Rack;
use crate::reassembly::Reassembly;
use crate::rtt::RetransmissionTimeout;
use crate::scoreboard::Scoreboard;
use crate::statistics::{Snapshot, Statistics};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cede_cc::instruments::{DeliveryRate, Pacer, TimerGuard};
use cede_cc::{Allowance, Controller, PacketFact};
use cede_units::{Instant, Seq32};
use cede_wire::{Ecn, Payload, Transmit};
use ecn::Marks;
use event::Events;
pub use event::{AcceptError, Event, Failure, WriteError};
use handshake::{Handshake, Peer};
use receive::{RecentStamp, Tuning};
use recovery::Repair;
pub use timers::TimeoutReason;
use timers::Timers;
use undo::Undo;
use usage::Usage;

/// The two ports of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ports {
    /// Ours.
    pub local: u16,
    /// The peer's.
    pub remote: u16,
}

/// The states of RFC 9293, section 3.3.2; listening is the host's business.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// SYN sent or about to be.
    SynSent,
    /// SYN received, SYN and ACK sent or about to be.
    SynReceived,
    /// Open both ways.
    Established,
    /// We have closed, the peer has acknowledged neither that nor closed.
    FinWait1,
    /// We have closed and the peer knows; its direction is open.
    FinWait2,
    /// The peer has closed; our direction is open.
    CloseWait,
    /// Both have closed, ours is not acknowledged.
    Closing,
    /// Both have closed, the peer first, ours is not acknowledged.
    LastAck,
    /// Both directions are closed; late segments are answered.
    TimeWait,
    /// Nothing is left.
    Closed,
}

impl State {
    /// The handshake is over, and data or FIN may be sent or be awaiting acknowledgement.
    const fn may_send(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck)
    }
}

/// What kept the sender from sending more when it was last asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Limit {
    /// Nothing to send.
    Application,
    /// The congestion window, or its pacing.
    Window,
    /// The transport's own cap on it.
    Cap,
    /// The peer's window.
    PeerWindow,
}

/// What acknowledgements bring, reused from one to the next.
#[derive(Debug)]
struct Scratch {
    acked: Vec<PacketFact>,
    lost: Vec<PacketFact>,
}

/// One end of a TCP connection. See the [crate's front page](crate) for how to drive it.
pub struct Connection {
    config: Config,
    ports: Ports,
    state: State,
    handshake: Handshake,
    peer: Peer,
    events: Events,
    statistics: Statistics,
    scratch: Scratch,
    timers: Timers,
    clock: TimestampClock,

    controller: Box<dyn Controller>,
    allowance: Allowance,
    controller_timer: Option<Instant>,
    timer_guard: TimerGuard,

    isn: Seq32,
    buffer: SendBuffer,
    board: Scoreboard,
    repair: Repair,
    undo: Undo,
    /// Finds losses by time.
    rack: Option<Box<Rack>>,
    rtt: RetransmissionTimeout,
    /// The stream offset whose acknowledgement ends a round of the estimator.
    rtt_round_end: u64,
    pacer: Pacer,
    /// When data left last.
    last_data_sent_at: Option<Instant>,
    delivery: DeliveryRate,
    forward_delay: DelayUnwrapper,
    limit: Limit,
    usage: Usage,
    /// Nothing is outstanding, nothing waits, and whoever is to know does: until the next write, the sender's side need not be
    /// looked at.
    at_rest: bool,
    marks: Marks,
    write_blocked: bool,
    fin_wanted: bool,
    fin_sent: bool,
    reset_due: bool,

    reassembly: Reassembly,
    tuning: Option<Tuning>,
    acks: AckScheduler,
    recent_stamp: RecentStamp,
    reverse_delay: DelayUnwrapper,
    /// The stream offset up to which the peer may send, as last advertised.
    window_edge: u64,
    /// The stream offset last acknowledged.
    last_ack_sent: u64,
    /// The stream offset of the peer's FIN, once seen.
    peer_fin_at: Option<u64>,
    peer_finished: bool,
}

impl Connection {
    /// Takes in a segment for this connection, and what it carries. Segments for other ports are ignored.
    pub fn handle(&mut self, now: Instant, segment: &crate::Segment, payload: Payload) {
        self.handle_with_ecn(now, segment, payload, Ecn::NotEct);
    }

    /// [`Self::handle`] of a segment whose IP header had this codepoint.
    pub fn handle_with_ecn(&mut self, now: Instant, segment: &crate::Segment, payload: Payload, ecn: Ecn) {
        if (segment.src_port, segment.dst_port) != (self.ports.remote, self.ports.local) {
            return;
        }
        self.statistics.segments_received += 1;
        match self.state {
            State::Closed => {}
            State::SynSent => self.handle_in_syn_sent(now, segment),
            State::SynReceived => self.handle_in_syn_received(now, segment, payload),
            _ => self.handle_synchronised(now, segment, payload, ecn),
        }
    }

    /// The next segment to send; none when nothing may be sent now. Its head is the TCP header with options, to which
    /// the network adds 20 octets for IPv4 or 40 for IPv6.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        // Asked after each packet that left, and mostly in vain where only acknowledgements leave.
        if self.at_rest && !self.reset_due && !self.acks.owes() {
            return None;
        }
        self.transmit(now)
    }

    fn transmit(&mut self, now: Instant) -> Option<Transmit> {
        let transmit = self.next_transmit(now)?;
        self.statistics.segments_sent += 1;
        Some(transmit)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Appends `payload` to the stream, and answers how many of its octets were accepted: the first ones, as far as
    /// the send buffer has room. [`Event::Writable`] follows a write that was cut short. Data may be written before
    /// the connection is established.
    ///
    /// # Errors
    /// [`WriteError`] once the connection has been closed on this side or has failed.
    pub fn write(&mut self, mut payload: Payload) -> Result<u32, WriteError> {
        if self.fin_wanted || self.reset_due || self.state == State::Closed {
            return Err(WriteError::Closed);
        }
        let len = payload.len();
        let accepted = payload.split_to(len.min(self.write_room()));
        let count = accepted.len();
        self.write_blocked = count < len;
        self.at_rest &= count == 0;
        self.buffer.push(accepted);
        Ok(count)
    }

    /// [`Self::write`] of a copy of `octets`.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_slice(&mut self, octets: &[u8]) -> Result<u32, WriteError> {
        self.write(Payload::copy_from(octets))
    }

    /// How many octets [`Self::write`] would accept.
    #[must_use]
    pub fn write_room(&self) -> u32 {
        let used = self.buffer.len() + self.board.flight_bytes();
        u64::from(self.config.send_buffer_bytes).saturating_sub(used) as u32
    }

    /// The next octets of the peer's stream, as many as lie together; none where no more has arrived.
    pub fn read(&mut self) -> Option<Payload> {
        let payload = self.reassembly.read()?;
        self.offer_window();
        Some(payload)
    }

    /// The next octets of the peer's stream, at most `n`.
    pub fn read_up_to(&mut self, n: u32) -> Option<Payload> {
        let payload = self.reassembly.read_up_to(n)?;
        self.offer_window();
        Some(payload)
    }

    /// Copies the next octets of the peer's stream into `out` and answers how many.
    pub fn read_slice(&mut self, out: &mut [u8]) -> usize {
        let mut count = 0;
        while count < out.len() {
            let room = u32::try_from(out.len() - count).unwrap_or(u32::MAX);
            let Some(payload) = self.reassembly.read_up_to(room) else { break };
            count += payload.copy_to(&mut out[count..]);
        }
        self.offer_window();
        count
    }

    /// The smoothed state, for records. It asks the controller and may allocate.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            state: self.state,
            repair: self.repair.mode,
            window_bytes: self.window_bytes(),
            peer_window_bytes: self.peer.window_end.saturating_sub(self.board.una()),
            flight_bytes: self.board.flight_bytes(),
            pipe_bytes: self.board.pipe_bytes(),
            unsent_bytes: self.buffer.len(),
            srtt: self.rtt.smoothed(),
            rttvar: self.rtt.variation(),
            rto: self.rtt.rto(),
            mss_bytes: self.board.mss_bytes(),
            controller: self.controller.snapshot(),
        }
    }

    /// The smoothed round-trip time, once there is a sample (RFC 6298).
    #[must_use]
    pub fn smoothed_rtt(&self) -> Option<cede_units::Duration> {
        Some(self.rtt.smoothed()).filter(|rtt| !rtt.is_zero())
    }

    /// Counts since the connection began.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The two ports.
    #[must_use]
    pub const fn ports(&self) -> Ports {
        self.ports
    }

    /// The state of RFC 9293.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The parameters.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The congestion controller.
    #[must_use]
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// Everything written has been sent and acknowledged, FIN included where [`Self::close`] was called.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.buffer.is_empty() && self.board.is_empty() && self.fin_wanted == self.fin_sent
    }

    /// Nothing is left to do: the host may drop the connection.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed && !self.reset_due
    }

    /// There has been nothing to send, and nothing to be acknowledged, since the last call of [`Self::poll_transmit`] that
    /// answered so.
    #[must_use]
    pub const fn is_at_rest(&self) -> bool {
        self.at_rest
    }

    /// Takes in a new allowance, and when the controller wants to be called.
    fn adopt(&mut self, allowance: Allowance) {
        self.allowance = allowance;
        self.pacer.set(&allowance);
        self.controller_timer = self.controller.timer();
    }
}

impl core::fmt::Debug for Connection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Connection")
            .field("ports", &self.ports)
            .field("state", &self.state)
            .field("controller", &self.controller.name())
            .field("statistics", &self.statistics)
            .finish_non_exhaustive()
    }
}
