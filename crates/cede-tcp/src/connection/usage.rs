//! Whether it is the window that limits a sender, by what whole flights made of it.
//!
//! Source: Linux since 3.16 (`tcp_cwnd_validate`, `tcp_is_cwnd_limited`; the problem is that of RFC 7661). A sender that has filled its
//! window once counts as limited by it until all that was outstanding then is acknowledged, also where there is nothing to
//! send meanwhile; in slow start one whose largest flight fills more than half of it does as well. So who answers requests of a few
//! segments each, as peers of a swarm do, comes to windows that it seldom fills, and sends them in one burst when it can.
//!
//! **What it leaves out.** A window that has not been filled for longer than a timeout does not shrink
//! (`tcp_cwnd_application_limited`); in windows of ten segments and less it would not in Linux either.
//!
//! **How it was validated.** `tests/usage.rs`; segments lost in swarms beside those of the kernel's TCP
//! (`docs/swarms.md`).

use super::{Connection, Limit};
use cede_cc::Phase;

/// What the last flight made of the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// It was filled.
    filled: bool,
    /// The most octets that were outstanding, as far as it was not.
    most_bytes: u64,
    /// This is what is known until that much of the stream is acknowledged.
    until: u64,
}

impl Usage {
    /// What it has come to: `outstanding` octets up to `next`, all from `una` on.
    fn note(&mut self, filled: bool, outstanding: u64, (una, next): (u64, u64)) {
        if una >= self.until || filled || (!self.filled && outstanding > self.most_bytes) {
            *self = Self { filled, most_bytes: outstanding, until: next };
        }
    }
}

impl Connection {
    /// New data has left.
    pub(super) fn note_usage(&mut self) {
        if self.config.usage_by_flight {
            let one_more = self.under_way_bytes() + u64::from(self.board.mss_bytes());
            self.note_flight(one_more > self.window_bytes());
        }
    }

    /// The window lets nothing more leave.
    pub(super) fn note_full_window(&mut self) {
        if self.config.usage_by_flight && self.limit == Limit::Window {
            self.note_flight(true);
        }
    }

    fn note_flight(&mut self, filled: bool) {
        let ends = (self.board.una(), self.board.next());
        self.usage.note(filled, self.board.flight_bytes(), ends);
    }

    /// Something else than the window limits what is under way.
    pub(super) fn is_limited_elsewhere(&self) -> bool {
        if !self.config.usage_by_flight {
            return self.limit != Limit::Window;
        }
        let Usage { filled, most_bytes, .. } = self.usage;
        let in_slow_start = || self.controller.snapshot().phase == Phase::SlowStart;
        let is_enough = filled || self.window_bytes() < 2 * most_bytes && in_slow_start();
        !is_enough
    }
}
