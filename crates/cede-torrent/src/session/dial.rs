//! Opening connections and taking them up, over TCP and uTP on one port number, in the clear or enciphered.

use super::conn;
use super::shared::Shared;
use super::state::{Inner, State};
use crate::agree::Encryption;
use crate::calls::Miss;
use crate::link::Link;
use crate::reach::{Missed, Reach};
use crate::reception::Callee;
use cede_bt::Transport;
use cede_bt::engine::ConnId;
use cede_bt::metainfo::Info;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;

impl Callee for Inner {
    fn encryption(&self) -> Encryption {
        self.choices.encryption
    }

    fn is_banned(&self, address: SocketAddr) -> bool {
        self.state.borrow().is_banned(address)
    }

    fn receive(self: Rc<Self>, link: Link, address: SocketAddr) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            let transport = link.stream.transport();
            let Some((shared, link)) = take_up(&self, link, address, transport) else { return };
            conn::run(self.clone(), shared, link).await;
            // Over uTP a peer calls from the port that it is reached at.
            if transport == Transport::Tcp {
                self.state.borrow_mut().engine.forget_caller(address);
            }
        })
    }
}

/// What callers may mean a torrent by: its info-hash, and for a hybrid one the beginning of its v2 hash.
pub(super) fn names(info: &Info) -> Vec<[u8; 20]> {
    std::iter::once(info.info_hash()).chain(info.hybrid_hash()).collect()
}

/// Offers the engine a connection whose peer has shown what it speaks.
fn take_up(
    inner: &Rc<Inner>,
    link: Link,
    address: SocketAddr,
    transport: Transport,
) -> Option<(Rc<RefCell<Shared>>, Link)> {
    let mut state = inner.state.borrow_mut();
    // Whoever was let in as it left has come too late.
    if state.left.is_some() || !state.engine.make_room(inner.now(), address.ip()) {
        return None;
    }
    // Whoever has made room is told to go.
    inner.pump(&mut state);
    let id = state.engine.accept(inner.now(), address, transport)?;
    let mut shared = Shared::new(id, address);
    shared.is_enciphered = link.is_enciphered();
    let shared = Inner::enter(&mut state, shared);
    inner.pump(&mut state);
    Some((shared, link))
}

/// The engine wants a connection.
pub(super) fn dial(
    inner: &Rc<Inner>,
    state: &mut State,
    id: ConnId,
    address: SocketAddr,
    transport: Transport,
) {
    let shared = Inner::enter(state, Shared::new(id, address));
    let task = tokio::task::spawn_local(open(inner.clone(), shared.clone(), transport));
    shared.borrow_mut().dial = Some(task.abort_handle());
}

async fn open(inner: Rc<Inner>, shared: Rc<RefCell<Shared>>, transport: Transport) {
    let (id, address) = {
        let shared = shared.borrow();
        (shared.id, shared.address)
    };
    let was_deaf = inner.state.borrow().deaf.contains(&address);
    let link = reach(&inner, address, transport, was_deaf).await;
    {
        let mut state = inner.state.borrow_mut();
        let is_known = Inner::conn(&state, id).is_some();
        if link.is_err() || !is_known {
            return inner.part_from(&mut state, id);
        }
        // From here on the connection is not opened any more: to close it lets it say its last words.
        shared.borrow_mut().dial = None;
        shared.borrow_mut().is_enciphered = link.as_ref().is_ok_and(Link::is_enciphered);
        state.engine.connected(inner.now(), id);
        inner.pump(&mut state);
    }
    let Ok(link) = link else { return };
    let is_plain = !link.is_enciphered();
    if conn::run(inner.clone(), shared, link).await {
        return inner.calls.heard(address);
    }
    inner.calls.missed(address, transport, Miss::HungUp);
    if is_plain {
        call_enciphered(&inner, address, was_deaf);
    }
    call_soon(inner, address).await;
}

/// A peer has hung up on the clear: where it may be called enciphered, and was not, it is called so at once. One whose host talks to us
/// over another connection may have no need of two.
fn call_enciphered(inner: &Rc<Inner>, address: SocketAddr, was_deaf: bool) {
    let mut state = inner.state.borrow_mut();
    if state.engine.connections().any(|conn| conn.address.ip() == address.ip()) {
        return;
    }
    let is_noted = state.note_deaf(address);
    let has_a_way = matches!(inner.choices.encryption, Encryption::Allow | Encryption::Prefer);
    if is_noted && !was_deaf && has_a_way {
        state.engine.call_again(inner.now(), address);
        inner.pump(&mut state);
    }
}

/// A peer has hung up without a word. It may still have had a connection to somebody at our address who was us a moment ago: libtorrent
/// notices after 0.3 s over uTP that a process is gone. Where there is nobody else it is called again soon, and not after a minute.
async fn call_soon(inner: Rc<Inner>, address: SocketAddr) {
    let Some(pause) = inner.state.borrow_mut().until_recall(address) else { return };
    // Nobody is kept here by a session that is over.
    let session = Rc::downgrade(&inner);
    drop(inner);
    tokio::time::sleep(pause).await;
    let Some(inner) = session.upgrade() else { return };
    let is_over = inner.is_over();
    let mut state = inner.state.borrow_mut();
    if !is_over && state.engine.connections().next().is_none() {
        state.engine.call_again(inner.now(), address);
        inner.pump(&mut state);
    }
}

/// Opens a stream to a peer, as the torrent's choices and what is known of the peer want it.
async fn reach(
    inner: &Inner,
    address: SocketAddr,
    transport: Transport,
    is_deaf: bool,
) -> Result<Link, Missed> {
    let listener = inner.state.borrow().listener.clone();
    let (info_hash, encryption) = (inner.info.info_hash(), inner.choices.encryption);
    let reach = Reach { listener: listener.as_deref(), info_hash, encryption, is_deaf };
    let reached = reach.open(address, transport).await;
    reached.inspect_err(|missed| inner.calls.missed(address, transport, missed.miss(encryption)))
}
