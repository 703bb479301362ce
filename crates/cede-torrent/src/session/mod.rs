//! A torrent that runs: the engine of `cede-bt`, driven by sockets, a disk and the clock.
//!
//! Everything but the disk lives on one thread. A task for each connection reads what has come, hands it to the engine and
//! at once takes out whatever that causes, for any connection; a task of its own keeps the deadlines. The engine is never held
//! across an `await`.

mod away;
mod choices;
mod conn;
mod dial;
mod driver;
mod error;
mod extend;
mod outgoing;
mod pex;
mod pump;
mod punch;
mod shared;
mod state;
mod turns;
mod view;

pub use crate::agree::Encryption;
pub use crate::listener::Listener;
pub use choices::Choices;
pub use driver::{Driver, stamps};
pub use error::SessionError;
pub use state::Wish;
pub use turns::{Turn, Turns};
pub use view::{Part, PeerView, View};

pub(crate) use state::{Held, Inner, State};

use crate::bucket::Bucket;
use crate::calls::Calls;
use crate::clock::Clock;
use crate::disk::Disk;
use crate::storage::Storage;
use cede_bt::engine::AnnounceEvent;
use cede_bt::metainfo::Info;
use cede_bt::picker::Begun;
use cede_bt::{Bitfield, Engine, PerFamily, layers};
use choices::setup;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// It is looked so often whether connections are still open.
const LINKS_EVERY: Duration = Duration::from_millis(20);

/// A torrent that runs. Clones are the same one; they stay on the thread that made them.
#[derive(Clone)]
pub struct Session {
    pub(crate) inner: Rc<Inner>,
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
        let limits = Held::new(&choices);
        let mut engine = Engine::new(setup);
        if let Some(hash) = info.hybrid_hash() {
            engine.set_hybrid(hash);
        }
        let mut state = State::new(engine, disk, listener, wishes, limits, layers::Server::new(info));
        state.told.port = state.listener.as_deref().map(Listener::told_port);
        let inner = Rc::new(Inner {
            state: RefCell::new(state),
            info: info.clone(),
            storage: storage.clone(),
            choices,
            calls: Calls::default(),
            alarm: Notify::new(),
            arrived: Notify::new(),
            links: Cell::default(),
            clock: Clock::begin(),
        });
        Ok((Self { inner: inner.clone() }, wished, Driver { inner, inbox, notes: None }))
    }

    /// Goes on with wanted pieces where an earlier run ended; what of that is no longer there is fetched again. To be called before it runs.
    /// Says how many octets are not to be fetched for that.
    pub fn resume(&self, begun: &[Begun]) -> u64 {
        let mut state = self.inner.state.borrow_mut();
        let wanted = self.inner.storage.wanted_pieces();
        for begun in begun.iter().filter(|begun| wanted.get(begun.piece as usize) == Some(&true)) {
            let begun = self.inner.storage.remains(&self.inner.info.geometry, begun);
            state.engine.resume(&begun);
        }
        state.engine.unfinished_bytes()
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

    /// Fetches in these turns from now on; what has been asked for comes as it comes.
    pub fn take_turns(&self, turns: &Turns) {
        let turns = turns.of_pieces(self.inner.storage.layout());
        self.inner.state.borrow_mut().engine.take_turns(turns);
    }

    /// Somebody knows of these peers.
    pub fn add_peers(&self, peers: &[SocketAddr]) {
        let mut state = self.inner.state.borrow_mut();
        let peers = self.inner.to_be_called(&state, peers);
        state.engine.add_peers(self.inner.now(), &peers);
        self.inner.pump(&mut state);
    }

    /// Peers that somebody insists on: where there is no connection they are called now, however lately and often they could not be
    /// reached.
    pub fn call_peers(&self, peers: &[SocketAddr]) {
        let mut state = self.inner.state.borrow_mut();
        let peers = self.inner.to_be_called(&state, peers);
        state.engine.call_peers(self.inner.now(), &peers);
        self.inner.pump(&mut state);
    }

    /// These peers are in the local network.
    pub fn add_near_peers(&self, peers: &[SocketAddr]) {
        let mut state = self.inner.state.borrow_mut();
        let peers = self.inner.to_be_called(&state, peers);
        state.engine.add_near_peers(self.inner.now(), &peers);
        self.inner.pump(&mut state);
    }

    /// We are reached elsewhere than trackers were told: they hear of it at once.
    pub fn announce_again(&self) {
        let state = self.inner.state.borrow();
        let want = self.inner.choices.profile.want_peers;
        let _ = state.wishes.send(Wish { event: AnnounceEvent::Moved, want });
    }

    /// Peers that have a node of the distributed hash table hear that ours of their family is at this UDP port, and whoever is given hears
    /// where theirs are. Not for private torrents.
    pub fn join_dht(&self, ports: PerFamily<Option<u16>>, hear: impl Fn(SocketAddr) + 'static) {
        let mut state = self.inner.state.borrow_mut();
        state.hears_of_nodes = Some(Box::new(hear));
        state.engine.set_dht_ports(self.inner.now(), ports);
        self.inner.pump(&mut state);
    }

    /// Changes the torrent's own limits, in octets per second; those that it has together with others hold besides.
    pub fn set_limits(&self, up: Option<u64>, down: Option<u64>) {
        let mut state = self.inner.state.borrow_mut();
        state.limits.down.borrow_mut().set_rate(down);
        state.limits.own_up = up;
        self.inner.limit(&mut state);
    }

    /// Octets per second that it sends at most by a limit of its own.
    pub(crate) fn own_up(&self) -> Option<u64> {
        self.inner.state.borrow().limits.own_up
    }

    /// Changes its part of what several may send together, in octets per second.
    pub(crate) fn set_part(&self, part: Option<u64>) {
        let mut state = self.inner.state.borrow_mut();
        state.limits.part_up = part;
        self.inner.limit(&mut state);
    }

    /// Reads no faster than this allows, either.
    pub(crate) fn read_from(&self, above: Rc<RefCell<Bucket>>) {
        let state = self.inner.state.borrow();
        let mut bucket = state.limits.down.borrow_mut();
        *bucket = Bucket::new(bucket.rate()).below(above);
    }

    /// Octets of blocks that were sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.inner.state.borrow().engine.totals().sent()
    }

    /// Waits until what is wanted comes to be on the disk. Ready once each time that it does.
    pub async fn arrival(&self) {
        self.inner.arrived.notified().await;
    }

    /// Whether it was told to [`Session::leave`].
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.inner.state.borrow().left.is_some()
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

    /// Whoever looks for peers hears nothing more of this session, and so may say goodbye. Peers are let go, and nobody else is called.
    pub fn leave(&self) {
        let mut state = self.inner.state.borrow_mut();
        state.wishes = mpsc::unbounded_channel().0;
        Inner::store(&mut state);
        state.left = Some(state.engine.unfinished());
        state.disk.leave();
        self.inner.close_all(&mut state);
    }

    /// Waits, once it has left, until its peers have what was sent to them, or have taken nothing for long.
    pub async fn seen_off(&self) {
        while self.inner.links.get() > 0 {
            tokio::time::sleep(LINKS_EVERY).await;
        }
    }

    /// Which pieces are there, checked.
    #[must_use]
    pub fn whole(&self) -> Vec<bool> {
        self.inner.whole()
    }

    /// Everything wanted is there, and on the disk.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let state = self.inner.state.borrow();
        state.engine.is_complete() && (state.is_synced || !state.is_complete)
    }
}
