//! One stream of a test, on either side.

use super::{Limit, Plan, Sample};
use crate::line::Line;
use cede_units::{Duration, Rate};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// Octets of one write or read.
const PIECE_BYTES: usize = 128 << 10;

/// Which way octets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// From here.
    Sender,
    /// To here.
    Receiver,
}

/// A stream that one task fills or empties while others look at it.
#[derive(Clone)]
struct Shared {
    line: Line,
    received_bytes: Arc<AtomicU64>,
}

impl Shared {
    /// Reads to the end and counts.
    async fn empty(&mut self, piece: &mut [u8]) -> io::Result<()> {
        loop {
            let n = self.line.read(piece).await?;
            if n == 0 {
                return Ok(());
            }
            self.received_bytes.fetch_add(n as u64, Relaxed);
        }
    }

    /// Writes until the limit, no faster than the rate, then waits until the peer has ended its direction: a receiver
    /// does that when it has read everything.
    async fn fill(&mut self, limit: Limit, rate: Option<Rate>) -> io::Result<()> {
        let mut left = match limit {
            Limit::Bytes(bytes) => bytes,
            Limit::Time(_) => u64::MAX,
        };
        let piece = vec![0; piece_bytes(rate)];
        let (began, mut written) = (Instant::now(), 0);
        while left > 0 {
            let most = left.min(piece.len() as u64) as usize;
            let n = self.line.write(&piece[..most]).await? as u64;
            self.line.flush().await?;
            (left, written) = (left - n, written + n);
            if let Some(rate) = rate {
                sleep_until(began + std(rate.time_to_send(written))).await;
            }
        }
        self.line.shutdown().await?;
        self.empty(&mut [0; 64]).await
    }
}

/// What is written at once: little at low rates, so that they are kept to at short range too.
fn piece_bytes(rate: Option<Rate>) -> usize {
    let bytes = rate.map_or(u64::MAX, |rate| rate.bytes_in(Duration::from_millis(5)));
    bytes.clamp(1000, PIECE_BYTES as u64) as usize
}

pub(crate) fn std(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}

pub(crate) fn span_since(began: Instant) -> Duration {
    Duration::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// A stream under test.
pub(crate) struct Flow {
    shared: Shared,
    role: Role,
    began: Instant,
    /// Octets acknowledged before the test: those of the greeting.
    acked_before: u64,
    task: JoinHandle<io::Result<()>>,
    /// The task's outcome has been taken.
    is_heard: bool,
}

impl Flow {
    /// Begins to fill or to empty a stream.
    pub fn start(line: Line, role: Role, plan: &Plan) -> Self {
        let acked_before = line.acked_bytes();
        let shared = Shared { line, received_bytes: Arc::new(AtomicU64::new(0)) };
        let (mut held, limit, rate) = (shared.clone(), plan.limit, plan.rate);
        let task = tokio::spawn(async move {
            match role {
                Role::Sender => held.fill(limit, rate).await,
                Role::Receiver => {
                    held.empty(&mut vec![0; PIECE_BYTES]).await?;
                    held.line.shutdown().await
                }
            }
        });
        Self { shared, role, began: Instant::now(), acked_before, task, is_heard: false }
    }

    /// Where it stands.
    pub fn sample(&self) -> Sample {
        let statistics = self.shared.line.statistics();
        let mut sample = Sample {
            at: span_since(self.began),
            bytes: match self.role {
                Role::Sender => self.shared.line.acked_bytes().saturating_sub(self.acked_before),
                Role::Receiver => self.shared.received_bytes.load(Relaxed),
            },
            retransmissions: statistics.retransmissions,
            ..Sample::default()
        };
        if let Some(snapshot) = self.shared.line.snapshot() {
            let estimate = snapshot.rtt_min.map(|least| snapshot.srtt - least);
            sample.cwnd_bytes = snapshot.cwnd_bytes;
            sample.rtt = snapshot.srtt;
            sample.queueing_delay = snapshot.controller.queueing_delay.or(estimate);
            sample.is_queue_estimated = snapshot.controller.queueing_delay.is_none();
        }
        sample
    }

    /// Whether it has come to its end, good or bad.
    pub fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits for its end; may be called again afterwards.
    ///
    /// # Errors
    /// Those of the stream, once.
    pub async fn over(&mut self) -> io::Result<()> {
        if self.is_heard {
            return Ok(());
        }
        let outcome = (&mut self.task).await;
        self.is_heard = true;
        outcome.map_err(io::Error::other)?
    }
}

impl Drop for Flow {
    /// Nobody needs what is still under way.
    fn drop(&mut self) {
        self.task.abort();
        self.shared.line.abort();
    }
}
