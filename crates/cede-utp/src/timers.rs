//! The deadlines of a connection, one place for each reason.

use cede_units::Instant;

/// Why a connection wants to be called.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Timer {
    /// The retransmission timeout of the SYN, of the answer to it, or of packets under way.
    Retransmission,
    /// Pacing, or a window smaller than a packet, holds the next packet back.
    Pacing,
    /// An acknowledgement has waited long enough.
    DelayedAck,
    /// A window of zero is probed.
    ZeroWindow,
    /// Nothing has been sent for long.
    Keepalive,
    /// The handshake has taken too long.
    Handshake,
    /// The peer's FIN is overdue, or a finished connection has lingered long enough.
    Close,
    /// Nothing has been outstanding for a retransmission timeout.
    Idle,
    /// The path-MTU search begins anew.
    MtuSearch,
    /// The controller's own timer.
    Controller,
    /// A packet is taken for lost unless it is heard of, since one that was sent later has arrived.
    Reordering,
    /// Nothing has been heard of what is under way.
    TailProbe,
    /// The peer may not have heard that our window is open again, or that a gap is filled.
    WindowUpdate,
}

const ALL: [Timer; 13] = [
    Timer::Retransmission,
    Timer::Pacing,
    Timer::DelayedAck,
    Timer::ZeroWindow,
    Timer::Keepalive,
    Timer::Handshake,
    Timer::Close,
    Timer::Idle,
    Timer::MtuSearch,
    Timer::Controller,
    Timer::Reordering,
    Timer::TailProbe,
    Timer::WindowUpdate,
];

/// The deadlines.
#[derive(Clone, Debug)]
pub(crate) struct Timers([Instant; ALL.len()]);

impl Timers {
    pub fn new() -> Self {
        Self([Instant::NEVER; ALL.len()])
    }

    #[inline]
    pub fn set(&mut self, timer: Timer, at: Instant) {
        self.0[timer as usize] = at;
    }

    #[inline]
    pub fn stop(&mut self, timer: Timer) {
        self.0[timer as usize] = Instant::NEVER;
    }

    pub fn stop_all(&mut self) {
        *self = Self::new();
    }

    #[inline]
    pub fn at(&self, timer: Timer) -> Instant {
        self.0[timer as usize]
    }

    #[inline]
    pub fn is_set(&self, timer: Timer) -> bool {
        self.at(timer) != Instant::NEVER
    }

    /// The earliest deadline.
    #[inline]
    pub fn earliest(&self) -> Instant {
        self.0.iter().copied().fold(Instant::NEVER, Instant::min)
    }

    /// The earliest deadline but that of `timer`.
    pub fn earliest_but(&self, timer: Timer) -> Instant {
        ALL.into_iter()
            .filter(|&other| other != timer)
            .map(|other| self.at(other))
            .fold(Instant::NEVER, Instant::min)
    }

    /// The earliest deadline and its reason; of several at once, the first in the order of [`Timer`].
    pub fn earliest_with_reason(&self) -> Option<(Instant, Timer)> {
        let (at, timer) = ALL.into_iter().map(|timer| (self.at(timer), timer)).min()?;
        (at != Instant::NEVER).then_some((at, timer))
    }

    /// Stops and returns the first timer in the order of [`Timer`] that has run out.
    #[inline]
    pub fn take_expired(&mut self, now: Instant) -> Option<Timer> {
        let timer = ALL.into_iter().find(|&timer| self.at(timer) <= now)?;
        self.stop(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_in_their_order_and_once() {
        let mut timers = Timers::new();
        timers.set(Timer::Controller, Instant::from_millis(1));
        timers.set(Timer::Retransmission, Instant::from_millis(2));
        assert_eq!(timers.earliest(), Instant::from_millis(1));
        assert_eq!(timers.earliest_with_reason(), Some((Instant::from_millis(1), Timer::Controller)));
        let now = Instant::from_millis(2);
        assert_eq!(timers.take_expired(now), Some(Timer::Retransmission));
        assert_eq!(timers.take_expired(now), Some(Timer::Controller));
        assert_eq!(timers.take_expired(now), None);
        assert_eq!(timers.earliest_with_reason(), None);
    }
}
