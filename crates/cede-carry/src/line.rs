//! A uTP stream that several hold: one reads, one writes, another looks at it. Under a key or in the clear.

use crate::error::WireError;
use crate::key::Key;
use crate::seal::{self, Sealed};
use cede_real::{ControllerChoice, UtpStream};
use cede_utp::{ConnectionState, Snapshot, Statistics};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep};

/// How long the end of a stream may take.
const LINGER: Duration = Duration::from_secs(20);

/// A uTP stream, shared. It ends in good order when the last holder is gone.
#[derive(Clone, Debug)]
pub struct Line(Arc<Mutex<Wire>>);

#[derive(Debug)]
enum Wire {
    Clear(UtpStream),
    Sealed(Box<Sealed<UtpStream>>),
}

impl Wire {
    const fn stream(&self) -> &UtpStream {
        match self {
            Self::Clear(stream) => stream,
            Self::Sealed(sealed) => sealed.get_ref(),
        }
    }
}

impl Line {
    /// Shares a stream, in the clear.
    #[must_use]
    pub fn new(stream: UtpStream) -> Self {
        Self(Arc::new(Mutex::new(Wire::Clear(stream))))
    }

    /// Shares a stream that is sealed.
    #[must_use]
    pub fn sealed(stream: Sealed<UtpStream>) -> Self {
        Self(Arc::new(Mutex::new(Wire::Sealed(Box::new(stream)))))
    }

    /// Shares a stream that this end has opened: under the key, where there is one.
    ///
    /// # Errors
    /// Those of [`seal::call`].
    pub async fn call(stream: UtpStream, key: Option<&Key>) -> Result<Self, WireError> {
        match key {
            Some(key) => seal::call(stream, key).await.map(Self::sealed),
            None => Ok(Self::new(stream)),
        }
    }

    /// Held only while the stream is polled or looked at, never across a wait.
    fn lock(&self) -> MutexGuard<'_, Wire> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is encrypted and authenticated.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        matches!(*self.lock(), Wire::Sealed(_))
    }

    /// Octets that were written here and that the peer has acknowledged. Under a key those of the handshake and of the records' own
    /// are not counted; of a record under way an estimate.
    #[must_use]
    pub fn acked_bytes(&self) -> u64 {
        let wire = self.lock();
        let raw_bytes = wire.stream().statistics().bytes_acked;
        match &*wire {
            Wire::Clear(_) => raw_bytes,
            Wire::Sealed(sealed) => sealed.payload_bytes_of(raw_bytes),
        }
    }

    /// Octets that came from the peer, likewise.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        match &*self.lock() {
            Wire::Clear(stream) => stream.statistics().bytes_delivered,
            Wire::Sealed(sealed) => sealed.received_bytes(),
        }
    }

    /// The peer's address.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.lock().stream().peer_addr()
    }

    /// Where it stands; `None` once its socket has closed.
    #[must_use]
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.lock().stream().snapshot()
    }

    /// What it has done.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.lock().stream().statistics()
    }

    /// Gives up at once.
    pub fn abort(&self) {
        self.lock().stream().abort();
    }

    /// Puts another controller in charge.
    ///
    /// # Errors
    /// As [`UtpStream::set_controller`].
    pub fn set_controller(&self, choice: &ControllerChoice) -> Result<(), cede_cc::ParamError> {
        self.lock().stream().set_controller(choice)
    }

    /// Waits until the peer has acknowledged everything that was written, or the stream is over; at most 20 s.
    pub async fn delivered(&self) {
        self.until(|snapshot| snapshot.undelivered_bytes() == 0).await;
    }

    /// Waits until both directions have ended and the peer knows it, or the stream is over; at most 20 s.
    pub async fn ended(&self) {
        self.until(|_| false).await;
    }

    async fn until(&self, is_enough: impl Fn(&Snapshot) -> bool) {
        let (until, mut pause) = (Instant::now() + LINGER, Duration::from_millis(1));
        let is_over = |state| matches!(state, ConnectionState::Lingering | ConnectionState::Closed);
        while Instant::now() < until {
            let snapshot = self.snapshot();
            if snapshot.is_none_or(|snapshot| is_over(snapshot.state) || is_enough(&snapshot)) {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut *self.lock() {
            Wire::Clear(stream) => Pin::new(stream).poll_read(cx, buf),
            Wire::Sealed(sealed) => Pin::new(sealed.as_mut()).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self.lock() {
            Wire::Clear(stream) => Pin::new(stream).poll_write(cx, octets),
            Wire::Sealed(sealed) => Pin::new(sealed.as_mut()).poll_write(cx, octets),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self.lock() {
            Wire::Clear(stream) => Pin::new(stream).poll_flush(cx),
            Wire::Sealed(sealed) => Pin::new(sealed.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self.lock() {
            Wire::Clear(stream) => Pin::new(stream).poll_shutdown(cx),
            Wire::Sealed(sealed) => Pin::new(sealed.as_mut()).poll_shutdown(cx),
        }
    }
}
