//! A peer whose program is gone without a word: killed, or its machine begun anew.
//!
//! Source: RFC 792 and RFC 4443 (nobody has the port); RFC 5927 sections 4 and 5 for what to believe, by which one such complaint
//! ends nothing that is up. TCP's kernel would say FIN or RESET for a program that is gone; nobody says it for uTP, and what is under way
//! runs into its timeouts. Who only reads has nothing under way: to its keepalives alone nobody answers, or the peer's system complains.
//! So it is asked again after a second, two and four more, and after as many complaints, with no word of the peer between them, it is gone.
//! libutp ends a connection at the first.
//!
//! **What it leaves out.** A machine that is switched off, and paths that carry no ICMP: nothing tells these from silence.
//!
//! **How it was validated.** `tests/keepalives.rs`; with the kernel's complaints, `tests/icmp.rs` of `cede-real`.

use super::{Connection, State};
use crate::event::ConnectionError;
use crate::timers::Timer;
use cede_units::{Duration, Instant, Seq16};

/// Complaints in a row that make a peer gone.
const COMPLAINTS: u8 = 4;
/// Before the first question; each pause is twice the one before. Systems complain once a second at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

impl Connection {
    /// The host learnt (ICMP) that nobody had the peer's port when a packet of this connection with this number came there. Only of a
    /// keepalive, or another STATE, of a connection that has nothing under way it counts; says whether it did.
    pub fn nobody_there(&mut self, now: Instant, seq: Seq16) -> bool {
        let counts = self.has_nothing_under_way() && seq == self.next_seq();
        if counts {
            self.peer.complaints += 1;
            match self.peer.complaints {
                COMPLAINTS.. => self.end(Some(ConnectionError::Reset)),
                before => self.timers.set(Timer::Keepalive, now + FIRST_PAUSE * (1 << (before - 1))),
            }
        }
        counts
    }

    /// Another connection has found the peer gone: asks once, at once, and believes the first complaint.
    pub(crate) fn ask_whether_gone(&mut self, now: Instant) {
        if self.has_nothing_under_way() {
            self.peer.complaints = COMPLAINTS - 1;
            self.timers.set(Timer::Keepalive, now);
        }
    }

    /// Who has closed waits for the peer's end no longer than it wants to anyway.
    fn has_nothing_under_way(&self) -> bool {
        let is_up = matches!(self.state, State::Established { .. }) && !self.sending.closing;
        is_up && self.sending.in_flight_packets == 0
    }

    /// Whether the peer is asked sooner than silence would have it.
    pub(super) const fn doubts_peer(&self) -> bool {
        self.peer.complaints > 0
    }

    /// A word of the peer.
    #[inline]
    pub(super) const fn heard_of_peer(&mut self) {
        self.peer.complaints = 0;
    }
}
