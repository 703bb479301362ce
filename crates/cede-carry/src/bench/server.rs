//! The side of a test that carries it out for others.

use super::flow::{Flow, Role, span_since, std};
use super::{Limit, Plan, Sample};
use crate::error::WireError;
use crate::line::Line;
use crate::link::Link;
use crate::message::Message;
use crate::stop::Stop;
use cede_real::ControllerChoice;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

/// How long streams that were announced may take to come.
const JOINING: Duration = Duration::from_secs(15);
/// How much longer than planned a test may run before the server ends it.
const OVERTIME: Duration = Duration::from_secs(30);

type Joining = mpsc::Sender<(u16, Line)>;

/// Tests that wait for their streams, or have them.
#[derive(Clone, Default)]
pub(crate) struct Sessions(Arc<Mutex<HashMap<u64, (IpAddr, Joining)>>>);

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (IpAddr, Joining)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The test that a stream from this address may join; numbers are random, so nobody joins another's.
    pub fn find(&self, number: u64, from: IpAddr) -> Option<Joining> {
        self.lock().get(&number).filter(|(peer, _)| *peer == from).map(|(_, joining)| joining.clone())
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }
}

/// One test.
pub(crate) struct Session {
    sessions: Sessions,
    number: u64,
    joining: mpsc::Receiver<(u16, Line)>,
    plan: Plan,
    controller: Option<ControllerChoice>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.sessions.lock().remove(&self.number);
    }
}

impl Session {
    /// Takes a test into the books; the controller is that of streams which send.
    pub fn open(
        sessions: &Sessions,
        from: IpAddr,
        plan: Plan,
        controller: Option<ControllerChoice>,
    ) -> Result<Self, String> {
        let number = getrandom::u64().map_err(|error| error.to_string())?;
        let (sender, joining) = mpsc::channel(usize::from(plan.streams));
        sessions.lock().insert(number, (from, sender));
        Ok(Self { sessions: sessions.clone(), number, joining, plan, controller })
    }

    /// Carries it out to its end, and returns how the streams stood then. `watch` is told every interval.
    pub async fn run(
        mut self,
        link: &mut Link,
        stop: &mut Stop,
        mut watch: impl FnMut(&[Sample]),
    ) -> Result<Vec<Sample>, WireError> {
        link.writer.send(&Message::Welcome(self.number)).await?;
        link.reader.listen_anew();
        while link.reader.next_in_time().await? != Message::Start {}
        let began = Instant::now();
        let interval = std(self.plan.interval);
        let flows = self.flows().await?;
        let mut running = Running { flows, link, next: began + interval, interval };
        let overtime = match self.plan.limit {
            Limit::Time(span) => began + std(span) + OVERTIME,
            Limit::Bytes(_) => began + std(super::MAX_TIME),
        };
        loop {
            if let Some(samples) = running.step(stop, &mut watch).await? {
                return Ok(samples);
            }
            if Instant::now() > overtime {
                return Err(WireError::GaveUp(format!("the test did not end in {}", span_since(began))));
            }
        }
    }

    /// The test's streams, all of them, in their order.
    async fn flows(&mut self) -> Result<Vec<Flow>, WireError> {
        let wanted = usize::from(self.plan.streams);
        let mut streams = BTreeMap::new();
        while streams.len() < wanted {
            let joined = timeout(JOINING, self.joining.recv()).await.ok().flatten();
            let (index, stream) = joined.ok_or(WireError::Silent)?;
            if usize::from(index) >= wanted || streams.insert(index, stream).is_some() {
                return Err(WireError::Unexpected);
            }
        }
        streams.into_values().map(|stream| self.flow(stream)).collect()
    }

    fn flow(&self, line: Line) -> Result<Flow, WireError> {
        if let Some(choice) = &self.controller {
            line.set_controller(choice).map_err(|error| WireError::GaveUp(error.to_string()))?;
        }
        let role = if self.plan.reverse { Role::Sender } else { Role::Receiver };
        Ok(Flow::start(line, role, &self.plan))
    }
}

/// A test under way.
struct Running<'a> {
    flows: Vec<Flow>,
    link: &'a mut Link,
    next: Instant,
    interval: Duration,
}

impl Running<'_> {
    fn samples(&self) -> Vec<Sample> {
        self.flows.iter().map(Flow::sample).collect()
    }

    /// Waits for one thing to happen; how the streams stood, where it was the end.
    async fn step(
        &mut self,
        stop: &mut Stop,
        watch: &mut impl FnMut(&[Sample]),
    ) -> Result<Option<Vec<Sample>>, WireError> {
        tokio::select! {
            () = stop.asked() => return Err(WireError::GaveUp("the server was stopped".to_owned())),
            () = sleep_until(self.next) => {
                let samples = self.samples();
                watch(&samples);
                self.link.writer.send(&Message::Report(samples)).await?;
                self.next += self.interval;
            }
            () = sleep_until(self.link.writer.alive_due()) => self.link.writer.send(&Message::Alive).await?,
            heard = self.link.reader.next_in_time() => match heard? {
                Message::Alive => {}
                Message::Finish => return self.last_word().await.map(Some),
                _ => return Err(WireError::Unexpected),
            },
        }
        Ok(None)
    }

    async fn last_word(&mut self) -> Result<Vec<Sample>, WireError> {
        let samples = self.samples();
        self.link.writer.send(&Message::Report(samples.clone())).await?;
        self.link.writer.send(&Message::Finish).await?;
        Ok(samples)
    }
}
