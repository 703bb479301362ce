//! A torrent's trackers: who is told of us, from the search behind a link on, until we say goodbye.
//!
//! A search and the download that follows it are one peer to a tracker. So one asks for both, one announce after the other: what the search
//! has begun to say cannot come behind the download's goodbye, and leave a peer on the list that is gone.

use super::hub::Hub;
use super::notes::hear;
use super::swarm;
use crate::failure::Failure;
use cede_bt::engine::AnnounceEvent;
use cede_torrent::announce::{self, Amounts, Identity, Trackers};
use cede_torrent::session::Wish;
use std::cell::RefCell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;

/// Peers that a search asks for.
const WANT: u32 = 50;
/// Trackers are asked for more so often, or as seldom as they want it.
const MORE_EVERY: Duration = Duration::from_secs(30);

/// How we stand, to be told to trackers.
pub type Standing = Box<dyn Fn() -> Amounts>;
/// Who hears of peers.
type Hearer = UnboundedSender<Vec<SocketAddr>>;

/// Trackers that hear of us.
pub struct Asking {
    /// Who we are to them, and remain.
    pub identity: Identity,
    wishes: UnboundedSender<Wish>,
    standing: Rc<RefCell<Standing>>,
    hearer: Rc<RefCell<Hearer>>,
    announcing: JoinHandle<()>,
}

impl Asking {
    /// Nobody is asked before somebody wishes it.
    pub fn new(
        tiers: Vec<Trackers>,
        identity: Identity,
        torrent: (&Rc<Hub>, usize),
        (standing, hearer): (Standing, Hearer),
    ) -> Self {
        let (standing, hearer) = (Rc::new(RefCell::new(standing)), Rc::new(RefCell::new(hearer)));
        let (wishes, wished) = mpsc::unbounded_channel();
        let (notes, noted) = mpsc::unbounded_channel();
        let (stands, hears) = (standing.clone(), hearer.clone());
        let amounts = move || (stands.borrow())();
        let announcing = tokio::task::spawn_local(announce::run(tiers, identity, amounts, wished, notes));
        let found = move |peers| drop(hears.borrow().send(peers));
        tokio::task::spawn_local(hear((torrent.0.clone(), torrent.1), noted, found));
        Self { identity, wishes, standing, hearer, announcing }
    }

    /// Tells them of us before there is a session.
    pub fn begin(
        tiers: Vec<Trackers>,
        identity: Identity,
        (hub, row): (&Rc<Hub>, usize),
        named: &Hearer,
    ) -> Self {
        // What is missing is not known; anything but nothing says that we are no seed.
        let port = hub.listener.outer_port();
        let standing = Box::new(move || Amounts { left: 1, port: Some(port()), ..Amounts::default() });
        let asking = Self::new(tiers, identity, (hub, row), (standing, named.clone()));
        let _ = asking.wishes.send(Wish { event: AnnounceEvent::Started, want: WANT });
        asking
    }

    /// As long as nobody tells, trackers are asked for more.
    pub async fn keep_wishing(&self) -> Infallible {
        loop {
            tokio::time::sleep(MORE_EVERY).await;
            let _ = self.wishes.send(Wish { event: AnnounceEvent::More, want: WANT });
        }
    }

    /// A session has begun, and goes on under the same name.
    pub fn go_on(&self, standing: Standing, hearer: Hearer) {
        (*self.standing.borrow_mut(), *self.hearer.borrow_mut()) = (standing, hearer);
    }

    /// Asks whenever a session wishes it. What comes back is done when that has left, and trackers have heard of it.
    pub fn serve(self, mut wished: UnboundedReceiver<Wish>) -> JoinHandle<()> {
        let Self { wishes, announcing, .. } = self;
        tokio::task::spawn_local(async move {
            while let Some(wish) = wished.recv().await {
                let _ = wishes.send(wish);
            }
        });
        announcing
    }

    /// Nothing begins: trackers hear that we leave.
    pub async fn end(self, failure: &Failure) {
        drop(self.wishes);
        let _ = tokio::time::timeout(swarm::parting_time(failure), self.announcing).await;
    }
}
