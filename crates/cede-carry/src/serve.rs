//! Answers whoever connects: tests, files to be taken, files to be given.

use crate::bench::{ControllerSpec, Plan, Sample, Session, Sessions};
use crate::door::Door;
use crate::error::WireError;
use crate::file::{self, Attendant, Destination, Moved, Offer, Progress, Source, TransferError};
use crate::greeting::be_greeted;
use crate::key::Key;
use crate::link::Link;
use crate::message::{Message, Purpose};
use crate::stop::{Stop, Stopper};
use cede_real::UtpStream;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A sender that has been silent for so long is taken for gone by another with the same file.
const STALE: Duration = Duration::from_secs(3);
/// How long another sender waits for a file to become free.
const TURN: Duration = Duration::from_secs(15);
/// Tests at one time.
const MAX_TESTS: usize = 16;
/// Conversations at one time, the streams of tests not counted.
const MAX_CLIENTS: usize = 256;

/// A file that is given to who asks for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// The name that it is asked for by.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
}

/// What those who connect may do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Allowed {
    /// What this side calls itself where it refuses: "`cede serve` without --dir".
    pub name: String,
    /// They may test the path.
    pub tests: bool,
    /// They may send files, to there.
    pub takes: Option<Destination>,
    /// One file is taken, whatever it is called, and others wait until it has come.
    pub takes_one: bool,
    /// Files may be so long at most.
    pub most_bytes: Option<u64>,
    /// They may ask for these files.
    pub shares: Vec<Share>,
}

/// What happens, for who tells it.
#[derive(Debug)]
pub enum Event {
    /// Somebody was not served, and why.
    Refused(String),
    /// A test begins.
    TestBegins(Plan),
    /// How its streams stand.
    TestRuns(Vec<Sample>),
    /// It is over; how its streams stood.
    TestEnds(Result<Vec<Sample>, WireError>),
    /// A file begins to come or, where `is_given`, to go.
    FileBegins {
        /// Its safe name.
        name: String,
        /// Its octets, where they are known.
        bytes: Option<u64>,
        /// It is one of the shares.
        is_given: bool,
    },
    /// How far it has come.
    FileMoves(Box<Progress>),
    /// It is over.
    FileEnds(Result<Moved, TransferError>),
}

/// Is told what happens: to which conversation, with whom.
pub type Tell = dyn Fn(u64, SocketAddr, Event) + Send + Sync;

/// Answers whoever connects.
pub struct Server {
    allowed: Allowed,
    door: Door,
    tell: Box<Tell>,
    sessions: Sessions,
    active: Mutex<HashMap<PathBuf, Active>>,
    /// Nothing more is taken.
    is_over: AtomicBool,
    conversations: AtomicU64,
    clients: AtomicUsize,
}

/// A file that is being received.
struct Active {
    heard: Arc<Mutex<Instant>>,
    /// It has come.
    is_whole: Arc<AtomicBool>,
    stopper: Stopper,
}

/// The same, for who receives it.
struct Claim {
    heard: Arc<Mutex<Instant>>,
    is_whole: Arc<AtomicBool>,
    superseded: Stop,
}

impl Active {
    fn begin() -> (Self, Claim) {
        let (heard, is_whole) = (Arc::new(Mutex::new(Instant::now())), Arc::<AtomicBool>::default());
        let stopper = Stopper::new();
        let superseded = stopper.stop();
        let claim = Claim { heard: Arc::clone(&heard), is_whole: Arc::clone(&is_whole), superseded };
        (Self { heard, is_whole, stopper }, claim)
    }
}

/// One conversation.
struct Client<'a> {
    server: &'a Server,
    number: u64,
    peer: SocketAddr,
}

impl Server {
    /// Who may do what, and who is told; with a key those who have it, and nobody else.
    #[must_use]
    pub fn new(allowed: Allowed, key: Option<Key>, tell: Box<Tell>) -> Self {
        Self {
            allowed,
            door: Door::new(key),
            tell,
            sessions: Sessions::default(),
            active: Mutex::new(HashMap::new()),
            is_over: AtomicBool::new(false),
            conversations: AtomicU64::new(1),
            clients: AtomicUsize::new(0),
        }
    }

    /// Answers one stream, until its conversation is over.
    pub async fn answer(&self, stream: UtpStream, stop: Stop) {
        let peer = stream.peer_addr();
        let mut link = match self.door.admit(stream).await {
            Ok(line) => Link::new(line),
            Err(error) => return self.client(peer).tell(Event::Refused(error.to_string())),
        };
        match be_greeted(&mut link.reader, &mut link.writer).await {
            Ok(Purpose::Join { session, index }) => return self.join(link, peer, session, index).await,
            Ok(purpose) => {
                let client = self.client(peer);
                if let Err(text) = client.serve(&mut link, purpose, stop).await {
                    client.tell(Event::Refused(text.clone()));
                    let _ = link.writer.send(&Message::Refused(text)).await;
                }
            }
            Err(error) => self.client(peer).tell(Event::Refused(error.to_string())),
        }
        link.part().await;
    }

    /// Those who have shown no key yet are no longer waited for, and nothing more is taken.
    pub fn close_door(&self) {
        self.is_over.store(true, Relaxed);
        self.door.close();
    }

    /// A conversation of its own.
    fn client(&self, peer: SocketAddr) -> Client<'_> {
        Client { server: self, number: self.conversations.fetch_add(1, Relaxed), peer }
    }

    /// Hands a stream to the test that it belongs to.
    async fn join(&self, mut link: Link, peer: SocketAddr, session: u64, index: u16) {
        let joining = self.sessions.find(session, peer.ip());
        let answer = match joining {
            Some(_) => Message::Welcome(0),
            None => Message::Refused("no such test waits for streams".to_owned()),
        };
        let answered = link.writer.send(&answer).await;
        match joining {
            Some(joining) if answered.is_ok() => drop(joining.try_send((index, link.line))),
            _ => link.part().await,
        }
    }

    fn active(&self) -> MutexGuard<'_, HashMap<PathBuf, Active>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody else sends this file, and takes it into the books. A sender that has gone without a word is
    /// sent away, where what it sent can be gone on with. What came meanwhile is not replaced by what was offered before.
    async fn claim(&self, path: &PathBuf, can_resume: bool) -> Result<Claim, TransferError> {
        let until = Instant::now() + TURN;
        let mut awaited: Option<Arc<AtomicBool>> = None;
        loop {
            {
                let mut active = self.active();
                if self.is_over.load(Relaxed) || awaited.is_some_and(|is_whole| is_whole.load(Relaxed)) {
                    return Err(TransferError::Late);
                }
                let Some(other) = active.get(path) else {
                    let (began, claim) = Active::begin();
                    active.insert(path.clone(), began);
                    return Ok(claim);
                };
                awaited = Some(Arc::clone(&other.is_whole));
                let silent = other.heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
                if can_resume && silent > STALE {
                    other.stopper.ask();
                }
            }
            if Instant::now() > until {
                return Err(TransferError::Busy);
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// A place among those who are served.
struct Seat<'a>(&'a AtomicUsize);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Client<'_> {
    fn tell(&self, event: Event) {
        (self.server.tell)(self.number, self.peer, event);
    }

    /// Does what is asked for; the error is for a refusal.
    async fn serve(&self, link: &mut Link, purpose: Purpose, mut stop: Stop) -> Result<(), String> {
        let seat = Seat(&self.server.clients);
        if seat.0.fetch_add(1, Relaxed) >= MAX_CLIENTS {
            return Err("too many are being served; try again later".to_owned());
        }
        let name = &self.server.allowed.name;
        match purpose {
            Purpose::Test(plan) => self.test(link, plan, &mut stop).await,
            Purpose::Put => self.put(link, stop).await,
            Purpose::Get { name } => self.get(link, &name, stop).await,
            Purpose::Relay => {
                Err(format!("this is {name}; TCP connections are taken by `cede proxy --utp-listen`"))
            }
            Purpose::Join { .. } => Err("a stream joins out of turn".to_owned()),
        }
    }

    async fn test(&self, link: &mut Link, plan: Plan, stop: &mut Stop) -> Result<(), String> {
        let server = self.server;
        if !server.allowed.tests {
            return Err(format!("this is {}; tests are answered by `cede serve`", server.allowed.name));
        }
        if server.sessions.len() >= MAX_TESTS {
            return Err(format!("{MAX_TESTS} tests are running; try again later"));
        }
        plan.check()?;
        let controller =
            plan.controller.as_ref().filter(|_| plan.reverse).map(stranger_s_choice).transpose()?;
        let session = Session::open(&server.sessions, self.peer.ip(), plan.clone(), controller)?;
        self.tell(Event::TestBegins(plan));
        let outcome = session.run(link, stop, |samples| self.tell(Event::TestRuns(samples.to_vec()))).await;
        if let Err(WireError::GaveUp(text)) = &outcome {
            let _ = link.writer.send(&Message::Failed(text.clone())).await;
        }
        self.tell(Event::TestEnds(outcome));
        Ok(())
    }

    async fn put(&self, link: &mut Link, stop: Stop) -> Result<(), String> {
        let allowed = &self.server.allowed;
        let Some(destination) = &allowed.takes else {
            return Err(format!(
                "this is {}, which takes no files; start it with --dir FOLDER, or use `cede recv -o FILE`",
                allowed.name
            ));
        };
        let welcomed = link.writer.send(&Message::Welcome(0)).await;
        let outcome = match welcomed {
            Ok(()) => self.take(link, destination, stop).await,
            Err(error) => Err(error.into()),
        };
        match outcome {
            // The other's file goes on: this is not its end.
            Err(error @ (TransferError::Busy | TransferError::Late)) => {
                self.tell(Event::Refused(error.to_string()));
            }
            outcome => self.tell(Event::FileEnds(outcome)),
        }
        Ok(())
    }

    async fn take(
        &self,
        link: &mut Link,
        destination: &Destination,
        stop: Stop,
    ) -> Result<Moved, TransferError> {
        let mut quiet = |_: &Progress| {};
        let offer = file::offered(link, &mut Attendant { stop: stop.clone(), watch: &mut quiet }).await?;
        let is_one = self.server.allowed.takes_one;
        let path = if is_one { PathBuf::new() } else { destination.path_for(&offer) };
        match self.server.claim(&path, destination.can_resume()).await {
            Ok(Claim { heard, is_whole, superseded }) => {
                self.tell_begin(&offer);
                let outcome =
                    self.take_alone(link, &offer, destination, (&path, heard, superseded), stop).await;
                is_whole.store(outcome.is_ok(), Relaxed);
                // Behind what went to a pipe nothing of another's is to follow, and nothing in place of the one file that was waited for.
                if destination.can_resume() && !(is_one && outcome.is_ok()) {
                    self.server.active().remove(&path);
                }
                outcome
            }
            Err(busy) => {
                let _ = link.writer.send(&Message::Failed(busy.to_string())).await;
                Err(busy)
            }
        }
    }

    fn tell_begin(&self, offer: &Offer) {
        let name = file::safe_name(&offer.name);
        self.tell(Event::FileBegins { name, bytes: offer.bytes, is_given: false });
    }

    /// Takes a file that nobody else sends, until another comes with it and this one has gone silent.
    async fn take_alone(
        &self,
        link: &mut Link,
        offer: &Offer,
        destination: &Destination,
        (path, heard, superseded): (&PathBuf, Arc<Mutex<Instant>>, Stop),
        mut stop: Stop,
    ) -> Result<Moved, TransferError> {
        let mut watch = |progress: &Progress| {
            let at = Instant::now().checked_sub(progress.silent).unwrap_or_else(Instant::now);
            *heard.lock().unwrap_or_else(PoisonError::into_inner) = at;
            self.tell(Event::FileMoves(Box::new(progress.clone())));
        };
        let most = self.server.allowed.most_bytes;
        let attendant = &mut Attendant { stop: superseded, watch: &mut watch };
        let receiving = file::receive_offered(link, offer, destination, most, attendant);
        tokio::pin!(receiving);
        let outcome = tokio::select! {
            outcome = &mut receiving => outcome,
            () = stop.asked() => {
                if let Some(active) = self.server.active().get(path) {
                    active.stopper.ask();
                }
                receiving.await
            }
        };
        match outcome {
            Err(TransferError::Stopped) if !stop.is_asked() => Err(TransferError::Superseded),
            outcome => outcome,
        }
    }

    async fn get(&self, link: &mut Link, name: &str, stop: Stop) -> Result<(), String> {
        let shares = &self.server.allowed.shares;
        let share = match shares.as_slice() {
            [only] if name.is_empty() => only,
            all => all.iter().find(|share| share.name == name).ok_or_else(|| self.no_share(name))?,
        };
        let name = share.name.clone();
        let nameless = |text: String| text.replace(&share.path.display().to_string(), &name);
        let path = share.path.clone();
        // Opening a pipe waits for who writes to it, and others are to be served meanwhile.
        let opened = tokio::task::spawn_blocking(move || Source::file(&path)).await;
        let opened = opened.unwrap_or_else(|error| Err(error.to_string()));
        let source = opened.map_err(nameless)?.labelled(&name);
        let bytes = source.offer().bytes;
        let welcomed = link.writer.send(&Message::Welcome(0)).await;
        self.tell(Event::FileBegins { name, bytes, is_given: true });
        let mut watch = |progress: &Progress| self.tell(Event::FileMoves(Box::new(progress.clone())));
        let outcome = match welcomed {
            Ok(()) => file::send(link, source, &mut Attendant { stop, watch: &mut watch }).await,
            Err(error) => Err(error.into()),
        };
        self.tell(Event::FileEnds(outcome));
        Ok(())
    }

    fn no_share(&self, name: &str) -> String {
        let names: Vec<&str> = self.server.allowed.shares.iter().map(|share| share.name.as_str()).collect();
        match (names.as_slice(), name) {
            ([], _) => {
                format!("this is {}, which gives no files; start it with FILE", self.server.allowed.name)
            }
            (_, "") => format!("there are several files; ask for one with --name: {}", names.join(", ")),
            _ => format!("there is no file {name}; there are: {}", names.join(", ")),
        }
    }
}

/// The controller that a stranger asks for: one that heeds congestion.
fn stranger_s_choice(spec: &ControllerSpec) -> Result<cede_real::ControllerChoice, String> {
    if !spec.is_responsive() {
        return Err(format!(
            "the controller {} does not respond to congestion, and is used for nobody else",
            spec.name
        ));
    }
    spec.choice().map_err(|error| error.to_string())
}
