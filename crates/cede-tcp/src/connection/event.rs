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
    connected: bool,
    readable: bool,
    peer_finished: bool,
    writable: bool,
    closed: bool,
    failed: Option<Failure>,
}

impl Events {
    pub(super) const fn push(&mut self, event: Event) {
        match event {
            Event::Connected => self.connected = true,
            Event::Readable => self.readable = true,
            Event::PeerFinished => self.peer_finished = true,
            Event::Writable => self.writable = true,
            Event::Closed => self.closed = true,
            Event::Failed(failure) => self.failed = Some(failure),
        }
    }

    /// The next event: in the order in which a connection lives.
    pub(super) fn pop(&mut self) -> Option<Event> {
        let plain = [
            (&mut self.connected, Event::Connected),
            (&mut self.readable, Event::Readable),
            (&mut self.peer_finished, Event::PeerFinished),
            (&mut self.writable, Event::Writable),
            (&mut self.closed, Event::Closed),
        ];
        let next = plain.into_iter().find_map(|(waiting, event)| core::mem::take(waiting).then_some(event));
        next.or_else(|| self.failed.take().map(Event::Failed))
    }
}
