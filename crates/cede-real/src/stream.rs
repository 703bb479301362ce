//! A stream: what tokio's traits are implemented on.

use crate::config::ControllerChoice;
use crate::error::{ConnectError, socket_closed, stream_error};
use crate::outgoing::Wire;
use crate::shared::Shared;
use crate::udp::{Udp, canonical};
use cede_cc::ParamError;
use cede_units::{Duration, Instant, Rate};
use cede_utp::{Connection, Handle, Snapshot, Statistics, WriteError};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most that one write copies: it stays in memory as one piece until all of it has been acknowledged.
const MAX_WRITE_BYTES: usize = 128 << 10;
/// UDP payload of an Ethernet frame over IPv4.
const FRAME_PAYLOAD_BYTES: u16 = 1472;

/// A uTP stream, as tokio's `AsyncRead` and `AsyncWrite`.
///
/// `shutdown` ends our direction behind what has been written and leaves the other open. Dropping the stream ends it in
/// good order: what has been written is still delivered, by the socket's driver in the background, and what arrives is
/// dropped. [`UtpStream::abort`] gives up at once instead.
///
/// Errors carry a [`ConnectionError`](cede_utp::ConnectionError) inside; what arrived before one can be read first.
pub struct UtpStream {
    core: Core,
}

/// The reading half of a stream, from [`UtpStream::into_split`].
pub struct OwnedReadHalf {
    core: Arc<Core>,
}

/// The writing half of a stream, from [`UtpStream::into_split`]. Dropping it ends our direction, as `shutdown` does.
pub struct OwnedWriteHalf {
    core: Arc<Core>,
}

/// Looks at a stream whose halves are elsewhere, from [`OwnedReadHalf::view`]. It holds the stream as they do.
#[derive(Clone)]
pub struct StreamView {
    core: Arc<Core>,
}

impl OwnedReadHalf {
    /// A way to look at the stream while somebody reads from this half.
    #[must_use]
    pub fn view(&self) -> StreamView {
        StreamView { core: Arc::clone(&self.core) }
    }
}

impl StreamView {
    /// As [`UtpStream::abort`].
    pub fn abort(&self) {
        self.core.change(Connection::abort);
    }
}

impl UtpStream {
    pub(crate) fn new(core: Core) -> Self {
        Self { core }
    }

    /// Two halves for two tasks. The stream ends when both are gone.
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        let core = Arc::new(self.core);
        (OwnedReadHalf { core: Arc::clone(&core) }, OwnedWriteHalf { core })
    }

    /// Gives up at once: the peer gets a RESET, and what has not arrived is lost.
    pub fn abort(&self) {
        self.core.change(Connection::abort);
    }

    /// Hands the stream to another controller, or to one with another target: where it stands, the new one begins with the
    /// window of the former, if it begins with a window that it is given.
    ///
    /// # Errors
    /// As [`ControllerChoice::build`]; the stream then keeps the controller that it has.
    pub fn set_controller(&self, choice: &ControllerChoice) -> Result<(), ParamError> {
        choice.build(&cede_utp::Config::default().path())?;
        self.core.change(|connection| {
            // Errors do not depend on the path, and there were none a moment ago.
            connection.set_controller(|path| choice.build(path).expect("the choice has been checked"));
        });
        Ok(())
    }
}

/// What can be asked of a stream and of each of its halves.
macro_rules! inspect {
    ($type:ty) => {
        impl $type {
            /// The peer's address.
            #[must_use]
            pub fn peer_addr(&self) -> SocketAddr {
                self.core.peer_addr()
            }

            /// What the stream has done so far.
            #[must_use]
            pub fn statistics(&self) -> Statistics {
                self.core.meter_statistics()
            }

            /// Where the stream stands: window, RTT, one-way delay, and the controller's own view, queueing delay
            /// included. `None` once the socket has closed.
            #[must_use]
            pub fn snapshot(&self) -> Option<Snapshot> {
                self.core.look(Connection::snapshot)
            }

            /// The stream's counters with the time, to take rates between two of them.
            #[must_use]
            pub fn reading(&self) -> Reading {
                self.core.reading()
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($type)).field("peer", &self.peer_addr()).finish_non_exhaustive()
            }
        }
    };
}

inspect!(UtpStream);
inspect!(OwnedReadHalf);
inspect!(OwnedWriteHalf);
inspect!(StreamView);

/// A stream's counters at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// When, on the socket's clock.
    pub at: Instant,
    /// The counters.
    pub statistics: Statistics,
}

impl Reading {
    /// From an earlier reading to this one.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Duration {
        self.at.since(earlier.at)
    }

    /// The rate at which our payload was acknowledged since an earlier reading.
    #[must_use]
    pub fn delivery_rate(&self, earlier: &Self) -> Rate {
        let bytes = self.statistics.bytes_acked.saturating_sub(earlier.statistics.bytes_acked);
        Rate::from_bytes_over(bytes, self.since(earlier))
    }

    /// The rate at which the peer's payload came in order since an earlier reading.
    #[must_use]
    pub fn receive_rate(&self, earlier: &Self) -> Rate {
        let bytes = self.statistics.bytes_delivered.saturating_sub(earlier.statistics.bytes_delivered);
        Rate::from_bytes_over(bytes, self.since(earlier))
    }
}

/// The application's hold on a connection.
pub(crate) struct Core<W: Wire = Udp> {
    shared: Arc<Shared<W>>,
    handle: Handle,
}

impl<W: Wire> Drop for Core<W> {
    fn drop(&mut self) {
        self.shared.with(|state| state.release(self.handle));
    }
}

impl Core {
    /// Tells the connection what the first link carries, where that is more than an Ethernet frame.
    pub fn search_large_datagrams(&self) {
        let carries = self.shared.udp.link_carries(self.peer_addr()).unwrap_or_default();
        let carries = u16::try_from(carries).unwrap_or(u16::MAX);
        if carries > FRAME_PAYLOAD_BYTES {
            let now = self.shared.clock.now();
            self.change(|connection| connection.on_link_carries(now, carries));
        }
    }
}

impl<W: Wire> Core<W> {
    pub fn new(shared: Arc<Shared<W>>, handle: Handle) -> Self {
        Self { shared, handle }
    }

    fn peer_addr(&self) -> SocketAddr {
        let way = self.shared.lock().endpoint.peer(self.handle);
        // There is one for as long as the application holds the connection.
        canonical(way.map_or(SocketAddr::from(([0; 4], 0)), |way| way.peer))
    }

    fn look<R>(&self, question: impl FnOnce(&Connection) -> R) -> Option<R> {
        self.shared.lock().endpoint.connection(self.handle).map(question)
    }

    fn change(&self, change: impl FnOnce(&mut Connection)) {
        self.shared.with(|state| state.endpoint.connection_mut(self.handle).map(change));
    }

    fn meter_statistics(&self) -> Statistics {
        self.look(Connection::statistics).unwrap_or_default()
    }

    fn reading(&self) -> Reading {
        Reading { at: self.shared.clock.now(), statistics: self.meter_statistics() }
    }

    /// Is the handshake over?
    pub fn poll_connected(&self, cx: &Context<'_>) -> Poll<Result<(), ConnectError>> {
        let mut state = self.shared.lock();
        let Some(connection) = state.endpoint.connection(self.handle) else {
            return Poll::Ready(Err(ConnectError::SocketClosed));
        };
        if let Some(error) = connection.error() {
            return Poll::Ready(Err(ConnectError::Failed(error)));
        }
        if connection.is_established() {
            return Poll::Ready(Ok(()));
        }
        if state.is_driver_gone() {
            return Poll::Ready(Err(ConnectError::SocketClosed));
        }
        let before = state.wait_to_write(self.handle, cx);
        drop(state);
        drop(before);
        Poll::Pending
    }

    pub fn poll_read(&self, cx: &Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared.lock();
        let Some(connection) = state.endpoint.connection(self.handle) else {
            return Poll::Ready(Err(socket_closed()));
        };
        let readable = usize::try_from(connection.readable_bytes()).unwrap_or(usize::MAX);
        if readable > 0 || buf.remaining() == 0 {
            let wanted = buf.remaining().min(readable);
            if let Some(connection) = state.endpoint.connection_mut(self.handle) {
                let n = connection.read_slice(buf.initialize_unfilled_to(wanted));
                buf.advance(n);
            }
            self.shared.settle(state);
            return Poll::Ready(Ok(()));
        }
        if let Some(end) = end_of_reading(connection) {
            return Poll::Ready(end);
        }
        if state.is_driver_gone() {
            return Poll::Ready(Err(socket_closed()));
        }
        let before = state.wait_to_read(self.handle, cx);
        drop(state);
        drop(before);
        Poll::Pending
    }

    pub fn poll_write(&self, cx: &Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.shared.lock();
        if state.is_driver_gone() {
            return Poll::Ready(Err(socket_closed()));
        }
        let Some(connection) = state.endpoint.connection_mut(self.handle) else {
            return Poll::Ready(Err(socket_closed()));
        };
        let written = connection.write_slice(&octets[..octets.len().min(MAX_WRITE_BYTES)]);
        let error = connection.error();
        let is_full = written == Err(WriteError::Full);
        let before = if is_full { state.wait_to_write(self.handle, cx) } else { None };
        self.shared.settle(state);
        drop(before);
        match written {
            Ok(n) => Poll::Ready(Ok(n as usize)),
            Err(WriteError::Full) => Poll::Pending,
            Err(WriteError::Closed) => {
                Poll::Ready(Err(error.map_or_else(|| io::ErrorKind::BrokenPipe.into(), stream_error)))
            }
        }
    }

    pub fn shutdown(&self) -> io::Result<()> {
        match self.look(Connection::error) {
            Some(Some(error)) => return Err(stream_error(error)),
            Some(None) => self.change(Connection::shutdown),
            None => {}
        }
        Ok(())
    }
}

/// How reading ends, once everything has been read; `None` where more may come.
fn end_of_reading(connection: &Connection) -> Option<io::Result<()>> {
    if connection.is_at_end() {
        return Some(Ok(()));
    }
    match connection.error() {
        Some(error) => Some(Err(stream_error(error))),
        None => connection.is_closed().then_some(Ok(())),
    }
}

macro_rules! read {
    ($type:ty) => {
        impl AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let progress = ready!(tokio::task::coop::poll_proceed(cx));
                let result = self.core.poll_read(cx, buf);
                if result.is_ready() {
                    progress.made_progress();
                }
                result
            }
        }
    };
}

macro_rules! write {
    ($type:ty) => {
        impl AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                octets: &[u8],
            ) -> Poll<io::Result<usize>> {
                let progress = ready!(tokio::task::coop::poll_proceed(cx));
                let result = self.core.poll_write(cx, octets);
                if result.is_ready() {
                    progress.made_progress();
                }
                result
            }

            /// What is written leaves by itself.
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            /// Ends our direction behind what has been written, without waiting for its arrival.
            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(self.core.shutdown())
            }
        }
    };
}

read!(UtpStream);
read!(OwnedReadHalf);
write!(UtpStream);
write!(OwnedWriteHalf);

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        self.core.change(Connection::shutdown);
    }
}
