//! What a session's tasks share: the engine, its connections by their names, the disk, and what each of them has to know.

use super::choices::{Choices, Told};
use super::error::SessionError;
use super::outgoing::Spare;
use super::shared::Shared;
use crate::bucket::Bucket;
use crate::calls::{Calls, Miss};
use crate::clock::Clock;
use crate::disk::{Disk, Part};
use crate::listener::Listener;
use crate::origin::{Origin, canonical};
use crate::storage::Storage;
use cede_bt::engine::{AnnounceEvent, ConnId};
use cede_bt::holepunch::Puncher;
use cede_bt::metainfo::Info;
use cede_bt::picker::Begun;
use cede_bt::{Engine, Transport, layers};
use cede_units::Instant as Time;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};

/// Peers that are remembered to be banned, and to have hung up on the clear.
const MAX_BANNED: usize = 1_000;
const MAX_DEAF: usize = 1_000;
/// When whoever has hung up without a word is called again for the first time, and how often it is.
const RECALL: Duration = Duration::from_secs(2);
const RECALLS_MAX: u32 = 3;

/// What is wanted of whoever looks for peers.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// What has happened.
    pub event: AnnounceEvent,
    /// How many are wanted.
    pub want: u32,
}

/// A session, as its tasks share it.
pub(crate) struct Inner {
    pub state: RefCell<State>,
    pub info: Arc<Info>,
    pub storage: Arc<Storage>,
    pub choices: Choices,
    /// What became of calls.
    pub calls: Calls,
    /// Something the deadline task should know of.
    pub alarm: Notify,
    /// All that is wanted has come to be on the disk.
    pub arrived: Notify,
    /// Connections that are open, those that the engine knows no more among them.
    pub links: Cell<usize>,
    pub clock: Clock,
}

/// A connection that is open.
pub(crate) struct Counted(Rc<Inner>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.links.update(|links| links - 1);
    }
}

/// What changes of it.
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
    pub limits: Held,
    /// Servers that are asked for content.
    pub web_seeds: Vec<String>,
    /// The session ends: nothing more is to be fetched. This was here of pieces that were not whole; it is written, and nothing that
    /// comes later.
    pub left: Option<Vec<Begun>>,
    pub banned: Vec<SocketAddr>,
    /// A banned peer that comes again comes from another port.
    banned_ips: HashSet<IpAddr>,
    /// Peers that have hung up on a handshake in the clear.
    pub deaf: HashSet<SocketAddr>,
    /// How often peers that had hung up without a word were called again soon.
    recalled: HashMap<SocketAddr, u32>,
    /// Answers those who ask for hashes of a v2 torrent, each so often.
    pub hashes: layers::Server,
    /// Who tells of peers behind routers.
    pub puncher: Puncher<ConnId>,
    /// What peers are told of us.
    pub told: Told,
    /// Hears of nodes of the distributed hash table.
    pub hears_of_nodes: Option<Box<dyn Fn(SocketAddr)>>,
}

/// How fast a session may be.
#[derive(Debug)]
pub(crate) struct Held {
    /// What is read is paid for out of this.
    pub down: RefCell<Bucket>,
    /// Octets per second that are sent at most: by a limit of its own, and as its part of one that several have.
    pub own_up: Option<u64>,
    pub part_up: Option<u64>,
}

impl Held {
    /// As it was chosen, until it is said what its part is of what several have.
    pub fn new(choices: &Choices) -> Self {
        let down = RefCell::new(Bucket::new(choices.download_limit));
        Self { down, own_up: None, part_up: choices.upload_limit }
    }

    /// Octets per second that are sent at most.
    fn up(&self) -> Option<u64> {
        [self.own_up, self.part_up].into_iter().flatten().min()
    }
}

impl State {
    pub fn new(
        engine: Engine<SocketAddr>,
        disk: Disk,
        listener: Option<Rc<Listener>>,
        wishes: mpsc::UnboundedSender<Wish>,
        limits: Held,
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
            limits,
            web_seeds: Vec::new(),
            left: None,
            banned: Vec::new(),
            banned_ips: HashSet::new(),
            deaf: HashSet::new(),
            recalled: HashMap::new(),
            hashes,
            puncher: Puncher::new(Time::ZERO),
            told: Told::default(),
            hears_of_nodes: None,
        }
    }

    /// Which of the machine's addresses everything goes out from.
    pub fn origin(&self) -> Origin {
        self.listener.as_deref().map(Listener::origin).unwrap_or_default()
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

    /// How long after a peer has hung up without a word it is called again: a few times, each after twice as long.
    pub fn until_recall(&mut self, address: SocketAddr) -> Option<Duration> {
        if self.recalled.len() >= MAX_DEAF {
            return None;
        }
        let times = self.recalled.entry(address).or_default();
        *times += 1;
        (*times <= RECALLS_MAX).then(|| RECALL * (1 << (*times - 1)))
    }

    /// A peer has hung up on the clear; whether that is remembered.
    pub fn note_deaf(&mut self, address: SocketAddr) -> bool {
        if self.deaf.len() < MAX_DEAF {
            self.deaf.insert(address);
        }
        self.deaf.contains(&address)
    }
}

impl Inner {
    /// The time as the engine counts it.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// One more connection is open, until what comes back is dropped.
    pub fn count_link(self: &Rc<Self>) -> Counted {
        self.links.update(|links| links + 1);
        Counted(self.clone())
    }

    /// Sends no faster than its own limit and its part of what several have allow.
    pub fn limit(self: &Rc<Self>, state: &mut State) {
        state.engine.set_upload_limit(state.limits.up());
        self.pump(state);
    }

    /// Those of these peers that are not to be left alone; of the others it is told that they were not called.
    pub fn to_be_called(&self, state: &State, peers: &[SocketAddr]) -> Vec<SocketAddr> {
        let is_filtered = |peer: &SocketAddr| {
            state.listener.as_ref().is_some_and(|listener| listener.leaves_alone(peer.ip()))
        };
        let (filtered, others): (Vec<_>, Vec<_>) =
            peers.iter().map(|peer| canonical(*peer)).partition(is_filtered);
        filtered.into_iter().for_each(|peer| self.calls.missed(peer, Transport::Tcp, Miss::Filtered));
        others
    }

    /// Nothing more is to be fetched.
    pub fn is_over(&self) -> bool {
        let state = self.state.borrow();
        state.engine.is_complete() || state.left.is_some() || state.error.is_some()
    }

    /// Which pieces are there, checked.
    pub fn whole(&self) -> Vec<bool> {
        let state = self.state.borrow();
        (0..self.info.piece_count()).map(|piece| state.engine.have().has(piece)).collect()
    }

    fn instant(&self, time: Time) -> Instant {
        self.clock.to_system(time)
    }

    /// When the engine wants to be looked at; from now on only something earlier is told.
    pub fn arm(&self) -> Option<Instant> {
        let mut state = self.state.borrow_mut();
        state.armed = state.engine.poll_timeout();
        state.armed.map(|time| self.instant(time))
    }

    /// A connection has ended, or came to nothing.
    pub fn part_from(self: &Rc<Self>, state: &mut State, id: ConnId) {
        state.engine.closed(self.now(), id);
        state.puncher.leave(id);
        if let Some(place) = state.conns.get_mut(id.index()) {
            place.take_if(|conn| conn.borrow().id == id);
        }
        self.pump(state);
    }

    /// A connection by its name, where it still has it.
    pub fn conn(state: &State, id: ConnId) -> Option<Rc<RefCell<Shared>>> {
        state.conns.get(id.index())?.clone().filter(|conn| conn.borrow().id == id)
    }
}
