//! News that a peer may have missed, and does not ask for: a window that has opened, a gap that is filled.
//!
//! Source: RFC 9293 section 3.8.6.1 leaves it to the sender to ask whether a window of zero still is one; libutp does, after
//! 15 s. libtorrent, librqbit and utp-rs do not: where the one STATE that tells of an open window is lost, they wait for
//! ever. It is therefore repeated, at doubled intervals, until data arrive or it has been said often enough.
//!
//! libtorrent gives a connection up, and tells nobody, where a packet that it has sent three times is not acknowledged. Two are
//! spent when a gap is filled by a retransmission, so that STATE is said once more to strangers that fall silent after it.
//!
//! **What it leaves out.** Growth of a window that was useful before: the next packet tells it.
//! **How it was validated.** `tests/peers.rs`.

use super::Connection;
use crate::timers::Timer;
use cede_units::{Duration, Instant};

/// The first pause before the news is repeated; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// So often is it repeated: for a minute in all, after which keepalives carry the window too.
const MAX_REPEATS: u8 = 6;
/// Before a gap's end is said again: libtorrent sends a packet again after half a second at the earliest.
const GAP_PAUSE: Duration = Duration::from_millis(250);

/// Where the news stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Update {
    /// The peer knows, or there is nothing to tell.
    None,
    /// It leaves with the next packet.
    Due,
    /// It has left, and has been repeated so many times.
    Sent(u8),
    /// That a gap is filled.
    GapFilled,
}

impl Connection {
    /// A packet leaves that tells the window.
    #[inline]
    pub(super) fn window_told(&mut self, now: Instant) {
        if self.receiving.update == Update::Due {
            self.receiving.update = Update::Sent(0);
            self.timers.set(Timer::WindowUpdate, now + FIRST_PAUSE);
        }
    }

    /// Data have arrived: the peer knows.
    #[inline]
    pub(super) fn window_used(&mut self) {
        if self.receiving.update != Update::None {
            self.receiving.update = Update::None;
            self.timers.stop(Timer::WindowUpdate);
        }
    }

    /// What waited beyond a gap has been delivered; one of our own kind is more patient, and hears of it anyway.
    pub(super) fn gap_filled(&mut self, now: Instant) {
        if !self.is_peer_known() {
            self.receiving.update = Update::GapFilled;
            self.timers.set(Timer::WindowUpdate, now + GAP_PAUSE);
        }
    }

    pub(super) fn on_window_update_timeout(&mut self, now: Instant) {
        let next = match self.receiving.update {
            Update::Sent(repeats) if repeats < MAX_REPEATS && !self.receiving.is_finished() => {
                self.timers.set(Timer::WindowUpdate, now + FIRST_PAUSE * (1 << (repeats + 1)));
                Update::Sent(repeats + 1)
            }
            Update::GapFilled => Update::None,
            _ => return self.receiving.update = Update::None,
        };
        self.receiving.schedule_ack();
        self.receiving.update = next;
    }
}
