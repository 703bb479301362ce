//! Sockets and streams for whoever blocks: threads without a runtime, C, Python.
//!
//! What [`UtpSocket`] and [`UtpStream`] do, done by a runtime of two threads that is made when it is first needed and lives as long as
//! the process: what was written to a stream still arrives when its handle is gone. Each call that may have to wait takes a
//! [`Patience`]: for ever, a [`Duration`], or for as long as something says so.
//!
//! ```
//! use cede_real::StreamConfig;
//! use cede_real::blocking::{Patience, Socket, Stream};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), cede_real::blocking::Error> {
//! let socket = Socket::bind("127.0.0.1:0", StreamConfig::default())?;
//! let address = socket.local_addr().to_string();
//! let there = std::thread::spawn(move || {
//!     let stream = Stream::connect(&address, StreamConfig::with_controller("ledbat++"), Patience::for_ever())?;
//!     stream.write(b"whatever nobody else wants", Patience::for_ever())?;
//!     stream.finish(Patience::for_ever())
//! });
//! let here = socket.accept(Duration::from_secs(10).into())?;
//! let mut heard = [0; 100];
//! let n = here.read(&mut heard, Duration::from_secs(10).into())?;
//! assert_eq!(&heard[..n], b"whatever nobody else wants");
//! # there.join().unwrap()
//! # }
//! ```
//!
//! None of it may be called on a runtime's threads: whoever has one wants [`UtpSocket`].

use crate::udp::unspecified;
use crate::{
    BindError, ConnectError, OwnedReadHalf, OwnedWriteHalf, SocketConfig, StreamConfig, StreamView,
    UtpSocket, UtpStream,
};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

/// How often it is looked whether everything has arrived.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How often somebody is asked whether to go on waiting.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// For how long a call waits.
pub struct Patience<'a> {
    limit: Option<Duration>,
    go_on: Option<&'a mut dyn FnMut() -> bool>,
}

impl fmt::Debug for Patience<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patience").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl<'a> Patience<'a> {
    /// Until it is done or has failed.
    #[must_use]
    pub const fn for_ever() -> Self {
        Self { limit: None, go_on: None }
    }

    /// As long at most, or for ever where there is none; and only while this, asked twenty times a second, says so.
    #[must_use]
    pub fn while_asked(limit: Option<Duration>, go_on: &'a mut dyn FnMut() -> bool) -> Self {
        Self { limit, go_on: Some(go_on) }
    }
}

impl From<Duration> for Patience<'_> {
    fn from(limit: Duration) -> Self {
        Some(limit).into()
    }
}

impl From<Option<Duration>> for Patience<'_> {
    fn from(limit: Option<Duration>) -> Self {
        Self { limit, go_on: None }
    }
}

/// Why a call did not do what it should.
#[derive(Debug)]
pub enum Error {
    /// It would have taken longer than it may.
    TooLate,
    /// What it asked while it waited told it to end.
    Interrupted,
    /// The name leads to no address, and why.
    Name(String),
    /// The socket cannot be made.
    Bind(BindError),
    /// There is no stream to the peer.
    Connect(ConnectError),
    /// The stream, the socket or the runtime has failed: see the kinds in the crate's documentation.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLate => f.write_str("it took longer than was allowed"),
            Self::Interrupted => f.write_str("it was interrupted"),
            Self::Name(text) => f.write_str(text),
            Self::Bind(error) => error.fmt(f),
            Self::Connect(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A UDP socket with any number of streams. Calls of several threads do not wait for each other.
#[derive(Debug)]
pub struct Socket(UtpSocket);

impl Socket {
    /// Binds to an address, `127.0.0.1:0` or a name; streams are as `config` says unless they are told otherwise.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Bind`], [`Error::Io`] where there is no runtime.
    pub fn bind(address: &str, config: StreamConfig) -> Result<Self, Error> {
        wait(Patience::for_ever(), async {
            let address = resolved(address).await?;
            let config = SocketConfig { stream: config, ..SocketConfig::default() };
            UtpSocket::bind_with(address, config).await.map(Self).map_err(Error::Bind)
        })
    }

    /// Where it is bound.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.0.local_addr()
    }

    /// Waits for a stream that somebody else has opened.
    ///
    /// # Errors
    /// [`Error::TooLate`], [`Error::Interrupted`], [`Error::Io`] once the socket has failed.
    pub fn accept(&self, patience: Patience<'_>) -> Result<Stream, Error> {
        wait(patience, async { Ok(self.0.accept().await?.into()) })
    }

    /// Opens a stream to a host and port; with the socket's own choices where none are given.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Connect`], [`Error::TooLate`], [`Error::Interrupted`].
    pub fn connect(
        &self,
        peer: &str,
        config: Option<&StreamConfig>,
        patience: Patience<'_>,
    ) -> Result<Stream, Error> {
        wait(patience, async {
            let peer = resolved(peer).await?;
            let stream = match config {
                None => self.0.connect(peer).await,
                Some(config) => self.0.connect_with(peer, config).await,
            };
            stream.map(Stream::from).map_err(Error::Connect)
        })
    }
}

/// One end of a stream: its halves wait for different things, and it can be looked at meanwhile. Whoever waits for its turn with a half
/// does so within its time. Dropped, it ends in good order, in the background.
#[derive(Debug)]
pub struct Stream {
    reading: Mutex<OwnedReadHalf>,
    writing: Mutex<OwnedWriteHalf>,
    view: StreamView,
}

impl From<UtpStream> for Stream {
    fn from(stream: UtpStream) -> Self {
        let (reading, writing) = stream.into_split();
        let view = reading.view();
        Self { reading: Mutex::new(reading), writing: Mutex::new(writing), view }
    }
}

impl Stream {
    /// Opens a stream to a host and port, from a socket of its own that nobody else can open one to.
    ///
    /// # Errors
    /// Those of [`Socket::bind`] and of [`Socket::connect`].
    pub fn connect(peer: &str, config: StreamConfig, patience: Patience<'_>) -> Result<Self, Error> {
        wait(patience, async {
            let peer = resolved(peer).await?;
            let config = SocketConfig { stream: config, accepts: false, ..SocketConfig::default() };
            let socket = UtpSocket::bind_with((unspecified(peer), 0), config).await.map_err(Error::Bind)?;
            socket.connect(peer).await.map(Self::from).map_err(Error::Connect)
        })
    }

    /// Reads what is there, or what comes first: how many octets; 0 at the end, or where there is no room for any.
    ///
    /// # Errors
    /// [`Error::TooLate`], [`Error::Interrupted`], [`Error::Io`] of a stream that has failed.
    pub fn read(&self, room: &mut [u8], patience: Patience<'_>) -> Result<usize, Error> {
        wait(patience, async { Ok(self.reading.lock().await.read(room).await?) })
    }

    /// Hands octets over, as many as there is room for: how many.
    ///
    /// # Errors
    /// As [`Stream::read`].
    pub fn write(&self, octets: &[u8], patience: Patience<'_>) -> Result<usize, Error> {
        wait(patience, async { Ok(self.writing.lock().await.write(octets).await?) })
    }

    /// Ends our direction, and waits until the peer has all that was written.
    ///
    /// # Errors
    /// As [`Stream::read`].
    pub fn finish(&self, patience: Patience<'_>) -> Result<(), Error> {
        wait(patience, async {
            let mut writing = self.writing.lock().await;
            loop {
                // Of a stream that has failed, at whatever time, this is the error.
                writing.shutdown().await?;
                let snapshot = writing.snapshot().ok_or_else(socket_closed)?;
                if snapshot.undelivered_bytes() == 0 {
                    return Ok(());
                }
                sleep(LOOK_EVERY).await;
            }
        })
    }

    /// Ends it at once, in both directions.
    pub fn abort(&self) {
        self.view.abort();
    }

    /// Looks at it: who the peer is, where it stands, what it has done.
    #[must_use]
    pub const fn view(&self) -> &StreamView {
        &self.view
    }
}

/// What a stream is told whose socket is gone.
#[must_use]
pub fn socket_closed() -> Error {
    crate::error::socket_closed().into()
}

/// The runtime; it is never ended, as streams go on when their handles are gone.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made = Builder::new_multi_thread().worker_threads(2).thread_name("cede").enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| made))
}

fn wait<T>(patience: Patience<'_>, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let Patience { limit, mut go_on } = patience;
    runtime()?.block_on(async {
        tokio::pin!(work);
        // A limit that no clock holds is none.
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            let asked = go_on.is_some().then(|| Instant::now() + ASK_EVERY);
            let Some(next) = end.into_iter().chain(asked).min() else { return work.await };
            if let Ok(done) = timeout_at(next, &mut work).await {
                return done;
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Err(Error::TooLate);
            }
            if go_on.as_mut().is_some_and(|go_on| !go_on()) {
                return Err(Error::Interrupted);
            }
        }
    })
}

/// The first address that a text leads to. A name is looked up by a thread of the runtime's, for which nobody waits longer than for
/// anything else.
async fn resolved(text: &str) -> Result<SocketAddr, Error> {
    let found = tokio::net::lookup_host(text).await;
    let mut found = found.map_err(|error| Error::Name(format!("{text}: {error}")))?;
    found.next().ok_or_else(|| Error::Name(format!("{text} leads to no address")))
}
