//! Ending a connection.
//!
//! Source: RFC 9293 sections 3.6, 3.10.4, 3.10.5 and 3.10.7.4.
//!
//! **What it leaves out.** The standard's TIME-WAIT of four minutes (see [`crate::Config::time_wait`]); lingering.
//!
//! **How it was validated.** Closing from either side and from both at once, a lost FIN, an abort (tests of life); closing over
//! channels that lose, duplicate and reorder (tests of delivery).

use super::{Connection, Event, Failure, State};
use cede_units::Instant;
use cede_wire::tcp::{Flags, Options, Segment};
use cede_wire::{Ecn, Payload, Transmit};

impl Connection {
    /// Closes our direction once everything written has been sent. The peer's stays open until it closes it. A
    /// connection that has not been established, and to which nothing has been written, ends at once.
    pub fn close(&mut self) {
        if self.state == State::SynSent && self.buffer.is_empty() {
            self.end();
            self.events.push(Event::Closed);
        } else {
            self.fin_wanted = true;
            self.at_rest = false;
        }
    }

    /// Gives the connection up: what is not delivered is lost, and the peer gets a RST.
    pub fn abort(&mut self) {
        let informs = !matches!(self.state, State::Closed | State::TimeWait | State::SynSent);
        if self.state != State::Closed {
            self.end();
            self.events.push(Event::Closed);
        }
        self.reset_due = informs;
    }

    /// The connection is lost.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.end();
        self.events.push(Event::Failed(failure));
    }

    /// Nothing more will be sent, and no timer runs. What has arrived can still be read.
    fn end(&mut self) {
        self.state = State::Closed;
        self.timers.clear();
        self.buffer.clear();
    }

    /// Our FIN left for the first time.
    pub(super) fn on_fin_sent(&mut self) {
        self.fin_sent = true;
        self.state = match self.state {
            State::CloseWait => State::LastAck,
            _ => State::FinWait1,
        };
    }

    /// Everything sent is acknowledged, FIN included.
    pub(super) fn on_fin_acknowledged(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.wait(now),
            State::LastAck => {
                self.end();
                self.events.push(Event::Closed);
            }
            _ => {}
        }
    }

    /// The peer's FIN arrived in order.
    pub(super) fn on_peer_fin(&mut self, now: Instant) {
        self.events.push(Event::PeerFinished);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.wait(now),
            _ => {}
        }
    }

    fn wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.timers.clear();
        self.timers.time_wait = now + self.config.time_wait;
        self.events.push(Event::Closed);
    }

    /// The RST of [`Self::abort`].
    pub(super) fn transmit_reset(&mut self) -> Option<Transmit> {
        if !core::mem::take(&mut self.reset_due) {
            return None;
        }
        let reset = Segment {
            src_port: self.ports.local,
            dst_port: self.ports.remote,
            seq: self.isn.add(1).add(self.board.next() as u32),
            ack: self.ack_number(),
            flags: Flags::RST.with(Flags::ACK),
            window: 0,
            options: Options::default(),
        };
        self.board.clear();
        Some(Transmit {
            head: reset.encode(),
            payload: Payload::Empty,
            dont_fragment: false,
            may_fragment: false,
            ecn: Ecn::NotEct,
        })
    }
}
