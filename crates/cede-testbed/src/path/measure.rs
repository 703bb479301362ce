//! A transfer over real sockets, through the relay.

use super::series::{INTERVAL, Sample, Showing};
use super::spec::PathSpec;
use crate::overflow::overflows;
use crate::relay::{Relay, Report};
use crate::summary::Summary;
use cede_lab::histogram::Histogram;
use cede_real::{OwnedReadHalf, OwnedWriteHalf, SocketConfig, UtpSocket, UtpStream};
use cede_utp::Statistics;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};

/// The period of what is sent: prime, so that whatever is misplaced shows.
const PERIOD_BYTES: usize = 65_521;
/// One writing.
const CHUNK_BYTES: usize = PERIOD_BYTES;
const READ_BYTES: usize = 256 << 10;

/// Why there is no measurement.
#[derive(Debug)]
pub enum PathError {
    /// The system, or the stream, failed.
    Io(io::Error),
    /// What arrived is not what was sent.
    Damaged {
        /// The place of the first wrong octet's piece.
        at: u64,
    },
    /// The caller did not want to go on.
    Interrupted,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the transfer failed: {error}"),
            Self::Damaged { at } => write!(f, "what arrived is not what was sent, from octet {at} on"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for PathError {}

impl From<io::Error> for PathError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A transfer as it was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What came of it.
    pub showing: Showing,
    /// What the relay did, and how late it was.
    pub relay: Report,
    /// How late the sampling thread woke up, which runs at the ends' own, ordinary priority.
    pub ends_late: Summary,
    /// The sender's counters.
    pub sender: Statistics,
    /// Datagrams that the kernel dropped in front of either end's socket; `None` where it does not say.
    pub end_overflows: Option<u64>,
}

/// Sends through an emulated path. `watch` sees each sample and the payload that has arrived so far, and says whether to go
/// on. A transfer that takes more than twenty times the ideal and two minutes is given up, and shows no `finish_s`.
///
/// # Errors
/// [`PathError`].
pub fn measure(spec: &PathSpec, watch: &mut dyn FnMut(&Sample, u64) -> bool) -> Result<Measured, PathError> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut transfer = Transfer::begin(spec, &runtime)?;
    let finished = transfer.watch(spec, watch)?;
    let measured = transfer.finish(spec, &runtime, finished)?;
    // Whatever still lingers ends with its sockets.
    runtime.shutdown_background();
    Ok(measured)
}

/// What the receiving task comes to: when the first and the last octet came.
type Receiving = tokio::task::JoinHandle<Result<(Instant, Instant), PathError>>;

struct Transfer {
    began: Instant,
    relay: Relay,
    ends: [UtpSocket; 2],
    /// Kept for its numbers.
    sender: OwnedReadHalf,
    receiving: Receiving,
    received: Arc<AtomicU64>,
    samples: Vec<Sample>,
    late: Histogram,
    last: Last,
}

/// What the counters were at the last sample.
#[derive(Default)]
struct Last {
    t_s: f64,
    received: u64,
    waits: u64,
    waited_ms: f64,
}

impl Transfer {
    fn begin(spec: &PathSpec, runtime: &Runtime) -> Result<Self, PathError> {
        let local = if spec.ipv6 { "[::1]:0" } else { "127.0.0.1:0" };
        let config = SocketConfig { stream: spec.stream.clone(), ..SocketConfig::default() };
        let bind = || runtime.block_on(UtpSocket::bind_with(local, config.clone())).map_err(io::Error::from);
        let ends = [bind()?, bind()?];
        let relay = Relay::start(spec.relay(ends[1].local_addr()))?;
        let began = Instant::now();
        let (here, there) = runtime.block_on(async {
            let connected = async { ends[0].connect(relay.local_addr()).await.map_err(io::Error::from) };
            tokio::try_join!(connected, ends[1].accept())
        })?;
        let (sender, writer) = here.into_split();
        let received = Arc::new(AtomicU64::new(0));
        let receiving = runtime.spawn(receive(there, spec.bytes, Arc::clone(&received)));
        runtime.spawn(send(writer, spec.bytes));
        Ok(Self {
            began,
            relay,
            ends,
            sender,
            receiving,
            received,
            samples: Vec::new(),
            late: Histogram::default(),
            last: Last::default(),
        })
    }

    /// Samples until the receiver has ended; false where that took too long.
    fn watch(
        &mut self,
        spec: &PathSpec,
        watch: &mut dyn FnMut(&Sample, u64) -> bool,
    ) -> Result<bool, PathError> {
        let interval = std::time::Duration::from(INTERVAL);
        for tick in 1.. {
            let next = self.began + interval * tick;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            self.late.record(next.elapsed().into());
            let finished = self.receiving.is_finished();
            let sample = self.sample()?;
            if !watch(&sample, self.last.received) {
                return Err(PathError::Interrupted);
            }
            if finished || self.began.elapsed() > spec.patience().into() {
                return Ok(finished);
            }
        }
        Ok(false)
    }

    fn sample(&mut self) -> Result<Sample, PathError> {
        let queueing = self.relay.report()?.forward.queueing;
        let received = self.received.load(Ordering::Relaxed);
        let now = Last {
            t_s: self.began.elapsed().as_secs_f64(),
            received,
            waits: queueing.samples,
            waited_ms: queueing.total_ms(),
        };
        let last = std::mem::replace(&mut self.last, now);
        let now = &self.last;
        let waits = now.waits - last.waits;
        let sample = Sample {
            t_s: now.t_s,
            rate_mbps: (now.received - last.received) as f64 * 8e-6 / (now.t_s - last.t_s).max(1e-9),
            queue_ms: (waits > 0).then(|| (now.waited_ms - last.waited_ms).max(0.0) / waits as f64),
            cwnd_bytes: self.sender.snapshot().map_or(0.0, |snapshot| snapshot.controller.cwnd_bytes),
            retransmissions: self.sender.statistics().retransmissions,
        };
        self.samples.push(sample);
        Ok(sample)
    }

    fn finish(self, spec: &PathSpec, runtime: &Runtime, finished: bool) -> Result<Measured, PathError> {
        let since = |moment: Instant| moment.duration_since(self.began).as_secs_f64();
        let times = if finished {
            let joined = runtime.block_on(self.receiving).map_err(io::Error::other)?;
            Some(joined?)
        } else {
            None
        };
        let finish_s = times.map(|(_, last)| since(last));
        let sender = self.sender.statistics();
        let mut showing = Showing::of(self.samples, spec.bytes, finish_s);
        showing.first_octet_s = times.map(|(first, _)| since(first));
        showing.retransmissions = sender.retransmissions;
        showing.timeouts = sender.timeouts;
        let addresses = self.ends.each_ref().map(UtpSocket::local_addr);
        let ends_late = Summary::of(&self.late);
        let end_overflows = overflows(&addresses);
        Ok(Measured { showing, relay: self.relay.report()?, ends_late, sender, end_overflows })
    }
}

/// The octets that are sent, over and over.
fn pattern() -> Vec<u8> {
    let mut random = cede_units::Stream::named(1, "path/octets");
    (0..PERIOD_BYTES).map(|_| random.below(256) as u8).collect()
}

async fn send(mut writer: OwnedWriteHalf, bytes: u64) -> io::Result<()> {
    let pattern = pattern();
    let mut left = bytes;
    while left > 0 {
        let piece = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        writer.write_all(&pattern[..piece]).await?;
        left -= piece as u64;
    }
    writer.shutdown().await
}

async fn receive(
    mut stream: UtpStream,
    bytes: u64,
    received: Arc<AtomicU64>,
) -> Result<(Instant, Instant), PathError> {
    let pattern = pattern();
    let mut buffer = vec![0; READ_BYTES];
    let (mut at, mut first) = (0_u64, None);
    while at < bytes {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        first = first.or_else(|| Some(Instant::now()));
        if !continues(&pattern, at, &buffer[..n]) {
            return Err(PathError::Damaged { at });
        }
        at += n as u64;
        received.store(at, Ordering::Relaxed);
    }
    let last = Instant::now();
    Ok((first.unwrap_or(last), last))
}

/// Whether `octets` are those of the pattern from the place `at` on.
fn continues(pattern: &[u8], at: u64, mut octets: &[u8]) -> bool {
    let mut place = (at % pattern.len() as u64) as usize;
    while !octets.is_empty() {
        let piece = octets.len().min(pattern.len() - place);
        if octets[..piece] != pattern[place..place + piece] {
            return false;
        }
        octets = &octets[piece..];
        place = 0;
    }
    true
}
