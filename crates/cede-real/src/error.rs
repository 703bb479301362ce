//! What can go wrong, and how it looks as an [`io::Error`].

use cede_cc::ParamError;
use cede_utp::ConnectionError;
use std::{fmt, io};

/// Why a socket could not be bound.
#[derive(Debug)]
pub enum BindError {
    /// The system refused, or the address could not be resolved.
    Io(io::Error),
    /// The configured controller cannot be built.
    Controller(ParamError),
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the socket cannot be bound: {error}"),
            Self::Controller(error) => write!(f, "the controller cannot be built: {error}"),
        }
    }
}

impl std::error::Error for BindError {}

impl From<io::Error> for BindError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ParamError> for BindError {
    fn from(error: ParamError) -> Self {
        Self::Controller(error)
    }
}

impl From<BindError> for io::Error {
    fn from(error: BindError) -> Self {
        match error {
            BindError::Io(error) => error,
            BindError::Controller(error) => Self::new(io::ErrorKind::InvalidInput, error.to_string()),
        }
    }
}

/// Why there is no stream to a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectError {
    /// The configured controller cannot be built.
    Controller(ParamError),
    /// The socket cannot send to addresses of the peer's family.
    AddressFamily,
    /// The socket has as many connections as [`Limits::connections`](cede_utp::Limits::connections) allows, or every
    /// connection id towards the peer is taken.
    Full,
    /// The handshake failed: [`ConnectionError::TimedOut`] where nobody answered, [`ConnectionError::Refused`] where
    /// somebody did not want to, or the system knows no way to the peer.
    Failed(ConnectionError),
    /// The socket's driver has ended, with its runtime or because the system took the UDP socket away.
    SocketClosed,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Controller(error) => write!(f, "the controller cannot be built: {error}"),
            Self::AddressFamily => {
                f.write_str("the peer's address is of a family that the socket does not speak")
            }
            Self::Full => f.write_str("the socket has no room for another connection"),
            Self::Failed(error) => error.fmt(f),
            Self::SocketClosed => f.write_str("the socket is closed"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Failed(error) => stream_error(error),
            ConnectError::SocketClosed => socket_closed(),
            ConnectError::Full => Self::other(error),
            _ => Self::new(io::ErrorKind::InvalidInput, error),
        }
    }
}

/// A connection's end as streams report it; the [`ConnectionError`] is inside.
pub(crate) fn stream_error(error: ConnectionError) -> io::Error {
    let kind = match error {
        ConnectionError::Refused => io::ErrorKind::ConnectionRefused,
        ConnectionError::Reset => io::ErrorKind::ConnectionReset,
        ConnectionError::TimedOut => io::ErrorKind::TimedOut,
        ConnectionError::Unfinished => io::ErrorKind::UnexpectedEof,
        ConnectionError::Aborted | ConnectionError::ControllerSpins => io::ErrorKind::ConnectionAborted,
    };
    io::Error::new(kind, error)
}

pub(crate) fn socket_closed() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, ConnectError::SocketClosed)
}
