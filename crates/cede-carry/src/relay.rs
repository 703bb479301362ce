//! TCP connections of other programs, carried over uTP between two proxies.
//!
//! Each TCP connection has a uTP stream of its own, from the *entrance*, where the program connects, to the *exit*, which
//! connects to the program's server. The end of one direction is carried over as such ([`Message::Finish`]), a TCP
//! reset as a uTP RESET and the other way round, and a proxy that has gone is noticed by its silence.

use crate::dial::PATIENCE;
use crate::error::WireError;
use crate::framed::{FrameReader, FrameWriter};
use crate::greeting::{be_greeted, greet};
use crate::line::Line;
use crate::link::Link;
use crate::message::{HEAD_BYTES, Message, Purpose};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{timeout, timeout_at};

/// Octets of one read.
const PIECE_BYTES: usize = 32 << 10;
/// How often an idle direction says that it is there: three times within the time that silence may last.
const ALIVE_EVERY: Duration = Duration::from_secs(10);

/// Why a connection is not carried, or no longer.
#[derive(Debug)]
pub enum RelayError {
    /// The TCP server cannot be reached.
    Server {
        /// Which.
        address: String,
        /// Why.
        error: io::Error,
    },
    /// The TCP connection was reset or broke here.
    Tcp(io::Error),
    /// The other proxy cannot be reached: why.
    Unreached(String),
    /// The other proxy is gone, or is none.
    Wire(WireError),
}

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { address, error } => write!(f, "cannot connect to {address} (TCP): {error}"),
            Self::Tcp(error) => write!(f, "the TCP connection broke: {error}"),
            Self::Unreached(text) => f.write_str(text),
            Self::Wire(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RelayError {}

impl From<WireError> for RelayError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

/// What a proxy has carried, and carries.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Octets from TCP to uTP.
    pub to_utp_bytes: AtomicU64,
    /// Octets from uTP to TCP.
    pub to_tcp_bytes: AtomicU64,
    /// Connections so far.
    pub connections: AtomicU64,
    /// Those that did not end in good order.
    pub failures: AtomicU64,
    lines: Mutex<HashMap<u64, Line>>,
}

impl Traffic {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The streams that are open now.
    pub fn lines(&self) -> Vec<Line> {
        self.lock().values().cloned().collect()
    }

    fn enter(&self, line: Line) -> Entry<'_> {
        let number = self.connections.fetch_add(1, Relaxed);
        self.lock().insert(number, line);
        Entry { traffic: self, number }
    }
}

/// A connection's place in the books.
struct Entry<'a> {
    traffic: &'a Traffic,
    number: u64,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.traffic.lock().remove(&self.number);
    }
}

/// Carries a connection that a program has opened, over a stream to the other proxy.
///
/// # Errors
/// [`RelayError`]; the program's connection has been reset then.
pub async fn enter(tcp: TcpStream, mut link: Link, traffic: &Traffic) -> Result<(), RelayError> {
    break_off_when_dropped(&tcp);
    greet(&mut link.reader, &mut link.writer, Purpose::Relay).await?;
    carry(tcp, link, traffic).await
}

/// Answers a stream that another proxy has opened, and carries its connection to a TCP server.
///
/// # Errors
/// [`RelayError`]; the other proxy has been told.
pub async fn leave(mut link: Link, server: &str, traffic: &Traffic) -> Result<(), RelayError> {
    match be_greeted(&mut link.reader, &mut link.writer).await? {
        Purpose::Relay => {}
        _ => {
            let text =
                "this is `cede proxy`: it carries TCP connections for another `cede proxy`, and nothing else";
            link.part_with(&Message::Refused(text.to_owned())).await;
            return Err(WireError::Unexpected.into());
        }
    }
    let connected = timeout(PATIENCE, TcpStream::connect(server)).await;
    match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(tcp) => {
            break_off_when_dropped(&tcp);
            link.writer.send(&Message::Welcome(0)).await.map_err(WireError::from)?;
            carry(tcp, link, traffic).await
        }
        Err(error) => {
            let error = RelayError::Server { address: server.to_owned(), error };
            link.part_with(&Message::Refused(error.to_string())).await;
            Err(error)
        }
    }
}

/// Both directions, until both have ended.
async fn carry(mut tcp: TcpStream, link: Link, traffic: &Traffic) -> Result<(), RelayError> {
    // What a program sends in small pieces has been put together by its own end, if it wanted that.
    let _ = tcp.set_nodelay(true);
    let _entry = traffic.enter(link.line.clone());
    let Link { mut reader, mut writer, line } = link;
    let carried = {
        let (from_tcp, to_tcp) = tcp.split();
        tokio::try_join!(up(from_tcp, &mut writer, traffic), down(&mut reader, to_tcp, traffic))
    };
    match carried {
        Ok(_) => {
            end_when_dropped(&tcp);
            let _ = writer.end().await;
            line.delivered().await;
            Ok(())
        }
        Err(error) => {
            // A reset takes what is under way with it, on either kind of connection.
            line.abort();
            Err(error)
        }
    }
}

/// From TCP to uTP, until the program ends its direction.
async fn up(
    mut tcp: impl AsyncRead + Unpin,
    writer: &mut FrameWriter<Line>,
    traffic: &Traffic,
) -> Result<(), RelayError> {
    let mut frame = vec![0; HEAD_BYTES + PIECE_BYTES];
    loop {
        let sent = match timeout_at(writer.said() + ALIVE_EVERY, tcp.read(&mut frame[HEAD_BYTES..])).await {
            Err(_) => writer.send(&Message::Alive).await,
            Ok(Ok(0)) => return Ok(writer.send(&Message::Finish).await.map_err(WireError::from)?),
            Ok(Ok(n)) => {
                traffic.to_utp_bytes.fetch_add(n as u64, Relaxed);
                writer.send_data(&mut frame[..HEAD_BYTES + n]).await
            }
            Ok(Err(error)) => return Err(RelayError::Tcp(error)),
        };
        sent.map_err(WireError::from)?;
    }
}

/// From uTP to TCP, until the other end says that this was all.
async fn down(
    reader: &mut FrameReader<Line>,
    mut tcp: impl AsyncWrite + Unpin,
    traffic: &Traffic,
) -> Result<(), RelayError> {
    loop {
        match reader.next_in_time().await? {
            Message::Data => {
                tcp.write_all(reader.data()).await.map_err(RelayError::Tcp)?;
                traffic.to_tcp_bytes.fetch_add(reader.data().len() as u64, Relaxed);
                // While a slow program was waited for, the other proxy could not be heard.
                reader.listen_anew();
            }
            Message::Finish => return tcp.shutdown().await.map_err(RelayError::Tcp),
            Message::Alive => {}
            _ => return Err(WireError::Unexpected.into()),
        }
    }
}

/// Lets a connection end with a RST once it is dropped, and where the process ends as well: whoever is at its other end would take a
/// FIN for the end of what is carried.
pub fn break_off_when_dropped(tcp: &TcpStream) {
    let _ = tcp.set_zero_linger();
}

/// What has ended in both directions may take its time to arrive.
#[expect(deprecated, reason = "a time to wait for would block the thread, and this is none")]
fn end_when_dropped(tcp: &TcpStream) {
    let _ = tcp.set_linger(None);
}
