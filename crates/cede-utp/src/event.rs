//! What a connection has to say to its application.

use core::fmt;

/// News of a connection. Each kind waits once at most, so events need no more memory than a byte per connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake is over; data can leave.
    Connected,
    /// There is something to [`read`](crate::Connection::read).
    Readable,
    /// The send buffer has room again after it had refused something.
    Writable,
    /// The peer will send nothing more, and all that it sent is readable or read.
    PeerFinished,
    /// Both directions have ended in good order.
    Closed,
    /// The connection is over otherwise.
    Failed(ConnectionError),
}

/// Why a connection ended before both directions had.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConnectionError {
    /// The peer answered the SYN with a RESET.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// Too many timeouts in a row, or a handshake that was never completed.
    TimedOut,
    /// All that was written has been acknowledged, but after [`close`](crate::Connection::close) the peer went silent
    /// without having ended its own stream.
    Unfinished,
    /// The application aborted the connection.
    Aborted,
    /// The congestion controller asks for its timer again and again, and time does not pass.
    ControllerSpins,
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "connection refused",
            Self::Reset => "connection reset by the peer",
            Self::TimedOut => "connection timed out",
            Self::Unfinished => "the peer did not end its stream",
            Self::Aborted => "connection aborted",
            Self::ControllerSpins => "the congestion controller's timer runs out without end",
        })
    }
}

impl core::error::Error for ConnectionError {}

/// Why nothing could be written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WriteError {
    /// The send buffer is full; [`Event::Writable`] follows.
    Full,
    /// The connection is closed for writing.
    Closed,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "send buffer full",
            Self::Closed => "closed for writing",
        })
    }
}

impl core::error::Error for WriteError {}

/// The events that wait to be polled.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Pending(u8);

const CONNECTED: u8 = 1;
const READABLE: u8 = 2;
const WRITABLE: u8 = 4;
const PEER_FINISHED: u8 = 8;
const CLOSED: u8 = 16;
const FAILED: u8 = 32;

impl Pending {
    pub fn connected(&mut self) {
        self.0 |= CONNECTED;
    }

    pub fn readable(&mut self) {
        self.0 |= READABLE;
    }

    pub fn writable(&mut self) {
        self.0 |= WRITABLE;
    }

    pub fn peer_finished(&mut self) {
        self.0 |= PEER_FINISHED;
    }

    pub fn closed(&mut self) {
        self.0 |= CLOSED;
    }

    pub fn failed(&mut self) {
        self.0 |= FAILED;
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The next event in the order in which an application understands them.
    pub fn take(&mut self, error: Option<ConnectionError>) -> Option<Event> {
        let lowest = self.0 & self.0.wrapping_neg();
        self.0 &= !lowest;
        match lowest {
            CONNECTED => Some(Event::Connected),
            READABLE => Some(Event::Readable),
            WRITABLE => Some(Event::Writable),
            PEER_FINISHED => Some(Event::PeerFinished),
            CLOSED => Some(Event::Closed),
            FAILED => Some(Event::Failed(error.unwrap_or(ConnectionError::Aborted))),
            _ => None,
        }
    }
}
