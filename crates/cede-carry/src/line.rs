//! A uTP stream that several hold: one reads, one writes, another looks at it.

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
pub struct Line(Arc<Mutex<UtpStream>>);

impl Line {
    /// Shares a stream.
    #[must_use]
    pub fn new(stream: UtpStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Held only while the stream is polled or looked at, never across a wait.
    fn lock(&self) -> MutexGuard<'_, UtpStream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The peer's address.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.lock().peer_addr()
    }

    /// Where it stands; `None` once its socket has closed.
    #[must_use]
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.lock().snapshot()
    }

    /// What it has done.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.lock().statistics()
    }

    /// Gives up at once.
    pub fn abort(&self) {
        self.lock().abort();
    }

    /// Puts another controller in charge.
    ///
    /// # Errors
    /// As [`UtpStream::set_controller`].
    pub fn set_controller(&self, choice: &ControllerChoice) -> Result<(), cede_cc::ParamError> {
        self.lock().set_controller(choice)
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
        Pin::new(&mut *self.lock()).poll_read(cx, buf)
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.lock()).poll_write(cx, octets)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_shutdown(cx)
    }
}
