//! The side of a test that asks for it.

use super::flow::{Flow, Role, std};
use super::{Limit, Plan, Sample};
use crate::dial::{DialError, Target, dial};
use crate::error::WireError;
use crate::greeting::greet;
use crate::key::Key;
use crate::line::Line;
use crate::link::Link;
use crate::message::{Message, Purpose};
use crate::stop::Stop;
use cede_real::{ConnectError, StreamConfig, UtpSocket};
use std::fmt;
use std::net::SocketAddr;
use tokio::time::{Instant, sleep_until, timeout_at};

/// How long the other side may take for its last report.
const LAST_WORD: std::time::Duration = std::time::Duration::from_secs(10);
/// How long the other side's reason may take where a stream has broken.
const REASON: std::time::Duration = std::time::Duration::from_secs(1);
/// How long our own end may take to arrive where the test has broken.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(1);

/// How much later than our own interval the other side's may end.
const REPORT_LATE: std::time::Duration = std::time::Duration::from_millis(150);

/// Why there is no test, or no end of it.
#[derive(Debug)]
pub enum TestError {
    /// There is no stream.
    Dial(DialError),
    /// There is no further stream.
    Connect(ConnectError),
    /// The conversation broke.
    Wire(WireError),
}

impl fmt::Display for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dial(error) => error.fmt(f),
            Self::Connect(error) => error.fmt(f),
            Self::Wire(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TestError {}

impl From<WireError> for TestError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

impl From<std::io::Error> for TestError {
    fn from(error: std::io::Error) -> Self {
        Self::Wire(error.into())
    }
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// This end's address.
    pub local: SocketAddr,
    /// The other's.
    pub remote: SocketAddr,
    /// Payload octets of a full packet at the start.
    pub payload_bytes: u32,
}

/// A test whose streams stand.
pub struct Client {
    _socket: UtpSocket,
    control: Link,
    streams: Vec<Line>,
    plan: Plan,
    /// Who is at the other end.
    pub peer: Peer,
}

/// What a test came to: one sample of each stream.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// As this side saw it.
    pub here: Vec<Sample>,
    /// As the other side saw it; empty where it did not say.
    pub there: Vec<Sample>,
    /// Somebody asked for the end before its time.
    pub was_stopped: bool,
}

impl Client {
    /// Connects, says what is wanted, and opens the streams; under the key, where there is one.
    ///
    /// # Errors
    /// [`TestError`].
    pub async fn open(
        target: &Target,
        config: &StreamConfig,
        key: Option<&Key>,
        plan: Plan,
    ) -> Result<Self, TestError> {
        let (socket, control) = dial(target, config).await.map_err(TestError::Dial)?;
        let remote = control.peer_addr();
        let payload_bytes = control.snapshot().map_or(0, |snapshot| snapshot.payload_bytes);
        let peer = Peer { local: socket.local_addr(), remote, payload_bytes };
        let mut control = Link::new(Line::call(control, key).await?);
        let purpose = Purpose::Test(plan.clone());
        let session = greet(&mut control.reader, &mut control.writer, purpose).await?;
        let mut streams = Vec::with_capacity(usize::from(plan.streams));
        for index in 0..plan.streams {
            let stream = socket.connect_with(remote, config).await.map_err(TestError::Connect)?;
            let line = Line::call(stream, key).await?;
            streams.push(join(line, Purpose::Join { session, index }).await?);
        }
        Ok(Self { _socket: socket, control, streams, plan, peer })
    }

    /// Carries the test out. `watch` is told every interval how the streams stand here, and what the other side has
    /// said of them last.
    ///
    /// # Errors
    /// The error, and what there was until then.
    pub async fn run(
        mut self,
        stop: &mut Stop,
        mut watch: impl FnMut(&[Sample], &[Sample]),
    ) -> Result<Outcome, (TestError, Outcome)> {
        let role = if self.plan.reverse { Role::Receiver } else { Role::Sender };
        if let Err(error) = self.control.writer.send(&Message::Start).await {
            return Err((error.into(), Outcome::default()));
        }
        let plan = &self.plan;
        let flows = self.streams.drain(..).map(|stream| Flow::start(stream, role, plan)).collect();
        let (control, plan) = (&mut self.control, &self.plan);
        let mut running = Running { flows, there: Vec::new(), control, plan, is_report_new: false };
        let ended = running.until_end(stop, &mut watch).await;
        let here = running.samples();
        let ended = match ended {
            Ok(was_stopped) => running.last_word().await.map(|()| was_stopped),
            Err(error) => Err(error),
        };
        let there = std::mem::take(&mut running.there);
        drop(running);
        let outcome = Outcome { here, there, was_stopped: *ended.as_ref().unwrap_or(&false) };
        let parting = self.control.part();
        match ended {
            Ok(_) => parting.await,
            // Who has fallen silent acknowledges nothing any more.
            Err(_) => drop(tokio::time::timeout(FAREWELL, parting).await),
        }
        ended.map(|_| outcome.clone()).map_err(|error| (error, outcome))
    }
}

/// A stream that has joined the test.
async fn join(line: Line, purpose: Purpose) -> Result<Line, WireError> {
    let mut link = Link::new(line);
    greet(&mut link.reader, &mut link.writer, purpose).await?;
    Ok(link.line)
}

/// A test under way.
struct Running<'a> {
    flows: Vec<Flow>,
    there: Vec<Sample>,
    control: &'a mut Link,
    plan: &'a Plan,
    /// What stands in `there` has not been told.
    is_report_new: bool,
}

impl Running<'_> {
    fn samples(&self) -> Vec<Sample> {
        self.flows.iter().map(Flow::sample).collect()
    }

    /// When it ends, where that is a matter of time.
    fn end(&self) -> Option<Instant> {
        match self.plan.limit {
            Limit::Time(span) => Some(Instant::now() + std(span)),
            Limit::Bytes(_) => None,
        }
    }

    /// Runs until the limit, or until somebody asks for the end.
    async fn until_end(
        &mut self,
        stop: &mut Stop,
        watch: &mut impl FnMut(&[Sample], &[Sample]),
    ) -> Result<bool, TestError> {
        let interval = std(self.plan.interval);
        let end = self.end();
        let mut next = Instant::now() + interval;
        loop {
            // The last interval is told with the end.
            let tick = end.map_or(next, |end| next.min(end));
            tokio::select! {
                () = stop.asked() => return Ok(true),
                () = sleep_until(tick) => {
                    if end == Some(tick) {
                        return Ok(false);
                    }
                    let here = self.samples();
                    self.hear_report().await?;
                    watch(&here, &self.there);
                    next += interval;
                }
                over = all_over(&mut self.flows), if end.is_none() => {
                    return self.unless_broken(over).await.map(|()| false);
                }
                heard = self.control.reader.next_in_time() => self.hear(heard?)?,
                () = sleep_until(self.control.writer.alive_due()) => {
                    self.control.writer.send(&Message::Alive).await?;
                }
            }
            if end.is_some() {
                self.check().await?;
            }
        }
    }

    /// A stream that ends before its time has broken.
    async fn check(&mut self) -> Result<(), TestError> {
        let Some(flow) = self.flows.iter_mut().find(|flow| flow.is_over()) else { return Ok(()) };
        let broke = flow.over().await.map_or_else(TestError::from, |()| WireError::Unexpected.into());
        self.unless_broken(Err(broke)).await
    }

    /// How streams have ended. Who gives up breaks them off, and says why over that of the words, which may come behind that.
    async fn unless_broken(&mut self, over: Result<(), TestError>) -> Result<(), TestError> {
        let until = Instant::now() + REASON;
        while over.is_err()
            && let Ok(Ok(message)) = timeout_at(until, self.control.reader.next()).await
        {
            if let Message::Failed(text) = message {
                return Err(WireError::Failed(text).into());
            }
        }
        over
    }

    fn hear(&mut self, message: Message) -> Result<(), TestError> {
        match message {
            Message::Report(samples) if samples.len() == self.flows.len() => {
                (self.there, self.is_report_new) = (samples, true);
            }
            Message::Alive => {}
            Message::Failed(text) => return Err(WireError::Failed(text).into()),
            _ => return Err(WireError::Unexpected.into()),
        }
        Ok(())
    }

    /// Where the other side sends, its report of the interval that has just ended is on its way.
    async fn hear_report(&mut self) -> Result<(), TestError> {
        let until = Instant::now() + std(self.plan.interval).min(REPORT_LATE);
        while self.plan.reverse && !self.is_report_new {
            match timeout_at(until, self.control.reader.next()).await {
                Ok(heard) => self.hear(heard?)?,
                Err(_) => break,
            }
        }
        self.is_report_new = false;
        Ok(())
    }

    /// Asks for the other side's last report. One that was under way already is not it: the answer to `Finish` comes
    /// behind a `Finish` of its own.
    async fn last_word(&mut self) -> Result<(), TestError> {
        self.control.writer.send(&Message::Finish).await?;
        let hear = async {
            loop {
                match self.control.reader.next().await? {
                    Message::Finish => return Ok(()),
                    Message::Report(samples) => self.there = samples,
                    Message::Failed(text) => return Err(WireError::Failed(text)),
                    _ => {}
                }
            }
        };
        tokio::time::timeout(LAST_WORD, hear).await.map_err(|_| WireError::Silent)??;
        Ok(())
    }
}

/// Waits until all streams have ended.
async fn all_over(flows: &mut [Flow]) -> Result<(), TestError> {
    for flow in flows {
        flow.over().await?;
    }
    Ok(())
}
