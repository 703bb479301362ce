//! A torrent that runs: the engine of `cede-bt`, driven by sockets, a disk and the clock.
//!
//! Everything but the disk lives on one thread. A task for each connection reads what has come, hands it to the engine and
//! at once takes out whatever that causes, for any connection; a task of its own keeps the deadlines. The engine is never held
//! across an `await`.

mod conn;
mod dial;
mod extend;
mod outgoing;
mod pump;
mod punch;
mod view;

pub use crate::agree::Encryption;
pub use crate::listener::Listener;
pub use view::{PeerView, View};

use crate::clock::Clock;
use crate::disk::{Disk, Part, Report};
use crate::limits::Bucket;
use crate::origin::canonical;
use crate::reception::Door;
use crate::storage::{Notes, Stamp, Storage, StorageError};
use crate::web::{self, WebNote};
use cede_bt::engine::{AnnounceEvent, ConnId, Setup};
use cede_bt::extension::{Extension, Hearsay};
use cede_bt::holepunch::Puncher;
use cede_bt::metainfo::Info;
use cede_bt::mixed::MixedRule;
use cede_bt::{Bitfield, Disposition, Duplicates, Engine, Geometry, PerFamily, Profile, Transport, layers};
use cede_units::{Instant as Time, Stream as Random};
use conn::Shared;
use outgoing::Spare;
use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};

/// Notes about the download are written so often.
const NOTES_EVERY: Duration = Duration::from_secs(30);
/// Peers are told of others so often (BEP 11).
const PEX_EVERY: Duration = Duration::from_secs(60);

/// Who asks for nothing for so long gives its upload slot to the next who waits.
const SLOT_PATIENCE: cede_units::Duration = cede_units::Duration::from_secs(10);

/// Peers of other clients have so long to decide which of two connections to us they keep.
const DUPLICATE_PATIENCE: cede_units::Duration = cede_units::Duration::from_secs(1);

/// Peers that are remembered to be banned, and to have hung up on the clear.
const MAX_BANNED: usize = 1_000;
const MAX_DEAF: usize = 1_000;

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Choices {
    /// How the peer behaves.
    pub profile: Profile,
    /// Which transports it attempts and accepts.
    pub disposition: Disposition,
    /// Octets per second sent at most.
    pub upload_limit: Option<u64>,
    /// Octets per second read at most.
    pub download_limit: Option<u64>,
    /// Whether connections are enciphered.
    pub encryption: Encryption,
    /// Peers are told by peers.
    pub pex: bool,
    /// Our name among peers.
    pub peer_id: [u8; 20],
    /// What we call ourselves.
    pub client: String,
    /// Seeds the random choices.
    pub seed: u64,
}

impl Choices {
    /// How peers tell of others: not of a private torrent's, and holes are punched where uTP may be attempted.
    fn hearsay(&self, info: &Info) -> Hearsay {
        let exchanges = self.pex && !info.is_private;
        Hearsay { exchanges, punches: exchanges && self.disposition.attempts(Transport::Utp) }
    }
}

/// What is wanted of whoever looks for peers.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// What has happened.
    pub event: AnnounceEvent,
    /// How many are wanted.
    pub want: u32,
}

/// How a run ended.
#[derive(Debug)]
pub enum SessionError {
    /// A file could not be read or written. What is there stays.
    Storage(StorageError),
    /// The torrent is of a kind that cannot be downloaded.
    Unsupported(&'static str),
}

impl std::fmt::Display for SessionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Storage(error) if error.is_full() => {
                write!(f, "{error}; what has come so far stays: make room and start again")
            }
            Self::Storage(error) if error.is_cut_short() => {
                write!(f, "{error}; start again, and what is still there is given")
            }
            Self::Storage(error) => error.fmt(f),
            Self::Unsupported(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for SessionError {}

/// A torrent that runs. Clones are the same one; they stay on the thread that made them.
#[derive(Clone)]
pub struct Session {
    inner: Rc<Inner>,
}

pub(crate) struct Inner {
    pub state: RefCell<State>,
    pub info: Arc<Info>,
    pub storage: Arc<Storage>,
    pub choices: Choices,
    /// Something the deadline task should know of.
    pub alarm: Notify,
    clock: Clock,
}

pub(crate) struct State {
    pub engine: Engine<SocketAddr>,
    /// By the engine's small numbers.
    pub conns: Vec<Option<Rc<RefCell<Shared>>>>,
    pub disk: Disk,
    /// What has arrived and is not with the disk yet.
    pub stores: Vec<Part>,
    /// Tasks that wait for the disk.
    pub waiting: Vec<Waker>,
    /// Buffers of connections that the disk may still have parts of.
    pub buffers: VecDeque<Arc<[u8]>>,
    /// Memory for what waits to be written.
    pub spare: Spare,
    pub listener: Option<Rc<Listener>>,
    pub wishes: mpsc::UnboundedSender<Wish>,
    pub error: Option<SessionError>,
    pub is_complete: bool,
    pub is_synced: bool,
    /// When the deadline task will look by itself.
    pub armed: Option<Time>,
    pub download: Rc<RefCell<Bucket>>,
    /// Servers that are asked for content.
    pub web_seeds: Vec<String>,
    /// The session ends: nothing more is to be fetched.
    pub has_left: bool,
    pub banned: Vec<SocketAddr>,
    /// A banned peer that comes again comes from another port.
    banned_ips: HashSet<IpAddr>,
    /// Peers that have hung up on a handshake in the clear.
    pub deaf: HashSet<SocketAddr>,
    /// Answers those who ask for hashes of a v2 torrent, each so often.
    pub hashes: layers::Server,
    /// Who tells of peers behind routers.
    pub puncher: Puncher<ConnId>,
    /// The port that peers are told of as ours.
    told_port: Option<u16>,
    /// Hears of nodes of the distributed hash table.
    pub hears_of_nodes: Option<Box<dyn Fn(SocketAddr)>>,
}

impl State {
    fn new(
        engine: Engine<SocketAddr>,
        disk: Disk,
        listener: Option<Rc<Listener>>,
        wishes: mpsc::UnboundedSender<Wish>,
        download: Rc<RefCell<Bucket>>,
        hashes: layers::Server,
    ) -> Self {
        Self {
            engine,
            conns: Vec::new(),
            disk,
            stores: Vec::new(),
            waiting: Vec::new(),
            buffers: VecDeque::new(),
            spare: Spare::default(),
            listener,
            wishes,
            error: None,
            is_complete: false,
            is_synced: false,
            armed: None,
            download,
            web_seeds: Vec::new(),
            has_left: false,
            banned: Vec::new(),
            banned_ips: HashSet::new(),
            deaf: HashSet::new(),
            hashes,
            puncher: Puncher::new(Time::ZERO),
            told_port: None,
            hears_of_nodes: None,
        }
    }

    /// A peer sent bad pieces: nothing more is heard from its address.
    pub fn ban(&mut self, address: SocketAddr) {
        if self.banned.len() < MAX_BANNED {
            self.banned.push(address);
            self.banned_ips.insert(address.ip());
        }
    }

    pub fn is_banned(&self, address: SocketAddr) -> bool {
        self.banned_ips.contains(&address.ip())
    }

    /// A peer has hung up on the clear; whether that is remembered.
    pub fn note_deaf(&mut self, address: SocketAddr) -> bool {
        if self.deaf.len() < MAX_DEAF {
            self.deaf.insert(address);
        }
        self.deaf.contains(&address)
    }
}

impl Session {
    /// A torrent with what is there of it already. Must be called on the thread that runs it. The other end of `wishes` looks
    /// for peers and hands them to [`Session::add_peers`].
    ///
    /// # Errors
    /// [`SessionError::Unsupported`].
    pub fn new(
        info: &Arc<Info>,
        storage: &Arc<Storage>,
        whole: &[bool],
        listener: Option<Rc<Listener>>,
        choices: Choices,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Wish>, Driver), SessionError> {
        let setup = setup(info, whole, listener.as_deref(), &choices)?;
        let (reports, inbox) = mpsc::unbounded_channel();
        let (wishes, wished) = mpsc::unbounded_channel();
        let disk = Disk::start(storage.clone(), info.clone(), whole.to_vec(), reports);
        let download = Rc::new(RefCell::new(Bucket::new(choices.download_limit)));
        let mut engine = Engine::new(setup);
        if let Some(hash) = info.hybrid_hash() {
            engine.set_hybrid(hash);
        }
        let mut state = State::new(engine, disk, listener, wishes, download, layers::Server::new(info));
        state.told_port = state.listener.as_deref().map(Listener::told_port);
        let inner = Rc::new(Inner {
            state: RefCell::new(state),
            info: info.clone(),
            storage: storage.clone(),
            choices,
            alarm: Notify::new(),
            clock: Clock::begin(),
        });
        let session = Self { inner };
        Ok((session.clone(), wished, Driver { session, inbox, notes: None }))
    }

    /// Wants these files and no others.
    pub fn want_files(&self) {
        let pieces = self.inner.storage.wanted_pieces();
        let mut wanted = Bitfield::none(pieces.len() as u32);
        for (piece, _) in (0..).zip(&pieces).filter(|(_, is_wanted)| **is_wanted) {
            wanted.insert(piece);
        }
        let mut state = self.inner.state.borrow_mut();
        let now = self.inner.now();
        state.engine.want(now, wanted);
        self.inner.pump(&mut state);
    }

    /// Somebody knows of these peers.
    pub fn add_peers(&self, peers: &[SocketAddr]) {
        let mut state = self.inner.state.borrow_mut();
        let peers: Vec<SocketAddr> = peers.iter().map(|peer| canonical(*peer)).collect();
        state.engine.add_peers(self.inner.now(), &peers);
        self.inner.pump(&mut state);
    }

    /// Peers that somebody insists on: where there is no connection they are called now, however lately and often they could not be
    /// reached.
    pub fn call_peers(&self, peers: &[SocketAddr]) {
        let mut state = self.inner.state.borrow_mut();
        let peers: Vec<SocketAddr> = peers.iter().map(|peer| canonical(*peer)).collect();
        state.engine.call_peers(self.inner.now(), &peers);
        self.inner.pump(&mut state);
    }

    /// These peers are in the local network.
    pub fn add_near_peers(&self, peers: &[SocketAddr]) {
        let mut state = self.inner.state.borrow_mut();
        let peers: Vec<SocketAddr> = peers.iter().map(|peer| canonical(*peer)).collect();
        state.engine.add_near_peers(self.inner.now(), &peers);
        self.inner.pump(&mut state);
    }

    /// Fetches from web seeds (BEP 19), too, what is missing; what is to be known of them comes back. Must be called within a
    /// [`tokio::task::LocalSet`].
    #[must_use]
    pub fn use_web_seeds(&self, urls: &[String]) -> mpsc::UnboundedReceiver<WebNote> {
        let (notes, noted) = mpsc::unbounded_channel();
        web::begin(&self.inner, urls, &notes);
        noted
    }

    /// What trackers were told has changed: they are asked anew, as soon as they let themselves be.
    pub fn announce_again(&self) {
        let state = self.inner.state.borrow();
        let want = self.inner.choices.profile.want_peers;
        let _ = state.wishes.send(Wish { event: AnnounceEvent::More, want });
    }

    /// Peers that have a node of the distributed hash table hear that ours of their family is at this UDP port, and whoever is given hears
    /// where theirs are. Not for private torrents.
    pub fn join_dht(&self, ports: PerFamily<Option<u16>>, hear: impl Fn(SocketAddr) + 'static) {
        let mut state = self.inner.state.borrow_mut();
        state.hears_of_nodes = Some(Box::new(hear));
        state.engine.set_dht_ports(self.inner.now(), ports);
        self.inner.pump(&mut state);
    }

    /// Changes the upload limit, in octets per second.
    pub fn set_upload_limit(&self, limit: Option<u64>) {
        let mut state = self.inner.state.borrow_mut();
        state.engine.set_upload_limit(limit);
        self.inner.pump(&mut state);
    }

    /// Reads no faster than this allows.
    pub(crate) fn read_from(&self, bucket: Rc<RefCell<Bucket>>) {
        self.inner.state.borrow_mut().download = bucket;
    }

    /// Octets of blocks that were sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.inner.state.borrow().engine.totals().uploaded.iter().sum()
    }

    /// Whether it was told to [`Session::leave`].
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.inner.state.borrow().has_left
    }

    /// How everything stands.
    #[must_use]
    pub fn view(&self) -> View {
        self.inner.view()
    }

    /// Wants nothing more: only what is there is given.
    pub fn want_nothing(&self) {
        let mut state = self.inner.state.borrow_mut();
        state.engine.want(self.inner.now(), Bitfield::none(self.inner.info.piece_count()));
        self.inner.pump(&mut state);
    }

    /// Wants nothing, and where everything is there seems to have nothing, and tells each peer of a few pieces (BEP 16). To be called
    /// before it runs.
    pub fn super_seed(&self) {
        self.inner.state.borrow_mut().engine.super_seed();
        self.want_nothing();
    }

    /// Whoever looks for peers hears nothing more of this session, and so may say goodbye.
    pub fn leave(&self) {
        let mut state = self.inner.state.borrow_mut();
        (state.wishes, state.has_left) = (mpsc::unbounded_channel().0, true);
    }

    /// Which pieces are there, checked.
    #[must_use]
    pub fn whole(&self) -> Vec<bool> {
        let state = self.inner.state.borrow();
        (0..self.inner.info.piece_count()).map(|piece| state.engine.have().has(piece)).collect()
    }

    /// Everything wanted is there, and on the disk.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let state = self.inner.state.borrow();
        state.engine.is_complete() && (state.is_synced || !state.is_complete)
    }
}

/// A client's rules where its swarm is the open network's.
fn in_the_open(profile: Profile) -> Profile {
    Profile {
        slot_patience: Some(SLOT_PATIENCE),
        // Nothing of TCP is held back by guesses: whoever wants that says so (`--up`, `--down`).
        mixed: MixedRule::Free,
        duplicates: match profile.duplicates {
            // Several peers may be behind one address, and both ends are to keep the same connection.
            Duplicates::Drawn => Duplicates::ByPeerId,
            other => other,
        },
        duplicate_patience: Some(DUPLICATE_PATIENCE),
        // A slot that is not used goes to the next; the connection does no harm.
        seed_patience: None,
        ..profile
    }
}

fn setup(
    info: &Info,
    whole: &[bool],
    listener: Option<&Listener>,
    choices: &Choices,
) -> Result<Setup, SessionError> {
    if info.lacks_hashes() {
        return Err(SessionError::Unsupported("the torrent lacks the hashes of its pieces"));
    }
    if info.piece_count() > Geometry::PIECES_MAX {
        return Err(SessionError::Unsupported("the torrent has too many pieces"));
    }
    let mut have = Bitfield::none(info.piece_count());
    for (piece, _) in (0..).zip(whole).filter(|(_, is_whole)| **is_whole) {
        have.insert(piece);
    }
    let port = listener.map(Listener::told_port);
    Ok(Setup {
        geometry: info.geometry.clone(),
        info_hash: info.info_hash(),
        peer_id: choices.peer_id,
        have,
        profile: in_the_open(choices.profile),
        disposition: choices.disposition,
        upload_limit: choices.upload_limit,
        extended: Some(greeting(info, choices, port)),
        notes: false,
        random: Random::named(choices.seed, "engine"),
    })
}

/// What peers are told of us.
fn greeting(info: &Info, choices: &Choices, port: Option<u16>) -> Vec<u8> {
    let size = u32::try_from(info.raw.len()).ok();
    Extension::ours(&choices.client, port, size, choices.hearsay(info))
}

impl Inner {
    /// The time as the engine counts it.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Nothing more is to be fetched.
    pub fn is_over(&self) -> bool {
        let state = self.state.borrow();
        state.engine.is_complete() || state.has_left || state.error.is_some()
    }

    fn instant(&self, time: Time) -> Instant {
        self.clock.to_system(time)
    }

    /// Callers are taken up as long as what comes back is there.
    fn start(self: &Rc<Self>) -> Option<Door> {
        let mut state = self.state.borrow_mut();
        state.engine.start(self.now());
        self.pump(&mut state);
        state.listener.as_ref().map(|listener| listener.receive(dial::names(&self.info), self.clone()))
    }

    /// A router may lead others to us by another port than before: peers hear of it.
    fn look_at_port(self: &Rc<Self>) {
        let mut state = self.state.borrow_mut();
        let port = state.listener.as_deref().map(Listener::told_port);
        if std::mem::replace(&mut state.told_port, port) != port {
            let greeting = greeting(&self.info, &self.choices, port);
            state.engine.set_extended(self.now(), greeting);
            self.pump(&mut state);
        }
    }

    /// When the engine wants to be looked at; from now on only something earlier is told.
    fn arm(&self) -> Option<Instant> {
        let mut state = self.state.borrow_mut();
        state.armed = state.engine.poll_timeout();
        state.armed.map(|time| self.instant(time))
    }

    /// A connection by its name, where it still has it.
    pub fn conn(state: &State, id: ConnId) -> Option<Rc<RefCell<Shared>>> {
        state.conns.get(id.index())?.clone().filter(|conn| conn.borrow().id == id)
    }
}

/// What has to run for a session to live.
pub struct Driver {
    session: Session,
    inbox: mpsc::UnboundedReceiver<Report>,
    notes: Option<Notes>,
}

impl Driver {
    /// Keeps notes of what is there, for a resumption.
    pub fn keep_notes(&mut self, notes: Option<Notes>) {
        self.notes = notes;
    }

    /// Runs until something fails. Dropping the future is the other end: what is under way then is lost, what was stored is
    /// not. Must run within a [`tokio::task::LocalSet`].
    ///
    /// # Errors
    /// [`SessionError`].
    pub async fn run(&mut self) -> Result<(), SessionError> {
        let inner = self.session.inner.clone();
        let _door = inner.start();
        let mut notes_at = Instant::now() + NOTES_EVERY;
        let mut pex_at = Instant::now() + PEX_EVERY;
        loop {
            let deadline = inner.arm().map_or(notes_at, |at| at.min(notes_at)).min(pex_at);
            tokio::select! {
                report = self.inbox.recv() => inner.on_report(report),
                () = tokio::time::sleep_until(deadline.into()) => inner.on_deadline(),
                () = inner.alarm.notified() => {}
            }
            if let Some(error) = inner.state.borrow_mut().error.take() {
                return Err(error);
            }
            inner.look_at_port();
            let now = Instant::now();
            if now >= notes_at {
                notes_at = now + NOTES_EVERY;
                self.write_notes();
            }
            if now >= pex_at {
                pex_at = now + PEX_EVERY;
                inner.exchange_peers();
            }
        }
    }

    /// Writes down what is there, or may be: files that are not wanted now were not looked at. What cannot be written only costs a
    /// check later.
    pub fn write_notes(&self) {
        if let Some(notes) = &self.notes {
            let storage = &self.session.inner.storage;
            let known = self.session.whole().into_iter().zip(storage.wanted_pieces());
            let may_be: Vec<bool> = known.map(|(is_whole, is_wanted)| is_whole || !is_wanted).collect();
            let _ = notes.write(&may_be, &stamps(storage));
        }
    }

    /// The notes, when the session is over.
    pub fn take_notes(&mut self) -> Option<Notes> {
        self.notes.take()
    }
}

/// How the files of a torrent stand.
#[must_use]
pub fn stamps(storage: &Storage) -> Vec<Option<Stamp>> {
    (0..storage.layout().files().len()).map(|file| Stamp::of(Path::new(&storage.path_of(file)))).collect()
}
