//! What a connection tells its host.

/// Something the host wants to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// Octets arrived: read until there are none.
    Readable,
    /// A write had been cut short, and there is room again.
    Writable,
    /// The peer has closed its direction, and all its octets have arrived.
    PeerFinished,
    /// Both directions are closed in good order (on the side that closed first: before the time of waiting).
    Closed,
    /// The connection is lost.
    Failed(Failure),
}

/// Why a connection is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Nobody listened.
    Refused,
    /// The peer reset it.
    Reset,
    /// Retransmissions went unanswered.
    TimedOut,
    /// The congestion controller asks for its timer again and again, and time does not pass.
    ControllerSpins,
}

/// Why data was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteError {
    /// This direction has been closed, or the connection has failed.
    Closed,
}

/// Why a segment opens no connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AcceptError {
    /// It is no first SYN.
    NotSyn,
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Refused => "nobody listened",
            Self::Reset => "the peer reset the connection",
            Self::TimedOut => "retransmissions went unanswered",
            Self::ControllerSpins => "the congestion controller's timer runs out without end",
        })
    }
}

impl core::fmt::Display for WriteError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the connection is closed for writing")
    }
}

impl core::fmt::Display for AcceptError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the segment is not a first SYN")
    }
}

impl core::error::Error for Failure {}
impl core::error::Error for WriteError {}
impl core::error::Error for AcceptError {}

/// The events waiting: each kind at most once, so that nothing a peer does can pile them up.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    /// A bit for each of [`Events::IN_ORDER`].
    waiting: u8,
    failed: Option<Failure>,
}

impl Events {
    /// In the order in which a connection lives. A failure comes after them.
    const IN_ORDER: [Event; 5] =
        [Event::Connected, Event::Readable, Event::PeerFinished, Event::Writable, Event::Closed];

    pub(super) fn push(&mut self, event: Event) {
        self.waiting |= match event {
            Event::Connected => 1,
            Event::Readable => 1 << 1,
            Event::PeerFinished => 1 << 2,
            Event::Writable => 1 << 3,
            Event::Closed => 1 << 4,
            Event::Failed(failure) => {
                self.failed = Some(failure);
                0
            }
        };
    }

    /// The next event. Asked after each segment, mostly in vain.
    pub(super) fn pop(&mut self) -> Option<Event> {
        if self.waiting == 0 {
            return self.failed.take().map(Event::Failed);
        }
        let first = self.waiting.trailing_zeros();
        self.waiting &= self.waiting - 1;
        Self::IN_ORDER.get(first as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_once_each_in_the_order_of_a_life() {
        let mut events = Events::default();
        events.push(Event::Failed(Failure::Reset));
        Events::IN_ORDER.iter().rev().chain(&Events::IN_ORDER).for_each(|&event| events.push(event));
        for expected in Events::IN_ORDER {
            assert_eq!(events.pop(), Some(expected));
        }
        assert_eq!((events.pop(), events.pop()), (Some(Event::Failed(Failure::Reset)), None));
    }
}
